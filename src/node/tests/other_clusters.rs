//! Routes of the host to the prefixes of other clusters.
#![allow(clippy::unwrap_used)]

mod lab;

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use lab::{Lab, eventually, in_node, run};
use ovnkube_model::{Connections, HostRoutes};
use ovnkube_node::{Change, OwnNode};

fn ip(args: &str) -> String {
    run("ip", &args.split(' ').collect::<Vec<_>>())
}

fn told(prefixes: &[&str]) -> HostRoutes {
    let prefixes = prefixes.iter().map(|prefix| (prefix.parse().unwrap(), "az2".into())).collect();
    HostRoutes { prefixes, servers: ["203.0.113.5".parse().unwrap()].into() }
}

fn tell(lab: &Lab, prefixes: &[&str]) {
    lab.send(Change::OtherClusters(told(prefixes)));
}

/// What the host depends on elsewhere.
fn depend_on(lab: &Lab, ip: &str) {
    let owners = [(ip.parse().unwrap(), "the API server".into())].into();
    lab.send(Change::Connections(Connections { owners, ..Connections::default() }));
}

/// The agent's own routes to other clusters, sorted.
fn ours() -> Vec<String> {
    let shown = ["-4", "-6"].map(|family| ip(&format!("{family} route show table all")));
    let lines = shown.iter().flat_map(|shown| shown.lines());
    let mut to: Vec<_> = lines
        .filter(|line| line.contains(" dev ovn-k8s-mp0 table 71"))
        .filter_map(|line| Some(line.split(' ').next()?.to_owned()))
        .collect();
    to.sort();
    to
}

fn rules() -> Vec<String> {
    let shown = ["-4", "-6"].map(|family| ip(&format!("{family} rule")));
    let lines = shown.iter().flat_map(|shown| shown.lines()).filter(|line| line.starts_with("3276"));
    lines.filter(|line| !line.starts_with("32766:") && !line.starts_with("32767:")).map(str::to_owned).collect()
}

/// Of other programs.
const THEIRS: [&str; 4] = [
    "10.244.0.0/16 via 172.18.0.9",
    "10.9.0.0/16 via 10.128.0.1 dev ovn-k8s-mp0",
    "10.246.7.0/24 via 172.18.0.9",
    "default via 172.18.0.9",
];

fn goes_by(to: &str, link: &str) -> bool {
    ip(&format!("route get {to}")).contains(&format!("dev {link} "))
}

#[test]
fn the_host_has_routes_to_other_clusters() {
    in_node(|lab| {
        lab.cluster_subnets.push("fd00:10::/48");
        lab.node_subnets.push("fd00:10::/64");
        lab.start_all();
        for theirs in THEIRS {
            ip(&format!("route add {theirs}"));
        }
        let theirs = || ip("-4 route");
        let before = theirs();
        assert_eq!(rules(), Vec::<String>::new(), "nothing is set up without the option");
        lab.vsctl(
            "add-port br-int tun0 -- set Interface tun0 type=geneve options:remote_ip=198.51.100.9 options:key=flow",
        );
        depend_on(lab, "192.0.2.9");
        let prefixes = [
            "10.244.0.0/16",
            "10.245.0.0/16",
            "10.246.0.0/16",
            "fd00:244::/48",
            "172.16.0.0/12",
            "192.0.2.0/24",
            "198.51.100.0/24",
            "203.0.113.0/24",
        ];
        tell(lab, &prefixes);
        let four = ["10.244.0.0/16", "10.245.0.0/16", "10.246.0.0/16", "fd00:244::/48"];
        eventually("routes", || ours() == four);
        eventually("rules", || rules().len() == 4);
        assert!(ip("route get 10.245.0.1").contains("via 10.128.0.1 dev ovn-k8s-mp0 table 71 src 10.128.0.2"));
        assert!(ip("route get fd00:244::1").contains("via fd00:10::1 dev ovn-k8s-mp0 table 71"));
        // routes of others win, but for the default route
        assert!(goes_by("10.244.0.1", "eth0") && goes_by("10.246.7.1", "eth0") && goes_by("10.246.8.1", "ovn-k8s-mp0"));
        // no packet of somebody else goes that way
        assert!(ip("route get 10.245.0.1 from 10.128.0.9 iif ovn-k8s-mp0").contains("via 172.18.0.9 dev eth0"));
        let says = |lab: &mut Lab| lab.warnings().into_iter().map(|warning| warning.message).collect::<Vec<_>>();
        let [warning] = &says(lab)[..] else { panic!("one warning") };
        for refused in [
            "172.16.0.0/12: it overlaps 172.18.0.2/16, a network of eth0",
            "192.0.2.0/24: it contains 192.0.2.9 (the API server)",
            "198.51.100.0/24: it contains 198.51.100.9 (the other end of a tunnel)",
            "203.0.113.0/24: it contains 203.0.113.5 (a server of the shared databases)",
        ] {
            assert!(warning.contains(refused), "{warning}");
        }

        // somebody removes a route and a rule, and the host gets an address in a prefix
        ip("route del 10.245.0.0/16 table 71");
        ip("rule del priority 32764");
        eventually("they are set again", || ours() == four && rules().len() == 4);
        ip("addr add 10.245.7.7/24 dev eth0");
        eventually("the address has its network", || !ours().contains(&"10.245.0.0/16".to_owned()));
        ip("addr del 10.245.7.7/24 dev eth0");
        eventually("it comes back", || ours() == four);

        // without an API server, an agent keeps the routes, and still takes away what the host needs
        lab.crash_agent();
        ip("addr add 10.245.7.7/24 dev eth0");
        lab.start_agent();
        eventually("it is taken away", || ours() == ["10.244.0.0/16", "10.246.0.0/16", "fd00:244::/48"]);
        ip("addr del 10.245.7.7/24 dev eth0");
        std::thread::sleep(Duration::from_millis(1500));
        assert_eq!(ours(), ["10.244.0.0/16", "10.246.0.0/16", "fd00:244::/48"], "what it is told is not known");
        lab.ready();
        depend_on(lab, "192.0.2.9");
        tell(lab, &prefixes);
        eventually("routes", || ours() == four);

        // a start changes nothing
        let log = lab.dir.join("monitor");
        let file = std::fs::File::create(&log).unwrap();
        let mut monitor = Command::new("ip").args(["monitor", "route", "rule"]).stdout(file).spawn().unwrap();
        lab.crash_agent();
        lab.start_agent();
        lab.ready();
        depend_on(lab, "192.0.2.9");
        tell(lab, &prefixes);
        std::thread::sleep(Duration::from_secs(4));
        monitor.kill().unwrap();
        monitor.wait().unwrap();
        let changes = std::fs::read_to_string(&log).unwrap();
        assert!(!changes.contains("table 71") && !changes.contains("lookup 71"), "{changes}");

        // the option ends, at a start too
        lab.stop_agent();
        lab.start_agent();
        lab.ready();
        tell(lab, &[]);
        eventually("none is left", || ours().is_empty() && rules().is_empty());
        assert_eq!(theirs(), before);

        tell(lab, &["10.245.0.0/16"]);
        eventually("routes", || ours() == ["10.245.0.0/16"] && rules().len() == 2);
        lab.stop_agent();
        lab.kill("controller");
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        assert_eq!((ours(), rules()), (Vec::new(), Vec::new()));
    });
}

/// A connection by another way holds its prefix, also after it has ended: its program may connect again.
#[test]
fn a_working_way_is_not_taken_away() {
    in_node(|lab| {
        lab.start_all();
        let outside = lab.outside();
        outside.ip_cmd("addr add 10.245.0.9/32 dev lo");
        ip("route add default via 172.18.255.1");
        let listener = outside.enter(|| TcpListener::bind("10.245.0.9:6443").unwrap()).join().unwrap();
        lab::Lab::unseal();
        let stream = TcpStream::connect("10.245.0.9:6443").unwrap();
        let accepted = listener.accept().unwrap();
        tell(lab, &["10.245.0.0/16", "10.246.0.0/16"]);
        eventually("the other route", || ours() == ["10.246.0.0/16"]);
        drop((stream, accepted, listener));
        let again: OwnNode = OwnNode { mtu: Some(1300), ..lab.node() };
        lab.send(Change::Node(again));
        std::thread::sleep(Duration::from_secs(12));
        assert_eq!(ours(), ["10.246.0.0/16"]);
        assert!(goes_by("10.245.0.9", "eth0"));
    });
}

/// `ovnkube plan --node` has the steps of routes that are to come or to go, and no others.
#[test]
fn a_plan_has_the_routes() {
    in_node(|lab| {
        let of_routes = |lab: &Lab, prefixes: &[&str]| -> Vec<String> {
            let plan = lab.plan_of(Some(told(prefixes)));
            plan.into_iter().filter(|line| line.ends_with("table 71") || line.contains(" rule ")).collect()
        };
        lab.start_ovs();
        lab.start_ovn();
        // the second one contains an address of the host
        let prefixes = ["10.244.0.0/16", "172.16.0.0/12", "203.0.113.0/24"];
        let to_come = [
            "add rule 32764: iif lo lookup main suppress_prefixlength 0 for IPv4",
            "add rule 32765: iif lo lookup 71 for IPv4",
            "ovn-k8s-mp0: add route 10.244.0.0/16 via 10.128.0.1 table 71",
        ];
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        assert_eq!(sorted(of_routes(lab, &prefixes)), to_come, "before the first start");
        assert_eq!(of_routes(lab, &[]), Vec::<String>::new());
        assert_eq!((ours(), rules()), (Vec::new(), Vec::new()), "a plan changes nothing");
        lab.start_agent();
        lab.ready();
        tell(lab, &prefixes);
        // rules are set after the route
        eventually("the route and its rules", || ours() == ["10.244.0.0/16"] && rules().len() == 2);
        assert_eq!(of_routes(lab, &prefixes), Vec::<String>::new());
        lab.stop_agent();
        ip("rule del priority 32765");
        assert_eq!(of_routes(lab, &prefixes), [to_come[1]]);
        let to_go = of_routes(lab, &[]);
        assert!(
            to_go.contains(&"ovn-k8s-mp0: remove route 10.244.0.0/16 via 10.128.0.1 table 71".to_owned()),
            "{to_go:#?}"
        );
        // what other clusters have is not known
        let plan = lab.plan_of(None);
        assert!(!plan.iter().any(|line| line.ends_with("table 71")), "{plan:#?}");
    });
}

/// A pod of another cluster, behind a router of OVN.
fn far_pod(lab: &mut Lab) {
    lab.nbctl(
        "lrp-add r rtof 0a:58:0a:f5:00:01 10.245.0.1/24 -- ls-add far -- lsp-add far stof -- lsp-set-type stof router \
         -- lsp-set-options stof router-port=rtof -- lsp-set-addresses stof router -- lsp-add far far-pod",
    );
    lab.nbctl_args(&["lsp-set-addresses", "far-pod", "0a:58:0a:f5:00:09 10.245.0.9"]);
    let far = lab.bare_pod("far", 0);
    ip(&format!("link add far0 type veth peer name eth0 netns {}", far.netns));
    ip("link set far0 up");
    for args in ["link set eth0 address 0a:58:0a:f5:00:09 up", "addr add 10.245.0.9/24 dev eth0"] {
        far.ip_cmd(args);
    }
    far.ip_cmd("route add default via 10.245.0.1");
    lab.vsctl("add-port br-int far0 -- set Interface far0 external_ids:iface-id=far-pod");
}

fn host_pings(to: &str) -> bool {
    let args = ["-c", "1", "-W", "1", "-q", to];
    Command::new("ping").args(args).stdout(Stdio::null()).status().unwrap().success()
}

/// The host reaches a pod. Then no cluster has the prefix any more, and the host has the route still: OVN sends packets for it back to
/// the host.
#[test]
fn packets_arrive_and_do_not_go_in_circles() {
    in_node(|lab| {
        lab.start_all();
        lab.nbctl(
            "lr-add r -- lrp-add r rtos 0a:58:0a:80:00:01 10.128.0.1/24 -- lsp-add node-1 stor -- lsp-set-type stor router \
             -- lsp-set-options stor router-port=rtos -- lsp-set-addresses stor router -- lr-route-add r 0.0.0.0/0 10.128.0.2",
        );
        ip("route add default via 172.18.255.1");
        ip("neigh replace 172.18.255.1 lladdr 02:00:00:00:00:01 dev eth0");
        run("sysctl", &["-qw", "net.ipv4.ip_forward=1"]);
        tell(lab, &["10.245.0.0/16"]);
        eventually("routes", || ours() == ["10.245.0.0/16"] && rules().len() == 2);
        far_pod(lab);
        eventually("the host reaches a pod of another cluster", || host_pings("10.245.0.9"));
        lab.nbctl("lrp-del rtof -- ls-del far");
        eventually("nobody answers", || !host_pings("10.245.0.1"));
        let pod = lab.pod("web", 3);
        lab.annotate(&pod);
        assert!(lab.shim(&pod, &"c".repeat(64), "ADD").status.success());
        eventually("the router", || pod.pings("10.128.0.1"));
        let sent = || {
            let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
            let line = text.lines().find_map(|line| line.trim().strip_prefix("ovn-k8s-mp0:")).unwrap();
            line.split_whitespace().nth(9).unwrap().parse::<u64>().unwrap()
        };
        let packets = |from: &str| {
            let before = sent();
            if from == "pod" {
                assert!(!pod.pings("10.245.0.1"));
            } else {
                assert!(!host_pings("10.245.0.1"));
            }
            sent() - before
        };
        for from in ["pod", "host"] {
            let packets = packets(from);
            assert!(packets < 10, "{packets} packets of the {from}");
        }
        // a route that forwarded packets see would lead them there
        ip("route add 10.245.0.0/16 via 10.128.0.1 dev ovn-k8s-mp0");
        assert!(packets("pod") > 10);
    });
}
