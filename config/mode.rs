//! Which parts run in this process.

/// Parts to run, each with its identity. Running, cleaning up and removing exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mode {
    /// Allocates node subnets; opens no OVN database. The identity holds the lease.
    pub cluster_manager: Option<String>,
    /// Writes the OVN northbound database. The identity holds the lease.
    pub controller: Option<String>,
    /// Wires pods on this node; the name of the node in Kubernetes.
    pub node: Option<String>,
    /// Undoes what the node agent set up on this host.
    pub cleanup_node: Option<String>,
    /// Removes a node's rows from the OVN databases.
    pub remove_node: Option<String>,
}

impl Mode {
    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the northbound database is opened.
    pub fn uses_northbound(&self) -> bool {
        self.controller.is_some() || self.remove_node.is_some()
    }

    /// Whether the southbound database is opened, by this process or by the node's ovn-controller.
    pub fn uses_southbound(&self) -> bool {
        self.uses_northbound() || self.node.is_some()
    }

    /// Whether the Kubernetes API is used.
    pub fn uses_kubernetes(&self) -> bool {
        self.cluster_manager.is_some() || self.controller.is_some() || self.node.is_some()
    }
}
