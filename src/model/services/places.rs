//! The size of the cluster, as far as the size of a service's rows depends on it.

/// The nodes where services are served. Agents do not know them: one may take an endpoint for served that is left out here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) nodes: usize,
    /// The addresses at which node ports answer, of all nodes together.
    pub(crate) node_port_ips: usize,
    /// Of these, the ones of the family that has more.
    pub(crate) node_port_ips_of_a_family: usize,
    /// The same of all families together, of the node that has most.
    pub(crate) node_port_ips_of_a_node: usize,
    /// The same as the last, if one row may have the node ports of all nodes.
    pub(crate) in_template: Option<usize>,
}

/// How many endpoints of a family a port may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    pub(super) all: usize,
    /// In each list that a node has of them, but for those of its own endpoints.
    pub(super) in_list: usize,
}
