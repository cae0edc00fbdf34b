//! One connection: sends requests, and hands replies to their callers.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ovnkube_ovsdb_data::Layout;
use serde::Serialize;
use serde_json::value::RawValue;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use crate::fault::Fault;
use crate::flights::Flight;
use crate::remote::Remote;
use crate::rpc::{self, RpcError};
use crate::server::Model;
use crate::system::{SilenceLimit, unix_socket};
use crate::tls::TlsFiles;

pub(crate) type ReadHalf = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type WriteHalf = Box<dyn AsyncWrite + Send + Unpin>;

/// If a peer has not answered for this long, the next address or server is tried as well.
pub(crate) const STAGGER: Duration = Duration::from_millis(250);
/// How many addresses of one name are tried.
const MOST_ADDRESSES: usize = 16;

/// A connection. With the limit, the host may acknowledge nothing for [`UNACKNOWLEDGED`]; without, it may be silent for 5 s.
pub(crate) type Opened = (ReadHalf, WriteHalf, Option<SilenceLimit>);

/// Connects to `remote`.
pub(crate) async fn open(remote: &Remote, tls: Option<&TlsFiles>) -> Result<Opened, Fault> {
    match remote {
        Remote::Unix(path) => {
            let (read, write) = unix_socket(path).await?;
            Ok((Box::new(read), Box::new(write), None))
        }
        Remote::Tcp { host, port } => {
            let (stream, limit) = connect(host, *port).await?;
            let (read, write) = stream.into_split();
            Ok((Box::new(read), Box::new(write), Some(limit)))
        }
        Remote::Ssl { host, port } => {
            let config = tls.ok_or(Fault::NoCertificate)?.load()?;
            let (stream, limit) = connect(host, *port).await?;
            let name = host.clone().try_into().map_err(|_| Fault::HostName(host.clone()))?;
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
            let (read, write) = tokio::io::split(stream);
            Ok((Box::new(read), Box::new(write), Some(limit)))
        }
    }
}

/// How long a host may acknowledge nothing. A server that is stopped does so while its buffers have room.
pub(crate) const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

/// Connects to the first address of the host that answers. Once the limit is dropped, TCP keepalive ends the connection to a host that is
/// gone after 5 seconds without traffic, however long the server works on an answer.
async fn connect(host: &str, port: u16) -> io::Result<(TcpStream, SilenceLimit)> {
    let mut addresses = lookup_host((host, port)).await?.take(MOST_ADDRESSES);
    let mut asked = JoinSet::new();
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let stream = loop {
        let next = addresses.next();
        let more = next.is_some();
        match next {
            Some(address) => drop(asked.spawn(TcpStream::connect(address))),
            None if asked.is_empty() => return Err(error),
            None => {}
        }
        tokio::select! {
            Some(answer) = asked.join_next() => match answer? {
                Ok(stream) => break stream,
                Err(refused) => error = refused,
            },
            () = sleep(STAGGER), if more => {}
        }
    };
    stream.set_nodelay(true)?;
    let probes = TcpKeepalive::new().with_time(Duration::from_secs(2)).with_interval(Duration::from_secs(1));
    SockRef::from(&stream).set_tcp_keepalive(&probes.with_retries(3))?;
    let limit = SilenceLimit::set(&stream, UNACKNOWLEDGED)?;
    Ok((stream, limit))
}

/// Sends what is queued, several messages per write if they pile up. Reading goes on meanwhile: a server does not read
/// from a client that does not read from it.
pub(crate) async fn write(mut to: WriteHalf, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) -> Fault {
    while let Some(mut bytes) = queue.recv().await {
        while bytes.len() < 1 << 16
            && let Ok(more) = queue.try_recv()
        {
            bytes.extend_from_slice(&more);
        }
        if let Err(e) = async { to.write_all(&bytes).await.and(to.flush().await) }.await {
            return e.into();
        }
    }
    Fault::Closed
}

/// An event that ends or restarts a session and that a part other than its driver finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The server cancelled our monitor: its schema changed.
    MonitorCanceled,
    /// The conditions of the monitor are to change.
    Conditions,
    /// A transaction got no reply in time.
    Stuck,
    /// The server refused a transaction because it has become a backup.
    Backup,
}

pub(crate) type RpcResult = Result<Box<RawValue>, RpcError>;

/// Where it is told whether a server is one to stay with, first and after each change until it is, and how it has the database.
pub(crate) type Greeting = mpsc::UnboundedSender<Result<Result<Model, Fault>, RpcError>>;

/// What waits for a reply.
pub(crate) enum Pending {
    Call(oneshot::Sender<RpcResult>),
    Txn {
        reply: oneshot::Sender<RpcResult>,
        flight: Flight,
        permit: OwnedSemaphorePermit,
    },
    /// The first monitor of `_Server`.
    Server(Greeting),
    /// The monitor of our database.
    Monitor {
        monitor: Monitor,
        done: oneshot::Sender<Result<(), RpcError>>,
    },
    Lock(LockRequest),
    /// An echo or an unlock.
    Nobody,
}

/// A request for a lock, and its number among those of this client.
pub(crate) struct LockRequest {
    pub(crate) id: String,
    pub(crate) number: u64,
}

/// A monitor, and how it was requested.
#[derive(Clone)]
pub(crate) struct Monitor {
    pub(crate) cookie: String,
    pub(crate) layout: Arc<Layout>,
    /// Whether replies and updates carry transaction ids (`monitor_cond_since`).
    pub(crate) since: bool,
}

pub(crate) struct Conn {
    next_id: AtomicU64,
    queue: mpsc::UnboundedSender<Vec<u8>>,
    signal: mpsc::UnboundedSender<Signal>,
    /// `None` once the connection is closed.
    pending: Mutex<Option<HashMap<u64, Pending>>>,
    pub(crate) window: Arc<Semaphore>,
    received: AtomicU64,
    /// What was received is being processed outside the tasks that do IO.
    at_work: AtomicBool,
}

impl Conn {
    pub(crate) fn new(
        queue: mpsc::UnboundedSender<Vec<u8>>,
        signal: mpsc::UnboundedSender<Signal>,
        window: usize,
    ) -> Self {
        Conn {
            next_id: AtomicU64::new(1),
            queue,
            signal,
            pending: Mutex::new(Some(HashMap::new())),
            window: Arc::new(Semaphore::new(window)),
            received: AtomicU64::new(0),
            at_work: AtomicBool::new(false),
        }
    }

    /// Queues a request. Returns its number of bytes, or [`Fault::Closed`] if the connection is closed.
    pub(crate) fn request(&self, method: &str, params: &impl Serialize, pending: Pending) -> Result<usize, Fault> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let bytes = rpc::request(id, method, params).map_err(Fault::Encode)?;
        let length = bytes.len();
        let mut all = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        all.as_mut().ok_or(Fault::Closed)?.insert(id, pending);
        self.queue.send(bytes).map_err(|_| Fault::Closed)?;
        Ok(length)
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn call(&self, method: &str, params: &impl Serialize) -> Result<RpcResult, Fault> {
        let (tx, rx) = oneshot::channel();
        self.request(method, params, Pending::Call(tx))?;
        rx.await.map_err(|_| Fault::Closed)
    }

    /// Sends bytes that get no reply.
    pub(crate) fn send(&self, bytes: Vec<u8>) {
        // on a closed connection there is nothing to do
        let _ = self.queue.send(bytes);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // if the driver is gone, the session has ended already
        let _ = self.signal.send(signal);
    }

    /// Counts received bytes.
    pub(crate) fn receive(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes received so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Notes that a long message is being processed, or no longer.
    pub(crate) fn set_at_work(&self, is: bool) {
        self.at_work.store(is, Ordering::Release);
    }

    /// Whether nothing came after these bytes, and nothing that came is still being processed.
    pub(crate) fn is_silent_since(&self, received: u64) -> bool {
        self.received() == received && !self.at_work.load(Ordering::Acquire)
    }

    /// Takes out what waits for reply `id`.
    pub(crate) fn take(&self, id: u64) -> Option<Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.remove(&id)
    }

    /// Closes the connection: all callers learn that no reply will come.
    pub(crate) fn close(&self) {
        let all = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.window.close();
        drop(all);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}
