//! Writes annotations of pods and nodes, and conditions of nodes.

use std::collections::BTreeMap;

use http::Method;
use ovnkube_model::PodKey;
use serde_json::{Value, json};

use crate::client::{MERGE_PATCH, STRATEGIC_PATCH, query_value};
use crate::{Client, Error};

/// Annotations to set, or to remove (`None`). All others stay.
pub type Annotations = BTreeMap<String, Option<String>>;

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
    /// Annotates the pod of this name if it still has this uid, else fails with [`Error::Gone`]. Needs the right to
    /// patch `pods/status`.
    pub async fn annotate_pod(&self, pod: &PodKey, uid: &str, annotations: &Annotations) -> Result<(), Error> {
        let (namespace, name) = (query_value(&pod.namespace), query_value(&pod.name));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/status");
        self.annotate(&format!("annotate pod {pod}"), &path, uid, annotations).await
    }

    /// Annotates the node of this name if it still has this uid, else fails with [`Error::Gone`]. Needs the right to
    /// patch `nodes/status`.
    pub async fn annotate_node(&self, name: &str, uid: &str, annotations: &Annotations) -> Result<(), Error> {
        self.annotate(&format!("annotate node {name}"), &node_status(name), uid, annotations).await
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
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let body = json!({ "metadata": { "uid": uid }, "status": { "conditions": [{
            "type": kind, "status": if *status { "True" } else { "False" }, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }] } });
        let (action, path) = (format!("set condition {kind} of node {name}"), node_status(name));
        self.send(&action, Method::PATCH, &path, STRATEGIC_PATCH, body.to_string().into_bytes()).await
    }

    async fn annotate(&self, action: &str, path: &str, uid: &str, annotations: &Annotations) -> Result<(), Error> {
        self.set_metadata(action, path, json!({ "uid": uid, "annotations": annotations })).await
    }

    async fn set_metadata(&self, action: &str, path: &str, metadata: Value) -> Result<(), Error> {
        let body = json!({ "metadata": metadata }).to_string().into_bytes();
        self.send(action, Method::PATCH, path, MERGE_PATCH, body).await
    }
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
