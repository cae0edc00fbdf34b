//! What `ovnkube readiness-probe` asks.

use crate::Error;

/// A program, or a pair of them. The words are those of `ovn-kube-util readiness-probe` in ovn-kubernetes; `ovn-ic-db` and `ovnkube-node-alive` are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Northbound,
    Southbound,
    NorthboundMember,
    SouthboundMember,
    /// The two databases that connect clusters.
    Interconnection,
    Northd,
    Switch,
    Controller,
    NodeAgent,
    /// For a liveness probe: it does not hang, whatever it waits for.
    NodeAgentAlive,
}

const TARGETS: [(&str, Target); 10] = [
    ("ovnnb-db", Target::Northbound),
    ("ovnsb-db", Target::Southbound),
    ("ovnnb-db-raft", Target::NorthboundMember),
    ("ovnsb-db-raft", Target::SouthboundMember),
    ("ovn-ic-db", Target::Interconnection),
    ("ovn-northd", Target::Northd),
    ("ovs-daemons", Target::Switch),
    ("ovn-controller", Target::Controller),
    ("ovnkube-node", Target::NodeAgent),
    ("ovnkube-node-alive", Target::NodeAgentAlive),
];

impl Target {
    pub(crate) fn parse(word: Option<&str>) -> Result<Self, Error> {
        let found = TARGETS.iter().find(|(known, _)| Some(*known) == word);
        found.map(|(_, target)| *target).ok_or_else(|| {
            let known = TARGETS.map(|(known, _)| known).join(", ");
            let problem = word.map_or_else(|| "needs a target".to_owned(), |word| format!("{word:?} is no target"));
            Error::Usage(format!("readiness-probe: {problem}; write readiness-probe -t and one of {known}"))
        })
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        TARGETS.iter().find(|(_, target)| *target == self).map_or("", |(word, _)| word)
    }
}
