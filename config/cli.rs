//! What is printed about settings: `ovnkube config` and help.

use std::io;

use serde::Serialize;

use crate::Loaded;

pub use crate::flags::{documented, help};

/// One line of `ovnkube config -o json`.
#[derive(Debug, Serialize)]
struct Row<'a> {
    section: &'a str,
    key: &'a str,
    value: &'a str,
    source: &'a str,
}

/// Writes every effective value and its layer: a table, or a JSON array of
/// `{section, key, value, source}`. Secrets that are set are `***`.
pub fn run_config(loaded: &Loaded, json: bool, out: &mut impl io::Write) -> io::Result<()> {
    let rows = loaded.sources.iter().map(|one| Row {
        section: one.setting.section,
        key: one.setting.name(),
        value: one.shown(),
        source: one.source.word(),
    });
    if json {
        serde_json::to_writer_pretty(&mut *out, &rows.collect::<Vec<_>>())?;
        return writeln!(out);
    }
    writeln!(out, "{:<22} {:<42} {:<40} SOURCE", "SECTION", "KEY", "VALUE")?;
    for (row, one) in rows.zip(&loaded.sources) {
        let section = if row.section.is_empty() { "(command line)" } else { row.section };
        let value = row.value.escape_debug().to_string();
        writeln!(out, "{section:<22} {:<42} {value:<40} {}", row.key, one.source)?;
    }
    Ok(())
}
