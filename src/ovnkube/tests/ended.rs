//! A container whose entrypoint cannot start its program, or that has little room for its database: its log says why in one line, and
//! an Event of its pod says the same, with the accounts and the policies of dist/yaml.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ovnkube_tests::nb::until;
use ovnkube_tests::servers::Turn;
use serde_json::Value;

use crate::lab::Dir;

const NODE: &str = "n1";
const EVENTS: &str = "/api/v1/namespaces/ovn-kubernetes/events";
/// What the entrypoint needs of the image beside the programs that it starts.
const TOOLS: [&str; 20] = [
    "basename", "cat", "cut", "cp", "dirname", "flock", "grep", "id", "mkdir", "mount", "mv", "realpath", "rm", "sed",
    "sh", "sleep", "timeout", "touch", "tr", "uname",
];

/// A container of `dist/yaml`: its word, its account and its environment.
struct Container<'a> {
    word: &'a str,
    account: &'a str,
    environment: Vec<(&'a str, &'a str)>,
}

/// An image without OVN's programs, and an API server.
struct Lab {
    servers: Turn,
    dir: Dir,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/images/ovnkube.sh")
}

fn found(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.exists()).unwrap()
}

impl Lab {
    async fn new() -> Self {
        let lab = Self { servers: Turn::take().await, dir: Dir::new() };
        fs::create_dir(lab.dir.file("bin")).unwrap();
        for tool in TOOLS {
            symlink(found(tool), lab.program(tool)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_ovnkube"), lab.program("ovnkube")).unwrap();
        lab.servers.kubectl(&["delete", "node", NODE, "--ignore-not-found"]);
        lab.servers.kubectl(&["create", "-f", &lab.file("node", "{apiVersion: v1, kind: Node, metadata: {name: n1}}")]);
        lab
    }

    fn program(&self, name: &str) -> PathBuf {
        self.dir.file("bin").join(name)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.file(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A program of the image that fails, or does nothing.
    fn fake(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(self.program(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(self.program(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn token(&self, account: &str) -> PathBuf {
        let kubeconfig = match account {
            "ovn-node" => self.servers.agent(Some(NODE)),
            account => self.servers.account(account),
        };
        kubeconfig.with_extension("token")
    }

    /// What the container does, in the pod of that name, with the files of its account where a pod has them.
    fn run(&self, pod: &str, container: &Container<'_>, server: (&str, &str)) -> Output {
        self.run_with(&self.token(container.account), pod, container, server)
    }

    fn run_with(&self, token: &Path, pod: &str, container: &Container<'_>, server: (&str, &str)) -> Output {
        self.command(token, pod, container, server).output().unwrap()
    }

    fn command(&self, token: &Path, pod: &str, container: &Container<'_>, server: (&str, &str)) -> Command {
        let inside =
            "mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount /run/openvswitch &&
            cp \"$1\" /run/secrets/kubernetes.io/serviceaccount/token &&
            cp \"$2\" /run/secrets/kubernetes.io/serviceaccount/ca.crt &&
            mount -t tmpfs none /etc/openvswitch && mount -t tmpfs none /sys/module && mount -t tmpfs -o size=4m none /etc/ovn || exit 99
            ! [ -e \"$5\" ] || mount --bind \"$5\" /usr/share/openvswitch/scripts/ovs-ctl || exit 99
            PATH=$3 exec sh \"$4\" \"$6\"";
        let mut command = Command::new("timeout");
        command
            .args(["-k", "1", "60", "unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", inside, "sh"])
            .arg(token);
        command.args([self.servers.file("ca.crt"), self.dir.file("bin"), script(), self.program("ovs-ctl")]);
        command.arg(container.word).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.envs([("K8S_NODE", NODE), ("OVN_KUBERNETES_NAMESPACE", "ovn-kubernetes"), ("POD_NAME", pod)]);
        command.envs([("POD_UID", format!("uid-{pod}").as_str()), server]);
        command.envs(container.environment.iter().copied());
        command
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.servers.port())
    }

    /// The Events about a pod.
    fn events(&self, pod: &str) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.servers.kubectl(&["get", "--raw", EVENTS])).unwrap();
        let mut events = list["items"].as_array().unwrap().clone();
        events.retain(|event| event["involvedObject"]["name"] == pod);
        events
    }
}

fn log(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn databases() -> Vec<(&'static str, &'static str)> {
    vec![("OVN_NORTH", "tcp:10.0.0.1:6641"), ("OVN_SOUTH", "tcp:10.0.0.1:6642")]
}

/// The environment of a master or agent, with another value for some variables.
fn keys(other: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let mut keys: BTreeMap<_, _> = databases().into_iter().collect();
    keys.extend([("OVN_NET_CIDR", "10.128.0.0/14/23"), ("OVN_SVC_CIDR", "172.30.0.0/16")]);
    keys.extend(other.iter().copied());
    keys.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_container_cannot_start_is_in_its_log_and_in_an_event() {
    let lab = Lab::new().await;
    lab.fake("modprobe", "exit 1");
    lab.fake("ovs-ctl", "exit 1");
    for program in ["ovs-vsctl", "ovs-vswitchd", "ovsdb-server"] {
        lab.fake(program, "exit 1");
    }
    let master = |other| Container { word: "ovn-master", account: "ovn", environment: keys(other) };
    let agent = |other| Container { word: "ovn-node", account: "ovn-node", environment: keys(other) };
    let of = |word, account, environment| Container { word, account, environment };
    let cases = [
        ("unknown-word", of("dance", "ovn-events", vec![]), "dance is no word of this image; write one of these"),
        ("no-key", master(&[("OVN_NET_CIDR", "")]), "the key net_cidr of the ConfigMap ovn-config (environment"),
        ("no-address", master(&[("OVN_NORTH", "")]), "(environment variable OVN_NORTH) is missing or empty; write"),
        ("bad-address", master(&[("OVN_SOUTH", "10.0.0.1:6642")]), "into the key OvnSouth of the ConfigMap ovn-config"),
        ("bad-key", master(&[("OVN_SVC_CIDR", "172.30.0.0/99")]), "it comes from the key svc_cidr of the ConfigMap"),
        ("bad-variable", master(&[("OVN_ENCAP_PORT", "big")]), "it comes from the environment variable OVN_ENCAP_PORT"),
        ("bad-flags", agent(&[("OVN_GATEWAY_OPTS", "--gatway-mode=x")]), "it comes from the key gateway_opts of the"),
        ("no-northd", of("run-ovn-northd", "ovn", databases()), "this image has no program ovn-northd; build it with"),
        ("no-controller", of("ovn-controller", "ovn-node", vec![]), "this image has no program ovn-controller; build"),
        ("no-database", of("nb-ovsdb", "ovn-events", databases()), "this image has no program ovsdb-tool; build it"),
        ("no-module", of("ovs-server", "ovn-events", vec![]), "this node's kernel has no module openvswitch: run"),
        (
            "ipsec",
            master(&[("ENABLE_IPSEC", "true")]),
            "ENABLE_IPSEC is true, and ovnkube does not encrypt tunnels; set",
        ),
    ];
    let url = lab.url();
    for (pod, container, text) in cases {
        if pod == "no-module" {
            lab.fake("ovsdb-tool", "exit 1");
        }
        for _ in 0..2 {
            let output = lab.run(pod, &container, ("K8S_APISERVER", &url));
            let log = log(&output);
            assert!(output.status.code().is_some_and(|code| code == 1 || code == 2), "{pod}: {output:?}");
            assert!(log.lines().last().unwrap().contains(text), "{pod}: {log}");
            // ovs-ctl has lines of its own
            assert!(log.lines().count() == 1 || pod == "no-module", "{pod}: {log}");
            let events = lab.events(pod);
            let [event] = &events[..] else { panic!("{pod}: {events:?}: {log}") };
            let said = event["message"].as_str().unwrap();
            assert!(said.contains(text) && !said.contains("above"), "{pod}: {said}");
            assert_eq!((&event["reason"], &event["type"]), (&"ContainerEnded".into(), &"Warning".into()), "{pod}");
            assert_eq!(event["involvedObject"]["uid"], format!("uid-{pod}"));
            assert_eq!((&event["source"]["host"], &event["involvedObject"]["kind"]), (&NODE.into(), &"Pod".into()));
        }
        // how often: where the account may read and change Events
        let count = if container.account == "ovn-events" { 1 } else { 2 };
        assert_eq!(lab.events(pod)[0]["count"], count, "{pod}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_away_or_misspelt_hides_neither_the_line_nor_the_exit_code() {
    let lab = Lab::new().await;
    let container = Container { word: "dance", account: "ovn-events", environment: vec![] };
    let line = lab.run("none", &container, ("K8S_APISERVER", "https://127.0.0.1:1"));
    assert_eq!((line.status.code(), log(&line).lines().count()), (Some(1), 1), "{line:?}");

    // of the cluster, where the key is wrong
    let port = lab.servers.port().to_string();
    let cluster = vec![("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", port.as_str())];
    let container = Container { word: "dance", account: "ovn-events", environment: cluster };
    for (pod, url) in [("no-url", "10.0.0.9:6443"), ("no-server", "https://127.0.0.1:1"), ("none-given", "")] {
        let line = lab.run(pod, &container, ("K8S_APISERVER", url));
        assert_eq!((line.status.code(), log(&line).lines().count()), (Some(1), 1), "{line:?}");
        assert_eq!(lab.events(pod).len(), 1, "{pod}");
    }

    // one that accepts connections and answers nothing
    let silent = Container { word: "dance", account: "ovn-events", environment: vec![] };
    let token = lab.token("ovn-events");
    lab.servers.signal("-STOP");
    let began = Instant::now();
    let line = lab.run_with(&token, "silent", &silent, ("K8S_APISERVER", &lab.url()));
    lab.servers.signal("-CONT");
    assert_eq!((line.status.code(), log(&line).lines().count()), (Some(1), 1), "{line:?}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_disk_is_nearly_full_says_so() {
    let lab = Lab::new().await;
    for program in ["ovsdb-server", "ovsdb-tool", "ovn-nbctl", "stat", "wc"] {
        symlink(found(program), lab.program(program)).unwrap();
    }
    let environment = keys(&[
        ("OVN_NORTH", "tcp:127.0.0.1:26641"),
        ("OVN_SOUTH", "tcp:127.0.0.1:26642"),
        ("OVN_NB_PORT", "26641"),
        ("K8S_NODE_IP", "127.0.0.1"),
    ]);
    let container = Container { word: "nb-ovsdb", account: "ovn-events", environment };
    let (token, url) = (lab.token(container.account), lab.url());
    let mut child = lab.command(&token, "small", &container, ("K8S_APISERVER", &url)).spawn().unwrap();
    until("an Event", async || !lab.events("small").is_empty()).await;
    let found = lab.events("small");
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
    let [event] = &found[..] else { panic!("{found:?}") };
    let said = event["message"].as_str().unwrap();
    assert!(said.contains("the disk of /etc/ovn/ovnnb_db.db is nearly full: 4 MB are left; make room"), "{said}");
    assert_eq!((&event["reason"], &event["involvedObject"]["kind"]), (&"DatabaseDiskFull".into(), &"Pod".into()));
}

/// Words that people and probes run in a container say what is wrong to whoever ran them.
#[tokio::test(flavor = "multi_thread")]
async fn a_word_by_hand_makes_no_event() {
    let lab = Lab::new().await;
    for word in ["nbctl", "plan", "ic"] {
        let environment = vec![("OVN_NORTH", "nowhere"), ("OVN_SOUTH", "nowhere")];
        let line = lab.run(word, &Container { word, account: "ovn-node", environment }, ("K8S_APISERVER", &lab.url()));
        assert!(!line.status.success() && log(&line).contains("nowhere"), "{line:?}");
        assert_eq!(lab.events(word), [] as [Value; 0], "{word}");
    }
}

/// In the charts of ovn-kubernetes, pods do not know their names: the Event is about the node.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_pods_name_the_event_is_about_the_node() {
    let lab = Lab::new().await;
    let environment = keys(&[("OVN_NET_CIDR", "x"), ("POD_UID", "")]);
    let container = Container { word: "ovn-master", account: "ovn", environment };
    let line = lab.run("p", &container, ("K8S_APISERVER", &lab.url()));
    assert_eq!(line.status.code(), Some(1), "{line:?}");
    let described = lab.servers.kubectl(&["describe", "node", NODE]);
    assert!(described.contains("ContainerEnded") && described.contains("the key net_cidr of the"), "{described}");
}
