//! `healthCheckNodePort`: tells load balancers whether a service has an endpoint on this node, as
//! kube-proxy does.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::want::{Health, Want};

/// The listeners; dropping them closes the ports.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    open: BTreeMap<u16, Port>,
}

#[derive(Debug)]
struct Port {
    answer: watch::Sender<Health>,
    _task: JoinSet<()>,
}

impl Ports {
    /// Opens and closes ports; tells which could not be opened, and why.
    pub(crate) async fn ensure(&mut self, want: &Want) -> Vec<String> {
        let mut wanted = BTreeMap::new();
        for health in want.parts.iter().filter_map(|part| part.health.as_ref()) {
            wanted.entry(health.port).or_insert(health);
        }
        self.open.retain(|port, _| wanted.contains_key(port));
        let mut failed = Vec::new();
        for (number, health) in wanted {
            if let Some(port) = self.open.get(&number) {
                port.answer.send_if_modified(|have| {
                    let differs = have != health;
                    have.clone_from(health);
                    differs
                });
                continue;
            }
            match listen(number).await {
                Ok(listener) => drop(self.open.insert(number, Port::serve(listener, health))),
                Err(e) => failed.push(format!("listen on healthCheckNodePort {number} of {}: {e}", health.service)),
            }
        }
        failed
    }
}

impl Port {
    fn serve(listener: TcpListener, health: &Health) -> Self {
        let (sender, answer) = watch::channel(health.clone());
        let router = Router::new().fallback(move || {
            let health = answer.borrow().clone();
            async move { respond(&health) }
        });
        let mut task = JoinSet::new();
        task.spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self { answer: sender, _task: task }
    }
}

/// On every address of both families, or of IPv4 where there is no IPv6.
async fn listen(port: u16) -> std::io::Result<TcpListener> {
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await {
        Err(e) if e.kind() != std::io::ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await
        }
        other => other,
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    service: ServiceName<'a>,
    #[serde(rename = "localEndpoints")]
    local_endpoints: usize,
    #[serde(rename = "serviceProxyHealthy")]
    healthy: bool,
}

#[derive(Serialize)]
struct ServiceName<'a> {
    namespace: &'a str,
    name: &'a str,
}

fn respond(health: &Health) -> impl IntoResponse + use<> {
    let status = if health.endpoints > 0 { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let service = ServiceName { namespace: &health.service.namespace, name: &health.service.name };
    let answer = Answer { service, local_endpoints: health.endpoints, healthy: true };
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
        ("x-load-balancing-endpoint-weight", health.endpoints.to_string()),
    ];
    (status, headers, serde_json::to_string(&answer).unwrap_or_default())
}
