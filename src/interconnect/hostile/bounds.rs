//! More rows than a cluster has use for.

use super::*;

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
    for n in 0..1_100 {
        rig.zone(&format!("a{n:04}"));
    }
    let peers = rig.step().peers;
    assert!(peers.problems[0].contains("there are 1101 clusters; the 1024 that joined first are used"));
    assert!(peers.clusters.contains_key("az2") && peers.clusters.len() == 1024);
}
