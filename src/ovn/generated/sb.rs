//! The OVN_Southbound database. Written by `cargo run -p xtask -- codegen`; do not edit.

use crate::row::{Column, kind::{Bool, Int, Map, One, Opt, Set, Str, Uuid}};
use crate::schema::{ColumnId, Database, Table, column};
use crate::value::Kind;

pub static DATABASE: Database = Database {
    name: "OVN_Southbound",
    version: "20.41.0",
    tables: &[
        &acl_id::DEFINITION,
        &address_set::DEFINITION,
        &advertised_route::DEFINITION,
        &bfd::DEFINITION,
        &chassis::DEFINITION,
        &chassis_private::DEFINITION,
        &chassis_template_var::DEFINITION,
        &connection::DEFINITION,
        &controller_event::DEFINITION,
        &dhcp_options::DEFINITION,
        &dhcpv6_options::DEFINITION,
        &dns::DEFINITION,
        &datapath_binding::DEFINITION,
        &ecmp_nexthop::DEFINITION,
        &encap::DEFINITION,
        &fdb::DEFINITION,
        &gateway_chassis::DEFINITION,
        &ha_chassis::DEFINITION,
        &ha_chassis_group::DEFINITION,
        &igmp_group::DEFINITION,
        &ip_multicast::DEFINITION,
        &learned_route::DEFINITION,
        &load_balancer::DEFINITION,
        &logical_dp_group::DEFINITION,
        &logical_flow::DEFINITION,
        &mac_binding::DEFINITION,
        &meter::DEFINITION,
        &meter_band::DEFINITION,
        &mirror::DEFINITION,
        &multicast_group::DEFINITION,
        &port_binding::DEFINITION,
        &port_group::DEFINITION,
        &rbac_permission::DEFINITION,
        &rbac_role::DEFINITION,
        &sb_global::DEFINITION,
        &ssl::DEFINITION,
        &service_monitor::DEFINITION,
        &static_mac_binding::DEFINITION,
    ],
};

pub mod acl_id {
    use super::{Column, Kind, Table, column, Int, One};

    pub const ID: Column<One<Int>> = Column::new(0);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "ACL_ID",
        id: 0,
        is_root: true,
        columns: &[
            column("id", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod address_set {
    use super::{Column, ColumnId, Kind, Table, column, One, Set, Str};

    pub const ADDRESSES: Column<Set<Str>> = Column::new(0);
    pub const NAME: Column<One<Str>> = Column::new(1);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Address_Set",
        id: 1,
        is_root: true,
        columns: &[
            column("addresses", (Kind::Str, None), (0, u32::MAX), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(1)]],
    };
}

pub mod advertised_route {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Opt, Str, Uuid};

    pub const DATAPATH: Column<One<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const IP_PREFIX: Column<One<Str>> = Column::new(2);
    pub const LOGICAL_PORT: Column<One<Uuid>> = Column::new(3);
    pub const TRACKED_PORT: Column<Opt<Uuid>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Advertised_Route",
        id: 2,
        is_root: true,
        columns: &[
            column("datapath", (Kind::Uuid, Some(("Datapath_Binding", true))), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ip_prefix", (Kind::Str, None), (1, 1), None, false),
            column("logical_port", (Kind::Uuid, Some(("Port_Binding", true))), (1, 1), None, false),
            column("tracked_port", (Kind::Uuid, Some(("Port_Binding", true))), (0, 1), None, false),
        ],
        indexes: &[&[ColumnId(0), ColumnId(3), ColumnId(2), ColumnId(4)]],
    };
}

pub mod bfd {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Str};

    pub const CHASSIS_NAME: Column<One<Str>> = Column::new(0);
    pub const DETECT_MULT: Column<One<Int>> = Column::new(1);
    pub const DISC: Column<One<Int>> = Column::new(2);
    pub const DST_IP: Column<One<Str>> = Column::new(3);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(4);
    pub const LOGICAL_PORT: Column<One<Str>> = Column::new(5);
    pub const MIN_RX: Column<One<Int>> = Column::new(6);
    pub const MIN_TX: Column<One<Int>> = Column::new(7);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(8);
    pub const SRC_PORT: Column<One<Int>> = Column::new(9);
    pub const STATUS: Column<One<Str>> = Column::new(10);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "BFD",
        id: 3,
        is_root: true,
        columns: &[
            column("chassis_name", (Kind::Str, None), (1, 1), None, false),
            column("detect_mult", (Kind::Int, None), (1, 1), None, false),
            column("disc", (Kind::Int, None), (1, 1), None, false),
            column("dst_ip", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("logical_port", (Kind::Str, None), (1, 1), None, false),
            column("min_rx", (Kind::Int, None), (1, 1), None, false),
            column("min_tx", (Kind::Int, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("src_port", (Kind::Int, None), (1, 1), None, false),
            column("status", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[&[ColumnId(5), ColumnId(3), ColumnId(9), ColumnId(2)]],
    };
}

pub mod chassis {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Set, Str, Uuid};

    pub const ENCAPS: Column<Set<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const HOSTNAME: Column<One<Str>> = Column::new(2);
    pub const NAME: Column<One<Str>> = Column::new(3);
    pub const NB_CFG: Column<One<Int>> = Column::new(4);
    pub const OTHER_CONFIG: Column<Map<Str, Str>> = Column::new(5);
    pub const TRANSPORT_ZONES: Column<Set<Str>> = Column::new(6);
    pub const VTEP_LOGICAL_SWITCHES: Column<Set<Str>> = Column::new(7);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Chassis",
        id: 4,
        is_root: true,
        columns: &[
            column("encaps", (Kind::Uuid, Some(("Encap", true))), (1, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("hostname", (Kind::Str, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("nb_cfg", (Kind::Int, None), (1, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("transport_zones", (Kind::Str, None), (0, u32::MAX), None, false),
            column("vtep_logical_switches", (Kind::Str, None), (0, u32::MAX), None, false),
        ],
        indexes: &[&[ColumnId(3)]],
    };
}

pub mod chassis_private {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const CHASSIS: Column<Opt<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);
    pub const NB_CFG: Column<One<Int>> = Column::new(3);
    pub const NB_CFG_TIMESTAMP: Column<One<Int>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Chassis_Private",
        id: 5,
        is_root: true,
        columns: &[
            column("chassis", (Kind::Uuid, Some(("Chassis", false))), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("nb_cfg", (Kind::Int, None), (1, 1), None, false),
            column("nb_cfg_timestamp", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod chassis_template_var {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Str};

    pub const CHASSIS: Column<One<Str>> = Column::new(0);
    pub const VARIABLES: Column<Map<Str, Str>> = Column::new(1);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Chassis_Template_Var",
        id: 6,
        is_root: true,
        columns: &[
            column("chassis", (Kind::Str, None), (1, 1), None, false),
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
    pub const READ_ONLY: Column<One<Bool>> = Column::new(5);
    pub const ROLE: Column<One<Str>> = Column::new(6);
    pub const STATUS: Column<Map<Str, Str>> = Column::new(7);
    pub const TARGET: Column<One<Str>> = Column::new(8);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Connection",
        id: 7,
        is_root: false,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("inactivity_probe", (Kind::Int, None), (0, 1), None, false),
            column("is_connected", (Kind::Bool, None), (1, 1), None, false),
            column("max_backoff", (Kind::Int, None), (0, 1), None, false),
            column("other_config", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("read_only", (Kind::Bool, None), (1, 1), None, false),
            column("role", (Kind::Str, None), (1, 1), None, false),
            column("status", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("target", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(8)]],
    };
}

pub mod controller_event {
    use super::{Column, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const CHASSIS: Column<Opt<Uuid>> = Column::new(0);
    pub const EVENT_INFO: Column<Map<Str, Str>> = Column::new(1);
    pub const EVENT_TYPE: Column<One<Str>> = Column::new(2);
    pub const SEQ_NUM: Column<One<Int>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Controller_Event",
        id: 8,
        is_root: true,
        columns: &[
            column("chassis", (Kind::Uuid, Some(("Chassis", false))), (0, 1), None, false),
            column("event_info", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("event_type", (Kind::Str, None), (1, 1), None, true),
            column("seq_num", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[],
    };
}

pub mod dhcp_options {
    use super::{Column, Kind, Table, column, Int, One, Str};

    pub const CODE: Column<One<Int>> = Column::new(0);
    pub const NAME: Column<One<Str>> = Column::new(1);
    pub const TYPE: Column<One<Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "DHCP_Options",
        id: 9,
        is_root: true,
        columns: &[
            column("code", (Kind::Int, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[],
    };
}

pub mod dhcpv6_options {
    use super::{Column, Kind, Table, column, Int, One, Str};

    pub const CODE: Column<One<Int>> = Column::new(0);
    pub const NAME: Column<One<Str>> = Column::new(1);
    pub const TYPE: Column<One<Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "DHCPv6_Options",
        id: 10,
        is_root: true,
        columns: &[
            column("code", (Kind::Int, None), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[],
    };
}

pub mod dns {
    use super::{Column, Kind, Table, column, Map, Set, Str, Uuid};

    pub const DATAPATHS: Column<Set<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(2);
    pub const RECORDS: Column<Map<Str, Str>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "DNS",
        id: 11,
        is_root: true,
        columns: &[
            column("datapaths", (Kind::Uuid, Some(("Datapath_Binding", true))), (1, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("records", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
        ],
        indexes: &[],
    };
}

pub mod datapath_binding {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Set, Str, Uuid};

    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(0);
    pub const LOAD_BALANCERS: Column<Set<Uuid>> = Column::new(1);
    pub const TUNNEL_KEY: Column<One<Int>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Datapath_Binding",
        id: 12,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("load_balancers", (Kind::Uuid, None), (0, u32::MAX), None, false),
            column("tunnel_key", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod ecmp_nexthop {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Str, Uuid};

    pub const DATAPATH: Column<One<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const MAC: Column<One<Str>> = Column::new(2);
    pub const NEXTHOP: Column<One<Str>> = Column::new(3);
    pub const PORT: Column<One<Uuid>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "ECMP_Nexthop",
        id: 13,
        is_root: true,
        columns: &[
            column("datapath", (Kind::Uuid, Some(("Datapath_Binding", true))), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("mac", (Kind::Str, None), (1, 1), None, false),
            column("nexthop", (Kind::Str, None), (1, 1), None, false),
            column("port", (Kind::Uuid, Some(("Port_Binding", true))), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(3), ColumnId(4)]],
    };
}

pub mod encap {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Str};

    pub const CHASSIS_NAME: Column<One<Str>> = Column::new(0);
    pub const IP: Column<One<Str>> = Column::new(1);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(2);
    pub const TYPE: Column<One<Str>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Encap",
        id: 14,
        is_root: false,
        columns: &[
            column("chassis_name", (Kind::Str, None), (1, 1), None, false),
            column("ip", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("type", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[&[ColumnId(3), ColumnId(1)]],
    };
}

pub mod fdb {
    use super::{Column, ColumnId, Kind, Table, column, Int, One, Str};

    pub const DP_KEY: Column<One<Int>> = Column::new(0);
    pub const MAC: Column<One<Str>> = Column::new(1);
    pub const PORT_KEY: Column<One<Int>> = Column::new(2);
    pub const TIMESTAMP: Column<One<Int>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "FDB",
        id: 15,
        is_root: true,
        columns: &[
            column("dp_key", (Kind::Int, None), (1, 1), None, false),
            column("mac", (Kind::Str, None), (1, 1), None, false),
            column("port_key", (Kind::Int, None), (1, 1), None, false),
            column("timestamp", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(1), ColumnId(0)]],
    };
}

pub mod gateway_chassis {
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const CHASSIS: Column<Opt<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const NAME: Column<One<Str>> = Column::new(2);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(3);
    pub const PRIORITY: Column<One<Int>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Gateway_Chassis",
        id: 16,
        is_root: false,
        columns: &[
            column("chassis", (Kind::Uuid, Some(("Chassis", false))), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("priority", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod ha_chassis {
    use super::{Column, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const CHASSIS: Column<Opt<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const PRIORITY: Column<One<Int>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "HA_Chassis",
        id: 17,
        is_root: false,
        columns: &[
            column("chassis", (Kind::Uuid, Some(("Chassis", false))), (0, 1), None, false),
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
    pub const REF_CHASSIS: Column<Set<Uuid>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "HA_Chassis_Group",
        id: 18,
        is_root: true,
        columns: &[
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ha_chassis", (Kind::Uuid, Some(("HA_Chassis", true))), (0, u32::MAX), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("ref_chassis", (Kind::Uuid, Some(("Chassis", false))), (0, u32::MAX), None, false),
        ],
        indexes: &[&[ColumnId(2)]],
    };
}

pub mod igmp_group {
    use super::{Column, ColumnId, Kind, Table, column, One, Opt, Set, Str, Uuid};

    pub const ADDRESS: Column<One<Str>> = Column::new(0);
    pub const CHASSIS: Column<Opt<Uuid>> = Column::new(1);
    pub const CHASSIS_NAME: Column<One<Str>> = Column::new(2);
    pub const DATAPATH: Column<Opt<Uuid>> = Column::new(3);
    pub const PORTS: Column<Set<Uuid>> = Column::new(4);
    pub const PROTOCOL: Column<One<Str>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "IGMP_Group",
        id: 19,
        is_root: true,
        columns: &[
            column("address", (Kind::Str, None), (1, 1), None, false),
            column("chassis", (Kind::Uuid, Some(("Chassis", false))), (0, 1), None, false),
            column("chassis_name", (Kind::Str, None), (1, 1), None, false),
            column("datapath", (Kind::Uuid, Some(("Datapath_Binding", false))), (0, 1), None, false),
            column("ports", (Kind::Uuid, Some(("Port_Binding", false))), (0, u32::MAX), None, false),
            column("protocol", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(0), ColumnId(3), ColumnId(1)]],
    };
}

pub mod ip_multicast {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Int, One, Opt, Str, Uuid};

    pub const DATAPATH: Column<One<Uuid>> = Column::new(0);
    pub const ENABLED: Column<Opt<Bool>> = Column::new(1);
    pub const ETH_SRC: Column<One<Str>> = Column::new(2);
    pub const IDLE_TIMEOUT: Column<Opt<Int>> = Column::new(3);
    pub const IP4_SRC: Column<One<Str>> = Column::new(4);
    pub const IP6_SRC: Column<One<Str>> = Column::new(5);
    pub const QUERIER: Column<Opt<Bool>> = Column::new(6);
    pub const QUERY_INTERVAL: Column<Opt<Int>> = Column::new(7);
    pub const QUERY_MAX_RESP: Column<Opt<Int>> = Column::new(8);
    pub const SEQ_NO: Column<One<Int>> = Column::new(9);
    pub const TABLE_SIZE: Column<Opt<Int>> = Column::new(10);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "IP_Multicast",
        id: 20,
        is_root: true,
        columns: &[
            column("datapath", (Kind::Uuid, Some(("Datapath_Binding", false))), (1, 1), None, false),
            column("enabled", (Kind::Bool, None), (0, 1), None, false),
            column("eth_src", (Kind::Str, None), (1, 1), None, false),
            column("idle_timeout", (Kind::Int, None), (0, 1), None, false),
            column("ip4_src", (Kind::Str, None), (1, 1), None, false),
            column("ip6_src", (Kind::Str, None), (1, 1), None, false),
            column("querier", (Kind::Bool, None), (0, 1), None, false),
            column("query_interval", (Kind::Int, None), (0, 1), None, false),
            column("query_max_resp", (Kind::Int, None), (0, 1), None, false),
            column("seq_no", (Kind::Int, None), (1, 1), None, false),
            column("table_size", (Kind::Int, None), (0, 1), None, false),
        ],
        indexes: &[&[ColumnId(0)]],
    };
}

pub mod learned_route {
    use super::{Column, ColumnId, Kind, Table, column, Map, One, Str, Uuid};

    pub const DATAPATH: Column<One<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const IP_PREFIX: Column<One<Str>> = Column::new(2);
    pub const LOGICAL_PORT: Column<One<Uuid>> = Column::new(3);
    pub const NEXTHOP: Column<One<Str>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Learned_Route",
        id: 21,
        is_root: true,
        columns: &[
            column("datapath", (Kind::Uuid, Some(("Datapath_Binding", true))), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ip_prefix", (Kind::Str, None), (1, 1), None, false),
            column("logical_port", (Kind::Uuid, Some(("Port_Binding", true))), (1, 1), None, false),
            column("nexthop", (Kind::Str, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(0), ColumnId(3), ColumnId(2), ColumnId(4)]],
    };
}

pub mod load_balancer {
    use super::{Column, Kind, Table, column, Map, One, Opt, Set, Str, Uuid};

    pub const DATAPATH_GROUP: Column<Opt<Uuid>> = Column::new(0);
    pub const DATAPATHS: Column<Set<Uuid>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const LR_DATAPATH_GROUP: Column<Opt<Uuid>> = Column::new(3);
    pub const LS_DATAPATH_GROUP: Column<Opt<Uuid>> = Column::new(4);
    pub const NAME: Column<One<Str>> = Column::new(5);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(6);
    pub const PROTOCOL: Column<Opt<Str>> = Column::new(7);
    pub const VIPS: Column<Map<Str, Str>> = Column::new(8);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Load_Balancer",
        id: 22,
        is_root: true,
        columns: &[
            column("datapath_group", (Kind::Uuid, Some(("Logical_DP_Group", true))), (0, 1), None, false),
            column("datapaths", (Kind::Uuid, Some(("Datapath_Binding", true))), (0, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("lr_datapath_group", (Kind::Uuid, Some(("Logical_DP_Group", true))), (0, 1), None, false),
            column("ls_datapath_group", (Kind::Uuid, Some(("Logical_DP_Group", true))), (0, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("protocol", (Kind::Str, None), (0, 1), None, true),
            column("vips", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
        ],
        indexes: &[],
    };
}

pub mod logical_dp_group {
    use super::{Column, Kind, Table, column, Set, Uuid};

    pub const DATAPATHS: Column<Set<Uuid>> = Column::new(0);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Logical_DP_Group",
        id: 23,
        is_root: false,
        columns: &[
            column("datapaths", (Kind::Uuid, Some(("Datapath_Binding", false))), (0, u32::MAX), None, false),
        ],
        indexes: &[],
    };
}

pub mod logical_flow {
    use super::{Column, Kind, Table, column, Int, Map, One, Opt, Str, Uuid};

    pub const ACTIONS: Column<One<Str>> = Column::new(0);
    pub const CONTROLLER_METER: Column<Opt<Str>> = Column::new(1);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(2);
    pub const FLOW_DESC: Column<Opt<Str>> = Column::new(3);
    pub const LOGICAL_DATAPATH: Column<Opt<Uuid>> = Column::new(4);
    pub const LOGICAL_DP_GROUP: Column<Opt<Uuid>> = Column::new(5);
    pub const MATCH: Column<One<Str>> = Column::new(6);
    pub const PIPELINE: Column<One<Str>> = Column::new(7);
    pub const PRIORITY: Column<One<Int>> = Column::new(8);
    pub const TABLE_ID: Column<One<Int>> = Column::new(9);
    pub const TAGS: Column<Map<Str, Str>> = Column::new(10);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Logical_Flow",
        id: 24,
        is_root: true,
        columns: &[
            column("actions", (Kind::Str, None), (1, 1), None, false),
            column("controller_meter", (Kind::Str, None), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("flow_desc", (Kind::Str, None), (0, 1), None, false),
            column("logical_datapath", (Kind::Uuid, Some(("Datapath_Binding", true))), (0, 1), None, false),
            column("logical_dp_group", (Kind::Uuid, Some(("Logical_DP_Group", true))), (0, 1), None, false),
            column("match", (Kind::Str, None), (1, 1), None, false),
            column("pipeline", (Kind::Str, None), (1, 1), None, true),
            column("priority", (Kind::Int, None), (1, 1), None, false),
            column("table_id", (Kind::Int, None), (1, 1), None, false),
            column("tags", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
        ],
        indexes: &[],
    };
}

pub mod mac_binding {
    use super::{Column, ColumnId, Kind, Table, column, Int, One, Str, Uuid};

    pub const DATAPATH: Column<One<Uuid>> = Column::new(0);
    pub const IP: Column<One<Str>> = Column::new(1);
    pub const LOGICAL_PORT: Column<One<Str>> = Column::new(2);
    pub const MAC: Column<One<Str>> = Column::new(3);
    pub const TIMESTAMP: Column<One<Int>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "MAC_Binding",
        id: 25,
        is_root: true,
        columns: &[
            column("datapath", (Kind::Uuid, Some(("Datapath_Binding", true))), (1, 1), None, false),
            column("ip", (Kind::Str, None), (1, 1), None, false),
            column("logical_port", (Kind::Str, None), (1, 1), None, false),
            column("mac", (Kind::Str, None), (1, 1), None, false),
            column("timestamp", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2), ColumnId(1)]],
    };
}

pub mod meter {
    use super::{Column, ColumnId, Kind, Table, column, One, Set, Str, Uuid};

    pub const BANDS: Column<Set<Uuid>> = Column::new(0);
    pub const NAME: Column<One<Str>> = Column::new(1);
    pub const UNIT: Column<One<Str>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Meter",
        id: 26,
        is_root: true,
        columns: &[
            column("bands", (Kind::Uuid, Some(("Meter_Band", true))), (1, u32::MAX), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("unit", (Kind::Str, None), (1, 1), None, true),
        ],
        indexes: &[&[ColumnId(1)]],
    };
}

pub mod meter_band {
    use super::{Column, Kind, Table, column, Int, One, Str};

    pub const ACTION: Column<One<Str>> = Column::new(0);
    pub const BURST_SIZE: Column<One<Int>> = Column::new(1);
    pub const RATE: Column<One<Int>> = Column::new(2);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Meter_Band",
        id: 27,
        is_root: false,
        columns: &[
            column("action", (Kind::Str, None), (1, 1), None, true),
            column("burst_size", (Kind::Int, None), (1, 1), None, false),
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
        id: 28,
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

pub mod multicast_group {
    use super::{Column, ColumnId, Kind, Table, column, Int, One, Set, Str, Uuid};

    pub const DATAPATH: Column<One<Uuid>> = Column::new(0);
    pub const NAME: Column<One<Str>> = Column::new(1);
    pub const PORTS: Column<Set<Uuid>> = Column::new(2);
    pub const TUNNEL_KEY: Column<One<Int>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Multicast_Group",
        id: 29,
        is_root: true,
        columns: &[
            column("datapath", (Kind::Uuid, Some(("Datapath_Binding", true))), (1, 1), None, false),
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("ports", (Kind::Uuid, Some(("Port_Binding", false))), (0, u32::MAX), None, false),
            column("tunnel_key", (Kind::Int, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(0), ColumnId(3)], &[ColumnId(0), ColumnId(1)]],
    };
}

pub mod port_binding {
    use super::{Column, ColumnId, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str, Uuid};

    pub const ADDITIONAL_CHASSIS: Column<Set<Uuid>> = Column::new(0);
    pub const ADDITIONAL_ENCAP: Column<Set<Uuid>> = Column::new(1);
    pub const CHASSIS: Column<Opt<Uuid>> = Column::new(2);
    pub const DATAPATH: Column<One<Uuid>> = Column::new(3);
    pub const ENCAP: Column<Opt<Uuid>> = Column::new(4);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(5);
    pub const GATEWAY_CHASSIS: Column<Set<Uuid>> = Column::new(6);
    pub const HA_CHASSIS_GROUP: Column<Opt<Uuid>> = Column::new(7);
    pub const LOGICAL_PORT: Column<One<Str>> = Column::new(8);
    pub const MAC: Column<Set<Str>> = Column::new(9);
    pub const MIRROR_RULES: Column<Set<Uuid>> = Column::new(10);
    pub const NAT_ADDRESSES: Column<Set<Str>> = Column::new(11);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(12);
    pub const PARENT_PORT: Column<Opt<Str>> = Column::new(13);
    pub const PORT_SECURITY: Column<Set<Str>> = Column::new(14);
    pub const REQUESTED_ADDITIONAL_CHASSIS: Column<Set<Uuid>> = Column::new(15);
    pub const REQUESTED_CHASSIS: Column<Opt<Uuid>> = Column::new(16);
    pub const TAG: Column<Opt<Int>> = Column::new(17);
    pub const TUNNEL_KEY: Column<One<Int>> = Column::new(18);
    pub const TYPE: Column<One<Str>> = Column::new(19);
    pub const UP: Column<Opt<Bool>> = Column::new(20);
    pub const VIRTUAL_PARENT: Column<Opt<Str>> = Column::new(21);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Port_Binding",
        id: 30,
        is_root: true,
        columns: &[
            column("additional_chassis", (Kind::Uuid, Some(("Chassis", false))), (0, u32::MAX), None, false),
            column("additional_encap", (Kind::Uuid, Some(("Encap", false))), (0, u32::MAX), None, false),
            column("chassis", (Kind::Uuid, Some(("Chassis", false))), (0, 1), None, false),
            column("datapath", (Kind::Uuid, Some(("Datapath_Binding", true))), (1, 1), None, false),
            column("encap", (Kind::Uuid, Some(("Encap", false))), (0, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("gateway_chassis", (Kind::Uuid, Some(("Gateway_Chassis", true))), (0, u32::MAX), None, false),
            column("ha_chassis_group", (Kind::Uuid, Some(("HA_Chassis_Group", true))), (0, 1), None, false),
            column("logical_port", (Kind::Str, None), (1, 1), None, false),
            column("mac", (Kind::Str, None), (0, u32::MAX), None, false),
            column("mirror_rules", (Kind::Uuid, Some(("Mirror", false))), (0, u32::MAX), None, false),
            column("nat_addresses", (Kind::Str, None), (0, u32::MAX), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("parent_port", (Kind::Str, None), (0, 1), None, false),
            column("port_security", (Kind::Str, None), (0, u32::MAX), None, false),
            column("requested_additional_chassis", (Kind::Uuid, Some(("Chassis", false))), (0, u32::MAX), None, false),
            column("requested_chassis", (Kind::Uuid, Some(("Chassis", false))), (0, 1), None, false),
            column("tag", (Kind::Int, None), (0, 1), None, false),
            column("tunnel_key", (Kind::Int, None), (1, 1), None, false),
            column("type", (Kind::Str, None), (1, 1), None, false),
            column("up", (Kind::Bool, None), (0, 1), None, false),
            column("virtual_parent", (Kind::Str, None), (0, 1), None, false),
        ],
        indexes: &[&[ColumnId(3), ColumnId(18)], &[ColumnId(8)]],
    };
}

pub mod port_group {
    use super::{Column, ColumnId, Kind, Table, column, One, Set, Str};

    pub const NAME: Column<One<Str>> = Column::new(0);
    pub const PORTS: Column<Set<Str>> = Column::new(1);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Port_Group",
        id: 31,
        is_root: true,
        columns: &[
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("ports", (Kind::Str, None), (0, u32::MAX), None, false),
        ],
        indexes: &[&[ColumnId(0)]],
    };
}

pub mod rbac_permission {
    use super::{Column, Kind, Table, column, Bool, One, Set, Str};

    pub const AUTHORIZATION: Column<Set<Str>> = Column::new(0);
    pub const INSERT_DELETE: Column<One<Bool>> = Column::new(1);
    pub const TABLE_COLUMN: Column<One<Str>> = Column::new(2);
    pub const UPDATE: Column<Set<Str>> = Column::new(3);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "RBAC_Permission",
        id: 32,
        is_root: true,
        columns: &[
            column("authorization", (Kind::Str, None), (0, u32::MAX), None, false),
            column("insert_delete", (Kind::Bool, None), (1, 1), None, false),
            column("table", (Kind::Str, None), (1, 1), None, false),
            column("update", (Kind::Str, None), (0, u32::MAX), None, false),
        ],
        indexes: &[],
    };
}

pub mod rbac_role {
    use super::{Column, Kind, Table, column, Map, One, Str, Uuid};

    pub const NAME: Column<One<Str>> = Column::new(0);
    pub const PERMISSIONS: Column<Map<Str, Uuid>> = Column::new(1);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "RBAC_Role",
        id: 33,
        is_root: true,
        columns: &[
            column("name", (Kind::Str, None), (1, 1), None, false),
            column("permissions", (Kind::Str, None), (0, u32::MAX), Some((Kind::Uuid, Some(("RBAC_Permission", false)))), false),
        ],
        indexes: &[],
    };
}

pub mod sb_global {
    use super::{Column, Kind, Table, column, Bool, Int, Map, One, Opt, Set, Str, Uuid};

    pub const CONNECTIONS: Column<Set<Uuid>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const IPSEC: Column<One<Bool>> = Column::new(2);
    pub const NB_CFG: Column<One<Int>> = Column::new(3);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(4);
    pub const SSL: Column<Opt<Uuid>> = Column::new(5);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "SB_Global",
        id: 34,
        is_root: true,
        columns: &[
            column("connections", (Kind::Uuid, Some(("Connection", true))), (0, u32::MAX), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ipsec", (Kind::Bool, None), (1, 1), None, false),
            column("nb_cfg", (Kind::Int, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
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
        id: 35,
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
    use super::{Column, ColumnId, Kind, Table, column, Int, Map, One, Opt, Str};

    pub const CHASSIS_NAME: Column<One<Str>> = Column::new(0);
    pub const EXTERNAL_IDS: Column<Map<Str, Str>> = Column::new(1);
    pub const IP: Column<One<Str>> = Column::new(2);
    pub const LOGICAL_PORT: Column<One<Str>> = Column::new(3);
    pub const OPTIONS: Column<Map<Str, Str>> = Column::new(4);
    pub const PORT: Column<One<Int>> = Column::new(5);
    pub const PROTOCOL: Column<Opt<Str>> = Column::new(6);
    pub const SRC_IP: Column<One<Str>> = Column::new(7);
    pub const SRC_MAC: Column<One<Str>> = Column::new(8);
    pub const STATUS: Column<Opt<Str>> = Column::new(9);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Service_Monitor",
        id: 36,
        is_root: true,
        columns: &[
            column("chassis_name", (Kind::Str, None), (1, 1), None, false),
            column("external_ids", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("ip", (Kind::Str, None), (1, 1), None, false),
            column("logical_port", (Kind::Str, None), (1, 1), None, false),
            column("options", (Kind::Str, None), (0, u32::MAX), Some((Kind::Str, None)), false),
            column("port", (Kind::Int, None), (1, 1), None, false),
            column("protocol", (Kind::Str, None), (0, 1), None, true),
            column("src_ip", (Kind::Str, None), (1, 1), None, false),
            column("src_mac", (Kind::Str, None), (1, 1), None, false),
            column("status", (Kind::Str, None), (0, 1), None, true),
        ],
        indexes: &[&[ColumnId(3), ColumnId(2), ColumnId(5), ColumnId(6)]],
    };
}

pub mod static_mac_binding {
    use super::{Column, ColumnId, Kind, Table, column, Bool, One, Str, Uuid};

    pub const DATAPATH: Column<One<Uuid>> = Column::new(0);
    pub const IP: Column<One<Str>> = Column::new(1);
    pub const LOGICAL_PORT: Column<One<Str>> = Column::new(2);
    pub const MAC: Column<One<Str>> = Column::new(3);
    pub const OVERRIDE_DYNAMIC_MAC: Column<One<Bool>> = Column::new(4);

    pub const TABLE: &Table = &DEFINITION;

    pub(super) static DEFINITION: Table = Table {
        name: "Static_MAC_Binding",
        id: 37,
        is_root: true,
        columns: &[
            column("datapath", (Kind::Uuid, Some(("Datapath_Binding", true))), (1, 1), None, false),
            column("ip", (Kind::Str, None), (1, 1), None, false),
            column("logical_port", (Kind::Str, None), (1, 1), None, false),
            column("mac", (Kind::Str, None), (1, 1), None, false),
            column("override_dynamic_mac", (Kind::Bool, None), (1, 1), None, false),
        ],
        indexes: &[&[ColumnId(2), ColumnId(1)]],
    };
}
