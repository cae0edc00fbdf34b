//! The way to a prefix of other clusters.

use std::net::IpAddr;

use ovnkube_model::{Family, Name, Subnet, World};
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_policy as policy, logical_router_static_route as static_route,
};
use ovnkube_ovn::{Row, owner};

use crate::{RowWant, Want, names, rows};

/// External id by which OVN's tools know a learned route: the uuid of its row in the interconnection database.
pub const LEARNED: &str = "ic-learned-route";
/// Above the policies of egress addresses (100 to 501), below those for a node's own addresses (1002 and more). The length of the
/// prefix is added: OVN compares policies by their priority alone, and the longest prefix should win.
const PRIORITY: i64 = 600;

pub(super) fn want(prefix: Subnet, world: &World) -> Want {
    let mut want = Want::default();
    let Some(next_hops) = world.joined.prefixes().get(&prefix) else { return want };
    for (next_hop, id) in next_hops {
        route(&mut want, prefix, *next_hop, id.as_ref());
    }
    let family = Family::of_subnet(prefix).ovn();
    let row = Row::new(policy::TABLE)
        .with(policy::PRIORITY, PRIORITY + i64::from(prefix.prefix()))
        .with(policy::MATCH, format!("{family}.dst == {prefix}"))
        .with(policy::ACTION, "reroute")
        .with(policy::NEXTHOPS, next_hops.keys().map(ToString::to_string))
        .with(policy::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION));
    let router = names::cluster_router();
    let id = rows::identity(&row).unwrap_or_default();
    let key = want.row(RowWant::new(id, row).within(&router));
    want.member(&router, lr::POLICIES, &key);
    want
}

fn route(want: &mut Want, prefix: Subnet, next_hop: IpAddr, id: Option<&Name>) {
    let learned = id.map(|id| (LEARNED, id.as_ref()));
    let ids = owner::marks(owner::INTERCONNECTION).into_iter().chain(learned);
    let row = Row::new(static_route::TABLE)
        .with(static_route::IP_PREFIX, prefix.to_string())
        .with(static_route::NEXTHOP, next_hop.to_string())
        .with(static_route::EXTERNAL_IDS, ids);
    let router = names::cluster_router();
    let id = rows::identity(&row).unwrap_or_default();
    let key = want.row(RowWant::new(id, row).within(&router));
    want.member(&router, lr::STATIC_ROUTES, &key);
}
