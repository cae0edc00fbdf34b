//! Ways to other clusters, and the transit switches that they go through, that an earlier master has written.

use std::collections::BTreeSet;

use ovnkube_model::{Affected, World};
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_policy as policy, logical_router_port as lrp,
    logical_router_static_route as static_route, logical_switch as ls, logical_switch_port as lsp,
};
use ovnkube_ovn::{Row, owner};
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{Key, Member, MemberValue, RowKey, RowWant, identity, is_garbage, names, prefix_of_way};

use crate::batch::has_ways;
use crate::diff::existing;
use crate::owner_index::{Owned, OwnerIndex};

/// Notes both as what keys have, if such keys are `dirty`, so that they go in the transaction in which others take their place.
pub fn note_stored_ways(cache: &Cache, world: &World, owner_index: &mut OwnerIndex, dirty: &mut BTreeSet<Key>) {
    let is_one = |key: &Key| matches!(key, Key::Interconnections(_));
    // without a switch nothing takes the place of anything: a sweep removes all
    if dirty.iter().any(is_one) && world.joined.switches().next().is_some() {
        note_switches(cache, world, owner_index, dirty);
        note_ways(cache, world, owner_index, dirty);
    }
}

/// Notes each switch, with its ports and this cluster's ends of them, as what its key has. Beside a port with the same address, in another
/// switch or under another name, OVN follows any of the two.
fn note_switches(cache: &Cache, world: &World, owner_index: &mut OwnerIndex, dirty: &mut BTreeSet<Key>) {
    let router = names::cluster_router();
    for (uuid, row) in cache.iter(ls::TABLE).filter(|(_, row)| is_of_interconnection(row)) {
        let (name, switch) = (row.str(ls::NAME), RowKey::new(ls::TABLE, row.str(ls::NAME)));
        if existing(cache, &switch) != Some(uuid) {
            continue;
        }
        let ports = row.uuids(ls::PORTS).filter_map(|uuid| cache.get(lsp::TABLE, uuid));
        let (mut rows, mut members) = (vec![switch.clone()], Vec::new());
        let mut add = |row: RowKey, of: &RowKey, column| {
            if !owner_index.is_wanted(&row) && !rows.contains(&row) {
                members.push(Member { of: of.clone(), column, value: MemberValue::Row(row.clone()) });
                rows.push(row);
            }
        };
        for port in ports.filter(|port| is_of_interconnection(port)) {
            add(RowKey::new(lsp::TABLE, port.str(lsp::NAME)), &switch, ls::PORTS.id());
            let end = port.map(lsp::OPTIONS).get("router-port").map(|end| RowKey::new(lrp::TABLE, end));
            let is_ours = |end: &RowKey| {
                let row = existing(cache, end).and_then(|uuid| cache.get(lrp::TABLE, uuid));
                row.is_some_and(|row| is_of_interconnection(row))
            };
            if let Some(end) = end.filter(is_ours) {
                add(end, &router, lr::PORTS.id());
            }
        }
        rows.retain(|row| !owner_index.is_wanted(row));
        if !rows.is_empty() {
            let stored = Owned { rows: rows.into(), members: members.into() };
            note(&stored, &Affected::TransitSwitch(name.into()), world, owner_index, dirty);
        }
    }
}

/// Whether a sweep would remove it, too, if no key wants it.
fn is_of_interconnection(row: &Row) -> bool {
    row.external_ids().get(owner::OWNER_TYPE) == Some(owner::INTERCONNECTION) && is_garbage(row, false)
}

/// Notes what the keys of something have.
fn note(stored: &Owned, of: &Affected, world: &World, owner_index: &mut OwnerIndex, dirty: &mut BTreeSet<Key>) {
    let mut keys = BTreeSet::new();
    ovnkube_plan::affected(of, world, &mut keys);
    for key in &keys {
        owner_index.add(key, stored);
    }
    dirty.append(&mut keys);
}

/// Notes the ways as what the keys of their prefixes have, if such keys are `dirty`: each goes in the transaction in which its prefix gets
/// others. A sweep would leave it until later, and of two policies for one prefix, by different next hops, OVN follows any: they have the
/// same priority. Ways to prefixes that are not wanted are left to the sweep.
fn note_ways(cache: &Cache, world: &World, owner_index: &mut OwnerIndex, dirty: &mut BTreeSet<Key>) {
    let router = names::cluster_router();
    let uuid = existing(cache, &router).filter(|_| has_ways(dirty.iter()));
    let Some(row) = uuid.and_then(|uuid| cache.get(lr::TABLE, uuid)) else { return };
    let policies = row.uuids(lr::POLICIES).map(|uuid| (policy::TABLE, lr::POLICIES.id(), uuid));
    let statics = row.uuids(lr::STATIC_ROUTES).map(|uuid| (static_route::TABLE, lr::STATIC_ROUTES.id(), uuid));
    for (table, column, uuid) in policies.chain(statics) {
        let Some(way) = cache.get(table, uuid) else { continue };
        let prefix = prefix_of_way(way).filter(|prefix| world.joined.prefixes().contains_key(prefix));
        let (Some(prefix), Some(id)) = (prefix, identity(way)) else { continue };
        let way = RowWant::new(id, Row::new(table)).within(&router).key;
        if owner_index.is_wanted(&way) || existing(cache, &way) != Some(uuid) {
            continue;
        }
        let member = Member { of: router.clone(), column, value: MemberValue::Row(way.clone()) };
        let stored = Owned { rows: [way].into(), members: [member].into() };
        note(&stored, &Affected::Prefix(prefix), world, owner_index, dirty);
    }
}
