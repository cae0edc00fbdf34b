//! What must hold when nothing is left to write: the invariants I1 to I8 of `docs/reliability.md`.

use ovnkube_model::World as Model;
use ovnkube_policy_truth::evaluate::is_in_host_network;
use ovnkube_policy_truth::generate::PORTS;
use ovnkube_policy_truth::{End, Flow, Protocol};
use ovnkube_tests::acls::{Acls, Packet, Parsed, places};
use ovnkube_tests::dump::Dump;
use ovnkube_tests::objects::kinds;
use ovnkube_tests::{Objects, rules};
use serde_json::Value;

use crate::api::KINDS;
use crate::database::on;
use crate::observer::Observer;
use crate::state::cluster;
use crate::world::World;
use crate::{deeds, pods, pools, services};

/// So long nothing is tried: longer than any wait for a retry, in ms.
const QUIET: u64 = 40_000;
/// Without earlier failures there are no long waits.
const QUIET_WITHOUT_FAULTS: u64 = 20_000;
const AT_MOST: u64 = 300_000;
/// Long enough to get the lease, list and plan everything.
const RESTART: u64 = 30_000;

/// Lets everything come to rest and checks it. `is_small`: the ranges are small enough to use them up.
pub(crate) fn at_rest(world: &mut World, is_small: bool) {
    settle(world, QUIET);
    // Kubernetes deletes the pods of a node that is gone for so long
    world.running.retain(|_, (node, _)| world.api.get("Node", "", node).is_some());
    check_pods(world);
    check_flows(world);
    services::check(&world.api, &world.observer.cache);
    let rows = Dump::of_cache(&ours(world).cache);
    // before the restart: a master that starts fills its pools anew
    if is_small {
        check_pools(world, &rows);
    }
    check_restart(world);
    check_fresh_start(world, &rows);
    world.go_on();
}

fn settle(world: &mut World, quiet: u64) {
    world.heal();
    let began = world.now;
    while world.now - world.last_try.max(began) < quiet {
        assert!(world.now < began + AT_MOST, "writes without end");
        world.run_until(world.now + 1000);
    }
    world.observer.protect_taken();
    // by now the switches of these are gone
    world.observer.deleted.clear();
}

/// I1, I2: each pod that needs a port has one, with its annotated addresses, and a running pod keeps its own.
fn check_pods(world: &World) {
    let mut objects = Objects::default();
    for (kind, _) in KINDS {
        world.api.all(kind).for_each(|object| drop(objects.put(object.clone())));
    }
    let mut model = Model::new(world.network.clone(), kinds());
    for change in objects.first_lists() {
        model.apply(change);
    }
    rules::pods_are_wired(&objects, &model, &world.observer.cache);
    pods::check(&world.api, &world.observer.cache);
    rules::subnets_are_unique(&world.observer.cache);
    pods::check_running(world);
}

/// I5: exactly those connections between pods are allowed that the Kubernetes reference allows.
fn check_flows(world: &World) {
    let cluster = cluster(world);
    let cache = &world.observer.cache;
    let mut parsed = Parsed::default();
    let acls = Acls::of(cache, &mut parsed);
    let wired = cluster.pods.iter().filter(|pod| !is_in_host_network(pod));
    let ends: Vec<_> = wired
        .flat_map(|pod| {
            let name = |part: &Option<String>| part.clone().unwrap_or_default();
            let port = format!("{}_{}", name(&pod.metadata.namespace), name(&pod.metadata.name));
            places(cache, &port).into_iter().map(move |place| (End { pod: Some(pod), ip: place.ip }, place))
        })
        .collect();
    for (from, from_place) in &ends {
        for (to, to_place) in &ends {
            if from_place.port == to_place.port || from.ip.is_ipv4() != to.ip.is_ipv4() {
                continue;
            }
            for protocol in Protocol::ALL {
                let ovn = protocol.name().to_lowercase();
                for port in PORTS {
                    let expected = cluster.allows(&Flow { from: *from, to: *to, protocol, port });
                    let packet = Packet { from: *from_place, to: *to_place, protocol: &ovn, port };
                    assert_eq!(acls.allow(&packet), expected, "{} to {} {ovn} {port}", from.ip, to.ip);
                }
            }
        }
    }
}

/// The rows without those of other programs.
fn ours(world: &World) -> Observer {
    let mut copy = world.nb.database.clone();
    let remove = |foreign: &crate::observer::Foreign| match foreign.place {
        Some(place) => deeds::mutate(place, "delete", foreign.uuid),
        None => on(foreign.row.table(), foreign.uuid, "delete"),
    };
    let ops: Vec<Value> = world.observer.foreign.iter().map(remove).collect();
    copy.transact(&ops, |_| true);
    Observer::of(&copy)
}

/// I7: masters can give out what nobody has, all of it and no more. What this changes goes again.
fn check_pools(world: &mut World, rows: &Dump) {
    pools::fill(&mut world.api);
    settle(world, QUIET_WITHOUT_FAULTS);
    pools::check_full(&world.api);
    check_pods(world);
    pools::clear(&mut world.api);
    settle(world, QUIET_WITHOUT_FAULTS);
    let now = Dump::of_cache(&ours(world).cache);
    assert_eq!(now.since(rows), "", "rows that other nodes and pods have left");
    assert_eq!(rows.since(&now), "", "rows that other nodes and pods have taken along");
}

/// I8: masters that start again have nothing to write.
fn check_restart(world: &mut World) {
    let (before, database) = (world.tries, world.nb.database.clone());
    for number in 0..world.masters.len() {
        world.kill(number, 0, true);
    }
    world.run_until(world.now + RESTART);
    let mut masters = world.masters.iter().filter_map(|process| process.master.as_ref());
    let is_ready = masters.any(|master| master.metrics.ready_duration.get() > 0.0);
    assert!(is_ready, "no master has written everything {RESTART} ms after the restart");
    let since = || Dump::of_cache(&world.observer.cache).since(&Dump::of_cache(&Observer::of(&database).cache));
    assert_eq!(world.tries, before, "transactions and patches of a restart; the rows that changed:\n{}", since());
}

/// I3: there are exactly the rows that a first start would make, and the annotations need no change.
fn check_fresh_start(world: &World, rows: &Dump) {
    let mut fresh = World::new(0, &[100], world.network.clone(), world.api.without_past());
    if world.nb.is_pair() {
        fresh.nb.make_pair();
    }
    fresh.heal();
    fresh.run_until(QUIET_WITHOUT_FAULTS);
    settle(&mut fresh, QUIET_WITHOUT_FAULTS);
    let fresh_rows = Dump::of_cache(&fresh.observer.cache);
    assert_eq!(rows.since(&fresh_rows), "", "rows that a fresh start would not make");
    assert_eq!(fresh_rows.since(rows), "", "rows that a fresh start would also make");
    assert_eq!(fresh.tries.1, 0, "annotations of a fresh start");
}
