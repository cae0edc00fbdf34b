//! Interconnection with other clusters: what is wanted and what is known about the others.

use std::collections::{BTreeMap, BTreeSet};

use ipnetwork::IpNetwork;
use ovnkube_ipam::Subnet;

use super::World;
use super::joined::Wanted;
use crate::{
    Affected, Asks, Declared, Interconnection, InterconnectionConfig, InterconnectionSubnet, Judge, Kept, Local,
    LocalRange, MOST_PREFIXES, Masquerade, Name, Node, Notice, Object, ObjectKey, Peers, Prefixes, Refused, Severity,
    Stuck, TransitSwitch, keys, prefixes,
};

/// The most prefixes that one message names, and the most clusters that have a message of one kind: many Events would keep those of
/// pods and nodes from being written.
const NAMED: usize = 10;

/// Ranges of pods that are cut into more parts are not offered.
const MOST_PARTS: usize = 100_000;

impl World {
    /// A transit switch that is used, with its number: switches use the gateways in turn.
    pub fn transit_switch(&self, name: &Name) -> Option<(usize, &TransitSwitch)> {
        self.joined.wanted()?;
        let switches = &self.joined.peers.as_ref()?.switches;
        let before = |other: &&Name| (other.len(), *other) < (name.len(), name);
        let switch = switches.get(name).filter(|switch| self.switch_problem(name, switch).is_none())?;
        Some((switches.keys().filter(before).count(), switch))
    }

    /// Why a transit switch is not used, and what to do. Its subnet becomes a route of the cluster's router, so it would take
    /// traffic away from what has these addresses here.
    fn switch_problem(&self, name: &Name, switch: &TransitSwitch) -> Option<String> {
        if self.nodes.contains_key(name) {
            return Some("a node has this name; give the switch another one".to_owned());
        }
        let nets: Vec<Subnet> = subnets(switch).collect();
        let first = |range: Subnet| nets.iter().find(|net| net.overlaps(range));
        let cluster = self.cluster_ranges().find_map(|local| Some((*first(local.range)?, local)));
        // the one with the lower key is there for longer
        let is_earlier = |(other, of): &(&Name, &TransitSwitch)| (of.key, *other) < (switch.key, name);
        let others = self.joined.peers.iter().flat_map(|peers| &peers.switches).filter(is_earlier);
        let mut others = others.flat_map(|(other, switch)| subnets(switch).map(move |net| (other, net)));
        let other = others.find_map(|(other, net)| Some((*first(net)?, other, net)));
        cluster
            .map(|(net, local)| format!("its subnet {net} overlaps {local}"))
            .or_else(|| {
                other.map(|(net, other, of)| format!("its subnet {net} overlaps {of} of transit switch {other}"))
            })
            .map(|problem| format!("{problem}; give the switch another subnet in all clusters"))
    }

    /// The transit switches that are not used, each with the reason and what to do.
    fn refused_switches(&self) -> impl Iterator<Item = (&Name, String)> {
        let switches = self.joined.peers.iter().flat_map(|peers| &peers.switches);
        switches.filter_map(|(name, switch)| Some((name, self.switch_problem(name, switch)?)))
    }

    pub(super) fn apply_interconnection(&mut self, new: Option<InterconnectionConfig>) {
        self.joined.asked = new;
        self.want_joined(self.joined.asked_for());
    }

    /// `None`: what was wanted before.
    fn want_joined(&mut self, wanted: Option<Wanted>) {
        let before: BTreeSet<Name> = self.gateways().cloned().collect();
        let was_on = self.joined.wanted().is_some();
        if let Some(wanted) = wanted {
            self.joined.wanted = wanted;
        }
        if let Wanted::On(wanted) = &self.joined.wanted {
            self.joined.kept.want(wanted, was_on);
        }
        for switch in self.joined.switches().cloned().collect::<Vec<_>>() {
            self.affect(Affected::TransitSwitch(switch));
        }
        let mut labelled: BTreeSet<Name> = before.into_iter().chain(self.gateways().cloned()).collect();
        if let Some(has_routes) = self.has_host_routes() {
            let differs = |node: &Node| node.looks_for_routes() != has_routes;
            labelled.extend(self.nodes.iter().filter(|(_, node)| differs(node)).map(|(name, _)| name.clone()));
        }
        for node in labelled {
            self.affect(Affected::Node(node));
        }
        if self.joined.is_off() {
            self.joined.peers = None;
            self.joined.stuck.clear();
        }
        self.settle_prefixes();
        self.affect(Affected::Interconnection);
    }

    /// At first it is what an earlier master has stored. That is wanted if the ConfigMap cannot be used.
    pub(super) fn apply_stored(&mut self, text: Name) {
        let is_first = self.joined.stored.is_none();
        let (earlier, kept) = if is_first { Kept::of_text(&text) } else { (Asks::Unclear, Kept::default()) };
        self.joined.stored = Some(text);
        self.joined.kept.recover(kept, matches!(earlier, Asks::On(_)));
        match earlier {
            Asks::On(wanted) if self.joined.wanted == Wanted::Unknown => self.want_joined(Some(Wanted::On(wanted))),
            Asks::Off(_) if self.joined.wanted == Wanted::Unknown => self.want_joined(Some(Wanted::Off(None))),
            _ => self.affect(Affected::Interconnection),
        }
        let is_unclear = self.joined.asked.as_ref().is_some_and(|asked| asked.asks == Asks::Unclear);
        if is_first && is_unclear {
            // only now it is known what its bad keys said last
            self.want_joined(self.joined.asked_for());
        }
    }

    pub(super) fn apply_stuck(&mut self, on: Stuck, problem: Option<Name>) {
        if self.joined.is_off() || self.joined.stuck.get(&on) == problem.as_ref() {
            return;
        }
        match problem {
            Some(problem) => self.joined.stuck.insert(on, problem),
            None => self.joined.stuck.remove(&on),
        };
        self.affect(Affected::Interconnection);
    }

    pub(super) fn apply_left(&mut self, from: &Interconnection) {
        self.joined.kept.has_left(from, self.joined.is_off());
        self.affect(Affected::Interconnection);
    }

    pub(super) fn apply_moved(&mut self, to: &Interconnection, is_same: bool) {
        self.joined.kept.moved(to, is_same);
        // the others were about the former databases
        self.joined.stuck.retain(|on, _| matches!(on, Stuck::Present | Stuck::Next));
        self.affect(Affected::Interconnection);
    }

    pub(super) fn apply_interconnection_subnet(&mut self, name: Name, new: Option<InterconnectionSubnet>) {
        let new = new.filter(InterconnectionSubnet::concerns);
        let old = self.joined.subnets.get(&name);
        if old == new.as_ref() {
            return;
        }
        // most Subnets are of this cluster, and others offer nothing there
        let mut ranges = old.into_iter().chain(&new).flat_map(|subnet| &subnet.closed);
        let concerns_prefixes = ranges.any(|range| self.joined.has_prefix_in(*range));
        match new {
            Some(subnet) => self.joined.subnets.insert(name.clone(), subnet),
            None => self.joined.subnets.remove(&name),
        };
        if concerns_prefixes {
            self.settle_prefixes();
        }
        self.affect(Affected::InterconnectionSubnet(name));
        self.affect(Affected::Interconnection);
    }

    /// The ranges of pods that other clusters may reach, the largest first, and how many more there are than are offered. No cluster
    /// uses what lies in the network between zones.
    pub fn offered_ranges(&self) -> (Vec<Subnet>, usize) {
        let closed = self.joined.closed().into_keys().chain(self.settings.transit_subnets.iter().copied());
        let closed: Vec<Subnet> = closed.collect();
        let (mut open, mut more) = (Vec::new(), 0);
        for range in &self.settings.cluster_subnets {
            match range.cidr.without(&closed, MOST_PARTS) {
                Some(left) => open.extend(left),
                None => more += MOST_PARTS,
            }
        }
        open.sort_by_key(|range| (range.prefix(), *range));
        more += open.len().saturating_sub(MOST_PREFIXES);
        open.truncate(MOST_PREFIXES);
        (open, more)
    }

    pub(super) fn sync_interconnection(&mut self) {
        if self.joined.asked.is_none() && self.joined.wanted == Wanted::Unknown && !self.joined.is_hidden {
            self.joined.wanted = Wanted::Off(None);
        }
    }

    /// A ConfigMap that may not be read is not taken for one that is gone: clusters would be left.
    pub(super) fn apply_hidden(&mut self, is_hidden: bool) {
        let was_hidden = std::mem::replace(&mut self.joined.is_hidden, is_hidden);
        if was_hidden && !is_hidden && self.joined.asked.is_none() {
            self.want_joined(Some(Wanted::Off(None)));
        }
    }

    pub(super) fn apply_peers(&mut self, new: Peers) {
        if self.joined.wanted().is_none() || self.joined.peers.as_ref() == Some(&new) {
            return;
        }
        let old = self.joined.peers.take().unwrap_or_default();
        let nets = |peers: &Peers| -> Vec<Subnet> { peers.switches.values().flat_map(subnets).collect() };
        let ages = |peers: &Peers| peers.switches.iter().map(|(name, of)| (name.clone(), of.key)).collect::<Vec<_>>();
        let is_renumbered = ages(&old) != ages(&new) || nets(&old) != nets(&new);
        let has_other_gateways = old.new_gateways != new.new_gateways || old.carrying != new.carrying;
        let names: BTreeSet<&Name> = old.switches.keys().chain(new.switches.keys()).collect();
        for name in names {
            if is_renumbered || has_other_gateways || old.switches.get(name) != new.switches.get(name) {
                self.affect(Affected::TransitSwitch(name.clone()));
            }
        }
        let moved: BTreeSet<&Name> = old.carrying.symmetric_difference(&new.carrying).collect();
        let has_moved = |node: &Node| node.chassis_id.as_ref().is_some_and(|id| moved.contains(id));
        let nodes = self.nodes.iter().filter(|(_, node)| has_moved(node)).map(|(name, _)| name.clone());
        for node in nodes.collect::<Vec<_>>() {
            self.affect(Affected::Node(node));
        }
        self.joined.peers = Some(new);
        self.settle_prefixes();
        self.affect(Affected::Interconnection);
    }

    /// Judges the others' prefixes again: addresses of this cluster may have changed.
    pub(super) fn settle_prefixes(&mut self) {
        if self.joined.peers.is_none() && self.joined.prefixes == Prefixes::default() {
            return;
        }
        let new = match (&self.joined.peers, self.joined.wanted()) {
            (Some(peers), Some(wanted)) => {
                let judge = Judge {
                    peers,
                    unused: self.refused_switches().map(|(name, _)| name).collect(),
                    local: self.local(),
                    closed: self.joined.closed(),
                    declared: &wanted.routes,
                };
                prefixes(&judge, wanted.auto_route)
            }
            _ => Prefixes::default(),
        };
        let old = std::mem::take(&mut self.joined.prefixes);
        let names: BTreeSet<&Subnet> = old.used.keys().chain(new.used.keys()).collect();
        for prefix in names.into_iter().filter(|prefix| old.used.get(prefix) != new.used.get(prefix)) {
            self.affect(Affected::Prefix(*prefix));
        }
        let tells_hosts = self.has_host_routes() == Some(true) && !old.used.keys().eq(new.used.keys());
        if old.refused != new.refused || old.declared != new.declared || tells_hosts {
            self.affect(Affected::Interconnection);
        }
        self.joined.prefixes = new;
    }

    /// What another cluster's prefix may not contain.
    fn local(&self) -> Local {
        let switches = self.joined.peers.iter().flat_map(|peers| peers.switches.values());
        let transit = switches.flat_map(subnets).map(|range| LocalRange { range, purpose: "a transit switch" });
        let zones = self.settings.transit_subnets.iter();
        let zones = zones.map(|range| LocalRange { range: *range, purpose: "the network between zones" });
        let mut local = self.own_addresses();
        local.ranges.extend(transit.chain(zones));
        local
    }

    /// The addresses that this cluster has of itself. A network counts only around an address that Kubernetes knows of the node, or its
    /// gateway's, which may be on a NIC of its own.
    pub fn own_addresses(&self) -> Local {
        let ranges: Vec<LocalRange> = self.cluster_ranges().collect();
        let mut local = Local { ranges, ..Local::default() };
        for node in self.nodes.values() {
            let (gateway, host, known, others) = node.own_addresses();
            let host = host.iter().chain(gateway);
            let known = known.iter().chain(others);
            let inside = known.clone().copied().chain(gateway.iter().map(IpNetwork::ip));
            let is_around = |net: &Subnet| is_network(*net) && inside.clone().any(|ip| net.contains(ip));
            local.networks.extend(host.clone().map(|net| Subnet::of(*net)).filter(is_around));
            local.hosts.extend(host.map(IpNetwork::ip));
            local.nodes.extend(known);
        }
        // where the cluster itself has ranges in it, addresses in it are not all neighbours
        local.networks.retain(|network| !local.ranges.iter().any(|local| network.contains_subnet(local.range)));
        local
    }

    /// The ranges that this cluster's settings name.
    pub(super) fn cluster_ranges(&self) -> impl Iterator<Item = LocalRange> {
        let settings = &self.settings;
        let pods = settings.cluster_subnets.iter().map(|range| (range.cidr, "pods"));
        let services = settings.service_cidrs.iter().map(|range| (*range, "services"));
        let of = |ranges: &'_ [Subnet], purpose| ranges.iter().map(move |range| (*range, purpose)).collect::<Vec<_>>();
        let joins = of(&settings.join_subnets, "the gateway routers' own network");
        // ovn-kubernetes' masquerade subnet is a /17 in which transit switches have their subnets
        let hosts = settings.masquerade_subnets.iter().filter_map(|range| Masquerade::used(*range));
        let hosts = hosts.map(|range| (range, "traffic between pods and their own host"));
        let all = pods.chain(services).chain(joins).chain(hosts);
        all.map(|(range, purpose)| LocalRange { range, purpose })
    }

    /// Whether a node is a gateway: it is to be one, or still has a port.
    pub fn is_interconnection_gateway(&self, name: &Name) -> bool {
        let chassis = || self.nodes.get(name)?.chassis_id.as_ref();
        let carries = |peers: &Peers| chassis().is_some_and(|id| peers.carrying.contains(id));
        self.gateways().any(|gateway| gateway == name) || self.joined.peers.as_ref().is_some_and(carries)
    }

    /// The chassis of the gateways in their order: those that the others can know, those that they cannot know yet, and those that are
    /// to be none but still have a port.
    pub fn gateway_chassis(&self) -> [Vec<Name>; 3] {
        let chassis = self.gateways().filter_map(|name| self.nodes.get(name)?.chassis_id.clone());
        let peers = self.joined.peers.as_ref();
        let is_new = |id: &Name| peers.is_some_and(|peers| peers.new_gateways.contains(id));
        let (known, new): (Vec<_>, Vec<_>) = chassis.partition(|id| !is_new(id));
        let goes = |id: &&Name| !known.contains(id) && !new.contains(id);
        let leaving = peers.into_iter().flat_map(|peers| &peers.carrying).filter(goes).cloned().collect();
        [known, new, leaving]
    }

    pub(super) fn gateways(&self) -> impl Iterator<Item = &Name> {
        self.joined.wanted().into_iter().flat_map(|wanted| &wanted.gateways)
    }

    pub(super) fn interconnection_notices(&self) -> Vec<Notice> {
        let Some(InterconnectionConfig { uid, bad, .. }) = &self.joined.asked else { return Vec::new() };
        let key = ObjectKey { namespace: keys::INTERCONNECTION.0.into(), name: keys::INTERCONNECTION.1.into() };
        let warn = |reason: &'static str, message: String| Notice {
            object: Object::ConfigMap { key: key.clone(), uid: uid.clone() },
            severity: Severity::Warning,
            reason,
            message,
        };
        let bad = bad.iter().map(|bad| warn("BadKey", format!("cannot use key {bad}")));
        let unknown = self.gateways().filter(|name| !self.nodes.contains_key(*name)).map(|name| {
            let message =
                format!("cannot use {name} of key gw-nodes: there is no such node; correct the name, or leave it out");
            warn("UnknownGateway", message)
        });
        let unused = self.refused_switches().map(|(name, problem)| {
            warn("InterconnectionProblem", format!("cannot use transit switch {name}: {problem}"))
        });
        let problems = self.joined.peers.iter().flat_map(|peers| &peers.problems);
        let problems = problems.map(|problem| warn("InterconnectionProblem", problem.clone()));
        let refused = first(self.refused_by_zone(), "offer prefixes that are not used: ovnkube ic routes names them");
        let refused = refused.into_iter().map(|message| warn("PrefixRefused", message));
        let declared = self.declared_problems().into_iter().map(|message| warn("RouteNotUsed", message));
        let doubtful = self.doubtful_routes().into_iter().map(|message| warn("RouteDoubtful", message));
        let silent = first(self.silent_clusters(), "are silent: ovnkube ic status names them");
        let silent = silent.into_iter().map(|message| warn("ClusterSilent", message));
        let stuck = self.joined.stuck.iter().map(|(on, problem)| match on {
            Stuck::Present => warn("InterconnectionWaits", format!("interconnection stays as it is: {problem}")),
            Stuck::Next => {
                let stays = "interconnection stays in the previous databases";
                warn("InterconnectionWaits", format!("{stays}: {problem}"))
            }
            Stuck::Write(_) => warn("InterconnectionRefused", problem.to_string()),
            Stuck::Servers => warn("InterconnectionServers", problem.to_string()),
            Stuck::Gateways => warn("GatewayIdle", problem.to_string()),
        });
        let offers = self.joined.wanted().is_some_and(|wanted| wanted.auto_route);
        let more = if offers { self.offered_ranges().1 } else { 0 };
        let many = (more > 0).then(|| {
            warn(
                "InterconnectionProblem",
                format!(
                    "cannot offer all ranges of pods: Subnets with disableInterConnection cut them into {more} more than \
                     {MOST_PREFIXES}, and the largest are offered; close fewer, larger ranges"
                ),
            )
        });
        let hosts = self.host_route_problem().into_iter().map(|message| warn("HostRouteRefused", message));
        bad.chain(unknown)
            .chain(stuck)
            .chain(unused)
            .chain(problems)
            .chain(refused)
            .chain(declared)
            .chain(doubtful)
            .chain(silent)
            .chain(many)
            .chain(hosts)
            .collect()
    }

    pub(super) fn interconnection_subnet_notices(&self, name: &Name) -> Vec<Notice> {
        let Some(subnet) = self.joined.subnets.get(name) else { return Vec::new() };
        let notice = |problem: &String| Notice {
            object: Object::Subnet { name: name.clone(), uid: subnet.uid.clone() },
            severity: Severity::Warning,
            reason: "BadField",
            message: format!("cannot use spec.cidrBlock: it {problem}"),
        };
        subnet.bad.iter().map(notice).collect()
    }

    /// One message for each cluster of which prefixes are refused.
    fn refused_by_zone(&self) -> Vec<String> {
        let mut zones: BTreeMap<&Name, Vec<String>> = BTreeMap::new();
        for Refused { zone, prefix, reason } in self.joined.refused() {
            zones.entry(zone).or_default().push(format!("{prefix}: {reason}"));
        }
        let message =
            |(zone, all): (&Name, Vec<_>)| format!("cluster {zone} offers prefixes that are not used: {}", named(&all));
        zones.into_iter().map(message).collect()
    }

    /// One message for each cluster that is silent.
    fn silent_clusters(&self) -> Vec<String> {
        let silent = self.joined.clusters().filter(|(_, cluster, _)| cluster.silent);
        let message = |(name, ..): (&Name, _, _)| {
            format!(
                "cluster {name} is silent: its controller has not followed the shared databases for long. Its routes stay. If it is \
                 gone for good, remove what is left of it: ovnkube ic clean az {name}"
            )
        };
        silent.map(message).collect()
    }

    /// One message for all declared routes that need a person.
    fn declared_problems(&self) -> Option<String> {
        let problem = |(prefix, declared): (&Subnet, &Declared)| {
            Some(format!("{prefix} behind {}: {}", declared.zone, declared.problem.as_ref()?))
        };
        let all: Vec<String> = self.joined.declared().filter_map(problem).collect();
        (!all.is_empty()).then(|| format!("not all of key routes is used: {}", named(&all)))
    }

    /// One message for all declared routes that the agents of nodes contradict.
    fn doubtful_routes(&self) -> Option<String> {
        let doubt = |(prefix, declared): (&Subnet, &Declared)| {
            Some(format!("{prefix} behind {}: it {}", declared.zone, declared.doubt.as_ref()?))
        };
        let all: Vec<String> = self.joined.declared().filter_map(doubt).collect();
        (!all.is_empty()).then(|| {
            let all = named(&all);
            format!(
                "agents of nodes contradict key routes, which counts: {all}; correct it, or see what runs on that node"
            )
        })
    }
}

/// The messages of the first clusters, and one with how many more there are.
fn first(mut all: Vec<String>, what: &str) -> Vec<String> {
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    all.extend((more > 0).then(|| format!("{more} more clusters {what}")));
    all
}

/// The first ones, and how many more there are.
fn named(all: &[String]) -> String {
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    let first: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
    format!("{}{more}", first.join("; "))
}

fn subnets(switch: &TransitSwitch) -> impl Iterator<Item = Subnet> {
    switch.own.iter().flat_map(|own| &own.addresses).map(|net| Subnet::of(*net))
}

/// Whether a host with an address in it has neighbours there. A larger network is a mistake, or cut up by routers.
fn is_network(net: Subnet) -> bool {
    let (least, link_local) = if net.is_ipv6() { (16, "fe80::/10") } else { (8, "169.254.0.0/16") };
    let is_link_local = link_local.parse::<Subnet>().is_ok_and(|range| range.overlaps(net));
    net.prefix() >= least && net.host_bits() > 0 && !is_link_local
}
