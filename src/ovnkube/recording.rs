//! Recordings of every input of the controller, to reproduce elsewhere what it did. A bug report is a
//! recording; a recording is a test case.
//!
//! One JSON value per line: first the settings, then each change as it came.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek as _, Write};
use std::path::Path;

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

/// Opens a file to record to; its previous content is lost.
pub(crate) fn create(path: &Path) -> Result<File> {
    File::create(path)
        .map_err(|e| anyhow!("cannot record to {}: {e}; set record to a file in a writable directory", path.display()))
}

/// Records what passes, in place of the file's content: the world starts over, too. If the file cannot be
/// written, the recording ends and the work goes on.
pub(crate) fn record(
    file: &File,
    network: &NetworkSettings,
    kinds: &[Kind],
    mut from: mpsc::Receiver<Change>,
) -> mpsc::Receiver<Change> {
    let header = Header { network: network.clone(), kinds: kinds.to_vec() };
    let mut file = start_over(file, &header)
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

fn start_over(file: &File, header: &Header) -> Result<BufWriter<File>> {
    let mut file = file.try_clone()?;
    file.set_len(0)?;
    file.rewind()?;
    let mut file = BufWriter::new(file);
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
    let mut lines = BufReader::new(file).lines();
    let first = lines.next().with_context(|| format!("cannot read recording {name}: it is empty"))??;
    let header: Header = serde_json::from_str(&first)
        .with_context(|| format!("cannot read {name}:1: it is not the beginning of a recording"))?;
    let mut world = World::new(header.network, header.kinds);
    for (number, line) in lines.enumerate() {
        // the last line of a process that was killed may be cut off
        match serde_json::from_str(&line?) {
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
