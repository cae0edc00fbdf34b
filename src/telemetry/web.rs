//! HTTP for anyone who can reach the host. It has a thread of its own, and limits, so that clients with many, slow or
//! endless requests delay only each other.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// At a time; others wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 256;
const HEADER_WITHIN: Duration = Duration::from_secs(5);
/// From the first byte of a request to the last one of its answer. A connection has one request.
const DONE_WITHIN: Duration = Duration::from_secs(10);
/// Pause after a failed accept, for example while no file descriptor is free.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A thread that serves HTTP. It ends with the last clone and the last port.
#[derive(Debug, Clone)]
pub struct Web {
    runtime: Handle,
    free: Arc<Semaphore>,
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
        Ok(Self { runtime: handle, free: Arc::new(Semaphore::new(MOST_CONNECTIONS)), _alive: Arc::new(alive) })
    }

    /// Answers the connections to `listener`.
    pub fn serve(&self, listener: TcpListener, router: Router) -> io::Result<Served> {
        listener.set_nonblocking(true)?;
        let listener = {
            let _within = self.runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let free = self.free.clone();
        let task = self.runtime.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let Ok(place) = free.clone().acquire_owned().await else { return };
                        tokio::spawn(answer(stream, router.clone(), place));
                    }
                    Err(_) => sleep(TRY_AGAIN).await,
                }
            }
        });
        Ok(Served { task: task.abort_handle(), _web: self.clone() })
    }
}

/// Serves one request; its place is free afterwards, whatever the client does.
async fn answer(stream: TcpStream, router: Router, _place: OwnedSemaphorePermit) {
    let _ = timeout(DONE_WITHIN, one_request(stream, router)).await;
}

/// Serves one request, whose header must arrive within 5 s. The caller limits the rest.
pub async fn one_request(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_WITHIN).keep_alive(false);
    // there is no one to report to if the client goes away
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}
