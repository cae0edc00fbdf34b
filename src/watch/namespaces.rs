//! Namespaces.

use ovnkube_model::{Change, Kind, Name, Namespace};
use serde::Deserialize;

use crate::object::{Metadata, Watched};

pub(crate) struct Namespaces;

#[derive(Debug, Deserialize)]
pub(crate) struct NamespaceObject<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

impl Watched for Namespaces {
    const KIND: Kind = Kind::Namespace;
    const PATH: &'static str = "/api/v1/namespaces";
    const PAGE: u32 = 500;
    type Key = Name;
    type Object<'a> = NamespaceObject<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o NamespaceObject<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: Name, object: &NamespaceObject<'_>) -> Change {
        Change::Namespace(key, Some(Namespace::parse(&object.metadata.meta())))
    }

    fn gone(key: Name) -> Change {
        Change::Namespace(key, None)
    }
}
