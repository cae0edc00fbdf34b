//! An API server: objects with versions, lists in pages, watches that continue from a version, patches, and the lease.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::wire::Ask;

/// The kinds that masters watch, and their lists.
pub(crate) const KINDS: [(&str, &str); 8] = [
    ("Node", "/api/v1/nodes"),
    ("Namespace", "/api/v1/namespaces"),
    ("Pod", "/api/v1/pods"),
    ("Service", "/api/v1/services"),
    ("EndpointSlice", "/apis/discovery.k8s.io/v1/endpointslices"),
    ("NetworkPolicy", "/apis/networking.k8s.io/v1/networkpolicies"),
    ("ConfigMap", "/api/v1/namespaces/kube-system/configmaps"),
    ("Subnet", "/apis/kubeovn.io/v1/subnets"),
];

/// Objects in a page, unless the client asks for all at once.
const PAGE: usize = 6;
/// A list without pages.
const WHOLE: usize = 100_000;

/// Kind, namespace and name.
type Id = (usize, String, String);

#[derive(Clone, Default)]
pub(crate) struct ApiServer {
    objects: BTreeMap<Id, Stored>,
    lease: Option<Value>,
    /// How often another master has taken the lease.
    term: u64,
    /// By uid and name: in which term an annotation was written.
    written: BTreeMap<(String, String), u64>,
    version: u64,
    births: u64,
    /// Kind, version and line of each change.
    log: Vec<(usize, u64, Bytes)>,
    /// What happened before is forgotten.
    oldest: u64,
    /// Reasons of Events, also of those that were only counted: this server forgets an Event at once.
    pub(crate) events: Vec<String>,
    /// The rest of lists that are being read.
    pages: BTreeMap<String, (u64, Vec<String>)>,
}

/// A point of time.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// How often another master had taken the lease.
    term: u64,
    /// How many objects had been created.
    births: u64,
}

#[derive(Clone)]
struct Stored {
    object: Value,
    text: String,
}

/// What to answer.
pub(crate) enum Reply {
    Text(u16, String),
    /// All changes of a kind after a version.
    Watch(usize, u64),
}

/// What a request was.
#[derive(PartialEq)]
pub(crate) enum Effect {
    None,
    /// It changed an object.
    Wrote,
}

impl ApiServer {
    /// Without objects, and with a lease that nobody holds, as it is installed.
    pub(crate) fn new() -> Self {
        let lease = json!({"metadata": {"uid": "lease", "resourceVersion": "0"}, "spec": {}});
        Self { lease: Some(lease), ..Self::default() }
    }

    /// A server with the same objects.
    pub(crate) fn without_past(&self) -> Self {
        let (objects, version, oldest) = (self.objects.clone(), self.version, self.version);
        Self { objects, version, oldest, births: self.births, ..Self::new() }
    }

    /// Lets versions pass.
    pub(crate) fn pass(&mut self, versions: u64) {
        self.version += versions;
    }

    /// Goes back to what it had, as when etcd is restored from a snapshot.
    pub(crate) fn restore(&mut self, snapshot: Self) {
        let (births, term) = (self.births, self.term);
        *self = Self { term, births, ..snapshot };
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn holder(&self) -> &str {
        let lease = self.lease.as_ref();
        lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str()).unwrap_or_default()
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { term: self.term, births: self.births }
    }

    pub(crate) fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let kind = number(kind);
        self.objects.iter().filter(move |(id, _)| id.0 == kind).map(|(_, stored)| &stored.object)
    }

    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&id(kind, namespace, name)).map(|stored| &stored.object)
    }

    /// Creates an object, or replaces one of the same uid.
    pub(crate) fn put(&mut self, kind: &str, mut object: Value) {
        let name = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let id = id(kind, &name("namespace"), &name("name"));
        let old = self.objects.get(&id).map(|stored| stored.object["metadata"].clone());
        if old.is_none() {
            self.births += 1;
        }
        let made = || json!({"uid": format!("uid-{}", self.births), "creationTimestamp": "2026-01-01T00:00:00Z"});
        let old = old.unwrap_or_else(made);
        for field in ["uid", "creationTimestamp"] {
            object["metadata"][field] = old[field].clone();
        }
        object["kind"] = json!(kind);
        let is_new = !self.objects.contains_key(&id);
        self.store(id, object, if is_new { "ADDED" } else { "MODIFIED" });
    }

    fn store(&mut self, id: Id, mut object: Value, event: &str) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let text = object.to_string();
        self.note(id.0, event, &text);
        if event == "DELETED" {
            self.objects.remove(&id);
        } else {
            self.objects.insert(id, Stored { object, text });
        }
    }

    fn note(&mut self, kind: usize, event: &str, text: &str) {
        self.log.push((kind, self.version, format!("{{\"type\":\"{event}\",\"object\":{text}}}\n").into()));
    }

    pub(crate) fn delete(&mut self, kind: &str, namespace: &str, name: &str) {
        let id = id(kind, namespace, name);
        if let Some(stored) = self.objects.get(&id) {
            let object = stored.object.clone();
            self.store(id, object, "DELETED");
        }
    }

    /// Changes fields of an object, if it exists.
    pub(crate) fn merge(&mut self, kind: &str, namespace: &str, name: &str, patch: &Value) {
        let id = id(kind, namespace, name);
        if let Some(stored) = self.objects.get(&id) {
            let mut object = stored.object.clone();
            ovnkube_watch::merge_patch(&mut object, patch);
            if object != stored.object {
                self.store(id, object, "MODIFIED");
            }
        }
    }

    /// Forgets the past: watches that continue from it, and lists that are being read, must begin again.
    pub(crate) fn compact(&mut self) {
        self.oldest = self.version;
        self.pages.clear();
    }

    /// The lines of a watch of a kind after a version, and the version after them.
    pub(crate) fn since(&self, kind: usize, version: u64) -> (Vec<Bytes>, u64) {
        if version < self.oldest {
            let status = status(410, "too old resource version");
            return (vec![format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").into()], u64::MAX);
        }
        let from = self.log.partition_point(|(_, at, _)| *at <= version);
        let lines = self.log[from..].iter().filter(|(of, _, _)| *of == kind).map(|(_, _, line)| line.clone());
        (lines.collect(), self.version)
    }

    /// `sent`: when its master last checked whether it may send it.
    pub(crate) fn handle(&mut self, ask: &Ask, sent: Moment) -> (Reply, Effect) {
        let (path, query) = ask.path.split_once('?').unwrap_or((&ask.path, ""));
        let part = |name: &str| {
            let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            found.unwrap_or_default().to_owned()
        };
        if let Some(kind) = KINDS.iter().position(|(_, list)| *list == path) {
            if part("watch") == "1" {
                return (Reply::Watch(kind, part("resourceVersion").parse().unwrap_or_default()), Effect::None);
            }
            let limit = part("limit").parse().unwrap_or(WHOLE);
            return (self.list(kind, limit, &part("continue")), Effect::None);
        }
        let body = serde_json::from_slice::<Value>(&ask.body).unwrap_or_default();
        let words: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (ask.method.as_str(), words.as_slice()) {
            ("PATCH", ["api", "v1", "nodes", name, "status"]) => self.patch(&id("Node", "", name), &body, sent),
            ("PATCH", ["api", "v1", "namespaces", namespace, "pods", name, "status"]) => {
                self.patch(&id("Pod", namespace, name), &body, sent)
            }
            ("GET", ["api", "v1", "namespaces", namespace, "pods", name]) => {
                let found = self.objects.get(&id("Pod", namespace, name)).map(|stored| stored.text.clone());
                (found.map_or_else(|| failure(404, "not found"), |text| Reply::Text(200, text)), Effect::None)
            }
            ("POST", ["api", "v1", "namespaces", _, "events"]) => {
                self.events.push(body["reason"].as_str().unwrap_or_default().to_owned());
                (Reply::Text(201, "{}".into()), Effect::None)
            }
            (method, ["apis", "coordination.k8s.io", "v1", "namespaces", _, "leases", ..]) => {
                (self.lease(method, &body), Effect::None)
            }
            _ => (failure(404, "the server could not find the requested resource"), Effect::None),
        }
    }

    fn list(&mut self, kind: usize, limit: usize, next: &str) -> Reply {
        let of_kind = || self.objects.iter().filter(|(id, _)| id.0 == kind).map(|(_, stored)| stored.text.clone());
        let (version, mut items) = match next {
            "" => (self.version, of_kind().collect::<Vec<_>>()),
            _ => match self.pages.remove(next) {
                Some(rest) => rest,
                None => return failure(410, "The provided continue parameter is too old"),
            },
        };
        let rest = items.split_off(items.len().min(if limit >= WHOLE { WHOLE } else { PAGE }));
        let mut token = String::new();
        if !rest.is_empty() {
            token = format!("{kind}-{version}-{}-{}", rest.len(), self.pages.len());
            self.pages.insert(token.clone(), (version, rest));
        }
        let meta = json!({"resourceVersion": version.to_string(), "continue": token});
        Reply::Text(200, format!("{{\"metadata\":{meta},\"items\":[{}]}}", items.join(",")))
    }

    fn patch(&mut self, id: &Id, patch: &Value, sent: Moment) -> (Reply, Effect) {
        let Some(stored) = self.objects.get(id) else { return (failure(404, "not found"), Effect::None) };
        if let Some(ops) = patch.as_array() {
            let mut object = stored.object.clone();
            if let Err(problem) = json_patch(&mut object, ops) {
                return (failure(422, problem), Effect::None);
            }
            self.check_writer(id, &object, sent);
            self.store(id.clone(), object, "MODIFIED");
            return (Reply::Text(200, "{}".into()), Effect::Wrote);
        }
        let (uid, has) = (&patch["metadata"]["uid"], &stored.object["metadata"]["uid"]);
        assert!(!uid.is_null(), "a patch of {} may hit another object of this name: {patch}", id.2);
        if uid != has {
            let message = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {has}");
            return (failure(409, &message), Effect::None);
        }
        let mut object = stored.object.clone();
        let mut patch = patch.clone();
        // conditions are merged by their type
        if let Some(conditions) = patch["status"]["conditions"].as_array() {
            let is_other = |old: &&Value| conditions.iter().all(|new| new["type"] != old["type"]);
            let old = object["status"]["conditions"].as_array().into_iter().flatten().filter(is_other);
            let all: Vec<_> = old.chain(conditions).cloned().map(without_times).collect();
            patch["status"]["conditions"] = json!(all);
        }
        ovnkube_watch::merge_patch(&mut object, &patch);
        let is_change = object != stored.object;
        self.check_writer(id, &object, sent);
        if is_change {
            self.store(id.clone(), object, "MODIFIED");
        }
        (Reply::Text(200, "{}".into()), Effect::Wrote)
    }

    /// No master overwrites an annotation that a later one has written, or patches an object that it could not know. A label or
    /// a condition may come late, since no test goes with it: the master that holds the lease then writes its own again.
    fn check_writer(&mut self, id: &Id, new: &Value, sent: Moment) {
        let uid = new["metadata"]["uid"].as_str().unwrap_or_default();
        let birth: u64 = uid.trim_start_matches("uid-").parse().unwrap();
        assert!(birth <= sent.births, "{} was patched by a request that was sent before it was created", id.2);
        let old = &self.objects[id].object["metadata"]["annotations"];
        for (name, text) in new["metadata"]["annotations"].as_object().into_iter().flatten() {
            if old[name] != *text {
                let last = self.written.insert((uid.to_owned(), name.clone()), sent.term).unwrap_or_default();
                assert!(
                    last <= sent.term,
                    "{name} of {}, written in term {last}, is overwritten by {}",
                    id.2,
                    sent.term
                );
            }
        }
    }

    fn lease(&mut self, method: &str, body: &Value) -> Reply {
        let current = self.lease.clone();
        let asked = &body["metadata"]["resourceVersion"];
        let made = match (method, current) {
            ("GET", Some(lease)) => return Reply::Text(200, lease.to_string()),
            ("POST", Some(_)) => return failure(409, "leases already exists"),
            ("POST", None) => {
                self.births += 1;
                let mut lease = body.clone();
                lease["metadata"]["uid"] = json!(format!("uid-{}", self.births));
                lease
            }
            (_, None) => return failure(404, "leases not found"),
            (_, Some(lease)) if *asked != lease["metadata"]["resourceVersion"] => {
                return failure(409, "the object has been modified; please apply your changes to the latest version");
            }
            (_, Some(mut lease)) => {
                ovnkube_watch::merge_patch(&mut lease, body);
                lease
            }
        };
        self.version += 1;
        let holder = self.holder().to_owned();
        let lease = self.lease.insert(made);
        self.term += u64::from(lease["spec"]["holderIdentity"] != *holder);
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        Reply::Text(200, lease.to_string())
    }
}

/// A condition without times: one that is set again as it was changes nothing then.
fn without_times(mut condition: Value) -> Value {
    condition.as_object_mut().unwrap().retain(|field, _| !field.ends_with("Time"));
    condition
}

/// Does those operations of a JSON patch that masters send.
fn json_patch(object: &mut Value, ops: &[Value]) -> Result<(), &'static str> {
    for op in ops {
        let path = op["path"].as_str().unwrap();
        let (parent, name) = path.rsplit_once('/').unwrap();
        let unmet = "the server rejected our request due to an error in our request";
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut).ok_or(unmet)?;
        let name = name.replace("~1", "/").replace("~0", "~");
        match op["op"].as_str() {
            Some("test") if parent.get(&name).unwrap_or(&Value::Null) != &op["value"] => return Err(unmet),
            Some("replace") if parent[&name] != op["value"] => return Err("metadata.uid: field is immutable"),
            Some("test" | "replace") => {}
            Some("add") => drop(parent.insert(name, op["value"].clone())),
            other => panic!("operation {other:?}"),
        }
    }
    Ok(())
}

fn number(kind: &str) -> usize {
    KINDS.iter().position(|(name, _)| *name == kind).unwrap()
}

fn id(kind: &str, namespace: &str, name: &str) -> Id {
    (number(kind), namespace.to_owned(), name.to_owned())
}

fn status(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": "", "code": code})
}

/// Tells a watch how far it is.
pub(crate) fn bookmark(version: u64) -> Bytes {
    let meta = json!({"resourceVersion": version.to_string()});
    format!("{}\n", json!({"type": "BOOKMARK", "object": {"metadata": meta}})).into()
}

pub(crate) fn failure(code: u16, message: &str) -> Reply {
    Reply::Text(code, status(code, message).to_string())
}
