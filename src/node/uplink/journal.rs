//! What a bridge of the agent took from its NIC, stored in the bridge's row: so it exists as long as the bridge, also
//! after a power cut, and needs no file.

use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipnetwork::IpNetwork;
use nix::time::{ClockId, clock_gettime};
use ovnkube_host::{SavedAddress, SavedRoute};
use ovnkube_node_plan::uplink::LinkSnapshot;
use serde::{Deserialize, Serialize};

use super::connectivity_check::Check;

/// Tolerance in seconds: a renewed lease is written again; one that only got older is not.
const SAME_END: u64 = 60;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The kernel's boot id: after a reboot the host's own network setup decides.
    boot: String,
    /// Index of the bridge's link; a link with another index holds nothing of what this one did.
    link: u32,
    /// That link was set down; what it lost by that may not be restored yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) down: bool,
    addresses: Vec<Kept>,
    routes: Vec<Kept>,
    /// Default routes from before the reboot that the host still lacks: the address that one needs may be added in the
    /// middle of a move, and the program that adds it can then no longer set the route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    awaited: Vec<Kept>,
    /// Router advertisements were once accepted on the NIC, by the kernel or by a program in its place.
    #[serde(default)]
    pub(super) advertised: bool,
    /// Connectivity checks that passed before the move and must pass after it; empty once they did.
    #[serde(default, rename = "trial", skip_serializing_if = "Vec::is_empty")]
    checks: Vec<String>,
    /// Why everything moves back to the NIC; a restarted agent continues with that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undone: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// For messages; for an address also read back.
    what: String,
    /// Seconds since the boot, which count whatever time it is said to be; `None`: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<u64>,
    /// In place of that, from an earlier version: seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    message: String,
}

impl Journal {
    /// The journal for what the links have. `before`: the journal that it replaces.
    pub(super) fn of(
        link: u32,
        held: &LinkSnapshot<SavedAddress, SavedRoute>,
        checks: &[Check],
        before: Option<&Journal>,
    ) -> Self {
        let now = since_boot();
        let mut awaited = before.map(Self::defaults_before_boot).unwrap_or_default();
        awaited.retain(|route| is_awaited(route, held));
        let awaited = awaited.iter().map(Kept::route).collect();
        let advertised =
            before.is_some_and(|before| before.advertised) || held.routes.iter().any(SavedRoute::is_advertised);
        let addresses = held.addresses.iter().map(|held| Kept {
            what: held.address().to_string(),
            ends: held.valid().map(|seconds| now + u64::from(seconds)),
            until: None,
            message: STANDARD.encode(held.encode()),
        });
        let routes = held.routes.iter().filter(|route| route.is_lasting()).map(Kept::route);
        let (addresses, routes) = (addresses.collect(), routes.collect());
        Self {
            boot: boot(),
            link,
            down: false,
            addresses,
            routes,
            awaited,
            advertised,
            checks: checks.iter().map(ToString::to_string).collect(),
            undone: None,
        }
    }

    /// If it cannot be parsed, it is ignored and written again.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn set_checks(&mut self, checks: &[Check]) {
        self.checks = checks.iter().map(ToString::to_string).collect();
    }

    pub(super) fn checks(&self) -> Vec<Check> {
        self.checks.iter().filter_map(|text| Check::parse(text)).collect()
    }

    /// The addresses with their networks.
    pub(super) fn networks(&self) -> Vec<IpNetwork> {
        self.addresses.iter().filter_map(|kept| kept.what.parse().ok()).collect()
    }

    /// Whether this journal matches the current one. What is written before a connectivity check is restored if the
    /// check fails, so until the check ends only a link that was down matters.
    pub(super) fn agrees(&self, now: &Self) -> bool {
        if !self.checks().is_empty() {
            return self.down == now.down;
        }
        let same = |(a, b): (&Kept, &Kept)| {
            a.what == b.what && a.until == b.until && a.ends.unwrap_or(0).abs_diff(b.ends.unwrap_or(0)) <= SAME_END
        };
        (&self.boot, self.link, self.down, self.addresses.len()) == (&now.boot, now.link, now.down, now.addresses.len())
            && (&self.routes, &self.awaited, self.advertised) == (&now.routes, &now.awaited, now.advertised)
            && self.addresses.iter().zip(&now.addresses).all(same)
    }

    /// Whether it describes the link with this index.
    pub(super) fn is_of(&self, link: u32) -> bool {
        self.boot == boot() && self.link != 0 && self.link == link
    }

    /// What the bridge has lost, as far as it is still valid: everything, if its link was another one than `link`. A
    /// link that is not `up`, or was set down, has lost its routes and IPv6 addresses; a missing IPv4 address was
    /// removed by another program.
    pub(super) fn lost(&self, link: Option<u32>, up: bool) -> LinkSnapshot<SavedAddress, SavedRoute> {
        let is_same = link == Some(self.link);
        if self.boot != boot() || self.link == 0 || (is_same && up && !self.down) {
            return LinkSnapshot { up: true, addresses: Vec::new(), routes: Vec::new() };
        }
        let address = |kept: &Kept| {
            let held = SavedAddress::decode(&kept.bytes()?)?;
            let Some(passed) = held.valid().and_then(|valid| kept.passed(u64::from(valid))) else { return Some(held) };
            held.aged(u32::try_from(passed).unwrap_or(u32::MAX))
        };
        let mut addresses: Vec<_> = self.addresses.iter().filter_map(address).collect();
        addresses.retain(|held| !is_same || held.address().is_ipv6());
        LinkSnapshot { up: true, addresses, routes: routes(&self.routes) }
    }

    /// Default routes that the host had before the reboot, and has not had since.
    pub(super) fn defaults_before_boot(&self) -> Vec<SavedRoute> {
        let mut defaults = routes(&self.awaited);
        if self.boot != boot() {
            defaults.extend(routes(&self.routes));
        }
        defaults.retain(|route| route.is_default(false) || route.is_default(true));
        defaults
    }
}

/// Whether this default route is still missing: the host has none of its family, and either no address of the family
/// yet or the ones that the route needs.
fn is_awaited(route: &SavedRoute, held: &LinkSnapshot<SavedAddress, SavedRoute>) -> bool {
    let ipv6 = route.is_default(true);
    let of_family = held.addresses.iter().map(SavedAddress::address).filter(|one| one.is_ipv6() == ipv6);
    let addresses: Vec<_> = of_family.collect();
    let has_source = route.source().is_none_or(|source| addresses.iter().any(|one| one.ip() == source));
    let is_of_use = has_source && is_reached(route, &addresses);
    !held.routes.iter().any(|one| one.is_default(ipv6)) && (addresses.is_empty() || is_of_use)
}

/// Whether all addresses that a route names are in networks of these addresses.
pub(super) fn is_reached(route: &SavedRoute, addresses: &[IpNetwork]) -> bool {
    let is_link_local = |ip| matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    route.addresses().into_iter().all(|ip| is_link_local(ip) || addresses.iter().any(|network| network.contains(ip)))
}

fn routes(kept: &[Kept]) -> Vec<SavedRoute> {
    kept.iter().filter_map(|kept| SavedRoute::decode(&kept.bytes()?)).collect()
}

impl Kept {
    fn route(held: &SavedRoute) -> Self {
        Self { what: held.to_string(), ends: None, until: None, message: STANDARD.encode(held.encode()) }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.message).ok()
    }

    /// Seconds since it was written, when it was valid for that many.
    fn passed(&self, valid: u64) -> Option<u64> {
        let (now, end) = match (self.ends, self.until) {
            (Some(ends), _) => (since_boot(), ends),
            (None, until) => (since_1970(), until?),
        };
        Some((now + valid).saturating_sub(end))
    }
}

fn since_boot() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(0, |since| since.tv_sec().cast_unsigned())
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use ovnkube_host::Net;
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::apart;

    /// How long its address is still valid, for a link of another index.
    fn left(journal: &Value) -> Option<u32> {
        let lost = Journal::parse(&journal.to_string()).unwrap().lost(None, true);
        lost.addresses.first().and_then(SavedAddress::valid)
    }

    #[test]
    fn a_lease_lasts_as_long_as_it_was_given_whatever_the_clock_says() {
        apart(async || {
            for args in [
                "link add name lease0 type veth peer name wire",
                "addr add 192.0.2.2/24 dev lease0 valid_lft 3600 preferred_lft 3600",
            ] {
                assert!(std::process::Command::new("ip").args(args.split(' ')).status().unwrap().success());
            }
            let here = Net::here().await.unwrap();
            let addresses = here.held_addresses(&here.link("lease0").await.unwrap().unwrap()).await.unwrap();
            let held = LinkSnapshot { up: true, addresses, routes: Vec::new() };
            let journal = Journal::of(7, &held, &[], None);
            let mut text: Value = serde_json::from_str(&journal.text()).unwrap();
            let about = |left: Option<u32>, seconds: u32| left.is_some_and(|left| left.abs_diff(seconds) <= 60);
            assert!(about(left(&text), 3600), "{text}");
            // half an hour later
            text["addresses"][0]["ends"] = json!(since_boot() + 1800);
            assert!(about(left(&text), 1800), "{text}");
            // as an earlier version wrote it; it is written again in the new form
            text["addresses"][0]["ends"] = Value::Null;
            text["addresses"][0]["until"] = json!(since_1970() + 1200);
            assert!(about(left(&text), 1200), "{text}");
            assert!(!Journal::parse(&text.to_string()).unwrap().agrees(&journal));
            text["addresses"][0]["until"] = json!(since_1970() - 1);
            assert_eq!(left(&text), None);
        });
    }
}
