//! What Kubernetes says about the interconnection, and the model that follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ovnkube_config::Settings;
use ovnkube_interconnect::report::{Asked, GatewayNode, Looked, asked};
use ovnkube_model::{Change, Interconnection, Name, Roles, World, keys};
use ovnkube_watch::{Access, Client, Error, LOG_IN_WITHIN, decode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{cluster, translate};

/// Reading takes no longer than this.
const WITHIN: Duration = Duration::from_secs(10);
const SUBNETS: &str = "/apis/kubeovn.io/v1/subnets";

pub(super) struct Kubernetes {
    pub(super) asked: Looked<Asked>,
    /// Without what the other clusters have.
    pub(super) world: World,
    pub(super) settings: Vec<String>,
    pub(super) disabled: Looked<Vec<(String, String)>>,
    /// The nodes, and those that are Ready.
    ready: Looked<BTreeMap<String, bool>>,
}

impl Kubernetes {
    pub(super) async fn read(settings: &Settings) -> Self {
        let roles = Roles { controller: true, ..Roles::default() };
        // the objects are enough: without the end of the initial lists nothing is decided
        let world = World::new(translate::network(settings, roles), []);
        let nothing = |why: String| Self {
            asked: Err(why.clone()),
            world,
            settings: Vec::new(),
            disabled: Err(why.clone()),
            ready: Err(why),
        };
        // a person runs this, whose kubeconfig may run a program for a token
        let access = Access { plugin: Some(LOG_IN_WITHIN), ..translate::access(settings, "ic") };
        match Client::connect(&access).await {
            Ok(api) => Box::pin(nothing(String::new()).filled(&api, settings)).await,
            Err(error) => nothing(error.to_string()),
        }
    }

    async fn filled(mut self, api: &Client, settings: &Settings) -> Self {
        let (namespace, name) = keys::INTERCONNECTION;
        let (config, common, nodes, system, disabled) = tokio::join!(
            answer(api.config_map(namespace, name)),
            answer(api.config_map(&settings.kubernetes.ovn_config_namespace, cluster::NAME)),
            answer(api.survey("/api/v1/nodes", node)),
            answer(api.survey("/api/v1/namespaces", system)),
            answer(api.survey(SUBNETS, subnet)),
        );
        self.asked = config.map(|data| asked(data.as_ref()));
        self.disabled = disabled.map(|subnets| {
            let (names, changes): (Vec<_>, Vec<_>) = subnets.into_iter().unzip();
            for change in changes.into_iter().flatten() {
                self.world.apply(change);
            }
            names
        });
        // of a cluster without this ConfigMap, or of an account without the right, nothing is known
        let common = common.ok().flatten().unwrap_or_default();
        self.settings = cluster::values(settings)
            .iter()
            .filter_map(|(key, here)| {
                let there = common.get(key).filter(|there| *there != here)?;
                Some(format!("{key} of the cluster is {there}, and {here} here"))
            })
            .collect();
        self.ready = nodes.map(|nodes| {
            let mut ready = BTreeMap::new();
            for (name, is_ready, change) in nodes {
                ready.insert(name, is_ready);
                self.world.apply(change);
            }
            ready
        });
        for change in system.into_iter().flatten() {
            self.world.apply(change);
        }
        self
    }

    /// The nodes that are named as gateways. `interconn`: whether a chassis makes tunnels to other clusters.
    pub(super) fn gateways(
        &self,
        names: Looked<&Interconnection>,
        interconn: impl Fn(&str) -> Looked<Option<bool>>,
    ) -> Looked<Vec<GatewayNode>> {
        let ready = self.ready.as_ref().map_err(Clone::clone)?;
        let mut seen = BTreeSet::new();
        let names = names.into_iter().flat_map(|names| &names.gateways).filter(|name| seen.insert((*name).clone()));
        let node = |name: &Name| {
            let node = self.world.nodes.get(name);
            let label = node.and_then(|node| node.labels.get(keys::INTERCONNECTION_GATEWAY));
            let chassis = node.and_then(|node| node.chassis_id.clone());
            GatewayNode {
                name: name.to_string(),
                exists: node.is_some(),
                ready: ready.get(&**name).copied().unwrap_or_default(),
                labelled: label.is_some_and(|value| value == "true"),
                interconn: chassis.as_deref().map_or(Ok(None), &interconn),
                chassis,
            }
        };
        Ok(names.map(node).collect())
    }
}

async fn answer<T>(ask: impl Future<Output = Result<T, Error>>) -> Looked<T> {
    match timeout(WITHIN, ask).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("the API server is silent for {} s", WITHIN.as_secs())),
    }
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// Objects of a list do not say their kind.
fn change(kind: &str, object: &Value) -> Option<Change> {
    let mut object = object.clone();
    object.as_object_mut()?.insert("kind".to_owned(), json!(kind));
    decode(&object.to_string()).ok()
}

fn node(object: &Value) -> Option<(String, bool, Change)> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let mut ready = conditions.filter(|condition| text(condition, "/type") == "Ready");
    let is_ready = ready.next().is_some_and(|condition| text(condition, "/status") == "True");
    Some((text(object, "/metadata/name").to_owned(), is_ready, change("Node", object)?))
}

fn system(object: &Value) -> Option<Change> {
    if text(object, "/metadata/name") == World::SYSTEM { change("Namespace", object) } else { None }
}

/// A Subnet that is kept from other clusters: its name and range, and what it changes in the model.
fn subnet(object: &Value) -> Option<((String, String), Option<Change>)> {
    let is_disabled = object.pointer("/spec/disableInterConnection") == Some(&Value::Bool(true));
    let told = (text(object, "/metadata/name").to_owned(), text(object, "/spec/cidrBlock").to_owned());
    is_disabled.then(|| (told, change("Subnet", object)))
}
