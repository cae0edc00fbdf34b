//! The log file named in the network configuration (`logFile`, `logLevel`, `logfile-max*`).

use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use ovnkube_log_file::{Limits, LogFile, timestamp};
use serde_json::Value;

pub(crate) const ERROR: u64 = 2;
pub(crate) const INFO: u64 = 4;

/// Appends one line when `conf` names a log file that can be written. A log must never fail a pod, so every error is
/// dropped.
pub(crate) fn write(conf: &Value, level: u64, line: &str) {
    let Some(path) = conf.get("logFile").and_then(Value::as_str).map(Path::new).filter(|path| path.is_absolute())
    else {
        return;
    };
    if level > number(conf, "logLevel").unwrap_or(INFO) {
        return;
    }
    // one line stays one line, whatever the runtime passed
    let line = line.replace(char::is_control, " ");
    if let Ok(mut file) = LogFile::open(path.to_owned(), limits(conf)) {
        let word = if level == ERROR { "ERROR" } else { "INFO" };
        let _ = file.write_all(format!("{} {word} {line}\n", timestamp(SystemTime::now())).as_bytes());
    }
}

fn limits(conf: &Value) -> Limits {
    let default = Limits::default();
    Limits {
        size_mb: number(conf, "logfile-maxsize").unwrap_or(default.size_mb),
        backups: number(conf, "logfile-maxbackups").map_or(default.backups, |n| n.try_into().unwrap_or(0)),
        age_days: number(conf, "logfile-maxage").unwrap_or(default.age_days),
    }
}

/// Numbers may come as JSON strings: `logLevel` does.
fn number(conf: &Value, key: &str) -> Option<u64> {
    let value = conf.get(key)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
