//! Logging: one line per event, to stderr or to a file that rotates.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::sync::Mutex;

use ovnkube_log_file::{Limits, LogFile};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::Error;

/// Target of the last messages of a process: shown at every level.
pub const FATAL: &str = "fatal";

/// How much is logged, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// 5 debug, 4 info, 3 warnings, 2 errors, 1 fatal errors only.
    pub level: u8,
    /// `None` is stderr.
    pub file: Option<PathBuf>,
    pub limits: Limits,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: 4, file: None, limits: Limits::default() }
    }
}

/// Starts logging; only once in a process.
pub fn start_logging(settings: &LogSettings) -> Result<(), Error> {
    let filter = filter(settings.level)?;
    let layer = match &settings.file {
        None => fmt::layer().with_ansi(stderr().is_terminal()).with_writer(stderr).boxed(),
        Some(path) => {
            let file = log_file(path.clone(), settings.limits)?;
            fmt::layer::<Registry>().with_ansi(false).with_writer(Mutex::new(file)).boxed()
        }
    };
    tracing_subscriber::registry().with(layer.with_filter(filter)).try_init().map_err(|_| Error::LoggingTwice)
}

pub(crate) fn log_file(path: PathBuf, limits: Limits) -> Result<LogFile, Error> {
    LogFile::open(path.clone(), limits).map_err(|problem| Error::LogFile { path, problem })
}

/// Libraries log only warnings and errors: their debug output would drown ours.
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
