//! Services.

use ovnkube_model::{Change, Kind, ObjectKey, PortFields, Service, ServiceFields};
use serde::Deserialize;

use crate::object::{Metadata, Watched};

pub(crate) struct Services;

#[derive(Debug, Deserialize)]
pub(crate) struct ServiceObject<'a> {
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
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<String>,
    #[serde(rename = "clusterIPs")]
    cluster_ips: Option<Vec<String>>,
    #[serde(rename = "externalIPs")]
    external_ips: Option<Vec<String>>,
    ports: Option<Vec<PortFields>>,
    external_traffic_policy: Option<String>,
    internal_traffic_policy: Option<String>,
    session_affinity: Option<String>,
    session_affinity_config: Option<AffinityConfig>,
    publish_not_ready_addresses: Option<bool>,
    load_balancer_source_ranges: Option<Vec<String>>,
    health_check_node_port: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AffinityConfig {
    #[serde(rename = "clientIP")]
    client_ip: Option<ClientIp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClientIp {
    timeout_seconds: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    load_balancer: LoadBalancer,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LoadBalancer {
    ingress: Option<Vec<Ingress>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Ingress {
    ip: Option<String>,
    ip_mode: Option<String>,
}

impl ServiceObject<'_> {
    fn service(&self) -> Service {
        let spec = &self.spec;
        let list = |list: &'_ Option<Vec<String>>| list.clone().unwrap_or_default();
        let (cluster_ips, external_ips) = (list(&spec.cluster_ips), list(&spec.external_ips));
        let source_ranges = list(&spec.load_balancer_source_ranges);
        let points = self.status.load_balancer.ingress.iter().flatten();
        let ingress: Vec<_> = points.filter_map(|p| Some((p.ip.clone()?, p.ip_mode.clone()))).collect();
        let client_ip = spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref());
        let fields = ServiceFields {
            kind: spec.kind.as_deref(),
            cluster_ip: spec.cluster_ip.as_deref(),
            cluster_ips: &cluster_ips,
            external_ips: &external_ips,
            ingress: &ingress,
            ports: spec.ports.as_deref().unwrap_or_default(),
            external_traffic_policy: spec.external_traffic_policy.as_deref(),
            internal_traffic_policy: spec.internal_traffic_policy.as_deref(),
            session_affinity: spec.session_affinity.as_deref(),
            affinity_timeout: client_ip.and_then(|config| config.timeout_seconds),
            publish_not_ready: spec.publish_not_ready_addresses.unwrap_or_default(),
            source_ranges: &source_ranges,
            health_check_port: spec.health_check_node_port.unwrap_or_default(),
        };
        Service::parse(&self.metadata.meta(), &fields)
    }
}

impl Watched for Services {
    const KIND: Kind = Kind::Service;
    const PATH: &'static str = "/api/v1/services";
    const PAGE: u32 = 200;
    type Key = ObjectKey;
    type Object<'a> = ServiceObject<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o ServiceObject<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: ObjectKey, object: &ServiceObject<'_>) -> Change {
        Change::Service(key, Some(Box::new(object.service())))
    }

    fn gone(key: ObjectKey) -> Change {
        Change::Service(key, None)
    }
}
