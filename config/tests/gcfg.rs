//! The file reader against the Go library that defines the dialect, on a corpus of corner cases and on
//! thousands of made-up files; and as a fuzz target.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are not in test functions

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ovnkube_config::file::{Entry, parse, print};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use serde_json::{Map, Value, json};

/// What the Go program would print for a file, from our own entries.
fn ours(path: &Path) -> Value {
    let error = |text: String| json!({ "error": text });
    let Ok(text) = String::from_utf8(fs::read(path).unwrap()) else { return error("not UTF-8".into()) };
    match parse(&text) {
        Err(problem) => error(problem.to_string()),
        Ok(entries) => into_structs(&entries, &text).unwrap_or_else(error),
    }
}

/// Sorts entries into sections as Go's struct has them: `Alpha`, `Beta` plain, `Gamma` with subsections.
fn into_structs(entries: &[Entry], text: &str) -> Result<Value, String> {
    let blank = || json!({"Text": null, "Last": "", "Number": 0, "Flag": false});
    let (mut alpha, mut beta) = (blank(), blank());
    let mut gamma = Map::new();
    for name in gamma_headers(text) {
        gamma.entry(name).or_insert_with(blank);
    }
    for entry in entries {
        let section = match (entry.section.to_lowercase().as_str(), &entry.subsection) {
            ("alpha", None) => &mut alpha,
            ("beta", None) => &mut beta,
            ("gamma", name) => gamma.entry(name.clone().unwrap_or_default()).or_insert_with(blank),
            _ => continue,
        };
        let (key, blank) = (entry.key.to_lowercase(), entry.value.is_none());
        let value = entry.value.clone().unwrap_or_default();
        match key.as_str() {
            "text" if blank => section["Text"] = Value::Null,
            "text" => match &mut section["Text"] {
                Value::Array(list) => list.push(json!(value)),
                empty => *empty = json!([value]),
            },
            "last" if !blank => section["Last"] = json!(value),
            "number" if !blank => section["Number"] = json!(number(&value).ok_or("not a number")?),
            "flag" => section["Flag"] = json!(blank || boolean(&value).ok_or("not a boolean")?),
            "last" | "number" => return Err("stands alone".into()),
            _ => {}
        }
    }
    let gamma = if gamma.is_empty() { Value::Null } else { Value::Object(gamma) };
    Ok(json!({"Alpha": alpha, "Beta": beta, "Gamma": gamma}))
}

/// Go's library makes a map entry for a header even when nothing follows; our entries do not show that,
/// so a key is put under every line that may be a header.
fn gamma_headers(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut probed = String::new();
    for line in text.split_inclusive('\n') {
        probed.push_str(line);
        let with_key = format!("{probed}{}probe\n", if line.ends_with('\n') { "" } else { "\n" });
        if parse(&with_key).is_ok_and(|all| all.last().is_some_and(|last| last.key == "probe" && last.value.is_none()))
        {
            probed = with_key;
        }
    }
    let entries = parse(&probed).unwrap_or_default();
    let gamma = entries.into_iter().filter(|entry| entry.key == "probe" && entry.section.eq_ignore_ascii_case("gamma"));
    gamma.map(|entry| entry.subsection.unwrap_or_default()).collect()
}

/// The setting layer's own rules, tested with a file of one key.
fn boolean(text: &str) -> Option<bool> {
    layered("gateway", "nodeport", text).map(|shown| shown == "true")
}

fn number(text: &str) -> Option<i64> {
    let (minus, digits) = match text.trim().strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.trim().strip_prefix('+').unwrap_or(text.trim())),
    };
    if digits.starts_with(['-', '+']) {
        return None;
    }
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    // where the value fits a setting, the product must read the same number
    if (0..=i64::from(u32::MAX)).contains(&value) && !minus {
        assert_eq!(layered("default", "inactivity-probe", text), Some(value.to_string()));
    }
    Some(if minus { -value } else { value })
}

fn layered(section: &str, key: &str, text: &str) -> Option<String> {
    let entry = Entry { section: section.into(), subsection: None, key: key.into(), value: Some(text.into()), line: 1 };
    let path = scratch("one-key").join("one.conf");
    fs::write(&path, print(&[entry])).unwrap();
    let args = ["config".into(), format!("-config-file={}", path.display()).into()];
    let loaded = ovnkube_config::load(args, |_| None, &ovnkube_config::Places::default()).ok()?;
    let one = loaded.sources.iter().find(|one| one.setting.section == section && one.setting.key == key)?;
    Some(one.shown().to_owned())
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gcfg-{name}-{:?}", std::thread::current().id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Reads files with the Go program.
fn theirs(paths: &[PathBuf]) -> Vec<Value> {
    let mut go = Command::new("go")
        .args(["run", "."])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gcfg-go"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("go is needed for this test: put Go 1.26 or newer in PATH (lab/install says how)");
    let mut stdin = go.stdin.take().unwrap();
    let list = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join("\n");
    let feed = std::thread::spawn(move || stdin.write_all(list.as_bytes()).unwrap());
    let output = go.wait_with_output().unwrap();
    feed.join().unwrap();
    assert!(output.status.success(), "the Go program failed");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn compare(paths: &[PathBuf]) -> (usize, usize) {
    let theirs = theirs(paths);
    assert_eq!(theirs.len(), paths.len());
    let mut counts = (0, 0);
    for (path, theirs) in paths.iter().zip(theirs) {
        let ours = ours(path);
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        if theirs.get("error").is_some() {
            assert!(ours.get("error").is_some(), "{} {text:?}\n go: {theirs}\nours: {ours}", path.display());
            counts.1 += 1;
        } else {
            assert_eq!(ours, theirs, "{} {text:?}", path.display());
            counts.0 += 1;
        }
    }
    counts
}

#[test]
fn reads_the_corpus_as_go_does() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gcfg");
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (read, refused) = compare(&paths);
    assert!(read > 30 && refused > 15, "{read} read, {refused} refused");
}

/// Text made of the pieces that matter to the grammar.
fn made_up_file() -> impl Strategy<Value = String> {
    let header =
        prop::sample::select(vec!["[alpha]", "[Beta]", "[gamma \"x\"]", "[gamma]", "[other]", "[alpha \"s\"]"]);
    let key = prop::sample::select(vec!["text", "last", "flag", "number", "Text", "nosuch"]);
    let piece = prop::sample::select(vec![
        "=", " ", "\t", "\n", "\"", "\\", "\\\"", "\\\n", "\\\r\n", "\\\\", "\\n", "\\t", "\\x", ";", "#", "\r",
        "\r\n", "a", "b c", "1", "0x1f", "010", "+3", "-4", "yes", "Off", "true", "é", "[", "]", "-", "_", ".", ":",
        "\0", "\u{feff}", "\"q ; \"",
    ]);
    let value = prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat());
    let line = prop_oneof![
        2 => header.clone().prop_map(|header| format!("{header}\n")),
        5 => (key, value.clone()).prop_map(|(key, value)| format!("{key} = {value}\n")),
        1 => value.clone().prop_map(|value| format!("flag{value}\n")),
        1 => (header, value).prop_map(|(header, value)| format!("{header}{value}\n")),
    ];
    prop::collection::vec(line, 1..5).prop_map(|lines| format!("[alpha]\n{}", lines.concat()))
}

#[test]
fn reads_made_up_files_as_go_does() {
    let dir = scratch("made-up");
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(Config::default().rng_algorithm));
    let paths: Vec<PathBuf> = (0..3000)
        .map(|number| {
            let path = dir.join(format!("{number}.conf"));
            fs::write(&path, made_up_file().new_tree(&mut runner).unwrap().current()).unwrap();
            path
        })
        .collect();
    let (read, refused) = compare(&paths);
    assert!(read > 500 && refused > 500, "{read} read, {refused} refused");
}

proptest! {
    /// Whatever values are, printing and parsing gives them back.
    #[test]
    fn printed_entries_parse_back(entries in prop::collection::vec(entry(), 0..8)) {
        let back = parse(&print(&entries)).unwrap();
        prop_assert_eq!(lineless(back), lineless(entries));
    }
}

fn entry() -> impl Strategy<Value = Entry> {
    let name = "[a-zA-Z][a-zA-Z0-9-]{0,8}";
    let subsection = prop::option::of("[^\0\r\n]{1,8}");
    (name, subsection, name, prop::option::of("[^\0\r]{0,20}")).prop_map(|(section, subsection, key, value)| Entry {
        section,
        subsection,
        key,
        value,
        line: 0,
    })
}

fn lineless(entries: Vec<Entry>) -> Vec<Entry> {
    entries.into_iter().map(|entry| Entry { line: 0, ..entry }).collect()
}

/// Any bytes: no panic, and what was read is read again when printed.
#[test]
fn fuzz_any_text() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        if let Ok(entries) = parse(text) {
            assert_eq!(lineless(parse(&print(&entries)).unwrap()), lineless(entries));
        }
    });
}

#[test]
fn an_error_has_its_line() {
    let lines = |text: &str| parse(text).unwrap_err().line;
    assert_eq!(lines("[a]\nb=1\nc d\n"), 3);
    assert_eq!(lines("a=1\n"), 1);
    assert_eq!(lines("[a]\n\n; x\nb = \"open\n"), 4);
    assert_eq!(lines("[a]\nb = x \\\n y\nc = c:\\dir\n"), 4);
    assert_eq!(lines("[a]\n; \0\n"), 2);
}
