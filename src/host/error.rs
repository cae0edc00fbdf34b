//! What failed on the host.

use std::io;
use std::path::PathBuf;

use ovnkube_node_plan::host::Rule;

/// What failed on which object of the host.
///
/// As with every error here, the text is `cannot VERB OBJECT: WHY; REMEDY` and is complete, so `source()` is empty
/// unless the error is only passed on (`#[error(transparent)]`).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open network namespace {path}: {problem}")]
    OpenNetns { path: PathBuf, problem: io::Error },
    #[error("cannot open network namespace {path}: it is not a namespace file")]
    NotNetns { path: PathBuf },
    #[error("cannot open network namespace {path} for a pod: it is the node's own")]
    OwnNetns { path: PathBuf },
    #[error("cannot enter network namespace {path}: {problem}")]
    EnterNetns { path: PathBuf, problem: io::Error },
    #[error("cannot open a netlink socket: {0}")]
    Socket(io::Error),
    #[error("cannot run a thread: {0}")]
    Thread(io::Error),
    #[error("cannot {what}: {problem}")]
    Netlink { what: String, problem: io::Error },
    #[error("cannot {verb} sysctl {key}: {problem}")]
    Sysctl { verb: &'static str, key: String, problem: io::Error },
    #[error("cannot run {program}: {problem}; it comes with package {package}")]
    NoProgram { program: &'static str, package: &'static str, problem: io::Error },
    /// `code`: with which it ended; `None`: it was killed.
    #[error("cannot {what}: {program}: {said}")]
    Program { what: String, program: &'static str, said: String, code: Option<i32> },
    #[error("cannot {what}: {program} did not end within 10 s and was killed; {remedy}")]
    Hangs { what: String, program: &'static str, remedy: &'static str },
    #[error("cannot run {command} in {program}: {why}")]
    Unixctl { command: String, program: &'static str, why: String },
    #[error("cannot watch the flows of {bridge}: {problem}")]
    Watch { bridge: String, problem: io::Error },
    #[error(
        "cannot delete rule {rule}: someone else's rule with this priority, mark and table comes first, and the kernel \
         would delete that one; give that rule another priority"
    )]
    RuleAfterAnother { rule: Rule },
    #[error(
        "cannot {what}: the kernel did not answer within 10 s, or its answer was lost; the agent tries again: if this \
         repeats, see `dmesg`"
    )]
    Silent { what: String },
    #[error("cannot {what}: the kernel did not reply")]
    NoReply { what: String },
}

pub type Result<T> = std::result::Result<T, Error>;
