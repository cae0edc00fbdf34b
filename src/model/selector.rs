//! Label selectors.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Labels, Name};

/// Longest name part of a label key, and longest value.
const LONGEST: usize = 63;
/// Longest text of a selector that may name address sets, bytes. Each set has it twice, and a selector has many sets if it
/// is used with named ports.
pub(crate) const LONGEST_TEXT: usize = 10_000;
/// How many values of a label are few.
const FEW_VALUES: usize = 50;
/// Longest prefix of a label key.
const LONGEST_PREFIX: usize = 253;

/// Selects objects by labels: all requirements must hold. An empty selector selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Selector {
    /// `matchLabels`, by key.
    pub labels: Vec<(Name, Name)>,
    /// `matchExpressions`, sorted by their text.
    pub expressions: Vec<Requirement>,
}

/// One of `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requirement {
    pub key: Name,
    pub operator: Operator,
    /// Sorted; empty for operators that look only at the key.
    pub values: Vec<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    In,
    /// Also holds for objects without the label.
    NotIn,
    Exists,
    DoesNotExist,
}

/// A selector as it was written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectorFields {
    pub match_labels: Option<BTreeMap<String, String>>,
    pub match_expressions: Option<Vec<RequirementFields>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RequirementFields {
    pub key: String,
    pub operator: String,
    pub values: Option<Vec<String>>,
}

impl Selector {
    /// Parses a selector; fails if any part of it is invalid.
    pub fn parse(fields: &SelectorFields) -> Result<Self, String> {
        let mut selector = Self::default();
        for (key, value) in fields.match_labels.iter().flatten() {
            check_key(key).and_then(|()| check_value(value)).map_err(|problem| format!("matchLabels: {problem}"))?;
            selector.labels.push((key.as_str().into(), value.as_str().into()));
        }
        for fields in fields.match_expressions.iter().flatten() {
            let requirement = Requirement::parse(fields).map_err(|problem| format!("matchExpressions: {problem}"))?;
            selector.expressions.push(requirement);
        }
        selector.expressions.sort_by_cached_key(ToString::to_string);
        Ok(selector)
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|requirement| requirement.holds(labels))
    }

    /// Whether it requires a label with one of a few values, which most objects do not have.
    pub(crate) fn is_specific(&self) -> bool {
        let is_narrow = |e: &Requirement| e.operator == Operator::In && e.values.len() <= FEW_VALUES;
        !self.labels.is_empty() || self.expressions.iter().any(is_narrow)
    }

    /// Whether its text is too long for names of address sets.
    pub(crate) fn is_long(&self) -> bool {
        self.to_string().len() > LONGEST_TEXT
    }

    /// True if it selects everything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.expressions.is_empty()
    }
}

impl Requirement {
    fn parse(fields: &RequirementFields) -> Result<Self, String> {
        let key = &fields.key;
        check_key(key)?;
        let mut values: Vec<Name> = fields.values.iter().flatten().map(|v| v.as_str().into()).collect();
        values.sort();
        let (operator, wants_values) = match fields.operator.as_str() {
            "In" => (Operator::In, true),
            "NotIn" => (Operator::NotIn, true),
            "Exists" => (Operator::Exists, false),
            "DoesNotExist" => (Operator::DoesNotExist, false),
            other => {
                return Err(format!(
                    "operator {other:?} of {key} is not known; write In, NotIn, Exists or DoesNotExist"
                ));
            }
        };
        if wants_values == values.is_empty() {
            let needs = if wants_values { "needs values" } else { "takes no values" };
            return Err(format!("operator {} of {key} {needs}", fields.operator));
        }
        values.iter().try_for_each(|value| check_value(value))?;
        Ok(Self { key: key.as_str().into(), operator, values })
    }

    fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let listed = || value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// The text by which ovn-kubernetes names address sets: `LS{ML:{app: client,},}`. Labels contain none of
/// these brackets, so different selectors have different texts.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LS{")?;
        if !self.labels.is_empty() {
            f.write_str("ML:{")?;
            self.labels.iter().try_for_each(|(key, value)| write!(f, "{key}: {value},"))?;
            f.write_str("},")?;
        }
        if !self.expressions.is_empty() {
            let texts: Vec<_> = self.expressions.iter().map(ToString::to_string).collect();
            write!(f, "ME:{{{}}},", texts.join(","))?;
        }
        f.write_str("}")
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LSR{{Key:{},Operator:{:?},Values:[{}],}}", self.key, self.operator, self.values.join(" "))
    }
}

/// `name` or `prefix/name`.
fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_prefix = |prefix: &str| {
        let part = |part: &str| is_word(part, |b| b == b'-') && !part.bytes().any(|b| b.is_ascii_uppercase());
        prefix.len() <= LONGEST_PREFIX && prefix.split('.').all(part)
    };
    if name.len() <= LONGEST && is_word(name, |b| b"-_.".contains(&b)) && prefix.is_none_or(is_prefix) {
        return Ok(());
    }
    Err(format!("{key:?} is not a label key: letters, digits, -, _ and ., at most 63, and a DNS prefix before a /"))
}

fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || value.len() <= LONGEST && is_word(value, |b| b"-_.".contains(&b)) {
        return Ok(());
    }
    Err(format!("{value:?} is not a label value: letters, digits, -, _ and ., at most 63"))
}

/// Whether a text begins and ends with a letter or digit and has only these and `between` inside.
fn is_word(text: &str, between: impl Fn(u8) -> bool) -> bool {
    let plain = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    plain(bytes.first()) && plain(bytes.last()) && bytes.iter().all(|b| b.is_ascii_alphanumeric() || between(*b))
}
