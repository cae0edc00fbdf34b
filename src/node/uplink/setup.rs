//! The host's own setup of the network at boot: it addresses the NIC and then sets the default route through it. If the
//! address were moved in between, the route could not be set any more. So a host that had a default route before it was
//! started anew gets time to set one; if it sets none, the one from before is set.

use std::time::Duration;

use ovnkube_host::HeldRoute;
use tokio::time::Instant;

use super::Uplink;
use super::journal::is_reached;
use crate::Result;

/// Since when it is waited for.
#[derive(Debug)]
pub(crate) struct Setup {
    first_address: Duration,
    default_route: Duration,
    started: Option<Instant>,
    addressed: Option<Instant>,
}

impl Setup {
    pub(crate) fn new(first_address: Duration, default_route: Duration) -> Self {
        Self { first_address, default_route, started: None, addressed: None }
    }

    /// Returns the default routes that the host should have set and did not; an error while it may still do so.
    pub(crate) async fn await_routes(&mut self, uplink: &Uplink<'_>) -> Result<Vec<HeldRoute>> {
        let mut missing = uplink.journal().map(|journal| journal.defaults_before_boot()).unwrap_or_default();
        if missing.is_empty() {
            return Ok(missing);
        }
        let have = uplink.here.default_routes().await?;
        missing.retain(|route| !have.iter().any(|have| route.is_default(have.gateway.is_ipv6())));
        let now = uplink.see().await?.have;
        let held = [&now.nic, &now.bridge].into_iter().flatten().flat_map(|held| &held.addresses);
        let held: Vec<_> = held.map(ovnkube_host::HeldAddress::address).collect();
        let has = |route: &HeldRoute| held.iter().any(|address| route.is_default(address.is_ipv6()));
        let (mut missing, bare): (Vec<_>, Vec<_>) = missing.into_iter().partition(has);
        // the journal goes on to know of those
        if !bare.is_empty() && lasts(&mut self.started, self.first_address) {
            let families = [false, true].into_iter().filter(|ipv6| bare.iter().any(|route| route.is_default(*ipv6)));
            let families: Vec<_> = families.map(|ipv6| if ipv6 { "IPv6" } else { "IPv4" }).collect();
            return Err(waits(uplink, &format!("address it for {}", families.join(" and "))));
        }
        if missing.is_empty() {
            self.addressed = None;
        } else if lasts(&mut self.addressed, self.default_route) {
            return Err(waits(uplink, "set the default route, as it did before the host was started anew"));
        }
        // what the host had in another network is of no use in this one
        missing.retain(|route| is_reached(route, &held));
        Ok(missing)
    }
}

/// Whether less than `time` passed since `since`, which is now if it was never.
fn lasts(since: &mut Option<Instant>, time: Duration) -> bool {
    since.get_or_insert_with(Instant::now).elapsed() < time
}

fn waits(uplink: &Uplink<'_>, what: &str) -> crate::Error {
    uplink.refuse(&format!("waiting for the host's own setup to {what}"))
}
