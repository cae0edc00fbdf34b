//! A transit switch and its ports.

use ovnkube_model::{Name, OwnPort, World};
use ovnkube_ovn::nb::{
    gateway_chassis as gc, logical_router as lr, logical_router_port as lrp, logical_switch as ls,
    logical_switch_port as lsp,
};
use ovnkube_ovn::{Row, owner};

use crate::{RowKey, RowWant, Want, names};

/// Priority of the first gateway; the next ones have one less each.
const FIRST_PRIORITY: i64 = 100;

/// The priority of a gateway by its place. The database refuses those below 0.
fn priority(place: usize) -> i64 {
    i64::try_from(place).map_or(0, |place| (FIRST_PRIORITY - place).max(0))
}

pub(super) fn want(name: &Name, world: &World) -> Want {
    let mut want = Want::default();
    let Some(wanted) = world.joined.wanted() else { return want };
    let Some((number, transit)) = world.transit_switch(name) else { return want };
    let switch = want.row(
        RowWant::new(name.clone(), Row::new(ls::TABLE))
            .with(ls::NAME, name.as_ref())
            .with(
                ls::OTHER_CONFIG,
                [("interconn-ts", name.to_string()), ("requested-tnl-key", transit.key.to_string())],
            )
            .with(ls::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION)),
    );
    let chassis = gateways(number, world);
    for own in &transit.own {
        let ends = names::transit(name, &own.zone);
        let gateways = gateway_rows(&mut want, &ends, &chassis);
        own_port(&mut want, &ends, own, wanted.gateway_mtu, gateways, &switch);
    }
    for (port, remote) in &transit.remote {
        let port = want.row(
            RowWant::new(port.clone(), Row::new(lsp::TABLE))
                .with(lsp::NAME, port.as_ref())
                .with(lsp::TYPE, "remote")
                .with(lsp::ADDRESSES, [remote.address.as_ref()])
                .with(lsp::OPTIONS, [("requested-tnl-key", remote.key.to_string())])
                .with(lsp::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION)),
        );
        want.member(&switch, ls::PORTS, &port);
    }
    want
}

/// The chassis of the gateways, the preferred one first. Each switch prefers another one, so that traffic uses all. One to which the
/// other clusters have no tunnel yet would get their packets too late. One that goes gives its port to another one that way, which is
/// quicker than to lose it.
fn gateways(number: usize, world: &World) -> Vec<Name> {
    let [known, new, leaving] = world.gateway_chassis();
    let rotated = |mut chassis: Vec<Name>| {
        if !chassis.is_empty() {
            let first = number % chassis.len();
            chassis.rotate_left(first);
        }
        chassis
    };
    rotated(known).into_iter().chain(rotated(new)).chain(leaving).collect()
}

fn gateway_rows(want: &mut Want, ends: &names::TransitPorts, chassis: &[Name]) -> Vec<RowKey> {
    let gateway = |(place, chassis): (usize, &Name)| {
        let id = format!("{}-{chassis}", ends.router_side);
        RowWant::new(id.as_str(), Row::new(gc::TABLE))
            .with(gc::NAME, id.as_str())
            .with(gc::CHASSIS_NAME, chassis.as_ref())
            .with(gc::PRIORITY, priority(place))
    };
    chassis.iter().enumerate().map(gateway).map(|row| want.row(row)).collect()
}

/// Both ends of the port. Packets that are larger than `mtu` are answered with ICMP there.
fn own_port(
    want: &mut Want,
    ends: &names::TransitPorts,
    own: &OwnPort,
    mtu: Option<u16>,
    gateways: Vec<RowKey>,
    switch: &RowKey,
) {
    let port = want.row(
        RowWant::new(ends.router_side.as_str(), Row::new(lrp::TABLE))
            .with(lrp::NAME, ends.router_side.as_str())
            .with(lrp::MAC, own.mac.to_string())
            .with(lrp::NETWORKS, own.addresses.iter().map(ToString::to_string))
            .with(lrp::OPTIONS, mtu.into_iter().map(|mtu| ("gateway_mtu", mtu.to_string())))
            .with(lrp::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION))
            .refers(lrp::GATEWAY_CHASSIS, gateways),
    );
    want.member(&names::cluster_router(), lr::PORTS, &port);
    let mut options = vec![("router-port", ends.router_side.clone())];
    options.extend(own.key.map(|key| ("requested-tnl-key", key.to_string())));
    let port = want.row(
        RowWant::new(ends.switch_side.as_str(), Row::new(lsp::TABLE))
            .with(lsp::NAME, ends.switch_side.as_str())
            .with(lsp::TYPE, "router")
            .with(lsp::ADDRESSES, ["router"])
            .with(lsp::OPTIONS, options)
            .with(lsp::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION)),
    );
    want.member(switch, ls::PORTS, &port);
}

#[cfg(test)]
mod tests {
    use super::priority;

    /// There may be as many gateways that go as transit switches, after those that stay.
    #[test]
    fn no_gateway_has_a_priority_that_the_database_refuses() {
        assert_eq!([0, 1, 100, 101, 128, usize::MAX].map(priority), [100, 99, 0, 0, 0, 0]);
    }
}
