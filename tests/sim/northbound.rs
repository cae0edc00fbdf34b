//! The servers of the northbound database: sessions, monitors, locks, and which member leads the cluster, or which server of a pair
//! takes writes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ovnkube_ovn::nb::DATABASE;
use ovnkube_ovn::{ColumnId, Table, Uuid};
use serde_json::{Value, json};

use crate::database::{Change, Database, Wanted};
use crate::wire::Conn;

const NAME: &str = "OVN_Northbound";
/// The row of `_Server`.
const ROW: &str = "11111111-1111-4111-8111-111111111111";
/// Id of the server.
const SERVER: &str = "22222222-2222-4222-8222-222222222222";

/// By so many transactions a member can lag behind at most, or a backup.
pub(crate) const RECENT: usize = 4;

/// Messages to clients.
pub(crate) type Messages = Vec<(Conn, String)>;

pub(crate) struct Northbound {
    pub(crate) database: Database,
    /// Which cluster it is, and how often its files were made again.
    pub(crate) cluster: u64,
    births: u64,
    sessions: BTreeMap<Conn, Session>,
    /// Of each member: the first of each line holds the lock.
    locks: BTreeMap<(u64, String), VecDeque<Conn>>,
    commits: u128,
    /// Whether a member leads, and which one: each time another one.
    leads: bool,
    leader: u64,
    /// The last transactions, each with its id.
    recent: VecDeque<(Uuid, Vec<Change>)>,
    lagging: Option<Lagging>,
    /// It is no cluster but an active server and a backup, numbers 0 and 1.
    pair: Option<Pair>,
    /// All rows after so many commits, as a monitor gets them: several masters ask for the same.
    download: Option<(u128, Wanted, String)>,
}

/// A member without the last transactions.
struct Lagging {
    member: u64,
    database: Database,
    commits: u128,
    missing: Vec<(Uuid, Vec<Change>)>,
}

/// Which server takes writes, and to which one the address leads. The other one copies all, but perhaps lacks the last transactions.
#[derive(Clone, Copy, Default)]
struct Pair {
    active: u64,
    reached: u64,
}

#[derive(Default)]
struct Session {
    /// The member that led when it began, which passes transactions on to the one that leads; or its server of a pair.
    member: u64,
    /// Whether its server of a pair has taken writes since it began.
    was_active: bool,
    /// Its name for the monitor, and what it monitors.
    monitor: Option<(Value, Wanted)>,
    knows_server: bool,
}

/// What becomes of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Normal,
    /// The cluster does not agree, although the transaction may be committed.
    Unknown {
        committed: bool,
    },
    Refused,
}

impl Northbound {
    pub(crate) fn new(database: Database) -> Self {
        Self {
            database,
            cluster: 0,
            births: 0,
            sessions: BTreeMap::new(),
            locks: BTreeMap::new(),
            commits: 1,
            leads: true,
            leader: 0,
            recent: VecDeque::new(),
            lagging: None,
            pair: None,
            download: None,
        }
    }

    /// From the beginning it is an active-backup pair.
    pub(crate) fn make_pair(&mut self) {
        self.pair = Some(Pair::default());
    }

    pub(crate) fn is_pair(&self) -> bool {
        self.pair.is_some()
    }

    /// The files of all members are made again with these rows. `is_another`: as those of another cluster.
    pub(crate) fn begin_again(&mut self, database: Database, is_another: bool) {
        let (cluster, births) = (self.cluster + u64::from(is_another), self.births + 1);
        let Self { leads, leader, pair, .. } = *self;
        *self = Self { cluster, births, leads, leader, pair, ..Self::new(database) };
    }

    pub(crate) fn open(&mut self, conn: Conn) {
        let member = self.pair.map_or(self.leader, |pair| pair.reached);
        let was_active = self.pair.is_some_and(|pair| pair.active == member);
        self.sessions.insert(conn, Session { member, was_active, ..Session::default() });
    }

    /// Ends a session; returns what others get for it.
    pub(crate) fn close(&mut self, conn: Conn) -> Messages {
        self.sessions.remove(&conn);
        let locks: Vec<_> = self.locks.keys().cloned().collect();
        locks.iter().flat_map(|lock| self.leave(lock, conn)).collect()
    }

    pub(crate) fn is_open(&self, conn: Conn) -> bool {
        self.sessions.contains_key(&conn)
    }

    /// A lock of the member that a session is with.
    fn lock_of(&self, conn: Conn, lock: &str) -> (u64, String) {
        (self.sessions.get(&conn).map_or(self.leader, |session| session.member), lock.to_owned())
    }

    /// Whether a session has a lock, as the member says that it is with.
    pub(crate) fn holds(&self, lock: &str, conn: Conn) -> bool {
        self.locks.get(&self.lock_of(conn, lock)).and_then(VecDeque::front) == Some(&conn)
    }

    /// No member leads any more, or another one does. Clients of earlier leaders are told that these do not.
    pub(crate) fn lead(&mut self, leads: bool) -> Messages {
        if leads == self.leads {
            return Vec::new();
        }
        self.leads = leads;
        if leads {
            self.leader += 1;
            return Vec::new();
        }
        self.about_servers(&json!({"leader": leads}))
    }

    /// The backup takes writes from now on, and lacks the last transactions, at most so many. `dies`: the other server does; else it
    /// becomes the backup. Returns what clients of that are told, and the changes that are lost.
    pub(crate) fn fail_over(&mut self, lost: usize, dies: bool) -> (Messages, Vec<Change>) {
        let Some(Pair { active, .. }) = self.pair else { return (Vec::new(), Vec::new()) };
        let before = self.database.all();
        let at = self.recent.len().saturating_sub(lost);
        let lost: Vec<_> = self.recent.split_off(at).into_iter().map(|(_, changes)| changes).collect();
        lost.iter().rev().for_each(|changes| self.database.take_back(changes));
        self.commits += 1;
        self.pair = Some(Pair { active: 1 - active, reached: active });
        // a server that becomes writable ends its sessions; their clients may have seen what is lost
        self.sessions.retain(|_, session| session.member == active);
        self.locks.retain(|(server, _), _| *server == active);
        self.sessions.values_mut().for_each(|session| session.was_active |= session.member != active);
        let mut messages = Vec::new();
        if dies {
            self.sessions.retain(|_, session| session.member != active);
            self.locks.retain(|(server, _), _| *server != active);
            self.lead_to_active();
        } else {
            // it deletes its rows, and then copies those of the other one
            let deleted = before.into_iter().map(|change| Change { old: change.new, new: None, ..change });
            let is_its = |session: &Session| session.member == active;
            messages.extend(self.updates(Uuid::nil(), &deleted.collect::<Vec<_>>(), is_its));
            messages.extend(self.updates(Uuid::nil(), &self.database.all(), is_its));
        }
        (messages, lost.concat())
    }

    /// The address leads to the server that takes writes.
    pub(crate) fn lead_to_active(&mut self) {
        if let Some(pair) = &mut self.pair {
            pair.reached = pair.active;
        }
    }

    /// Whether the address still leads to the server of this session.
    pub(crate) fn is_reached(&self, conn: Conn) -> bool {
        let server = self.sessions.get(&conn).map(|session| session.member);
        self.pair.is_none_or(|pair| server == Some(pair.reached))
    }

    /// The member that is elected next lacks the last transactions, at most so many, until it catches up.
    pub(crate) fn lag(&mut self, transactions: usize) {
        let first = self.recent.len().saturating_sub(transactions);
        let missing: Vec<_> = self.recent.iter().skip(first).cloned().collect();
        let mut database = self.database.clone();
        missing.iter().rev().for_each(|(_, changes)| database.take_back(changes));
        let commits = self.commits - missing.len() as u128;
        self.lagging = Some(Lagging { member: self.leader + 1, database, commits, missing });
    }

    /// Whether the member that leads lags behind.
    pub(crate) fn leader_lags(&self) -> bool {
        self.leads && self.lagging.as_ref().is_some_and(|lagging| lagging.member == self.leader)
    }

    /// The member that lagged behind has all transactions; returns what its clients are told.
    pub(crate) fn catch_up(&mut self) -> Messages {
        let Some(Lagging { member, missing, .. }) = self.lagging.take() else { return Vec::new() };
        let is_its = |session: &Session| session.member == member;
        let updates = missing.iter().flat_map(|(id, changes)| self.updates(*id, changes, is_its));
        updates.chain(self.tell_index()).collect()
    }

    /// How many transactions the members have, for those that asked about their server.
    pub(crate) fn tell_index(&self) -> Messages {
        self.about_servers(&json!({"index": self.commits as u64}))
    }

    /// News for those that asked about their server.
    fn about_servers(&self, fields: &Value) -> Messages {
        let change = json!({"Database": {ROW: {"modify": fields}}});
        let text = json!({"id": null, "method": "update2", "params": ["_Server", change]}).to_string();
        self.sessions.iter().filter(|(_, s)| s.knows_server).map(|(conn, _)| (*conn, text.clone())).collect()
    }

    /// What the member that a session is with has: how many transactions, and which rows.
    fn seen_by(&self, conn: Conn) -> (u128, &Database) {
        let member = self.lock_of(conn, "").0;
        let lagging = self.lagging.as_ref().filter(|lagging| lagging.member == member);
        lagging.map_or((self.commits, &self.database), |lagging| (lagging.commits, &lagging.database))
    }

    /// Handles a request; returns what is sent for it, and what a transaction has changed.
    pub(crate) fn handle(&mut self, conn: Conn, request: &Value, fate: Fate) -> (Messages, Vec<Change>) {
        let (id, params) = (&request["id"], &request["params"]);
        let reply = |result: Value| (conn, json!({"id": id, "result": result, "error": null}).to_string());
        let first = params[0].as_str().unwrap_or_default();
        match request["method"].as_str().unwrap_or_default() {
            "echo" => (vec![reply(params.clone())], Vec::new()),
            "set_db_change_aware" => (vec![reply(json!({}))], Vec::new()),
            "get_schema" => (vec![(conn, reply_of(id, Database::schema_text()))], Vec::new()),
            "monitor_cond" if first == "_Server" => {
                self.sessions.entry(conn).or_default().knows_server = true;
                (vec![reply(self.about_server(conn))], Vec::new())
            }
            "monitor_cond_since" => (vec![(conn, reply_of(id, &self.monitor(conn, params)))], Vec::new()),
            "transact" => self.transact(conn, id, params.as_array().map_or(&[][..], |params| &params[1..]), fate),
            "lock" => {
                let line = self.locks.entry(self.lock_of(conn, first)).or_default();
                line.push_back(conn);
                let locked = line.front() == Some(&conn);
                (vec![reply(json!({"locked": locked}))], Vec::new())
            }
            "steal" => {
                let line = self.locks.entry(self.lock_of(conn, first)).or_default();
                let notice = json!({"id": null, "method": "stolen", "params": [first]}).to_string();
                let robbed = line.front().copied();
                // the holder goes on waiting at the head of the line
                line.push_front(conn);
                let robbed = robbed.filter(|robbed| *robbed != conn).map(|robbed| (robbed, notice));
                (robbed.into_iter().chain([reply(json!({"locked": true}))]).collect(), Vec::new())
            }
            "unlock" => {
                let mut messages = vec![reply(json!({}))];
                messages.extend(self.leave(&self.lock_of(conn, first), conn));
                (messages, Vec::new())
            }
            _ if id.is_null() || request.get("method").is_none() => (Vec::new(), Vec::new()),
            _ => (vec![(conn, json!({"id": id, "result": null, "error": "unknown method"}).to_string())], Vec::new()),
        }
    }

    fn leave(&mut self, lock: &(u64, String), conn: Conn) -> Messages {
        let Some(line) = self.locks.get_mut(lock) else { return Vec::new() };
        let holder = line.front().copied();
        line.retain(|waits| *waits != conn);
        let next = line.front().copied().filter(|next| holder == Some(conn) && *next != conn);
        let notice = json!({"id": null, "method": "locked", "params": [lock.1]}).to_string();
        next.into_iter().map(|next| (next, notice.clone())).collect()
    }

    fn about_server(&self, conn: Conn) -> Value {
        if self.pair.is_some() {
            let none = json!(["set", []]);
            let row = json!({"name": NAME, "model": "standalone", "connected": true, "leader": true});
            let mut row = row.as_object().cloned().unwrap_or_default();
            row.extend(["cid", "sid", "index"].map(|column| (column.to_owned(), none.clone())));
            return json!({"Database": {ROW: {"initial": row}}});
        }
        let leads = self.leads && self.lock_of(conn, "").0 == self.leader;
        let id = format!("44444444-4444-4444-8444-{:012}", self.cluster);
        let cluster = json!({"cid": ["uuid", id], "sid": ["uuid", SERVER], "index": self.seen_by(conn).0 as u64});
        let mut row = json!({"name": NAME, "model": "clustered", "connected": true, "leader": leads});
        ovnkube_watch::merge_patch(&mut row, &cluster);
        json!({"Database": {ROW: {"initial": row}}})
    }

    fn monitor(&mut self, conn: Conn, params: &Value) -> String {
        let columns = |table: &Table, requests: &Value| -> BTreeSet<ColumnId> {
            let names = requests[0]["columns"].as_array().into_iter().flatten();
            names.filter_map(|name| table.column(name.as_str()?)).collect()
        };
        let tables = params[2].as_object().into_iter().flatten();
        let tables = tables.filter_map(|(name, requests)| Some((DATABASE.table(name)?, requests)));
        let wanted = Some(tables.map(|(table, requests)| (table.id, columns(table, requests))).collect());
        let (commits, database) = self.seen_by(conn);
        // a server that is in no cluster has no ids of transactions
        let last = self.pair.map_or(self.id_of(commits), |_| Uuid::nil()).to_string();
        let is_known = self.pair.is_none() && params[3] == json!(last);
        if !is_known && self.download.as_ref().is_none_or(|(at, what, _)| *at != commits || *what != wanted) {
            let rows = database.update(&database.all(), &wanted, true);
            self.download = Some((commits, wanted.clone(), rows));
        }
        let rows = self.download.as_ref().filter(|_| !is_known).map_or("{}", |(_, _, rows)| rows);
        let reply = format!("[{is_known},\"{last}\",{rows}]");
        self.sessions.entry(conn).or_default().monitor = Some((params[1].clone(), wanted));
        reply
    }

    /// The id of the last of so many transactions.
    fn id_of(&self, commits: u128) -> Uuid {
        Uuid::from_u128((u128::from(self.births) << 64) + commits)
    }

    fn transact(&mut self, conn: Conn, id: &Value, ops: &[Value], fate: Fate) -> (Messages, Vec<Change>) {
        let member = self.lock_of(conn, "").0;
        let Self { database, locks, .. } = self;
        let holds = |lock: &str| locks.get(&(member, lock.to_owned())).and_then(VecDeque::front) == Some(&conn);
        if self.pair.is_some_and(|pair| pair.active != member) {
            let was_active = self.sessions.get(&conn).is_some_and(|session| session.was_active);
            assert!(was_active || is_question(ops), "a master writes to a server that was a backup all the time");
            let results = as_backup(ops, holds);
            return (vec![(conn, reply_of(id, &json!(results).to_string()))], Vec::new());
        }
        let fate = if self.leads { fate } else { Fate::Unknown { committed: false } };
        let before = matches!(fate, Fate::Unknown { committed: false } | Fate::Refused).then(|| database.clone());
        let (mut results, mut changes) = database.transact(ops, holds);
        let error = match fate {
            Fate::Normal => None,
            Fate::Unknown { .. } => Some(json!({"error": "cluster error", "details": "the leader changed"})),
            Fate::Refused => Some(json!({"error": "resources exhausted", "details": "too much at once"})),
        };
        if let Some(error) = error {
            results = vec![json!({}); ops.len()];
            results.push(error);
        }
        if let Some(before) = before {
            (self.database, changes) = (before, Vec::new());
        }
        let mut messages = self.publish(&changes);
        messages.push((conn, reply_of(id, &serde_json::to_string(&results).unwrap())));
        (messages, changes)
    }

    /// Changes were committed; returns what the monitors get for them.
    pub(crate) fn publish(&mut self, changes: &[Change]) -> Messages {
        if changes.is_empty() {
            return Vec::new();
        }
        self.commits += 1;
        let id = self.pair.map_or(self.id_of(self.commits), |_| Uuid::nil());
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((id, changes.to_vec()));
        let lagging = self.lagging.as_mut().map(|lagging| {
            lagging.missing.push((id, changes.to_vec()));
            lagging.member
        });
        self.updates(id, changes, |session| Some(session.member) != lagging)
    }

    /// What the monitors of these sessions get for the changes of a transaction.
    fn updates(&self, id: Uuid, changes: &[Change], is_told: impl Fn(&Session) -> bool) -> Messages {
        let mut messages = Vec::new();
        // most monitors ask for the same
        let mut made: Vec<(&Wanted, String)> = Vec::new();
        for (conn, session) in self.sessions.iter().filter(|(_, session)| is_told(session)) {
            let Some((cookie, wanted)) = &session.monitor else { continue };
            let at = made.iter().position(|(of, _)| *of == wanted).unwrap_or_else(|| {
                made.push((wanted, self.database.update(changes, wanted, false)));
                made.len() - 1
            });
            let update = &made[at].1;
            if update != "{}" {
                let params = format!("[{cookie},\"{id}\",{update}]");
                messages.push((*conn, format!("{{\"id\":null,\"method\":\"update3\",\"params\":{params}}}")));
            }
        }
        messages
    }
}

/// Whether a transaction only asks whether the server takes writes.
pub(crate) fn is_question(ops: &[Value]) -> bool {
    ops.last().is_some_and(|op| op["op"] == "abort")
}

/// What a backup answers: it does nothing that could write.
fn as_backup(ops: &[Value], holds: impl Fn(&str) -> bool) -> Vec<Value> {
    let error = |op: &Value| match op["op"].as_str().unwrap_or_default() {
        "insert" | "update" | "mutate" | "delete" => Some("not allowed"),
        "assert" if !holds(op["lock"].as_str().unwrap_or_default()) => Some("not owner"),
        _ => None,
    };
    let first = ops.iter().enumerate().find_map(|(at, op)| Some((at, error(op)?)));
    let mut results = vec![json!({}); first.map_or(ops.len(), |(at, _)| at)];
    results.extend(first.map(|(_, error)| json!({"error": error, "details": "the server is a backup"})));
    results.resize(ops.len(), Value::Null);
    results
}

/// A reply with a result that is text already.
fn reply_of(id: &Value, result: &str) -> String {
    format!("{{\"id\":{id},\"result\":{result},\"error\":null}}")
}
