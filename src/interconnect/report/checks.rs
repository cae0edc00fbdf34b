//! What is wrong with an interconnection, and what to do about it.

use std::fmt;
use std::net::IpAddr;

use ovnkube_model::{Asks, BadKey, Interconnection};
use serde::Serialize;

use super::declared::DeclaredRoute;
use super::facts::{Facts, GatewayNode};
use super::in_effect::{InEffect, Looked, joined as is_joined};
use super::northbound::{ByHand, Northbound};
use super::servers;
use super::ways::Routes;
use super::zones::Zone;
use crate::text::{count, first, lasts, remove_zone, typed};

/// The most of one kind that are named.
const NAMED: usize = 10;
const LOG: &str = "a running master does it within seconds; if it stays so, its log says why";
const READ: &str = "correct this and run it again";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    Wrong,
    /// It could not be looked at.
    Unknown,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub what: &'static str,
    pub verdict: Verdict,
    pub seen: String,
    pub remedy: Option<String>,
}

impl Check {
    fn new(what: &'static str, verdict: Verdict, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what, verdict, seen: seen.into(), remedy: Some(remedy.into()).filter(|remedy| !remedy.is_empty()) }
    }

    fn ok(what: &'static str, seen: impl Into<String>) -> Self {
        Self::new(what, Verdict::Ok, seen, "")
    }

    fn wrong(what: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(what, Verdict::Wrong, seen, remedy)
    }

    fn unknown(what: &'static str, why: &str) -> Self {
        Self::new(what, Verdict::Unknown, why, READ)
    }
}

/// `wrong    gateways: node b does not exist; correct the key gw-nodes`
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Wrong => "wrong",
            Verdict::Unknown => "unknown",
        };
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        // some of it was written by others
        let line = format!("{verdict:<9}{}: {}{remedy}", self.what, self.seen);
        f.write_str(&line.replace(char::is_control, " "))
    }
}

/// All checks, in the order in which one depends on another.
pub fn checks(facts: &Facts) -> Vec<Check> {
    let mut all = config(facts);
    all.extend(facts.settings.iter().map(|differs| {
        Check::wrong("settings", differs, "give this command the flags or the configuration file of the masters")
    }));
    let in_effect = facts.in_effect();
    match in_effect.names.filter(|_| in_effect.is_on) {
        Some(wanted) => joined(&mut all, facts, wanted),
        None => alone(&mut all, facts, in_effect),
    }
    all
}

/// What is in effect, and why.
pub(super) fn config(facts: &Facts) -> Vec<Check> {
    const WHAT: &str = "ConfigMap";
    let in_effect = facts.in_effect();
    let mut all = match facts.asked.as_ref().map(|config| config.as_ref().map(|config| (&config.asks, &config.bad))) {
        Err(why) => {
            let remedy = "name a kubeconfig that may read it with --k8s-kubeconfig";
            vec![Check::new(WHAT, Verdict::Unknown, why, remedy)]
        }
        Ok(None) => {
            let seen = "there is no ovn-ic-config in kube-system: this cluster is joined with no others";
            vec![Check::ok(WHAT, seen)]
        }
        Ok(Some((Asks::On(wanted), bad_keys))) => {
            let is_taken = untaken(facts, wanted).unwrap_or(Check::ok(WHAT, is_joined(wanted)));
            std::iter::once(is_taken).chain(bad(bad_keys)).collect()
        }
        Ok(Some((Asks::Off(_), _))) => {
            vec![Check::ok(WHAT, "enable-ic is \"false\": this cluster is joined with no others")]
        }
        Ok(Some((Asks::Unclear, bad_keys))) => bad(bad_keys).collect(),
    };
    all.extend(in_effect.said().map(|seen| Check::ok(WHAT, seen)));
    all
}

/// A master that is at work keeps what it goes by.
fn untaken(facts: &Facts, wanted: &Interconnection) -> Option<Check> {
    let northbound = facts.northbound.as_ref().ok().filter(|_| facts.locked == Ok(true))?;
    if northbound.keeps(wanted) {
        return None;
    }
    let before = match &northbound.kept {
        Some(kept) => format!("; the last one that was taken up is as {}", kept.names.zone),
        None => ", nor an earlier one".into(),
    };
    let remedy = "the log of the master that holds the lease says whether it may read it";
    Some(Check::wrong("ConfigMap", format!("no master has taken it up{before}"), remedy))
}

/// What of the ConfigMap cannot be used.
fn bad(keys: &[BadKey]) -> impl Iterator<Item = Check> {
    keys.iter().map(|bad| {
        let (seen, remedy) = bad.problem.split_once("; ").unwrap_or((&bad.problem, ""));
        Check::wrong("ConfigMap", format!("key {} {seen}", bad.key), remedy)
    })
}

/// Nothing should be left of an earlier interconnection.
fn alone(all: &mut Vec<Check>, facts: &Facts, in_effect: InEffect<'_>) {
    const WHAT: &str = "leftovers";
    let is_off = in_effect.is_off();
    let northbound = match &facts.northbound {
        Err(why) => Check::unknown("northbound database", why),
        Ok(nb) if nb.is_empty() => Check::ok("northbound database", "it has nothing of other clusters"),
        Ok(nb) => {
            let seen = format!("it has {} and {}", count(nb.switches.len(), "transit switch"), learned(nb));
            if is_off {
                Check::wrong(WHAT, format!("the northbound database: {seen}"), LOG)
            } else {
                Check::ok("northbound database", seen)
            }
        }
    };
    all.push(northbound);
    let Some(names) = in_effect.names.filter(|_| is_off) else { return };
    let is_named = |zone: &Zone| zone.is_of(facts.cluster.as_deref().unwrap_or_default(), &names.zone, &facts.former);
    let zones = match &facts.zones {
        Ok(zones) => zones,
        Err(why) => {
            let seen = format!("not known whether they have something of it: {why}");
            return all.push(Check::ok("shared databases", seen));
        }
    };
    let (left, strangers): (Vec<&Zone>, Vec<&Zone>) =
        zones.iter().filter(|zone| is_owned(zone, facts)).partition(|zone| is_named(zone));
    if left.is_empty() && strangers.is_empty() {
        all.push(Check::ok("shared databases", "they have nothing of this cluster"));
    }
    all.extend(left.first().map(|zone| {
        let seen = format!("the shared databases still have this cluster as {}: {}", zone.name, rows(zone));
        Check::wrong(WHAT, seen, "remove it: ovnkube ic reset")
    }));
    all.extend(strangers.into_iter().take(NAMED).map(|zone| {
        let seen = format!(
            "the shared databases have {} with the mark of this cluster, which is not known to have had that name: {}",
            zone.name,
            rows(zone)
        );
        let remedy = remove_zone(&zone.name);
        Check::wrong(WHAT, seen, format!("unless it is a copy of this cluster that is in use, remove it: {remedy}"))
    }));
}

fn is_owned(zone: &Zone, facts: &Facts) -> bool {
    facts.cluster.as_ref().is_some_and(|cluster| zone.has_mark(cluster))
}

fn joined(all: &mut Vec<Check>, facts: &Facts, wanted: &Interconnection) {
    gateways(all, &facts.gateways);
    databases(all, facts);
    match &facts.locked {
        Ok(true) => all.push(Check::ok("lock", "a program holds the lock ovn_ic of the southbound database")),
        Ok(false) => all.push(Check::wrong(
            "lock",
            "nobody holds the lock ovn_ic of the southbound database: no master keeps the interconnection",
            "start a master; if one runs, its log says why it does not lead",
        )),
        Err(why) => all.push(Check::unknown("lock", why)),
    }
    own(all, facts, wanted);
    switches(all, facts);
    others(all, facts, wanted);
    prefixes(all, facts, wanted);
    dangling(all, facts);
    disabled(all, &facts.disabled);
}

fn gateways(all: &mut Vec<Check>, nodes: &Looked<Vec<GatewayNode>>) {
    const WHAT: &str = "gateways";
    let nodes = match nodes {
        Ok(nodes) => nodes,
        Err(why) => return all.push(Check::unknown(WHAT, why)),
    };
    let before = all.len();
    for node in nodes {
        let name = &node.name;
        let wrong = |seen: String, remedy: &str| Check::wrong(WHAT, seen, remedy);
        all.extend(if !node.exists {
            Some(wrong(format!("node {name} does not exist"), "correct the key gw-nodes"))
        } else if !node.ready {
            Some(wrong(
                format!("node {name} is not Ready"),
                "kubectl describe node says why; other gateways are used meanwhile",
            ))
        } else if !node.labelled {
            Some(wrong(format!("node {name} has no label ovn.kubernetes.io/ic-gw=true"), LOG))
        } else {
            chassis(node)
        });
    }
    if all.len() == before {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        all.push(Check::ok(WHAT, format!("{} can send and receive", names.join(", "))));
    }
}

fn chassis(node: &GatewayNode) -> Option<Check> {
    const WHAT: &str = "gateways";
    let name = &node.name;
    let agent = format!("start ovnkube's agent on {name}; if it runs, its log says why");
    let Some(chassis) = &node.chassis else {
        return Some(Check::wrong(WHAT, format!("node {name} has no chassis id"), agent));
    };
    match &node.interconn {
        Err(why) => Some(Check::unknown(WHAT, why)),
        Ok(Some(true)) => None,
        Ok(None) => {
            let seen = format!("chassis {chassis} of node {name} is not in the southbound database");
            Some(Check::wrong(WHAT, seen, format!("start ovn-controller on {name}; if it runs, its log says why")))
        }
        Ok(Some(false)) => {
            let seen = format!(
                "chassis {chassis} of node {name} makes no tunnels to other clusters: is-interconn is not true"
            );
            Some(Check::wrong(WHAT, seen, agent))
        }
    }
}

fn databases(all: &mut Vec<Check>, facts: &Facts) {
    for (observed, reached) in facts.servers.iter().zip([facts.switches.as_ref().err(), facts.zones.as_ref().err()]) {
        all.push(match (servers::judge(observed), reached) {
            (Err((seen, remedy)), _) => Check::wrong(observed.database, seen, remedy),
            (Ok(_), Some(why)) => Check::unknown(observed.database, why),
            (Ok(seen), None) => Check::ok(observed.database, seen),
        });
    }
    let reached = [
        ("northbound database", facts.northbound.as_ref().err()),
        ("southbound database", facts.southbound.as_ref().err()),
    ];
    all.extend(reached.map(|(what, why)| match why {
        Some(why) => Check::unknown(what, why),
        None => Check::ok(what, "it answers"),
    }));
}

/// The rows of this cluster.
fn own(all: &mut Vec<Check>, facts: &Facts, wanted: &Interconnection) {
    const WHAT: &str = "this cluster";
    let zones = match &facts.zones {
        Ok(zones) => zones,
        Err(why) => return all.push(Check::unknown(WHAT, why)),
    };
    let Some(zone) = zones.iter().find(|zone| zone.name == wanted.zone.as_ref()) else {
        let seen = format!("{} is not in the shared databases", wanted.zone);
        let is_all = facts.settled == Ok(true);
        let why = if is_all { ": it has neither a gateway nor a port in a transit switch" } else { "" };
        let remedy = if is_all { "see gateways and transit switches here" } else { LOG };
        return all.push(Check::wrong(WHAT, seen + why, remedy));
    };
    if zone.cluster.is_some() && facts.cluster.is_some() && !is_owned(zone, facts) {
        let seen = format!("another cluster has az-name {} too", zone.name);
        let remedy = format!(
            "give one of them another az-name; if that one is gone for ever: ovnkube ic clean az {}",
            zone.name
        );
        return all.push(Check::wrong(WHAT, seen, remedy));
    }
    let before = all.len();
    match &facts.settled {
        Ok(true) => {}
        Ok(false) => {
            let remedy = format!("{LOG}; ovnkube ic reset has it made anew");
            all.push(Check::wrong(WHAT, "its rows are not as they should be", remedy));
        }
        Err(why) => all.push(Check::unknown(WHAT, why)),
    }
    let without: Vec<&str> =
        zone.ports.iter().filter(|port| zone.gateway(port).is_none()).map(|port| port.switch.as_str()).collect();
    if !without.is_empty() {
        let seen = format!("no gateway has its port in {}", named(&without));
        let remedy = "check that ovn-controller runs on the gateways, and that northd does";
        all.push(Check::wrong(WHAT, seen, remedy));
    }
    if all.len() == before {
        all.push(Check::ok(WHAT, format!("{} has {}", zone.name, rows(zone))));
    }
}

fn switches(all: &mut Vec<Check>, facts: &Facts) {
    const WHAT: &str = "transit switches";
    let names = match &facts.switches {
        Ok(names) => names,
        Err(why) => return all.push(Check::unknown(WHAT, why)),
    };
    all.extend(facts.problems.iter().map(|problem| {
        let (seen, remedy) = problem.split_once("; ").unwrap_or((problem, ""));
        Check::wrong("shared databases", seen, remedy)
    }));
    all.push(if names.is_empty() {
        let remedy = "ovn-ic-nbctl ts-add ts -- set Transit_Switch ts external_ids:subnet=169.254.100.0/24";
        Check::wrong(WHAT, "there is none, so no cluster reaches another", remedy)
    } else {
        Check::ok(WHAT, names.join(", "))
    });
}

fn others(all: &mut Vec<Check>, facts: &Facts, wanted: &Interconnection) {
    const WHAT: &str = "other clusters";
    let Ok(zones) = &facts.zones else { return };
    let own = facts.cluster.as_deref().unwrap_or_default();
    let others: Vec<&Zone> = zones.iter().filter(|zone| !zone.is_of(own, &wanted.zone, &facts.former)).collect();
    let before = all.len();
    for zone in others.iter().filter(|zone| !zone.has_active_gateway()).take(NAMED) {
        let remedy = format!(
            "start its gateways; if that cluster is gone for ever, remove what is left of it: {}",
            remove_zone(&zone.name)
        );
        all.push(Check::wrong(WHAT, format!("{} has no active gateway", zone.name), remedy));
    }
    for (zone, since) in others.iter().filter_map(|zone| Some((zone, zone.silent_since?))).take(NAMED) {
        let seen = format!(
            "{} is silent: its controller has not answered {}; its routes stay",
            zone.name,
            lasts(since, facts.now)
        );
        let remedy =
            format!("if that cluster is gone for ever, remove what is left of it: {}", remove_zone(&zone.name));
        all.push(Check::wrong(WHAT, seen, remedy));
    }
    if all.len() == before {
        let names: Vec<&str> = others.iter().map(|zone| zone.name.as_str()).collect();
        let seen = match names.as_slice() {
            [] => "none has joined yet".to_owned(),
            names => format!("{} with active gateways: {}", names.len(), named(names)),
        };
        all.push(Check::ok(WHAT, seen));
    }
}

fn prefixes(all: &mut Vec<Check>, facts: &Facts, wanted: &Interconnection) {
    const WHAT: &str = "prefixes";
    let routes = match &facts.routes {
        Ok(routes) => routes,
        Err(why) => return all.push(Check::unknown(WHAT, why)),
    };
    declared(all, facts);
    if !wanted.auto_route {
        return all.push(Check::ok(WHAT, "auto-route is \"false\": none is offered or learned"));
    }
    let before = all.len();
    for routes in routes {
        let refused: Vec<_> = routes.prefixes.iter().filter(|offered| !offered.used && !offered.closed).collect();
        for offered in refused.iter().take(NAMED) {
            let reason = offered.reason.as_deref().unwrap_or_default();
            let (why, remedy) = reason.split_once("; ").unwrap_or((reason, ""));
            all.push(Check::wrong(WHAT, format!("{} of {} is refused: {why}", offered.prefix, routes.zone), remedy));
        }
        if let Some(more) = refused.len().checked_sub(NAMED).filter(|more| *more > 0) {
            let seen = format!("{more} more of {} are refused", routes.zone);
            all.push(Check::wrong(WHAT, seen, "ovnkube ic routes lists them"));
        }
        if !routes.is_written() {
            let missing = count(routes.missing(), "route");
            let seen = format!("the northbound database lacks {missing} to {}", routes.zone);
            all.push(Check::wrong(WHAT, seen, LOG));
        }
    }
    if all.len() == before {
        let used: usize = routes.iter().map(Routes::used).sum();
        let closed: usize = routes.iter().map(Routes::closed).sum();
        let kept_out = if closed > 0 { format!(", {closed} closed here") } else { String::new() };
        all.push(Check::ok(WHAT, format!("{used} used, none refused{kept_out}")));
    }
}

/// Routes of the key `routes`.
fn declared(all: &mut Vec<Check>, facts: &Facts) {
    const WHAT: &str = "declared routes";
    let routes = &facts.declared;
    let before = all.len();
    let unused: Vec<_> = routes.iter().filter_map(|route| Some((route, route.reason.as_ref()?))).collect();
    for (route, reason) in unused.iter().take(NAMED) {
        let (why, remedy) = reason.split_once("; ").unwrap_or((reason, "correct key routes"));
        all.push(Check::wrong(WHAT, format!("{} of {} is not used: {why}", route.prefix, route.zone), remedy));
    }
    if let Some(more) = unused.len().checked_sub(NAMED).filter(|more| *more > 0) {
        all.push(Check::wrong(WHAT, format!("{more} more are not used"), "ovnkube ic routes lists them"));
    }
    let missing: usize = routes.iter().map(DeclaredRoute::missing).sum();
    if missing > 0 {
        all.push(Check::wrong(WHAT, format!("the northbound database lacks {}", count(missing, "route")), LOG));
    }
    if all.len() == before && !routes.is_empty() {
        all.push(Check::ok(WHAT, format!("{} used", routes.len())));
    }
}

/// Rows that lead nowhere.
fn dangling(all: &mut Vec<Check>, facts: &Facts) {
    const WHAT: &str = "leftovers";
    let (Ok(names), Ok(zones), Ok(nb)) = (&facts.switches, &facts.zones, &facts.northbound) else {
        return all.push(Check::unknown(WHAT, "not all databases were read"));
    };
    let before = all.len();
    let exists = |switch: &String| names.contains(switch);
    let ports = zones.iter().flat_map(|zone| zone.ports.iter().map(move |port| (zone, port)));
    for (zone, port) in ports.filter(|(_, port)| !exists(&port.switch)).take(NAMED) {
        let seen = format!(
            "port {} of {} is in the transit switch {}, which does not exist",
            port.name, zone.name, port.switch
        );
        let remedy = "that cluster removes it; if it is gone, remove the port with ovn-ic-sbctl destroy Port_Binding";
        all.push(Check::wrong(WHAT, seen, remedy));
    }
    for (switch, is_ours) in nb.switches.iter().filter(|(switch, _)| !exists(switch)).take(NAMED) {
        let seen = format!("the northbound database has the transit switch {switch}, which does not exist");
        let remedy = if *is_ours { LOG.to_owned() } else { typed("remove it: ovn-nbctl ls-del", switch, "remove it") };
        all.push(Check::wrong(WHAT, seen, remedy));
    }
    let of_transit = |port: &str| {
        names.iter().any(|switch| port.strip_suffix(switch.as_str()).is_some_and(|zone| zone.ends_with('-')))
    };
    for (port, _) in nb.ports.iter().filter(|(port, (_, is_ours))| !is_ours && of_transit(port)).take(NAMED) {
        let seen = format!("router port {port} is in a transit switch and is not ovnkube's");
        all.push(Check::wrong(WHAT, seen, typed("remove it: ovn-nbctl lrp-del", port, "remove it")));
    }
    for route in nowhere(nb, zones).take(NAMED) {
        let seen = format!("the route to {} by {} leads to no port of another cluster", route.prefix, route.next_hop);
        let remedy =
            format!("remove it: ovn-nbctl lr-route-del ovn_cluster_router {} {}", route.prefix, route.next_hop);
        all.push(Check::wrong(WHAT, seen, remedy));
    }
    if all.len() == before {
        all.push(Check::ok(WHAT, "none"));
    }
}

/// Routes by hand into a transit switch where nobody has the next hop.
fn nowhere<'a>(nb: &'a Northbound, zones: &'a [Zone]) -> impl Iterator<Item = &'a ByHand> {
    let addresses = zones.iter().flat_map(|zone| &zone.ports).flat_map(|port| &port.addresses);
    let known: Vec<IpAddr> = addresses.filter_map(|text| text.split('/').next()?.parse().ok()).collect();
    nb.others.iter().filter(move |route| nb.leads_to_transit(route) && !known.contains(&route.next_hop))
}

fn disabled(all: &mut Vec<Check>, subnets: &Looked<Vec<(String, String)>>) {
    const WHAT: &str = "Subnets";
    all.push(match subnets {
        Err(why) => Check::unknown(WHAT, why),
        Ok(subnets) if subnets.is_empty() => Check::ok(WHAT, "none has disableInterConnection"),
        Ok(subnets) => {
            let texts: Vec<String> = subnets.iter().map(|(name, range)| format!("{name} ({range})")).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            Check::ok(WHAT, format!("disableInterConnection keeps back {}", named(&texts)))
        }
    });
}

fn learned(nb: &Northbound) -> String {
    format!("{} to other clusters", count(nb.learned.len(), "route"))
}

/// `1 gateway, 2 ports, 2 routes`
fn rows(zone: &Zone) -> String {
    let of = [(zone.gateways.len(), "gateway"), (zone.ports.len(), "port"), (zone.routes, "route")];
    of.map(|(number, what)| count(number, what)).join(", ")
}

fn named(names: &[&str]) -> String {
    first(names.iter().copied(), NAMED)
}
