//! A real API, the engine, and OVN's northd behind it; no node runs, packets are traced.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use ovnkube_model::{Change, World};
use ovnkube_policy_truth::evaluate::name;
use ovnkube_policy_truth::generate::Size;
use ovnkube_policy_truth::{Cluster, Random, generate};
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::objects::kinds;
use ovnkube_tests::settings::Settings;
use ovnkube_tests::southbound::{Southbound, Tracer};
use serde_json::{Value, json};

use crate::questions::{Party, Question, find};

const NODES: [&str; 2] = ["n1", "n2"];
const POD_NETWORKS: &str = "k8s.ovn.org/pod-networks";
const POLICIES: &str = "/apis/networking.k8s.io/v1";

pub(crate) struct Lab {
    pub(crate) cluster: Cluster,
    world: World,
    settings: Settings,
    macs: BTreeMap<String, String>,
    engine: Option<Running>,
    rounds: usize,
    southbound: Southbound,
    server: Server,
    api: Api,
}

impl Lab {
    pub(crate) async fn up(release: Release, seed: u64) -> Self {
        let api = Api::up().await;
        let settings = Settings { cluster_subnets: "10.128.0.0/14/23,fd01::/48/64".into(), ..Settings::default() };
        let hosts = [0, 1].map(|node| [format!("172.18.0.1{node}"), format!("fd00:172:18::1{node}")]);
        for (node, ips) in NODES.iter().zip(&hosts) {
            api.node(node, json!({"k8s.ovn.org/node-chassis-id": format!("chassis-{node}")})).await;
            let addresses = ips.each_ref().map(|ip| json!({"type": "InternalIP", "address": ip}));
            let path = format!("/api/v1/nodes/{node}/status");
            api.ask(Method::PATCH, &path, json!({"status": {"addresses": addresses}})).await.unwrap();
        }
        let size = Size { namespaces: 3, pods: 10, nodes: NODES.map(str::to_owned).to_vec(), image: "none".into() };
        for object in generate::objects(seed, &size) {
            make(&api, &object).await;
        }
        // two share an address, and one has its address alone
        for (number, node) in [0, 1, 0].into_iter().enumerate() {
            let ips = &hosts[node];
            let name = format!("host-{number}");
            let pod = generate::host_pod(seed + number as u64, &name, NODES[node], &[&ips[0], &ips[1]]);
            make(&api, &pod).await;
            let path =
                format!("/api/v1/namespaces/{}/pods/{name}/status", pod["metadata"]["namespace"].as_str().unwrap());
            api.ask(Method::PATCH, &path, json!({"status": pod["status"]})).await.unwrap();
        }
        let server = Server::new(release);
        let southbound = Southbound::of(&server);
        let world = World::new(settings.network(), kinds());
        let (cluster, macs) = (Cluster::default(), BTreeMap::new());
        let mut lab = Self { cluster, world, settings, macs, engine: None, rounds: 0, southbound, server, api };
        lab.start_engine().await;
        lab.learn_addresses().await;
        lab
    }

    async fn start_engine(&mut self) {
        let nb = self.server.client().await;
        let engine = Running::start(&self.api, self.settings.network(), Some(nb)).await;
        engine.ready().await;
        self.engine = Some(engine);
    }

    /// Starts again with an empty database of another release; the API stays.
    pub(crate) async fn change_release(&mut self, release: Release) {
        self.engine = None;
        self.server = Server::new(release);
        self.southbound = Southbound::of(&self.server);
        self.start_engine().await;
    }

    async fn learn_addresses(&mut self) {
        until("all pods have addresses", async || {
            let pods = self.api.list("Pod").await;
            let is_ready = |pod: &Value| {
                pod["spec"]["hostNetwork"] == true || pod["metadata"]["annotations"][POD_NETWORKS].is_string()
            };
            pods.iter().all(is_ready)
        })
        .await;
        let decoded = |mut object: Value| {
            object.as_object_mut().unwrap().remove("kind");
            object
        };
        self.cluster.namespaces =
            self.api.list("Namespace").await.into_iter().map(|o| serde_json::from_value(decoded(o)).unwrap()).collect();
        // system namespaces have no pods, and policies are created only where there are pods
        self.cluster.namespaces.retain(|n| n.metadata.name.as_ref().is_some_and(|name| name.starts_with("truth-")));
        let (on_hosts, wired): (Vec<_>, Vec<_>) =
            self.api.list("Pod").await.into_iter().partition(|pod| pod["spec"]["hostNetwork"] == true);
        self.cluster.pods.extend(on_hosts.into_iter().map(|pod| serde_json::from_value(decoded(pod)).unwrap()));
        for mut pod in wired {
            let network: Value =
                serde_json::from_str(pod["metadata"]["annotations"][POD_NETWORKS].as_str().unwrap()).unwrap();
            let ips = network["default"]["ip_addresses"].as_array().unwrap().iter();
            let ips = ips.map(|ip| json!({"ip": ip.as_str().unwrap().split('/').next()}));
            pod["status"] = json!({"podIPs": ips.collect::<Vec<_>>()});
            let pod: k8s_openapi::api::core::v1::Pod = serde_json::from_value(decoded(pod)).unwrap();
            let mac = network["default"]["mac_address"].as_str().unwrap().to_owned();
            self.macs.insert(name(&pod.metadata), mac);
            self.cluster.pods.push(pod);
        }
        for node in NODES {
            let mac = self.server.nbctl(&["get", "logical_router_port", &format!("rtos-{node}"), "mac"]);
            self.macs.insert(node.to_owned(), mac.trim_matches('"').to_owned());
        }
    }

    /// The world that `why` uses.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// New labels for one pod and one namespace.
    pub(crate) async fn relabel(&mut self, random: &mut Random) {
        let pod = random.below(self.cluster.pods.len());
        let meta = &mut self.cluster.pods[pod].metadata;
        let path =
            format!("/api/v1/namespaces/{}/pods/{}", meta.namespace.as_ref().unwrap(), meta.name.as_ref().unwrap());
        let labels = generate::labels(random, 4);
        meta.labels = serde_json::from_value(json!(labels)).unwrap();
        self.put_labels(&path, &json!(labels)).await;
        let namespace = random.below(self.cluster.namespaces.len());
        let meta = &mut self.cluster.namespaces[namespace].metadata;
        let own = meta.name.clone().unwrap();
        let mut labels = generate::labels(random, 3);
        labels.insert("kubernetes.io/metadata.name".into(), json!(own));
        meta.labels = serde_json::from_value(json!(labels)).unwrap();
        self.put_labels(&format!("/api/v1/namespaces/{own}"), &json!(labels)).await;
    }

    async fn put_labels(&self, path: &str, labels: &Value) {
        let mut object = self.api.get(path).await;
        object["metadata"]["labels"] = labels.clone();
        // the engine annotates pods meanwhile; a PUT without a version replaces the object unconditionally
        object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        self.api.ask(Method::PUT, path, object).await.unwrap();
    }

    /// Creates, replaces and deletes until exactly these exist.
    pub(crate) async fn replace_policies(&mut self, policies: &[Value]) {
        let old = self.api.get(&format!("{POLICIES}/networkpolicies")).await;
        let key = |p: &Value| {
            let text = |name: &str| p["metadata"][name].as_str().unwrap().to_owned();
            (text("namespace"), text("name"))
        };
        let mut old: BTreeSet<_> = old["items"].as_array().unwrap().iter().map(key).collect();
        for policy in policies {
            let (namespace, name) = key(policy);
            let path = format!("{POLICIES}/namespaces/{namespace}/networkpolicies");
            let is_known = old.remove(&(namespace, name.clone()));
            let (method, path) = if is_known { (Method::PUT, format!("{path}/{name}")) } else { (Method::POST, path) };
            self.api.ask(method, &path, policy.clone()).await.unwrap();
        }
        for (namespace, name) in old {
            let path = format!("{POLICIES}/namespaces/{namespace}/networkpolicies/{name}");
            self.api.ask(Method::DELETE, &path, Value::Null).await.unwrap();
        }
        let stored = self.api.get(&format!("{POLICIES}/networkpolicies")).await;
        self.cluster.policies = serde_json::from_value(stored["items"].clone()).unwrap();
        self.learn_world().await;
        self.seen().await;
    }

    async fn learn_world(&mut self) {
        let mut world = World::new(self.settings.network(), kinds());
        let mut objects = Vec::new();
        for kind in ["Node", "Namespace", "Pod"] {
            objects.extend(self.api.list(kind).await);
        }
        let policies = self.api.get(&format!("{POLICIES}/networkpolicies")).await;
        objects.extend(policies["items"].as_array().unwrap().iter().map(|policy| {
            let mut policy = policy.clone();
            policy["kind"] = json!("NetworkPolicy");
            policy
        }));
        for object in objects {
            world.apply(ovnkube_watch::decode(&object.to_string()).unwrap());
        }
        for kind in kinds() {
            world.apply(Change::Synced(kind));
        }
        self.world = world;
    }

    /// Waits until the engine has processed everything: each watch keeps the order, and the last object
    /// is in the database.
    async fn seen(&mut self) {
        self.rounds += 1;
        let last = format!("last-{}", self.rounds);
        self.api.namespace(&last).await;
        self.api.pod(&last, &last, NODES[0], json!({})).await;
        let spec = json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}]});
        let policy = json!({"metadata": {"name": last}, "spec": spec});
        let path = format!("{POLICIES}/namespaces/{last}/networkpolicies");
        self.api.ask(Method::POST, &path, policy).await.unwrap();
        for table in ["Address_Set", "Logical_Switch_Port", "ACL"] {
            until(&format!("{last} is in {table}"), async || {
                self.server.nbctl(&["--columns=external_ids", "list", table]).contains(&last)
            })
            .await;
        }
    }

    /// Traces through northd's flows for everything written so far.
    pub(crate) fn tracer(&self) -> Tracer {
        self.server.nbctl(&["--wait=sb", "sync"]);
        self.southbound.tracer()
    }

    /// Whether a packet arrives, or leaves the pod's switch if the destination is outside.
    pub(crate) fn passes(&self, tracer: &mut Tracer, question: &Question) -> bool {
        let goal = match &question.to.pod {
            Some(pod) => pod.replace('/', "_"),
            None => format!("stor-{}", self.node(&question.from)),
        };
        self.trace(tracer, question).contains(&format!("output to \"{goal}\""))
    }

    pub(crate) fn trace(&self, tracer: &mut Tracer, question: &Question) -> String {
        let (from, to) = (&question.from, &question.to);
        let at = self.node(if from.pod.is_some() { from } else { to });
        let inport = from.pod.as_ref().map_or_else(|| format!("stor-{at}"), |pod| pod.replace('/', "_"));
        let source = self.mac(from.pod.as_deref().unwrap_or(at));
        let is_near = to.pod.is_some() && self.node(to) == at;
        let destination = self.mac(to.pod.as_deref().filter(|_| is_near).unwrap_or(at));
        let family = if from.ip.is_ipv4() { "ip4" } else { "ip6" };
        let protocol = question.protocol.name().to_lowercase();
        let microflow = format!(
            "inport == \"{inport}\" && eth.src == {source} && eth.dst == {destination} && {family}.src == {} && {family}.dst == {} \
             && ip.ttl == 64 && {protocol}.src == 40000 && {protocol}.dst == {}",
            from.ip, to.ip, question.port
        );
        tracer.trace(at, &microflow)
    }

    fn mac(&self, of: &str) -> &str {
        self.macs.get(of).unwrap()
    }

    fn node(&self, party: &Party) -> &str {
        let pod = find(&self.cluster, party.pod.as_deref().unwrap());
        pod.spec.as_ref().unwrap().node_name.as_deref().unwrap()
    }
}

async fn make(api: &Api, object: &Value) {
    let meta = &object["metadata"];
    if object["kind"] == "Namespace" {
        api.ask(Method::POST, "/api/v1/namespaces", object.clone()).await.unwrap();
        let path = format!("/api/v1/namespaces/{}/serviceaccounts", meta["name"].as_str().unwrap());
        api.ask(Method::POST, &path, json!({"metadata": {"name": "default"}})).await.unwrap();
    } else {
        let path = format!("/api/v1/namespaces/{}/pods", meta["namespace"].as_str().unwrap());
        api.ask(Method::POST, &path, object.clone()).await.unwrap();
    }
}
