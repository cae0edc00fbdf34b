//! What is wrong with an interconnection for longer, such as databases that do not take what is written: people are told which, why and
//! what to do.

use std::collections::BTreeMap;
use std::time::Duration;

use ovnkube_model::{Change, Name, Stuck, Written};
use ovnkube_ovsdb::{Class, TxnError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

/// After this long without a database, or without the lock, it is said.
pub(crate) const SAY_AFTER: Duration = Duration::from_secs(10);

/// Tells the engine; one that is gone needs to know nothing.
pub(crate) async fn tell(engine: &mpsc::WeakSender<Change>, change: Change) {
    if let Some(engine) = engine.upgrade() {
        let _ = engine.send(change).await;
    }
}

/// The longest words of a server that are told.
const LONGEST: usize = 300;

/// Something that people are told once it has lasted.
#[derive(Default)]
pub struct Lasting {
    since: Option<Instant>,
    told: Option<Name>,
}

impl Lasting {
    /// Notes how it is now. Returns when to look again, if it may have to be told then.
    pub async fn note(
        &mut self,
        on: Stuck,
        (problem, after): (Option<Name>, Duration),
        changes: &mpsc::WeakSender<Change>,
    ) -> Option<Instant> {
        let Some(problem) = problem else {
            self.since = None;
            if self.told.take().is_some() {
                tell(changes, Change::InterconnectionStuck(on, None)).await;
            }
            return None;
        };
        let due = *self.since.get_or_insert_with(Instant::now) + after;
        if Instant::now() < due {
            return Some(due);
        }
        if self.told.as_ref() != Some(&problem) {
            warn!("{problem}");
            self.told = Some(problem.clone());
            tell(changes, Change::InterconnectionStuck(on, Some(problem))).await;
        }
        None
    }
}

/// The databases that refuse.
#[derive(Default)]
pub(crate) struct Refusals(BTreeMap<Written, Lasting>);

impl Refusals {
    /// Notes how a write ended. What a race with another cluster refuses succeeds soon after, so it is not told at once. A connection
    /// that is lost is told elsewhere.
    pub(crate) async fn note(
        &mut self,
        database: Written,
        error: Option<TxnError>,
        changes: &mpsc::WeakSender<Change>,
    ) {
        let Some(error) = error else { return self.end(database, changes).await };
        if matches!(error.class, Class::NotConnected | Class::Lost | Class::TimedOut) {
            return;
        }
        let says = Some(sentence(database, &error));
        self.0.entry(database).or_default().note(Stuck::Write(database), (says, SAY_AFTER), changes).await;
    }

    /// Nothing is to be written.
    pub(crate) async fn none(&mut self, changes: &mpsc::WeakSender<Change>) {
        for database in self.0.keys().copied().collect::<Vec<_>>() {
            self.end(database, changes).await;
        }
    }

    /// Whether people know of one.
    pub(crate) fn told(&self) -> bool {
        self.0.values().any(|refusal| refusal.told.is_some())
    }

    async fn end(&mut self, database: Written, changes: &mpsc::WeakSender<Change>) {
        if let Some(mut refusal) = self.0.remove(&database) {
            refusal.note(Stuck::Write(database), (None, SAY_AFTER), changes).await;
        }
    }
}

fn sentence(database: Written, error: &TxnError) -> Name {
    let which = match database {
        Written::NorthInterconnection => "the northbound interconnection database",
        Written::SouthInterconnection => "the southbound interconnection database",
        Written::South => "the southbound database of this cluster",
    };
    let remedy = match error.class {
        Class::Permission => "let the certificate of the masters write there",
        Class::ReadOnly => "name servers that take writes",
        Class::Disk => "make room on the disk of its server",
        Class::Constraint | Class::Duplicate => "remove the row that is named, if nobody needs it",
        Class::Invalid => "if its schema is older than that of OVN 23.03, update OVN of its servers",
        Class::NotOwner => "stop the other controller that writes there",
        _ => "the log of its server may say more",
    };
    // some of it may have been written by others
    let why: String = error.to_string().chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{which} does not take what this cluster writes, and the others go on: {why}; {remedy}").into()
}
