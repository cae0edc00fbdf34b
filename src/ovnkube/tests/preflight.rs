//! `ovnkube preflight` on a real API and a real northbound database.

use std::process::Command;

use http::Method;
use ovnkube_tests::dump::{self, Dump};
use ovnkube_tests::nb::until;
use serde_json::json;

use crate::lab::{Dir, Lab};
use crate::process::ovnkube;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Exit code, output, errors.
fn run(words: Vec<String>) -> (i32, String, String) {
    let out = ovnkube(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

fn preflight(lab: &Lab) -> (i32, String, String) {
    let mut words = vec![
        "preflight".to_owned(),
        format!("--k8s-kubeconfig={}", lab.api.file("admin.kubeconfig").display()),
        format!("--nb-address=unix:{}", lab.nb.socket().display()),
    ];
    words.extend(lab.common(&["--k8s-service-cidrs=10.96.0.0/16", "--mtu=1400"]));
    run(words)
}

/// The custom resource EgressIP, and one object of it.
async fn egress_ip(lab: &Lab) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"metadata": {"name": "egressips.k8s.ovn.org"}, "spec": {
        "group": "k8s.ovn.org", "scope": "Cluster",
        "names": {"plural": "egressips", "kind": "EgressIP"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]
    }});
    lab.api.ask(Method::POST, DEFINITIONS, definition).await.unwrap();
    let object = json!({"apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP", "metadata": {"name": "eip-a"}});
    until("an EgressIP can be created", async || {
        lab.api.ask(Method::POST, "/apis/k8s.ovn.org/v1/egressips", object.clone()).await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_and_its_database() {
    let lab = Lab::new().await;
    lab.api.node("a").await;
    let before = lab.transactions().len();
    assert_eq!(preflight(&lab), (0, String::new(), String::new()));

    egress_ip(&lab).await;
    lab.api.annotated_pod("gw", "a", json!({"k8s.ovn.org/routing-namespaces": "apps"})).await;
    lab.nb.client().await.transact(dump::load(&Dump::parse(include_str!("unserved.nb")))).await.unwrap();
    let (code, lines, errors) = preflight(&lab);
    lab.api.delete(&format!("{DEFINITIONS}/egressips.k8s.ovn.org")).await;
    let want = [
        "EgressIP is not supported: eip-a; remove",
        "the annotation k8s.ovn.org/routing-namespaces is not supported: pod default/gw; remove",
        "EgressFirewall is not supported, but has rows: 1 row of a: ACL default-network-controller:EgressFirewall:a:0; ",
        "EgressIP is not supported, but has rows: 2 rows of eip-a: Logical_Router_Policy default-network-controller:EgressIP:100",
    ];
    assert_eq!((code, errors.as_str()), (2, ""), "{lines}");
    assert_eq!(lines.lines().count(), want.len(), "{lines}");
    for (line, want) in lines.lines().zip(want) {
        assert!(line.starts_with(want), "{line}");
    }
    assert_eq!(lab.transactions().len(), before + 1, "it wrote");
}

/// 1: nobody knows whether there is something to do.
#[test]
fn what_cannot_be_read_is_an_error() {
    let dir = Dir::new();
    let config = dir.file("ovn_k8s.conf");
    std::fs::write(&config, "").unwrap();
    let config = format!("--config-file={}", config.display());
    let not_a_directory = format!("--cni-conf-dir={}", dir.file("ovn_k8s.conf").display());
    for (flags, named) in [
        (
            vec!["--k8s-apiserver=http://127.0.0.1:1", "--nb-address=unix:/nowhere"],
            "cannot read the API server's version",
        ),
        (vec!["--node=a"], "write --node without \"a\""),
        (vec!["--node", &not_a_directory], "ovn_k8s.conf"),
    ] {
        let words = ["preflight", &config].into_iter().chain(flags.iter().copied());
        let (code, lines, errors) = run(words.map(str::to_owned).collect());
        assert_eq!((code, lines.as_str()), (1, ""), "{flags:?}: {errors}");
        assert!(errors.contains(named), "{flags:?}: {errors}");
    }
}

/// Programs of this host that are too old, missing, or broken.
#[test]
fn programs_of_a_host() {
    let dir = Dir::new();
    let conf = format!("--cni-conf-dir={}", dir.file("none").display());
    let bin = dir.file("bin");
    std::fs::create_dir(&bin).unwrap();
    let says = |name: &str, text: &str| {
        let script = format!("printf '#!/bin/sh\\necho \"%s\"\\n' '{text}' >\"$1\" && chmod 755 \"$1\"");
        let made = Command::new("sh").args(["-c", &script, "sh"]).arg(bin.join(name)).status().unwrap();
        assert!(made.success());
    };
    let found = || {
        let out = ovnkube(["preflight", "--node", &conf]).env("PATH", &bin).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().filter(|line| line.contains("program")).map(str::to_owned).collect::<Vec<_>>()
    };
    let pods = "; where everything runs in pods, the image has it";
    let missing = [
        format!("a program is missing: nft; install the package nftables, 0.9 or later{pods}"),
        format!("a program is missing: ovs-vswitchd; install the package openvswitch-switch, 3.1 or later{pods}"),
        format!("a program is missing: ovn-controller; install the package ovn-host, 23.03 or later{pods}"),
    ];
    assert_eq!(found(), missing);
    says("nft", "nftables v1.0.6 (Lester Gooch #5)");
    says("ovs-vswitchd", "ovs-vswitchd (Open vSwitch) 2.17.9");
    says("ovn-controller", "ovn-controller 22.12.1");
    assert_eq!(
        found(),
        [
            "a program is too old: ovs-vswitchd: ovs-vswitchd (Open vSwitch) 2.17.9; update the package openvswitch-switch to 3.1 or later",
            "a program is too old: ovn-controller: ovn-controller 22.12.1; update the package ovn-host to 23.03 or later",
        ]
    );
    says("ovs-vswitchd", "ovs-vswitchd (Open vSwitch) 3.1.0");
    says("ovn-controller", "ovn-controller 23.03.0");
    assert!(found().is_empty(), "{:?}", found());
    // those of this machine, which tests run with
    let out = ovnkube(["preflight", "--node", &conf]).env("PATH", std::env::var("PATH").unwrap()).output().unwrap();
    assert!(!String::from_utf8(out.stdout).unwrap().contains("program"));
}

#[test]
fn a_host() {
    let dir = Dir::new();
    std::fs::write(dir.file("05-theirs.conflist"), "{}").unwrap();
    let conf = format!("--cni-conf-dir={}", dir.file("").display());
    let (code, lines, errors) = run(["preflight", "--node", &conf].map(str::to_owned).to_vec());
    assert_eq!((code, errors.as_str()), (2, ""));
    let theirs = "05-theirs.conflist; remove it: it sorts before 10-ovn-kubernetes.conflist";
    assert!(lines.lines().any(|line| line.ends_with(theirs)), "{lines}");
}
