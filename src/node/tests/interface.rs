//! A sandbox has one interface, and keeps it and its MAC address until it is deleted.
#![allow(clippy::unwrap_used)]

mod lab;

use std::time::Duration;

use lab::{Lab, Pod, container, datapath, error, eventually, in_node, result, run};
use ovnkube_node::{Change, MtuSettings};
use serde_json::{Value, json};

const LINK: &str = "0123456789abcde";

/// A pod that is wired as eth0: its sandbox, and the result of ADD.
fn wired(lab: &mut Lab) -> (Pod, String, Value) {
    lab.start_all();
    let pod = lab.pod("web", 3);
    lab.annotate(&pod);
    let id = container("0123456789abcdef");
    let first = result(&lab.shim(&pod, &id, "ADD"));
    // the kernel reports the state with a delay
    eventually("the link to be up", || pod.ip_cmd("link show eth0").contains("state UP"));
    (pod, id, first)
}

/// What differs between a pair with its port and any pair that is made later.
fn state(lab: &Lab, pod: &Pod) -> [String; 5] {
    [
        run("ip", &["-d", "link", "show", LINK]),
        pod.ip_cmd("-d link"),
        pod.ip_cmd("addr show dev eth0"),
        pod.ip_cmd("route"),
        lab.vsctl(&format!("--columns=_uuid,name,external_ids find Interface name={LINK}")),
    ]
}

/// The interface belongs to the sandbox and works.
fn is_right(lab: &Lab, pod: &Pod, id: &str) {
    result(&lab.shim(pod, id, "CHECK"));
    assert!(pod.ip_cmd("link show eth0").contains(&pod.mac()));
    eventually("the pod to reach its node", || pod.pings("10.128.0.2"));
    run("ping", &["-c", "1", "-W", "30", "-q", &pod.ip()]);
}

#[test]
fn a_pair_that_is_made_again_works() {
    in_node(|lab| {
        let (pod, id, first) = wired(lab);
        is_right(lab, &pod, &id);
        for damage in [
            &["link set eth0 address 02:00:00:00:00:99"][..],
            &["link set eth0 down", "link set eth0 name other"],
            &["link del eth0"],
        ] {
            for args in damage {
                pod.ip_cmd(args);
            }
            assert_eq!(result(&lab.shim(&pod, &id, "ADD")), first, "after {damage:?}");
            is_right(lab, &pod, &id);
        }
        // another program's link has its name and its address, and the pod's link has another name
        pod.ip_cmd("link set eth0 down");
        pod.ip_cmd("link set eth0 name other");
        pod.ip_cmd("link add name eth0 type veth peer name end");
        pod.ip_cmd(&format!("link set eth0 address {}", pod.mac()));
        error(&lab.shim(&pod, &id, "ADD"));
        pod.ip_cmd("link del eth0");
        assert_eq!(result(&lab.shim(&pod, &id, "ADD")), first);
        is_right(lab, &pod, &id);
        // the runtime passes another namespace
        let other = lab.pod("other", 9);
        let moved = Pod { netns: other.netns, ..pod.clone() };
        let mut want = first.clone();
        want["interfaces"][1]["sandbox"] = moved.path().into();
        assert_eq!(result(&lab.shim(&moved, &id, "ADD")), want);
        assert!(!pod.ip_cmd("link").contains("eth0"));
        is_right(lab, &moved, &id);
        // if nothing is wrong, nothing is made again
        let before = state(lab, &moved);
        result(&lab.shim(&moved, &id, "ADD"));
        assert_eq!(state(lab, &moved), before);
    });
}

/// The pod is annotated before the agent has read the database, which has the type of the datapath.
#[test]
fn add_waits_for_the_database() {
    in_node(|lab| {
        lab.start_all();
        lab.crash_agent();
        let (socket, away) = (lab.path("db.sock"), lab.path("away.sock"));
        std::fs::rename(&socket, &away).unwrap();
        lab.start_agent();
        lab.send(Change::Node(lab.node()));
        let (pod, id) = (lab.pod("web", 3), container("0123456789abcdef"));
        lab.annotate(&pod);
        std::thread::scope(|scope| {
            let add = scope.spawn(|| lab.shim(&pod, &id, "ADD"));
            std::thread::sleep(Duration::from_secs(2));
            let early = run("ip", &["link"]).contains(LINK);
            std::fs::rename(&away, &socket).unwrap();
            result(&add.join().unwrap());
            assert!(!early, "a pair for a datapath of unknown type");
        });
        let features = run("ip", &["netns", "exec", &pod.netns, "ethtool", "-k", "eth0"]);
        assert_eq!(features.contains("tx-checksumming: off"), datapath() == "netdev", "{features}");
        is_right(lab, &pod, &id);
    });
}

fn another_name_changes_nothing(lab: &Lab, pod: &Pod, id: &str) {
    let before = state(lab, pod);
    let (code, text) = error(&lab.shim_of(pod, id, "ADD", "net1"));
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("cannot add interface net1: the sandbox already has eth0"), "{text}");
    result(&lab.shim_of(pod, id, "DEL", "net1"));
    let (code, text) = error(&lab.shim_of(pod, id, "CHECK", "net1"));
    assert_eq!(code, 4, "{text}");
    // the sandbox exists, whatever the list calls its interface
    let conf = json!({"cniVersion": "1.1.0", "name": "ovn-kubernetes", "type": "x", "cni.dev/valid-attachments": [{"containerID": id, "ifname": "net1"}]});
    result(&lab.shim_env(&[("CNI_COMMAND", "GC")], conf.to_string().as_bytes()));
    assert_eq!(state(lab, pod), before);
    is_right(lab, pod, id);
}

#[test]
fn another_interface_of_a_sandbox_is_refused() {
    in_node(|lab| {
        let (pod, id, _) = wired(lab);
        another_name_changes_nothing(lab, &pod, &id);
        lab.crash_agent();
        lab.start_agent();
        lab.ready();
        lab.annotate(&pod);
        another_name_changes_nothing(lab, &pod, &id);
        // a pair that an earlier release made, and one of ovn-kubernetes: while the agent runs, and when it starts
        for alias in [&format!("ovnkube sandbox {id}"), ""] {
            for restarts in [false, true] {
                run("ip", &["link", "set", LINK, "alias", alias]);
                if restarts {
                    lab.crash_agent();
                    lab.start_agent();
                    lab.ready();
                    lab.annotate(&pod);
                    eventually("the alias", || run("ip", &["link", "show", LINK]).contains("eth0 uid-web"));
                }
                another_name_changes_nothing(lab, &pod, &id);
            }
        }
        // the name in the first ADD is used, whatever the pod calls the link
        pod.ip_cmd("link set eth0 down");
        pod.ip_cmd("link set eth0 name net1");
        result(&lab.shim_of(&pod, &id, "DEL", "net1"));
        assert!(lab.vsctl("show").contains(LINK));
        result(&lab.shim(&pod, &id, "DEL"));
        assert!(!run("ip", &["link"]).contains(LINK) && !lab.vsctl("show").contains(LINK));
        // any single name is accepted
        let wired = result(&lab.shim_of(&pod, &id, "ADD", "net1"));
        assert_eq!(wired["interfaces"][1]["name"], "net1");
        assert_eq!(error(&lab.shim(&pod, &id, "ADD")).0, 4);
        result(&lab.shim_of(&pod, &id, "DEL", "net1"));
        assert!(!run("ip", &["link"]).contains(LINK) && !lab.vsctl("show").contains(LINK));
    });
}

/// No flows are installed: the first request waits.
#[test]
fn another_interface_of_a_sandbox_that_is_being_wired_is_refused() {
    in_node(|lab| {
        lab.start_ovs();
        lab.start_agent();
        lab.send(Change::Node(lab.node()));
        eventually("br-int", || lab.vsctl("list-br").contains("br-int"));
        let pod = lab.pod("web", 3);
        let id = container("0123456789abcdef");
        std::thread::scope(|scope| {
            let add = scope.spawn(|| lab.shim(&pod, &id, "ADD"));
            eventually("the first request", || lab.asked() > 0);
            // it is connected, and nothing shows that the agent has read it
            std::thread::sleep(Duration::from_secs(2));
            for annotated in [false, true] {
                if annotated {
                    lab.annotate(&pod);
                    eventually("the port", || lab.vsctl("list-ports br-int").contains(LINK));
                }
                let waiting = || {
                    let (code, text) = error(&lab.shim_of(&pod, &id, "ADD", "net1"));
                    assert!(code == 4 && text.contains("eth0"), "{text}");
                };
                waiting();
                result(&lab.shim_of(&pod, &id, "DEL", "net1"));
                waiting();
            }
            lab.vsctl(&format!("set Interface {LINK} external_ids:ovn-installed=true"));
            result(&add.join().unwrap());
        });
        result(&lab.shim(&pod, &id, "CHECK"));
    });
}

#[test]
fn check_compares_the_mtu() {
    in_node(|lab| {
        lab.mtu = MtuSettings::default();
        let (pod, id, first) = wired(lab);
        pod.ip_cmd("link set eth0 mtu 1300");
        let (_, text) = error(&lab.shim(&pod, &id, "CHECK"));
        assert!(text.contains("eth0 has MTU 1300, not 1442"), "{text}");
        assert_eq!(result(&lab.shim(&pod, &id, "ADD")), first);
        result(&lab.shim(&pod, &id, "CHECK"));
        // a pod keeps the MTU that it was wired with, and CHECK accepts that
        run("ip", &["link", "set", "wire", "mtu", "9000"]);
        run("ip", &["link", "set", "eth0", "mtu", "9000"]);
        eventually("the node to follow", || run("ip", &["link", "show", "ovn-k8s-mp0"]).contains(" mtu 8942 "));
        result(&lab.shim(&pod, &id, "CHECK"));
        result(&lab.shim(&pod, &id, "ADD"));
        assert!(pod.ip_cmd("link show eth0").contains(" mtu 8942 "));
        assert!(run("ip", &["link", "show", LINK]).contains(" mtu 8942 "));
        result(&lab.shim(&pod, &id, "CHECK"));
    });
}

#[test]
fn the_result_contains_the_mtu() {
    in_node(|lab| {
        let (pod, id, first) = wired(lab);
        let args = format!("K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID={}", pod.uid);
        // in the versions that have it
        for (version, mtu) in [("1.1.0", json!(1400)), ("1.0.0", json!(1400)), ("0.4.0", Value::Null)] {
            let path = pod.path();
            let env = [
                ("CNI_COMMAND", "ADD"),
                ("CNI_CONTAINERID", id.as_str()),
                ("CNI_NETNS", &path),
                ("CNI_IFNAME", "eth0"),
                ("CNI_ARGS", &args),
            ];
            let conf = json!({"cniVersion": version, "name": "ovn-kubernetes", "type": "ovn-k8s-cni-overlay"});
            let added = result(&lab.shim_env(&env, conf.to_string().as_bytes()));
            for interface in added["interfaces"].as_array().unwrap() {
                assert_eq!(interface["mtu"], mtu, "{version}: {added}");
            }
            assert_eq!(added["interfaces"][0]["mac"], first["interfaces"][0]["mac"]);
        }
    });
}

/// The alias and the sysctl are set after the pair is made: an agent that is killed between the two leaves a pair without them,
/// and ovn-kubernetes made some, too.
#[test]
fn a_pair_that_is_found_is_completed() {
    in_node(|lab| {
        let (pod, id, first) = wired(lab);
        let ipv6 = |set: &str| run("sysctl", &["-n", &format!("net.ipv6.conf.{LINK}.disable_ipv6{set}")]);
        assert_eq!(ipv6("").trim(), "1");
        run("ip", &["link", "set", LINK, "alias", ""]);
        run("sysctl", &["-w", &format!("net.ipv6.conf.{LINK}.disable_ipv6=0")]);
        assert_eq!(result(&lab.shim(&pod, &id, "ADD")), first);
        assert_eq!(ipv6("").trim(), "1");
        is_right(lab, &pod, &id);
    });
}
