//! Whether a server is a backup, one that only copies another server.
//!
//! An active server and a backup say the same of themselves, and tell nobody when they change roles. But a backup refuses an operation
//! that would write, even one that matches no row and is aborted.

use ovnkube_ovn::Database;
use serde_json::{Value, json};

/// No row has it.
pub(crate) const NO_ID: &str = "00000000-0000-0000-0000-000000000000";

/// Parameters of a transaction that changes nothing, which a backup refuses. None of a database that nobody copies.
pub(crate) fn question(database: &Database) -> Option<Value> {
    let table = database.tables.iter().find(|table| table.name.ends_with("_Global"))?;
    let nothing = json!([["_uuid", "==", ["uuid", NO_ID]]]);
    let update = json!({"op": "update", "table": table.name, "where": nothing, "row": {}});
    Some(json!([database.name, update, {"op": "abort"}]))
}

/// What the results of the transaction tell.
pub(crate) fn is_backup(results: &Value) -> Option<bool> {
    let error = |at| results.pointer(at).and_then(Value::as_str);
    match (error("/0/error"), error("/1/error")) {
        (Some("not allowed"), _) => Some(true),
        (None, Some("aborted")) => Some(false),
        _ => None,
    }
}
