//! Keeps the writes of a client that has lost a lock out of a cluster.
//!
//! Each member of a Raft cluster has its own locks. A member that led before still counts a client as the holder, checks
//! `assert` by that, and passes the transaction on to the new leader, where another client may hold the same lock. Rows are
//! the cluster's: so a client that has the lock writes its name into a row before its first transaction, and each
//! transaction under the lock waits for that name. One that was sent before another client wrote its own is refused.
//!
//! The same is true of one client and its sessions: what it sent over one that has ended may lie in a member that is stopped or
//! cut off, which still counts that session as the holder of the lock. So each session has a name of its own.

use std::borrow::Cow;

use ovnkube_ovn::{Column, Database, Datum, Row, Table, kind};
use ovnkube_ovsdb_data::{Cache, Txn};

/// Where the name of the client stands that may write under a lock.
#[derive(Clone)]
pub struct Fence {
    /// A table with one row at most. The client must monitor it.
    pub table: &'static Table,
    /// A column of it. The client must monitor it.
    pub column: Column<kind::Map<kind::Str, kind::Str>>,
    /// The key in that column.
    pub key: &'static str,
    /// The client's name: no other client has it, nor this one after a restart. From the second session on, a number follows. After
    /// another client had the lock, a session has the same name again: what it sent before arrives before that is written again.
    pub holder: String,
}

impl Fence {
    /// Makes a transaction under a lock fail once another session has written its name. If the name of this one is not
    /// written yet, the transaction that writes it is returned instead. `session`: how many there were before.
    pub(crate) fn guard(&self, txn: &mut Txn, database: &'static Database, cache: &Cache, session: u64) -> Option<Txn> {
        let lock = txn.asserted_lock()?;
        let holder = self.name(session);
        let found = cache.iter(self.table).next();
        if let Some((uuid, row)) = found
            && row.map(self.column).get(self.key) == Some(&*holder)
        {
            txn.wait_holds(uuid, self.names(row));
            return None;
        }
        let mut claim = Txn::new(database);
        claim.assert_lock(lock);
        if let Some((uuid, row)) = found {
            claim.wait_holds(uuid, self.names(row));
            claim.set_keys(self.table, uuid, self.column, [(self.key, &*holder)]);
        } else {
            let row = Row::new(self.table).with(self.column, [(self.key, &*holder)]);
            claim.insert(cache.fresh_uuid(self.table, ""), row);
        }
        Some(claim)
    }

    fn name(&self, session: u64) -> Cow<'_, str> {
        if session == 0 { Cow::Borrowed(&self.holder) } else { format!("{} {}", self.holder, session + 1).into() }
    }

    /// The column with the names, also if it is empty.
    fn names(&self, row: &Row) -> Row {
        let mut cells = Row::new(self.table);
        cells.put(self.column.id(), row.get(self.column.id()).cloned().unwrap_or(Datum::EMPTY));
        cells
    }
}
