//! The answer to `cluster/status`, which is text for people.

/// What a member says of its cluster. What is missing in the text is empty, or 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterStatus {
    /// Ids of the cluster and of the member; no cluster's while it joins its first one.
    pub cluster: String,
    pub member: String,
    /// Where other members reach it.
    pub address: String,
    /// `cluster member`, `joining cluster`, `leaving cluster`, `disconnected from the cluster (…)`, `failed`.
    pub status: String,
    /// `leader`, `follower` or `candidate`.
    pub role: String,
    pub term: u64,
    /// The first digits of the leader's id, `self` or `unknown`.
    pub leader: String,
    pub election_timer_ms: u64,
    /// The members have yet to agree to another timer. Until then the leader refuses a further change.
    pub timer_changes: bool,
    /// Entries of the log since it was compacted.
    pub entries: u64,
    pub members: Vec<Listed>,
}

/// A member as another one knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The first four digits of its id.
    pub id: String,
    pub address: String,
    pub is_self: bool,
    /// Since its last message.
    pub silent_ms: Option<u64>,
    /// Whether it has a connection to this member: then it lives.
    pub calls: bool,
    /// Whether a member accepts connections at its address, where that is known.
    pub reached: Option<bool>,
}

impl Listed {
    /// Whether it has this address, or an id that begins with these digits.
    pub fn is(&self, wanted: &str) -> bool {
        self.address == wanted || self.id.len() >= 4 && wanted.starts_with(&*self.id)
    }
}

/// More members than any cluster has.
const MOST_MEMBERS: usize = 100;

impl ClusterStatus {
    /// Nothing if the text is not that of a member.
    pub fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        let mut connections = Vec::new();
        let mut lines = text.lines();
        for line in lines.by_ref().take_while(|line| *line != "Servers:") {
            let Some((name, value)) = line.split_once(": ") else { continue };
            let number = || value.trim().parse().unwrap_or_default();
            match name {
                "Cluster ID" => in_brackets(value).unwrap_or_default().clone_into(&mut found.cluster),
                "Server ID" => in_brackets(value)?.clone_into(&mut found.member),
                "Address" => value.clone_into(&mut found.address),
                "Status" => value.clone_into(&mut found.status),
                "Role" => value.clone_into(&mut found.role),
                "Term" => found.term = number(),
                "Leader" => value.clone_into(&mut found.leader),
                // a change that is under way follows the number, in brackets
                "Election timer" => {
                    found.election_timer_ms = value.split(' ').next()?.parse().unwrap_or_default();
                    found.timer_changes = value.contains('(');
                }
                "Connections" => connections = value.split_whitespace().collect(),
                "Log" => found.entries = between(value).unwrap_or_default(),
                _ => {}
            }
        }
        let both = |line| Some((Listed::parse(line)?, line.split_whitespace().next()?));
        let (members, names): (_, Vec<&str>) = lines.take(MOST_MEMBERS).filter_map(both).unzip();
        found.members = members;
        found.connect(&names, &connections);
        (!found.member.is_empty()).then_some(found)
    }

    /// `->8c99 (->1ea3) <-0000`: one to each other member and from each, in brackets while it is not open. Names are those of the list
    /// of members, or `0000` of a member that has not told its id yet; of unix sockets they may all be the same.
    fn connect(&mut self, names: &[&str], connections: &[&str]) {
        let others = self.members.iter().zip(names).filter(|(listed, _)| !listed.is_self);
        let others: Vec<&str> = others.map(|(_, name)| *name).collect();
        let is_unique = |name: &str| others.iter().filter(|other| **other == name).count() == 1;
        let to_others = connections.iter().filter_map(|one| outgoing(one));
        let (known, unknown): (Vec<_>, Vec<_>) = to_others.partition(|(name, _)| is_unique(name));
        let is_each_open = unknown.len() + known.len() == others.len() && unknown.iter().all(|(_, is_open)| *is_open);
        for (listed, name) in self.members.iter_mut().zip(names) {
            listed.calls = is_unique(name) && connections.iter().any(|one| one.strip_prefix("<-") == Some(name));
            listed.reached = match known.iter().find(|(to, _)| to == name) {
                Some((_, is_open)) => Some(*is_open),
                None if unknown.iter().all(|(_, is_open)| !is_open) => Some(false),
                None => Some(true).filter(|_| is_each_open),
            };
        }
    }

    /// Whether it takes part in its cluster.
    pub fn is_member(&self) -> bool {
        self.status == "cluster member"
    }

    /// Whether it has asked the others that it leaves.
    pub fn is_leaving(&self) -> bool {
        self.status == "leaving cluster"
    }

    /// Whether it could not write its file once. Then it takes part in nothing until ovsdb-server is started again, even if the disk
    /// has room.
    pub fn has_failed(&self) -> bool {
        self.status == "failed"
    }

    pub fn is_leader(&self) -> bool {
        self.role == "leader"
    }
}

impl Listed {
    /// `    8c99 (8c99 at tcp:10.0.0.2:6643) next_index=5 match_index=4 last msg 331 ms ago`
    fn parse(line: &str) -> Option<Self> {
        let (id, address) = in_brackets(line)?.split_once(" at ").filter(|(id, _)| !id.is_empty())?;
        let silent = line.split_once("last msg ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        Some(Self {
            id: id.to_owned(),
            address: address.to_owned(),
            is_self: line.contains("(self)"),
            silent_ms: silent,
            calls: false,
            reached: None,
        })
    }
}

/// Whom a connection leads to, if it does not come from there, and whether it is open.
fn outgoing(connection: &str) -> Option<(&str, bool)> {
    let closed = connection.strip_prefix('(').map(|inner| inner.trim_end_matches(')'));
    Some((closed.unwrap_or(connection).strip_prefix("->")?, closed.is_none()))
}

/// How many of `[2, 6]`.
fn between(value: &str) -> Option<u64> {
    let (first, next) = value.trim().strip_prefix('[')?.strip_suffix(']')?.split_once(", ")?;
    next.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)
}

fn in_brackets(text: &str) -> Option<&str> {
    text.split_once('(')?.1.split_once(')').map(|(inner, _)| inner)
}
