//! Writes annotations of pods and nodes, and conditions of nodes.

use std::collections::BTreeMap;

use http::Method;
use ovnkube_model::{Name, PodKey};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, query_value};
use crate::object::Metadata;
use crate::{Client, Error};

/// Annotations to set, or to remove (`None`). All others stay.
pub type Annotations = BTreeMap<String, Option<String>>;

/// Annotations that a master writes, and what they replace.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    pub annotations: &'a [(&'static str, String)],
    /// What is there, in the same order; `None`: no annotation at all, of anyone.
    pub seen: Option<&'a [Option<Name>]>,
}

/// An entry of a node's `status.conditions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Type of the condition, such as `NetworkUnavailable`.
    pub kind: &'static str,
    pub status: bool,
    /// CamelCase.
    pub reason: &'static str,
    pub message: String,
}

impl Client {
    /// Annotates the pod of this name. Fails with [`Error::Gone`] if it has another uid by now, with [`Error::Conflict`] if
    /// what the annotations replace is no longer as it was seen. Needs the right to patch `pods/status`.
    pub async fn give_pod(&self, pod: &PodKey, uid: &str, given: Given<'_>) -> Result<(), Error> {
        self.give(&format!("annotate pod {pod}"), &format!("{}/status", pod_path(pod)), uid, given).await
    }

    /// The same for a node. Needs the right to patch `nodes/status`.
    pub async fn give_node(&self, name: &str, uid: &str, given: Given<'_>) -> Result<(), Error> {
        self.give(&format!("annotate node {name}"), &node_status(name), uid, given).await
    }

    /// The text of an annotation of a pod, if it has it.
    pub async fn pod_annotation(&self, pod: &PodKey, name: &str) -> Result<Option<String>, Error> {
        #[derive(Deserialize)]
        struct Annotated<'a> {
            #[serde(borrow)]
            metadata: Metadata<'a>,
        }
        let (action, mut text) = (format!("read annotation {name} of pod {pod}"), Vec::new());
        self.get(&action, &pod_path(pod), &mut text).await?;
        let object: Annotated<'_> = serde_json::from_slice(&text).map_err(|e| Error::failed(&action, e))?;
        Ok(object.metadata.meta().annotations.get(name).cloned())
    }

    /// Annotates the node of this name if it still has this uid, else fails with [`Error::Gone`]. Needs the right to
    /// patch `nodes/status`.
    pub async fn annotate_node(&self, name: &str, uid: &str, annotations: &Annotations) -> Result<(), Error> {
        let metadata = json!({ "uid": uid, "annotations": annotations });
        self.set_metadata(&format!("annotate node {name}"), &node_status(name), metadata).await
    }

    /// Sets labels of the node of this name if it still has this uid, else fails with [`Error::Gone`]. Needs the right to
    /// patch `nodes/status`.
    pub async fn label_node(&self, name: &str, uid: &str, labels: &[(&str, &str)]) -> Result<(), Error> {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        self.set_metadata(&format!("label node {name}"), &node_status(name), json!({ "uid": uid, "labels": labels }))
            .await
    }

    /// Sets a condition of the node of this name and uid, with its time: call it when the condition changes. Others
    /// stay. Needs the right to patch `nodes/status`.
    pub async fn set_node_condition(&self, name: &str, uid: &str, condition: &Condition) -> Result<(), Error> {
        let Condition { kind, status, reason, message } = condition;
        let now = self.wall_time().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let body = json!({ "metadata": { "uid": uid }, "status": { "conditions": [{
            "type": kind, "status": if *status { "True" } else { "False" }, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }] } });
        let (action, path) = (format!("set condition {kind} of node {name}"), node_status(name));
        self.send(&action, Method::PATCH, &path, STRATEGIC_PATCH, body.to_string().into_bytes()).await
    }

    /// A JSON patch that tests only what it replaces: a resource version would also change with each report of a kubelet.
    async fn give(&self, action: &str, path: &str, uid: &str, given: Given<'_>) -> Result<(), Error> {
        let op = |op: &str, path: &str, value: Value| json!({ "op": op, "path": path, "value": value });
        let mut ops = Vec::new();
        if let Some(seen) = given.seen {
            for ((name, text), seen) in given.annotations.iter().zip(seen) {
                let path = format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"));
                ops.extend([op("test", &path, json!(seen.as_deref())), op("add", &path, json!(text))]);
            }
        } else {
            let all: BTreeMap<_, _> = given.annotations.iter().map(|(name, text)| (*name, text)).collect();
            let path = "/metadata/annotations";
            ops.extend([op("test", path, Value::Null), op("add", path, json!(all))]);
        }
        // the answer to another uid says so, unlike that to a test
        ops.push(op("replace", "/metadata/uid", json!(uid)));
        self.send(action, Method::PATCH, path, JSON_PATCH, Value::Array(ops).to_string().into_bytes()).await
    }

    async fn set_metadata(&self, action: &str, path: &str, metadata: Value) -> Result<(), Error> {
        let body = json!({ "metadata": metadata }).to_string().into_bytes();
        self.send(action, Method::PATCH, path, MERGE_PATCH, body).await
    }
}

fn pod_path(pod: &PodKey) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", query_value(&pod.namespace), query_value(&pod.name))
}

fn node_status(name: &str) -> String {
    format!("/api/v1/nodes/{}/status", query_value(name))
}

/// What a JSON merge patch (RFC 7396) makes of an object.
pub fn merge_patch(whole: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *whole = patch.clone();
        return;
    };
    if !whole.is_object() {
        *whole = json!({});
    }
    let Value::Object(whole) = whole else { return };
    for (key, value) in patch {
        if value.is_null() {
            whole.remove(key);
        } else {
            merge_patch(whole.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
