//! The configuration file: the gcfg dialect of INI, read exactly.
//!
//! Differences from other INI readers, which is why a general one cannot be used:
//! - a key alone on its line is a boolean that is on; it never swallows the lines after it;
//! - `;` and `#` start a comment anywhere outside quotes;
//! - `"…"` may be a part of a value, with `\"`, `\\`, `\n`, `\t` inside; outside quotes a
//!   backslash may only precede a quote or the end of the line (the value continues on the next line);
//! - section and key names ignore case, a repeated section continues, the last of a repeated key counts;
//! - `[section "subsection"]` is valid syntax, although no setting uses it.

use std::fmt::{self, Write as _};
use std::io::ErrorKind;
use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use crate::Error;
pub use crate::error::SyntaxError;
use crate::error::said;
use crate::layers::Layer;
use crate::settings::SETTINGS;
use crate::source::Source;
use crate::table::{Kind, Setting, nearest};
use crate::values::{Dialect, canonical};

/// One line `key = value` or `key`, with its section. Names are as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Section name.
    pub section: String,
    /// Subsection, unquoted.
    pub subsection: Option<String>,
    /// Key.
    pub key: String,
    /// Unquoted value; `None` for a key without one.
    pub value: Option<String>,
    /// Line of the key, from 1.
    pub line: usize,
}

/// Reads a whole file. A byte order mark at the start is skipped.
pub fn parse(text: &str) -> Result<Vec<Entry>, SyntaxError> {
    let mut reader = Reader::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut section: Option<(String, Option<String>)> = None;
    let mut entries = Vec::new();
    loop {
        reader.skip_blanks();
        match reader.peek() {
            None => return Ok(entries),
            Some('\n') => reader.advance(),
            Some(';' | '#') => reader.skip_comment(),
            Some('[') => section = Some(reader.header()?),
            Some(c) if is_letter(c) => {
                let line = reader.line;
                let Some((name, subsection)) = &section else {
                    return Err(reader.fault("key before the first [section]; put a section header above it"));
                };
                let key = reader.name();
                let value = reader.assignment()?;
                entries.push(Entry { section: name.clone(), subsection: subsection.clone(), key, value, line });
            }
            Some('\0') => return Err(reader.fault(NUL)),
            Some(_) => return Err(reader.fault("neither [section] nor key; write key = value")),
        }
        if let Some(line) = reader.nul {
            return Err(SyntaxError { line, problem: NUL });
        }
    }
}

/// Writes entries so that [`parse`] gives them back.
pub fn print(entries: &[Entry]) -> String {
    let mut text = String::new();
    let mut section = None;
    for entry in entries {
        if section != Some((&entry.section, &entry.subsection)) {
            let _ = match &entry.subsection {
                Some(subsection) => writeln!(text, "[{} {}]", entry.section, name_quoted(subsection)),
                None => writeln!(text, "[{}]", entry.section),
            };
            section = Some((&entry.section, &entry.subsection));
        }
        let _ = match &entry.value {
            Some(value) => writeln!(text, "{} = {}", entry.key, quoted(value)),
            None => writeln!(text, "{}", entry.key),
        };
    }
    text
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subsection {
            Some(subsection) => write!(f, "[{} {:?}] {}", self.section, subsection, self.key),
            None => write!(f, "[{}] {}", self.section, self.key),
        }
    }
}

const NUL: &str = "NUL character; the file is not text";

fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n").replace('\t', r"\t");
    format!("\"{escaped}\"")
}

/// Subsection names have only two escapes.
fn name_quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', r"\\").replace('"', "\\\""))
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || !c.is_ascii() && c.is_alphabetic()
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

/// Characters with the line they are on.
struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
    /// First line with a NUL inside a name, value or comment.
    nul: Option<usize>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { chars: text.chars().peekable(), line: 1, nul: None }
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.chars.next();
        match next {
            Some('\n') => self.line += 1,
            Some('\0') if self.nul.is_none() => self.nul = Some(self.line),
            _ => {}
        }
        next
    }

    fn advance(&mut self) {
        self.next();
    }

    fn fault(&self, problem: &'static str) -> SyntaxError {
        SyntaxError { line: self.line, problem }
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.advance();
        }
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.advance();
        }
    }

    /// Letters, digits and dashes.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek()
            && (is_letter(c) || c.is_ascii_digit() || c == '-' || !c.is_ascii() && c.is_numeric())
        {
            name.push(c);
            self.advance();
        }
        name
    }

    /// `[name]` or `[name "sub"]`, then nothing but a comment.
    fn header(&mut self) -> Result<(String, Option<String>), SyntaxError> {
        self.advance();
        self.skip_blanks();
        if !self.peek().is_some_and(is_letter) {
            return Err(self.fault("section header without a name; write [name]"));
        }
        let name = self.name();
        self.skip_blanks();
        let subsection = match self.peek() {
            Some('"') => Some(self.subsection()?),
            _ => None,
        };
        self.skip_blanks();
        if self.peek() != Some(']') {
            return Err(self.fault("section header does not end; close it with ]"));
        }
        self.advance();
        self.end_of_line("text after a section header; put it on the next line")?;
        Ok((name, subsection))
    }

    fn subsection(&mut self) -> Result<String, SyntaxError> {
        self.advance();
        let mut name = String::new();
        loop {
            match self.peek() {
                Some('"') => break self.advance(),
                Some('\n') | None => return Err(self.fault("subsection name does not end; close it with a quote")),
                Some('\\') => {
                    self.advance();
                    match self.peek() {
                        Some(c @ ('\\' | '"')) => name.push(c),
                        _ => return Err(self.fault(r#"unknown escape in a subsection name; only \\ and \" are known"#)),
                    }
                }
                Some(c) => name.push(c),
            }
            self.advance();
        }
        if name.is_empty() {
            return Err(self.fault("empty subsection name; leave the quotes out"));
        }
        Ok(name)
    }

    fn end_of_line(&mut self, otherwise: &'static str) -> Result<(), SyntaxError> {
        self.skip_blanks();
        match self.peek() {
            None | Some('\n' | ';' | '#') => Ok(()),
            Some(_) => Err(self.fault(otherwise)),
        }
    }

    /// What follows a key: nothing, or `= value`.
    fn assignment(&mut self) -> Result<Option<String>, SyntaxError> {
        self.skip_blanks();
        match self.peek() {
            None | Some('\n' | ';' | '#') => Ok(None),
            Some('=') => {
                self.advance();
                self.skip_blanks();
                self.value().map(Some)
            }
            Some(_) => Err(self.fault("key without =; write key = value")),
        }
    }

    /// A value up to the end of the line or a comment, quotes and escapes resolved.
    fn value(&mut self) -> Result<String, SyntaxError> {
        let mut value = String::new();
        // trailing blanks belong to the line, not to the value
        let mut kept = 0;
        let mut in_quotes = false;
        while let Some(c) = self.peek() {
            if !in_quotes && matches!(c, '\n' | ';' | '#') {
                break;
            }
            if c == '\n' {
                return Err(self.fault("quoted value does not end; close it with a quote on the same line"));
            }
            self.advance();
            match c {
                '"' => in_quotes = !in_quotes,
                '\\' if in_quotes => value.push(self.escaped()?),
                '\\' => self.outside_escape(&mut value)?,
                '\r' => {}
                c => value.push(c),
            }
            if in_quotes || !is_blank(c) {
                kept = value.len();
            }
        }
        if in_quotes {
            return Err(self.fault("quoted value does not end; close it with a quote"));
        }
        value.truncate(kept);
        Ok(value)
    }

    fn escaped(&mut self) -> Result<char, SyntaxError> {
        let c = match self.peek() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some(c @ ('\\' | '"')) => c,
            _ => return Err(self.fault(r#"unknown escape in quotes; known are \" \\ \n \t"#)),
        };
        self.advance();
        Ok(c)
    }

    /// A backslash outside quotes: a quote after it is kept, a newline after it joins the lines.
    fn outside_escape(&mut self, value: &mut String) -> Result<(), SyntaxError> {
        if self.peek() == Some('\r') {
            self.advance();
        }
        match self.peek() {
            Some('"') => value.push('"'),
            Some('\n') => {}
            _ => return Err(self.fault("backslash outside quotes; put the value in quotes and write \\\\")),
        }
        self.advance();
        Ok(())
    }
}

// === the file as a layer ===

/// The file's layer. `named` is the file that the command line names; without it `default` is read,
/// if it exists.
pub(crate) fn layer(named: Option<&str>, default: &Path, warnings: &mut Vec<String>) -> Result<Layer, Error> {
    let named = named.filter(|path| !path.is_empty());
    let path = named.map_or(default, Path::new);
    let given_by = if named.is_some() { "--config-file" } else { "default" };
    let failed = |problem: String| Error::File { path: path.to_owned(), given_by, problem };
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => return Ok(Layer::default()),
        Err(error) => return Err(failed(format!("{}; name a file that can be read", said(&error)))),
        Ok(bytes) => String::from_utf8(bytes).map_err(|error| {
            let line = error.as_bytes().iter().take(error.utf8_error().valid_up_to()).filter(|b| **b == b'\n').count();
            failed(format!("line {} is not UTF-8 text; save the file as UTF-8", line + 1))
        })?,
    };
    let entries = parse(&text).map_err(|error| Error::Syntax { path: path.to_owned(), error })?;
    let mut layer = Layer::default();
    // a value under an old name must not override an earlier one under the new name
    let (old, new): (Vec<_>, Vec<_>) = entries
        .iter()
        .filter_map(|entry| known(entry, path, warnings).map(|found| (entry, found)))
        .partition(|(_, found)| found.1);
    for (entry, (setting, _)) in old.into_iter().chain(new) {
        let source = Source::File(path.to_owned(), entry.line);
        let text = match (&entry.value, setting.kind) {
            (Some(value), kind) => canonical(kind, Dialect::File, value).map_err(|problem| (value.as_str(), problem)),
            (None, Kind::Bool) => Ok("true".to_owned()),
            (None, _) => Err(("", "the key has no value; write key = value".to_owned())),
        };
        let text = text.map_err(|(value, problem)| Error::value(setting, &source, value, problem))?;
        layer.set(setting, text, source);
    }
    Ok(layer)
}

/// The setting of an entry and whether the entry uses an old name; unknown ones cause a warning.
fn known(entry: &Entry, path: &Path, warnings: &mut Vec<String>) -> Option<(&'static Setting, bool)> {
    let place = format!("{}:{}", path.display(), entry.line);
    let of_section = |section: &str| entry.section.eq_ignore_ascii_case(section);
    if entry.subsection.is_some() {
        warnings.push(format!("{place}: {entry} is ignored: no section of ovnkube has subsections"));
        return None;
    }
    let current = SETTINGS.iter().filter(|setting| !setting.section.is_empty());
    if let Some(setting) = current.clone().find(|s| of_section(s.section) && entry.key.eq_ignore_ascii_case(s.key)) {
        return Some((setting, false));
    }
    let is_old = |(section, key): &(&str, &str)| of_section(section) && entry.key.eq_ignore_ascii_case(key);
    if let Some(setting) = SETTINGS.iter().find(|setting| setting.old_keys.iter().any(is_old)) {
        warnings.push(format!("{place}: {entry} is an old name; write [{}] {}", setting.section, setting.key));
        return Some((setting, true));
    }
    let near = if current.clone().any(|setting| of_section(setting.section)) {
        nearest(&entry.key, current.filter(|s| of_section(s.section)).map(|setting| setting.key))
    } else {
        nearest(&entry.section, current.map(|setting| setting.section))
    };
    let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    warnings.push(format!("{place}: {entry} is ignored: there is no such setting{hint}"));
    None
}
