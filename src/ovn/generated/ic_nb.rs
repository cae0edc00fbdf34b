//! The OVN_IC_Northbound database. Written by `cargo run -p xtask -- codegen`; do not edit.

use crate::row::{Column, kind::{Bool, Int, Map, One, Opt, Set, Str, Uuid}};
use crate::schema::{ColumnId, Database, Table, column};
use crate::value::Kind;

pub static DATABASE: Database = Database {
    name: "OVN_IC_Northbound",
    version: "1.3.0",
    tables: &[
        &connection::DEFINITION,
        &ic_nb_global::DEFINITION,
        &ssl::DEFINITION,
        &transit_router::DEFINITION,
        &transit_router_port::DEFINITION,
        &transit_switch::DEFINITION,
    ],
};

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
        id: 0,
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

pub mod ic_nb_global {
    use super::{Column, Kind, Table, column, Int, Map, One, Opt, Set, Str, Uuid};

    pub const CONNECTIONS: Column<Set<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const NB_IC_CFG: Column<One<Int>> = Column::new(2);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(3);
    pub const SB_IC_CFG: Column<One<Int>> = Column::new(4);
    pub const SSL: Column<Opt<Uuid>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "IC_NB_Global",
        id: 1,
        is_root: true,
        columns: &[
            column("connections", (Kind::Uuid, Some(("Connection", true))), (0, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("nb_ic_cfg", (Kind::Int, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("sb_ic_cfg", (Kind::Int, None), (1, 1), None, false),
            column("ssl", (Kind::Uuid, Some(("SSL", true))), (0, 1), None, false),
        ],
        indexes: &[],
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
        id: 2,
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

pub mod transit_router {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Set, Str, Uuid};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const NAME: Column<One<Str>> = Column::new(1);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(2);
    pub const PORTS: Column<Set<Uuid>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Transit_Router",
        id: 3,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ports", (Kind::Uuid, Some(("Transit_Router_Port", true))), (0, u32::MAX), None, false),
        ],
        indexes: &[&[ColumnId(1)]],
    };
}

pub mod transit_router_port {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Set, Str, Uuid};

    pub const CHASSIS: Column<One<Str>> = Column::new(0);
    pub const MAC: Column<One<Str>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);
    pub const NETWORKS: Column<Set<Str>> = Column::new(3);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(4);
    pub const TR_UUID: Column<One<Uuid>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Transit_Router_Port",
        id: 4,
        is_root: false,
        columns: &[
            column("chassis", (Kind::Str, None), (1, 1), None, false),
            column("mac", (Kind::Str, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("networks", (Kind::Str, None), (0, u32::MAX), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("tr_uuid", (Kind::Uuid, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod transit_switch {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const NAME: Column<One<Str>> = Column::new(1);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Transit_Switch",
        id: 5,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
        ],
        indexes: &[&[ColumnId(1)]],
    };
}
