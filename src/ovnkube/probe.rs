//! `ovnkube readiness-probe`: whether a program on this host, or in this pod, works. It is asked at its socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use ovnkube_config::{Settings, Target};
use ovnkube_db::ClusterStatus;
use ovnkube_ovsdb::{Questions, Remote};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::db::place::{self, control_socket};
use crate::node;

/// Probes of pods may take a little longer.
const WITHIN: Duration = Duration::from_secs(5);

pub(crate) async fn run(settings: &Settings, target: Target) -> Result<()> {
    let asked = timeout(WITHIN, check(settings, target)).await;
    let outcome = asked.unwrap_or_else(|_| Err(anyhow!("no answer within {} s", WITHIN.as_secs())));
    outcome.with_context(|| format!("{} is not ready", target.word()))
}

async fn check(settings: &Settings, target: Target) -> Result<()> {
    let (north, south) = (&*settings.ovnnorth.run_dir, &*settings.ovnsouth.run_dir);
    let switch = &*settings.ovspaths.run_dir;
    let nb = Server::new(north, "ovnnb_db", "OVN_Northbound");
    let sb = Server::new(south, "ovnsb_db", "OVN_Southbound");
    match target {
        Target::Northbound => nb.answers().await,
        Target::Southbound => sb.answers().await,
        Target::NorthboundMember => nb.has_joined().await,
        Target::SouthboundMember => sb.has_joined().await,
        Target::Interconnection => {
            Server::new(north, "ovn_ic_nb_db", "OVN_IC_Northbound").works().await?;
            Server::new(south, "ovn_ic_sb_db", "OVN_IC_Southbound").works().await
        }
        Target::Northd => {
            let socket = control_socket(north, "ovn-northd")?;
            if control(&socket, "status", &[]).await? == "Status: paused" {
                bail!("it is paused; ovn-appctl -t ovn-northd resume ends that");
            }
            is_connected(&socket, "sb-connection-status").await
        }
        Target::Switch => switch_works(switch).await,
        // its flows are of no use without a switch
        Target::Controller => {
            switch_works(switch).await?;
            is_connected(&control_socket(south, "ovn-controller")?, "connection-status").await
        }
        Target::NodeAgent => {
            let file = settings.cni.conf_dir.join("10-ovn-kubernetes.conflist");
            if !std::fs::metadata(&file).is_ok_and(|found| found.len() > 0) {
                bail!(
                    "the agent has not written {}, which it does once pods can be wired; its log says why",
                    file.display()
                );
            }
            match node::has_been_ready().await? {
                Some(true) => Ok(()),
                // the file may be of the agent before
                Some(false) => bail!("the agent has not found its node ready for pods; its log says why"),
                None => bail!("no agent listens at its socket: it has not started yet, or was killed"),
            }
        }
        // one that does not listen yet waits for others, such as the API server: it is not to be restarted
        Target::NodeAgentAlive => node::answers().await.map(drop),
    }
}

/// The server of a database on this host.
struct Server {
    socket: PathBuf,
    control: PathBuf,
    database: &'static str,
}

impl Server {
    fn new(dir: &Path, stem: &str, database: &'static str) -> Self {
        let file = |ending| dir.join(format!("{stem}.{ending}"));
        Self { socket: file("sock"), control: file("ctl"), database }
    }

    async fn answers(&self) -> Result<()> {
        select(&self.socket, self.database, "Connection", &json!([]), "target").await.map(drop)
    }

    /// Alone, or as a member.
    async fn works(&self) -> Result<()> {
        if self.says("model").await? == "clustered" { self.has_joined().await } else { self.answers().await }
    }

    /// It has joined its cluster, its predecessor does not count any more, and there is a leader.
    async fn has_joined(&self) -> Result<()> {
        let text = control(&self.control, "cluster/status", &[self.database]).await?;
        let status = ClusterStatus::parse(&text).context("the database is that of no member")?;
        if !status.is_member() {
            bail!("its status is \"{}\"", status.status);
        }
        let mut others = status.members.iter().filter(|member| !member.is_self);
        if let Some(lost) = others.find(|other| other.address == status.address) {
            bail!("the cluster still counts the server {}, which had the address {}", lost.id, lost.address);
        }
        if self.says("connected").await? != true {
            bail!("the cluster has no leader: a majority of its members does not answer");
        }
        Ok(())
    }

    /// What it says of the database.
    async fn says(&self, column: &str) -> Result<Value> {
        let named = json!([["name", "==", self.database]]);
        let rows = select(&self.socket, "_Server", "Database", &named, column).await?;
        let row = rows.first().with_context(|| format!("the server has no database {}", self.database))?;
        Ok(row[column].clone())
    }
}

async fn switch_works(dir: &Path) -> Result<()> {
    let rows = select(&dir.join("db.sock"), "Open_vSwitch", "Open_vSwitch", &json!([]), "_uuid").await?;
    rows.first().context("Open vSwitch's database is empty: ovs-vswitchd was never started")?;
    control(&control_socket(dir, "ovs-vswitchd")?, "version", &[]).await.map(drop)
}

async fn is_connected(socket: &Path, question: &'static str) -> Result<()> {
    match control(socket, question, &[]).await?.as_str() {
        "connected" => Ok(()),
        other => bail!("it is not connected to the southbound database: {other}"),
    }
}

/// The answer of a program at its control socket.
async fn control(socket: &Path, command: &'static str, arguments: &[&str]) -> Result<String> {
    // large, since it could use TLS
    let said = Box::pin(place::control(socket, command, arguments, WITHIN)).await;
    said.map(|text| text.trim().to_owned()).map_err(|problem| anyhow!("cannot ask at {}: {problem}", socket.display()))
}

/// A column of those rows of a table that `conditions` match.
async fn select(socket: &Path, database: &str, table: &str, conditions: &Value, column: &str) -> Result<Vec<Value>> {
    let select = json!({"op": "select", "table": table, "where": conditions, "columns": [column]});
    let transact = json!([database, select]);
    let ask =
        async { Questions::connect(&Remote::Unix(socket.to_owned()), None).await?.ask("transact", &transact).await };
    let answer = Box::pin(ask).await.with_context(|| format!("cannot ask at {}", socket.display()))?;
    let rows = answer.pointer("/0/rows").and_then(Value::as_array);
    rows.cloned().with_context(|| format!("cannot read {table} of {database}: {answer}"))
}
