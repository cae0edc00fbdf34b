//! A master on a database that ovn-kubernetes wrote for features that are not supported.

use ovnkube_tests::dump::{self, Dump};
use ovnkube_tests::nb::until;
use serde_json::{Value, json};

use crate::lab::Lab;

/// What ovn-kubernetes 1.3.0 writes for an EgressIP, an EgressFirewall, multicast, and for EgressIP before anybody uses it.
const ROWS: &str = include_str!("unserved.nb");
/// Served, but not wanted, in the port group that an egress firewall keeps.
const UNWANTED: &str = "ACL(default-network-controller:MulticastNS:a:Ingress)";
const NAMESPACE: &str = "ovn-kubernetes";

pub(crate) async fn lab() -> Lab {
    let lab = Lab::new().await;
    lab.nb.client().await.transact(dump::load(&Dump::parse(ROWS))).await.unwrap();
    lab
}

/// Rows of these features that are not as they were.
async fn changed(lab: &Lab) -> Vec<String> {
    let now = Dump::of(&lab.nb.client().await);
    let is_ours = |label: &str| label.starts_with("Logical_Router(") || label.starts_with("Port_Group(");
    let before = Dump::parse(ROWS).0.into_iter().filter(|(label, _)| !is_ours(label));
    before.filter(|(label, rows)| now.0.get(label) != Some(rows)).map(|(label, _)| label).collect()
}

async fn events(lab: &Lab, reason: &str) -> Vec<String> {
    let events = lab.api.events(NAMESPACE).await;
    events.into_iter().filter(|(of, _)| of == reason).map(|(_, message)| message).collect()
}

/// What the agent of a node says about its gateway.
fn gateway() -> Value {
    let gateway = json!({"default": {
        "mode": "shared", "interface-id": "br-ex_a", "mac-address": "02:00:00:00:00:0a",
        "ip-addresses": ["172.18.0.2/16"], "next-hops": ["172.18.0.1"], "node-port-enable": "true", "vlan-id": "0"
    }});
    json!({"k8s.ovn.org/node-chassis-id": "c-a", "k8s.ovn.org/l3-gateway-config": gateway.to_string()})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_with_an_unserved_feature() {
    let lab = lab().await;
    lab.api.annotated_node("a", gateway()).await;
    let written = lab.transactions().len();
    // a port of tunnels that this master is not told
    lab.sb.sbctl(&["chassis-add", "c-a", "geneve", "172.18.0.2", "--", "set", "encap", ".", "options:dst_port=16081"]);
    let port = || lab.sb.sbctl(&["--bare", "--columns=options", "list", "encap"]);

    let refusing = lab.start("init-master=one", &[]).after("cannot take over the northbound database").await;
    let log = refusing.log();
    for named in [
        "EgressFirewall, 1 row of a: ACL default-network-controller:EgressFirewall:a:0",
        "EgressIP, 2 rows of eip-a: Logical_Router_Policy default-network-controller:EgressIP:100:eip-a_a/web:ip4:default",
        "--allow-unserved",
        "ovnkube preflight",
    ] {
        assert!(log.contains(named), "{named} is not named: {log}");
    }
    until("an Event for each feature", async || events(&lab, "UnservedRows").await.len() == 2).await;
    // whatever happens meanwhile
    lab.api.pod("web", "a").await;
    lab.nb.nbctl(&["lr-add", "theirs"]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(lab.transactions().len(), written + 1, "it wrote");
    assert_eq!(lab.subnet("a").await, "");
    assert!(port().contains("16081"), "it wrote to the southbound database");
    assert_eq!(refusing.log().matches("cannot take over").count(), 1);
    assert!(refusing.terminate().0.success());

    let allowed = lab.start("init-master=one", &["--allow-unserved"]);
    lab.ready(&allowed).await;
    lab.wired(1).await;
    assert_eq!(changed(&lab).await, [UNWANTED]);
    until("an Event for each feature", async || events(&lab, "UnservedRowsKept").await.len() == 2).await;
    let mut kept = events(&lab, "UnservedRowsKept").await;
    kept.sort();
    assert!(
        kept[1].starts_with("EgressIP is not supported, but the northbound database has 2 rows of eip-a"),
        "{kept:?}"
    );
    until("the tunnels' port", async || !port().contains("16081")).await;
    until("the gateway router", async || lab.nb.nbctl(&["lr-list"]).contains("GR_a")).await;
    assert!(allowed.terminate().0.success());

    // a database that was taken over is not asked about again
    let again = lab.start("init-master=one", &[]);
    lab.ready(&again).await;
    assert!(again.log().contains("they stay as they are"), "{}", again.log());
    assert_eq!(changed(&lab).await, [UNWANTED]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusing_master_goes_on_when_the_rows_are_gone() {
    let lab = lab().await;
    lab.api.node("a").await;
    let master = lab.start("init-master=one", &[]).after("cannot take over the northbound database").await;
    lab.nb.nbctl(&["lr-del", "ovn_cluster_router"]);
    lab.nb.nbctl(&["lr-del", "GR_a"]);
    lab.nb.nbctl(&["pg-del", "a17441831628731841464"]);
    lab.ready(&master).await;
    assert_ne!(lab.subnet("a").await, "");
}
