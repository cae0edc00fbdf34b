//! Prefixes of other clusters that contain each other, written one by one: between two transactions packets take no other way.

use std::collections::BTreeSet;

use ovnkube_apply::batch::{has_ways, take_along};
use ovnkube_model::{Affected, ObjectKey, Peers, World};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{
    logical_router_policy as policy, logical_router_port as lrp, logical_switch as ls, logical_switch_port as lsp,
};
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{kinds, node};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, Write};
use serde_json::json;

const WHOLE: &str = "10.64.0.0/14";
const PART: &str = "10.65.0.0/16";
const HALVES: [&str; 2] = ["10.64.0.0/15", "10.66.0.0/15"];

fn peers(prefixes: &[&str]) -> Peers {
    peers_at(prefixes, 9)
}

/// `host`: what the address of the other cluster's port ends with.
fn peers_at(prefixes: &[&str], host: u8) -> Peers {
    let routes = prefixes.iter().enumerate().map(|(number, prefix)| {
        json!({
            "prefix": prefix, "zone": "az2", "switch": "ts", "next_hop": format!("169.254.100.{host}"),
            "id": format!("r{number}"),
        })
    });
    let own = json!({"zone": "az1", "mac": "0a:58:a9:fe:64:05", "addresses": ["169.254.100.5/24"], "key": 1});
    let address = format!("0a:58:a9:fe:64:{host:02x} 169.254.100.{host}/24");
    let remote = json!({"ts-az2": {"key": 2, "address": address}});
    let switches = json!({"ts": {"key": 16_711_681, "own": [own], "remote": remote}});
    let routes: Vec<_> = routes.collect();
    serde_json::from_value(json!({"switches": switches, "routes": routes, "problems": []})).unwrap()
}

fn written(controller: &Controller) -> BTreeSet<String> {
    let cache = controller.nb.cache();
    let of = cache.iter(policy::TABLE).filter_map(|(_, row)| row.str(policy::MATCH).strip_prefix("ip4.dst == "));
    of.filter(|prefix| prefix.starts_with("10.6")).map(str::to_owned).collect()
}

/// The prefixes in the database after each transaction until it has these.
async fn hear(controller: &mut Controller, objects: &mut Objects, prefixes: &[&str]) -> Vec<BTreeSet<String>> {
    controller.take(objects.hear(peers(prefixes)));
    let mut steps = Vec::new();
    while let Some(write) = controller.step(objects, false).await {
        if matches!(write, Write::Transaction(_)) {
            steps.push(written(controller));
        }
    }
    let expected: BTreeSet<String> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
    assert_eq!(written(controller), expected);
    steps
}

/// A cluster that is joined.
fn joined() -> Objects {
    let mut objects = Objects::default();
    objects.put(node("n1"));
    objects.put(json!({
        "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "ovn-ic-config"},
        "data": {"enable-ic": "true", "az-name": "az1", "ic-db-host": "192.168.65.3", "gw-nodes": "n1", "auto-route": "true"},
    }));
    objects
}

/// Whether packets have a way to all of [`WHOLE`].
fn reaches_all(prefixes: &BTreeSet<String>) -> bool {
    prefixes.contains(WHOLE) || HALVES.iter().all(|half| prefixes.contains(*half))
}

#[tokio::test]
async fn packets_take_no_other_way_between_two_transactions() {
    let server = Server::new(Release::Lts);
    let mut objects = joined();
    let mut controller = Controller::start(Settings::default().network(), server.client().await, &objects);
    controller.batch = 1;
    hear(&mut controller, &mut objects, &[]).await;
    for prefixes in [&[WHOLE, PART][..], &[]] {
        for step in hear(&mut controller, &mut objects, prefixes).await {
            assert!(step.contains(PART) || !step.contains(WHOLE), "{step:?} on the way to {prefixes:?}");
        }
    }
    hear(&mut controller, &mut objects, &[WHOLE]).await;
    for prefixes in [&HALVES[..], &[WHOLE]] {
        for step in hear(&mut controller, &mut objects, prefixes).await {
            assert!(reaches_all(&step), "{step:?} on the way to {prefixes:?}");
        }
    }
}

/// Its first sweep leaves the ways of before until the last new one is there, in however many transactions.
#[tokio::test]
async fn a_master_that_starts_takes_no_way_away_before_the_new_ones_are_there() {
    let server = Server::new(Release::Lts);
    let mut objects = joined();
    for prefixes in [&[WHOLE][..], &HALVES, &[WHOLE]] {
        let mut controller = Controller::start(Settings::default().network(), server.client().await, &objects);
        controller.batch = 1;
        let had_all = reaches_all(&written(&controller));
        for step in hear(&mut controller, &mut objects, prefixes).await {
            assert!(!had_all || reaches_all(&step), "{step:?} on the way to {prefixes:?}");
        }
    }
}

/// The other cluster's port has another address since. Two policies for one prefix have the same priority: OVN would follow any.
#[tokio::test]
async fn a_master_that_starts_replaces_a_way_at_one_moment() {
    let server = Server::new(Release::Lts);
    let mut objects = joined();
    for (batch, host) in [(500, 9), (500, 7), (1, 8)] {
        let mut controller = Controller::start(Settings::default().network(), server.client().await, &objects);
        controller.batch = batch;
        controller.take(objects.hear(peers_at(&[WHOLE, PART], host)));
        let ways = |controller: &Controller| {
            let cache = controller.nb.cache();
            let next_hops = |row: &Row| row.strs(policy::NEXTHOPS).map(str::to_owned).collect::<Vec<_>>();
            let rows =
                cache.iter(policy::TABLE).filter(|(_, row)| row.str(policy::MATCH).starts_with("ip4.dst == 10.6"));
            rows.map(|(_, row)| (row.str(policy::MATCH).to_owned(), next_hops(row))).collect::<Vec<_>>()
        };
        while controller.step(&mut objects, false).await.is_some() {
            let ways = ways(&controller);
            let prefixes: BTreeSet<_> = ways.iter().map(|(prefix, _)| prefix).collect();
            assert_eq!(prefixes.len(), ways.len(), "{ways:?} on the way to {host}");
        }
        let (ways, next_hop) = (ways(&controller), format!("169.254.100.{host}"));
        assert!(ways.len() == 2 && ways.iter().all(|(_, next_hops)| *next_hops == [next_hop.as_str()]), "{ways:?}");
    }
}

/// All ports are in another transit switch since, with the same subnet. Of two router ports of one network northd takes any.
#[tokio::test]
async fn a_master_that_starts_replaces_a_transit_switch_at_one_moment() {
    let server = Server::new(Release::Lts);
    let mut objects = joined();
    for switch in ["ts", "ts0", "ts-a", "ts"] {
        let mut controller = Controller::start(Settings::default().network(), server.client().await, &objects);
        let text = serde_json::to_string(&peers(&[WHOLE, PART])).unwrap().replace("\"ts", &format!("\"{switch}"));
        controller.take(objects.hear(serde_json::from_str(&text).unwrap()));
        let names = |controller: &Controller| {
            let cache = controller.nb.cache();
            let own = cache.iter(lrp::TABLE).map(|(_, row)| row).filter(|row| row.str(lrp::NAME).starts_with("az1-"));
            let others = cache.iter(lsp::TABLE).map(|(_, row)| row).filter(|row| row.str(lsp::TYPE) == "remote");
            let switches =
                cache.iter(ls::TABLE).map(|(_, row)| row.str(ls::NAME)).filter(|name| name.starts_with("ts"));
            let own: Vec<_> = own.map(|row| row.str(lrp::NAME).to_owned()).collect();
            let others: Vec<_> = others.map(|row| row.str(lsp::NAME).to_owned()).collect();
            (own, others, switches.map(str::to_owned).collect::<Vec<_>>())
        };
        while controller.step(&mut objects, false).await.is_some() {
            let (own, others, switches) = names(&controller);
            let most = own.len().max(others.len()).max(switches.len());
            assert!(most <= 1, "{own:?} {others:?} {switches:?} on the way to {switch}");
        }
        let wanted = [format!("az1-{switch}"), format!("{switch}-az2"), switch.to_owned()].map(|name| vec![name]);
        assert_eq!(<[_; 3]>::from(names(&controller)), wanted);
    }
}

/// Only what a sweep would remove goes with the others.
#[tokio::test]
async fn a_switch_of_another_program_with_a_similar_mark_stays() {
    let server = Server::new(Release::Lts);
    let marks = ["owner-controller=another", "owner-type=Interconnection"];
    let marks = marks.map(|mark| format!("external_ids:k8s.ovn.org/{mark}"));
    server.nbctl(&["ls-add", "theirs", "--", "set", "Logical_Switch", "theirs", &marks[0], &marks[1]]);
    let mut objects = joined();
    let mut controller = Controller::start(Settings::default().network(), server.client().await, &objects);
    hear(&mut controller, &mut objects, &[WHOLE]).await;
    let cache = controller.nb.cache();
    assert!(cache.iter(ls::TABLE).any(|(_, row)| row.str(ls::NAME) == "theirs"));
}

#[test]
fn ways_are_known_among_other_keys() {
    let world = World::new(Settings::default().network(), kinds());
    let mut keys = BTreeSet::new();
    ovnkube_plan::affected(&Affected::Node("n1".into()), &world, &mut keys);
    assert!(!keys.is_empty() && !has_ways(keys.iter()));
    ovnkube_plan::affected(&Affected::Prefix(WHOLE.parse().unwrap()), &world, &mut keys);
    assert!(has_ways(keys.iter()));
}

/// Else one that goes could be removed long before that which replaces it is tried again.
#[test]
fn ways_that_failed_go_along_with_others() {
    let world = World::new(Settings::default().network(), kinds());
    let keys = |affected| {
        let mut keys = BTreeSet::new();
        ovnkube_plan::affected(&affected, &world, &mut keys);
        keys
    };
    let way = |prefix: &str| keys(Affected::Prefix(prefix.parse().unwrap()));
    let mut failed = way(HALVES[0]);
    let service = Affected::Service(ObjectKey { namespace: "a".into(), name: "s".into() });
    assert!(take_along(&mut failed, &keys(service), &world, None).is_empty(), "they wait alone");
    assert_eq!(take_along(&mut failed, &way(WHOLE), &world, None), way(HALVES[0]));
    assert!(failed.is_empty());
}
