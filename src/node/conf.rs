//! The network configuration that tells the container runtime to use us. Its presence makes the
//! kubelet report the node ready, so it is there exactly while pods can be wired.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::{Error, Result};

const FILE: &str = "10-ovn-kubernetes.conf";

/// Where the configuration goes and what it says.
#[derive(Debug, Clone)]
pub struct CniConf {
    /// `/etc/cni/net.d`.
    pub dir: PathBuf,
    /// File name of the shim in the runtime's plugin directory.
    pub plugin: String,
    pub log_file: String,
    pub log_level: u32,
    /// MiB.
    pub log_max_size: u32,
    pub log_max_backups: u32,
    /// Days.
    pub log_max_age: u32,
}

impl CniConf {
    /// The plugin's name is run by the runtime as root: it must not lead out of its directory.
    pub(crate) fn check(&self) -> Result<()> {
        let bad =
            self.plugin.is_empty() || self.plugin.contains(['/', '\0']) || self.plugin == "." || self.plugin == "..";
        if bad { Err(Error::PluginName { name: self.plugin.clone() }) } else { Ok(()) }
    }

    pub(crate) fn text(&self) -> String {
        json!({
            "cniVersion": "0.4.0",
            "name": "ovn-kubernetes",
            "type": self.plugin,
            "ipam": {},
            "dns": {},
            "logFile": self.log_file,
            "logLevel": self.log_level.to_string(),
            "logfile-maxsize": self.log_max_size,
            "logfile-maxbackups": self.log_max_backups,
            "logfile-maxage": self.log_max_age,
            "runtimeConfig": {},
        })
        .to_string()
    }

    /// Whole or not at all; a file that is right already stays untouched.
    pub(crate) fn write(&self) -> Result<()> {
        let path = self.path();
        let text = self.text();
        if fs::read_to_string(&path).is_ok_and(|have| have == text) {
            return Ok(());
        }
        let failed = |source| Error::WriteConf { path: path.clone(), source };
        fs::create_dir_all(&self.dir).map_err(failed)?;
        // not *.conf: the runtime must not read half of it
        let new = self.dir.join(format!(".{FILE}.new"));
        replace(&new, &path, &text).map_err(failed)
    }

    /// A file that is not there is fine.
    pub(crate) fn remove(&self) -> Result<()> {
        match fs::remove_file(self.path()) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::WriteConf { path: self.path(), source })
            }
            _ => Ok(()),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }
}

fn replace(new: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}
