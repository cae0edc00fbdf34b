//! Rows of port groups, and how ACLs refer to them.

use ovnkube_model::Direction;
use ovnkube_ovn::nb::port_group;
use ovnkube_ovn::{OwnerId, Row};

use crate::RowWant;

/// The row of a port group.
pub(super) fn group_row(owner: &OwnerId) -> RowWant {
    RowWant::new(owner.hashed_name(), Row::new(port_group::TABLE))
        .with(port_group::NAME, owner.hashed_name())
        .with(port_group::EXTERNAL_IDS, owner.external_ids())
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
