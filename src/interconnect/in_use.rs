//! What this cluster has in use of the others' rows, as its own databases say. The shared ones are no proof of it: whoever writes there
//! chooses names, times and keys.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::Subnet;
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{logical_router_static_route as static_route, logical_switch_port as lsp};
use ovnkube_ovn::sb::chassis;
use ovnkube_ovsdb_data::Cache;

use crate::rows::is_ours;

/// Whether NB has a port of another cluster.
pub(crate) fn has_port(nb: &Cache, name: &str) -> bool {
    nb.named(lsp::TABLE, name).any(|(_, row)| row.str(lsp::TYPE) == "remote")
}

/// The others' gateways in SB.
pub(crate) fn gateways(sb: &Cache) -> BTreeSet<&str> {
    let ours = sb.iter(chassis::TABLE).filter(|(_, row)| is_ours(row));
    ours.map(|(_, row)| row.str(chassis::NAME)).collect()
}

/// The routes in NB: prefixes by next hop.
pub(crate) fn routes(nb: &Cache) -> BTreeMap<IpAddr, BTreeSet<Subnet>> {
    let mut routes: BTreeMap<IpAddr, BTreeSet<Subnet>> = BTreeMap::new();
    let ours = nb.iter(static_route::TABLE).filter(|(_, row)| is_ours(row));
    for (prefix, next_hop) in ours.filter_map(|(_, row)| way(row)) {
        routes.entry(next_hop).or_default().insert(prefix);
    }
    routes
}

/// Prefix and next hop of a route in NB.
pub(crate) fn way(row: &Row) -> Option<(Subnet, IpAddr)> {
    let prefix: IpNetwork = row.str(static_route::IP_PREFIX).parse().ok()?;
    Some((Subnet::of(prefix), row.str(static_route::NEXTHOP).parse().ok()?))
}
