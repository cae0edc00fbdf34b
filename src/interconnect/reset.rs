//! Removes all that this cluster has of the interconnection, so that it is made anew.

use ovnkube_ovn::nb::{
    self, logical_router as lr, logical_router_policy as policy, logical_router_port as lrp,
    logical_router_static_route as route, logical_switch as ls,
};
use ovnkube_ovn::{Atom, ColumnId, Datum, Table, Uuid};
use ovnkube_ovsdb_data::{Cache, Txn};
use ovnkube_plan::{Offer, names};

use crate::databases::Databases;
use crate::ours::Ours;
use crate::rows::is_ours;
use crate::text::count;

/// Refuses if rows of this name are another cluster's: without its own, this cluster would not come back.
pub fn may_reset(offer: &Offer, databases: Databases<'_>) -> Result<(), String> {
    Ours::find(offer, databases)?.intruders().map_or(Ok(()), Err)
}

/// What removes the transit switches and the ways to other clusters from the northbound database, and what that is in words. Routes
/// that people wrote stay.
pub fn local(nb: &Cache) -> (Txn, String) {
    let mut txn = Txn::new(&nb::DATABASE);
    let ours = |table: &'static Table| {
        nb.iter(table).filter(|(_, row)| is_ours(row)).map(|(uuid, _)| uuid).collect::<Vec<Uuid>>()
    };
    let switches = ours(ls::TABLE);
    for uuid in &switches {
        txn.delete(ls::TABLE, *uuid);
    }
    let mut counts = vec![count(switches.len(), "transit switch")];
    let router = nb.iter(lr::TABLE).find(|(_, row)| row.str(lr::NAME) == names::CLUSTER_ROUTER);
    let members: [(&'static Table, ColumnId, &str); 3] = [
        (lrp::TABLE, lr::PORTS.id(), "router port"),
        (route::TABLE, lr::STATIC_ROUTES.id(), "route"),
        (policy::TABLE, lr::POLICIES.id(), "policy"),
    ];
    for (table, column, what) in members {
        let gone = ours(table);
        counts.push(count(gone.len(), what));
        if let Some((router, _)) = router.filter(|_| !gone.is_empty()) {
            txn.remove_from(lr::TABLE, router, column, Datum::set(gone.into_iter().map(Atom::Uuid)));
        }
    }
    (txn, counts.join(", "))
}
