//! The host's own setup of the network at boot: it addresses the NIC and then sets the default route through it. If the
//! address were moved in between, the route could not be set any more. So a host that had a default route before it was
//! started anew gets time to set one; if it sets none, the one from before is set.

use std::net::IpAddr;
use std::time::Duration;

use ovnkube_host::HeldRoute;
use tokio::time::Instant;

use super::Uplink;
use crate::Result;

/// From the agent's start on, for a DHCP server that is slow.
const ADDRESSES: Duration = Duration::from_secs(60);

/// Since when it is waited for.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    started: Option<Instant>,
    addressed: Option<Instant>,
}

impl Setup {
    /// Returns the default routes that the host should have set and did not; an error while it may still do so, which is
    /// for `patience` from the first address on.
    pub(crate) async fn await_routes(&mut self, uplink: &Uplink<'_>, patience: Duration) -> Result<Vec<HeldRoute>> {
        let mut missing = uplink.journal().map(|journal| journal.defaults_before_boot()).unwrap_or_default();
        if missing.is_empty() {
            return Ok(missing);
        }
        let have = uplink.here.default_routes().await?;
        missing.retain(|route| !have.iter().any(|have| route.is_default(have.gateway.is_ipv6())));
        let now = uplink.look().await?;
        let held = [&now.nic, &now.bridge].into_iter().flatten().flat_map(|held| &held.addresses);
        let held: Vec<_> = held.map(ovnkube_host::HeldAddress::address).collect();
        if held.is_empty() {
            self.addressed = None;
            return if lasts(&mut self.started, ADDRESSES) { Err(waits(uplink, "address it")) } else { Ok(Vec::new()) };
        }
        missing.retain(|route| held.iter().any(|address| route.is_default(address.is_ipv6())));
        if !missing.is_empty() && lasts(&mut self.addressed, patience) {
            return Err(waits(uplink, "set the default route, as it did before the host was started anew"));
        }
        // what the host had in another network is of no use in this one
        let reached = |ip: IpAddr| is_link_local(ip) || held.iter().any(|network| network.contains(ip));
        missing.retain(|route| route.addresses().into_iter().all(reached));
        Ok(missing)
    }
}

/// Whether less than `time` passed since `since`, which is now if it was never.
fn lasts(since: &mut Option<Instant>, time: Duration) -> bool {
    since.get_or_insert_with(Instant::now).elapsed() < time
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn waits(uplink: &Uplink<'_>, what: &str) -> crate::Error {
    uplink.refuse(&format!("waiting for the host's own setup to {what}"))
}
