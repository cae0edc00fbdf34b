//! The rows of zones in IC-SB, and whose they are.

use ovnkube_ovn::ic_sb::{availability_zone, gateway, port_binding, route};
use ovnkube_ovn::{Row, Table, Uuid};
use ovnkube_ovsdb_data::Cache;

/// External id that says which cluster a row is of: two clusters may be given the same name.
pub(crate) const CLUSTER: &str = "ovnkube-cluster";

/// The zone with a name.
pub(crate) fn zone_of(ic_sb: &Cache, name: &str) -> Option<Uuid> {
    let mut zones = ic_sb.iter(availability_zone::TABLE);
    zones.find(|(_, row)| row.str(availability_zone::NAME) == name).map(|(uuid, _)| uuid)
}

/// The rows of all zones, each with its zone.
pub(crate) fn rows_of_all(ic_sb: &Cache) -> impl Iterator<Item = (Uuid, &Row, Option<Uuid>)> {
    let tables: [(&Table, _); 3] = [
        (gateway::TABLE, gateway::AVAILABILITY_ZONE),
        (port_binding::TABLE, port_binding::AVAILABILITY_ZONE),
        (route::TABLE, route::AVAILABILITY_ZONE),
    ];
    let rows = move |(table, column)| ic_sb.iter(table).map(move |(uuid, row)| (uuid, row.as_ref(), row.uuid(column)));
    tables.into_iter().flat_map(rows)
}

/// Whether a row is marked as a cluster's.
pub(crate) fn is_of(row: &Row, cluster: &str) -> bool {
    row.external_ids().get(CLUSTER) == Some(cluster)
}
