//! Source addresses of what the host forwards, and services, in a table of our own.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ovnkube_host::nft;
use ovnkube_model::{GatewayMode, Masquerade, Subnet};

use crate::services::nft::{Elements, Moved, UdpDoor, led, turned};
use crate::services::{self, Want};
use crate::{Result, mgmt};

pub(crate) const TABLE: &str = "inet ovn-kubernetes";

/// The table as it shall be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wanted {
    /// Chains, and maps and sets without their elements.
    pub(super) body: String,
    pub(super) elements: Elements,
}

/// The table as written and as the kernel shows it.
#[derive(Debug, Default)]
pub(super) struct Table {
    written: Option<(Wanted, String)>,
    refused: Vec<Refused>,
    /// Led elsewhere than before, or about to be.
    turned: BTreeSet<UdpDoor>,
}

/// An element that the kernel does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) set: &'static str,
    pub(super) key: String,
    value: String,
    pub(super) why: String,
}

/// If more are refused it is not their fault.
const MOST_REFUSED: usize = 32;

impl Table {
    /// Writes elements that differ, or the table anew unless it is as this process left it. Returns
    /// where UDP packets are led now and were not before, until [`Table::forget_turned`]. An element that is refused holds
    /// up no other.
    pub(super) async fn ensure(&mut self, mut want: Wanted) -> Result<Moved> {
        let shown = nft::list(TABLE).await?;
        let written = self.written.take();
        let as_left = |(have, left): &(Wanted, String)| shown.as_ref() == Some(left) && have.body == want.body;
        let is_left = written.as_ref().is_some_and(as_left);
        // what was refused stays out until it differs, or all is written anew
        let elements = &mut want.elements;
        self.refused.retain(|refused| elements.get(&refused.name()) == Some(&refused.value) && is_left);
        for refused in &self.refused {
            elements.remove(&refused.name());
        }
        let none = Elements::new();
        // whatever fails from here on, these are not forgotten
        let before = written.as_ref().map_or(&none, |(have, _)| &have.elements);
        self.turned.extend(turned(before, &want.elements));
        if !is_left {
            self.turned.extend(turned(&none, &want.elements));
        }
        let left = written.filter(|_| is_left);
        let have = left.as_ref().map_or(&none, |(have, _)| &have.elements);
        let commands = |elements: &Elements| {
            let replacement = left.is_none().then(|| nft::replacement(TABLE, &want.body));
            replacement.unwrap_or_default() + &services::nft::change(TABLE, have, elements)
        };
        let generation = nft::generation().await?;
        let mut change = commands(&want.elements);
        if change.is_empty() {
            self.written = left;
            return Ok(led(&self.turned, &want.elements));
        }
        if let Err(e) = nft::change(TABLE, &change).await {
            // one that hangs refuses nothing
            if !matches!(e, ovnkube_host::Error::Program { .. }) {
                return Err(e.into());
            }
            let refused = isolate(have, &want.elements, &commands).await?;
            if refused.is_empty() {
                return Err(e.into());
            }
            for refused in &refused {
                want.elements.remove(&refused.name());
            }
            self.refused.extend(refused);
            change = commands(&want.elements);
            nft::change(TABLE, &change).await?;
        }
        let moved = led(&self.turned, &want.elements);
        // what somebody else has written meanwhile is not taken for ours
        let shown = nft::list(TABLE).await?;
        let ours = nft::generation().await? == generation.wrapping_add(1);
        self.written = shown.filter(|_| ours).map(|shown| (want, shown));
        Ok(moved)
    }

    /// No connection goes any more where one of them led before.
    pub(super) fn forget_turned(&mut self) {
        self.turned.clear();
    }

    /// Those that the kernel does not take.
    pub(super) fn refused(&self) -> &[Refused] {
        &self.refused
    }
}

impl Refused {
    fn name(&self) -> (&'static str, String) {
        (self.set, self.key.clone())
    }
}

/// Which new elements the kernel does not take, found by halves. Nothing is written.
async fn isolate(have: &Elements, want: &Elements, commands: &impl Fn(&Elements) -> String) -> Result<Vec<Refused>> {
    let is_there = |(key, value): &(&(&'static str, String), &String)| have.get(*key) == Some(*value);
    let pair = |(key, value): (&(&'static str, String), &String)| (key.clone(), value.clone());
    let mut good: Elements = want.iter().filter(is_there).map(pair).collect();
    let new: Vec<_> = want.iter().filter(|element| !is_there(element)).map(pair).collect();
    let mut refused = Vec::new();
    let mut batches = vec![new];
    while let Some(mut batch) = batches.pop() {
        let mut trial = good.clone();
        trial.extend(batch.iter().cloned());
        match nft::check(TABLE, &commands(&trial)).await? {
            Ok(()) => good = trial,
            Err(_) if batch.len() > 1 => {
                let rest = batch.split_off(batch.len() / 2);
                batches.extend([rest, batch]);
            }
            Err(why) => {
                let of = |((set, key), value)| Refused { set, key, value, why: why.clone() };
                refused.extend(batch.into_iter().map(of));
                if refused.len() > MOST_REFUSED {
                    return Ok(Vec::new());
                }
            }
        }
    }
    Ok(refused)
}

/// The links that forward for the cluster alone, with `-disable-forwarding`.
pub(super) struct Guard<'a> {
    pub(super) bridge: &'a str,
    /// Of pods, services and masquerade addresses.
    pub(super) ranges: &'a [Subnet],
}

/// What the table is made of.
pub(super) struct Parts<'a> {
    pub(super) mode: GatewayMode,
    /// The node's own.
    pub(super) subnets: &'a [Subnet],
    /// The management port's addresses.
    pub(super) management: &'a [IpAddr],
    pub(super) masquerade: &'a [Subnet],
    /// UDP port of the tunnels.
    pub(super) encap_port: u16,
    /// With `-disable-forwarding`.
    pub(super) guard: Option<&'a Guard<'a>>,
}

pub(super) fn table(parts: &Parts<'_>, services: &Want) -> Wanted {
    let mut body = services::nft::body();
    body += &tunnels(parts.encap_port);
    body += &forward_to_pods();
    body += &to_pods(parts.management);
    if parts.mode == GatewayMode::Local {
        body += &from_pods(parts.subnets, parts.masquerade);
    }
    body += &parts.guard.map(forward).unwrap_or_default();
    Wanted { body, elements: services::nft::elements(services, parts.mode, parts.masquerade) }
}

/// What pods send to a tunnel's port would leave with the node's address, and another node would take it for what OVN sends.
fn tunnels(encap_port: u16) -> String {
    let rule = format!("iifname \"{}\" udp dport {encap_port} counter drop", mgmt::LINK);
    chain("mgmtport-tunnels", "type filter hook prerouting priority -310", &[rule])
}

/// Pods take whatever has the management port's address, whatever policies say: that is what the host itself sends. So it forwards to
/// them only what was translated for a service or a host port, and answers; neither what a pod sends round by the host, nor what somebody
/// outside does who takes the node for a router.
fn forward_to_pods() -> String {
    let rules = [
        format!("oifname != \"{}\" return", mgmt::LINK),
        "ct state established,related return".to_owned(),
        "ct status dnat return".to_owned(),
        "counter drop".to_owned(),
    ];
    chain("mgmtport-forward", "type filter hook forward priority filter", &rules)
}

/// Pods answer to the management port's address over the management port, to others through OVN.
fn to_pods(management: &[IpAddr]) -> String {
    let mut rules = vec![
        format!("oifname != \"{}\" return", mgmt::LINK),
        // endpoints see who sends to them
        "meta l4proto . th dport @mgmtport-no-snat-nodeports counter return".to_owned(),
    ];
    for ip in management {
        let (family, protocol, n) = if ip.is_ipv6() { ("ip6", "ipv6", 6) } else { ("ip", "ipv4", 4) };
        rules.push(format!("{family} saddr {ip} counter return"));
        let kept = format!("@mgmtport-no-snat-services-v{n}");
        rules.push(format!("{family} daddr . meta l4proto . th dport {kept} counter return"));
        rules.push(format!("meta nfproto {protocol} counter snat {family} to {ip}"));
    }
    chain("mgmtport-snat", SNAT, &rules)
}

/// Local mode: the host gives what leaves the node its own address.
fn from_pods(subnets: &[Subnet], masquerade: &[Subnet]) -> String {
    let ovn = masquerade.iter().filter_map(|range| Some(Masquerade::of(*range)?.ovn));
    let ovn = ovn.map(|ip| (ip.is_ipv6(), ip.to_string()));
    let sources = ovn.chain(subnets.iter().map(|subnet| (subnet.is_ipv6(), subnet.to_string())));
    let masquerade = |(ipv6, source)| format!("{} saddr {source} counter masquerade", if ipv6 { "ip6" } else { "ip" });
    chain("ovn-kube-pod-subnet-masq", SNAT, &sources.map(masquerade).collect::<Vec<_>>())
}

/// What comes in by the gateway or leaves by it is the cluster's, or is not forwarded.
fn forward(guard: &Guard<'_>) -> String {
    let links = format!("{{ \"{}\", \"{}\" }}", guard.bridge, mgmt::LINK);
    let mut rules = vec![format!("iifname != {links} oifname != {links} return")];
    for range in guard.ranges {
        let family = if range.is_ipv6() { "ip6" } else { "ip" };
        rules.extend(["saddr", "daddr"].map(|end| format!("{family} {end} {range} return")));
    }
    rules.push("counter drop".to_owned());
    chain("forward", "type filter hook forward priority filter", &rules)
}

const SNAT: &str = "type nat hook postrouting priority srcnat";

fn chain(name: &str, hook: &str, rules: &[String]) -> String {
    format!("\tchain {name} {{\n\t\t{hook}; policy accept;\n\t\t{}\n\t}}\n", rules.join("\n\t\t"))
}
