//! The answer of `ovnkube db status` about one database: for people, and as JSON.

use std::fmt;

use serde::Serialize;

use crate::judge::judge;
use crate::judgement::{Judgement, State, size};
use crate::observed::{Northd, Observed};
use crate::servers::{Role, Server, Servers, Trouble};

#[derive(Debug, Serialize)]
pub struct Report {
    pub database: &'static str,
    #[serde(flatten)]
    pub judgement: Judgement,
    pub servers: Vec<Server>,
    /// Of the northbound database.
    pub northd: Option<Northd>,
}

impl Report {
    pub fn of(observed: &Observed) -> Self {
        Self {
            database: observed.database,
            judgement: judge(observed),
            servers: Servers::of(observed).all,
            northd: observed.northd.clone(),
        }
    }

    pub fn is_healthy(&self) -> bool {
        self.judgement.state == State::Healthy
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = |of: fn(&Server) -> Option<String>| self.servers.iter().find_map(of).unwrap_or_default();
        let cluster = first(|server| Some(format!(", cluster {}", server.cluster.as_ref()?)));
        let schema = first(|server| Some(format!(", schema {}", server.schema.as_ref()?)));
        let term = first(|server| Some(format!(", term {}", server.term?)));
        writeln!(f, "{}{cluster}{schema}{term}", self.database)?;
        for server in &self.servers {
            // some of it was said by others
            writeln!(f, "  {}", line(server).replace(char::is_control, " "))?;
        }
        if let Some(northd) = &self.northd {
            writeln!(f, "  {}", northd_line(northd).replace(char::is_control, " "))?;
        }
        let Judgement { text, remedy, .. } = &self.judgement;
        let remedy = remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        writeln!(f, "  {}", format!("{text}{remedy}").replace(char::is_control, " "))
    }
}

fn northd_line(northd: &Northd) -> String {
    let here = northd.this_host.as_ref().map_or_else(|| "not here".to_owned(), |what| format!("here: {what}"));
    let others = match (northd.this_host.as_deref(), northd.active) {
        (_, Some(false)) => ", none is active",
        (Some("active"), _) => "",
        (Some("standby" | "paused") | None, Some(true)) => ", active on another host",
        (Some(_), Some(true)) => ", one has the lock of the active one",
        (_, None) => ", not known whether active elsewhere",
    };
    let marks = match (northd.nb_cfg, northd.sb_cfg) {
        (Some(0), Some(0)) => ", no change was marked".to_owned(),
        (Some(wanted), Some(done)) if northd.is_behind() => format!(", has taken in mark {done} of {wanted}"),
        (Some(wanted), Some(_)) => format!(", has taken in all marked changes, the newest is {wanted}"),
        _ => String::new(),
    };
    format!("northd, {here}{others}{marks}")
}

fn line(server: &Server) -> String {
    let mut parts = Vec::new();
    match &server.problem {
        Some(problem) if server.role == Role::Leader => {
            parts.push(format!("leads, but does not answer: {problem}"));
        }
        Some(problem) => parts.push(format!("no answer: {problem}")),
        None if server.trouble == Some(Trouble::Failed) => {
            parts.push("has failed: it could not write its file".to_owned());
        }
        None if server.trouble == Some(Trouble::Mute) => {
            parts.push("answers, but does not confirm what the leader sends".to_owned());
        }
        None => parts.push(role(server).to_owned()),
    }
    if let Some(of) = &server.backup_of {
        let without =
            if server.excluded.is_empty() { String::new() } else { format!(" without {}", server.excluded.join(", ")) };
        let copies = if server.trouble == Some(Trouble::Apart) { "has copied nothing yet of" } else { "copies" };
        parts.push(format!("{copies} {of}{without}"));
    }
    let is_follower = server.role == Role::Follower && server.connected;
    parts.extend(server.index.filter(|_| !is_follower).map(|index| format!("entry {index}")));
    parts.extend(server.behind.filter(|_| is_follower).map(|behind| match behind {
        0 => "up to date".to_owned(),
        1 => "1 entry behind".to_owned(),
        more => format!("{more} entries behind"),
    }));
    let is_silent = !server.connected || !server.asked;
    parts
        .extend(server.silent_ms.filter(|_| is_silent).map(|ms| format!("last heard {} ago by this host's", time(ms))));
    parts.extend(server.file.as_ref().map(|file| format!("file {} of {}", file.path, size(file.bytes))));
    let left = server.file.as_ref().and_then(|file| file.free);
    parts.extend(left.map(|free| format!("{} left on its disk", size(free))));
    let id = server.id.as_deref().map(|id| format!(" ({id})")).unwrap_or_default();
    let here = if server.this_host { ", this host" } else { "" };
    format!("{}{id}{here}: {}", server.address, parts.join(", "))
}

fn role(server: &Server) -> &'static str {
    match (server.role, server.connected) {
        (Role::Leader, true) => "leader",
        (Role::Follower, true) => "follower",
        (Role::Leader | Role::Follower, false) => "has lost its cluster, or has not joined it yet",
        (Role::Active, _) => "takes writes",
        (Role::Backup, _) => "backup, takes no writes",
        (Role::Relay, true) => "relay",
        (Role::Relay, false) => "relay that has lost its server",
        (Role::Unknown, true) => "a member that was not asked",
        (Role::Unknown, false) => "a member that was not asked and is not known to be connected",
    }
}

fn time(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..120_000 => format!("{} s", ms / 1000),
        120_000..7_200_000 => format!("{} minutes", ms / 60_000),
        _ => format!("{} hours", ms / 3_600_000),
    }
}
