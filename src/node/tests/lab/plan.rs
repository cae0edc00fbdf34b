use ovnkube_node::Change;
use tokio::sync::{mpsc, watch};

use super::Lab;

impl Lab {
    /// What an agent would change.
    pub fn plan(&self) -> Vec<String> {
        let (changes, received) = mpsc::channel(16);
        for change in [Change::ServicesSynced, Change::NodesSynced, Change::Node(self.node())] {
            changes.try_send(change).unwrap();
        }
        let settings = self.settings();
        let planned = async { ovnkube_node::plan(&settings, received, watch::Sender::default()).await };
        self.runtime.block_on(planned).unwrap()
    }
}
