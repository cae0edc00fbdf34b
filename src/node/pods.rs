//! The pods of this node, as far as wiring needs them.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ipnetwork::IpNetwork;
use ovnkube_model::{Name, PodKey, PodNetwork, Subnet, is_for_pods, keys};
use tokio::sync::watch;

/// The part of a pod that wiring depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodOnNode {
    pub uid: Name,
    /// Annotation `kubernetes.io/config.mirror`: the uid the kubelet uses for a static pod.
    pub config_hash: Option<Name>,
    /// Annotation `k8s.ovn.org/pod-networks`, not parsed.
    pub networks: Option<Name>,
    /// Annotation `kubernetes.io/ingress-bandwidth`.
    pub ingress_bandwidth: Option<Name>,
    /// Annotation `kubernetes.io/egress-bandwidth`.
    pub egress_bandwidth: Option<Name>,
}

/// A pod, as the API server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) key: PodKey,
    /// For a static pod that of its mirror: the kubelet creates another mirror if someone deletes one, and the pod runs on.
    pub(crate) uid: Name,
}

impl PodOnNode {
    /// Whether a runtime may mean this pod by `uid`; `None`: the runtime names none.
    pub(crate) fn is_of(&self, uid: Option<&str>) -> bool {
        uid.is_none_or(|uid| *uid == *self.uid || Some(uid) == self.config_hash.as_deref())
    }
}

/// Pods by name; waiters wake on every change.
#[derive(Debug)]
pub(crate) struct Pods {
    known: Mutex<Known>,
    changed: watch::Sender<()>,
    /// Ticks when a mirror of a static pod comes.
    mirrored: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Known {
    pods: HashMap<PodKey, PodOnNode>,
    /// Those of the own Node; empty: it has none yet, or is not known.
    subnets: Vec<Subnet>,
}

impl Pods {
    pub(crate) fn new() -> Self {
        Self { known: Mutex::default(), changed: watch::Sender::new(()), mirrored: watch::Sender::new(()) }
    }

    /// Sets or removes a pod; `None`: the pod is gone.
    pub(crate) fn set(&self, key: PodKey, pod: Option<PodOnNode>) {
        let mut known = self.lock();
        let mirrors = pod.as_ref().filter(|pod| pod.config_hash.is_some()).map(|pod| pod.uid.clone());
        let before = match pod {
            Some(pod) => known.pods.insert(key, pod),
            None => known.pods.remove(&key),
        };
        drop(known);
        self.changed.send_replace(());
        if mirrors.is_some_and(|uid| before.is_none_or(|before| before.uid != uid)) {
            self.mirrored.send_replace(());
        }
    }

    /// Sets the subnets of the own Node.
    pub(crate) fn set_subnets(&self, subnets: &[Subnet]) {
        let mut known = self.lock();
        if known.subnets != subnets {
            known.subnets = subnets.to_vec();
            drop(known);
            self.changed.send_replace(());
        }
    }

    pub(crate) fn get(&self, key: &PodKey) -> Option<PodOnNode> {
        self.lock().pods.get(key).cloned()
    }

    /// The logical ports of all pods.
    pub(crate) fn port_names(&self) -> HashSet<String> {
        self.lock().pods.keys().map(PodKey::port_name).collect()
    }

    /// Ticks as if something had changed.
    pub(crate) fn look_again(&self) {
        self.changed.send_replace(());
    }

    /// Ticks on every change.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Ticks when a mirror of a static pod comes, as when the kubelet makes another one.
    pub(crate) fn mirrors(&self) -> watch::Receiver<()> {
        self.mirrored.subscribe()
    }

    /// The pods by each uid that a runtime may use for them. A hash is what the pod's creator says: it is no pod's if two
    /// have it, and never takes a uid away, which the API server gives.
    pub(crate) fn by_uid(&self) -> HashMap<Name, Owner> {
        let pods = &self.lock().pods;
        let owner = |key: &PodKey, pod: &PodOnNode| Owner { key: key.clone(), uid: pod.uid.clone() };
        let mut by_hash: HashMap<Name, Option<Owner>> = HashMap::new();
        for (key, pod) in pods {
            if let Some(hash) = &pod.config_hash {
                by_hash.entry(hash.clone()).and_modify(|of| *of = None).or_insert_with(|| Some(owner(key, pod)));
            }
        }
        let of_hash = by_hash.into_iter().filter_map(|(hash, of)| Some((hash, of?)));
        of_hash.chain(pods.iter().map(|(key, pod)| (pod.uid.clone(), owner(key, pod)))).collect()
    }

    /// Waits until `find` succeeds. Its errors are written to `missing`, for the error of a caller that gives up.
    pub(crate) async fn until<T>(&self, missing: &Mutex<String>, find: impl Fn(&Self) -> Result<T, String>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            match find(self) {
                Ok(found) => return found,
                Err(why) => *missing.lock().unwrap_or_else(PoisonError::into_inner) = why,
            }
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The pod of a sandbox for `uid`.
    pub(crate) fn find(&self, key: &PodKey, uid: Option<&str>) -> Result<PodOnNode, String> {
        let pod =
            self.get(key).ok_or_else(|| "the pod is not on this node, as far as the API server has told".to_owned())?;
        match uid.filter(|_| !pod.is_of(uid)) {
            Some(uid) => Err(format!("the pod has uid {}, and the sandbox is for {uid}", pod.uid)),
            None => Ok(pod),
        }
    }

    /// Waits until the pod with that uid is gone.
    pub(crate) async fn deleted(&self, key: &PodKey, uid: &Name) {
        let is_gone = |(): &()| self.get(key).is_none_or(|pod| pod.uid != *uid);
        // the sender lives as long as these pods
        let _ = self.changed.subscribe().wait_for(is_gone).await;
    }

    /// The pod and its addresses, or what is missing. Anyone who may edit the pod may have written the addresses; only
    /// those of the own node are its to give.
    pub(crate) fn ready(&self, key: &PodKey, uid: Option<&str>) -> Result<(PodOnNode, PodNetwork), String> {
        let (pod, network) = self.annotated(key, uid)?;
        let subnets = &self.lock().subnets;
        if subnets.is_empty() {
            return Err(format!("the node has no subnet yet (annotation {})", keys::NODE_SUBNETS));
        }
        let of_others = network.ip_addresses.iter().map(IpNetwork::ip).find(|ip| !is_for_pods(subnets, *ip));
        let Some(ip) = of_others else { return Ok((pod, network)) };
        let subnets: Vec<String> = subnets.iter().map(ToString::to_string).collect();
        Err(format!(
            "annotation {} cannot be used: {ip} is not an address for pods of this node, whose subnet is {}",
            keys::POD_NETWORKS,
            subnets.join(",")
        ))
    }

    /// The pod and its annotated addresses, whatever they are.
    pub(crate) fn annotated(&self, key: &PodKey, uid: Option<&str>) -> Result<(PodOnNode, PodNetwork), String> {
        let pod = self.find(key, uid)?;
        let text = pod
            .networks
            .as_ref()
            .ok_or_else(|| format!("annotation {} is missing; see the pod's Events for why", keys::POD_NETWORKS))?;
        let network =
            PodNetwork::parse(text).map_err(|bad| format!("annotation {} cannot be used: {}", bad.key, bad.problem))?;
        if network.ip_addresses.is_empty() {
            return Err(format!("annotation {} holds no address", keys::POD_NETWORKS));
        }
        Ok((pod, network))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
