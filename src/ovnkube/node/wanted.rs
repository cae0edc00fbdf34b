//! What the settings of the process are to the node agent.

use std::time::Duration;

use ovnkube_config::Settings;
use ovnkube_model::{GatewayMode, Name, Roles};
use ovnkube_node::{ChassisSettings, CniConf, GatewaySettings, MtuSettings, NodeSettings, Tls};

use crate::translate;

/// If a host's network setup reacts to a NIC in a bridge, it does so within this time.
const PROBATION: Duration = Duration::from_secs(60);
/// Long enough for a slow DHCP server.
const FIRST_ADDRESS: Duration = Duration::from_secs(60);
/// A host's network setup sets addresses and the default route within milliseconds of each other.
const DEFAULT_ROUTE: Duration = Duration::from_secs(10);
/// A kubelet that learns of a problem makes its Node not ready: running pods leave their services at once, and are
/// evicted after five minutes. Restarts of ovs-vswitchd and ovn-controller take less than this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of the packages of OVN.
const OVN_RUN_DIR: &str = "/var/run/ovn";
pub(super) const CNI_SOCKET: &str = "/var/run/ovn-kubernetes/cni/ovn-cni-server.sock";

/// Of the local database.
pub(super) fn ovs_remote(settings: &Settings) -> String {
    format!("unix:{}", settings.ovspaths.run_dir.join("db.sock").display())
}

pub(super) fn settings(settings: &Settings, node: &Name, api_server: &str) -> NodeSettings {
    let logging = &settings.logging;
    NodeSettings {
        node: node.clone(),
        zone: translate::ZONE.into(),
        mtu: MtuSettings {
            given: settings.mtu_is_given.then_some(settings.default.mtu),
            routable: Some(settings.default.routable_mtu).filter(|mtu| *mtu > 0),
            single_node: settings.gateway.single_node,
        },
        cluster_subnets: translate::cluster_subnets(settings).iter().map(|range| range.cidr).collect(),
        masquerade_subnets: translate::masquerade_subnets(settings),
        address_rules: translate::network(settings, Roles::default()).address_rules(),
        ovs_remote: ovs_remote(settings),
        ovn_run_dir: OVN_RUN_DIR.into(),
        cni_socket: CNI_SOCKET.into(),
        cni_conf: CniConf {
            dir: settings.cni.conf_dir.clone(),
            plugins: settings.cni.bin_dir.clone(),
            plugin: settings.cni.plugin.clone(),
            log_file: logging.cnilogfile.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
            log_level: logging.loglevel.into(),
            log_max_size: logging.logfile_maxsize,
            log_max_backups: logging.logfile_maxbackups,
            log_max_age: logging.logfile_maxage,
        },
        patience: PATIENCE,
        chassis: chassis(settings),
        gateway: gateway(settings, api_server),
    }
}

fn gateway(settings: &Settings, api_server: &str) -> Option<GatewaySettings> {
    let gateway = &settings.gateway;
    let network = translate::network(settings, Roles::default());
    Some(GatewaySettings {
        mode: match gateway.mode? {
            ovnkube_config::GatewayMode::Shared => GatewayMode::Shared,
            ovnkube_config::GatewayMode::Local => GatewayMode::Local,
        },
        interface: gateway.interface.clone(),
        next_hops: gateway.next_hop.clone(),
        vlan: (gateway.vlan_id > 0).then_some(gateway.vlan_id),
        allow_no_uplink: gateway.allow_no_uplink,
        disable_forwarding: gateway.disable_forwarding,
        pods_outside: gateway.disable_snat_multiple_gws,
        node_port: gateway.nodeport,
        conntrack_zone: settings.default.conntrack_zone,
        check_mtu: !gateway.disable_pkt_mtu_check,
        encap_port: translate::encap_port(settings),
        service_cidrs: network.service_cidrs,
        join_subnets: network.join_subnets,
        api_server: Some(api_server.to_owned()),
        probation: PROBATION,
        first_address: FIRST_ADDRESS,
        default_route: DEFAULT_ROUTE,
    })
}

fn chassis(settings: &Settings) -> ChassisSettings {
    let general = &settings.default;
    let path = |path: &std::path::Path| path.display().to_string();
    let limit = |n: u32| (n > 0).then_some(n);
    let remotes: Vec<_> = translate::remotes(&settings.sb).iter().map(ToString::to_string).collect();
    ChassisSettings {
        sb_remote: remotes.join(","),
        sb_tls: settings.sb.tls.as_ref().map(|tls| Tls {
            private_key: path(&tls.privkey),
            certificate: path(&tls.cert),
            ca_certificate: path(&tls.cacert),
        }),
        encap_type: general.encap_type.to_string(),
        encap_ips: general.encap_ip.clone(),
        remote_probe_interval: general.inactivity_probe,
        openflow_probe_interval: general.openflow_probe,
        monitor_all: general.monitor_all,
        ofctrl_wait_before_clear: general.ofctrl_wait_before_clear,
        lflow_cache: general.enable_lflow_cache,
        lflow_cache_limit: limit(general.lflow_cache_limit),
        lflow_cache_limit_kb: limit(general.lflow_cache_limit_kb),
        set_local_ip: true,
    }
}
