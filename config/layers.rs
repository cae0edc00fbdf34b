//! Precedence: flag > file > environment > service account > default, in one function.
//!
//! A layer holds only what it sets, so a flag wins even when its value equals the default.

use std::fmt;

use config::{ConfigError, Map, Value};

use crate::Error;
use crate::source::Source;
use crate::table::{Kind, Setting};
use crate::values::FromText;

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

// === impl Layer ===

impl Layer {
    /// Adds a value; a later one for the same setting replaces it.
    pub(crate) fn set(&mut self, setting: &'static Setting, text: impl Into<String>, source: Source) {
        self.0.push((setting, text.into(), source));
    }

    /// The layer's text for the setting with this title.
    pub(crate) fn text(&self, title: &str) -> Option<&str> {
        self.0.iter().rev().find(|(setting, ..)| setting.title() == title).map(|(_, text, _)| text.as_str())
    }

    /// The layer of built-in values, which has all settings.
    fn defaults(table: &'static [Setting]) -> Self {
        Self(table.iter().map(|setting| (setting, setting.default.to_owned(), Source::Default)).collect())
    }
}

/// Without the values: one of them may be a token.
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

/// Merges the layers of a table's settings, lowest first: service account, environment, file, flags.
pub(crate) fn layered(table: &'static [Setting], layers: [Layer; 4]) -> Result<Layered, Error> {
    let mut builder = config::Config::builder().add_source(Layer::defaults(table));
    for layer in layers {
        builder = builder.add_source(layer);
    }
    let mut sections = builder.build()?.cache.into_table()?;
    let mut effective = Vec::new();
    let mut tables: Map<String, Map<String, Value>> = Map::new();
    for setting in table {
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

    /// Replaces a value that is derived from another one.
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
    /// The value for output; `***` for a secret that is set.
    pub fn shown(&self) -> &str {
        if self.setting.secret && !self.text.is_empty() { "***" } else { &self.text }
    }
}
