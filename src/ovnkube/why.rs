//! `ovnkube why SRC DST PORT[/PROTO]`: whether policies allow a connection, found from the objects of
//! the cluster, or of a directory that has them as YAML or JSON.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use ovnkube_config::Settings;
use ovnkube_model::{Change, PodKey, Protocol, Roles, World};
use ovnkube_plan::why::{Endpoint, why};
use ovnkube_watch::{Access, Client, LOG_IN_WITHIN, Scope};
use serde_json::{Value, json};

use crate::translate;

/// Kinds of objects that are used.
const KINDS: [&str; 5] = ["Node", "Namespace", "Pod", "Service", "NetworkPolicy"];

/// The question as it was typed.
pub(crate) struct Words<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) port: &'a str,
    pub(crate) objects: Option<&'a Path>,
}

impl Words<'_> {
    /// The answer as text; its first word is `allowed` or `denied`.
    pub(crate) fn answer(&self, settings: &Settings) -> Result<String> {
        let (from, to) = (end(self.from)?, end(self.to)?);
        let (protocol, port) = protocol_and_port(self.port)?;
        let changes = match self.objects {
            Some(directory) => read_directory(directory)?,
            None => read_cluster(settings)?,
        };
        let roles = Roles { controller: true, ..Roles::default() };
        // the objects are enough: without the end of the initial lists nothing is decided
        let mut world = World::new(translate::network(settings, roles), []);
        for change in changes.into_iter().filter(|change| !matches!(change, Change::Synced(_))) {
            world.apply(change);
        }
        world.count_everything();
        let answers = why(&world, &from, &to, protocol, port)?;
        Ok(answers.iter().map(ToString::to_string).collect())
    }
}

fn end(text: &str) -> Result<Endpoint> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(Endpoint::Address(ip));
    }
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Endpoint::Pod(PodKey::new(namespace, name)))
        }
        _ => {
            bail!("cannot use {text:?}: it is neither a pod nor an address; write namespace/name, 10.1.2.3 or fd00::1")
        }
    }
}

fn protocol_and_port(text: &str) -> Result<(Protocol, u16)> {
    let (number, protocol) = text.split_once('/').unwrap_or((text, "TCP"));
    let protocol = Protocol::parse(Some(&protocol.to_uppercase()))
        .map_err(|problem| anyhow!("cannot use port {text:?}: {problem}"))?;
    let number = number.parse().ok().filter(|number| *number > 0);
    let number = number.with_context(|| {
        format!("cannot use port {text:?}: it is not a number from 1 to 65535; write 80, 53/UDP or 5000/SCTP")
    })?;
    Ok((protocol, number))
}

fn read_cluster(settings: &Settings) -> Result<Vec<Change>> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(async {
        // a user runs this, whose kubeconfig may run a program for a token
        let access = Access { plugin: Some(LOG_IN_WITHIN), ..translate::access(settings, "why") };
        let client = Client::connect(&access).await?;
        Ok(ovnkube_watch::read(&client, &Scope::Controller).await?)
    })
}

/// Reads every object of these kinds, from every YAML and JSON file.
fn read_directory(directory: &Path) -> Result<Vec<Change>> {
    let cannot = |e| anyhow!("cannot read {}: {e}; --from names a directory", directory.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        files.push(entry.map_err(cannot)?.path());
    }
    let is_ours =
        |path: &PathBuf| path.extension().is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e == *known));
    files.retain(is_ours);
    files.sort();
    let mut objects = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("cannot read {}", file.display()))?;
        for document in documents {
            flatten(document, &file.display().to_string(), &mut objects);
        }
    }
    if objects.is_empty() {
        bail!("cannot read {}: no file in it holds a {}", directory.display(), KINDS.join(", "));
    }
    complete(&mut objects);
    let decode = |(file, object): &(String, Value)| {
        ovnkube_watch::decode(&object.to_string()).with_context(|| format!("cannot read {file}"))
    };
    objects.iter().map(decode).collect()
}

/// Takes lists apart and leaves out objects of other kinds.
fn flatten(object: Value, file: &str, into: &mut Vec<(String, Value)>) {
    let kind = object["kind"].as_str().unwrap_or_default();
    if KINDS.contains(&kind) {
        into.push((file.to_owned(), object));
    } else if kind.ends_with("List") {
        let items = object.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let of_list = kind.trim_end_matches("List").to_owned();
        for mut item in items {
            if item.get("kind").is_none() && item.is_object() {
                item["kind"] = json!(of_list);
            }
            flatten(item, file, into);
        }
    }
}

/// Adds what the API server would add: the namespace of objects, the Namespaces and their label.
fn complete(objects: &mut Vec<(String, Value)>) {
    let mut missing = BTreeSet::new();
    for (_, object) in objects.iter_mut() {
        let kind = object["kind"].as_str().unwrap_or_default();
        if !["Node", "Namespace"].contains(&kind) && object["metadata"].is_object() {
            let meta = &mut object["metadata"];
            if meta.get("namespace").is_none() {
                meta["namespace"] = json!("default");
            }
            missing.extend(meta["namespace"].as_str().map(str::to_owned));
        }
    }
    for (_, object) in objects.iter_mut().filter(|(_, object)| object["kind"] == "Namespace") {
        let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { continue };
        let name = meta.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        missing.remove(&name);
        if let Some(labels) = meta.entry("labels").or_insert_with(|| json!({})).as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
        }
    }
    for name in missing {
        let meta = json!({"name": name, "labels": {"kubernetes.io/metadata.name": name}});
        objects.push((name, json!({"kind": "Namespace", "metadata": meta})));
    }
}
