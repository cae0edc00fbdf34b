//! What a pod gets: one address per family of its node's switch, and a MAC. A pod keeps what it has.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::World;
use super::pod_entry::PodEntry;
use super::switch::{Settled, Switch};
use crate::pod::MOST_OF_NAME;
use crate::service::MOST_REPORTED;
use crate::{Affected, Labels, Name, Notice, Object, Pod, PodAddresses, PodKey, Severity};

impl PodEntry {
    /// Stores what was decided; true if anything changed.
    fn take(&mut self, settled: Settled, switch: &Switch) -> bool {
        let before = (self.may_be_wired, self.problem.take());
        let moved = self.addresses != settled.addresses;
        if moved {
            self.addresses = settled.addresses;
            self.may_be_wired = false;
        }
        self.judge(switch, settled.refused);
        if let Some(failed) = settled.failed {
            self.problem = Some(Box::new(failed));
        }
        moved || before != (self.may_be_wired, self.problem.clone())
    }

    /// Compares the pod's addresses with its annotation and its status.
    fn judge(&mut self, switch: &Switch, refused: Option<String>) {
        let Some(addresses) = &self.addresses else { return };
        let annotated = self.pod.annotated.as_ref().map(|annotated| &annotated.addresses);
        let runs_with_them = self.pod.running && addresses.each().all(|ip| self.pod.runs_with().any(|have| have == ip));
        self.may_be_wired |= runs_with_them || annotated.is_none_or(|annotated| annotated == addresses);
        let problem = cut_off(&self.pod, addresses, switch).or_else(|| {
            let annotated = annotated.filter(|annotated| !is_obeyed(annotated, addresses, switch))?;
            let why = refused.unwrap_or_else(|| format!("the pod has {}", addresses.port_address()));
            Some(format!("cannot use the annotated addresses {}: {why}", annotated.port_address()))
        });
        self.problem = problem.map(|text| Box::new(("AddressConflict", text)));
    }
}

/// Why a pod cannot be reached at the address that it runs with.
fn cut_off(pod: &Pod, addresses: &PodAddresses, switch: &Switch) -> Option<String> {
    let mut lost = pod.runs_with().filter(|ip| !addresses.each().any(|have| have == *ip));
    let (ip, subnet) = lost.find_map(|ip| Some((ip, switch.subnet_for(ip)?)))?;
    let why = if subnet.contains(ip) { "it is taken".to_owned() } else { format!("it is outside of {subnet}") };
    let has = addresses.port_address();
    Some(format!("cannot keep {ip}, which the pod uses: {why}; recreate the pod, so that it starts with {has}"))
}

/// Whether the annotation matches what the pod has, except for families that its node has no subnet of.
fn is_obeyed(annotated: &PodAddresses, addresses: &PodAddresses, switch: &Switch) -> bool {
    let theirs: Vec<_> = annotated.each().filter(|ip| switch.subnet_for(*ip).is_some()).collect();
    annotated.mac == addresses.mac && addresses.are(&theirs)
}

impl World {
    pub(super) fn apply_pod(&mut self, key: PodKey, mut new: Option<Box<Pod>>) {
        let old = self.pods.get(&key);
        if old.map(|e| &e.pod) == new.as_ref() {
            return;
        }
        if new.as_mut().is_some_and(|new| self.only_starts(&key, new)) {
            self.review(&key);
            return self.follow_pod(&key);
        }
        let old = self.pods.get(&key);
        let numbers = if self.settled { self.numbers_of(&key) } else { BTreeSet::new() };
        let same = matches!((old, &new), (Some(old), Some(new)) if old.pod.uid == new.uid && old.pod.wired_on() == new.wired_on());
        let addresses = if same { old.and_then(|e| e.addresses.clone()) } else { None };
        let may_be_wired = same && old.is_some_and(|e| e.may_be_wired);
        let labels = old.map(|e| e.pod.labels.clone());
        let freed = if same { None } else { self.release(&key) };
        if let Some(mut pod) = new {
            pod.labels = self.shared(pod.labels);
            if let Some(node) = pod.wired_on() {
                self.pods_on.entry(node.clone()).or_default().insert(key.clone());
            }
            self.pods.insert(key.clone(), PodEntry { pod, addresses, may_be_wired, problem: None });
            self.review(&key);
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
            self.follow_again(&node);
        }
        self.follow_pod(&key);
        self.affect(Affected::Pod(key));
    }

    /// Applies a change that is only about the addresses of the status; for any other it does nothing and returns
    /// false. Every pod gets such an update once, and nearly always it confirms what is known.
    fn only_starts(&mut self, key: &PodKey, new: &mut Pod) -> bool {
        let Some(entry) = self.pods.get_mut(key).filter(|entry| !entry.pod.host_network) else { return false };
        let have = &mut *entry.pod;
        let told = (std::mem::replace(&mut new.running, have.running), std::mem::take(&mut new.ips));
        let before = std::mem::take(&mut have.ips);
        let is_all = have == new;
        if is_all {
            (have.running, have.ips) = told;
        } else {
            have.ips = before;
            (new.running, new.ips) = told;
        }
        is_all
    }

    /// Addresses by which rules know a pod in its host's network: of those that its kubelet reports, the node's own. It could report any,
    /// such as another pod's.
    pub fn host_ips<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = IpAddr> + 'a {
        let node = pod.node.as_ref().and_then(|name| self.nodes.get(name));
        let is_nodes = move |ip: IpAddr| node.is_some_and(|node| node.has_ip(ip));
        let is_clusters = move |ip: IpAddr| self.cluster_ranges().any(|local| local.range.contains(ip));
        pod.host_ips().iter().copied().filter(move |ip| is_nodes(*ip) && !is_clusters(*ip))
    }

    /// Rules may know the pods in the network of a node by other addresses now.
    pub(super) fn affect_host_pods(&mut self, node: &Name) {
        if !self.settled {
            return;
        }
        let of_node = |entry: &PodEntry| !entry.pod.host_ips().is_empty() && entry.pod.node.as_ref() == Some(node);
        let keys = self.pods.iter().filter(|(_, entry)| of_node(entry)).map(|(key, _)| key.clone()).collect();
        self.affect_pods(keys);
    }

    /// The stored copy of these labels, which all pods that have them share.
    fn shared(&mut self, labels: Labels) -> Labels {
        if let Some(known) = self.labels.get(&labels) {
            return known.clone();
        }
        self.labels.insert(labels.clone());
        labels
    }

    /// Drops the stored copy of labels that no pod has any more.
    fn forget_labels(&mut self, labels: &Labels) {
        // the caller's and the stored copy
        if labels.holders() == 2 {
            self.labels.remove(labels);
        }
    }

    /// Creates, keeps or drops a node's pools according to its network, and settles its pods.
    pub(super) fn settle_switch(&mut self, node: &Name) {
        // each zone gives addresses to the pods of its own nodes
        let gives = self.settings.roles.controller;
        let here = gives && self.nodes.get(node).is_some_and(|n| n.zone == self.settings.zone);
        let Some(network) = self.node_networks.get(node).filter(|n| here && !n.subnets.is_empty()) else {
            return self.drop_switch(node);
        };
        let confirmed = self.is_confirmed(node);
        let management_mac = self.nodes.get(node).and_then(|node| node.mgmt_mac);
        let mut old = self.switches.remove(node);
        if let Some(mut switch) = old.take_if(|switch| switch.subnets().eq(network.subnets.iter().copied())) {
            // stays confirmed if the annotation is removed: it is written again, and pods must not be affected
            let serves = confirmed && !switch.confirmed || management_mac != switch.management_mac;
            switch.confirmed |= confirmed;
            switch.management_mac = management_mac;
            self.switches.insert(node.clone(), switch);
            if serves {
                self.serve_waiting(node);
            }
            return;
        }
        let kept: Vec<_> = old.iter().flat_map(Switch::subnets).filter(|s| network.subnets.contains(s)).collect();
        self.switches.insert(node.clone(), Switch::new(&network.subnets, confirmed, management_mac, old));
        let stays = |a: &PodAddresses| a.each().all(|ip| kept.iter().any(|subnet| subnet.contains(ip)));
        let all: Vec<_> = self.pods_on(node).cloned().collect();
        let switch = self.switches.get(node);
        let is_right = |entry: &PodEntry| {
            // one that runs with an address of a new subnet may have got no other of its family
            entry.addresses.as_ref().is_some_and(stays) && !switch.is_some_and(|switch| switch.is_elsewhere(entry))
        };
        let others = |key: &&PodKey| !self.pods.get(*key).is_some_and(is_right);
        self.settle_pods(node, &all.iter().filter(others).cloned().collect::<Vec<_>>());
        self.affect_pods(all);
    }

    fn affect_pods(&mut self, keys: Vec<PodKey>) {
        for key in keys {
            self.affect(Affected::Pod(key));
        }
    }

    pub(super) fn drop_switch(&mut self, node: &Name) {
        if self.switches.remove(node).is_none() {
            return;
        }
        for key in self.pods_on(node).cloned().collect::<Vec<_>>() {
            if let Some(entry) = self.pods.get_mut(&key) {
                entry.addresses = None;
            }
            self.affect(Affected::Pod(key));
        }
    }

    /// Settles these pods of one node; returns those that changed.
    fn settle_pods(&mut self, node: &Name, keys: &[PodKey]) -> Vec<PodKey> {
        let Self { switches, pods, .. } = self;
        let Some(switch) = switches.get_mut(node) else { return Vec::new() };
        let settled = switch.settle(keys.iter().filter_map(|key| pods.get_key_value(key)));
        let mut changed = Vec::new();
        for settled in settled {
            let key = settled.key.clone();
            if pods.get_mut(&key).is_some_and(|entry| entry.take(settled, switch)) {
                changed.push(key);
            }
        }
        changed
    }

    /// Checks a pod again after a change: it is settled if it needs addresses and has none, or if it runs with
    /// others of its node's subnets.
    fn review(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get_mut(key).filter(|_| self.settled) else { return };
        let Some(node) = entry.pod.wired_on().cloned() else { return };
        let Some(switch) = self.switches.get(&node) else { return };
        if entry.addresses.is_none() || switch.is_elsewhere(entry) {
            let had = entry.addresses.is_some();
            let mut keys = self.must_yield_to(key, &node);
            let frees = had || !keys.is_empty();
            keys.push(key.clone());
            let changed = self.settle_pods(&node, &keys);
            self.affect_pods(changed);
            if frees {
                self.serve_waiting(&node);
            }
            return;
        }
        let before = (entry.may_be_wired, entry.problem.clone());
        entry.judge(switch, None);
        if before != (entry.may_be_wired, entry.problem.clone()) {
            self.affect(Affected::Pod(key.clone()));
        }
    }

    /// Pods that were given an address that this pod runs with and they do not: they must give it up.
    fn must_yield_to(&self, key: &PodKey, node: &str) -> Vec<PodKey> {
        let its: Vec<_> = self.pods.get(key).into_iter().flat_map(|entry| entry.pod.runs_with()).collect();
        if its.is_empty() {
            return Vec::new();
        }
        let yields = |entry: &PodEntry| {
            let mut has = entry.addresses.iter().flat_map(PodAddresses::each);
            has.any(|ip| its.contains(&ip) && !entry.pod.runs_with().any(|own| own == ip))
        };
        self.pods_on(node).filter(|other| self.pods.get(*other).is_some_and(yields)).cloned().collect()
    }

    /// Frees a pod's addresses; returns the node whose pools got them back.
    fn release(&mut self, key: &PodKey) -> Option<Name> {
        let entry = self.pods.get(key)?;
        let node = entry.pod.wired_on()?.clone();
        if let Some(on) = self.pods_on.get_mut(&node) {
            on.remove(key);
            if on.is_empty() {
                self.pods_on.remove(&node);
            }
        }
        let addresses = entry.addresses.as_ref()?;
        self.switches.get_mut(&node)?.free(key, addresses);
        Some(node)
    }

    /// Settles the waiting pods of a node, after something came free or may be given out now: pods without
    /// addresses, and pods that run with others than they have.
    fn serve_waiting(&mut self, node: &Name) {
        let Some(switch) = self.switches.get(node) else { return };
        let waits = |entry: &PodEntry| entry.addresses.is_none() || switch.is_elsewhere(entry);
        let waiting = self.pods_on(node).filter(|key| self.pods.get(*key).is_some_and(waits));
        let waiting: Vec<_> = waiting.cloned().collect();
        let changed = self.settle_pods(node, &waiting);
        self.affect_pods(changed);
    }

    pub(super) fn pod_notices(&self, key: &PodKey) -> Vec<Notice> {
        let Some(entry) = self.pods.get(key) else { return Vec::new() };
        let bad =
            entry.pod.bad.iter().map(|b| ("BadAnnotation", format!("cannot use annotation {}: {}", b.key, b.problem)));
        let notice = |(reason, message)| Notice {
            object: Object::Pod { key: key.clone(), uid: entry.pod.uid.clone() },
            severity: Severity::Warning,
            reason,
            message,
        };
        let namesake = self.is_gateway_port(key).then(|| ("NameReserved", namesake(key)));
        let names = entry.pod.names_with_too_many_numbers().into_iter().take(MOST_REPORTED);
        let too_many = names.map(|name| ("TooManyPorts", too_many_numbers(name)));
        bad.chain(entry.problem.as_deref().cloned()).chain(namesake).chain(too_many).map(notice).collect()
    }
}

fn too_many_numbers(name: &str) -> String {
    format!(
        "network policies that refer to ports by the name {name:?} use only the first {MOST_OF_NAME} numbers that the pod's \
         containers have for it; give the other ports other names"
    )
}

fn namesake(key: &PodKey) -> String {
    format!(
        "cannot give the pod a network: the gateway of node {} on bridge {} has the port {}, and the pod's port would have \
         the same name; give the pod another name",
        key.name,
        key.namespace,
        key.port_name()
    )
}
