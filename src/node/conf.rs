//! The network configuration that tells the container runtime to use us. Its presence makes the
//! kubelet report the node ready, so it is there exactly while pods can be wired.
//!
//! Where the runtime has the plugin `portmap`, it is chained behind ours: it serves pods' `hostPort`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Error, Result};

/// Our plugin alone.
const FILE: &str = "10-ovn-kubernetes.conf";
/// Ours and `portmap`; runtimes tell a list by its ending.
const LIST: &str = "10-ovn-kubernetes.conflist";
const NAME: &str = "ovn-kubernetes";
const VERSION: &str = "0.4.0";

/// Where the configuration goes and what it says.
#[derive(Debug, Clone)]
pub struct CniConf {
    /// `/etc/cni/net.d`.
    pub dir: PathBuf,
    /// The runtime's plugin directory: `/opt/cni/bin`.
    pub plugins: PathBuf,
    /// File name of the shim in that directory.
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

    /// File name and content.
    fn wanted(&self) -> (&'static str, String) {
        if !self.plugins.join("portmap").exists() {
            return (FILE, self.text());
        }
        let portmap = json!({ "type": "portmap", "capabilities": { "portMappings": true }, "snat": true });
        let list = json!({ "cniVersion": VERSION, "name": NAME, "plugins": [self.plugin(), portmap] });
        (LIST, list.to_string())
    }

    pub(crate) fn text(&self) -> String {
        let mut plugin = self.plugin();
        if let Some(plugin) = plugin.as_object_mut() {
            plugin.insert("cniVersion".to_owned(), VERSION.into());
            plugin.insert("name".to_owned(), NAME.into());
        }
        plugin.to_string()
    }

    fn plugin(&self) -> Value {
        json!({
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
    }

    /// Whole or not at all; a file that is right already stays untouched.
    pub(crate) fn write(&self) -> Result<()> {
        let (file, text) = self.wanted();
        let path = self.dir.join(file);
        if !fs::read_to_string(&path).is_ok_and(|have| have == text) {
            let failed = |source| Error::WriteConf { path: path.clone(), source };
            fs::create_dir_all(&self.dir).map_err(failed)?;
            // not *.conf: the runtime must not read half of it
            let new = self.dir.join(format!(".{file}.new"));
            replace(&new, &path, &text).map_err(failed)?;
        }
        // the first of both would count
        self.remove_file(if file == FILE { LIST } else { FILE })
    }

    /// A file that is not there is fine.
    pub(crate) fn remove(&self) -> Result<()> {
        self.remove_file(FILE).and(self.remove_file(LIST))
    }

    fn remove_file(&self, file: &str) -> Result<()> {
        let path = self.dir.join(file);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::WriteConf { path, source }),
            _ => Ok(()),
        }
    }
}

fn replace(new: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}
