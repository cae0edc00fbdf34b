//! Removes everything from the host that the agent put there, and nothing else. Needs no API server; reports what it
//! cannot remove because Open vSwitch is stopped.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ovnkube_host::Net;
use ovnkube_model::{Name, Subnet};
use ovnkube_node_plan::change::HostChange;
use ovnkube_node_plan::chassis;
use ovnkube_node_plan::management_port;
use ovnkube_node_plan::stale;
use ovnkube_node_plan::vswitch::{self, BR_INT};
use ovnkube_ovn::vswitch::DATABASE;
use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch, port};
use ovnkube_ovn::{Atom, Datum};
use ovnkube_ovsdb::{Cache, Txn};
use tokio::time::timeout;

use crate::agent::Place;
use crate::apply::{Applier, Failed};
use crate::conf::CniConf;
use crate::observe::{Depth, observe, observe_tables};
use crate::ovs::Ovs;
use crate::settings::run_dir;
use crate::{Error, Result, pair, ports};

/// How long ovs-vswitchd may take to release a link.
const SWITCH: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// The agent's settings, as far as they say where things are.
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
    /// For tests: stop after so many steps, like a crash.
    pub halt_after: Option<usize>,
}

/// Removes everything, and goes on after failures. Returns what could not be removed; empty: the host is clean. Changes nothing
/// while an agent runs: that one would make most of it again, but not its socket and the ports of pods.
pub async fn clean_up(settings: &CleanupSettings) -> Vec<Error> {
    // an agent that starts meanwhile ends
    let place = match place(&settings.cni_socket).await {
        Ok(place) => place,
        Err(e) => return vec![e],
    };
    let mut cleanup = match Net::here().await {
        Ok(here) => Cleanup { settings, here, left: Vec::new(), steps: settings.halt_after },
        Err(e) => return vec![e.into()],
    };
    let halted = cleanup.run().await;
    cleanup.left.extend(halted.err());
    place.iter().for_each(Place::forget_ready);
    cleanup.left
}

/// The agent's place, for as long as the value lives. `None`: there never was an agent.
async fn place(socket: &Path) -> Result<Option<Place>> {
    let has_run = socket.parent().is_some_and(Path::exists);
    Ok(if has_run { Some(Place::at(socket).await?) } else { None })
}

struct Cleanup<'a> {
    settings: &'a CleanupSettings,
    here: Net,
    left: Vec<Error>,
    /// Steps until a test stops it.
    steps: Option<usize>,
}

impl Cleanup<'_> {
    /// Removes things before the marks that point to them, so that another run after a crash finds them.
    async fn run(&mut self) -> Result<()> {
        // first of all, so that no pod is wired meanwhile
        let conf = self.settings.cni_conf.remove();
        self.note(conf);
        self.step()?;
        let remedy = "start Open vSwitch and clean up once more for its bridges, flows and settings";
        let ovs = Ovs::reach(&self.settings.ovs_remote, remedy).await;
        let ovs = self.note(ovs);
        let host = observe(&self.here, ovs.as_ref(), Depth::Whole).await;
        if let Some(host) = self.note(host) {
            self.remove(&stale::of_no_node(&self.ranges(), &host), ovs.as_ref()).await?;
        }
        if let Some(ovs) = &ovs {
            self.switch(ovs).await?;
        }
        let host = observe(&self.here, ovs.as_ref(), Depth::Usual).await;
        if let Some(mut host) = self.note(host) {
            let tables = observe_tables(&mut host).await;
            self.note(tables);
            self.remove(&stale::tables(&self.ranges(), &host), ovs.as_ref()).await?;
        }
        self.pairs().await
    }

    fn note<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|e| self.left.push(e)).ok()
    }

    /// Called between two steps; fails where a test stops it.
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

    fn ranges(&self) -> stale::Ranges<'_> {
        let s = self.settings;
        stale::Ranges { cluster: &s.cluster_subnets, service: &s.service_cidrs, masquerade: &s.masquerade_subnets }
    }

    async fn remove(&mut self, changes: &[HostChange], ovs: Option<&Ovs>) -> Result<()> {
        let s = self.settings;
        let here = self.here.clone();
        let applier = Applier { here: &here, ovs, run_dir: run_dir(&s.ovs_remote), masquerade: &s.masquerade_subnets };
        let mut failed = Failed::default();
        let mut halted = Ok(());
        for of_link in changes.chunk_by(|a, b| a.link == b.link) {
            for change in of_link {
                applier.try_one(change, &mut failed).await;
            }
            halted = self.step();
            if halted.is_err() {
                break;
            }
        }
        self.left.extend(failed.errors);
        halted
    }

    /// Removes br-int, ports and settings.
    async fn switch(&mut self, ovs: &Ovs) -> Result<()> {
        let pods = ovs.pod_ports();
        let mut links = BTreeSet::from([BR_INT.to_owned(), management_port::LINK.to_owned()]);
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
            // a row may have any text: only its own link is certainly the sandbox's
            let known = pod.link == pair::host_name(&pod.sandbox);
            let deleted = pair::delete_pair(&self.here, &pod.sandbox, known).await;
            self.note(deleted);
        }
        self.step()
    }

    /// Waits until ovs-vswitchd has released a link.
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

    /// Removes veth pairs of pods without a port.
    async fn pairs(&mut self) -> Result<()> {
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

/// Links on br-int that vanish with it.
fn internal_ports(cache: &Cache) -> Vec<String> {
    let internal = cache.iter(interface::TABLE).filter(|(_, row)| row.str(interface::TYPE) == "internal");
    let of_br_int = internal.filter(|(uuid, _)| vswitch::bridges(cache, *uuid).any(|bridge| bridge == BR_INT));
    of_br_int.map(|(_, row)| row.str(interface::NAME).to_owned()).collect()
}

fn plan(cache: &Cache, node: &str) -> Txn {
    let mut txn = Txn::new(&DATABASE);
    let sandboxes = ports::sandboxes(cache);
    ports::remove(cache, &mut txn, &sandboxes.iter().map(String::as_str).collect::<Vec<_>>());
    for (root, row) in cache.iter(open_vswitch::TABLE) {
        if let Some((uuid, _)) = vswitch::bridge(cache) {
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
