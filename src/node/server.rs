//! The unix socket the shim talks to.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use crate::cni::Cni;
use crate::reply::Refusal;
use crate::request::Request;
use crate::{Error, Result};

const BODY_LIMIT: usize = 1024 * 1024;

/// How long an earlier agent that is ending may still listen, or a program that it was just starting.
const ENDING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);
/// How long an agent without a lock takes from its last answer until its files are removed.
const REMOVING: Duration = Duration::from_millis(500);

/// Listens at `path`. The directory is restricted to root before the socket is created. Fails if another agent has the
/// directory. The lock must be held until this agent's files are removed: before that, the next one would lose its own.
pub(crate) async fn listen(path: &Path) -> Result<(UnixListener, File)> {
    let failed = |problem| Error::Socket { path: path.to_owned(), problem };
    let dir = path.parent().unwrap_or(Path::new("/"));
    private_dir(dir).map_err(failed)?;
    // of the directory itself: that works where no file can be written, and the kernel ends it with the process
    let lock = File::open(dir).map_err(failed)?;
    let free = async {
        while !is_locked(&lock)? {
            sleep(LOOK).await;
        }
        // an agent of an earlier release has no lock
        let mut was_served = false;
        while is_served(path).await {
            was_served = true;
            sleep(LOOK).await;
        }
        Ok(was_served)
    };
    let free = timeout(ENDING, free).await.map_err(|_| Error::SecondAgent { path: path.to_owned() })?;
    if free.map_err(failed)? {
        sleep(REMOVING).await;
    }
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    Ok((listener, lock))
}

/// Locks it, unless another process has.
fn is_locked(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(problem)) => Err(problem),
    }
}

/// Whether an agent listens at the socket; waits until it answers then, whatever its answer is.
pub async fn answers(path: &Path) -> Result<bool> {
    let failed = |problem| Error::Socket { path: path.to_owned(), problem };
    let mut stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => return Ok(false),
        // it is stopped, and has no room for more connections
        Err(e) => return Err(failed(e)),
    };
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await.map_err(failed)?;
    stream.read_u8().await.map_err(failed)?;
    Ok(true)
}

/// Whether a process listens at the socket, even one that is stopped and has no room for more connections.
async fn is_served(path: &Path) -> bool {
    match UnixStream::connect(path).await {
        Ok(_) => true,
        Err(e) => e.kind() == io::ErrorKind::WouldBlock,
    }
}

fn private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = fs::symlink_metadata(dir)?;
    if !meta.is_dir() || meta.uid() != nix::unistd::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} is not a directory of the user who runs this", dir.display()),
        ));
    }
    fs::set_permissions(dir, Permissions::from_mode(0o700))
}

/// Serves until the process ends.
pub(crate) async fn serve(listener: UnixListener, cni: Arc<Cni>) -> io::Result<()> {
    let routes = Router::new()
        .route("/", post(request))
        // of a process whose tasks run
        .route("/healthz", get(async || StatusCode::OK))
        // a shim of ovn-kubernetes reports its metrics here; they are ignored, since the agent measures itself
        .route("/metrics", post(async || StatusCode::OK))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(cni);
    axum::serve(RootOnly(listener), routes).await
}

async fn request(State(cni): State<Arc<Cni>>, body: Bytes) -> Response {
    let request = match Request::decode(&body) {
        Ok(request) => request,
        Err(refusal) => {
            log(&refusal);
            return refused(&refusal);
        }
    };
    let span = request.span();
    let answer = async move { cni.serve(request).await.inspect_err(log) };
    // on a separate task: a shim that disconnects must not leave a half-wired pod
    match tokio::spawn(answer.instrument(span)).await {
        Ok(Ok(result)) => Json(json!({ "Result": result })).into_response(),
        Ok(Err(refusal)) => refused(&refusal),
        Err(died) => {
            let refusal = Refusal::failed(format!("cannot answer the request: {died}"));
            log(&refusal);
            refused(&refusal)
        }
    }
}

fn log(refusal: &Refusal) {
    tracing::warn!(code = refusal.code, error = %refusal, "CNI request refused");
}

fn refused(refusal: &Refusal) -> Response {
    (StatusCode::BAD_REQUEST, [("cni-code", refusal.code.to_string())], refusal.text.clone()).into_response()
}

/// Drops connections of users other than root, even if the file's mode was changed.
struct RootOnly(UnixListener);

impl axum::serve::Listener for RootOnly {
    type Io = UnixStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (UnixStream, SocketAddr) {
        loop {
            let (stream, address) = axum::serve::Listener::accept(&mut self.0).await;
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == 0 => return (stream, address),
                Ok(peer) => tracing::warn!(uid = peer.uid(), "CNI connection refused: not root"),
                Err(e) => tracing::warn!(error = %e, "CNI connection refused: its user is not known"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
