//! Removes rules of ovn-kubernetes from the tables of iptables: the agent has its own nftables table instead. Where
//! iptables writes to nftables, `nft` alone can remove them. Two rules stay in local mode: if another table drops a
//! forwarded packet, no table of the agent can let it pass.

use ipnetwork::IpNetwork;
use ovnkube_model::{Masquerade, Subnet};

use crate::management_port::LINK;

const CHAINS: &str = "OVN-KUBE-";
/// Built-in chains of iptables.
const BASE: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
/// The tables that must let packets of pods pass.
pub const FILTERS: [&str; 2] = ["ip filter", "ip6 filter"];
pub const TABLES: [&str; 6] = ["ip nat", "ip filter", "ip mangle", "ip6 nat", "ip6 filter", "ip6 mangle"];

/// Commands for `nft -f` that remove the rules, from the output of `nft -a list table`.
pub fn plan(table: &str, shown: &str, ranges: &[Subnet], pods_pass: bool) -> String {
    let (mut rules, mut chains, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let mut chain = "";
    for line in shown.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("chain ").and_then(|rest| rest.split(' ').next()) {
            chain = name;
            if name.starts_with(CHAINS) {
                chains.push(name);
            }
            continue;
        }
        let Some((rule, handle)) = line.rsplit_once(" # handle ") else { continue };
        if chain.starts_with(CHAINS) {
            continue;
        }
        let passes = pods_pass && chain == FORWARD && PASS.iter().any(|end| is_pass(rule, end));
        if !passes && BASE.contains(&chain) && is_theirs(rule, ranges) {
            rules.push(format!("delete rule {table} {chain} handle {handle}\n"));
        } else {
            kept.push(rule);
        }
    }
    // a chain that another program's rule jumps to cannot be deleted, only flushed
    let is_used = |name: &&str| kept.iter().flat_map(|rule| rule.split([' ', ',', ';', '}'])).any(|word| word == *name);
    let flushed = chains.iter().map(|name| format!("flush chain {table} {name}\n")).collect();
    let deleted =
        chains.iter().filter(|name| !is_used(name)).map(|name| format!("delete chain {table} {name}\n")).collect();
    [rules, flushed, deleted].concat().concat()
}

/// Commands that let packets from and to pods pass `FORWARD` of iptables, where there is one: Docker and other programs
/// make it drop by default. Input and output are as for [`plan`].
pub fn missing(table: &str, shown: &str) -> String {
    let in_chain = |line: &&str| !line.starts_with('}');
    let mut chain = shown.lines().map(str::trim).skip_while(|line| !line.starts_with("chain FORWARD {"));
    if chain.next().is_none() {
        return String::new();
    }
    let rules: Vec<&str> = chain.take_while(in_chain).collect();
    let missing = PASS.iter().filter(|end| !rules.iter().any(|rule| is_pass(rule, end)));
    let insert = |end: &&str| format!("insert rule {table} {FORWARD} {end} \"{LINK}\" counter accept\n");
    missing.map(insert).collect::<Vec<_>>().concat()
}

const FORWARD: &str = "FORWARD";
const PASS: [&str; 2] = ["iifname", "oifname"];

fn is_pass(rule: &str, end: &str) -> bool {
    let rule = rule.rsplit_once(" # handle ").map_or(rule, |(rule, _)| rule);
    rule.starts_with(&format!("{end} \"{LINK}\" ")) && rule.ends_with(" accept")
}

/// Whether a rule of a built-in chain is exactly one that ovn-kubernetes adds there.
fn is_theirs(rule: &str, ranges: &[Subnet]) -> bool {
    let mut words = Vec::new();
    let mut all = rule.split(" comment ").next().unwrap_or_default().split_whitespace();
    while let Some(word) = all.next() {
        match word {
            "counter" => {}
            "packets" | "bytes" => drop(all.next()),
            _ => words.push(word),
        }
    }
    let in_range = |text: &str, is: &dyn Fn(&Subnet, IpNetwork) -> bool| {
        text.parse::<IpNetwork>().is_ok_and(|network| ranges.iter().any(|range| is(range, network)))
    };
    // whole ranges, and OVN's masquerade address
    let whole = |range: &Subnet, net: IpNetwork| {
        Subnet::of(net) == *range || (is_host(net) && Masquerade::of(*range).is_some_and(|ours| ours.ovn == net.ip()))
    };
    // parts of them, as of a node
    let part = |range: &Subnet, net: IpNetwork| range.contains(net.network()) && net.prefix() >= range.prefix();
    match words.as_slice() {
        ["jump", chain] => chain.starts_with(CHAINS),
        ["iifname" | "oifname", link, "accept"] => link.trim_matches('"') == LINK,
        ["ip" | "ip6", "saddr" | "daddr", network, "accept"] => in_range(network, &whole),
        ["ip" | "ip6", "saddr", network, "masquerade"] => in_range(network, &part),
        _ => false,
    }
}

fn is_host(network: IpNetwork) -> bool {
    network.prefix() == if network.is_ipv6() { 128 } else { 32 }
}
