//! Whether the disk of the server on this host has room for what a step makes it write. One that cannot write stops, or goes on with a file
//! that lacks entries.

use crate::judgement::size;
use crate::observed::{DatabaseFile, Observed};
use crate::refused::{Verdict, refuse};

/// Whether there may be none for the file once more.
pub(crate) fn is_tight(file: &DatabaseFile) -> bool {
    file.free.is_some_and(|free| free < file.bytes)
}

/// For the file once more, beside the one that it replaces: without what its contents were before, if their size is known.
pub(crate) fn for_second(file: &DatabaseFile, contents: Option<u64>) -> Verdict<()> {
    // they may grow meanwhile; and of a server whose disk was full, the file may lack some
    let needed = contents.map_or(file.bytes, |bytes| bytes.saturating_add(bytes / 4));
    file.free.filter(|free| *free < needed).map_or(Ok(()), |free| {
        refuse(format!(
            "the server writes a second file beside {} meanwhile, which may need {}, and {} has {} left; make room there first",
            file.path,
            size(needed),
            directory(&file.path),
            size(free)
        ))
    })
}

/// For contents of so many bytes behind those that its file has, or for the same contents once more: each member writes them.
pub(crate) fn for_contents(observed: &Observed, bytes: Option<u64>) -> Verdict<()> {
    let file = observed.named_here().and_then(|(_, control)| control.file.as_ref());
    let Some((file, free)) = file.and_then(|file| Some((file, file.free?))) else { return Ok(()) };
    // it may write its file anew then, beside this one
    let needed = file.bytes.saturating_add(bytes.unwrap_or(file.bytes));
    if free >= needed {
        return Ok(());
    }
    refuse(format!(
        "each server writes all contents once more: for {}, that may need {}, and {} has {} left; make room there first, and on the disks \
         of the other members: ovnkube db status {} shows them, each on its own host",
        file.path,
        size(needed),
        directory(&file.path),
        size(free),
        observed.word()
    ))
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(directory, _)| if directory.is_empty() { "/" } else { directory })
}
