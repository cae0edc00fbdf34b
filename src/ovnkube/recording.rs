//! Recordings of every input of the controller, to reproduce elsewhere what it did. A bug report is a
//! recording; a recording is a test case.
//!
//! One JSON value per line: first the settings, then each change as it came.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use ovnkube_model::{Affected, Change, Kind, NetworkSettings, World};
use ovnkube_plan::{Key, MemberValue, PatchTarget, Want};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tracing::warn;

/// How many changes may wait in the recorder.
const CHANGES: usize = 1024;

#[derive(Serialize, Deserialize)]
struct Header {
    network: NetworkSettings,
    /// The kinds whose initial lists are awaited.
    kinds: Vec<Kind>,
}

/// Makes a file to record to. A recording that is there, of an earlier process or term, is kept once more, as `FILE.old`: it may have
/// what explains why that one ended.
pub(crate) fn create(path: &Path) -> Result<Recording> {
    let failed = |error| {
        anyhow!("cannot record to {}: {error}; set record to a new file in a writable directory", path.display())
    };
    let recording = Recording { path: path.to_owned() };
    recording.make().map_err(failed)?;
    Ok(recording)
}

/// The file of a recording.
pub(crate) struct Recording {
    path: PathBuf,
}

impl Recording {
    /// Pods are named in it, so only its owner may read it. It is new: a link that somebody put there is not followed.
    fn make(&self) -> io::Result<File> {
        match fs::symlink_metadata(&self.path) {
            Ok(about) if !about.is_file() => return Err(io::Error::other("what is there is no file")),
            Ok(about) => {
                let mut old = self.path.clone().into_os_string();
                old.push(".old");
                let moved = if about.len() > 0 { fs::rename(&self.path, old) } else { fs::remove_file(&self.path) };
                if let Err(error) = moved {
                    // it is mounted, say, or its directory may not be written
                    warn!(%error, "cannot keep the previous recording; overwriting it");
                    return File::create(&self.path);
                }
            }
            Err(_) => {}
        }
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.write(true).create_new(true).open(&self.path)
    }
}

/// Records what passes, in a new file: the world starts over, too. If it cannot be written, the recording ends and the work goes on.
pub(crate) fn record(
    recording: &Recording,
    network: &NetworkSettings,
    kinds: &[Kind],
    mut from: mpsc::Receiver<Change>,
) -> mpsc::Receiver<Change> {
    let header = Header { network: network.clone(), kinds: kinds.to_vec() };
    let mut file = start(recording, &header)
        .inspect_err(|error| warn!(%error, "cannot write the recording; going on without it"))
        .ok();
    let (to, recorded) = mpsc::channel(CHANGES);
    tokio::spawn(async move {
        while let Some(change) = from.recv().await {
            if let Some(Err(error)) = file.as_mut().map(|file| write_line(file, &change)) {
                warn!(%error, "the recording ends here");
                file = None;
            }
            if to.send(change).await.is_err() {
                return;
            }
        }
    });
    recorded
}

fn start(recording: &Recording, header: &Header) -> Result<BufWriter<File>> {
    let mut file = BufWriter::new(recording.make()?);
    write_line(&mut file, header)?;
    Ok(file)
}

fn write_line(file: &mut impl Write, line: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")?;
    // if the process is killed, the last change matters most
    Ok(file.flush()?)
}

/// Prints what a recording leads to: all rows, annotations and notices at its end.
pub(crate) fn replay(path: &Path, out: &mut impl Write) -> Result<()> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open recording {name}"))?;
    let mut lines = BufReader::new(file).split(b'\n');
    let first = lines.next().with_context(|| format!("cannot read recording {name}: it is empty"))??;
    let header: Header = serde_json::from_slice(&first)
        .with_context(|| format!("cannot read {name}:1: it is not the beginning of a recording"))?;
    let mut world = World::new(header.network, header.kinds);
    for (number, line) in lines.enumerate() {
        // the last line of a process that was killed may be cut off
        match serde_json::from_slice(&line?) {
            Ok(change) => drop(world.apply(change)),
            Err(error) => writeln!(out, "# {name}:{}: left out: {error}", number + 2)?,
        }
    }
    let mut keys = BTreeSet::new();
    ovnkube_plan::affected(&Affected::Everything, &world, &mut keys);
    for key in &keys {
        print(key, &ovnkube_plan::want(key, &world), out)?;
    }
    print_notices(&world, out)
}

fn print(key: &Key, want: &Want, out: &mut impl Write) -> Result<()> {
    if want.rows.is_empty() && want.members.is_empty() && want.patch.is_none() {
        return Ok(());
    }
    writeln!(out, "{key}")?;
    for row in &want.rows {
        writeln!(out, "  {}", row.row)?;
        for (column, keys) in row.refs.iter().filter(|(_, keys)| !keys.is_empty()) {
            let names: Vec<_> = keys.iter().map(ToString::to_string).collect();
            writeln!(out, "    {}: {}", column_name(row.key.table, *column), names.join(", "))?;
        }
    }
    for member in &want.members {
        let value = match &member.value {
            MemberValue::Row(row) => row.to_string(),
            MemberValue::Text(text) => format!("{text:?}"),
            MemberValue::Entry(entry) => format!("{:?}={:?}", entry.0, entry.1),
        };
        writeln!(out, "  {value} in {} {}", member.of, column_name(member.of.table, member.column))?;
    }
    if let Some(patch) = &want.patch {
        let target = match &patch.target {
            PatchTarget::Node(name) => format!("node {name}"),
            PatchTarget::Pod(pod) => format!("pod {pod}"),
        };
        for (annotation, value) in &patch.annotations {
            writeln!(out, "  annotate {target}: {annotation}={value}")?;
        }
    }
    Ok(())
}

fn column_name(table: &ovnkube_ovn::Table, column: ovnkube_ovn::ColumnId) -> &'static str {
    table.info(column).map_or("?", |info| info.name)
}

fn print_notices(world: &World, out: &mut impl Write) -> Result<()> {
    for notice in world.notices(&Affected::Everything) {
        writeln!(out, "event on {}: {}: {}", notice.object, notice.reason, notice.message)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_before_is_kept() {
        let dir = ovnkube_tests::dir::fresh_dir("recording");
        let path = dir.join("recording");
        fs::write(&path, "of the process that ended").unwrap();
        let recording = create(&path).unwrap();
        recording.make().unwrap().write_all(b"this term").unwrap();
        assert_eq!(fs::read_to_string(dir.join("recording.old")).unwrap(), "of the process that ended");
        recording.make().unwrap();
        assert_eq!(fs::read_to_string(dir.join("recording.old")).unwrap(), "this term");
        fs::remove_dir_all(dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = ovnkube_tests::dir::fresh_dir("recording-link");
        fs::write(dir.join("precious"), "kept").unwrap();
        std::os::unix::fs::symlink(dir.join("precious"), dir.join("link")).unwrap();
        assert!(create(&dir.join("link")).is_err());
        assert_eq!(fs::read_to_string(dir.join("precious")).unwrap(), "kept");
        create(&dir.join("new")).unwrap();
        assert_eq!(fs::metadata(dir.join("new")).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(dir).unwrap();
    }

    /// As a process leaves it that is killed within a letter.
    #[test]
    fn a_line_that_is_cut_off_is_left_out() {
        let dir = ovnkube_tests::dir::fresh_dir("recording-cut");
        let path = dir.join("recording");
        let header = Header { network: NetworkSettings::default(), kinds: vec![Kind::Node] };
        let mut file = create(&path).unwrap().make().unwrap();
        write_line(&mut file, &header).unwrap();
        file.write_all(b"{\"Node\":[\"\xc3").unwrap();
        let mut out = Vec::new();
        replay(&path, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("recording:2: left out"), "{out}");
        fs::remove_dir_all(dir).unwrap();
    }

    /// tests/release/windows replays the same file under wine. If recordings have another form now, `WRITE=1` records it anew in
    /// `a_replay_shows_what_was_written`.
    #[test]
    fn a_recording_of_before_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/release/recording");
        let mut out = Vec::new();
        replay(&path, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains("left out"), "{out}");
        assert!(out.contains(r#"name: "default_on-a""#), "{out}");
    }
}
