//! Label selectors as text: `zone=a,!gpu,tier in (web, db)`.

use crate::table::Kind;
use crate::values::FromText;

/// Conditions on labels; all must hold. Without conditions everything matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector(Vec<Condition>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Present(String),
    Absent(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

impl LabelSelector {
    /// Whether labels, given as a look-up, satisfy every condition. A label that is absent is in no set.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|condition| match condition {
            Condition::Present(key) => label(key).is_some(),
            Condition::Absent(key) => label(key).is_none(),
            Condition::In(key, values) => label(key).is_some_and(|value| values.iter().any(|one| one == value)),
            Condition::NotIn(key, values) => label(key).is_none_or(|value| values.iter().all(|one| one != value)),
        })
    }
}

impl FromText for LabelSelector {
    const KIND: Kind = Kind::Text("selector");

    fn from_text(text: &str) -> Result<Self, String> {
        parts(text)?.into_iter().map(condition).collect::<Result<_, _>>().map(Self)
    }
}

/// Splits at commas outside parentheses.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut begin, mut open) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '(' if !open => open = true,
            ')' if open => open = false,
            '(' | ')' => return Err(format!("its parentheses do not match; {FORM}")),
            ',' if !open => {
                parts.push(text.get(begin..at).unwrap_or_default());
                begin = at + 1;
            }
            _ => {}
        }
    }
    if open {
        return Err(format!("its parentheses do not match; {FORM}"));
    }
    parts.push(text.get(begin..).unwrap_or_default());
    Ok(parts)
}

const FORM: &str = "write conditions such as key, !key, key=value, key!=value, key in (a,b), with commas between";

fn condition(text: &str) -> Result<Condition, String> {
    let text = text.trim();
    if let Some((head, tail)) = text.split_once('(') {
        let set = tail.strip_suffix(')').ok_or_else(|| wrong(text))?;
        let values = set.split(',').map(|value| label_value(value, text)).collect::<Result<_, _>>()?;
        let mut words = head.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => Ok(Condition::In(label_key(key, text)?, values)),
            (Some(key), Some("notin"), None) => Ok(Condition::NotIn(label_key(key, text)?, values)),
            _ => Err(wrong(text)),
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(Condition::NotIn(label_key(key, text)?, vec![label_value(value, text)?]));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Condition::In(label_key(key, text)?, vec![label_value(value, text)?]));
    }
    match text.strip_prefix('!') {
        Some(key) => Ok(Condition::Absent(label_key(key, text)?)),
        None => Ok(Condition::Present(label_key(text, text)?)),
    }
}

fn wrong(condition: &str) -> String {
    format!("{condition:?} is not a condition on labels; {FORM}")
}

fn is_label(text: &str, also: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c) || also.contains(c))
}

fn label_key(key: &str, condition: &str) -> Result<String, String> {
    let key = key.trim();
    if key.is_empty() || !is_label(key, "/") {
        return Err(wrong(condition));
    }
    Ok(key.to_owned())
}

fn label_value(value: &str, condition: &str) -> Result<String, String> {
    let value = value.trim();
    if value.len() > 63 || !is_label(value, "") {
        return Err(wrong(condition));
    }
    Ok(value.to_owned())
}
