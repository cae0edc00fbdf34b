//! What is known of services, and what the host has to do for them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ovnkube_model::{
    Connections, EndpointSlice, Family, Name, NodeIps, ObjectKey, Service, ServiceCidr, Services, Subnet,
};
use ovnkube_node_plan::databases::Databases;
use ovnkube_node_plan::services::stale::{self, Stale};
use ovnkube_node_plan::services::{self as want, Here, Senders, ServiceIntent, ServiceIntents, Want};
use tokio::sync::watch;
use tokio::time::Instant;

/// From an endpoint's end to the first look for its connections.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(700);
/// More stale connections are not noted, as while ovs-vswitchd is away for hours.
const MOST_STALE: usize = 10_000;

/// What is known of services, and what follows from it.
#[derive(Debug)]
pub(crate) struct ServiceTracker {
    state: Mutex<State>,
    /// Counts the changes that the host must act on.
    changes: watch::Sender<u64>,
    stale_changes: watch::Sender<()>,
    /// The configured service ranges; `None`: the host has no routes to services.
    given: Option<Vec<Subnet>>,
    /// Whether the addresses of all nodes are needed; once true, it stays true.
    needs_nodes: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    here: Here,
    services: Services,
    parts: ServiceIntents,
    ranges: BTreeMap<Name, ServiceCidr>,
    /// Those that are reached without TLS.
    open_databases: BTreeSet<SocketAddr>,
    /// The own node's addresses according to the API server.
    own: NodeIps,
    senders: BTreeMap<ObjectKey, Senders>,
    stale: BTreeMap<Stale, Looks>,
    /// All existing services, slices and ranges were received.
    knows_services: bool,
    /// So were all nodes, if they are needed. Nothing is worked out before.
    complete: bool,
}

/// When stale connections are looked for.
#[derive(Debug, Clone, Copy)]
struct Looks {
    done: u8,
    next: Instant,
}

impl State {
    fn databases(&self) -> Databases {
        Databases::of(&self.open_databases, &self.here.ips)
    }

    /// Applies the own node's addresses: those from the API server and those of its links.
    fn apply_own(&mut self) -> BTreeSet<ObjectKey> {
        self.services.apply_node(&self.here.node, self.own.with_links(&self.here.ips))
    }
}

impl ServiceTracker {
    /// `services`: none yet.
    pub(crate) fn new(
        node: Name,
        node_ports: bool,
        given: Option<Vec<Subnet>>,
        services: Services,
        needs_nodes: watch::Sender<bool>,
    ) -> Self {
        let here = Here { node, node_ports, ..Here::default() };
        let state = Mutex::new(State { here, services, ..State::default() });
        Self { state, changes: watch::Sender::new(0), stale_changes: watch::Sender::new(()), given, needs_nodes }
    }

    pub(crate) fn service(&self, key: &ObjectKey, service: Option<Service>) {
        if service.as_ref().is_some_and(want::needs_nodes) {
            self.need_nodes();
        }
        let mut state = self.lock();
        let affected = state.services.apply_service(key, service);
        self.affect(&mut state, affected);
    }

    fn need_nodes(&self) {
        self.needs_nodes.send_if_modified(|minds| !std::mem::replace(minds, true));
    }

    pub(crate) fn slice(&self, key: &ObjectKey, slice: Option<EndpointSlice>) {
        let mut state = self.lock();
        let affected = state.services.apply_slice(key, slice);
        self.affect(&mut state, affected);
    }

    pub(crate) fn range(&self, name: Name, range: Option<ServiceCidr>) {
        let mut cidrs = range.iter().flat_map(|range| &range.cidrs);
        let is_in = |given: &[Subnet], cidr| given.iter().any(|given| given.contains_subnet(cidr));
        if self.given.as_ref().is_some_and(|given| cidrs.any(|cidr| !is_in(given, *cidr))) {
            self.need_nodes();
        }
        let mut state = self.lock();
        match range {
            Some(range) => state.ranges.insert(name, range),
            None => state.ranges.remove(&name),
        };
        self.notify();
    }

    /// Sets the addresses on the node's links, which identify endpoints on the host.
    pub(crate) fn addresses(&self, ips: &[IpAddr]) {
        let mut state = self.lock();
        if state.here.ips != ips {
            let before = state.databases();
            state.here.ips = ips.to_vec();
            state.apply_own();
            self.affect_all(&mut state);
            if state.databases() != before {
                self.notify();
            }
        }
    }

    /// Sets the addresses of any node; `None`: it is gone.
    pub(crate) fn node(&self, name: &Name, ips: Option<NodeIps>) {
        let mut state = self.lock();
        let ips = ips.unwrap_or_default();
        let reached = |state: &State| Family::ALL.map(|family| state.services.node_ip(name, family));
        let (before, kept) = (reached(&state), self.kept(&state));
        let mut affected = if *name == state.here.node {
            state.own = ips;
            state.apply_own()
        } else {
            state.services.apply_node(name, ips)
        };
        if reached(&state) != before {
            // some of these services lead to nodes that have endpoints
            let local = state.services.iter().filter(|(_, service)| service.is_external_local());
            affected.extend(local.map(|(key, _)| key.clone()));
        }
        self.affect(&mut state, affected);
        if self.kept(&state) != kept {
            self.notify();
        }
    }

    /// The addresses of nodes in service ranges.
    fn kept(&self, state: &State) -> BTreeSet<IpAddr> {
        let ranges = self.given.iter().flatten().chain(state.ranges.values().flat_map(|range| &range.cidrs));
        ranges.flat_map(|range| state.services.nodes_in(*range)).collect()
    }

    /// Sets what nodes connect to.
    pub(crate) fn connections(&self, connections: Connections) {
        let mut state = self.lock();
        let affected = state.services.apply_connections(connections.owners);
        self.affect(&mut state, affected);
        if state.open_databases != connections.databases {
            state.open_databases = connections.databases;
            self.notify();
        }
    }

    /// What nodes depend on, by address: the API server, databases, their DNS.
    pub(crate) fn needed(&self) -> BTreeMap<IpAddr, Name> {
        self.lock().services.needed()
    }

    /// Whether all existing services, slices and ranges were received.
    pub(crate) fn knows_services(&self) -> bool {
        self.lock().knows_services
    }

    /// All existing services, slices and ranges were received.
    pub(crate) fn services_synced(&self) {
        self.lock().knows_services = true;
        self.complete();
    }

    /// All existing nodes were received.
    pub(crate) fn nodes_synced(&self) {
        self.lock().here.knows_nodes = true;
        self.complete();
    }

    fn complete(&self) {
        let mut state = self.lock();
        state.complete |= state.knows_services && (state.here.knows_nodes || !*self.needs_nodes.borrow());
        if state.complete {
            self.affect_all(&mut state);
            self.notify();
        }
    }

    /// What all services need; `None` until the first lists are complete.
    pub(crate) fn want(&self) -> Option<Want> {
        let state = self.lock();
        state.complete.then(|| Want {
            parts: state.parts.all().cloned().collect(),
            ranges: state.ranges.clone(),
            nodes: state.here.knows_nodes.then(|| self.kept(&state)),
            databases: state.databases(),
        })
    }

    /// The host must act.
    fn notify(&self) {
        self.changes.send_modify(|n| *n += 1);
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn affect_all(&self, state: &mut State) {
        let all: Vec<ObjectKey> = state.services.iter().map(|(key, _)| key.clone()).collect();
        self.affect(state, all);
    }

    fn affect(&self, state: &mut State, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys.into_iter().filter(|_| state.complete) {
            let part = ServiceIntent::of(&key, &state.services, &state.here);
            let created = state.services.get(&key).map_or(0, |service| service.created);
            if state.parts.set(&key, created, part) {
                self.notify();
            }
            let senders = want::senders(&key, &state.services, &state.here);
            let old = state.senders.remove(&key).unwrap_or_default();
            let left = stale::left(&old, &senders);
            if !senders.is_empty() {
                state.senders.insert(key, senders);
            }
            if !left.is_empty() {
                let looks = Looks { done: 0, next: Instant::now() + FIRST_LOOK };
                for stale in left {
                    if state.stale.len() < MOST_STALE || state.stale.contains_key(&stale) {
                        state.stale.insert(stale, looks);
                    }
                }
                if state.stale.len() >= MOST_STALE {
                    tracing::warn!("too many UDP endpoints are gone: connections to some of them are not ended");
                }
                self.stale_changes.send_replace(());
            }
        }
    }

    pub(super) fn stale_changed(&self) -> watch::Receiver<()> {
        self.stale_changes.subscribe()
    }

    /// When to look for stale connections; `None`: there are none.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.lock().stale.values().map(|looks| looks.next).min()
    }

    /// The stale connections to look for now, and the node's addresses. An endpoint that came back is no longer stale.
    pub(super) fn stale(&self, now: Instant) -> (Vec<Stale>, Vec<IpAddr>) {
        let mut state = self.lock();
        let State { stale, senders, here, .. } = &mut *state;
        let frontends: BTreeSet<_> = stale.keys().map(|(frontend, _)| *frontend).collect();
        for (frontend, now) in senders.values().flatten().filter(|(frontend, _)| frontends.contains(frontend)) {
            for backend in now {
                stale.remove(&(*frontend, *backend));
            }
        }
        let due = stale.iter().filter(|(_, looks)| looks.next <= now).map(|(stale, _)| *stale).collect();
        (due, here.ips.clone())
    }

    /// Notes that the switch has looked for these. Those that it has looked for often enough are done.
    pub(super) fn looked(&self, for_these: &[Stale], now: Instant) {
        let stale = &mut self.lock().stale;
        for one in for_these {
            let Some(looks) = stale.get_mut(one) else { continue };
            looks.done += 1;
            looks.next = now + FIRST_LOOK * (1 << looks.done);
            if looks.done >= stale::LOOKS {
                stale.remove(one);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
