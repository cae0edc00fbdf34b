//! What the agent is told of the cluster.

use ovnkube_model::{Name, Node};
use tokio::sync::mpsc;

/// How many changes may wait.
pub(super) const CHANGES: usize = 1024;

/// The own Node as it was last seen, with its uid.
pub(super) type Own = Option<(Name, Box<Node>)>;

/// Nobody hears it while an agent that has ended says why: that it ended, and why, is for its caller to return.
pub(super) async fn tell(agent: &mpsc::Sender<ovnkube_node::Change>, change: ovnkube_node::Change) {
    let _ = agent.send(change).await;
}
