//! Texts of others in messages.

/// The beginning of a text.
pub(super) fn short(text: &str) -> String {
    text.chars().take(64).collect()
}
