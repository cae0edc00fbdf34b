//! Names and rows of port groups and sets of pods, and how ACLs refer to them.

use ovnkube_model::{Direction, Family, ObjectKey, PodSet};
use ovnkube_ovn::nb::port_group;
use ovnkube_ovn::{OwnerId, Row};

use crate::RowWant;

/// The row of a port group.
pub(super) fn group_row(owner: &OwnerId) -> RowWant {
    RowWant::new(owner.hashed_name(), Row::new(port_group::TABLE))
        .with(port_group::NAME, owner.hashed_name())
        .with(port_group::EXTERNAL_IDS, owner.external_ids())
}

/// The port group of the pods that a policy selects.
pub(super) fn policy_group(key: &ObjectKey) -> OwnerId {
    OwnerId::new("NetworkPolicy").name(&format!("{}:{}", key.namespace, key.name))
}

/// The port group of a namespace's pods that some policy selects for a direction.
pub(super) fn deny_group(namespace: &str, direction: Direction) -> OwnerId {
    OwnerId::new("NetpolNamespace").name(namespace).key("direction", direction.name())
}

/// The address set of a set of pods, or of those whose named port has a number.
pub(super) fn set_owner(set: &PodSet, number: Option<u16>, family: Family) -> OwnerId {
    let name = number.map_or_else(|| set.to_string(), |number| format!("{set}:{number}"));
    OwnerId::new("PodSelector").name(&name).key("ip-family", family.name())
}

/// Matches packets of a group's pods.
pub(super) fn port_match(direction: Direction, group: &OwnerId) -> String {
    let port = match direction {
        Direction::Egress => "inport",
        Direction::Ingress => "outport",
    };
    format!("{port} == @{}", group.hashed_name())
}

/// Any of several conditions; empty for none.
pub(super) fn either(conditions: &[String]) -> String {
    match conditions {
        [] => String::new(),
        [one] => one.clone(),
        many => format!("({})", many.join(" || ")),
    }
}
