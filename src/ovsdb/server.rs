//! The `_Server` database: whether the server we are connected to is one to trust.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::fault::Fault;

pub(crate) const COOKIE: &str = "_Server";

/// Parameters of the monitor.
pub(crate) fn monitor() -> Value {
    let columns = ["name", "model", "connected", "leader", "cid", "sid", "index"];
    json!(["_Server", COOKIE, { "Database": [{ "columns": columns }] }])
}

/// How a server has the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    /// Alone, or as one of an active-backup pair.
    Standalone,
    Clustered,
    /// As a copy for readers.
    Relay,
}

/// How far a cluster was seen: its id and log index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) cluster: String,
    pub(crate) index: u64,
}

/// The row of our database in `_Server`.
#[derive(Debug, Default)]
pub(crate) struct ServerRow {
    uuid: Option<String>,
    fields: Map<String, Value>,
    /// Other databases of the server, as far as they are known.
    others: BTreeSet<String>,
}

/// A cluster's id is a UUID; letters of it that are kept.
const LONGEST_ID: usize = 40;
/// How many names of other databases are kept.
const MOST_NAMES: usize = 8;

impl ServerRow {
    /// Applies the contents of an `update2` or of the monitor's reply.
    pub(crate) fn update(&mut self, updates: &Value, database: &str) {
        let Some(rows) = updates.get("Database").and_then(Value::as_object) else { return };
        for (uuid, change) in rows {
            let is_ours = self.uuid.as_ref() == Some(uuid);
            if let Some(row) = change.get("initial").or_else(|| change.get("insert")).and_then(Value::as_object) {
                let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
                if name == database {
                    (self.uuid, self.fields) = (Some(uuid.clone()), row.clone());
                } else if name != "_Server" && self.others.len() < MOST_NAMES {
                    self.others.insert(name.chars().take(40).collect());
                }
            } else if let Some(row) = change.get("modify").and_then(Value::as_object) {
                if is_ours {
                    self.fields.extend(row.clone());
                }
            } else if is_ours && change.get("delete").is_some() {
                *self = ServerRow::default();
            }
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.fields.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The cluster's id and the server's log index, if it is in a cluster.
    pub(crate) fn seen(&self) -> Option<Seen> {
        let id = self.fields.get("cid")?.get(1)?.as_str()?;
        // people are told it
        let cluster = id.chars().filter(|letter| !letter.is_control()).take(LONGEST_ID).collect();
        Some(Seen { cluster, index: self.fields.get("index")?.as_u64()? })
    }

    /// Whether to stay: the server has the database, is connected to its cluster, leads it if it must, and is not
    /// of another cluster than the one seen before, or behind it.
    pub(crate) fn check(&self, database: &'static str, leader_only: bool, seen: Option<&Seen>) -> Result<Model, Fault> {
        if self.uuid.is_none() {
            return Err(Fault::NoDatabase { wanted: database, has: self.others.iter().cloned().collect() });
        }
        match self.model() {
            Model::Relay if leader_only => Err(Fault::Relay(database)),
            Model::Clustered | Model::Relay if !self.flag("connected") => Err(Fault::Partitioned),
            Model::Clustered if leader_only && !self.flag("leader") => Err(Fault::NotLeader),
            Model::Relay => Ok(Model::Relay),
            model => match (self.seen(), seen) {
                (now, Some(seen)) if now.as_ref().is_none_or(|now| now.cluster != seen.cluster) => {
                    Err(Fault::OtherCluster { has: now.map(|now| now.cluster), seen: seen.cluster.clone() })
                }
                (Some(now), Some(seen)) if now.index < seen.index => {
                    Err(Fault::Stale { has: now.index, seen: seen.index })
                }
                _ => Ok(model),
            },
        }
    }

    fn model(&self) -> Model {
        match self.fields.get("model").and_then(Value::as_str) {
            Some("clustered") => Model::Clustered,
            Some("relay") => Model::Relay,
            _ => Model::Standalone,
        }
    }
}
