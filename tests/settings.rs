//! The settings of a case.

use ovnkube_model::{ClusterSubnet, ExternalIps, NetworkSettings, NodeSelector, Roles, Subnet};
use serde::Deserialize;

/// The settings a case may change, with ovn-kubernetes' usual values by default.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(clippy::struct_excessive_bools, reason = "settings that are on or off")]
pub struct Settings {
    /// `CIDR/hostprefix`, separated by commas.
    pub cluster_subnets: String,
    pub service_cidrs: String,
    pub join_subnets: String,
    pub disable_external_ips: bool,
    pub allowed_external_ips: Vec<String>,
    pub multicast: bool,
    pub egress_firewall: bool,
    pub stateless_netpol: bool,
    /// Messages per second.
    pub acl_logging_rate_limit: u32,
    pub host_network_namespace: Option<String>,
    pub disable_snat_multiple_gws: bool,
    /// Nodes with this label have their own subnets.
    pub no_hostsubnet_label: Option<String>,
    pub disable_requested_chassis: bool,
    pub disable_iface_id_ver: bool,
    pub svc_template_support: bool,
    pub roles: Roles,
    /// Also shows the rows of an empty cluster.
    pub show_everything: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster_subnets: "10.128.0.0/14/23".into(),
            service_cidrs: "10.96.0.0/16".into(),
            join_subnets: "100.64.0.0/16,fd98::/64".into(),
            disable_external_ips: false,
            allowed_external_ips: Vec::new(),
            multicast: false,
            egress_firewall: true,
            stateless_netpol: false,
            acl_logging_rate_limit: 20,
            host_network_namespace: None,
            disable_snat_multiple_gws: false,
            no_hostsubnet_label: None,
            disable_requested_chassis: false,
            disable_iface_id_ver: false,
            svc_template_support: false,
            roles: Roles::MASTER,
            show_everything: false,
        }
    }
}

impl Settings {
    pub fn network(&self) -> NetworkSettings {
        let subnets = |list: &str| list.split(',').map(|s| s.parse::<Subnet>().unwrap()).collect();
        NetworkSettings {
            roles: self.roles,
            zone: "global".into(),
            cluster_subnets: self.cluster_subnets.split(',').map(range).collect(),
            service_cidrs: subnets(&self.service_cidrs),
            external_ips: ExternalIps {
                disabled: self.disable_external_ips,
                allowed: self.allowed_external_ips.iter().map(|range| range.parse().unwrap()).collect(),
            },
            encap_port: 6081,
            join_subnets: subnets(&self.join_subnets),
            disable_snat_multiple_gws: self.disable_snat_multiple_gws,
            masquerade_subnets: subnets("169.254.169.0/29,fd69::/125"),
            transit_subnets: subnets("100.88.0.0/16,fd97::/64"),
            mtu: 1400,
            host_network_namespace: self.host_network_namespace.as_deref().map(Into::into),
            no_hostsubnet_nodes: self.no_hostsubnet_label.clone().map(labelled),
            multicast: self.multicast,
            egress_firewall: self.egress_firewall,
            stateless_netpol: self.stateless_netpol,
            disable_requested_chassis: self.disable_requested_chassis,
            disable_iface_id_ver: self.disable_iface_id_ver,
            acl_logging_rate_limit: self.acl_logging_rate_limit,
            svc_template_support: self.svc_template_support,
        }
    }
}

fn labelled(key: String) -> NodeSelector {
    NodeSelector(std::sync::Arc::new(move |labels| labels.contains_key(&key)))
}

fn range(text: &str) -> ClusterSubnet {
    let (cidr, host_prefix) = text.rsplit_once('/').unwrap();
    ClusterSubnet { cidr: cidr.parse().unwrap(), host_prefix: host_prefix.parse().unwrap() }
}
