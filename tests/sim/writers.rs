//! Who has written to the database.

use std::collections::BTreeMap;

/// When each process has last changed something. It is known by the number of its master, and when it began, until its host
/// dies.
#[derive(Default)]
pub(crate) struct Writers(BTreeMap<Option<(usize, u64)>, u64>);

impl Writers {
    /// Takes in that a process has written. Nothing may be committed that it decided before another one wrote.
    pub(crate) fn wrote(&mut self, writer: Option<(usize, u64)>, decided: u64, now: u64) {
        let others = self.0.iter().filter(|(other, _)| **other != writer);
        let last = others.map(|(_, at)| *at).max().unwrap_or_default();
        assert!(
            decided >= last,
            "a transaction was committed that was decided at {decided} ms; another master had written at {last} ms"
        );
        self.0.insert(writer, now);
    }
}
