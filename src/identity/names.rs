//! Names of nodes' identities, as ovn-kubernetes and Kubernetes have them.

/// Users of agents with a certificate for each node.
const AGENT: &str = "system:ovn-node:";
/// Their group.
pub(crate) const AGENTS: &str = "system:ovn-nodes";
const KUBELET: &str = "system:node:";
pub(crate) const KUBELETS: &str = "system:nodes";
/// Who signs the certificates of clients, such as agents: kube-controller-manager.
pub(crate) const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// What an agent's certificate is good for, sorted.
pub(crate) const USAGES: [&str; 2] = ["client auth", "digital signature"];

/// The user of a node's agent.
pub(crate) fn agent(node: &str) -> String {
    format!("{AGENT}{node}")
}

pub(crate) fn agent_of(user: &str) -> Option<&str> {
    user.strip_prefix(AGENT)
}

pub(crate) fn kubelet_of(user: &str) -> Option<&str> {
    user.strip_prefix(KUBELET)
}

/// Whether Kubernetes accepts it as the name of a Node: a DNS subdomain.
pub(crate) fn is_node_name(name: &str) -> bool {
    let label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let (first, last) = (label.bytes().next(), label.bytes().last());
        first.is_some_and(plain) && last.is_some_and(plain) && label.bytes().all(|byte| plain(byte) || byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}
