//! What each flag of the gateway does to packets and to the host, and that it is restored when someone removes it.
#![allow(clippy::unwrap_used)]

mod lab;

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use lab::{Lab, Pod, container, eventually, in_node, result, run};
use ovnkube_model::{EndpointSlice, GatewayMode, Meta, ObjectKey, PortFields, Service, ServiceFields, SliceFields};
use ovnkube_node::{Change, GatewaySettings};

fn ip(args: &str) -> String {
    run("ip", &args.split(' ').collect::<Vec<_>>())
}

fn nft(commands: &str) {
    run("nft", &[commands]);
}

/// A bridge with eth0 in it, and a host at its other end.
fn with_outside(lab: &mut Lab) -> Pod {
    lab.start_switch();
    let outside = lab.outside();
    lab.make_bridge();
    lab.start_ovn();
    lab.make_router();
    outside
}

fn start(lab: &mut Lab, settings: GatewaySettings) {
    lab.gateway = Some(settings);
    lab.start_agent();
    lab.ready();
}

/// Each change alone: nothing else wakes the agent.
#[test]
fn each_change_by_others_is_undone() {
    in_node(|lab| {
        with_outside(lab);
        start(lab, lab::gateway::settings("br-ex", GatewayMode::Local));
        let shown = |lab: &Lab| {
            let mut flows: Vec<String> = lab.ofctl("dump-flows", &["--no-stats"]).lines().map(str::to_owned).collect();
            flows.sort();
            let host = ["-4 rule", "-4 route show table all", "-4 neigh show nud permanent", "-4 addr show br-ex"];
            [run("nft", &["-s", "list", "ruleset"]), flows.join("\n"), host.map(ip).concat()]
        };
        // a table that is written again gets other handles
        let handles = || run("nft", &["-s", "-a", "list", "table", "inet", "ovn-kubernetes"]);
        eventually("nothing to be written", || {
            let before = handles();
            std::thread::sleep(Duration::from_secs(3));
            handles() == before
        });
        let right = shown(lab);
        let disturb: [&dyn Fn(&Lab); 8] = [
            &|_| nft("delete table inet ovn-kubernetes"),
            &|_| nft("flush chain inet ovn-kubernetes ovn-kube-pod-subnet-masq"),
            &|_| nft("add rule inet ovn-kubernetes mgmtport-snat counter accept"),
            &|_| drop(ip("rule del priority 30")),
            &|_| drop(ip("route del 10.96.0.0/16 table 7")),
            &|_| drop(ip("route del 10.96.0.0/16")),
            &|_| drop(ip("neigh del 169.254.169.4 dev br-ex")),
            &|lab| drop(lab.ofctl("del-flows", &["cookie=0xdeff105/-1"])),
        ];
        for (n, disturb) in disturb.into_iter().enumerate() {
            disturb(lab);
            eventually(&format!("the end of disturbance {n}"), || shown(lab) == right);
        }
    });
}

/// A pod whose packets go through the host, which has iptables rules that drop everything they do not know.
#[test]
fn pods_pass_a_host_that_drops_forwarded_packets() {
    in_node(|lab| {
        let outside = with_outside(lab);
        Lab::seal();
        nft("table ip filter { chain FORWARD { type filter hook forward priority 0; policy drop; counter; }; }");
        start(lab, lab::gateway::settings("br-ex", GatewayMode::Local));
        let pod = lab.pod("web", 5);
        lab.annotate(&pod);
        result(&lab.shim(&pod, &container("web"), "ADD"));
        pod.ip_cmd("route add 172.18.0.0/16 via 10.128.0.2");
        eventually("an answer from outside", || pod.pings("172.18.255.1"));
        // the outside has no route to pods: their packets have the node's address
        assert!(outside.ip_cmd("neigh").contains("172.18.0.2 "));
        let rules = || run("nft", &["-s", "-a", "list", "table", "ip", "filter"]);
        let before = rules();
        for end in ["iifname", "oifname"] {
            assert!(before.contains(&format!("{end} \"ovn-k8s-mp0\" counter accept")), "{before}");
        }
        // an agent that restarts keeps the rules
        lab.crash_agent();
        std::fs::remove_file(lab.conf()).unwrap();
        lab.start_agent();
        lab.ready();
        assert_eq!(rules(), before);
        nft("flush chain ip filter FORWARD");
        eventually("the rules", || rules().matches("ovn-k8s-mp0").count() == 2);
        eventually("an answer from outside", || pod.pings("172.18.255.1"));
        lab.stop_agent();
        lab.kill("controller");
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        assert!(!rules().contains("ovn-k8s-mp0"), "{}", rules());
    });
}

/// A network behind the node that is not the cluster's: its packets are forwarded, or not with -disable-forwarding.
#[test]
fn other_packets_are_forwarded_unless_disabled() {
    for disable_forwarding in [false, true] {
        in_node(move |lab| {
            let outside = with_outside(lab);
            let other = lab.behind("lan", "192.0.2.1/24", "192.0.2.2/24");
            other.ip_cmd("route add default via 192.0.2.1");
            outside.ip_cmd("route add 192.0.2.0/24 via 172.18.0.2");
            run("sysctl", &["-q", "net.ipv4.conf.lan.forwarding=1"]);
            let mode = GatewayMode::Shared;
            start(lab, GatewaySettings { disable_forwarding, ..lab::gateway::settings("br-ex", mode) });
            eventually("the host to be reached", || outside.pings("172.18.0.2") && other.pings("172.18.0.2"));
            if disable_forwarding {
                assert!(!other.pings("172.18.255.1") && !outside.pings("192.0.2.2"));
                // the counter shows that the agent's chain drops them
                let table = run("nft", &["list", "table", "inet", "ovn-kubernetes"]);
                assert!(table.contains("counter packets") && table.contains("drop"), "{table}");
                nft("flush chain inet ovn-kubernetes forward");
                eventually("the chain", || !other.pings("172.18.255.1"));
            } else {
                eventually("a forwarded packet", || other.pings("172.18.255.1") && outside.pings("192.0.2.2"));
            }
        });
    }
}

/// The network outside is tagged; the host sees no tags.
#[test]
fn a_vlan_outside() {
    in_node(|lab| {
        lab.start_ovs();
        lab.make_bridge();
        // the switch at the other end of the wire: tags on this port, none on the port to the outside
        let outside = lab.behind("far-end", "192.0.2.1/24", "172.18.255.1/16");
        lab.vsctl("add-br br-out -- set Bridge br-out datapath_type=netdev -- add-port br-out wire -- add-port br-out far-end tag=7");
        lab.vsctl("set Port br-ex tag=7");
        lab.start_ovn();
        lab.make_router();
        lab.nbctl("set Logical_Switch_Port br-ex_node-1 tag_request=7 tag=7");
        start(lab, GatewaySettings { vlan: Some(7), ..lab::gateway::settings("br-ex", GatewayMode::Shared) });
        assert!(lab.annotations()["k8s.ovn.org/l3-gateway-config"].contains(r#""vlan-id":"7""#));
        eventually("an answer of the host", || outside.pings("172.18.0.2"));
        let answers =
            || std::process::Command::new("ping").args(["-c1", "-W1", "-q", "172.18.255.1"]).output().unwrap();
        eventually("an answer to the host", || answers().status.success());
        // a client that sends an ARP request for the load balancer's address gets a reply, and reaches the endpoint on
        // the host; the switch passes no packet to conntrack before its checksum is computed
        run("ip", &["netns", "exec", &outside.netns, "ethtool", "-K", "eth0", "tx", "off"]);
        ip("addr add 172.18.0.50/32 dev br-ex");
        let _endpoint = TcpListener::bind("172.18.0.2:8080").unwrap();
        for change in service_on_host("172.18.0.50") {
            lab.send(change);
        }
        eventually("the service's flows", || lab.ofctl("dump-flows", &["table=7"]).contains("output"));
        eventually("an answer of the service", || {
            let at = "172.18.0.50:80".parse().unwrap();
            outside.enter(move || TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_ok()).join().unwrap()
        });
        // OVN's router uses the tag in its ARP request for its next hop, and gets an answer
        let asks = "lr-route-add GR_node-1 0.0.0.0/0 172.18.255.1 rtoe -- lrp-add GR_node-1 inside 0a:58:0a:09:00:01 10.9.0.1/24 \
                    -- ls-add inside -- lsp-add inside in-r -- lsp-set-type in-r router -- lsp-set-options in-r router-port=inside \
                    -- lsp-set-addresses in-r router -- lr-nat-add GR_node-1 snat 172.18.0.2 10.9.0.0/24 \
                    -- lsp-add inside default_far -- lsp-set-options default_far iface-id-ver=uid-far";
        lab.nbctl(&asks.split_whitespace().collect::<Vec<_>>().join(" "));
        lab.nbctl_args(&["lsp-set-addresses", "default_far", "0a:58:0a:80:00:09 10.9.0.9"]);
        let far = lab.bare_pod("far", 9);
        lab.annotate(&far);
        result(&lab.shim(&far, &container("far"), "ADD"));
        for args in ["addr flush dev eth0", "addr add 10.9.0.9/24 dev eth0", "route add default via 10.9.0.1"] {
            far.ip_cmd(args);
        }
        eventually("an answer to a pod", || far.pings("172.18.255.1"));
    });
}

/// Port 80 of a load balancer's address, with `externalTrafficPolicy: Local`.
fn service_on_host(address: &str) -> [Change; 2] {
    let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), "web".to_owned())]);
    let meta = Meta { uid: "u", created: 1, labels: &labels, annotations: &BTreeMap::new() };
    let service = ServiceFields {
        kind: Some("LoadBalancer"),
        cluster_ips: &["10.96.1.3".to_owned()],
        ingress: &[(address.to_owned(), None)],
        ports: &[PortFields { port: Some(80), ..PortFields::default() }],
        external_traffic_policy: Some("Local"),
        ..ServiceFields::default()
    };
    let endpoint = serde_json::json!({"addresses": ["172.18.0.2"], "nodeName": "node-1"});
    let slice = SliceFields {
        address_type: "IPv4",
        ports: &[PortFields { port: Some(8080), ..PortFields::default() }],
        endpoints: &[serde_json::from_value(endpoint).unwrap()],
    };
    [
        Change::Service(ObjectKey::new("a", "web"), Some(Box::new(Service::parse(&meta, &service)))),
        Change::EndpointSlice(ObjectKey::new("a", "web-x"), Some(Box::new(EndpointSlice::parse(&meta, slice)))),
    ]
}

#[test]
fn a_bridge_without_an_uplink() {
    in_node(|lab| {
        lab.start_ovs();
        lab.vsctl("add-br br-ex -- set Bridge br-ex datapath_type=netdev fail_mode=standalone");
        ip("link del eth0");
        lab.address_bridge();
        lab.start_ovn();
        lab.make_router();
        start(lab, GatewaySettings { allow_no_uplink: true, ..lab::gateway::settings("br-ex", GatewayMode::Local) });
        assert!(lab.annotations()["k8s.ovn.org/l3-gateway-config"].contains(r#""interface-id":"br-ex_node-1""#));
        let flows = lab.ofctl("dump-flows", &["--no-stats"]);
        assert!(flows.contains("cookie=0xdeff105") && !flows.contains("65279") && !flows.contains("ANY"), "{flows}");
        assert!(ip("addr show dev br-ex").contains("169.254.169.2/29"));
    });
}

#[test]
fn networks_of_the_host_that_the_cluster_has_too() {
    in_node(|lab| {
        lab.start_switch();
        lab.make_bridge();
        for (network, want) in [
            ("10.128.3.1/24", "network 10.128.3.1/24 of link lan overlaps cluster subnet 10.128.0.0/14"),
            ("10.0.0.1/8", "network 10.0.0.1/8 of link lan overlaps cluster subnet 10.128.0.0/14"),
            ("100.64.0.9/24", "network 100.64.0.9/24 of link lan overlaps join subnet 100.64.0.0/16"),
            ("169.254.169.3/29", "network 169.254.169.3/29 of link lan overlaps masquerade subnet 169.254.169.0/29"),
        ] {
            ip("link add lan type veth peer name lan-peer");
            ip(&format!("addr add {network} dev lan"));
            ip("link set lan up");
            lab.gateway = Some(lab::gateway::settings("br-ex", GatewayMode::Shared));
            let said = lab.refusal();
            assert!(said.contains(want) && said.contains("move one of them"), "{said}\nis not: {want}");
            ip("link del lan");
        }
        assert_eq!(lab.vsctl("list-br"), "br-ex");
    });
}
