//! Which objects each role watches.

use std::time::Duration;

use ovnkube_model::{Change, Kind, Name, ObjectKey, keys};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use crate::client::query_value;
use crate::config_map::all as config_maps;
use crate::endpoint_slices::EndpointSlices;
use crate::for_hosts::ForHostsConfigs;
use crate::interconnection::InterconnectionConfigs;
use crate::interconnection_subnets::InterconnectionSubnets;
use crate::namespaces::Namespaces;
use crate::network_policies::NetworkPolicies;
use crate::nodes::Nodes;
use crate::pods::{NodePods, Pods, RunningPods};
use crate::service_cidrs::ServiceCidrs;
use crate::services::Services;
use crate::stream::{run, run_at};
use crate::{Client, Error};

/// Excludes services that another proxy serves, and slices of headless services, which need no load balancer.
const SERVED: &str = "!service.kubernetes.io/service-proxy-name,!service.kubernetes.io/headless";

/// How many changes may wait for [`read`].
const AT_ONCE: usize = 1024;
/// How long [`read`] waits for all objects.
const READ_WITHIN: Duration = Duration::from_secs(60);

/// The objects a role needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything that the controller writes OVN rows for.
    Controller,
    /// Nodes and running pods: what the cluster manager needs to give out subnets.
    ClusterManager,
    /// Nodes only.
    Nodes,
    /// The node of this name and its pods; services with all their endpoints, and service ranges.
    Node(Name),
    /// The ConfigMap of this namespace and name, in which masters tell the hosts something.
    ForHosts(ObjectKey),
}

impl Scope {
    /// The kinds for which a [`Change::Synced`] will come.
    pub fn kinds(&self) -> &'static [Kind] {
        match self {
            Self::Controller => &[
                Kind::Node,
                Kind::Namespace,
                Kind::Pod,
                Kind::Service,
                Kind::EndpointSlice,
                Kind::NetworkPolicy,
                Kind::Interconnection,
                Kind::InterconnectionSubnet,
            ],
            Self::ClusterManager => &[Kind::Node, Kind::Pod],
            Self::Nodes => &[Kind::Node],
            Self::Node(_) => &[Kind::Node, Kind::Pod, Kind::Service, Kind::EndpointSlice, Kind::ServiceCidr],
            Self::ForHosts(_) => &[Kind::ForHosts],
        }
    }

    /// The part of the query that selects the wanted objects of a kind.
    fn selector(&self, kind: Kind) -> String {
        let field = match (self, kind) {
            (_, Kind::Service | Kind::EndpointSlice) => return format!("&labelSelector={}", query_value(SERVED)),
            (_, Kind::Interconnection) => format!("metadata.name={}", keys::INTERCONNECTION.1),
            (Self::Node(name), Kind::Node) => format!("metadata.name={name}"),
            (Self::Node(name), Kind::Pod) => format!("spec.nodeName={name}"),
            (Self::ForHosts(key), Kind::ForHosts) => format!("metadata.name={}", key.name),
            _ => return String::new(),
        };
        format!("&fieldSelector={}", query_value(&field))
    }
}

/// The running watches; dropping them ends them.
#[derive(Debug)]
pub struct Watches {
    _tasks: JoinSet<()>,
}

/// Starts to watch. Every existing object and every later change comes through `changes`, in order for each object.
/// After the first full list of a kind, its [`Change::Synced`] comes once. A slow receiver makes the watches wait. They
/// go on through every fault until they or the receiver are dropped.
pub fn start(client: &Client, scope: &Scope, changes: &Sender<Change>) -> Watches {
    let mut tasks = JoinSet::new();
    for kind in scope.kinds() {
        let (client, selector, changes) = (client.clone(), scope.selector(*kind), changes.clone());
        match kind {
            Kind::Node => tasks.spawn(run::<Nodes>(client, selector, changes)),
            Kind::Namespace => tasks.spawn(run::<Namespaces>(client, selector, changes)),
            Kind::NetworkPolicy => tasks.spawn(run::<NetworkPolicies>(client, selector, changes)),
            Kind::Pod => match scope {
                Scope::Node(_) => tasks.spawn(run::<NodePods>(client, selector, changes)),
                Scope::ClusterManager => tasks.spawn(run::<RunningPods>(client, selector, changes)),
                _ => tasks.spawn(run::<Pods>(client, selector, changes)),
            },
            Kind::Service => tasks.spawn(run::<Services>(client, selector, changes)),
            Kind::Interconnection => tasks.spawn(run::<InterconnectionConfigs>(client, selector, changes)),
            Kind::InterconnectionSubnet => tasks.spawn(run::<InterconnectionSubnets>(client, selector, changes)),
            Kind::ServiceCidr => tasks.spawn(run::<ServiceCidrs>(client, selector, changes)),
            Kind::EndpointSlice => tasks.spawn(run::<EndpointSlices>(client, selector, changes)),
            Kind::ForHosts => {
                let Scope::ForHosts(key) = scope else { continue };
                tasks.spawn(run_at::<ForHostsConfigs>(client, config_maps(&key.namespace), selector, changes))
            }
        };
    }
    Watches { _tasks: tasks }
}

/// All objects that exist now, read once: in any order, with a [`Change::Synced`] of each kind.
pub async fn read(client: &Client, scope: &Scope) -> Result<Vec<Change>, Error> {
    // fails here if the API server refuses: the watches below would retry forever
    client.get("read the cluster", "/api/v1/namespaces?limit=1", &mut Vec::new()).await?;
    let (sender, mut changes) = tokio::sync::mpsc::channel(AT_ONCE);
    let watches = start(client, scope, &sender);
    drop(sender);
    let mut awaited = scope.kinds().len();
    let collect = async {
        let mut all = Vec::new();
        while awaited > 0 {
            let Some(change) = changes.recv().await else { break };
            awaited -= usize::from(matches!(change, Change::Synced(_)));
            all.push(change);
        }
        all
    };
    let read = tokio::time::timeout(READ_WITHIN, collect).await;
    drop(watches);
    read.map_err(|_| {
        Error::failed("read the cluster", format!("not all objects came within {} s", READ_WITHIN.as_secs()))
    })
}
