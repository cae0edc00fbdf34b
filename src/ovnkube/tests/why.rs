//! `ovnkube why` with a directory and with a running cluster.

use ovnkube_tests::nb::until;
use serde_json::json;

use crate::lab::{Dir, Lab};
use crate::process::ovnkube;

/// Two namespaces as users write them: no uid, some without a namespace, a list, other kinds.
const OBJECTS: &str = r#"
kind: List
items:
- kind: Pod
  metadata: {namespace: a, name: client, labels: {app: client}, annotations: {k8s.ovn.org/pod-networks: '{"default":{"ip_addresses":["10.244.0.3/24"],"mac_address":"0a:58:0a:f4:00:03"}}'}}
  spec: {nodeName: n1}
- kind: Deployment
  metadata: {name: no pod}
---
kind: Node
metadata: {name: n1, annotations: {k8s.ovn.org/node-subnets: '{"default":["10.244.0.0/24"]}'}}
---
kind: Pod
metadata: {name: db, annotations: {k8s.ovn.org/pod-networks: '{"default":{"ip_addresses":["10.244.0.4/24"],"mac_address":"0a:58:0a:f4:00:04"}}'}}
spec: {nodeName: n1, containers: [{name: c, ports: [{name: sql, containerPort: 5432}]}]}
---
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {}}
---
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {}
  ingress:
  - ports: [{port: 80, endPort: 1}]
  - from:
    - {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: a}}, podSelector: {matchLabels: {app: client}}}
    ports: [{port: sql}]
---
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, clusterIP: 10.96.0.7, externalIPs: [192.0.2.9], loadBalancerSourceRanges: [10.244.0.3/32], ports: [{port: 80}]}
status: {loadBalancer: {ingress: [{ip: 192.0.2.10}]}}
"#;

/// A host-network pod, and policies that select it or not in every way; one without connection tracking.
const HOSTS: &str = r#"
kind: Node
metadata: {name: n1, annotations: {k8s.ovn.org/node-id: "2", k8s.ovn.org/node-subnets: '{"default":["10.244.0.0/24"]}'}}
---
kind: Node
metadata: {name: n2, annotations: {k8s.ovn.org/node-id: "3", k8s.ovn.org/node-subnets: '{"default":["10.244.1.0/24"]}'}}
status: {addresses: [{type: InternalIP, address: 172.18.0.12}]}
---
kind: Pod
metadata: {name: agent, namespace: a, labels: {app: agent}}
spec: {nodeName: n2, hostNetwork: true, containers: [{name: c, ports: [{name: web, containerPort: 8088}]}]}
status: {podIPs: [{ip: 172.18.0.12}]}
---
kind: Pod
metadata: {name: client, namespace: a, labels: {app: client}, annotations: {k8s.ovn.org/pod-networks: '{"default":{"ip_addresses":["10.244.0.3/24"],"mac_address":"0a:58:0a:f4:00:03"}}'}}
spec: {nodeName: n1}
---
kind: Pod
metadata: {name: db, namespace: a, labels: {app: db}, annotations: {k8s.ovn.org/pod-networks: '{"default":{"ip_addresses":["10.244.0.4/24"],"mac_address":"0a:58:0a:f4:00:04"}}'}}
spec: {nodeName: n1}
---
kind: NetworkPolicy
metadata: {name: out, namespace: a}
spec:
  podSelector: {matchLabels: {app: client}}
  policyTypes: [Egress]
  egress:
  - {to: [{namespaceSelector: {}}], ports: [{port: 80}]}
  - {to: [{podSelector: {matchLabels: {app: agent}}}], ports: [{port: web}]}
---
kind: NetworkPolicy
metadata: {name: into, namespace: a, annotations: {k8s.ovn.org/acl-stateless: "true"}}
spec:
  podSelector: {matchLabels: {app: db}}
  ingress:
  - {from: [{podSelector: {matchLabels: {app: agent}}}], ports: [{port: 80}]}
  - {from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: hosts}}}], ports: [{port: 81}]}
---
kind: NetworkPolicy
metadata: {name: answers, namespace: a}
spec:
  podSelector: {matchLabels: {app: db}}
  policyTypes: [Egress]
  egress:
  - {to: [{ipBlock: {cidr: 10.244.1.0/24}}], ports: [{port: 1024, endPort: 65535}]}
---
kind: Namespace
metadata: {name: hosts}
"#;

fn ask(words: &[&str]) -> (bool, String) {
    let out = ovnkube([&["why"], words].concat()).output().unwrap();
    let text = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
    (out.status.success(), text)
}

#[test]
fn a_namespace_without_metadata_is_told() {
    let dir = Dir::new();
    std::fs::write(dir.file("objects.yaml"), "kind: Namespace\nmetadata: shop\n").unwrap();
    let (right, said) = ask(&["--from", &dir.file("objects.yaml").display().to_string(), "a/b", "a/c", "80"]);
    assert!(!right && said.starts_with("ovnkube: ") && said.contains("objects.yaml"), "{said}");
}

/// Rules open only the most common numbers of a named port.
#[test]
fn the_limit_for_numbers_of_a_named_port_is_known() {
    let dir = Dir::new();
    let pod = |number: u16| {
        let ports = json!([{"name": "web", "containerPort": number}]);
        let spec = json!({"nodeName": "n1", "containers": [{"name": "c", "ports": ports}]});
        json!({"kind": "Pod", "metadata": {"name": format!("p{number}")}, "spec": spec})
    };
    let spec = json!({"podSelector": {}, "ingress": [{"ports": [{"port": "web"}]}]});
    let policy = json!({"kind": "NetworkPolicy", "metadata": {"name": "web"}, "spec": spec});
    let items: Vec<_> = (1..=65).map(pod).chain([policy]).collect();
    std::fs::write(dir.file("objects.json"), json!({"kind": "List", "items": items}).to_string()).unwrap();
    let directory = dir.file("").display().to_string();
    for (number, word) in [("64", "allowed: "), ("65", "denied: ")] {
        let (right, said) = ask(&["--from", &directory, "192.0.2.1", &format!("default/p{number}"), number]);
        assert!(right && said.starts_with(word), "{said}");
    }
}

/// In egress rules, each peer's pods have their own most common numbers.
#[test]
fn the_numbers_of_another_peer_are_not_those_of_the_destination() {
    let dir = Dir::new();
    let pod = |app: &str, number: u16| {
        let ports = json!([{"name": "web", "containerPort": number}]);
        let spec = json!({"nodeName": "n1", "containers": [{"name": "c", "ports": ports}]});
        json!({"kind": "Pod", "metadata": {"name": format!("{app}{number}"), "labels": {"app": app}}, "spec": spec})
    };
    let peer = |app: &str| json!({"podSelector": {"matchLabels": {"app": app}}});
    let egress = json!([{"to": [peer("many"), peer("few")], "ports": [{"port": "web"}]}]);
    let spec = json!({"podSelector": {"matchLabels": {"app": "few"}}, "policyTypes": ["Egress"], "egress": egress});
    let policy = json!({"kind": "NetworkPolicy", "metadata": {"name": "web"}, "spec": spec});
    let few = [64, 65].map(|number| pod("few", number));
    let items: Vec<_> = (1..=65).map(|number| pod("many", number)).chain(few).chain([policy]).collect();
    std::fs::write(dir.file("objects.json"), json!({"kind": "List", "items": items}).to_string()).unwrap();
    let directory = dir.file("").display().to_string();
    for (to, number, word) in
        [("many64", "64", "allowed: "), ("few65", "65", "allowed: "), ("many65", "65", "denied: ")]
    {
        let from = if to == "few65" { "default/few64" } else { "default/few65" };
        let (right, said) = ask(&["--from", &directory, from, &format!("default/{to}"), number]);
        assert!(right && said.starts_with(word), "{said}");
    }
}

#[test]
fn a_directory_is_enough() {
    let dir = Dir::new();
    std::fs::write(dir.file("objects.yaml"), OBJECTS).unwrap();
    std::fs::write(dir.file("notes.txt"), "kind: [").unwrap();
    let directory = dir.file("").display().to_string();
    for (words, right, said) in [
        (
            "a/client default/db 5432",
            true,
            "allowed: a/client 10.244.0.3 to default/db 10.244.0.4 port 5432/TCP\n  \
             egress of a/client: no policy is about it\n  \
             ingress of default/db: allowed by rule 2 of policy default/web\n",
        ),
        (
            "a/client default/db 80/udp",
            true,
            "denied: a/client 10.244.0.3 to default/db 10.244.0.4 port 80/UDP\n  \
             egress of a/client: no policy is about it\n  \
             ingress of default/db: allowed by no rule of default/deny, default/web\n  \
             note: default/web: spec.ingress[0].ports[0]: endPort 1 is less than port 80; it selects nothing\n",
        ),
        (
            "10.244.0.2 10.244.0.4 80",
            true,
            "allowed: 10.244.0.2 to default/db 10.244.0.4 port 80/TCP\n  \
             egress of 10.244.0.2: not a pod of the cluster's network, policies are not about it\n  \
             ingress of default/db: always reached from its own node n1\n",
        ),
        (
            "default/db default/db 1",
            true,
            "allowed: default/db 10.244.0.4 to default/db 10.244.0.4 port 1/TCP\n  \
             egress of default/db: a pod always reaches itself\n  \
             ingress of default/db: a pod always reaches itself\n",
        ),
        ("a/client 10.96.0.7 80", false, "it is the address of service default/web; policies see its pods"),
        ("a/client 192.0.2.9 80", false, "it is the address of service default/web; policies see its pods"),
        ("a/client 192.0.2.10 80", false, "it is the address of service default/web; policies see its pods"),
        (
            "default/db 192.0.2.10 80",
            false,
            "service default/web drops what 10.244.0.4 sends there; add 10.244.0.4 to its",
        ),
        (
            "a/client 192.0.2.9 81",
            true,
            "allowed: a/client 10.244.0.3 to 192.0.2.9 port 81/TCP\n  \
             egress of a/client: no policy is about it\n  \
             ingress of 192.0.2.9: not a pod of the cluster's network, policies are not about it\n",
        ),
        ("a/client b/db 80", false, "cannot find pod b/db: there is none of this name"),
        ("a/client fd00::1 80", false, "they have no address family in common"),
        (
            "client default/db 80",
            false,
            "cannot use \"client\": it is neither a pod nor an address; write namespace/name",
        ),
        (
            "a/client default/db http",
            false,
            "cannot use port \"http\": it is not a number from 1 to 65535; write 80, 53/UDP or 5000/SCTP",
        ),
        ("a/client default/db 80/icmp", false, "ICMP"),
    ] {
        let mut words: Vec<&str> = words.split(' ').collect();
        words.extend(["--from", &directory]);
        let (ok, text) = ask(&words);
        assert_eq!(ok, right, "{words:?}: {text}");
        assert!(if right { text == said } else { text.contains(said) }, "{words:?}: {text}");
    }
    std::fs::write(dir.file("objects.yaml"), "kind: [").unwrap();
    let (ok, text) = ask(&["a/client", "default/db", "80", "--from", &directory]);
    assert!(!ok && text.contains("objects.yaml"), "{text}");
    let (ok, text) = ask(&["a/client", "default/db", "80", "--from", "/nowhere"]);
    assert!(
        !ok && text.contains("cannot read /nowhere: No such file or directory (os error 2); --from names a directory"),
        "{text}"
    );
}

/// Host-network pods are identified by their node's address, but their packets to pods come from another one; replies
/// that are not tracked need rules.
#[test]
fn hosts_and_answers() {
    let dir = Dir::new();
    std::fs::write(dir.file("objects.yaml"), HOSTS).unwrap();
    let directory = dir.file("").display().to_string();
    let hosts = "--host-network-namespace=hosts";
    for (words, said) in [
        ("a/client a/agent 8088", "egress of a/client: allowed by rule 2 of policy a/out\n"),
        ("a/client 172.18.0.12 8088", "egress of a/client: allowed by rule 2 of policy a/out\n"),
        ("a/client 172.18.0.11 8088", "egress of a/client: allowed by no rule"),
        ("a/client a/agent 80", "egress of a/client: allowed by no rule"),
        ("a/client a/db 80", "egress of a/client: allowed by rule 1 of policy a/out\n"),
        ("172.18.0.12 a/db 80", "ingress of a/db: allowed by rule 1 of policy a/into\n"),
        ("a/agent a/db 80", "denied: a/agent 10.244.1.2 to a/db"),
        ("a/agent a/db 81", "denied: a/agent 10.244.1.2 to a/db"),
        (&format!("a/agent a/db 81 {hosts}"), "ingress of a/db: allowed by rule 2 of policy a/into\n"),
        (&format!("a/agent a/db 80 {hosts}"), "ingress of a/db: allowed by no rule"),
        (&format!("100.64.0.3 a/db 81 {hosts}"), "ingress of a/db: allowed by rule 2 of policy a/into\n"),
        (&format!("100.64.0.4 a/db 81 {hosts}"), "ingress of a/db: allowed by no rule"),
        (
            &format!("a/agent a/db 81 {hosts} --enable-stateless-netpol"),
            "allowed: a/agent 10.244.1.2 to a/db 10.244.0.4 port 81/TCP\n  \
             egress of a/agent: not a pod of the cluster's network, policies are not about it\n  \
             ingress of a/db: allowed by rule 2 of policy a/into, which tracks no connections\n  \
             answers, egress of a/db: allowed by rule 1 of policy a/answers\n",
        ),
        (
            "172.18.0.12 a/db 80 --enable-stateless-netpol",
            "denied: 172.18.0.12 to a/db 10.244.0.4 port 80/TCP\n  \
             egress of 172.18.0.12: not a pod of the cluster's network, policies are not about it\n  \
             ingress of a/db: allowed by rule 1 of policy a/into, which tracks no connections\n  \
             answers, egress of a/db: allowed by no rule of a/answers\n",
        ),
    ] {
        let words: Vec<&str> = words.split(' ').chain(["--from", &directory]).collect();
        let (ok, text) = ask(&words);
        assert!(ok && text.contains(said), "{words:?}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_asked() {
    let lab = Lab::new().await;
    lab.api.node("a").await;
    lab.api.pod("one", "a").await;
    lab.api.pod("two", "a").await;
    let process = lab.start("init-master=one", &[]);
    lab.wired(2).await;
    process.kill();
    let policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    let deny = json!({"metadata": {"name": "deny"}, "spec": {"podSelector": {}, "policyTypes": ["Egress"]}});
    lab.api.ask(http::Method::POST, policies, deny).await.unwrap();
    let kubeconfig = format!("--k8s-kubeconfig={}", lab.api.kubeconfig().display());
    let mut said = String::new();
    until("the policy is in the answer", async || {
        said = ask(&["default/one", "default/two", "80", &kubeconfig]).1;
        said.contains("egress of default/one: allowed by no rule of default/deny")
    })
    .await;
    assert!(said.starts_with("denied: default/one 10.128.0."), "{said}");
    plugins(&lab, &said);
    lab.api.ask(http::Method::DELETE, &format!("{policies}/deny"), json!(null)).await.unwrap();
    let (ok, text) = ask(&["default/one", "default/two", "80", "--k8s-apiserver=https://127.0.0.1:1"]);
    assert!(!ok && text.contains("cannot read the cluster"), "{text}");
}

/// The credential plugin of a kubeconfig is run for a user, never for a daemon; its output is not shown.
fn plugins(lab: &Lab, answer: &str) {
    let dir = Dir::new();
    let token = lab.api.kubeconfig().with_extension("token");
    let ran = dir.file("ran").display().to_string();
    let credential =
        r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}"#;
    let says = format!("echo >>{ran}; read token <{}; printf '{credential}' $token", token.display());
    let kubeconfig = dir.file("kubeconfig");
    let user = |script: &str| {
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "/bin/sh", "args": ["-c", script]});
        let text = json!({"current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": lab.api.url(), "certificate-authority": lab.api.file("ca.crt")}}],
            "users": [{"name": "u", "user": {"exec": exec}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]});
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
    };
    let flag = format!("--k8s-kubeconfig={}", kubeconfig.display());
    let words = ["default/one", "default/two", "80", &flag];
    user(&says);
    let out = ovnkube(["--init-cluster-manager=one", &flag]).output().unwrap();
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(!out.status.success() && text.contains("a credential plugin, which a daemon does not"), "{text}");
    assert!(!dir.file("ran").exists());
    assert_eq!(ask(&words), (true, answer.to_owned()));
    assert!(dir.file("ran").exists());
    for (script, problem) in [
        ("printf s3cret; echo log in first >&2; exit 3", "/bin/sh\" of the kubeconfig: exit status: 3 log in first"),
        ("printf 's3cret: ['", "what it prints is not an ExecCredential"),
    ] {
        user(script);
        let (ok, text) = ask(&words);
        assert!(!ok && text.contains(problem) && !text.contains("s3cret"), "{text}");
    }
}
