//! Makes changes of the host one after the other. A failure does not stop the others, except marks: they must stay, so
//! that the remains on a link are found again.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use ovnkube_host::flows::Switch;
use ovnkube_host::{Link, Net, advertised, ethtool, nft, sysctl};
use ovnkube_model::Subnet;
use ovnkube_node_plan::change::{HostChange, What};
use ovnkube_node_plan::{chassis, management_port, openflow};
use tokio::time::timeout;

use crate::ovs::Ovs;
use crate::uplink::Uplink;
use crate::{Error, Result};

/// How long moving a NIC back may take; ovs-vswitchd takes part in it.
const GIVE_BACK: Duration = Duration::from_secs(15);

/// Where changes are made.
#[derive(Clone, Copy)]
pub(crate) struct Applier<'a> {
    pub(crate) here: &'a Net,
    /// `None`: Open vSwitch is stopped, and its database is not changed.
    pub(crate) ovs: Option<&'a Ovs>,
    /// Where ovs-vswitchd has its sockets.
    pub(crate) run_dir: &'a Path,
    pub(crate) masquerade: &'a [Subnet],
}

/// The changes that failed.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    pub(crate) errors: Vec<Error>,
    links: BTreeSet<String>,
}

impl Failed {
    /// The first error, if there is one.
    pub(crate) fn first(self) -> Result<()> {
        self.errors.into_iter().next().map_or(Ok(()), Err)
    }
}

impl Applier<'_> {
    pub(crate) async fn all(&self, changes: &[HostChange]) -> Result<()> {
        let mut failed = Failed::default();
        for change in changes {
            self.try_one(change, &mut failed).await;
        }
        failed.first()
    }

    /// Makes a change. A mark stays if an earlier change of its link, of the management port or of the whole host failed.
    pub(crate) async fn try_one(&self, change: &HostChange, failed: &mut Failed) {
        if change.is_mark
            && [change.link.as_str(), management_port::LINK, ""].iter().any(|link| failed.links.contains(*link))
        {
            return;
        }
        if let Err(e) = self.one(change).await {
            failed.links.insert(change.link.clone());
            failed.errors.push(e);
        }
    }

    async fn one(&self, change: &HostChange) -> Result<()> {
        tracing::debug!(%change, "change the host");
        let HostChange { link, what, .. } = change;
        let here = self.here;
        match what {
            What::SetMac(mac) => here.ensure_mac(&self.link(link).await?, *mac).await?,
            What::SetMtu(mtu) => here.ensure_mtu(&self.link(link).await?, *mtu).await?,
            What::SetUp => here.set_up(&self.link(link).await?).await?,
            What::AddAddress { address, preferred } => {
                let link = self.link(link).await?;
                if *preferred {
                    here.ensure_address(&link, *address).await?;
                } else {
                    here.ensure_unpreferred_address(&link, *address).await?;
                }
            }
            What::RemoveAddress(address) => here.delete_address(&self.link(link).await?, *address).await?,
            What::AddRoute { table, route } => here.ensure_route_in(&self.link(link).await?, *table, *route).await?,
            What::RemoveRoute { table, route } => here.delete_route_in(&self.link(link).await?, *table, *route).await?,
            What::RemoveSnapshot(route) => here.drop_snapshot(&self.link(link).await?, route).await?,
            What::RemoveRoutesIn(table) => here.delete_routes_in(&self.link(link).await?, *table).await?,
            What::AddNeighbour(ip, mac) => here.ensure_neighbour(&self.link(link).await?, *ip, *mac).await?,
            What::RemoveNeighbour(ip) => here.delete_neighbour(&self.link(link).await?, *ip).await?,
            What::AddRule { ipv6, rule } => here.ensure_rule(*ipv6, *rule).await?,
            What::RemoveRule { ipv6, rule } => here.delete_rule(*ipv6, *rule).await?,
            What::SetSysctl(name, value) => sysctl::set_link(name.family, link, name.key, value)?,
            What::ForwardIpv6 => advertised::forward(link)?,
            What::ChecksumsInSoftware => ethtool::tx_checksum_off(None, link).await?,
            What::ResetForwarding => {
                // a link that is gone by now and a host without IPv6 have no such sysctl
                let _ = sysctl::inherit("ipv4", link, "forwarding");
                let _ = advertised::put_back(link);
            }
            What::DeleteTable(table) => nft::delete(table).await?,
            What::ChangeTable { table, commands } => {
                tracing::info!(table, "removing rules of ovn-kubernetes from nftables");
                nft::change(table, commands).await?;
            }
            What::RemoveFlows => {
                tracing::info!(link, "removing the gateway's flows");
                Switch::new(self.run_dir, link).sync(openflow::COOKIE, &[]).await?;
            }
            What::Unmap => self.unmap(link).await?,
            What::MoveBack => self.move_back(link).await?,
        }
        Ok(())
    }

    async fn link(&self, name: &str) -> Result<Link> {
        self.here.link(name).await?.ok_or_else(|| Error::LinkGone { name: name.to_owned() })
    }

    async fn unmap(&self, bridge: &str) -> Result<()> {
        let Some(ovs) = self.ovs else { return Ok(()) };
        ovs.apply(&format!("take bridge {bridge} out of ovn-bridge-mappings"), |cache| {
            Ok(chassis::unmap(cache, bridge))
        })
        .await
    }

    /// Moves addresses and routes back to a NIC from the bridge that the agent made, and removes the bridge.
    async fn move_back(&self, nic: &str) -> Result<()> {
        let Some(ovs) = self.ovs else { return Ok(()) };
        let uplink = Uplink::new(nic, self.masquerade, self.here, ovs);
        timeout(GIVE_BACK, uplink.to_nic())
            .await
            .unwrap_or_else(|_| Err(Error::gateway(nic, "moving its addresses and routes back took longer than 15 s")))
    }
}
