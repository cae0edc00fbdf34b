//! Takes everything off the host that the agent put there, and leaves all else as it is. Needs no API server; what a
//! stopped Open vSwitch keeps from being removed is told.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ovnkube_host::Net;
use ovnkube_model::{Name, Subnet};
use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch, port};
use ovnkube_ovn::{Atom, Datum, vswitch};
use ovnkube_ovsdb::{Cache, Txn};
use tokio::time::timeout;

use crate::conf::CniConf;
use crate::gateway::left;
use crate::ovs::{self, BR_INT, Ovs};
use crate::uplink;
use crate::{Error, Result, chassis, mgmt, pair, ports};

/// How long the local database may take to answer; it is on this host.
const CONNECT: Duration = Duration::from_secs(5);
/// How long ovs-vswitchd may take to let a link go.
const SWITCH: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// What the agent was told, as far as it says where things are.
#[derive(Debug, Clone)]
pub struct CleanupSettings {
    /// Name of the Node that this host was.
    pub node: Name,
    pub ovs_remote: String,
    pub cni_socket: PathBuf,
    pub cni_conf: CniConf,
    pub cluster_subnets: Vec<Subnet>,
    pub service_cidrs: Vec<Subnet>,
    pub masquerade_subnets: Vec<Subnet>,
    /// For tests: it ends after so many steps, as a crash would end it.
    pub halt_after: Option<usize>,
}

/// Goes through all of it, whatever fails. Returns what could not be removed; nothing: the host is as it was.
pub async fn clean_up(settings: &CleanupSettings) -> Vec<Error> {
    let mut cleanup = match Net::here().await {
        Ok(here) => Cleanup { settings, here, left: Vec::new(), steps: settings.halt_after },
        Err(e) => return vec![e.into()],
    };
    let halted = cleanup.run().await;
    cleanup.left.extend(halted.err());
    cleanup.left
}

struct Cleanup<'a> {
    settings: &'a CleanupSettings,
    here: Net,
    left: Vec<Error>,
    /// Steps until a test ends it.
    steps: Option<usize>,
}

impl Cleanup<'_> {
    /// What tells of other things goes after them, so that whoever runs it again after a crash finds them.
    async fn run(&mut self) -> Result<()> {
        // first of all, so that no pod is wired meanwhile
        let conf = self.settings.cni_conf.remove();
        self.note(conf);
        let _ = std::fs::remove_file(&self.settings.cni_socket);
        self.step()?;
        let ovs = self.connect().await;
        let ovs = self.note(ovs);
        self.gateways(ovs.as_ref()).await?;
        if let Some(ovs) = &ovs {
            self.uplinks(ovs).await?;
            self.switch(ovs).await?;
        }
        self.host().await
    }

    fn note<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|e| self.left.push(e)).ok()
    }

    /// Between two steps.
    fn step(&mut self) -> Result<()> {
        match &mut self.steps {
            Some(0) => Err(Error::Halted),
            Some(steps) => {
                *steps -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn connect(&self) -> Result<Ovs> {
        let remote = &self.settings.ovs_remote;
        let ovs = Ovs::connect(remote)?;
        match timeout(CONNECT, ovs.synced()).await {
            Ok(()) => Ok(ovs),
            Err(_) => Err(Error::OvsRemote {
                remote: remote.clone(),
                why: "nobody answers; start Open vSwitch and clean up once more for its bridges, flows and settings"
                    .to_owned(),
            }),
        }
    }

    /// Flows, addresses, routes, neighbours and settings of bridges, which stay.
    async fn gateways(&mut self, ovs: Option<&Ovs>) -> Result<()> {
        let mapped = ovs.map(|ovs| ovs.read(left::mapped)).unwrap_or_default();
        let found = left::find(&self.here, &self.settings.masquerade_subnets, &mapped).await;
        for gateway in self.note(found).unwrap_or_default() {
            let name = gateway.link.name.as_str();
            if ovs.is_some_and(|ovs| ovs.bridge_ports(name).is_some()) {
                let flows = left::take_flows(run_dir(&self.settings.ovs_remote), name).await;
                self.note(flows);
                self.step()?;
            }
            self.left.extend(left::take_host(&self.here, &gateway.link, &gateway.masquerade).await);
            left::take_forwarding(&gateway.link);
            self.step()?;
        }
        Ok(())
    }

    /// Bridges that were made for a NIC.
    async fn uplinks(&mut self, ovs: &Ovs) -> Result<()> {
        for made in ovs.read(uplink::made) {
            let back = left::give_back(&made.nic, &self.settings.masquerade_subnets, &self.here, ovs).await;
            self.note(back);
            self.step()?;
        }
        Ok(())
    }

    /// br-int, ports, settings.
    async fn switch(&mut self, ovs: &Ovs) -> Result<()> {
        let pods = ovs.pod_ports();
        let mut links = BTreeSet::from([BR_INT.to_owned(), mgmt::LINK.to_owned()]);
        links.extend(ovs.read(internal_ports));
        let node = &self.settings.node;
        let removed = ovs.apply("remove what the node agent made", |cache| Ok(plan(cache, node))).await;
        self.note(removed);
        self.step()?;
        for link in links {
            let gone = self.gone(&link).await;
            self.note(gone);
        }
        for pod in pods {
            let deleted = pair::delete_pair(&self.here, &pod.sandbox, true).await;
            self.note(deleted);
        }
        self.step()
    }

    /// Waits until the switch has let a link go.
    async fn gone(&self, name: &str) -> Result<()> {
        let wait = async {
            while self.here.link(name).await?.is_some() {
                tokio::time::sleep(LOOK).await;
            }
            Ok(())
        };
        let lasting = || Error::LinkStays { name: name.to_owned() };
        timeout(SWITCH, wait).await.unwrap_or_else(|_| Err(lasting()))
    }

    /// What is of no one bridge.
    async fn host(&mut self) -> Result<()> {
        let s = self.settings;
        let ranges = [&s.cluster_subnets[..], &s.service_cidrs, &s.masquerade_subnets].concat();
        self.left.extend(left::take_tables(&self.here, &ranges).await);
        self.step()?;
        let links = self.here.links().await;
        for link in self.note(links.map_err(Error::from)).unwrap_or_default() {
            if link.alias.as_deref().is_some_and(pair::is_alias) {
                let deleted = self.here.delete(&link.name).await;
                self.note(deleted.map_err(Error::from));
            }
        }
        Ok(())
    }
}

fn run_dir(remote: &str) -> &Path {
    let socket = remote.strip_prefix("unix:").unwrap_or_default();
    Path::new(socket).parent().unwrap_or(Path::new("/var/run/openvswitch"))
}

/// Links on br-int that go with it.
fn internal_ports(cache: &Cache) -> Vec<String> {
    let internal = cache.iter(interface::TABLE).filter(|(_, row)| row.str(interface::TYPE) == "internal");
    let of_br_int = internal.filter(|(uuid, _)| ovs::bridges(cache, *uuid).any(|bridge| bridge == BR_INT));
    of_br_int.map(|(_, row)| row.str(interface::NAME).to_owned()).collect()
}

fn plan(cache: &Cache, node: &str) -> Txn {
    let mut txn = Txn::new(&vswitch::DATABASE);
    let sandboxes = ports::sandboxes(cache);
    ports::remove(cache, &mut txn, &sandboxes.iter().map(String::as_str).collect::<Vec<_>>());
    for (root, row) in cache.iter(open_vswitch::TABLE) {
        if let Some((uuid, _)) = ovs::bridge(cache) {
            let gone = Datum::one(Atom::Uuid(uuid));
            txn.remove_from(open_vswitch::TABLE, root, open_vswitch::BRIDGES, gone);
        }
        chassis::forget(&mut txn, root, row, node);
    }
    // ovn-controller's ends of patch ports on other bridges
    for (uuid, row) in cache.iter(port::TABLE) {
        if row.map(port::EXTERNAL_IDS).contains_key("ovn-localnet-port") {
            for parent in cache.parents(uuid).filter(|parent| parent.table.id == bridge::TABLE.id) {
                txn.remove_from(bridge::TABLE, parent.uuid, bridge::PORTS, Datum::one(Atom::Uuid(uuid)));
            }
        }
    }
    txn
}
