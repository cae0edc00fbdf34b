//! Annotations on pods and nodes.

use std::collections::BTreeMap;

use http::Method;
use ovnkube_model::PodKey;
use serde_json::json;

use crate::client::{MERGE_PATCH, query_value};
use crate::{Client, Error};

/// Annotations to set, and those (`None`) to remove. All others stay.
pub type Annotations = BTreeMap<String, Option<String>>;

impl Client {
    /// Annotates the pod of this name if it still is the one of this uid; [`Error::Gone`] if not.
    /// Needs the right to patch `pods/status`.
    pub async fn annotate_pod(&self, pod: &PodKey, uid: &str, annotations: &Annotations) -> Result<(), Error> {
        let (namespace, name) = (query_value(&pod.namespace), query_value(&pod.name));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/status");
        self.annotate(&format!("annotate pod {pod}"), &path, uid, annotations).await
    }

    /// Annotates the node of this name if it still is the one of this uid; [`Error::Gone`] if not.
    /// Needs the right to patch `nodes/status`.
    pub async fn annotate_node(&self, name: &str, uid: &str, annotations: &Annotations) -> Result<(), Error> {
        let path = format!("/api/v1/nodes/{}/status", query_value(name));
        self.annotate(&format!("annotate node {name}"), &path, uid, annotations).await
    }

    async fn annotate(&self, action: &str, path: &str, uid: &str, annotations: &Annotations) -> Result<(), Error> {
        let body = json!({ "metadata": { "uid": uid, "annotations": annotations } });
        self.send(action, Method::PATCH, path, MERGE_PATCH, body.to_string().into_bytes()).await
    }
}
