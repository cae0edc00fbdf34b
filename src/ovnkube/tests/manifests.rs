//! The manifests of `dist/yaml`: which nodes they choose, and what `ovnkube.sh` makes of the ConfigMap that they read.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ovnkube_tests::nb::until;
use serde_json::Value;

use crate::lab::{Dir, Lab};
use crate::unserved;

/// The ConfigMap that installers for OpenShift 3.10 made, with the token that the first ones put there.
const CONFIG_MAP: [(&str, &str); 6] = [
    ("OvnNorth", "tcp:10.19.188.22:6641"),
    ("OvnSouth", "tcp:10.19.188.22:6642"),
    ("k8s_apiserver", "https://api.example.org:8443"),
    ("net_cidr", "10.128.0.0/14"),
    ("svc_cidr", "172.30.0.0/16"),
    ("k8s_token", "a.b.c"),
];

fn dist(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist").join(file)
}

/// The pod of a manifest whose first document is a workload.
fn pod(file: &str) -> Value {
    let text = fs::read_to_string(dist("yaml").join(file)).unwrap();
    let manifest: Value = serde_saphyr::from_str(text.split("\n---\n").next().unwrap()).unwrap();
    manifest["spec"]["template"]["spec"].clone()
}

/// Whether the pod may run on a node with these labels.
fn is_chosen(pod: &Value, labels: &BTreeMap<&str, &str>) -> bool {
    let selector = pod["nodeSelector"].as_object().unwrap();
    let terms = pod.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let exists = |expression: &Value| {
        assert_eq!(expression["operator"], "Exists");
        labels.contains_key(expression["key"].as_str().unwrap())
    };
    selector.iter().all(|(key, value)| labels.get(key.as_str()) == value.as_str().as_ref())
        && terms.is_none_or(|terms| {
            terms.as_array().unwrap().iter().any(|term| term["matchExpressions"].as_array().unwrap().iter().all(exists))
        })
}

#[test]
fn nodes_are_chosen_by_the_labels_of_openshift_and_of_kubernetes() {
    let masters = [("node-role.kubernetes.io/master", "true"), ("node-role.kubernetes.io/master", "")];
    let control_plane = ("node-role.kubernetes.io/control-plane", "");
    let others = [("node-role.kubernetes.io/compute", "true"), ("node-role.kubernetes.io/worker", "")];
    let master_pod = pod("ovnkube-master.yaml");
    for (label, is_master) in
        masters.into_iter().chain([control_plane]).map(|l| (l, true)).chain(others.map(|l| (l, false)))
    {
        let labels = BTreeMap::from([("kubernetes.io/os", "linux"), label]);
        assert_eq!(is_chosen(&master_pod, &labels), is_master, "{label:?}");
        for file in ["ovnkube.yaml", "ovs-node.yaml"] {
            assert!(is_chosen(&pod(file), &labels), "{file} {label:?}");
        }
    }
    assert!(!is_chosen(&pod("ovnkube.yaml"), &BTreeMap::from([("kubernetes.io/os", "windows")])));
}

#[test]
fn agents_have_the_directories_of_openshift() {
    let pod = pod("ovnkube.yaml");
    assert!(pod["hostNetwork"] == true && pod["hostPID"] == true);
    let list = |value: &Value| value.as_array().unwrap().clone();
    let containers = list(&pod["containers"]);
    let mounts = list(&containers.iter().find(|one| one["name"] == "ovn-node").unwrap()["volumeMounts"]);
    let volumes = list(&pod["volumes"]);
    for (volume, path, at, read_only) in [
        ("host-opt-cni-bin", "/opt/cni/bin", "/host/opt/cni/bin", false),
        ("host-etc-cni-netd", "/etc/cni/net.d", "/etc/cni/net.d", false),
        (
            "host-var-lib-cni-networks-openshift-ovn",
            "/var/lib/cni/networks/ovn-k8s-cni-overlay",
            "/var/lib/cni/networks/ovn-k8s-cni-overlay",
            false,
        ),
        ("host-config", "/etc/origin/node", "/etc/origin/node", true),
        ("host-sysconfig-node", "/etc/sysconfig/origin-node", "/etc/sysconfig/origin-node", true),
    ] {
        let mount = mounts.iter().find(|mount| mount["name"] == volume).unwrap();
        assert_eq!((mount["mountPath"].as_str(), mount["readOnly"] == true), (Some(at), read_only), "{volume}");
        let volume = volumes.iter().find(|one| one["name"] == volume).unwrap();
        assert_eq!(volume["hostPath"]["path"], path);
    }
}

/// The variables that a container gets from the ConfigMap.
fn environment(pod: &Value, container: &str) -> Vec<(String, String)> {
    let config: BTreeMap<&str, &str> = CONFIG_MAP.into();
    let containers = pod["containers"].as_array().unwrap();
    let container = containers.iter().find(|one| one["name"] == container).unwrap();
    let variable = |env: &Value| {
        let name = env["name"].as_str()?.to_owned();
        let from = &env["valueFrom"]["configMapKeyRef"];
        let value = match from["key"].as_str() {
            Some(key) => {
                assert_eq!(from["name"], "ovn-config");
                *config.get(key).or_else(|| (from["optional"] == true).then_some(&"")).unwrap()
            }
            None => env["value"].as_str().unwrap_or("n1"),
        };
        (!value.is_empty()).then(|| (name, value.to_owned()))
    };
    container["env"].as_array().unwrap().iter().filter_map(variable).collect()
}

/// What `ovnkube.sh` starts ovnkube with, and what it says before that.
fn started(dir: &Dir, word: &str, environment: &[(String, String)], more: &[(&str, &str)]) -> (String, String) {
    let program = dir.file("ovnkube");
    let real = env!("CARGO_BIN_EXE_ovnkube");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" != config ] || exec {real} \"$@\"\n[ \"$1\" = install-cni ] || printf '%s\\n' \"$@\"\n"
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    // it makes /proc/sys/net writable
    let mut command = Command::new("unshare");
    command.args(["-m", "sh"]).arg(dist("images/ovnkube.sh")).arg(word).env_clear().env("PATH", path);
    let out = command.envs(environment.iter().cloned()).envs(more.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (args, said) = (text(out.stdout), text(out.stderr));
    assert!(out.status.success(), "{word}: {said}");
    (args, said)
}

#[test]
fn the_config_map_of_openshift_becomes_flags() {
    let dir = Dir::new();
    for (file, container, role) in
        [("ovnkube-master.yaml", "ovn-master", "--init-master=n1"), ("ovnkube.yaml", "ovn-node", "--init-node=n1")]
    {
        let environment = environment(&pod(file), container);
        // the master only warns of the token, and manifests of then use it and say the role in a variable too
        for more in [&[][..], &[("OVN_MASTER", "true"), ("K8S_TOKEN", "a.b.c")]] {
            let (args, said) = started(&dir, container, &environment, more);
            for flag in [
                role,
                "--nb-address=tcp:10.19.188.22:6641",
                "--sb-address=tcp:10.19.188.22:6642",
                "--cluster-subnets=10.128.0.0/14",
                "--k8s-service-cidrs=172.30.0.0/16",
            ] {
                assert!(args.lines().any(|arg| arg == flag), "{flag} is not in {args}");
            }
            let used = "K8S_TOKEN is set, as from the key k8s_token of the ConfigMap ovn-config: ";
            let unused = "the ConfigMap ovn-config has a token, as the key k8s_token, and nothing uses it: ";
            for (warning, wanted) in [(used, !more.is_empty()), (unused, container == "ovn-master")] {
                assert_eq!(said.contains(warning), wanted, "{said}");
            }
            assert!(said.lines().count() <= 2, "{said}");
        }
        let apiserver = ("K8S_APISERVER".to_owned(), "https://api.example.org:8443".to_owned());
        assert!(environment.contains(&apiserver), "{environment:?}");
    }
}

/// Each program is asked whether it works, and a master at the address that its variable gives it.
#[test]
fn every_container_has_a_readiness_probe() {
    for file in
        ["ovnkube-db.yaml", "ovnkube-master.yaml", "ovnkube.yaml", "ovs-node.yaml", "../yaml-raft/ovnkube-db.yaml"]
    {
        for container in pod(file)["containers"].as_array().unwrap() {
            let probe = &container["readinessProbe"];
            assert!(probe["exec"].is_object() || probe["httpGet"].is_object(), "{file} {}", container["name"]);
        }
    }
    let agent = pod("ovnkube.yaml");
    let containers = agent["containers"].as_array().unwrap();
    let agent = &containers.iter().find(|container| container["name"] == "ovn-node").unwrap();
    let asks = |probe: &str| agent.pointer(&format!("/{probe}/exec/command/3")).unwrap().as_str().unwrap().to_owned();
    assert_eq!([asks("readinessProbe"), asks("livenessProbe")], ["ovnkube-node", "ovnkube-node-alive"]);
    let master = pod("ovnkube-master.yaml");
    let address =
        environment(&master, "ovn-master").into_iter().find(|(name, _)| name == "OVNKUBE_HEALTHZ_BIND_ADDRESS");
    let get = |probe: &str| master.pointer(&format!("/containers/1/{probe}/httpGet")).unwrap();
    let probe = get("readinessProbe");
    let asked = format!("{}:{}", probe["host"].as_str().unwrap(), probe["port"]);
    assert_eq!(address.unwrap().1, asked);
    // a master waits for the databases' addresses before it listens, perhaps for days, and that is not to be ended
    let alive = get("livenessProbe");
    assert_eq!(
        [&alive["host"], &alive["port"], &alive["path"]],
        [&probe["host"], &probe["port"], &Value::from("/healthz")]
    );
    assert_eq!(get("startupProbe"), alive);
    assert!(master.pointer("/containers/1/startupProbe/failureThreshold").unwrap().as_u64().unwrap() > 100_000);
    let (args, _) = started(&Dir::new(), "ovn-master", &environment(&master, "ovn-master"), &[]);
    assert!(args.lines().any(|arg| arg == format!("--healthz-bind-address={asked}")), "{args}");
}

/// The answer to the probe of the master's manifest.
fn asked(port: u16) -> String {
    let master = pod("ovnkube-master.yaml");
    let path = master.pointer("/containers/1/readinessProbe/httpGet/path").unwrap().as_str().unwrap();
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        stream.read_to_string(&mut answer).unwrap();
    }
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn leaders_and_standbys_are_ready_and_a_refusing_master_is_not() {
    let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let flag = |port: u16| format!("--healthz-bind-address=127.0.0.1:{port}");
    let becomes = async |port: u16, code: &str| {
        until(&format!("{code} at {port}, not {}", asked(port)), async || asked(port).starts_with(code)).await;
    };
    let lab = Lab::new().await;
    let [first, second] = [port(), port()];
    let leader = lab.start("init-master=first", &[&flag(first)]);
    lab.ready(&leader).await;
    becomes(first, "HTTP/1.1 200").await;
    let _standby = lab.start("init-master=second", &[&flag(second)]);
    becomes(second, "HTTP/1.1 200").await;

    let lab = unserved::lab().await;
    let third = port();
    let _refusing =
        lab.start("init-master=one", &[&flag(third)]).after("cannot take over the northbound database").await;
    becomes(third, "HTTP/1.1 503").await;
    assert!(asked(third).contains("cannot take over the northbound database"), "{}", asked(third));
}

/// A container whose entrypoint ends tells it by an Event of its pod: it knows which pod that is, and has an account that may.
#[test]
fn every_container_can_report_why_it_ends() {
    let files = [
        ("ovnkube-db.yaml", "ovn-events"),
        ("../yaml-raft/ovnkube-db.yaml", "ovn-events"),
        ("ovs-node.yaml", "ovn-events"),
        ("ovnkube-master.yaml", "ovn"),
        ("ovnkube.yaml", "ovn-node"),
        ("../uninstall/ovnkube-cleanup.yaml", "ovn-node"),
    ];
    for (file, account) in files {
        let pod = pod(file);
        assert_eq!((&pod["serviceAccountName"], &pod["automountServiceAccountToken"]), (&account.into(), &true.into()));
        let list = |kind: &str| pod[kind].as_array().cloned().unwrap_or_default();
        let all = list("containers").into_iter().chain(list("initContainers"));
        for container in all.filter(|container| container["args"].is_array()) {
            let of = |variable: &str| {
                let env = container["env"].as_array().and_then(|env| env.iter().find(|env| env["name"] == variable));
                env.unwrap_or_else(|| panic!("{file} {} has no {variable}", container["name"]))["valueFrom"].clone()
            };
            for (variable, field) in [
                ("K8S_NODE", "spec.nodeName"),
                ("OVN_KUBERNETES_NAMESPACE", "metadata.namespace"),
                ("POD_NAME", "metadata.name"),
                ("POD_UID", "metadata.uid"),
            ] {
                assert_eq!(of(variable)["fieldRef"]["fieldPath"], field, "{file} {}", container["name"]);
            }
            assert_eq!(of("K8S_APISERVER")["configMapKeyRef"]["key"], "k8s_apiserver", "{file}");
        }
    }
}
