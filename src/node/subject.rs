//! What a request of the container runtime is about.

use std::path::PathBuf;

use ovnkube_model::PodKey;

/// The sandbox a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    pub container_id: String,
    /// Name of the interface in the pod.
    pub interface: String,
    /// `None` only for DEL: the namespace may be gone.
    pub netns: Option<PathBuf>,
    /// `None` only for DEL.
    pub pod: Option<PodKey>,
    pub pod_uid: Option<String>,
}
