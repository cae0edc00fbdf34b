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

use ovnkube_model::{EndpointSlice, Name, ObjectKey, Service, Services, Subnet};
use tokio::sync::watch;

pub(crate) use health::Ports;
use stale::Stale;
pub(crate) use stale::{end_moved, run as end_stale};
pub(crate) use want::{Here, Want};
use want::{Part, Parts, Senders};

/// What is known of services, and what follows from it.
#[derive(Debug)]
pub(crate) struct Board {
    state: Mutex<State>,
    /// Counts what the host has to do something about.
    changes: watch::Sender<u64>,
    stale_changes: watch::Sender<()>,
    /// Nodes whose addresses are wanted.
    peers: watch::Sender<BTreeSet<Name>>,
}

#[derive(Debug, Default)]
struct State {
    here: Here,
    services: Services,
    parts: Parts,
    peers: BTreeMap<Name, Vec<IpAddr>>,
    senders: BTreeMap<ObjectKey, Senders>,
    /// With the number of looks that are left.
    stale: BTreeMap<Stale, u8>,
    /// Everything that there is has been told.
    complete: bool,
}

impl Board {
    /// `networks`: addresses that no service may claim.
    pub(crate) fn new(
        node: &str,
        node_ports: bool,
        networks: Vec<Subnet>,
        peers: watch::Sender<BTreeSet<Name>>,
    ) -> Self {
        let here = Here { node: node.to_owned(), ips: Vec::new(), node_ports, networks };
        let state = Mutex::new(State { here, ..State::default() });
        Self { state, changes: watch::Sender::new(0), stale_changes: watch::Sender::new(()), peers }
    }

    pub(crate) fn service(&self, key: &ObjectKey, service: Option<Service>) {
        let mut state = self.lock();
        for service in state.services.apply_service(key, service) {
            self.touch(&mut state, &service);
        }
    }

    pub(crate) fn slice(&self, key: &ObjectKey, slice: Option<EndpointSlice>) {
        let mut state = self.lock();
        for service in state.services.apply_slice(key, slice) {
            self.touch(&mut state, &service);
        }
    }

    /// The node's own addresses, by which endpoints on the host are told.
    pub(crate) fn addresses(&self, ips: &[IpAddr]) {
        let mut state = self.lock();
        if state.here.ips != ips {
            state.here.ips = ips.to_vec();
            let all: Vec<ObjectKey> = state.services.iter().map(|(key, _)| key.clone()).collect();
            for key in &all {
                self.touch(&mut state, key);
            }
        }
    }

    /// The addresses of another node.
    pub(crate) fn peer(&self, name: Name, ips: Vec<IpAddr>) {
        let mut state = self.lock();
        let new = Some(&ips) != state.peers.get(&name);
        state.peers.insert(name, ips);
        if new && state.complete {
            self.changes.send_modify(|n| *n += 1);
        }
    }

    /// The first lists are in.
    pub(crate) fn complete(&self) {
        let mut state = self.lock();
        state.complete = true;
        self.ask_for_peers(&mut state);
        drop(state);
        self.changes.send_modify(|n| *n += 1);
    }

    /// `None` until the first lists are in.
    pub(crate) fn want(&self) -> Option<Want> {
        let state = self.lock();
        state.complete.then(|| Want { parts: state.parts.all().cloned().collect(), peers: state.peers.clone() })
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn touch(&self, state: &mut State, key: &ObjectKey) {
        let part = Part::of(key, &state.services, &state.here);
        let created = state.services.get(key).map_or(0, |service| service.created);
        if state.parts.set(key, created, part) && state.complete {
            self.ask_for_peers(state);
            self.changes.send_modify(|n| *n += 1);
        }
        let senders = want::senders(key, &state.services);
        let old = state.senders.remove(key).unwrap_or_default();
        let left = stale::left(&old, &senders);
        if !senders.is_empty() {
            state.senders.insert(key.clone(), senders);
        }
        if !left.is_empty() && state.complete {
            state.stale.extend(left.into_iter().map(|stale| (stale, stale::LOOKS)));
            self.stale_changes.send_replace(());
        }
    }

    fn ask_for_peers(&self, state: &mut State) {
        let wanted: BTreeSet<Name> =
            state.parts.all().flat_map(|part| &part.elsewhere).map(|there| there.node.clone()).collect();
        state.peers.retain(|name, _| wanted.contains(name));
        self.peers.send_if_modified(|have| {
            let differs = *have != wanted;
            *have = wanted;
            differs
        });
    }

    fn stale_changed(&self) -> watch::Receiver<()> {
        self.stale_changes.subscribe()
    }

    /// What to look for now, and the node's addresses. What has come back since is no longer stale.
    fn stale(&self) -> (Vec<Stale>, Vec<IpAddr>) {
        let mut state = self.lock();
        let State { stale, senders, here, .. } = &mut *state;
        let is_back = |(door, backend): &Stale| {
            backend.is_some_and(|b| senders.values().any(|to| to.get(door).is_some_and(|now| now.contains(&b))))
        };
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
