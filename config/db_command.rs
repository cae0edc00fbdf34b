//! The words of `ovnkube db`.

use std::path::PathBuf;

use crate::Error;
use crate::database::{DbAddress, Remote};
use crate::values::FromText as _;

/// One of the two databases of OVN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    North,
    South,
}

/// What is asked about the servers of the databases, or of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DbCommand {
    /// Print how the servers are: of both databases, if none is named.
    Status {
        side: Option<Side>,
        json: bool,
    },
    Do(Side, DbStep),
}

/// A step that changes a file, a server or a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DbStep {
    Backup(PathBuf),
    Restore(PathBuf),
    Compact,
    /// This host's member, or one that is lost.
    Leave(Option<String>),
    Join(Raft),
    Replace(Raft),
    /// With the contents of a backup, if one is named.
    Bootstrap(Remote, Option<PathBuf>),
    /// To the schema of a file, or to the one of this host's OVN.
    Convert(Option<PathBuf>),
}

/// Where members reach this host, and where it reaches them; if nothing is given, at the same port of the hosts that clients
/// use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raft {
    pub local: Remote,
    pub others: Vec<Remote>,
}

const LOCAL: &str = "this host's address for members, such as tcp:10.0.0.1:6643";
const ACTIONS: &str = "status, backup, restore, compact, leave, join, replace, bootstrap and convert";

/// The words after `db`.
pub(crate) fn parse<'a>(words: &mut impl Iterator<Item = &'a str>, json: bool) -> Result<DbCommand, Error> {
    let usage = |problem: String| Error::Usage(format!("db {problem}; ovnkube db --help tells more"));
    let action = words.next().ok_or_else(|| usage(format!("needs to know what to do: {ACTIONS}")))?;
    let side = match words.next() {
        None => None,
        Some("nb") => Some(Side::North),
        Some("sb") => Some(Side::South),
        Some(word) => return Err(usage(format!("{action}: {word:?} is no database; write nb or sb"))),
    };
    if action == "status" {
        return Ok(DbCommand::Status { side, json });
    }
    if json {
        return Err(usage("prints JSON with status only; leave -o out".to_owned()));
    }
    // an empty word is most likely a variable that was not set: leave would remove another member than the one that is meant
    let mut more = |what: &str| match words.next() {
        Some("") => Err(usage(format!("{action}: {what} is empty; write it, or leave the quotes out"))),
        word => Ok(word),
    };
    let known = ["backup", "restore", "compact", "leave", "join", "replace", "bootstrap", "convert"];
    if !known.contains(&action) {
        return Err(usage(format!("{action:?} is none of {ACTIONS}")));
    }
    let side = side.ok_or_else(|| usage(format!("{action} needs a database; write nb or sb")))?;
    let needed = |what: &str, word: Option<&'a str>| word.ok_or_else(|| usage(format!("{action} needs {what}")));
    let step = match action {
        "backup" => DbStep::Backup(needed("the file to write", more("the file")?)?.into()),
        "restore" => DbStep::Restore(needed("the file of a backup", more("the file")?)?.into()),
        "compact" => DbStep::Compact,
        "leave" => DbStep::Leave(more("the member to remove")?.map(str::to_owned)),
        "join" | "replace" => {
            let local = local(needed(LOCAL, more("this host's address")?)?).map_err(usage)?;
            let others = more("the list of the members' addresses")?;
            let others = others.map(addresses).transpose().map_err(usage)?.unwrap_or_default();
            let raft = Raft { local, others };
            if action == "join" { DbStep::Join(raft) } else { DbStep::Replace(raft) }
        }
        "bootstrap" => {
            let local = local(needed(LOCAL, more("this host's address")?)?).map_err(usage)?;
            DbStep::Bootstrap(local, more("the file of a backup")?.map(PathBuf::from))
        }
        _ => DbStep::Convert(more("the file of the schema")?.map(PathBuf::from)),
    };
    Ok(DbCommand::Do(side, step))
}

fn addresses(text: &str) -> Result<Vec<Remote>, String> {
    DbAddress::from_text(text).map(|list| list.0)
}

fn local(text: &str) -> Result<Remote, String> {
    match <[Remote; 1]>::try_from(addresses(text)?) {
        Ok([one]) => Ok(one),
        Err(_) => Err(format!("{text:?} is not one address")),
    }
}
