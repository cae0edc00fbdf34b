//! The cases of `cases.yaml`.

use ovnkube_watch::merge_patch;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    #[serde(rename = "case")]
    pub what: String,
    pub user: String,
    /// `create`, `update` or `delete`.
    pub verb: String,
    object: String,
    #[serde(default)]
    had: Value,
    #[serde(default)]
    pub patch: Value,
    /// A part of the message of a denial.
    pub denied: Option<String>,
}

/// All of them, in the file's order.
pub fn all() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("cases.yaml")).unwrap()
}

impl Case {
    /// List, subresource and name of the object.
    pub fn place(&self) -> (&str, &str, &str) {
        let (kind, name) = self.object.split_once(' ').unwrap();
        let (list, sub_resource) = kind.split_once('/').unwrap_or((kind, ""));
        (list, sub_resource, name)
    }

    /// The object before the request.
    pub fn before(&self) -> Value {
        let (list, _, name) = self.place();
        let mut object = match list {
            "nodes" => json!({"metadata": {"name": name}, "spec": {}, "status": {}}),
            "pods" => json!({
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"nodeName": "own", "containers": [{"name": "c", "image": "none"}]},
            }),
            _ => json!({
                "metadata": {"name": name, "namespace": "default"}, "involvedObject": {"kind": "Node", "name": "own"},
                "source": {"host": "own"}, "reportingComponent": "ovnkube-node", "reportingInstance": "own", "count": 1,
            }),
        };
        merge(&mut object, &self.had);
        object
    }

    /// The object after it.
    pub fn after(&self) -> Value {
        let mut object = self.before();
        merge(&mut object, &self.patch);
        object
    }
}

/// A case without a patch changes nothing.
fn merge(object: &mut Value, patch: &Value) {
    if !patch.is_null() {
        merge_patch(object, patch);
    }
}
