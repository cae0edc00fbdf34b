//! Keeps a client connected: finds the right member of the right remote, brings the cache up to
//! date, and starts again when anything goes wrong.

use std::convert::Infallible;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ovnkube_ovn::ServerSchema;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::client::{Shared, State};
use crate::conn::{self, Conn, Monitor, Pending, Signal};
use crate::fault::Fault;
use crate::layout::Layout;
use crate::reader::Reader;
use crate::remote::Remote;
use crate::rpc::RpcError;
use crate::server;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// For what has arrived of a connection that can't be written to any more.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// A session that lived this long was not a failed attempt.
const PROVEN: Duration = Duration::from_secs(1);

/// Runs sessions for ever. A round tries every remote once, in a new order, without waiting; between
/// rounds it waits 1, 2, 4, 8, 8 … seconds; while a cluster elects its leader, 1 second each time.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut wait = FIRST_WAIT;
    loop {
        let (mut proven, mut electing) = (false, false);
        for remote in shuffled(&shared.options.remotes) {
            let (fault, lived) = attempt(&shared, &remote).await;
            tracing::warn!(database = shared.options.database.name, %remote, error = %fault, "database session ended");
            shared.state.send_replace(State::Disconnected { error: format!("{remote}: {fault}") });
            electing |= matches!(fault, Fault::NotLeader);
            proven = lived > PROVEN;
            if proven {
                break;
            }
        }
        if proven || electing {
            wait = FIRST_WAIT;
        }
        if !proven {
            tokio::time::sleep(wait).await;
            wait = LONGEST_WAIT.min(wait * 2);
        }
    }
}

fn shuffled(remotes: &[Remote]) -> Vec<Remote> {
    let random = RandomState::new();
    let mut order: Vec<Remote> = remotes.to_vec();
    order.sort_by_cached_key(|remote| random.hash_one(remote));
    order
}

/// A task that does not outlive its owner.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One session with one remote: why it ended and how long it was live.
async fn attempt(shared: &Arc<Shared>, remote: &Remote) -> (Fault, Duration) {
    shared.state.send_replace(State::Connecting { remote: remote.clone() });
    let options = &shared.options;
    let open = conn::open(remote, options.tls.as_ref());
    let (read, write) = match deadline("connect", options.connect_timeout, async { open.await.map(Ok) }).await {
        Ok(halves) => halves,
        Err(fault) => return (fault, Duration::ZERO),
    };
    let (queue, queued) = mpsc::unbounded_channel();
    let (signal, mut signals) = mpsc::unbounded_channel();
    let conn = Arc::new(Conn::new(queue, signal, options.window));
    // a unix socket that is open has somebody behind it
    let probe = options.probe.filter(|_| !matches!(remote, Remote::Unix(_)));
    let mut writer = Task(tokio::spawn(conn::write(write, queued)));
    let mut reader = Task(tokio::spawn(Reader::new(Arc::clone(shared), Arc::clone(&conn)).run(read, probe)));
    let mut live_since = None;
    let fault = tokio::select! {
        ended = &mut reader.0 => ended.unwrap_or_else(Fault::from),
        ended = &mut writer.0 => {
            let fault = ended.unwrap_or_else(Fault::from);
            // who closes a connection may have said why
            tokio::time::timeout(LAST_WORDS, &mut reader.0).await.map_or(fault, |ended| ended.unwrap_or_else(Fault::from))
        }
        Err(fault) = drive(shared, &conn, remote, &mut signals, &mut live_since) => fault,
    };
    shared.lose(&conn);
    (fault, live_since.map_or(Duration::ZERO, |at: Instant| at.elapsed()))
}

/// Goes through the steps until the session is live, and again after each change of schema.
async fn drive(
    shared: &Arc<Shared>,
    conn: &Arc<Conn>,
    remote: &Remote,
    signals: &mut mpsc::UnboundedReceiver<Signal>,
    live_since: &mut Option<Instant>,
) -> Result<Infallible, Fault> {
    let step = shared.options.step_timeout;
    // servers before 2.9 know neither of the two
    optional(deadline("set_db_change_aware", step, conn.call("set_db_change_aware", &[true])).await)?;
    let (tx, rx) = oneshot::channel();
    conn.request("monitor_cond", &server::monitor(), Pending::Server(tx))?;
    optional(deadline("monitor _Server", step, async { rx.await.map_err(|_| Fault::Closed) }).await)?;
    loop {
        let name = shared.options.database.name;
        let schema = deadline("get_schema", step, conn.call("get_schema", &[name])).await?;
        let schema: ServerSchema = serde_json::from_str(schema.get())?;
        let mut layout = Arc::new(shared.layout(&schema));
        let cookie = start_monitor(shared, conn, &layout).await?;
        shared.go_live(conn, Arc::new(schema.clone()), Arc::clone(&layout), remote);
        live_since.get_or_insert_with(Instant::now);
        loop {
            // what was asked for between making the layout and going live
            let wanted = Arc::new(shared.layout(&schema));
            if wanted != layout {
                let params = json!([cookie, cookie, wanted.condition_changes(&layout)]);
                let monitor_timeout = shared.options.monitor_timeout;
                deadline("change conditions", monitor_timeout, conn.call("monitor_cond_change", &params)).await?;
                shared.set_layout(&wanted);
                layout = wanted;
            }
            match signals.recv().await {
                Some(Signal::Conditions) => {}
                Some(Signal::MonitorCanceled) => break shared.pause(),
                Some(Signal::Stuck) => return Err(Fault::Deadline("transact")),
                Some(Signal::ReadOnly) => return Err(Fault::ReadOnly),
                None => return Err(Fault::Closed),
            }
        }
    }
}

/// Awaits a step's reply no longer than `limit`.
async fn deadline<T>(
    step: &'static str,
    limit: Duration,
    reply: impl Future<Output = Result<Result<T, RpcError>, Fault>>,
) -> Result<T, Fault> {
    let reply = tokio::time::timeout(limit, reply).await.map_err(|_| Fault::Deadline(step))??;
    reply.map_err(|error| Fault::Refused { step, error })
}

/// A step that old servers do not have.
fn optional<T>(step: Result<T, Fault>) -> Result<(), Fault> {
    match step {
        Err(Fault::Refused { error, .. }) if error.is_unknown_method() || error.error == "unknown database" => Ok(()),
        other => other.map(drop),
    }
}

/// Starts the monitor with the best method the server knows and gives its cookie. The reply is
/// applied by the reader.
async fn start_monitor(shared: &Arc<Shared>, conn: &Conn, layout: &Arc<Layout>) -> Result<String, Fault> {
    let name = shared.options.database.name;
    for method in ["monitor_cond_since", "monitor_cond", "monitor"] {
        let since = method == "monitor_cond_since";
        let cookie = shared.next_cookie();
        let monitor = Monitor { cookie: cookie.clone(), layout: Arc::clone(layout), since };
        let mut params = vec![json!(name), json!(monitor.cookie), json!(**layout)];
        if since {
            params.push(json!(shared.last_txn(layout)));
        }
        let (done, rx) = oneshot::channel();
        conn.request(method, &params, Pending::Monitor { monitor, done })?;
        let reply = async { rx.await.map_err(|_| Fault::Closed) };
        match deadline("monitor", shared.options.monitor_timeout, reply).await {
            Err(Fault::Refused { error, .. }) if error.is_unknown_method() && method != "monitor" => {}
            other => return other.map(|()| cookie),
        }
    }
    Err(Fault::NoMonitor)
}
