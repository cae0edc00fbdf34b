//! Ports of running pods that someone removes from Open vSwitch are restored.
#![allow(clippy::unwrap_used)]

mod lab;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lab::{Lab, Pod, Release, container, error, eventually, in_node, in_node_of, result, run};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use ovnkube_node::{Change, PodOnNode};
use serde_json::json;

const SYSTEM: &str = "external_ids:system-id=chassis-1 external_ids:ovn-bridge-datapath-type=netdev";

/// A node with this many pods.
fn start(lab: &mut Lab, count: u8) -> Vec<Pod> {
    lab.start_all();
    let pods: Vec<Pod> = (0..count).map(|n| lab.pod(&format!("web-{n}"), n + 3)).collect();
    for pod in &pods {
        lab.annotate(pod);
        result(&lab.shim(pod, &sandbox(pod), "ADD"));
    }
    all_answer(&pods);
    pods
}

fn sandbox(pod: &Pod) -> String {
    container(&format!("{:02x}abcdef0123456", pod.n))
}

fn link(pod: &Pod) -> String {
    sandbox(pod)[..15].to_owned()
}

fn answers(pod: &Pod) -> bool {
    Command::new("ping").args(["-c", "1", "-W", "0.1", "-q", &pod.ip()]).output().unwrap().status.success()
}

fn all_answer(pods: &[Pod]) {
    for pod in pods {
        eventually("a pod to answer", || answers(pod));
    }
}

/// As `ovs-ctl --delete-transient-ports` does.
fn delete_transient_ports(lab: &Lab) {
    for port in lab.vsctl("--bare --columns=name find Port other_config:transient=true").split_whitespace() {
        lab.vsctl(&format!("del-port {port}"));
    }
}

/// The database starts empty, as `ovs-ctl` creates it if its file is missing.
fn lose_database(lab: &mut Lab) {
    lab.kill("db");
    std::fs::remove_file(lab.path("db.conf")).unwrap();
    lab.start_database("db", "openvswitch/vswitch.ovsschema");
    lab.vsctl(&format!("--no-wait init -- set Open_vSwitch . {SYSTEM}"));
}

fn send_all(lab: &Lab, pods: &[Pod]) {
    lab.ready();
    for pod in pods {
        lab.annotate(pod);
    }
}

/// The kinds of loss.
const LOSSES: [&str; 7] = [
    "del-port",
    "all transient ports",
    "del-br br-int",
    "conf.db",
    "conf.db, agent restarted meanwhile",
    "conf.db while the agent is down",
    "conf.db, and all daemons restarted",
];

/// Returns the earliest time of the repair: when the port was lost, or the agent started.
fn lose(lab: &mut Lab, pods: &[Pod], what: &str) -> SystemTime {
    let now = SystemTime::now();
    match what {
        "del-port" => pods.iter().for_each(|pod| drop(lab.vsctl(&format!("del-port {}", link(pod))))),
        "all transient ports" => delete_transient_ports(lab),
        "del-br br-int" => drop(lab.vsctl("del-br br-int")),
        "conf.db" => lose_database(lab),
        "conf.db, agent restarted meanwhile" => {
            lose_database(lab);
            lab.crash_agent();
            lab.start_agent();
            send_all(lab, pods);
        }
        "conf.db while the agent is down" => {
            lab.crash_agent();
            lose_database(lab);
            // the host's state is lost before any program sees it
            eventually("the switch to remove it", || !run("ip", &["link"]).contains("ovn-k8s-mp0"));
            let now = SystemTime::now();
            lab.start_agent();
            send_all(lab, pods);
            return now;
        }
        _ => {
            lab.kill("controller");
            lab.kill("vswitchd");
            lose_database(lab);
            lab.start_vswitchd();
            lab.start_controller();
        }
    }
    now
}

/// Whether the port exists and its flows are installed.
fn is_plugged(lab: &Lab, pod: &Pod) -> bool {
    let id = sandbox(pod);
    let find =
        format!("--bare --columns=name find Interface external_ids:sandbox={id} external_ids:ovn-installed=true");
    lab.vsctl(&find) == link(pod)
}

/// Twenty packets a second to each pod, until the process is ended.
fn pinging(pods: &[Pod]) -> Vec<Child> {
    let ping = |pod: &Pod| {
        let mut ping = Command::new("ping");
        ping.args(["-D", "-n", "-i", "0.05", &pod.ip()]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    pods.iter().map(ping).collect()
}

/// Seconds from `since` to the reply after the last gap.
fn silence(ping: Child, since: SystemTime) -> f64 {
    nix::sys::signal::kill(Pid::from_raw(ping.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let said = String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap();
    let at = |line: &str| line.strip_prefix('[')?.split_once(']')?.0.parse::<f64>().ok();
    let answers: Vec<f64> = said.lines().filter(|line| line.contains("bytes from")).filter_map(at).collect();
    let since = since.duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    // before that the switch may have delayed packets while it had no database
    let mut silent = answers.windows(2).filter(|pair| pair[1] > since && pair[1] - pair[0] > 0.2);
    silent.next_back().map_or(0.0, |pair| pair[1] - since)
}

/// Removes the port, and waits until every pod replies again.
fn comes_back(lab: &mut Lab, pods: &[Pod], what: &str) {
    let pings = pinging(pods);
    std::thread::sleep(Duration::from_millis(500));
    // not by its uuid, which another bridge of that name may have again
    lab.vsctl("--no-wait set Bridge br-int external_ids:lost=soon");
    let since = lose(lab, pods, what);
    if !["del-port", "all transient ports"].contains(&what) {
        eventually("another bridge", || lab.vsctl("--if-exists get Bridge br-int external_ids:lost") != "soon");
    }
    for pod in pods {
        eventually("the port", || {
            lab.revive_controller();
            is_plugged(lab, pod)
        });
    }
    all_answer(pods);
    std::thread::sleep(Duration::from_millis(500));
    let seconds: Vec<f64> = pings.into_iter().map(|ping| silence(ping, since)).collect();
    let last = seconds.iter().copied().fold(0.0, f64::max);
    let first = seconds.iter().copied().fold(f64::MAX, f64::min);
    eprintln!(
        "FIGURE {:>2} pods, {what}: first answer after {first:.1} s, the last pod's after {last:.1} s",
        pods.len()
    );
    for pod in pods {
        result(&lab.shim(pod, &sandbox(pod), "CHECK"));
        assert!(pod.pings_at_once("10.128.0.2"));
    }
    assert_eq!(lab.warnings(), [], "{what}");
}

fn all_come_back(lab: &mut Lab, count: u8) {
    let pods = start(lab, count);
    for what in LOSSES {
        comes_back(lab, &pods, what);
    }
}

#[test]
fn one_pod_comes_back() {
    in_node(|lab| all_come_back(lab, 1));
}

#[test]
fn one_pod_comes_back_on_the_oldest_release() {
    in_node_of(Release::Host, |lab| all_come_back(lab, 1));
}

#[test]
fn thirty_pods_come_back() {
    in_node(|lab| all_come_back(lab, 30));
}

/// Limits, the pod's name, its uid, transience: as ADD wrote them.
#[test]
fn the_port_has_its_earlier_settings() {
    in_node(|lab| {
        let pods = start(lab, 1);
        let pod = &pods[0];
        let limited =
            PodOnNode { ingress_bandwidth: Some("10M".into()), egress_bandwidth: Some("5M".into()), ..pod.annotated() };
        lab.send(Change::Pod(pod.key(), Some(limited)));
        result(&lab.shim(pod, &sandbox(pod), "DEL"));
        result(&lab.shim(pod, &sandbox(pod), "ADD"));
        let state = |lab: &Lab| {
            let of_link = |what: &str| lab.vsctl(&format!("--columns={what} name={}", link(pod)));
            let keys = ["attached_mac", "iface-id", "iface-id-ver", "ip_addresses", "sandbox", "ovn-installed"];
            let ids = keys.map(|key| lab.vsctl(&format!("--if-exists get Interface {} external_ids:{key}", link(pod))));
            [
                of_link("name,type,ingress_policing_rate find Interface"),
                of_link("name,other_config find Port"),
                ids.join(" "),
                lab.vsctl("--columns=type,other_config,external_ids list QoS"),
            ]
        };
        let before = state(lab);
        let back = |lab: &Lab| {
            eventually("the port as it was", || is_plugged(lab, pod) && state(lab) == before);
            eventually("the pod to answer", || answers(pod));
        };
        lab.vsctl(&format!("del-port {}", link(pod)));
        back(lab);
        lose_database(lab);
        back(lab);
        // someone restores it, but with other settings
        lab.vsctl(&format!("del-port {0} -- add-port br-int {0}", link(pod)));
        back(lab);
        // the row is corrected
        lab.vsctl(&format!("set Interface {} external_ids:iface-id=default_other", link(pod)));
        back(lab);
        for keys in ["iface-id", "sandbox", "iface-id sandbox attached_mac"] {
            let args: Vec<String> =
                keys.split(' ').map(|key| format!("-- remove Interface {} external_ids {key}", link(pod))).collect();
            lab.vsctl(args.join(" ").trim_start_matches("-- "));
            back(lab);
        }
        // nothing is left
        assert_eq!(lab.vsctl("--columns=_uuid list QoS").lines().count(), 1);
        result(&lab.shim(pod, &sandbox(pod), "DEL"));
        assert_eq!(lab.vsctl("list QoS"), "");
        assert!(!lab.vsctl("show").contains(&link(pod)));
    });
}

/// Gives the agent time for what it must not do.
fn stays_away(lab: &Lab, link: &str) {
    std::thread::sleep(Duration::from_secs(3));
    assert!(!lab.vsctl("show").contains(link), "{}", lab.vsctl("show"));
}

#[test]
fn a_sandbox_that_belongs_to_no_pod_gets_no_port() {
    in_node(|lab| {
        let pods = start(lab, 2);
        let (pod, other) = (&pods[0], &pods[1]);
        let vanishes = |lab: &Lab| lab.vsctl(&format!("del-port {}", link(pod)));
        // CHECK shows when the agent has heard that the sandbox is not this pod's: until then it would restore the port
        let is_not_its_own =
            |lab: &Lab| eventually("the news", || !lab.shim(pod, &sandbox(pod), "CHECK").status.success());
        // another pod of its name, a completed one, or a deleted one
        let successor = PodOnNode { uid: "another".into(), ..pod.annotated() };
        for change in [Some(successor), None] {
            lab.send(Change::Pod(pod.key(), change));
            is_not_its_own(lab);
            vanishes(lab);
            stays_away(lab, &link(pod));
            assert_eq!(lab.warnings(), []);
            lab.annotate(pod);
            eventually("the pod to answer", || answers(pod));
        }
        // its addresses belong to another pod now
        let elsewhere = Pod { n: 77, ..pod.clone() };
        lab.send(Change::Pod(pod.key(), Some(elsewhere.annotated())));
        is_not_its_own(lab);
        vanishes(lab);
        let mut warnings = Vec::new();
        eventually("a warning", || {
            warnings.extend(lab.warnings());
            !warnings.is_empty()
        });
        stays_away(lab, &link(pod));
        warnings.extend(lab.warnings());
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(
            (warnings[0].reason, warnings[0].message.as_str()),
            (
                "PodsWithoutPort",
                "1 pods of this node have no port in Open vSwitch, such as default/web-0: its interface has the MAC \
                 address 0a:58:0a:80:00:03, and the pod is annotated with 0a:58:0a:80:00:4d; restart the pod"
            )
        );
        // it delays no other pod, and is reported once
        lab.vsctl(&format!("del-port {}", link(other)));
        eventually("the other to answer", || answers(other));
        assert_eq!(lab.warnings(), []);
        lab.annotate(pod);
        eventually("the pod to answer", || answers(pod));
        // someone has it in another bridge
        lab.vsctl(&format!(
            "add-br br-mine -- set Bridge br-mine datapath_type=netdev -- del-port {0} -- add-port br-mine {0}",
            link(pod)
        ));
        eventually("a warning", || {
            lab.warnings().iter().any(|warning| warning.message.contains("it was put into bridge br-mine"))
        });
        lab.vsctl(&format!("del-port {}", link(other)));
        eventually("the other to answer", || answers(other));
        assert_eq!(lab.vsctl(&format!("port-to-br {}", link(pod))), "br-mine");
        let (_, text) = error(&lab.shim(pod, &sandbox(pod), "CHECK"));
        assert!(text.contains("br-mine"), "{text}");
        vanishes(lab);
        eventually("the pod to answer", || answers(pod));
        result(&lab.shim(pod, &sandbox(pod), "CHECK"));
        // a second sandbox of the pod: the later one gets the port
        let later = Pod { netns: lab.bare_pod("later", 9).netns, ..pod.clone() };
        let newer = container("77abcdef0123456");
        result(&lab.shim(&later, &newer, "ADD"));
        assert!(!lab.vsctl("show").contains(&link(pod)));
        for restarts in [false, true] {
            if restarts {
                lab.crash_agent();
                lose_database(lab);
                lab.start_agent();
                send_all(lab, &pods);
            } else {
                lab.vsctl(&format!("del-port {}", &newer[..15]));
            }
            eventually("the later one's port", || lab.vsctl("show").contains(&newer[..15]));
            stays_away(lab, &link(pod));
            result(&lab.shim(&later, &newer, "CHECK"));
        }
    });
}

/// Only the rows say which pods the ports of ovn-kubernetes belong to: the agent keeps that while they exist.
#[test]
fn pods_of_ovn_kubernetes_come_back() {
    in_node(|lab| {
        let pods = start(lab, 2);
        lab.crash_agent();
        run("ip", &["link", "set", &link(&pods[0]), "alias", ""]);
        run("ip", &["link", "set", &link(&pods[1]), "alias", &format!("ovnkube sandbox {}", sandbox(&pods[1]))]);
        lab.start_agent();
        send_all(lab, &pods);
        for pod in &pods {
            let want = format!("ovnkube sandbox {} eth0 {}", sandbox(pod), pod.uid);
            eventually("the alias", || run("ip", &["link", "show", &link(pod)]).contains(&want));
        }
        comes_back(lab, &pods, "conf.db while the agent is down");
    });
}

/// The kubelet keeps the sandbox of a static pod when someone deletes its mirror, and makes another one.
#[test]
fn a_static_pod_keeps_its_network_when_its_mirror_is_another() {
    in_node(|lab| {
        lab.start_all();
        let pod = lab.pod("static", 3);
        let mirrored = |lab: &Lab, uid: &str| {
            lab.nbctl(&format!("lsp-set-options default_static iface-id-ver={uid}"));
            let mirror = PodOnNode { uid: uid.into(), config_hash: Some(pod.uid.as_str().into()), ..pod.annotated() };
            lab.send(Change::Pod(pod.key(), Some(mirror)));
        };
        let serves = |lab: &Lab, uid: &str| {
            let ids = format!("get Interface {} external_ids:iface-id-ver", link(&pod));
            eventually("the mirror's uid", || lab.vsctl(&ids).trim_matches('"') == uid);
            eventually("the pod to answer", || is_plugged(lab, &pod) && answers(&pod));
        };
        mirrored(lab, "mirror-1");
        result(&lab.shim(&pod, &sandbox(&pod), "ADD"));
        serves(lab, "mirror-1");
        lab.send(Change::Pod(pod.key(), None));
        mirrored(lab, "mirror-2");
        serves(lab, "mirror-2");
        // as ovn-kubernetes made it, whose rows have only the mirror's uid
        lab.crash_agent();
        run("ip", &["link", "set", &link(&pod), "alias", ""]);
        lab.start_agent();
        lab.ready();
        mirrored(lab, "mirror-2");
        let want = format!("ovnkube sandbox {} eth0 {}", sandbox(&pod), pod.uid);
        eventually("the hash in the alias", || run("ip", &["link", "show", &link(&pod)]).contains(&want));
        mirrored(lab, "mirror-3");
        serves(lab, "mirror-3");
        result(&lab.shim(&pod, &sandbox(&pod), "CHECK"));
    });
}

/// DEL while a port is restored: nothing of the sandbox is left.
#[test]
fn a_sandbox_that_ends_meanwhile_stays_gone() {
    in_node(|lab| {
        let pods = start(lab, 1);
        let pod = &pods[0];
        for round in 0..20 {
            std::thread::scope(|scope| {
                let lab = &*lab;
                let lost = scope.spawn(move || lab.vsctl(&format!("--if-exists del-port {}", link(pod))));
                std::thread::sleep(Duration::from_millis(round * 3));
                result(&lab.shim(pod, &sandbox(pod), "DEL"));
                lost.join().unwrap();
            });
            // time for a port that is restored too late; it would stay
            std::thread::sleep(Duration::from_millis(200));
            eventually("nothing of it", || {
                !lab.vsctl("show").contains(&link(pod)) && !run("ip", &["link"]).contains(&link(pod))
            });
            result(&lab.shim(pod, &sandbox(pod), "ADD"));
            // also while its ADD is answered
            lab.vsctl(&format!("del-port {}", link(pod)));
            eventually("the pod to answer", || answers(pod));
        }
        let conf =
            json!({"cniVersion": "1.1.0", "name": "ovn-kubernetes", "type": "x", "cni.dev/valid-attachments": []});
        lab.vsctl(&format!("del-port {}", link(pod)));
        eventually("all of it to go", || {
            result(&lab.shim_env(&[("CNI_COMMAND", "GC")], conf.to_string().as_bytes()));
            !lab.vsctl("show").contains(&link(pod)) && !run("ip", &["link"]).contains(&link(pod))
        });
    });
}
