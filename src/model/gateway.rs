//! The `k8s.ovn.org/l3-gateway-config` annotation: how traffic of a node's pods gets in and out.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::Mac;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Family;

/// The most addresses, and the most next hops, of a gateway. Agents write one of each family; each address is a policy of the cluster's
/// router.
const MOST: usize = 16;

/// Where a pod's packets leave its node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GatewayMode {
    /// Through the node's gateway router.
    #[default]
    Shared,
    /// Through the node's own IP stack.
    Local,
}

/// A node's gateway. The node's agent writes it once its bridge exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gateway {
    pub mode: GatewayMode,
    /// Name of the localnet port: `<bridge>_<node>`.
    pub interface_id: String,
    /// MAC of the bridge.
    pub mac: Mac,
    /// The node's addresses on the bridge, each once.
    pub ips: Vec<IpNetwork>,
    pub next_hops: Vec<IpAddr>,
    pub node_port: bool,
    pub vlan: Option<u16>,
}

impl Gateway {
    /// Parses the annotation; `None` for a node without a gateway.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let networks: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
        let Some(config) = networks.get("default") else { return Ok(None) };
        let mode = match string(config, "mode") {
            "" => return Ok(None),
            "shared" => GatewayMode::Shared,
            "local" => GatewayMode::Local,
            other => return Err(format!("\"mode\" is {other:?}; write shared, local or nothing")),
        };
        let gateway = Self {
            mode,
            interface_id: string(config, "interface-id").to_owned(),
            mac: string(config, "mac-address").parse().map_err(|e| format!("\"mac-address\": {e}"))?,
            ips: each_once(list(config, "ip-addresses", "ip-address")?, IpNetwork::ip),
            next_hops: each_once(list(config, "next-hops", "next-hop")?, |ip| *ip),
            node_port: string(config, "node-port-enable") == "true",
            vlan: vlan(string(config, "vlan-id"))?,
        };
        if gateway.interface_id.is_empty() || gateway.ips.is_empty() {
            return Err("it needs \"interface-id\" and \"ip-addresses\"".to_owned());
        }
        Ok(Some(gateway))
    }

    /// The address that packets of a family leave with: the first one, as in ovn-kubernetes.
    pub fn outer_ip(&self, family: Family) -> Option<IpAddr> {
        self.ips.iter().map(IpNetwork::ip).find(|ip| Family::of(*ip) == family)
    }

    /// Leaves out what is too much; says what, and what to do.
    pub(crate) fn limit(&mut self) -> Option<String> {
        let (ips, next_hops) = (self.ips.len(), self.next_hops.len());
        self.ips.truncate(MOST);
        self.next_hops.truncate(MOST);
        (ips.max(next_hops) > MOST).then(|| {
            format!(
                "it has {ips} addresses and {next_hops} next hops; the first {MOST} of each are used; remove the others"
            )
        })
    }
}

fn string<'a>(config: &'a Value, key: &str) -> &'a str {
    config.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The list under `many`, or the single value that older writers put under `one`.
fn list<T: std::str::FromStr>(config: &Value, many: &str, one: &str) -> Result<Vec<T>, String> {
    let texts: Vec<&str> = match config.get(many).and_then(Value::as_array) {
        Some(list) => list.iter().map(|item| item.as_str().unwrap_or_default()).collect(),
        None => vec![string(config, one)].into_iter().filter(|text| !text.is_empty()).collect(),
    };
    let parse = |text: &str| text.parse().map_err(|_| format!("{many:?} holds {text:?}, not an address"));
    texts.into_iter().map(parse).collect()
}

/// Without later ones of the same address, which would be the same rows again.
fn each_once<T>(mut all: Vec<T>, ip: impl Fn(&T) -> IpAddr) -> Vec<T> {
    let mut known = BTreeSet::new();
    all.retain(|one| known.insert(ip(one)));
    all
}

fn vlan(text: &str) -> Result<Option<u16>, String> {
    let id: u16 = if text.is_empty() { 0 } else { text.parse().unwrap_or(u16::MAX) };
    if id > 4094 {
        return Err(format!("\"vlan-id\" is {text:?}, not 0 to 4094"));
    }
    Ok((id > 0).then_some(id))
}
