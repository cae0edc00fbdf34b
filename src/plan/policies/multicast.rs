//! Multicast is dropped, except between the pods of a namespace that is annotated for it. Between nodes it
//! passes: the ACLs of the receiving pods decide.

use ovnkube_model::{Direction, Family, Name, World, row_owners};
use ovnkube_ovn::OwnerId;
use ovnkube_ovn::nb::port_group;

use super::acl::Acl;
use super::{either, port_match};
use crate::{Want, names};

const ALLOW: i64 = 1012;
const DENY: i64 = 1011;
const DYNAMIC_IPV6: &str = "(ip6.dst[120..127] == 0xff && ip6.dst[116] == 1)";

pub(super) fn cluster(want: &mut Want) {
    let multicast = format!("(ip4.mcast || mldv1 || mldv2 || {DYNAMIC_IPV6})");
    let owner = |kind, direction: Direction| {
        OwnerId::new("MulticastCluster").key("type", kind).key("direction", direction.name())
    };
    for direction in Direction::ALL {
        let deny = Acl::new(owner("DefaultDeny", direction), direction, DENY, "drop", multicast.clone());
        let deny = want.row(deny.row());
        want.member(&names::group_key(&row_owners::cluster_port_group()), port_group::ACLS, &deny);
        let routers = row_owners::cluster_router_port_group();
        let matches = format!("{} && {multicast}", port_match(direction, &routers));
        let allow = want.row(Acl::new(owner("AllowInterNode", direction), direction, ALLOW, "allow", matches).row());
        want.member(&names::group_key(&routers), port_group::ACLS, &allow);
    }
}

pub(super) fn namespace(want: &mut Want, name: &Name, world: &World) {
    let group = world.namespace_group(name);
    for direction in Direction::ALL {
        let families = world.settings.families().into_iter();
        let conditions: Vec<_> = families.map(|family| condition(direction, name, family, world)).collect();
        let matches = format!("{} && {}", port_match(direction, &group), either(&conditions));
        let owner = OwnerId::new("MulticastNS").name(name).key("direction", direction.name());
        let acl = want.row(Acl::new(owner, direction, ALLOW, "allow", matches).row());
        want.member(&names::group_key(&group), port_group::ACLS, &acl);
    }
}

/// Egress to any group; ingress from the namespace's own pods, and group membership messages.
fn condition(direction: Direction, namespace: &str, family: Family, world: &World) -> String {
    let pods = world.namespace_set(namespace, family).hashed_name();
    match (direction, family) {
        (Direction::Egress, Family::V4) => "ip4.mcast".to_owned(),
        (Direction::Egress, Family::V6) => format!("(mldv1 || mldv2 || {DYNAMIC_IPV6})"),
        (Direction::Ingress, Family::V4) => format!("(igmp || (ip4.src == ${pods} && ip4.mcast))"),
        (Direction::Ingress, Family::V6) => {
            format!("(mldv1 || mldv2 || (ip6.src == ${pods} && {DYNAMIC_IPV6}))")
        }
    }
}
