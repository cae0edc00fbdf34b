//! The HTTP server that machines ask: `/metrics`, `/healthz`, `/livez`, `/readyz`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::{Error, Metrics, NodeHealth};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Which parts of the process are not ready yet, and why. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    waiting: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl Readiness {
    /// `part` waits for something.
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

/// Serves in the background for as long as the process lives; the address listened on is returned.
/// Answers hold no secrets, but names of objects: an address that others reach is warned about.
/// `node`: where there is a node's agent, `/healthz` and `/livez` are about that.
pub async fn serve(
    address: SocketAddr,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    node: Option<NodeHealth>,
) -> Result<SocketAddr, Error> {
    let failed = |problem| Error::Listen { address, problem };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    if !address.ip().is_loopback() {
        tracing::warn!("metrics on {address} are served to everybody who reaches it, without TLS");
    }
    let router = Router::new()
        .route("/metrics", get(show_metrics))
        .with_state(metrics)
        .route("/readyz", get(move || async move { show_readiness(&readiness) }));
    let router = match node {
        // answers as long as the runtime runs: a probe must not restart what only waits for others
        None => router.route("/healthz", get(|| async { "ok\n" })),
        Some(node) => {
            let live = node.clone();
            let router = router.route("/healthz", get(move || async move { node.healthz() }));
            router.route("/livez", get(move || async move { live.livez() }))
        }
    };
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!("serve metrics on {address}: {error}");
        }
    });
    Ok(address)
}

async fn show_metrics(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    match metrics.text() {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, OPEN_METRICS)], text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, [(CONTENT_TYPE, "text/plain")], error.to_string()),
    }
}

fn show_readiness(readiness: &Readiness) -> (StatusCode, String) {
    let waiting = readiness.lock();
    if waiting.is_empty() {
        return (StatusCode::OK, "ok\n".into());
    }
    let reasons = waiting.iter().map(|(part, reason)| format!("{part}: {reason}\n"));
    (StatusCode::SERVICE_UNAVAILABLE, reasons.collect())
}
