//! Precedence: flag > file > environment > service account > default, in one function.
//!
//! A layer holds only what it sets, so a flag wins even when its value equals the default.

use std::fmt;
use std::path::PathBuf;

use config::{ConfigError, Map, Value};

use crate::Error;
use crate::settings::SETTINGS;
use crate::table::{Kind, Setting};
use crate::values::FromText;

/// Where a value came from. Ordered: a later one wins over an earlier one.
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

/// The values that one layer sets.
#[derive(Clone, Default)]
pub struct Layer(Vec<(&'static Setting, String, Source)>);

/// One setting with its effective value.
#[derive(Clone)]
pub struct Effective {
    /// Its row of the table.
    pub setting: &'static Setting,
    /// Text as it was written; booleans and numbers in plain form. Secrets too: see [`Effective::shown`].
    pub(crate) text: String,
    /// Layer that gave it.
    pub source: Source,
}

/// All settings, in the order of the table.
#[derive(Debug, Clone)]
pub struct Layered(Vec<Effective>);

// === impl Source ===

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

    /// The form that travels through the layering engine as a value's origin.
    fn origin(&self) -> String {
        match self {
            Self::Env(name) => format!("env {name}"),
            Self::File(path, line) => format!("file {line} {}", path.display()),
            other => other.word().to_owned(),
        }
    }

    fn from_origin(origin: &str) -> Self {
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

/// For a person: names the file and line, or the variable.
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

// === impl Layer ===

impl Layer {
    /// Adds a value; of two for one setting the later counts.
    pub(crate) fn set(&mut self, setting: &'static Setting, text: impl Into<String>, source: Source) {
        self.0.push((setting, text.into(), source));
    }

    /// What the layer says about the setting with this title.
    pub(crate) fn text(&self, title: &str) -> Option<&str> {
        self.0.iter().rev().find(|(setting, ..)| setting.title() == title).map(|(_, text, _)| text.as_str())
    }

    /// The layer of built-in values, which has all of them.
    fn defaults() -> Self {
        Self(SETTINGS.iter().map(|setting| (setting, setting.default.to_owned(), Source::Default)).collect())
    }
}

/// Without the texts: one of them may be a token.
impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(setting, ..)| setting.title())).finish()
    }
}

impl config::Source for Layer {
    fn clone_into_box(&self) -> Box<dyn config::Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        let value = |text: &String, source: &Source| Value::new(Some(&source.origin()), text.as_str());
        Ok(self.0.iter().map(|(setting, text, source)| (setting.path(), value(text, source))).collect())
    }
}

// === impl Layered ===

/// Puts the layers over each other.
pub(crate) fn layered(service_account: Layer, env: Layer, file: Layer, flags: Layer) -> Result<Layered, Error> {
    let mut sections = config::Config::builder()
        .add_source(Layer::defaults())
        .add_source(service_account)
        .add_source(env)
        .add_source(file)
        .add_source(flags)
        .build()?
        .cache
        .into_table()?;
    let mut effective = Vec::new();
    let mut tables: Map<String, Map<String, Value>> = Map::new();
    for setting in SETTINGS {
        let path = setting.path();
        let (section, key) = path.split_once('.').unwrap_or(("", &path));
        if let Some(table) = sections.remove(section) {
            tables.insert(section.to_owned(), table.into_table()?);
        }
        let Some(value) = tables.get_mut(section).and_then(|table| table.remove(key)) else { continue };
        let source = value.origin().map_or(Source::Default, Source::from_origin);
        effective.push(Effective { setting, text: value.into_string()?, source });
    }
    Ok(Layered(effective))
}

impl Layered {
    /// The effective value of the setting with this section and key.
    pub(crate) fn get(&self, section: &str, name: &str) -> Option<&Effective> {
        self.0.iter().find(|one| one.setting.section == section && one.setting.name() == name)
    }

    /// Replaces a value that follows from another one.
    pub(crate) fn replace(&mut self, section: &str, name: &str, text: &str, source: Source) {
        if let Some(one) = self.0.iter_mut().find(|one| one.setting.section == section && one.setting.name() == name) {
            text.clone_into(&mut one.text);
            one.source = source;
        }
    }

    /// All values, in the order of the table.
    pub(crate) fn all(&self) -> &[Effective] {
        &self.0
    }

    /// The typed value of a row.
    pub(crate) fn typed<T: FromText>(&self, setting: Option<&'static Setting>) -> Result<T, Error> {
        let setting = setting.unwrap_or(&Setting::BLANK);
        let (text, source) = self
            .0
            .iter()
            .find(|one| std::ptr::eq(one.setting, setting))
            .map_or((setting.default, &Source::Default), |one| (one.text.as_str(), &one.source));
        check_range(setting, text)
            .and_then(|()| T::from_text(text))
            .map_err(|problem| Error::value(setting, source, text, problem))
    }
}

fn check_range(setting: &Setting, text: &str) -> Result<(), String> {
    match (setting.kind, setting.range, text.parse::<i64>()) {
        (Kind::Int, Some((least, most)), Ok(number)) if number < least || number > most => {
            Err(format!("it must be a whole number from {least} to {most}"))
        }
        _ => Ok(()),
    }
}

// === impl Effective ===

impl fmt::Debug for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {:?} ({})", self.setting.title(), self.shown(), self.source)
    }
}

impl Effective {
    /// The value for a person; `***` for a secret that is set.
    pub fn shown(&self) -> &str {
        if self.setting.secret && !self.text.is_empty() { "***" } else { &self.text }
    }
}
