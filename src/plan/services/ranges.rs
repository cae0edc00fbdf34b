//! `loadBalancerSourceRanges` for pods: what they send to a load balancer's address is checked on their node's
//! switch, before load balancing. What comes from outside, and from a node's own processes, is checked on the
//! host.
//!
//! ```text
//! Port_Group clusterRtrPortGroup    a port of it is on every node's switch
//!    └ ACL LoadBalancerSourceRanges:<ns>:<name>:<v4|v6>    drop, from-lport, before load balancers
//!         ip4.src == {pods in none of the ranges} && ip4.dst == {ingress addresses} && tcp.dst == {ports}
//! ```
//!
//! Only ranges of the service that cut the pod network make it longer. Ranges of one family do not affect the
//! other, and `externalIPs` are open to every client, as in kube-proxy.

use std::fmt::Display;

use ovnkube_model::{Family, KeptOut, ObjectKey, World, row_owners};
use ovnkube_ovn::nb::{acl, port_group};
use ovnkube_ovn::{OwnerId, Row};

use crate::{RowWant, Want, names};

/// The same as for other ACLs that drop. This stage has no others: policies are checked after load balancing.
const PRIORITY: i64 = 1000;

pub(super) fn put(want: &mut Want, key: &ObjectKey, world: &World) {
    for family in world.settings.families() {
        let Some(matches) = kept_out(key, family, world) else { continue };
        let name = format!("{}:{}", key.namespace, key.name);
        let owner = OwnerId::new("LoadBalancerSourceRanges").name(&name).key("ip-family", family.name());
        let acl = want.row(
            RowWant::new(owner.id(), Row::new(acl::TABLE))
                .with(acl::ACTION, "drop")
                .with(acl::DIRECTION, "from-lport")
                .with(acl::EXTERNAL_IDS, owner.external_ids())
                .with(acl::MATCH, matches)
                .with(acl::PRIORITY, PRIORITY),
        );
        want.member(&names::group_key(&row_owners::cluster_router_port_group()), port_group::ACLS, &acl);
    }
}

/// Matches packets of pods that the service does not allow; `None` if there are no such pods or addresses.
fn kept_out(key: &ObjectKey, family: Family, world: &World) -> Option<String> {
    let KeptOut { pods, at, .. } = world.services.kept_out(key, family)?;
    let (ip, pods) = (family.ovn(), one_of(&pods));
    let each = at.iter().map(|((protocol, ips), ports)| {
        format!("{ip}.src == {pods} && {ip}.dst == {} && {}.dst == {}", one_of(ips), protocol.ovn(), one_of(ports))
    });
    match each.collect::<Vec<_>>().as_slice() {
        [one] => Some(one.clone()),
        // ovn-controller would multiply them out if they had a condition in common
        many => Some(many.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join(" || ")),
    }
}

fn one_of<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<_> = values.into_iter().map(|value| value.to_string()).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("{{{}}}", many.join(", ")),
    }
}
