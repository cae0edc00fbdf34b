//! `-remove-node`: removes a node from both databases, and its annotations from its Node.
//!
//! A running controller does all this once the Node is deleted. This is for a cluster without a controller, and for
//! what was left for other reasons. While the Node exists, a running controller would write everything again, so then
//! it is refused.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Result, bail};
use ovnkube_apply::{LOCK, removal};
use ovnkube_config::Settings;
use ovnkube_model::Node;
use ovnkube_ovsdb::{Cache, Client as Database, Lock, State, Txn};
use ovnkube_watch::Client;
use tokio::time::{Instant, sleep, timeout};

use crate::{controller, translate};

/// A database or API server that does not answer within this time is skipped.
const PATIENCE: Duration = Duration::from_secs(10);
/// The server says at once whether the lock is ours, unless it is busy.
const LOCK_WITHIN: Duration = Duration::from_secs(5);
/// An ovn-controller that still runs creates its chassis again within this time.
const BACK_WITHIN: Duration = Duration::from_secs(1);

/// Whether the Node exists.
enum Fate {
    Gone,
    Exists(Box<Node>),
    Unknown(String),
}

/// Removes all it can reach and prints what it did; the error says what could not be done.
pub(crate) async fn run(settings: &Settings, node: &str) -> Result<()> {
    let (nb, sb, (api, fate)) = tokio::join!(
        open(controller::northbound(settings), "northbound"),
        open(controller::southbound(settings), "southbound"),
        look(settings, node)
    );
    let mut problems = Vec::new();
    let mut ids = BTreeSet::new();
    if let Fate::Exists(node) = &fate {
        ids.extend(node.chassis_id.as_ref().map(ToString::to_string));
    }
    match nb {
        Ok(nb) => {
            let _lock = alone(&nb, node, &fate).await?;
            ids.extend(removal::northbound(node, &nb.cache()).chassis);
            let before = size(&nb.cache());
            match write(&nb, || removal::northbound(node, &nb.cache()).txn).await {
                Ok(()) => {
                    say(format_args!("northbound database: {}", rows(before.saturating_sub(size(&nb.cache())), node)));
                }
                Err(error) => problems.push(format!("cannot remove its rows from the northbound database: {error}")),
            }
        }
        Err(error) => problems.push(format!("{error}; rows of node {node} there stay")),
    }
    match sb {
        Ok(sb) => problems.extend(remove_chassis(&sb, node, &ids).await.err()),
        Err(error) => problems.push(format!("{error}; chassis of node {node} there stay")),
    }
    problems.extend(forget(api.as_ref(), node, fate).await.err());
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}; correct this and run the command again", problems.join("\novnkube: "));
}

fn say(text: impl Display) {
    // the reader of our output may have closed it
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The database once it is read, or why it is not reached.
pub(crate) async fn open(database: Database, name: &str) -> Result<Database, String> {
    if timeout(PATIENCE, database.synced()).await.is_ok() {
        return Ok(database);
    }
    let why = match &*database.state().borrow() {
        State::Disconnected { error } => error.clone(),
        _ => "no answer".to_owned(),
    };
    Err(format!("cannot reach the {name} database within {} s: {why}", PATIENCE.as_secs()))
}

async fn look(settings: &Settings, node: &str) -> (Option<Client>, Fate) {
    let ask = async {
        let api = Client::connect(&translate::access(settings, "remove-node")).await?;
        let node = api.node(node).await?;
        Ok::<_, ovnkube_watch::Error>((api, node))
    };
    match timeout(PATIENCE, ask).await {
        Ok(Ok((api, Some(node)))) => (Some(api), Fate::Exists(node)),
        Ok(Ok((api, None))) => (Some(api), Fate::Gone),
        Ok(Err(error)) => (None, Fate::Unknown(error.to_string())),
        Err(_) => (None, Fate::Unknown(format!("cannot get node {node}: no answer within {} s", PATIENCE.as_secs()))),
    }
}

/// Makes sure that no controller writes the rows again at once: controllers wait while the lock is held.
async fn alone(nb: &Database, node: &str, fate: &Fate) -> Result<Lock> {
    let mut lock = nb.lock(LOCK);
    let is_ours = timeout(LOCK_WITHIN, lock.until(true)).await.is_ok();
    let has_rows = || !removal::northbound(node, &nb.cache()).txn.is_empty();
    match fate {
        Fate::Exists(_) if !is_ours => bail!(
            "cannot remove node {node}: it still exists and a controller is at work, which would write its rows again; \
             kubectl delete node {node}, and the controller removes them, or stop all controllers first"
        ),
        Fate::Unknown(why) if !is_ours && has_rows() => bail!(
            "cannot remove node {node}: a controller is at work, and it is not known whether node {node} still exists \
             ({why}); name a kubeconfig, or stop all controllers first"
        ),
        _ => Ok(lock),
    }
}

/// Writes what `plan` returns; after an error that may pass, it plans and tries again.
pub(crate) async fn write(database: &Database, plan: impl Fn() -> Txn) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    loop {
        match database.transact(plan()).await {
            Ok(_) => return Ok(()),
            Err(error) if !error.is_retryable() || Instant::now() > until => return Err(error.to_string()),
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

fn size(nb: &Cache) -> usize {
    ovnkube_ovn::nb::DATABASE.tables.iter().map(|table| nb.len(table)).sum()
}

fn rows(count: usize, node: &str) -> String {
    if count == 0 { format!("nothing of node {node}") } else { format!("removed {count} rows of node {node}") }
}

async fn remove_chassis(sb: &Database, node: &str, ids: &BTreeSet<String>) -> Result<(), String> {
    let find = || removal::chassis(node, ids, &sb.cache());
    let names = || find().its.into_iter().collect::<Vec<_>>().join(", ");
    for (name, host) in find().others {
        say(format_args!("southbound database: chassis {name} is host {host}'s now and stays"));
    }
    let gone = names();
    let mut changes = sb.subscribe();
    write(sb, || removal::southbound(&find().its, &sb.cache()))
        .await
        .map_err(|error| format!("cannot remove its chassis from the southbound database: {error}"))?;
    if gone.is_empty() {
        say(format_args!("southbound database: no chassis of node {node}"));
        return Ok(());
    }
    say(format_args!("southbound database: removed chassis {gone}"));
    let back = async {
        while names().is_empty() {
            changes.recv().await;
        }
    };
    match timeout(BACK_WITHIN, back).await {
        Err(_) => Ok(()),
        Ok(()) => Err(format!(
            "cannot remove chassis {}: it is there again, since ovn-controller still runs on that host; stop it, or run \
             ovnkube -cleanup-node {node} there",
            names()
        )),
    }
}

/// Removes the annotations from its Node.
async fn forget(api: Option<&Client>, name: &str, fate: Fate) -> Result<(), String> {
    let (api, node) = match (api, fate) {
        (_, Fate::Unknown(why)) => {
            say(format_args!(
                "the API server was not reached ({why}): if node {name} still exists, its annotations stay, and a \
                 controller that is started writes its rows again"
            ));
            return Ok(());
        }
        (Some(api), Fate::Exists(node)) => (api, node),
        _ => {
            say(format_args!("node {name} does not exist: no annotations to remove"));
            return Ok(());
        }
    };
    if node.written.is_empty() {
        say(format_args!("node {name}: no annotations to remove"));
    } else {
        let removed = node.written.keys().map(|key| (key.to_string(), None)).collect();
        match api.annotate_node(name, &node.uid, &removed).await {
            Err(error) if !error.is_gone() => return Err(error.to_string()),
            _ => say(format_args!("node {name}: removed {} annotations", removed.len())),
        }
    }
    say(format_args!(
        "node {name} still exists: a controller that is started gives it a network again, unless it is deleted \
         (kubectl delete node {name})"
    ));
    Ok(())
}
