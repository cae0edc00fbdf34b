//! `healthCheckNodePort`: reports to load balancers whether a service has an endpoint on this node, and
//! whether the node is programmed for services, as kube-proxy does.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use nix::sys::socket::{setsockopt, sockopt};
use ovnkube_node_plan::services::{Health, Want};
use ovnkube_telemetry::{NodeHealth, Served, Web};
use serde::Serialize;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::time::sleep;

use super::tracker::ServiceTracker;
use crate::{Warning, Warnings};

/// Pause before another attempt to open a port that is in use.
const RETRY: Duration = Duration::from_secs(1);
const BACKLOG: u32 = 1024;

/// Answers health checks as long as the process lives. A port that is in use blocks no other. Any client may connect,
/// so a separate thread serves them.
pub(crate) async fn run(tracker: &ServiceTracker, node: &str, health: &NodeHealth, warnings: &Warnings) {
    let web = loop {
        match Web::start("ovnkube-health") {
            Ok(web) => break web,
            Err(e) => tracing::warn!(error = %e, "cannot start a thread for health checks; trying again"),
        }
        sleep(RETRY).await;
    };
    let mut ports = Ports { web, health: health.clone(), open: BTreeMap::new() };
    let mut changes = tracker.changes();
    loop {
        changes.mark_unchanged();
        let failed = match tracker.want() {
            Some(want) => ports.ensure(&want, node).await,
            None => Vec::new(),
        };
        let again = !failed.is_empty();
        warnings.replace("health checks", failed);
        tokio::select! {
            seen = changes.changed() => if seen.is_err() { return },
            () = sleep(RETRY), if again => {},
        }
    }
}

/// The listeners; dropping them closes the ports.
#[derive(Debug)]
struct Ports {
    web: Web,
    health: NodeHealth,
    open: BTreeMap<u16, Port>,
}

#[derive(Debug)]
struct Port {
    answer: watch::Sender<Health>,
    _served: Served,
}

impl Ports {
    /// Opens and closes ports. Returns which could not be opened, and why.
    async fn ensure(&mut self, want: &Want, node: &str) -> Vec<Warning> {
        let mut wanted = BTreeMap::new();
        for part in &want.parts {
            if let Some(health) = &part.health {
                wanted.entry(health.port).or_insert((health, &part.service));
            }
        }
        self.open.retain(|port, _| wanted.contains_key(port));
        let mut failed = Vec::new();
        for (number, (health, service)) in wanted {
            if let Some(port) = self.open.get(&number) {
                port.answer.send_if_modified(|have| {
                    let differs = have != health;
                    have.clone_from(health);
                    differs
                });
                continue;
            }
            let opened = listen(number).await.and_then(TcpListener::into_std);
            match opened.and_then(|listener| Port::serve(&self.web, listener, health, &self.health)) {
                Ok(port) => drop(self.open.insert(number, port)),
                Err(e) => failed.push(Warning {
                    about: Some(service.clone()),
                    reason: "FailedToStartServiceHealthcheck",
                    message: format!(
                        "cannot listen on healthCheckNodePort {number} of {} on node {node}: {e}; stop the program \
                         that uses the port (ss -ltnp), or recreate the service so that it gets another port",
                        health.service
                    ),
                }),
            }
        }
        failed
    }
}

impl Port {
    fn serve(web: &Web, listener: std::net::TcpListener, service: &Health, node: &NodeHealth) -> std::io::Result<Self> {
        let (sender, answer) = watch::channel(service.clone());
        let node = node.clone();
        let router = Router::new().fallback(move || {
            let (service, is_programmed) = (answer.borrow().clone(), node.is_programmed());
            async move { respond(&service, is_programmed) }
        });
        Ok(Self { answer: sender, _served: web.serve(listener, router)? })
    }
}

/// Listens on all addresses of both families, regardless of `net.ipv6.bindv6only`, or of IPv4 if there is no IPv6.
async fn listen(port: u16) -> std::io::Result<TcpListener> {
    match listen_both(port) {
        Err(e) if e.kind() != std::io::ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await
        }
        other => other,
    }
}

fn listen_both(port: u16) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v6()?;
    socket.set_reuseaddr(true)?;
    setsockopt(&socket, sockopt::Ipv6V6Only, &false)?;
    socket.bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))?;
    socket.listen(BACKLOG)
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

fn respond(health: &Health, healthy: bool) -> impl IntoResponse + use<> {
    let status = if health.endpoints > 0 && healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let service = ServiceName { namespace: &health.service.namespace, name: &health.service.name };
    let answer = Answer { service, local_endpoints: health.endpoints, healthy };
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
        ("x-load-balancing-endpoint-weight", health.endpoints.to_string()),
    ];
    (status, headers, serde_json::to_string(&answer).unwrap_or_default())
}
