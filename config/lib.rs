//! All settings of ovnkube: flags, configuration file, environment, service account.
//!
//! ```text
//!  argv ──▶ flags ───────┐
//!  file ──▶ gcfg reader ─┤                                    ┌─▶ Settings (typed, complete)
//!  env  ──▶ variables ───┼─▶ layers (highest wins) ─▶ typed ──┤
//!  pod  ──▶ token, CA ───┤         │                validated  └─▶ Mode, KubeAccess, Database
//!  table ─▶ defaults ────┘         └─▶ `ovnkube config`: each value and its layer
//! ```
//! [`load`] does all of it and writes nothing; every mistake is one line that names the key, the value
//! and the remedy. What can be set is one list, [`settings`]; help, sample file and docs come from it.

pub mod access;
mod chosen;
pub mod cli;
mod commands;
pub mod database;
mod db_command;
pub mod env;
pub mod error;
mod event_command;
pub mod file;
pub mod flags;
mod help;
mod ic_command;
pub mod layers;
pub mod mode;
mod probe;
mod ranges;
pub mod selector;
pub mod settings;
mod source;
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
pub mod table;
mod typed;
mod validate;
pub mod values;

use std::ffi::OsString;

pub use access::{Authority, KubeAccess, Token};
pub use database::{Database, DbAddress, Remote, ServerKeys, Tls};
pub use db_command::{DbCommand, DbStep, Raft, Side};
pub use env::Places;
pub use error::Error;
pub use event_command::{EventAbout, EventCommand, EventReason};
pub use flags::{Command, DatabasePorts, IdentityFlags, WebhookFlags};
pub use ic_command::{IcCommand, Left};
pub use layers::Effective;
pub use mode::Mode;
pub use probe::Target;
pub use selector::LabelSelector;
pub use settings::Settings;
pub use source::Source;
pub use validate::election_timer_ms;
pub use values::{ClusterSubnet, Collector, EncapType, GatewayMode, NodeMode, Secret, UdnIsolation};

use layers::Layer;
use settings::SETTINGS;
use table::Stage;

/// The result of [`load`].
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Checked settings.
    pub settings: Settings,
    /// What to do.
    pub command: Command,
    /// Every setting with its text and layer, in the order of help.
    pub sources: Vec<Effective>,
    /// Things to log that do not keep ovnkube from starting: unknown keys, old names, flags without effect.
    pub warnings: Vec<String>,
}

/// Reads the command line `args` (without the program's name), the configuration file, the
/// environment and the service account, and checks the result.
///
/// For [`Command::Print`], [`Command::Replay`], [`Command::InstallCni`], [`Command::ReadinessProbe`], and [`Command::Why`] about a
/// directory, only the command line is read.
/// Files that settings name (certificates, kubeconfig) must exist for [`Command::Run`]; for [`Command::Config`] a
/// missing one is a warning.
pub fn load(
    args: impl IntoIterator<Item = OsString>,
    env: impl Fn(&str) -> Option<String>,
    places: &Places,
) -> Result<Loaded, Error> {
    let line = flags::parse(args.into_iter())?;
    let mut warnings = line.notes;
    let nothing = Layer::default;
    let merged = |all| layers::layered(SETTINGS, all);
    let layered = match line.command {
        Command::Print(_) | Command::Replay { .. } => merged([nothing(), nothing(), nothing(), nothing()])?,
        Command::Why { objects: Some(_), .. } | Command::InstallCni { .. } | Command::ReadinessProbe(_) => {
            merged([nothing(), nothing(), nothing(), line.layer])?
        }
        _ => {
            let file = file::layer(line.layer.text("--config-file"), &places.config_file, &mut warnings)?;
            let service_account = env::service_account(&places.service_account, &env);
            merged([service_account, env::layer(&env)?, file, line.layer])?
        }
    };
    let (settings, layered) = validate::resolve(layered, &line.command, &mut warnings)?;
    Ok(Loaded { settings, command: line.command, sources: layered.all().to_vec(), warnings })
}

impl Loaded {
    /// What the user must be told: unknown keys and old names, and settings without effect.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.warnings
            .iter()
            .cloned()
            .chain(self.not_yet().into_iter().map(|setting| format!("no effect yet: {setting}")))
    }

    /// Settings with a value that has no effect yet, for example `--enable-egress-ip=true`. They must be reported,
    /// or users would rely on them.
    pub fn not_yet(&self) -> Vec<String> {
        self.sources
            .iter()
            .filter(|one| one.setting.stage == Stage::Later && one.text != one.setting.default)
            .map(|one| format!("{} = {:?}", one.setting.title(), one.shown()))
            .collect()
    }
}
