//! Logging: one line per event, to stderr or to a file that rotates.

use std::io::{self, IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

use ovnkube_log_file::{Limits, LogFile, timestamp};
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
    let layer = fmt::layer::<Registry>();
    let layer = match &settings.file {
        None => layer.with_ansi(stderr().is_terminal()).with_writer(Mutex::new(Lines::to(stderr(), None))).boxed(),
        Some(path) => {
            let file = Lines::to(log_file(path.clone(), settings.limits)?, Some(path.clone()));
            layer.with_ansi(false).with_writer(Mutex::new(file)).boxed()
        }
    };
    tracing_subscriber::registry().with(layer.with_filter(filter)).try_init().map_err(|_| Error::LoggingTwice)
}

pub(crate) fn log_file(path: PathBuf, limits: Limits) -> Result<LogFile, Error> {
    LogFile::open(path.clone(), limits).map_err(|problem| Error::LogFile { path, problem })
}

/// Where lines go. One that cannot be written, such as when the disk is full, is lost: the process goes on. The first of them is
/// reported on stderr; the next one that can be written follows a line that says how many there were.
#[derive(Debug)]
pub(crate) struct Lines<W> {
    to: W,
    /// `None` is stderr, which cannot report itself.
    file: Option<PathBuf>,
    lost: u64,
}

impl<W: Write> Lines<W> {
    pub(crate) fn to(to: W, file: Option<PathBuf>) -> Self {
        Self { to, file, lost: 0 }
    }

    fn try_write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.lost > 0 {
            // part of the last line may have been written
            let text = format!(
                "\n{}  WARN ovnkube: {} lines before this one are lost\n",
                timestamp(SystemTime::now()),
                self.lost
            );
            self.to.write_all(text.as_bytes())?;
            self.lost = 0;
        }
        self.to.write_all(line)
    }
}

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(problem) = self.try_write(line) {
            self.lost += 1;
            if let Some(path) = self.file.as_ref().filter(|_| self.lost == 1) {
                let now = timestamp(SystemTime::now());
                let path = path.display();
                let _ = writeln!(
                    stderr(),
                    "{now} ERROR ovnkube: cannot write log file {path}: {problem}; lines are lost until that is possible"
                );
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
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
