//! Ways to other clusters that an earlier master has written.

use std::collections::BTreeSet;

use ovnkube_model::{Affected, World};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_policy as policy, logical_router_static_route as static_route,
};
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{Key, Member, MemberValue, RowWant, identity, names, prefix_of_way};

use crate::batch::has_ways;
use crate::diff::existing;
use crate::owner_index::{Owned, OwnerIndex};

/// Notes them as what the keys of their prefixes have, if such keys are `dirty`: each goes in the transaction in which its prefix gets
/// others. A sweep would leave it until later, and of two policies for one prefix, by different next hops, OVN follows any: they have the
/// same priority. Ways to prefixes that are not wanted are left to the sweep.
pub fn note_stored_ways(cache: &Cache, world: &World, owner_index: &mut OwnerIndex, dirty: &mut BTreeSet<Key>) {
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
        let mut keys = BTreeSet::new();
        ovnkube_plan::affected(&Affected::Prefix(prefix), world, &mut keys);
        for key in &keys {
            owner_index.add(key, &stored);
        }
        dirty.append(&mut keys);
    }
}
