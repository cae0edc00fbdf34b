//! A proxy in front of a server that damages connections as networks and bad servers do.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ovnkube_ovsdb::{Framer, Remote};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use crate::lab::Dir;

/// What happens to one connection. Byte counts are of the server's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    /// Closed after this many bytes.
    Cut(usize),
    /// After this many bytes nothing more arrives, but the connection stays open.
    Stall(usize),
    /// After this many bytes, other bytes arrive.
    Garbage(usize, &'static str),
    /// Forwarded in pieces of this size.
    Pieces(usize),
    /// These methods do not exist.
    Without(&'static [&'static str]),
    /// The reply to the first transaction is lost, with the connection.
    LoseReply,
    /// That reply carries another id.
    WrongId,
}

pub(crate) struct Proxy {
    socket: PathBuf,
    plan: Arc<Mutex<Vec<Fault>>>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) fn new(dir: &Dir, server: &Path) -> Self {
        let socket = dir.file("proxy.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let plan = Arc::new(Mutex::new(Vec::new()));
        let (server, faults) = (server.to_owned(), Arc::clone(&plan));
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let next = |plan: &mut Vec<Fault>| if plan.is_empty() { Fault::Nothing } else { plan.remove(0) };
                let fault = next(&mut faults.lock().unwrap());
                let server = server.clone();
                tokio::spawn(async move {
                    if let Ok(upstream) = UnixStream::connect(&server).await {
                        serve(client, upstream, fault).await;
                    }
                });
            }
        });
        Proxy { socket, plan, task }
    }

    /// The faults of the next connections, in order; later connections have none.
    pub(crate) fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.plan.lock().unwrap() = faults.into_iter().collect();
    }

    /// The address, repeated as often as connections are to be tried without waiting.
    pub(crate) fn remotes(&self) -> Vec<Remote> {
        vec![Remote::Unix(self.socket.clone()); 40]
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(client: UnixStream, upstream: UnixStream, fault: Fault) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = upstream.into_split();
    let transactions = Ids::default();
    if matches!(fault, Fault::LoseReply | Fault::WrongId | Fault::Without(_)) {
        let requests = pass_requests(&mut from_client, &mut to_server, &fault, &transactions);
        let replies = pass_replies(&mut from_server, &mut to_client, &fault, &transactions);
        tokio::select! { () = requests => {}, () = replies => {} }
    } else {
        let requests = async { drop(tokio::io::copy(&mut from_client, &mut to_server).await) };
        let replies = damaged(&mut from_server, &mut to_client, &fault);
        tokio::select! { () = requests => {}, () = replies => {} }
    }
}

type Ids = Mutex<HashSet<u64>>;

async fn pass_requests(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, fault: &Fault, transactions: &Ids) {
    let mut framer = Framer::new(1 << 30);
    while let Some(mut message) = next(from, &mut framer).await {
        // one that is aborted is the question whether the server is a backup
        let is_question = |message: &Value| message["params"][2]["op"] == "abort";
        if message["method"] == "transact" && !is_question(&message) {
            transactions.lock().unwrap().insert(message["id"].as_u64().unwrap());
        }
        if let Fault::Without(methods) = fault
            && methods.contains(&message["method"].as_str().unwrap_or_default())
        {
            message["method"] = json!("no_such_method");
        }
        if to.write_all(message.to_string().as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn pass_replies(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, fault: &Fault, transactions: &Ids) {
    let mut framer = Framer::new(1 << 30);
    while let Some(mut message) = next(from, &mut framer).await {
        let hit = message["id"].as_u64().is_some_and(|id| transactions.lock().unwrap().contains(&id));
        match fault {
            Fault::LoseReply if hit => return,
            Fault::WrongId if hit => message["id"] = json!(999_999),
            _ => {}
        }
        if to.write_all(message.to_string().as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn next(from: &mut OwnedReadHalf, framer: &mut Framer) -> Option<Value> {
    loop {
        if let Some(range) = framer.next_message().unwrap() {
            return Some(serde_json::from_slice(framer.message(range)).unwrap());
        }
        if !matches!(from.read_buf(framer.buffer()).await, Ok(n) if n > 0) {
            return None;
        }
    }
}

async fn damaged(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, fault: &Fault) {
    let (mut passed, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        let limit = match fault {
            Fault::Cut(at) | Fault::Stall(at) | Fault::Garbage(at, _) => at.saturating_sub(passed),
            Fault::Pieces(size) => *size,
            _ => buffer.len(),
        };
        if limit == 0 {
            match fault {
                Fault::Stall(_) => std::future::pending().await,
                Fault::Garbage(_, what) => drop(to.write_all(what.as_bytes()).await),
                _ => {}
            }
            return;
        }
        let length = limit.min(buffer.len());
        let Ok(n) = from.read(&mut buffer[..length]).await else { return };
        if n == 0 || to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
        passed += n;
    }
}
