//! Checks and shortens texts of others.

use ovnkube_model::is_zone;

/// Whether a chassis may have this name: it is the id of an Open vSwitch, mostly a UUID or the name of a host.
pub(crate) fn is_chassis(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    text.len() <= 255 && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(fits)
}

/// The beginning of a text, for messages. What a terminal would obey is left out, and `;`, after which a message says what to do.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(64).map(|c| if c.is_control() || c == ';' { '?' } else { c }).collect()
}

/// The most problems that are named.
pub(crate) const PROBLEMS: usize = 20;

/// Notes one more problem. Those that are not named are only counted: others can make any number of them.
pub(crate) fn note(problems: &mut Vec<String>, problem: impl FnOnce() -> String) {
    problems.push(if problems.len() < PROBLEMS { problem() } else { String::new() });
}

/// What removes all that a cluster left. People type it: a name that a shell would obey is no part of it.
pub(crate) fn remove_zone(name: &str) -> String {
    if is_zone(name) { format!("ovnkube ic clean az {name}") } else { "remove its rows in IC-SB".to_owned() }
}

/// A command with a name of others at its end, or `otherwise` if a shell would obey the name.
pub(crate) fn typed(command: &str, name: &str, otherwise: &str) -> String {
    if is_chassis(name) { format!("{command} {name}") } else { otherwise.to_owned() }
}

/// The first of some names: `az2, az3 and 4 more`.
pub(crate) fn first(names: impl ExactSizeIterator<Item: Into<String>>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let first: Vec<String> = names.take(most).map(Into::into).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
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

/// `for 5 min`: how long something is so at the time `now`, both in seconds since 1970.
pub(crate) fn lasts(since: u64, now: u64) -> String {
    let seconds = now.saturating_sub(since);
    match seconds {
        0..120 => format!("for {seconds} s"),
        120..7_200 => format!("for {} min", seconds / 60),
        7_200..172_800 => format!("for {} h", seconds / 3_600),
        _ => format!("for {} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::{PROBLEMS, count, first, lasts, note, remove_zone, short, typed};

    #[test]
    fn how_long_something_lasts() {
        let ages = [0, 119, 120, 7_199, 7_200, 172_799, 172_800, 864_000];
        let texts = ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d", "10 d"];
        assert_eq!(ages.map(|age| lasts(1_000, 1_000 + age)), texts.map(|text| format!("for {text}")));
        assert_eq!(lasts(2_000, 1_000), "for 0 s");
    }

    #[test]
    fn a_command_has_no_name_that_a_shell_obeys() {
        assert_eq!(remove_zone("az9"), "ovnkube ic clean az az9");
        assert_eq!(typed("ls-del", "ts_1", "remove it"), "ls-del ts_1");
        for name in ["az9; curl e|sh", "$(reboot)", "a b", "-az", "", "az9\nreboot"] {
            assert_eq!(remove_zone(name), "remove its rows in IC-SB", "{name:?}");
            assert_eq!(typed("ls-del", name, "remove it"), "remove it", "{name:?}");
            assert!(!short(name).contains([';', '\n']), "{name:?}");
        }
    }

    #[test]
    fn problems_that_are_not_named_are_only_counted() {
        let mut problems = Vec::new();
        for number in 0..PROBLEMS + 3 {
            note(&mut problems, || {
                assert!(number < PROBLEMS, "nobody reads it");
                number.to_string()
            });
        }
        assert_eq!(problems.len(), PROBLEMS + 3);
    }

    #[test]
    fn the_first_of_some_names() {
        let names = |most| first(["az2", "az3", "az4"].into_iter(), most);
        assert_eq!([1, 2, 3].map(names), ["az2 and 2 more", "az2, az3 and 1 more", "az2, az3, az4"]);
        assert_eq!(first([""; 0].into_iter(), 3), "");
    }

    #[test]
    fn one_and_many() {
        let what = ["gateway", "policy", "transit switch"];
        assert_eq!(what.map(|what| count(1, what)), ["1 gateway", "1 policy", "1 transit switch"]);
        assert_eq!(what.map(|what| count(2, what)), ["2 gateways", "2 policies", "2 transit switches"]);
    }
}
