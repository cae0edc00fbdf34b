//! What Windows has in place of it.

use std::os::windows::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;

/// Distinguishes versions of a file: times of modification and creation, and size.
pub(crate) type Stamp = (u64, u64, u64);

pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.last_write_time(), about.creation_time(), about.file_size()))
}

/// Windows has no limit for what is not acknowledged: keepalive ends connections to a host that is gone.
pub(crate) fn limit_silence(_: &mut HttpConnector, _: Duration) {}
