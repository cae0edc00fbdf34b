//! What fails in a simulated world, and until when.

use std::sync::atomic::Ordering;

use super::{Message, World, new_database};
use crate::deeds::is_others;
use crate::observer::Observer;
use crate::story::Fault;

/// What fails now. Times are those at which it ends.
#[derive(Default)]
pub(crate) struct Faults {
    pub(super) api_away: u64,
    pub(super) api_refuses: (u16, u64),
    pub(super) api_slow: (u64, u64),
    pub(super) api_loses: u64,
    /// It takes what it is sent, and does nothing.
    pub(super) api_hangs: u64,
    pub(super) database_away: u64,
    pub(super) database_hangs: u64,
    pub(super) database_slow: (u64, u64),
    pub(super) no_leader: u64,
    /// The next leader lacks transactions until then.
    pub(super) lags_until: u64,
    pub(super) lose_request: bool,
    pub(super) lose_reply: bool,
    pub(super) cluster_error: Option<bool>,
    pub(super) deletes_new: bool,
    /// From how many operations on, and until when.
    pub(super) database_refuses: (usize, u64),
}

impl Faults {
    /// Until when the server that is to get a message does nothing.
    pub(super) fn hang(&self, message: &Message) -> u64 {
        match message {
            // an end that nobody looks at is noticed as late
            Message::Request(..) | Message::HangUp(_) => self.database_hangs,
            Message::Ask { .. } | Message::Bookmarks => self.api_hangs,
            _ => 0,
        }
    }
}

impl World {
    pub(crate) fn fail(&mut self, fault: Fault) {
        let now = self.now;
        let masters = self.masters.len();
        match fault {
            Fault::Crash { master, down } => self.kill(master % masters, down, true),
            Fault::CrashAfter { master, writes, down } => self.masters[master % masters].crash = Some((writes, down)),
            Fault::HostDies { master, down } => self.kill(master % masters, down, false),
            Fault::Pause { master, length } => self.masters[master % masters].paused_until = now + length,
            Fault::LeaseIsLate { master, length } => self.masters[master % masters].lease_late_until = now + length,
            Fault::ClockIsSet { master, seconds } => {
                self.masters[master % masters].ahead.fetch_add(seconds, Ordering::Relaxed);
            }
            Fault::SleepsAtWrite { master, length } => self.masters[master % masters].sleeps = Some(length),
            Fault::NoApi { master, length } => {
                self.masters[master % masters].no_api_until = now + length;
                self.watches.retain(|watch| watch.process != master % masters);
            }
            Fault::NoDatabase { master, length } => {
                self.masters[master % masters].no_database_until = now + length;
                self.cut_database(master % masters);
            }
            Fault::Silence { master, length } => self.masters[master % masters].silent_until = now + length,
            Fault::ApiIsAway { length } => {
                self.faults.api_away = now + length;
                self.watches.clear();
            }
            Fault::ApiRefuses { code, length } => self.faults.api_refuses = (code, now + length),
            Fault::ApiHangs { length } => self.faults.api_hangs = now + length,
            Fault::ApiIsSlow { delay, length } => self.faults.api_slow = (delay, now + length),
            Fault::ApiLosesAnswers { length } => self.faults.api_loses = now + length,
            Fault::WatchesEnd => self.watches.clear(),
            Fault::Compacted => {
                self.api.compact();
                self.watches.clear();
            }
            Fault::DatabaseIsAway { length } => {
                self.faults.database_away = now + length;
                (0..masters).for_each(|master| self.cut_database(master));
            }
            Fault::DatabaseHangs { length } => self.faults.database_hangs = now + length,
            Fault::DatabaseIsSlow { delay, length } => self.faults.database_slow = (delay, now + length),
            Fault::NoLeader { length } => {
                self.faults.no_leader = now + length;
                let messages = self.nb.lead(false);
                self.send(messages);
                self.put(now + length, Message::Leader);
            }
            Fault::LostRequest => self.faults.lose_request = true,
            Fault::LostReply => self.faults.lose_reply = true,
            Fault::ClusterError { committed } => self.faults.cluster_error = Some(committed),
            Fault::NewRowDeleted => self.faults.deletes_new = true,
            Fault::LeaderLags { transactions, is_told, election, length } => {
                (self.faults.no_leader, self.faults.lags_until) = (now + election, now + election + length);
                let mut messages = self.nb.catch_up();
                if is_told {
                    messages.extend(self.nb.tell_index());
                }
                self.nb.lag(transactions);
                messages.extend(self.nb.lead(false));
                self.send(messages);
                self.put(now + election, Message::Leader);
                self.put(now + election + length, Message::CaughtUp);
            }
            Fault::DatabaseIsEmptied => self.empty_database(),
            Fault::DatabaseIsMadeAgain { is_another, length } => {
                self.faults.database_away = now + length;
                (0..masters).for_each(|master| self.cut_database(master));
                self.make_database_again(is_another);
                self.put(now + 2 * length, Message::Restarts);
            }
            Fault::FailsOver { lost, dies, length } => self.fail_over(lost, dies, length),
            Fault::DatabaseRefuses { most, length } => self.faults.database_refuses = (most, now + length),
        }
    }

    /// Ends all faults.
    pub(crate) fn heal(&mut self) {
        self.at_rest = true;
        self.faults = Faults::default();
        self.release();
        self.move_address();
        let mut messages = self.nb.catch_up();
        messages.extend(self.nb.lead(true));
        self.send(messages);
        self.restart_refusing();
        for process in &mut self.masters {
            let now = self.now;
            process.starts = process.starts.min(now);
            process.paused_until = process.paused_until.min(now);
            (process.no_api_until, process.no_database_until, process.crash, process.sleeps) = (0, 0, None, None);
            (process.lease_late_until, process.silent_until) = (0, 0);
        }
    }

    /// What servers that hang have got, they do now: nothing that comes later may overtake it.
    fn release(&mut self) {
        let is_held =
            |message: &Message| matches!(message, Message::Request(..) | Message::HangUp(_) | Message::Ask { .. });
        let (held, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.queue).into_iter().partition(|(_, message)| is_held(message));
        self.queue = others.into_iter().collect();
        let now = self.now;
        for (_, message) in held {
            self.put(now, message);
        }
    }

    fn empty_database(&mut self) {
        self.observer.foreign.clear();
        self.observer.taken.clear();
        let deletions = self.nb.database.deletions();
        self.meddle(&deletions);
    }

    fn fail_over(&mut self, lost: usize, dies: bool, length: u64) {
        if !self.nb.is_pair() {
            return;
        }
        // what is on its way reaches the server that it was sent to, which takes it no more
        self.faults.database_hangs = 0;
        self.release();
        let (messages, lost) = self.nb.fail_over(lost, dies);
        self.observer.lose(&self.nb.database, &lost, is_others);
        self.send(messages);
        let nb = &self.nb;
        self.links.retain(|conn, _| nb.is_open(*conn));
        if dies {
            self.faults.database_away = self.now + length;
        } else {
            self.put(self.now + length, Message::AddressMoves);
        }
    }

    pub(super) fn move_address(&mut self) {
        self.nb.lead_to_active();
        self.cut_unreached();
    }

    /// Clients notice that the address leads elsewhere, or that their server is dead. A server that lives keeps their sessions.
    fn cut_unreached(&mut self) {
        let Self { nb, links, .. } = self;
        links.retain(|conn, _| nb.is_reached(*conn));
    }

    fn make_database_again(&mut self, is_another: bool) {
        let database = new_database(self.loses_groups);
        // masters may not know yet which nodes were deleted
        let deleted = std::mem::take(&mut self.observer.deleted);
        self.observer = Observer { deleted, ..Observer::of(&database) };
        self.nb.begin_again(database, is_another && !self.nb.is_pair());
        // without a cluster nobody knows that it is another database, or older
        self.made_at = if self.nb.is_pair() { self.made_at } else { self.now };
    }

    /// Restarts the masters that have seen the database before it was made again.
    pub(super) fn restart_refusing(&mut self) {
        for number in 0..self.masters.len() {
            let process = &self.masters[number];
            if process.master.is_some() && process.began < self.made_at {
                self.kill(number, 0, true);
            }
        }
    }

    fn cut_database(&mut self, number: usize) {
        self.conns_of(number).into_iter().for_each(|conn| self.hang_up(conn));
    }
}
