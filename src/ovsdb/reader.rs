//! Processes what the server sends, in the order in which it came: a transaction's changes are in the cache before its
//! reply is handed over.

use std::sync::Arc;
use std::time::Duration;

use ovnkube_ovn::wire::Interner;
use ovnkube_ovsdb_data::Decoder;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::conn::{Conn, Greeting, Monitor, Pending, ReadHalf, Signal};
use crate::fault::Fault;
use crate::frame::Framer;
use crate::patience::PARTS;
use crate::rpc::{self, Message, RpcError};
use crate::server::{self, Model, ServerRow};
use crate::shared::Shared;

/// Messages longer than this are processed outside the tasks that do IO.
const BIG: usize = 1 << 20;

pub(crate) struct Reader {
    shared: Arc<Shared>,
    conn: Arc<Conn>,
    texts: Interner,
    server: Option<ServerRow>,
    /// Who waits for the server to become good.
    greeting: Option<Greeting>,
    monitor: Option<Monitor>,
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>, conn: Arc<Conn>) -> Self {
        Reader { shared, conn, texts: Interner::default(), server: None, greeting: None, monitor: None }
    }

    /// Reads until anything fails.
    pub(crate) async fn run(mut self, mut from: ReadHalf, probe: Option<Duration>) -> Fault {
        let mut framer = Framer::new(self.shared.options.max_message);
        loop {
            loop {
                let range = match framer.next_message() {
                    Ok(Some(range)) => range,
                    Ok(None) => break,
                    Err(e) => return e.into(),
                };
                let result = if range.len() > BIG {
                    let (bytes, conn) = (framer.take(range), Arc::clone(&self.conn));
                    let work = move || (self.take_in(&bytes), self);
                    conn.set_at_work(true);
                    let done = tokio::task::spawn_blocking(work).await;
                    conn.set_at_work(false);
                    match done {
                        Ok((result, reader)) => {
                            self = reader;
                            result
                        }
                        Err(e) => return e.into(),
                    }
                } else {
                    self.take_in(framer.message(range))
                };
                if let Err(fault) = result {
                    return fault;
                }
            }
            match self.read(&mut from, framer.buffer(), probe).await {
                Ok(0) => return Fault::Eof,
                Ok(n) => {
                    self.conn.receive(n);
                    self.shared.stats.received(n);
                }
                Err(fault) => return fault,
            }
        }
    }

    /// Reads some bytes. A live server that is silent for `probe` is sent an echo and given that long again; while a
    /// write waits, the echo is sent at once. Before the session is live, its steps have their own deadlines.
    async fn read(&self, from: &mut ReadHalf, to: &mut Vec<u8>, probe: Option<Duration>) -> Result<usize, Fault> {
        let Some(probe) = probe else { return Ok(from.read_buf(to).await?) };
        let tick = probe / PARTS;
        let (mut silent, mut asked) = (0, None);
        loop {
            if let Ok(n) = timeout(tick, from.read_buf(to)).await {
                return Ok(n?);
            }
            if !self.shared.is_live() {
                continue;
            }
            silent += 1;
            let waits = self.shared.is_write_waiting();
            let limit = if waits { self.shared.patience.parts() } else { PARTS };
            match asked {
                None if waits || silent >= PARTS => {
                    asked = Some(silent);
                    self.conn.request("echo", &[(); 0], Pending::Nobody)?;
                }
                Some(at) if silent - at >= limit => {
                    self.shared.patience.lost();
                    return Err(Fault::Silent);
                }
                _ => {}
            }
        }
    }

    fn take_in(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let message: Message<'_> = serde_json::from_slice(bytes)?;
        match &message.method {
            Some(method) => self.request(method, &message),
            None => self.reply(&message),
        }
    }

    fn request(&mut self, method: &str, message: &Message<'_>) -> Result<(), Fault> {
        let params = message.params.map_or("[]", |p| p.get());
        match (method, message.id) {
            ("echo", Some(id)) => self.conn.send(rpc::reply(id, message.params, None)),
            ("update" | "update2" | "update3", _) => return self.update(params, method == "update3"),
            ("monitor_canceled", _) if self.is_for(params).is_some() => {
                self.monitor = None;
                self.conn.signal(Signal::MonitorCanceled);
            }
            ("locked" | "stolen", _) => {
                if let Ok([lock]) = serde_json::from_str::<[String; 1]>(params) {
                    match method {
                        "locked" => self.shared.locks.locked(&lock),
                        _ => self.shared.locks.stolen(&lock),
                    }
                }
            }
            (_, Some(id)) => self.conn.send(rpc::reply(id, None, Some("unknown method"))),
            (_, None) => {}
        }
        Ok(())
    }

    /// Our monitor, if a notification with these parameters is for it.
    fn is_for(&self, params: &str) -> Option<Monitor> {
        self.monitor.as_ref().filter(|m| cookie_is(params, &m.cookie)).cloned()
    }

    fn update(&mut self, params: &str, with_txn: bool) -> Result<(), Fault> {
        if cookie_is(params, server::COOKIE) {
            return self.server_update(params);
        }
        // updates of a cancelled monitor may still arrive: they are ignored
        let Some(monitor) = self.is_for(params) else { return Ok(()) };
        let (txn, updates) = self.decoder(&monitor).notification(params, with_txn)?;
        self.shared.apply(&self.conn, updates, &monitor, txn)
    }

    fn decoder<'a>(&'a mut self, monitor: &'a Monitor) -> Decoder<'a> {
        Decoder { database: self.shared.options.database, layout: &monitor.layout, texts: &mut self.texts }
    }

    fn server_update(&mut self, params: &str) -> Result<(), Fault> {
        let params: Value = serde_json::from_str(params)?;
        if let (Some(row), Some(updates)) = (&mut self.server, params.get(1)) {
            row.update(updates, self.shared.options.database.name);
            let verdict = self.shared.check_server(row);
            match self.greeting.take() {
                Some(greeting) => self.judged(verdict, greeting)?,
                None => drop(verdict?),
            }
        }
        Ok(())
    }

    /// Tells who waits. A server that may become good is watched.
    fn judged(&mut self, verdict: Result<Model, Fault>, greeting: Greeting) -> Result<(), Fault> {
        let verdict = match verdict {
            Err(fault) if !fault.may_pass() => return Err(fault),
            verdict => verdict,
        };
        let is_good = verdict.is_ok();
        // who has stopped waiting needs no verdict
        let _ = greeting.send(Ok(verdict));
        self.greeting = Some(greeting).filter(|_| !is_good);
        Ok(())
    }

    fn reply(&mut self, message: &Message<'_>) -> Result<(), Fault> {
        let id = message.id.map_or("null", |id| id.get());
        let unknown = || Fault::UnknownReply(id.chars().take(40).collect());
        let pending = id.parse().ok().and_then(|id| self.conn.take(id)).ok_or_else(unknown)?;
        let result = match message.error {
            Some(error) => Err(RpcError::read(error)),
            None => Ok(message.result.unwrap_or(RawValue::NULL)),
        };
        // a caller that has stopped waiting needs no reply
        match pending {
            Pending::Call(reply) => drop(reply.send(result.map(RawValue::to_owned))),
            Pending::Txn { reply, flight, permit } => {
                drop((flight, permit));
                self.shared.patience.answered();
                drop(reply.send(result.map(RawValue::to_owned)));
            }
            Pending::Lock(request) => {
                let held = result.is_ok_and(|r| r.get().contains("true"));
                self.shared.locks.answer(&request, held);
            }
            Pending::Server(greeting) => match result {
                Ok(json) => self.server_reply(json.get(), greeting)?,
                Err(error) => drop(greeting.send(Err(error))),
            },
            Pending::Monitor { monitor, done } => {
                let result = result.map(|json| self.monitor_reply(json.get(), monitor)).transpose_inner()?;
                drop(done.send(result));
            }
            Pending::Nobody => {}
        }
        Ok(())
    }

    fn server_reply(&mut self, json: &str, greeting: Greeting) -> Result<(), Fault> {
        let mut row = ServerRow::default();
        row.update(&serde_json::from_str(json)?, self.shared.options.database.name);
        let verdict = self.shared.check_server(&row);
        self.server = Some(row);
        self.judged(verdict, greeting)
    }

    fn monitor_reply(&mut self, json: &str, monitor: Monitor) -> Result<(), Fault> {
        let decoder = self.decoder(&monitor);
        let (found, txn, updates) = if monitor.since {
            let (found, txn, updates) = decoder.since_reply(json)?;
            (found, Some(txn), updates)
        } else {
            (false, None, decoder.updates(json)?)
        };
        if found {
            self.shared.apply(&self.conn, updates, &monitor, txn)?;
        } else {
            self.shared.replace(&self.conn, updates, &monitor, txn)?;
        }
        self.monitor = Some(monitor);
        Ok(())
    }
}

/// An error from the server stays inside, one of the session is passed out.
trait TransposeInner {
    fn transpose_inner(self) -> Result<Result<(), RpcError>, Fault>;
}
impl TransposeInner for Result<Result<(), Fault>, RpcError> {
    fn transpose_inner(self) -> Result<Result<(), RpcError>, Fault> {
        match self {
            Ok(done) => done.map(Ok),
            Err(e) => Ok(Err(e)),
        }
    }
}

fn cookie_is(params: &str, cookie: &str) -> bool {
    let rest = params.trim_start().strip_prefix('[').map(str::trim_start).and_then(|p| p.strip_prefix('"'));
    rest.and_then(|p| p.strip_prefix(cookie)).is_some_and(|p| p.starts_with('"'))
}
