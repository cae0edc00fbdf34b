//! Rust source as tokens: without comments, string literals, lifetimes and test-only items.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `::`
    Path,
    Mark(char),
}

impl Token {
    pub(crate) fn is(&self, mark: char) -> bool {
        *self == Token::Mark(mark)
    }

    pub(crate) fn word(&self) -> Option<&str> {
        if let Token::Word(word) = self { Some(word) } else { None }
    }
}

/// The tokens of `text`.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut rest = text;
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => text_end(rest),
            '\'' => quoted(rest),
            _ if raw_text(rest).is_some() => raw_text(rest).unwrap_or(1),
            _ if first == '_' || first.is_alphanumeric() => {
                let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
                found.push(Token::Word(rest[..end].to_owned()));
                end
            }
            ':' if rest.starts_with("::") => {
                found.push(Token::Path);
                2
            }
            _ => {
                found.extend((!first.is_whitespace()).then_some(Token::Mark(first)));
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    without_tests(&found)
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The end of the string literal that begins here.
fn text_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a raw string that begins here. Its `r` is never the end of a word, because words are consumed whole.
fn raw_text(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('b').unwrap_or(text);
    let Some(raw) = rest.strip_prefix('r') else {
        return rest.starts_with('"').then(|| text.len() - rest.len() + text_end(rest));
    };
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let inner = raw[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let past = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    Some(text.len() - inner.len() + past)
}

/// A character literal, or the quote of a lifetime together with its name.
fn quoted(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    let Some((_, first)) = chars.next() else { return text.len() };
    if first == '\\' {
        return text[3..].find('\'').map_or(text.len(), |at| at + 4);
    }
    match chars.next() {
        Some((at, '\'')) => at + 1,
        _ => text[1..].find(|c: char| c != '_' && !c.is_alphanumeric()).map_or(text.len(), |at| at + 1),
    }
}

/// Leaves out each `#[cfg(test)]` and the item after it.
fn without_tests(all: &[Token]) -> Vec<Token> {
    let mark: Vec<Token> = ["#", "[", "cfg", "(", "test", ")", "]"].iter().map(|part| token(part)).collect();
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < all.len() {
        if all[at..].starts_with(&mark) {
            at = item_end(all, at + mark.len());
        } else {
            kept.push(all[at].clone());
            at += 1;
        }
    }
    kept
}

fn token(part: &str) -> Token {
    match part.chars().next() {
        Some(c) if !c.is_alphanumeric() => Token::Mark(c),
        _ => Token::Word(part.to_owned()),
    }
}

/// The index after the item that begins at `at`: after its `;`, or after its block.
fn item_end(all: &[Token], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = all.get(at) {
        at += 1;
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark('}') if depth <= 1 => return at,
            Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Mark(';') if depth == 0 => return at,
            _ => {}
        }
    }
    at
}

#[test]
fn comments_texts_and_tests_say_nothing() {
    let text = r##"
        //! use crate::a;
        /* use /* crate::b; */ */ fn f<'a>(x: &'a str) { g("crate::c", 'x', '\'', b"d\"", r#"crate::"e"#); r::h() }
        #[cfg(test)] mod tests { use crate::i; fn j() {} }
        #[cfg(test)] #[path = "x"] mod k;
        #[cfg(test)] use crate::l;
        struct M { n: [u8; 2] }
    "##;
    let words: Vec<String> = tokens(text).iter().filter_map(Token::word).map(str::to_owned).collect();
    assert_eq!(words, ["fn", "f", "x", "str", "g", "r", "h", "struct", "M", "n", "u8", "2"]);
}
