//! What happens in a simulation: made from a seed, played in order. Each event also makes sense if others are left out, so a
//! story that fails can be shortened.

use ovnkube_policy_truth::Random;
use serde::{Deserialize, Serialize};

use crate::northbound::RECENT;

pub(crate) const NODES: usize = 3;
pub(crate) const NAMESPACES: usize = 3;
pub(crate) const PODS: usize = 8;
pub(crate) const POLICIES: usize = 5;
pub(crate) const SERVICES: usize = 4;

/// Events of a story, besides its faults.
const EVENTS: usize = 200;
const FEWEST_FAULTS: usize = 5;
const MORE_FAULTS: usize = 10;
/// After so many events everything comes to rest and is checked.
const UNTIL_REST: usize = 110;
/// One of so many stories has small ranges.
const SMALL: u64 = 17;
/// In one of so many stories the database is an active-backup pair, which fails over so often at least.
const PAIR: u64 = 5;
const FAILOVERS: usize = 2;
/// In one of so many stories wall clocks are set and set back, so often.
const CLOCKS: u64 = 3;
const CLOCKS_SET: usize = 2;
/// In seconds.
const HOUR: i64 = 3600;
/// So many events happen when a master has gone to sleep, and then none until it wakes.
const LAST_BEFORE_LULL: usize = 3;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Story {
    /// Of the delays.
    pub(crate) seed: u64,
    /// For each master: how fast its clock runs, in percent of the world's.
    pub(crate) clocks: Vec<u64>,
    pub(crate) both_families: bool,
    /// Few subnets and addresses, which are used up when everything is checked.
    #[serde(default)]
    pub(crate) small_ranges: bool,
    /// The database is an active-backup pair, and no cluster.
    #[serde(default)]
    pub(crate) pair: bool,
    /// Milliseconds since the last event, and the event.
    pub(crate) events: Vec<(u64, Event)>,
}

/// Numbers say which object or master; the other number is a seed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Event {
    NodeComes(usize, u64),
    NodeGoes(usize),
    NamespaceComes(usize, u64),
    NamespaceGoes(usize),
    PodComes(usize, u64),
    /// A pod comes and asks for the address of another, which goes at the same moment.
    AddressPasses(usize, u64),
    PodIsRelabelled(usize, u64),
    /// Its node has wired it, and its kubelet reports that.
    PodStarts(usize),
    PodEnds(usize),
    PodGoes(usize),
    PolicyComes(usize, u64),
    PolicyGoes(usize),
    ServiceComes(usize, u64),
    ServiceGoes(usize),
    EndpointsCome(usize, u64),
    EndpointsGo(usize),
    /// Another program creates rows of its own.
    Foreign(usize, u64),
    /// Another program changes our rows.
    Meddle(usize, u64),
    Fault(Fault),
    /// Nothing fails any more until nothing is written any more; then everything is checked.
    Rest,
}

/// Faults; times in milliseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// A master is killed.
    Crash {
        master: usize,
        down: u64,
    },
    /// It is killed when the server has done the last of so many writes, before it hears of that.
    CrashAfter {
        master: usize,
        writes: u64,
        down: u64,
    },
    /// Its host loses power: the database server does not notice.
    HostDies {
        master: usize,
        down: u64,
    },
    Pause {
        master: usize,
        length: u64,
    },
    /// It is paused between its last check and its next write: that is sent when it runs again.
    SleepsAtWrite {
        master: usize,
        length: u64,
    },
    /// The renewal of its lease comes late: every other question whether it may write is answered with no.
    LeaseIsLate {
        master: usize,
        length: u64,
    },
    /// The wall clock of a master's host is set forward, or back, while the time that it measures goes on.
    ClockIsSet {
        master: usize,
        seconds: i64,
    },
    /// A master alone does not reach the API server, or the database.
    NoApi {
        master: usize,
        length: u64,
    },
    NoDatabase {
        master: usize,
        length: u64,
    },
    /// A firewall drops what it sends: its connections stay open, and all of it arrives later.
    Silence {
        master: usize,
        length: u64,
    },
    ApiIsAway {
        length: u64,
    },
    /// Every other request is refused.
    ApiRefuses {
        code: u16,
        length: u64,
    },
    /// The server is stopped: what it gets meanwhile it does later, also for those who no longer wait.
    ApiHangs {
        length: u64,
    },
    ApiIsSlow {
        delay: u64,
        length: u64,
    },
    /// Every other request is done, but its answer is lost.
    ApiLosesAnswers {
        length: u64,
    },
    /// All watches end.
    WatchesEnd,
    /// The past is forgotten, and all watches end.
    Compacted,
    DatabaseIsAway {
        length: u64,
    },
    DatabaseHangs {
        length: u64,
    },
    DatabaseIsSlow {
        delay: u64,
        length: u64,
    },
    /// Another server leads.
    NoLeader {
        length: u64,
    },
    /// The connection breaks before the database gets the next transaction.
    LostRequest,
    /// The connection breaks after it was committed.
    LostReply,
    /// The servers do not agree on the next transaction.
    ClusterError {
        committed: bool,
    },
    /// Another program deletes the next row that a master inserts.
    NewRowDeleted,
    /// Another server leads, which lacks the last transactions for a while: it shows older rows, and does no transaction before
    /// it has caught up. `is_told`: clients know how many there were.
    LeaderLags {
        transactions: usize,
        is_told: bool,
        election: u64,
        length: u64,
    },
    /// Another program deletes all rows, also those of others.
    DatabaseIsEmptied,
    /// Its servers are away and come back with files that were made again, without rows: as another cluster, or as the same
    /// one with a log that has just begun. Masters that have seen the former one refuse it, and are restarted as much later.
    DatabaseIsMadeAgain {
        is_another: bool,
        length: u64,
    },
    /// The backup of a pair takes writes, and lacks the last transactions for ever. The server that took them dies, and the address
    /// leads to the other one after `length`; or it becomes a backup, and clients stay with it until the address moves.
    FailsOver {
        lost: usize,
        dies: bool,
        length: u64,
    },
    /// The server refuses transactions of more operations than `most`, and does not say for which one.
    DatabaseRefuses {
        most: usize,
        length: u64,
    },
}

impl Story {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let masters = [1, 1, 2, 3][random.below(4)];
        let drift = [0, 5, 10][random.below(3)];
        let clocks = (0..masters).map(|_| (100 - drift + random.below(2 * drift + 1)) as u64).collect();
        let both_families = random.chance(25);
        let mut events = Vec::new();
        // a cluster to begin with
        for node in 0..NODES {
            events.push((random.below(30) as u64, Event::NodeComes(node, number(&mut random))));
        }
        while events.len() < EVENTS {
            let event = event(&mut random);
            events.push((gap(&mut random), event));
        }
        for _ in 0..FEWEST_FAULTS + random.below(MORE_FAULTS) {
            let place = NODES + random.below(events.len() - NODES);
            let fault = fault(&mut random, masters);
            put_in(&mut events, place, random.below(20) as u64, fault);
        }
        events.insert(UNTIL_REST, (0, Event::Rest));
        // last: what else happens in a story does not depend on it
        if let Some(fault) = rare_fault(&mut random) {
            let place = NODES + random.below(events.len() - NODES);
            put_in(&mut events, place, random.below(20) as u64, fault);
        }
        let pair = seed % PAIR == PAIR - 1;
        if pair {
            fail_over(&mut events, &mut Random::new(!seed));
        }
        if seed % CLOCKS == CLOCKS - 1 {
            set_clocks(&mut events, masters, &mut Random::new(seed.swap_bytes()));
        }
        Self { seed, clocks, both_families, small_ranges: seed % SMALL == SMALL - 1, pair, events }
    }
}

/// A pair fails over where a cluster would have an election, or would not agree, and at other times.
fn fail_over(events: &mut Vec<(u64, Event)>, random: &mut Random) {
    let failover = |random: &mut Random| {
        let (lost, dies) = (random.below(RECENT + 1), random.chance(50));
        Event::Fault(Fault::FailsOver { lost, dies, length: 50 + random.below(8000) as u64 })
    };
    for (_, event) in events.iter_mut() {
        if let Event::Fault(Fault::NoLeader { .. } | Fault::LeaderLags { .. } | Fault::ClusterError { .. }) = event {
            *event = failover(random);
        }
    }
    for _ in 0..FAILOVERS {
        let place = NODES + random.below(events.len() - NODES);
        events.insert(place, (random.below(20) as u64, failover(random)));
    }
}

/// Wall clocks are set an hour forward or back, and later set right. All else happens as without that.
fn set_clocks(events: &mut Vec<(u64, Event)>, masters: usize, random: &mut Random) {
    for _ in 0..CLOCKS_SET {
        let master = random.below(masters);
        let seconds = if random.chance(50) { HOUR } else { -HOUR };
        let place = NODES + random.below(events.len() - NODES);
        events.insert(place, (0, Event::Fault(Fault::ClockIsSet { master, seconds })));
        let later = place + 1 + random.below(events.len() - place);
        events.insert(later, (0, Event::Fault(Fault::ClockIsSet { master, seconds: -seconds })));
    }
}

/// Half of the masters that sleep before a write do so when a pod comes, and little happens until they wake: the one that
/// takes over annotates the same pod, perhaps otherwise. For a third of these the database gets another leader meanwhile.
fn put_in(events: &mut Vec<(u64, Event)>, mut place: usize, mut gap: u64, fault: Fault) {
    if let Fault::SleepsAtWrite { length, .. } = fault
        && length.is_multiple_of(2)
        && let Some(later) = events[place..].iter().position(|(_, event)| matches!(event, Event::PodComes(..)))
    {
        place += later;
        std::mem::swap(&mut gap, &mut events[place].0);
        if let Some((gap, _)) = events.get_mut(place + LAST_BEFORE_LULL) {
            *gap += length;
            if length.is_multiple_of(3) {
                let election = Fault::NoLeader { length: 50 + length % 1000 };
                events.insert(place + LAST_BEFORE_LULL, (0, Event::Fault(election)));
            }
        }
    }
    events.insert(place, (gap, Event::Fault(fault)));
}

fn number(random: &mut Random) -> u64 {
    random.below(1 << 40) as u64
}

fn gap(random: &mut Random) -> u64 {
    let most = [20, 20, 20, 20, 20, 20, 300, 300, 300, 2000][random.below(10)];
    random.below(most) as u64
}

fn event(random: &mut Random) -> Event {
    let [node, namespace, pod] = [NODES, NAMESPACES, PODS].map(|all| random.below(all));
    let [policy, service] = [POLICIES, SERVICES].map(|all| random.below(all));
    let seed = number(random);
    match random.below(100) {
        0..6 => Event::NodeComes(node, seed),
        6..9 => Event::NodeGoes(node),
        9..12 => Event::NamespaceComes(namespace, seed),
        12..13 => Event::NamespaceGoes(namespace),
        // some ask for the same address on the same node
        13..31 => Event::PodComes(pod, if random.chance(15) { seed / 960 * 960 + 1 } else { seed }),
        31 => Event::AddressPasses(pod, seed),
        32..37 => Event::PodIsRelabelled(pod, seed),
        37..53 => Event::PodStarts(pod),
        53..56 => Event::PodEnds(pod),
        56..64 => Event::PodGoes(pod),
        64..74 => Event::PolicyComes(policy, seed),
        74..78 => Event::PolicyGoes(policy),
        78..82 => Event::ServiceComes(service, seed),
        82..84 => Event::ServiceGoes(service),
        84..92 => Event::EndpointsCome(service, seed),
        92..94 => Event::EndpointsGo(service),
        94..97 => Event::Foreign(random.below(FOREIGN), seed),
        _ => Event::Meddle(random.below(MEDDLING), seed),
    }
}

/// Kinds of foreign rows, and of changes to ours by others.
pub(crate) const FOREIGN: usize = 7;
pub(crate) const MEDDLING: usize = 8;

fn fault(random: &mut Random, masters: usize) -> Fault {
    let master = random.below(masters);
    let short = 50 + random.below(3000) as u64;
    // longer than a lease
    let long = 50 + random.below(20_000) as u64;
    let length = if random.chance(30) { long } else { short };
    let down = [0, 100, 1000, 15_000][random.below(4)];
    let delay = 20 + random.below(800) as u64;
    let writes = 1 + random.below(6) as u64;
    match random.below(37) {
        0..2 => Fault::Crash { master, down },
        2..7 => Fault::CrashAfter { master, writes, down },
        7 => Fault::HostDies { master, down },
        8..10 => Fault::Pause { master, length: length * 3 },
        10 => Fault::NoApi { master, length },
        11 => Fault::NoDatabase { master, length },
        12 => Fault::ApiIsAway { length },
        13 => Fault::ApiRefuses { code: [429, 500, 503][random.below(3)], length },
        14 => Fault::ApiIsSlow { delay, length },
        15..17 => Fault::ApiLosesAnswers { length },
        17 => Fault::WatchesEnd,
        18 => Fault::Compacted,
        19 => Fault::DatabaseIsAway { length },
        20 => Fault::DatabaseIsSlow { delay: delay * 3, length },
        21 => Fault::NoLeader { length: short },
        22 => Fault::LostRequest,
        23 => Fault::LostReply,
        // another master takes over meanwhile
        24..27 => Fault::SleepsAtWrite { master, length: 10_000 + random.below(30_000) as u64 },
        27..29 => Fault::NewRowDeleted,
        29..31 => Fault::DatabaseRefuses { most: 2 + random.below(20), length },
        31 => Fault::ApiHangs { length: length * 3 },
        32 => Fault::DatabaseHangs { length: length * 3 },
        33 => Fault::Silence { master, length },
        34..36 => Fault::LeaseIsLate { master, length },
        _ => Fault::ClusterError { committed: random.chance(50) },
    }
}

/// Faults that few stories have, and none more than once.
fn rare_fault(random: &mut Random) -> Option<Fault> {
    let length = 50 + random.below(3000) as u64;
    match random.below(20) {
        0..2 => Some(Fault::DatabaseIsEmptied),
        2..4 => Some(Fault::DatabaseIsMadeAgain { is_another: random.chance(50), length }),
        4..8 => {
            let (transactions, is_told) = (1 + random.below(4), random.chance(50));
            Some(Fault::LeaderLags { transactions, is_told, election: 50 + random.below(1000) as u64, length })
        }
        _ => None,
    }
}
