//! No cycles between files: the files of each crate can be ordered so that each comes before those that use it.
//!
//! A file uses another if it names something that the other defines, through imports of any kind, or re-exports it. Declaring a
//! module is not a use. So children may use their parent's file if it neither uses them nor re-exports their items: what both
//! need belongs in a separate file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::modules::{Module, Modules, Place};
use crate::sources;

/// For each file, the files it uses and what it uses of them.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn uses(modules: &Modules) -> Uses {
    let mut found = Uses::new();
    for (at, module) in modules.0.iter().enumerate() {
        for (path, name) in named(modules, at, module) {
            let Some(Place::In(of)) = modules.resolve(at, &path) else { continue };
            let other = &modules.0[of].file;
            if *other != module.file {
                found.entry(module.file.clone()).or_default().entry(other.clone()).or_default().insert(name);
            }
        }
    }
    found
}

/// The paths that a module names, each with the name it is looking for.
fn named(modules: &Modules, at: usize, module: &Module) -> Vec<(Vec<String>, String)> {
    let mut found: Vec<Vec<String>> = module.paths.clone();
    for import in &module.imports {
        if import.name == "*" {
            let Some(Place::Module(_)) = modules.resolve(at, &import.path) else { continue };
            let names = module.words.iter().filter(|word| !modules.defines(at, word));
            found.extend(
                names
                    .map(|word| [&import.path[..], std::slice::from_ref(word)].concat())
                    .filter(|p| modules.knows(at, p)),
            );
        } else {
            found.push(import.path.clone());
        }
    }
    found.into_iter().map(|path| (path.clone(), path.last().cloned().unwrap_or_default())).collect()
}

/// A shortest cycle of each group of files that use each other.
fn circles(uses: &Uses) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    for file in uses.keys() {
        let is_told = found.iter().any(|circle| circle.contains(file));
        found.extend(way_back(uses, file).filter(|_| !is_told));
    }
    found
}

/// The shortest path from a file back to itself.
fn way_back(uses: &Uses, file: &str) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ahead = VecDeque::from([file]);
    while let Some(here) = ahead.pop_front() {
        for next in uses.get(here).into_iter().flat_map(BTreeMap::keys) {
            if next == file {
                let back = std::iter::successors(Some(here), |at| came_from.get(at).copied());
                let mut way: Vec<String> = back.map(str::to_owned).collect();
                way.reverse();
                way.push(file.to_owned());
                return Some(way);
            }
            if !came_from.contains_key(&**next) {
                came_from.insert(next, here);
                ahead.push_back(next);
            }
        }
    }
    None
}

/// Each cycle of a crate, and the uses that cause it.
fn faults(name: &str, root: &str, files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let uses = uses(&Modules::read(root, files).with_context(|| format!("cannot read crate {name}"))?);
    let tell = |circle: Vec<String>| {
        let mut text = format!("{name}: {}", circle.join(" -> "));
        for pair in circle.windows(2) {
            let what: Vec<&str> = uses[&pair[0]][&pair[1]].iter().map(String::as_str).collect();
            let _ = write!(text, "\n    {} uses {} of {}", pair[0], what.join(", "), pair[1]);
        }
        text
    };
    Ok(circles(&uses).into_iter().map(tell).collect())
}

/// The crates of the product and of its tools, by their folders below the root.
fn crates() -> Result<Vec<(String, PathBuf)>> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut names: Vec<String> = ["cni-shim", "config", "xtask"].map(str::to_owned).into();
    for entry in root.join("src").read_dir().context("cannot read src")? {
        let entry = entry.context("cannot read src")?;
        let is_crate = entry.path().join("Cargo.toml").exists();
        names.extend(is_crate.then(|| format!("src/{}", entry.file_name().to_string_lossy())));
    }
    names.sort();
    Ok(names.into_iter().map(|name| (name.clone(), root.join(name))).collect())
}

#[test]
fn no_files_use_each_other() -> Result<()> {
    let mut found = Vec::new();
    for (name, folder) in crates()? {
        let files: BTreeMap<String, String> = sources::of(&folder)?.into_iter().collect();
        let roots: Vec<&str> = ["lib.rs", "main.rs"].into_iter().filter(|root| files.contains_key(*root)).collect();
        ensure!(!roots.is_empty(), "{name} has neither lib.rs nor main.rs");
        for root in roots {
            found.extend(faults(&name, root, &files)?);
        }
    }
    assert!(
        found.is_empty(),
        "files that use each other; what they share is to have a file of its own:\n{}",
        found.join("\n")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let faults = faults("x", "lib.rs", &files).unwrap();
        faults.iter().map(|fault| fault.lines().next().unwrap().trim_start_matches("x: ").to_owned()).collect()
    }

    #[test]
    fn a_circle_is_found_by_whatever_way_it_goes() {
        let lib = "mod a; mod b; pub use b::B;";
        let of_two = |a: &str, b: &str| of(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]);
        let b = "use crate::a::A; pub struct B(A);";
        let circle = ["a.rs -> b.rs -> a.rs"];
        assert_eq!(of_two("pub struct A;", b), [""; 0]);
        for a in [
            "use crate::b::B; pub struct A;",
            "use crate::B; pub struct A;",
            "use super::B; pub struct A;",
            "use crate::{b::{self, B as C}}; pub struct A;",
            "use crate::b; pub struct A; fn f(_: b::B) {}",
            "use crate::*; pub struct A; fn f(_: B) {}",
            "use super::b::*; pub struct A; fn f(_: B) {}",
            "pub struct A; fn f() { crate::b::B }",
            "pub struct A; fn f() { use crate::b::B; }",
            "pub struct A; fn f() { vec![<crate::B>::new()] }",
            "pub struct A; mod inner { use super::super::B; }",
            "pub struct A; impl From<super::b::B> for A {}",
        ] {
            assert_eq!(of_two(a, b), circle, "{a}");
        }
        for a in [
            "use crate::b; pub struct A;",
            "use std::b::B; pub struct A;",
            "use super::b::*; pub struct A;",
            "use crate::*; pub struct A; struct B; fn f(_: B) {}",
            "#[cfg(test)] use crate::B; pub struct A;",
            "pub struct A; // crate::B",
            "pub struct A; #[cfg(test)] mod tests { use crate::B; }",
        ] {
            assert_eq!(of_two(a, b), [""; 0], "{a}");
        }
    }

    #[test]
    fn children_may_use_a_parent_that_does_not_use_them() {
        let child = ("a.rs", "use super::L; pub struct A(L);");
        assert_eq!(of(&[("lib.rs", "mod a; pub struct L;"), child]), [""; 0]);
        let circle = ["a.rs -> lib.rs -> a.rs"];
        assert_eq!(of(&[("lib.rs", "mod a; pub use a::A; pub struct L; fn f() -> A {}"), child]), circle);
        assert_eq!(of(&[("lib.rs", "mod a; pub struct L; fn f() -> a::A {}"), child]), circle);
        assert_eq!(of(&[("lib.rs", "mod a; use a::A; pub struct L; "), child]), circle);
        assert_eq!(of(&[("lib.rs", "mod a; pub use a::A; pub struct L;"), child]), circle);
        let others = ("a.rs", "use crate::Other; pub struct A;");
        assert_eq!(of(&[("lib.rs", "mod a; pub use a::A; pub use another_crate::Other;"), others]), [""; 0]);
        let folder =
            |mod_rs| of(&[("lib.rs", "mod m;"), ("m/mod.rs", mod_rs), ("m/a.rs", "use crate::m::L; pub struct A;")]);
        assert_eq!(folder("mod a; pub struct L;"), [""; 0]);
        assert_eq!(folder("mod a; pub struct L; fn f(_: a::A) {}"), ["m/a.rs -> m/mod.rs -> m/a.rs"]);
    }

    #[test]
    fn each_group_of_files_is_told_once_by_its_shortest_circle() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::{a::A, c::C}; pub struct B;"),
            ("c.rs", "use crate::a::A; pub struct C;"),
            ("d/mod.rs", "mod f; pub struct D; use f::F; use super::e::E;"),
            ("d/f.rs", "pub struct F;"),
            ("e.rs", "use crate::d::{D, F}; pub struct E;"),
        ];
        assert_eq!(
            of(&files),
            ["a.rs -> b.rs -> a.rs", "c.rs -> a.rs -> b.rs -> c.rs", "d/mod.rs -> e.rs -> d/mod.rs"]
        );
    }
}
