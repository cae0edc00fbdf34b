//! A log file that is put aside when it is full: `ovnkube.log` becomes
//! `ovnkube-2026-11-21T08-23-11.123.log`, as lumberjack names it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, read_dir, remove_file, rename};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const STAMP: &str = "%Y-%m-%dT%H-%M-%S%.3f";

/// Writes lines; none is cut by a rotation.
#[derive(Debug)]
pub(crate) struct Rotating {
    path: PathBuf,
    /// `None` after the file could not be opened again; the next line tries anew.
    file: Option<File>,
    /// Bytes in the file.
    size: u64,
    largest: u64,
    /// Files put aside that are kept, 0 for all.
    backups: usize,
    age: Option<SignedDuration>,
    /// When a file was put aside last: names must go up.
    last: Timestamp,
}

impl Rotating {
    pub(crate) fn open(path: PathBuf, largest: u64, backups: usize, age: Option<Duration>) -> io::Result<Self> {
        let file = open(&path)?;
        let size = file.metadata()?.len();
        let age = age.and_then(|age| age.try_into().ok());
        Ok(Self { path, file: Some(file), size, largest, backups, age, last: Timestamp::UNIX_EPOCH })
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file = None;
        self.last = Timestamp::now().max(self.last + Duration::from_millis(1));
        let aside = self.aside(self.last);
        rename(&self.path, aside)?;
        self.prune();
        Ok(())
    }

    /// Where the file goes that is put aside now.
    fn aside(&self, mut now: Timestamp) -> PathBuf {
        let (prefix, suffix) = self.affixes();
        loop {
            let path = self.path.with_file_name(format!("{prefix}{}{suffix}", now.strftime(STAMP)));
            if !path.exists() {
                return path;
            }
            now += Duration::from_millis(1);
        }
    }

    /// Removes what is too old or too many. Nothing is lost if that fails but disk space.
    fn prune(&self) {
        let mut aside = self.put_aside();
        aside.sort_by(|a, b| b.cmp(a));
        for (index, (when, path)) in aside.iter().enumerate() {
            let old = self.age.is_some_and(|age| Timestamp::now().duration_since(*when) > age);
            if old || (self.backups > 0 && index >= self.backups) {
                let _ = remove_file(path);
            }
        }
    }

    fn put_aside(&self) -> Vec<(Timestamp, PathBuf)> {
        let directory = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (prefix, suffix) = self.affixes();
        let entries = read_dir(directory).into_iter().flatten().flatten();
        let stamped = |path: PathBuf| {
            let stamp = path.file_name()?.to_str()?.strip_prefix(&prefix)?.strip_suffix(&suffix)?;
            let when = DateTime::strptime(STAMP, stamp).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
            Some((when, path))
        };
        entries.filter_map(|entry| stamped(entry.path())).collect()
    }

    /// What comes before and after the time in the name of a file put aside.
    fn affixes(&self) -> (String, String) {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let suffix = self.path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
        (text(self.path.file_stem()) + "-", suffix)
    }
}

impl Write for Rotating {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.size > 0 && self.size + line.len() as u64 > self.largest && self.rotate().is_err() {
            // better a file that is too long than no log
            self.size = 0;
        }
        if self.file.is_none() {
            let file = open(&self.path)?;
            self.size = file.metadata()?.len();
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(0) };
        file.write_all(line)?;
        self.size += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), File::flush)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
