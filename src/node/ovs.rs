//! The local Open_vSwitch database: pods' ports on br-int.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ovnkube_model::{PodKey, PodNetwork};
use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch, port, qos, ssl};
use ovnkube_ovn::{Atom, Datum, Row, Uuid, derived_uuid, vswitch};
use ovnkube_ovsdb::{Cache, Client, Event, Monitored, Options, Remote, Txn, TxnError};
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;

use crate::bandwidth::Bandwidth;
use crate::pods::PodOnNode;
use crate::request::Sandbox;
use crate::sandbox::host_name;
use crate::{Error, Result};

pub(crate) const BR_INT: &str = "br-int";
const RETRY: Duration = Duration::from_millis(100);

/// What OVS knows about a pod's port: the external_ids of its Interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodPort {
    pub(crate) link: String,
    /// The logical port, `<namespace>_<name>`.
    pub(crate) iface_id: String,
    /// Uid of the pod: ovn-controller binds no port meant for a pod of the same name before.
    pub(crate) iface_id_ver: String,
    pub(crate) sandbox: String,
    pub(crate) mac: String,
    /// Comma separated, with prefix length.
    pub(crate) ips: String,
}

impl PodPort {
    pub(crate) fn new(key: &PodKey, pod: &PodOnNode, network: &PodNetwork, sandbox: &Sandbox) -> Self {
        let ips: Vec<String> = network.ip_addresses.iter().map(ToString::to_string).collect();
        Self {
            link: host_name(&sandbox.container_id).to_owned(),
            iface_id: key.port_name(),
            iface_id_ver: pod.uid.to_string(),
            sandbox: sandbox.container_id.clone(),
            mac: network.mac_address.to_string(),
            ips: ips.join(","),
        }
    }

    /// `<namespace>/<name>`, as people know it.
    pub(crate) fn pod(&self) -> String {
        self.iface_id.replacen('_', "/", 1)
    }

    /// `None` for interfaces that are no pod's.
    fn from_row(row: &Row) -> Option<Self> {
        let ids = row.map(interface::EXTERNAL_IDS);
        let text = |key: &str| ids.get(key).unwrap_or_default().to_owned();
        Some(Self {
            link: row.str(interface::NAME).to_owned(),
            iface_id: ids.get("iface-id")?.to_owned(),
            iface_id_ver: text("iface-id-ver"),
            sandbox: ids.get("sandbox")?.to_owned(),
            mac: text("attached_mac"),
            ips: text("ip_addresses"),
        })
    }

    fn external_ids(&self) -> [(&'static str, &str); 5] {
        [
            ("attached_mac", &self.mac),
            ("iface-id", &self.iface_id),
            ("iface-id-ver", &self.iface_id_ver),
            ("ip_addresses", &self.ips),
            ("sandbox", &self.sandbox),
        ]
    }
}

/// The ports of a bridge that lead outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BridgePorts {
    /// Sorted.
    pub(crate) physical: Vec<String>,
    /// The one its maker named.
    pub(crate) uplink: Option<String>,
}

/// The connection and what is done over it.
pub(crate) struct Ovs {
    client: Client,
    /// One at a time: a plug must see the ports of the one before.
    plugging: Mutex<()>,
    changed: watch::Sender<()>,
    ticker: AbortHandle,
}

impl Drop for Ovs {
    fn drop(&mut self) {
        self.ticker.abort();
    }
}

impl Ovs {
    /// Comes back at once; see [`Ovs::is_connected`].
    pub(crate) fn connect(remote: &str) -> Result<Self> {
        let remotes = Remote::parse_list(remote)
            .map_err(|e| Error::OvsRemote { remote: remote.to_owned(), why: e.to_string() })?;
        let client = Client::connect(options(remotes));
        let changed = watch::Sender::new(());
        let ticks = changed.clone();
        let mut events = client.subscribe();
        let ticker = tokio::spawn(async move {
            loop {
                for event in events.recv().await {
                    if matches!(event, Event::Lost) {
                        tracing::warn!("connection to the Open_vSwitch database lost");
                    }
                }
                ticks.send_replace(());
            }
        });
        Ok(Self { client, plugging: Mutex::default(), changed, ticker: ticker.abort_handle() })
    }

    pub(crate) async fn synced(&self) {
        self.client.synced().await;
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.state().borrow().is_live()
    }

    pub(crate) fn read<T>(&self, read: impl Fn(&Cache) -> T) -> T {
        read(&self.client.cache())
    }

    /// Ticks on every change of a monitored row and of the connection.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Plans on the cache and transacts, anew when rows changed meanwhile. An empty plan sends nothing.
    pub(crate) async fn apply(&self, what: &str, plan: impl Fn(&Cache) -> Result<Txn>) -> Result<()> {
        while !self.try_apply(what, &plan).await? {
            self.pause().await;
        }
        Ok(())
    }

    /// Returns false when it is to be tried again.
    async fn try_apply(&self, what: &str, plan: &impl Fn(&Cache) -> Result<Txn>) -> Result<bool> {
        let txn = plan(&self.client.cache())?;
        if txn.is_empty() {
            return Ok(true);
        }
        match self.client.transact(txn).await {
            Ok(_) => Ok(true),
            Err(e) if is_retryable(&e) => {
                tracing::debug!("{what}: {e}; trying again");
                Ok(false)
            }
            Err(source) => Err(Error::Transact { what: what.to_owned(), source }),
        }
    }

    /// Waits until ovs-vswitchd has carried out what is in the database by now, as ovs-vsctl does: it may still be at what
    /// was there before. Returns false when it says nothing for that long.
    pub(crate) async fn is_carried_out(&self, within: Duration) -> Result<bool> {
        self.apply("ask whether all is carried out", |cache| {
            let mut txn = Txn::new(&vswitch::DATABASE);
            for (root, row) in cache.iter(open_vswitch::TABLE) {
                let cells = |number| Row::new(open_vswitch::TABLE).with(open_vswitch::NEXT_CFG, number);
                let next = row.int(open_vswitch::NEXT_CFG);
                // whoever asks at the same time waits for a number of its own
                txn.wait_holds(root, cells(next));
                txn.update(root, cells(next.wrapping_add(1)));
            }
            Ok(txn)
        })
        .await?;
        let numbers = |of| move |cache: &Cache| cache.iter(open_vswitch::TABLE).map(|(_, row)| row.int(of)).max();
        let (mut changed, asked) = (self.changes(), self.read(numbers(open_vswitch::NEXT_CFG)));
        let done =
            async { while self.read(numbers(open_vswitch::CUR_CFG)) < asked && changed.changed().await.is_ok() {} };
        Ok(tokio::time::timeout(within, done).await.is_ok())
    }

    async fn pause(&self) {
        tokio::time::sleep(RETRY).await;
        self.client.synced().await;
    }

    /// Puts the port on br-int, with its limits. Ports of earlier sandboxes of the pod go in the
    /// same transaction. `check` runs when no other plug can come between.
    pub(crate) async fn plug(
        &self,
        want: &PodPort,
        bandwidth: Bandwidth,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let what = format!("add port {}", want.link);
        let plan = |cache: &Cache| {
            check()?;
            plan_plug(cache, want, bandwidth)
        };
        loop {
            let one = self.plugging.lock().await;
            if self.try_apply(&what, &plan).await? {
                return Ok(());
            }
            // other pods go on meanwhile
            drop(one);
            self.pause().await;
        }
    }

    /// Takes away the ports and limits of these sandboxes, and tells which ports that were. Waits for
    /// the database: before that it is not known what is there.
    pub(crate) async fn unplug(&self, sandboxes: &[&str]) -> Result<Vec<PodPort>> {
        self.client.synced().await;
        // nor what comes of a plug that was sent and given up; answers come in the order of the questions
        let nothing = |_: &Cache| {
            let mut txn = Txn::new(&vswitch::DATABASE);
            txn.comment("ovnkube: what was asked before?");
            Ok(txn)
        };
        self.apply("wait for earlier answers", nothing).await?;
        let gone = self.pod_ports().into_iter().filter(|port| sandboxes.contains(&port.sandbox.as_str())).collect();
        self.apply("remove ports", |cache| {
            let mut txn = Txn::new(&vswitch::DATABASE);
            remove(cache, &mut txn, sandboxes);
            Ok(txn)
        })
        .await?;
        Ok(gone)
    }

    /// Those that have a port or limits; sorted. Waits for the database.
    pub(crate) async fn sandboxes(&self) -> Vec<String> {
        self.client.synced().await;
        sandboxes(&self.client.cache())
    }

    /// Sorted by link.
    pub(crate) fn pod_ports(&self) -> Vec<PodPort> {
        let mut ports = pod_ports(&self.client.cache());
        ports.sort_by(|a, b| a.link.cmp(&b.link));
        ports
    }

    /// Waits until ovn-controller says that the port's flows are in. Fails when the port went to
    /// another sandbox or away.
    pub(crate) async fn installed(&self, want: &PodPort) -> Result<()> {
        let mut changed = self.changes();
        loop {
            if self.is_installed(want)? {
                return Ok(());
            }
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn is_installed(&self, want: &PodPort) -> Result<bool> {
        let cache = self.client.cache();
        let row = interface(&cache, &want.link).map(|(_, row)| row);
        let have = row.and_then(|row| PodPort::from_row(row));
        if have.is_none_or(|have| have.iface_id != want.iface_id || have.sandbox != want.sandbox) {
            return Err(Error::PortGone { link: want.link.clone() });
        }
        Ok(row.is_some_and(|row| installed(row)))
    }

    /// Whether the interface of that name is there and ovn-controller has installed its flows.
    pub(crate) fn has_installed(&self, link: &str) -> bool {
        interface(&self.client.cache(), link).is_some_and(|(_, row)| installed(row))
    }

    /// Whether br-int is switched in ovs-vswitchd instead of the kernel.
    pub(crate) fn is_userspace(&self) -> bool {
        bridge(&self.client.cache()).is_some_and(|(_, row)| row.str(bridge::DATAPATH_TYPE) == "netdev")
    }

    /// OpenFlow number of a port, once ovs-vswitchd has given it one.
    pub(crate) fn port_number(&self, link: &str) -> Option<u16> {
        let cache = self.client.cache();
        let number = interface(&cache, link)?.1.opt_int(interface::OFPORT)?;
        u16::try_from(number).ok().filter(|number| *number > 0)
    }

    /// `None` when there is no such bridge.
    pub(crate) fn bridge_ports(&self, name: &str) -> Option<BridgePorts> {
        let cache = self.client.cache();
        let uuid = *cache.lookup(bridge::TABLE, name).first()?;
        let row = cache.get(bridge::TABLE, uuid)?;
        let interfaces = cache.iter(interface::TABLE).filter(|(uuid, _)| bridges(&cache, *uuid).any(|of| of == name));
        let physical = interfaces.filter(|(_, row)| matches!(row.str(interface::TYPE), "" | "system" | "dpdk"));
        let mut physical: Vec<String> = physical.map(|(_, row)| row.str(interface::NAME).to_owned()).collect();
        physical.sort();
        let uplink = row.map(bridge::EXTERNAL_IDS).get("bridge-uplink").map(str::to_owned);
        Some(BridgePorts { physical, uplink })
    }

    /// The bridge that holds `link`.
    pub(crate) fn bridge_of(&self, link: &str) -> Option<String> {
        let cache = self.client.cache();
        bridges(&cache, interface(&cache, link)?.0).next()
    }

    /// Whether network cards do the switching.
    pub(crate) fn is_offloaded(&self) -> bool {
        let cache = self.client.cache();
        let root = cache.iter(open_vswitch::TABLE).next();
        root.is_some_and(|(_, root)| root.map(open_vswitch::OTHER_CONFIG).get("hw-offload") == Some("true"))
    }

    pub(crate) fn system_id(&self) -> Option<String> {
        self.setting("system-id")
    }

    /// Where tunnels end on this node, as ovn-controller was told.
    pub(crate) fn encap_ip(&self) -> Option<String> {
        self.setting("ovn-encap-ip")
    }

    /// In the external_ids of the Open_vSwitch row.
    fn setting(&self, key: &str) -> Option<String> {
        let cache = self.client.cache();
        let (_, root) = cache.iter(open_vswitch::TABLE).next()?;
        Some(root.map(open_vswitch::EXTERNAL_IDS).get(key)?.to_owned()).filter(|text| !text.is_empty())
    }
}

fn options(remotes: Vec<Remote>) -> Options {
    let tables = vec![
        Monitored::only(
            open_vswitch::TABLE,
            [
                open_vswitch::BRIDGES.id(),
                open_vswitch::CUR_CFG.id(),
                open_vswitch::EXTERNAL_IDS.id(),
                open_vswitch::NEXT_CFG.id(),
                open_vswitch::OTHER_CONFIG.id(),
                open_vswitch::SSL.id(),
            ],
        ),
        Monitored::only(
            bridge::TABLE,
            [
                bridge::NAME.id(),
                bridge::PORTS.id(),
                bridge::DATAPATH_TYPE.id(),
                bridge::FAIL_MODE.id(),
                bridge::OTHER_CONFIG.id(),
                bridge::EXTERNAL_IDS.id(),
            ],
        ),
        Monitored::only(port::TABLE, [port::NAME.id(), port::INTERFACES.id(), port::QOS.id(), port::EXTERNAL_IDS.id()]),
        // no statistics: they change all the time
        Monitored::only(
            interface::TABLE,
            [
                interface::NAME.id(),
                interface::TYPE.id(),
                interface::MAC.id(),
                interface::MTU_REQUEST.id(),
                interface::EXTERNAL_IDS.id(),
                interface::OFPORT.id(),
            ],
        ),
        Monitored::only(qos::TABLE, [qos::EXTERNAL_IDS.id()]),
        Monitored::all(ssl::TABLE),
    ];
    Options { tables, identity: name, leader_only: false, ..Options::new(&vswitch::DATABASE, remotes) }
}

/// Bridges, ports and interfaces are looked up by name.
fn name(row: &Row) -> Option<String> {
    let text = match row.table().name {
        "Bridge" => row.str(bridge::NAME),
        "Port" => row.str(port::NAME),
        "Interface" => row.str(interface::NAME),
        _ => return None,
    };
    Some(text.to_owned())
}

pub(crate) fn bridge(cache: &Cache) -> Option<(Uuid, &Arc<Row>)> {
    let uuid = *cache.lookup(bridge::TABLE, BR_INT).first()?;
    Some((uuid, cache.get(bridge::TABLE, uuid)?))
}

pub(crate) fn interface<'a>(cache: &'a Cache, link: &str) -> Option<(Uuid, &'a Arc<Row>)> {
    let uuid = *cache.lookup(interface::TABLE, link).first()?;
    Some((uuid, cache.get(interface::TABLE, uuid)?))
}

/// Names of the bridges that hold an interface.
pub(crate) fn bridges(cache: &Cache, interface: Uuid) -> impl Iterator<Item = String> {
    let ports = cache.parents(interface).filter(|parent| parent.table.id == port::TABLE.id);
    let bridges = ports.flat_map(|port| cache.parents(port.uuid)).filter(|parent| parent.table.id == bridge::TABLE.id);
    bridges.filter_map(|parent| Some(cache.get(bridge::TABLE, parent.uuid)?.str(bridge::NAME).to_owned()))
}

fn installed(row: &Row) -> bool {
    row.map(interface::EXTERNAL_IDS).get("ovn-installed") == Some("true")
}

fn pod_ports(cache: &Cache) -> Vec<PodPort> {
    cache.iter(interface::TABLE).filter_map(|(_, row)| PodPort::from_row(row)).collect()
}

/// The sandbox whose limits a QoS row holds.
fn limited(row: &Row) -> Option<&str> {
    row.map(qos::EXTERNAL_IDS).get("sandbox")
}

/// Those that have a port or limits; sorted.
pub(crate) fn sandboxes(cache: &Cache) -> Vec<String> {
    let ports = cache.iter(interface::TABLE).filter_map(|(_, row)| Some(PodPort::from_row(row)?.sandbox));
    let limits = cache.iter(qos::TABLE).filter_map(|(_, row)| limited(row).map(str::to_owned));
    ports.chain(limits).collect::<BTreeSet<_>>().into_iter().collect()
}

fn plan_plug(cache: &Cache, want: &PodPort, bandwidth: Bandwidth) -> Result<Txn> {
    let mut txn = Txn::new(&vswitch::DATABASE);
    let (br_int, _) = bridge(cache).ok_or(Error::NoBridge)?;
    let ports = pod_ports(cache);
    let stale = ports.iter().filter(|have| have.iface_id == want.iface_id && have.sandbox != want.sandbox);
    remove(cache, &mut txn, &stale.map(|port| port.sandbox.as_str()).collect::<Vec<_>>());
    match interface(cache, &want.link) {
        None => add(cache, &mut txn, br_int, want, bandwidth),
        Some((uuid, row)) => match PodPort::from_row(row) {
            Some(have) if have == *want => {}
            Some(have) if have.sandbox == want.sandbox => {
                txn.set_keys(interface::TABLE, uuid, interface::EXTERNAL_IDS, want.external_ids());
            }
            _ => return Err(Error::LinkTaken { name: want.link.clone() }),
        },
    }
    Ok(txn)
}

fn add(cache: &Cache, txn: &mut Txn, br_int: Uuid, want: &PodPort, bandwidth: Bandwidth) {
    let id = |table: &str| derived_uuid(table, &want.sandbox);
    let mut iface =
        Row::new(interface::TABLE).with(interface::NAME, &want.link).with(interface::EXTERNAL_IDS, want.external_ids());
    if let Some(rate) = bandwidth.egress {
        // what comes out of the pod goes into OVS; kbit/s
        iface.set(interface::INGRESS_POLICING_RATE, (rate / 1000) as i64);
    }
    let mut port = Row::new(port::TABLE)
        .with(port::NAME, &want.link)
        .with(port::INTERFACES, [id("Interface")])
        .with(port::OTHER_CONFIG, [("transient", "true")]);
    if let Some(rate) = bandwidth.ingress {
        let limit = Row::new(qos::TABLE)
            .with(qos::TYPE, "linux-htb")
            .with(qos::OTHER_CONFIG, [("max-rate", rate.to_string())])
            .with(qos::EXTERNAL_IDS, [("sandbox", &want.sandbox)]);
        port.set(port::QOS, Some(id("QoS")));
        // it outlives a port that somebody else removed
        if cache.get(qos::TABLE, id("QoS")).is_some() {
            txn.update(id("QoS"), limit);
        } else {
            txn.insert(id("QoS"), limit);
        }
    }
    txn.insert(id("Interface"), iface);
    txn.insert(id("Port"), port);
    txn.insert_into(bridge::TABLE, br_int, bridge::PORTS, Datum::one(Atom::Uuid(id("Port"))));
}

/// Takes the sandboxes' ports off their bridges; port and interface go with their last reference,
/// limits don't.
pub(crate) fn remove(cache: &Cache, txn: &mut Txn, sandboxes: &[&str]) {
    let of_port = |row: &Row| PodPort::from_row(row).is_some_and(|port| sandboxes.contains(&port.sandbox.as_str()));
    for (uuid, _) in cache.iter(interface::TABLE).filter(|(_, row)| of_port(row)) {
        for port in cache.parents(uuid).filter(|parent| parent.table.id == port::TABLE.id) {
            for bridge in cache.parents(port.uuid).filter(|parent| parent.table.id == bridge::TABLE.id) {
                txn.remove_from(bridge::TABLE, bridge.uuid, bridge::PORTS, Datum::one(Atom::Uuid(port.uuid)));
            }
        }
    }
    let of_limits = |row: &Row| limited(row).is_some_and(|sandbox| sandboxes.contains(&sandbox));
    for (limit, _) in cache.iter(qos::TABLE).filter(|(_, row)| of_limits(row)) {
        // the reference of a port that goes with the same commit still counts
        for port in cache.parents(limit).filter(|parent| parent.table.id == port::TABLE.id) {
            txn.update(port.uuid, Row::new(port::TABLE).with(port::QOS, None::<Uuid>));
        }
        txn.delete(qos::TABLE, limit);
    }
}

/// A uuid that is taken is our own row, from an attempt whose reply was lost: the cache will show it.
fn is_retryable(error: &TxnError) -> bool {
    error.is_retryable() || error.class == ovnkube_ovsdb::Class::Duplicate
}
