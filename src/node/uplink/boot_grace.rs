//! Waits for the host's own network setup at boot, which adds an address to the NIC and then the default route through
//! it. If the address were moved in between, the route could no longer be set. So a host that had a default route
//! before the reboot gets time to set one; if it does not, the agent sets the earlier one.

use std::time::Duration;

use ovnkube_host::SavedRoute;
use tokio::time::Instant;

use super::journal::is_reached;
use super::observe::Uplink;
use crate::Result;

/// Since when the agent waits for it.
#[derive(Debug)]
pub(crate) struct BootGrace {
    first_address: Duration,
    default_route: Duration,
    started: Option<Instant>,
    addressed: Option<Instant>,
}

impl BootGrace {
    pub(crate) fn new(first_address: Duration, default_route: Duration) -> Self {
        Self { first_address, default_route, started: None, addressed: None }
    }

    /// Returns the default routes that the host should have set but did not; an error while it may still do so.
    pub(crate) async fn await_routes(&mut self, uplink: &Uplink<'_>) -> Result<Vec<SavedRoute>> {
        let mut missing = uplink.journal().map(|journal| journal.defaults_before_boot()).unwrap_or_default();
        if missing.is_empty() {
            return Ok(missing);
        }
        let have = uplink.here.default_routes().await?;
        missing.retain(|route| !have.iter().any(|have| route.is_default(have.gateway.is_ipv6())));
        let now = uplink.see().await?.have;
        let held = [&now.nic, &now.bridge].into_iter().flatten().flat_map(|held| &held.addresses);
        let held: Vec<_> = held.map(ovnkube_host::SavedAddress::address).collect();
        let has = |route: &SavedRoute| held.iter().any(|address| route.is_default(address.is_ipv6()));
        let (mut missing, bare): (Vec<_>, Vec<_>) = missing.into_iter().partition(has);
        // the journal keeps the others
        if !bare.is_empty() && lasts(&mut self.started, self.first_address) {
            let families = [false, true].into_iter().filter(|ipv6| bare.iter().any(|route| route.is_default(*ipv6)));
            let families: Vec<_> = families.map(|ipv6| if ipv6 { "IPv6" } else { "IPv4" }).collect();
            return Err(waits(uplink, &format!("it has no {} address yet", families.join(" and no "))));
        }
        if missing.is_empty() {
            self.addressed = None;
        } else if lasts(&mut self.addressed, self.default_route) {
            return Err(waits(uplink, "the default route from before the reboot is not set yet"));
        }
        // a route from another network is of no use in this one
        missing.retain(|route| is_reached(route, &held));
        Ok(missing)
    }
}

/// Whether less than `time` has passed since `since`, which is set to now if it is `None`.
fn lasts(since: &mut Option<Instant>, time: Duration) -> bool {
    since.get_or_insert_with(Instant::now).elapsed() < time
}

fn waits(uplink: &Uplink<'_>, what: &str) -> crate::Error {
    uplink.refuse(&format!("the host's own network setup has not finished: {what}"))
}
