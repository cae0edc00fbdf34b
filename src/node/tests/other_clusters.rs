//! Routes of the host to the prefixes of other clusters.
#![allow(clippy::unwrap_used)]

mod lab;

use lab::{Lab, eventually, in_node, run};
use ovnkube_node::{Change, OwnNode};

fn ip(args: &str) -> String {
    run("ip", &args.split(' ').collect::<Vec<_>>())
}

fn tell(lab: &Lab, prefixes: Option<&[&str]>) {
    let parse = |prefix: &&str| prefix.parse().unwrap();
    let other_clusters = prefixes.map(|prefixes| prefixes.iter().map(parse).collect());
    let reached = [("198.51.100.9".parse().unwrap(), "the API server".into())].into();
    lab.send(Change::Node(OwnNode { other_clusters, reached, ..lab.node() }));
}

/// The agent's own routes to other clusters, sorted.
fn ours() -> Vec<String> {
    let shown = ip("-4 route show proto 71") + &ip("-6 route show proto 71");
    let mut to: Vec<_> = shown.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    to.sort();
    to
}

#[test]
fn the_host_has_routes_to_other_clusters() {
    in_node(|lab| {
        lab.cluster_subnets.push("fd00:10::/48");
        lab.node_subnets.push("fd00:10::/64");
        lab.start_all();
        ip("link add tun0 type veth peer name far");
        ip("link set far up");
        ip("link set tun0 up");
        // with its last address a link loses its routes
        ip("addr add 100.70.0.1/32 dev tun0");
        for theirs in
            ["10.244.0.0/16 via 172.18.0.9", "192.0.2.0/24 dev tun0", "10.9.0.0/16 via 10.128.0.1 dev ovn-k8s-mp0"]
        {
            ip(&format!("route add {theirs}"));
        }
        let theirs = || {
            let shown = ip("-4 route");
            let mut lines: Vec<_> =
                shown.lines().filter(|line| !line.contains("proto 71")).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let before = theirs();
        tell(
            lab,
            Some(&[
                "10.244.0.0/16",
                "10.245.0.0/16",
                "fd00:244::/48",
                "172.16.0.0/12",
                "192.0.2.0/25",
                "198.51.100.0/24",
            ]),
        );
        let three = ["10.244.0.0/16", "10.245.0.0/16", "fd00:244::/48"];
        eventually("routes", || ours() == three);
        assert!(ip("route get 10.245.0.1").contains("via 10.128.0.1 dev ovn-k8s-mp0 src 10.128.0.2"));
        assert!(ip("route get fd00:244::1").contains("via fd00:10::1 dev ovn-k8s-mp0"));
        // the route that somebody else set is preferred
        assert!(ip("route get 10.244.0.1").contains("via 172.18.0.9"));
        let warnings: Vec<_> =
            lab.warnings().into_iter().map(|warning| format!("{}: {}", warning.reason, warning.message)).collect();
        assert_eq!(
            warnings,
            [
                "HostRouteRefused: this host has no route to prefixes of other clusters: 172.16.0.0/12: it overlaps 172.18.0.0/16, a network \
              of eth0; 192.0.2.0/25: it overlaps 192.0.2.0/24, a network of tun0; 198.51.100.0/24: it contains 198.51.100.9 (the API \
              server); give the host or the other cluster other addresses"
            ]
        );
        // somebody removes one, and the host gets an address in a prefix
        ip("route del 10.245.0.0/16 proto 71");
        eventually("it is set again", || ours() == three);
        ip("addr add 10.245.7.7/24 dev tun0");
        eventually("the address has its network", || ours() == ["10.244.0.0/16", "fd00:244::/48"]);
        ip("addr del 10.245.7.7/24 dev tun0");
        eventually("it comes back", || ours() == three);

        // until an agent knows what other clusters there are, nothing changes
        lab.crash_agent();
        lab.start_agent();
        tell(lab, None);
        eventually("annotations", || lab.annotations().contains_key("k8s.ovn.org/node-chassis-id"));
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert_eq!(ours(), three);
        tell(lab, Some(&["10.245.0.0/16"]));
        eventually("one is left", || ours() == ["10.245.0.0/16"]);
        tell(lab, Some(&[]));
        eventually("none is left", || ours().is_empty());
        assert_eq!(theirs(), before);
        assert_eq!(lab.warnings(), []);

        tell(lab, Some(&["10.245.0.0/16"]));
        eventually("routes", || ours() == ["10.245.0.0/16"]);
        lab.stop_agent();
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        assert_eq!(ours(), Vec::<String>::new());
        assert!(ip("route").contains("10.244.0.0/16 via 172.18.0.9"));
    });
}
