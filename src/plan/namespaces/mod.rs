//! Namespaces: what policies refer to them by.
//!
//! Every namespace has an address set per family with its pods' addresses and, where multicast or
//! egress firewalls need it, a port group with their ports. Members are put in by the pods themselves (see [`crate::pods`]), each in the
//! transaction that makes its port. The host-network namespace's set holds the addresses that
//! traffic from nodes has: their management ports and join addresses (see [`crate::topology`]).

use ovnkube_model::{Name, Roles, Touched, World};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{address_set, port_group};

use crate::{Feature, RowWant, Want, names};

pub struct Namespaces;

impl Feature for Namespaces {
    type Key = Name;

    fn is_ours(roles: Roles) -> bool {
        roles.controller
    }

    fn touched(what: &Touched, world: &World) -> Vec<Name> {
        match what {
            Touched::Everything => world.namespaces.keys().cloned().collect(),
            Touched::Namespace(name) => vec![name.clone()],
            _ => Vec::new(),
        }
    }

    fn want(name: &Name, world: &World) -> Want {
        let mut want = Want::default();
        if !world.namespaces.contains_key(name) {
            return want;
        }
        for family in world.network.families() {
            let owner = names::namespace_set(name, family);
            want.row(
                RowWant::new(owner.hashed_name(), Row::new(address_set::TABLE))
                    .with(address_set::NAME, owner.hashed_name())
                    .with(address_set::EXTERNAL_IDS, owner.external_ids()),
            );
        }
        if world.network.has_namespace_groups() {
            let owner = names::namespace_group(name);
            want.row(
                RowWant::new(owner.hashed_name(), Row::new(port_group::TABLE))
                    .with(port_group::NAME, owner.hashed_name())
                    .with(port_group::EXTERNAL_IDS, owner.external_ids()),
            );
        }
        want
    }
}
