//! The files of databases on this host.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use ovnkube_db::DatabaseFile;

use super::place::{Place, is_there};

/// Every file of a database begins so.
const BEGINNING: &[u8] = b"OVSDB ";
/// A temporary file that nobody has written for so long is no running command's.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
/// How much of a file is read to find out which database it has.
const READ: u64 = 64 * 1024;

/// The file that the server on this host has open, or else the one in the usual place.
pub(crate) fn open_by(place: &Place) -> Option<DatabaseFile> {
    let path = opened(place).unwrap_or_else(|| place.file());
    let bytes = path.metadata().ok()?.len();
    let (free, read_only) = (crate::system::free(&path), crate::system::is_read_only(&path));
    Some(DatabaseFile { path: path.display().to_string(), bytes, free, read_only })
}

fn opened(place: &Place) -> Option<PathBuf> {
    let pid: u32 = std::fs::read_to_string(place.run_file("pid")).ok()?.trim().parse().ok()?;
    let open = open_files(Path::new(&format!("/proc/{pid}"))).into_iter();
    let mut databases: Vec<(PathBuf, Vec<u8>)> =
        open.filter_map(|path| Some((path.clone(), beginning(&path)?))).collect();
    let name = format!("\"name\":\"{}\"", place.database.name);
    let has_it = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&name);
    match databases.iter().position(|(_, bytes)| has_it(bytes)) {
        Some(at) => Some(databases.swap_remove(at).0),
        None if databases.len() == 1 => databases.pop().map(|(path, _)| path),
        None => None,
    }
}

/// Whether any process has it open: a server with other sockets than the usual ones.
pub(crate) fn is_open(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.into_iter().any(|process| open_files(&process.path()).contains(&path))
}

/// The files that a process has open; none where `/proc` does not tell.
fn open_files(process: &Path) -> Vec<PathBuf> {
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    // a pipe would block
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(READ).read_to_end(&mut bytes).ok()?;
    bytes.starts_with(BEGINNING).then_some(bytes)
}

/// `path` with `ending` behind its name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// The first of `path.ending`, `path.ending.2` and so on that nothing has.
pub(crate) fn unused(path: &Path, ending: &str) -> PathBuf {
    let first = beside(path, ending);
    let mut names = (1..).map(|n| if n == 1 { first.clone() } else { beside(&first, &n.to_string()) });
    names.find(|name| !is_there(name)).unwrap_or_else(|| first.clone())
}

/// A file under a name that no other command uses. It is removed when it is dropped, with those that lock it.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn beside(path: &Path, ending: &str) -> Self {
        for left in abandoned(path, ending) {
            drop(Self(left));
        }
        Self(unused(path, &format!("{ending}.{}", std::process::id())))
    }

    pub(crate) fn create(&self) -> Result<File> {
        File::create_new(&self.0).with_context(|| format!("cannot write {}", self.0.display()))
    }
}

/// Those of commands that were killed. A process that is not seen may run in another container, but no command takes so long.
fn abandoned(path: &Path, ending: &str) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let directory = path.parent().filter(|directory| *directory != Path::new("")).unwrap_or(Path::new("."));
    let is_left = |entry: &std::fs::DirEntry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        let pid = file.strip_prefix(&format!("{name}.{ending}.")).and_then(|pid| pid.parse::<u32>().ok());
        let is_old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok().map(|age| age > ABANDONED_AFTER);
        pid.is_some_and(|pid| !is_there(Path::new(&format!("/proc/{pid}")))) && is_old() == Some(true)
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(is_left).map(|entry| entry.path()).collect()
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let name = self.0.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let _ = std::fs::remove_file(&self.0);
        // ovsdb-tool writes a second file when it converts
        for locked in [format!(".{name}.~lock~"), format!(".{name}.tmp.~lock~")] {
            let _ = std::fs::remove_file(self.0.with_file_name(locked));
        }
    }
}

/// Gives a file that is complete its name: after a crash there is the whole file, or none. `replaces`: it takes the place of one.
pub(crate) fn install(new: &Path, path: &Path, replaces: bool) -> io::Result<()> {
    File::open(new)?.sync_all()?;
    if replaces {
        std::fs::rename(new, path)?;
    } else {
        give_name(new, path)?;
    }
    // some systems cannot open a directory; the name is written later there
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        directory.sync_all()?;
    }
    Ok(())
}

/// A file that another command has written meanwhile stays.
fn give_name(new: &Path, path: &Path) -> io::Result<()> {
    match std::fs::hard_link(new, path) {
        Ok(()) => std::fs::remove_file(new),
        // some file systems have no links
        Err(_) if !is_there(path) => std::fs::rename(new, path),
        Err(error) => Err(error),
    }
}

/// The members whose files may have been replaced and kept beside this one: the endings that are four digits of an id.
pub(crate) fn kept_members(path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = path.parent().and_then(|directory| std::fs::read_dir(directory).ok()).into_iter().flatten().flatten();
    let ending = |entry: std::fs::DirEntry| {
        let entry = entry.file_name().to_string_lossy().into_owned();
        entry.strip_prefix(&name)?.strip_prefix('.').map(str::to_owned)
    };
    let is_id = |ending: &String| ending.len() == 4 && ending.chars().all(|digit| digit.is_ascii_hexdigit());
    beside.filter_map(ending).filter(is_id).collect()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn files_of_commands_that_were_killed_go() {
        let directory = std::env::temp_dir().join(format!("ovnkube-abandoned-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let backup = directory.join("nb.backup");
        let make = |name: &str, hours: u64| {
            let file = File::create(directory.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(3600 * hours)).unwrap();
        };
        // no process has so high a number
        let own = format!("nb.backup.new.{}", std::process::id());
        let kept = ["nb.backup.new", "nb.backup.new.old", "nb.backup.schema.4294967295", own.as_str()];
        for name in &kept {
            make(name, 2);
        }
        make("nb.backup.new.4294967295", 2);
        make("nb.backup.new.4294967294", 0);
        let mut left = abandoned(&backup, "new");
        assert_eq!(left, [directory.join("nb.backup.new.4294967295")]);
        drop(Temporary::beside(&backup, "new"));
        left = abandoned(&backup, "new");
        assert!(left.is_empty() && directory.join("nb.backup.new.4294967294").exists());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
