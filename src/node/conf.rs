//! The network configuration that makes the container runtime use the agent. Its presence makes the
//! kubelet report the node ready, so it is written when pods can be wired. It stays until the agent
//! ends: without it a runtime cannot stop pods either.
//!
//! Where the runtime has the plugin `portmap`, it is chained after ours: it implements pods' `hostPort`.
//!
//! A runtime uses the newest CNI version of `cniVersions` that it supports, for every plugin of the list. From 1.1.0 on
//! it uses STATUS and GC. A runtime that does not know `cniVersions` uses `cniVersion`.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ovnkube_host::cni;
use ovnkube_node_plan::cni_conf::{FILE, OLD};
use serde_json::{Value, json};

use crate::{Error, Result};

pub(crate) const NAME: &str = "ovn-kubernetes";
const VERSION: &str = "0.4.0";
/// `cniVersions`, oldest first.
pub(crate) const OFFERS: &[&str] = &[VERSION, "1.0.0", "1.1.0"];
const PORTMAP: &str = "portmap";

/// Where the configuration is written and what it contains.
#[derive(Debug, Clone, Default)]
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
    /// Checks the plugin's name: the runtime runs that file as root, so it must not lead out of its directory.
    pub(crate) fn check(&self) -> Result<()> {
        let bad =
            self.plugin.is_empty() || self.plugin.contains(['/', '\0']) || self.plugin == "." || self.plugin == "..";
        if bad { Err(Error::PluginName { name: self.plugin.clone() }) } else { Ok(()) }
    }

    /// The file's content. `portmap`: the versions that this plugin supports, if it exists.
    pub(crate) fn text(&self, portmap: Option<&[String]>) -> String {
        let mut plugins = vec![self.plugin()];
        let spoken = |offer: &&str| portmap.is_none_or(|versions| versions.iter().any(|version| version == offer));
        let offers: Vec<&str> = OFFERS.iter().copied().filter(spoken).collect();
        if portmap.is_some() {
            plugins.push(json!({ "type": PORTMAP, "capabilities": { "portMappings": true }, "snat": true }));
        }
        json!({ "cniVersion": VERSION, "cniVersions": offers, "name": NAME, "plugins": plugins }).to_string()
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

    /// Writes the file atomically, and only if it differs.
    pub(crate) async fn write(&self, portmap: &mut Portmap) -> Result<()> {
        let text = self.text(portmap.versions(&self.plugins).await);
        let path = self.dir.join(FILE);
        if !fs::read_to_string(&path).is_ok_and(|have| have == text) {
            let failed = |problem| Error::Conf { verb: "write", path: path.clone(), problem };
            fs::create_dir_all(&self.dir).map_err(failed)?;
            // not *.conflist: the runtime must not read half of it
            let new = self.dir.join(format!(".{FILE}.new"));
            replace(&new, &path, &text).map_err(|problem| {
                let _ = fs::remove_file(&new);
                failed(problem)
            })?;
        }
        self.remove_file(OLD)
    }

    /// The file, if [`CniConf::write`] would change it.
    pub(crate) async fn to_be_written(&self) -> Option<PathBuf> {
        let text = self.text(Portmap::default().versions(&self.plugins).await);
        let path = self.dir.join(FILE);
        (!fs::read_to_string(&path).is_ok_and(|have| have == text)).then_some(path)
    }

    /// Removes the agent's file; no error when it does not exist. [`OLD`] stays: it was removed when the agent's was written, so
    /// whoever wrote it since then, or before an agent that was never ready, uses it.
    pub(crate) fn remove(&self) -> Result<()> {
        self.remove_file(FILE)
    }

    /// Also removes what an earlier release left.
    pub(crate) fn remove_all(&self) -> Result<()> {
        self.remove().and(self.remove_file(OLD))
    }

    fn remove_file(&self, file: &str) -> Result<()> {
        let path = self.dir.join(file);
        match fs::remove_file(&path) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                Err(Error::Conf { verb: "remove", path, problem })
            }
            _ => Ok(()),
        }
    }
}

/// What is known of the plugin `portmap`.
#[derive(Debug, Default)]
pub(crate) struct Portmap {
    /// The file that was asked, and the versions that it supports; empty: it does not report any.
    asked: Option<(Identity, Vec<String>)>,
}

/// Device, inode, size, and time of the last change of content or owner.
type Identity = [i64; 6];

impl Portmap {
    /// The supported versions; each file is asked once. `None`: there is no such plugin.
    async fn versions(&mut self, plugins: &Path) -> Option<&[String]> {
        let path = plugins.join(PORTMAP);
        let Some(now) = identity(&path) else {
            self.asked = None;
            return None;
        };
        if self.asked.as_ref().is_none_or(|(then, _)| *then != now) {
            let said = cni::versions(&path).await.unwrap_or_else(|why| {
                tracing::warn!(
                    plugin = %path.display(),
                    error = %why,
                    version = VERSION,
                    "cannot ask a plugin for its versions of CNI; pods are started with the oldest"
                );
                Vec::new()
            });
            self.asked = Some((now, said));
        }
        self.asked.as_ref().map(|(_, versions)| versions.as_slice())
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let meta = fs::metadata(path).ok()?;
    let [device, inode, size] = [meta.dev(), meta.ino(), meta.size()].map(u64::cast_signed);
    Some([device, inode, size, meta.mtime(), meta.ctime(), meta.ctime_nsec()])
}

fn replace(new: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}
