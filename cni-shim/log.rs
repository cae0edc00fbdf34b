//! The log file named in the network configuration (`logFile`, `logLevel`, `logfile-max*`).

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

pub(crate) const ERROR: u64 = 2;
pub(crate) const INFO: u64 = 4;

/// Appends one line when `conf` names a log file that can be written. A log must never fail a pod,
/// so every error is dropped.
pub(crate) fn write(conf: &Value, level: u64, line: &str) {
    let Some(path) = conf.get("logFile").and_then(Value::as_str).map(Path::new).filter(|path| path.is_absolute())
    else {
        return;
    };
    if level > number(conf, "logLevel").unwrap_or(INFO) {
        return;
    }
    let _ = rotate(path, conf);
    // one line stays one line, whatever the runtime passed
    let line = line.replace(char::is_control, " ");
    if let Ok(mut file) = open(path) {
        let word = if level == ERROR { "ERROR" } else { "INFO" };
        let _ = file.write_all(format!("{} {word} {line}\n", now()).as_bytes());
    }
}

/// The file names pods: it is for root only.
fn open(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// `logFile` → `logFile.1` → `logFile.2` … when it is larger than `logfile-maxsize` MiB.
fn rotate(path: &Path, conf: &Value) -> std::io::Result<()> {
    let max_size = number(conf, "logfile-maxsize").filter(|&n| n > 0).unwrap_or(100) * 1024 * 1024;
    if fs::metadata(path)?.len() < max_size {
        return Ok(());
    }
    let backups = number(conf, "logfile-maxbackups").filter(|&n| n > 0).unwrap_or(5).min(100);
    let max_age =
        number(conf, "logfile-maxage").filter(|&n| n > 0).map(|days| Duration::from_secs(days.saturating_mul(86_400)));
    let backup = |n: u64| if n == 0 { path.to_owned() } else { PathBuf::from(format!("{}.{n}", path.display())) };
    for n in (0..backups).rev() {
        let _ = fs::rename(backup(n), backup(n + 1));
    }
    for n in 1..=backups {
        let age = fs::metadata(backup(n)).and_then(|m| m.modified()).ok().and_then(|at| at.elapsed().ok());
        if max_age.zip(age).is_some_and(|(max, age)| age > max) {
            let _ = fs::remove_file(backup(n));
        }
    }
    Ok(())
}

/// Numbers may come as JSON strings: `logLevel` does.
fn number(conf: &Value, key: &str) -> Option<u64> {
    let value = conf.get(key)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// UTC in RFC 3339, milliseconds.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, secs) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        secs / 3600,
        secs / 60 % 60,
        secs % 60,
        since.subsec_millis()
    )
}

/// Year, month, day of a day number since 1970-01-01 (Howard Hinnant's `civil_from_days`).
pub(crate) fn date(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}
