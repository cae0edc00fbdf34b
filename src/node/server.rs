//! The unix socket the shim talks to.

use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::future::ready;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
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
use crate::dir_changes::DirChanges;
use crate::reply::Refusal;
use crate::request::Request;
use crate::{Error, Result, stamp};

const BODY_LIMIT: usize = 1024 * 1024;

/// How long an earlier agent that is ending may still listen, or a program that it was just starting.
const ENDING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);
/// How long an agent without a lock takes from its last answer until its files are removed.
const REMOVING: Duration = Duration::from_millis(500);

/// Listens at `path`. The directory is restricted to root before the socket is created. Fails if another agent has the
/// directory. The lock must be held until this agent's files are removed: before that, the next one would lose its own.
pub(crate) async fn listen(path: &Path) -> Result<(UnixListener, Socket)> {
    let failed = |problem| Error::Socket { path: path.to_owned(), problem };
    let dir = dir_of(path);
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
    let mut socket = Socket { path: path.to_owned(), own: None, lock };
    Ok((socket.bind()?, socket))
}

/// The shim's socket; removed with the value, and only then the directory is free for another agent.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    /// The file that this agent made and listens at: no other file gets this number meanwhile.
    own: Option<FileId>,
    lock: File,
}

/// Device and number of a file.
type FileId = (u64, u64);

impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Socket {
    /// The node is not ready any more. An agent that only starts over, or ends before it has begun, does not say that.
    pub(crate) fn forget_ready(&self) {
        let _ = fs::remove_file(stamp::path(&self.path));
    }

    /// Whether STATUS has found the node ready within this time. So the runtime uses it.
    pub(crate) fn was_ready_within(&self, patience: Duration) -> bool {
        stamp::is_recent(&stamp::path(&self.path), patience)
    }

    fn bind(&mut self) -> Result<UnixListener> {
        let failed = |problem| Error::Socket { path: self.path.clone(), problem };
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        let listener = UnixListener::bind(&self.path).map_err(failed)?;
        fs::set_permissions(&self.path, Permissions::from_mode(0o600)).map_err(failed)?;
        self.own = id(fs::symlink_metadata(&self.path));
        Ok(listener)
    }

    /// Whether the shim still finds what this agent made.
    fn is_there(&self) -> bool {
        self.own.is_some() && id(fs::symlink_metadata(&self.path)) == self.own
    }

    /// Returns when somebody has removed or replaced it.
    async fn lost(&self) {
        let changes = DirChanges::new("the CNI socket", "it is not made again if somebody removes it");
        loop {
            changes.watch(dir_of(&self.path));
            if !self.is_there() {
                return;
            }
            changes.next().await;
        }
    }

    /// Listens at a new socket. Fails if another program listens there now.
    async fn listen_again(&mut self) -> Result<UnixListener> {
        // a new file may get the number of the one that is gone
        self.own = None;
        if id(self.lock.metadata()) != id(fs::symlink_metadata(dir_of(&self.path))) {
            // the directory is another one, without a lock
            let (listener, socket) = listen(&self.path).await?;
            *self = socket;
            return Ok(listener);
        }
        if is_served(&self.path).await {
            return Err(Error::SecondAgent { path: self.path.clone() });
        }
        self.bind()
    }
}

fn dir_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn id(meta: io::Result<Metadata>) -> Option<FileId> {
    meta.ok().map(|meta| (meta.dev(), meta.ino()))
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
    Ok(status(path, "/healthz").await?.is_some())
}

/// Whether the agent that listens at the socket has found its node ready, now or a short time ago; `None`: none listens.
pub async fn has_been_ready(path: &Path) -> Result<Option<bool>> {
    // one of an earlier release does not know the question
    Ok(status(path, "/readyz").await?.map(|status| status != *b"503"))
}

/// The status that the agent at the socket answers with; `None`: none listens.
async fn status(path: &Path, question: &str) -> Result<Option<[u8; 3]>> {
    let failed = |problem| Error::Socket { path: path.to_owned(), problem };
    let mut stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => return Ok(None),
        // it is stopped, and has no room for more connections
        Err(e) => return Err(failed(e)),
    };
    stream.write_all(format!("GET {question} HTTP/1.0\r\n\r\n").as_bytes()).await.map_err(failed)?;
    stream.read_exact(&mut [0; "HTTP/1.0 ".len()]).await.map_err(failed)?;
    let mut status = [0; 3];
    stream.read_exact(&mut status).await.map_err(failed)?;
    Ok(Some(status))
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

/// Serves until the process ends, at a new socket if somebody removes the one of before.
pub(crate) async fn serve(mut listener: UnixListener, socket: &mut Socket, cni: Arc<Cni>) -> Result<()> {
    let routes = Router::new()
        .route("/", post(request))
        // of a process whose tasks run
        .route("/healthz", get(async || StatusCode::OK))
        .route("/readyz", get(|State(cni): State<Arc<Cni>>| ready(readyz(&cni))))
        // a shim of ovn-kubernetes reports its metrics here; they are ignored, since the agent measures itself
        .route("/metrics", post(async || StatusCode::OK))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(cni);
    loop {
        tokio::select! {
            served = axum::serve(RootOnly(listener), routes.clone()).into_future() => {
                return served.map_err(|problem| Error::Socket { path: socket.path.clone(), problem });
            }
            () = socket.lost() => {}
        }
        tracing::warn!(path = %socket.path.display(), "the CNI socket was removed or replaced; listening at a new one");
        listener = socket.listen_again().await?;
    }
}

/// Whether this process has wired what pods need: a configuration of the one before may still be there.
fn readyz(cni: &Cni) -> StatusCode {
    if cni.health.is_programmed() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::without_switch;

    #[tokio::test]
    async fn an_agent_is_ready_once_it_has_found_its_node_ready() {
        let root = std::env::temp_dir().join(format!("ovnkube-readyz-{}", std::process::id()));
        let path = root.join("cni/server.sock");
        assert_eq!(has_been_ready(&path).await.unwrap(), None);
        let (listener, mut socket) = listen(&path).await.unwrap();
        let cni = Arc::new(without_switch().await);
        let health = cni.health.clone();
        let asked = async {
            assert_eq!(has_been_ready(&path).await.unwrap(), Some(false));
            assert!(answers(&path).await.unwrap());
            health.set_programmed(true);
            assert_eq!(has_been_ready(&path).await.unwrap(), Some(true));
            // a comparison that has begun
            health.set_programmed(false);
            assert_eq!(has_been_ready(&path).await.unwrap(), Some(true));
        };
        tokio::select! {
            outcome = Box::pin(serve(listener, &mut socket, cni)) => panic!("{outcome:?}"),
            () = asked => {}
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[tokio::test]
    async fn a_socket_that_somebody_removes_is_made_again() {
        let root = std::env::temp_dir().join(format!("ovnkube-socket-{}", std::process::id()));
        let path = root.join("cni/server.sock");
        let (mut listener, mut socket) = listen(&path).await.unwrap();
        let remove = || fs::remove_file(&path).unwrap();
        let replace = || {
            remove();
            fs::write(&path, "").unwrap();
        };
        let remove_all = || fs::remove_dir_all(dir_of(&path)).unwrap();
        for harm in [&remove as &dyn Fn(), &replace, &remove_all] {
            let later = async {
                sleep(Duration::from_millis(50)).await;
                assert!(UnixStream::connect(&path).await.is_ok());
                harm();
            };
            let (noticed, ()) = tokio::join!(timeout(Duration::from_secs(20), socket.lost()), later);
            noticed.unwrap();
            drop(listener);
            listener = socket.listen_again().await.unwrap();
            assert!(UnixStream::connect(&path).await.is_ok());
            assert!(!is_locked(&File::open(dir_of(&path)).unwrap()).unwrap(), "the directory is this agent's");
        }
        drop(listener);
        // what another program listens at stays
        remove();
        let _other = UnixListener::bind(&path).unwrap();
        assert!(matches!(socket.listen_again().await, Err(Error::SecondAgent { .. })));
        drop(socket);
        assert!(UnixStream::connect(&path).await.is_ok());
        fs::remove_dir_all(&root).unwrap();
    }
}
