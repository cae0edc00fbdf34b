//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from. Ordered: a later source overrides an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Built in.
    Default,
    /// Files of the pod's service account.
    ServiceAccount,
    /// Environment variable of this name.
    Env(String),
    /// File and line.
    File(PathBuf, usize),
    /// Command line.
    Flag,
}

impl Source {
    /// `flag`, `file`, `env`, `serviceaccount` or `default`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::ServiceAccount => "serviceaccount",
            Self::Env(_) => "env",
            Self::File(..) => "file",
            Self::Flag => "flag",
        }
    }

    /// 0 for the default, up to 4 for a flag.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::ServiceAccount => 1,
            Self::Env(_) => 2,
            Self::File(..) => 3,
            Self::Flag => 4,
        }
    }

    /// The text that the layering engine keeps as a value's origin.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::Env(name) => format!("env {name}"),
            Self::File(path, line) => format!("file {line} {}", path.display()),
            other => other.word().to_owned(),
        }
    }

    pub(crate) fn from_origin(origin: &str) -> Self {
        let (word, rest) = origin.split_once(' ').unwrap_or((origin, ""));
        match word {
            "flag" => Self::Flag,
            "env" => Self::Env(rest.to_owned()),
            "serviceaccount" => Self::ServiceAccount,
            "file" => {
                let (line, path) = rest.split_once(' ').unwrap_or(("0", rest));
                Self::File(path.into(), line.parse().unwrap_or(0))
            }
            _ => Self::Default,
        }
    }
}

/// For messages: names the file and line, or the variable.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::ServiceAccount => f.write_str("the service account"),
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Flag => f.write_str("flag"),
        }
    }
}
