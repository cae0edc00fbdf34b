//! More rows than a cluster has use for.

use ovnkube_ovn::nb::{logical_router_static_route as static_route, logical_switch_port as lsp};
use ovnkube_ovn::owner;

use super::*;
use crate::switches::{Reader, read};

#[test]
fn a_gateway_has_few_addresses() {
    let of = |count: usize| (0..count).map(|n| format!("172.20.0.{n}")).collect::<Vec<_>>();
    for (count, is_used) in [(8, true), (9, false), (200, false)] {
        let mut rig = Rig::new();
        let ips = of(count);
        let tunnels: Vec<_> = ips.iter().map(|ip| ("geneve", ip.as_str())).collect();
        rig.gateway("az2", "gw2", &tunnels, None);
        let problems = rig.problems();
        assert_eq!(
            (problems.is_empty(), rig.written().len()),
            (is_used, usize::from(is_used)),
            "{count}: {problems:?}"
        );
        if !is_used {
            let why =
                format!("\"gw2\" of cluster az2: it has {count} tunnel addresses, and a gateway may have at most 8");
            says(&problems, &[&why]);
        }
    }
}

/// A cluster that offers too much loses some of it, the same every time, and the others lose nothing.
#[test]
fn each_cluster_has_its_share() {
    let mut rig = Rig::new();
    rig.cluster("az1a", "gw1a", "172.20.0.2", (3, "169.254.100.10/24"));
    for n in 0..17_000 {
        rig.route("az1a", &format!("10.{}.{}.0/24", n / 256, n % 256), "169.254.100.10");
    }
    for n in 0..1_100 {
        rig.gateway("az1a", &format!("more{n}"), &[("geneve", &format!("172.21.{}.{}", n / 256, n % 256))], None);
    }
    for n in 0..5 {
        rig.route("az2", &format!("11.0.{n}.0/24"), "169.254.100.9");
        rig.gateway("az2", &format!("gw2{n}"), &[("geneve", &format!("172.19.1.{n}"))], None);
    }
    let Step { peers, .. } = rig.step();
    let of = |zone: &str| peers.waiting.iter().filter(|route| *route.zone == *zone).count();
    assert_eq!((of("az2"), of("az1a")), (5, 16_379));
    assert_eq!((peers.clusters["az2"].gateways, peers.clusters["az1a"].gateways), (6, 1_018));
    says(&peers.problems, &["cluster az1a offers 17000 routes, of which 16379 are used"]);
    says(&peers.problems, &["cluster az1a offers 1101 gateways, of which 1018 are used"]);
    assert_eq!(peers.problems.len(), 2, "{:?}", peers.problems);
}

/// Names of clusters cost nothing: however many somebody invents, a cluster keeps what is in use of it.
#[test]
fn invented_clusters_take_nothing_that_is_in_use() {
    let mut rig = Rig::new();
    rig.switch("ts", "11.0.0.0/16", &[("az1", "11.0.255.5"), ("az2", "11.0.255.9")], 16_711_681);
    for (port, gateway, n) in [("ts-az2", "gw2", 9), ("ts-az2b", "gw2b", 10), ("ts-az2c", "gw2c", 11)] {
        let tunnel = format!("172.19.0.{n}");
        rig.port("az2", "ts", port, (2_000 + n, &format!("11.0.255.{n}/16")), "gw2");
        rig.gateway("az2", gateway, &[("geneve", &tunnel)], None);
        add(&mut rig.nb, port, Row::new(lsp::TABLE).with(lsp::NAME, port).with(lsp::TYPE, "remote"));
        let there = rig.chassis(gateway, &tunnel, &[("is-remote", "true")]);
        let row = rig.sb.get(chassis::TABLE, there).unwrap().as_ref().clone();
        add(&mut rig.sb, gateway, row.with(chassis::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION)));
    }
    for n in 0..100 {
        let prefix = format!("20.0.{n}.0/24");
        rig.route("az2", &prefix, "11.0.255.9");
        let row = Row::new(static_route::TABLE)
            .with(static_route::IP_PREFIX, prefix.as_str())
            .with(static_route::NEXTHOP, "11.0.255.9")
            .with(static_route::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION));
        add(&mut rig.nb, &prefix, row);
    }
    for n in 0..600 {
        let zone = format!("new{n}");
        rig.zone(&zone);
        let ip = |half: i64| format!("{}.{}", n / 100, n % 100 * 2 + half);
        for half in [1, 2] {
            let name = format!("new{n}-{half}");
            rig.port(&zone, "ts", &format!("ts-{name}"), (2 * n + half, &format!("11.0.{}/16", ip(half))), "");
            rig.gateway(&zone, &name, &[("geneve", &format!("172.21.{}", ip(half)))], None);
        }
        for m in 0..30 {
            rig.route(&zone, &format!("12.{}.{}.{m}/32", n / 250, n % 250), &format!("11.0.{}", ip(1)));
        }
    }
    let peers = rig.step().peers;
    let routes = || peers.routes.iter().chain(&peers.waiting);
    let is_az2 = |port: &&ovnkube_model::Name| port.starts_with("ts-az2");
    assert_eq!(peers.switches["ts"].remote.keys().filter(is_az2).count(), 3);
    assert_eq!(peers.clusters["az2"].gateways, 3);
    assert_eq!(routes().filter(|route| *route.zone == *"az2").count(), 100);
    // each of the others has the same share
    let gateways = peers.clusters.values().map(|cluster| cluster.gateways).sum::<usize>();
    assert_eq!((peers.switches["ts"].remote.len(), gateways, routes().count()), (603, 603, 16_300));
}

#[test]
fn the_first_problems_are_told_and_the_others_counted() {
    let mut rig = Rig::new();
    for n in 0..300 {
        rig.switch(&format!("bad_{n}"), "169.254.7.0/24", &[], 16_711_700 + n);
        rig.gateway("az2", &format!("-{n}"), &[("geneve", "172.20.0.9")], None);
    }
    // what is wrong here is not lost among them
    rig.gateway("az2", "c1", &[("geneve", "172.20.0.9")], Some("uid2"));
    let problems = rig.problems();
    assert_eq!(problems.len(), 21);
    says(&problems, &["cannot offer gateway c1"]);
    says(&problems, &["the shared databases hold 582 more things that cannot be used"]);
}

/// Switches are compared, each with all that are used: not thousands.
#[test]
fn of_many_switches_few_are_compared() {
    for (subnet, used, more) in [(None, 64, None), (Some("169.254.100.0/24"), 1, Some(108))] {
        let mut rig = Rig::new();
        for n in 0..1_000 {
            let own = format!("11.{}.{}.0/29", n / 256, n % 256);
            rig.switch(&format!("ts{n}"), subnet.unwrap_or(&own), &[], 16_711_700 + n);
        }
        let Step { peers, claims, .. } = rig.step();
        let problems = &peers.problems;
        says(problems, &["there are 1001 transit switches; at most 64 are used, those that are there the longest"]);
        assert!(peers.switches.contains_key("ts"));
        // this cluster has an address in `ts`; it waits for each other one, and writes it
        assert_eq!(claims.len(), 2 * (used - 1));
        let last = more.map(|more| format!("the shared databases hold {more} more things"));
        assert!(last.is_none_or(|last| problems.iter().any(|problem| problem.contains(&last))), "{problems:#?}");
    }
}

/// Claims of addresses are texts: however many and however long they are, few are read, and this cluster's own is.
#[test]
fn of_many_claims_few_are_read() {
    let ip = |n: usize| format!("11.1.{}.{}", n / 250, n % 250);
    let long = (0..10_000).map(ip).collect::<Vec<_>>().join(" ");
    let others: Vec<_> = (0..2_000).map(|n| (format!("a{n}"), ip(20_000 + n))).collect();
    let others = others.iter().map(|(zone, ip)| (zone.as_str(), ip.as_str()));
    let claims: Vec<_> = others.chain([("a", long.as_str()), ("az1", "11.0.0.5")]).collect();
    let mut rig = Rig::new();
    rig.switch("ts", "11.0.0.0/8", &claims, 16_711_681);
    let former = BTreeSet::new();
    let reader =
        Reader { databases: rig.databases(), nb: Some(&rig.nb), offer: &rig.offer, zone: "az1", former: &former };
    let mut problems = Vec::new();
    let switches = read(reader, &mut problems);
    assert_eq!((switches.len(), problems), (1, Vec::<String>::new()));
    assert_eq!(switches[0].claimed.len(), 4 + 1023);
    let own = switches[0].own.as_ref().map(|own| own.addresses[0].to_string());
    assert_eq!(own.as_deref(), Some("11.0.0.5/8"));
}

/// Of too many, those that are in use stay, whatever names new ones have.
#[test]
fn new_ones_take_no_place_of_those_in_use() {
    let mut rig = Rig::new();
    rig.switch("the-old-one", "169.254.99.0/24", &[("az1", "169.254.99.5")], 16_711_682);
    for n in 0..200 {
        rig.switch(&format!("t{n}"), &format!("11.0.{n}.0/29"), &[], 16_711_700 + n);
    }
    let switches = rig.step().peers.switches;
    assert!(switches.contains_key("ts") && switches.contains_key("the-old-one"));

    let mut rig = Rig::new();
    add(&mut rig.nb, "ts-az2", Row::new(lsp::TABLE).with(lsp::NAME, "ts-az2").with(lsp::TYPE, "remote"));
    for n in 0..1_100 {
        let zone = format!("a{n:04}");
        rig.zone(&zone);
        // in a switch that nobody has, any key is free
        rig.port(&zone, &zone, &format!("{zone}-{zone}"), (1, "11.0.0.1/24"), "");
    }
    let peers = rig.step().peers;
    assert!(peers.problems[0].contains("there are 1101 clusters; the 1024 that joined first are used"));
    assert!(peers.clusters.contains_key("az2") && peers.clusters.len() == 1024);
}
