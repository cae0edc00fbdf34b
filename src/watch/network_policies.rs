//! `NetworkPolicies`.

use ovnkube_model::{Change, Kind, NetworkPolicy, ObjectKey, PolicyFields};
use serde::Deserialize;

use crate::object::{Metadata, Watched};

pub(crate) struct NetworkPolicies;

#[derive(Debug, Deserialize)]
pub(crate) struct PolicyObject<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(default)]
    spec: PolicyFields,
}

impl Watched for NetworkPolicies {
    const KIND: Kind = Kind::NetworkPolicy;
    const PATH: &'static str = "/apis/networking.k8s.io/v1/networkpolicies";
    const PAGE: u32 = 500;
    type Key = ObjectKey;
    type Object<'a> = PolicyObject<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o PolicyObject<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: ObjectKey, object: &PolicyObject<'_>) -> Change {
        let policy = NetworkPolicy::parse(&object.metadata.meta(), &object.spec);
        Change::NetworkPolicy(key, Some(Box::new(policy)))
    }

    fn gone(key: ObjectKey) -> Change {
        Change::NetworkPolicy(key, None)
    }
}
