//! The rows of zones in IC-SB, and whose they are.

use ovnkube_ovn::ic_sb::{availability_zone, gateway, port_binding, route};
use ovnkube_ovn::{Row, Table, Uuid, owner};
use ovnkube_ovsdb_data::Cache;

/// External id that says which cluster a row is of: two clusters may be given the same name.
pub(crate) const CLUSTER: &str = "ovnkube-cluster";

/// External id of gateways, ports and routes: when their cluster made them, in seconds since 1970.
const SINCE: &str = "ovnkube-since";

/// How long others may take to make tunnels to a gateway, and OVN to see by BFD that they work, seconds.
const FOLLOWED_AFTER: u64 = 6;

/// The external ids of a row of a cluster. One that is there keeps its time, and one of an earlier release has none.
pub(crate) fn marks(cluster: &str, have: Option<&Row>, now: u64) -> Vec<(&'static str, String)> {
    let since = match have {
        Some(row) => row.external_ids().get(SINCE).map(str::to_owned),
        None => Some(now.to_string()),
    };
    [(CLUSTER, cluster.to_owned())].into_iter().chain(since.map(|since| (SINCE, since))).collect()
}

/// Whether a row of a cluster has its marks, one more external id, and no others.
pub(crate) fn has_marks(row: &Row, cluster: &str, (key, value): (&str, &str)) -> bool {
    let ids = row.external_ids();
    let known = 2 + usize::from(ids.get(SINCE).is_some());
    ids.get(CLUSTER) == Some(cluster) && ids.get(key) == Some(value) && ids.len() == known
}

/// When its cluster made a row, as far as that is known.
pub(crate) fn since(row: &Row) -> Option<u64> {
    row.external_ids().get(SINCE)?.parse().ok()
}

/// Whether its cluster has made a row just now: others may not have followed. A time that is to come is a clock's fault.
pub(crate) fn is_new(row: &Row, now: u64) -> bool {
    since(row).and_then(|since| now.checked_sub(since)).is_some_and(|age| age < FOLLOWED_AFTER)
}

pub(crate) fn zone_of(ic_sb: &Cache, name: &str) -> Option<Uuid> {
    let mut zones = ic_sb.iter(availability_zone::TABLE);
    zones.find(|(_, row)| row.str(availability_zone::NAME) == name).map(|(uuid, _)| uuid)
}

/// The rows of all zones, each with its zone.
pub(crate) fn rows_of_all(ic_sb: &Cache) -> impl Iterator<Item = (Uuid, &Row, Option<Uuid>)> {
    let tables: [&Table; 3] = [gateway::TABLE, port_binding::TABLE, route::TABLE];
    let rows = move |table| ic_sb.iter(table).map(move |(uuid, row)| (uuid, row.as_ref(), zone_of_row(row)));
    tables.into_iter().flat_map(rows)
}

/// The zone that a gateway, port or route is in.
pub(crate) fn zone_of_row(row: &Row) -> Option<Uuid> {
    row.uuid(match row.table() {
        table if table == gateway::TABLE => gateway::AVAILABILITY_ZONE,
        table if table == port_binding::TABLE => port_binding::AVAILABILITY_ZONE,
        _ => route::AVAILABILITY_ZONE,
    })
}

/// Whether a row is marked as a cluster's.
pub(crate) fn is_of(row: &Row, cluster: &str) -> bool {
    row.external_ids().get(CLUSTER) == Some(cluster)
}

/// Whether a row of NB or SB is the interconnection's.
pub(crate) fn is_ours(row: &Row) -> bool {
    row.external_ids().get(owner::OWNER_TYPE) == Some(owner::INTERCONNECTION)
}
