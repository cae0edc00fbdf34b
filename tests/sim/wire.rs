//! What connects a simulated master to the world: byte streams to the database, requests to the API server. Everything that
//! it sends goes to one queue; the world decides when it arrives and what becomes of it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use ovnkube_ovsdb::{Dial, Remote};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

/// Both directions of a connection.
type Halves = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// The number of a connection to the database, the same for all masters.
pub(crate) type Conn = u64;

/// What a master sends.
pub(crate) enum Sent {
    Dialed { conn: Conn, to: UnboundedSender<Vec<u8>> },
    Bytes { conn: Conn, bytes: Vec<u8> },
    Closed { conn: Conn },
    Asked { ask: Ask, reply: oneshot::Sender<Answer> },
}

impl Sent {
    pub(crate) fn is_write(&self) -> bool {
        match self {
            Self::Asked { ask, .. } => ask.is_write(),
            // one that is aborted only asks whether the server takes writes
            Self::Bytes { bytes, .. } => {
                let count = |text: &[u8]| bytes.windows(text.len()).filter(|part| *part == text).count();
                count(b"\"transact\"") > count(b"\"abort\"")
            }
            _ => false,
        }
    }
}

impl Ask {
    /// Whether it changes a node or a pod.
    pub(crate) fn is_write(&self) -> bool {
        self.method == "PATCH" && self.path.contains("/status")
    }
}

/// A request to the API server.
pub(crate) struct Ask {
    pub(crate) method: String,
    /// With the query.
    pub(crate) path: String,
    pub(crate) body: Bytes,
}

/// An answer of the API server. Dropping the sender of an answer is a connection that breaks.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Whole(Option<Bytes>),
    /// Of a watch.
    Lines(UnboundedReceiver<Bytes>),
}

/// A master's way out.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) to: UnboundedSender<Sent>,
    pub(crate) conns: Arc<AtomicU64>,
}

impl Wire {
    /// Connections to the database.
    pub(crate) fn dial(&self) -> Dial {
        let wire = self.clone();
        Arc::new(move |_: &Remote| -> Halves {
            let conn = wire.conns.fetch_add(1, Ordering::Relaxed);
            let (to, from) = tokio::sync::mpsc::unbounded_channel();
            let _ = wire.to.send(Sent::Dialed { conn, to });
            let read = Incoming { from, rest: Vec::new(), at: 0 };
            (Box::new(read), Box::new(Outgoing { conn, to: wire.to.clone() }))
        })
    }

    /// A client of the API server.
    pub(crate) fn kube(&self) -> kube::Client {
        let to = self.to.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let to = to.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.map_err(io::Error::other)?;
                let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
                let ask = Ask { method: parts.method.to_string(), path, body };
                let (reply, answer) = oneshot::channel();
                let _ = to.send(Sent::Asked { ask, reply });
                let broken = |_| io::Error::new(io::ErrorKind::ConnectionReset, "the connection broke");
                let Answer { status, body } = answer.await.map_err(broken)?;
                Response::builder().status(status).body(body).map_err(io::Error::other)
            }
        });
        kube::Client::new(service, "default")
    }
}

struct Incoming {
    from: UnboundedReceiver<Vec<u8>>,
    rest: Vec<u8>,
    at: usize,
}

impl AsyncRead for Incoming {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.at == self.rest.len() {
            // none: the other side has closed the connection
            let Some(bytes) = ready!(self.from.poll_recv(cx)) else { return Poll::Ready(Ok(())) };
            (self.rest, self.at) = (bytes, 0);
        }
        let end = self.rest.len().min(self.at + to.remaining());
        to.put_slice(&self.rest[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

struct Outgoing {
    conn: Conn,
    to: UnboundedSender<Sent>,
}

impl AsyncWrite for Outgoing {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let _ = self.to.send(Sent::Bytes { conn: self.conn, bytes: bytes.to_vec() });
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let _ = self.to.send(Sent::Closed { conn: self.conn });
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let part = match &mut *self {
            Body::Whole(bytes) => bytes.take(),
            Body::Lines(lines) => ready!(lines.poll_recv(cx)),
        };
        Poll::Ready(part.map(|bytes| Ok(Frame::data(bytes))))
    }
}
