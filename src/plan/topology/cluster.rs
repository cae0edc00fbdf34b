//! Rows that exist once per cluster.

use ovnkube_model::{Family, World, row_owners};
use ovnkube_ovn::nb::{
    copp, load_balancer_group as lbg, logical_router as lr, logical_router_port as lrp, logical_switch as ls,
    logical_switch_port as lsp, meter, meter_band, port_group,
};
use ovnkube_ovn::{OwnerId, Row};

use crate::{RowKey, RowWant, Want, names};

/// Kinds of packets to ovn-controller whose rate is limited.
const PROTECTED: [&str; 9] =
    ["arp", "arp-resolve", "bfd", "event-elb", "icmp4-error", "icmp6-error", "reject", "svc-monitor", "tcp-reset"];
/// Packets per second of each kind.
const PROTECTION_RATE: i64 = 25;

pub(super) fn want(world: &World) -> Want {
    let mut want = Want::default();
    let copp = protection(&mut want);
    meter(&mut want, "acl-logging", i64::from(world.settings.acl_logging_rate_limit));
    router(&mut want, world, &copp);
    for name in [names::CLUSTER_LB_GROUP, names::SWITCH_LB_GROUP, names::ROUTER_LB_GROUP] {
        want.row(RowWant::new(name, Row::new(lbg::TABLE)).with(lbg::NAME, name));
    }
    for owner in [row_owners::cluster_port_group(), row_owners::cluster_router_port_group()] {
        group(&mut want, &owner);
    }
    want
}

/// Control-plane protection: a meter per kind of packet.
fn protection(want: &mut Want) -> RowKey {
    let name = |kind: &str| format!("{kind}-rate-limiter");
    for kind in PROTECTED {
        meter(want, &name(kind), PROTECTION_RATE);
    }
    want.row(
        RowWant::new(names::COPP, Row::new(copp::TABLE))
            .with(copp::NAME, names::COPP)
            .with(copp::METERS, PROTECTED.map(|kind| (kind, name(kind)))),
    )
}

fn meter(want: &mut Want, name: &str, rate: i64) {
    // meters of one rate share their band
    let band = RowWant::new(format!("drop {rate} 0"), Row::new(meter_band::TABLE))
        .with(meter_band::ACTION, "drop")
        .with(meter_band::RATE, rate);
    let known = want.rows.iter().any(|r| r.key == band.key);
    let key = if known { band.key } else { want.row(band) };
    want.row(
        RowWant::new(name, Row::new(meter::TABLE))
            .with(meter::NAME, name)
            .with(meter::UNIT, "pktps")
            .with(meter::FAIR, Some(true))
            .refers(meter::BANDS, [key]),
    );
}

fn router(want: &mut Want, world: &World, copp: &RowKey) {
    let network = &world.settings;
    let options =
        if network.multicast { [("mcast_relay", "true")] } else { [("always_learn_from_arp_request", "false")] };
    let kept = world.joined.kept().map(|kept| (names::KEPT_INTERCONNECTION, kept));
    let ids = [("k8s-cluster-router", "yes".to_owned())].into_iter().chain(kept);
    let cluster = world.cluster_uid().map(|uid| (names::CLUSTER_UID, uid.to_string()));
    let ids = ids.chain(cluster);
    let router = want.row(
        RowWant::new(names::CLUSTER_ROUTER, Row::new(lr::TABLE))
            .with(lr::NAME, names::CLUSTER_ROUTER)
            .with(lr::EXTERNAL_IDS, ids)
            .with(lr::OPTIONS, options)
            .refers(lr::COPP, [copp.clone()]),
    );
    let addresses: Vec<_> = join_addresses(world, 1).collect();
    let mac = addresses.iter().min_by_key(|a| a.is_ipv6()).map(|a| ovnkube_model::Mac::of(a.ip()));
    let Some(mac) = mac else { return };
    let name = names::CLUSTER_ROUTER_TO_JOIN;
    let port = want.row(
        RowWant::new(name, Row::new(lrp::TABLE))
            .with(lrp::NAME, name)
            .with(lrp::MAC, mac.to_string())
            .with(lrp::NETWORKS, addresses.iter().map(ToString::to_string)),
    );
    want.member(&router, lr::PORTS, &port);
    let join = want.row(RowWant::new(names::JOIN_SWITCH, Row::new(ls::TABLE)).with(ls::NAME, names::JOIN_SWITCH));
    let peer = names::JOIN_TO_CLUSTER_ROUTER;
    let port = want.row(
        RowWant::new(peer, Row::new(lsp::TABLE))
            .with(lsp::NAME, peer)
            .with(lsp::TYPE, "router")
            .with(lsp::ADDRESSES, ["router"])
            .with(lsp::OPTIONS, [("router-port", name)]),
    );
    want.member(&join, ls::PORTS, &port);
}

/// The `n`-th address of each join subnet the cluster's families have.
pub(crate) fn join_addresses(world: &World, n: u32) -> impl Iterator<Item = ipnetwork::IpNetwork> {
    let families: Vec<Family> = world.settings.families();
    families.into_iter().filter_map(move |f| world.settings.join_subnet(f)?.nth_with_prefix(u128::from(n)))
}

fn group(want: &mut Want, owner: &OwnerId) {
    want.row(
        RowWant::new(owner.hashed_name(), Row::new(port_group::TABLE))
            .with(port_group::NAME, owner.hashed_name())
            .with(port_group::EXTERNAL_IDS, owner.external_ids()),
    );
}
