//! What is said of a database, and how sizes are written in it.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Healthy,
    /// It works, but something is to be done.
    Degraded,
    /// It cannot be written, or clients would not see the same contents.
    Broken,
}

/// What is to be said of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    pub state: State,
    pub text: String,
    pub remedy: Option<String>,
}

impl Judgement {
    pub(crate) fn new(state: State, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = remedy.into();
        Self { state, text: text.into(), remedy: Some(remedy).filter(|remedy| !remedy.is_empty()) }
    }
}

/// For people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
