//! What a server says of itself and of a database, without a session: for reports.

use ovnkube_ovn::Database;
use serde_json::{Value, json};

use crate::backup::{self, NO_ID};
use crate::fault::Fault;
use crate::questions::{NoAnswer, Questions};
use crate::remote::Remote;
use crate::tls::TlsFiles;

/// A server's answer. Ids and the index are those of a cluster's member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Of the process: it tells whether two addresses are the same server.
    pub process: String,
    /// `standalone`, `clustered` or `relay`.
    pub model: String,
    pub connected: bool,
    pub leader: bool,
    pub cluster: Option<String>,
    pub member: Option<String>,
    pub index: Option<u64>,
    /// Version of the schema.
    pub schema: Option<String>,
    /// Whether it refuses writes; known of a server that is in no cluster.
    pub read_only: Option<bool>,
}

impl About {
    /// Asks the server at `remote`. It has no deadline.
    pub async fn ask(remote: &Remote, tls: Option<&TlsFiles>, database: &'static Database) -> Result<Self, NoAnswer> {
        let mut questions = Questions::connect(remote, tls).await?;
        Self::answer(&mut questions, database).await.map_err(|fault| NoAnswer::Failed(fault.to_string()))
    }

    async fn answer(questions: &mut Questions, database: &'static Database) -> Result<Self, Fault> {
        let process = questions.result("get_server_id", &[(); 0]).await?;
        let columns = ["name", "model", "connected", "leader", "cid", "sid", "index"];
        let select = json!(["_Server", {"op": "select", "table": "Database", "where": [], "columns": columns}]);
        let rows = questions.result("transact", &select).await?;
        let mut about = Self::of_rows(&rows, database.name)?;
        about.process = text(&process);
        // a member that has not joined yet has no schema
        about.schema =
            questions.result("get_schema", &[database.name]).await.ok().map(|schema| text(&schema["version"]));
        if about.model == "standalone"
            && let Some(question) = backup::question(database)
        {
            about.read_only = backup::is_backup(&questions.result("transact", &question).await?);
        }
        Ok(about)
    }

    fn of_rows(rows: &Value, database: &'static str) -> Result<Self, Fault> {
        let rows = rows.pointer("/0/rows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let named = |row: &&Value| row["name"] == database;
        let Some(row) = rows.iter().find(named) else {
            let others = rows.iter().map(|row| text(&row["name"])).filter(|name| name != "_Server");
            return Err(Fault::NoDatabase { wanted: database, has: others.take(8).collect() });
        };
        // a server that asks to join its first cluster has no id of a cluster yet
        let id = |column: &str| row[column].get(1)?.as_str().filter(|id| *id != NO_ID).map(str::to_owned);
        Ok(Self {
            model: text(&row["model"]),
            connected: row["connected"] == true,
            leader: row["leader"] == true,
            cluster: id("cid"),
            member: id("sid"),
            index: row["index"].as_u64(),
            ..Self::default()
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().chars().take(80).collect()
}
