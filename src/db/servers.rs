//! The servers of a database, each once: what it says itself, together with what the member on this host says of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cluster_status::{ClusterStatus, Listed};
use crate::observed::{Answer, Control, DatabaseFile, Model, Observed, Seen, host_of};

/// What a server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Leader,
    Follower,
    /// Takes writes, outside a cluster.
    Active,
    Backup,
    Relay,
    Unknown,
}

/// Why a server that answers does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trouble {
    /// It could not write its file once, and takes part in nothing since. It says so on its own host.
    Failed,
    /// It does not tell the leader that it has what it was sent: it cannot write its file, or hangs. It does not know this itself.
    Mute,
    /// A backup that has copied nothing yet: it does not reach the server that it is to copy. It says so on its own host.
    Apart,
}

/// A server, as `-o json` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Server {
    /// Where clients reach it; of a member that was not asked, where members do.
    pub address: String,
    pub role: Role,
    /// It answers and, in a cluster, takes part in it.
    pub connected: bool,
    pub this_host: bool,
    /// Whether it was asked. The member on this host may know of others.
    pub asked: bool,
    /// Why it does not answer.
    pub problem: Option<String>,
    /// The first four digits of its id in the cluster.
    pub id: Option<String>,
    /// Where other members reach it, where that is known.
    pub raft_address: Option<String>,
    pub cluster: Option<String>,
    pub schema: Option<String>,
    /// Newest entry of its log, and how many it has less than the leader.
    pub index: Option<u64>,
    pub behind: Option<u64>,
    /// Since the member on this host has heard from it.
    pub silent_ms: Option<u64>,
    pub term: Option<u64>,
    /// Where it copies the database from.
    pub backup_of: Option<String>,
    /// Tables that it does not copy then.
    pub excluded: Vec<String>,
    pub trouble: Option<Trouble>,
    pub file: Option<DatabaseFile>,
    /// Entries of its log since it was compacted, of the member on this host.
    pub entries: Option<u64>,
}

/// A busy machine delays an answer by less, milliseconds.
const LONG_SILENT: u64 = 5000;

/// All servers that are known.
#[derive(Debug)]
pub struct Servers {
    pub all: Vec<Server>,
    /// A member has said who is in the cluster. Otherwise there may be more than were asked.
    pub complete: bool,
}

impl Servers {
    pub fn of(observed: &Observed) -> Self {
        let answers = observed.servers.iter().filter_map(|seen| seen.answer.as_ref());
        let newest = answers.filter(|answer| answer.leader && answer.connected).filter_map(|leader| leader.index).max();
        let mut all: Vec<Server> = observed.servers.iter().map(|seen| Server::asked(seen, newest)).collect();
        let status = observed.here().and_then(|(_, control)| control.cluster.as_ref());
        let Some(status) = status.filter(|status| status.members.iter().any(|listed| listed.is_self)) else {
            return Self { all, complete: false };
        };
        let mut others: BTreeMap<Option<&str>, Vec<&Listed>> = BTreeMap::new();
        for listed in &status.members {
            let is_it = |server: &&mut Server| {
                server.id.as_ref() == Some(&listed.id) || listed.is_self && server.this_host && !server.answers()
            };
            match all.iter_mut().find(is_it) {
                Some(server) => server.learn(listed, status),
                None => others.entry(host_of(&listed.address)).or_default().push(listed),
            }
        }
        // a server that does not answer does not tell its id: it is the member of its host
        for (host, listed) in others {
            let is_free = |server: &&mut Server| {
                server.id.is_none() && server.asked && !server.answers() && host_of(&server.address) == host
            };
            let silent: Vec<&mut Server> = all.iter_mut().filter(is_free).collect();
            match (silent.len() == listed.len(), listed.len()) {
                (true, 1) => silent.into_iter().zip(listed).for_each(|(server, listed)| server.learn(listed, status)),
                // which one is which is not known
                (true, _) => silent.into_iter().zip(listed).for_each(|(server, listed)| {
                    server.raft_address = Some(listed.address.clone());
                }),
                (false, _) => {
                    drop(silent);
                    all.extend(listed.into_iter().map(|listed| Server::listed(listed, status)));
                }
            }
        }
        Self { all, complete: true }
    }

    /// Those that the given addresses name.
    pub(crate) fn named(observed: &Observed) -> Self {
        Self::of(&observed.named())
    }

    /// Those of a cluster. A server that does not answer is taken for one.
    pub fn members(&self) -> impl Iterator<Item = &Server> {
        self.all
            .iter()
            .filter(|server| if self.complete { server.raft_address.is_some() } else { server.may_be_member() })
    }

    /// One that was cut off does not know for a while that another has been elected, which has what was written since.
    pub fn leader(&self) -> Option<&Server> {
        let leaders = self.all.iter().filter(|server| server.role == Role::Leader && server.connected);
        leaders.max_by_key(|server| server.index)
    }
}

impl Server {
    fn asked(seen: &Seen, newest: Option<u64>) -> Self {
        let answer = seen.answer.as_ref();
        let control = seen.control.as_ref();
        let index = answer.and_then(|answer| answer.index);
        let member = |answer: &Answer| answer.member.as_ref().map(|id| id.chars().take(4).collect());
        Self {
            address: seen.address.clone(),
            role: answer.map_or(Role::Unknown, role),
            connected: answer.is_some_and(|answer| answer.connected),
            this_host: control.is_some(),
            asked: true,
            problem: seen.problem.clone(),
            id: answer.and_then(member),
            raft_address: None,
            cluster: answer.and_then(|answer| answer.cluster.clone()),
            schema: answer.and_then(|answer| answer.schema.clone()),
            index,
            behind: newest.zip(index).map(|(newest, index)| newest.saturating_sub(index)),
            silent_ms: None,
            term: control.and_then(|control| control.cluster.as_ref()).map(|status| status.term),
            backup_of: control.and_then(|control| control.backup_of.clone()),
            excluded: control.map(|control| control.excluded.clone()).unwrap_or_default(),
            trouble: control.and_then(trouble),
            file: control.and_then(|control| control.file.clone()),
            entries: control.and_then(|control| control.cluster.as_ref()).map(|status| status.entries),
        }
    }

    /// What the member on this host says of it.
    fn learn(&mut self, listed: &Listed, status: &ClusterStatus) {
        self.id.get_or_insert_with(|| listed.id.clone());
        self.raft_address = Some(listed.address.clone());
        self.silent_ms = listed.silent_ms;
        if !self.answers() && leads(listed, status) {
            self.role = Role::Leader;
        }
        // members answer their leader three times within its timer
        let limit = LONG_SILENT.max(2 * status.election_timer_ms);
        if status.is_leader() && self.connected && !listed.is_self && listed.silent_ms.is_some_and(|ms| ms > limit) {
            (self.connected, self.trouble) = (false, Some(Trouble::Mute));
        }
    }

    /// A member that only the one on this host knows.
    fn listed(listed: &Listed, status: &ClusterStatus) -> Self {
        let is_leader = listed.id == status.leader && status.is_member();
        // a follower hears its leader only
        let is_heard = listed.silent_ms.is_some_and(|ms| ms < 2 * status.election_timer_ms);
        Self {
            address: listed.address.clone(),
            role: if is_leader { Role::Leader } else { Role::Unknown },
            connected: is_heard && (is_leader || status.is_leader()),
            this_host: false,
            asked: false,
            problem: None,
            id: Some(listed.id.clone()),
            raft_address: Some(listed.address.clone()),
            cluster: Some(status.cluster.clone()),
            schema: None,
            index: None,
            behind: None,
            silent_ms: listed.silent_ms,
            term: None,
            backup_of: None,
            excluded: Vec::new(),
            trouble: None,
            file: None,
            entries: None,
        }
    }

    fn may_be_member(&self) -> bool {
        matches!(self.role, Role::Leader | Role::Follower) || self.asked && self.problem.is_some()
    }

    pub fn answers(&self) -> bool {
        self.asked && self.problem.is_none()
    }
}

fn trouble(control: &Control) -> Option<Trouble> {
    let has_failed = control.cluster.as_ref().is_some_and(ClusterStatus::has_failed);
    match (has_failed, control.apart) {
        (true, _) => Some(Trouble::Failed),
        (false, true) => Some(Trouble::Apart),
        (false, false) => None,
    }
}

/// Whether the member on this host leads, or follows one that it has just heard, over a connection that is open.
fn leads(listed: &Listed, status: &ClusterStatus) -> bool {
    let is_heard = listed.silent_ms.is_some_and(|ms| ms <= status.election_timer_ms) && listed.reached == Some(true);
    status.is_member() && if listed.is_self { status.is_leader() } else { listed.id == status.leader && is_heard }
}

fn role(answer: &Answer) -> Role {
    match (answer.model, answer.leader) {
        (Model::Clustered, true) => Role::Leader,
        (Model::Clustered, false) => Role::Follower,
        (Model::Relay, _) => Role::Relay,
        (Model::Standalone, _) if answer.read_only == Some(true) => Role::Backup,
        (Model::Standalone, _) => Role::Active,
    }
}
