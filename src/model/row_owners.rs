//! Port groups and address sets by what they are of, with the ids that ovn-kubernetes gives their rows.

use ovnkube_ovn::{OwnerId, owner};

use crate::{Direction, Family, ObjectKey, PodSet};

/// The group of all management ports (`k8s-*`).
pub fn cluster_port_group() -> OwnerId {
    OwnerId::new("Cluster").name("clusterPortGroup")
}

/// The group of all ports towards the cluster router (`stor-*`).
pub fn cluster_router_port_group() -> OwnerId {
    OwnerId::new("Cluster").name("clusterRtrPortGroup")
}

/// The group of a namespace's pods.
pub(crate) fn namespace_group(namespace: &str) -> OwnerId {
    OwnerId::new("Namespace").name(namespace)
}

/// The set of a namespace's pod addresses of one family.
pub(crate) fn namespace_set(namespace: &str, family: Family) -> OwnerId {
    OwnerId::new("Namespace").name(namespace).key("ip-family", family.name())
}

/// The group of a namespace's pods that some policy selects for a direction. The two of a namespace, whose name somebody has chosen, could
/// have one hash.
pub(crate) fn deny_group(namespace: &str, direction: Direction) -> OwnerId {
    let of = |direction: Direction| OwnerId::new("NetpolNamespace").name(namespace).key("direction", direction.name());
    let group = of(direction);
    let is_second = direction == Direction::Egress && group.hash() == of(Direction::Ingress).hash();
    if is_second { group.with_long_name() } else { group }
}

/// The group of the pods that a policy selects.
pub(crate) fn policy_group(key: &ObjectKey) -> OwnerId {
    OwnerId::new("NetworkPolicy").name(&format!("{}:{}", key.namespace, key.name))
}

/// The address set of a set of pods, or of those whose named port has a number.
pub(crate) fn pod_set(set: &PodSet, number: Option<u16>, family: Family) -> OwnerId {
    let name = number.map_or_else(|| set.to_string(), |number| format!("{set}:{number}"));
    OwnerId::new(PodSet::OWNER_TYPE).name(&name).key("ip-family", family.name())
}

/// [`OwnerId::hash`] of [`pod_set`], without the long text of the set: each pod asks for those of all its sets.
pub(crate) fn pod_set_hash(set: &PodSet, number: Option<u16>, family: Family) -> u64 {
    let rest = number.map_or_else(String::new, |number| format!(":{number}"));
    owner::fnv1a_on(set.text_hash(), &format!("{rest}:{}", family.name()))
}
