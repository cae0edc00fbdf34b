//! Rules of ovn-kubernetes in the tables of iptables: what they did, the agent does in its own nftables table. Where
//! iptables writes to nftables, no iptables is needed to remove them. Two stay in local mode: what another table drops
//! of what is forwarded, no table of ours could let pass.

use ipnetwork::IpNetwork;
use ovnkube_host::nft;
use ovnkube_model::Subnet;

use crate::Result;
use crate::mgmt;

const CHAINS: &str = "OVN-KUBE-";
/// iptables' own.
const BASE: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
const TABLES: [&str; 6] = ["ip nat", "ip filter", "ip mangle", "ip6 nat", "ip6 filter", "ip6 mangle"];

/// `ranges`: of pods, services and masquerade addresses. Rules of others stay, and those that let pods' packets pass
/// if `pods_pass`.
pub(crate) async fn remove(ranges: &[Subnet], pods_pass: bool) -> Result<()> {
    for table in TABLES {
        let Some(shown) = nft::list_with_handles(table).await? else { continue };
        let commands = plan(table, &shown, ranges, pods_pass);
        if !commands.is_empty() {
            tracing::info!("removing rules of ovn-kubernetes from nftables table {table}");
            nft::change(table, &commands).await?;
        }
    }
    Ok(())
}

/// From what `nft -a list table` shows to commands for `nft -f`.
pub(super) fn plan(table: &str, shown: &str, ranges: &[Subnet], pods_pass: bool) -> String {
    let (mut rules, mut flushed, mut chains) = (Vec::new(), Vec::new(), Vec::new());
    let mut chain = "";
    for line in shown.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("chain ").and_then(|rest| rest.split(' ').next()) {
            chain = name;
            if name.starts_with(CHAINS) {
                flushed.push(format!("flush chain {table} {name}\n"));
                chains.push(format!("delete chain {table} {name}\n"));
            }
            continue;
        }
        let Some((rule, handle)) = line.rsplit_once(" # handle ") else { continue };
        if pods_pass && chain == FORWARD && PASS.iter().any(|end| is_pass(rule, end)) {
            continue;
        }
        if BASE.contains(&chain) && is_theirs(rule, ranges) {
            rules.push(format!("delete rule {table} {chain} handle {handle}\n"));
        }
    }
    [rules, flushed, chains].concat().concat()
}

/// Lets what pods send and get through the host pass `FORWARD` of iptables, where there is one: Docker and others let
/// it drop the rest.
pub(super) async fn let_pods_pass() -> Result<()> {
    for table in ["ip filter", "ip6 filter"] {
        let Some(shown) = nft::list_with_handles(table).await? else { continue };
        let commands = missing(table, &shown);
        if !commands.is_empty() {
            nft::change(table, &commands).await?;
        }
    }
    Ok(())
}

/// As [`plan`].
pub(super) fn missing(table: &str, shown: &str) -> String {
    let in_chain = |line: &&str| !line.starts_with('}');
    let mut chain = shown.lines().map(str::trim).skip_while(|line| !line.starts_with("chain FORWARD {"));
    if chain.next().is_none() {
        return String::new();
    }
    let rules: Vec<&str> = chain.take_while(in_chain).collect();
    let missing = PASS.iter().filter(|end| !rules.iter().any(|rule| is_pass(rule, end)));
    let insert = |end: &&str| format!("insert rule {table} {FORWARD} {end} \"{}\" counter accept\n", mgmt::LINK);
    missing.map(insert).collect::<Vec<_>>().concat()
}

const FORWARD: &str = "FORWARD";
const PASS: [&str; 2] = ["iifname", "oifname"];

fn is_pass(rule: &str, end: &str) -> bool {
    let rule = rule.rsplit_once(" # handle ").map_or(rule, |(rule, _)| rule);
    rule.starts_with(&format!("{end} \"{}\" ", mgmt::LINK)) && rule.ends_with(" accept")
}

/// Whether a rule of one of iptables' own chains is one that ovn-kubernetes adds there.
fn is_theirs(rule: &str, ranges: &[Subnet]) -> bool {
    let words: Vec<&str> = rule.split_whitespace().collect();
    let follows = |key: &str, is: &dyn Fn(&str) -> bool| {
        words.iter().zip(words.iter().skip(1)).any(|(word, next)| *word == key && is(next))
    };
    let of_ours = |text: &str| {
        let network = text.parse::<IpNetwork>();
        network.is_ok_and(|network| ranges.iter().any(|range| range.contains(network.network())))
    };
    let verdict = words.last().copied().unwrap_or_default();
    let port = format!("\"{}\"", mgmt::LINK);
    let is_port = |text: &str| text == port;
    let plain = !words.contains(&"dport");
    follows("jump", &|to| to.starts_with(CHAINS))
        || (verdict == "accept" && (follows("iifname", &is_port) || follows("oifname", &is_port)))
        || (verdict == "accept" && plain && (follows("saddr", &of_ours) || follows("daddr", &of_ours)))
        || (verdict == "masquerade" && plain && follows("saddr", &of_ours))
}
