//! Who has written to the database.

use std::collections::BTreeMap;

use serde_json::Value;

/// A process: the number of its master, and when it began.
pub(crate) type Process = (usize, u64);

#[derive(Default)]
pub(crate) struct Writers {
    /// When each has last changed something.
    wrote: BTreeMap<Process, u64>,
    /// The cluster that each has read first.
    clusters: BTreeMap<Process, u64>,
}

impl Writers {
    /// Takes in that a process has written. Nothing may be committed that it decided before another one wrote.
    pub(crate) fn wrote(&mut self, writer: Process, decided: u64, now: u64) {
        let others = self.wrote.iter().filter(|(other, _)| **other != writer);
        let last = others.map(|(_, at)| *at).max().unwrap_or_default();
        assert!(
            decided >= last,
            "a transaction was committed that was decided at {decided} ms; another master had written at {last} ms"
        );
        self.wrote.insert(writer, now);
    }

    /// Takes in that a process reads the rows of a cluster. Another one than it has used may belong to somebody else.
    pub(crate) fn reads(&mut self, reader: Process, cluster: u64) {
        let first = *self.clusters.entry(reader).or_insert(cluster);
        assert_eq!(first, cluster, "a master reads another cluster than the one that it has used");
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
