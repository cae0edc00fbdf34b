//! The kernel's answers on an rtnetlink socket, and their deadline: [`failed`] and [`is`] accept only what passed
//! through [`in_time`], so no request waits without end for an answer that was lost. The kernel carries a request out while
//! it is sent: one that hangs in there is beyond this deadline.

use std::io;

use futures::{Stream, TryStreamExt};
use nix::errno::Errno;
use tokio::time::timeout;

use crate::Error;
use crate::program::LIMIT;

/// Why a request got no good answer.
#[derive(Debug)]
pub(crate) enum Fault {
    Kernel(rtnetlink::Error),
    /// An answer is lost when the socket's buffer is full.
    Late,
}

type Answer<T> = std::result::Result<T, Fault>;

/// Waits for the next message of an answer, or for the acknowledgement of a change.
pub(crate) async fn in_time<T>(answer: impl Future<Output = std::result::Result<T, rtnetlink::Error>>) -> Answer<T> {
    timeout(LIMIT, answer).await.map_err(|_| Fault::Late)?.map_err(Fault::Kernel)
}

pub(crate) async fn first<T>(
    messages: impl Stream<Item = std::result::Result<T, rtnetlink::Error>>,
) -> Answer<Option<T>> {
    in_time(std::pin::pin!(messages).try_next()).await
}

/// The limit is for each message: a list may be long.
pub(crate) async fn all<T>(messages: impl Stream<Item = std::result::Result<T, rtnetlink::Error>>) -> Answer<Vec<T>> {
    let mut messages = std::pin::pin!(messages);
    let mut all = Vec::new();
    while let Some(message) = in_time(messages.try_next()).await? {
        all.push(message);
    }
    Ok(all)
}

pub(crate) fn is(fault: &Fault, errno: Errno) -> bool {
    matches!(fault, Fault::Kernel(rtnetlink::Error::NetlinkError(message)) if message.raw_code() == -(errno as i32))
}

pub(crate) fn failed(what: String, fault: Fault) -> Error {
    let problem = match fault {
        Fault::Late => return Error::Silent { what },
        Fault::Kernel(rtnetlink::Error::NetlinkError(message)) => message.to_io(),
        Fault::Kernel(other) => io::Error::other(other),
    };
    Error::Netlink { what, problem }
}
