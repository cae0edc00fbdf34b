//! What the shim and the socket refuse, without changing anything.
#![allow(clippy::unwrap_used)]

mod lab;

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::Command;

use lab::{CONF, Lab, container, error, eventually, in_node, run};
use ovnkube_node::Change;

/// The names of all links.
fn links() -> String {
    run("ip", &["-o", "link"]).lines().filter_map(|line| line.split(": ").nth(1)).collect::<Vec<_>>().join(" ")
}

fn good_env(netns: &str) -> Vec<(&'static str, String)> {
    vec![
        ("CNI_COMMAND", "ADD".into()),
        ("CNI_CONTAINERID", container("abc")),
        ("CNI_NETNS", netns.into()),
        ("CNI_IFNAME", "eth0".into()),
        ("CNI_ARGS", "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=uid-web".into()),
    ]
}

fn add(lab: &Lab, netns: &str, change: (&str, &str), stdin: &[u8]) -> (u64, String) {
    let env = good_env(netns);
    let env: Vec<(&str, &str)> =
        env.iter().map(|(key, value)| if *key == change.0 { change } else { (*key, value.as_str()) }).collect();
    error(&lab.shim_env(&env, stdin))
}

#[test]
fn bad_requests_change_nothing() {
    in_node(|lab| {
        lab.start_ovs();
        lab.start_agent();
        lab.send(Change::Node(lab.node()));
        eventually("the node's links", || ["br-int", "ovn-k8s-mp0"].iter().all(|link| links().contains(link)));
        let pod = lab.pod("web", 3);
        lab.annotate(&pod);
        let netns = pod.path();
        let (before, ports) = (links(), lab.vsctl("list-ports br-int"));
        let deep = "[".repeat(100_000);
        let deep_value = format!(r#"{{"cniVersion":"0.4.0","x":{}}}"#, "[".repeat(10_000) + &"]".repeat(10_000));
        let long = vec![b' '; 10 << 20];
        let wrong = br#"{"cniVersion":"0.4.0","runtimeConfig":[1]}"#;
        for stdin in [
            b"".as_slice(),
            b"{",
            b"[]",
            b"\xff",
            br#"{"cniVersion":{}}"#,
            wrong,
            deep.as_bytes(),
            deep_value.as_bytes(),
            &long,
        ] {
            assert_eq!(add(lab, &netns, ("", ""), stdin).0, 6);
        }
        let file = lab.dir.join("regular");
        std::fs::write(&file, "x").unwrap();
        let link = lab.dir.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let changes = [
            ("CNI_CONTAINERID", "../../etc"),
            ("CNI_CONTAINERID", "a/b"),
            ("CNI_CONTAINERID", ".."),
            ("CNI_CONTAINERID", ""),
            ("CNI_IFNAME", "../x"),
            ("CNI_IFNAME", ".."),
            ("CNI_IFNAME", "much-too-long-name"),
            ("CNI_NETNS", link.to_str().unwrap()),
            ("CNI_NETNS", "/run/netns/../netns/x"),
            ("CNI_NETNS", "/run/netns/no-such-thing"),
            ("CNI_NETNS", "/dev/null"),
            ("CNI_NETNS", "/proc/self/ns/mnt"),
            ("CNI_ARGS", "K8S_POD_NAMESPACE=../x;K8S_POD_NAME=web"),
            ("CNI_COMMAND", "EXEC"),
        ];
        for change in changes {
            let (code, text) = add(lab, &netns, change, CONF.as_bytes());
            assert!(code == 4 || code == 999, "{change:?}: {code} {text}");
        }
        assert_eq!(links(), before);
        assert_eq!(lab.vsctl("list-ports br-int"), ports);
        assert!(!pod.ip_cmd("-o link").contains("eth0"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
    });
}

/// The agent's own namespace cannot be a pod's.
#[test]
fn the_nodes_own_namespace_is_refused() {
    in_node(|lab| {
        lab.start_agent();
        let own = format!("/proc/{}/task/{}/ns/net", std::process::id(), nix::unistd::gettid());
        let (code, text) = add(lab, &own, ("", ""), CONF.as_bytes());
        assert!(code == 4 && text.contains("it is the node's own"), "{code} {text}");
    });
}

#[test]
fn without_ovs_requests_fail_but_are_answered() {
    in_node(|lab| {
        lab.start_agent();
        let (code, text) = error(&lab.shim_env(&[("CNI_COMMAND", "STATUS")], CONF.as_bytes()));
        assert!(code == 50 && text.contains("cannot wire pods: there is no connection"), "{code} {text}");
        // an agent that was killed a moment ago found the node ready
        let stamp = lab.socket().with_file_name("ready");
        eventually("STATUS of the one before", || {
            std::fs::write(&stamp, "x").unwrap();
            lab.shim_env(&[("CNI_COMMAND", "STATUS")], CONF.as_bytes()).status.success()
        });
        eventually("STATUS of this one", || {
            !lab.shim_env(&[("CNI_COMMAND", "STATUS")], CONF.as_bytes()).status.success()
        });
        assert!(!lab.conf().exists());
    });
}

#[test]
fn raw_bytes_on_the_socket() {
    in_node(|lab| {
        lab.start_agent();
        let ask = |bytes: &[u8]| {
            let mut stream = UnixStream::connect(lab.socket()).unwrap();
            // the server may close the connection before it has read everything
            let _ = stream.write_all(bytes);
            let mut reply = String::new();
            let _ = stream.read_to_string(&mut reply);
            reply.lines().next().unwrap_or_default().to_owned()
        };
        let post =
            |body: &str| ask(format!("POST / HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        assert_eq!(ask(b"\0\0\0 garbage \r\n\r\n"), "HTTP/1.1 400 Bad Request");
        assert_eq!(ask(b"GET / HTTP/1.0\r\n\r\n"), "HTTP/1.0 405 Method Not Allowed");
        assert_eq!(post(""), "HTTP/1.0 400 Bad Request");
        assert_eq!(post(&"[".repeat(500_000)), "HTTP/1.0 400 Bad Request");
        assert_eq!(post(&" ".repeat(1_100_000)), "HTTP/1.0 413 Payload Too Large");
        // what a shim of the Go original sends after its work
        assert_eq!(ask(b"POST /metrics HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}"), "HTTP/1.0 200 OK");
    });
}

#[test]
fn only_root_can_connect() {
    in_node(|lab| {
        // the directory of an earlier agent, open to everyone
        std::fs::create_dir_all(lab.socket().parent().unwrap()).unwrap();
        std::fs::write(lab.socket(), "").unwrap();
        lab.start_agent();
        eventually("the socket", || UnixStream::connect(lab.socket()).is_ok());
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(lab.socket().parent().unwrap()), mode(&lab.socket())), (0o700, 0o600));
        // even if someone opens it
        let open = |path: &std::path::Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        open(&lab.dir, 0o755);
        open(lab.socket().parent().unwrap(), 0o755);
        open(&lab.socket(), 0o666);
        let socket = lab.socket().display().to_string();
        let nobody = [
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "curl",
            "-s",
            "--unix-socket",
            &socket,
            "-d",
            "{}",
            "http://dummy/",
        ];
        let output = Command::new("setpriv").args(nobody).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
        let root = Command::new("curl").args(&nobody[4..]).output().unwrap();
        assert!(root.status.success() && !root.stdout.is_empty(), "{root:?}");
    });
}

/// What it waits for does not come any more: the cluster's values changed, and another agent runs in its place.
#[test]
fn an_agent_that_ends_answers_what_it_was_asked() {
    in_node(|lab| {
        lab.start_agent();
        let pod = lab.bare_pod("web", 3);
        let mut stream = UnixStream::connect(lab.socket()).unwrap();
        let env: serde_json::Map<_, _> =
            good_env(&pod.path()).into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        let body = serde_json::json!({"env": env, "config": "e30="}).to_string();
        write!(stream, "POST / HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        eventually("the request", || lab.asked() > 0);
        // it has accepted the connection by then
        std::thread::sleep(std::time::Duration::from_secs(3));
        lab.crash_agent();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.contains("cni-code: 11") && reply.contains("the node agent ends or starts over"), "{reply}");
    });
}

#[test]
fn a_second_agent_does_not_start_and_takes_nothing_from_the_first() {
    in_node(|lab| {
        lab.start_ovs();
        lab.start_agent();
        let refusal = lab.refusal();
        assert!(refusal.contains("another node agent does; stop that one"), "{refusal}");
        UnixStream::connect(lab.socket()).unwrap();
    });
}
