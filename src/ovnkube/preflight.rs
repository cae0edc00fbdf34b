//! `ovnkube preflight`: reads the cluster and the northbound database, changes nothing, and says what to do before
//! ovnkube takes over.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ovnkube_config::Settings;
use ovnkube_model::{Finding, Roles, Subnet, keys};
use ovnkube_ovn::nb::{self, logical_router_port as lrp};
use ovnkube_ovsdb::{Cache, Client as Database};
use ovnkube_plan::preflight::{self, ATTACHMENT, KINDS, NodeSeen, Northbound, Observed, is_of_ovn};
use ovnkube_plan::{Unserved, names};
use ovnkube_watch::{Access, Client, LOG_IN_WITHIN};
use serde_json::Value;

use crate::{controller, remove, translate};

/// Reading the whole cluster takes no longer than this.
const READ_WITHIN: Duration = Duration::from_secs(120);
/// Gateways of a namespace, in the form that was used before AdminPolicyBasedExternalRoute.
const EXTERNAL_GATEWAYS: &str = "k8s.ovn.org/routing-external-gws";
/// The same on the pod that is the gateway: the namespaces.
const GATEWAY_OF: &str = "k8s.ovn.org/routing-namespaces";

/// What other networks consist of, and the API's lists.
const WORKLOADS: [(&str, &str); 3] = [
    ("DaemonSet", "/apis/apps/v1/daemonsets"),
    ("Deployment", "/apis/apps/v1/deployments"),
    ("ValidatingWebhookConfiguration", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
];

/// What is to be done for the cluster.
pub(crate) async fn cluster(settings: &Settings) -> Result<Vec<Finding>> {
    // a person runs this, whose kubeconfig may run a program for a token
    let access = Access { plugin: Some(LOG_IN_WITHIN), ..translate::access(settings, "preflight") };
    let api = Client::connect(&access).await?;
    let (observed, northbound) = tokio::join!(read(&api, settings), northbound(settings));
    Ok(preflight::check(&Observed { northbound, ..observed? }))
}

async fn read(api: &Client, settings: &Settings) -> Result<Observed> {
    let all = async {
        let mut observed =
            Observed { settings: wanted(settings), kubernetes: api.version().await?, ..Observed::default() };
        observed.nodes = api.survey("/api/v1/nodes", |object| Some(node(object))).await?;
        let addresses = api.survey("/api/v1/namespaces/default/services", api_service).await?;
        observed.api_service = addresses.into_iter().flatten().collect();
        for (kind, path) in WORKLOADS {
            let workload = |object: &Value| {
                Some((kind.to_owned(), text(object, "/metadata/namespace"), text(object, "/metadata/name")))
            };
            observed.workloads.extend(api.survey(path, workload).await?);
        }
        for (kind, path) in KINDS {
            let object = |object: &Value| is_counted(kind, object).then(|| ((*kind).to_owned(), name(object)));
            observed.objects.extend(api.survey(path, object).await?);
        }
        observed.objects.extend(api.survey("/api/v1/namespaces", gateways).await?);
        observed.objects.extend(api.survey("/api/v1/pods", gateway_pod).await?);
        Ok::<_, ovnkube_watch::Error>(observed)
    };
    let read = tokio::time::timeout(READ_WITHIN, all).await;
    Ok(read.with_context(|| format!("cannot read the cluster within {} s", READ_WITHIN.as_secs()))??)
}

fn wanted(settings: &Settings) -> preflight::Settings {
    let network = translate::network(settings, Roles::default());
    preflight::Settings {
        cluster_subnets: network.cluster_subnets.iter().map(|range| range.cidr).collect(),
        service_cidrs: network.service_cidrs,
        join_subnets: network.join_subnets,
        masquerade_subnets: network.masquerade_subnets,
        mtu: settings.mtu_is_given.then_some(settings.default.mtu),
    }
}

fn text(object: &Value, path: &str) -> String {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    object.pointer(path).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// `NAMESPACE/NAME`, or the name of an object without namespace.
fn name(object: &Value) -> String {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    if namespace.is_empty() { name } else { format!("{namespace}/{name}") }
}

fn is_counted(kind: &str, object: &Value) -> bool {
    kind != ATTACHMENT || is_of_ovn(&text(object, "/spec/config"))
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(key)?.as_str()
}

fn gateways(namespace: &Value) -> Option<(String, String)> {
    annotation(namespace, EXTERNAL_GATEWAYS).map(|_| {
        (format!("the annotation {EXTERNAL_GATEWAYS}"), format!("namespace {}", text(namespace, "/metadata/name")))
    })
}

fn gateway_pod(pod: &Value) -> Option<(String, String)> {
    annotation(pod, GATEWAY_OF).map(|_| (format!("the annotation {GATEWAY_OF}"), format!("pod {}", name(pod))))
}

fn api_service(service: &Value) -> Option<Vec<IpAddr>> {
    let is_it = text(service, "/metadata/name") == "kubernetes";
    is_it.then(|| texts(service, "/spec/clusterIPs").filter_map(|ip| ip.parse().ok()).collect())
}

fn node(node: &Value) -> NodeSeen {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array).into_iter().flatten();
    let internal = addresses.filter(|address| address.get("type").is_some_and(|kind| kind == "InternalIP"));
    NodeSeen {
        name: text(node, "/metadata/name"),
        addresses: internal.filter_map(|address| text(address, "/address").parse().ok()).collect(),
        subnets: annotation(node, keys::NODE_SUBNETS).map(subnets).unwrap_or_default(),
        pod_cidrs: texts(node, "/spec/podCIDRs").map(str::to_owned).collect(),
        masquerade_subnets: annotation(node, keys::MASQUERADE_SUBNET).map(by_family).unwrap_or_default(),
        zone: annotation(node, keys::ZONE).unwrap_or_default().to_owned(),
    }
}

/// `{"default": "10.128.0.0/23"}`, or a list of them.
fn subnets(text: &str) -> Vec<Subnet> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let Some(default) = value.get("default") else { return Vec::new() };
    let all = default.as_array().map_or(std::slice::from_ref(default), Vec::as_slice);
    all.iter().filter_map(|subnet| subnet.as_str()?.parse().ok()).collect()
}

/// `{"ipv4": "169.254.169.0/29", "ipv6": "fd69::/125"}`.
fn by_family(text: &str) -> Vec<Subnet> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    ["/ipv4", "/ipv6"].iter().filter_map(|family| value.pointer(family)?.as_str()?.parse().ok()).collect()
}

/// On an empty cluster there is no database yet.
async fn northbound(settings: &Settings) -> Northbound {
    match remove::open(controller::northbound(settings), "northbound").await {
        Ok(database) => seen(&database),
        Err(why) => Northbound { unreachable: why, ..Northbound::default() },
    }
}

fn seen(database: &Database) -> Northbound {
    let cache: &Cache = &database.cache();
    let port = |name: &str| cache.named(lrp::TABLE, name).next().map(|(_, row)| row);
    let join = port(names::CLUSTER_ROUTER_TO_JOIN)
        .map(|row| row.strs(lrp::NETWORKS).filter_map(|net| net.parse().ok()).collect());
    let mtus = cache.iter(lrp::TABLE).filter_map(|(_, row)| {
        let name = row.str(lrp::NAME);
        names::GATEWAY_TO_JOIN.node(name)?;
        Some((name.to_owned(), row.map(lrp::OPTIONS).get("gateway_mtu")?.parse().ok()?))
    });
    let rows = nb::DATABASE.tables.iter().flat_map(|table| cache.iter(table)).map(|(_, row)| &**row);
    Northbound {
        unreachable: String::new(),
        version: database.schema().map(|schema| schema.version.clone()).unwrap_or_default(),
        join: join.unwrap_or_default(),
        mtus: mtus.collect(),
        unserved: Unserved::of(rows),
    }
}
