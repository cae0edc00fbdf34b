//! The list of everything that can be set. One row here is a flag, a file key, a typed field, a line
//! of help, a line of the sample file and a line of docs/configuration.md.
//!
//! To add a setting, add a row; `UPDATE=1 cargo test -p ovnkube-config --test table` renews sample and docs.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnetwork::{IpNetwork, Ipv4Network, Ipv6Network};

use crate::database::DbAddress;
use crate::selector::LabelSelector;
use crate::table::Stage::{Ignored, Later};
use crate::typed::settings;
use crate::values::{ClusterSubnet, Collector, EncapType, GatewayMode, NodeMode, Secret, UdnIsolation};

const PORT: Option<(i64, i64)> = Some((1, 65535));
const SECONDS: Option<(i64, i64)> = Some((1, 3600));
const ANY_COUNT: Option<(i64, i64)> = Some((0, u32::MAX as i64));

settings! {
    /// Run modes and process
    command_line: CommandLine, "" {
        /// Run as master: cluster manager and network controller; the value is this host's name.
        init_master: Option<String> { flag: "init-master" }
        /// Run the cluster manager, which hands out node subnets and needs no OVN database; the value is this host's name.
        init_cluster_manager: Option<String> { flag: "init-cluster-manager" }
        /// Run the network controller, which writes the OVN northbound database; the value is this host's name.
        init_ovnkube_controller: Option<String> { flag: "init-ovnkube-controller" }
        /// Run the node agent; the value is the node's name in Kubernetes.
        init_node: Option<String> { flag: "init-node" }
        /// Remove what the node agent set up on this host and exit; the value is the node's name in Kubernetes.
        cleanup_node: Option<String> { flag: "cleanup-node" }
        /// Remove a node from the OVN databases and exit; the value is the node's name in Kubernetes.
        remove_node: Option<String> { flag: "remove-node" }
        /// Path of the configuration file. The default file may be missing; a file that is named here must exist.
        config_file: PathBuf { flag: "config-file", default: "/etc/openvswitch/ovn_k8s.conf" }
        /// File that holds the process id while ovnkube runs; empty writes none.
        pidfile: Option<PathBuf> { flag: "pidfile" }
        /// Record every input of the controller in this file, for `ovnkube replay`; empty records nothing.
        record: Option<PathBuf> { flag: "record" }
        /// Take over a northbound database although it has rows of features of ovn-kubernetes that ovnkube does not support; these rows stay as they are.
        allow_unserved: bool { flag: "allow-unserved", default: "false" }
        /// Run the node agent without privileges; the CNI program wires the pods.
        unprivileged_mode: bool { flag: "unprivileged-mode", default: "false", stage: Later }
        /// Support IP multicast: switches snoop IGMP and MLD, and the cluster router relays multicast.
        enable_multicast: bool { flag: "enable-multicast", default: "false" }
        /// Older form of --gateway-mode=shared.
        init_gateways: bool { flag: "init-gateways", default: "false" }
        /// Older form of --gateway-mode=local.
        gateway_local: bool { flag: "gateway-local", aliases: &["gateway-localnet"], default: "false" }
        /// Older switch of the network controller.
        net_controller: bool { flag: "net-controller", default: "false", stage: Ignored("--init-master runs the network controller") }
        /// Older switch for restoring databases.
        ha: bool { flag: "ha", default: "false", stage: Ignored("rows are always brought back to what the cluster needs") }
        /// Older switch that leaves the gateway interface to OVN alone.
        gateway_spare_interface: bool { flag: "gateway-spare-interface", default: "false", stage: Ignored("the host and OVN share its addresses on the bridge") }
        /// Network id of the Windows Host Networking Service (HNS).
        win_hnsnetwork_id: Option<String> { flag: "win-hnsnetwork-id", stage: Ignored("nodes run Linux") }
        /// Do not write the pod's uid (iface-id-ver) to its logical port.
        disable_ovn_iface_id_ver: bool { flag: "disable-ovn-iface-id-ver", default: "false" }
    }

    /// Common
    default: General, "default" {
        /// MTU of the pods' interfaces, in bytes; the network between the nodes must carry 58 bytes more (78 over ipv6). If it is not set, a node subtracts the tunnel headers from its uplink's MTU, or uses 1400 if that is not known.
        mtu: u32 { key: "mtu", flag: "mtu", default: "1400", range: Some((576, 65535)) }
        /// MTU of the routes of pods and of the management port, in bytes, while nodes change to another MTU one by one; 0 sets none.
        routable_mtu: u32 { key: "routable-mtu", flag: "routable-mtu", default: "0", range: Some((0, 65535)) }
        /// Conntrack zone of the gateway's flows; the next four zones are used too.
        conntrack_zone: u16 { key: "conntrack-zone", flag: "conntrack-zone", default: "64000", range: Some((1, 65531)) }
        /// Tunnel protocol between nodes: geneve or vxlan.
        encap_type: EncapType { key: "encap-type", flag: "encap-type", default: "geneve" }
        /// Addresses of this node's tunnel endpoint, a comma list; if empty, the node's internal address.
        encap_ip: Vec<IpAddr> { key: "encap-ip", flag: "encap-ip" }
        /// UDP port of the tunnels; if empty, 6081 for geneve and 4789 for vxlan. It must be the same on masters and all nodes.
        encap_port: Option<u16> { key: "encap-port", flag: "encap-port", range: PORT }
        /// Milliseconds without traffic after which ovn-controller probes its connection to the southbound database; 0 does not probe.
        inactivity_probe: u32 { key: "inactivity-probe", flag: "inactivity-probe", default: "100000", range: ANY_COUNT }
        /// Seconds without traffic after which ovn-controller probes its connection to the local switch; 0 does not probe. OVN 24.03 and later ignores it.
        openflow_probe: u32 { key: "openflow-probe", flag: "openflow-probe", default: "180", range: ANY_COUNT }
        /// Milliseconds that ovn-controller keeps old flows after it starts; 0 clears them at once. OVN 25.09 and later ignores it.
        ofctrl_wait_before_clear: u32 { key: "ofctrl-wait-before-clear", flag: "ofctrl-wait-before-clear", default: "0", range: ANY_COUNT }
        /// Let ovn-controller monitor the whole southbound database, not only the part that its node needs.
        monitor_all: bool { key: "monitor-all", flag: "monitor-all", default: "true" }
        /// Time after which a database transaction without a reply has failed.
        db_txn_timeout: Duration { key: "db-txn-timeout", flag: "db-txn-timeout", default: "1m40s" }
        /// Let ovn-controller cache logical flows.
        enable_lflow_cache: bool { key: "enable-lflow-cache", flag: "enable-lflow-cache", default: "true" }
        /// Largest number of cached logical flows; 0 is no limit.
        lflow_cache_limit: u32 { key: "lflow-cache-limit", flag: "lflow-cache-limit", default: "0", range: ANY_COUNT }
        /// Largest size of the logical flow cache in kilobytes; 0 is no limit.
        lflow_cache_limit_kb: u32 { key: "lflow-cache-limit-kb", flag: "lflow-cache-limit-kb", default: "0", range: ANY_COUNT }
        /// Ranges of pod addresses, a comma list of CIDR[/hostprefix]; hostprefix is the prefix length of one node's subnet (ipv4: 24 if not given, ipv6: always 64).
        cluster_subnets: Vec<ClusterSubnet> { key: "cluster-subnets", flag: "cluster-subnets", aliases: &["cluster-subnet"], default: "11.11.0.0/16" }
        /// Zone of this process; `global` is one zone for the whole cluster.
        zone: String { key: "zone", flag: "zone", default: "global", stage: Later }
        /// Services, a comma list of namespace/name, that user-defined primary networks may reach.
        udn_allowed_default_services: Vec<String> { key: "udn-allowed-default-services", flag: "udn-allowed-default-services", default: "default/kubernetes,kube-system/kube-dns", stage: Later }
        /// NetworkAttachmentDefinition, namespace/name, of the default network.
        cluster_default_nad: Option<String> { key: "cluster-default-nad", flag: "cluster-default-nad", stage: Later }
        /// Transport between nodes; empty and geneve are the overlay network.
        transport: Option<String> { key: "transport", flag: "transport", stage: Later }
        /// Let the kernel aggregate UDP packets between pods.
        enable_udp_aggregation: bool { key: "enable-udp-aggregation", default: "false", stage: Later }
    }

    /// Logging
    logging: Logging, "logging" {
        /// Log messages up to this level: 1 fatal, 2 error, 3 warning, 4 information, 5 debug.
        loglevel: u8 { key: "loglevel", flag: "loglevel", default: "4", range: Some((1, 5)) }
        /// File for the log; empty is standard error.
        logfile: Option<PathBuf> { key: "logfile", flag: "logfile" }
        /// File for the log of the CNI program.
        cnilogfile: Option<PathBuf> { key: "cnilogfile", flag: "cnilogfile", default: "/var/log/ovn-kubernetes/ovn-k8s-cni-overlay.log" }
        /// File for the log of the database client; empty is the same as logfile.
        libovsdblogfile: Option<PathBuf> { key: "libovsdblogfile", flag: "libovsdblogfile", stage: Later }
        /// Size of the log file, in megabytes, at which a new one is started.
        logfile_maxsize: u32 { key: "logfile-maxsize", flag: "logfile-maxsize", default: "100", range: Some((1, 1_000_000)) }
        /// Old log files to keep; 0 keeps all.
        logfile_maxbackups: u32 { key: "logfile-maxbackups", flag: "logfile-maxbackups", default: "5", range: ANY_COUNT }
        /// Days to keep old log files; 0 keeps them for ever.
        logfile_maxage: u32 { key: "logfile-maxage", flag: "logfile-maxage", default: "5", range: ANY_COUNT }
        /// Most policy verdicts of each ACL that a node logs per second.
        acl_logging_rate_limit: u32 { key: "acl-logging-rate-limit", flag: "acl-logging-rate-limit", default: "20", range: ANY_COUNT }
    }

    /// CNI
    cni: Cni, "cni" {
        /// Directory of the CNI configuration.
        conf_dir: PathBuf { key: "conf-dir", flag: "cni-conf-dir", default: "/etc/cni/net.d" }
        /// The container runtime's directory of CNI programs. If it contains `portmap`, pods can have host ports.
        bin_dir: PathBuf { key: "bin-dir", flag: "cni-bin-dir", default: "/opt/cni/bin" }
        /// Path of the CNI program that a node agent copies to that directory when it starts; empty copies none.
        program: Option<PathBuf> { key: "program", flag: "cni-program" }
        /// File name of the CNI program.
        plugin: String { key: "plugin", flag: "cni-plugin", default: "ovn-k8s-cni-overlay" }
    }

    /// Kubernetes
    kubernetes: Kubernetes, "kubernetes" {
        /// Path of a kubeconfig file; it replaces apiserver, cacert and token of the same layer and of lower ones.
        kubeconfig: Option<PathBuf> { key: "kubeconfig", flag: "k8s-kubeconfig", env: "KUBECONFIG" }
        /// URL of the API server.
        apiserver: String { key: "apiserver", flag: "k8s-apiserver", env: "K8S_APISERVER", default: "http://localhost:8443" }
        /// Certificate authority of the API server, a PEM file.
        cacert: Option<PathBuf> { key: "cacert", flag: "k8s-cacert", env: "K8S_CACERT" }
        /// Certificate authority of the API server, base64 of the PEM text.
        cacert_data: Option<String> { key: "cacert-data", flag: "k8s-cacert-data", env: "K8S_CACERT_DATA" }
        /// Bearer token for the API server. Every user of the host can see a token on the command line: prefer k8s-token-file.
        token: Secret { key: "token", flag: "k8s-token", env: "K8S_TOKEN", secret: true }
        /// File with the bearer token; it is read again when it changes.
        token_file: Option<PathBuf> { key: "tokenFile", flag: "k8s-token-file", env: "K8S_TOKEN_FILE" }
        /// Kubeconfig with which a node agent asks for a client certificate of its own, the kubelet's; needs cert-dir.
        bootstrap_kubeconfig: Option<PathBuf> { key: "bootstrap-kubeconfig", flag: "bootstrap-kubeconfig", env: "BOOTSTRAP_KUBECONFIG" }
        /// Directory of the client certificate, ovnkube-client-current.pem; it replaces the token, or the user of the kubeconfig.
        cert_dir: Option<PathBuf> { key: "cert-dir", flag: "cert-dir", env: "CERT_DIR" }
        /// How long certificates shall be valid that a node agent asks for, from 10m0s to 8760h0m0s.
        cert_duration: Duration { key: "cert-duration", flag: "cert-duration", default: "10m0s" }
        /// Ranges of service addresses, a comma list with one CIDR per address family; the same as the API server's --service-cluster-ip-range.
        service_cidrs: Vec<IpNetwork> { key: "service-cidrs", flag: "k8s-service-cidrs", aliases: &["k8s-service-cidr", "service-cluster-ip-range"], old_keys: &[("kubernetes", "service-cidr")], default: "172.16.1.0/24" }
        /// Do not serve the addresses in spec.externalIPs of services. It must be the same on masters and all nodes.
        disable_external_ips: bool { key: "disable-external-ips", flag: "disable-external-ips", default: "false" }
        /// Ranges of the addresses that are allowed in spec.externalIPs of services, a comma list; empty allows all. An address at which nodes reach the API server, a database or their DNS is served only if it is an entry of its own (10.0.0.1/32). It must be the same on masters and all nodes.
        allowed_external_ips: Vec<IpNetwork> { key: "allowed-external-ips", flag: "allowed-external-ips" }
        /// Namespace of ovnkube's own objects.
        ovn_config_namespace: String { key: "ovn-config-namespace", flag: "ovn-config-namespace", default: "ovn-kubernetes" }
        /// Keep load balancers without backends and raise an event when traffic for one arrives.
        ovn_empty_lb_events: bool { key: "ovn-empty-lb-events", flag: "ovn-empty-lb-events", default: "false", stage: Later }
        /// Accepted for old command lines.
        pod_ip: Option<String> { key: "pod-ip", flag: "pod-ip", stage: Ignored("the address is taken from the node object") }
        /// Label selector of nodes to which ovnkube gives no subnet.
        no_hostsubnet_nodes: Option<LabelSelector> { key: "no-hostsubnet-nodes", flag: "no-hostsubnet-nodes" }
        /// Namespace that represents the nodes' own traffic in network policies.
        host_network_namespace: Option<String> { key: "host-network-namespace", flag: "host-network-namespace", env: "OVN_HOST_NETWORK_NAMESPACE" }
        /// Do not write the pod's chassis (requested-chassis) to its logical port.
        disable_requestedchassis: bool { key: "disable-requestedchassis", flag: "disable-requestedchassis", default: "false" }
        /// Cloud platform that the cluster runs on.
        platform_type: Option<String> { key: "platform-type", flag: "platform-type", stage: Later }
        /// Address and port of the health check; empty is off.
        healthz_bind_address: Option<SocketAddr> { key: "healthz-bind-address", flag: "healthz-bind-address" }
        /// Namespace of the cluster's DNS service.
        dns_service_namespace: String { key: "dns-service-namespace", flag: "dns-service-namespace", default: "kube-system", stage: Later }
        /// Name of the cluster's DNS service.
        dns_service_name: String { key: "dns-service-name", flag: "dns-service-name", default: "kube-dns", stage: Later }
    }

    /// OVN northbound database
    ovnnorth: OvnNorth, "ovnnorth" {
        /// Addresses of the database, a comma list of tcp:host:port, ssl:host:port or unix:path; empty is the local socket.
        address: DbAddress { key: "address", flag: "nb-address" }
        /// Client's private key for ssl addresses.
        client_privkey: PathBuf { key: "client-privkey", flag: "nb-client-privkey", default: "/etc/openvswitch/ovnnb-privkey.pem" }
        /// Client's certificate for ssl addresses.
        client_cert: PathBuf { key: "client-cert", flag: "nb-client-cert", default: "/etc/openvswitch/ovnnb-cert.pem" }
        /// Certificate authority of the server for ssl addresses.
        client_cacert: PathBuf { key: "client-cacert", flag: "nb-client-cacert", default: "/etc/openvswitch/ovnnb-ca.cert" }
        /// Name that the server's certificate must have; if empty, the host in its address.
        cert_common_name: Option<String> { key: "cert-common-name", flag: "nb-cert-common-name" }
        /// Seconds after which members of a Raft cluster without a leader elect one; from 1000 on, milliseconds; 0 does not change it. The master on the leader's host sets it.
        election_timer: u32 { key: "election-timer", flag: "nb-raft-election-timer", default: "0", range: Some((0, 600_000)) }
        /// Directory of the database's socket.
        run_dir: PathBuf { key: "run-dir", flag: "nb-run-dir", default: "/var/run/ovn/" }
        /// File of the database on this host, for ovnkube db; if it does not exist, the one where OVN's packages have it.
        db_location: PathBuf { key: "db-location", flag: "nb-db-location", default: "/etc/ovn/ovnnb_db.db" }
        /// Server's private key; with the next two, the master writes its path to the database, and the port of an ssl address.
        server_privkey: Option<PathBuf> { key: "server-privkey", flag: "nb-server-privkey" }
        /// Server's certificate.
        server_cert: Option<PathBuf> { key: "server-cert", flag: "nb-server-cert" }
        /// Certificate authority of the clients.
        server_cacert: Option<PathBuf> { key: "server-cacert", flag: "nb-server-cacert" }
    }

    /// OVN southbound database
    ovnsouth: OvnSouth, "ovnsouth" {
        /// Addresses of the database, a comma list of tcp:host:port, ssl:host:port or unix:path; empty is the local socket.
        address: DbAddress { key: "address", flag: "sb-address" }
        /// Client's private key for ssl addresses.
        client_privkey: PathBuf { key: "client-privkey", flag: "sb-client-privkey", default: "/etc/openvswitch/ovnsb-privkey.pem" }
        /// Client's certificate for ssl addresses.
        client_cert: PathBuf { key: "client-cert", flag: "sb-client-cert", default: "/etc/openvswitch/ovnsb-cert.pem" }
        /// Certificate authority of the server for ssl addresses.
        client_cacert: PathBuf { key: "client-cacert", flag: "sb-client-cacert", default: "/etc/openvswitch/ovnsb-ca.cert" }
        /// Name that the server's certificate must have; if empty, the host in its address.
        cert_common_name: Option<String> { key: "cert-common-name", flag: "sb-cert-common-name" }
        /// Seconds after which members of a Raft cluster without a leader elect one; from 1000 on, milliseconds; 0 does not change it. The master on the leader's host sets it.
        election_timer: u32 { key: "election-timer", flag: "sb-raft-election-timer", default: "0", range: Some((0, 600_000)) }
        /// Directory of the database's socket.
        run_dir: PathBuf { key: "run-dir", flag: "sb-run-dir", default: "/var/run/ovn/" }
        /// File of the database on this host, for ovnkube db; if it does not exist, the one where OVN's packages have it.
        db_location: PathBuf { key: "db-location", flag: "sb-db-location", default: "/etc/ovn/ovnsb_db.db" }
        /// Server's private key; with the next two, the master writes its path to the database, and the port of an ssl address.
        server_privkey: Option<PathBuf> { key: "server-privkey", flag: "sb-server-privkey" }
        /// Server's certificate.
        server_cert: Option<PathBuf> { key: "server-cert", flag: "sb-server-cert" }
        /// Certificate authority of the clients.
        server_cacert: Option<PathBuf> { key: "server-cacert", flag: "sb-server-cacert" }
    }

    /// Open vSwitch
    ovspaths: OvsPaths, "ovspaths" {
        /// Directory of the switch's database socket.
        run_dir: PathBuf { key: "run-dir", flag: "ovs-run-dir", default: "/var/run/openvswitch/" }
    }

    /// Gateway
    gateway: Gateway, "gateway" {
        /// How pods' traffic leaves a node: shared (through OVN) or local (through the host); empty is no gateway.
        mode: Option<GatewayMode> { key: "mode", flag: "gateway-mode" }
        /// Interface or bridge to the outside, which has the node's addresses; if empty, that of the default route.
        interface: Option<String> { key: "interface", flag: "gateway-interface" }
        /// Second interface, for egress gateways.
        egw_interface: Option<String> { key: "egw-interface", flag: "exgw-interface", stage: Later }
        /// Accelerated interface of the gateway.
        accelerated_interface: Option<String> { key: "gateway-accelerated-interface", flag: "gateway-accelerated-interface", stage: Later }
        /// Representor on a DPU of the host's gateway interface.
        dpu_host_representor_interface: Option<String> { key: "dpu-host-gateway-representor-interface", flag: "dpu-host-gateway-representor-interface", stage: Later }
        /// Next hops to the outside, a comma list with one per address family; if empty, those of the default routes.
        next_hop: Vec<IpAddr> { key: "next-hop", flag: "gateway-nexthop" }
        /// VLAN of the outside network; 0 is none.
        vlan_id: u16 { key: "vlan-id", flag: "gateway-vlanid", default: "0", range: Some((0, 4094)) }
        /// Serve node ports on the gateways.
        nodeport: bool { key: "nodeport", flag: "nodeport", default: "false" }
        /// Give each pod its own SNAT at the gateway router, and deliver packets from outside to a pod's own address. It must be the same on masters and all nodes.
        disable_snat_multiple_gws: bool { key: "disable-snat-multiple-gws", flag: "disable-snat-multiple-gws", default: "false" }
        /// Forward packets on ovnkube's interfaces only.
        disable_forwarding: bool { key: "disable-forwarding", flag: "disable-forwarding", default: "false" }
        /// Range of the join switch, ipv4.
        v4_join_subnet: Ipv4Network { key: "v4-join-subnet", flag: "gateway-v4-join-subnet", default: "100.64.0.0/16" }
        /// Range of the join switch, ipv6.
        v6_join_subnet: Ipv6Network { key: "v6-join-subnet", flag: "gateway-v6-join-subnet", default: "fd98::/64" }
        /// Range of the masquerade addresses, which represent the host on the gateway, ipv4.
        v4_masquerade_subnet: Ipv4Network { key: "v4-masquerade-subnet", flag: "gateway-v4-masquerade-subnet", default: "169.254.169.0/29" }
        /// Range of the masquerade addresses, which represent the host on the gateway, ipv6.
        v6_masquerade_subnet: Ipv6Network { key: "v6-masquerade-subnet", flag: "gateway-v6-masquerade-subnet", default: "fd69::/125" }
        /// Do not check at the gateway whether packets fit the pods' MTU.
        disable_pkt_mtu_check: bool { key: "disable-pkt-mtu-check", flag: "disable-pkt-mtu-check", default: "false" }
        /// Subnet of the gateway router's external port; if empty, it is detected.
        router_subnet: Option<IpNetwork> { key: "router-subnet", flag: "gateway-router-subnet", stage: Later }
        /// The cluster has one node, so that pods may use the whole MTU of the uplink.
        single_node: bool { key: "single-node", flag: "single-node", default: "false" }
        /// Allow a gateway bridge without an interface to the outside.
        allow_no_uplink: bool { key: "allow-no-uplink", flag: "allow-no-uplink", default: "false" }
        /// Ports for translated connections, first-last; empty is the kernel's range.
        ephemeral_port_range: Option<String> { key: "ephemeral-port-range", flag: "ephemeral-port-range", stage: Later }
    }

    /// Master high availability
    masterha: MasterHa, "masterha" {
        /// Seconds without a renewal after which another master may take the lease.
        election_lease_duration: u32 { key: "election-lease-duration", flag: "ha-election-lease-duration", default: "10", range: SECONDS }
        /// Seconds within which the active master must renew the lease; otherwise it stops writing.
        election_renew_deadline: u32 { key: "election-renew-deadline", flag: "ha-election-renew-deadline", default: "8", range: SECONDS }
        /// Seconds between two renewals of the lease. Who waits for it looks more often.
        election_retry_period: u32 { key: "election-retry-period", flag: "ha-election-retry-period", default: "2", range: SECONDS }
    }

    /// Cluster manager high availability
    clustermgrha: ClusterManagerHa, "clustermgrha" {
        /// Seconds without a renewal after which another cluster manager may take the lease.
        election_lease_duration: u32 { key: "election-lease-duration", flag: "cluster-manager-ha-election-lease-duration", default: "10", range: SECONDS }
        /// Seconds within which the active cluster manager must renew the lease; otherwise it stops writing.
        election_renew_deadline: u32 { key: "election-renew-deadline", flag: "cluster-manager-ha-election-renew-deadline", default: "8", range: SECONDS }
        /// Seconds between two renewals of the lease. Who waits for it looks more often.
        election_retry_period: u32 { key: "election-retry-period", flag: "cluster-manager-ha-election-retry-period", default: "2", range: SECONDS }
    }

    /// Cluster manager
    clustermanager: ClusterManager, "clustermanager" {
        /// Range of the transit switch between zones, ipv4.
        v4_transit_subnet: Ipv4Network { key: "v4-transit-switch-subnet", flag: "cluster-manager-v4-transit-switch-subnet", aliases: &["cluster-manager-v4-transit-subnet"], old_keys: &[("clustermanager", "v4-transit-subnet")], default: "100.88.0.0/16", stage: Later }
        /// Range of the transit switch between zones, ipv6.
        v6_transit_subnet: Ipv6Network { key: "v6-transit-switch-subnet", flag: "cluster-manager-v6-transit-switch-subnet", aliases: &["cluster-manager-v6-transit-subnet"], old_keys: &[("clustermanager", "v6-transit-subnet")], default: "fd97::/64", stage: Later }
    }

    /// Node agent
    ovnkubenode: OvnKubeNode, "ovnkubenode" {
        /// Where the node agent runs: full, dpu or dpu-host.
        mode: NodeMode { key: "mode", flag: "ovnkube-node-mode", default: "full", stage: Later }
        /// Network device to use as management port.
        mgmt_port_netdev: Option<String> { key: "mgmt-port-netdev", flag: "ovnkube-node-mgmt-port-netdev", stage: Later }
        /// Device plugin resource to take the management port from.
        mgmt_port_dp_resource_name: Option<String> { key: "mgmt-port-dp-resource-name", flag: "ovnkube-node-mgmt-port-dp-resource-name", stage: Later }
        /// Seconds without a renewal after which a DPU is considered down.
        dpu_node_lease_duration: u32 { key: "dpu-node-lease-duration", flag: "dpu-node-lease-duration", default: "40", range: ANY_COUNT, stage: Later }
        /// Seconds between two renewals of a DPU's lease.
        dpu_node_lease_renew_interval: u32 { key: "dpu-node-lease-renew-interval", flag: "dpu-node-lease-renew-interval", default: "10", range: ANY_COUNT, stage: Later }
        /// First number of the routing tables of user-defined networks.
        routing_table_id_start: u32 { key: "routing-table-id-start", flag: "ovnkube-node-routing-table-id-start", default: "1000", range: ANY_COUNT, stage: Later }
        /// Behave as on a DPU although there is none.
        simulate_dpu: bool { key: "simulate-dpu", flag: "simulate-dpu", default: "false", stage: Later }
    }

    /// Metrics
    metrics: Metrics, "metrics" {
        /// Address and port of ovnkube's metrics; empty is off.
        bind_address: Option<SocketAddr> { key: "bind-address", flag: "metrics-bind-address", old_keys: &[("kubernetes", "metrics-bind-address")] }
        /// Address and port of OVN's and Open vSwitch's metrics; empty is off.
        ovn_metrics_bind_address: Option<SocketAddr> { key: "ovn-metrics-bind-address", flag: "ovn-metrics-bind-address", old_keys: &[("kubernetes", "ovn-metrics-bind-address")], stage: Later }
        /// Add Open vSwitch's metrics to OVN's.
        export_ovs_metrics: bool { key: "export-ovs-metrics", flag: "export-ovs-metrics", default: "false", stage: Later }
        /// Serve profiles on the metrics port.
        enable_pprof: bool { key: "enable-pprof", flag: "metrics-enable-pprof", old_keys: &[("kubernetes", "metrics-enable-pprof")], default: "false", stage: Later }
        /// Private key for serving metrics over TLS.
        node_server_privkey: Option<PathBuf> { key: "node-server-privkey", flag: "node-server-privkey", stage: Later }
        /// Certificate for serving metrics over TLS.
        node_server_cert: Option<PathBuf> { key: "node-server-cert", flag: "node-server-cert", stage: Later }
        /// Measure how long changes take until OVN has them.
        enable_config_duration: bool { key: "enable-config-duration", flag: "metrics-enable-config-duration", default: "false", stage: Later }
        /// Add metrics about scale.
        enable_scale_metrics: bool { key: "enable-scale-metrics", flag: "metrics-enable-scale", default: "false", stage: Later }
    }

    /// TLS
    tls: TlsServing, "tls" {
        /// Lowest TLS version that servers of ovnkube accept.
        min_version: Option<String> { key: "tls-min-version", flag: "tls-min-version", stage: Later }
        /// Cipher suites that servers of ovnkube accept, a comma list.
        cipher_suites: Vec<String> { key: "tls-cipher-suites", flag: "tls-cipher-suites", stage: Later }
    }

    /// Features
    features: Features, "ovnkubernetesfeature" {
        /// Support AdminNetworkPolicy and BaselineAdminNetworkPolicy.
        admin_network_policy: bool { key: "enable-admin-network-policy", flag: "enable-admin-network-policy", default: "false", stage: Later }
        /// Support EgressIP.
        egress_ip: bool { key: "enable-egress-ip", flag: "enable-egress-ip", default: "false", stage: Later }
        /// Seconds without an answer after which an egress node is considered down; 0 does not check.
        egressip_reachability_total_timeout: u32 { key: "egressip-reachability-total-timeout", flag: "egressip-reachability-total-timeout", default: "1", range: Some((0, 3600)), stage: Later }
        /// Port of the health check between egress nodes; 0 tries to connect to port 9 instead.
        egressip_node_healthcheck_port: u16 { key: "egressip-node-healthcheck-port", flag: "egressip-node-healthcheck-port", default: "0", range: Some((0, 65535)), stage: Later }
        /// Support EgressFirewall.
        egress_firewall: bool { key: "enable-egress-firewall", flag: "enable-egress-firewall", default: "false", stage: Later }
        /// Support EgressQoS.
        egress_qos: bool { key: "enable-egress-qos", flag: "enable-egress-qos", default: "false", stage: Later }
        /// Support EgressService.
        egress_service: bool { key: "enable-egress-service", flag: "enable-egress-service", default: "false", stage: Later }
        /// Support AdminPolicyBasedExternalRoute.
        multi_external_gateway: bool { key: "enable-multi-external-gateway", flag: "enable-multi-external-gateway", default: "false", stage: Later }
        /// Support secondary networks by NetworkAttachmentDefinition.
        multi_network: bool { key: "enable-multi-network", flag: "enable-multi-network", default: "false", stage: Later }
        /// Support MultiNetworkPolicy.
        multi_networkpolicy: bool { key: "enable-multi-networkpolicy", flag: "enable-multi-networkpolicy", default: "false", stage: Later }
        /// Support user-defined networks.
        network_segmentation: bool { key: "enable-network-segmentation", flag: "enable-network-segmentation", default: "false", stage: Later }
        /// Allow the host of a pod to reach it on its user-defined primary network.
        disable_udn_host_isolation: bool { key: "disable-udn-host-isolation", flag: "disable-udn-host-isolation", default: "false", stage: Later }
        /// Time for which a deleted user-defined network is kept.
        udn_deletion_grace_period: Duration { key: "udn-deletion-grace-period", flag: "udn-deletion-grace-period", default: "2m0s", stage: Later }
        /// Make user-defined networks only on nodes that need them.
        dynamic_udn_allocation: bool { key: "enable-dynamic-udn-allocation", flag: "enable-dynamic-udn-allocation", default: "false", stage: Later }
        /// Let pods choose their addresses on user-defined primary networks.
        preconfigured_udn_addresses: bool { key: "enable-preconfigured-udn-addresses", flag: "enable-preconfigured-udn-addresses", default: "false", stage: Later }
        /// Support RouteAdvertisements.
        route_advertisements: bool { key: "enable-route-advertisements", flag: "enable-route-advertisements", default: "false", stage: Later }
        /// Isolation of advertised user-defined networks from each other: strict or loose.
        advertised_udn_isolation_mode: UdnIsolation { key: "advertised-udn-isolation-mode", flag: "advertised-udn-isolation-mode", default: "strict", stage: Later }
        /// Support EVPN for user-defined networks.
        evpn: bool { key: "enable-evpn", flag: "enable-evpn", default: "false", stage: Later }
        /// Support ClusterNetworkConnect.
        network_connect: bool { key: "enable-network-connect", flag: "enable-network-connect", default: "false", stage: Later }
        /// Support NetworkQoS.
        network_qos: bool { key: "enable-network-qos", flag: "enable-network-qos", default: "false", stage: Later }
        /// Support separate uplinks for user-defined networks.
        uplink: bool { key: "enable-uplink", flag: "enable-uplink", default: "false", stage: Later }
        /// Support network policies without connection tracking, by annotation of the policy.
        stateless_netpol: bool { key: "enable-stateless-netpol", flag: "enable-stateless-netpol", default: "false" }
        /// Always allow ICMP in network policies.
        allow_icmp_network_policy: bool { key: "allow-icmp-network-policy", flag: "allow-icmp-network-policy", default: "false", stage: Later }
        /// Make each node a zone of its own and connect the zones by a transit switch.
        interconnect: bool { key: "enable-interconnect", flag: "enable-interconnect", default: "false", stage: Later }
        /// Let a virtual machine keep its addresses when it moves to another pod.
        persistent_ips: bool { key: "enable-persistent-ips", flag: "enable-persistent-ips", default: "false", stage: Later }
        /// Resolve the names in egress firewalls by DNSNameResolver objects.
        dns_name_resolver: bool { key: "enable-dns-name-resolver", flag: "enable-dns-name-resolver", default: "false", stage: Later }
        /// Use OVN's load balancer templates for services.
        svc_template_support: bool { key: "enable-svc-template-support", flag: "enable-svc-template-support", default: "false" }
        /// Sample policy verdicts.
        observability: bool { key: "enable-observability", flag: "enable-observability", default: "false", stage: Later }
    }

    /// Hybrid overlay
    hybridoverlay: HybridOverlay, "hybridoverlay" {
        /// Connect nodes outside of OVN by VXLAN.
        enabled: bool { key: "enabled", flag: "enable-hybrid-overlay", default: "false", stage: Later }
        /// Ranges for pods on those nodes, a comma list of CIDR[/hostprefix].
        cluster_subnets: Vec<ClusterSubnet> { key: "cluster-subnets", flag: "hybrid-overlay-cluster-subnets", stage: Later }
        /// UDP port of VXLAN.
        vxlan_port: u16 { key: "hybrid-overlay-vxlan-port", flag: "hybrid-overlay-vxlan-port", default: "4789", range: PORT, stage: Later }
    }

    /// Flow monitoring
    monitoring: Monitoring, "monitoring" {
        /// NetFlow collectors, a comma list.
        netflow_targets: Vec<Collector> { key: "netflow-targets", flag: "netflow-targets", stage: Later }
        /// sFlow collectors, a comma list.
        sflow_targets: Vec<Collector> { key: "sflow-targets", flag: "sflow-targets", stage: Later }
        /// IPFIX collectors, a comma list.
        ipfix_targets: Vec<Collector> { key: "ipfix-targets", flag: "ipfix-targets", stage: Later }
    }

    /// IPFIX
    ipfix: Ipfix, "ipfix" {
        /// One of this many packets is sampled and sent to the collectors.
        sampling: u32 { key: "sampling", flag: "ipfix-sampling", default: "400", range: ANY_COUNT, stage: Later }
        /// Flow records to cache; 0 is no cache.
        cache_max_flows: u32 { key: "cache-max-flows", flag: "ipfix-cache-max-flows", default: "0", range: ANY_COUNT, stage: Later }
        /// Seconds that a flow record is cached; 0 is no cache.
        cache_active_timeout: u32 { key: "cache-active-timeout", flag: "ipfix-cache-active-timeout", default: "60", range: ANY_COUNT, stage: Later }
    }
}
