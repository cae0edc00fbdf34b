//! Why ovnkube does not start: one line, with the key, the value and the remedy.

use std::io;
use std::path::PathBuf;

use crate::source::Source;
use crate::table::Setting;

/// A syntax error in a gcfg file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {problem}")]
pub struct SyntaxError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what to write.
    pub problem: &'static str,
}

/// A mistake in what was set. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line itself is wrong: unknown flag, missing value, modes that do not go together.
    #[error("cannot use the command line: {0}")]
    Usage(String),
    /// A value cannot be used.
    #[error("cannot use {value} for {title}, given by {source_text}: {problem}")]
    Value {
        /// Section, key and flag.
        title: String,
        /// The value in quotes, or `***`.
        value: String,
        /// Layer that gave it.
        source_text: String,
        /// What is wrong and what to write.
        problem: String,
    },
    /// The configuration file is not gcfg.
    #[error("cannot read {}:{error}", path.display())]
    Syntax {
        path: PathBuf,
        /// Line and problem.
        error: SyntaxError,
    },
    /// The configuration file cannot be read.
    #[error("cannot read the configuration file {:?}, given by {given_by}: {problem}", path.display().to_string())]
    File {
        path: PathBuf,
        /// `--config-file` or `default`.
        given_by: &'static str,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The layers could not be merged.
    #[error("cannot merge the layers of settings: {0}")]
    Layers(config::ConfigError),
}

impl From<config::ConfigError> for Error {
    fn from(error: config::ConfigError) -> Self {
        Self::Layers(error)
    }
}

impl Error {
    /// 2 for a wrong command line, 1 for a wrong value or file.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::Usage(_)) { 2 } else { 1 }
    }

    /// A value that cannot be used; a secret's text is left out.
    pub(crate) fn value(setting: &Setting, source: &Source, text: &str, problem: impl Into<String>) -> Self {
        Self::Value {
            title: setting.title(),
            value: if setting.secret { "***".to_owned() } else { format!("{text:?}") },
            source_text: source.to_string(),
            problem: problem.into(),
        }
    }
}

impl Error {
    /// Hides a value that holds a secret by mistake.
    pub(crate) fn without_value(self) -> Self {
        match self {
            Self::Value { title, source_text, problem, .. } => {
                Self::Value { title, value: "***".to_owned(), source_text, problem }
            }
            other => other,
        }
    }
}

/// An operating system's error without its number.
pub(crate) fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "reading it is not permitted".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}
