//! Services on the node: the host and the outside reach them as pods do.
//!
//! ```text
//!  Service, EndpointSlice ─▶ Board ─▶ want   what the host has to do for each        (pure)
//!                              │        ├▶ nft     node ports, external addresses     maps and sets
//!                              │        ├▶ flows   what the bridge leads to OVN       OpenFlow
//!                              │        └▶ health  healthCheckNodePort                HTTP
//!                              └▶ stale            UDP connections to who is gone     ovs-vswitchd
//! ```
//! Endpoints are OVN's to balance: of most services the host wants nothing, and nothing runs when
//! their endpoints change.

pub(crate) mod flows;
mod health;
pub(crate) mod nft;
mod stale;
#[cfg(test)]
mod tests;
mod want;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ovnkube_model::{EndpointSlice, Family, Name, NodeIps, ObjectKey, Service, ServiceCidr, Services, Subnet};
use tokio::sync::watch;

pub(crate) use health::run as answer_health_checks;
use stale::Stale;
pub(crate) use stale::{end_moved, run as end_stale};
pub(crate) use want::{Here, Part, Want};
use want::{Parts, Senders};

/// What is known of services, and what follows from it.
#[derive(Debug)]
pub(crate) struct Board {
    state: Mutex<State>,
    /// Counts what the host has to do something about.
    changes: watch::Sender<u64>,
    stale_changes: watch::Sender<()>,
    /// Ranges of services that were given; `None`: the host leads none to them.
    given: Option<Vec<Subnet>>,
    /// Whether the addresses of all nodes are wanted; once they are, for ever.
    minds_nodes: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    here: Here,
    services: Services,
    parts: Parts,
    ranges: BTreeMap<Name, ServiceCidr>,
    /// What the API server says of the own node's addresses.
    own: NodeIps,
    senders: BTreeMap<ObjectKey, Senders>,
    /// With the number of looks that are left.
    stale: BTreeMap<Stale, u8>,
    /// All services, slices and ranges that there are have been told.
    knows_services: bool,
    /// So have been all nodes, where they matter. Nothing is worked out before.
    complete: bool,
}

impl State {
    /// The own node has what the API server says and what its links have.
    fn apply_own(&mut self) -> BTreeSet<ObjectKey> {
        self.services.apply_node(&self.here.node, self.own.with_links(&self.here.ips))
    }
}

impl Board {
    /// `services`: none yet.
    pub(crate) fn new(
        node: Name,
        node_ports: bool,
        given: Option<Vec<Subnet>>,
        services: Services,
        minds_nodes: watch::Sender<bool>,
    ) -> Self {
        let here = Here { node, node_ports, ..Here::default() };
        let state = Mutex::new(State { here, services, ..State::default() });
        Self { state, changes: watch::Sender::new(0), stale_changes: watch::Sender::new(()), given, minds_nodes }
    }

    pub(crate) fn service(&self, key: &ObjectKey, service: Option<Service>) {
        if service.as_ref().is_some_and(want::minds_nodes) {
            self.mind_nodes();
        }
        let mut state = self.lock();
        let touched = state.services.apply_service(key, service);
        self.touch(&mut state, touched);
    }

    fn mind_nodes(&self) {
        self.minds_nodes.send_if_modified(|minds| !std::mem::replace(minds, true));
    }

    pub(crate) fn slice(&self, key: &ObjectKey, slice: Option<EndpointSlice>) {
        let mut state = self.lock();
        let touched = state.services.apply_slice(key, slice);
        self.touch(&mut state, touched);
    }

    pub(crate) fn range(&self, name: Name, range: Option<ServiceCidr>) {
        let mut cidrs = range.iter().flat_map(|range| &range.cidrs);
        let is_in = |given: &[Subnet], cidr| given.iter().any(|given| given.contains_subnet(cidr));
        if self.given.as_ref().is_some_and(|given| cidrs.any(|cidr| !is_in(given, *cidr))) {
            self.mind_nodes();
        }
        let mut state = self.lock();
        match range {
            Some(range) => state.ranges.insert(name, range),
            None => state.ranges.remove(&name),
        };
        self.changes.send_modify(|n| *n += 1);
    }

    /// The addresses on the node's links, by which endpoints on the host are told.
    pub(crate) fn addresses(&self, ips: &[IpAddr]) {
        let mut state = self.lock();
        if state.here.ips != ips {
            state.here.ips = ips.to_vec();
            state.apply_own();
            self.touch_all(&mut state);
        }
    }

    /// The addresses of any node; `None`: it is gone.
    pub(crate) fn node(&self, name: &Name, ips: Option<NodeIps>) {
        let mut state = self.lock();
        let ips = ips.unwrap_or_default();
        let reached = |state: &State| Family::ALL.map(|family| state.services.node_ip(name, family));
        let (before, kept) = (reached(&state), self.kept(&state));
        let mut touched = if *name == state.here.node {
            state.own = ips;
            state.apply_own()
        } else {
            state.services.apply_node(name, ips)
        };
        if reached(&state) != before {
            // some lead to nodes that have endpoints
            let local = state.services.iter().filter(|(_, service)| service.is_external_local());
            touched.extend(local.map(|(key, _)| key.clone()));
        }
        self.touch(&mut state, touched);
        if self.kept(&state) != kept {
            self.changes.send_modify(|n| *n += 1);
        }
    }

    /// The addresses in ranges of services that are nodes'.
    fn kept(&self, state: &State) -> BTreeSet<IpAddr> {
        let ranges = self.given.iter().flatten().chain(state.ranges.values().flat_map(|range| &range.cidrs));
        ranges.flat_map(|range| state.services.nodes_in(*range)).collect()
    }

    /// What nodes reach by which address.
    pub(crate) fn connections(&self, connections: BTreeMap<IpAddr, Name>) {
        let mut state = self.lock();
        let touched = state.services.apply_connections(connections);
        self.touch(&mut state, touched);
    }

    /// All services, slices and ranges that there are have been told.
    pub(crate) fn services_told(&self) {
        self.lock().knows_services = true;
        self.complete();
    }

    /// All nodes that there are have been told.
    pub(crate) fn nodes_told(&self) {
        self.lock().here.knows_nodes = true;
        self.complete();
    }

    fn complete(&self) {
        let mut state = self.lock();
        state.complete |= state.knows_services && (state.here.knows_nodes || !*self.minds_nodes.borrow());
        if state.complete {
            self.touch_all(&mut state);
            self.changes.send_modify(|n| *n += 1);
        }
    }

    /// `None` until the first lists are in.
    pub(crate) fn want(&self) -> Option<Want> {
        let state = self.lock();
        state.complete.then(|| Want {
            parts: state.parts.all().cloned().collect(),
            ranges: state.ranges.clone(),
            nodes: state.here.knows_nodes.then(|| self.kept(&state)),
        })
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn touch_all(&self, state: &mut State) {
        let all: Vec<ObjectKey> = state.services.iter().map(|(key, _)| key.clone()).collect();
        self.touch(state, all);
    }

    fn touch(&self, state: &mut State, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys.into_iter().filter(|_| state.complete) {
            let part = Part::of(&key, &state.services, &state.here);
            let created = state.services.get(&key).map_or(0, |service| service.created);
            if state.parts.set(&key, created, part) {
                self.changes.send_modify(|n| *n += 1);
            }
            let senders = want::senders(&key, &state.services, &state.here);
            let old = state.senders.remove(&key).unwrap_or_default();
            let left = stale::left(&old, &senders);
            if !senders.is_empty() {
                state.senders.insert(key, senders);
            }
            if !left.is_empty() {
                state.stale.extend(left.into_iter().map(|stale| (stale, stale::LOOKS)));
                self.stale_changes.send_replace(());
            }
        }
    }

    fn stale_changed(&self) -> watch::Receiver<()> {
        self.stale_changes.subscribe()
    }

    /// What to look for now, and the node's addresses. What has come back since is no longer stale.
    fn stale(&self) -> (Vec<Stale>, Vec<IpAddr>) {
        let mut state = self.lock();
        let State { stale, senders, here, .. } = &mut *state;
        let doors: BTreeSet<_> = stale.keys().map(|(door, _)| *door).collect();
        let led: Vec<_> = senders.values().flatten().filter(|(door, _)| doors.contains(door)).collect();
        let is_back = |(door, backend): &Stale| led.iter().any(|(to, now)| *to == door && now.contains(backend));
        stale.retain(|stale, looks| {
            *looks -= 1;
            !is_back(stale)
        });
        let now = stale.keys().copied().collect();
        stale.retain(|_, looks| *looks > 0);
        (now, here.ips.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
