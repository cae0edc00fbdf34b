//! Who has written to the database.

use std::collections::BTreeMap;

use serde_json::Value;

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

/// Whether a transaction only writes a master's name. A late one does no harm: what the master decided before is not sent,
/// and one that wrote meanwhile must write its name again.
pub(crate) fn claims(transaction: &Value) -> bool {
    let ops = transaction["params"].as_array().into_iter().flatten();
    let mut writes = ops.filter(|op| !matches!(op["op"].as_str(), None | Some("assert" | "wait" | "comment")));
    writes.all(|op| {
        let mut mutations = op["mutations"].as_array().into_iter().flatten();
        op["op"] == "mutate" && op["table"] == "NB_Global" && mutations.all(|mutation| mutation[0] == "external_ids")
    })
}
