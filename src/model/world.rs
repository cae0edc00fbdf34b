//! The world: the objects that Kubernetes reports and what ovnkube decided about them.
//!
//! Nothing is decided until every initial list is complete (`Change::Synced` for all awaited kinds), so that an
//! address in use is never given out a second time. After that each change is settled at once: a node gets its
//! subnet, a pod its address. A node or pod that finds nothing free waits until something becomes free.
//! served when something is.

mod admission;
#[cfg(test)]
mod admission_tests;
mod host_routes;
mod interconnection;
mod joined;
mod naming;
mod node_network;
mod nodes;
mod numbers;
mod open_sets;
mod pod_entry;
mod pods;
mod policies;
mod policy_index;
#[cfg(test)]
mod policy_tests;
mod room;
#[cfg(test)]
mod room_tests;
mod row_names;
#[cfg(test)]
mod row_names_tests;
mod selector_index;
mod site;
mod sites;
mod switch;
mod used;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ovnkube_ipam::{IdPool, SubnetPool};

pub use self::joined::Joined;
pub use self::node_network::NodeNetwork;
pub use self::pod_entry::PodEntry;
pub use self::policy_index::Policies;
use self::row_names::{Named, RowNames};
pub use self::site::{Site, SiteRouter};
use self::switch::Switch;
pub use self::switch::is_for_pods;
use crate::{
    Affected, Change, Family, Kind, Labels, Name, Namespace, NetworkSettings, Node, Notice, Object, PodKey, Services,
    Severity,
};

/// The first node id: ovn-kubernetes keeps 0 unused and 1 for the cluster router.
const FIRST_NODE_ID: u32 = 2;

/// The objects of the cluster and the decisions about them; see the module.
#[derive(Debug)]
pub struct World {
    pub settings: NetworkSettings,
    pub nodes: BTreeMap<Name, Node>,
    pub namespaces: BTreeMap<Name, Namespace>,
    pub pods: BTreeMap<PodKey, PodEntry>,
    pub services: Services,
    pub policies: Policies,
    /// The network decided for each node.
    pub node_networks: BTreeMap<Name, NodeNetwork>,
    /// The nodes of this zone where services are served.
    pub sites: BTreeMap<Name, Site>,
    /// Interconnection with other clusters.
    pub joined: Joined,
    row_names: RowNames,
    subnets: BTreeMap<Family, SubnetPool>,
    ids: IdPool,
    /// Address pools of the node switches that pods may be put on.
    switches: BTreeMap<Name, Switch>,
    pods_on: BTreeMap<Name, BTreeSet<PodKey>>,
    namespaces_by: HashMap<(Name, Name), BTreeSet<Name>>,
    /// The label sets of pods, each stored once.
    labels: HashSet<Labels>,
    synced: BTreeSet<Kind>,
    /// The kinds whose initial lists must be complete before anything is decided.
    awaited: BTreeSet<Kind>,
    settled: bool,
    affected: BTreeSet<Affected>,
}

impl World {
    /// The namespace whose uid stands for the cluster.
    pub const SYSTEM: &str = "kube-system";

    /// An empty world that decides nothing until all of `awaited` are synced.
    pub fn new(network: NetworkSettings, awaited: impl IntoIterator<Item = Kind>) -> Self {
        let mut subnets = BTreeMap::new();
        for family in Family::ALL {
            let ranges = network.cluster_subnets.iter().copied().filter(|r| Family::of_subnet(r.cidr) == family);
            subnets.insert(family, SubnetPool::new(ranges));
        }
        let mut row_names = RowNames::default();
        row_names.enter(&Named::Cluster);
        let ids = IdPool::new(FIRST_NODE_ID, network.last_node_id());
        Self {
            row_names,
            services: Services::new(network.address_rules()),
            settings: network,
            nodes: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            pods: BTreeMap::new(),
            policies: Policies::default(),
            node_networks: BTreeMap::new(),
            sites: BTreeMap::new(),
            joined: Joined::default(),
            subnets,
            ids,
            switches: BTreeMap::new(),
            pods_on: BTreeMap::new(),
            namespaces_by: HashMap::new(),
            labels: HashSet::new(),
            synced: BTreeSet::new(),
            awaited: awaited.into_iter().collect(),
            settled: false,
            affected: BTreeSet::new(),
        }
    }

    /// What tells this cluster from all others.
    pub fn cluster_uid(&self) -> Option<&Name> {
        self.namespaces.get(Self::SYSTEM).map(|namespace| &namespace.uid)
    }

    /// True once all initial lists are complete.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Applies a change and returns what must be planned again, sorted. A change without news affects nothing.
    pub fn apply(&mut self, change: Change) -> BTreeSet<Affected> {
        match change {
            Change::Node(name, node) => self.apply_node(name, node.map(|n| *n)),
            Change::Namespace(name, namespace) => self.apply_namespace(name, namespace),
            Change::Pod(key, pod) => self.apply_pod(key, pod),
            Change::Service(key, service) => {
                for service in self.services.apply_service(&key, service.map(|s| *s)) {
                    self.affect(Affected::Service(service));
                }
            }
            Change::EndpointSlice(key, slice) => {
                for service in self.services.apply_slice(&key, slice.map(|s| *s)) {
                    self.affect(Affected::Service(service));
                }
            }
            Change::Connections(connections) => {
                for service in self.services.apply_connections(connections.owners) {
                    self.affect(Affected::Service(service));
                }
            }
            Change::NetworkPolicy(key, policy) => self.apply_policy(&key, policy.map(|p| *p)),
            // OVN balances any service address, so the ranges do not matter here; routes of hosts are an agent's
            Change::ServiceCidr(..) | Change::ForHosts(_) => {}
            Change::Interconnection(config) => self.apply_interconnection(config),
            Change::InterconnectionSubnet(name, subnet) => self.apply_interconnection_subnet(name, subnet),
            Change::InterconnectionHidden(is_hidden) => self.apply_hidden(is_hidden),
            Change::InterconnectionStored(text) => self.apply_stored(text),
            Change::InterconnectionLeft(from) => self.apply_left(&from),
            Change::InterconnectionMoved(to, is_same) => self.apply_moved(&to, is_same),
            Change::InterconnectionStuck(on, problem) => self.apply_stuck(on, problem),
            Change::Peers(peers) => self.apply_peers(*peers),
            Change::Synced(kind) => self.sync(kind),
        }
        self.settle_sites();
        std::mem::take(&mut self.affected)
    }

    /// Pods that need a logical port on a node, whether they have it yet or not.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &PodKey> {
        self.pods_on.get(node).into_iter().flatten()
    }

    pub fn pods_in<'a>(&'a self, namespace: &'a Name) -> impl Iterator<Item = &'a PodKey> {
        let first = PodKey { namespace: namespace.clone(), name: "".into() };
        self.pods.range(first..).map(|(key, _)| key).take_while(move |key| key.namespace == *namespace)
    }

    /// The notices about an object; empty if nothing is wrong with it.
    pub fn notices(&self, affected: &Affected) -> Vec<Notice> {
        match affected {
            Affected::Node(name) => self.node_notices(name),
            Affected::Pod(key) => self.pod_notices(key),
            Affected::Everything => {
                let nodes = self.nodes.keys().flat_map(|name| self.node_notices(name));
                let pods = self.pods.keys().flat_map(|key| self.pod_notices(key));
                let services = self.services.iter().flat_map(|(key, _)| self.service_notices(key));
                let namespaces = self.namespaces.keys().flat_map(|name| self.namespace_notices(name));
                let policies = self.policies.iter().flat_map(|(key, _)| self.policy_notices(key));
                let all = nodes.chain(pods).chain(services).chain(namespaces).chain(policies);
                let subnets = self.joined.subnets.keys().flat_map(|name| self.interconnection_subnet_notices(name));
                all.chain(self.interconnection_notices()).chain(subnets).collect()
            }
            Affected::Service(key) => self.service_notices(key),
            Affected::Namespace(name) => self.namespace_notices(name),
            Affected::NetworkPolicy(key) => self.policy_notices(key),
            Affected::Interconnection => self.interconnection_notices(),
            Affected::InterconnectionSubnet(name) => self.interconnection_subnet_notices(name),
            Affected::PodSet(_) | Affected::Sites | Affected::TransitSwitch(_) | Affected::Prefix(_) => Vec::new(),
        }
    }

    fn affect(&mut self, what: Affected) {
        if self.settled {
            self.affected.insert(what);
        }
    }

    fn apply_namespace(&mut self, name: Name, new: Option<Namespace>) {
        let old = self.namespaces.get(&name);
        if old == new.as_ref() {
            return;
        }
        let was_named = self.is_named(&name);
        let (was, is) = (old.map(|n| n.labels.clone()), new.as_ref().map(|n| n.labels.clone()));
        let before: Vec<_> = self.pods_in(&name).map(|key| (key.clone(), self.numbers_of(key))).collect();
        for label in was.iter().flat_map(Labels::iter) {
            if let Some(names) = self.namespaces_by.get_mut(label) {
                names.remove(&name);
                if names.is_empty() {
                    self.namespaces_by.remove(label);
                }
            }
        }
        for label in is.iter().flat_map(Labels::iter) {
            self.namespaces_by.entry(label.clone()).or_default().insert(name.clone());
        }
        match new {
            Some(namespace) => self.namespaces.insert(name.clone(), namespace),
            None => self.namespaces.remove(&name),
        };
        self.name_namespace(&name, was_named);
        if was != is && self.settled {
            for (key, before) in before {
                let after = self.numbers_of(&key);
                self.recount(&before, &after);
            }
        }
        self.settle_names();
        self.affect(Affected::Namespace(name));
    }

    fn namespace_notices(&self, name: &Name) -> Vec<Notice> {
        let Some(namespace) = self.namespaces.get(name) else { return Vec::new() };
        let notice = |bad: &crate::BadAnnotation| Notice {
            object: Object::Namespace { name: name.clone(), uid: namespace.uid.clone() },
            severity: Severity::Warning,
            reason: "BadAnnotation",
            message: format!("cannot use annotation {}: {}", bad.key, bad.problem),
        };
        namespace.bad.iter().map(notice).collect()
    }

    fn sync(&mut self, kind: Kind) {
        self.synced.insert(kind);
        if kind == Kind::Interconnection {
            self.sync_interconnection();
        }
        if self.settled || !self.awaited.is_subset(&self.synced) {
            return;
        }
        self.settled = true;
        self.settle_all_nodes();
        self.count_everything();
        self.settle_names();
        self.affected = BTreeSet::from([Affected::Everything]);
    }
}
