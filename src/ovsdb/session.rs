//! One session: checks whether a server is good, brings the cache up to date from it and follows it until anything
//! fails.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ovnkube_ovn::{Database, ServerSchema};
use ovnkube_ovsdb_data::Layout;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::backup;
use crate::conn::{self, Conn, Monitor, Pending, Signal};
use crate::fault::Fault;
use crate::reader::Reader;
use crate::remote::Remote;
use crate::rpc::RpcError;
use crate::server::{self, Model};
use crate::shared::{Live, Shared};
use crate::system::SilenceLimit;

/// How long a server that may become good is watched. Then it is asked anew: it may have forgotten to tell.
const WATCHED: Duration = Duration::from_secs(1);
/// How often a server that may become a backup is asked whether it is one: it does not tell.
const ROLE_AGAIN: Duration = Duration::from_secs(5);
/// How long to read what has already arrived on a connection that can no longer be written to.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A task that does not outlive its owner.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection to a good server.
pub(crate) struct Session {
    remote: Remote,
    conn: Arc<Conn>,
    /// Whether the server is in no cluster: it may become a backup.
    may_change: bool,
    /// Until it is live: then an echo finds out the same, and a host that is gone is noticed sooner without it.
    pub(crate) limit: Option<SilenceLimit>,
    signals: mpsc::UnboundedReceiver<Signal>,
    tasks: Tasks,
}

struct Tasks {
    reader: Task<Fault>,
    writer: Task<Fault>,
}

impl Tasks {
    /// The result of `work`, unless the connection ends first.
    async fn alive<T>(&mut self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let fault = tokio::select! {
            biased;
            ended = &mut self.reader.0 => return Err(ended.unwrap_or_else(Fault::from)),
            ended = &mut self.writer.0 => ended.unwrap_or_else(Fault::from),
            done = work => match done {
                Err(Fault::Closed) => Fault::Closed,
                done => return done,
            },
        };
        // a peer that closes the connection may have said why
        let said = tokio::time::timeout(LAST_WORDS, &mut self.reader.0).await;
        Err(said.map_or(fault, |ended| ended.unwrap_or_else(Fault::from)))
    }
}

/// Connects, and checks whether the server is one to stay with. One that may become good is watched for a while; `waits` is told.
pub(crate) async fn greet(shared: &Arc<Shared>, remote: Remote, waits: impl FnOnce(&Fault)) -> Result<Session, Fault> {
    let options = &shared.options;
    let open = async {
        match &options.dial {
            Some(dial) => {
                let (read, write) = dial(&remote);
                Ok(Ok((read, write, None)))
            }
            None => conn::open(&remote, options.tls.as_ref()).await.map(Ok),
        }
    };
    let (read, write, limit) = deadline("connect", options.connect_timeout, open).await?;
    let (queue, queued) = mpsc::unbounded_channel();
    let (signal, signals) = mpsc::unbounded_channel();
    let conn = Arc::new(Conn::new(queue, signal, options.window));
    // an open unix socket has a process behind it
    let probe = options.probe.filter(|_| !matches!(remote, Remote::Unix(_)));
    let reader = Reader::new(Arc::clone(shared), Arc::clone(&conn)).run(read, probe);
    let (reader, writer) = (tokio::spawn(reader), tokio::spawn(conn::write(write, queued)));
    let mut tasks = Tasks { reader: Task(reader), writer: Task(writer) };
    let model = tasks.alive(ask(&conn, options.step_timeout, waits)).await?;
    let may_change = model == Model::Standalone;
    if may_change {
        tasks.alive(ask_role(&conn, options.database, options.step_timeout)).await?;
    }
    Ok(Session { remote, conn, may_change, limit, signals, tasks })
}

/// Fails if the server is a backup.
async fn ask_role(conn: &Conn, database: &Database, limit: Duration) -> Result<(), Fault> {
    let Some(question) = backup::question(database) else { return Ok(()) };
    let answer = deadline("ask whether it takes writes", limit, conn.call("transact", &question)).await;
    match answer {
        Ok(results) if backup::is_backup(&serde_json::from_str(results.get())?) == Some(true) => Err(Fault::Backup),
        // a refusal for another reason tells nothing
        Ok(_) | Err(Fault::Refused { .. }) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Asks the server about itself; the reader judges the answer.
async fn ask(conn: &Conn, step: Duration, waits: impl FnOnce(&Fault)) -> Result<Model, Fault> {
    // servers before 2.9 know neither of the two
    optional(deadline("set_db_change_aware", step, conn.call("set_db_change_aware", &[true])).await)?;
    let (tx, mut rx) = mpsc::unbounded_channel();
    conn.request("monitor_cond", &server::monitor(), Pending::Server(tx))?;
    let first = deadline("monitor _Server", step, async { rx.recv().await.ok_or(Fault::Closed) }).await;
    let mut fault = match optional(first)? {
        Some(Ok(model)) => return Ok(model),
        Some(Err(fault)) => fault,
        None => return Ok(Model::Standalone),
    };
    waits(&fault);
    let patience = Instant::now() + WATCHED;
    loop {
        match timeout_at(patience, rx.recv()).await {
            Ok(Some(Ok(Ok(model)))) => return Ok(model),
            Ok(Some(Ok(Err(next)))) => fault = next,
            Ok(Some(Err(_)) | None) => return Err(Fault::Closed),
            Err(_) => return Err(fault),
        }
    }
}

impl Session {
    pub(crate) fn conn(&self) -> Arc<Conn> {
        Arc::clone(&self.conn)
    }

    /// Ends it, for this reason.
    pub(crate) fn leave(&self, shared: &Shared, fault: &Fault) {
        shared.lose(&self.conn, &self.remote, fault);
    }

    /// Follows the database. Returns why that ended, and how long the session was live.
    pub(crate) async fn follow(&mut self, shared: &Arc<Shared>) -> (Fault, Duration) {
        let Self { remote, conn, may_change, limit, signals, tasks } = self;
        let mut live_since = None;
        let Err(fault) = tasks.alive(drive(shared, conn, remote, *may_change, limit, signals, &mut live_since)).await;
        shared.lose(conn, remote, &fault);
        (fault, live_since.map_or(Duration::ZERO, |at: Instant| at.elapsed()))
    }
}

/// Goes through the steps until the session is live, and again after each change of schema.
async fn drive(
    shared: &Arc<Shared>,
    conn: &Arc<Conn>,
    remote: &Remote,
    may_change: bool,
    limit: &mut Option<SilenceLimit>,
    signals: &mut mpsc::UnboundedReceiver<Signal>,
    live_since: &mut Option<Instant>,
) -> Result<Infallible, Fault> {
    loop {
        let text = get_schema(shared, conn).await?;
        let schema: ServerSchema = serde_json::from_str(text.get())?;
        let mut layout = Arc::new(shared.layout(&schema));
        let cookie = start_monitor(shared, conn, &layout).await?;
        // a conversion cancels only monitors that have started before it
        let now = get_schema(shared, conn).await?;
        if now.get() != text.get() && serde_json::from_str::<ServerSchema>(now.get())? != schema {
            conn.request("monitor_cancel", &[cookie], Pending::Nobody)?;
            // what was said of this monitor is not about the next one
            while let Ok(signal) = signals.try_recv() {
                match signal {
                    Signal::Conditions | Signal::MonitorCanceled => {}
                    Signal::Stuck => return Err(Fault::Deadline("transact")),
                    Signal::Backup => return Err(Fault::Backup),
                }
            }
            continue;
        }
        let live = Live {
            conn: Arc::clone(conn),
            schema: Arc::new(schema.clone()),
            layout: Arc::clone(&layout),
            is_replicated: !may_change,
            session: shared.stats.read().sessions,
        };
        shared.go_live(live, remote);
        live_since.get_or_insert_with(Instant::now);
        *limit = None;
        loop {
            // what was requested between making the layout and going live
            let wanted = Arc::new(shared.layout(&schema));
            if wanted != layout {
                let params = json!([cookie, cookie, wanted.condition_changes(&layout)]);
                let limit = shared.options.monitor_timeout;
                shared.forget_layout();
                download("change conditions", limit, conn, conn.call("monitor_cond_change", &params)).await?;
                shared.set_layout(&wanted);
                layout = wanted;
            }
            let role = role_changed(conn, shared.options.database);
            let signal = tokio::select! {
                signal = signals.recv() => signal,
                fault = role, if may_change => return Err(fault),
            };
            match signal {
                Some(Signal::Conditions) => {}
                Some(Signal::MonitorCanceled) => break shared.pause(),
                Some(Signal::Stuck) => return Err(Fault::Deadline("transact")),
                Some(Signal::Backup) => return Err(Fault::Backup),
                None => return Err(Fault::Closed),
            }
        }
    }
}

async fn get_schema(shared: &Shared, conn: &Conn) -> Result<Box<RawValue>, Fault> {
    let name = shared.options.database.name;
    deadline("get_schema", shared.options.step_timeout, conn.call("get_schema", &[name])).await
}

/// Returns when the server has become a backup. A server that does not answer is left for other reasons.
async fn role_changed(conn: &Conn, database: &Database) -> Fault {
    loop {
        sleep(ROLE_AGAIN).await;
        if let Err(fault) = ask_role(conn, database, Duration::MAX).await {
            return fault;
        }
    }
}

/// Waits for a step's reply for at most `limit`.
async fn deadline<T>(
    step: &'static str,
    limit: Duration,
    reply: impl Future<Output = Result<Result<T, RpcError>, Fault>>,
) -> Result<T, Fault> {
    let reply = tokio::time::timeout(limit, reply).await.map_err(|_| Fault::Deadline(step))??;
    reply.map_err(|error| Fault::Refused { step, error })
}

/// Waits for a reply that may be long, while no `limit` passes without a byte of it. The server may work on it for long
/// without sending anything; TCP keepalive shows whether its host is there ([`conn::open`]).
async fn download<T>(
    step: &'static str,
    limit: Duration,
    conn: &Conn,
    reply: impl Future<Output = Result<Result<T, RpcError>, Fault>>,
) -> Result<T, Fault> {
    let mut reply = std::pin::pin!(reply);
    let mut received = conn.received();
    loop {
        match deadline(step, limit, &mut reply).await {
            Err(Fault::Deadline(_)) if !conn.is_silent_since(received) => received = conn.received(),
            done => return done,
        }
    }
}

/// A step that old servers do not have.
fn optional<T>(step: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match step {
        Err(Fault::Refused { error, .. }) if error.is_unknown_method() || error.error == "unknown database" => Ok(None),
        other => other.map(Some),
    }
}

/// Starts the monitor with the best method that the server knows, and returns its cookie. The reader applies the reply.
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
        match download("monitor", shared.options.monitor_timeout, conn, reply).await {
            Err(Fault::Refused { error, .. }) if error.is_unknown_method() && method != "monitor" => {}
            other => return other.map(|()| cookie),
        }
    }
    Err(Fault::NoMonitor)
}
