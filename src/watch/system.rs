//! What unix has of files and connections that Windows has not.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;

/// Distinguishes versions of a file: modification time in s and ns, and inode.
pub(crate) type Stamp = (i64, i64, u64);

pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.mtime(), about.mtime_nsec(), about.ino()))
}

/// Ends connections to a host that has acknowledged nothing for so long.
pub(crate) fn limit_silence(connector: &mut HttpConnector, limit: Duration) {
    connector.set_tcp_user_timeout(Some(limit));
}
