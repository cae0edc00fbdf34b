//! HTTP for anyone who can reach the host. It has a thread of its own, and limits, so that clients with many, slow or
//! endless requests hold up nobody: whoever comes is let in, if need be in place of the one that has been there longest.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// At a time. A client that sends its request at once is answered long before as many others have come.
const MOST_CONNECTIONS: usize = 256;
/// Bytes of a header.
const LARGEST_HEADER: usize = 16 * 1024;
const HEADER_WITHIN: Duration = Duration::from_secs(5);
/// From the first byte of a request to the last one of its answer. A connection has one request.
const DONE_WITHIN: Duration = Duration::from_secs(10);
/// Pause after a failed accept, for example while no file descriptor is free.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A thread that serves HTTP. It ends with the last clone and the last port.
#[derive(Debug, Clone)]
pub struct Web {
    runtime: Handle,
    open: Connections,
    _alive: Arc<oneshot::Sender<()>>,
}

/// A port that is served; dropping it closes the port.
#[derive(Debug)]
pub struct Served {
    task: AbortHandle,
    _web: Web,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Web {
    /// `name` is the thread's name, at most 15 bytes.
    pub fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(ended))?;
        Ok(Self { runtime: handle, open: Connections::default(), _alive: Arc::new(alive) })
    }

    /// Answers the connections to `listener`.
    pub fn serve(&self, listener: TcpListener, router: Router) -> io::Result<Served> {
        listener.set_nonblocking(true)?;
        let listener = {
            let _within = self.runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let open = self.open.clone();
        let task = self.runtime.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => open.add(tokio::spawn(answer(stream, router.clone())).abort_handle()),
                    Err(_) => sleep(TRY_AGAIN).await,
                }
            }
        });
        Ok(Served { task: task.abort_handle(), _web: self.clone() })
    }
}

/// The connections of all ports, the oldest first.
#[derive(Debug, Clone, Default)]
struct Connections(Arc<Mutex<VecDeque<AbortHandle>>>);

impl Connections {
    /// Ends the oldest one if there are too many.
    fn add(&self, connection: AbortHandle) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MOST_CONNECTIONS {
            open.retain(|connection| !connection.is_finished());
        }
        if open.len() >= MOST_CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        open.push_back(connection);
    }
}

/// Serves one request, whatever the client does.
async fn answer(stream: TcpStream, router: Router) {
    let _ = timeout(DONE_WITHIN, one_request(stream, router)).await;
}

/// Serves one request, whose header must arrive within 5 s. The caller limits the rest.
pub async fn one_request(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_WITHIN).keep_alive(false).max_buf_size(LARGEST_HEADER);
    // there is no one to report to if the client goes away
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}
