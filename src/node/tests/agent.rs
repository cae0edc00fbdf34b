//! The agent on a real node: what the kubelet, a pod and an operator see.
#![allow(clippy::unwrap_used)]

mod lab;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::time::{Duration, Instant};

use lab::{CONF, Lab, Release, container, error, eventually, in_node, in_node_of, result, run};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::signal::Signal;
use ovnkube_node::{Change, PodOnNode, Tls};
use serde_json::json;

#[test]
fn the_node_is_set_up() {
    in_node(|lab| {
        lab.start_all();
        let ids = lab.vsctl("get Open_vSwitch . external_ids");
        assert_eq!(
            ids.replace(&lab.path(""), ""),
            r#"{hostname=node-1, ovn-bridge-datapath-type=netdev, ovn-cms-options=ovnkube-node, ovn-enable-lflow-cache="true", ovn-encap-ip="172.18.0.2", ovn-encap-type=geneve, ovn-monitor-all="true", ovn-ofctrl-wait-before-clear="0", ovn-openflow-probe-interval="180", ovn-remote="unix:sb.sock", ovn-remote-probe-interval="100000", ovn-set-local-ip="true", system-id=chassis-1}"#
        );
        assert_eq!(lab.vsctl("get Open_vSwitch . other_config:bundle-idle-timeout"), r#""180""#);
        assert_eq!(lab.vsctl("get Bridge br-int fail_mode datapath_type"), "secure\nnetdev");
        assert_eq!(lab.vsctl("get Interface ovn-k8s-mp0 external_ids:iface-id type"), "k8s-node-1\ninternal");
        mgmt_port_is_right();
        let annotations = lab.annotations();
        assert_eq!(annotations["k8s.ovn.org/node-chassis-id"], "chassis-1");
        assert_eq!(annotations["k8s.ovn.org/node-primary-ifaddr"], r#"{"ipv4":"172.18.0.2/16"}"#);
        assert_eq!(annotations["k8s.ovn.org/host-cidrs"], r#"["172.18.0.2/16"]"#);
        let features = run("ethtool", &["-k", "ovn-k8s-mp0"]);
        assert!(features.contains("tx-checksumming: off"), "{features}");
        // an operator breaks things
        run("ip", &["route", "del", "10.128.0.0/14"]);
        run("ip", &["neigh", "del", "10.128.0.1", "dev", "ovn-k8s-mp0"]);
        lab.vsctl("remove Open_vSwitch . external_ids ovn-monitor-all -- set Bridge br-int fail_mode=standalone");
        eventually("the route", || run("ip", &["route"]).contains("10.128.0.0/14 via 10.128.0.1 dev ovn-k8s-mp0"));
        eventually("the bridge", || lab.vsctl("get Bridge br-int fail_mode") == "secure");
        mgmt_port_is_right();
        // nothing else wakes the agent after that
        std::thread::sleep(Duration::from_secs(3));
        let text = std::fs::read_to_string(lab.conf()).unwrap();
        std::fs::write(lab.conf(), "").unwrap();
        let is_back = || std::fs::read_to_string(lab.conf()).is_ok_and(|have| have == text);
        eventually("the configuration that was emptied", is_back);
        std::thread::sleep(Duration::from_secs(3));
        std::fs::remove_file(lab.conf()).unwrap();
        eventually("the configuration that was removed", is_back);
        lab.stop_agent();
        assert!(!lab.conf().exists());
        mgmt_port_is_right();
    });
}

#[test]
fn a_configuration_that_cannot_be_written_is_reported_and_written_later() {
    in_node(|lab| {
        let (dir, in_its_way) = (lab.path("net.d"), lab.path("net.d/.10-ovn-kubernetes.conflist.new"));
        std::fs::create_dir_all(&in_its_way).unwrap();
        lab.start_ovs();
        lab.start_ovn();
        lab.start_agent();
        lab.send(Change::Node(lab.node()));
        let mut warnings = Vec::new();
        eventually("a warning", || {
            warnings.extend(lab.warnings());
            !warnings.is_empty()
        });
        assert_eq!(
            (warnings.len(), warnings[0].reason, &*warnings[0].message),
            (
                1,
                "NoNetworkConfiguration",
                &*format!(
                    "the configuration of the container runtime cannot be written, so pods start with the one of before, or not at \
                     all: cannot write {dir}/10-ovn-kubernetes.conflist: Is a directory (os error 21); make room there, and make the directory writable, in a pod \
                     the mount of the host's"
                )
            )
        );
        assert!(!lab.conf().exists());
        std::fs::remove_dir(in_its_way).unwrap();
        eventually("the configuration", || std::fs::read_to_string(lab.conf()).is_ok_and(|text| text.ends_with("]}")));
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(lab.warnings(), []);
        lab.stop_agent();
    });
}

/// Each attempt changes files in the directory, which would start the next one.
#[test]
fn a_configuration_that_cannot_be_written_is_tried_with_pauses() {
    in_node(|lab| {
        std::fs::create_dir_all(lab.conf()).unwrap();
        lab.start_ovs();
        lab.start_ovn();
        lab.start_agent();
        lab.send(Change::Node(lab.node()));
        eventually("a warning", || lab.warnings().iter().any(|warning| warning.reason == "NoNetworkConfiguration"));
        // other things settle
        std::thread::sleep(Duration::from_secs(2));
        let attempts = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        attempts.add_watch(&lab.dir.join("net.d"), AddWatchFlags::IN_CLOSE_WRITE).unwrap();
        std::thread::sleep(Duration::from_secs(9));
        let count: usize = std::iter::from_fn(|| attempts.read_events().ok()).map(|events| events.len()).sum();
        assert!((1..=8).contains(&count), "{count} attempts");
        std::fs::remove_dir(lab.conf()).unwrap();
        eventually("the configuration", || lab.conf().is_file());
        // the agent's own attempts are no changes by others, and others' changes count again
        std::fs::remove_file(lab.conf()).unwrap();
        eventually("the configuration again", || lab.conf().is_file());
    });
}

fn mgmt_port_is_right() {
    let address = run("ip", &["addr", "show", "dev", "ovn-k8s-mp0"]);
    assert!(
        address.contains("inet 10.128.0.2/24") && address.contains("mtu 1400") && address.contains("0a:58:0a:80:00:02"),
        "{address}"
    );
    let routes = run("ip", &["route"]);
    assert!(routes.contains("10.128.0.0/14 via 10.128.0.1 dev ovn-k8s-mp0"), "{routes}");
    eventually("the neighbour", || {
        run("ip", &["neigh"]).contains("10.128.0.1 dev ovn-k8s-mp0 lladdr 0a:58:0a:80:00:01 PERMANENT")
    });
    let sysctl = |key: &str| run("sysctl", &["-n", &format!("net.ipv4.conf.ovn-k8s-mp0.{key}")]);
    assert_eq!((sysctl("rp_filter").trim(), sysctl("forwarding").trim()), ("2", "1"));
}

#[test]
fn a_pods_life() {
    in_node(live);
}

#[test]
fn a_pods_life_on_the_oldest_release() {
    in_node_of(Release::Host, live);
}

fn live(lab: &mut Lab) {
    lab.start_all();
    let pod = lab.pod("web", 3);
    lab.annotate(&pod);
    let id = container("0123456789abcdef");
    let started = Instant::now();
    let first = result(&lab.shim(&pod, &id, "ADD"));
    eprintln!("ADD took {:?}", started.elapsed());
    let host_mac = first["interfaces"][0]["mac"].clone();
    let want = json!({
        "cniVersion": "0.4.0",
        "interfaces": [{"name": "0123456789abcde", "mac": host_mac}, {"name": "eth0", "mac": "0a:58:0a:80:00:03", "sandbox": pod.path()}],
        "ips": [{"version": "4", "interface": 1, "address": "10.128.0.3/24", "gateway": "10.128.0.1"}],
        "routes": [{"dst": "0.0.0.0/0", "gw": "10.128.0.1"}, {"dst": "10.128.0.0/14", "gw": "10.128.0.1"}, {"dst": "169.254.169.5/32", "gw": "10.128.0.1"}],
        "dns": {},
    });
    assert_eq!(first, want);
    assert_eq!(
            lab.vsctl("get Interface 0123456789abcde external_ids:attached_mac external_ids:iface-id external_ids:iface-id-ver external_ids:ip_addresses external_ids:sandbox external_ids:ovn-installed"),
            format!("\"0a:58:0a:80:00:03\"\ndefault_web\nuid-web\n\"10.128.0.3/24\"\n\"{id}\"\n\"true\"")
        );
    assert_eq!(lab.vsctl("get Port 0123456789abcde other_config"), r#"{transient="true"}"#);
    let routes = pod.ip_cmd("route");
    assert!(
        routes.contains("default via 10.128.0.1 dev eth0") && routes.contains("169.254.169.5 via 10.128.0.1"),
        "{routes}"
    );

    // the same again
    assert_eq!(result(&lab.shim(&pod, &id, "ADD")), first);
    result(&lab.shim(&pod, &id, "CHECK"));
    assert!(pod.pings_at_once("10.128.0.2"));
    transfers(&pod);

    // CHECK reports what is broken, ADD repairs it
    pod.ip_cmd("route del 10.128.0.0/14");
    let (_, text) = error(&lab.shim(&pod, &id, "CHECK"));
    assert!(text.contains("[default/web ") && text.contains("the route to 10.128.0.0/14 is missing"), "{text}");
    assert_eq!(result(&lab.shim(&pod, &id, "ADD")), first);
    result(&lab.shim(&pod, &id, "CHECK"));

    for _ in 0..2 {
        result(&lab.shim(&pod, &id, "DEL"));
        assert!(!run("ip", &["link"]).contains("0123456789abcde"));
        assert!(!lab.vsctl("show").contains("0123456789abcde"));
    }
    let (_, text) = error(&lab.shim(&pod, &id, "CHECK"));
    assert!(text.contains("eth0 is missing") && text.contains("OVS has no port"), "{text}");
}

/// TCP in both directions, enough data for many segments: checksums are right.
fn transfers(pod: &lab::Pod) {
    let at_pod = pod.enter(|| TcpListener::bind("0.0.0.0:8080").unwrap()).join().unwrap();
    let (ip, from_node) = (pod.ip(), std::thread::spawn(move || receive(&at_pod)));
    send(&format!("{ip}:8080"));
    assert_eq!(from_node.join().unwrap(), SIZE);
    let at_node = TcpListener::bind("10.128.0.2:8080").unwrap();
    let from_pod = pod.enter(|| send("10.128.0.2:8080"));
    assert_eq!(receive(&at_node), SIZE);
    from_pod.join().unwrap();
}

const SIZE: usize = 1 << 20;

fn send(to: &str) {
    let mut stream = TcpStream::connect_timeout(&to.parse().unwrap(), Duration::from_secs(30)).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(&vec![7; SIZE]).unwrap();
}

fn receive(listener: &TcpListener) -> usize {
    let mut stream = listener.accept().unwrap().0;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    got.len()
}

#[test]
fn two_pods_talk_and_gc_keeps_running_ones() {
    in_node(|lab| {
        lab.start_all();
        let (one, two) = (lab.pod("one", 3), lab.pod("two", 4));
        for (pod, id) in [(&one, "aaaa"), (&two, "bbbb")] {
            lab.annotate(pod);
            result(&lab.shim(pod, &container(id), "ADD"));
        }
        assert!(one.pings_at_once("10.128.0.4"));
        let conf = json!({"cniVersion": "1.1.0", "name": "ovn-kubernetes", "type": "x", "cni.dev/valid-attachments": [{"containerID": container("bbbb"), "ifname": "eth0"}]});
        let gc = [("CNI_COMMAND", "GC")];
        result(&lab.shim_env(&gc, conf.to_string().as_bytes()));
        let show = lab.vsctl("show");
        assert!(!show.contains("aaaa00") && show.contains("bbbb00"), "{show}");
        assert!(!run("ip", &["link"]).contains("aaaa00"));
        result(&lab.shim(&two, &container("bbbb"), "CHECK"));
        // without the list nothing is removed
        assert_eq!(error(&lab.shim_env(&gc, CONF.as_bytes())).0, 7);
        eventually("a good STATUS", || lab.shim_env(&[("CNI_COMMAND", "STATUS")], CONF.as_bytes()).status.success());
    });
}

#[test]
fn a_later_sandbox_wins() {
    in_node(|lab| {
        lab.start_ovs();
        lab.start_agent();
        lab.send(Change::Node(lab.node()));
        eventually("br-int", || lab.vsctl("list-br").contains("br-int"));
        let pod = lab.pod("web", 3);
        let later = lab::Pod { netns: lab.pod("other", 9).netns, ..pod.clone() };
        lab.annotate(&pod);
        let ports = |lab: &Lab| lab.vsctl("--bare --columns=name find Interface external_ids:iface-id=default_web");
        std::thread::scope(|scope| {
            // no flows are installed yet: both wait
            let first = scope.spawn(|| lab.shim(&pod, &container("s1"), "ADD"));
            eventually("the first port", || ports(lab) == container("s1")[..15]);
            let second = scope.spawn(|| lab.shim(&later, &container("s2"), "ADD"));
            eventually("the second port alone", || ports(lab) == container("s2")[..15]);
            let (_, text) = error(&first.join().unwrap());
            assert!(text.contains("later sandbox"), "{text}");
            lab.vsctl(&format!("set Interface {} external_ids:ovn-installed=true", &container("s2")[..15]));
            result(&second.join().unwrap());
        });
        // DEL of the older one does not change the newer one
        result(&lab.shim(&pod, &container("s1"), "DEL"));
        result(&lab.shim(&later, &container("s2"), "CHECK"));
    });
}

/// The runtime may send it when a pod of that name runs again.
#[test]
fn a_late_request_for_an_earlier_pod_takes_nothing_from_the_present_one() {
    in_node(|lab| {
        lab.start_all();
        let pod = lab.pod("web", 3);
        let earlier = lab::Pod { netns: lab.pod("other", 9).netns, uid: "uid-earlier".into(), ..pod.clone() };
        lab.annotate(&pod);
        result(&lab.shim(&pod, &container("s2"), "ADD"));
        std::thread::scope(|scope| {
            let late = scope.spawn(|| lab.shim(&earlier, &container("s1"), "ADD"));
            eventually("the request", || lab.asked() > 0);
            // it is connected, and nothing shows that the agent has read it
            std::thread::sleep(Duration::from_secs(2));
            lab.vsctl(&format!("del-port {}", &container("s2")[..15]));
            eventually("the port to be put back", || lab.vsctl("list-ports br-int").contains(&container("s2")[..15]));
            result(&lab.shim(&earlier, &container("s1"), "DEL"));
            error(&late.join().unwrap());
        });
        result(&lab.shim(&pod, &container("s2"), "CHECK"));
    });
}

#[test]
fn del_ends_a_waiting_add() {
    in_node(|lab| {
        lab.start_ovs();
        lab.start_agent();
        lab.send(Change::Node(lab.node()));
        let pod = lab.pod("web", 3);
        std::thread::scope(|scope| {
            let add = scope.spawn(|| lab.shim(&pod, &container("s1"), "ADD"));
            // the first ones may arrive before it
            while !add.is_finished() {
                result(&lab.shim(&pod, &container("s1"), "DEL"));
                std::thread::sleep(Duration::from_millis(100));
            }
            let (_, text) = error(&add.join().unwrap());
            assert!(text.contains("its sandbox was deleted meanwhile"), "{text}");
        });
        // br-int exists but no flows are installed: ADD waits for them, DEL removes everything
        lab.annotate(&pod);
        eventually("br-int", || lab.vsctl("list-br").contains("br-int"));
        std::thread::scope(|scope| {
            let add = scope.spawn(|| lab.shim(&pod, &container("s1"), "ADD"));
            eventually("the port", || lab.vsctl("list-ports br-int").contains("s1000"));
            result(&lab.shim(&pod, &container("s1"), "DEL"));
            error(&add.join().unwrap());
        });
        assert!(!lab.vsctl("show").contains("s1000"));
        assert!(!run("ip", &["link"]).contains("s1000"));
    });
}

/// Another pod may get its addresses soon, and the kubelet sends no DEL for the sandbox meanwhile.
#[test]
fn a_pod_that_is_deleted_ends_a_waiting_add() {
    in_node(|lab| {
        lab.start_ovs();
        lab.start_agent();
        lab.send(Change::Node(lab.node()));
        eventually("br-int", || lab.vsctl("list-br").contains("br-int"));
        let pod = lab.pod("web", 3);
        let bare = PodOnNode { networks: None, ..pod.annotated() };
        let later = PodOnNode { uid: "another".into(), ..pod.annotated() };
        for after in [None, Some(later)] {
            // before it has addresses; the request may arrive only after the first deletion
            std::thread::scope(|scope| {
                let add = scope.spawn(|| lab.shim(&pod, &container("s1"), "ADD"));
                while !add.is_finished() {
                    for change in [Some(bare.clone()), after.clone()] {
                        lab.send(Change::Pod(pod.key(), change));
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
                is_ended(&add.join().unwrap());
            });
            // when it is wired and no flows are installed
            lab.annotate(&pod);
            std::thread::scope(|scope| {
                let add = scope.spawn(|| lab.shim(&pod, &container("s1"), "ADD"));
                eventually("the port", || lab.vsctl("list-ports br-int").contains("s1000"));
                lab.send(Change::Pod(pod.key(), after.clone()));
                is_ended(&add.join().unwrap());
            });
            assert!(!lab.vsctl("show").contains("s1000"));
            assert!(!run("ip", &["link"]).contains("s1000"));
        }
    });
}

fn is_ended(output: &Output) {
    let (_, text) = error(output);
    assert!(text.contains("cannot wire the pod: it was deleted meanwhile"), "{text}");
}

/// The database answers after the ADD has ended.
#[test]
fn a_port_that_is_added_too_late_is_removed() {
    in_node(|lab| {
        lab.start_ovs();
        lab.start_agent();
        lab.send(Change::Node(lab.node()));
        eventually("br-int", || lab.vsctl("list-br").contains("br-int"));
        let pod = lab.pod("web", 3);
        lab.annotate(&pod);
        lab.signal("db", Signal::SIGSTOP);
        std::thread::scope(|scope| {
            let add = scope.spawn(|| lab.shim(&pod, &container("s1"), "ADD"));
            eventually("the pair", || run("ip", &["link"]).contains("s1000"));
            // at this time the agent asks for the port
            std::thread::sleep(Duration::from_secs(1));
            lab.send(Change::Pod(pod.key(), None));
            std::thread::sleep(Duration::from_millis(500));
            lab.signal("db", Signal::SIGCONT);
            is_ended(&add.join().unwrap());
        });
        assert!(!lab.vsctl("show").contains("s1000"));
    });
}

#[test]
fn del_waits_for_the_database() {
    in_node(|lab| {
        lab.start_all();
        let pod = lab.pod("web", 3);
        lab.annotate(&pod);
        result(&lab.shim(&pod, &container("s1"), "ADD"));
        lab.crash_agent();
        // an agent that cannot reach the database does not know what it must remove
        let (socket, away) = (lab.path("db.sock"), lab.path("away.sock"));
        std::fs::rename(&socket, &away).unwrap();
        lab.start_agent();
        std::thread::scope(|scope| {
            let del = scope.spawn(|| lab.shim(&pod, &container("s1"), "DEL"));
            std::thread::sleep(Duration::from_secs(1));
            let early = del.is_finished();
            std::fs::rename(&away, &socket).unwrap();
            result(&del.join().unwrap());
            assert!(!early, "DEL succeeded without the database");
        });
        assert!(!lab.vsctl("show").contains("s1000"));
        assert!(!run("ip", &["link"]).contains("s1000"));
    });
}

#[test]
fn bandwidth_becomes_limits() {
    in_node(|lab| {
        lab.start_all();
        let pod = lab.pod("web", 3);
        let mut annotated = pod.annotated();
        annotated.ingress_bandwidth = Some("10M".into());
        annotated.egress_bandwidth = Some("5M".into());
        lab.send(Change::Pod(pod.key(), Some(annotated.clone())));
        let id = container("abcdef");
        result(&lab.shim(&pod, &id, "ADD"));
        assert_eq!(lab.vsctl(&format!("get Interface {} ingress_policing_rate", &id[..15])), "5000");
        assert_eq!(lab.vsctl("--bare --columns=type,other_config list QoS"), "linux-htb\nmax-rate=10000000");
        result(&lab.shim(&pod, &id, "DEL"));
        assert_eq!(lab.vsctl("list QoS"), "");
        // someone else removes the port, its limits stay: ADD and DEL work all the same
        result(&lab.shim(&pod, &id, "ADD"));
        for verb in ["ADD", "DEL"] {
            lab.vsctl(&format!("del-port {}", &id[..15]));
            assert_eq!(lab.vsctl("--bare --columns=type list QoS"), "linux-htb");
            result(&lab.shim(&pod, &id, verb));
        }
        assert_eq!(lab.vsctl("list QoS"), "");
        annotated.egress_bandwidth = Some("much".into());
        lab.send(Change::Pod(pod.key(), Some(annotated)));
        let (_, text) = error(&lab.shim(&pod, &id, "ADD"));
        assert!(text.contains("-bandwidth \"much\": it is not a quantity"), "{text}");
    });
}

#[test]
fn switch_and_database_restarts_are_survived() {
    in_node(|lab| {
        lab.start_all();
        let pod = lab.pod("web", 3);
        lab.annotate(&pod);
        result(&lab.shim(&pod, &container("abc"), "ADD"));
        lab.kill("vswitchd");
        lab.start_vswitchd();
        eventually("mp0 to work again", || pod.pings("10.128.0.2"));
        mgmt_port_is_right();
        eventually("checksums in software", || run("ethtool", &["-k", "ovn-k8s-mp0"]).contains("tx-checksumming: off"));
        transfers(&pod);

        lab.kill("db");
        lab.start_database_server("db");
        let other = lab.pod("other", 4);
        lab.annotate(&other);
        eventually("an ADD after the database's restart", || {
            lab.shim(&other, &container("def"), "ADD").status.success()
        });
        result(&lab.shim(&pod, &container("abc"), "CHECK"));
        eventually("the pods to talk", || pod.pings("10.128.0.4"));
    });
}

#[test]
fn a_second_start_writes_nothing() {
    in_node(|lab| {
        lab.start_all();
        let pod = lab.pod("web", 3);
        lab.annotate(&pod);
        result(&lab.shim(&pod, &container("abc"), "ADD"));
        let file = lab.path("db.conf");
        let transactions = |lab: &Lab| lab.tool("ovsdb-tool", &["show-log", &file]).matches("record ").count();
        // the daemons may still have something to write
        let mut before = 0;
        eventually("quiet", || {
            std::thread::sleep(Duration::from_secs(5));
            std::mem::replace(&mut before, transactions(lab)) == before
        });
        lab.crash_agent();
        std::fs::remove_file(lab.conf()).unwrap();
        lab.start_agent();
        lab.ready();
        assert_eq!(transactions(lab), before);
        lab.annotate(&pod);
        result(&lab.shim(&pod, &container("abc"), "CHECK"));
    });
}

#[test]
fn ports_of_dead_sandboxes_are_removed() {
    in_node(|lab| {
        lab.start_all();
        let (alive, dead) = (lab.pod("alive", 3), lab.pod("dead", 4));
        for (pod, id) in [(&alive, "aaaa"), (&dead, "dddd")] {
            lab.annotate(pod);
            result(&lab.shim(pod, &container(id), "ADD"));
        }
        lab.crash_agent();
        run("ip", &["netns", "del", &dead.netns]);
        eventually("the link to go with its namespace", || !run("ip", &["link"]).contains("dddd00"));
        lab.start_agent();
        lab.ready();
        eventually("the dead port to go", || !lab.vsctl("show").contains("dddd00"));
        lab.annotate(&alive);
        result(&lab.shim(&alive, &container("aaaa"), "CHECK"));
        assert!(alive.pings_at_once("10.128.0.2"));
        // also while the agent runs: its pod goes last, when nothing on the host changes any more
        run("ip", &["netns", "del", &alive.netns]);
        std::thread::sleep(Duration::from_secs(3));
        assert!(lab.vsctl("show").contains("aaaa00"), "its pod is there");
        lab.send(Change::Pod(alive.key(), None));
        eventually("the port of the pod that is gone to go", || !lab.vsctl("show").contains("aaaa00"));
    });
}

#[test]
fn both_address_families() {
    in_node(|lab| {
        lab.cluster_subnets.push("fd00:10::/48");
        lab.node_subnets.push("fd00:10::/64");
        lab.start_all();
        let pod = lab.pod("web", 3);
        let networks = json!({"default": {
            "ip_addresses": ["10.128.0.3/24", "fd00:10::3/64"], "mac_address": pod.mac(), "gateway_ips": ["10.128.0.1", "fd00:10::1"],
            "routes": [{"dest": "fd00:10::/48", "nextHop": "fd00:10::1"}],
        }});
        let annotated = PodOnNode { networks: Some(networks.to_string().into()), ..pod.annotated() };
        lab.send(Change::Pod(pod.key(), Some(annotated)));
        // as some runtimes leave it
        let off = pod.enter(|| std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap());
        off.join().unwrap();
        let id = container("six");
        let wired = result(&lab.shim(&pod, &id, "ADD"));
        assert_eq!(
            wired["ips"][1],
            json!({"version": "6", "interface": 1, "address": "fd00:10::3/64", "gateway": "fd00:10::1"})
        );
        result(&lab.shim(&pod, &id, "CHECK"));
        assert_eq!(result(&lab.shim(&pod, &id, "ADD")), wired);
        // usable at once, and ours is the only router
        let addresses = pod.ip_cmd("-6 addr show dev eth0");
        assert!(addresses.contains("fd00:10::3/64") && !addresses.contains("tentative"), "{addresses}");
        let routes = pod.ip_cmd("-6 route");
        assert!(
            routes.contains("default via fd00:10::1") && routes.contains("fd00:10::/48 via fd00:10::1"),
            "{routes}"
        );
        let accept_ra = pod.enter(|| std::fs::read_to_string("/proc/sys/net/ipv6/conf/eth0/accept_ra").unwrap());
        assert_eq!(accept_ra.join().unwrap(), "0\n");
        let ips = lab.vsctl(&format!("get Interface {} external_ids:ip_addresses", &id[..15]));
        assert_eq!(ips, r#""10.128.0.3/24,fd00:10::3/64""#);
    });
}

#[test]
fn tls_files_reach_ovn_controller() {
    in_node(|lab| {
        lab.start_ovs();
        let file = |name: &str| format!("/etc/openvswitch/{name}.pem");
        lab.sb_tls = Some(Tls { private_key: file("key"), certificate: file("cert"), ca_certificate: file("ca") });
        lab.start_agent();
        let want = "Private key: /etc/openvswitch/key.pem\nCertificate: /etc/openvswitch/cert.pem\nCA Certificate: /etc/openvswitch/ca.pem\nBootstrap: false";
        eventually("the TLS files", || lab.vsctl("get-ssl") == want);
        lab.crash_agent();
        lab.vsctl("set-ssl a b c");
        lab.start_agent();
        eventually("the TLS files again", || lab.vsctl("get-ssl") == want);
    });
}
