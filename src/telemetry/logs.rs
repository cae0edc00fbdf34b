//! Logging: one line per event, to stderr or to a file that rotates.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::Error;
use crate::rotate::Rotating;

/// Target of the last words of a process: shown at every level.
pub const FATAL: &str = "fatal";

/// How much is logged, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// 5 debug, 4 info, 3 warnings, 2 errors, 1 fatal errors only.
    pub level: u8,
    /// stderr without.
    pub file: Option<PathBuf>,
    /// A file of this size, MB, is put aside; 0 means 100.
    pub max_size_mb: u64,
    /// Files put aside that are kept; 0 keeps all.
    pub max_backups: usize,
    /// Files put aside longer ago are removed; 0 keeps them.
    pub max_age_days: u64,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: 4, file: None, max_size_mb: 100, max_backups: 5, max_age_days: 5 }
    }
}

/// Starts to log; once in a process.
pub fn start_logging(settings: &LogSettings) -> Result<(), Error> {
    let filter = filter(settings.level)?;
    let layer = match &settings.file {
        None => fmt::layer().with_ansi(stderr().is_terminal()).with_writer(stderr).boxed(),
        Some(path) => {
            let file = rotating(settings, path.clone())?;
            fmt::layer::<Registry>().with_ansi(false).with_writer(Mutex::new(file)).boxed()
        }
    };
    tracing_subscriber::registry().with(layer.with_filter(filter)).try_init().map_err(|_| Error::LoggingTwice)
}

pub(crate) fn rotating(settings: &LogSettings, path: PathBuf) -> Result<Rotating, Error> {
    let megabytes = if settings.max_size_mb == 0 { 100 } else { settings.max_size_mb };
    let age = (settings.max_age_days > 0).then(|| Duration::from_secs(settings.max_age_days.saturating_mul(86_400)));
    Rotating::open(path.clone(), megabytes.saturating_mul(1024 * 1024), settings.max_backups, age)
        .map_err(|problem| Error::LogFile { path, problem })
}

/// Libraries speak from warnings on only: their debug output drowns ours.
pub(crate) fn filter(level: u8) -> Result<Targets, Error> {
    let ours = match level {
        1 => LevelFilter::OFF,
        2 => LevelFilter::ERROR,
        3 => LevelFilter::WARN,
        4 => LevelFilter::INFO,
        5 => LevelFilter::DEBUG,
        other => return Err(Error::LogLevel(other)),
    };
    let libraries = ours.min(LevelFilter::WARN);
    Ok(Targets::new().with_default(libraries).with_target("ovnkube", ours).with_target(FATAL, LevelFilter::ERROR))
}
