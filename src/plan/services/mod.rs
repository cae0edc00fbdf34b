//! Services: load balancers on node switches, for pods, and on gateway routers, for the outside.
//!
//! ```text
//! Load_Balancer Service_<ns>/<name>_<TCP|UDP|SCTP>_…     vips: "IP:port" -> "endpoint:port,…"
//!   cluster                     in clusterLBGroup: the same on every switch and router
//!   node_router+switch_<node>   on a node's switch and gateway router
//!   node_switch_<node>          on its switch alone, node_router_<node> on its router
//!   node_local_router_<node>    on its router, leaving the client's address as it is
//!   node_switch_template_IPv4   in a group: ^NODEIP_IPv4_0 stands for each node's address
//!   …_merged                    several of the above with the same content
//! ACL LoadBalancerSourceRanges  pods that may not send to a load balancer's address
//! ```
//!
//! One row for each protocol, and one for all nodes where they would be alike. Nodes differ if one of their
//! addresses is meant (node ports), if only their own endpoints count (traffic policy `Local`, hints of slices),
//! or if an endpoint is the node itself: its router sends such packets on to the host's masquerade address, since
//! a packet from the node's address to the node's address would never come back through OVN.
//!
//! A service without endpoints keeps its addresses without backends: clients are rejected at once.

mod alike;
mod balancer;
mod balancers;
mod configs;
mod ranges;
mod targets;
mod templates;
#[cfg(test)]
mod tests;
mod text;

use ovnkube_model::{Affected, ObjectKey, Roles, World};

use self::balancer::Alike;
use self::balancers::balancers;
use self::configs::{configs, may_be_per_node};
pub(crate) use self::templates::NodeIps;
use crate::{Feature, Want};

pub struct Services;

impl Feature for Services {
    type Key = ObjectKey;

    fn is_enabled(roles: Roles) -> bool {
        roles.controller
    }

    fn affected(what: &Affected, world: &World) -> Vec<ObjectKey> {
        match what {
            Affected::Everything => world.services.iter().map(|(key, _)| key.clone()).collect(),
            Affected::Service(key) => vec![key.clone()],
            Affected::Sites => {
                let per_node = world.services.iter().filter(|(key, service)| may_be_per_node(key, service, world));
                per_node.map(|(key, _)| key.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn want(key: &ObjectKey, world: &World) -> Want {
        let mut want = Want::default();
        let Some(service) = world.services.get(key) else { return want };
        let mut alike = Alike::new(key, service, world);
        for balancer in balancers(key, &configs(key, world), world) {
            balancer.put(&mut want, &mut alike);
        }
        ranges::put(&mut want, key, world);
        want
    }
}
