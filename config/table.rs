//! What a setting is: one row has its INI name, flag, environment variable, default, help and type.
//!
//! ```text
//!                 ┌─▶ clap arguments, --help
//!   settings! ────┼─▶ file keys, `ovnkube config`, the sample file, docs/configuration.md
//!   (settings.rs) └─▶ struct Settings, typed, one small struct per section
//! ```
//! The macro (`typed.rs`) makes the rows and the typed structs from the same lines, so they cannot drift apart.

#[derive(Debug)]
pub struct Setting {
    /// INI section; empty for settings of the command line only.
    pub section: &'static str,
    /// INI key; for command line settings the flag's name.
    pub key: &'static str,
    /// Flag without dashes; empty for keys that only the file has.
    pub flag: &'static str,
    /// Older names of the flag: accepted, with a note.
    pub aliases: &'static [&'static str],
    /// Older `(section, key)` places in the file: accepted, with a note.
    pub old_keys: &'static [(&'static str, &'static str)],
    /// Environment variable; empty when there is none.
    pub env: &'static str,
    /// Shape of the value, for help and for the dialect of booleans and numbers.
    pub kind: Kind,
    /// Built-in value, as a user would write it.
    pub default: &'static str,
    /// One sentence for help, sample file and docs.
    pub help: &'static str,
    /// Smallest and largest allowed number.
    pub range: Option<(i64, i64)>,
    /// Whether it has an effect in this version.
    pub stage: Stage,
    /// Never shown: not in `config`, not in errors, not in `Debug`.
    pub secret: bool,
}

/// Shape of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true`/`false`; a bare flag or key means true.
    Bool,
    /// A whole number.
    Int,
    /// Text, with the placeholder for it in help.
    Text(&'static str),
}

/// How far a setting is implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It has its effect.
    Works,
    /// Parsed and checked; a value other than the default has no effect yet.
    Later,
    /// Accepted so that old command lines start; the text says why it does nothing.
    Ignored(&'static str),
}

impl Setting {
    /// The attributes that a row does not set.
    pub const BLANK: Self = Self {
        section: "",
        key: "",
        flag: "",
        aliases: &[],
        old_keys: &[],
        env: "",
        kind: Kind::Bool,
        default: "",
        help: "",
        range: None,
        stage: Stage::Works,
        secret: false,
    };

    /// Unique dotted name, the path under which the layers hold the value.
    pub fn path(&self) -> String {
        match self.section {
            "" => format!("command-line.{}", self.name()),
            section => format!("{section}.{}", self.key),
        }
    }

    /// The INI key, or the flag's name where there is no key.
    pub fn name(&self) -> &'static str {
        if self.key.is_empty() { self.flag } else { self.key }
    }

    /// The name in messages: `[default] mtu (--mtu)`, so that it is found in either place.
    pub fn title(&self) -> String {
        match (self.section, self.flag) {
            ("", flag) => format!("--{flag}"),
            (section, "") => format!("[{section}] {}", self.key),
            (section, flag) => format!("[{section}] {} (--{flag})", self.key),
        }
    }

    /// `help` on one line.
    pub fn help(&self) -> &'static str {
        self.help.trim()
    }

    /// What help says of a setting that does nothing, or nothing yet.
    pub fn stage_note(&self) -> String {
        match self.stage {
            Stage::Works => String::new(),
            Stage::Later => " (no effect yet)".to_owned(),
            Stage::Ignored(reason) => format!(" (does nothing: {reason})"),
        }
    }
}

/// The nearest of `names` to a mistyped one, if any is near enough.
pub(crate) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // a long text is no typo, and comparing it would take long
    if typed.len() > 64 {
        return None;
    }
    names
        .map(|name| (strsim::jaro_winkler(&typed.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
