//! The HTTP server for monitoring: `/metrics`, `/healthz`, `/livez`, `/readyz`.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::{Error, Metrics, NodeHealth, Served, Web};

/// Another program may have the address for a while, such as another ovnkube on the host.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// A process that has done nothing for so long hangs. The first plan of a large cluster takes seconds.
const LIVE_WITHIN: Duration = Duration::from_secs(60);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Which parts of the process are not ready yet, and why. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    waiting: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl Readiness {
    /// Marks `part` as waiting for something.
    pub fn wait(&self, part: &'static str, reason: impl Into<String>) {
        self.lock().insert(part, reason.into());
    }

    pub fn ready(&self, part: &'static str) {
        self.lock().remove(part);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the server of an address reports on.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The setting that names the address.
    pub key: &'static str,
    pub metrics: Arc<Metrics>,
    pub readiness: Readiness,
    /// With a node agent, `/healthz` and `/livez` report on it.
    pub node: Option<NodeHealth>,
}

/// Serves for as long as the process lives. If the address cannot be used, that is logged once and tried again: no
/// node's network depends on it.
pub async fn keep_serving(address: SocketAddr, sources: Sources) {
    let mut told = false;
    loop {
        match serve(address, sources.clone()).await {
            Ok((_, _served)) => return std::future::pending().await,
            Err(error) if !told => {
                tracing::warn!(%error, "trying again every {} s", TRY_AGAIN.as_secs());
            }
            Err(_) => {}
        }
        told = true;
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

/// Serves until the result is dropped; returns the address that it listens on.
/// Responses hold no secrets, but names of objects: an address that others reach causes a warning.
pub async fn serve(address: SocketAddr, sources: Sources) -> Result<(SocketAddr, Served), Error> {
    let Sources { key, metrics, readiness, node } = sources;
    let failed = |problem| Error::Listen { address, key, problem };
    let listener = listen(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "metrics are served without TLS to everybody who reaches the address");
    }
    let pulse = Pulse::start();
    let beats = pulse.clone();
    let router = Router::new()
        .route("/metrics", get(show_metrics))
        .with_state(metrics)
        .route("/readyz", get(move || async move { show_readiness(&readiness, &beats) }));
    let router = match node {
        // answers while the process works: a probe must not restart a process that waits for others
        None => router.route("/healthz", get(move || async move { pulse.answer() })),
        Some(node) => {
            let live = node.clone();
            let router = router.route("/healthz", get(move || async move { node.healthz() }));
            router.route("/livez", get(move || async move { live.livez() }))
        }
    };
    let served = Web::start("ovnkube-http").and_then(|web| web.serve(listener, router)).map_err(failed)?;
    Ok((address, served))
}

/// `:9409` is every address, also on a host without IPv6.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address) {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()))
        }
        bound => bound,
    }
}

/// Reports from another thread whether the runtime that started it still runs.
#[derive(Debug, Clone)]
struct Pulse {
    start: Instant,
    /// Seconds from the start to the last time that the runtime ran.
    last: Arc<AtomicU64>,
}

impl Pulse {
    fn start() -> Self {
        let pulse = Self { start: Instant::now(), last: Arc::default() };
        let beating = pulse.clone();
        tokio::spawn(async move {
            loop {
                beating.last.store(beating.start.elapsed().as_secs(), Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        pulse
    }

    fn answer(&self) -> (StatusCode, String) {
        self.hangs().map_or_else(|| (StatusCode::OK, "ok\n".to_owned()), |why| (StatusCode::SERVICE_UNAVAILABLE, why))
    }

    /// Says since when the runtime has done nothing, if that is long.
    fn hangs(&self) -> Option<String> {
        let still = self.start.elapsed().as_secs().saturating_sub(self.last.load(Ordering::Relaxed));
        (still > LIVE_WITHIN.as_secs()).then(|| format!("nothing was done for {still} s\n"))
    }
}

async fn show_metrics(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    match metrics.text() {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, OPEN_METRICS)], text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, [(CONTENT_TYPE, "text/plain")], error.to_string()),
    }
}

fn show_readiness(readiness: &Readiness, pulse: &Pulse) -> (StatusCode, String) {
    let waiting = readiness.lock();
    let reasons = waiting.iter().map(|(part, reason)| format!("{part}: {reason}\n"));
    let reasons = pulse.hangs().into_iter().chain(reasons).collect::<String>();
    if reasons.is_empty() {
        return (StatusCode::OK, "ok\n".into());
    }
    (StatusCode::SERVICE_UNAVAILABLE, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_hangs_is_neither_live_nor_ready() {
        let ago = |still| Pulse { start: Instant::now().checked_sub(still).unwrap(), last: Arc::default() };
        let readiness = Readiness::default();
        let [busy, hangs] = [LIVE_WITHIN / 2, LIVE_WITHIN * 2].map(ago);
        for (code, _) in [busy.answer(), show_readiness(&readiness, &busy)] {
            assert_eq!(code, StatusCode::OK);
        }
        for (code, why) in [hangs.answer(), show_readiness(&readiness, &hangs)] {
            assert_eq!((code, &*why), (StatusCode::SERVICE_UNAVAILABLE, "nothing was done for 120 s\n"));
        }
    }
}
