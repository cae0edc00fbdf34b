//! One node made of real programs, in a network namespace of its own: ovsdb-server, ovs-vswitchd
//! (userspace datapath, or the kernel's with `CLUSTER_DATAPATH=system`, as lab/cluster), NB, SB, ovn-northd,
//! ovn-controller, the agent and the shim.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code, unreachable_pub)]

#[path = "../../../../tests/dir.rs"]
mod dir;
pub mod gateway;
mod plan;
mod pod;
mod release;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use ovnkube_node::{
    Annotations, Change, ChassisSettings, CleanupSettings, CniConf, GatewaySettings, MtuSettings, NodeSettings,
    OwnNode, Reports, Standing, Tls, Warning,
};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use dir::fresh_dir;
pub use pod::Pod;
pub use release::Release;

pub const CONF: &str = r#"{"cniVersion":"0.4.0","name":"ovn-kubernetes","type":"ovn-k8s-cni-overlay"}"#;
pub const NODE: &str = "node-1";

/// The type of the datapath: `netdev`, or `system` where the kernel has Open vSwitch.
pub fn datapath() -> String {
    std::env::var("CLUSTER_DATAPATH").unwrap_or_else(|_| "netdev".to_owned())
}

/// Runs `test` in a fresh network namespace with the node's address on eth0.
pub fn in_node(test: impl FnOnce(&mut Lab) + Send + 'static) {
    in_node_of(Release::Lts, test);
}

/// Like [`in_node`], with the OVS and OVN of that release.
pub fn in_node_of(release: Release, test: impl FnOnce(&mut Lab) + Send + 'static) {
    let log =
        tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).with_test_writer();
    let _ = log.try_init();
    let test = move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("make a network namespace; run the tests as root");
        for args in [
            "link set lo up",
            "link add name eth0 type veth peer name wire",
            "addr add 172.18.0.2/16 dev eth0",
            "link set eth0 up",
            "link set wire up",
        ] {
            run("ip", &args.split(' ').collect::<Vec<_>>());
        }
        let mut lab = Lab::new(release);
        test(&mut lab);
    };
    if let Err(panic) = std::thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

pub struct Lab {
    pub release: Release,
    pub dir: PathBuf,
    pub runtime: Runtime,
    daemons: BTreeMap<&'static str, Child>,
    pods: Vec<String>,
    agent: Option<Agent>,
    /// Given to the agent at its start.
    pub sb_tls: Option<Tls>,
    /// Of the cluster and the node, sent to the agent.
    pub cluster_subnets: Vec<&'static str>,
    pub node_subnets: Vec<&'static str>,
    pub internal_ips: Vec<&'static str>,
    /// Given to the agent at its start.
    pub gateway: Option<GatewaySettings>,
    pub masquerade_subnets: Vec<&'static str>,
    /// Used in place of the MAC address of the management port.
    pub mgmt_mac: Option<ovnkube_model::Mac>,
    /// The gateway's bridge.
    pub bridge: &'static str,
    /// Given to the agent at its start.
    pub mtu: MtuSettings,
    /// The annotation of the Node.
    pub annotated_mtu: Option<u32>,
}

struct Agent {
    changes: mpsc::Sender<Change>,
    annotations: watch::Receiver<Annotations>,
    standing: Standing,
    warned: Vec<Warning>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<String>,
}

impl Lab {
    fn new(release: Release) -> Self {
        Self::within(fresh_dir("ovnkube-node"), release)
    }

    /// For another process, which shares databases and sockets with the one that created them.
    pub fn of(dir: PathBuf) -> Self {
        Self::within(dir, Release::Lts)
    }

    fn within(dir: PathBuf, release: Release) -> Self {
        // worker threads started here belong to this namespace
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self {
            release,
            dir,
            runtime,
            daemons: BTreeMap::new(),
            pods: Vec::new(),
            agent: None,
            sb_tls: None,
            cluster_subnets: vec!["10.128.0.0/14"],
            node_subnets: vec!["10.128.0.0/24"],
            internal_ips: vec!["172.18.0.2"],
            gateway: None,
            masquerade_subnets: vec!["169.254.169.0/29", "fd69::/125"],
            mgmt_mac: None,
            bridge: "br-ex",
            mtu: MtuSettings { given: Some(1400), ..MtuSettings::default() },
            annotated_mtu: None,
        }
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn unix(&self, name: &str) -> String {
        format!("unix:{}", self.path(name))
    }

    // === daemons
    /// Everything, until the agent is ready.
    pub fn start_all(&mut self) {
        self.start_ovs();
        self.start_ovn();
        self.start_agent();
        self.ready();
    }

    /// Open_vSwitch with its switch; no other program gets the frames of its ports.
    pub fn start_ovs(&mut self) {
        self.start_switch();
        Self::seal();
    }

    /// Open_vSwitch with its switch.
    pub fn start_switch(&mut self) {
        self.start_database("db", "openvswitch/vswitch.ovsschema");
        self.vsctl("--no-wait init");
        let datapath = format!("external_ids:ovn-bridge-datapath-type={}", datapath());
        self.vsctl(&format!("--no-wait set Open_vSwitch . external_ids:system-id=chassis-1 {datapath}"));
        self.start_vswitchd();
    }

    /// The host's network stack also gets the frames of the userspace switch's ports: from now on it ignores them.
    pub fn seal() {
        if datapath() == "system" {
            return; // the kernel gives frames of the switch's ports to nobody else
        }
        let rules = r#"
            table inet seal { chain pre { type filter hook prerouting priority -300; iifname { "lo", "br-int", "br-ex", "breth0", "ovn-k8s-mp0" } accept; drop; }; }
            table arp seal { chain in { type filter hook input priority 0; iifname { "lo", "br-int", "br-ex", "breth0", "ovn-k8s-mp0" } accept; drop; }; }"#;
        run("nft", &[rules]);
    }

    /// Undoes [`Lab::seal`].
    pub fn unseal() {
        if datapath() == "system" {
            return;
        }
        run("nft", &["delete table inet seal; delete table arp seal"]);
    }

    pub fn start_vswitchd(&mut self) {
        let db = self.unix("db.sock");
        let args = [db.as_str(), "--disable-system"];
        self.start("vswitchd", "ovs-vswitchd", if datapath() == "system" { &args[..1] } else { &args });
    }

    /// Databases, northd and ovn-controller, with a switch for the node.
    pub fn start_ovn(&mut self) {
        self.start_database("nb", "ovn/ovn-nb.ovsschema");
        self.start_database("sb", "ovn/ovn-sb.ovsschema");
        let (nb, sb) = (self.unix("nb.sock"), self.unix("sb.sock"));
        self.start("northd", "ovn-northd", &[&format!("--ovnnb-db={nb}"), &format!("--ovnsb-db={sb}")]);
        self.nbctl("ls-add node-1 -- lsp-add node-1 k8s-node-1 -- lsp-set-addresses k8s-node-1");
        self.nbctl_args(&["lsp-set-addresses", "k8s-node-1", "0a:58:0a:80:00:02 10.128.0.2"]);
        self.start_controller();
    }

    pub fn start_controller(&mut self) {
        let db = self.unix("db.sock");
        self.start("controller", "ovn-controller", &[&db]);
    }

    pub fn start_database(&mut self, name: &'static str, schema: &str) {
        let file = self.path(&format!("{name}.conf"));
        self.tool("ovsdb-tool", &["create", &file, &self.release.schema(schema)]);
        self.start_database_server(name);
    }

    pub fn start_database_server(&mut self, name: &'static str) {
        let (file, socket) =
            (self.path(&format!("{name}.conf")), format!("--remote=p{}", self.unix(&format!("{name}.sock"))));
        self.start(name, "ovsdb-server", &[&file, &socket]);
        // a server that was killed leaves its socket file
        let socket = self.dir.join(format!("{name}.sock"));
        eventually("a database socket", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    }

    fn start(&mut self, name: &'static str, program: &str, args: &[&str]) {
        let log = format!("--log-file={}", self.path(&format!("{name}.log")));
        let mut command = self.release.command(program);
        command.args(args).args(["-vconsole:off", "-vsyslog:off", &log]);
        if ["ovs-vswitchd", "ovn-controller"].contains(&program) {
            // its control socket is found by its pid, as on a real host
            command.arg("--pidfile");
        } else {
            command.arg(format!("--unixctl={}", self.path(&format!("{name}.ctl"))));
        }
        command.envs([("OVS_RUNDIR", &self.dir), ("OVN_RUNDIR", &self.dir)]).stdin(Stdio::null());
        let child = command.spawn().unwrap_or_else(|e| panic!("{program}: {e}; install it with lab/install"));
        self.daemons.insert(name, child);
    }

    /// The output of a program of the release.
    pub fn tool(&self, program: &str, args: &[&str]) -> String {
        output(program, self.release.command(program).args(args))
    }

    pub fn signal(&self, name: &str, signal: Signal) {
        let pid = Pid::from_raw(self.daemons[name].id().try_into().unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Like a crash.
    pub fn kill(&mut self, name: &str) {
        let mut child = self.daemons.remove(name).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn vsctl(&self, args: &str) -> String {
        self.vsctl_args(&args.split(' ').collect::<Vec<_>>())
    }

    pub fn vsctl_args(&self, args: &[&str]) -> String {
        let db = format!("--db={}", self.unix("db.sock"));
        self.tool("ovs-vsctl", &[&[db.as_str()], args].concat()).trim().to_owned()
    }

    pub fn nbctl(&self, args: &str) -> String {
        self.nbctl_args(&args.split(' ').collect::<Vec<_>>())
    }

    pub fn nbctl_args(&self, args: &[&str]) -> String {
        let db = format!("--db={}", self.unix("nb.sock"));
        self.tool("ovn-nbctl", &[&[db.as_str()], args].concat()).trim().to_owned()
    }

    // === the agent

    pub fn start_agent(&mut self) {
        shim_binary();
        self.start_agent_alone();
    }

    /// Without the shim.
    pub fn start_agent_alone(&mut self) {
        let (changes, received) = mpsc::channel(16);
        for nothing in [Change::ServicesSynced, Change::NodesSynced] {
            changes.try_send(nothing).unwrap();
        }
        let reports = Reports::default();
        let (annotated, standing) = (reports.annotations.subscribe(), reports.warnings.follow());
        let (stop, stopped) = oneshot::channel();
        let settings = self.settings();
        let task = self.runtime.spawn(async move {
            let stop = async { drop(stopped.await) };
            format!("{:?}", ovnkube_node::run(settings, received, reports, stop).await)
        });
        self.agent = Some(Agent { changes, annotations: annotated, standing, warned: Vec::new(), stop, task });
        // a crash leaves its socket, on which no process listens
        eventually("the agent listens", || std::os::unix::net::UnixStream::connect(self.socket()).is_ok());
    }

    /// What `-cleanup-node` could not remove.
    pub fn clean_up(&self) -> Vec<String> {
        self.clean_up_halted(None)
    }

    /// The same, stopped after this many steps.
    pub fn clean_up_halted(&self, halt_after: Option<usize>) -> Vec<String> {
        assert!(!self.daemons.contains_key("controller"), "ovn-controller creates br-int again: kill it first");
        let settings = self.settings();
        let gateway = settings.gateway.as_ref();
        let cleanup = CleanupSettings {
            service_cidrs: gateway.map(|gateway| gateway.service_cidrs.clone()).unwrap_or_default(),
            node: settings.node,
            ovs_remote: settings.ovs_remote,
            cni_socket: settings.cni_socket,
            cni_conf: settings.cni_conf,
            cluster_subnets: settings.cluster_subnets,
            masquerade_subnets: settings.masquerade_subnets,
            halt_after,
        };
        let left = self.runtime.block_on(async { ovnkube_node::clean_up(&cleanup).await });
        left.iter().map(ToString::to_string).collect()
    }

    /// Why the agent wires no pods.
    pub fn waits_for(&self) -> String {
        let env = [("CNI_COMMAND", "STATUS")];
        let output = self.shim_env(&env, CONF.as_bytes());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The error of an agent that cannot start.
    pub fn refusal(&mut self) -> String {
        let (_changes, received) = mpsc::channel(16);
        let run = ovnkube_node::run(self.settings(), received, Reports::default(), std::future::pending());
        let outcome = async { tokio::time::timeout(Duration::from_secs(180), run).await.expect("the agent to end") };
        self.runtime.block_on(outcome).unwrap_err().to_string()
    }

    pub fn node(&self) -> OwnNode {
        OwnNode {
            internal_ips: self.internal_ips.iter().map(|ip| ip.parse().unwrap()).collect(),
            subnets: self.node_subnets.iter().map(|subnet| subnet.parse().unwrap()).collect(),
            mtu: self.annotated_mtu,
            mgmt_mac: self.mgmt_mac,
            ..OwnNode::default()
        }
    }

    /// Sends the agent its node, and waits until pods can be wired.
    pub fn ready(&self) {
        self.send(Change::Node(self.node()));
        eventually("the network configuration", || self.conf().exists());
    }

    /// Stops the agent normally.
    pub fn stop_agent(&mut self) {
        let agent = self.agent.take().unwrap();
        agent.stop.send(()).unwrap();
        assert_eq!(self.runtime.block_on(agent.task).unwrap(), "Ok(())");
    }

    /// Stops the agent like a crash.
    pub fn crash_agent(&mut self) {
        let agent = self.agent.take().unwrap();
        agent.task.abort();
        let _ = self.runtime.block_on(agent.task);
    }

    pub fn send(&self, change: Change) {
        self.agent.as_ref().unwrap().changes.blocking_send(change).unwrap();
    }

    /// The agent's warnings that did not stand at the last call.
    pub fn warnings(&mut self) -> Vec<Warning> {
        let agent = self.agent.as_mut().unwrap();
        let now = agent.standing.now();
        let before = std::mem::replace(&mut agent.warned, now.clone());
        now.into_iter().filter(|warning| !before.contains(warning)).collect()
    }

    /// Annotations that have a value.
    pub fn annotations(&self) -> Annotations {
        let mut annotations = self.all_annotations();
        annotations.retain(|_, text| !text.is_empty());
        annotations
    }

    /// An empty value means that the annotation is removed.
    pub fn all_annotations(&self) -> Annotations {
        self.agent.as_ref().unwrap().annotations.borrow().clone()
    }

    pub fn conf(&self) -> PathBuf {
        self.dir.join("net.d/10-ovn-kubernetes.conflist")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("cni/ovn-cni-server.sock")
    }

    fn settings(&self) -> NodeSettings {
        NodeSettings {
            node: NODE.into(),
            zone: "global".into(),
            mtu: self.mtu.clone(),
            cluster_subnets: self.cluster_subnets.iter().map(|range| range.parse().unwrap()).collect(),
            masquerade_subnets: self.masquerade_subnets.iter().map(|range| range.parse().unwrap()).collect(),
            ovs_remote: self.unix("db.sock"),
            ovn_run_dir: self.dir.clone(),
            cni_socket: self.socket(),
            cni_conf: CniConf {
                dir: self.dir.join("net.d"),
                plugins: self.dir.join("bin"),
                plugin: "ovn-k8s-cni-overlay".into(),
                log_file: self.path("shim.log"),
                log_level: 5,
                log_max_size: 100,
                log_max_backups: 5,
                log_max_age: 5,
            },
            // no longer than one observation takes
            patience: Duration::from_secs(1),
            chassis: ChassisSettings {
                sb_remote: self.unix("sb.sock"),
                sb_tls: self.sb_tls.clone(),
                encap_type: "geneve".into(),
                remote_probe_interval: 100_000,
                openflow_probe_interval: 180,
                monitor_all: true,
                lflow_cache: true,
                set_local_ip: true,
                ..ChassisSettings::default()
            },
            gateway: self.gateway.clone(),
            ..NodeSettings::default()
        }
    }

    // === pods

    /// A pod's namespace and its logical port, as the controller would create it. `n` is the last
    /// part of its address.
    pub fn pod(&mut self, name: &str, n: u8) -> Pod {
        let pod = self.bare_pod(name, n);
        if self.daemons.contains_key("nb") {
            let port = format!("default_{name}");
            self.nbctl_args(&[
                "lsp-add",
                NODE,
                &port,
                "--",
                "lsp-set-addresses",
                &port,
                &format!("{} 10.128.0.{n}", pod.mac()),
                "--",
                "lsp-set-options",
                &port,
                &format!("iface-id-ver={}", pod.uid),
            ]);
        }
        pod
    }

    /// A namespace's name that no other test uses.
    fn netns(&self, name: &str) -> String {
        format!("{}-{name}", self.dir.file_name().unwrap().display())
    }

    /// Only a namespace.
    pub fn bare_pod(&mut self, name: &str, n: u8) -> Pod {
        let netns = self.netns(name);
        run("ip", &["netns", "add", &netns]);
        self.pods.push(netns.clone());
        Pod { name: name.to_owned(), uid: format!("uid-{name}"), netns, n }
    }

    pub fn annotate(&self, pod: &Pod) {
        self.send(Change::Pod(pod.key(), Some(pod.annotated())));
    }

    pub fn shim(&self, pod: &Pod, container_id: &str, command: &str) -> Output {
        self.shim_of(pod, container_id, command, "eth0")
    }

    /// Like [`Lab::shim`], for an interface of another name.
    pub fn shim_of(&self, pod: &Pod, container_id: &str, command: &str, interface: &str) -> Output {
        let args = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={};K8S_POD_UID={};X=a=b",
            pod.name, pod.uid
        );
        self.shim_env(
            &[
                ("CNI_COMMAND", command),
                ("CNI_CONTAINERID", container_id),
                ("CNI_NETNS", &pod.path()),
                ("CNI_IFNAME", interface),
                ("CNI_ARGS", &args),
            ],
            CONF.as_bytes(),
        )
    }

    pub fn shim_env(&self, env: &[(&str, &str)], stdin: &[u8]) -> Output {
        let mut child = Command::new(shim_binary())
            .env_clear()
            .envs(env.iter().copied())
            .env("OVN_CNI_SOCKET", self.socket())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // the shim stops reading at its limit
        let _ = child.stdin.take().unwrap().write_all(stdin);
        child.wait_with_output().unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for child in self.daemons.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for netns in &self.pods {
            let _ = Command::new("ip").args(["netns", "del", netns]).output();
        }
        if std::thread::panicking() {
            eprintln!("logs are in {}", self.dir.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// A container id that starts with `name` and is as long as containerd's.
pub fn container(name: &str) -> String {
    format!("{name:0<64}")
}

pub fn result(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).unwrap() }
}

/// Code and message of a CNI error.
pub fn error(output: &Output) -> (u64, String) {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    (
        error["code"].as_u64().unwrap(),
        format!("{} {}", error["msg"].as_str().unwrap(), error["details"].as_str().unwrap()),
    )
}

pub fn run(program: &str, args: &[&str]) -> String {
    output(program, Command::new(program).args(args))
}

fn output(program: &str, command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{program}: {e}; install it with lab/install"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The time limit is far above what any step here needs.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(180), "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The shim, built in the same way as these tests.
fn shim_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        run(
            env!("CARGO"),
            &[
                "build",
                "--quiet",
                "--manifest-path",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"),
                "-p",
                "ovn-k8s-cni-overlay",
            ],
        );
        let test = std::env::current_exe().unwrap();
        test.parent().unwrap().parent().unwrap().join("ovn-k8s-cni-overlay")
    })
}
