//! Texts of others.

/// The longest name of an availability zone: it is part of names of ports.
pub(super) const LONGEST_NAME: usize = 63;

/// The beginning of a text.
pub(super) fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Whether a cluster can have this name.
pub(super) fn is_zone(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.len() <= LONGEST_NAME && name.chars().all(fits) && ends(name.chars().next()) && ends(name.chars().last())
}
