//! The Rust files of a crate that are compiled into programs.

use std::path::Path;

use anyhow::{Context, Result};

/// Path below `folder` and text of each file whose name is not a test's, sorted.
pub(crate) fn of(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    gather(folder, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn gather(folder: &Path, below: &str, found: &mut Vec<(String, String)>) -> Result<()> {
    let read = || format!("cannot read {}", folder.display());
    for entry in folder.read_dir().with_context(read)? {
        let entry = entry.with_context(read)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{below}{name}");
        let is_test = matches!(&*name, "tests" | "tests.rs" | "examples") || name.ends_with("_tests.rs");
        if is_test || name.starts_with('.') {
            continue;
        }
        if entry.path().is_dir() {
            gather(&entry.path(), &format!("{path}/"), found)?;
        } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
            found.push((path, text));
        }
    }
    Ok(())
}
