//! Nodes.

use std::net::IpAddr;

use ovnkube_model::{Change, Kind, Name, Node, NodeFields};
use serde::Deserialize;

use crate::client::query_value;
use crate::object::{Metadata, Watched};
use crate::{Client, Error};

/// Taint that an autoscaler sets on a node that it will remove.
const LEAVING: &str = "ToBeDeletedByClusterAutoscaler";

pub(crate) struct Nodes;

#[derive(Debug, Deserialize)]
pub(crate) struct NodeObject<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
struct Spec {
    #[serde(default)]
    taints: Vec<Taint>,
}

#[derive(Debug, Deserialize)]
struct Taint {
    #[serde(default)]
    key: String,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    addresses: Vec<Address>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Address {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

impl Client {
    /// The node of this name, if there is one.
    pub async fn node(&self, name: &str) -> Result<Option<Box<Node>>, Error> {
        let (action, path) = (format!("get node {name}"), format!("{}/{}", Nodes::PATH, query_value(name)));
        let mut text = Vec::new();
        match self.get(&action, &path, &mut text).await {
            Err(error) if error.is_gone() => return Ok(None),
            result => result?,
        }
        let object: NodeObject<'_> = serde_json::from_slice(&text).map_err(|e| Error::failed(&action, e))?;
        match Nodes::change(name.into(), &object) {
            Change::Node(_, node) => Ok(node),
            _ => Ok(None),
        }
    }
}

impl Watched for Nodes {
    const KIND: Kind = Kind::Node;
    const PATH: &'static str = "/api/v1/nodes";
    /// A node has 10 to 20 kB, since it lists its images.
    const PAGE: u32 = 100;
    type Key = Name;
    type Object<'a> = NodeObject<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o NodeObject<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: Name, object: &NodeObject<'_>) -> Change {
        // some addresses are names
        let all = object.status.addresses.iter().filter_map(|a| Some((a, a.address.parse::<IpAddr>().ok()?)));
        let (internal, other): (Vec<_>, Vec<_>) = all.partition(|(a, _)| a.kind == "InternalIP");
        let [addresses, other_addresses] =
            [internal, other].map(|some| some.into_iter().map(|(_, ip)| ip).collect::<Vec<_>>());
        let unavailable = |c: &&Condition| c.kind == "NetworkUnavailable" && c.status == "True";
        let condition = object.status.conditions.iter().find(unavailable);
        let is_leaving = object.metadata.is_being_deleted() || object.spec.taints.iter().any(|t| t.key == LEAVING);
        let fields = NodeFields {
            addresses: &addresses,
            other_addresses: &other_addresses,
            network_unavailable: condition.map(|c| c.reason.as_str()),
            leaving: is_leaving,
        };
        Change::Node(key, Some(Box::new(Node::parse(&object.metadata.meta(), fields))))
    }

    fn gone(key: Name) -> Change {
        Change::Node(key, None)
    }
}
