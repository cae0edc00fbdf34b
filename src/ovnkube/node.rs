//! The node agent's part of the process: watches the own Node and its pods, and patches the Node as the agent
//! wants.

mod cluster;
mod for_hosts;
mod told;
mod wanted;

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use ovnkube_config::Settings;
use ovnkube_identity::{NodeCertificate, Wanted};
use ovnkube_model::{Change, Finding, Kind, Name, Notice, Object, ObjectKey, Pod, Roles, Severity};
use ovnkube_node::{
    Annotations, CleanupSettings, HostQuestion, OwnNode, Place, PodOnNode, Reports, Standing, Warning, Warnings,
};
use ovnkube_telemetry::NodeHealth;
use ovnkube_watch::{Access, Client, Data, Events, Scope};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, interval_at, timeout};
use tracing::{debug, info, warn};

use self::told::{CHANGES, Own, tell};
use crate::connections::Connections;
use crate::stop::Stop;
use crate::{install_cni, translate};

/// How often a warning that still stands is repeated: the API server deletes an Event after an hour.
const REMIND: Duration = Duration::from_secs(1800);
/// How long an agent that ends for a reason of its own has to publish it.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// First pause after an annotation could not be written; it doubles.
const TRY_AGAIN: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// If the watch does not show a written annotation, it is written again: another program may have removed it at once.
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// Runs until stopped.
pub(crate) async fn run(settings: Settings, name: String, health: NodeHealth, stop: Stop) -> Result<()> {
    let (remote, run_dir) = (wanted::ovs_remote(&settings), settings.ovspaths.run_dir.clone());
    tokio::select! {
        outcome = Box::pin(certified(settings, name, health, stop)) => outcome,
        // before anything that needs the network
        never = ovnkube_node::end_waits(&remote, &run_dir) => match never {},
    }
}

/// Runs until stopped, with a certificate of its own if it is to have one.
async fn certified(settings: Settings, name: String, health: NodeHealth, mut stop: Stop) -> Result<()> {
    let Some(wanted) = certificate(&settings, &name) else {
        return serve(settings, name, health, stop).await;
    };
    let mut certificate = NodeCertificate::new(wanted);
    tokio::select! {
        () = stop.wait() => return Ok(()),
        () = certificate.ready() => {}
    }
    tokio::select! {
        outcome = Box::pin(serve(settings, name, health, stop)) => outcome,
        never = certificate.keep() => match never {},
    }
}

/// The certificate that the agent asks for, if it does.
fn certificate(settings: &Settings, node: &str) -> Option<Wanted> {
    let kubernetes = &settings.kubernetes;
    let (kubeconfig, dir) = (kubernetes.bootstrap_kubeconfig.clone()?, kubernetes.cert_dir.clone()?);
    let own = translate::access(settings, "node");
    let bootstrap = Access { kubeconfig: Some(kubeconfig), role: own.role.clone(), ..Access::default() };
    Some(Wanted { node: node.to_owned(), dir, duration: kubernetes.cert_duration, bootstrap, own })
}

async fn serve(settings: Settings, name: String, health: NodeHealth, mut stop: Stop) -> Result<()> {
    let api = Client::connect(&translate::access(&settings, "node")).await?;
    let mut cluster = tokio::select! {
        () = stop.wait() => return Ok(()),
        found = cluster::ask_at_start(&api, &settings) => found,
    };
    while let Some(found) = Box::pin(agent(&api, &settings, &cluster, &name, &health, stop.clone())).await? {
        info!("the cluster's values came after the start; starting over");
        cluster = found;
    }
    Ok(())
}

/// Runs with these values of the cluster until stopped; returns other values once the cluster has them.
async fn agent(
    api: &Client,
    own_settings: &Settings,
    cluster: &Data,
    name: &str,
    health: &NodeHealth,
    mut stop: Stop,
) -> Result<Option<Data>> {
    let host = ovnkube_node::uplink_addresses().await?;
    let settings = cluster::taken(own_settings, cluster, &host);
    let (changes, incoming) = mpsc::channel(CHANGES);
    let mut connections = Connections::of(&settings, api.server());
    tokio::select! {
        () = stop.wait() => return Ok(None),
        () = connections.send(&changes) => {}
    }
    let watches = ovnkube_watch::start(api, &Scope::Node(name.into()), &changes);
    let weak = changes.downgrade();
    drop(changes);
    let (to_agent, agent_changes) = mpsc::channel(CHANGES);
    let (annotations, wanted) = watch::channel(Annotations::new());
    let warnings = Warnings::default();
    warnings.report("AgentOlder", cluster::is_older(cluster));
    let standing = warnings.follow();
    let (needs_nodes, nodes_matter) = watch::channel(false);
    let (own, own_node) = watch::channel(None);
    let events = Events::start(api, "ovnkube-node", name);
    let node_name: Name = name.into();
    let (mut other, mut later) = (None, None);
    let reports = Reports { annotations, warnings, needs_nodes, health: health.clone() };
    let work = async {
        let outcome = Box::pin(alone(&settings, &node_name, api.server(), agent_changes, reports, stop)).await;
        if let Err(error) = &outcome {
            let _ = timeout(LAST_WORDS, tell_end(&events, &node_name, own_node.clone(), format!("{error:#}"))).await;
        }
        outcome
    };
    tokio::select! {
        outcome = work => outcome?,
        () = connections.keep_sending(weak) => {}
        () = report_leaving(health, own_node.clone()) => {}
        () = watch_nodes(api, nodes_matter, to_agent.clone()) => {}
        () = for_hosts::watch(api, of_the_cluster(own_settings), own_node.clone(), to_agent.clone()) => {}
        () = forward(incoming, to_agent, own, Cluster { api, settings: own_settings, host: &host, known: cluster, other: &mut other }) => {}
        found = cluster::found_later(api, own_settings, &host, cluster) => later = Some(found),
        () = publish(&events, &node_name, standing, own_node.clone()) => {}
        () = annotate(api, &node_name, wanted, own_node.clone()) => {}
    }
    drop(watches);
    Ok(other.or(later))
}

/// Runs as this host's only agent. Before another one has ended, nothing of the host changes, and the CNI program is not replaced.
async fn alone(
    settings: &Settings,
    name: &Name,
    api_server: &str,
    changes: mpsc::Receiver<ovnkube_node::Change>,
    reports: Reports,
    mut stop: Stop,
) -> Result<()> {
    let agent = wanted::settings(settings, name, api_server);
    let place = Place::take(&agent).await?;
    if let Some(program) = &settings.cni.program {
        let said = install_cni::run(program, &settings.cni.bin_dir, &settings.cni.plugin)?;
        if !said.is_empty() {
            info!("{}", said.trim_end());
        }
    }
    Ok(ovnkube_node::run_at(place, agent, changes, reports, async move { stop.wait().await }).await?)
}

/// Whether an agent listens on this host; waits until it answers then.
pub(crate) async fn answers() -> Result<bool> {
    Ok(ovnkube_node::answers(Path::new(wanted::CNI_SOCKET)).await?)
}

/// Whether the agent of this host has found its node ready; `None`: none listens.
pub(crate) async fn has_been_ready() -> Result<Option<bool>> {
    Ok(ovnkube_node::has_been_ready(Path::new(wanted::CNI_SOCKET)).await?)
}

/// Says as an Event of the own Node why the agent cannot start, if the API server answers soon.
pub(crate) async fn tell_refusal(settings: &Settings, name: &str, why: &str) {
    let told = async {
        let api = Client::connect(&translate::access(settings, "node")).await?;
        let own = api.node(name).await?.map(|node| (node.uid.clone(), node));
        let (_keep, own) = watch::channel(own);
        tell_end(&Events::start(&api, "ovnkube-node", name), &name.into(), own, why.to_owned()).await;
        anyhow::Ok(())
    };
    let _ = timeout(LAST_WORDS, told).await;
}

/// The cluster's values at the start, and where to put other ones.
struct Cluster<'a> {
    api: &'a Client,
    settings: &'a Settings,
    /// Addresses by which the host is reached.
    host: &'a [IpAddr],
    known: &'a Data,
    other: &'a mut Option<Data>,
}

impl Cluster<'_> {
    /// Whether the cluster has other values now. Only an agent that found none at the start asks; [`cluster::found_later`] goes on.
    async fn has_changed(&mut self) -> bool {
        if !cluster::is_published(self.known) {
            *self.other = cluster::ask_for_others(self.api, self.settings, self.host).await;
        }
        self.other.is_some()
    }
}

/// Forwards those watched objects that the agent needs.
async fn forward(
    mut incoming: mpsc::Receiver<Change>,
    agent: mpsc::Sender<ovnkube_node::Change>,
    own: watch::Sender<Own>,
    mut cluster: Cluster<'_>,
) {
    let mut synced = HashSet::new();
    let mut has_subnets = false;
    while let Some(change) = incoming.recv().await {
        let change = match change {
            Change::Pod(key, pod) => ovnkube_node::Change::Pod(key, pod.and_then(|pod| on_node(*pod))),
            Change::Node(_, Some(node)) => {
                if !has_subnets && !node.subnets.is_empty() {
                    // from here on the cluster's values matter
                    if cluster.has_changed().await {
                        return;
                    }
                    has_subnets = true;
                }
                let change = ovnkube_node::Change::Node(OwnNode::from(&*node));
                own.send_replace(Some((node.uid.clone(), node)));
                change
            }
            Change::Node(_, None) => {
                own.send_replace(None);
                continue;
            }
            Change::Service(key, service) => ovnkube_node::Change::Service(key, service),
            Change::EndpointSlice(key, slice) => ovnkube_node::Change::EndpointSlice(key, slice),
            Change::ServiceCidr(name, range) => ovnkube_node::Change::ServiceCidr(name, range),
            Change::Connections(connections) => ovnkube_node::Change::Connections(connections),
            Change::Synced(kind @ (Kind::Service | Kind::EndpointSlice | Kind::ServiceCidr)) => {
                synced.insert(kind);
                if synced.len() < 3 {
                    continue;
                }
                ovnkube_node::Change::ServicesSynced
            }
            _ => continue,
        };
        tell(&agent, change).await;
    }
}

/// Reports to load balancers whether the node is about to leave.
async fn report_leaving(health: &NodeHealth, mut own: watch::Receiver<Own>) {
    loop {
        health.set_leaving(own.borrow_and_update().as_ref().is_none_or(|(_, node)| node.leaving));
        if own.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Sends the agent the addresses of all nodes, once they matter: without external addresses in the cluster, not
/// every node has to watch all nodes.
async fn watch_nodes(api: &Client, mut matter: watch::Receiver<bool>, agent: mpsc::Sender<ovnkube_node::Change>) {
    if matter.wait_for(|matter| *matter).await.is_err() {
        return std::future::pending().await;
    }
    let (changes, mut incoming) = mpsc::channel(CHANGES);
    let _watches = ovnkube_watch::start(api, &Scope::Nodes, &changes);
    drop(changes);
    while let Some(change) = incoming.recv().await {
        let change = match change {
            Change::Node(name, node) => ovnkube_node::Change::NodeIps(name, node.map(|node| node.ips())),
            Change::Synced(Kind::Node) => ovnkube_node::Change::NodesSynced,
            _ => continue,
        };
        tell(&agent, change).await;
    }
}

/// The ConfigMap with what the cluster agrees on.
fn of_the_cluster(settings: &Settings) -> ObjectKey {
    let namespace = settings.kubernetes.ovn_config_namespace.as_str().into();
    ObjectKey { namespace, name: crate::cluster::NAME.into() }
}

fn on_node(pod: Pod) -> Option<PodOnNode> {
    // the port of a pod that has ended belongs to no pod
    if pod.host_network || pod.finished {
        return None;
    }
    let wiring = *pod.wiring?;
    Some(PodOnNode {
        uid: pod.uid,
        config_hash: wiring.config_hash,
        networks: wiring.networks,
        ingress_bandwidth: wiring.ingress_bandwidth,
        egress_bandwidth: wiring.egress_bandwidth,
    })
}

/// Publishes the agent's warnings as Events, about the own Node unless they name another object, and repeats those that stand.
async fn publish(events: &Events, name: &Name, mut standing: Standing, mut own: watch::Receiver<Own>) {
    let mut published = Vec::new();
    let mut remind = interval_at(Instant::now() + REMIND, REMIND);
    loop {
        let Ok(uid) = own.wait_for(Option::is_some).await.map(|own| own.as_ref().map(|(uid, _)| uid.clone())) else {
            return std::future::pending().await;
        };
        let own = Object::Node { name: name.clone(), uid: uid.unwrap_or_default() };
        let now = standing.now();
        for Warning { about, reason, message } in now.iter().filter(|warning| !published.contains(*warning)) {
            let object = about.clone().unwrap_or_else(|| own.clone());
            events.publish(Notice { object, severity: Severity::Warning, reason, message: message.clone() });
        }
        published = now;
        tokio::select! {
            () = standing.changed() => {},
            _ = remind.tick() => published.clear(),
        }
    }
}

/// Publishes why the agent ends as an Event of the own Node, once that is known.
async fn tell_end(events: &Events, name: &Name, mut own: watch::Receiver<Own>, message: String) {
    let Ok(uid) = own.wait_for(Option::is_some).await.map(|own| own.as_ref().map(|(uid, _)| uid.clone())) else {
        return;
    };
    let object = Object::Node { name: name.clone(), uid: uid.unwrap_or_default() };
    events.publish(Notice { object, severity: Severity::Warning, reason: "AgentEnded", message });
    // it is sent meanwhile
    std::future::pending::<()>().await;
}

/// Keeps the own Node annotated as the agent wants, whatever other programs write there.
async fn annotate(api: &Client, name: &str, mut wanted: watch::Receiver<Annotations>, mut own: watch::Receiver<Own>) {
    let mut sent = Annotations::new();
    // when what was sent is looked at again, however often the Node changes meanwhile
    let mut look_again = Instant::now();
    let mut of = None;
    let mut pause = TRY_AGAIN;
    loop {
        let node = own.borrow_and_update().clone();
        let want = wanted.borrow_and_update().clone();
        let uid = node.as_ref().map(|(uid, _)| uid.clone());
        if of != uid {
            // another Node of this name has nothing of what the last one was sent
            sent.clear();
            of = uid;
        }
        if let Some((uid, node)) = node {
            let missing = missing(&want, &node.written, &mut sent);
            if !missing.is_empty() {
                let value = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
                let patch = missing.iter().map(|(key, text)| (key.clone(), value(text))).collect();
                match api.annotate_node(name, &uid, &patch).await {
                    Ok(()) => {
                        sent.extend(missing);
                        look_again = Instant::now() + SEEN_WITHIN;
                        pause = TRY_AGAIN;
                    }
                    Err(error) if error.is_gone() => debug!(%error, "the node is gone"),
                    Err(error) => {
                        if error.is_forbidden() {
                            debug!(%error, "trying again to annotate the own node");
                        } else {
                            warn!(%error, "trying again to annotate the own node");
                        }
                        tokio::time::sleep(pause.max(error.retry_after().unwrap_or_default())).await;
                        pause = LONGEST_PAUSE.min(pause * 2);
                        continue;
                    }
                }
            }
        }
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() { std::future::pending::<()>().await },
            changed = own.changed() => if changed.is_err() { std::future::pending::<()>().await },
            () = tokio::time::sleep_until(look_again), if !sent.is_empty() => sent.clear(),
        }
    }
}

/// The wanted annotations that are neither on the Node nor sent. `sent` forgets those that have arrived.
fn missing(want: &Annotations, have: &BTreeMap<Name, Name>, sent: &mut Annotations) -> Annotations {
    let has = |key: &String, value: &String| have.get(key.as_str()).map_or("", |have| have) == value;
    sent.retain(|key, value| !has(key, value));
    let missing = want.iter().filter(|(key, value)| !has(key, value) && sent.get(*key) != Some(value));
    missing.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// What the node agent would change on this host, one step per entry.
pub(crate) async fn plan(settings: &Settings, name: &str) -> Result<Vec<String>> {
    let api = Client::connect(&translate::access(settings, "node")).await?;
    let cluster = cluster::ask_at_start(&api, settings).await;
    let host = ovnkube_node::uplink_addresses().await?;
    let taken = cluster::taken(settings, &cluster, &host);
    let (changes, incoming) = mpsc::channel(CHANGES);
    let mut connections = Connections::of(&taken, api.server());
    connections.send(&changes).await;
    let _watches = ovnkube_watch::start(&api, &Scope::Node(name.into()), &changes);
    let weak = changes.downgrade();
    drop(changes);
    let (to_agent, agent_changes) = mpsc::channel(CHANGES);
    let (needs_nodes, nodes_matter) = watch::channel(false);
    let (own, own_node) = watch::channel(None);
    let mut other = None;
    let agent = wanted::settings(&taken, &name.into(), api.server());
    tokio::select! {
        planned = ovnkube_node::plan(&agent, agent_changes, needs_nodes) => Ok(planned?),
        () = connections.keep_sending(weak) => anyhow::bail!("cannot plan for node {name}: the watches have ended"),
        () = watch_nodes(&api, nodes_matter, to_agent.clone()) => {
            anyhow::bail!("cannot plan for node {name}: the watch of nodes has ended")
        }
        () = for_hosts::watch(&api, of_the_cluster(settings), own_node, to_agent.clone()) => {
            anyhow::bail!("cannot plan for node {name}: the watch of ConfigMaps has ended")
        }
        () = forward(incoming, to_agent, own, Cluster { api: &api, settings, host: &host, known: &cluster, other: &mut other }) => {
            anyhow::bail!("cannot plan for node {name}: the cluster's values changed meanwhile; run the command again")
        }
    }
}

/// What to do on this host before the node agent runs here.
pub(crate) async fn preflight(settings: &Settings) -> Result<Vec<Finding>> {
    let network = translate::network(settings, Roles::default());
    let question = HostQuestion {
        encap_type: &settings.default.encap_type.to_string(),
        encap_ips: &settings.default.encap_ip,
        ipv6: network.cluster_subnets.first().is_some_and(|range| range.cidr.is_ipv6()),
        mtu: settings.mtu_is_given.then_some(settings.default.mtu),
        cni_dir: &settings.cni.conf_dir,
        cni_bin_dir: &settings.cni.bin_dir,
        ovs_remote: &wanted::ovs_remote(settings),
    };
    Ok(ovnkube_node::preflight(&question).await?)
}

/// Removes from this host what the node agent set up, and logs what it could not remove.
pub(crate) async fn clean_up(settings: &Settings, name: &str) -> Result<()> {
    let agent = wanted::settings(settings, &name.into(), "");
    let network = translate::network(settings, Roles::default());
    let left = ovnkube_node::clean_up(&CleanupSettings {
        node: agent.node,
        ovs_remote: agent.ovs_remote,
        cni_socket: agent.cni_socket,
        cni_conf: agent.cni_conf,
        cluster_subnets: agent.cluster_subnets,
        service_cidrs: network.service_cidrs,
        masquerade_subnets: agent.masquerade_subnets,
        halt_after: None,
    })
    .await;
    if let [second @ ovnkube_node::Error::SecondAgent { .. }] = &left[..] {
        anyhow::bail!("cannot clean up the node, nothing is changed: {second}");
    }
    for error in &left {
        tracing::error!(%error, "the cleanup is incomplete");
    }
    if left.is_empty() {
        return Ok(());
    }
    anyhow::bail!("cannot clean up the node: something is left; correct what is logged above and run the command again")
}

#[cfg(test)]
mod tests {
    use ovnkube_model::{Meta, Node, NodeFields, PodFields};

    use super::*;

    fn written(text: &[(&str, &str)]) -> BTreeMap<Name, Name> {
        let annotations = text.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let labels = BTreeMap::new();
        let meta = Meta { uid: "1", created: 0, labels: &labels, annotations: &annotations };
        Node::parse(&meta, NodeFields::default()).written
    }

    #[test]
    fn annotations_that_others_change_are_written_again() {
        let keys = ["node-chassis-id", "zone-name", "host-cidrs", "node-encap-ips", "node-primary-ifaddr"];
        let keys = keys.into_iter().chain(["node-masquerade-subnet"]).map(|key| format!("k8s.ovn.org/{key}"));
        for key in keys {
            let want = Annotations::from([(key.clone(), "x".to_owned())]);
            let mut sent = Annotations::new();
            assert_eq!(missing(&want, &written(&[]), &mut sent), want);
            sent.extend(want.clone());
            // sent
            assert!(missing(&want, &written(&[]), &mut sent).is_empty());
            assert!(missing(&want, &written(&[(&key, "older")]), &mut sent).is_empty());
            // arrived
            assert!(missing(&want, &written(&[(&key, "x")]), &mut sent).is_empty());
            assert_eq!(missing(&want, &written(&[]), &mut sent), want, "{key} removed");
            assert_eq!(missing(&want, &written(&[(&key, "other")]), &mut sent), want, "{key} changed");
        }
    }

    #[test]
    fn a_new_value_does_not_wait_for_the_one_before() {
        let mut sent = Annotations::from([("k8s.ovn.org/zone-name".to_owned(), "a".to_owned())]);
        let want = Annotations::from([("k8s.ovn.org/zone-name".to_owned(), "b".to_owned())]);
        assert_eq!(missing(&want, &written(&[]), &mut sent), want);
    }

    #[test]
    fn a_pod_that_has_ended_is_not_wired() {
        let none = BTreeMap::new();
        let meta = Meta { uid: "1", created: 0, labels: &none, annotations: &none };
        for (finished, host_network) in [(false, false), (true, false), (false, true)] {
            let fields = PodFields { node_name: Some("n1"), finished, host_network, ..PodFields::default() };
            let pod = Pod::parse(&meta, fields).with_wiring(&meta);
            assert_eq!(on_node(pod).is_some(), !finished && !host_network);
        }
    }
}
