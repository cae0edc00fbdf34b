//! HTTPS for the API server, with limits. Clients that open many connections delay the API server too, each for seconds: who
//! can do that is on its host.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use ovnkube_telemetry::one_request;
use rustls::ServerConfig;
use rustls::crypto::ring;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::Error;
use crate::certificate::Certificate;
use crate::review::{Answer, answer, refuse};

/// Two Nodes of the largest size that etcd accepts.
const MOST_BYTES: usize = 3_000_000;
/// At a time; others wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 256;
/// For each of: the handshake of TLS, the body. [`one_request`] has the same for the header.
const WITHIN: Duration = Duration::from_secs(5);
/// From the first byte to the last one of the answer. A connection has one request.
const DONE_WITHIN: Duration = Duration::from_secs(16);
/// Pause after a failed accept, for example while no file descriptor is free.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The webhook, listening but not answering yet.
pub struct Webhook {
    listener: TcpListener,
    tls: TlsAcceptor,
    certificate: Arc<Certificate>,
}

impl Webhook {
    /// Listens with the certificate `tls.crt` and the key `tls.key` of a directory.
    pub async fn listen(address: SocketAddr, certificates: &Path) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let certificate = Arc::new(Certificate::read(certificates, provider.clone())?);
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::Tls)?
            .with_no_client_auth()
            .with_cert_resolver(certificate.clone());
        let listener = TcpListener::bind(address).await.map_err(|problem| Error::Listen { address, problem })?;
        Ok(Self { listener, tls: Arc::new(tls).into(), certificate })
    }

    /// Where it listens; with port 0, the port that was free.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers for ever.
    pub async fn serve(self) {
        let router = router(self.certificate);
        let free = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let Ok(place) = free.clone().acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve_one(stream, self.tls.clone(), router.clone(), place));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; trying again");
                    sleep(TRY_AGAIN).await;
                }
            }
        }
    }
}

/// One path for each webhook of a ValidatingWebhookConfiguration; the rules find out what the review is about.
fn router(certificate: Arc<Certificate>) -> Router {
    let judges = Router::new().route("/node", post(judge)).route("/pod", post(judge));
    let is_healthy = get(async move || healthy(&certificate));
    // to start it again does not help where only the certificate is at fault
    judges.route("/healthz", is_healthy).route("/livez", get(async || "ok\n"))
}

pub(crate) fn healthy(certificate: &Certificate) -> Response {
    match certificate.fault() {
        None => "ok\n".into_response(),
        Some(fault) => (StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n")).into_response(),
    }
}

/// Its place is free afterwards, whatever the client does.
async fn serve_one(stream: TcpStream, tls: TlsAcceptor, router: Router, _place: OwnedSemaphorePermit) {
    let exchange = async {
        let stream = match timeout(WITHIN, tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            // a wrong CA in the webhook's configuration is seen here and in the API server's log
            Ok(Err(error)) => return tracing::debug!(%error, "a client gave up the TLS handshake"),
            Err(_) => return,
        };
        one_request(stream, router).await;
    };
    let _ = timeout(DONE_WITHIN, exchange).await;
}

async fn judge(body: Body) -> Response {
    let answer = match timeout(WITHIN, to_bytes(body, MOST_BYTES)).await {
        Ok(Ok(body)) => judged(&body),
        Ok(Err(error)) => {
            refuse(413, &format!("cannot read the request: {error}; at most {MOST_BYTES} bytes are read"))
        }
        Err(_) => refuse(408, &format!("cannot read the request: its end did not come within {} s", WITHIN.as_secs())),
    };
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], answer.body.to_string()).into_response()
}

fn judged(body: &Bytes) -> Answer {
    let answer = answer(body);
    let response = answer.body.get("response").and_then(|response| response.get("status"));
    if let Some(message) = response.and_then(|status| status.get("message")) {
        // the client gets the message, and a hostile one could fill the log
        tracing::debug!(%message, "denied");
    }
    answer
}
