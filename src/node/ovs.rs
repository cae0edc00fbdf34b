//! The local Open_vSwitch database: the connection, and what is asked of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch, port, qos, ssl};
use ovnkube_ovn::{Row, Uuid, vswitch};
use ovnkube_ovsdb::{Cache, Client, Event, Monitored, Options, Remote, Txn, TxnError};
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;

use crate::ports::{self, Plugged, PodPort, PortWant};
use crate::{Error, Result};

pub(crate) const BR_INT: &str = "br-int";
const RETRY: Duration = Duration::from_millis(100);

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
    pub(crate) async fn plug(&self, want: &PortWant, check: impl Fn() -> Result<()>) -> Result<()> {
        while !self.try_plug(std::slice::from_ref(want), |_| check()).await? {
            // other pods go on meanwhile
            self.pause().await;
        }
        Ok(())
    }

    /// The same for several, in one transaction. Returns false when it is to be tried again.
    pub(crate) async fn try_plug(&self, want: &[PortWant], check: impl Fn(&PodPort) -> Result<()>) -> Result<bool> {
        let _one = self.plugging.lock().await;
        let plan = |cache: &Cache| {
            let mut txn = Txn::new(&vswitch::DATABASE);
            for want in want {
                check(&want.port)?;
                ports::plug(cache, &mut txn, want)?;
            }
            Ok(txn)
        };
        self.try_apply("add ports of pods", &plan).await
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
            ports::remove(cache, &mut txn, sandboxes);
            Ok(txn)
        })
        .await?;
        Ok(gone)
    }

    /// Those that have a port or limits; sorted. Waits for the database.
    pub(crate) async fn sandboxes(&self) -> Vec<String> {
        self.client.synced().await;
        ports::sandboxes(&self.client.cache())
    }

    /// Sorted by link.
    pub(crate) fn pod_ports(&self) -> Vec<PodPort> {
        let mut ports: Vec<PodPort> = ports::pod_ports(&self.client.cache()).collect();
        ports.sort_by(|a, b| a.link.cmp(&b.link));
        ports
    }

    /// The pods' ports that are on br-int, by link.
    pub(crate) fn plugged(&self) -> HashMap<String, Plugged> {
        ports::plugged(&self.client.cache())
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

/// A uuid that is taken is our own row, from an attempt whose reply was lost: the cache will show it.
fn is_retryable(error: &TxnError) -> bool {
    error.is_retryable() || error.class == ovnkube_ovsdb::Class::Duplicate
}
