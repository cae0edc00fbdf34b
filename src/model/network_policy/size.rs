//! How much a policy may ask for. All of it is multiplied: peers with ports in ACLs, selectors with pods in sets.

use std::collections::BTreeSet;

use super::{Block, Direction, MOST_NUMBERS, Peer, PolicyPort};
use crate::{Name, Namespaces, PodSet, Protocol, Selector};

/// Limit for all rules of a policy together: the prefixes and selectors that ACLs hold for their peers, for each protocol
/// and each named port, the ports in the same ACLs, and the rows of address sets. More or longer ACLs would delay everything
/// else, in the databases and on nodes.
const MOST_OF_PEERS: usize = 50_000;

/// The same once the numbers of named ports are known, which the pods have.
const MOST_WITH_NUMBERS: usize = 200_000;

/// Limit for the ACLs and address sets of a policy once these numbers are known. They are written in one transaction; a cluster
/// of three databases with an election timer of 1 s agrees on 50,000 rows, and never on 100,000.
const MOST_ROWS: usize = 50_000;

/// Limit for different selectors: each is a set of addresses.
const MOST_SELECTORS: usize = 2000;

/// Limit for those of them that are for a named port: each is a set of addresses for each number. So many leave room for ACLs.
const MOST_NAMED_SELECTORS: usize = 200;

/// The address families: each has its own sets of addresses.
const FAMILIES: usize = 2;

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

/// What the peers of a policy count so far.
#[derive(Default)]
pub(super) struct Size {
    plain: usize,
    /// Counted once for each number of a named port.
    named: usize,
    /// ACLs beside those for named ports.
    acls: usize,
    /// ACLs, each as often as a named port has numbers.
    named_acls: usize,
    sets: BTreeSet<PodSet>,
    open_sets: usize,
    named_sets: usize,
    /// The address sets of all of them, with as many numbers as there may be.
    rows_of_sets: usize,
}

impl Size {
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
            _ if direction == Direction::Egress => self.named_acls += named,
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
        self.acls += ports.protocols;
        self.named_acls += ports.named.len();
    }

    fn left(&self) -> usize {
        MOST_OF_PEERS.saturating_sub(self.plain + self.named + self.rows_of_sets)
    }

    /// Adds what counts once, and what counts for each number of a named port; `None` is too much.
    fn add(&mut self, both: Option<(usize, usize)>) -> Result<(), String> {
        let left = self.left();
        let both = both.filter(|(plain, named)| plain.saturating_add(*named) <= left);
        let (plain, named) = both.ok_or_else(too_much)?;
        self.plain += plain;
        self.named += named;
        Ok(())
    }

    /// For how many numbers of each named port there is room.
    pub(super) fn most_numbers(&self) -> usize {
        let in_acls = MOST_WITH_NUMBERS.saturating_sub(self.plain) / self.named.max(1);
        let of_acls = MOST_ROWS.saturating_sub(self.acls + self.rows_of_sets) / self.named_acls.max(1);
        in_acls.min(of_acls).clamp(1, MOST_NUMBERS)
    }

    /// The sets that the named ports of a rule add besides those of its peers: of the pods that the policy selects, for egress of
    /// everybody.
    pub(super) fn count_names(&mut self, ports: &Ports<'_>, direction: Direction) -> Result<(), String> {
        // no namespace has this name
        let pods = Namespaces::One(direction.name().into());
        let set = PodSet::new(pods, Selector::default());
        self.count_sets(ports.named.iter().map(|(protocol, name)| set.clone().with_port(*protocol, name)).collect())
    }

    /// The sets that a peer adds: for egress one more for each named port.
    fn count_sets_of(&mut self, peer: &Peer, ports: &Ports<'_>, direction: Direction) -> Result<(), String> {
        // whatever the name: all sets without namespaces are of the policy's own
        let Some(set) = PodSet::of_peer(peer, &Name::from("")) else { return Ok(()) };
        let of_egress = ports.named.iter().filter(|_| direction == Direction::Egress);
        let with_port = of_egress.map(|(protocol, name)| set.clone().with_port(*protocol, name));
        self.count_sets(with_port.chain([set.clone()]).collect())
    }

    fn count_sets(&mut self, sets: BTreeSet<PodSet>) -> Result<(), String> {
        let new: BTreeSet<_> = sets.into_iter().filter(|set| !self.sets.contains(set)).collect();
        let open = new.iter().filter(|set| set.is_open()).count();
        let named = new.iter().filter(|set| set.port.is_some()).count();
        let rows = FAMILIES * (new.len() - named + MOST_NUMBERS * named);
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
            () if self.named_sets + named > MOST_NAMED_SELECTORS => Err(format!(
                "with it the policy would have more than {MOST_NAMED_SELECTORS} different selectors with named ports, the \
                 limit; write the numbers of ports, or divide the policy"
            )),
            () if rows > self.left() => Err(too_much()),
            () => {
                self.sets.extend(new);
                self.open_sets += open;
                self.named_sets += named;
                self.rows_of_sets += rows;
                Ok(())
            }
        }
    }
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
