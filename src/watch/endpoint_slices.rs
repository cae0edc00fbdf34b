//! Endpoint slices.

use ovnkube_model::{Change, EndpointFields, EndpointSlice, Kind, ObjectKey, PortFields, SliceFields};
use serde::Deserialize;

use crate::object::{Metadata, Watched};

pub(crate) struct EndpointSlices;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SliceObject<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(default)]
    address_type: String,
    #[serde(default)]
    ports: Option<Vec<PortFields>>,
    #[serde(default)]
    endpoints: Option<Vec<EndpointFields>>,
}

impl Watched for EndpointSlices {
    const KIND: Kind = Kind::EndpointSlice;
    const PATH: &'static str = "/apis/discovery.k8s.io/v1/endpointslices";
    /// A slice holds 100 endpoints by default: 30 kB.
    const PAGE: u32 = 100;
    type Key = ObjectKey;
    type Object<'a> = SliceObject<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o SliceObject<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: ObjectKey, object: &SliceObject<'_>) -> Change {
        let fields = SliceFields {
            address_type: &object.address_type,
            ports: object.ports.as_deref().unwrap_or_default(),
            endpoints: object.endpoints.as_deref().unwrap_or_default(),
        };
        Change::EndpointSlice(key, Some(Box::new(EndpointSlice::parse(&object.metadata.meta(), fields))))
    }

    fn gone(key: ObjectKey) -> Change {
        Change::EndpointSlice(key, None)
    }
}
