//! Version skew: what masters and agents of an earlier state wrote, and today's.
//!
//! A folder has what a master of the commit of that name wrote for `objects.yaml`: its rows and its annotations. Today's
//! master takes them over without a write. From nothing, it writes the same, so the earlier master would not write either:
//! updates and going back change nothing. The Nodes in `objects.yaml` have the annotations of earlier agents.
//!
//! `WRITE=FOLDER` writes a folder: docs/releases.md says when.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ovnkube_model::{GatewayMode, NodeFields, Subnet};
use ovnkube_node_plan::annotations::Facts;
use ovnkube_plan::{Patch, PatchTarget};
use ovnkube_tests::dump::{self, Dump};
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects};
use serde_json::{Value, json};

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("skew")
}

fn settings() -> Settings {
    Settings {
        cluster_subnets: "10.128.0.0/14/23,fd01::/48/64".into(),
        service_cidrs: "10.96.0.0/16,fd00:10:96::/112".into(),
        multicast: true,
        host_network_namespace: Some("ovn-host-network".into()),
        ..Settings::default()
    }
}

fn documents() -> Vec<Value> {
    serde_saphyr::from_multiple(include_str!("objects.yaml")).unwrap()
}

fn objects() -> Objects {
    let mut objects = Objects::default();
    for object in documents() {
        objects.put(object);
    }
    objects
}

/// One line for each annotation: kind, namespace, name, key and value.
fn lines(patches: &[Patch]) -> String {
    let of = |patch: &Patch| {
        let (kind, namespace, name) = match &patch.target {
            PatchTarget::Node(name) => ("Node", String::new(), name.to_string()),
            PatchTarget::Pod(key) => ("Pod", key.namespace.to_string(), key.name.to_string()),
        };
        let annotations = patch.annotations.iter();
        annotations.map(|(key, value)| json!([kind, namespace, name, key, value]).to_string()).collect::<Vec<_>>()
    };
    let mut all: Vec<String> = patches.iter().flat_map(of).collect();
    all.sort();
    all.join("\n") + "\n"
}

/// The objects, as a master has annotated them.
fn annotated(lines: &str) -> Objects {
    let mut objects = objects();
    for line in lines.lines() {
        let [kind, namespace, name, key, value]: [String; 5] = serde_json::from_str(line).unwrap();
        let metadata = json!({"namespace": namespace, "name": name, "annotations": {key: value}});
        objects.merge(&json!({"kind": kind, "metadata": metadata}));
    }
    objects
}

async fn written(server: &Server) -> (String, String) {
    let mut objects = objects();
    let mut master = Controller::start(settings().network(), server.client().await, &objects);
    let (_, patches) = master.settle(&mut objects).await;
    assert_eq!(master.notices, [].into(), "nothing is wrong with the objects");
    (Dump::of(&master.nb).text(), lines(&patches))
}

#[tokio::test(flavor = "multi_thread")]
async fn masters_of_both_states_write_the_same() {
    let new = written(&Server::new(Release::Lts)).await;
    if let Some(folder) = std::env::var_os("WRITE") {
        std::fs::create_dir_all(home().join(&folder)).unwrap();
        std::fs::write(home().join(&folder).join("rows.nb"), &new.0).unwrap();
        std::fs::write(home().join(&folder).join("annotations"), &new.1).unwrap();
    }
    let folders = home().read_dir().unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut count = 0;
    for folder in folders {
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
        let old = (read("rows.nb"), read("annotations"));
        assert_eq!(new.1, old.1, "{}: annotations (left: today's)", folder.display());
        assert_eq!(new.0, old.0, "{}: rows (left: today's)", folder.display());

        let server = Server::new(Release::Lts);
        server.client().await.transact(dump::load(&Dump::parse(&old.0))).await.unwrap();
        let mut objects = annotated(&old.1);
        let mut master = Controller::start(settings().network(), server.client().await, &objects);
        let (transactions, patches) = master.settle(&mut objects).await;
        assert_eq!((transactions, patches.len()), (0, 0), "{}: {patches:?}", folder.display());
        assert_eq!(master.notices, [].into(), "{}", folder.display());
        count += 1;
    }
    assert!(count > 0, "no folder in {}", home().display());
}

/// What agents write has no other form than before, and is read.
#[test]
fn agents_of_both_states_write_the_same() {
    let masquerade: [Subnet; 2] = ["169.254.169.0/29", "fd69::/125"].map(|range| range.parse().unwrap());
    for (name, host, loopback, mode) in
        [("n1", [0x0b, 11], Some("10.9.9.1/32"), GatewayMode::Shared), ("n2", [0x0c, 12], None, GatewayMode::Local)]
    {
        let node = documents().into_iter().find(|object| object["metadata"]["name"] == name).unwrap();
        let old = &node["metadata"]["annotations"];
        let links = [format!("172.18.0.{}/16", host[1]), format!("fd00:172:18::{:x}/64", host[0])];
        let links = links.iter().map(String::as_str).chain(loopback).chain(["169.254.169.2/29", "::1/128"]);
        let links: Vec<_> = links.map(|address| address.parse().unwrap()).collect();
        let internal: [IpAddr; 2] =
            [format!("172.18.0.{}", host[1]), format!("fd00:172:18::{:x}", host[0])].map(|ip| ip.parse().unwrap());
        let facts = Facts {
            system_id: old["k8s.ovn.org/node-chassis-id"].as_str().unwrap(),
            zone: "global",
            addresses: Some(&links),
            internal_ips: &internal,
            encap_ips: &internal[..1],
            masquerade: &masquerade,
            gateway: old["k8s.ovn.org/l3-gateway-config"].as_str().map(str::to_owned),
            checks_mtu: name == "n1",
            mtu: Some("1442".into()),
        };
        let mut new = facts.annotations();
        new.retain(|_, value| !value.is_empty());
        assert_eq!(json!(new), *old, "{name} (left: today's)");

        let (labels, annotations) = (BTreeMap::new(), new);
        let meta = ovnkube_model::Meta { uid: "u", created: 0, labels: &labels, annotations: &annotations };
        let read = ovnkube_model::Node::parse(&meta, NodeFields::default());
        assert_eq!((read.bad, read.gateway.unwrap().mode, read.mtu), (vec![], mode, Some(1442)));
    }
}
