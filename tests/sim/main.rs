//! Deterministic simulation: the master's own code, with its lease, watches, patches and database sessions, against
//! simulated servers, in simulated time. One seed decides what happens, what fails and how long everything takes.
//!
//! ```text
//!  story.rs: what happens ──▶ deeds.rs ──▶ api.rs, northbound.rs ◀──▶ master.rs (1 to 3, the real code)
//!                                               └──▶ observer.rs, checks.rs, pods.rs, services.rs: what must hold
//! ```
//!
//! A story that fails is shortened and kept in `found/`; such stories are played by each run.
#![allow(clippy::unwrap_used, reason = "tests")]

mod api;
mod checks;
mod database;
mod deeds;
mod master;
mod northbound;
mod observer;
mod play;
mod pods;
mod pools;
mod real;
mod services;
mod state;
mod story;
mod wire;
mod world;
mod writers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use api::ApiServer;
use database::Database;
use northbound::{Fate, Northbound};
use observer::Place;
use ovnkube_ovn::nb::{logical_switch as ls, logical_switch_port as lsp};
use play::{Played, play, shortened};
use serde_json::{Value, json};
use story::{Event, Fault, Story};
use world::World;

/// Without `SIM_SEEDS`: a few seconds.
const SEEDS: u64 = 68;
/// So many stories of a run are kept at most: to shorten one takes up to some minutes.
const KEPT: usize = 10;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

fn kept() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("sim/found")
}

/// Plays `SIM_SEEDS` stories from `SIM_FIRST` on, on all processors. With `SIM_STOP`, it ends at the first that fails and
/// keeps nothing.
#[test]
fn all_seeds_hold() {
    play::log();
    let (first, count, stop) = (number("SIM_FIRST", 0), number("SIM_SEEDS", SEEDS), number("SIM_STOP", 0) > 0);
    let (next, began) = (AtomicU64::new(first), Instant::now());
    let (failed, sum) = (Mutex::new(BTreeMap::new()), Mutex::new(Played::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count || (stop && !failed.lock().unwrap().is_empty()) {
                return;
            }
            match play(&Story::new(seed)) {
                Ok(played) => sum.lock().unwrap().add(&played),
                Err(why) => drop(failed.lock().unwrap().insert(seed, why)),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    println!(
        "{} in {:.1} s; {} failed",
        sum.into_inner().unwrap(),
        began.elapsed().as_secs_f64(),
        failed.lock().unwrap().len()
    );
    let failed = failed.into_inner().unwrap();
    let Some((seed, why)) = failed.first_key_value() else { return };
    assert!(!stop, "seed {seed} fails: {why}");
    let all: Vec<_> = failed.keys().take(20).collect();
    let told: Vec<_> = failed.iter().take(KEPT).map(|(seed, why)| keep(*seed, why)).collect();
    panic!("seeds {all:?} fail\n{}", told.join("\n"));
}

/// Writes the events to `found/` that a story needs to fail.
fn keep(seed: u64, why: &str) -> String {
    let (story, why) = shortened(Story::new(seed), why.to_owned());
    let file = kept().join(format!("seed-{seed}.json"));
    std::fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&story).unwrap())).unwrap();
    format!("{} has {} events of seed {seed}: {why}", file.display(), story.events.len())
}

/// Stories that have failed before.
#[test]
fn found_stories_hold() {
    play::log();
    let mut files: Vec<_> = kept().read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
        let story: Story = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        if let Err(why) = play(&story) {
            panic!("{}: {why}", file.display());
        }
    }
}

/// Faults that `planted/run` plants: each still fits the sources, to the line.
#[test]
fn planted_faults_fit() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    let faults = root.join("tests/sim/planted").read_dir().unwrap().map(|file| file.unwrap().path());
    let faults: Vec<_> = faults.filter(|file| file.extension().is_some_and(|extension| extension == "patch")).collect();
    assert!(faults.len() >= 10, "{faults:?}");
    for fault in faults {
        let check = Command::new("git").args(["apply", "--check"]).arg(&fault).current_dir(&root).output();
        let said = check.expect("git (package git) runs");
        assert!(said.status.success(), "{}: {}", fault.display(), String::from_utf8_lossy(&said.stderr));
    }
}

/// An API server deletes Events after an hour; what stands is found there as long as it stands, also by a master that
/// writes nothing.
#[test]
fn what_stands_is_said_again() {
    const HOUR: u64 = 3_600_000;
    let network = ovnkube_tests::settings::Settings::default().network();
    let mut world = World::new(1, &[100], network, ApiServer::new());
    let named = |annotations| json!({"metadata": {"name": "a", "annotations": annotations}});
    world.api.put("Namespace", named(json!({"k8s.ovn.org/acl-logging": "loud"})));
    let owner = [("owner-controller", "default-network-controller"), ("owner-type", "EgressFirewall"), ("name", "a")];
    let ids: Vec<_> = owner.iter().map(|(key, value)| json!([format!("k8s.ovn.org/{key}"), value])).collect();
    let acl =
        json!({"direction": "to-lport", "priority": 1, "match": "1", "action": "drop", "external_ids": ["map", ids]});
    let uuid = |number: u8| format!("00000000-0000-4000-8000-0000000000{number:02}");
    let insert = [
        json!({"op": "insert", "table": "ACL", "uuid": uuid(1), "row": acl}),
        json!({"op": "insert", "table": "Port_Group", "uuid": uuid(2), "row": {"name": "g", "acls": ["uuid", uuid(1)]}}),
    ];
    let (answer, changes) = world.nb.database.transact(&insert, |_| true);
    assert_eq!(changes.len(), 2, "{answer:?}");
    let said = |world: &World, reason: &str| world.api.events.iter().filter(|of| *of == reason).count();
    for hours in 1..=2 {
        world.run_until(hours * HOUR);
        for reason in ["BadAnnotation", "UnservedRows"] {
            assert!(said(&world, reason) as u64 >= hours, "{reason} after {hours} h: {:?}", world.api.events);
        }
    }
    assert_eq!(world.writes.0, 0, "it wrote");
    world.api.put("Namespace", named(json!({})));
    world.run_until(2 * HOUR + HOUR / 60);
    let before = said(&world, "BadAnnotation");
    world.run_until(3 * HOUR);
    assert_eq!(said(&world, "BadAnnotation"), before, "nothing is wrong any more");
}

/// Another program puts back what was there before, as one that restores a backup does: the port of a pod that is gone, in place
/// of the port of the pod that has its address now. [`observer`] checks that two ports never have it at once.
#[test]
fn a_port_that_comes_back_goes_before_its_address_is_used() {
    const SECOND: u64 = 1000;
    // pods that ask for the first address of the first node
    const ASKS: u64 = 1;
    let network = ovnkube_tests::settings::Settings::default().network();
    let mut world = World::new(1, &[100], network, ApiServer::new());
    let port = |world: &World, pod: &str| {
        let cache = &world.observer.cache;
        let found = cache.named(lsp::TABLE, &format!("truth-0_{pod}")).next();
        found.map(|(uuid, row)| {
            let parent = cache.parents(uuid).find(|parent| parent.table == ls::TABLE).unwrap();
            (uuid, row.clone(), Place { table: ls::TABLE, uuid: parent.uuid, column: ls::PORTS.id() })
        })
    };
    deeds::happen(&mut world, Event::NodeComes(0, ASKS));
    deeds::happen(&mut world, Event::PodComes(0, ASKS));
    world.run_until(60 * SECOND);
    let (gone, row, place) = port(&world, "p0").unwrap();
    deeds::happen(&mut world, Event::PodGoes(0));
    deeds::happen(&mut world, Event::PodComes(3, ASKS));
    world.run_until(120 * SECOND);
    let (new, its, _) = port(&world, "p3").unwrap();
    assert_eq!(its.strs(lsp::ADDRESSES).last().map(ip), row.strs(lsp::ADDRESSES).last().map(ip));
    let row =
        json!({"op": "insert", "table": "Logical_Switch_Port", "uuid": gone.to_string(), "row": deeds::cells(&row)});
    world.meddle(&[deeds::mutate(place, "delete", new), row, deeds::mutate(place, "insert", gone)]);
    world.run_until(180 * SECOND);
    assert!(port(&world, "p0").is_none() && port(&world, "p3").is_some());
}

/// The address within a port's addresses.
fn ip(addresses: &str) -> &str {
    addresses.rsplit(' ').next().unwrap_or_default()
}

/// After etcd was restored from a snapshot, a watch that goes on from a later version brings nothing, not even a bookmark.
/// A load balancer may end such a watch before it was silent for long.
#[test]
fn a_restored_etcd_is_seen() {
    const SECOND: u64 = 1000;
    for (ends_every, seen_within) in [(3600 * SECOND, 240 * SECOND), (35 * SECOND, 3720 * SECOND)] {
        let network = ovnkube_tests::settings::Settings::default().network();
        let mut world = World::new(1, &[100], network, ApiServer::new());
        let node = |name: &str| json!({"metadata": {"name": name}});
        let is_seen = |world: &World, name: &str| {
            let node = world.api.get("Node", "", name);
            node.is_some_and(|node| node["metadata"]["annotations"]["k8s.ovn.org/node-subnets"].is_string())
        };
        world.api.put("Node", node("a"));
        world.run_until(60 * SECOND);
        assert!(is_seen(&world, "a"));
        let snapshot = world.api.clone();
        world.api.pass(1_000_000);
        world.api.put("Node", node("gone"));
        world.run_until(120 * SECOND);
        assert!(is_seen(&world, "gone"));
        world.api.restore(snapshot);
        world.api.put("Node", node("later"));
        while !is_seen(&world, "later") {
            assert!(world.now < 120 * SECOND + seen_within, "not seen, with watches that end every {ends_every} ms");
            world.fail(Fault::WatchesEnd);
            world.run_until(world.now + ends_every.min(seen_within));
        }
    }
}

/// Who connects to a leader that lags behind gets the rows of before, and the others when it has caught up.
#[test]
fn a_leader_that_lags_shows_older_rows() {
    const CONN: u64 = 1;
    let mut nb = Northbound::new(Database::empty());
    let add = |nb: &mut Northbound, number: u8| {
        let uuid = format!("00000000-0000-4000-8000-0000000000{number:02}");
        let row = json!({"name": format!("switch-{number}")});
        let insert = json!({"op": "insert", "table": "Logical_Switch", "uuid": uuid, "row": row});
        let (answer, changes) = nb.database.transact(&[insert], |_| true);
        assert_eq!(changes.len(), 1, "{answer:?}");
        nb.publish(&changes)
    };
    let switches = |messages: &[(u64, String)]| -> Vec<u8> {
        let has = |number: &u8| messages.iter().any(|(_, text)| text.contains(&format!("\"switch-{number}\"")));
        (1..=5).filter(has).collect()
    };
    (1..=3).for_each(|number| drop(add(&mut nb, number)));
    nb.lag(2);
    nb.lead(false);
    nb.lead(true);
    nb.open(CONN);
    let wanted = json!({"Logical_Switch": [{"columns": ["name"]}]});
    let nothing = "00000000-0000-0000-0000-000000000000";
    let params = json!(["OVN_Northbound", "rows", wanted, nothing]);
    let ask = json!({"id": 1, "method": "monitor_cond_since", "params": params});
    assert_eq!(switches(&nb.handle(CONN, &ask, Fate::Normal).0), [1]);
    assert!(nb.leader_lags());
    assert_eq!(switches(&add(&mut nb, 4)), [0; 0]);
    assert_eq!(switches(&nb.catch_up()), [2, 3, 4]);
    assert!(!nb.leader_lags());
    assert_eq!(switches(&add(&mut nb, 5)), [5]);
}

/// As long as it is one; then it may lack what the other one did last.
#[test]
fn a_backup_takes_no_writes() {
    let mut nb = Northbound::new(Database::empty());
    nb.make_pair();
    let transact = |nb: &mut Northbound, conn: u64, ops: &[Value]| {
        let params: Vec<_> = [json!("OVN_Northbound")].into_iter().chain(ops.iter().cloned()).collect();
        let ask = json!({"id": 1, "method": "transact", "params": params});
        let (messages, _) = nb.handle(conn, &ask, Fate::Normal);
        messages.into_iter().map(|(_, text)| text).collect::<String>()
    };
    let insert = |number: u8| {
        let uuid = format!("00000000-0000-4000-8000-0000000000{number:02}");
        json!({"op": "insert", "table": "Logical_Switch", "uuid": uuid, "row": {"name": format!("switch-{number}")}})
    };
    let is_backup = |nb: &mut Northbound, conn: u64| {
        let nothing = json!([["_uuid", "==", ["uuid", "00000000-0000-0000-0000-000000000000"]]]);
        let update = json!({"op": "update", "table": "NB_Global", "where": nothing, "row": {}});
        let said = transact(nb, conn, &[update, json!({"op": "abort"})]);
        let (refused, aborted) = (said.contains("not allowed"), said.contains("aborted"));
        assert!(refused != aborted, "{said}");
        refused
    };
    let switches = |nb: &Northbound| nb.database.rows(ls::TABLE).count();
    nb.open(1);
    transact(&mut nb, 1, &[insert(1)]);
    transact(&mut nb, 1, &[insert(2)]);
    assert!(!is_backup(&mut nb, 1) && switches(&nb) == 2);
    let (_, lost) = nb.fail_over(1, false);
    assert!(lost.len() == 1 && switches(&nb) == 1);
    // the address still leads to the former one
    nb.open(2);
    assert!(is_backup(&mut nb, 1) && is_backup(&mut nb, 2));
    assert!(transact(&mut nb, 1, &[insert(3)]).contains("not allowed") && switches(&nb) == 1);
    nb.lead_to_active();
    nb.open(3);
    assert!(!nb.is_reached(1) && nb.is_reached(3) && !is_backup(&mut nb, 3));
    transact(&mut nb, 3, &[insert(3)]);
    assert_eq!(switches(&nb), 2);
    nb.fail_over(0, true);
    nb.open(4);
    assert!(!nb.is_open(3) && !is_backup(&mut nb, 4) && switches(&nb) == 2);
}

/// Else a seed could not be played again.
#[test]
fn a_seed_always_plays_the_same() {
    for seed in 0..5 {
        let [first, second] = [(); 2].map(|()| play(&Story::new(seed)).map(|played| played.trace));
        assert_eq!(first, second, "seed {seed}");
    }
}

/// Nothing goes by the wall clock: all that is sent, and when, is the same if it is set.
#[test]
fn wall_clocks_change_nothing() {
    let is_set = |event: &Event| matches!(event, Event::Fault(Fault::ClockIsSet { .. }));
    for seed in [2, 5, 8, 11] {
        let story = Story::new(seed);
        let mut without = story.clone();
        without.events.retain(|(_, event)| !is_set(event));
        assert_eq!(story.events.len(), without.events.len() + 4, "seed {seed}");
        let [set, usual] = [story, without].map(|story| play(&story).map(|played| played.trace));
        assert_eq!(set, usual, "seed {seed}");
    }
}

/// The least that a seed must contain.
#[test]
fn stories_are_long_and_full_of_faults() {
    for seed in 0..1000 {
        let events = Story::new(seed).events;
        let faults = events.iter().filter(|(_, event)| matches!(event, Event::Fault(_))).count();
        let rests = events.iter().filter(|(_, event)| matches!(event, Event::Rest)).count();
        assert!(faults >= 5 && events.len() - faults - rests >= 200, "seed {seed}: {faults} faults");
    }
}
