//! From what a service asks for to load balancers: as few as will do.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ovnkube_model::{Family, Name, ObjectKey, Protocol, Service, Site, World};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{load_balancer as lb, load_balancer_group as lbg, logical_router as lr, logical_switch as ls};

use super::configs::{At, Config, FOREVER};
use super::targets::{local, on_router, on_switch};
use super::templates;
use crate::{RowKey, RowWant, Want, names};

/// The flows in which OVN keeps who is led where know no more seconds; of more, northd takes these with a warning.
const LONGEST_AFFINITY: u32 = 65_535;

/// `IP:port` and the endpoints behind it.
pub(super) type Vips = BTreeMap<String, Arc<str>>;

/// A load balancer and where it is.
pub(super) struct Balancer {
    pub(super) name: String,
    pub(super) protocol: Protocol,
    pub(super) vips: Vips,
    /// Leaves clients' addresses as they are.
    pub(super) skip_snat: bool,
    /// A template of this family.
    pub(super) template: Option<Family>,
    pub(super) groups: Vec<&'static str>,
    pub(super) switches: Vec<Name>,
    pub(super) routers: Vec<Name>,
    /// Values that its template's variables have on each chassis.
    pub(super) variables: Vec<templates::Variable>,
}

/// All load balancers of a service.
pub(super) fn balancers(key: &ObjectKey, configs: &[Config<'_>], world: &World) -> Vec<Balancer> {
    let mut all = Vec::new();
    let (per_node, shared): (Vec<_>, Vec<_>) = configs.iter().partition(|config| config.is_per_node());
    let (in_templates, per_node): (Vec<_>, Vec<_>) = per_node.into_iter().partition(|config| config.is_template);
    for (protocol, configs) in by_protocol(&shared) {
        all.extend(cluster(key, protocol, &configs));
    }
    let mut templates = Vec::new();
    for (protocol, configs) in by_protocol(&in_templates) {
        templates.extend(templates::balancers(key, protocol, &configs, world));
    }
    all.extend(merged(templates));
    let per_node = by_protocol(&per_node);
    let mut nodes = Vec::new();
    for site in &world.sites {
        nodes.extend(per_node.iter().flat_map(|(protocol, configs)| on_node(key, *protocol, configs, site, world)));
    }
    all.extend(merged(nodes));
    all
}

/// Without those nothing is asked for.
fn by_protocol<'a, 'c>(configs: &[&'a Config<'c>]) -> Vec<(Protocol, Vec<&'a Config<'c>>)> {
    let of = |protocol| configs.iter().copied().filter(|config| config.protocol == protocol).collect::<Vec<_>>();
    Protocol::ALL.map(|protocol| (protocol, of(protocol))).into_iter().filter(|(_, those)| !those.is_empty()).collect()
}

/// The one on all switches and routers.
fn cluster(key: &ObjectKey, protocol: Protocol, configs: &[&Config<'_>]) -> Option<Balancer> {
    let mut vips = Vips::new();
    for config in configs {
        let At::Ips(ips) = &config.at else { continue };
        vips.extend(ips.iter().map(|ip| {
            (SocketAddr::new(*ip, config.port).to_string(), config.behind(Family::of(*ip)).cluster_text.clone())
        }));
    }
    let balancer = Balancer::new(key, protocol, "cluster", vips);
    balancer.map(|balancer| Balancer { groups: vec![names::CLUSTER_LB_GROUP], ..balancer })
}

/// Those of one node's switch and router.
fn on_node(
    key: &ObjectKey,
    protocol: Protocol,
    configs: &[&Config<'_>],
    (node, site): (&Name, &Site),
    world: &World,
) -> Vec<Balancer> {
    let (mut switch, mut router, mut keeping) = (Vips::new(), Vips::new(), Vips::new());
    for config in configs {
        for ip in addresses(config, site) {
            let family = Family::of(ip);
            let at = |ip: IpAddr| SocketAddr::new(ip, config.port).to_string();
            if config.external_local && matches!(config.at, At::Nodes) {
                // where the host hands over packets from outside whose client's address is kept
                let masked = world.network.masquerade(family);
                switch.extend(masked.map(|masked| (at(masked.local), local(config.behind(family), node))));
            }
            let stays = config.internal_local.contains(&ip);
            let targets =
                if stays { local(config.behind(family), node) } else { on_switch(config, family, node, site) };
            let vip = at(ip);
            switch.insert(vip.clone(), targets);
            let targets = on_router(config, family, node, site, &world.network);
            let vips = if config.external_local && !targets.is_empty() { &mut keeping } else { &mut router };
            vips.insert(vip, targets);
        }
    }
    let scope = |kind: &str| format!("{kind}_{node}");
    let both = site.router.is_some() && keeping.is_empty() && switch == router;
    let mut all = Vec::new();
    if site.router.is_some() {
        let kind = if both { "node_router+switch" } else { "node_router" };
        let switches = if both { vec![node.clone()] } else { Vec::new() };
        let router = Balancer::new(key, protocol, &scope(kind), router);
        all.extend(router.map(|balancer| Balancer { switches, routers: vec![node.clone()], ..balancer }));
        let keeping = Balancer::new(key, protocol, &scope("node_local_router"), keeping);
        all.extend(keeping.map(|balancer| Balancer { routers: vec![node.clone()], skip_snat: true, ..balancer }));
    }
    if !both {
        let switch = Balancer::new(key, protocol, &scope("node_switch"), switch);
        all.extend(switch.map(|balancer| Balancer { switches: vec![node.clone()], ..balancer }));
    }
    all
}

fn addresses(config: &Config<'_>, site: &Site) -> Vec<IpAddr> {
    match &config.at {
        At::Ips(ips) => ips.clone(),
        At::Nodes => site.node_port_ips().to_vec(),
    }
}

/// Those that differ only in where they are become one, under the first one's name.
fn merged(all: Vec<Balancer>) -> Vec<Balancer> {
    let mut out: Vec<Balancer> = Vec::with_capacity(all.len());
    let mut known = BTreeMap::new();
    for balancer in all {
        match known.entry((balancer.sort(), balancer.vips.clone())) {
            Entry::Vacant(place) => {
                place.insert(out.len());
                out.push(balancer);
            }
            Entry::Occupied(at) => {
                if let Some(first) = out.get_mut(*at.get()) {
                    first.join(balancer);
                }
            }
        }
    }
    out
}

impl Balancer {
    /// Nothing for no addresses.
    pub(super) fn new(key: &ObjectKey, protocol: Protocol, scope: &str, vips: Vips) -> Option<Self> {
        (!vips.is_empty()).then(|| Self {
            name: name(key, protocol, scope),
            protocol,
            vips,
            skip_snat: false,
            template: None,
            groups: Vec::new(),
            switches: Vec::new(),
            routers: Vec::new(),
            variables: Vec::new(),
        })
    }

    /// Takes in another that says the same elsewhere.
    fn join(&mut self, other: Self) {
        self.groups.extend(other.groups);
        self.switches.extend(other.switches);
        self.routers.extend(other.routers);
        if !self.name.ends_with("_merged") {
            self.name.push_str("_merged");
        }
    }

    fn sort(&self) -> Sort {
        (self.protocol, self.skip_snat, self.template)
    }

    /// Adds it to what the service wants.
    pub(super) fn put(self, want: &mut Want, alike: &mut Alike<'_>) {
        let row = want.row(
            RowWant::new(self.name.as_str(), alike.row(&self))
                .with(lb::NAME, self.name.as_str())
                .with(lb::VIPS, self.vips),
        );
        for group in self.groups {
            want.member(&names::lb_group(group), lbg::LOAD_BALANCER, &row);
        }
        for node in self.switches {
            want.member(&names::switch(&node), ls::LOAD_BALANCER, &row);
        }
        for node in self.routers {
            want.member(&RowKey::new(lr::TABLE, format!("GR_{node}")), lr::LOAD_BALANCER, &row);
        }
        for variable in self.variables {
            variable.put(want);
        }
    }
}

/// What rows of one service have in common, made once for those that differ in nothing else: a service with
/// a node port has a row for each node.
pub(super) struct Alike<'a> {
    key: &'a ObjectKey,
    service: &'a Service,
    world: &'a World,
    made: Vec<(Sort, Row)>,
}

/// What a row depends on beside its service, its name and its addresses.
type Sort = (Protocol, bool, Option<Family>);

impl<'a> Alike<'a> {
    pub(super) fn new(key: &'a ObjectKey, service: &'a Service, world: &'a World) -> Self {
        Self { key, service, world, made: Vec::new() }
    }

    fn row(&mut self, balancer: &Balancer) -> Row {
        let sort = balancer.sort();
        if let Some((_, row)) = self.made.iter().find(|(made, _)| *made == sort) {
            return row.clone();
        }
        let fields = (self.service.affinity == Some(FOREVER)).then_some(["ip_src", "ip_dst"]);
        let row = Row::new(lb::TABLE)
            .with(lb::PROTOCOL, Some(balancer.protocol.ovn()))
            .with(lb::OPTIONS, self.options(sort))
            .with(lb::SELECTION_FIELDS, fields.into_iter().flatten())
            .with(
                lb::EXTERNAL_IDS,
                [("k8s.ovn.org/kind", "Service".to_owned()), ("k8s.ovn.org/owner", self.key.to_string())],
            );
        self.made.push((sort, row.clone()));
        row
    }

    fn options(&self, (protocol, skip_snat, template): Sort) -> Vec<(&'static str, String)> {
        let hairpin = Family::ALL.iter().filter_map(|family| Some(self.world.network.masquerade(*family)?.hairpin));
        let hairpin = hairpin.map(|ip| ip.to_string()).collect::<Vec<_>>().join(" ");
        let mut options = vec![
            ("reject", "true".to_owned()),
            ("event", "false".to_owned()),
            ("skip_snat", skip_snat.to_string()),
            ("neighbor_responder", "none".to_owned()),
            ("hairpin_snat_ip", hairpin),
        ];
        let affinity = self.service.affinity.filter(|seconds| *seconds != FOREVER);
        options.extend(affinity.map(|seconds| ("affinity_timeout", seconds.min(LONGEST_AFFINITY).to_string())));
        if protocol == Protocol::Udp {
            // whoever never pauses would stay with an endpoint that is gone
            options.push(("ct_flush", "true".to_owned()));
        }
        if let Some(family) = template {
            options.push(("template", "true".to_owned()));
            options.push(("address-family", if family == Family::V4 { "ipv4" } else { "ipv6" }.to_owned()));
        }
        options
    }
}

pub(super) fn name(key: &ObjectKey, protocol: Protocol, scope: &str) -> String {
    format!("Service_{key}_{protocol}_{scope}")
}
