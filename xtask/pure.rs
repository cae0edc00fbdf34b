//! Pure crates have no runtime, socket, file or clock: none of their dependencies has one, and they name no such part of
//! the standard library.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::sources;

/// Their folders in `src/`. A listed crate that does not exist yet must be pure from its first line.
const PURE: [&str; 8] = ["db", "model", "ipam", "plan", "ovn", "ovsdb_data", "node_plan", "interconnect"];

/// Crates with a runtime, socket, file, clock or randomness; also those whose names continue with a dash.
const IO: [&str; 30] = [
    "async-io",
    "async-std",
    "axum",
    "chrono",
    "futures-executor",
    "getrandom",
    "h2",
    "hyper",
    "inotify",
    "jiff",
    "kube",
    "mio",
    "netlink",
    "nix",
    "notify",
    "polling",
    "prometheus-client",
    "rand",
    "reqwest",
    "rtnetlink",
    "rustix",
    "signal-hook",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio",
    "tonic",
    "tracing-subscriber",
    "ureq",
];

/// The same in the standard library.
const STD: [&str; 11] = [
    "std::env",
    "std::fs",
    "std::os",
    "std::process",
    "std::thread",
    "Instant",
    "SystemTime",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "UnixStream",
];

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn folders() -> impl Iterator<Item = (&'static str, PathBuf)> {
    PURE.into_iter().map(|name| (name, root().join("src").join(name))).filter(|(_, folder)| folder.exists())
}

/// The dependencies of the crate in `folder`, as lines of `cargo tree`.
fn tree(folder: &Path) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"]).current_dir(folder);
    let output = command.output().context("cannot run cargo tree")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo tree in {}: {said}", folder.display());
    Ok(String::from_utf8(output.stdout)?)
}

/// The crates in `tree` that do IO, and those of ours not listed as pure.
fn impure(tree: &str) -> Vec<&str> {
    let is_io =
        |name: &str| IO.iter().any(|io| name.strip_prefix(io).is_some_and(|r| r.is_empty() || r.starts_with('-')));
    let is_ours = |name: &str| name.strip_prefix("ovnkube").map(|rest| rest.trim_start_matches('-').replace('-', "_"));
    let is_impure = |name: &&str| is_io(name) || is_ours(name).is_some_and(|ours| !PURE.contains(&&*ours));
    let mut names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).filter(is_impure).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn pure_crates_depend_on_pure_crates() -> Result<()> {
    let mut faults = Vec::new();
    for (name, folder) in folders() {
        let tree = tree(&folder)?;
        let itself = format!("ovnkube-{}", name.replace('_', "-"));
        ensure!(tree.starts_with(&itself), "src/{name} is to be the crate {itself}: {tree}");
        faults.extend(impure(&tree).iter().map(|found| format!("src/{name} is pure and may not depend on {found}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

#[test]
fn pure_crates_name_no_io_of_the_standard_library() -> Result<()> {
    let mut faults = Vec::new();
    for (name, folder) in folders() {
        for (path, text) in sources::of(&folder)? {
            let found = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
            let found = found.filter(|(_, line)| STD.iter().any(|word| line.contains(word)));
            faults.extend(found.map(|(at, line)| format!("src/{name}/{path}:{}: {} is IO", at + 1, line.trim())));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

#[test]
fn what_has_io_is_found() -> Result<()> {
    let client = tree(&root().join("src/ovsdb"))?;
    let found = impure(&client);
    for name in ["mio", "ovnkube-ovsdb", "socket2", "tokio", "tokio-rustls"] {
        assert!(found.contains(&name), "{name} is not found in the client of OVSDB: {found:?}");
    }
    let invented = "ovnkube-node-plan v0.1.0\nkube-client v5.0.0 (*)\nrtnetlink v0.24.0\nserde v1.0\nnixie v1\novnkube-node v0.1.0\n";
    assert_eq!(impure(invented), ["kube-client", "ovnkube-node", "rtnetlink"]);
    Ok(())
}
