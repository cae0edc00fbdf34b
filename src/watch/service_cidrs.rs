//! `ServiceCIDRs`.

use ovnkube_model::{Change, Kind, Name, ServiceCidr};
use serde::Deserialize;

use crate::object::{Metadata, Watched};

pub(crate) struct ServiceCidrs;

#[derive(Debug, Deserialize)]
pub(crate) struct ServiceCidrObject<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(default)]
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    cidrs: Vec<String>,
}

impl Watched for ServiceCidrs {
    const KIND: Kind = Kind::ServiceCidr;
    const PATH: &'static str = "/apis/networking.k8s.io/v1/servicecidrs";
    const PAGE: u32 = 500;
    /// API servers have it from Kubernetes 1.33 on.
    const OPTIONAL: bool = true;
    type Key = Name;
    type Object<'a> = ServiceCidrObject<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o ServiceCidrObject<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: Name, object: &ServiceCidrObject<'_>) -> Change {
        Change::ServiceCidr(key, Some(ServiceCidr::parse(&object.metadata.meta(), &object.spec.cidrs)))
    }

    fn gone(key: Name) -> Change {
        Change::ServiceCidr(key, None)
    }
}
