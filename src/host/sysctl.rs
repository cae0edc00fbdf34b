//! `/proc/sys`, in the namespace of the calling thread.

use std::fs;
use std::path::PathBuf;

use crate::{Error, Result};

/// Writes `value` to the sysctl named by `key`, one part per directory: an interface name may
/// hold dots. A value that is already there is not written.
pub fn set(key: &[&str], value: &str) -> Result<()> {
    let failed = |source| Error::Sysctl { key: key.join("."), source };
    if key.iter().any(|part| part.is_empty() || part.contains(['/', '\0']) || *part == "." || *part == "..") {
        return Err(failed(std::io::ErrorKind::InvalidInput.into()));
    }
    let path: PathBuf = ["/proc/sys"].iter().chain(key).collect();
    if fs::read_to_string(&path).map_err(failed)?.trim() == value {
        return Ok(());
    }
    fs::write(&path, value).map_err(failed)
}

/// `net.<family>.conf.<link>.<key>` for family `ipv4` or `ipv6`.
pub fn set_link(family: &str, link: &str, key: &str, value: &str) -> Result<()> {
    set(&["net", family, "conf", link, key], value)
}

/// As it is.
pub fn get_link(family: &str, link: &str, key: &str) -> Result<String> {
    let failed = |source| Error::Sysctl { key: format!("net.{family}.conf.{link}.{key}"), source };
    let path: PathBuf = ["/proc/sys/net", family, "conf", link, key].iter().collect();
    Ok(fs::read_to_string(path).map_err(failed)?.trim().to_owned())
}

/// Gives the link what a new link would have.
pub fn inherit(family: &str, link: &str, key: &str) -> Result<()> {
    let failed = |source| Error::Sysctl { key: format!("net.{family}.conf.default.{key}"), source };
    let value = fs::read_to_string(format!("/proc/sys/net/{family}/conf/default/{key}")).map_err(failed)?;
    set_link(family, link, key, value.trim())
}
