//! Where the servers of a database listen, and with which certificate: the rows of two tables, to which the one row refers that every
//! database of OVN has. They are the servers' and not the network's, so a backup does not bring them back: it could close the port that
//! clients use, or open one that was closed. Its text gets the rows that the servers have before it is restored, so that this takes one
//! transaction.

use serde_json::{Map, Value, json};

/// The tables, and the columns that refer to them.
const COLUMNS: [(&str, &str); 2] = [("Connection", "connections"), ("SSL", "ssl")];

/// The tables alone. They also differ between a server and its copy.
pub(crate) const OWN: [&str; 2] = [COLUMNS[0].0, COLUMNS[1].0];

/// What a file has of these.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnRows {
    rows: [Vec<Map<String, Value>>; 2],
    /// Whether it has the row that refers to them.
    has_global: bool,
}

fn global(database: &str) -> &'static str {
    if database == "OVN_Southbound" { "SB_Global" } else { "NB_Global" }
}

impl OwnRows {
    /// What a file is asked for them.
    pub fn question(database: &str) -> String {
        let select = |table: &str| json!({"op": "select", "table": table, "where": []});
        json!([database, select(OWN[0]), select(OWN[1]), select(global(database))]).to_string()
    }

    /// The answer. Nothing if it is none.
    pub fn parse(answer: &str) -> Option<Self> {
        let answer: Value = serde_json::from_str(answer).ok()?;
        let rows = |at: usize| -> Option<Vec<Map<String, Value>>> {
            answer.get(at)?.get("rows")?.as_array()?.iter().map(|row| row.as_object().cloned()).collect()
        };
        Some(Self { rows: [rows(0)?, rows(1)?], has_global: !rows(2)?.is_empty() })
    }

    /// The transaction with which a file that has `theirs` gets these instead.
    pub fn put_in_place_of(&self, theirs: &Self, database: &str) -> String {
        let mut steps = vec![Value::from(database)];
        steps.extend(OWN.map(|table| json!({"op": "delete", "table": table, "where": []})));
        let mut references = Map::new();
        for ((table, column), rows) in COLUMNS.into_iter().zip(&self.rows) {
            let name = |at: usize| format!("{column}{at}");
            steps.extend(rows.iter().enumerate().map(|(at, row)| {
                // the others are the database's
                let own = row.iter().filter(|(column, _)| !column.starts_with('_'));
                let row: Map<_, _> = own.map(|(column, value)| (column.clone(), value.clone())).collect();
                json!({"op": "insert", "table": table, "uuid-name": name(at), "row": row})
            }));
            let names: Vec<Value> = (0..rows.len()).map(|at| json!(["named-uuid", name(at)])).collect();
            references.insert(column.to_owned(), json!(["set", names]));
        }
        let table = global(database);
        if theirs.has_global {
            steps.push(json!({"op": "update", "table": table, "where": [], "row": references}));
        } else if self.rows.iter().any(|rows| !rows.is_empty()) {
            steps.push(json!({"op": "insert", "table": table, "row": references}));
        }
        Value::from(steps).to_string()
    }
}

/// Why a transaction was not done, if it was not: the answer tells.
pub fn not_done(answer: &str) -> Option<String> {
    let Ok(Value::Array(steps)) = serde_json::from_str(answer) else { return Some(answer.to_owned()) };
    steps.iter().find(|step| step.get("error").is_some()).map(Value::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"[
        {"rows": [{"_uuid": ["uuid", "d2"], "_version": ["uuid", "e3"], "target": "pssl:6641", "inactivity_probe": 60000}]},
        {"rows": [{"_uuid": ["uuid", "f4"], "private_key": "/k", "certificate": "/c", "ca_cert": "/a"}]},
        {"rows": [{"_uuid": ["uuid", "a5"], "options": ["map", []]}]}]"#;
    const EMPTY: &str = r#"[{"rows": []}, {"rows": []}, {"rows": []}]"#;
    const NONE: &str = r#"[{"rows": []}, {"rows": []}, {"rows": [{}]}]"#;

    fn transaction(own: &str, theirs: &str, database: &str) -> Value {
        let [own, theirs] = [own, theirs].map(|answer| OwnRows::parse(answer).unwrap());
        serde_json::from_str(&own.put_in_place_of(&theirs, database)).unwrap()
    }

    #[test]
    fn the_rows_of_the_servers_take_the_place_of_others() {
        let deleted = ["Connection", "SSL"].map(|table| json!({"op": "delete", "table": table, "where": []}));
        let inserted = [
            json!({"op": "insert", "table": "Connection", "uuid-name": "connections0",
                "row": {"target": "pssl:6641", "inactivity_probe": 60000}}),
            json!({"op": "insert", "table": "SSL", "uuid-name": "ssl0",
                "row": {"private_key": "/k", "certificate": "/c", "ca_cert": "/a"}}),
        ];
        let references =
            json!({"connections": ["set", [["named-uuid", "connections0"]]], "ssl": ["set", [["named-uuid", "ssl0"]]]});
        let no_references = json!({"connections": ["set", []], "ssl": ["set", []]});
        let with =
            |database: &str, more: Vec<Value>| Value::from([vec![json!(database)], deleted.to_vec(), more].concat());
        let (nb, sb) = ("OVN_Northbound", "OVN_Southbound");
        let update = |table: &str, row: &Value| json!({"op": "update", "table": table, "where": [], "row": row});
        let insert = json!({"op": "insert", "table": "NB_Global", "row": references});
        for (own, theirs, database, more) in [
            (FULL, FULL, sb, [&inserted[..], &[update("SB_Global", &references)]].concat()),
            (FULL, EMPTY, nb, [&inserted[..], &[insert]].concat()),
            (NONE, FULL, nb, vec![update("NB_Global", &no_references)]),
            (EMPTY, FULL, nb, vec![update("NB_Global", &no_references)]),
            (EMPTY, EMPTY, nb, vec![]),
        ] {
            assert_eq!(transaction(own, theirs, database), with(database, more), "{own} {theirs}");
        }
    }

    #[test]
    fn what_is_no_answer() {
        for answer in ["", "[]", r#"[{"rows": []}, {"rows": []}]"#, r#"[{"rows": []}, {"error": "e"}, {"rows": []}]"#] {
            assert_eq!(OwnRows::parse(answer), None, "{answer}");
        }
        assert_eq!(not_done(r#"[{"count": 1}, {"uuid": ["uuid", "a5"]}]"#), None);
        assert_eq!(not_done(r#"[{"count": 1}, {"error": "e"}]"#), Some(r#"{"error":"e"}"#.to_owned()));
        assert_eq!(not_done("no JSON"), Some("no JSON".to_owned()));
    }
}
