//! `ovnkube install-cni`: the CNI program in the host's directory.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};

/// No copy takes so long.
const ABANDONED: Duration = Duration::from_secs(600);

/// Copies `program` to the directory `to`; returns what to tell the user. A file that is being copied has a name of its own, which begins
/// with a dot: runtimes see the old or the new program.
pub(crate) fn run(program: &Path, to: &Path) -> Result<String> {
    const FAILED: &str = "cannot install the CNI program";
    let new = fs::read(program)
        .with_context(|| format!("{FAILED}: cannot read {}; name an existing one", program.display()))?;
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !to.is_dir() {
        bail!("{FAILED}: there is no directory {}; mount the host's /opt/cni/bin there", to.display());
    }
    if fs::read(to.join(&name)).is_ok_and(|have| have == new) {
        return Ok(String::new());
    }
    copy(program, to, &name).map_err(|error| {
        let remedy = "mount the host's /opt/cni/bin there, writable, with 10 MB free";
        anyhow::anyhow!("{FAILED} in {}: {error}; {remedy}", to.display())
    })?;
    Ok(format!("the CNI program is installed in {}\n", to.display()))
}

fn copy(program: &Path, to: &Path, name: &str) -> io::Result<()> {
    let unfinished = format!(".{name}.");
    // of copies that were ended; another pod may be making one, too
    for file in fs::read_dir(to)?.flatten() {
        let is_old = || file.metadata().and_then(|about| about.modified()?.elapsed().map_err(io::Error::other));
        if file.file_name().to_string_lossy().starts_with(&unfinished) && is_old().is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(file.path());
        }
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let new = to.join(format!("{unfinished}{}-{now}", std::process::id()));
    let written = fs::copy(program, &new)
        .and_then(|_| OpenOptions::new().write(true).open(&new)?.sync_all())
        .and_then(|()| fs::rename(&new, to.join(name)));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}
