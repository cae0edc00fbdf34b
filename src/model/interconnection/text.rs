//! Texts of others.

/// The longest name of an availability zone: it is part of names of ports.
pub(super) const LONGEST_NAME: usize = 63;

/// First words of the names of our own routers' ports: a cluster called so has ports in transit switches of the same names.
const OWN_PORTS: [&str; 4] = ["cr", "rtoe", "rtoj", "rtos"];

/// The beginning of a text.
pub(super) fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The word with which all ports of a cluster of this name begin, if ports of our own routers begin with it too.
pub(super) fn own_word(name: &str) -> Option<&'static str> {
    let first = name.split('-').next()?;
    OWN_PORTS.into_iter().find(|word| *word == first)
}

/// Whether a cluster, or a transit switch, can have this name. It becomes a part of other names and of commands.
pub fn is_zone(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.len() <= LONGEST_NAME && name.chars().all(fits) && ends(name.chars().next()) && ends(name.chars().last())
}
