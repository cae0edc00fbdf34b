//! `ovnkube install-cni`, and the first step of a node agent in a pod: the CNI program in the host's directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};

/// Copies `program` to the directory `to`, under the name by which runtimes look for it; returns what to tell the user. A file that is being copied has a name of its own, which begins
/// with a dot: runtimes see the old or the new program.
pub(crate) fn run(program: &Path, to: &Path, name: &str) -> Result<String> {
    const FAILED: &str = "cannot install the CNI program";
    let new = fs::read(program)
        .with_context(|| format!("{FAILED}: cannot read {}; name an existing one", program.display()))?;
    if !to.is_dir() {
        bail!("{FAILED}: there is no directory {}; mount the host's /opt/cni/bin there", to.display());
    }
    remove_unfinished(to, name);
    let mode = fs::metadata(program)?.permissions();
    if is_there(&to.join(name), &new, &mode) {
        return Ok(String::new());
    }
    let copied = match copy(&new, &mode, to, name) {
        // another process, which starts just now, took it for one that was ended
        Err(error) if error.kind() == io::ErrorKind::NotFound => copy(&new, &mode, to, name),
        copied => copied,
    };
    copied.map_err(|error| {
        let remedy = "mount the host's /opt/cni/bin there, writable, with 10 MB free";
        anyhow::anyhow!("{FAILED} in {}: {error}; {remedy}", to.display())
    })?;
    Ok(format!("the CNI program is installed in {}\n", to.display()))
}

/// Whether the runtime would run this program. A link leads elsewhere on the host than in this process' container.
fn is_there(path: &Path, contents: &[u8], mode: &fs::Permissions) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.permissions() == *mode);
    is_file && fs::read(path).is_ok_and(|have| have == contents)
}

/// Removes what copies left that were ended. One that another process makes is locked.
fn remove_unfinished(dir: &Path, name: &str) {
    let abandoned = |path: &Path| {
        let is_file = fs::symlink_metadata(path).is_ok_and(|about| about.is_file());
        is_file && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
    };
    for file in fs::read_dir(dir).into_iter().flatten().flatten() {
        if is_unfinished(&file.file_name().to_string_lossy(), name) && abandoned(&file.path()) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Whether it is a name that [`copy`] gives: of a process and a time.
fn is_unfinished(file: &str, name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let rest = file.strip_prefix('.').and_then(|rest| rest.strip_prefix(name)).and_then(|rest| rest.strip_prefix('.'));
    rest.and_then(|rest| rest.split_once('-')).is_some_and(|(pid, time)| number(pid) && number(time))
}

fn copy(contents: &[u8], mode: &fs::Permissions, to: &Path, name: &str) -> io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let new = to.join(format!(".{name}.{}-{now}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&new)?;
    let written = write(file, contents, mode, &new).and_then(|_lock| fs::rename(&new, to.join(name)));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// Returns the lock of the file. Nobody has it open for writing then: the kernel starts no such program.
fn write(mut file: File, contents: &[u8], mode: &fs::Permissions, path: &Path) -> io::Result<File> {
    let lock = File::open(path)?;
    lock.lock()?;
    file.write_all(contents)?;
    fs::set_permissions(path, mode.clone())?;
    file.sync_all()?;
    Ok(lock)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

    use super::*;

    /// A program that is open for writing does not start (ETXTBSY), and pods start at any moment.
    #[test]
    fn the_program_gets_its_name_when_it_is_closed() {
        let dir = ovnkube_tests::dir::fresh_dir("install-cni");
        let (from, to) = (dir.join("shim"), dir.join("bin"));
        fs::create_dir(&to).unwrap();
        fs::write(&from, "program").unwrap();
        let watch = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        watch.add_watch(&to, AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_MOVED_TO).unwrap();
        run(&from, &to, "plugin").unwrap();
        let events: Vec<_> = watch.read_events().unwrap().into_iter().map(|event| event.mask).collect();
        assert_eq!(events, [AddWatchFlags::IN_CLOSE_WRITE, AddWatchFlags::IN_MOVED_TO]);
        fs::remove_dir_all(dir).unwrap();
    }

    /// On the host, a link may lead nowhere that leads to the program in the container; and runtimes run only what is executable.
    #[test]
    fn a_link_or_a_file_that_does_not_run_is_replaced() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let dir = ovnkube_tests::dir::fresh_dir("install-cni-link");
        let (from, to) = (dir.join("shim"), dir.join("bin"));
        fs::create_dir(&to).unwrap();
        fs::write(&from, "program").unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o755)).unwrap();
        let mode = || {
            fs::symlink_metadata(to.join("plugin")).map(|about| (about.is_file(), about.permissions().mode() & 0o777))
        };
        symlink(&from, to.join("plugin")).unwrap();
        assert!(!run(&from, &to, "plugin").unwrap().is_empty());
        assert_eq!(mode().unwrap(), (true, 0o755));
        fs::set_permissions(to.join("plugin"), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(!run(&from, &to, "plugin").unwrap().is_empty());
        assert_eq!(mode().unwrap(), (true, 0o755));
        assert!(run(&from, &to, "plugin").unwrap().is_empty(), "it is there");
        fs::remove_dir_all(dir).unwrap();
    }
}
