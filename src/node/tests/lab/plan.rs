use ovnkube_model::HostRoutes;
use ovnkube_node::Change;
use tokio::sync::{mpsc, watch};

use super::Lab;

impl Lab {
    /// What an agent would change that is told of no other clusters.
    pub fn plan(&self) -> Vec<String> {
        self.plan_of(Some(HostRoutes::default()))
    }

    /// What an agent would change. `told`: the prefixes of other clusters, if it knows them.
    pub fn plan_of(&self, told: Option<HostRoutes>) -> Vec<String> {
        let (changes, received) = mpsc::channel(16);
        for change in [Change::ServicesSynced, Change::NodesSynced, Change::Node(self.node())] {
            changes.try_send(change).unwrap();
        }
        if let Some(told) = told {
            changes.try_send(Change::OtherClusters(told)).unwrap();
        }
        let settings = self.settings();
        let planned = async { ovnkube_node::plan(&settings, received, watch::Sender::default()).await };
        self.runtime.block_on(planned).unwrap()
    }

    /// Whether a warning of this reason stands.
    pub fn has_warning(&self, reason: &str) -> bool {
        self.agent.as_ref().unwrap().standing.now().iter().any(|warning| warning.reason == reason)
    }
}
