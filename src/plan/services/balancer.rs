//! Load balancers, and the rows that they become.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use ovnkube_model::{Family, Name, ObjectKey, Protocol, Service, World};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{
    chassis_template_var as ctv, load_balancer as lb, load_balancer_group as lbg, logical_router as lr,
    logical_switch as ls,
};

use crate::{RowKey, RowWant, Want, names};

/// Longest timeout of the flows that remember a client's endpoint; northd limits longer ones to it with a warning.
const LONGEST_AFFINITY: u32 = 65_535;

/// `IP:port` and the endpoints behind it.
pub(super) type Vips = BTreeMap<String, Arc<str>>;

/// A load balancer and the places where it is used.
pub(super) struct Balancer {
    pub(super) name: String,
    pub(super) protocol: Protocol,
    pub(super) vips: Rc<Vips>,
    /// Keeps clients' addresses.
    pub(super) skip_snat: bool,
    /// The family of a template.
    pub(super) template: Option<Family>,
    pub(super) groups: Vec<&'static str>,
    pub(super) switches: Vec<Name>,
    pub(super) routers: Vec<Name>,
    /// The values of its template's variables on each chassis.
    pub(super) variables: Vec<Variable>,
}

/// The value of a variable on one chassis.
pub(super) struct Variable {
    pub(super) chassis: Name,
    pub(super) name: Arc<str>,
    pub(super) value: Arc<str>,
}

impl Variable {
    pub(super) fn put(self, want: &mut Want) {
        want.entry(&RowKey::new(ctv::TABLE, self.chassis), ctv::VARIABLES, self.name, self.value);
    }
}

impl Balancer {
    /// `None` if there are no addresses.
    pub(super) fn new(key: &ObjectKey, protocol: Protocol, scope: &str, vips: Vips) -> Option<Self> {
        (!vips.is_empty()).then(|| Self {
            name: name(key, protocol, scope),
            protocol,
            vips: Rc::new(vips),
            skip_snat: false,
            template: None,
            groups: Vec::new(),
            switches: Vec::new(),
            routers: Vec::new(),
            variables: Vec::new(),
        })
    }

    /// Adds the places of another one with the same content.
    pub(super) fn join(&mut self, other: Self) {
        self.groups.extend(other.groups);
        self.switches.extend(other.switches);
        self.routers.extend(other.routers);
        self.mark_merged();
    }

    /// Adds nodes where it is used at the same places as on the node that it was made for.
    pub(super) fn on_more(mut self, nodes: &[Name]) -> Self {
        for places in [&mut self.switches, &mut self.routers] {
            if !places.is_empty() {
                places.extend_from_slice(nodes);
            }
        }
        if !nodes.is_empty() {
            self.mark_merged();
        }
        self
    }

    fn mark_merged(&mut self) {
        if !self.name.ends_with("_merged") {
            self.name.push_str("_merged");
        }
    }

    /// What two load balancers must have in common to be merged, besides their addresses.
    pub(super) fn sort(&self) -> Sort {
        (self.protocol, self.skip_snat, self.template)
    }

    /// Adds its rows to what the service wants.
    pub(super) fn put(self, want: &mut Want, alike: &mut Alike<'_>) {
        let row = want.row(
            RowWant::new(self.name.as_str(), alike.row(&self))
                .with(lb::NAME, self.name.as_str())
                .with(lb::VIPS, Rc::unwrap_or_clone(self.vips)),
        );
        for group in self.groups {
            want.member(&names::lb_group(group), lbg::LOAD_BALANCER, &row);
        }
        for node in self.switches {
            want.member(&names::switch(&node), ls::LOAD_BALANCER, &row);
        }
        for node in self.routers {
            want.member(&RowKey::new(lr::TABLE, names::GATEWAY_ROUTER.of(&node)), lr::LOAD_BALANCER, &row);
        }
        for variable in self.variables {
            variable.put(want);
        }
    }
}

/// The columns that rows of one service share, made once for rows that differ only in name and addresses: a
/// service with a node port has a row for each node.
pub(super) struct Alike<'a> {
    key: &'a ObjectKey,
    service: &'a Service,
    world: &'a World,
    made: Vec<(Sort, Row)>,
}

/// What a row depends on besides its service, its name and its addresses.
pub(super) type Sort = (Protocol, bool, Option<Family>);

impl<'a> Alike<'a> {
    pub(super) fn new(key: &'a ObjectKey, service: &'a Service, world: &'a World) -> Self {
        Self { key, service, world, made: Vec::new() }
    }

    fn row(&mut self, balancer: &Balancer) -> Row {
        let sort = balancer.sort();
        if let Some((_, row)) = self.made.iter().find(|(made, _)| *made == sort) {
            return row.clone();
        }
        let is_forever = self.service.affinity.is_some() && !self.service.has_affinity_timeout();
        let fields = is_forever.then(|| selection_fields(self.service));
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
        let hairpin = Family::ALL.iter().filter_map(|family| Some(self.world.settings.masquerade(*family)?.hairpin));
        let hairpin = hairpin.map(|ip| ip.to_string()).collect::<Vec<_>>().join(" ");
        let mut options = vec![
            ("reject", "true".to_owned()),
            ("event", "false".to_owned()),
            ("skip_snat", skip_snat.to_string()),
            ("neighbor_responder", "none".to_owned()),
            ("hairpin_snat_ip", hairpin),
        ];
        let affinity = self.service.affinity.filter(|_| self.service.has_affinity_timeout());
        options.extend(affinity.map(|seconds| ("affinity_timeout", seconds.min(LONGEST_AFFINITY).to_string())));
        if protocol == Protocol::Udp {
            // a client that never pauses would stay with an endpoint that is gone
            options.push(("ct_flush", "true".to_owned()));
        }
        if let Some(family) = template {
            options.push(("template", "true".to_owned()));
            options.push(("address-family", if family == Family::V4 { "ipv4" } else { "ipv6" }.to_owned()));
        }
        options
    }
}

/// What chooses the endpoint of a client that always gets the same one. `ip_src` and `ip_dst` are fields of IPv4 packets
/// only: by these alone all clients with IPv6 would get one endpoint.
fn selection_fields(service: &Service) -> impl Iterator<Item = &'static str> {
    let has_v6 = service.families().any(|family| family == Family::V6);
    ["ip_src", "ip_dst"].into_iter().chain(["ipv6_src", "ipv6_dst"].into_iter().filter(move |_| has_v6))
}

/// Names of load balancers and of the variables in them.
pub(super) fn name(key: &ObjectKey, protocol: Protocol, scope: &str) -> String {
    format!("Service_{key}_{protocol}_{scope}")
}
