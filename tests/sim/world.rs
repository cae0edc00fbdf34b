//! The world of a simulation: servers, masters, everything that is on its way between them, and time. One seed decides all.
//!
//! ```text
//!  Master ──Sent──▶ queue ──▶ Northbound, ApiServer
//!    ▲                │                │
//!    └── bytes, lines └◀───────────────┘
//! ```

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ovnkube_model::NetworkSettings;
use ovnkube_policy_truth::Random;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::api::{ApiServer, Effect, Moment, Reply, bookmark, failure};
use crate::database::{Change, Database, on};
use crate::master::{Master, WallClock};
use crate::northbound::{Fate, Messages, Northbound, is_question};
use crate::observer::Observer;
use crate::wire::{Answer, Ask, Body, Conn, Sent};
use crate::writers::{self, Writers, claims};

mod faults;

use faults::Faults;

/// A master runs for at most so long before the world looks at what it has sent, in ms.
const STEP: u64 = 100;
const STEP_AT_REST: u64 = 500;
const BOOKMARKS: u64 = 30_000;
/// The lock that a master holds when it writes.
const LOCK: &str = "ovnkube_controller";

pub(crate) struct World {
    pub(crate) now: u64,
    random: Random,
    pub(crate) api: ApiServer,
    pub(crate) nb: Northbound,
    /// Whether northd loses port groups that are made again.
    loses_groups: bool,
    /// When the files of the database were last made again.
    made_at: u64,
    pub(crate) observer: Observer,
    pub(crate) masters: Vec<Process>,
    pub(crate) network: NetworkSettings,
    conns: Arc<AtomicU64>,
    links: BTreeMap<Conn, Link>,
    /// Which process opened each connection, also of those that its host has taken along.
    openers: BTreeMap<Conn, writers::Process>,
    queue: BTreeMap<(u64, u64), Message>,
    order: u64,
    watches: Vec<Watch>,
    watch: u64,
    pub(crate) faults: Faults,
    /// Transactions that changed something and accepted patches, of masters.
    pub(crate) writes: (u64, u64),
    /// All transactions and patches of masters that have arrived, also those that changed nothing or were refused.
    pub(crate) tries: (u64, u64),
    pub(crate) last_try: u64,
    writers: Writers,
    /// Pods that run, by uid: their node and their addresses.
    pub(crate) running: BTreeMap<String, (String, Vec<String>)>,
    /// Of all messages and their times.
    pub(crate) trace: u64,
    at_rest: bool,
}

pub(crate) struct Process {
    identity: String,
    pub(crate) master: Option<Master>,
    /// When it started, and when it starts again.
    began: u64,
    starts: u64,
    /// Of its clock, in percent.
    clock: u64,
    /// So many seconds the wall clock of its host has been set forward.
    ahead: Arc<AtomicI64>,
    paused_until: u64,
    is_paused: bool,
    /// It will be paused for so long between its last check and its next write.
    sleeps: Option<u64>,
    /// What it sends when it runs again, and when it decided to, for each server.
    unsent: Vec<(u64, Moment, Sent)>,
    no_api_until: u64,
    no_database_until: u64,
    /// What it sends gets lost, and TCP sends it again and again.
    silent_until: u64,
    /// The renewal of its lease comes late: every other question whether it may write is answered with no.
    lease_late_until: u64,
    /// It is killed after so many writes, and is down for so long.
    crash: Option<(u64, u64)>,
}

/// The row of `NB_Global`.
const NB_GLOBAL: &str = "33333333-3333-4333-8333-333333333333";

/// A connection to the database.
struct Link {
    process: usize,
    to: UnboundedSender<Vec<u8>>,
    /// When the last message of each direction arrives: none overtakes another.
    requests: u64,
    replies: u64,
}

struct Watch {
    number: u64,
    process: usize,
    kind: usize,
    version: u64,
    to: UnboundedSender<Bytes>,
    arrives: u64,
}

enum Message {
    /// And when it was decided to send it.
    Request(Conn, u64, Vec<u8>),
    Reply(Conn, Vec<u8>),
    HangUp(Conn),
    Ask {
        process: usize,
        began: u64,
        decided: Moment,
        ask: Ask,
        reply: oneshot::Sender<Answer>,
    },
    Answer(oneshot::Sender<Answer>, Answer),
    Line(u64, Bytes),
    Bookmarks,
    Leader,
    /// A member that lagged behind has caught up.
    CaughtUp,
    /// The address of a pair leads to the server that takes writes.
    AddressMoves,
    /// Masters that refuse the database are restarted.
    Restarts,
}

/// A database without rows of masters.
fn new_database(loses_groups: bool) -> Database {
    let mut database = Database::empty();
    if loses_groups {
        // of this release, groups stay for a while
        let options = json!(["map", [["northd_internal_version", "26.03.1-21.8.0-82.14"]]]);
        let row = json!({"op": "insert", "table": "NB_Global", "uuid": NB_GLOBAL, "row": {"options": options}});
        database.transact(&[row], |_| false);
    }
    database
}

impl Process {
    /// When what it sends gets onto the network.
    fn sends_from(&self) -> u64 {
        self.paused_until.max(self.silent_until)
    }
}

impl World {
    pub(crate) fn new(seed: u64, clocks: &[u64], network: NetworkSettings, api: ApiServer) -> Self {
        let process = |(number, clock): (usize, &u64)| Process {
            identity: format!("master-{number}"),
            master: None,
            began: 0,
            starts: 0,
            clock: *clock,
            ahead: Arc::default(),
            paused_until: 0,
            is_paused: false,
            sleeps: None,
            unsent: Vec::new(),
            no_api_until: 0,
            no_database_until: 0,
            silent_until: 0,
            lease_late_until: 0,
            crash: None,
        };
        let loses_groups = seed % 2 == 1;
        let database = new_database(loses_groups);
        let mut world = Self {
            now: 0,
            random: Random::new(seed),
            api,
            observer: Observer::of(&database),
            nb: Northbound::new(database),
            loses_groups,
            made_at: 0,
            masters: clocks.iter().enumerate().map(process).collect(),
            network,
            conns: Arc::default(),
            links: BTreeMap::new(),
            openers: BTreeMap::new(),
            queue: BTreeMap::new(),
            order: 0,
            watches: Vec::new(),
            watch: 0,
            faults: Faults::default(),
            writes: (0, 0),
            tries: (0, 0),
            last_try: 0,
            writers: Writers::default(),
            running: BTreeMap::new(),
            trace: 0,
            at_rest: false,
        };
        world.put(BOOKMARKS, Message::Bookmarks);
        world
    }

    fn put(&mut self, due: u64, message: Message) {
        self.order += 1;
        self.queue.insert((due, self.order), message);
    }

    /// Lets time pass.
    pub(crate) fn run_until(&mut self, time: u64) {
        while self.now < time {
            let next = self.queue.first_key_value().map_or(u64::MAX, |((due, _), _)| *due);
            let most = self.now + if self.at_rest { STEP_AT_REST } else { STEP };
            let to = next.clamp(self.now + 1, most).min(time);
            for number in 0..self.masters.len() {
                self.run_master(number, to);
            }
            self.now = to;
            for number in 0..self.masters.len() {
                self.collect(number);
            }
            while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= to) {
                let ((_, order), message) = entry.remove_entry();
                match self.faults.hang(&message) {
                    // none overtakes another
                    until if until > to => drop(self.queue.insert((until, order), message)),
                    _ => self.arrive(message),
                }
            }
            self.tell_watches();
        }
    }

    fn run_master(&mut self, number: usize, to: u64) {
        let process = &mut self.masters[number];
        let Some(master) = &mut process.master else {
            if process.starts <= to {
                process.began = self.now;
                let (identity, network) = (process.identity.clone(), self.network.clone());
                let wall_clock = WallClock { began: self.now, ahead: Arc::clone(&process.ahead) };
                process.master = Some(Master::start(identity, network, Arc::clone(&self.conns), wall_clock));
            }
            return;
        };
        let own = |at: u64| Duration::from_micros((at - process.began) * process.clock * 10);
        if process.paused_until > self.now {
            if !process.is_paused {
                process.is_paused = true;
                master.finish();
            }
            return;
        }
        if process.is_paused {
            process.is_paused = false;
            master.skip(own(self.now));
        }
        master.lease_is_late.store(process.lease_late_until > self.now, Ordering::Relaxed);
        master.run(own(to));
    }

    /// Takes over what a master sends.
    fn collect(&mut self, number: usize) {
        if self.masters[number].sends_from() <= self.now {
            for (at, decided, sent) in std::mem::take(&mut self.masters[number].unsent) {
                self.take(number, at, decided, sent);
            }
        }
        while let Some(sent) = self.masters[number].master.as_mut().and_then(|master| master.sent.try_recv().ok()) {
            if let Sent::Asked { ask, .. } = &sent {
                self.check_fence(number, ask);
            }
            let (now, decided, process) = (self.now, self.api.moment(), &mut self.masters[number]);
            if process.sleeps.is_some() && sent.is_write() {
                process.paused_until = now + process.sleeps.take().unwrap_or_default();
            }
            if process.sends_from() > now {
                process.unsent.push((now, decided, sent));
            } else {
                self.take(number, now, decided, sent);
            }
        }
    }

    fn take(&mut self, number: usize, at: u64, decided: Moment, sent: Sent) {
        match sent {
            Sent::Dialed { conn, to } => {
                let away = self.faults.database_away.max(self.masters[number].no_database_until);
                if away <= self.now {
                    let began = self.masters[number].began;
                    self.links.insert(conn, Link { process: number, to, requests: 0, replies: 0 });
                    self.openers.insert(conn, (number, began));
                    self.nb.open(conn);
                }
            }
            Sent::Bytes { conn, bytes } => {
                let delay = self.database_delay();
                let Some(link) = self.links.get_mut(&conn) else { return };
                link.requests = link.requests.max(self.now + delay);
                let due = link.requests;
                self.put(due, Message::Request(conn, at, bytes));
            }
            Sent::Closed { conn } => {
                let delay = self.database_delay();
                let due = self.links.get(&conn).map_or(0, |link| link.requests).max(self.now + delay);
                self.put(due, Message::HangUp(conn));
            }
            Sent::Asked { ask, reply } => {
                let away = self.faults.api_away.max(self.masters[number].no_api_until);
                if away <= self.now {
                    let due = self.now + self.api_delay();
                    let began = self.masters[number].began;
                    self.put(due, Message::Ask { process: number, began, decided, ask, reply });
                }
            }
        }
    }

    /// Nothing may be sent under a lease that another holds by then.
    fn check_fence(&self, number: usize, ask: &Ask) {
        let (holder, identity) = (self.api.holder(), &self.masters[number].identity);
        let is_ours = holder == identity || holder.is_empty() || holder == "(unknown)";
        assert!(!ask.is_write() || is_ours, "{identity} patches {} although {holder} holds the lease", ask.path);
    }

    fn delay(&mut self) -> u64 {
        match self.random.below(100) {
            0 => self.random.below(1200) as u64,
            1..8 => self.random.below(100) as u64,
            _ => self.random.below(4) as u64,
        }
    }

    fn database_delay(&mut self) -> u64 {
        let (delay, until) = self.faults.database_slow;
        self.delay() + if until > self.now { delay } else { 0 }
    }

    fn api_delay(&mut self) -> u64 {
        let (delay, until) = self.faults.api_slow;
        self.delay() + if until > self.now { delay } else { 0 }
    }

    fn note(&mut self, what: &[u8]) {
        let mut hasher = DefaultHasher::new();
        (self.trace, self.now, what).hash(&mut hasher);
        self.trace = hasher.finish();
    }

    fn arrive(&mut self, message: Message) {
        match &message {
            Message::Request(_, _, bytes) | Message::Reply(_, bytes) => self.note(bytes),
            // bodies name processes, at random
            Message::Ask { ask, .. } => self.note(ask.path.as_bytes()),
            _ => {}
        }
        match message {
            Message::Request(conn, decided, bytes) => {
                for request in serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>() {
                    self.request(conn, decided, &request.unwrap());
                }
            }
            Message::Reply(conn, bytes) => {
                if let Some(link) = self.links.get(&conn) {
                    let _ = link.to.send(bytes);
                }
            }
            Message::HangUp(conn) => self.hang_up(conn),
            Message::Ask { process, began, decided, ask, reply } => self.ask((process, began, decided), &ask, reply),
            Message::Answer(reply, answer) => drop(reply.send(answer)),
            Message::Line(number, line) => {
                if let Some(watch) = self.watches.iter().find(|watch| watch.number == number) {
                    let _ = watch.to.send(line);
                }
            }
            Message::Bookmarks => {
                // those that have got everything so far, and not those of a version that is still to come
                let is_idle = |watch: &&Watch| watch.arrives <= self.now && watch.version <= self.api.version();
                for watch in self.watches.iter().filter(is_idle) {
                    let _ = watch.to.send(bookmark(watch.version));
                }
                self.put(self.now + BOOKMARKS, Message::Bookmarks);
            }
            Message::Leader => {
                if self.faults.no_leader <= self.now {
                    let messages = self.nb.lead(true);
                    self.send(messages);
                }
            }
            Message::CaughtUp => {
                if self.faults.lags_until <= self.now {
                    let messages = self.nb.catch_up();
                    self.send(messages);
                }
            }
            Message::AddressMoves => self.move_address(),
            Message::Restarts => self.restart_refusing(),
        }
    }

    fn hang_up(&mut self, conn: Conn) {
        self.links.remove(&conn);
        let messages = self.nb.close(conn);
        self.send(messages);
    }

    fn send(&mut self, messages: Messages) {
        for (conn, text) in messages {
            let delay = self.database_delay();
            let Some(link) = self.links.get_mut(&conn) else { continue };
            link.replies = link.replies.max(self.now + delay);
            let due = link.replies;
            self.put(due, Message::Reply(conn, text.into_bytes()));
        }
    }

    /// A request has reached the database.
    fn request(&mut self, conn: Conn, decided: u64, request: &Value) {
        if !self.nb.is_open(conn) {
            return;
        }
        let (writer, is_linked) = (self.openers[&conn], self.links.contains_key(&conn));
        if request["method"] == "monitor_cond_since" {
            self.writers.reads(writer, self.nb.cluster);
        }
        let ops = request["params"].as_array().map_or(&[][..], Vec::as_slice);
        let is_write = request["method"] == "transact" && !is_question(ops);
        if is_write && self.nb.leader_lags() {
            let due = self.faults.lags_until;
            return self.put(due, Message::Request(conn, decided, request.to_string().into_bytes()));
        }
        let mut fate = Fate::Normal;
        if is_write {
            self.tries.0 += 1;
            self.last_try = self.now;
            if std::mem::take(&mut self.faults.lose_request) {
                return self.hang_up(conn);
            }
            let (most, until) = self.faults.database_refuses;
            // the first parameter is the database's name
            if self.now < until && ops.len() > most + 1 {
                fate = Fate::Refused;
            }
            fate = self.faults.cluster_error.take().map_or(fate, |committed| Fate::Unknown { committed });
        }
        let (messages, changes) = self.nb.handle(conn, request, fate);
        if !changes.is_empty() {
            assert!(self.nb.holds(LOCK, conn), "a transaction was committed for a master without the lock");
            if !claims(request) {
                self.writers.wrote(writer, decided, self.now);
            }
            self.writes.0 += 1;
            self.observer.commit(&changes);
        }
        self.send(messages);
        if self.faults.deletes_new {
            self.delete_one_of(&changes);
        }
        if is_write && std::mem::take(&mut self.faults.lose_reply) {
            self.hang_up(conn);
        }
        if is_write && is_linked {
            self.count_write(writer.0);
        }
    }

    /// Kills a master that was to be killed after this write.
    fn count_write(&mut self, number: usize) {
        if let Some((left, down)) = self.masters[number].crash {
            self.masters[number].crash = (left > 1).then_some((left - 1, down));
            if left <= 1 {
                self.kill(number, down, true);
            }
        }
    }

    fn ask(&mut self, (process, began, decided): (usize, u64, Moment), ask: &Ask, reply: oneshot::Sender<Answer>) {
        if ask.is_write() {
            self.tries.1 += 1;
            self.last_try = self.now;
        }
        let (code, until) = self.faults.api_refuses;
        let (answer, effect) = if until > self.now && self.random.chance(50) {
            (failure(code, "try again later"), Effect::None)
        } else {
            self.api.handle(ask, decided)
        };
        let is_current = self.masters[process].began == began;
        if effect == Effect::Wrote {
            self.writes.1 += 1;
            if is_current {
                self.count_write(process);
            }
        }
        if self.faults.api_loses > self.now && self.random.chance(50) {
            return;
        }
        let answer = match answer {
            Reply::Text(status, text) => Answer { status, body: Body::Whole(Some(text.into())) },
            Reply::Watch(kind, version) => {
                let (to, lines) = unbounded_channel();
                self.watch += 1;
                self.watches.push(Watch { number: self.watch, process, kind, version, to, arrives: self.now });
                Answer { status: 200, body: Body::Lines(lines) }
            }
        };
        let due = self.now + self.api_delay();
        self.put(due, Message::Answer(reply, answer));
    }

    /// Sends on what watches have not been told; forgets those that nobody reads.
    fn tell_watches(&mut self) {
        self.watches.retain(|watch| !watch.to.is_closed());
        if self.faults.api_hangs > self.now {
            return;
        }
        for at in 0..self.watches.len() {
            let (kind, version) = (self.watches[at].kind, self.watches[at].version);
            if version >= self.api.version() {
                continue;
            }
            let (lines, version) = self.api.since(kind, version);
            self.watches[at].version = version;
            for line in lines {
                let delay = self.api_delay();
                let watch = &mut self.watches[at];
                watch.arrives = watch.arrives.max(self.now + delay);
                let (due, number) = (watch.arrives, watch.number);
                self.put(due, Message::Line(number, line));
            }
        }
    }

    /// Runs operations of another program.
    pub(crate) fn meddle(&mut self, ops: &[Value]) {
        let (results, changes): (Vec<Value>, Vec<Change>) = self.nb.database.transact(ops, |_| true);
        assert!(results.iter().all(|result| result.get("error").is_none()), "{results:?} for {ops:?}");
        let messages = self.nb.publish(&changes);
        self.observer.see(&changes);
        self.send(messages);
    }

    /// Another program deletes a row that a master has just inserted.
    fn delete_one_of(&mut self, changes: &[Change]) {
        let is_new = |change: &&Change| change.old.is_none() && change.table.is_root;
        if let Some(change) = changes.iter().find(is_new) {
            self.faults.deletes_new = false;
            self.meddle(&[on(change.table, change.uuid, "delete")]);
        }
    }

    /// Kills a master. `is_noticed`: its connections end.
    pub(crate) fn kill(&mut self, number: usize, down: u64, is_noticed: bool) {
        let process = &mut self.masters[number];
        process.master = None;
        (process.starts, process.is_paused, process.paused_until) = (self.now + down, false, 0);
        process.unsent.clear();
        self.watches.retain(|watch| watch.process != number);
        for conn in self.conns_of(number) {
            match self.links.get(&conn).map(|link| link.requests.max(self.now)) {
                // what it has sent arrives before the end of the connection
                Some(due) if is_noticed => self.put(due, Message::HangUp(conn)),
                _ => drop(self.links.remove(&conn)),
            }
        }
    }

    fn conns_of(&self, number: usize) -> Vec<Conn> {
        self.links.iter().filter(|(_, link)| link.process == number).map(|(conn, _)| *conn).collect()
    }

    pub(crate) fn go_on(&mut self) {
        self.at_rest = false;
    }
}
