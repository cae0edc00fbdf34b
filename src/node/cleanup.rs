//! Takes everything off the host that the agent put there, and leaves all else as it is. Needs no API server; what a
//! stopped Open vSwitch keeps from being removed is told.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ovnkube_host::flows::Switch;
use ovnkube_host::{Link, Net, nft, sysctl};
use ovnkube_model::{Name, Subnet};
use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch, port};
use ovnkube_ovn::{Atom, Datum, vswitch};
use ovnkube_ovsdb::{Cache, Txn};
use tokio::time::timeout;

use crate::conf::CniConf;
use crate::gateway::{self, RULES, legacy};
use crate::ovs::{self, BR_INT, Ovs};
use crate::uplink::{self, Uplink};
use crate::{Error, Result, chassis, mgmt, sandbox};

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
}

/// Goes through all of it, whatever fails. Returns what could not be removed; nothing: the host is as it was.
pub async fn clean_up(settings: &CleanupSettings) -> Vec<Error> {
    let mut cleanup = match Net::here().await {
        Ok(here) => Cleanup { settings, here, left: Vec::new() },
        Err(e) => return vec![e.into()],
    };
    cleanup.run().await;
    cleanup.left
}

struct Cleanup<'a> {
    settings: &'a CleanupSettings,
    here: Net,
    left: Vec<Error>,
}

impl Cleanup<'_> {
    async fn run(&mut self) {
        // first of all, so that no pod is wired meanwhile
        let conf = self.settings.cni_conf.remove();
        self.note(conf);
        let _ = std::fs::remove_file(&self.settings.cni_socket);
        match self.connect().await {
            Ok(ovs) => self.switch(&ovs).await,
            Err(e) => {
                self.left.push(e);
                let links = self.gateway_links().await;
                for link in self.note(links).unwrap_or_default() {
                    self.host_of(&link).await;
                }
            }
        }
        let rest = self.host().await;
        self.note(rest);
    }

    fn note<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|e| self.left.push(e)).ok()
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

    /// Bridges, ports, flows, settings.
    async fn switch(&mut self, ovs: &Ovs) {
        let pods = ovs.pod_ports();
        let gateways = ovs.read(gateways);
        for made in ovs.read(uplink::made) {
            let (nic, masquerade) = (made.nic.as_str(), &self.settings.masquerade_subnets);
            let here = self.here.clone();
            let uplink = Uplink { nic, masquerade, here: &here, ovs, halt_after: None, restore: false };
            let back = timeout(CONNECT + SWITCH * 2, uplink.to_nic()).await.unwrap_or_else(|_| {
                Err(Error::Gateway { interface: nic.to_owned(), why: "moving it back took too long".to_owned() })
            });
            self.note(back);
        }
        let mut links = BTreeSet::from([BR_INT.to_owned(), mgmt::LINK.to_owned()]);
        links.extend(ovs.read(internal_ports));
        let node = &self.settings.node;
        let removed = ovs.apply("remove what the node agent made", |cache| Ok(plan(cache, node))).await;
        self.note(removed);
        for bridge in gateways {
            let link = self.here.link(&bridge).await;
            if let Some(Some(link)) = self.note(link.map_err(Error::from)) {
                let flows =
                    Switch::new(run_dir(&self.settings.ovs_remote), &bridge).sync(gateway::flows::COOKIE, &[]).await;
                self.note(flows.map_err(Error::from));
                self.host_of(&link).await;
            }
        }
        for link in links {
            let gone = self.gone(&link).await;
            self.note(gone);
        }
        for pod in pods {
            let deleted = sandbox::delete_pair(&self.here, &pod.sandbox, true).await;
            self.note(deleted);
        }
    }

    fn is_masquerade(&self, ip: IpAddr) -> bool {
        self.settings.masquerade_subnets.iter().any(|range| range.contains(ip))
    }

    /// Links that have a masquerade address.
    async fn gateway_links(&self) -> Result<Vec<Link>> {
        let mut found = Vec::new();
        for link in self.here.links().await? {
            if self.here.addresses(&link).await?.iter().any(|address| self.is_masquerade(address.ip())) {
                found.push(link);
            }
        }
        Ok(found)
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

    /// Addresses, routes, neighbours and settings of a bridge that stays.
    async fn host_of(&mut self, link: &Link) {
        let outcome = self.release(link).await;
        self.note(outcome);
    }

    async fn release(&self, link: &Link) -> Result<()> {
        let ours = |ip| self.is_masquerade(ip);
        for route in self.here.held_routes(link).await? {
            // those of the addresses go with them
            if route.addresses().into_iter().any(ours) {
                self.here.drop_route(link, &route).await?;
            }
        }
        for address in self.here.addresses(link).await?.into_iter().filter(|address| ours(address.ip())) {
            self.here.delete_address(link, address).await?;
        }
        self.here.delete_permanent_neighbours(link, ours).await?;
        for family in ["ipv4", "ipv6"] {
            // a host without IPv6 has none to set
            let _ = sysctl::inherit(family, &link.name, "forwarding");
        }
        Ok(())
    }

    /// What is not of one bridge.
    async fn host(&self) -> Result<()> {
        nft::delete(gateway::TABLE).await?;
        let s = self.settings;
        legacy::remove(&[&s.cluster_subnets[..], &s.service_cidrs, &s.masquerade_subnets].concat(), false).await?;
        for ipv6 in [false, true] {
            for rule in RULES {
                self.here.delete_rule(ipv6, rule).await?;
            }
        }
        for link in self.here.links().await? {
            if link.alias.as_deref().is_some_and(sandbox::is_alias) {
                self.here.delete(&link.name).await?;
            }
        }
        Ok(())
    }
}

fn run_dir(remote: &str) -> &Path {
    let socket = remote.strip_prefix("unix:").unwrap_or_default();
    Path::new(socket).parent().unwrap_or(Path::new("/var/run/openvswitch"))
}

/// Bridges that the chassis maps to the outside, and those that hold flows of ours: the same ones.
fn gateways(cache: &Cache) -> Vec<String> {
    let roots = cache.iter(open_vswitch::TABLE);
    let mappings = roots.filter_map(|(_, row)| row.map(open_vswitch::EXTERNAL_IDS).get(chassis::MAPPINGS));
    let bridges = mappings.flat_map(|text| text.split(',')).filter_map(|one| one.trim().split_once(':'));
    bridges.filter(|(network, _)| *network == chassis::OUTSIDE).map(|(_, bridge)| bridge.to_owned()).collect()
}

/// Links on br-int that go with it.
fn internal_ports(cache: &Cache) -> Vec<String> {
    let internal = cache.iter(interface::TABLE).filter(|(_, row)| row.str(interface::TYPE) == "internal");
    let of_br_int = internal.filter(|(uuid, _)| ovs::bridges(cache, *uuid).any(|bridge| bridge == BR_INT));
    of_br_int.map(|(_, row)| row.str(interface::NAME).to_owned()).collect()
}

fn plan(cache: &Cache, node: &str) -> Txn {
    let mut txn = Txn::new(&vswitch::DATABASE);
    let sandboxes = ovs::sandboxes(cache);
    ovs::remove(cache, &mut txn, &sandboxes.iter().map(String::as_str).collect::<Vec<_>>());
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
