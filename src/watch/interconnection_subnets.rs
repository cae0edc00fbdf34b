//! `Subnets` of Kube-OVN.

use ovnkube_model::{Change, InterconnectionSubnet, Kind, Name};
use serde::Deserialize;

use crate::object::{Metadata, Watched};

pub(crate) struct InterconnectionSubnets;

#[derive(Debug, Deserialize)]
pub(crate) struct SubnetObject<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(default)]
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    cidr_block: Option<String>,
    #[serde(rename = "disableInterConnection")]
    disable: Option<bool>,
}

impl Watched for InterconnectionSubnets {
    const KIND: Kind = Kind::InterconnectionSubnet;
    const PATH: &'static str = "/apis/kubeovn.io/v1/subnets";
    const PAGE: u32 = 500;
    /// Clusters that close no ranges need not have the definition.
    const OPTIONAL: bool = true;
    type Key = Name;
    type Object<'a> = SubnetObject<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o SubnetObject<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: Name, object: &SubnetObject<'_>) -> Change {
        let Spec { cidr_block, disable } = &object.spec;
        let cidr_block = cidr_block.as_deref().unwrap_or_default();
        let subnet = InterconnectionSubnet::parse(&object.metadata.meta(), cidr_block, disable.unwrap_or_default());
        Change::InterconnectionSubnet(key, Some(subnet))
    }

    fn gone(key: Name) -> Change {
        Change::InterconnectionSubnet(key, None)
    }
}
