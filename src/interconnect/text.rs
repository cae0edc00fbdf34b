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

/// `1 route`, `2 routes`, `0 policies`
pub(crate) fn count(number: usize, what: &str) -> String {
    match (number, what.strip_suffix("cy")) {
        (1, _) => format!("1 {what}"),
        (_, Some(word)) => format!("{number} {word}cies"),
        _ if what.ends_with("ch") => format!("{number} {what}es"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_and_many() {
        let what = ["gateway", "policy", "transit switch"];
        assert_eq!(what.map(|what| count(1, what)), ["1 gateway", "1 policy", "1 transit switch"]);
        assert_eq!(what.map(|what| count(2, what)), ["2 gateways", "2 policies", "2 transit switches"]);
    }
}
