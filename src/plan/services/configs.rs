//! What a service asks for, port by port, before it is assigned to switches and routers.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use ovnkube_model::{
    Backend, Backends, ClusterSubnet, Family, ObjectKey, Protocol, Service, ServicePort, TrafficPolicy, World,
};

use super::text::text;

/// One port at some addresses, and the endpoints behind it.
pub(super) struct Config<'a> {
    pub(super) protocol: Protocol,
    pub(super) port: u16,
    pub(super) at: At,
    behind: Rc<[Behind<'a>; 2]>,
    /// Routers send packets only to endpoints of their node, with the client's address.
    pub(super) external_local: bool,
    /// Addresses for which switches send packets only to endpoints of their node.
    pub(super) internal_local: Vec<IpAddr>,
    pub(super) is_template: bool,
}

/// The addresses of a port.
pub(super) enum At {
    /// The addresses of each node.
    Nodes,
    Ips(Vec<IpAddr>),
}

/// The endpoints of one family.
pub(super) struct Behind<'a> {
    pub(super) all: Backends<'a>,
    /// The endpoints that any node would use, as a list.
    pub(super) cluster: Vec<Backend>,
    pub(super) cluster_text: Arc<str>,
    /// Whether one of them is a node rather than a pod.
    pub(super) has_hosts: bool,
    /// See [`Backends::has_hints`].
    pub(super) has_hints: bool,
}

impl<'a> Config<'a> {
    pub(super) fn behind(&self, family: Family) -> &Behind<'a> {
        let [v4, v6] = &*self.behind;
        match family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }

    /// Whether it differs between nodes.
    pub(super) fn is_per_node(&self) -> bool {
        let differs = |behind: &Behind<'_>| behind.has_hosts || behind.has_hints;
        matches!(self.at, At::Nodes)
            || self.external_local
            || !self.internal_local.is_empty()
            || self.behind.iter().any(differs)
    }
}

/// Whether something that a service asks for may differ between nodes. This is asked of all services whenever a node changes,
/// so it takes no look at single ports.
pub(super) fn may_be_per_node(key: &ObjectKey, service: &Service, world: &World) -> bool {
    let endpoints = || world.services.slices(key).flat_map(|(_, slice)| &slice.endpoints);
    let has_node_ports = || service.ports.iter().any(|port| port.node_port.is_some());
    !service.ports.is_empty()
        && (service.is_external_local()
            || service.internal_policy == TrafficPolicy::Local
            || has_node_ports()
            || endpoints().any(|endpoint| endpoint.hints.is_some() || !is_pod(endpoint.ip, world)))
}

/// Everything a service asks for.
pub(super) fn configs<'a>(key: &ObjectKey, world: &'a World) -> Vec<Config<'a>> {
    let mut configs = Vec::new();
    let Some(service) = world.services.get(key) else { return configs };
    let external_local = service.is_external_local();
    let internal_local = service.internal_policy == TrafficPolicy::Local;
    let templates = world.settings.svc_template_support && service.fits_template();
    for port in world.services.ports(key) {
        let both = Rc::new([Family::V4, Family::V6].map(|family| behind(key, port, family, world)));
        let config = |at, number| Config {
            protocol: port.protocol,
            port: number,
            at,
            behind: both.clone(),
            external_local: false,
            internal_local: Vec::new(),
            is_template: false,
        };
        if let Some(number) = world.services.node_port(key, port) {
            configs.push(Config { external_local, is_template: templates, ..config(At::Nodes, number) });
        }
        let outer = world.services.external_ips(key, port);
        let mut ips = world.services.cluster_ips(key, port);
        let internal_local = if internal_local { ips.clone() } else { Vec::new() };
        if external_local && !outer.is_empty() {
            configs.push(Config { external_local, ..config(At::Ips(outer), port.port) });
        } else {
            ips.extend(outer);
        }
        if !ips.is_empty() {
            configs.push(Config { internal_local, ..config(At::Ips(ips), port.port) });
        }
    }
    configs
}

fn behind<'a>(key: &ObjectKey, port: &ServicePort, family: Family, world: &'a World) -> Behind<'a> {
    let all = world.services.backends(key, port, family);
    let cluster = all.cluster(None);
    let has_hosts = cluster.iter().any(|backend| !is_pod(backend.ip, world));
    let cluster_text = text(&cluster, |backend| backend.ip);
    Behind { has_hints: all.has_hints(), cluster_text, cluster, all, has_hosts }
}

fn is_pod(ip: IpAddr, world: &World) -> bool {
    let family = Family::of(ip);
    let inside = |range: &ClusterSubnet| Family::of_subnet(range.cidr) == family && range.cidr.contains(ip);
    world.settings.cluster_subnets.iter().any(inside)
}
