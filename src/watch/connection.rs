//! Connections to the API server. They follow their credentials: a kubeconfig, or a client certificate that it names,
//! is replaced before it expires, as the kubelet does with its own; so is the CA.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderValue, USER_AGENT};
use http::{Request, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt};
use rustls::pki_types::ServerName;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tower::util::{BoxCloneSyncService, option_layer};
use tower::{BoxError, Layer, Service, ServiceExt};

use crate::access::{Access, READ_AGAIN, Token, cannot_run, plugin};
use crate::client::{Doubt, Forbidden, RetryAfter, WallClock};
use crate::error::chain;
use crate::system::{Stamp, limit_silence, stamp};
use crate::{Client, Error};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// With TLS. A server that stands still accepts connections, but says nothing: a new one may reach another server.
const SECURE_WITHIN: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// A peer that answers no TCP probe for this long is dead.
const DEAD_AFTER: Duration = Duration::from_secs(30);
/// Longer than a watch lasts: the next one goes over the same connection.
const IDLE_CONNECTION: Duration = Duration::from_secs(600);
/// All requests and watches share one connection where the server speaks HTTP/2, as Kubernetes' API server does. When nothing comes
/// on it for so long, the server is asked whether it is still there: the kernel of one that stands still acknowledges every byte.
const PING_AFTER: Duration = Duration::from_secs(15);
const ANSWER_PING_WITHIN: Duration = Duration::from_secs(15);
/// Bytes that the server may send ahead of what a watch has read, and those of all watches together: more than they can leave
/// unread, or a slow reader would hold up the answers of others.
const UNREAD: u32 = 256 * 1024;
const UNREAD_IN_ALL: u32 = 32 * UNREAD;
/// Bytes read at once. A connection's buffer grows to the largest piece that ever came and stays as long as the
/// connection. It is only a copy of what TLS has decrypted, 16 kB at a time.
const READ_AT_ONCE: usize = 32 * 1024;

type Answer = <legacy::Client<HttpConnector, Body> as Service<Request<Body>>>::Response;

/// Connections to the API server with one set of credentials.
type Connection = BoxCloneSyncService<Request<Body>, Answer, BoxError>;

impl Client {
    /// Reads the settings and all files they name. Sends nothing: an API server that is down is waited for later.
    pub async fn connect(access: &Access) -> Result<Self, Error> {
        let config = access.config().await?;
        if shows_token(&config) {
            tracing::warn!(
                server = %config.cluster_url,
                "the token goes to the API server in clear text, for everybody on the way to read and use; \
                 set k8s-apiserver to its https:// address and k8s-cacert to its authority"
            );
        }
        Self::with(access, &config).await
    }

    /// The same client on connections of its own.
    pub(crate) async fn reconnected(&self) -> Result<Self, Error> {
        let Some(access) = &self.access else { return Ok(self.clone()) };
        Ok(Self {
            forbidden: self.forbidden.clone(),
            wall: self.wall.clone(),
            ..Self::with(access, &access.config().await?).await?
        })
    }

    /// A client whose requests `kube` carries, in place of the network: for an API server within this process.
    pub fn over(kube: kube::Client) -> Self {
        Self {
            kube,
            access: None,
            server: String::new(),
            forbidden: Forbidden::default(),
            doubt: Doubt::default(),
            wall: WallClock::default(),
        }
    }

    async fn with(access: &Access, config: &Config) -> Result<Self, Error> {
        let agent = format!("ovnkube/{} ({})", env!("CARGO_PKG_VERSION"), access.role);
        let agent = HeaderValue::from_str(&agent)
            .map_err(|_| Error::Access(format!("cannot use role {:?}: it is not fit for a header", access.role)))?;
        let doubt = Doubt::default();
        let service = Renewed::new(access.clone(), config, agent, doubt.clone()).await?;
        let kube = kube::Client::new(service, "default");
        let access = Some(Arc::new(access.clone()));
        let (server, forbidden) = (host_and_port(&config.cluster_url), Forbidden::default());
        Ok(Self { kube, access, server, forbidden, doubt, wall: WallClock::default() })
    }

    /// Host and port of the API server, such as `10.0.0.1:6443`.
    pub fn server(&self) -> &str {
        &self.server
    }
}

/// Connections that are replaced when their credentials change, and when one of them hangs.
#[derive(Clone)]
struct Renewed {
    access: Arc<Access>,
    agent: HeaderValue,
    doubt: Doubt,
    current: Arc<Mutex<Current>>,
}

struct Current {
    connection: Connection,
    files: Vec<PathBuf>,
    /// Of `files`, when the connection was made.
    stamps: Vec<Option<Stamp>>,
    /// The doubt after which it was made.
    doubt: Option<Instant>,
    /// Another one is being made, or could not be made: it is not tried again before that.
    again: Option<Instant>,
    /// Of `files` when that failed, and the doubt.
    failed: Option<(Vec<Option<Stamp>>, Option<Instant>)>,
}

impl Renewed {
    async fn new(access: Access, config: &Config, agent: HeaderValue, doubt: Doubt) -> Result<Self, Error> {
        let current = Current::of(&access, config, &agent).await?;
        Ok(Self { access: Arc::new(access), agent, doubt, current: Arc::new(Mutex::new(current)) })
    }

    async fn connection(&self) -> Connection {
        let doubt = self.doubt.last();
        let stamps = {
            let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            let stamps = stamps(&current.files);
            let now = Instant::now();
            // requests that come meanwhile use the last connection
            let rests = current.again.is_some_and(|again| again > now);
            // a plugin may ask a person each time
            let has_failed = current.failed.as_ref().is_some_and(|(of, at)| *of == stamps && *at == doubt);
            let is_spent = self.access.plugin.is_some() && has_failed;
            if rests || is_spent || (stamps == current.stamps && doubt == current.doubt) {
                return current.connection.clone();
            }
            // a request that is dropped makes none
            current.again = Some(now + self.access.plugin.unwrap_or_default() + READ_AGAIN);
            stamps
        };
        let made = match self.access.config().await {
            Ok(config) => Current::of(&self.access, &config, &self.agent).await,
            Err(error) => Err(error),
        };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match made {
            Ok(made) => *current = Current { stamps, doubt, ..made },
            Err(problem) => {
                current.again = Some(Instant::now() + READ_AGAIN);
                if current.failed.as_ref().is_none_or(|(of, _)| *of != stamps) {
                    tracing::warn!(error = %problem, "using the last credentials");
                }
                current.failed = Some((stamps, doubt));
            }
        }
        current.connection.clone()
    }
}

impl Current {
    async fn of(access: &Access, config: &Config, agent: &HeaderValue) -> Result<Self, Error> {
        let named = [&config.auth_info.client_certificate, &config.auth_info.client_key];
        let named = named.into_iter().flatten().map(PathBuf::from);
        let files = named.chain(config.root_cert_file.clone()).chain(access.kubeconfig.clone()).collect::<Vec<_>>();
        let stamps = stamps(&files);
        let connection = connect_within(config, agent, access.plugin).await?;
        Ok(Self { connection, files, stamps, doubt: None, again: None, failed: None })
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|file| stamp(file)).collect()
}

impl Service<Request<Body>> for Renewed {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        async move {
            let after = request.extensions().get::<RetryAfter>().cloned();
            let answer = this.connection().await.oneshot(request).await?;
            if let Some(after) = after {
                after.note(answer.headers());
            }
            Ok(answer)
        }
        .boxed()
    }
}

/// The same as [`connect`]. A credential plugin, which runs meanwhile, may run for `within`.
async fn connect_within(config: &Config, agent: &HeaderValue, within: Option<Duration>) -> Result<Connection, Error> {
    let Some(within) = within.filter(|_| config.auth_info.exec.is_some()) else { return connect(config, agent) };
    let (made, connection) = oneshot::channel();
    let (of, agent) = (config.clone(), agent.clone());
    // a thread of the runtime's own would keep the process from ending while the plugin runs
    let thread = std::thread::Builder::new().name("plugin".to_owned()).spawn(move || {
        // nobody waits any more if it took too long
        let _ = made.send(connect(&of, &agent));
    });
    let why = match (thread, timeout(within, connection).await) {
        (Ok(_), Ok(Ok(connection))) => return connection,
        (Ok(_), Err(_)) => {
            format!("it has not ended within {within:?}; run it by hand, or use a client certificate or token")
        }
        (Ok(_), Ok(Err(_))) => "its thread ended; run the command again".to_owned(),
        (Err(error), _) => error.to_string(),
    };
    Err(Error::Access(cannot_run(config, &why)))
}

/// Connections with the current credentials; a token file is read again when it changes.
fn connect(config: &Config, agent: &HeaderValue) -> Result<Connection, Error> {
    let token = Token::of(config).map_err(Error::Access)?;
    let plugin = plugin(config).map_err(Error::Access)?;
    let problem =
        |e: BoxError| Error::Access(format!("cannot set up TLS to {}: {}", config.cluster_url, chain(e.as_ref())));
    let tls = https(config).map_err(problem)?;
    let tls = ServiceExt::<Uri>::map_future(tls, |secured| {
        let late = |_| BoxError::from(format!("no TLS within {} s", SECURE_WITHIN.as_secs()));
        async move { timeout(SECURE_WITHIN, secured).await.map_err(late)? }.boxed()
    });
    let http = legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTION)
        .http1_max_buf_size(READ_AT_ONCE)
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(ANSWER_PING_WITHIN)
        .http2_initial_stream_window_size(UNREAD)
        .http2_initial_connection_window_size(UNREAD_IN_ALL)
        .build::<_, Body>(tls);
    let agent = agent.clone();
    let service = http.map_request(move |mut request: Request<Body>| {
        request.headers_mut().insert(USER_AGENT, agent.clone());
        if let Some(token) = &token {
            request.headers_mut().insert(AUTHORIZATION, token.header());
        }
        request
    });
    let service = option_layer(plugin).layer(service.map_err(BoxError::from));
    let service = config.extra_headers_layer().map_err(|e| problem(e.into()))?.layer(service);
    let service = config.base_uri_layer().layer(service);
    Ok(Connection::new(service))
}

/// Whether a token leaves this host unencrypted.
fn shows_token(config: &Config) -> bool {
    let host = config.cluster_url.host().unwrap_or_default().trim_matches(['[', ']']);
    let stays = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    let has_token = config.auth_info.token.is_some() || config.auth_info.token_file.is_some();
    config.cluster_url.scheme_str() == Some("http") && has_token && !stays
}

fn host_and_port(url: &Uri) -> String {
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    format!("{}:{port}", url.host().unwrap_or_default())
}

/// As [`ConfigExt::rustls_https_connector_with_connector`], which offers HTTP/1.1 alone.
fn https(config: &Config) -> Result<HttpsConnector<HttpConnector>, BoxError> {
    let mut tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone()).map_err(|_| format!("the name {name:?} is none of a server"))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(tls.enable_all_versions().wrap_connector(connector()))
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    connector.set_keepalive(Some(DEAD_AFTER / 3));
    connector.set_keepalive_interval(Some(DEAD_AFTER / 6));
    connector.set_keepalive_retries(Some(4));
    limit_silence(&mut connector, DEAD_AFTER);
    connector
}
