//! The OVN_IC_Southbound database. Written by `cargo run -p xtask -- codegen`; do not edit.

use crate::row::{Column, kind::{Bool, Int, Map, One, Opt, Set, Str, Uuid}};
use crate::schema::{ColumnId, Database, Table, column};
use crate::value::Kind;

pub static DATABASE: Database = Database {
    name: "OVN_IC_Southbound",
    version: "2.4.0",
    tables: &[
        &availability_zone::DEFINITION,
        &connection::DEFINITION,
        &datapath_binding::DEFINITION,
        &encap::DEFINITION,
        &gateway::DEFINITION,
        &ic_sb_global::DEFINITION,
        &port_binding::DEFINITION,
        &route::DEFINITION,
        &ssl::DEFINITION,
        &service_monitor::DEFINITION,
    ],
};

pub mod availability_zone {
    use super::{Column, ColumnId, Kind, Table, column, Int, One, Str};

    pub const NAME: Column<One<Str>> = Column::new(0);
    pub const NB_IC_CFG: Column<One<Int>> = Column::new(1);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Availability_Zone",
        id: 0,
        is_root: true,
        columns: &[
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("nb_ic_cfg", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(0)]],
    };
}

pub mod connection {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Int, Map, One, Opt, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const INACTIVITY_PROBE: Column<Opt<Int>> = Column::new(1);
    pub const IS_CONNECTED: Column<One<Bool>> = Column::new(2);
    pub const MAX_BACKOFF: Column<Opt<Int>> = Column::new(3);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(4);
    pub const STATUS: Column<Map<Str, Str>> = Column::new(5);
    pub const TARGET: Column<One<Str>> = Column::new(6);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Connection",
        id: 1,
        is_root: false,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("inactivity_probe", (Kind::Int, None), (0, 1), None, false),
            column("is_connected", (Kind::Bool, None), (1, 1), None, false),
            column("max_backoff", (Kind::Int, None), (0, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("target", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(6)]],
    };
}

pub mod datapath_binding {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const NB_IC_UUID: Column<Opt<Uuid>> = Column::new(1);
    pub const TRANSIT_SWITCH: Column<One<Str>> = Column::new(2);
    pub const TUNNEL_KEY: Column<One<Int>> = Column::new(3);
    pub const TYPE: Column<Opt<Str>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Datapath_Binding",
        id: 2,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("nb_ic_uuid", (Kind::Uuid, None), (0, 1), None, false),
            column("transit_switch", (Kind::Str, None), (1, 1), None, false),
            column("tunnel_key", (Kind::Int, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (0, 1), None, true),
        ],
        indexes: &[&[ColumnId(1), ColumnId(3)]],
    };
}

pub mod encap {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Str};

    pub const GATEWAY_NAME: Column<One<Str>> = Column::new(0);
    pub const IP: Column<One<Str>> = Column::new(1);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(2);
    pub const TYPE: Column<One<Str>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Encap",
        id: 3,
        is_root: false,
        columns: &[
            column("gateway_name", (Kind::Str, None), (1, 1), None, false),
            column("ip", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("type", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[&[ColumnId(3), ColumnId(1)]],
    };
}

pub mod gateway {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Set, Str, Uuid};

    pub const AVAILABILITY_ZONE: Column<One<Uuid>> = Column::new(0);
    pub const ENCAPS: Column<Set<Uuid>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const HOSTNAME: Column<One<Str>> = Column::new(3);
    pub const NAME: Column<One<Str>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Gateway",
        id: 4,
        is_root: true,
        columns: &[
            column("availability_zone", (Kind::Uuid, Some(("Availability_Zone", true))), (1, 1), None, false),
            column("encaps", (Kind::Uuid, Some(("Encap", true))), (1, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("hostname", (Kind::Str, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(4)]],
    };
}

pub mod ic_sb_global {
    use super::{Column, Kind, Table, column, Int, Map, One, Opt, Set, Str, Uuid};

    pub const CONNECTIONS: Column<Set<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const NB_IC_CFG: Column<One<Int>> = Column::new(2);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(3);
    pub const SSL: Column<Opt<Uuid>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "IC_SB_Global",
        id: 5,
        is_root: true,
        columns: &[
            column("connections", (Kind::Uuid, Some(("Connection", true))), (0, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("nb_ic_cfg", (Kind::Int, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ssl", (Kind::Uuid, Some(("SSL", true))), (0, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod port_binding {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const ADDRESS: Column<One<Str>> = Column::new(0);
    pub const AVAILABILITY_ZONE: Column<One<Uuid>> = Column::new(1);
    pub const ENCAP: Column<Opt<Uuid>> = Column::new(2);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(3);
    pub const GATEWAY: Column<One<Str>> = Column::new(4);
    pub const LOGICAL_PORT: Column<One<Str>> = Column::new(5);
    pub const NB_IC_UUID: Column<Opt<Uuid>> = Column::new(6);
    pub const TRANSIT_SWITCH: Column<One<Str>> = Column::new(7);
    pub const TUNNEL_KEY: Column<One<Int>> = Column::new(8);
    pub const TYPE: Column<Opt<Str>> = Column::new(9);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Port_Binding",
        id: 6,
        is_root: true,
        columns: &[
            column("address", (Kind::Str, None), (1, 1), None, false),
            column("availability_zone", (Kind::Uuid, Some(("Availability_Zone", true))), (1, 1), None, false),
            column("encap", (Kind::Uuid, Some(("Encap", false))), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("gateway", (Kind::Str, None), (1, 1), None, false),
            column("logical_port", (Kind::Str, None), (1, 1), None, false),
            column("nb_ic_uuid", (Kind::Uuid, None), (0, 1), None, false),
            column("transit_switch", (Kind::Str, None), (1, 1), None, false),
            column("tunnel_key", (Kind::Int, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (0, 1), None, true),
        ],
        indexes: &[&[ColumnId(7), ColumnId(8)], &[ColumnId(5)]],
    };
}

pub mod route {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Str, Uuid};

    pub const AVAILABILITY_ZONE: Column<One<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const IP_PREFIX: Column<One<Str>> = Column::new(2);
    pub const NEXTHOP: Column<One<Str>> = Column::new(3);
    pub const ORIGIN: Column<One<Str>> = Column::new(4);
    pub const ROUTE_TABLE: Column<One<Str>> = Column::new(5);
    pub const TRANSIT_SWITCH: Column<One<Str>> = Column::new(6);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Route",
        id: 7,
        is_root: true,
        columns: &[
            column("availability_zone", (Kind::Uuid, Some(("Availability_Zone", true))), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ip_prefix", (Kind::Str, None), (1, 1), None, false),
            column("nexthop", (Kind::Str, None), (1, 1), None, false),
            column("origin", (Kind::Str, None), (1, 1), None, true),
            column("route_table", (Kind::Str, None), (1, 1), None, false),
            column("transit_switch", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(6), ColumnId(0), ColumnId(5), ColumnId(2), ColumnId(3)]],
    };
}

pub mod ssl {
    use super::{Column, Kind, Table, column, Bool, Map, One, Str};

    pub const BOOTSTRAP_CA_CERT: Column<One<Bool>> = Column::new(0);
    pub const CA_CERT: Column<One<Str>> = Column::new(1);
    pub const CERTIFICATE: Column<One<Str>> = Column::new(2);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(3);
    pub const PRIVATE_KEY: Column<One<Str>> = Column::new(4);
    pub const SSL_CIPHERS: Column<One<Str>> = Column::new(5);
    pub const SSL_CIPHERSUITES: Column<One<Str>> = Column::new(6);
    pub const SSL_PROTOCOLS: Column<One<Str>> = Column::new(7);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "SSL",
        id: 8,
        is_root: false,
        columns: &[
            column("bootstrap_ca_cert", (Kind::Bool, None), (1, 1), None, false),
            column("ca_cert", (Kind::Str, None), (1, 1), None, false),
            column("certificate", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("private_key", (Kind::Str, None), (1, 1), None, false),
            column("ssl_ciphers", (Kind::Str, None), (1, 1), None, false),
            column("ssl_ciphersuites", (Kind::Str, None), (1, 1), None, false),
            column("ssl_protocols", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod service_monitor {
    use super::{Column, Kind, Table, column, Int, Map, One, Opt, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const IP: Column<One<Str>> = Column::new(1);
    pub const LOGICAL_PORT: Column<One<Str>> = Column::new(2);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(3);
    pub const PORT: Column<One<Int>> = Column::new(4);
    pub const PROTOCOL: Column<Opt<Str>> = Column::new(5);
    pub const SOURCE_AVAILABILITY_ZONE: Column<One<Str>> = Column::new(6);
    pub const SRC_IP: Column<One<Str>> = Column::new(7);
    pub const SRC_MAC: Column<One<Str>> = Column::new(8);
    pub const STATUS: Column<Opt<Str>> = Column::new(9);
    pub const TARGET_AVAILABILITY_ZONE: Column<One<Str>> = Column::new(10);
    pub const TYPE: Column<Opt<Str>> = Column::new(11);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Service_Monitor",
        id: 9,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ip", (Kind::Str, None), (1, 1), None, false),
            column("logical_port", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("port", (Kind::Int, None), (1, 1), None, false),
            column("protocol", (Kind::Str, None), (0, 1), None, true),
            column("source_availability_zone", (Kind::Str, None), (1, 1), None, false),
            column("src_ip", (Kind::Str, None), (1, 1), None, false),
            column("src_mac", (Kind::Str, None), (1, 1), None, false),
            column("status", (Kind::Str, None), (0, 1), None, true),
            column("target_availability_zone", (Kind::Str, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (0, 1), None, true),
        ],
        indexes: &[],
    };
}
