//! The node agent: wires this node's pods, and keeps the node's own place in the network.
//!
//! ```text
//!  shim ──▶ server ─▶ request ─▶ cni ─┬▶ pair, sandbox  veth, addresses, routes (netlink)
//!                                     └▶ ovs, ports     port, ovn-installed    (OVSDB)
//!  Node ──▶ keep ─▶ chassis           Open_vSwitch settings, br-int, mp0     (OVSDB)
//!               ├─▶ replug            pods' ports that vanished            (OVSDB)
//!               ├─▶ mgmt              mp0's addresses, routes, neighbour     (netlink)
//!               ├─▶ uplink            a NIC and its bridge                  (OVSDB, netlink)
//!               ├─▶ gateway            the bridge to the outside             (OpenFlow, netlink, nft)
//!  Service ───▶ services              what gateway does for services, health checks
//!               ├─▶ annotations       what the node says about itself
//!               └─▶ conf              10-ovn-kubernetes.conflist once pods can be wired
//! ```
//! `keep` is level-triggered: any change of links, OVS rows or the Node makes it compare all of
//! the node's own state and put back what is missing. Nothing is polled.

mod annotations;
mod bandwidth;
mod chassis;
mod cleanup;
mod cni;
mod conf;
mod conf_changes;
mod gateway;
mod keep;
mod mgmt;
mod moved;
mod mtu;
mod ovs;
mod pair;
mod pods;
mod ports;
mod replug;
mod reply;
mod request;
mod sandbox;
mod server;
mod services;
mod settings;
#[cfg(test)]
mod tests;
mod turns;
mod uplink;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ovnkube_host::Net;
use ovnkube_model::{
    EndpointSlice, Mac, Name, NodeIps, Object, ObjectKey, PodKey, Service, ServiceCidr, Services, Subnet,
};
use ovnkube_telemetry::NodeHealth;
use tokio::sync::{mpsc, watch};

pub use annotations::Annotations;
pub use cleanup::{CleanupSettings, clean_up};
pub use conf::CniConf;
pub use gateway::GatewaySettings;
pub use pods::PodOnNode;
pub use reply::{CniResult, Refusal};
pub use request::{Request, Sandbox};
use services::Board;
pub use settings::{ChassisSettings, MtuSettings, NodeSettings, Tls};
#[doc(hidden)]
pub use uplink::before_each_step;

/// What the agent is told about the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A pod of this node that is not in the host's network; `None`: it is gone.
    Pod(PodKey, Option<PodOnNode>),
    /// The own Node.
    Node(OwnNode),
    /// Any service; `None`: it is gone.
    Service(ObjectKey, Option<Box<Service>>),
    EndpointSlice(ObjectKey, Option<Box<EndpointSlice>>),
    /// Ranges that services have addresses of; `None`: gone.
    ServiceCidr(Name, Option<ServiceCidr>),
    /// The addresses of any node; `None`: it is gone.
    NodeIps(Name, Option<NodeIps>),
    /// What nodes reach by which address, all of it: to be told before any service.
    Connections(BTreeMap<IpAddr, Name>),
    /// All services, slices and ranges that there are have been told.
    ServicesSynced,
    /// All nodes that there are have been told.
    NodesSynced,
}

/// The part of the own Node that the agent depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnNode {
    /// `status.addresses` of type InternalIP.
    pub internal_ips: Vec<IpAddr>,
    /// Annotation `k8s.ovn.org/node-subnets`, default network.
    pub subnets: Vec<Subnet>,
    /// Annotation `k8s.ovn.org/node-mgmt-port-mac-addresses`, default network: in place of the MAC that
    /// follows from the management port's address.
    pub mgmt_mac: Option<Mac>,
    /// Annotation `k8s.ovn.org/node-mtu`, as this agent wrote it the last time.
    pub mtu: Option<u32>,
    /// Annotation `k8s.ovn.org/node-chassis-id`, likewise.
    pub chassis_id: Option<Name>,
}

impl From<&ovnkube_model::Node> for OwnNode {
    fn from(node: &ovnkube_model::Node) -> Self {
        Self {
            internal_ips: node.addresses.clone(),
            subnets: node.subnets.clone(),
            mgmt_mac: node.mgmt_mac,
            mtu: node.mtu,
            chassis_id: node.chassis_id.clone(),
        }
    }
}

/// Something on the node that people should hear of: becomes an Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is about; `None`: the own Node.
    pub about: Option<Object>,
    /// `MtuTooLarge` and the like.
    pub reason: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
}

/// What the agent tells its caller.
#[derive(Debug)]
pub struct Reports {
    /// Always what the own Node should be annotated with; empty text: that annotation should not be there.
    pub annotations: watch::Sender<Annotations>,
    pub warnings: mpsc::UnboundedSender<Warning>,
    /// Whether it wants to be told the addresses of all nodes, by [`Change::NodeIps`]. Once it does it
    /// always will.
    pub minds_nodes: watch::Sender<bool>,
    /// Told whether pods can be wired and services are as they shall be.
    pub health: NodeHealth,
}

/// Whether pods can be wired, and if not, why.
pub(crate) type Readiness = std::result::Result<(), String>;

/// What failed on the node.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Host(#[from] ovnkube_host::Error),
    #[error("{what}: {source}")]
    Transact { what: String, source: ovnkube_ovsdb::TxnError },
    #[error("connect to Open_vSwitch at {remote}: {why}")]
    OvsRemote { remote: String, why: String },
    #[error("find the Open_vSwitch row: the database is empty, run `ovs-vsctl init`")]
    NoOvs,
    #[error("find bridge br-int: it is not there yet")]
    NoBridge,
    #[error("use {interface} as gateway interface: {why}")]
    Gateway { interface: String, why: String },
    /// As [`Error::Gateway`], and no change of the host can make it right.
    #[error("use {interface} as gateway interface: {why}")]
    WrongGateway { interface: String, why: String },
    #[error(
        "keep {nic} in bridge {bridge}: {why}, so all was moved back; find out why the bridge passes nothing (ovs-vsctl show, ovs-vswitchd's log) and restart the node agent"
    )]
    Undone { nic: String, bridge: String, why: String },
    #[error("start the gateway: network {network} of link {link} overlaps {what} {range}; move one of them")]
    Overlap { link: String, network: String, what: &'static str, range: String },
    #[error("clean up the node: halted by a test")]
    Halted,
    #[error("find the gateway interface: there is no default route; add one or give --gateway-interface")]
    NoGatewayInterface,
    #[error("use link {name}: it is there and not of this sandbox")]
    LinkTaken { name: String },
    #[error("remove link {name}: ovs-vswitchd does not let it go; see that it runs, and that ovn-controller does not")]
    LinkStays { name: String },
    #[error("use link {link}: somebody put it into bridge {bridge}; take it out there: ovs-vsctl del-port {link}")]
    PortElsewhere { link: String, bridge: String },
    #[error("let link {name} go: ovs-vswitchd does not answer; see that it runs")]
    SwitchSilent { name: String },
    #[error("use link {name}: it vanished")]
    LinkGone { name: String },
    #[error("use link {name}: somebody set it down")]
    LinkDown { name: String },
    #[error("wait for OVS port {link}: it was removed or given to a later sandbox of the pod")]
    PortGone { link: String },
    #[error("wire {iface_id}: sandbox {by} of the same pod came later and counts")]
    Superseded { iface_id: String, by: String },
    #[error("serve {path}: {source}", path = path.display())]
    Socket { path: PathBuf, source: io::Error },
    #[error("write {path}: {source}", path = path.display())]
    WriteConf { path: PathBuf, source: io::Error },
    #[error("use CNI plugin {name:?}: want the name of a file, without '/'")]
    PluginName { name: String },
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Runs the agent until `stop` resolves; then the network configuration is taken away, so that the
/// runtime starts no pods that nobody wires. Running pods keep their network.
pub async fn run(
    settings: NodeSettings,
    changes: mpsc::Receiver<Change>,
    reports: Reports,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    settings.cni_conf.check()?;
    let conf = settings.cni_conf.clone();
    let socket = settings.cni_socket.clone();
    let listener = server::listen(&socket)?;
    let outcome = tokio::select! {
        () = stop => Ok(()),
        outcome = serve(settings, listener, changes, reports) => outcome,
    };
    let removed = conf.remove();
    let _ = std::fs::remove_file(socket);
    outcome.and(removed)
}

async fn serve(
    settings: NodeSettings,
    listener: tokio::net::UnixListener,
    changes: mpsc::Receiver<Change>,
    reports: Reports,
) -> Result<()> {
    let (mtu, mtu_now) = watch::channel(settings.mtu.given);
    let (ready, readiness) = watch::channel(Err("no connection to the Open_vSwitch database yet".to_owned()));
    let (node, own_node) = watch::channel(OwnNode::default());
    let cni = Arc::new(cni::Cni {
        here: Net::here().await?,
        ovs: ovs::Ovs::connect(&settings.ovs_remote)?,
        pods: pods::Pods::new(),
        turns: turns::Turns::default(),
        mtu: mtu_now,
        route_mtu: settings.mtu.routable,
        ready: readiness,
        health: reports.health.clone(),
        patience: settings.patience,
    });
    let failed = |source| Error::Socket { path: settings.cni_socket.clone(), source };
    let node_ports = settings.gateway.as_ref().is_some_and(|gateway| gateway.node_port);
    let no_services = Services::new(settings.address_rules.clone());
    let service_cidrs = settings.gateway.as_ref().map(|gateway| gateway.service_cidrs.clone());
    let board = Board::new(settings.node.clone(), node_ports, service_cidrs, no_services, reports.minds_nodes.clone());
    let (health, warnings) = (reports.health.clone(), reports.warnings.clone());
    let keeper = keep::Keeper::new(&settings, Arc::clone(&cni), own_node, &board, ready, mtu, reports);
    tokio::select! {
        outcome = server::serve(listener, Arc::clone(&cni)) => outcome.map_err(failed),
        outcome = keeper.run() => outcome,
        () = listen(changes, &cni, node, &board) => Ok(()),
        () = services::end_stale(&board, settings.run_dir(), &settings.masquerade_subnets) => Ok(()),
        () = services::answer_health_checks(&board, &settings.node, &health, &warnings) => Ok(()),
    }
}

/// Takes changes in until the watches end.
async fn listen(mut changes: mpsc::Receiver<Change>, cni: &cni::Cni, node: watch::Sender<OwnNode>, services: &Board) {
    while let Some(change) = changes.recv().await {
        match change {
            Change::Pod(key, pod) => cni.pods.set(key, pod),
            Change::Service(key, service) => services.service(&key, service.map(|service| *service)),
            Change::EndpointSlice(key, slice) => services.slice(&key, slice.map(|slice| *slice)),
            Change::ServiceCidr(name, range) => services.range(name, range),
            Change::NodeIps(name, ips) => services.node(&name, ips),
            Change::Connections(connections) => services.connections(connections),
            Change::ServicesSynced => services.services_told(),
            Change::NodesSynced => services.nodes_told(),
            Change::Node(now) => {
                node.send_if_modified(|have| {
                    let differs = *have != now;
                    *have = now;
                    differs
                });
            }
        }
    }
}
