//! The unix socket the shim talks to.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};

use crate::cni::Cni;
use crate::reply::Refusal;
use crate::request::Request;
use crate::{Error, Result};

const BODY_LIMIT: usize = 1024 * 1024;

/// Listens at `path`. The directory is for root alone before the socket is there.
pub(crate) fn listen(path: &Path) -> Result<UnixListener> {
    let failed = |source| Error::Socket { path: path.to_owned(), source };
    private_dir(path.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

fn private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = fs::symlink_metadata(dir)?;
    if !meta.is_dir() || meta.uid() != nix::unistd::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} is not a directory of ours", dir.display()),
        ));
    }
    fs::set_permissions(dir, Permissions::from_mode(0o700))
}

/// Serves until the process ends.
pub(crate) async fn serve(listener: UnixListener, cni: Arc<Cni>) -> io::Result<()> {
    let routes = Router::new()
        .route("/", post(request))
        // what a shim of ovn-kubernetes reports about itself; we measure on our side
        .route("/metrics", post(async || StatusCode::OK))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(cni);
    axum::serve(RootOnly(listener), routes).await
}

async fn request(State(cni): State<Arc<Cni>>, body: Bytes) -> Response {
    let request = match Request::decode(&body) {
        Ok(request) => request,
        Err(refusal) => return refused(&refusal),
    };
    // on a task of its own: a shim that goes away must not leave half a pod
    match tokio::spawn(async move { cni.serve(request).await }).await {
        Ok(Ok(result)) => Json(json!({ "Result": result })).into_response(),
        Ok(Err(refusal)) => refused(&refusal),
        Err(died) => refused(&Refusal::failed(died)),
    }
}

fn refused(refusal: &Refusal) -> Response {
    tracing::warn!(code = refusal.code, "CNI request refused: {refusal}");
    (StatusCode::BAD_REQUEST, [("cni-code", refusal.code.to_string())], refusal.text.clone()).into_response()
}

/// Drops connections of other users than root, whatever the file's mode became.
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
                Err(e) => tracing::warn!("CNI connection refused: read peer credentials: {e}"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
