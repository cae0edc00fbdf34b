//! What a node may change, as a pure function: one table per kind of identity, the same as in dist/yaml/admission.yaml.
//!
//! ```text
//!  user ─▶ Who: agent, kubelet; others may do everything ─▶ rules of Who about the resource ─▶ first one that is broken
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::names::{AGENTS, KUBELETS, agent_of, kubelet_of};

/// The account of node agents; the same token names the node. Agents with certificates have it in their user.
const ACCOUNT: &str = "system:serviceaccount:ovn-kubernetes:ovn-node";
const NODE_OF_TOKEN: &str = "authentication.kubernetes.io/node-name";

/// All annotations with this prefix are ovnkube's.
const OURS: &str = "k8s.ovn.org/";
const CHASSIS: &str = "k8s.ovn.org/node-chassis-id";
const ZONE: &str = "k8s.ovn.org/zone-name";
/// Labels of Nodes by which administrators and masters choose nodes: those of the cluster's databases and of the interconnection
/// databases, gateways to other clusters, hosts with routes there.
const CHOSEN_BY_OTHERS: [&str; 4] =
    ["k8s.ovn.org/ovnkube-db", "kube-ovn/role", "ovn.kubernetes.io/ic-gw", "ovn.kubernetes.io/host-route"];
/// The annotations of a Node that its agent writes, also with the credentials of its kubelet.
const WRITTEN_BY_AGENTS: [&str; 9] = [
    CHASSIS,
    ZONE,
    "k8s.ovn.org/host-cidrs",
    "k8s.ovn.org/node-encap-ips",
    "k8s.ovn.org/node-primary-ifaddr",
    "k8s.ovn.org/node-masquerade-subnet",
    "k8s.ovn.org/l3-gateway-config",
    "k8s.ovn.org/gateway-mtu-support",
    "k8s.ovn.org/node-mtu",
];
/// Those that only agents of ovn-kubernetes write, which have the same users while a cluster changes over.
const WRITTEN_BY_OTHER_AGENTS: [&str; 5] = [
    "k8s.ovn.org/node-mgmt-port-mac-addresses",
    "k8s.ovn.org/node-mgmt-port",
    "k8s.ovn.org/bridge-egress-ips",
    "k8s.ovn.org/secondary-host-egress-ips",
    "k8s.ovn.org/node-ingress-snat-exclude-subnets",
];

/// The part of an AdmissionReview's `request` that decides.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    resource: Resource,
    #[serde(default)]
    sub_resource: String,
    operation: Operation,
    user_info: User,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
}

#[derive(Debug, Clone, Deserialize)]
struct Resource {
    #[serde(default)]
    group: String,
    resource: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

#[derive(Debug, Clone, Deserialize)]
struct User {
    username: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

/// The identities that rules are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Agent,
    Kubelet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Nodes,
    Events,
    Pods,
}

/// A request with what the rules ask of it.
struct Case<'a> {
    request: &'a Request,
    /// The node that the user is of; empty: none.
    node: &'a str,
    had: BTreeMap<&'a str, &'a Value>,
    has: BTreeMap<&'a str, &'a Value>,
    /// Annotations that are added, removed or have another value.
    changed: Vec<&'a str>,
}

/// Why it is broken, or nothing.
type Rule = fn(&Case) -> Option<String>;

/// All rules; the first one that is broken is reported.
const RULES: &[(Who, About, Rule)] = &[
    (Who::Agent, About::Nodes, token_names_a_node),
    (Who::Agent, About::Events, token_names_a_node),
    (Who::Agent, About::Nodes, own_node),
    (Who::Agent, About::Nodes, annotations_only),
    (Who::Agent, About::Nodes, written_by_agents),
    (Who::Agent, About::Nodes, chassis_stays),
    (Who::Agent, About::Nodes, own_zone),
    (Who::Agent, About::Events, own_events),
    (Who::Agent, About::Pods, no_annotations_of_pods),
    (Who::Kubelet, About::Nodes, labels_of_others),
    (Who::Kubelet, About::Nodes, owners_stay),
    (Who::Kubelet, About::Nodes, ours_written_by_agents),
    (Who::Kubelet, About::Nodes, chassis_stays),
    (Who::Kubelet, About::Nodes, own_zone),
    (Who::Kubelet, About::Pods, no_annotations_of_pods),
];

/// Whether the request is allowed; if not, why.
pub(crate) fn decide(request: &Request) -> Result<(), String> {
    let Some(about) = request.about() else { return Ok(()) };
    for (who, node) in request.user_info.identities() {
        if !is_asked(who, about, request.operation) {
            continue;
        }
        let case = Case::new(request, node);
        let mut rules = RULES.iter().filter(|(of, what, _)| *of == who && *what == about);
        if let Some(why) = rules.find_map(|(_, _, broken)| broken(&case)) {
            return Err(why);
        }
    }
    Ok(())
}

/// Nobody connects to a Node by its annotations; RBAC and the node authorizer cover what is left out here.
fn is_asked(who: Who, about: About, operation: Operation) -> bool {
    match (about, operation) {
        (_, Operation::Connect) => false,
        (About::Pods, _) => operation == Operation::Update,
        (_, Operation::Delete) => who == Who::Agent,
        _ => true,
    }
}

impl Request {
    fn about(&self) -> Option<About> {
        match (&*self.resource.group, &*self.resource.resource, &*self.sub_resource) {
            ("", "nodes", "" | "status") => Some(About::Nodes),
            ("", "pods", "" | "status") => Some(About::Pods),
            ("", "events", "") => Some(About::Events),
            _ => None,
        }
    }

    fn is_update(&self) -> bool {
        self.operation == Operation::Update
    }
}

impl User {
    fn identities(&self) -> impl Iterator<Item = (Who, &str)> {
        let of_token = || self.extra.get(NODE_OF_TOKEN).and_then(|names| names.first()).map_or("", String::as_str);
        let is_in = |group: &str| self.groups.iter().any(|one| one == group);
        let agent = match agent_of(&self.username) {
            Some(node) => Some((Who::Agent, node)),
            None => (self.username == ACCOUNT || is_in(AGENTS)).then(|| (Who::Agent, of_token())),
        };
        let name = kubelet_of(&self.username).unwrap_or(&self.username);
        let kubelet = is_in(KUBELETS).then_some((Who::Kubelet, name));
        agent.into_iter().chain(kubelet)
    }
}

impl<'a> Case<'a> {
    fn new(request: &'a Request, node: &'a str) -> Self {
        let had = if request.is_update() { map(&request.old_object, "annotations") } else { BTreeMap::new() };
        let has = map(&request.object, "annotations");
        let mut changed: Vec<&str> =
            has.iter().filter(|(key, value)| had.get(*key) != Some(value)).map(|of| *of.0).collect();
        changed.extend(had.keys().filter(|key| !has.contains_key(*key)));
        changed.sort_unstable();
        Self { request, node, had, has, changed }
    }

    /// Whether both versions have the same there.
    fn same(&self, pointer: &str) -> bool {
        let at = |object: &'a Value| object.pointer(pointer).unwrap_or(&Value::Null);
        at(&self.request.object) == at(&self.request.old_object)
    }

    fn ours(&self) -> Vec<&'a str> {
        self.changed.iter().copied().filter(|key| key.starts_with(OURS)).collect()
    }
}

/// Annotations or labels of an object.
fn map<'a>(object: &'a Value, kind: &str) -> BTreeMap<&'a str, &'a Value> {
    let pairs = object.get("metadata").and_then(|metadata| metadata.get(kind)).and_then(Value::as_object);
    pairs.into_iter().flatten().map(|(key, value)| (key.as_str(), value)).collect()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn unless(holds: bool, why: impl FnOnce() -> String) -> Option<String> {
    (!holds).then(why)
}

fn token_names_a_node(case: &Case) -> Option<String> {
    unless(!case.node.is_empty(), || "the token names no node; use one that is bound to a pod or to a Node".into())
}

fn own_node(case: &Case) -> Option<String> {
    let own = case.request.is_update() && text(&case.request.object, "/metadata/name") == case.node;
    unless(own, || format!("the node agent of {} may change no Node but its own", case.node))
}

fn annotations_only(case: &Case) -> Option<String> {
    let parts = ["/spec", "/status", "/metadata/labels", "/metadata/finalizers", "/metadata/ownerReferences"];
    unless(parts.iter().all(|part| case.same(part)), || {
        "the node agent may change nothing of its Node but annotations".into()
    })
}

fn written_by_agents(case: &Case) -> Option<String> {
    let is_agents = |key: &&str| WRITTEN_BY_AGENTS.contains(key) || WRITTEN_BY_OTHER_AGENTS.contains(key);
    unless(case.changed.iter().all(is_agents), || {
        format!("the node agent may not change the annotations {}", case.changed.join(", "))
    })
}

/// The agent of a Node writes after the Node was created, so a new one has none.
fn ours_written_by_agents(case: &Case) -> Option<String> {
    let ours = case.ours();
    let fine = ours.iter().all(|key| case.request.is_update() && WRITTEN_BY_AGENTS.contains(key));
    unless(fine, || format!("a kubelet may not change the annotations {}", ours.join(", ")))
}

fn chassis_stays(case: &Case) -> Option<String> {
    unless(!(case.had.contains_key(CHASSIS) && case.changed.contains(&CHASSIS)), || {
        format!(
            "the chassis of a Node does not change; for a host that was installed again delete the Node, or the annotation \
             {CHASSIS}"
        )
    })
}

fn own_zone(case: &Case) -> Option<String> {
    let zone = case.has.get(ZONE).map_or(Some("global"), |zone| zone.as_str());
    let fine = zone.is_some_and(|zone| zone == "global" || zone == case.node) || !case.changed.contains(&ZONE);
    unless(fine, || "the zone of a Node is global or has its name".into())
}

/// A node that attracts databases would serve empty ones, or read all of them.
fn labels_of_others(case: &Case) -> Option<String> {
    let had = if case.request.is_update() { map(&case.request.old_object, "labels") } else { BTreeMap::new() };
    let has = map(&case.request.object, "labels");
    let changed: Vec<&str> = CHOSEN_BY_OTHERS.into_iter().filter(|key| had.get(key) != has.get(key)).collect();
    unless(changed.is_empty(), || {
        format!("a kubelet may not change the labels {}, by which others choose nodes", changed.join(", "))
    })
}

/// The garbage collector deletes a Node whose owner is gone, and a Node that is created again has no chassis yet.
fn owners_stay(case: &Case) -> Option<String> {
    let owners = "/metadata/ownerReferences";
    let stay = if case.request.is_update() { case.same(owners) } else { case.request.object.pointer(owners).is_none() };
    unless(stay, || "a kubelet may not change the owners of its Node".into())
}

fn own_events(case: &Case) -> Option<String> {
    let request = case.request;
    let own = |event| text(event, "/source/host") == case.node && text(event, "/reportingInstance") == case.node;
    let fine = match request.operation {
        Operation::Create => own(&request.object),
        Operation::Update => own(&request.object) && own(&request.old_object),
        Operation::Delete | Operation::Connect => false,
    };
    unless(fine, || "the node agent may write only Events that name its node as their source".into())
}

/// They say which addresses a pod has; masters write them.
fn no_annotations_of_pods(case: &Case) -> Option<String> {
    let ours = case.ours();
    unless(ours.is_empty(), || format!("a node may not change the annotations {} of pods", ours.join(", ")))
}
