//! Checks and shortens texts of others.

/// Whether a name may stand in OVN's expressions and in other names.
pub(crate) fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (1..=63).contains(&text.len()) && text.chars().all(fits)
}

/// The beginning of a text, for messages.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(64).collect()
}
