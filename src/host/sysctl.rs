//! `/proc/sys`, in the namespace of the calling thread.

use std::fs;
use std::path::PathBuf;

use crate::{Error, Result};

/// Writes `value` to the sysctl named by `key`, one part per directory: an interface name may
/// hold dots. Does not write when the sysctl already has this value.
pub fn set(key: &[&str], value: &str) -> Result<()> {
    let failed = |verb| move |problem| Error::Sysctl { verb, key: key.join("."), problem };
    if key.iter().any(|part| part.is_empty() || part.contains(['/', '\0']) || *part == "." || *part == "..") {
        return Err(failed("write")(std::io::ErrorKind::InvalidInput.into()));
    }
    let path: PathBuf = ["/proc/sys"].iter().chain(key).collect();
    if fs::read_to_string(&path).map_err(failed("read"))?.trim() == value {
        return Ok(());
    }
    fs::write(&path, value).map_err(failed("write"))
}

/// Writes `net.<family>.conf.<link>.<key>`; the family is `ipv4` or `ipv6`.
pub fn set_link(family: &str, link: &str, key: &str, value: &str) -> Result<()> {
    set(&["net", family, "conf", link, key], value)
}

/// Reads `net.<family>.conf.<link>.<key>`.
pub fn get_link(family: &str, link: &str, key: &str) -> Result<String> {
    let failed = |problem| Error::Sysctl { verb: "read", key: format!("net.{family}.conf.{link}.{key}"), problem };
    let path: PathBuf = ["/proc/sys/net", family, "conf", link, key].iter().collect();
    Ok(fs::read_to_string(path).map_err(failed)?.trim().to_owned())
}

/// Sets the link's value to the one that a new link would get.
pub fn inherit(family: &str, link: &str, key: &str) -> Result<()> {
    let failed = |problem| Error::Sysctl { verb: "read", key: format!("net.{family}.conf.default.{key}"), problem };
    let value = fs::read_to_string(format!("/proc/sys/net/{family}/conf/default/{key}")).map_err(failed)?;
    set_link(family, link, key, value.trim())
}
