//! The questions: every pod, some addresses outside, and those of nodes, to each other, with every protocol.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;
use ovnkube_model::{PodKey, World};
use ovnkube_plan::why;
use ovnkube_policy_truth::evaluate::{addresses, is_in_host_network, name};
use ovnkube_policy_truth::generate::{OUTSIDE, PORTS};
use ovnkube_policy_truth::{Cluster, End, Flow, Protocol};

/// A pod by its name, or an address outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Party {
    pub(crate) pod: Option<String>,
    pub(crate) ip: IpAddr,
}

#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) from: Party,
    pub(crate) to: Party,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
}

/// All questions.
pub(crate) fn all(cluster: &Cluster) -> Vec<Question> {
    let (unwired, wired): (Vec<_>, Vec<_>) = cluster.pods.iter().partition(|pod| is_in_host_network(pod));
    let of_hosts: BTreeSet<_> = unwired.into_iter().flat_map(addresses).collect();
    let of_pods = wired.into_iter().flat_map(|pod| {
        let name = name(&pod.metadata);
        addresses(pod).into_iter().map(move |ip| Party { pod: Some(name.clone()), ip })
    });
    let outside = OUTSIDE.iter().map(|ip| ip.parse().unwrap()).chain(of_hosts).map(|ip| Party { pod: None, ip });
    let parties: Vec<_> = of_pods.chain(outside).collect();
    let mut questions = Vec::new();
    for from in &parties {
        for to in parties.iter().filter(|to| to.ip.is_ipv4() == from.ip.is_ipv4()) {
            // addresses outside belong to no pod, and packets of a pod to itself do not leave it
            if from.pod == to.pod {
                continue;
            }
            for protocol in Protocol::ALL {
                let ask = |port| Question { from: from.clone(), to: to.clone(), protocol, port };
                questions.extend(PORTS.map(ask));
            }
        }
    }
    questions
}

pub(crate) fn find<'a>(cluster: &'a Cluster, wanted: &str) -> &'a Pod {
    cluster.pods.iter().find(|pod| name(&pod.metadata) == wanted).unwrap()
}

impl Question {
    /// The reference's answer.
    pub(crate) fn expected(&self, cluster: &Cluster) -> bool {
        let end = |party: &Party| End { pod: party.pod.as_deref().map(|name| find(cluster, name)), ip: party.ip };
        cluster.allows(&Flow { from: end(&self.from), to: end(&self.to), protocol: self.protocol, port: self.port })
    }

    /// The answer of `ovnkube why`.
    pub(crate) fn why(&self, world: &World) -> bool {
        let answers = self.answers(world);
        answers.iter().find(|a| a.to.ip == Some(self.to.ip)).is_some_and(why::Answer::is_allowed)
    }

    pub(crate) fn explained(&self, world: &World) -> String {
        self.answers(world).iter().map(ToString::to_string).collect()
    }

    fn answers(&self, world: &World) -> Vec<why::Answer> {
        let end = |party: &Party| match party.pod.as_deref().and_then(|name| name.split_once('/')) {
            Some((namespace, name)) => why::Endpoint::Pod(PodKey::new(namespace, name)),
            None => why::Endpoint::Address(party.ip),
        };
        let protocol = match self.protocol {
            Protocol::Tcp => ovnkube_model::Protocol::Tcp,
            Protocol::Udp => ovnkube_model::Protocol::Udp,
            Protocol::Sctp => ovnkube_model::Protocol::Sctp,
        };
        why::why(world, &end(&self.from), &end(&self.to), protocol, self.port).unwrap()
    }

    /// Labels and ports of the pods at both ends.
    pub(crate) fn ends(&self, cluster: &Cluster) -> String {
        let pods = [&self.from, &self.to].into_iter().filter_map(|party| party.pod.as_deref());
        let line = |wanted: &str| {
            let pod = find(cluster, wanted);
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let ports: Vec<_> = containers.flat_map(|container| container.ports.iter().flatten()).collect();
            let text = |value: Result<String, _>| value.unwrap_or_default();
            let labels = text(serde_json::to_string(&pod.metadata.labels));
            format!("  {wanted} {labels} {}\n", text(serde_json::to_string(&ports)))
        };
        pods.map(line).collect()
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |party: &Party| format!("{} {}", party.pod.as_deref().unwrap_or("outside"), party.ip);
        write!(f, "{} -> {} {} {}", name(&self.from), name(&self.to), self.protocol.name(), self.port)
    }
}
