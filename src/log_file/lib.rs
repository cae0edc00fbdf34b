//! A log file that is rotated when it is full: `ovnkube.log` becomes `ovnkube-2026-11-21T08-23-11.123.log`, as
//! lumberjack names it. Several processes may write to one file.

use std::ffi::OsStr;
use std::fs::{File, metadata, read_dir, remove_file, rename};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use system::{identity, open};

#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
mod time;

pub use time::timestamp;

/// How far the names of files may be ahead of the clock: each is later than the one before, even if several are put aside at a time.
const AHEAD: Duration = Duration::from_secs(1);

/// The values of `logfile-maxsize`, `logfile-maxbackups` and `logfile-maxage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A file of this size, MiB, is rotated; 0 means 100.
    pub size_mb: u64,
    /// Rotated files that are kept; 0 keeps all.
    pub backups: usize,
    /// Rotated files that are older are removed; 0 keeps them.
    pub age_days: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { size_mb: 100, backups: 5, age_days: 5 }
    }
}

/// Writes lines; a rotation splits none of them.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    /// `None` after the file could not be opened again; the next line tries again.
    file: Option<File>,
    /// Bytes that a file may have.
    largest: u64,
    backups: usize,
    age: Option<Duration>,
    /// The time of the last rotation: each name is later than the one before.
    last: SystemTime,
}

impl LogFile {
    /// Opens the file to append to it, or creates it. Its directory must exist.
    pub fn open(path: PathBuf, limits: Limits) -> io::Result<Self> {
        let Limits { size_mb, backups, age_days } = limits;
        let megabytes = if size_mb == 0 { 100 } else { size_mb };
        let age = (age_days > 0).then(|| Duration::from_secs(age_days.saturating_mul(86_400)));
        Self::with(path, megabytes.saturating_mul(1024 * 1024), backups, age)
    }

    fn with(path: PathBuf, largest: u64, backups: usize, age: Option<Duration>) -> io::Result<Self> {
        let file = open(&path)?;
        // a link to the file is no place for others; and /dev/stdout may be one
        let path = path.canonicalize().unwrap_or(path);
        Ok(Self { path, file: Some(file), largest, backups, age, last: UNIX_EPOCH })
    }

    /// Opens the file again if another process has put it aside. Returns its bytes, also those that others wrote.
    fn follow(&mut self) -> io::Result<u64> {
        let there = metadata(&self.path).ok().map(|metadata| identity(&metadata));
        let known = self.file.as_ref().map(File::metadata).transpose()?;
        match known.filter(|known| Some(identity(known)) == there) {
            Some(known) => Ok(known.len()),
            None => Ok(self.file.insert(open(&self.path)?).metadata()?.len()),
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        // One process puts a file aside; the others find another file there afterwards. They do not wait for it: it may
        // be stopped.
        let about = file.metadata()?;
        if about.is_file() && file.try_lock().is_ok() && identity(&metadata(&self.path)?) == identity(&about) {
            self.last = SystemTime::now().max(self.last + Duration::from_millis(1));
            rename(&self.path, self.aside(self.last))?;
            self.prune();
        }
        Ok(())
    }

    /// The name of the file that is rotated now.
    fn aside(&self, mut now: SystemTime) -> PathBuf {
        let (prefix, suffix) = self.affixes();
        loop {
            let path = self.path.with_file_name(format!("{prefix}{}{suffix}", time::stamp(now)));
            if !path.exists() {
                return path;
            }
            now += Duration::from_millis(1);
        }
    }

    /// Removes files that are too old or too many. If that fails, only disk space is lost.
    fn prune(&self) {
        let now = SystemTime::now();
        let oldest = self.age.and_then(|age| now.checked_sub(age)).map(time::stamp);
        // The clock was wrong when later ones were put aside. Those of the right time are newer, for it is right now.
        let latest = time::stamp(now.max(self.last) + AHEAD);
        let mut aside = self.put_aside();
        aside.sort_by(|a, b| (a.0 > latest).cmp(&(b.0 > latest)).then_with(|| b.cmp(a)));
        for (index, (stamp, path)) in aside.iter().enumerate() {
            let is_old = oldest.as_ref().is_some_and(|oldest| stamp < oldest);
            if is_old || (self.backups > 0 && index >= self.backups) {
                let _ = remove_file(path);
            }
        }
    }

    fn put_aside(&self) -> Vec<(String, PathBuf)> {
        let directory = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (prefix, suffix) = self.affixes();
        let entries = read_dir(directory).into_iter().flatten().flatten();
        let stamped = |path: PathBuf| {
            let stamp = path.file_name()?.to_str()?.strip_prefix(&prefix)?.strip_suffix(&suffix)?;
            time::is_stamp(stamp).then(|| (stamp.to_owned(), path.clone()))
        };
        entries.filter_map(|entry| stamped(entry.path())).collect()
    }

    /// What precedes and follows the time in the name of a rotated file.
    fn affixes(&self) -> (String, String) {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let suffix = self.path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
        (text(self.path.file_stem()) + "-", suffix)
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let size = self.follow()?;
        if size > 0 && size + line.len() as u64 > self.largest {
            // better a file that is too long than no log
            let _ = self.rotate();
            self.follow()?;
        }
        let Some(file) = &mut self.file else { return Ok(0) };
        file.write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), File::flush)
    }
}

#[cfg(test)]
mod tests;
