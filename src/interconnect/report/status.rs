//! The answers of `ovnkube ic status` and `routes`: for people, and as JSON.

use std::fmt;

use ovnkube_db::{Role, Server, Servers};
use serde::Serialize;

use super::checks::{Check, Verdict, checks, config};
use super::declared::DeclaredRoute;
use super::facts::Facts;
use super::in_effect::Source;
use super::northbound::ByHand;
use super::ways::{Offered, Routes};
use super::zones::Zone;
use crate::text::lasts;

/// The servers of a shared database.
#[derive(Debug, Serialize)]
struct Database {
    database: &'static str,
    servers: Vec<Server>,
}

/// A cluster in the shared databases.
#[derive(Debug, Serialize)]
struct Cluster {
    #[serde(flatten)]
    zone: Zone,
    this_one: bool,
    /// How many of its prefixes are used here, and how many are not; `None`: not known.
    learned: Option<usize>,
    refused: Option<usize>,
}

/// How an interconnection is.
#[derive(Debug, Serialize)]
pub struct Status {
    in_order: bool,
    /// When it was looked at, in seconds since 1970, as all times.
    at: u64,
    /// What `az_name` and all else follow from.
    in_effect: Source,
    az_name: Option<String>,
    databases: Vec<Database>,
    clusters: Vec<Cluster>,
    /// What the ConfigMap asks for, in words.
    config: Vec<Check>,
    /// What is wrong or not known.
    to_do: Vec<Check>,
}

impl Status {
    pub fn of(facts: &Facts) -> Self {
        let az_name = facts.names().map(|names| names.zone.to_string());
        let (ok, to_do): (Vec<Check>, Vec<Check>) =
            checks(facts).into_iter().partition(|check| check.verdict == Verdict::Ok);
        let databases = facts.servers.iter();
        let databases = databases.map(|seen| Database { database: seen.database, servers: Servers::of(seen).all });
        let cluster = |zone: &Zone| {
            let own = facts.cluster.as_deref().unwrap_or_default();
            let this_one = zone.is_of(own, az_name.as_deref().unwrap_or_default(), &facts.former);
            let routes = facts.routes.iter().flatten().find(|routes| routes.zone == zone.name && !this_one);
            let (learned, refused) = (routes.map(Routes::used), routes.map(Routes::refused));
            Cluster { zone: zone.clone(), this_one, learned, refused }
        };
        Self {
            in_order: to_do.is_empty(),
            at: facts.now,
            in_effect: facts.in_effect().source,
            databases: databases.collect(),
            clusters: facts.zones.iter().flatten().map(cluster).collect(),
            config: ok.into_iter().filter(|check| check.what == "ConfigMap").collect(),
            to_do,
            az_name,
        }
    }

    pub fn is_in_order(&self) -> bool {
        self.in_order
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for check in &self.config {
            push(&mut text, &check.seen);
        }
        for database in &self.databases {
            push(&mut text, database.database);
            for server in &database.servers {
                push(&mut text, &format!("  {}: {}", server.address, role(server)));
            }
        }
        for cluster in &self.clusters {
            describe(&mut text, cluster, self.at);
        }
        if self.in_order {
            push(&mut text, "nothing is to be done");
        } else {
            push(&mut text, "to do");
            for check in &self.to_do {
                push(&mut text, &format!("  {check}"));
            }
        }
        f.write_str(&text)
    }
}

/// Adds a line. Some of it was written by others.
fn push(text: &mut String, line: &str) {
    text.push_str(&line.replace(char::is_control, " "));
    text.push('\n');
}

fn role(server: &Server) -> String {
    match (&server.problem, server.role, server.connected) {
        (Some(problem), ..) => format!("no answer: {problem}"),
        (None, Role::Leader, true) => "leader".into(),
        (None, Role::Follower, true) => "follower".into(),
        (None, Role::Leader | Role::Follower, false) => "has lost its cluster, or has not joined it yet".into(),
        (None, Role::Active, _) => "takes writes".into(),
        (None, Role::Backup, _) => "backup, takes no writes".into(),
        (None, Role::Relay | Role::Unknown, _) => "relay".into(),
    }
}

fn describe(text: &mut String, cluster: &Cluster, now: u64) {
    let zone = &cluster.zone;
    let this_one = if cluster.this_one { ", this one" } else { "" };
    let joined = zone.since.map(|since| format!(", joined {}", lasts(since, now))).unwrap_or_default();
    let silent = zone.silent_since.filter(|_| !cluster.this_one);
    let silent = silent.map(|since| format!(", silent {}", lasts(since, now))).unwrap_or_default();
    push(text, &format!("cluster {}{this_one}{joined}{silent}", zone.name));
    for gateway in &zone.gateways {
        push(text, &format!("  gateway {} ({}): {}", gateway.hostname, gateway.chassis, gateway.tunnels.join(", ")));
    }
    for port in &zone.ports {
        let on = match (zone.gateway(port), &port.gateway) {
            (Some(gateway), _) => format!("on {}", gateway.hostname),
            (None, Some(chassis)) => format!("on {chassis}, which is no gateway"),
            (None, None) => "on no gateway".to_owned(),
        };
        push(text, &format!("  {}: {}, {on}", port.switch, port.addresses.join(" ")));
    }
    let routes = match (cluster.learned, cluster.refused) {
        (Some(learned), Some(refused)) => format!("prefixes: {learned} learned, {refused} refused"),
        _ if cluster.this_one => format!("routes offered: {}", zone.routes),
        _ => format!("routes offered: {}; not known which are used", zone.routes),
    };
    push(text, &format!("  {routes}"));
}

/// What `ovnkube ic routes` tells.
#[derive(Debug, Serialize)]
pub struct RouteList<'a> {
    in_effect: Source,
    /// What of the ConfigMap cannot be used, and what is in effect instead.
    config: Vec<Check>,
    clusters: &'a [Routes],
    /// Routes of the key `routes`.
    declared: &'a [DeclaredRoute],
    /// Routes that people wrote to addresses in transit switches.
    by_hand: Vec<&'a ByHand>,
    /// Why something is not known.
    unknown: Vec<&'a str>,
    /// Rows that cannot be used.
    problems: &'a [String],
    /// When it was looked at, in seconds since 1970, as all times.
    at: u64,
    #[serde(skip)]
    learns: bool,
}

impl<'a> RouteList<'a> {
    pub fn of(facts: &'a Facts) -> Self {
        let northbound = facts.northbound.as_ref().ok();
        let by_hand = northbound.map(|nb| nb.others.iter().filter(|route| nb.leads_to_transit(route)).collect());
        let unknown = [facts.routes.as_ref().err().filter(|_| facts.is_on()), facts.northbound.as_ref().err()];
        let in_effect = facts.in_effect().source;
        let config = if in_effect == Source::ConfigMap { Vec::new() } else { config(facts) };
        Self {
            in_effect,
            config,
            clusters: facts.routes.as_deref().ok().filter(|_| facts.is_on()).unwrap_or_default(),
            declared: if facts.is_on() { &facts.declared } else { &[] },
            by_hand: by_hand.unwrap_or_default(),
            unknown: unknown.into_iter().flatten().map(String::as_str).collect(),
            problems: &facts.problems,
            at: facts.now,
            learns: facts.names().is_some_and(|names| names.auto_route),
        }
    }

    /// Whether all that is offered is used, if it should be, and all that is declared.
    pub fn is_in_order(&self) -> bool {
        let refused: usize = self.clusters.iter().map(Routes::refused).sum();
        let declared = self.declared.iter().all(|route| route.reason.is_none());
        let has_config = self.config.iter().all(|check| check.verdict == Verdict::Ok);
        let is_used = (refused == 0 || !self.learns) && declared;
        is_used && has_config && self.unknown.is_empty() && self.problems.is_empty()
    }
}

impl fmt::Display for RouteList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for check in &self.config {
            push(&mut text, &check.to_string());
        }
        for routes in self.clusters {
            push(&mut text, &format!("cluster {}", routes.zone));
            for offered in &routes.prefixes {
                push(&mut text, &format!("  {}", line(offered, self.at)));
            }
            if routes.prefixes.is_empty() {
                push(&mut text, "  offers nothing");
            }
        }
        if !self.declared.is_empty() {
            push(&mut text, "declared");
        }
        for route in self.declared {
            push(&mut text, &format!("  {}", route.line()));
        }
        if !self.by_hand.is_empty() {
            push(&mut text, "by hand");
        }
        for route in &self.by_hand {
            push(&mut text, &format!("  {} by {}", route.prefix, route.next_hop));
        }
        for problem in self.problems {
            push(&mut text, problem);
        }
        for why in &self.unknown {
            push(&mut text, &format!("not known: {why}"));
        }
        if text.is_empty() {
            push(&mut text, "there are no routes to other clusters");
        }
        f.write_str(&text)
    }
}

fn line(offered: &Offered, now: u64) -> String {
    let ways: Vec<String> = offered.ways.iter().map(|way| way.text(offered.used)).collect();
    let verdict = match &offered.reason {
        Some(reason) if offered.closed => format!("not used, {reason}"),
        Some(reason) => format!("refused, {reason}"),
        None => "used".to_owned(),
    };
    let lasts = offered.since.map(|since| format!(", {}", lasts(since, now))).unwrap_or_default();
    format!("{} by {}{lasts}: {verdict}", offered.prefix, ways.join(", "))
}
