//! Tests without a node: requests, bandwidths, annotations, the wanted state.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ovnkube_host::Net;
use ovnkube_model::PodKey;
use ovnkube_telemetry::NodeHealth;
use serde_json::{Value, json};
use tokio::sync::watch;

use ovnkube_node_plan::annotations::Facts;

use crate::bandwidth;
use crate::cni::{Cni, limits};
use crate::conf::{CniConf, OFFERS, Portmap};
use crate::ovs::Ovs;
use crate::pods::{Owner, PodOnNode, Pods};
use crate::reply::{Refusal, Route};
use crate::request::Request;
use crate::sandbox_locks::SandboxLocks;
use crate::subject::Sandbox;
use crate::wanted::choose_system_id;
use crate::{Error, OwnNode};

fn request(env: &Value, conf: &str) -> Result<Request, Refusal> {
    let body = json!({ "env": env, "config": STANDARD.encode(conf) });
    Request::decode(body.to_string().as_bytes())
}

fn add_env() -> Value {
    json!({
        "CNI_COMMAND": "ADD", "CNI_CONTAINERID": "0123456789abcdef0123", "CNI_NETNS": "/run/netns/p", "CNI_IFNAME": "eth0",
        "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=a;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=x;K8S_POD_UID=617450f5-33fb;X=a=b==",
    })
}

fn env_with(key: &str, value: &str) -> Value {
    let mut env = add_env();
    env[key] = value.into();
    env
}

const CONF: &str = r#"{"cniVersion":"0.4.0","name":"ovn-kubernetes","type":"ovn-k8s-cni-overlay"}"#;

#[test]
fn a_valid_request() {
    let want = Sandbox {
        container_id: "0123456789abcdef0123".into(),
        interface: "eth0".into(),
        netns: Some("/run/netns/p".into()),
        pod: Some(PodKey::new("a", "web-0")),
        pod_uid: Some("617450f5-33fb".into()),
    };
    assert_eq!(request(&add_env(), CONF), Ok(Request::Add(want)));
    assert_eq!(request(&env_with("CNI_COMMAND", "STATUS"), CONF), Ok(Request::Status));
}

/// As runtimes pass it on, with what their library adds; whatever else they pass is as if ADD had reported nothing.
#[test]
fn check_gets_the_routes_that_add_reported() {
    let env = env_with("CNI_COMMAND", "CHECK");
    let routes = |previous: Value| {
        let conf = json!({"cniVersion": "1.0.0", "name": "ovn-kubernetes", "prevResult": previous});
        match request(&env, &conf.to_string()) {
            Ok(Request::Check(_, routes)) => routes,
            other => panic!("{other:?}"),
        }
    };
    let listed = json!([{"dst": "0.0.0.0/0", "gw": "10.128.0.1"}, {"dst": "fd00::/48", "gw": "fd00::1", "mtu": 1400}, {"dst": "::/0"}, 7]);
    let route = |dst: &str, gw: &str| Route { dst: dst.parse().unwrap(), gw: gw.parse().unwrap() };
    let all = vec![route("0.0.0.0/0", "10.128.0.1"), route("fd00::/48", "fd00::1")];
    assert_eq!(routes(json!({"cniVersion": "1.0.0", "ips": [], "routes": listed, "dns": {}})), Some(all));
    for none in [json!({}), json!({"routes": null}), json!({"routes": 7})] {
        assert_eq!(routes(none), Some(Vec::new()));
    }
    for unknown in [Value::Null, json!(7), json!([])] {
        assert_eq!(routes(unknown), None);
    }
    assert!(matches!(request(&env, CONF), Ok(Request::Check(_, None))));
}

#[test]
fn del_needs_neither_namespace_nor_pod() {
    let env =
        json!({"CNI_COMMAND": "DEL", "CNI_CONTAINERID": "abc", "CNI_IFNAME": "eth0", "CNI_NETNS": "", "CNI_ARGS": ""});
    assert!(
        matches!(request(&env, CONF), Ok(Request::Del(sandbox)) if sandbox.netns.is_none() && sandbox.pod.is_none())
    );
    // nor does it refuse those that ADD refuses: the runtime would try again without end
    let args = "K8S_POD_NAMESPACE=a;K8S_POD_NAME=My_Pod;K8S_POD_UID=c d";
    for (key, value) in [("CNI_NETNS", "run/netns/p"), ("CNI_NETNS", "/run/../etc"), ("CNI_ARGS", args)] {
        let mut env = env_with(key, value);
        assert_eq!(request(&env, CONF).unwrap_err().code, 4);
        env["CNI_COMMAND"] = "DEL".into();
        for conf in [CONF, r#"{"runtimeConfig":7}"#] {
            let request = request(&env, conf);
            assert!(
                matches!(&request, Ok(Request::Del(sandbox)) if sandbox.container_id == "0123456789abcdef0123"),
                "{key}={value}: {request:?}"
            );
        }
    }
}

#[test]
fn gc_needs_the_list_of_attachments() {
    let env = env_with("CNI_COMMAND", "GC");
    assert_eq!(request(&env, CONF).unwrap_err().code, 7);
    let of = |name: &str, list: &str| {
        let conf = format!(r#"{{"cniVersion":"1.1.0","name":"{name}","cni.dev/valid-attachments":{list}}}"#);
        request(&env, &conf)
    };
    let list = r#"[{"containerID":"a","ifname":"eth0"},{"containerID":"b"}]"#;
    assert_eq!(of("ovn-kubernetes", list), Ok(Request::Gc(vec!["a".into(), "b".into()])));
    // a runtime that has no pods
    for none in ["[]", "null"] {
        assert_eq!(of("ovn-kubernetes", none), Ok(Request::Gc(Vec::new())), "{none}");
    }
    for wrong in ["{}", "7", "[null]", "[{}]", "[\"a\"]"] {
        assert_eq!(of("ovn-kubernetes", wrong).unwrap_err().code, 6, "{wrong}");
    }
    // the list of another network, as Multus passes it, does not contain all pods
    for other in ["", "blue"] {
        assert_eq!(of(other, list).unwrap_err().code, 7);
    }
}

#[test]
fn bad_values_are_refused() {
    let long = "x".repeat(129);
    let bad: &[(&str, &[&str])] = &[
        ("CNI_COMMAND", &["", "add", "VERSION", "RUN"]),
        ("CNI_CONTAINERID", &["", "a/b", "../a", "..", ".a", "-a", "a\0b", "a b", "ä", &long]),
        ("CNI_IFNAME", &["", "a/b", "..", ".", "a\0", "sixteencharsxxxx", "a b", "a:b", "a\n"]),
        ("CNI_NETNS", &["", "run/netns/p", "/run/../etc", "/run/netns/..", "/run/\0"]),
        (
            "CNI_ARGS",
            &[
                "",
                "K8S_POD_NAMESPACE=a",
                "K8S_POD_NAMESPACE=a/b;K8S_POD_NAME=c",
                "K8S_POD_NAMESPACE=a;K8S_POD_NAME=..",
                "K8S_POD_NAMESPACE=a;K8S_POD_NAME=b_c",
                "K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;K8S_POD_UID=c d",
            ],
        ),
    ];
    for (key, values) in bad {
        for value in *values {
            let refusal = request(&env_with(key, value), CONF).unwrap_err();
            assert_eq!(refusal.code, 4, "{key}={value:?}: {refusal}");
        }
    }
}

#[test]
fn bad_bodies_are_refused() {
    let deep = "[".repeat(100_000);
    for conf in
        ["", "{", "[]", "7", "null", deep.as_str(), r#"{"runtimeConfig":7}"#, r#"{"cni.dev/valid-attachments":{}}"#]
    {
        assert_eq!(request(&add_env(), conf).unwrap_err().code, 6, "{conf:.40}");
    }
    for body in [
        &b""[..],
        b"{",
        b"[]",
        deep.as_bytes(),
        br#"{"env":{"A":1},"config":""}"#,
        br#"{"env":{},"config":"%%"}"#,
        br#"{"env":{},"config":7}"#,
    ] {
        assert_eq!(Request::decode(body).unwrap_err().code, 6);
    }
    let device = r#"{"runtimeConfig":{"CNIDeviceInfoFile":"/x"}}"#;
    for verb in ["ADD", "CHECK"] {
        assert_eq!(request(&env_with("CNI_COMMAND", verb), device).unwrap_err().code, 2);
    }
    // a sandbox must end, whatever its configuration says
    assert!(matches!(request(&env_with("CNI_COMMAND", "DEL"), device), Ok(Request::Del(_))));
    let gc = r#"{"name":"ovn-kubernetes","cni.dev/valid-attachments":[],"runtimeConfig":{"CNIDeviceInfoFile":"/x"}}"#;
    assert_eq!(request(&env_with("CNI_COMMAND", "GC"), gc), Ok(Request::Gc(Vec::new())));
}

/// A request that is accepted contains no name that could be a path to somewhere else.
#[test]
fn fuzz_requests() {
    bolero::check!().with_type::<(Vec<u8>, Vec<u8>, u8)>().for_each(|(bytes, conf, which)| {
        let _ = Request::decode(bytes);
        let names = ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_ARGS"];
        let key = names[usize::from(*which) % names.len()];
        let _ = request(&add_env(), &String::from_utf8_lossy(conf));
        if let Ok(Request::Add(sandbox)) = request(&env_with(key, &String::from_utf8_lossy(bytes)), CONF) {
            for name in [&sandbox.container_id, &sandbox.interface] {
                assert!(!name.is_empty() && name != ".." && !name.contains(['/', '\0']));
            }
            let netns = sandbox.netns.unwrap();
            assert!(netns.is_absolute() && !netns.to_string_lossy().contains("/../"));
            assert!(!sandbox.pod.unwrap().port_name().contains(['/', '\0', '"']));
        }
    });
}

/// Whoever may annotate pods would fill the logs of the node.
#[test]
fn a_refusal_quotes_no_whole_annotation() {
    let Ok(Request::Add(sandbox)) = request(&add_env(), CONF) else { panic!("a valid request") };
    let refusal = |text: &str| {
        let pod = PodOnNode { ingress_bandwidth: Some(text.into()), ..PodOnNode::default() };
        limits(&pod).unwrap_err().about(&sandbox).text
    };
    let usual = "[a/web-0 0123456789abcdef0123] cannot use annotation kubernetes.io/ingress-bandwidth \"fast\": it is not a quantity such as 10M";
    assert_eq!(refusal("fast"), usual);
    for filler in ["x", "ä", "\u{1}"] {
        let text = refusal(&filler.repeat(200_000));
        assert!(text.starts_with(&usual[..80]) && text.ends_with('…') && text.chars().count() == 2001, "{filler:?}");
    }
}

#[test]
fn quantities() {
    for (text, rate) in [
        ("10M", 10_000_000),
        ("1.5G", 1_500_000_000),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1e6", 1_000_000),
        ("1000", 1000),
        ("1P", 1_000_000_000_000_000),
    ] {
        assert_eq!(bandwidth::parse(text), Ok(rate), "{text}");
    }
    for text in ["", "M", "10Q", "999", "-5M", "2P", "1E", "1e6k", "10 M", "NaN", "inf", "0x10"] {
        assert!(bandwidth::parse(text).is_err(), "{text}");
    }
}

#[test]
fn node_annotations() {
    let addresses =
        ["172.18.0.2/16", "127.0.0.1/8", "169.254.169.2/29", "fd00::2/64", "::1/128"].map(|a| a.parse().unwrap());
    let facts = Facts {
        system_id: "c0ffee",
        zone: "global",
        addresses: Some(&addresses),
        internal_ips: &["172.18.0.2".parse().unwrap()],
        encap_ips: &["172.18.0.2".parse().unwrap()],
        masquerade: &["169.254.169.0/29".parse().unwrap(), "fd69::/125".parse().unwrap()],
        gateway: None,
        checks_mtu: true,
        mtu: Some(String::new()),
    };
    let want: BTreeMap<String, String> = [
        ("host-cidrs", r#"["172.18.0.2/16","fd00::2/64"]"#),
        ("node-chassis-id", "c0ffee"),
        // absent
        ("gateway-mtu-support", ""),
        ("node-mtu", ""),
        ("node-encap-ips", r#"["172.18.0.2"]"#),
        ("node-masquerade-subnet", r#"{"ipv4":"169.254.169.0/29","ipv6":"fd69::/125"}"#),
        ("node-primary-ifaddr", r#"{"ipv4":"172.18.0.2/16"}"#),
        ("zone-name", "global"),
    ]
    .into_iter()
    .map(|(key, value)| (format!("k8s.ovn.org/{key}"), value.to_owned()))
    .collect();
    assert_eq!(facts.annotations(), want);
}

#[test]
fn a_switch_that_lost_its_settings_keeps_its_chassis() {
    let known = OwnNode { internal_ips: vec!["172.18.0.2".parse().unwrap()], ..OwnNode::default() };
    let annotated = OwnNode { chassis_id: Some("before".into()), ..known.clone() };
    let id = |kept: Option<&str>, node| choose_system_id(kept.map(str::to_owned), node, Some("new"));
    assert_eq!(id(Some("kept"), &annotated).as_deref(), Some("kept"));
    assert_eq!(id(None, &annotated).as_deref(), Some("before"));
    assert_eq!(id(None, &known).as_deref(), Some("new"));
    // its Node may have had one
    assert_eq!(id(None, &OwnNode::default()), None);
}

fn conf(plugin: &str) -> CniConf {
    let dir = std::env::temp_dir().join(format!("ovnkube-conf-{}", std::process::id()));
    CniConf {
        plugins: dir.join("bin"),
        dir,
        plugin: plugin.into(),
        log_file: "/var/log/ovn-kubernetes/ovn-k8s-cni-overlay.log".into(),
        log_level: 5,
        log_max_size: 100,
        log_max_backups: 5,
        log_max_age: 5,
    }
}

/// Written by another process: a child of another test would inherit the open file, and then it cannot be executed.
fn install(text: &str, path: &std::path::Path) {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", r#"printf %s "$1" >"$2"; chmod 755 "$2""#, "sh", text]).arg(path);
    assert!(command.status().unwrap().success());
}

/// Nothing half written stays, and what the runtime used before stays until ours is there.
#[tokio::test]
async fn a_configuration_that_cannot_be_written_leaves_what_was_there() {
    let mut conf = conf("ovn-k8s-cni-overlay");
    conf.dir = conf.dir.with_extension("kept");
    let before = conf.dir.join("10-ovn-kubernetes.conf");
    let in_its_way = conf.dir.join("10-ovn-kubernetes.conflist");
    std::fs::create_dir_all(&in_its_way).unwrap();
    std::fs::write(&before, "{}").unwrap();
    let refused = conf.write(&mut Portmap::default()).await.unwrap_err().to_string();
    assert!(refused.starts_with(&format!("cannot write {}: ", in_its_way.display())), "{refused}");
    assert_eq!(std::fs::read_dir(&conf.dir).unwrap().count(), 2, "its file and the one of before");
    std::fs::remove_dir(&in_its_way).unwrap();
    conf.write(&mut Portmap::default()).await.unwrap();
    assert!(in_its_way.is_file() && !before.exists());
    std::fs::remove_dir_all(&conf.dir).unwrap();
}

#[tokio::test]
async fn network_configuration() {
    let conf = conf("ovn-k8s-cni-overlay");
    let plugin = json!({
        "type": "ovn-k8s-cni-overlay", "ipam": {}, "dns": {}, "logFile": "/var/log/ovn-kubernetes/ovn-k8s-cni-overlay.log",
        "logLevel": "5", "logfile-maxsize": 100, "logfile-maxbackups": 5, "logfile-maxage": 5, "runtimeConfig": {},
    });
    let portmap = json!({"type": "portmap", "capabilities": {"portMappings": true}, "snat": true});
    let path = conf.dir.join("10-ovn-kubernetes.conflist");
    let mut plugins = Portmap::default();
    let is = |offers: &[&str], plugins: &[&Value]| {
        let list: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let want = json!({
            "cniVersion": "0.4.0", "cniVersions": offers, "disableCheck": true, "name": "ovn-kubernetes", "plugins": plugins,
        });
        assert_eq!(list, want);
        assert_eq!(
            std::fs::read_dir(&conf.dir).unwrap().filter(|file| file.as_ref().unwrap().path().is_file()).count(),
            1
        );
    };
    conf.remove().unwrap();
    // the runtime would use what an earlier release left
    std::fs::create_dir_all(&conf.dir).unwrap();
    std::fs::write(conf.dir.join("10-ovn-kubernetes.conf"), "{}").unwrap();
    for _ in 0..2 {
        conf.write(&mut plugins).await.unwrap();
        is(OFFERS, &[&plugin]);
    }
    // a runtime uses one version for all plugins of a list
    std::fs::create_dir(&conf.plugins).unwrap();
    let versions: [(&str, &[&str]); 4] = [
        (r#""0.3.1", "0.4.0", "1.0.0""#, &["0.4.0", "1.0.0"]),
        (r#""1.0.0", "99.0.0""#, &["1.0.0"]),
        ("", &[]),
        ("no JSON", &[]),
    ];
    for (n, (spoken, offers)) in versions.into_iter().enumerate() {
        let (new, portmap_file) = (conf.plugins.join("new"), conf.plugins.join("portmap"));
        let asked = conf.plugins.join("asked");
        let text = format!("#!/bin/sh\necho >>{}\necho '{{\"supportedVersions\": [{spoken}]}}'\n", asked.display());
        install(&text, &new);
        std::fs::rename(&new, portmap_file).unwrap();
        for _ in 0..2 {
            conf.write(&mut plugins).await.unwrap();
            is(offers, &[&plugin, &portmap]);
        }
        assert_eq!(std::fs::read(&asked).unwrap().len(), n + 1, "each is asked once");
    }
    std::fs::remove_dir_all(&conf.plugins).unwrap();
    conf.write(&mut plugins).await.unwrap();
    is(OFFERS, &[&plugin]);
    conf.remove().unwrap();
    std::fs::remove_dir(&conf.dir).unwrap();
}

/// A plugin that does not answer once, as at boot, does not decide what runtimes use until the agent is restarted.
#[tokio::test]
async fn a_plugin_that_does_not_answer_is_asked_again() {
    let mut conf = conf("ovn-k8s-cni-overlay");
    conf.dir = conf.dir.with_extension("asked");
    conf.plugins = conf.dir.join("bin");
    std::fs::create_dir_all(&conf.plugins).unwrap();
    let offers = || {
        let text = std::fs::read_to_string(conf.dir.join("10-ovn-kubernetes.conflist")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["cniVersions"].clone()
    };
    let fails = conf.dir.join("fails");
    let text = format!(
        "#!/bin/sh\n[ -e {} ] && exit 1\necho '{{\"supportedVersions\": [\"0.4.0\", \"1.0.0\"]}}'\n",
        fails.display()
    );
    install(&text, &conf.plugins.join("portmap"));
    std::fs::write(&fails, "").unwrap();
    let mut first = Portmap::default();
    conf.write(&mut first).await.unwrap();
    assert_eq!(offers(), json!([]));
    std::fs::remove_file(&fails).unwrap();
    conf.write(&mut first).await.unwrap();
    assert_eq!(offers(), json!([]), "not at once");
    first.ask_again().await;
    conf.write(&mut first).await.unwrap();
    assert_eq!(offers(), json!(["0.4.0", "1.0.0"]));
    // the next agent finds what this one has written
    std::fs::write(&fails, "").unwrap();
    conf.write(&mut Portmap::default()).await.unwrap();
    assert_eq!(offers(), json!(["0.4.0", "1.0.0"]));
    std::fs::remove_dir_all(&conf.dir).unwrap();
}

#[test]
fn plugin_stays_in_its_directory() {
    for name in ["", "..", "../sh", "/bin/sh", "a/b", "a\0"] {
        assert!(conf(name).check().is_err(), "{name:?}");
    }
}

#[tokio::test]
async fn add_waits_for_the_pod_with_its_uid() {
    let pods = Pods::new();
    let key = PodKey::new("a", "b");
    let missing = Mutex::default();
    let with = |ips: &str| format!(r#"{{"default":{{"ip_addresses":[{ips}],"mac_address":"0a:58:0a:80:00:03"}}}}"#);
    let networks = with(r#""10.128.0.3/23","fd01::3/64""#);
    let pod = |uid: &str, networks: Option<&str>| {
        Some(PodOnNode { uid: uid.into(), networks: networks.map(Into::into), ..PodOnNode::default() })
    };
    let waiting = pods.until(&missing, |pods| pods.ready(&key, Some("2")));
    let says = async |why: &str| {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let said = missing.lock().unwrap().clone();
        assert!(said.contains(why), "{said}");
    };
    let sending = async {
        for (step, why) in [
            (None, "not on this node"),
            (pod("1", Some(&networks)), "uid 1"),
            (pod("2", None), "is missing"),
            (pod("2", Some("{")), "not a JSON object"),
            (pod("2", Some(r#"{"default":{"mac_address":"0a:58:0a:80:00:03"}}"#)), "no address"),
            (pod("2", Some(&networks)), "no subnet yet"),
        ] {
            pods.set(key.clone(), step);
            says(why).await;
        }
        // of another node, before and after this one is known; of nobody; the gateway and the management port
        let subnets = ["10.128.0.0/23", "fd01::/64"].map(|subnet| subnet.parse().unwrap());
        pods.set_subnets(&subnets[..1]);
        says("fd01::3 is not an address for pods of this node, whose subnet is 10.128.0.0/23").await;
        pods.set_subnets(&subnets);
        for ip in ["10.128.2.3", "8.8.8.8", "fd01:0:0:1::3", "10.128.0.1", "10.128.0.2", "10.128.1.255"] {
            pods.set(key.clone(), pod("2", Some(&with(&format!(r#""10.128.0.3/23","{ip}/8""#)))));
            says(&format!("annotation k8s.ovn.org/pod-networks cannot be used: {ip} is not")).await;
        }
        pods.set(key.clone(), pod("2", Some(&networks)));
    };
    let ((pod, network), ()) = tokio::join!(waiting, sending);
    assert_eq!((&*pod.uid, network.mac_address.to_string().as_str()), ("2", "0a:58:0a:80:00:03"));
    // a static pod's sandbox carries the hash of its file
    pods.set(key.clone(), Some(PodOnNode { config_hash: Some("h".into()), ..pod }));
    assert!(pods.ready(&key, Some("h")).is_ok());
}

/// Whoever creates a pod chooses its hash.
#[test]
fn no_pod_takes_anothers_uid() {
    let pods = Pods::new();
    let set = |name: &str, hash: Option<&str>| {
        let pod =
            PodOnNode { uid: format!("uid-{name}").into(), config_hash: hash.map(Into::into), ..PodOnNode::default() };
        pods.set(PodKey::new("a", name), Some(pod));
    };
    let is = |expected: &[(&str, &str)]| {
        let expected = expected.iter().map(|(by, name)| {
            ((*by).into(), Owner { key: PodKey::new("a", *name), uid: format!("uid-{name}").into() })
        });
        assert_eq!(pods.by_uid(), expected.collect());
    };
    let all: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    set("static", Some("h"));
    set("victim", None);
    is(&[("uid-static", "static"), ("h", "static"), ("uid-victim", "victim")]);
    // their order in memory is random
    for name in &all {
        set(name, Some("uid-victim"));
    }
    assert_eq!(pods.by_uid()["uid-victim"].key, PodKey::new("a", "victim"));
    assert_eq!(pods.by_uid().len(), 23);
    // of pods with one hash nobody knows whose it is
    for name in &all {
        pods.set(PodKey::new("a", name.as_str()), None);
    }
    set("other", Some("h"));
    is(&[("uid-static", "static"), ("uid-victim", "victim"), ("uid-other", "other")]);
}

#[test]
fn all_that_failed_is_told_once() {
    let gone = |name: &str| Err(Error::LinkGone { name: name.to_owned() });
    let text = |outcomes: Vec<crate::Result<()>>| Error::all(outcomes).map_err(|error| error.to_string());
    assert_eq!(text(vec![Ok(()), Ok(())]), Ok(()));
    assert_eq!(text(vec![Ok(()), gone("a"), gone("a")]), Err("cannot use link a: it is gone".to_owned()));
    let both = Error::all([gone("a"), gone("b")]);
    let all = "cannot use link a: it is gone; cannot use link b: it is gone; cannot use link c: it is gone";
    assert_eq!(text(vec![gone("a"), both, gone("c")]), Err(all.to_owned()));
}

#[test]
fn the_later_sandbox_owns_the_port() {
    let locks = SandboxLocks::default();
    locks.claim("a_b", "s1", 1);
    assert_eq!(locks.successor("a_b", "s1"), None);
    locks.claim("a_b", "s2", 2);
    assert_eq!(locks.successor("a_b", "s1").as_deref(), Some("s2"));
    // it came first, whenever it claims the port
    locks.claim("a_b", "s1", 1);
    assert_eq!(locks.successor("a_b", "s1").as_deref(), Some("s2"));
    locks.release("s1");
    assert_eq!(locks.successor("a_b", "s2"), None);
    locks.release("s2");
    assert_eq!(locks.successor("a_b", "s1"), None);
    let queue = locks.queue("s1");
    assert!(locks.busy("s1"));
    drop(queue);
    assert!(!locks.busy("s1"));
    // while requests for one interface run, others are refused
    let queue = locks.queue("s1");
    assert_eq!(queue.take_for("eth0"), Ok(()));
    assert_eq!(locks.queue("s1").take_for("net1"), Err("eth0".to_owned()));
    assert_eq!(locks.queue("s1").other_than("net1").as_deref(), Some("eth0"));
    assert!(locks.queue("s1").take_for("eth0").is_ok() && locks.queue("s2").take_for("net1").is_ok());
    drop(queue);
    assert!(locks.queue("s1").take_for("net1").is_ok());
}

/// A DEL that succeeds without deleting is not repeated: what it leaves stays.
#[test]
fn a_request_for_another_interface_ends_no_del() {
    apart(async || {
        let cni = without_switch().await;
        let del = |interface: &str| {
            let mut env = env_with("CNI_COMMAND", "DEL");
            env["CNI_IFNAME"] = interface.into();
            cni.serve(request(&env, CONF).unwrap())
        };
        let mut other = Box::pin(del("net1"));
        let mut usual = Box::pin(del("eth0"));
        // both wait for the database, in this order
        tokio::select! {
            biased;
            _ = &mut other => panic!("nothing was deleted, and the first DEL succeeds"),
            _ = &mut usual => panic!("nothing was deleted, and the second DEL succeeds"),
            () = tokio::time::sleep(Duration::from_millis(300)) => {}
        }
    });
}

/// The agent's part that serves requests, in this network namespace and with an Open vSwitch that does not answer.
pub(crate) async fn without_switch() -> Cni {
    Cni {
        here: Net::here().await.unwrap(),
        ovs: Ovs::connect("unix:/nowhere").unwrap(),
        pods: Pods::new(),
        locks: SandboxLocks::default(),
        mtu: watch::Sender::default().subscribe(),
        route_mtu: None,
        ready: watch::Sender::new(Ok(())).subscribe(),
        health: NodeHealth::default(),
        patience: Duration::ZERO,
        stamp: "/nowhere".into(),
    }
}

/// Runs `test` in a new network namespace, on a new runtime.
pub(crate) fn apart(test: impl AsyncFnOnce() + Send + 'static) {
    let work = || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test());
    };
    std::thread::spawn(work).join().unwrap();
}
