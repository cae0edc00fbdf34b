//! The built program with a test socket: what the runtime and the agent see.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const CONF: &str = r#"{"cniVersion":"0.4.0","name":"ovn-kubernetes","type":"ovn-k8s-cni-overlay"}"#;

struct Agent {
    socket: PathBuf,
    thread: JoinHandle<String>,
}

/// Answers one request with `reply` and returns the request.
fn agent(name: &str, reply: &str) -> Agent {
    let socket = std::env::temp_dir().join(format!("shim-{}-{name}.sock", std::process::id()));
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    let reply = reply.to_owned();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = String::new();
        let mut buffer = [0; 4096];
        while !complete(&asked) {
            let n = stream.read(&mut buffer).unwrap();
            asked.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
        }
        stream.write_all(reply.as_bytes()).unwrap();
        asked
    });
    Agent { socket, thread }
}

fn complete(asked: &str) -> bool {
    let Some((head, body)) = asked.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).unwrap();
    body.len() >= length.parse::<usize>().unwrap()
}

fn shim(command: &str, socket: &std::path::Path, stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ovn-k8s-cni-overlay"))
        .env_clear()
        .envs([
            ("CNI_COMMAND", command),
            ("CNI_CONTAINERID", "abc"),
            ("CNI_IFNAME", "eth0"),
            ("CNI_ARGS", "A=b=c"),
            ("SECRET", "x"),
        ])
        .env("OVN_CNI_SOCKET", socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // the shim stops reading at its limit: a broken pipe is right
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

fn error(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!error["msg"].as_str().unwrap().is_empty());
    error
}

#[test]
fn add_forwards_and_converts() {
    let agent = agent(
        "add",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"Result\":{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.3/24\"}]}}",
    );
    let output = shim("ADD", &agent.socket, CONF.as_bytes());
    let asked = agent.thread.join().unwrap();
    assert!(asked.starts_with("POST / HTTP/1.0\r\nHost: dummy\r\n"), "{asked}");
    let body: Value = serde_json::from_str(asked.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(
        body["env"],
        json!({"CNI_COMMAND": "ADD", "CNI_CONTAINERID": "abc", "CNI_IFNAME": "eth0", "CNI_ARGS": "A=b=c"})
    );
    assert!(body["config"].as_str().unwrap().starts_with("eyJjbmlWZXJzaW9uIjoiMC40LjAi"));
    assert_eq!(output.status.code(), Some(0));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result, json!({"cniVersion": "0.4.0", "dns": {}, "ips": [{"version": "4", "address": "10.0.0.3/24"}]}));
}

#[test]
fn del_prints_nothing() {
    let agent = agent("del", "HTTP/1.1 200 OK\r\n\r\n{\"Result\":null}");
    let output = shim("DEL", &agent.socket, CONF.as_bytes());
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn the_agents_error_is_printed_with_its_code() {
    let agent = agent("err", "HTTP/1.1 400 Bad Request\r\nCNI-Code: 7\r\n\r\n[a/b] invalid netns\n");
    let error = error(&shim("ADD", &agent.socket, CONF.as_bytes()));
    assert_eq!(
        (&error["code"], &error["msg"], &error["cniVersion"]),
        (&json!(7), &json!("[a/b] invalid netns"), &json!("0.4.0"))
    );
}

#[test]
fn half_a_reply_is_an_error() {
    let agent = agent("half", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"Result\":{}}");
    assert_eq!(error(&shim("ADD", &agent.socket, CONF.as_bytes()))["code"], 11);
}

#[test]
fn no_agent() {
    let nowhere = PathBuf::from("/nonexistent/cni.sock");
    assert_eq!(error(&shim("ADD", &nowhere, CONF.as_bytes()))["code"], 11);
    assert_eq!(error(&shim("STATUS", &nowhere, CONF.as_bytes()))["code"], 50);
    // VERSION needs none
    let output = shim("VERSION", &nowhere, br#"{"cniVersion":"1.0.0"}"#);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["cniVersion"], "1.0.0");
}

/// The kubelet would take the pods of a node out of their services as soon as its agent is restarted.
#[test]
fn a_node_stays_ready_for_a_while_without_its_agent() {
    let dir = std::env::temp_dir().join(format!("shim-{}-ready", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let socket = dir.join("cni.sock");
    let ready = std::fs::File::create(dir.join("ready")).unwrap();
    let status = || shim("STATUS", &socket, CONF.as_bytes());
    let now = std::time::SystemTime::now();
    ready.set_modified(now).unwrap();
    let output = status();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"".as_slice()));
    assert_eq!(error(&shim("ADD", &socket, CONF.as_bytes()))["code"], 11);
    for other in [now - Duration::from_secs(31), now + Duration::from_secs(3600)] {
        ready.set_modified(other).unwrap();
        assert_eq!(error(&status())["code"], 50);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A stopped agent accepts connections nevertheless: the kernel does that for it.
#[test]
fn an_agent_that_hangs() {
    let socket = std::env::temp_dir().join(format!("shim-{}-hangs.sock", std::process::id()));
    let _ = std::fs::remove_file(&socket);
    let _nobody_accepts = UnixListener::bind(&socket).unwrap();
    let started = Instant::now();
    let error = error(&shim("STATUS", &socket, CONF.as_bytes()));
    let took = started.elapsed();
    assert_eq!(error["code"], 50);
    assert!(
        error["details"]
            .as_str()
            .unwrap()
            .ends_with("within 5 s: the agent hangs or is stopped; see that ovnkube runs on this node")
    );
    // ADD may take two minutes
    assert!(took < Duration::from_secs(60), "{took:?}");
    std::fs::remove_file(&socket).unwrap();
}

#[test]
fn bad_stdin_is_a_cni_error() {
    let nowhere = PathBuf::from("/nonexistent/cni.sock");
    let deep = "[".repeat(100_000);
    let long = vec![b' '; 10 << 20];
    for stdin in [b"".as_slice(), b"{", b"[]", b"null", b"\xff\xfe", br#"{"cniVersion":7}"#, deep.as_bytes(), &long] {
        assert_eq!(error(&shim("ADD", &nowhere, stdin))["code"], 6);
    }
    assert_eq!(error(&shim("ADD", &nowhere, br#"{"cniVersion":"9.9.9"}"#))["code"], 1);
    assert_eq!(error(&shim("", &nowhere, CONF.as_bytes()))["code"], 4);
}

/// At a terminal nobody ends the input.
#[test]
fn without_a_command_it_does_not_wait_for_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ovn-k8s-cni-overlay"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it waits");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(input);
    assert_eq!(error(&child.wait_with_output().unwrap())["code"], 4);
}

#[test]
fn log_file_is_written_and_rotated() {
    let directory = std::env::temp_dir().join(format!("shim-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("shim.log");
    std::fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    let conf = json!({"cniVersion": "0.4.0", "logFile": path, "logLevel": "5", "logfile-maxsize": 1, "logfile-maxbackups": 1, "logfile-maxage": 5});
    shim("ADD", &PathBuf::from("/nonexistent/cni.sock"), conf.to_string().as_bytes());
    let line = std::fs::read_to_string(&path).unwrap();
    assert!(line.contains("ERROR ADD abc eth0 A=b=c: code 11"), "{line}");
    std::fs::remove_file(path).unwrap();
    let aside: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap()).collect();
    let [aside] = aside.as_slice() else { panic!("{aside:?}") };
    assert!(aside.file_name().into_string().unwrap().starts_with("shim-20"), "{aside:?}");
    assert_eq!(aside.metadata().unwrap().len(), 1 << 20);
    std::fs::remove_dir_all(directory).unwrap();
}
