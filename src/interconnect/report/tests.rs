use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ovnkube_db::{Answer, Model, Observed, Seen};
use ovnkube_ovn::ic_nb::{self, ic_nb_global};
use ovnkube_ovn::{Row, ServerSchema, Uuid};
use ovnkube_ovsdb_data::Cache;

use super::declared::DeclaredRoute;
use super::facts::{Facts, GatewayNode};
use super::in_effect::{Asked, asked};
use super::northbound::{ByHand, Kept, Northbound};
use super::ways::{Offered, Routes, Way};
use super::zones::{Gateway, Port, Zone, mark_silent};
use super::{RouteList, Source, Status, Verdict, checks};

fn config(changed: &[(&str, &str)]) -> Asked {
    let whole = [
        ("enable-ic", "true"),
        ("az-name", "az1"),
        ("ic-db-host", "10.0.0.1"),
        ("gw-nodes", "n1"),
        ("auto-route", "true"),
    ];
    let all = whole.iter().chain(changed).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    asked(Some(&all.collect::<BTreeMap<_, _>>()))
}

/// What a master keeps that goes by this.
fn kept(is_on: bool) -> Kept {
    Kept { names: config(&[]).unwrap().asks.names().unwrap().clone(), is_on, text: String::new() }
}

const NOW: u64 = 1_000_000;

fn server(address: &str, model: Model, leader: bool) -> Seen {
    let answer = Answer {
        model,
        connected: true,
        leader,
        read_only: None,
        cluster: None,
        member: None,
        index: None,
        schema: None,
    };
    Seen { address: address.into(), answer: Some(answer), ..Seen::default() }
}

fn silent(address: &str) -> Seen {
    Seen { address: address.into(), problem: Some("refused".into()), ..Seen::default() }
}

fn zone(name: &str, cluster: &str, chassis: &str, address: &str) -> Zone {
    Zone {
        name: name.into(),
        cluster: Some(cluster.into()),
        gateways: vec![Gateway {
            chassis: chassis.into(),
            hostname: format!("host-{chassis}"),
            tunnels: vec!["geneve 172.18.0.2".into()],
        }],
        ports: vec![Port {
            name: format!("ts-{name}"),
            switch: "ts".into(),
            addresses: vec![address.into()],
            gateway: Some(chassis.into()),
        }],
        routes: 1,
        ..Zone::default()
    }
}

fn offered(prefix: &str, reason: Option<&str>) -> Offered {
    let used = reason.is_none();
    let way = Way { switch: "ts".into(), next_hop: "169.254.100.77".parse().unwrap(), written: Some(used) };
    Offered {
        prefix: prefix.parse().unwrap(),
        used,
        reason: reason.map(str::to_owned),
        closed: false,
        since: None,
        ways: vec![way],
    }
}

fn declared(prefix: &str, reason: Option<&str>) -> DeclaredRoute {
    let Offered { prefix, used, reason, ways, .. } = offered(prefix, reason);
    DeclaredRoute { prefix, zone: "az2".into(), used, reason, ways }
}

/// A cluster with everything as it should be.
fn facts() -> Facts {
    let single = |database| Observed {
        database,
        servers: vec![server("tcp:10.0.0.1:1", Model::Standalone, true)],
        addressed: true,
        northd: None,
    };
    let own = ("az1-ts".to_owned(), (vec!["169.254.100.31/24".parse().unwrap()], true));
    Facts {
        now: NOW,
        asked: Ok(config(&[])),
        cluster: Some("uid1".into()),
        former: BTreeSet::new(),
        settings: Vec::new(),
        gateways: Ok(vec![GatewayNode {
            name: "n1".into(),
            exists: true,
            ready: true,
            labelled: true,
            chassis: Some("c1".into()),
            interconn: Ok(Some(true)),
        }]),
        servers: vec![single("OVN_IC_Northbound"), single("OVN_IC_Southbound")],
        switches: Ok(vec!["ts".into()]),
        zones: Ok(vec![
            zone("az1", "uid1", "c1", "169.254.100.31/24"),
            zone("az2", "uid2", "gw2", "169.254.100.77/24"),
        ]),
        northbound: Ok(Northbound {
            switches: [("ts".to_owned(), true)].into(),
            ports: [own].into(),
            kept: Some(kept(true)),
            ..Northbound::default()
        }),
        southbound: Ok(()),
        locked: Ok(true),
        settled: Ok(true),
        problems: Vec::new(),
        routes: Ok(vec![Routes { zone: "az2".into(), prefixes: vec![offered("10.244.0.0/16", None)] }]),
        declared: Vec::new(),
        disabled: Ok(Vec::new()),
    }
}

#[test]
fn all_is_well() {
    let facts = facts();
    let all = checks(&facts);
    let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert!(all.iter().all(|check| check.verdict == Verdict::Ok), "{lines:#?}");
    let order = [
        "ConfigMap",
        "gateways",
        "OVN_IC_Northbound",
        "OVN_IC_Southbound",
        "northbound database",
        "southbound database",
        "lock",
        "this cluster",
        "transit switches",
        "other clusters",
        "prefixes",
        "leftovers",
        "Subnets",
    ];
    assert_eq!(all.iter().map(|check| check.what).collect::<Vec<_>>(), order);
    let text = Status::of(&facts).to_string();
    for line in [
        "this cluster is az1 and is joined; routes are exchanged",
        "  tcp:10.0.0.1:1: takes writes",
        "cluster az1, this one",
        "  gateway host-gw2 (gw2): geneve 172.18.0.2",
        "  ts: 169.254.100.77/24, on host-gw2",
        "  prefixes: 1 learned, 0 refused",
        "nothing is to be done",
    ] {
        assert!(text.lines().any(|said| said == line), "{line:?} in\n{text}");
    }
    assert_eq!(RouteList::of(&facts).to_string(), "cluster az2\n  10.244.0.0/16 by ts 169.254.100.77: used\n");
}

#[test]
fn how_long_clusters_are_joined_or_silent_and_prefixes_are_offered_is_told() {
    let mut facts = facts();
    zones(&mut facts)[0].since = Some(NOW - 90);
    zones(&mut facts)[1].since = Some(NOW - 864_000);
    zones(&mut facts)[1].silent_since = Some(NOW - 1_800);
    routes(&mut facts)[0].since = Some(NOW - 7_200);
    let (status, list) = (Status::of(&facts), RouteList::of(&facts));
    for line in ["cluster az1, this one, joined for 90 s", "cluster az2, joined for 10 d, silent for 30 min"] {
        assert!(status.to_string().lines().any(|said| said == line), "{line:?} in\n{status}");
    }
    assert_eq!(list.to_string(), "cluster az2\n  10.244.0.0/16 by ts 169.254.100.77, for 2 h: used\n");
}

/// Databases that are new begin with 0. Of a cluster without ovnkube that never answered, nothing is known.
#[test]
fn a_cluster_of_ovnkube_that_never_answered_is_silent() {
    let mut north = Cache::new(&ic_nb::DATABASE, ovnkube_plan::identity, |_| false);
    let schema = ServerSchema::parse(include_bytes!("../../ovn/schema/ovn-ic-nb.ovsschema")).unwrap();
    north.set_schema(Arc::new(schema));
    let row = Row::new(ic_nb_global::TABLE)
        .with(ic_nb_global::NB_IC_CFG, 1_i64)
        .with(ic_nb_global::EXTERNAL_IDS, [("ovnkube-questions", "1 1000")]);
    north.set(ic_nb_global::TABLE, Uuid::default(), Some(Arc::new(row)));
    let never =
        |cluster: Option<&str>| Zone { cluster: cluster.map(str::to_owned), answer: Some(0), ..Zone::default() };
    let mut zones = [never(Some("uid2")), never(None)];
    mark_silent(&mut zones, &north, NOW);
    assert_eq!(zones.map(|zone| zone.silent_since), [Some(1_000), None]);
}

/// Everything that can be wrong: what is changed, and how the only line begins that is not in order.
#[test]
fn each_fault_is_told_alone_with_what_to_do() {
    type Case = (fn(&mut Facts), &'static str);
    let cases: &[Case] = &[
        (|f| f.asked = Ok(config(&[("az-name", "a b")])), "wrong    ConfigMap: key az-name is \"a b\"; write at most"),
        (
            |f| f.asked = Ok(config(&[("gateway-mtu", "1400")])),
            "wrong    ConfigMap: no master has taken it up; the last one that was taken up is as az1; the log",
        ),
        (|f| nb(f).kept = None, "wrong    ConfigMap: no master has taken it up, nor an earlier one; the log"),
        (
            |f| f.settings.push("cluster-subnets of the cluster is A, and B here".into()),
            "wrong    settings: cluster-subnets",
        ),
        (|f| node(f).exists = false, "wrong    gateways: node n1 does not exist; correct the key gw-nodes"),
        (|f| node(f).ready = false, "wrong    gateways: node n1 is not Ready; kubectl describe"),
        (
            |f| node(f).labelled = false,
            "wrong    gateways: node n1 has no label ovn.kubernetes.io/ic-gw=true; a running master",
        ),
        (|f| node(f).chassis = None, "wrong    gateways: node n1 has no chassis id; start ovnkube's agent on n1"),
        (|f| node(f).interconn = Ok(None), "wrong    gateways: chassis c1 of node n1 is not in the southbound"),
        (|f| node(f).interconn = Ok(Some(false)), "wrong    gateways: chassis c1 of node n1 makes no tunnels"),
        (|f| node(f).interconn = Err("why".into()), "unknown  gateways: why"),
        (
            |f| f.servers[0].servers = vec![silent("a")],
            "wrong    OVN_IC_Northbound: no server answers: a (refused); start ovsdb-server of a",
        ),
        (|f| f.servers[1].servers.push(silent("b")), "wrong    OVN_IC_Southbound: works, but without b (refused)"),
        (
            |f| f.servers[0].servers = vec![server("a", Model::Clustered, false)],
            "wrong    OVN_IC_Northbound: no leader answers, so nothing can be written; name all servers in the key ic-db-host",
        ),
        (
            |f| f.servers[0].servers.push(server("b", Model::Standalone, true)),
            "wrong    OVN_IC_Northbound: the servers are not one Raft cluster",
        ),
        (
            |f| f.servers[0].servers.push(server("b", Model::Clustered, true)),
            "wrong    OVN_IC_Northbound: some servers are in a Raft cluster",
        ),
        (|f| f.southbound = Err("why".into()), "unknown  southbound database: why"),
        (|f| f.locked = Ok(false), "wrong    lock: nobody holds the lock ovn_ic"),
        (|f| f.locked = Err("why".into()), "unknown  lock: why"),
        (|f| drop(zones(f).remove(0)), "wrong    this cluster: az1 is not in the shared databases"),
        (
            |f| zones(f)[0].cluster = Some("uid9".into()),
            "wrong    this cluster: another cluster has az-name az1 too; give one",
        ),
        (|f| f.settled = Ok(false), "wrong    this cluster: its rows are not as they should be"),
        (|f| zones(f)[0].ports[0].gateway = None, "wrong    this cluster: no gateway has its port in ts; check"),
        (|f| f.problems.push("cannot use x; do y".into()), "wrong    shared databases: cannot use x; do y"),
        (|f| zones(f)[1].ports[0].gateway = None, "wrong    other clusters: az2 has no active gateway; start"),
        (
            |f| zones(f)[1].silent_since = Some(NOW - 7_200),
            "wrong    other clusters: az2 is silent: its controller has not answered for 2 h; its routes stay; if that",
        ),
        (|f| zones(f)[1].gateways.clear(), "wrong    other clusters: az2 has no active gateway; start"),
        (
            |f| routes(f).push(offered("10.128.0.0/14", Some("this cluster has pods in it; give other addresses"))),
            "wrong    prefixes: 10.128.0.0/14 of az2 is refused: this cluster has pods in it; give other addresses",
        ),
        (
            |f| routes(f)[0].ways[0].written = Some(false),
            "wrong    prefixes: the northbound database lacks 1 route to az2",
        ),
        (
            |f| zones(f)[1].ports.push(Port { name: "ts9-az2".into(), switch: "ts9".into(), ..Port::default() }),
            "wrong    leftovers: port ts9-az2 of az2 is in the transit switch ts9, which does not exist",
        ),
        (
            |f| nb(f).switches.extend([("ts8".into(), false)]),
            "wrong    leftovers: the northbound database has the transit switch ts8",
        ),
        (|f| nb(f).ports.extend([("old-ts".into(), (vec![], false))]), "wrong    leftovers: router port old-ts is"),
        (
            |f| nb(f).others.push(by_hand("10.17.0.0/24", "169.254.100.99")),
            "wrong    leftovers: the route to 10.17.0.0/24 by 169.254.100.99 leads to no port",
        ),
        (
            |f| f.declared.push(declared("10.17.0.0/16", Some("it waits for cluster az9; correct the name"))),
            "wrong    declared routes: 10.17.0.0/16 of az2 is not used: it waits for cluster az9; correct the name",
        ),
        (
            |f| {
                f.declared.push(declared("10.17.0.0/16", None));
                f.declared[0].ways[0].written = Some(false);
            },
            "wrong    declared routes: the northbound database lacks 1 route",
        ),
        (
            |f| f.asked = Ok(config(&[("routes", "ten")])),
            "wrong    ConfigMap: key routes has \"ten\"; write the az-name of a cluster",
        ),
        (|f| f.disabled = Err("why".into()), "unknown  Subnets: why"),
    ];
    for (change, line) in cases {
        let mut facts = facts();
        change(&mut facts);
        let all = checks(&facts).into_iter().filter(|check| check.verdict != Verdict::Ok);
        let all: Vec<String> = all.map(|check| check.to_string()).collect();
        assert!(matches!(&all[..], [one] if one.starts_with(line)), "{line}: {all:#?}");
        assert!(all[0].contains("; "), "no remedy: {all:?}");
        assert!(!Status::of(&facts).is_in_order(), "{line}");
    }
}

fn node(facts: &mut Facts) -> &mut GatewayNode {
    facts.gateways.as_mut().unwrap().first_mut().unwrap()
}

fn zones(facts: &mut Facts) -> &mut Vec<Zone> {
    facts.zones.as_mut().unwrap()
}

fn nb(facts: &mut Facts) -> &mut Northbound {
    facts.northbound.as_mut().unwrap()
}

fn routes(facts: &mut Facts) -> &mut Vec<Offered> {
    &mut facts.routes.as_mut().unwrap()[0].prefixes
}

fn by_hand(prefix: &str, next_hop: &str) -> ByHand {
    ByHand { prefix: prefix.parse().unwrap(), next_hop: next_hop.parse().unwrap() }
}

#[test]
fn a_route_by_hand_to_a_port_and_disabled_subnets_are_in_order() {
    let mut facts = facts();
    nb(&mut facts).others.push(by_hand("10.17.0.0/24", "169.254.100.77"));
    nb(&mut facts).others.push(by_hand("0.0.0.0/0", "172.18.0.1"));
    facts.disabled = Ok(vec![("secret".into(), "10.199.0.0/16".into())]);
    assert!(Status::of(&facts).is_in_order());
    assert!(checks(&facts).iter().any(|check| check.seen.contains("keeps back secret (10.199.0.0/16)")));
    let text = RouteList::of(&facts).to_string();
    assert!(text.contains("by hand\n  10.17.0.0/24 by 169.254.100.77\n") && !text.contains("172.18.0.1"), "{text}");
}

#[test]
fn declared_routes_are_listed() {
    let mut facts = facts();
    facts.declared = vec![declared("10.17.0.0/16", None)];
    let list = RouteList::of(&facts);
    assert!(
        list.is_in_order()
            && list.to_string().ends_with("\ndeclared\n  10.17.0.0/16 of az2 by ts 169.254.100.77: used\n")
    );
    facts.declared.push(declared("10.18.0.0/16", Some("it overlaps x; give other addresses")));
    facts.declared[1].ways.clear();
    let list = RouteList::of(&facts);
    let line = "  10.18.0.0/16 of az2: not used, it overlaps x; give other addresses\n";
    assert!(!list.is_in_order() && list.to_string().ends_with(line), "{list}");
    facts.asked = Ok(config(&[("enable-ic", "false")]));
    assert!(!RouteList::of(&facts).to_string().contains("declared"));
}

/// A cluster that gets another name has both for a while.
#[test]
fn an_earlier_name_is_no_other_cluster() {
    let mut facts = facts();
    let earlier = zone("az0", "uid1", "c1", "169.254.100.30/24");
    zones(&mut facts).push(Zone { gateways: Vec::new(), ..earlier });
    assert!(!Status::of(&facts).to_string().contains("cluster az0, this one\n"), "everyone can write its uid");
    facts.former.insert("az0".into());
    let text = Status::of(&facts).to_string();
    assert!(text.contains("cluster az0, this one\n") && text.contains("nothing is to be done"), "{text}");
    assert!(checks(&facts).iter().any(|check| check.seen == "1 with active gateways: az2"));
}

/// Nothing is wanted: then what is left of it is wrong.
#[test]
fn off_leaves_nothing() {
    for (config, is_known) in [(config(&[("enable-ic", "false")]), true), (None, false)] {
        let mut facts = Facts { asked: Ok(config), northbound: Ok(Northbound::default()), ..facts() };
        zones(&mut facts).remove(0);
        assert!(Status::of(&facts).is_in_order(), "{}", Status::of(&facts));
        facts.zones = Ok(vec![zone("az1", "uid1", "c1", "169.254.100.31/24")]);
        assert_eq!(Status::of(&facts).is_in_order(), !is_known, "{}", Status::of(&facts));
        facts.zones = Ok(Vec::new());
        nb(&mut facts).switches.insert("ts".into(), true);
        let text = Status::of(&facts).to_string();
        assert!(text.contains("wrong    leftovers: the northbound database: it has 1 transit switch"), "{text}");
    }
}

/// Without Kubernetes it is not known where the shared databases are; what the own ones have is told.
#[test]
fn what_is_not_known_is_said() {
    let mut facts = facts();
    let why = || "the API server is away".to_owned();
    facts.asked = Err(why());
    nb(&mut facts).kept = None;
    facts.servers.clear();
    (facts.gateways, facts.zones, facts.routes, facts.switches) = (Err(why()), Err(why()), Err(why()), Err(why()));
    let lines: Vec<String> = checks(&facts).iter().map(ToString::to_string).collect();
    assert!(lines[0].starts_with("unknown  ConfigMap: the API server is away; name a kubeconfig"), "{lines:#?}");
    assert!(lines[1].starts_with("ok       northbound database: it has 1 transit switch and 0 routes"), "{lines:#?}");
    assert_eq!(lines.len(), 2);
    let routes = RouteList::of(&facts);
    assert!(!routes.is_in_order() && routes.to_string().contains("ConfigMap: the API server is away"), "{routes}");
}

/// Which one is in effect is said, and why: with what the masters have kept, all else is known.
#[test]
fn without_a_config_map_that_can_be_used_the_one_that_was_kept_is_in_effect() {
    let told = |asked: Result<Asked, String>, kept: Option<Kept>| {
        let mut facts = Facts { asked, ..facts() };
        nb(&mut facts).kept = kept;
        let (status, routes) = (Status::of(&facts), RouteList::of(&facts));
        let config: Vec<String> =
            checks(&facts).iter().filter(|check| check.what == "ConfigMap").map(ToString::to_string).collect();
        let last = config.last().unwrap().clone();
        let is_said = facts.in_effect().source == Source::ConfigMap || routes.to_string().contains(&last);
        assert!(is_said, "{last}: {routes}");
        assert!(status.to_string().contains(last.split_once(": ").unwrap().1), "{last}: {status}");
        (facts.in_effect().source, facts.is_on(), facts.names().map(|names| names.zone.to_string()), last)
    };
    let bad = || Ok(config(&[("gw-nodes", "a_b"), ("az-name", "-")]));
    let (last, az1) = ("the last ConfigMap that a master could use", || Some("az1".to_owned()));
    let is = |source, is_on, names, said: &str| (source, is_on, names, format!("ok       ConfigMap: {said}"));
    assert_eq!(
        told(bad(), Some(kept(true))),
        is(
            Source::Kept,
            true,
            az1(),
            "keys az-name, gw-nodes cannot be used, so what they said last counts: this cluster is az1 and is joined; routes \
             are exchanged"
        )
    );
    assert_eq!(
        told(Ok(config(&[("enable-ic", "-")])), Some(kept(false))),
        is(
            Source::Kept,
            false,
            az1(),
            "key enable-ic cannot be used, so what it said last counts: this cluster was az1 and leaves"
        )
    );
    assert_eq!(
        told(bad(), None),
        is(
            Source::Nothing,
            false,
            None,
            "keys az-name, gw-nodes cannot be used, and no earlier one is kept: this cluster is joined with no others"
        )
    );
    let away = || Err("the API server is away".to_owned());
    assert_eq!(
        told(away(), Some(kept(true))),
        is(
            Source::Kept,
            true,
            az1(),
            &format!(
                "the ConfigMap cannot be read, so {last} is in effect: this cluster is az1 and is joined; routes are exchanged"
            )
        )
    );
    assert_eq!(told(away(), None).0, Source::Unknown);
    let gone = is(Source::ConfigMap, false, az1(), &format!("where it was joined is known from {last}, as az1"));
    assert_eq!(told(Ok(None), Some(kept(true))), gone);
    let elsewhere = || Ok(config(&[("enable-ic", "false"), ("az-name", "az9")]));
    assert_eq!(told(elsewhere(), Some(kept(false))), gone);
    assert_eq!(told(elsewhere(), None).2.as_deref(), Some("az9"));
    assert_eq!(told(Ok(None), None).2, None);
}

/// What is left of a cluster is told also when nobody can say any more where it was.
#[test]
fn leftovers_are_found_by_what_was_kept() {
    let mut facts = Facts { asked: Ok(None), northbound: Ok(Northbound::default()), ..facts() };
    nb(&mut facts).kept = Some(kept(false));
    let text = Status::of(&facts).to_string();
    assert!(text.contains("still have this cluster as az1: 1 gateway, 1 port, 1 route"), "{text}");
    // what has the mark under a name that is not known is nothing that reset removes
    facts.zones =
        Ok(vec![zone("az8", "uid1", "c1", "169.254.100.31/24"), zone("$(x)", "uid1", "c2", "169.254.100.32/24")]);
    let text = Status::of(&facts).to_string();
    for part in
        ["have az8 with the mark of this cluster", "remove it: ovnkube ic clean az az8", "remove its rows in IC-SB"]
    {
        assert!(text.contains(part) && !text.contains("az $"), "{text}");
    }
    facts.zones = Err("the database is away".into());
    assert!(Status::of(&facts).is_in_order());
}

/// Names in the shared databases are anybody's.
#[test]
fn control_characters_of_others_are_not_printed() {
    let mut facts = facts();
    zones(&mut facts)[1].gateways[0].hostname = "a\u{1b}[2Jb\nto do".into();
    zones(&mut facts)[1].name = "az\u{7}2".into();
    let text = Status::of(&facts).to_string();
    assert!(!text.contains(['\u{1b}', '\u{7}']) && !text.lines().any(|line| line == "to do"), "{text}");
    assert!(checks(&facts).iter().all(|check| !check.to_string().contains(char::is_control)));
}
