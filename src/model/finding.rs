//! What a check before an installation finds.

use std::fmt;

/// Something to do before ovnkube can work: one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub what: String,
    /// The object, row or file.
    pub place: String,
    pub remedy: String,
}

impl Finding {
    pub fn new(what: impl Into<String>, place: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), place: place.into(), remedy: remedy.into() }
    }
}

/// `WHAT: PLACE; REMEDY`
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, place, remedy } = self;
        let line = format!("{what}: {place}; {remedy}");
        // names come from others
        f.write_str(&line.replace(char::is_control, " "))
    }
}
