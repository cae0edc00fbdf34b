//! What a pod gets: one address per family of its node's switch, and a MAC.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::{AddressPool, Error, Mac, Subnet};

use super::World;
use crate::{Labels, Name, Notice, Object, Pod, PodAddresses, PodKey, Severity, Touched};

/// Addresses of a node's subnet that pods never get: the network's own, the gateway `.1` and the
/// management port `.2`.
const RESERVED: u32 = 3;

/// A pod and its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodEntry {
    pub pod: Pod,
    pub addresses: Option<PodAddresses>,
    /// False while the pod still carries addresses that it was not given: its node would wire it with
    /// them, so it gets no port before that is put right.
    pub may_be_wired: bool,
    /// Boxed like all that few pods have: a cluster has many pods.
    problem: Option<Box<Problem>>,
}

/// The pools of one node's switch.
#[derive(Debug)]
pub(super) struct Switch {
    pools: Vec<AddressPool>,
    /// MACs asked for by users; all others follow from an address and are unique with it.
    macs: BTreeMap<Mac, PodKey>,
}

impl Switch {
    fn new(subnets: &[Subnet]) -> Self {
        Self { pools: subnets.iter().map(|s| AddressPool::new(*s, RESERVED)).collect(), macs: BTreeMap::new() }
    }

    fn subnets(&self) -> impl Iterator<Item = Subnet> + '_ {
        self.pools.iter().map(AddressPool::subnet)
    }

    /// Takes all of `ips` (one per pool) or none of them.
    fn take(&mut self, ips: &[IpAddr]) -> Result<Vec<IpNetwork>, Error> {
        let mut taken = Vec::new();
        for ip in ips {
            let pool = self.pools.iter_mut().find(|p| p.subnet().contains(*ip));
            let result = match pool {
                Some(pool) => pool.take(*ip).map(|()| with_prefix(*ip, pool.subnet())),
                None => Err(Error::Outside { what: ip.to_string(), range: self.names() }),
            };
            match result {
                Ok(address) => taken.extend(address),
                Err(error) => {
                    self.free(&taken);
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    /// Completes `have` with an address of every pool that it has none of.
    fn complete(&mut self, mut have: Vec<IpNetwork>) -> Result<Vec<IpNetwork>, Error> {
        for index in 0..self.pools.len() {
            let Some(pool) = self.pools.get_mut(index) else { break };
            if have.iter().any(|a| pool.subnet().contains(a.ip())) {
                continue;
            }
            match pool.allocate() {
                Ok(ip) => have.extend(with_prefix(ip, pool.subnet())),
                Err(error) => {
                    self.free(&have);
                    return Err(error);
                }
            }
        }
        have.sort_by_key(|a| self.pools.iter().position(|p| p.subnet().contains(a.ip())));
        Ok(have)
    }

    fn free(&mut self, ips: &[IpNetwork]) {
        for ip in ips {
            for pool in &mut self.pools {
                pool.free(ip.ip());
            }
        }
    }

    fn names(&self) -> String {
        self.subnets().map(|s| s.to_string()).collect::<Vec<_>>().join(",")
    }
}

fn with_prefix(ip: IpAddr, subnet: Subnet) -> Option<IpNetwork> {
    IpNetwork::new(ip, subnet.prefix()).ok()
}

/// The MAC that belongs to these addresses: that of the IPv4 one where there is one.
fn derived_mac(ips: &[IpNetwork]) -> Option<Mac> {
    ips.iter().find(|ip| ip.is_ipv4()).or(ips.first()).map(|ip| Mac::of(ip.ip()))
}

impl World {
    pub(super) fn apply_pod(&mut self, key: PodKey, new: Option<Pod>) {
        let old = self.pods.get(&key);
        if old.map(|e| &e.pod) == new.as_ref() {
            return;
        }
        let numbers = if self.settled { self.numbers_of(&key) } else { BTreeSet::new() };
        let same = matches!((old, &new), (Some(old), Some(new)) if old.pod.uid == new.uid && old.pod.wired_on() == new.wired_on());
        let addresses = if same { old.and_then(|e| e.addresses.clone()) } else { None };
        let problem = new
            .as_ref()
            .zip(addresses.as_ref())
            .and_then(|(pod, addresses)| not_annotated(pod, addresses))
            .map(Box::new);
        let as_given = |pod: &Pod| pod.annotated.as_ref().is_none_or(|a| Some(&a.addresses) == addresses.as_ref());
        let may_be_wired = same && old.is_some_and(|e| e.may_be_wired) || new.as_ref().is_some_and(as_given);
        let labels = old.map(|e| e.pod.labels.clone());
        let freed = if same { None } else { self.release(&key) };
        if let Some(mut pod) = new {
            pod.labels = self.shared(pod.labels);
            if let Some(node) = pod.wired_on() {
                self.pods_on.entry(node.clone()).or_default().insert(key.clone());
            }
            self.pods.insert(key.clone(), PodEntry { pod, addresses, may_be_wired, problem });
            if self.settled {
                self.settle_pod(&key);
            }
        } else {
            self.pods.remove(&key);
        }
        if let Some(labels) = labels {
            self.forget_labels(&labels);
        }
        if self.settled {
            let now = self.numbers_of(&key);
            self.recount(&numbers, &now);
        }
        if let Some(node) = freed {
            self.serve_waiting(&node);
        }
        self.touch(Touched::Pod(key));
    }

    /// These labels, once for all pods that have them.
    fn shared(&mut self, labels: Labels) -> Labels {
        if let Some(known) = self.labels.get(&labels) {
            return known.clone();
        }
        self.labels.insert(labels.clone());
        labels
    }

    /// Forgets labels that no pod has any more.
    fn forget_labels(&mut self, labels: &Labels) {
        // the one that is asked about, and the one that is kept
        if labels.holders() == 2 {
            self.labels.remove(labels);
        }
    }

    /// Makes, keeps or drops the pools of a node as its network says, and settles its pods.
    pub(super) fn settle_switch(&mut self, node: &Name) {
        // each zone gives addresses to its own nodes' pods
        let here = self.nodes.get(node).is_some_and(|n| n.zone == self.network.zone);
        let Some(network) = self.networks.get(node).filter(|n| here && !n.subnets.is_empty()) else {
            return self.drop_switch(node);
        };
        // an annotation that somebody removed is written again; pods do not notice
        if self.switches.get(node).is_some_and(|s| s.subnets().eq(network.subnets.iter().copied())) {
            return;
        }
        if !self.is_confirmed(node) {
            return self.drop_switch(node);
        }
        let switch = Switch::new(&network.subnets);
        self.drop_switch(node);
        self.switches.insert(node.clone(), switch);
        for key in self.by_seniority(node) {
            self.settle_pod(&key);
            self.touch(Touched::Pod(key));
        }
    }

    /// The pods of a node in the order of their claims: what is annotated first, then what is older.
    fn by_seniority(&self, node: &str) -> Vec<PodKey> {
        let mut keys: Vec<&PodKey> = self.pods_on(node).collect();
        keys.sort_by_key(|key| {
            let pod = self.pods.get(*key).map(|e| &e.pod);
            pod.map(|pod| (pod.annotated.is_none(), pod.request.is_none(), pod.created, pod.uid.clone()))
        });
        keys.into_iter().cloned().collect()
    }

    pub(super) fn drop_switch(&mut self, node: &Name) {
        if self.switches.remove(node).is_none() {
            return;
        }
        for key in self.pods_on(node).cloned().collect::<Vec<_>>() {
            if let Some(entry) = self.pods.get_mut(&key) {
                entry.addresses = None;
            }
            self.touch(Touched::Pod(key));
        }
    }

    /// Gives a pod its addresses if it should have some and has none.
    fn settle_pod(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        if entry.addresses.is_some() {
            return;
        }
        let Some(switch) = entry.pod.wired_on().and_then(|node| self.switches.get_mut(node)) else { return };
        match assign(key, &entry.pod, switch) {
            Ok((addresses, problem)) => {
                entry.may_be_wired = entry.pod.annotated.as_ref().is_none_or(|a| a.addresses == addresses);
                entry.addresses = Some(addresses);
                entry.problem = problem.map(Box::new);
            }
            Err(problem) => entry.problem = Some(Box::new(problem)),
        }
    }

    /// Takes a pod's addresses back; returns the node whose pools have grown.
    fn release(&mut self, key: &PodKey) -> Option<Name> {
        let entry = self.pods.get(key)?;
        let node = entry.pod.wired_on()?.clone();
        if let Some(on) = self.pods_on.get_mut(&node) {
            on.remove(key);
            if on.is_empty() {
                self.pods_on.remove(&node);
            }
        }
        let addresses = entry.addresses.clone()?;
        let switch = self.switches.get_mut(&node)?;
        switch.free(&addresses.ips);
        if switch.macs.get(&addresses.mac) == Some(key) {
            switch.macs.remove(&addresses.mac);
        }
        Some(node)
    }

    fn serve_waiting(&mut self, node: &Name) {
        let waits = |key: &PodKey| self.pods.get(key).is_some_and(|e| e.addresses.is_none());
        if !self.pods_on(node).any(waits) {
            return;
        }
        let waiting: Vec<_> = self.by_seniority(node).into_iter().filter(waits).collect();
        for key in waiting {
            self.settle_pod(&key);
            self.touch(Touched::Pod(key));
        }
    }

    pub(super) fn pod_notices(&self, key: &PodKey) -> Vec<Notice> {
        let Some(entry) = self.pods.get(key) else { return Vec::new() };
        let bad = entry.pod.bad.iter().map(|b| ("BadAnnotation", format!("annotation {}: {}", b.key, b.problem)));
        let notice = |(reason, message)| Notice {
            object: Object::Pod { key: key.clone(), uid: entry.pod.uid.clone() },
            severity: Severity::Warning,
            reason,
            message,
        };
        bad.chain(entry.problem.as_deref().cloned()).map(notice).collect()
    }
}

type Problem = (&'static str, String);

/// What is wrong with the annotation of a pod that has its addresses: somebody else changed it.
fn not_annotated(pod: &Pod, addresses: &PodAddresses) -> Option<Problem> {
    let annotated = &pod.annotated.as_ref()?.addresses;
    let (theirs, ours) = (annotated.ips.iter().map(IpNetwork::ip), addresses.ips.iter().map(IpNetwork::ip));
    if annotated.mac == addresses.mac && theirs.eq(ours) {
        return None;
    }
    let (annotated, have) = (annotated.port_address(), addresses.port_address());
    Some(("AddressConflict", format!("the annotated addresses {annotated} are not used: the pod has {have}")))
}

/// The addresses of a pod: those it is annotated with, else those its user asked for, else free ones.
/// An annotation that cannot be obeyed is replaced and reported; a request that cannot be met leaves
/// the pod waiting, since a user who asks for an address is not served by another one.
fn assign(key: &PodKey, pod: &Pod, switch: &mut Switch) -> Result<(PodAddresses, Option<Problem>), Problem> {
    let mut problem = None;
    if let Some(annotated) = &pod.annotated {
        match keep_annotated(key, &annotated.addresses, switch) {
            Ok(addresses) => return Ok((addresses, None)),
            Err(why) => {
                let text =
                    format!("the annotated addresses {} are not used: {why}", annotated.addresses.port_address());
                problem = Some(("AddressConflict", text));
            }
        }
    }
    let request = pod.request.as_deref().cloned().unwrap_or_default();
    let refused = |why: String| ("AddressRequestRefused", format!("the requested address is not given: {why}"));
    if let Some(mac) = request.mac {
        claim_mac(key, mac, &request.ips, switch).map_err(refused)?;
    }
    let result = match switch.take(&request.ips) {
        Ok(ips) => switch.complete(ips).map_err(|e| ("AddressesExhausted", e.to_string())),
        Err(error) => Err(refused(error.to_string())),
    };
    let ips = result.inspect_err(|_| unclaim_mac(key, request.mac, switch))?;
    let mac = request.mac.or(derived_mac(&ips)).unwrap_or(Mac([0; 6]));
    Ok((PodAddresses { ips, mac }, problem))
}

/// Obeys an annotation if it has one free address of each of the switch's subnets.
fn keep_annotated(key: &PodKey, have: &PodAddresses, switch: &mut Switch) -> Result<PodAddresses, String> {
    let ips: Vec<_> = have.ips.iter().map(IpNetwork::ip).collect();
    let complete = switch.subnets().all(|s| ips.iter().filter(|ip| s.contains(**ip)).count() == 1);
    if !complete || ips.len() != switch.pools.len() {
        return Err(format!("they are not one address of each of {}", switch.names()));
    }
    let taken = switch.take(&ips).map_err(|e| e.to_string())?;
    if Some(have.mac) != derived_mac(&taken) {
        claim_mac(key, have.mac, &ips, switch).inspect_err(|_| switch.free(&taken))?;
    }
    Ok(PodAddresses { ips: taken, mac: have.mac })
}

/// A MAC of its own for a pod. Addresses that begin with 0a:58 belong to the IP they spell.
fn claim_mac(key: &PodKey, mac: Mac, ips: &[IpAddr], switch: &mut Switch) -> Result<(), String> {
    if mac.0.starts_with(&[0x0a, 0x58]) && !ips.iter().any(|ip| Mac::of(*ip) == mac) {
        return Err(format!("MAC {mac} belongs to another address (0a:58 and the octets of the IP)"));
    }
    match switch.macs.get(&mac) {
        Some(other) if other != key => Err(format!("MAC {mac} is taken by pod {other}")),
        _ => {
            switch.macs.insert(mac, key.clone());
            Ok(())
        }
    }
}

fn unclaim_mac(key: &PodKey, mac: Option<Mac>, switch: &mut Switch) {
    if let Some(mac) = mac.filter(|mac| switch.macs.get(mac) == Some(key)) {
        switch.macs.remove(&mac);
    }
}
