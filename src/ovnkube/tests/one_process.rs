//! How one process behaves: its end, its metrics, its log, its recordings.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use ovnkube_ovn::nb::logical_switch_port::TABLE as LSP;
use ovnkube_tests::nb::until;

use crate::lab::{Dir, Lab};
use crate::process::{Process, ovnkube, soon};

/// Times of the lease that are too long to wait for in these tests.
const PATIENT: [&str; 2] = ["--ha-election-lease-duration=600", "--ha-election-renew-deadline=500"];

fn ends_soon(process: Process) {
    let log = process.log();
    let (status, took) = process.terminate();
    assert!(status.success(), "{status}: {log}");
    assert!(took < soon(), "took {took:?} to end: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_soon_whatever_the_api_does() {
    let lab = Lab::new().await;
    lab.api.node("a").await;
    let process = lab.start("init-master=one", &PATIENT);
    lab.ready(&process).await;
    ends_soon(process);

    let process = lab.start("init-master=one", &PATIENT);
    lab.ready(&process).await;
    lab.api.pause();
    ends_soon(process);
    lab.api.kill();
    ends_soon(lab.start("init-master=one", &PATIENT).after("trying again").await);
    lab.api.start();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_soon_before_the_api_ever_answered() {
    let dir = Dir::new();
    let config = dir.file("ovn_k8s.conf");
    std::fs::write(&config, "").unwrap();
    let config = format!("--config-file={}", config.display());
    for mode in ["--init-master=one", "--init-cluster-manager=one", "--init-ovnkube-controller=one"] {
        // connections are accepted but never answered; one for each process, which may make more than are accepted here
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let apiserver = format!("--k8s-apiserver=http://{}", silent.local_addr().unwrap());
        let words = [mode, &apiserver, &config, "--nb-address=tcp:127.0.0.1:1"].into_iter().chain(PATIENT);
        let process = Process::start(&dir.file("log"), words);
        drop(silent.accept().unwrap());
        let (held, _) = silent.accept().unwrap();
        ends_soon(process);
        drop(held);
    }
}

/// With the lease it first looks up where the databases are.
#[tokio::test(flavor = "multi_thread")]
async fn it_ends_soon_while_a_name_server_is_silent() {
    let lab = Lab::new().await;
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let address = IpAddr::from([127, a | 128, b, c]);
    let silent = UdpSocket::bind((address, 53)).unwrap();
    let resolver = lab.dir.file("resolv.conf");
    std::fs::write(&resolver, format!("nameserver {address}\noptions timeout:30\n")).unwrap();
    let mounted = format!("mount --bind {} /etc/resolv.conf && exec \"$@\"", resolver.display());
    let words = [
        "--init-ovnkube-controller=one".to_owned(),
        format!("--k8s-kubeconfig={}", lab.api.kubeconfig().display()),
        "--nb-address=tcp:db.example:6641".to_owned(),
        format!("--sb-address=unix:{}", lab.sb.socket().display()),
    ];
    let words = words.into_iter().chain(lab.common(&[]));
    let log = lab.dir.file("log");
    let process = Process::under(&log, &["unshare", "-m", "sh", "-c", &mounted, "sh"], words);
    ends_soon(process.after("holds the lease").await);
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("cannot find the addresses of a host"), "it waited for the name server: {log}");
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_file_without_room_is_reported_once() {
    let dir = Dir::new();
    let config = format!("--config-file={}", dir.file("none").display());
    std::fs::write(dir.file("none"), "").unwrap();
    let words =
        ["--init-master=one", "--k8s-apiserver=http://127.0.0.1:1", "--nb-address=tcp:127.0.0.1:1", "--loglevel=5"];
    let full = words.into_iter().chain([&*config, "--logfile=/dev/full"]);
    let mut process =
        Process::start(&dir.file("log"), full).after("cannot write log file /dev/full: No space left").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(process.is_running(), "{}", process.log());
    assert_eq!(process.log().lines().count(), 1, "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_show_the_leader() {
    let lab = Lab::new().await;
    // addresses of loopback that no other process has, and that no client has: one that asks before they are listened at
    // could connect to itself
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let [first, second] = [9409, 9410].map(|port| SocketAddr::from(([127, a | 128, b, c], port)));
    let one = lab.start("init-master=one", &[&format!("--metrics-bind-address={first}")]);
    lab.ready(&one).await;
    let two = lab.start("init-master=two", &[&format!("--metrics-bind-address={second}")]);
    until("the second listens", async || TcpStream::connect(second).is_ok()).await;
    assert!(get(first, "/metrics").lines().any(|line| line == "ovnkube_controller_leader 1"));
    assert!(get(second, "/metrics").lines().any(|line| line == "ovnkube_controller_leader 0"));
    for address in [first, second] {
        assert!(get(address, "/healthz").starts_with("HTTP/1.0 200 "));
    }
    assert!(one.terminate().0.success());
    until("the second leads", async || get(second, "/metrics").contains("ovnkube_controller_leader 1\n")).await;
    drop(two);
}

pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_never_logged() {
    let lab = Lab::new().await;
    let token = std::fs::read_to_string(lab.api.kubeconfig().with_extension("token")).unwrap().trim().to_owned();
    let wrong: String = token.chars().rev().collect();
    let nb = format!("--nb-address=unix:{}", lab.nb.socket().display());
    let start = |token: &str, server: &str, name: &str| {
        let api = [
            "--init-master=one".to_owned(),
            format!("--k8s-apiserver={server}"),
            format!("--k8s-cacert={}", lab.api.file("ca.crt").display()),
            format!("--k8s-token={token}"),
            nb.clone(),
        ];
        Process::start(&lab.dir.file(name), api.into_iter().chain(lab.common(&["--loglevel=5"])))
    };
    let refused = start(&wrong, &lab.api.url(), "wrong").after("Unauthorized").await;
    assert!(!refused.log().contains(&wrong), "the refused token is logged");
    drop(refused);
    let away = start(&token, "https://127.0.0.1:1", "away").after("trying again").await;
    assert!(!away.log().contains(&token), "the token is logged where the API is away");
    drop(away);

    lab.api.node("a").await;
    lab.api.pod("one", "a").await;
    let process = start(&token, &lab.api.url(), "log");
    lab.wired(1).await;
    // changes by others are logged on level 5
    lab.nb.nbctl(&["lsp-set-port-security", "default_one"]);
    let process = process.after("DEBUG").await;
    assert!(!process.log().contains(&token), "the token is logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_shows_what_was_written() {
    let lab = Lab::new().await;
    let recording = lab.dir.file("recording");
    let process = lab.start("init-master=one", &[&format!("--record={}", recording.display())]);
    for node in ["a", "b"] {
        lab.api.node(node).await;
        lab.api.pod(&format!("on-{node}"), node).await;
    }
    lab.api.pod("gone", "a").await;
    lab.wired(3).await;
    lab.api.delete_pod("gone").await;
    lab.wired(2).await;
    process.kill();
    if std::env::var_os("WRITE").is_some() {
        let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/release/recording");
        std::fs::write(kept, std::fs::read(&recording).unwrap()).unwrap();
    }
    let out = ovnkube(["replay".as_ref(), recording.as_os_str()]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let nb = lab.nb.client().await;
    let rows: Vec<_> = nb.cache().iter(LSP).map(|(_, row)| row.to_string()).filter(|row| row.contains("pod")).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        assert!(text.lines().any(|line| line.trim() == row), "{row} is not in the replay:\n{text}");
    }
    assert!(!text.contains("default_gone"), "{text}");
}
