//! Garbage: rows with our marks, rows that ovn-kubernetes left without marks, and elements of our sets, that no key
//! wants.
//!
//! First run after the first full plan, before anything new is written: an address that a stale port still has may be
//! given to a new pod in the next transaction.

use std::collections::{BTreeSet, HashMap, HashSet};

use ovnkube_model::World;
use ovnkube_ovn::nb::{
    acl, address_set, load_balancer, logical_router as lr, logical_router_port as lrp,
    logical_router_static_route as route, logical_switch as ls, logical_switch_port as lsp, nat, port_group,
};
use ovnkube_ovn::{Atom, ColumnId, Database, Row, Uuid, owner};
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{MemberValue, Takeover, identity, is_anothers_acl, is_garbage, is_our_variable, member_columns};

use crate::diff::{Diff, existing, has_router_peer_port};
use crate::owner_index::Owned;

/// What a sweep leaves to another transaction because this one is large enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Nothing,
    /// Perhaps ways to other clusters, since new ones are still to be written.
    Ways,
    /// Rows that affect nobody.
    Unused,
    /// Rows that must be gone before anything new is written.
    InUse,
}

/// Rows of ours that no key wants and that affect nobody, in the order in which they can go.
pub type Unused<'a> = Vec<(Uuid, &'a Row)>;

/// Adds to `diff` the removal of what is ours, in use, and wanted by no key in `owned`: first the ports of pods that are
/// gone, then what affects the pods that stay. With `at_one_moment`, the second part is never split: it changes for all
/// pods together. With `keeps_ways`, rows of interconnection stay. Returns what may go later; `None`: the transaction is full, and more
/// in use is left.
pub fn collect<'a, 'b>(
    diff: &mut Diff<'_>,
    cache: &'b Cache,
    database: &Database,
    owned: impl Iterator<Item = &'a Owned>,
    world: &World,
    at_one_moment: bool,
    keeps_ways: bool,
) -> Option<Unused<'b>> {
    let wanted = Wanted::of(cache, owned, world, keeps_ways);
    for (switch, port) in wanted.ports_of_gone_pods(cache) {
        if diff.is_full() {
            return None;
        }
        diff.drop_value(ls::TABLE, switch, ls::PORTS.id(), Atom::Uuid(port));
    }
    let mut unused = [Vec::new(), Vec::new()];
    let held = sets_of_nats(cache);
    for table in database.tables {
        for (uuid, row) in cache.iter(table) {
            if wanted.rows.contains(&uuid) {
                wanted.prune(diff, cache, uuid, row);
            } else if !held.contains(&uuid) && wanted.is_left(cache, row) {
                // last: ACLs of groups refer to sets
                if table.id == address_set::TABLE.id {
                    unused[1].push((uuid, row.as_ref()));
                } else if wanted.is_unused(row) {
                    unused[0].push((uuid, row.as_ref()));
                } else if !at_one_moment && diff.is_full() {
                    return None;
                } else {
                    remove(diff, cache, uuid, row);
                }
            }
        }
    }
    Some(unused.concat())
}

/// Address sets to which NAT rules refer. The server refuses to remove them, with all that is removed in the same transaction. We
/// write no such reference, so somebody else did; such a set goes with the first sweep after the reference.
fn sets_of_nats(cache: &Cache) -> HashSet<Uuid> {
    let sets = |row: &Row| [nat::ALLOWED_EXT_IPS, nat::EXEMPTED_EXT_IPS].map(|column| row.uuid(column));
    cache.iter(nat::TABLE).flat_map(|(_, row)| sets(row)).flatten().collect()
}

/// How much is removed, now or with a later transaction of this sweep. What an earlier sweep has removed is not counted again.
pub fn removals(diff: &Diff<'_>, unused: Option<&Unused<'_>>) -> usize {
    let unused = unused.into_iter().flatten().filter(|(_, row)| diff.removes(row));
    diff.removals() + unused.count()
}

/// Adds the removal of as many of these as the transaction has room for. `keeps_ways`: as for [`collect`].
pub fn remove_unused(diff: &mut Diff<'_>, cache: &Cache, unused: &Unused<'_>, keeps_ways: bool) -> Left {
    for (uuid, row) in unused {
        if diff.is_full() {
            return Left::Unused;
        }
        remove(diff, cache, *uuid, row);
    }
    if keeps_ways { Left::Ways } else { Left::Nothing }
}

/// Notes what the database says about all nodes. `stays`: whether a router is wanted.
pub(crate) fn takeover<'a>(cache: &Cache, mut takeover: Takeover<'a>, stays: impl Fn(Uuid) -> bool) -> Takeover<'a> {
    cache.iter(lrp::TABLE).for_each(|(_, row)| takeover.port(row));
    for (uuid, router) in cache.iter(lr::TABLE) {
        if stays(uuid) {
            takeover.router(router);
        }
        let routes = router.uuids(lr::STATIC_ROUTES).filter_map(|uuid| cache.get(route::TABLE, uuid));
        let nats = router.uuids(lr::NAT).filter_map(|uuid| cache.get(nat::TABLE, uuid));
        routes.chain(nats).for_each(|row| takeover.on_gateway(router.str(lr::NAME), row));
    }
    takeover
}

/// Removes a row. A port group with an ACL that stays only loses its others: without the group the server would delete
/// that one too. So a namespace's egress firewall stays although nothing else needs the group.
fn remove(diff: &mut Diff<'_>, cache: &Cache, uuid: Uuid, row: &Row) {
    let is_group = row.table() == port_group::TABLE;
    let acls = row.uuids(port_group::ACLS).filter(|_| is_group);
    let is_anothers = |uuid: &Uuid| cache.get(acl::TABLE, *uuid).is_some_and(|acl| is_anothers_acl(row, acl));
    let (anothers, ours): (Vec<Uuid>, Vec<Uuid>) = acls.partition(is_anothers);
    if anothers.is_empty() {
        diff.delete(row.table(), uuid);
        return;
    }
    for acl in ours {
        diff.drop_value(row.table(), uuid, port_group::ACLS.id(), Atom::Uuid(acl));
    }
}

struct Wanted<'a> {
    rows: HashSet<Uuid>,
    members: HashMap<(Uuid, ColumnId), BTreeSet<Atom>>,
    takeover: Takeover<'a>,
    /// Rows of interconnection stay: it is not known yet what should exist, or not all of that does.
    keeps_joined: bool,
}

impl<'a> Wanted<'a> {
    fn of<'b>(cache: &Cache, owned: impl Iterator<Item = &'b Owned>, world: &'a World, keeps_ways: bool) -> Self {
        let mut wanted = Self {
            rows: HashSet::new(),
            members: HashMap::new(),
            takeover: Takeover::new(&world.settings),
            keeps_joined: keeps_ways || !world.joined.is_known(),
        };
        for owned in owned {
            wanted.rows.extend(owned.rows.iter().filter_map(|key| existing(cache, key)));
            for member in &owned.members {
                let value = match &member.value {
                    MemberValue::Row(key) => existing(cache, key).map(Atom::Uuid),
                    MemberValue::Text(text) => Some(Atom::Str(text.clone())),
                    MemberValue::Entry(entry) => Some(Atom::Str(entry.0.clone())),
                };
                if let (Some(of), Some(value)) = (existing(cache, &member.of), value) {
                    wanted.members.entry((of, member.column)).or_default().insert(value);
                }
            }
        }
        wanted.takeover = takeover(cache, wanted.takeover, |router| wanted.rows.contains(&router));
        wanted
    }

    /// Whether a row that no key wants is ours. Rows outside the root set go with their parent or are pruned from it: nothing
    /// under a foreign switch or router is ours.
    fn is_left(&self, cache: &Cache, row: &Row) -> bool {
        let is_ours = || is_garbage(row, has_router_peer_port(cache, row)) || self.takeover.is_left("", row);
        row.table().is_root && !self.stays(row) && is_ours()
    }

    fn stays(&self, row: &Row) -> bool {
        self.keeps_joined && row.external_ids().get(owner::OWNER_TYPE) == Some(owner::INTERCONNECTION)
    }

    /// Switches of ours and the ports in them that pods had. Without its port a pod is in no port group either.
    fn ports_of_gone_pods<'b>(&'b self, cache: &'b Cache) -> impl Iterator<Item = (Uuid, Uuid)> + 'b {
        let ours = |(uuid, row): &(Uuid, &Row)| self.rows.contains(uuid) || self.is_left(cache, row);
        let is_gone = |port: &Uuid| {
            let row = cache.get(lsp::TABLE, *port);
            !self.rows.contains(port) && row.is_some_and(|row| row.str(lsp::TYPE).is_empty() && is_garbage(row, false))
        };
        let switches = cache.iter(ls::TABLE).map(|(uuid, row)| (uuid, row.as_ref())).filter(ours);
        switches.flat_map(move |(switch, row)| row.uuids(ls::PORTS).filter(is_gone).map(move |port| (switch, port)))
    }

    /// Whether a row of ours that no key wants affects nobody, once what is wanted does not refer to it: a load balancer,
    /// or a port group without ports of pods that stay.
    fn is_unused(&self, row: &Row) -> bool {
        match row.table() {
            table if table == load_balancer::TABLE => true,
            table if table == port_group::TABLE => !row.uuids(port_group::PORTS).any(|port| self.rows.contains(&port)),
            _ => false,
        }
    }

    /// Removes from a wanted row's member columns what no key wants there.
    fn prune(&self, diff: &mut Diff<'_>, cache: &Cache, uuid: Uuid, row: &Row) {
        for column in member_columns(row.table()) {
            let wanted = self.members.get(&(uuid, *column));
            let Some(have) = row.get(*column) else { continue };
            for (variable, _) in have.pairs() {
                let is_ours = variable.as_str().is_some_and(is_our_variable);
                if is_ours && !wanted.is_some_and(|w| w.contains(variable)) {
                    diff.drop_entry(row.table(), uuid, *column, variable);
                }
            }
            for atom in have.atoms() {
                if !wanted.is_some_and(|w| w.contains(atom)) && self.is_own_member(cache, row, *column, atom) {
                    diff.drop_value(row.table(), uuid, *column, atom.clone());
                }
            }
        }
    }

    /// All texts in our rows are ours, and so is all in port groups but foreign ACLs: it decides who may talk to whom.
    /// Any other row is ours if it is wanted elsewhere, has our marks, or was left by ovn-kubernetes: other programs
    /// may add their own ports, load balancers, ACLs and routes to our switches, routers and load balancer groups.
    fn is_own_member(&self, cache: &Cache, row: &Row, column: ColumnId, atom: &Atom) -> bool {
        let Some(child) = atom.as_uuid() else { return true };
        let Some(reference) = row.table().info(column).and_then(|info| info.key.refers) else { return true };
        let have = ovnkube_ovn::nb::DATABASE.table(reference.table).and_then(|table| cache.get(table, child));
        if row.table() == port_group::TABLE {
            return column != port_group::ACLS.id() || have.is_none_or(|acl| !is_anothers_acl(row, acl));
        }
        let Some(have) = have else { return false };
        let name = || identity(row).unwrap_or_default();
        if self.stays(have) {
            return false;
        }
        self.rows.contains(&child) || is_garbage(have, false) || self.takeover.is_left(&name(), have)
    }
}

#[cfg(test)]
mod tests {
    use ovnkube_ovn::nb;

    use super::*;

    #[test]
    fn groups_whose_rows_go_later_are_counted_once() {
        let cache = Cache::new(&nb::DATABASE, ovnkube_plan::identity, |_| false);
        let empty = Row::new(port_group::TABLE);
        let full = Row::new(port_group::TABLE).with(port_group::PORTS, [Uuid::from_u128(9)]);
        let balancer = Row::new(load_balancer::TABLE);
        let unused: Unused<'_> = [&empty, &full, &balancer].map(|row| (Uuid::nil(), row)).into();
        let mut diff = Diff::new(&cache);
        assert_eq!(removals(&diff, Some(&unused)), 3);
        diff.keep_groups();
        assert_eq!(removals(&diff, Some(&unused)), 2);
        assert_eq!(removals(&diff, None), 0);
    }
}
