//! The content of the API server, and the changes that a watch would report.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ovnkube_model::{Change, Connections, Kind, Name, Peers, PodAnnotation};
use ovnkube_plan::{Patch, PatchTarget, Seen};
use ovnkube_watch::Scope;
use serde_json::{Value, json};

/// Kind, namespace and name.
type Id = (String, String, String);

/// Nodes, namespaces and pods by name.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    by_id: BTreeMap<Id, Value>,
    /// How many objects had a name: each gets its own uid.
    births: BTreeMap<Id, u32>,
    /// What nodes reach, by address.
    connections: BTreeMap<IpAddr, Name>,
    /// What the interconnection databases say.
    peers: Option<Peers>,
}

fn text(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn id(object: &Value) -> Id {
    (text(object, "/kind"), text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

/// Whether the annotations of a patch are what it was planned for.
fn is_as_seen(object: &Value, patch: &Patch) -> bool {
    let have = |(name, _): &(&str, String)| object["metadata"]["annotations"][name].as_str().map(Name::from);
    let have: Vec<Option<Name>> = patch.annotations.iter().map(have).collect();
    match &patch.seen {
        Seen::Bare => object["metadata"]["annotations"].as_object().is_none_or(serde_json::Map::is_empty),
        Seen::Texts(texts) => *texts == have,
        Seen::Digest(digest) => {
            have.iter().flatten().any(|text| PodAnnotation::parse(text).ok().map(|a| a.digest) == *digest)
        }
    }
}

fn connected(owners: BTreeMap<IpAddr, Name>) -> Change {
    Change::Connections(Connections { owners, ..Connections::default() })
}

fn gone((kind, namespace, name): &Id) -> Change {
    let object = json!({"kind": kind, "metadata": {"namespace": namespace, "name": name}});
    ovnkube_watch::decode_gone(&object.to_string()).unwrap()
}

/// Every kind that the controller watches.
pub fn kinds() -> impl Iterator<Item = Kind> {
    Scope::Controller.kinds().iter().copied()
}

impl Objects {
    /// Creates or replaces an object; one with another uid is a different object of the same name. An
    /// object without a uid keeps the current one, or gets the next of its name.
    pub fn put(&mut self, mut object: Value) -> Vec<Change> {
        let id = id(&object);
        assert!(!id.2.is_empty(), "an object needs a name: {object}");
        let old = self.by_id.get(&id).map(|o| text(o, "/metadata/uid"));
        if text(&object, "/metadata/uid").is_empty() {
            let uid = old.clone().unwrap_or_else(|| {
                let birth = self.births.entry(id.clone()).or_default();
                *birth += 1;
                format!("{}-{birth}", id.2)
            });
            object["metadata"]["uid"] = json!(uid);
        }
        let new = text(&object, "/metadata/uid");
        let mut changes = Vec::new();
        if old.is_some_and(|old| old != new) {
            changes.push(gone(&id));
        }
        changes.push(ovnkube_watch::decode(&object.to_string()).unwrap());
        self.by_id.insert(id, object);
        changes
    }

    pub fn delete(&mut self, kind: &str, namespace: &str, name: &str) -> Vec<Change> {
        let id = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        self.by_id.remove(&id).map(|_| gone(&id)).into_iter().collect()
    }

    /// Replaces what nodes reach, by address.
    pub fn connect(&mut self, connections: BTreeMap<IpAddr, Name>) -> Vec<Change> {
        self.connections.clone_from(&connections);
        vec![connected(connections)]
    }

    /// Replaces what the interconnection databases say.
    pub fn hear(&mut self, peers: Peers) -> Vec<Change> {
        self.peers = Some(peers.clone());
        vec![Change::Peers(Box::new(peers))]
    }

    /// As the API server does it: no effect if the object is gone or was replaced, or its annotations were.
    pub fn patch(&mut self, patch: &Patch) -> Vec<Change> {
        let id = match &patch.target {
            PatchTarget::Node(name) => ("Node".to_owned(), String::new(), name.to_string()),
            PatchTarget::Pod(key) => ("Pod".to_owned(), key.namespace.to_string(), key.name.to_string()),
        };
        let Some(object) = self.by_id.get_mut(&id).filter(|o| text(o, "/metadata/uid") == *patch.uid) else {
            return Vec::new();
        };
        if !patch.annotations.is_empty() && !is_as_seen(object, patch) {
            return Vec::new();
        }
        for (name, value) in &patch.annotations {
            object["metadata"]["annotations"][name] = json!(value);
        }
        for (name, value) in &patch.labels {
            object["metadata"]["labels"][name] = json!(value);
        }
        if let Some(state) = &patch.network_unavailable {
            let status = if state.status { "True" } else { "False" };
            let condition = json!({"type": "NetworkUnavailable", "status": status, "reason": state.reason});
            object["status"]["conditions"] = json!([condition]);
        }
        vec![ovnkube_watch::decode(&object.to_string()).unwrap()]
    }

    /// Changes fields of an existing object, as a merge patch does.
    pub fn merge(&mut self, patch: &Value) -> Vec<Change> {
        let Some(object) = self.by_id.get_mut(&id(patch)) else { panic!("nothing to change: {patch}") };
        ovnkube_watch::merge_patch(object, patch);
        vec![ovnkube_watch::decode(&object.to_string()).unwrap()]
    }

    /// All of it, as the initial lists would return it.
    pub fn first_lists(&self) -> Vec<Change> {
        let objects = self.by_id.values().map(|o| ovnkube_watch::decode(&o.to_string()).unwrap());
        let connections = connected(self.connections.clone());
        let peers = self.peers.clone().map(|peers| Change::Peers(Box::new(peers)));
        let lists = std::iter::once(connections).chain(objects).chain(peers);
        lists.chain(kinds().map(Change::Synced)).collect()
    }

    /// The objects of a kind.
    pub fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.by_id.iter().filter(move |(id, _)| id.0 == kind).map(|(_, object)| object)
    }
}

/// The ConfigMap that joins a cluster; `ports`: of the shared databases on this host, `changed`: keys with other values than usual.
pub fn interconnection(ports: [u16; 2], changed: &[(&str, &str)]) -> Value {
    let mut data = json!({
        "enable-ic": "true", "az-name": "az1", "ic-db-host": "127.0.0.1", "gw-nodes": "n1", "auto-route": "true",
        "ic-nb-port": ports[0].to_string(), "ic-sb-port": ports[1].to_string(),
    });
    for (key, value) in changed {
        data[*key] = json!(value);
    }
    json!({"metadata": {"name": "ovn-ic-config"}, "data": data})
}

/// A pod to create.
pub fn pod(namespace: &str, name: &str, node: &str) -> Value {
    json!({"kind": "Pod", "metadata": {"namespace": namespace, "name": name}, "spec": {"nodeName": node}})
}

pub fn namespace(name: &str) -> Value {
    json!({"kind": "Namespace", "metadata": {"name": name}})
}

/// A node whose agent has reported its chassis.
pub fn node(name: &str) -> Value {
    let annotations = json!({"k8s.ovn.org/node-chassis-id": format!("chassis-{name}")});
    json!({"kind": "Node", "metadata": {"name": name, "annotations": annotations}})
}
