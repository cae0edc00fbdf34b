//! What a setting is: one row says its INI name, flag, environment variable, default, help and type.
//!
//! ```text
//!                 ┌─▶ clap arguments, --help
//!   settings! ────┼─▶ file keys, `ovnkube config`, the sample file, docs/configuration.md
//!   (settings.rs) └─▶ struct Settings, typed, one small struct per section
//! ```
//! The macro makes the rows and the typed structs from the same lines, so they cannot drift apart.

/// One thing a person can set.
#[derive(Debug)]
pub struct Setting {
    /// INI section; empty for what only the command line can say.
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
    /// Built-in value, as a person would write it.
    pub default: &'static str,
    /// One sentence for help, sample file and docs.
    pub help: &'static str,
    /// Smallest and largest allowed number.
    pub range: Option<(i64, i64)>,
    /// Whether setting it has its effect in this version.
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
    /// Text, with the word that stands for it in help.
    Text(&'static str),
}

/// How far a setting has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Does what it says.
    Works,
    /// Parsed and checked; a value other than the default has no effect yet.
    Later,
    /// Accepted so that old command lines start; the text says why it does nothing.
    Ignored(&'static str),
}

impl Setting {
    /// What an attribute is when a row does not name it.
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

    /// How messages call it: `[default] mtu (--mtu)`, so that it is found in either place.
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
}

/// Makes the typed structs, `Settings` and the table `SETTINGS` from one list.
///
/// Per section: `/// heading`, `field: Struct, "ini section" { rows }`.
/// Per row: `/// help`, `field: Type { attribute: value, … }`.
macro_rules! settings {
    ($(
        #[doc = $heading:literal]
        $group:ident: $Group:ident, $section:literal {
            $( #[doc = $help:literal] $field:ident: $Type:ty { $($attribute:ident: $value:expr),* $(,)? } )*
        }
    )*) => {
        $(
            #[doc = $heading]
            #[derive(Debug, Clone, PartialEq)]
            // fields are called as their keys are
            #[allow(clippy::struct_excessive_bools, clippy::struct_field_names)]
            pub struct $Group { $( #[doc = $help] pub $field: $Type, )* }
        )*

        /// Everything that was set, checked, with defaults filled in.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            /// Which parts of ovnkube run in this process.
            pub mode: $crate::Mode,
            /// How the Kubernetes API is reached.
            pub kube_access: $crate::KubeAccess,
            /// How the northbound database is reached.
            pub nb: $crate::Database,
            /// How the southbound database is reached.
            pub sb: $crate::Database,
            /// Somebody set the pods' MTU; else each node takes what its uplink leaves.
            pub mtu_is_given: bool,
            $( #[doc = $heading] pub $group: $Group, )*
        }

        impl Settings {
            /// Types every value of the table; `typed` is asked row by row, in the order of the table.
            pub(crate) fn resolve(layered: &$crate::layers::Layered) -> Result<Self, $crate::Error> {
                let mut rows = SETTINGS.iter();
                Ok(Self {
                    mode: $crate::Mode::default(),
                    kube_access: $crate::KubeAccess::default(),
                    nb: $crate::Database::default(),
                    sb: $crate::Database::default(),
                    mtu_is_given: layered.get("default", "mtu").is_some_and(|one| one.source != $crate::Source::Default),
                    $( $group: $Group { $( $field: layered.typed(rows.next())?, )* }, )*
                })
            }
        }

        /// Every setting, in the order of help and docs.
        pub static SETTINGS: &[$crate::table::Setting] = &[ $( $(
            $crate::table::Setting {
                section: $section,
                help: $help,
                kind: <$Type as $crate::values::FromText>::KIND,
                $( $attribute: $value, )*
                ..$crate::table::Setting::BLANK
            },
        )* )* ];

        /// Headings of the sections: `(INI section, heading)`, in the order of help and docs.
        pub static HEADINGS: &[(&str, &str)] = &[ $( ($section, $heading), )* ];
    };
}
pub(crate) use settings;

/// The nearest of `names` to a mistyped one, if any is near enough to be meant.
pub(crate) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // nobody means one of ours by a page of text, and comparing it would take long
    if typed.len() > 64 {
        return None;
    }
    names
        .map(|name| (strsim::jaro_winkler(&typed.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
