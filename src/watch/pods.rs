//! Pods.

use std::marker::PhantomData;

use ovnkube_model::{Change, Kind, NamedPort, Pod, PodFields, PodKey, Protocol};
use serde::Deserialize;

use crate::object::{Metadata, Watched};

/// Pods, with what `V` keeps of each.
pub(crate) struct PodsAs<V>(PhantomData<V>);

/// What a watch keeps of a pod; `None`: nothing, as if it did not exist.
pub(crate) trait View: Send + 'static {
    fn of(object: &PodObject<'_>) -> Option<Pod>;
}

/// What the controller needs.
pub(crate) struct Whole;
/// What the agent of the pod's node needs.
pub(crate) struct ForNode;
/// Where a running pod runs and its addresses; nothing of one that does not run.
pub(crate) struct Running;

pub(crate) type Pods = PodsAs<Whole>;
pub(crate) type NodePods = PodsAs<ForNode>;
pub(crate) type RunningPods = PodsAs<Running>;

#[derive(Debug, Deserialize)]
pub(crate) struct PodObject<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
    host_network: Option<bool>,
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    ports: Option<Vec<ContainerPort>>,
    /// `Always` makes an init container a sidecar.
    restart_policy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerPort {
    name: Option<String>,
    #[serde(rename = "containerPort")]
    number: i64,
    protocol: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Option<String>,
    #[serde(rename = "podIPs")]
    pod_ips: Option<Vec<PodIp>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodIp {
    ip: String,
}

impl Spec {
    /// Named ports of the containers that run at the same time, with sidecars.
    fn named_ports(&self) -> Vec<NamedPort> {
        let sidecars = self.init_containers.iter().flatten();
        let sidecars = sidecars.filter(|c| c.restart_policy.as_deref() == Some("Always"));
        let containers = self.containers.iter().flatten().chain(sidecars);
        let ports = containers.flat_map(|container| container.ports.iter().flatten());
        let named = |port: &ContainerPort| {
            Some(NamedPort {
                name: port.name.as_deref().filter(|name| !name.is_empty())?.into(),
                protocol: Protocol::parse(port.protocol.as_deref()).ok()?,
                number: u16::try_from(port.number).ok()?,
            })
        };
        ports.filter_map(named).collect()
    }
}

impl PodObject<'_> {
    fn pod(&self) -> Pod {
        let ips: Vec<_> = self.status.pod_ips.iter().flatten().filter_map(|ip| ip.ip.parse().ok()).collect();
        let fields = PodFields {
            node_name: self.spec.node_name.as_deref(),
            host_network: self.spec.host_network.unwrap_or_default(),
            ips: &ips,
            ports: &self.spec.named_ports(),
            finished: matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed")),
        };
        Pod::parse(&self.metadata.meta(), fields)
    }
}

impl View for Whole {
    fn of(object: &PodObject<'_>) -> Option<Pod> {
        Some(object.pod())
    }
}

impl View for ForNode {
    fn of(object: &PodObject<'_>) -> Option<Pod> {
        Some(object.pod().with_wiring(&object.metadata.meta()))
    }
}

impl View for Running {
    fn of(object: &PodObject<'_>) -> Option<Pod> {
        object.pod().if_it_runs()
    }
}

impl<V: View> Watched for PodsAs<V> {
    const KIND: Kind = Kind::Pod;
    const PATH: &'static str = "/api/v1/pods";
    const PAGE: u32 = 200;
    type Key = PodKey;
    type Object<'a> = PodObject<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o PodObject<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: PodKey, object: &PodObject<'_>) -> Change {
        Change::Pod(key, V::of(object).map(Box::new))
    }

    fn gone(key: PodKey) -> Change {
        Change::Pod(key, None)
    }
}
