//! The world: what Kubernetes says and what ovnkube decided, with the rules that keep the two apart.
//!
//! Until every first list is in (`Change::Synced` for all kinds) nothing is decided, so that an
//! address somebody has already is never given to somebody else. From then on each change settles
//! what it can: a node gets its subnet, a pod its address; who finds nothing free waits and is
//! served when something is.

mod admission;
#[cfg(test)]
mod admission_tests;
mod nodes;
mod pods;
mod policies;
#[cfg(test)]
mod policy_tests;
mod selector_index;
mod sites;
mod switch;
mod used;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ovnkube_ipam::{IdPool, SubnetPool};

pub use self::nodes::NodeNetwork;
pub use self::pods::PodEntry;
pub use self::policies::Policies;
pub use self::sites::{Site, SiteRouter};
use self::switch::Switch;
use crate::{
    Change, Family, Kind, Labels, Name, Namespace, Network, Node, Notice, Object, PodKey, Services, Severity, Touched,
};

/// Node numbers start here: ovn-kubernetes keeps 0 unused and 1 for the cluster router.
const FIRST_NODE_ID: u32 = 2;
const LAST_NODE_ID: u32 = 65_533;

/// See the module.
#[derive(Debug)]
pub struct World {
    pub network: Network,
    pub nodes: BTreeMap<Name, Node>,
    pub namespaces: BTreeMap<Name, Namespace>,
    pub pods: BTreeMap<PodKey, PodEntry>,
    pub services: Services,
    pub policies: Policies,
    /// What was decided for each node.
    pub networks: BTreeMap<Name, NodeNetwork>,
    /// The nodes of this zone where services are served.
    pub sites: BTreeMap<Name, Site>,
    subnets: BTreeMap<Family, SubnetPool>,
    ids: IdPool,
    /// Address pools of the node switches that pods may be put on.
    switches: BTreeMap<Name, Switch>,
    pods_on: BTreeMap<Name, BTreeSet<PodKey>>,
    namespaces_by: HashMap<(Name, Name), BTreeSet<Name>>,
    /// The sets of labels that pods have, each once.
    labels: HashSet<Labels>,
    synced: BTreeSet<Kind>,
    /// Everything first lists must bring before anything is decided.
    awaited: BTreeSet<Kind>,
    settled: bool,
    touched: BTreeSet<Touched>,
}

impl World {
    /// An empty world that starts to decide once all of `awaited` are synced.
    pub fn new(network: Network, awaited: impl IntoIterator<Item = Kind>) -> Self {
        let mut subnets = BTreeMap::new();
        for family in Family::ALL {
            let ranges = network.cluster_subnets.iter().copied().filter(|r| Family::of_subnet(r.cidr) == family);
            subnets.insert(family, SubnetPool::new(ranges));
        }
        Self {
            services: Services::new(network.address_rules()),
            network,
            nodes: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            pods: BTreeMap::new(),
            policies: Policies::default(),
            networks: BTreeMap::new(),
            sites: BTreeMap::new(),
            subnets,
            ids: IdPool::new(FIRST_NODE_ID, LAST_NODE_ID),
            switches: BTreeMap::new(),
            pods_on: BTreeMap::new(),
            namespaces_by: HashMap::new(),
            labels: HashSet::new(),
            synced: BTreeSet::new(),
            awaited: awaited.into_iter().collect(),
            settled: false,
            touched: BTreeSet::new(),
        }
    }

    /// True once all first lists are in.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Takes a change in; what it made worth planning again is returned, sorted. A change that says
    /// nothing new touches nothing.
    pub fn apply(&mut self, change: Change) -> BTreeSet<Touched> {
        match change {
            Change::Node(name, node) => self.apply_node(name, node.map(|n| *n)),
            Change::Namespace(name, namespace) => self.apply_namespace(name, namespace),
            Change::Pod(key, pod) => self.apply_pod(key, pod.map(|p| *p)),
            Change::Service(key, service) => {
                for service in self.services.apply_service(&key, service.map(|s| *s)) {
                    self.touch(Touched::Service(service));
                }
            }
            Change::EndpointSlice(key, slice) => {
                for service in self.services.apply_slice(&key, slice.map(|s| *s)) {
                    self.touch(Touched::Service(service));
                }
            }
            Change::Connections(connections) => {
                for service in self.services.apply_connections(connections) {
                    self.touch(Touched::Service(service));
                }
            }
            Change::NetworkPolicy(key, policy) => self.apply_policy(key, policy.map(|p| *p)),
            // OVN balances whatever address a service has
            Change::ServiceCidr(..) => {}
            Change::Synced(kind) => self.sync(kind),
        }
        self.settle_sites();
        std::mem::take(&mut self.touched)
    }

    /// Node subnets given out and there in all, by family.
    pub fn subnet_counts(&self, family: Family) -> (usize, u64) {
        self.subnets.get(&family).map_or((0, 0), |pool| (pool.used(), pool.count()))
    }

    /// Pods placed on a node, wired or not.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &PodKey> {
        self.pods_on.get(node).into_iter().flatten()
    }

    /// Pods of a namespace.
    pub fn pods_in<'a>(&'a self, namespace: &'a Name) -> impl Iterator<Item = &'a PodKey> {
        let first = PodKey { namespace: namespace.clone(), name: "".into() };
        self.pods.range(first..).map(|(key, _)| key).take_while(move |key| key.namespace == *namespace)
    }

    /// What people should hear about an object; empty for one that is in order.
    pub fn notices(&self, touched: &Touched) -> Vec<Notice> {
        match touched {
            Touched::Node(name) => self.node_notices(name),
            Touched::Pod(key) => self.pod_notices(key),
            Touched::Everything => {
                let nodes = self.nodes.keys().flat_map(|name| self.node_notices(name));
                let pods = self.pods.keys().flat_map(|key| self.pod_notices(key));
                let services = self.services.iter().flat_map(|(key, _)| self.service_notices(key));
                let namespaces = self.namespaces.keys().flat_map(|name| self.namespace_notices(name));
                let policies = self.policies.iter().flat_map(|(key, _)| self.policy_notices(key));
                nodes.chain(pods).chain(services).chain(namespaces).chain(policies).collect()
            }
            Touched::Service(key) => self.service_notices(key),
            Touched::Namespace(name) => self.namespace_notices(name),
            Touched::NetworkPolicy(key) => self.policy_notices(key),
            Touched::PodSet(_) | Touched::Sites => Vec::new(),
        }
    }

    fn touch(&mut self, what: Touched) {
        if self.settled {
            self.touched.insert(what);
        }
    }

    fn apply_namespace(&mut self, name: Name, new: Option<Namespace>) {
        let old = self.namespaces.get(&name);
        if old == new.as_ref() {
            return;
        }
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
        if was != is && self.settled {
            for labels in was.iter().chain(&is) {
                self.touch_referring(labels);
            }
            for (key, before) in before {
                let after = self.numbers_of(&key);
                self.recount(&before, &after);
            }
        }
        self.touch(Touched::Namespace(name));
    }

    fn namespace_notices(&self, name: &Name) -> Vec<Notice> {
        let Some(namespace) = self.namespaces.get(name) else { return Vec::new() };
        let notice = |bad: &crate::BadAnnotation| Notice {
            object: Object::Namespace { name: name.clone(), uid: namespace.uid.clone() },
            severity: Severity::Warning,
            reason: "BadAnnotation",
            message: format!("annotation {}: {}", bad.key, bad.problem),
        };
        namespace.bad.iter().map(notice).collect()
    }

    fn sync(&mut self, kind: Kind) {
        self.synced.insert(kind);
        if self.settled || !self.awaited.is_subset(&self.synced) {
            return;
        }
        self.settled = true;
        self.settle_all_nodes();
        self.count_everything();
        self.touched = BTreeSet::from([Touched::Everything]);
    }
}
