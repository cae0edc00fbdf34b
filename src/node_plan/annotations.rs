//! The annotations with which the node describes itself on its Node.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::keys;
use serde_json::json;

/// Annotation name → text; empty: the annotation must not exist. Sorted, so that equal facts give equal maps.
pub type Annotations = BTreeMap<String, String>;

/// The facts behind the annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts<'a> {
    pub system_id: &'a str,
    pub zone: &'a str,
    /// Addresses of the node's own links; `None`: some are missing for a moment, so their annotations stay.
    pub addresses: Option<&'a [IpNetwork]>,
    /// `status.addresses` of type InternalIP.
    pub internal_ips: &'a [IpAddr],
    pub encap_ips: &'a [IpAddr],
    pub masquerade: &'a [ovnkube_model::Subnet],
    /// Text of the gateway's annotation; `None`: there is no gateway yet; empty: the node has none.
    pub gateway: Option<String>,
    /// The gateway router informs senders of packets that are too large for pods.
    pub checks_mtu: bool,
    /// The pods' MTU, empty if the administrator set it; `None`: not known yet.
    pub mtu: Option<String>,
}

impl Facts<'_> {
    pub fn annotations(&self) -> Annotations {
        let mut all = Annotations::new();
        let mut put = |key: &str, value: String| all.insert(key.to_owned(), value);
        put(keys::CHASSIS_ID, self.system_id.to_owned());
        put(keys::ZONE, self.zone.to_owned());
        put(keys::ENCAP_IPS, json!(self.encap_ips).to_string());
        put(keys::MASQUERADE_SUBNET, self.masquerade_subnet());
        put(keys::GATEWAY_MTU_SUPPORT, if self.checks_mtu { String::new() } else { "false".to_owned() });
        if let Some(mtu) = &self.mtu {
            put(keys::NODE_MTU, mtu.clone());
        }
        if let Some(addresses) = self.addresses {
            put(keys::HOST_CIDRS, json!(self.host_cidrs(addresses)).to_string());
            if let Some(primary) = self.primary(addresses) {
                put(keys::PRIMARY_IFADDR, primary);
            }
        }
        if let Some(gateway) = &self.gateway {
            put(keys::GATEWAY, gateway.clone());
        }
        all
    }

    /// Global addresses, without those that every node has.
    fn host_cidrs(&self, addresses: &[IpNetwork]) -> Vec<String> {
        let shared = |ip: IpAddr| self.masquerade.iter().any(|range| range.contains(ip));
        let global = addresses.iter().filter(|address| !address.ip().is_loopback() && !shared(address.ip()));
        let mut cidrs: Vec<String> = global.map(ToString::to_string).collect();
        cidrs.sort();
        cidrs.dedup();
        cidrs
    }

    /// `{"ipv4":"169.254.169.0/29","ipv6":"fd69::/125"}`.
    fn masquerade_subnet(&self) -> String {
        let family = |subnet: &ovnkube_model::Subnet| if subnet.is_ipv6() { "ipv6" } else { "ipv4" };
        let subnets: BTreeMap<_, _> =
            self.masquerade.iter().map(|subnet| (family(subnet), subnet.to_string())).collect();
        json!(subnets).to_string()
    }

    /// `{"ipv4":"172.18.0.2/16"}`: the node's address with the prefix length of its link.
    fn primary(&self, addresses: &[IpNetwork]) -> Option<String> {
        let own = |want_ipv6: bool| {
            let ip = self.internal_ips.iter().find(|ip| ip.is_ipv6() == want_ipv6)?;
            addresses.iter().find(|address| address.ip() == *ip).map(ToString::to_string)
        };
        let families = [("ipv4", own(false)), ("ipv6", own(true))];
        let present: BTreeMap<_, _> =
            families.into_iter().filter_map(|(family, address)| Some((family, address?))).collect();
        (!present.is_empty()).then(|| json!(present).to_string())
    }
}
