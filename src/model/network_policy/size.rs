//! How much a policy may ask for. All of it is multiplied: peers with ports in ACLs, selectors with pods in sets.

use std::collections::BTreeSet;

use super::need::{Limit, Need};
use super::{Block, Direction, Peer, PolicyPort};
use crate::{Name, Namespaces, PodSet, Protocol, Selector};

/// Limit for all rules of a policy together: the prefixes and selectors that ACLs hold for their peers, for each protocol
/// and each named port, the ports in the same ACLs, and the rows of address sets. More or longer ACLs would delay everything
/// else, in the databases and on nodes.
const MOST_OF_PEERS: usize = 50_000;

/// Limits for a policy once the numbers of named ports are known, which the pods have. Its rows are written in one transaction; a
/// cluster of three databases with an election timer of 1 s agrees on 50,000 rows, and never on 100,000.
const OF_POLICY: Limit = Limit { entries: 200_000, rows: 50_000 };

/// The address families: each has its own sets of addresses.
const FAMILIES: usize = 2;

/// Limit for different selectors: each is a set of addresses.
const MOST_SELECTORS: usize = 2000;

/// Limit for those of them that may select nearly every pod of the cluster.
const MOST_OPEN_SELECTORS: usize = 100;

/// The ports of a rule, as far as they multiply its peers.
pub(super) struct Ports<'a> {
    all: usize,
    named: BTreeSet<(Protocol, &'a Name)>,
    /// How many protocols its other ports have; each is an ACL.
    protocols: usize,
}

impl<'a> Ports<'a> {
    pub(super) fn new(ports: &'a [PolicyPort]) -> Self {
        let (mut named, mut protocols) = (BTreeSet::new(), BTreeSet::new());
        for port in ports {
            match port {
                PolicyPort::Named(protocol, name) => drop(named.insert((*protocol, name))),
                other => drop(protocols.insert(other.protocol())),
            }
        }
        // a rule without ports has an ACL too
        let protocols = if named.is_empty() { protocols.len().max(1) } else { protocols.len() };
        Self { all: ports.len(), named, protocols }
    }
}

/// What the rules of a policy count so far.
#[derive(Default)]
pub(super) struct Size {
    /// Without address sets.
    acls: Need,
    sets: BTreeSet<PodSet>,
    open_sets: usize,
    named_sets: usize,
    /// The pods that the policy selects, if named ports can be looked up there.
    subjects: Option<PodSet>,
}

impl Size {
    /// For a policy that selects these pods.
    pub(super) fn new(pods: Option<&Selector>) -> Self {
        let pods = pods.filter(|pods| !pods.is_long());
        let subjects = pods.map(|pods| PodSet::new(Namespaces::One(own_namespace()), pods.clone()));
        Self { subjects, ..Self::default() }
    }

    /// Counts a peer together with the ports of its rule; fails beyond the limits.
    pub(super) fn count(&mut self, peer: &Peer, ports: &Ports<'_>, direction: Direction) -> Result<(), String> {
        self.count_sets_of(peer, ports, direction)?;
        let (named, protocols) = (ports.named.len(), ports.protocols);
        let (entries, listed) = match peer {
            Peer::Block(block) => (prefixes(block, self.left()), ports.all),
            _ => (Some(1), 0),
        };
        self.add(entries.map(|entries| (entries * protocols + listed, entries * named)))?;
        match peer {
            Peer::Block(_) => self.count_acls(ports),
            // the pods of each selector may have other numbers
            _ if direction == Direction::Egress => self.acls.named_rows += named,
            _ => {}
        }
        Ok(())
    }

    /// Counts a rule for all peers.
    pub(super) fn count_everybody(&mut self, ports: &Ports<'_>) -> Result<(), String> {
        self.add(Some((ports.protocols + ports.all, ports.named.len())))?;
        self.count_acls(ports);
        Ok(())
    }

    /// Counts the ACLs for all selectors of a rule together, and the ports in them.
    pub(super) fn count_selected(&mut self, ports: &Ports<'_>) -> Result<(), String> {
        self.add(Some((ports.all, 0)))?;
        self.count_acls(ports);
        Ok(())
    }

    fn count_acls(&mut self, ports: &Ports<'_>) {
        self.acls.rows += ports.protocols;
        self.acls.named_rows += ports.named.len();
    }

    fn left(&self) -> usize {
        MOST_OF_PEERS.saturating_sub(self.acls.entries + self.acls.named_entries + FAMILIES * self.sets.len())
    }

    /// Adds what counts once, and what counts for each number of a named port; `None` is too much.
    fn add(&mut self, both: Option<(usize, usize)>) -> Result<(), String> {
        let left = self.left();
        let both = both.filter(|(plain, named)| plain.saturating_add(*named) <= left);
        let (plain, named) = both.ok_or_else(too_much)?;
        self.acls.entries += plain;
        self.acls.named_entries += named;
        Ok(())
    }

    /// All that was counted.
    pub(super) fn need(&self) -> Need {
        let rows = FAMILIES * (self.sets.len() - self.named_sets);
        self.acls + Need { rows, named_rows: FAMILIES * self.named_sets, ..Need::default() }
    }

    /// For how many numbers of each named port there is room.
    pub(super) fn most_numbers(&self) -> usize {
        self.need().most_numbers(OF_POLICY)
    }

    /// The sets that the named ports of a rule add besides those of its selectors: of the pods that the policy selects; for
    /// egress of all pods, if it is to blocks or to everybody.
    pub(super) fn count_names(
        &mut self,
        ports: &Ports<'_>,
        direction: Direction,
        is_beyond_selectors: bool,
    ) -> Result<(), String> {
        let set = match direction {
            Direction::Ingress => self.subjects.clone(),
            Direction::Egress => is_beyond_selectors.then(PodSet::everybody),
        };
        let Some(set) = set else { return Ok(()) };
        self.count_sets(with_ports(&set, ports).collect())
    }

    /// The sets that a peer adds: for egress one for each named port, and one for other ports.
    fn count_sets_of(&mut self, peer: &Peer, ports: &Ports<'_>, direction: Direction) -> Result<(), String> {
        let Some(set) = PodSet::of_peer(peer, &own_namespace()) else { return Ok(()) };
        let is_egress = direction == Direction::Egress;
        let mut sets: BTreeSet<_> = with_ports(&set, ports).filter(|_| is_egress).collect();
        if !is_egress || ports.protocols > 0 {
            sets.insert(set);
        }
        self.count_sets(sets)
    }

    fn count_sets(&mut self, sets: BTreeSet<PodSet>) -> Result<(), String> {
        let new: BTreeSet<_> = sets.into_iter().filter(|set| !self.sets.contains(set)).collect();
        let open = new.iter().filter(|set| set.is_open()).count();
        let named = new.iter().filter(|set| set.port.is_some()).count();
        let is_over = |what: &str, most: usize| {
            format!(
                "with it the policy would have more than {most} different selectors{what}, the limit; \
                 list several values in one selector, or divide the policy"
            )
        };
        match () {
            () if self.sets.len() + new.len() > MOST_SELECTORS => Err(is_over("", MOST_SELECTORS)),
            () if self.open_sets + open > MOST_OPEN_SELECTORS => {
                Err(is_over(" that require no label with one of a few values", MOST_OPEN_SELECTORS))
            }
            () if FAMILIES * new.len() > self.left() => Err(too_much()),
            () => {
                self.sets.extend(new);
                self.open_sets += open;
                self.named_sets += named;
                Ok(())
            }
        }
    }
}

/// Stands for the namespace of the policy, whatever its name.
fn own_namespace() -> Name {
    Name::from("")
}

/// A set once for each named port.
fn with_ports(set: &PodSet, ports: &Ports<'_>) -> impl Iterator<Item = PodSet> {
    ports.named.iter().map(|(protocol, name)| set.clone().with_port(*protocol, name))
}

fn too_much() -> String {
    format!(
        "with it there would be more than {MOST_OF_PEERS} prefixes, selectors and ports in ACLs, and address sets, the limit for all \
         rules of a policy; write wider exceptions, or fewer rules, peers or ports"
    )
}

/// How many prefixes an ACL lists for a block; `None` for more than `most`.
fn prefixes(block: &Block, most: usize) -> Option<usize> {
    match block.except.as_slice() {
        few @ ([] | [_]) => Some(1 + few.len()),
        several => block.cidr.without(several, most).map(|left| left.len()),
    }
}
