//! The Open_vSwitch database. Written by `cargo run -p xtask -- codegen`; do not edit.

use crate::row::{Column, kind::{Bool, Int, Map, One, Opt, Set, Str, Uuid}};
use crate::schema::{ColumnId, Database, Table, column};
use crate::value::Kind;

pub static DATABASE: Database = Database {
    name: "Open_vSwitch",
    version: "8.8.0",
    tables: &[
        &autoattach::DEFINITION,
        &bridge::DEFINITION,
        &ct_timeout_policy::DEFINITION,
        &ct_zone::DEFINITION,
        &controller::DEFINITION,
        &datapath::DEFINITION,
        &flow_sample_collector_set::DEFINITION,
        &flow_table::DEFINITION,
        &ipfix::DEFINITION,
        &interface::DEFINITION,
        &manager::DEFINITION,
        &mirror::DEFINITION,
        &netflow::DEFINITION,
        &open_vswitch::DEFINITION,
        &port::DEFINITION,
        &qos::DEFINITION,
        &queue::DEFINITION,
        &ssl::DEFINITION,
        &sflow::DEFINITION,
    ],
};

pub mod autoattach {
    use super::{Column, Kind, Table, column, Int, Map, One, Str};

    pub const MAPPINGS: Column<Map<Int, Int>> = Column::new(0);
    pub const SYSTEM_DESCRIPTION: Column<One<Str>> = Column::new(1);
    pub const SYSTEM_NAME: Column<One<Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "AutoAttach",
        id: 0,
        is_root: false,
        columns: &[
            column("mappings", (Kind::Int, None), (0, u32::MAX), Some((Kind::Int, None)), false),
            column("system_description", (Kind::Str, None), (1, 1), None, false),
            column("system_name", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod bridge {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str, Uuid};

    pub const AUTO_ATTACH: Column<Opt<Uuid>> = Column::new(0);
    pub const CONTROLLER: Column<Set<Uuid>> = Column::new(1);
    pub const DATAPATH_ID: Column<Opt<Str>> = Column::new(2);
    pub const DATAPATH_TYPE: Column<One<Str>> = Column::new(3);
    pub const DATAPATH_VERSION: Column<One<Str>> = Column::new(4);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(5);
    pub const FAIL_MODE: Column<Opt<Str>> = Column::new(6);
    pub const FLOOD_VLANS: Column<Set<Int>> = Column::new(7);
    pub const FLOW_TABLES: Column<Map<Int, Uuid>> = Column::new(8);
    pub const IPFIX: Column<Opt<Uuid>> = Column::new(9);
    pub const MCAST_SNOOPING_ENABLE: Column<One<Bool>> = Column::new(10);
    pub const MIRRORS: Column<Set<Uuid>> = Column::new(11);
    pub const NAME: Column<One<Str>> = Column::new(12);
    pub const NETFLOW: Column<Opt<Uuid>> = Column::new(13);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(14);
    pub const PORTS: Column<Set<Uuid>> = Column::new(15);
    pub const PROTOCOLS: Column<Set<Str>> = Column::new(16);
    pub const RSTP_ENABLE: Column<One<Bool>> = Column::new(17);
    pub const RSTP_STATUS: Column<Map<Str, Str>> = Column::new(18);
    pub const SFLOW: Column<Opt<Uuid>> = Column::new(19);
    pub const STATUS: Column<Map<Str, Str>> = Column::new(20);
    pub const STP_ENABLE: Column<One<Bool>> = Column::new(21);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Bridge",
        id: 1,
        is_root: false,
        columns: &[
            column("auto_attach", (Kind::Uuid, Some(("AutoAttach", true))), (0, 1), None, false),
            column("controller", (Kind::Uuid, Some(("Controller", true))), (0, u32::MAX), None, false),
            column("datapath_id", (Kind::Str, None), (0, 1), None, false),
            column("datapath_type", (Kind::Str, None), (1, 1), None, false),
            column("datapath_version", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("fail_mode", (Kind::Str, None), (0, 1), None, true),
            column("flood_vlans", (Kind::Int, None), (0, 4096), None, false),
            column("flow_tables", (Kind::Int, None), (0, u32::MAX), Some((Kind::Uuid, Some(("Flow_Table", true)))), false),
            column("ipfix", (Kind::Uuid, Some(("IPFIX", true))), (0, 1), None, false),
            column("mcast_snooping_enable", (Kind::Bool, None), (1, 1), None, false),
            column("mirrors", (Kind::Uuid, Some(("Mirror", true))), (0, u32::MAX), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("netflow", (Kind::Uuid, Some(("NetFlow", true))), (0, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ports", (Kind::Uuid, Some(("Port", true))), (0, u32::MAX), None, false),
            column("protocols", (Kind::Str, None), (0, u32::MAX), None, true),
            column("rstp_enable", (Kind::Bool, None), (1, 1), None, false),
            column("rstp_status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("sflow", (Kind::Uuid, Some(("sFlow", true))), (0, 1), None, false),
            column("status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("stp_enable", (Kind::Bool, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(12)]],
    };
}

pub mod ct_timeout_policy {
    use super::{Column, Kind, Table, column, Int, Map, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const TIMEOUTS: Column<Map<Str, Int>> = Column::new(1);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "CT_Timeout_Policy",
        id: 2,
        is_root: false,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("timeouts", (Kind::Str, None), (0, u32::MAX), Some((Kind::Int, None)), true),
        ],
        indexes: &[],
    };
}

pub mod ct_zone {
    use super::{Column, Kind, Table, column, Int, Map, Opt, Str, Uuid};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const LIMIT: Column<Opt<Int>> = Column::new(1);
    pub const TIMEOUT_POLICY: Column<Opt<Uuid>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "CT_Zone",
        id: 3,
        is_root: false,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("limit", (Kind::Int, None), (0, 1), None, false),
            column("timeout_policy", (Kind::Uuid, Some(("CT_Timeout_Policy", true))), (0, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod controller {
    use super::{Column, Kind, Table, column, Bool, Int, Map, One, Opt, Str};

    pub const CONNECTION_MODE: Column<Opt<Str>> = Column::new(0);
    pub const CONTROLLER_BURST_LIMIT: Column<Opt<Int>> = Column::new(1);
    pub const CONTROLLER_QUEUE_SIZE: Column<Opt<Int>> = Column::new(2);
    pub const CONTROLLER_RATE_LIMIT: Column<Opt<Int>> = Column::new(3);
    pub const ENABLE_ASYNC_MESSAGES: Column<Opt<Bool>> = Column::new(4);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(5);
    pub const INACTIVITY_PROBE: Column<Opt<Int>> = Column::new(6);
    pub const IS_CONNECTED: Column<One<Bool>> = Column::new(7);
    pub const LOCAL_GATEWAY: Column<Opt<Str>> = Column::new(8);
    pub const LOCAL_IP: Column<Opt<Str>> = Column::new(9);
    pub const LOCAL_NETMASK: Column<Opt<Str>> = Column::new(10);
    pub const MAX_BACKOFF: Column<Opt<Int>> = Column::new(11);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(12);
    pub const ROLE: Column<Opt<Str>> = Column::new(13);
    pub const STATUS: Column<Map<Str, Str>> = Column::new(14);
    pub const TARGET: Column<One<Str>> = Column::new(15);
    pub const TYPE: Column<Opt<Str>> = Column::new(16);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Controller",
        id: 4,
        is_root: false,
        columns: &[
            column("connection_mode", (Kind::Str, None), (0, 1), None, true),
            column("controller_burst_limit", (Kind::Int, None), (0, 1), None, false),
            column("controller_queue_size", (Kind::Int, None), (0, 1), None, false),
            column("controller_rate_limit", (Kind::Int, None), (0, 1), None, false),
            column("enable_async_messages", (Kind::Bool, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("inactivity_probe", (Kind::Int, None), (0, 1), None, false),
            column("is_connected", (Kind::Bool, None), (1, 1), None, false),
            column("local_gateway", (Kind::Str, None), (0, 1), None, false),
            column("local_ip", (Kind::Str, None), (0, 1), None, false),
            column("local_netmask", (Kind::Str, None), (0, 1), None, false),
            column("max_backoff", (Kind::Int, None), (0, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("role", (Kind::Str, None), (0, 1), None, true),
            column("status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("target", (Kind::Str, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (0, 1), None, true),
        ],
        indexes: &[],
    };
}

pub mod datapath {
    use super::{Column, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const CAPABILITIES: Column<Map<Str, Str>> = Column::new(0);
    pub const CT_ZONE_DEFAULT_LIMIT: Column<Opt<Int>> = Column::new(1);
    pub const CT_ZONES: Column<Map<Int, Uuid>> = Column::new(2);
    pub const DATAPATH_VERSION: Column<One<Str>> = Column::new(3);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Datapath",
        id: 5,
        is_root: false,
        columns: &[
            column("capabilities", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ct_zone_default_limit", (Kind::Int, None), (0, 1), None, false),
            column("ct_zones", (Kind::Int, None), (0, u32::MAX), Some((Kind::Uuid, Some(("CT_Zone", true)))), false),
            column("datapath_version", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
        ],
        indexes: &[],
    };
}

pub mod flow_sample_collector_set {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const BRIDGE: Column<One<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const ID: Column<One<Int>> = Column::new(2);
    pub const IPFIX: Column<Opt<Uuid>> = Column::new(3);
    pub const LOCAL_GROUP_ID: Column<Opt<Int>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Flow_Sample_Collector_Set",
        id: 6,
        is_root: true,
        columns: &[
            column("bridge", (Kind::Uuid, Some(("Bridge", true))), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("id", (Kind::Int, None), (1, 1), None, false),
            column("ipfix", (Kind::Uuid, Some(("IPFIX", true))), (0, 1), None, false),
            column("local_group_id", (Kind::Int, None), (0, 1), None, false),
        ],
        indexes: &[&[ColumnId(2), ColumnId(0)]],
    };
}

pub mod flow_table {
    use super::{Column, Kind, Table, column, Int, Map, Opt, Set, Str};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const FLOW_LIMIT: Column<Opt<Int>> = Column::new(1);
    pub const GROUPS: Column<Set<Str>> = Column::new(2);
    pub const NAME: Column<Opt<Str>> = Column::new(3);
    pub const OVERFLOW_POLICY: Column<Opt<Str>> = Column::new(4);
    pub const PREFIXES: Column<Set<Str>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Flow_Table",
        id: 7,
        is_root: false,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("flow_limit", (Kind::Int, None), (0, 1), None, false),
            column("groups", (Kind::Str, None), (0, u32::MAX), None, false),
            column("name", (Kind::Str, None), (0, 1), None, false),
            column("overflow_policy", (Kind::Str, None), (0, 1), None, true),
            column("prefixes", (Kind::Str, None), (0, 4), None, false),
        ],
        indexes: &[],
    };
}

pub mod ipfix {
    use super::{Column, Kind, Table, column, Int, Map, Opt, Set, Str};

    pub const CACHE_ACTIVE_TIMEOUT: Column<Opt<Int>> = Column::new(0);
    pub const CACHE_MAX_FLOWS: Column<Opt<Int>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const OBS_DOMAIN_ID: Column<Opt<Int>> = Column::new(3);
    pub const OBS_POINT_ID: Column<Opt<Int>> = Column::new(4);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(5);
    pub const SAMPLING: Column<Opt<Int>> = Column::new(6);
    pub const STATS_INTERVAL: Column<Opt<Int>> = Column::new(7);
    pub const TARGETS: Column<Set<Str>> = Column::new(8);
    pub const TEMPLATE_INTERVAL: Column<Opt<Int>> = Column::new(9);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "IPFIX",
        id: 8,
        is_root: false,
        columns: &[
            column("cache_active_timeout", (Kind::Int, None), (0, 1), None, false),
            column("cache_max_flows", (Kind::Int, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("obs_domain_id", (Kind::Int, None), (0, 1), None, false),
            column("obs_point_id", (Kind::Int, None), (0, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("sampling", (Kind::Int, None), (0, 1), None, false),
            column("stats_interval", (Kind::Int, None), (0, 1), None, false),
            column("targets", (Kind::Str, None), (0, u32::MAX), None, false),
            column("template_interval", (Kind::Int, None), (0, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod interface {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str};

    pub const ADMIN_STATE: Column<Opt<Str>> = Column::new(0);
    pub const BFD: Column<Map<Str, Str>> = Column::new(1);
    pub const BFD_STATUS: Column<Map<Str, Str>> = Column::new(2);
    pub const CFM_FAULT: Column<Opt<Bool>> = Column::new(3);
    pub const CFM_FAULT_STATUS: Column<Set<Str>> = Column::new(4);
    pub const CFM_FLAP_COUNT: Column<Opt<Int>> = Column::new(5);
    pub const CFM_HEALTH: Column<Opt<Int>> = Column::new(6);
    pub const CFM_MPID: Column<Opt<Int>> = Column::new(7);
    pub const CFM_REMOTE_MPIDS: Column<Set<Int>> = Column::new(8);
    pub const CFM_REMOTE_OPSTATE: Column<Opt<Str>> = Column::new(9);
    pub const DUPLEX: Column<Opt<Str>> = Column::new(10);
    pub const ERROR: Column<Opt<Str>> = Column::new(11);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(12);
    pub const IFINDEX: Column<Opt<Int>> = Column::new(13);
    pub const INGRESS_POLICING_BURST: Column<One<Int>> = Column::new(14);
    pub const INGRESS_POLICING_KPKTS_BURST: Column<One<Int>> = Column::new(15);
    pub const INGRESS_POLICING_KPKTS_RATE: Column<One<Int>> = Column::new(16);
    pub const INGRESS_POLICING_RATE: Column<One<Int>> = Column::new(17);
    pub const LACP_CURRENT: Column<Opt<Bool>> = Column::new(18);
    pub const LINK_RESETS: Column<Opt<Int>> = Column::new(19);
    pub const LINK_SPEED: Column<Opt<Int>> = Column::new(20);
    pub const LINK_STATE: Column<Opt<Str>> = Column::new(21);
    pub const LLDP: Column<Map<Str, Str>> = Column::new(22);
    pub const MAC: Column<Opt<Str>> = Column::new(23);
    pub const MAC_IN_USE: Column<Opt<Str>> = Column::new(24);
    pub const MTU: Column<Opt<Int>> = Column::new(25);
    pub const MTU_REQUEST: Column<Opt<Int>> = Column::new(26);
    pub const NAME: Column<One<Str>> = Column::new(27);
    pub const OFPORT: Column<Opt<Int>> = Column::new(28);
    pub const OFPORT_REQUEST: Column<Opt<Int>> = Column::new(29);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(30);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(31);
    pub const STATISTICS: Column<Map<Str, Int>> = Column::new(32);
    pub const STATUS: Column<Map<Str, Str>> = Column::new(33);
    pub const TYPE: Column<One<Str>> = Column::new(34);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Interface",
        id: 9,
        is_root: false,
        columns: &[
            column("admin_state", (Kind::Str, None), (0, 1), None, true),
            column("bfd", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("bfd_status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("cfm_fault", (Kind::Bool, None), (0, 1), None, false),
            column("cfm_fault_status", (Kind::Str, None), (0, u32::MAX), None, false),
            column("cfm_flap_count", (Kind::Int, None), (0, 1), None, false),
            column("cfm_health", (Kind::Int, None), (0, 1), None, false),
            column("cfm_mpid", (Kind::Int, None), (0, 1), None, false),
            column("cfm_remote_mpids", (Kind::Int, None), (0, u32::MAX), None, false),
            column("cfm_remote_opstate", (Kind::Str, None), (0, 1), None, true),
            column("duplex", (Kind::Str, None), (0, 1), None, true),
            column("error", (Kind::Str, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ifindex", (Kind::Int, None), (0, 1), None, false),
            column("ingress_policing_burst", (Kind::Int, None), (1, 1), None, false),
            column("ingress_policing_kpkts_burst", (Kind::Int, None), (1, 1), None, false),
            column("ingress_policing_kpkts_rate", (Kind::Int, None), (1, 1), None, false),
            column("ingress_policing_rate", (Kind::Int, None), (1, 1), None, false),
            column("lacp_current", (Kind::Bool, None), (0, 1), None, false),
            column("link_resets", (Kind::Int, None), (0, 1), None, false),
            column("link_speed", (Kind::Int, None), (0, 1), None, false),
            column("link_state", (Kind::Str, None), (0, 1), None, true),
            column("lldp", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("mac", (Kind::Str, None), (0, 1), None, false),
            column("mac_in_use", (Kind::Str, None), (0, 1), None, false),
            column("mtu", (Kind::Int, None), (0, 1), None, false),
            column("mtu_request", (Kind::Int, None), (0, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("ofport", (Kind::Int, None), (0, 1), None, false),
            column("ofport_request", (Kind::Int, None), (0, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("statistics", (Kind::Str, None), (0, u32::MAX), Some((Kind::Int, None)), false),
            column("status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("type", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(27)]],
    };
}

pub mod manager {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Int, Map, One, Opt, Str};

    pub const CONNECTION_MODE: Column<Opt<Str>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const INACTIVITY_PROBE: Column<Opt<Int>> = Column::new(2);
    pub const IS_CONNECTED: Column<One<Bool>> = Column::new(3);
    pub const MAX_BACKOFF: Column<Opt<Int>> = Column::new(4);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(5);
    pub const STATUS: Column<Map<Str, Str>> = Column::new(6);
    pub const TARGET: Column<One<Str>> = Column::new(7);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Manager",
        id: 10,
        is_root: false,
        columns: &[
            column("connection_mode", (Kind::Str, None), (0, 1), None, true),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("inactivity_probe", (Kind::Int, None), (0, 1), None, false),
            column("is_connected", (Kind::Bool, None), (1, 1), None, false),
            column("max_backoff", (Kind::Int, None), (0, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("target", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(7)]],
    };
}

pub mod mirror {
    use super::{Column, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str, Uuid};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const FILTER: Column<Opt<Str>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);
    pub const OUTPUT_PORT: Column<Opt<Uuid>> = Column::new(3);
    pub const OUTPUT_VLAN: Column<Opt<Int>> = Column::new(4);
    pub const SELECT_ALL: Column<One<Bool>> = Column::new(5);
    pub const SELECT_DST_PORT: Column<Set<Uuid>> = Column::new(6);
    pub const SELECT_SRC_PORT: Column<Set<Uuid>> = Column::new(7);
    pub const SELECT_VLAN: Column<Set<Int>> = Column::new(8);
    pub const SNAPLEN: Column<Opt<Int>> = Column::new(9);
    pub const STATISTICS: Column<Map<Str, Int>> = Column::new(10);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Mirror",
        id: 11,
        is_root: false,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("filter", (Kind::Str, None), (0, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("output_port", (Kind::Uuid, Some(("Port", false))), (0, 1), None, false),
            column("output_vlan", (Kind::Int, None), (0, 1), None, false),
            column("select_all", (Kind::Bool, None), (1, 1), None, false),
            column("select_dst_port", (Kind::Uuid, Some(("Port", false))), (0, u32::MAX), None, false),
            column("select_src_port", (Kind::Uuid, Some(("Port", false))), (0, u32::MAX), None, false),
            column("select_vlan", (Kind::Int, None), (0, 4096), None, false),
            column("snaplen", (Kind::Int, None), (0, 1), None, false),
            column("statistics", (Kind::Str, None), (0, u32::MAX), Some((Kind::Int, None)), false),
        ],
        indexes: &[],
    };
}

pub mod netflow {
    use super::{Column, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str};

    pub const ACTIVE_TIMEOUT: Column<One<Int>> = Column::new(0);
    pub const ADD_ID_TO_INTERFACE: Column<One<Bool>> = Column::new(1);
    pub const ENGINE_ID: Column<Opt<Int>> = Column::new(2);
    pub const ENGINE_TYPE: Column<Opt<Int>> = Column::new(3);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(4);
    pub const TARGETS: Column<Set<Str>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "NetFlow",
        id: 12,
        is_root: false,
        columns: &[
            column("active_timeout", (Kind::Int, None), (1, 1), None, false),
            column("add_id_to_interface", (Kind::Bool, None), (1, 1), None, false),
            column("engine_id", (Kind::Int, None), (0, 1), None, false),
            column("engine_type", (Kind::Int, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("targets", (Kind::Str, None), (1, u32::MAX), None, false),
        ],
        indexes: &[],
    };
}

pub mod open_vswitch {
    use super::{Column, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str, Uuid};

    pub const BRIDGES: Column<Set<Uuid>> = Column::new(0);
    pub const CUR_CFG: Column<One<Int>> = Column::new(1);
    pub const DATAPATH_TYPES: Column<Set<Str>> = Column::new(2);
    pub const DATAPATHS: Column<Map<Str, Uuid>> = Column::new(3);
    pub const DB_VERSION: Column<Opt<Str>> = Column::new(4);
    pub const DPDK_INITIALIZED: Column<One<Bool>> = Column::new(5);
    pub const DPDK_VERSION: Column<Opt<Str>> = Column::new(6);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(7);
    pub const IFACE_TYPES: Column<Set<Str>> = Column::new(8);
    pub const MANAGER_OPTIONS: Column<Set<Uuid>> = Column::new(9);
    pub const NEXT_CFG: Column<One<Int>> = Column::new(10);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(11);
    pub const OVS_VERSION: Column<Opt<Str>> = Column::new(12);
    pub const SSL: Column<Opt<Uuid>> = Column::new(13);
    pub const STATISTICS: Column<Map<Str, Str>> = Column::new(14);
    pub const SYSTEM_TYPE: Column<Opt<Str>> = Column::new(15);
    pub const SYSTEM_VERSION: Column<Opt<Str>> = Column::new(16);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Open_vSwitch",
        id: 13,
        is_root: true,
        columns: &[
            column("bridges", (Kind::Uuid, Some(("Bridge", true))), (0, u32::MAX), None, false),
            column("cur_cfg", (Kind::Int, None), (1, 1), None, false),
            column("datapath_types", (Kind::Str, None), (0, u32::MAX), None, false),
            column("datapaths", (Kind::Str, None), (0, u32::MAX), Some((Kind::Uuid, Some(("Datapath", true)))), false),
            column("db_version", (Kind::Str, None), (0, 1), None, false),
            column("dpdk_initialized", (Kind::Bool, None), (1, 1), None, false),
            column("dpdk_version", (Kind::Str, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("iface_types", (Kind::Str, None), (0, u32::MAX), None, false),
            column("manager_options", (Kind::Uuid, Some(("Manager", true))), (0, u32::MAX), None, false),
            column("next_cfg", (Kind::Int, None), (1, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ovs_version", (Kind::Str, None), (0, 1), None, false),
            column("ssl", (Kind::Uuid, Some(("SSL", true))), (0, 1), None, false),
            column("statistics", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("system_type", (Kind::Str, None), (0, 1), None, false),
            column("system_version", (Kind::Str, None), (0, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod port {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str, Uuid};

    pub const BOND_ACTIVE_SLAVE: Column<Opt<Str>> = Column::new(0);
    pub const BOND_DOWNDELAY: Column<One<Int>> = Column::new(1);
    pub const BOND_FAKE_IFACE: Column<One<Bool>> = Column::new(2);
    pub const BOND_MODE: Column<Opt<Str>> = Column::new(3);
    pub const BOND_UPDELAY: Column<One<Int>> = Column::new(4);
    pub const CVLANS: Column<Set<Int>> = Column::new(5);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(6);
    pub const FAKE_BRIDGE: Column<One<Bool>> = Column::new(7);
    pub const INTERFACES: Column<Set<Uuid>> = Column::new(8);
    pub const LACP: Column<Opt<Str>> = Column::new(9);
    pub const MAC: Column<Opt<Str>> = Column::new(10);
    pub const NAME: Column<One<Str>> = Column::new(11);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(12);
    pub const PROTECTED: Column<One<Bool>> = Column::new(13);
    pub const QOS: Column<Opt<Uuid>> = Column::new(14);
    pub const RSTP_STATISTICS: Column<Map<Str, Int>> = Column::new(15);
    pub const RSTP_STATUS: Column<Map<Str, Str>> = Column::new(16);
    pub const STATISTICS: Column<Map<Str, Int>> = Column::new(17);
    pub const STATUS: Column<Map<Str, Str>> = Column::new(18);
    pub const TAG: Column<Opt<Int>> = Column::new(19);
    pub const TRUNKS: Column<Set<Int>> = Column::new(20);
    pub const VLAN_MODE: Column<Opt<Str>> = Column::new(21);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Port",
        id: 14,
        is_root: false,
        columns: &[
            column("bond_active_slave", (Kind::Str, None), (0, 1), None, false),
            column("bond_downdelay", (Kind::Int, None), (1, 1), None, false),
            column("bond_fake_iface", (Kind::Bool, None), (1, 1), None, false),
            column("bond_mode", (Kind::Str, None), (0, 1), None, true),
            column("bond_updelay", (Kind::Int, None), (1, 1), None, false),
            column("cvlans", (Kind::Int, None), (0, 4096), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("fake_bridge", (Kind::Bool, None), (1, 1), None, false),
            column("interfaces", (Kind::Uuid, Some(("Interface", true))), (1, u32::MAX), None, false),
            column("lacp", (Kind::Str, None), (0, 1), None, true),
            column("mac", (Kind::Str, None), (0, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("protected", (Kind::Bool, None), (1, 1), None, false),
            column("qos", (Kind::Uuid, Some(("QoS", true))), (0, 1), None, false),
            column("rstp_statistics", (Kind::Str, None), (0, u32::MAX), Some((Kind::Int, None)), false),
            column("rstp_status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("statistics", (Kind::Str, None), (0, u32::MAX), Some((Kind::Int, None)), false),
            column("status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("tag", (Kind::Int, None), (0, 1), None, false),
            column("trunks", (Kind::Int, None), (0, 4096), None, false),
            column("vlan_mode", (Kind::Str, None), (0, 1), None, true),
        ],
        indexes: &[&[ColumnId(11)]],
    };
}

pub mod qos {
    use super::{Column, Kind, Table, column, Int, Map, One, Str, Uuid};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(1);
    pub const QUEUES: Column<Map<Int, Uuid>> = Column::new(2);
    pub const TYPE: Column<One<Str>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "QoS",
        id: 15,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("queues", (Kind::Int, None), (0, u32::MAX), Some((Kind::Uuid, Some(("Queue", true)))), false),
            column("type", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod queue {
    use super::{Column, Kind, Table, column, Int, Map, Opt, Str};

    pub const DSCP: Column<Opt<Int>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Queue",
        id: 16,
        is_root: true,
        columns: &[
            column("dscp", (Kind::Int, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
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

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "SSL",
        id: 17,
        is_root: false,
        columns: &[
            column("bootstrap_ca_cert", (Kind::Bool, None), (1, 1), None, false),
            column("ca_cert", (Kind::Str, None), (1, 1), None, false),
            column("certificate", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("private_key", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod sflow {
    use super::{Column, Kind, Table, column, Int, Map, Opt, Set, Str};

    pub const AGENT: Column<Opt<Str>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const HEADER: Column<Opt<Int>> = Column::new(2);
    pub const POLLING: Column<Opt<Int>> = Column::new(3);
    pub const SAMPLING: Column<Opt<Int>> = Column::new(4);
    pub const TARGETS: Column<Set<Str>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "sFlow",
        id: 18,
        is_root: false,
        columns: &[
            column("agent", (Kind::Str, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("header", (Kind::Int, None), (0, 1), None, false),
            column("polling", (Kind::Int, None), (0, 1), None, false),
            column("sampling", (Kind::Int, None), (0, 1), None, false),
            column("targets", (Kind::Str, None), (1, u32::MAX), None, false),
        ],
        indexes: &[],
    };
}
