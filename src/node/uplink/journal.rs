//! What a bridge that we made took from its NIC, kept in the bridge's row: it is there as long as the bridge is, also
//! after a power cut, and nobody has to look for a file.

use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipnetwork::IpNetwork;
use ovnkube_host::{HeldAddress, HeldRoute};
use serde::{Deserialize, Serialize};

use super::plan::Holder;

/// A lease that is renewed is written down again; one that only ran on is not.
const SAME_END: u64 = 60;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The kernel's: after a reboot the host's own network setup says what is right.
    boot: String,
    /// Index of the bridge's link; another one holds nothing of what this one did.
    link: u32,
    /// That link was set down; it may not have back yet what it lost by that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) down: bool,
    addresses: Vec<Kept>,
    routes: Vec<Kept>,
    /// Default routes from before the host was started anew that it still does without: the address that one needs may
    /// come in the middle of a move, and who sets the address can't set the route any more then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    awaited: Vec<Kept>,
    /// A router's word was obeyed on the NIC once, by the kernel or in its place.
    #[serde(default)]
    pub(super) advertised: bool,
    /// Who answered before the move and has to answer after it; empty once they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) trial: Vec<String>,
    /// Why all goes back to the NIC: whoever starts next goes on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undone: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// For people.
    what: String,
    /// Seconds since 1970; `None`: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    message: String,
}

impl Journal {
    /// `before`: the one that it takes the place of.
    pub(super) fn of(
        link: u32,
        held: &Holder<HeldAddress, HeldRoute>,
        trial: &[String],
        before: Option<&Journal>,
    ) -> Self {
        let now = now();
        let mut awaited = before.map(Self::defaults_before_boot).unwrap_or_default();
        awaited.retain(|route| is_awaited(route, held));
        let awaited = awaited.iter().map(Kept::route).collect();
        let advertised =
            before.is_some_and(|before| before.advertised) || held.routes.iter().any(HeldRoute::is_advertised);
        let addresses = held.addresses.iter().map(|held| Kept {
            what: held.address().to_string(),
            until: held.valid().map(|seconds| now + u64::from(seconds)),
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
            trial: trial.to_vec(),
            undone: None,
        }
    }

    /// What can't be read counts for nothing: it is written anew.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Of the addresses.
    pub(super) fn networks(&self) -> Vec<IpNetwork> {
        self.addresses.iter().filter_map(|kept| kept.what.parse().ok()).collect()
    }

    /// Whether this one says what there is `now`. What is written before a trial is what the host gets back after it, so
    /// until that has ended only a link that was down matters.
    pub(super) fn agrees(&self, now: &Self) -> bool {
        if !self.trial.is_empty() {
            return self.down == now.down;
        }
        let same = |(a, b): (&Kept, &Kept)| {
            a.what == b.what && a.until.unwrap_or(0).abs_diff(b.until.unwrap_or(0)) <= SAME_END
        };
        (&self.boot, self.link, self.down, self.addresses.len()) == (&now.boot, now.link, now.down, now.addresses.len())
            && (&self.routes, &self.awaited, self.advertised) == (&now.routes, &now.awaited, now.advertised)
            && self.addresses.iter().zip(&now.addresses).all(same)
    }

    /// Whether it says what the link of this index holds.
    pub(super) fn is_of(&self, link: u32) -> bool {
        self.boot == boot() && self.link != 0 && self.link == link
    }

    /// What the bridge held and does not now, as far as it is still valid: all that its link had when it was another one
    /// than `link`. One that is not `up`, or was set down, has lost its routes and its IPv6 addresses; who misses one of
    /// IPv4 has removed it.
    pub(super) fn lost(&self, link: Option<u32>, up: bool) -> Holder<HeldAddress, HeldRoute> {
        let is_same = link == Some(self.link);
        if self.boot != boot() || self.link == 0 || (is_same && up && !self.down) {
            return Holder { up: true, addresses: Vec::new(), routes: Vec::new() };
        }
        let now = now();
        let address = |kept: &Kept| {
            let held = HeldAddress::decode(&kept.bytes()?)?;
            let (Some(until), Some(valid)) = (kept.until, held.valid()) else { return Some(held) };
            // since it was written
            let passed = (now + u64::from(valid)).saturating_sub(until);
            held.aged(u32::try_from(passed).unwrap_or(u32::MAX))
        };
        let mut addresses: Vec<_> = self.addresses.iter().filter_map(address).collect();
        addresses.retain(|held| !is_same || held.address().is_ipv6());
        Holder { up: true, addresses, routes: routes(&self.routes) }
    }

    /// Default routes that the host had before it was started anew, and has not had since.
    pub(super) fn defaults_before_boot(&self) -> Vec<HeldRoute> {
        let mut defaults = routes(&self.awaited);
        if self.boot != boot() {
            defaults.extend(routes(&self.routes));
        }
        defaults.retain(|route| route.is_default(false) || route.is_default(true));
        defaults
    }
}

/// Whether the host may still get this default route, or has to be given it: it has none of its family, and no address
/// of the family yet, or the ones that the route needs.
fn is_awaited(route: &HeldRoute, held: &Holder<HeldAddress, HeldRoute>) -> bool {
    let ipv6 = route.is_default(true);
    let of_family = held.addresses.iter().map(HeldAddress::address).filter(|one| one.is_ipv6() == ipv6);
    let addresses: Vec<_> = of_family.collect();
    let has_source = route.source().is_none_or(|source| addresses.iter().any(|one| one.ip() == source));
    let is_of_use = has_source && is_reached(route, &addresses);
    !held.routes.iter().any(|one| one.is_default(ipv6)) && (addresses.is_empty() || is_of_use)
}

/// Whether all that a route names is in a network of these addresses.
pub(super) fn is_reached(route: &HeldRoute, addresses: &[IpNetwork]) -> bool {
    let is_link_local = |ip| matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    route.addresses().into_iter().all(|ip| is_link_local(ip) || addresses.iter().any(|network| network.contains(ip)))
}

fn routes(kept: &[Kept]) -> Vec<HeldRoute> {
    kept.iter().filter_map(|kept| HeldRoute::decode(&kept.bytes()?)).collect()
}

impl Kept {
    fn route(held: &HeldRoute) -> Self {
        Self { what: held.to_string(), until: None, message: STANDARD.encode(held.encode()) }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.message).ok()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
