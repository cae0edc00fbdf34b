//! What has to be done on a host before a node agent can work there.

use std::net::IpAddr;

use ovnkube_model::Finding;
use serde::Deserialize;

use crate::cni_conf::{FILE, OLD};
use crate::mtu::{Uplink, tunnel_headers};

/// The host and what is wanted of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observed {
    /// `geneve` or `vxlan`.
    pub encap_type: String,
    /// MTU of pods; `None`: what the uplink leaves.
    pub mtu: Option<u32>,
    /// The link on which tunnels would end, its MTU, and its address.
    pub uplink: Option<(String, u32, IpAddr)>,
    /// The kernel's modules, of those that are needed: loaded, built in, or there to be loaded.
    pub modules: Vec<String>,
    pub cni_dir: String,
    /// Names of the files there.
    pub cni_files: Vec<String>,
    /// Process ids.
    pub kube_proxies: Vec<u32>,
}

/// The kernel's modules that tunnels of this type need.
pub fn modules(encap_type: &str) -> [&str; 2] {
    ["openvswitch", encap_type]
}

/// Everything to do, in the order of the checks.
pub fn check(observed: &Observed) -> Vec<Finding> {
    let Observed { encap_type, mtu, uplink, cni_dir, kube_proxies, .. } = observed;
    let mut found: Vec<Finding> = missing(&observed.modules, encap_type).collect();
    match uplink {
        Some((name, carries, ip)) => {
            let headers = tunnel_headers(encap_type, *ip);
            found.extend(mtu.and_then(|mtu| small(&Uplink { name: name.clone(), mtu: *carries, headers }, mtu)));
        }
        None => found.push(Finding::new("no uplink", "no default route, and no link with encap-ip", "set encap-ip")),
    }
    for file in observed.cni_files.iter().filter(|file| is_first(file)) {
        let what = "another network configuration would be used";
        found.push(Finding::new(what, format!("{cni_dir}/{file}"), format!("remove it: it sorts before {FILE}")));
    }
    for pid in kube_proxies {
        found.push(Finding::new("kube-proxy runs", format!("process {pid}"), "stop it: ovnkube serves what it serves"));
    }
    found
}

fn missing(have: &[String], encap_type: &str) -> impl Iterator<Item = Finding> {
    let missing = modules(encap_type).into_iter().filter(|module| !have.iter().any(|known| known == module));
    missing.map(|module| {
        let remedy = "install the kernel's modules, or use the userspace datapath \
                      (external_ids:ovn-bridge-datapath-type=netdev of Open_vSwitch)";
        Finding::new("the kernel lacks a module", module, remedy)
    })
}

fn small(uplink: &Uplink, mtu: u32) -> Option<Finding> {
    let Uplink { name, mtu: carries, headers } = uplink;
    let place = format!("{name} carries {carries} bytes, pods' {mtu} and {headers} of tunnel headers are more");
    let remedy = format!("raise the MTU of {name}, or set mtu to at most {}", uplink.room());
    uplink.problem(mtu).map(|_| Finding::new("the uplink's MTU is too small", place, remedy))
}

/// Whether a runtime would use this file in place of ours. The agent removes what ovn-kubernetes wrote.
fn is_first(file: &str) -> bool {
    let is_read = [".conf", ".conflist", ".json"].iter().any(|end| file.ends_with(end));
    is_read && file < FILE && file != OLD
}
