//! Namespaces: the rows by which policies refer to them.
//!
//! Every namespace has an address set per family with its pods' addresses and, if multicast or egress firewalls need
//! it, a port group with their ports. The pods themselves add the members (see [`crate::pods`]), each in the
//! transaction that makes its port. The host-network namespace's set holds the addresses that traffic from nodes
//! has: their management ports and join addresses (see [`crate::policies`]).

use ovnkube_model::{Affected, Name, Roles, World};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{address_set, port_group};

use crate::{Feature, RowWant, Want};

pub struct Namespaces;

impl Feature for Namespaces {
    type Key = Name;

    fn is_enabled(roles: Roles) -> bool {
        roles.controller
    }

    fn affected(what: &Affected, world: &World) -> Vec<Name> {
        match what {
            Affected::Everything => world.namespaces.keys().cloned().collect(),
            Affected::Namespace(name) => vec![name.clone()],
            _ => Vec::new(),
        }
    }

    fn want(name: &Name, world: &World) -> Want {
        let mut want = Want::default();
        if !world.namespaces.contains_key(name) {
            return want;
        }
        for family in world.settings.families() {
            let owner = world.namespace_set(name, family);
            want.row(
                RowWant::new(owner.hashed_name(), Row::new(address_set::TABLE))
                    .with(address_set::NAME, owner.hashed_name())
                    .with(address_set::EXTERNAL_IDS, owner.external_ids()),
            );
        }
        if world.settings.has_namespace_groups() {
            let owner = world.namespace_group(name);
            want.row(
                RowWant::new(owner.hashed_name(), Row::new(port_group::TABLE))
                    .with(port_group::NAME, owner.hashed_name())
                    .with(port_group::EXTERNAL_IDS, owner.external_ids()),
            );
        }
        want
    }
}
