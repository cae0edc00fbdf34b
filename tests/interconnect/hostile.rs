//! Rows that stand in the way of others, in real databases: these have indexes, and refuse a whole transaction.

use ovnkube_tests::nb::{Release, until};
use serde_json::json;

use crate::joined;
use crate::lab::Lab;

/// One bad cluster stops neither the others nor this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_another_one_has_stops_nobody() {
    let lab = Lab::up(Release::Lts).await;
    let (_other, _engine) = joined(&lab).await;
    // the chassis of a node that is not up, and the address of an earlier gateway, written otherwise
    lab.api.node("n9", json!({"k8s.ovn.org/node-chassis-id": "c9"})).await;
    until("the node is known", async || lab.nb.nbctl(&["ls-list"]).contains("(n9)")).await;
    lab.add_cluster("az3", "c9", "172.20.0.3", "ts", (31, "169.254.100.31/24"));
    lab.add_cluster("az4", "gw4", "fd00:19::4", "ts", (32, "169.254.100.32/24"));
    until("an earlier gateway is here", async || lab.has_chassis("gw4")).await;
    lab.add_cluster("az5", "gw5", "fd00:19:0::4", "ts", (33, "169.254.100.33/24"));
    lab.add_cluster("az6", "gw6", "172.20.0.6", "ts", (34, "169.254.100.34/24"));
    until("the others are used", async || lab.has_chassis("gw6")).await;
    until("a port is on its gateway", async || lab.chassis_of("ts-az6") == "gw6").await;
    lab.event_says("cannot use gateway c9 of cluster az3: a chassis of this cluster has the same id").await;
    lab.event_says("cannot use gateway gw5 of cluster az5: gateway gw4 of cluster az4 has its tunnel address").await;
    assert!(lab.has_chassis("gw2") && !lab.has_chassis("gw5") && !lab.has_chassis("c9"));

    // a host that gets another id keeps its address, and nothing is wrong
    let before = lab.events_that_say("gw6").await;
    let set = |table: &str, row: &str, column: &str| {
        let uuid = lab.shared[1].ctl("ovn-ic-sbctl", &["--bare", "--columns=_uuid", "find", table, row]);
        lab.shared[1].ctl("ovn-ic-sbctl", &["set", table, &uuid, column]);
    };
    set("gateway", "name=gw6", "name=gw6-new");
    set("port_binding", "logical_port=ts-az6", "gateway=gw6-new");
    until("the new id is here", async || lab.chassis_of("ts-az6") == "gw6-new").await;
    let gone = || !lab.sb.sbctl(&["--bare", "--columns=name", "list", "chassis"]).lines().any(|name| name == "gw6");
    until("the earlier one is not", async || gone()).await;
    assert_eq!(lab.events_that_say("gw6").await, before);
}

/// A name that another cluster took while this one was away stays its.
#[tokio::test(flavor = "multi_thread")]
async fn leaving_removes_nothing_of_a_cluster_of_the_same_name() {
    let lab = Lab::up(Release::Lts).await;
    lab.add_switch("ts", "169.254.100.0/24");
    lab.add_cluster("az1", "gw9", "172.29.0.2", "ts", (9, "169.254.100.66/24"));
    lab.create(&[Lab::route(&lab.zone("az1"), "ts", "10.99.0.0/16", "169.254.100.66")]);
    let before = lab.shared_rows();
    let _engine = lab.engine().await;
    lab.configure(&[]).await;
    lab.event_says("another cluster has az-name \"az1\" too").await;
    lab.configure(&[("enable-ic", "false")]).await;
    until("nothing is kept", async || !lab.kept().contains("az1")).await;
    assert_eq!(lab.shared_rows(), before);
}

/// A database that refuses what this cluster writes is named, and the others get their part.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_refuses_is_named_and_the_others_go_on() {
    let lab = Lab::up(Release::Lts).await;
    lab.add_switch("ts", "169.254.100.0/24");
    lab.add_cluster("az2", "gw2", "172.19.0.2", "ts", (9, "169.254.100.66/24"));
    // one port in each switch: this cluster gets none
    lab.shared[1].convert(|schema| schema["tables"]["Port_Binding"]["indexes"] = json!([["transit_switch"]]));
    let _engine = lab.engine().await;
    lab.configure(&[]).await;
    until("IC-NB has the address", async || lab.shared_rows().contains("ovnkube-addresses-az1")).await;
    until("SB has their gateway", async || lab.has_chassis("gw2")).await;
    lab.event_says(
        "the southbound interconnection database does not take what this cluster writes, and the others go on",
    )
    .await;
    assert!(!lab.shared_rows().contains("ts-az1"));
    lab.shared[1].convert(|schema| schema["tables"]["Port_Binding"]["indexes"] = json!([["logical_port"]]));
    until("it takes it", async || lab.shared_rows().contains("ts-az1")).await;
}
