//! The local Open_vSwitch database: the connection, reads and transactions.

use std::collections::HashMap;
use std::time::Duration;

use ovnkube_node_plan::vswitch::{bridge as br_int, bridges, interface as find_interface, name};
use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch, port, qos, ssl};
use ovnkube_ovn::{Row, vswitch};
use ovnkube_ovsdb::{Cache, Class, Client, Event, Monitored, Options, Remote, Txn, TxnError};
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::ports::{self, Plugged, PodPort, PortWant};
use crate::{Error, Result};

const RETRY: Duration = Duration::from_millis(100);
/// A server that has not answered a transaction for so long hangs: a new connection is tried. Until then who adds a port holds up all
/// others. Less than [`ANSWER`], so that this is noticed whoever waits.
const TXN_TIMEOUT: Duration = Duration::from_secs(8);
/// How long the local database may take to answer; it is on this host.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a piece of work may wait for it, through restarts: the caller has other work, and tries again.
const ANSWER: Duration = Duration::from_secs(10);

/// A connection to the local Open_vSwitch database.
pub(crate) struct Ovs {
    client: Client,
    /// Serializes plugs: each must see the ports of the one before.
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
    /// Connects in the background and returns at once; see [`Ovs::is_connected`].
    pub(crate) fn connect(remote: &str) -> Result<Self> {
        let client = Client::connect(options(Remote::parse_list(remote)?));
        let changed = watch::Sender::new(());
        let ticks = changed.clone();
        let mut events = client.subscribe();
        let ticker = tokio::spawn(async move {
            loop {
                for event in events.recv().await {
                    if matches!(event, Event::Lost) {
                        tracing::warn!("lost the connection to the Open_vSwitch database");
                    }
                }
                ticks.send_replace(());
            }
        });
        Ok(Self { client, plugging: Mutex::default(), changed, ticker: ticker.abort_handle() })
    }

    /// As [`Ovs::connect`], but waits for the content. `remedy`: what to do if the database does not answer.
    pub(crate) async fn reach(remote: &str, remedy: &str) -> Result<Self> {
        let ovs = Self::connect(remote)?;
        match timeout(CONNECT, ovs.synced()).await {
            Ok(()) => Ok(ovs),
            Err(_) => Err(Error::OvsRemote { remote: remote.to_owned(), why: format!("it does not answer; {remedy}") }),
        }
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

    /// Plans on the cache and transacts; plans again when rows changed meanwhile. An empty plan sends nothing.
    pub(crate) async fn apply(&self, what: &str, plan: impl Fn(&Cache) -> Result<Txn>) -> Result<()> {
        // boxed: it is part of every future that writes rows
        let work = Box::pin(async {
            while !self.try_apply(what, &plan).await? {
                self.pause().await;
            }
            Ok(())
        });
        in_time(what, work).await
    }

    /// One attempt of [`Ovs::apply`]. Returns false when it must be repeated.
    async fn try_apply(&self, what: &str, plan: &impl Fn(&Cache) -> Result<Txn>) -> Result<bool> {
        let txn = plan(&self.client.cache())?;
        if txn.is_empty() {
            return Ok(true);
        }
        match self.client.transact(txn).await {
            Ok(_) => Ok(true),
            Err(e) if is_retryable(&e) => {
                tracing::debug!(what, error = %e, "trying a transaction again");
                Ok(false)
            }
            Err(problem) => Err(Error::Transact { what: what.to_owned(), problem }),
        }
    }

    /// Waits until ovs-vswitchd has applied the current content of the database, as ovs-vsctl does: it may still be
    /// working on earlier changes. Returns false when it does not confirm in time.
    pub(crate) async fn is_carried_out(&self, within: Duration) -> Result<bool> {
        self.apply("wait for ovs-vswitchd", |cache| {
            let mut txn = Txn::new(&vswitch::DATABASE);
            for (root, row) in cache.iter(open_vswitch::TABLE) {
                let cells = |number| Row::new(open_vswitch::TABLE).with(open_vswitch::NEXT_CFG, number);
                let next = row.int(open_vswitch::NEXT_CFG);
                // a concurrent caller waits for a number of its own
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
        Ok(timeout(within, done).await.is_ok())
    }

    async fn pause(&self) {
        tokio::time::sleep(RETRY).await;
        self.client.synced().await;
    }

    /// Puts the port on br-int, with its limits. The same transaction removes ports of earlier
    /// sandboxes of the pod. `check` runs when no other plug can interfere.
    pub(crate) async fn plug(&self, want: &PortWant, check: impl Fn() -> Result<()>) -> Result<()> {
        while !self.try_plug(std::slice::from_ref(want), |_| check()).await? {
            // other pods can be plugged meanwhile
            self.pause().await;
        }
        Ok(())
    }

    /// One attempt of [`Ovs::plug`] for several ports, in one transaction. Returns false when it must be repeated.
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

    /// Removes the ports and limits of these sandboxes, and returns the ports. Waits for the database,
    /// because before that the rows are not known.
    pub(crate) async fn unplug(&self, sandboxes: &[&str]) -> Result<Vec<PodPort>> {
        self.is_read().await?;
        // nor is the result of a plug that was sent and given up; the database answers in order
        let nothing = |_: &Cache| {
            let mut txn = Txn::new(&vswitch::DATABASE);
            txn.comment("ovnkube: wait for earlier transactions");
            Ok(txn)
        };
        self.apply("wait for earlier transactions", nothing).await?;
        let gone = self.pod_ports().into_iter().filter(|port| sandboxes.contains(&port.sandbox.as_str())).collect();
        self.apply("remove ports of pods", |cache| {
            let mut txn = Txn::new(&vswitch::DATABASE);
            ports::remove(cache, &mut txn, sandboxes);
            Ok(txn)
        })
        .await?;
        Ok(gone)
    }

    /// The sandboxes that have a port or limits, sorted. Waits for the database.
    pub(crate) async fn sandboxes(&self) -> Result<Vec<String>> {
        self.is_read().await?;
        Ok(ports::sandboxes(&self.client.cache()))
    }

    /// Waits for the database's content; fails if it takes long.
    pub(crate) async fn is_read(&self) -> Result<()> {
        let read = async {
            self.client.synced().await;
            Ok(())
        };
        in_time("read ports of pods", read).await
    }

    /// The pods' ports, sorted by link.
    pub(crate) fn pod_ports(&self) -> Vec<PodPort> {
        let mut ports: Vec<PodPort> = ports::pod_ports(&self.client.cache()).collect();
        ports.sort_by(|a, b| a.link.cmp(&b.link));
        ports
    }

    /// The pods' ports that are on br-int, by link.
    pub(crate) fn plugged(&self) -> HashMap<String, Plugged> {
        ports::plugged(&self.client.cache())
    }

    /// Waits until ovn-controller reports that the port's flows are installed. Fails when the port was
    /// removed or given to another sandbox.
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
        let row = find_interface(&cache, &want.link).map(|(_, row)| row);
        let have = row.and_then(|row| PodPort::from_row(row));
        if have.is_none_or(|have| have.iface_id != want.iface_id || have.sandbox != want.sandbox) {
            return Err(Error::PortGone { link: want.link.clone() });
        }
        Ok(row.is_some_and(|row| installed(row)))
    }

    /// Whether the interface of that name exists and ovn-controller has installed its flows.
    pub(crate) fn has_installed(&self, link: &str) -> bool {
        find_interface(&self.client.cache(), link).is_some_and(|(_, row)| installed(row))
    }

    /// Whether br-int uses the userspace datapath of ovs-vswitchd instead of the kernel's.
    pub(crate) fn is_userspace(&self) -> bool {
        br_int(&self.client.cache()).is_some_and(|(_, row)| row.str(bridge::DATAPATH_TYPE) == "netdev")
    }

    /// OpenFlow number of a port, once ovs-vswitchd has assigned one.
    pub(crate) fn port_number(&self, link: &str) -> Option<u16> {
        let cache = self.client.cache();
        let number = find_interface(&cache, link)?.1.opt_int(interface::OFPORT)?;
        u16::try_from(number).ok().filter(|number| *number > 0)
    }

    /// The bridge that holds `link`.
    pub(crate) fn bridge_of(&self, link: &str) -> Option<String> {
        let cache = self.client.cache();
        bridges(&cache, find_interface(&cache, link)?.0).next()
    }

    /// Whether switching is offloaded to network cards.
    pub(crate) fn is_offloaded(&self) -> bool {
        let cache = self.client.cache();
        let root = cache.iter(open_vswitch::TABLE).next();
        root.is_some_and(|(_, root)| root.map(open_vswitch::OTHER_CONFIG).get("hw-offload") == Some("true"))
    }

    pub(crate) fn system_id(&self) -> Option<String> {
        self.setting("system-id")
    }

    /// The tunnels' address on this node, as configured for ovn-controller.
    pub(crate) fn encap_ip(&self) -> Option<String> {
        self.setting("ovn-encap-ip")
    }

    /// Whether ovn-controller is told to make br-int with it.
    pub(crate) fn is_set_to_userspace(&self) -> bool {
        self.setting("ovn-bridge-datapath-type").is_some_and(|datapath| datapath == "netdev")
    }

    /// A value in the external_ids of the Open_vSwitch row.
    fn setting(&self, key: &str) -> Option<String> {
        let cache = self.client.cache();
        let (_, root) = cache.iter(open_vswitch::TABLE).next()?;
        Some(root.map(open_vswitch::EXTERNAL_IDS).get(key)?.to_owned()).filter(|text| !text.is_empty())
    }
}

async fn in_time(what: &str, work: impl Future<Output = Result<()>>) -> Result<()> {
    timeout(ANSWER, work).await.unwrap_or_else(|_| Err(Error::DatabaseSilent { what: what.to_owned() }))
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
                interface::OPTIONS.id(),
            ],
        ),
        Monitored::only(qos::TABLE, [qos::EXTERNAL_IDS.id()]),
        Monitored::all(ssl::TABLE),
    ];
    let options = Options::new(&vswitch::DATABASE, remotes);
    Options { tables, identity: name, leader_only: false, txn_timeout: TXN_TIMEOUT, ..options }
}

fn installed(row: &Row) -> bool {
    row.map(interface::EXTERNAL_IDS).get("ovn-installed") == Some("true")
}

/// A duplicate uuid is our own row, from an attempt whose reply was lost: the cache will show it. Who waits for rows is told at once of
/// a disk that is full: a person must make room.
fn is_retryable(error: &TxnError) -> bool {
    (error.is_retryable() && error.class != Class::Disk) || error.class == Class::Duplicate
}
