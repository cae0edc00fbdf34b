//! How an agent starts on a host: alone, or not at all; with the CNI program, or with an Event that says why not. There is no Open
//! vSwitch, so that nothing of this host is changed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ovnkube_tests::nb::until;

use crate::lab::Lab;
use crate::process::Process;

const CONF: &str = "10-ovn-kubernetes.conflist";
const PROGRAM: &str = "ovn-k8s-cni-overlay";

/// A host with the CNI program and the configuration of an agent that was killed.
async fn host() -> Lab {
    let lab = Lab::new().await;
    lab.api.node("n1").await;
    for dir in ["bin", "net.d", "first", "second"] {
        fs::create_dir(lab.dir.file(dir)).unwrap();
    }
    fs::write(lab.dir.file("net.d").join(CONF), "{}").unwrap();
    fs::write(lab.dir.file("bin").join(PROGRAM), "an older one").unwrap();
    for image in ["first", "second"] {
        fs::write(lab.dir.file(image).join(PROGRAM), image).unwrap();
    }
    let at = |name: &str| lab.dir.file(name).display().to_string();
    let config =
        format!("[ovspaths]\nrun-dir={}\n[cni]\nconf-dir={}\nbin-dir={}\n", at("none"), at("net.d"), at("bin"));
    fs::write(lab.dir.file("agent.conf"), config).unwrap();
    lab
}

/// The command line of the agent of an image.
fn words(lab: &Lab, image: &str, more: &[String]) -> Vec<String> {
    let mut words = vec![
        "--init-node=n1".to_owned(),
        format!("--config-file={}", lab.dir.file("agent.conf").display()),
        format!("--k8s-kubeconfig={}", lab.api.agent("n1").display()),
        "--sb-address=tcp:127.0.0.1:1".to_owned(),
        format!("--cni-program={}", lab.dir.file(image).join(PROGRAM).display()),
    ];
    words.extend_from_slice(more);
    words
}

fn installed(lab: &Lab) -> String {
    fs::read_to_string(lab.dir.file("bin").join(PROGRAM)).unwrap()
}

async fn why(lab: &Lab) -> Vec<String> {
    let events = lab.api.events("n1").await;
    events.into_iter().filter(|(reason, _)| reason == "AgentEnded").map(|(_, said)| said).collect()
}

/// The log of the second of two agents, which ends by itself, while the first one runs. Both see the directory of the host's sockets.
async fn second(lab: &Lab, more: &[String]) -> String {
    let both =
        "mkdir -p /run/ovn-kubernetes && mount -t tmpfs none /run/ovn-kubernetes || exit; log=$1 first=$2; shift 2
        \"$@\" \"--cni-program=$first\" >\"$log\" 2>&1 & first=$!
        until grep -qs 'the CNI program is installed' \"$log\"; do sleep 0.1; done
        \"$@\"; code=$?; kill -9 $first; wait; exit $code";
    let log = lab.dir.file("first.log").display().to_string();
    let first = lab.dir.file("first").join(PROGRAM).display().to_string();
    let by = ["unshare", "-m", "sh", "-c", both, "sh", &log, &first];
    let words = words(lab, "second", more);
    let mut agents = Process::under(&lab.dir.file("second.log"), &by, words);
    until("the second agent's end", async || !agents.is_running()).await;
    agents.log()
}

fn nothing_changed(lab: &Lab, log: &str) {
    assert_eq!(installed(lab), "first", "{log}");
    assert_eq!(fs::read_dir(lab.dir.file("bin")).unwrap().count(), 1, "{log}");
    assert_conf_stays(&lab.dir.file("net.d"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_agent_of_a_host_names_the_pidfile_and_changes_nothing() {
    let lab = host().await;
    let pidfile = lab.dir.file("ovnkube.pid").display().to_string();
    let log = second(&lab, &[format!("--pidfile={pidfile}")]).await;
    nothing_changed(&lab, &log);
    let text = format!("cannot take pidfile {pidfile}: process ");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(&text)).collect();
    assert!(lines.len() == 1 && log.lines().count() == 1, "{log}");
    assert!(lines[0].contains("runs already; stop it, its DaemonSet or its unit: a host has one node agent"), "{log}");
    let said = why(&lab).await;
    assert!(said.len() == 1 && said[0].contains(&text) && said[0].contains("its DaemonSet or its unit"), "{said:?}");
}

/// Of another directory with sockets, or a unit of the host without a pidfile.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_agent_with_another_pidfile_names_the_socket_and_changes_nothing() {
    let lab = host().await;
    let log = second(&lab, &[]).await;
    nothing_changed(&lab, &log);
    let text = "cannot serve /var/run/ovn-kubernetes/cni/ovn-cni-server.sock: another node agent does; stop that one";
    assert_eq!(log.lines().filter(|line| line.contains(text)).count(), 1, "{log}");
    let said = why(&lab).await;
    assert!(said.len() == 1 && said[0].contains(text), "{said:?}");
}

/// An agent that cannot install the CNI program, in the host's directory as `mount` makes it.
async fn refused(lab: &Lab, mount: &str, text: &str) {
    let script = format!(
        "mkdir -p /run/ovn-kubernetes && mount -t tmpfs none /run/ovn-kubernetes && bin=$1 && shift && {{ {mount}; }} || exit 9
         \"$@\"; code=$?; echo ended $code; ls -A $bin; cat $bin/{PROGRAM}; exit $code"
    );
    let bin = lab.dir.file("bin");
    let by = ["unshare", "-m", "sh", "-c", &script, "sh", &bin.display().to_string()];
    let mut agent = Process::under(&lab.dir.file("log"), &by, words(lab, "first", &[]));
    until("the agent's end", async || !agent.is_running()).await;
    let log = agent.log();
    let text = format!("cannot install the CNI program in {}: {text}", bin.display());
    assert_eq!(log.lines().filter(|line| line.contains(&text)).count(), 1, "{log}");
    // nothing half installed
    assert!(log.ends_with(&format!("\n{PROGRAM}\nan older one")), "{log}");
    assert_conf_stays(&lab.dir.file("net.d"));
    let said = why(lab).await;
    let remedy = "mount the host's /opt/cni/bin there, writable";
    assert!(said.iter().any(|said| said.contains(&text) && said.contains(remedy)), "{said:?} {log}");
}

fn assert_conf_stays(dir: &Path) {
    assert_eq!(fs::read_to_string(dir.join(CONF)).unwrap(), "{}");
    assert_eq!(fs::read_dir(dir).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_directory_of_cni_programs_cannot_be_written_says_so_in_an_event() {
    let lab = host().await;
    refused(&lab, "mount --bind $bin $bin && mount -o remount,ro,bind $bin", "Read-only file system").await;
    let lab = host().await;
    let full = format!("mount -t tmpfs -o size=4k none $bin && printf %s 'an older one' >$bin/{PROGRAM}");
    refused(&lab, &full, "No space left on device").await;
}

/// What the probes of `dist/yaml/ovnkube.yaml` say, where the agent's socket is.
fn probes(lab: &Lab, agent: &Process) -> (String, String) {
    let ask = |target: &str| {
        let mut command = Command::new("nsenter");
        command.args([
            "-m",
            "-t",
            &agent.id().to_string(),
            env!("CARGO_BIN_EXE_ovnkube"),
            "readiness-probe",
            "-t",
            target,
        ]);
        let out = command.arg(format!("--cni-conf-dir={}", lab.dir.file("net.d").display())).output().unwrap();
        let text = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.success(), text.is_empty(), "{text}");
        text
    };
    (ask("ovnkube-node"), ask("ovnkube-node-alive"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_hangs_is_neither_ready_nor_alive_and_one_without_the_api_server_is_alive() {
    let lab = host().await;
    let words = words(&lab, "first", &[]);
    lab.api.kill();
    let agent = Process::apart(&lab.dir.file("log"), words);
    let waits = |(ready, alive): (String, String), why: &str| alive.is_empty() && ready.contains(why);
    until("it does not listen yet", async || waits(probes(&lab, &agent), "no agent listens at its socket")).await;
    // then it listens, and all that does not need the API server goes on. The configuration is of the agent before
    let is_alive = || waits(probes(&lab, &agent), "the agent has not found its node ready for pods");
    until("it listens", async || is_alive()).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(is_alive(), "{:?} {}", probes(&lab, &agent), agent.log());
    agent.signal("STOP");
    let (ready, alive) = probes(&lab, &agent);
    assert_eq!(ready, "ovnkube: ovnkube-node is not ready: no answer within 5 s\n");
    assert_eq!(alive, "ovnkube: ovnkube-node-alive is not ready: no answer within 5 s\n");
    agent.signal("CONT");
    until("it works again", async || is_alive()).await;
    agent.kill();
    lab.api.start();
}
