//! The network configuration that makes the container runtime use the agent. Its presence makes the
//! kubelet report the node ready, so it is written when pods can be wired. It stays while the agent
//! runs: without it a runtime cannot stop pods either. Where the runtime uses STATUS, it also stays when the agent ends.
//!
//! Where the runtime has the plugin `portmap`, it is chained after ours: it implements pods' `hostPort`.
//!
//! A runtime uses the newest CNI version of `cniVersions` that it supports, for every plugin of the list. From 1.1.0 on
//! it uses STATUS and GC. A runtime that does not know `cniVersions` uses `cniVersion`.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ovnkube_host::cni;
use ovnkube_node_plan::cni_conf::{FILE, OLD};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::{Error, Result};

pub(crate) const NAME: &str = "ovn-kubernetes";
const VERSION: &str = "0.4.0";
/// `cniVersions`, oldest first.
pub(crate) const OFFERS: &[&str] = &[VERSION, "1.0.0", "1.1.0"];
const PORTMAP: &str = "portmap";
/// The pause before a plugin that did not answer is asked again: it grows, since all waits for the answer.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

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
        json!({
            "cniVersion": VERSION,
            "cniVersions": offers,
            // a pod whose CHECK fails, as while no agent runs, has no address for CRI-O, and the kubelet starts it again
            "disableCheck": true,
            "name": NAME,
            "plugins": plugins,
        })
        .to_string()
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
        let text = self.text(portmap.versions(self).await.as_deref());
        let path = self.dir.join(FILE);
        if !fs::read_to_string(&path).is_ok_and(|have| have == text) {
            let failed = |problem| Error::Conf { verb: "write", path: path.clone(), problem };
            fs::create_dir_all(&self.dir).map_err(failed)?;
            // not *.conflist: the runtime must not read half of it
            let new = self.dir.join(new_file());
            replace(&new, &path, &text).map_err(|problem| {
                let _ = fs::remove_file(&new);
                failed(problem)
            })?;
        }
        self.remove_file(OLD)
    }

    /// The file, if [`CniConf::write`] would change it.
    pub(crate) async fn to_be_written(&self) -> Option<PathBuf> {
        let text = self.text(Portmap::default().versions(self).await.as_deref());
        let path = self.dir.join(FILE);
        (!fs::read_to_string(&path).is_ok_and(|have| have == text)).then_some(path)
    }

    /// The versions in the file that is there, if portmap is among its plugins: they are what that supported.
    fn written_versions(&self) -> Option<Vec<String>> {
        let have: Value = serde_json::from_str(&fs::read_to_string(self.dir.join(FILE)).ok()?).ok()?;
        let has_portmap = have.get("plugins")?.as_array()?.iter().any(|plugin| plugin["type"] == PORTMAP);
        let versions = have.get("cniVersions")?.as_array()?;
        has_portmap.then(|| versions.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Removes the agent's file; no error when it does not exist. [`OLD`] stays, also when the host is cleaned up: it was removed when
    /// the agent's was written, so whoever wrote it since then, or before an agent that was never ready, uses it.
    pub(crate) fn remove(&self) -> Result<()> {
        // an agent that was killed leaves what it was writing
        self.remove_file(FILE).and(self.remove_file(&new_file()))
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
    /// The file that answered, and the versions that it supports; empty: it does not report any.
    answered: Option<(Identity, Vec<String>)>,
    silent: Option<Silent>,
}

/// A file that did not answer: at boot a node may be too busy.
#[derive(Debug)]
struct Silent {
    file: Identity,
    ask_again: Instant,
    pause: Duration,
}

/// Device, inode, size, and time of the last change of content or owner.
type Identity = [i64; 6];

impl Portmap {
    /// The supported versions; a file that has answered is not asked again. Until it answers, those of the configuration of
    /// before, else the oldest alone. `None`: there is no such plugin.
    async fn versions(&mut self, conf: &CniConf) -> Option<Vec<String>> {
        let path = conf.plugins.join(PORTMAP);
        let Some(now) = identity(&path) else {
            *self = Self::default();
            return None;
        };
        if self.known(now).is_some() {
            // another file that was there for a while was silent
            self.silent = None;
        } else if self.silent.as_ref().is_none_or(|silent| silent.is_over(now)) {
            self.ask(&path, now).await;
        }
        Some(self.known(now).cloned().or_else(|| conf.written_versions()).unwrap_or_default())
    }

    fn known(&self, file: Identity) -> Option<&Vec<String>> {
        self.answered.as_ref().filter(|(of, _)| *of == file).map(|(_, versions)| versions)
    }

    async fn ask(&mut self, path: &Path, file: Identity) {
        let before = self.silent.take().filter(|silent| silent.file == file);
        match cni::versions(path).await {
            Ok(versions) => self.answered = Some((file, versions)),
            Err(why) => {
                let pause = before.map_or(PAUSE, |silent| LONGEST_PAUSE.min(silent.pause * 2));
                tracing::warn!(
                    plugin = %path.display(),
                    error = %why,
                    version = VERSION,
                    again_in_s = pause.as_secs(),
                    "cannot ask a plugin for its versions of CNI; pods are started with those of before, or the oldest"
                );
                self.silent = Some(Silent { file, ask_again: Instant::now() + pause, pause });
            }
        }
    }

    /// Waits until the plugin is to be asked again.
    pub(crate) async fn ask_again(&self) {
        match &self.silent {
            Some(silent) => sleep_until(silent.ask_again).await,
            None => std::future::pending().await,
        }
    }
}

impl Silent {
    fn is_over(&self, file: Identity) -> bool {
        self.file != file || self.ask_again <= Instant::now()
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let meta = fs::metadata(path).ok()?;
    let [device, inode, size] = [meta.dev(), meta.ino(), meta.size()].map(u64::cast_signed);
    Some([device, inode, size, meta.mtime(), meta.ctime(), meta.ctime_nsec()])
}

fn new_file() -> String {
    format!(".{FILE}.new")
}

fn replace(new: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}
