//! Objects in, rows and annotations out: each folder `<feature>/<case>` has the objects of a small
//! scenario and the content of a real northbound server after each of its steps.
//!
//! `given.yaml` is a list of documents:
//!
//! - `network: {…}` first, if settings differ from the usual ones (see `Settings`)
//! - Nodes, Namespaces and Pods: those before the first step exist before the controller starts;
//!   later ones are created, or replace an object of the same name
//! - `step: what happens`: opens a step
//! - `update: {kind, metadata, …}`: changed fields, as in a merge patch
//! - `delete: {kind, metadata}`
//! - `connections: {ADDRESS: what nodes reach by it}`
//! - `peers: {…}`: what the interconnection databases say (`Peers` of the model)
//!
//! After each step `want.nb` has the changed rows and `want.annotations` the changed annotations
//! and the notices. `UPDATE=1` rewrites both. At the end of every case the controller
//! starts once more and must have nothing to write.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ovnkube_plan::{Patch, PatchTarget};
use ovnkube_tests::dump::Dump;
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, rules};
use serde_json::Value;

/// The minimum number of cases, so that none gets lost; more are welcome.
const AT_LEAST: usize = 25;

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<_> =
        std::fs::read_dir(of).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    folders.sort();
    folders
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_gives_its_rows() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let only = std::env::var("CASE").unwrap_or_default();
    let cases: Vec<_> = folders(&home).iter().flat_map(|feature| folders(feature)).collect();
    assert!(cases.len() >= AT_LEAST, "only {} cases in {}", cases.len(), home.display());
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.to_string_lossy().contains(&only)) {
        let name = case.strip_prefix(&home).unwrap().display().to_string();
        let (rows, annotations) = run(&name, &std::fs::read_to_string(case.join("given.yaml")).unwrap()).await;
        for (file, is) in [("want.nb", rows), ("want.annotations", annotations)] {
            wrong.extend(compare(&case.join(file), &is).map(|difference| format!("{name}/{file}:\n{difference}")));
        }
    }
    assert!(wrong.is_empty(), "{}\nUPDATE=1 accepts this", wrong.join("\n"));
}

/// The differing lines; with `UPDATE=1` the file is written instead.
fn compare(file: &Path, is: &str) -> Option<String> {
    let want = std::fs::read_to_string(file).unwrap_or_default();
    if want == is {
        return None;
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, is).unwrap();
        return None;
    }
    let lost = want.lines().filter(|line| !is.lines().any(|l| l == *line)).map(|line| format!("- {line}"));
    let new = is.lines().filter(|line| !want.lines().any(|l| l == *line)).map(|line| format!("+ {line}"));
    let lines: Vec<_> = lost.chain(new).collect();
    Some(if lines.is_empty() { "the same lines in another order".into() } else { lines.join("\n") })
}

/// Runs a scenario; returns the texts of both files.
async fn run(name: &str, given: &str) -> (String, String) {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(given).unwrap_or_else(|e| panic!("{name}: {e}"));
    let settings = match documents.first().and_then(|d| d.get("network")) {
        Some(network) => serde_json::from_value(network.clone()).unwrap_or_else(|e| panic!("{name}: {e}")),
        None => Settings::default(),
    };
    documents.retain(|d| d.get("network").is_none() && !d.is_null());
    let server = Server::new(Release::Lts);
    let mut objects = Objects::default();
    let mut before = Dump::default();
    if !settings.show_everything {
        Controller::start(settings.network(), server.client().await, &objects).settle(&mut objects).await;
        before = Dump::of(&server.client().await);
    }
    let mut steps = documents.split(|d| d.get("step").is_some());
    for object in steps.next().into_iter().flatten() {
        happen(&mut objects, object);
    }
    let titles: Vec<String> = documents.iter().filter_map(|d| Some(d.get("step")?.as_str()?.to_owned())).collect();
    let mut controller = Controller::start(settings.network(), server.client().await, &objects);
    let (mut rows, mut annotations) = (String::new(), String::new());
    for (title, step) in std::iter::once("start".to_owned()).chain(titles).zip(std::iter::once(&[][..]).chain(steps)) {
        for document in step {
            let changes = happen(&mut objects, document);
            controller.take(changes);
        }
        let (_, patches) = controller.settle(&mut objects).await;
        let now = Dump::of(&controller.nb);
        let _ = write!(rows, "# {title}\n{}\n", now.since(&before));
        let told = std::mem::take(&mut controller.notices);
        let told = told.iter().map(|n| format!("{:?} {} {}: {}", n.severity, n.reason, n.object, n.message));
        let lines: Vec<_> = patches.iter().map(annotated).chain(told).collect();
        let _ = write!(annotations, "# {title}\n{}\n", lines.join("\n"));
        before = now;
        check(&settings, &objects, &controller);
    }
    let mut again = Controller::start(settings.network(), server.client().await, &objects);
    let (transactions, patches) = again.settle(&mut objects).await;
    assert_eq!((transactions, patches.len()), (0, 0), "{name}: writes of a second start: {patches:?}");
    assert_eq!(Dump::of(&again.nb).text(), before.text(), "{name}: rows after a second start");
    (rows, annotations)
}

fn happen(objects: &mut Objects, document: &Value) -> Vec<ovnkube_model::Change> {
    if let Some(patch) = document.get("update") {
        return objects.merge(patch);
    }
    if let Some(connections) = document.get("connections") {
        return objects.connect(serde_json::from_value(connections.clone()).unwrap());
    }
    if let Some(peers) = document.get("peers") {
        return objects.hear(serde_json::from_value(peers.clone()).unwrap());
    }
    let Some(gone) = document.get("delete") else { return objects.put(document.clone()) };
    let text = |path: &str| gone.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let changes = objects.delete(text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
    assert!(!changes.is_empty(), "nothing to delete: {gone}");
    changes
}

fn check(settings: &Settings, objects: &Objects, controller: &Controller) {
    rules::addresses_are_unique(&controller.nb.cache());
    rules::subnets_are_unique(&controller.nb.cache());
    if settings.roles.controller && !settings.disable_iface_id_ver {
        rules::pods_are_wired(objects, &controller.world, &controller.nb.cache());
    }
}

fn annotated(patch: &Patch) -> String {
    let target = match &patch.target {
        PatchTarget::Node(name) => format!("node {name}"),
        PatchTarget::Pod(key) => format!("pod {key}"),
    };
    let condition = patch.network_unavailable.iter();
    let condition = condition.map(|c| format!("{target} NetworkUnavailable={} {}: {}", c.status, c.reason, c.message));
    let annotations = patch.annotations.iter().map(|(key, value)| format!("{target} {key}={value}"));
    let labels = patch.labels.iter().map(|(key, value)| format!("{target} label {key}={value}"));
    annotations.chain(labels).chain(condition).collect::<Vec<_>>().join("\n")
}
