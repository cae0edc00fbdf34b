//! The OVN_Northbound database. Written by `cargo run -p xtask -- codegen`; do not edit.

use crate::row::{Column, kind::{Bool, Int, Map, One, Opt, Set, Str, Uuid}};
use crate::schema::{ColumnId, Database, Table, column};
use crate::value::Kind;

pub static DATABASE: Database = Database {
    name: "OVN_Northbound",
    version: "7.11.0",
    tables: &[
        &acl::DEFINITION,
        &address_set::DEFINITION,
        &bfd::DEFINITION,
        &chassis_template_var::DEFINITION,
        &connection::DEFINITION,
        &copp::DEFINITION,
        &dhcp_options::DEFINITION,
        &dhcp_relay::DEFINITION,
        &dns::DEFINITION,
        &forwarding_group::DEFINITION,
        &gateway_chassis::DEFINITION,
        &ha_chassis::DEFINITION,
        &ha_chassis_group::DEFINITION,
        &load_balancer::DEFINITION,
        &load_balancer_group::DEFINITION,
        &load_balancer_health_check::DEFINITION,
        &logical_router::DEFINITION,
        &logical_router_policy::DEFINITION,
        &logical_router_port::DEFINITION,
        &logical_router_static_route::DEFINITION,
        &logical_switch::DEFINITION,
        &logical_switch_port::DEFINITION,
        &meter::DEFINITION,
        &meter_band::DEFINITION,
        &mirror::DEFINITION,
        &nat::DEFINITION,
        &nb_global::DEFINITION,
        &port_group::DEFINITION,
        &qos::DEFINITION,
        &ssl::DEFINITION,
        &sample::DEFINITION,
        &sample_collector::DEFINITION,
        &sampling_app::DEFINITION,
        &static_mac_binding::DEFINITION,
    ],
};

pub mod acl {
    use super::{Column, Kind, Table, column, Bool, Int, Map, One, Opt, Str, Uuid};

    pub const ACTION: Column<One<Str>> = Column::new(0);
    pub const DIRECTION: Column<One<Str>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const LABEL: Column<One<Int>> = Column::new(3);
    pub const LOG: Column<One<Bool>> = Column::new(4);
    pub const MATCH: Column<One<Str>> = Column::new(5);
    pub const METER: Column<Opt<Str>> = Column::new(6);
    pub const NAME: Column<Opt<Str>> = Column::new(7);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(8);
    pub const PRIORITY: Column<One<Int>> = Column::new(9);
    pub const SAMPLE_EST: Column<Opt<Uuid>> = Column::new(10);
    pub const SAMPLE_NEW: Column<Opt<Uuid>> = Column::new(11);
    pub const SEVERITY: Column<Opt<Str>> = Column::new(12);
    pub const TIER: Column<One<Int>> = Column::new(13);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "ACL",
        id: 0,
        is_root: false,
        columns: &[
            column("action", (Kind::Str, None), (1, 1), None, true),
            column("direction", (Kind::Str, None), (1, 1), None, true),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("label", (Kind::Int, None), (1, 1), None, false),
            column("log", (Kind::Bool, None), (1, 1), None, false),
            column("match", (Kind::Str, None), (1, 1), None, false),
            column("meter", (Kind::Str, None), (0, 1), None, false),
            column("name", (Kind::Str, None), (0, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("priority", (Kind::Int, None), (1, 1), None, false),
            column("sample_est", (Kind::Uuid, Some(("Sample", true))), (0, 1), None, false),
            column("sample_new", (Kind::Uuid, Some(("Sample", true))), (0, 1), None, false),
            column("severity", (Kind::Str, None), (0, 1), None, true),
            column("tier", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod address_set {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Set, Str};

    pub const ADDRESSES: Column<Set<Str>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Address_Set",
        id: 1,
        is_root: true,
        columns: &[
            column("addresses", (Kind::Str, None), (0, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod bfd {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Opt, Str};

    pub const DETECT_MULT: Column<Opt<Int>> = Column::new(0);
    pub const DST_IP: Column<One<Str>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const LOGICAL_PORT: Column<One<Str>> = Column::new(3);
    pub const MIN_RX: Column<Opt<Int>> = Column::new(4);
    pub const MIN_TX: Column<Opt<Int>> = Column::new(5);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(6);
    pub const STATUS: Column<Opt<Str>> = Column::new(7);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "BFD",
        id: 2,
        is_root: true,
        columns: &[
            column("detect_mult", (Kind::Int, None), (0, 1), None, false),
            column("dst_ip", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("logical_port", (Kind::Str, None), (1, 1), None, false),
            column("min_rx", (Kind::Int, None), (0, 1), None, false),
            column("min_tx", (Kind::Int, None), (0, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("status", (Kind::Str, None), (0, 1), None, true),
        ],
        indexes: &[&[ColumnId(3), ColumnId(1)]],
    };
}

pub mod chassis_template_var {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Str};

    pub const CHASSIS: Column<One<Str>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const VARIABLES: Column<Map<Str, Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Chassis_Template_Var",
        id: 3,
        is_root: true,
        columns: &[
            column("chassis", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("variables", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
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
        id: 4,
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

pub mod copp {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const METERS: Column<Map<Str, Str>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Copp",
        id: 5,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("meters", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod dhcp_options {
    use super::{Column, Kind, Table, column, Map, One, Str};

    pub const CIDR: Column<One<Str>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "DHCP_Options",
        id: 6,
        is_root: true,
        columns: &[
            column("cidr", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
        ],
        indexes: &[],
    };
}

pub mod dhcp_relay {
    use super::{Column, Kind, Table, column, Map, One, Opt, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const NAME: Column<One<Str>> = Column::new(1);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(2);
    pub const SERVERS: Column<Opt<Str>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "DHCP_Relay",
        id: 7,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("servers", (Kind::Str, None), (0, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod dns {
    use super::{Column, Kind, Table, column, Map, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(1);
    pub const RECORDS: Column<Map<Str, Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "DNS",
        id: 8,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("records", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
        ],
        indexes: &[],
    };
}

pub mod forwarding_group {
    use super::{Column, Kind, Table, column, Bool, Map, One, Set, Str};

    pub const CHILD_PORT: Column<Set<Str>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const LIVENESS: Column<One<Bool>> = Column::new(2);
    pub const NAME: Column<One<Str>> = Column::new(3);
    pub const VIP: Column<One<Str>> = Column::new(4);
    pub const VMAC: Column<One<Str>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Forwarding_Group",
        id: 9,
        is_root: false,
        columns: &[
            column("child_port", (Kind::Str, None), (1, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("liveness", (Kind::Bool, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("vip", (Kind::Str, None), (1, 1), None, false),
            column("vmac", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod gateway_chassis {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Str};

    pub const CHASSIS_NAME: Column<One<Str>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(3);
    pub const PRIORITY: Column<One<Int>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Gateway_Chassis",
        id: 10,
        is_root: false,
        columns: &[
            column("chassis_name", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("priority", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod ha_chassis {
    use super::{Column, Kind, Table, column, Int, Map, One, Str};

    pub const CHASSIS_NAME: Column<One<Str>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const PRIORITY: Column<One<Int>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "HA_Chassis",
        id: 11,
        is_root: false,
        columns: &[
            column("chassis_name", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("priority", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod ha_chassis_group {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Set, Str, Uuid};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const HA_CHASSIS: Column<Set<Uuid>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "HA_Chassis_Group",
        id: 12,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ha_chassis", (Kind::Uuid, Some(("HA_Chassis", true))), (0, u32::MAX), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod load_balancer {
    use super::{Column, Kind, Table, column, Map, One, Opt, Set, Str, Uuid};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const HEALTH_CHECK: Column<Set<Uuid>> = Column::new(1);
    pub const IP_PORT_MAPPINGS: Column<Map<Str, Str>> = Column::new(2);
    pub const NAME: Column<One<Str>> = Column::new(3);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(4);
    pub const PROTOCOL: Column<Opt<Str>> = Column::new(5);
    pub const SELECTION_FIELDS: Column<Set<Str>> = Column::new(6);
    pub const VIPS: Column<Map<Str, Str>> = Column::new(7);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Load_Balancer",
        id: 13,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("health_check", (Kind::Uuid, Some(("Load_Balancer_Health_Check", true))), (0, u32::MAX), None, false),
            column("ip_port_mappings", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("protocol", (Kind::Str, None), (0, 1), None, true),
            column("selection_fields", (Kind::Str, None), (0, u32::MAX), None, true),
            column("vips", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
        ],
        indexes: &[],
    };
}

pub mod load_balancer_group {
    use super::{Column, ColumnId, Kind, Table, column, One, Set, Str, Uuid};

    pub const LOAD_BALANCER: Column<Set<Uuid>> = Column::new(0);
    pub const NAME: Column<One<Str>> = Column::new(1);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Load_Balancer_Group",
        id: 14,
        is_root: true,
        columns: &[
            column("load_balancer", (Kind::Uuid, Some(("Load_Balancer", false))), (0, u32::MAX), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(1)]],
    };
}

pub mod load_balancer_health_check {
    use super::{Column, Kind, Table, column, Map, One, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(1);
    pub const VIP: Column<One<Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Load_Balancer_Health_Check",
        id: 15,
        is_root: false,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("vip", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod logical_router {
    use super::{Column, Kind, Table, column, Bool, Map, One, Opt, Set, Str, Uuid};

    pub const COPP: Column<Opt<Uuid>> = Column::new(0);
    pub const ENABLED: Column<Opt<Bool>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const LOAD_BALANCER: Column<Set<Uuid>> = Column::new(3);
    pub const LOAD_BALANCER_GROUP: Column<Set<Uuid>> = Column::new(4);
    pub const NAME: Column<One<Str>> = Column::new(5);
    pub const NAT: Column<Set<Uuid>> = Column::new(6);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(7);
    pub const POLICIES: Column<Set<Uuid>> = Column::new(8);
    pub const PORTS: Column<Set<Uuid>> = Column::new(9);
    pub const STATIC_ROUTES: Column<Set<Uuid>> = Column::new(10);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Logical_Router",
        id: 16,
        is_root: true,
        columns: &[
            column("copp", (Kind::Uuid, Some(("Copp", false))), (0, 1), None, false),
            column("enabled", (Kind::Bool, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("load_balancer", (Kind::Uuid, Some(("Load_Balancer", false))), (0, u32::MAX), None, false),
            column("load_balancer_group", (Kind::Uuid, Some(("Load_Balancer_Group", true))), (0, u32::MAX), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("nat", (Kind::Uuid, Some(("NAT", true))), (0, u32::MAX), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("policies", (Kind::Uuid, Some(("Logical_Router_Policy", true))), (0, u32::MAX), None, false),
            column("ports", (Kind::Uuid, Some(("Logical_Router_Port", true))), (0, u32::MAX), None, false),
            column("static_routes", (Kind::Uuid, Some(("Logical_Router_Static_Route", true))), (0, u32::MAX), None, false),
        ],
        indexes: &[],
    };
}

pub mod logical_router_policy {
    use super::{Column, Kind, Table, column, Int, Map, One, Opt, Set, Str, Uuid};

    pub const ACTION: Column<One<Str>> = Column::new(0);
    pub const BFD_SESSIONS: Column<Set<Uuid>> = Column::new(1);
    pub const CHAIN: Column<Opt<Str>> = Column::new(2);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(3);
    pub const JUMP_CHAIN: Column<Opt<Str>> = Column::new(4);
    pub const MATCH: Column<One<Str>> = Column::new(5);
    pub const NEXTHOP: Column<Opt<Str>> = Column::new(6);
    pub const NEXTHOPS: Column<Set<Str>> = Column::new(7);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(8);
    pub const PRIORITY: Column<One<Int>> = Column::new(9);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Logical_Router_Policy",
        id: 17,
        is_root: false,
        columns: &[
            column("action", (Kind::Str, None), (1, 1), None, true),
            column("bfd_sessions", (Kind::Uuid, Some(("BFD", false))), (0, u32::MAX), None, false),
            column("chain", (Kind::Str, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("jump_chain", (Kind::Str, None), (0, 1), None, false),
            column("match", (Kind::Str, None), (1, 1), None, false),
            column("nexthop", (Kind::Str, None), (0, 1), None, false),
            column("nexthops", (Kind::Str, None), (0, u32::MAX), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("priority", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod logical_router_port {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Map, One, Opt, Set, Str, Uuid};

    pub const DHCP_RELAY: Column<Opt<Uuid>> = Column::new(0);
    pub const ENABLED: Column<Opt<Bool>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const GATEWAY_CHASSIS: Column<Set<Uuid>> = Column::new(3);
    pub const HA_CHASSIS_GROUP: Column<Opt<Uuid>> = Column::new(4);
    pub const IPV6_PREFIX: Column<Set<Str>> = Column::new(5);
    pub const IPV6_RA_CONFIGS: Column<Map<Str, Str>> = Column::new(6);
    pub const MAC: Column<One<Str>> = Column::new(7);
    pub const NAME: Column<One<Str>> = Column::new(8);
    pub const NETWORKS: Column<Set<Str>> = Column::new(9);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(10);
    pub const PEER: Column<Opt<Str>> = Column::new(11);
    pub const STATUS: Column<Map<Str, Str>> = Column::new(12);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Logical_Router_Port",
        id: 18,
        is_root: false,
        columns: &[
            column("dhcp_relay", (Kind::Uuid, Some(("DHCP_Relay", true))), (0, 1), None, false),
            column("enabled", (Kind::Bool, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("gateway_chassis", (Kind::Uuid, Some(("Gateway_Chassis", true))), (0, u32::MAX), None, false),
            column("ha_chassis_group", (Kind::Uuid, Some(("HA_Chassis_Group", true))), (0, 1), None, false),
            column("ipv6_prefix", (Kind::Str, None), (0, u32::MAX), None, false),
            column("ipv6_ra_configs", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("mac", (Kind::Str, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("networks", (Kind::Str, None), (0, u32::MAX), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("peer", (Kind::Str, None), (0, 1), None, false),
            column("status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
        ],
        indexes: &[&[ColumnId(8)]],
    };
}

pub mod logical_router_static_route {
    use super::{Column, Kind, Table, column, Map, One, Opt, Set, Str, Uuid};

    pub const BFD: Column<Opt<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const IP_PREFIX: Column<One<Str>> = Column::new(2);
    pub const NEXTHOP: Column<One<Str>> = Column::new(3);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(4);
    pub const OUTPUT_PORT: Column<Opt<Str>> = Column::new(5);
    pub const POLICY: Column<Opt<Str>> = Column::new(6);
    pub const ROUTE_TABLE: Column<One<Str>> = Column::new(7);
    pub const SELECTION_FIELDS: Column<Set<Str>> = Column::new(8);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Logical_Router_Static_Route",
        id: 19,
        is_root: false,
        columns: &[
            column("bfd", (Kind::Uuid, Some(("BFD", false))), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ip_prefix", (Kind::Str, None), (1, 1), None, false),
            column("nexthop", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("output_port", (Kind::Str, None), (0, 1), None, false),
            column("policy", (Kind::Str, None), (0, 1), None, true),
            column("route_table", (Kind::Str, None), (1, 1), None, false),
            column("selection_fields", (Kind::Str, None), (0, u32::MAX), None, true),
        ],
        indexes: &[],
    };
}

pub mod logical_switch {
    use super::{Column, Kind, Table, column, Map, One, Opt, Set, Str, Uuid};

    pub const ACLS: Column<Set<Uuid>> = Column::new(0);
    pub const COPP: Column<Opt<Uuid>> = Column::new(1);
    pub const DNS_RECORDS: Column<Set<Uuid>> = Column::new(2);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(3);
    pub const FORWARDING_GROUPS: Column<Set<Uuid>> = Column::new(4);
    pub const LOAD_BALANCER: Column<Set<Uuid>> = Column::new(5);
    pub const LOAD_BALANCER_GROUP: Column<Set<Uuid>> = Column::new(6);
    pub const NAME: Column<One<Str>> = Column::new(7);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(8);
    pub const PORTS: Column<Set<Uuid>> = Column::new(9);
    pub const QOS_RULES: Column<Set<Uuid>> = Column::new(10);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Logical_Switch",
        id: 20,
        is_root: true,
        columns: &[
            column("acls", (Kind::Uuid, Some(("ACL", true))), (0, u32::MAX), None, false),
            column("copp", (Kind::Uuid, Some(("Copp", false))), (0, 1), None, false),
            column("dns_records", (Kind::Uuid, Some(("DNS", false))), (0, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("forwarding_groups", (Kind::Uuid, Some(("Forwarding_Group", true))), (0, u32::MAX), None, false),
            column("load_balancer", (Kind::Uuid, Some(("Load_Balancer", false))), (0, u32::MAX), None, false),
            column("load_balancer_group", (Kind::Uuid, Some(("Load_Balancer_Group", true))), (0, u32::MAX), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ports", (Kind::Uuid, Some(("Logical_Switch_Port", true))), (0, u32::MAX), None, false),
            column("qos_rules", (Kind::Uuid, Some(("QoS", true))), (0, u32::MAX), None, false),
        ],
        indexes: &[],
    };
}

pub mod logical_switch_port {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str, Uuid};

    pub const ADDRESSES: Column<Set<Str>> = Column::new(0);
    pub const DHCPV4_OPTIONS: Column<Opt<Uuid>> = Column::new(1);
    pub const DHCPV6_OPTIONS: Column<Opt<Uuid>> = Column::new(2);
    pub const DYNAMIC_ADDRESSES: Column<Opt<Str>> = Column::new(3);
    pub const ENABLED: Column<Opt<Bool>> = Column::new(4);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(5);
    pub const HA_CHASSIS_GROUP: Column<Opt<Uuid>> = Column::new(6);
    pub const MIRROR_RULES: Column<Set<Uuid>> = Column::new(7);
    pub const NAME: Column<One<Str>> = Column::new(8);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(9);
    pub const PARENT_NAME: Column<Opt<Str>> = Column::new(10);
    pub const PEER: Column<Opt<Str>> = Column::new(11);
    pub const PORT_SECURITY: Column<Set<Str>> = Column::new(12);
    pub const TAG: Column<Opt<Int>> = Column::new(13);
    pub const TAG_REQUEST: Column<Opt<Int>> = Column::new(14);
    pub const TYPE: Column<One<Str>> = Column::new(15);
    pub const UP: Column<Opt<Bool>> = Column::new(16);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Logical_Switch_Port",
        id: 21,
        is_root: false,
        columns: &[
            column("addresses", (Kind::Str, None), (0, u32::MAX), None, false),
            column("dhcpv4_options", (Kind::Uuid, Some(("DHCP_Options", false))), (0, 1), None, false),
            column("dhcpv6_options", (Kind::Uuid, Some(("DHCP_Options", false))), (0, 1), None, false),
            column("dynamic_addresses", (Kind::Str, None), (0, 1), None, false),
            column("enabled", (Kind::Bool, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ha_chassis_group", (Kind::Uuid, Some(("HA_Chassis_Group", true))), (0, 1), None, false),
            column("mirror_rules", (Kind::Uuid, Some(("Mirror", false))), (0, u32::MAX), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("parent_name", (Kind::Str, None), (0, 1), None, false),
            column("peer", (Kind::Str, None), (0, 1), None, false),
            column("port_security", (Kind::Str, None), (0, u32::MAX), None, false),
            column("tag", (Kind::Int, None), (0, 1), None, false),
            column("tag_request", (Kind::Int, None), (0, 1), None, false),
            column("type", (Kind::Str, None), (1, 1), None, false),
            column("up", (Kind::Bool, None), (0, 1), None, false),
        ],
        indexes: &[&[ColumnId(8)]],
    };
}

pub mod meter {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Map, One, Opt, Set, Str, Uuid};

    pub const BANDS: Column<Set<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const FAIR: Column<Opt<Bool>> = Column::new(2);
    pub const NAME: Column<One<Str>> = Column::new(3);
    pub const UNIT: Column<One<Str>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Meter",
        id: 22,
        is_root: true,
        columns: &[
            column("bands", (Kind::Uuid, Some(("Meter_Band", true))), (1, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("fair", (Kind::Bool, None), (0, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("unit", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[&[ColumnId(3)]],
    };
}

pub mod meter_band {
    use super::{Column, Kind, Table, column, Int, Map, One, Str};

    pub const ACTION: Column<One<Str>> = Column::new(0);
    pub const BURST_SIZE: Column<One<Int>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const RATE: Column<One<Int>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Meter_Band",
        id: 23,
        is_root: false,
        columns: &[
            column("action", (Kind::Str, None), (1, 1), None, true),
            column("burst_size", (Kind::Int, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("rate", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod mirror {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const FILTER: Column<One<Str>> = Column::new(1);
    pub const INDEX: Column<One<Int>> = Column::new(2);
    pub const NAME: Column<One<Str>> = Column::new(3);
    pub const SINK: Column<One<Str>> = Column::new(4);
    pub const TYPE: Column<One<Str>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Mirror",
        id: 24,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("filter", (Kind::Str, None), (1, 1), None, true),
            column("index", (Kind::Int, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("sink", (Kind::Str, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[&[ColumnId(3)]],
    };
}

pub mod nat {
    use super::{Column, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const ALLOWED_EXT_IPS: Column<Opt<Uuid>> = Column::new(0);
    pub const EXEMPTED_EXT_IPS: Column<Opt<Uuid>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const EXTERNAL_IP: Column<One<Str>> = Column::new(3);
    pub const EXTERNAL_MAC: Column<Opt<Str>> = Column::new(4);
    pub const EXTERNAL_PORT_RANGE: Column<One<Str>> = Column::new(5);
    pub const GATEWAY_PORT: Column<Opt<Uuid>> = Column::new(6);
    pub const LOGICAL_IP: Column<One<Str>> = Column::new(7);
    pub const LOGICAL_PORT: Column<Opt<Str>> = Column::new(8);
    pub const MATCH: Column<One<Str>> = Column::new(9);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(10);
    pub const PRIORITY: Column<One<Int>> = Column::new(11);
    pub const TYPE: Column<One<Str>> = Column::new(12);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "NAT",
        id: 25,
        is_root: false,
        columns: &[
            column("allowed_ext_ips", (Kind::Uuid, Some(("Address_Set", true))), (0, 1), None, false),
            column("exempted_ext_ips", (Kind::Uuid, Some(("Address_Set", true))), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("external_ip", (Kind::Str, None), (1, 1), None, false),
            column("external_mac", (Kind::Str, None), (0, 1), None, false),
            column("external_port_range", (Kind::Str, None), (1, 1), None, false),
            column("gateway_port", (Kind::Uuid, Some(("Logical_Router_Port", false))), (0, 1), None, false),
            column("logical_ip", (Kind::Str, None), (1, 1), None, false),
            column("logical_port", (Kind::Str, None), (0, 1), None, false),
            column("match", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("priority", (Kind::Int, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[],
    };
}

pub mod nb_global {
    use super::{Column, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str, Uuid};

    pub const CONNECTIONS: Column<Set<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const HV_CFG: Column<One<Int>> = Column::new(2);
    pub const HV_CFG_TIMESTAMP: Column<One<Int>> = Column::new(3);
    pub const IPSEC: Column<One<Bool>> = Column::new(4);
    pub const NAME: Column<One<Str>> = Column::new(5);
    pub const NB_CFG: Column<One<Int>> = Column::new(6);
    pub const NB_CFG_TIMESTAMP: Column<One<Int>> = Column::new(7);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(8);
    pub const SB_CFG: Column<One<Int>> = Column::new(9);
    pub const SB_CFG_TIMESTAMP: Column<One<Int>> = Column::new(10);
    pub const SSL: Column<Opt<Uuid>> = Column::new(11);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "NB_Global",
        id: 26,
        is_root: true,
        columns: &[
            column("connections", (Kind::Uuid, Some(("Connection", true))), (0, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("hv_cfg", (Kind::Int, None), (1, 1), None, false),
            column("hv_cfg_timestamp", (Kind::Int, None), (1, 1), None, false),
            column("ipsec", (Kind::Bool, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("nb_cfg", (Kind::Int, None), (1, 1), None, false),
            column("nb_cfg_timestamp", (Kind::Int, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("sb_cfg", (Kind::Int, None), (1, 1), None, false),
            column("sb_cfg_timestamp", (Kind::Int, None), (1, 1), None, false),
            column("ssl", (Kind::Uuid, Some(("SSL", true))), (0, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod port_group {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Set, Str, Uuid};

    pub const ACLS: Column<Set<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);
    pub const PORTS: Column<Set<Uuid>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Port_Group",
        id: 27,
        is_root: true,
        columns: &[
            column("acls", (Kind::Uuid, Some(("ACL", true))), (0, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("ports", (Kind::Uuid, Some(("Logical_Switch_Port", false))), (0, u32::MAX), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod qos {
    use super::{Column, Kind, Table, column, Int, Map, One, Str};

    pub const ACTION: Column<Map<Str, Int>> = Column::new(0);
    pub const BANDWIDTH: Column<Map<Str, Int>> = Column::new(1);
    pub const DIRECTION: Column<One<Str>> = Column::new(2);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(3);
    pub const MATCH: Column<One<Str>> = Column::new(4);
    pub const PRIORITY: Column<One<Int>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "QoS",
        id: 28,
        is_root: false,
        columns: &[
            column("action", (Kind::Str, None), (0, u32::MAX), Some((Kind::Int, None)), true),
            column("bandwidth", (Kind::Str, None), (0, u32::MAX), Some((Kind::Int, None)), true),
            column("direction", (Kind::Str, None), (1, 1), None, true),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("match", (Kind::Str, None), (1, 1), None, false),
            column("priority", (Kind::Int, None), (1, 1), None, false),
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
        id: 29,
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

pub mod sample {
    use super::{Column, ColumnId, Kind, Table, column, Int, One, Set, Uuid};

    pub const COLLECTORS: Column<Set<Uuid>> = Column::new(0);
    pub const METADATA: Column<One<Int>> = Column::new(1);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Sample",
        id: 30,
        is_root: false,
        columns: &[
            column("collectors", (Kind::Uuid, Some(("Sample_Collector", true))), (0, u32::MAX), None, false),
            column("metadata", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(1)]],
    };
}

pub mod sample_collector {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const ID: Column<One<Int>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);
    pub const PROBABILITY: Column<One<Int>> = Column::new(3);
    pub const SET_ID: Column<One<Int>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Sample_Collector",
        id: 31,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("id", (Kind::Int, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("probability", (Kind::Int, None), (1, 1), None, false),
            column("set_id", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(1)]],
    };
}

pub mod sampling_app {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const ID: Column<One<Int>> = Column::new(1);
    pub const TYPE: Column<One<Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Sampling_App",
        id: 32,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("id", (Kind::Int, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod static_mac_binding {
    use super::{Column, ColumnId, Kind, Table, column, Bool, One, Str};

    pub const IP: Column<One<Str>> = Column::new(0);
    pub const LOGICAL_PORT: Column<One<Str>> = Column::new(1);
    pub const MAC: Column<One<Str>> = Column::new(2);
    pub const OVERRIDE_DYNAMIC_MAC: Column<One<Bool>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Static_MAC_Binding",
        id: 33,
        is_root: true,
        columns: &[
            column("ip", (Kind::Str, None), (1, 1), None, false),
            column("logical_port", (Kind::Str, None), (1, 1), None, false),
            column("mac", (Kind::Str, None), (1, 1), None, false),
            column("override_dynamic_mac", (Kind::Bool, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(1), ColumnId(0)]],
    };
}
