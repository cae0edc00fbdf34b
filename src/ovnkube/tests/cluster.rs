//! How the values that are common to the whole cluster get from the master to node agents.

use http::Method;
use ovnkube_tests::nb::until;
use serde_json::{Value, json};

use crate::api::CLUSTER;
use crate::lab::Lab;
use crate::process::Process;

const MASTER: &[&str] = &["--cluster-subnets=10.244.0.0/16", "--k8s-service-cidr=10.96.0.0/16"];

/// The line for minions of the first guide to clustered databases: no range of services, and subnets that are not those of pods. It has no
/// Open vSwitch, so that nothing of this host is changed.
fn minion(lab: &Lab) -> Process {
    Process::apart(&lab.dir.file("minion.log"), minion_words(lab))
}

fn minion_words(lab: &Lab) -> [String; 7] {
    let config = lab.dir.file("minion.conf");
    let dir = lab.dir.file("none");
    std::fs::write(&config, format!("[ovspaths]\nrun-dir={0}\n[cni]\nconf-dir={0}\n", dir.display())).unwrap();
    [
        "--init-node=n1".to_owned(),
        "--init-gateways".to_owned(),
        format!("--config-file={}", config.display()),
        format!("--k8s-kubeconfig={}", lab.api.agent("n1").display()),
        "--sb-address=tcp:127.0.0.1:1".to_owned(),
        "--k8s-service-cidr=".to_owned(),
        "--cluster-subnets=10.96.0.0/16".to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_older_than_the_masters_says_so_in_an_event() {
    let lab = Lab::new().await;
    lab.api.node("n1").await;
    lab.api.ask(Method::PATCH, CLUSTER, json!({"data": {"version": "7.0.0"}})).await.unwrap();
    let _minion = minion(&lab).after("the masters are 7.0.0").await;
    until("the Event", async || {
        let events = lab.api.events("n1").await;
        events.iter().any(|(reason, said)| reason == "AgentOlder" && said.contains("update the image of the DaemonSet"))
    })
    .await;
}

async fn data(lab: &Lab) -> Value {
    lab.api.get(CLUSTER).await["data"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_takes_the_values_of_the_master() {
    let lab = Lab::new().await;
    lab.api.node("n1").await;
    // it starts first and finds no values
    let minion = minion(&lab).after("Open_vSwitch").await;
    assert!(!minion.log().contains("using the cluster's value"), "{}", minion.log());
    let master = lab.start("init-master=one", MASTER);
    lab.ready(&master).await;
    let want = json!({
        "cluster-subnets": "10.244.0.0/16/24", "service-cidrs": "10.96.0.0/16", "join-subnets": "100.64.0.0/16,fd98::/64",
        "version": env!("CARGO_PKG_VERSION"),
    });
    assert_eq!(data(&lab).await, want);
    let minion = minion.after("cluster-subnets of the cluster is 10.244.0.0/16/24, of this host 10.96.0.0/16/24").await;
    let minion = minion.after("service-cidrs of the cluster is 10.96.0.0/16").await;
    for (said, times) in [("starting over", 1), ("using the cluster's value", 2)] {
        assert_eq!(minion.log().matches(said).count(), times, "{said}: {}", minion.log());
    }
    drop(minion);
    // the next time it has them from the start
    let again = self::minion(&lab).after("of the cluster is 10.244.0.0/16/24").await.after("Open_vSwitch").await;
    assert!(!again.log().contains("starting over"), "{}", again.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_keeps_its_values_while_those_of_the_cluster_are_bad() {
    let lab = Lab::new().await;
    lab.api.annotated_node("n1", json!({"k8s.ovn.org/node-subnets": r#"{"default":["10.244.0.0/24"]}"#})).await;
    let publish = async |pods: &str| {
        let data = json!({"data": {"cluster-subnets": pods, "service-cidrs": "10.112.0.0/16"}});
        lab.api.ask(Method::PATCH, CLUSTER, data).await.unwrap();
    };
    publish("10.112.0.0/12/24").await;
    let refusal = "cannot use the values of config map ovn-kubernetes/ovnkube-cluster: 10.112.0.0/12 of cluster-subnets and \
                   10.112.0.0/16 of service-cidrs overlap";
    let minion = minion(&lab).after(refusal).await.after("Open_vSwitch").await;
    let log = minion.log();
    assert!(!log.contains("using the cluster's value") && !log.contains("starting over"), "{log}");
    drop(minion);
    publish("10.244.0.0/16/24").await;
    self::minion(&lab).after("cluster-subnets of the cluster is 10.244.0.0/16/24, of this host 10.96.0.0/16/24").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_with_other_values_says_so_and_one_with_the_same_writes_nothing() {
    let lab = Lab::new().await;
    lab.api.node("n1").await;
    let run = async |flags| {
        let master = lab.start("init-master=one", flags);
        lab.ready(&master).await;
        let log = master.log();
        assert!(master.terminate().0.success());
        log
    };
    run(MASTER).await;
    let version = async || lab.api.get(CLUSTER).await["metadata"]["resourceVersion"].clone();
    let before = version().await;
    assert!(!run(MASTER).await.contains("of the cluster was"));
    assert_eq!(version().await, before);
    let log = run(&["--cluster-subnets=10.244.0.0/16,10.245.0.0/16", "--k8s-service-cidr=10.96.0.0/16"]).await;
    assert!(log.contains("cluster-subnets of the cluster was 10.244.0.0/16/24 and is"), "{log}");
    assert_eq!(data(&lab).await["cluster-subnets"], json!("10.244.0.0/16/24,10.245.0.0/16/24"));
}

/// Somebody edits them, or deletes them and makes them anew, empty.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_keeps_the_values() {
    let lab = Lab::new().await;
    lab.api.node("n1").await;
    let master = lab.start("init-master=one", MASTER);
    lab.ready(&master).await;
    let want = data(&lab).await;
    lab.api.ask(Method::PATCH, CLUSTER, json!({"data": {"service-cidrs": "10.9.0.0/16"}})).await.unwrap();
    until("the edit is undone", async || data(&lab).await == want).await;
    lab.api.delete(CLUSTER).await;
    let empty = json!({"metadata": {"name": "ovnkube-cluster"}});
    lab.api.ask(Method::POST, CLUSTER.rsplit_once('/').unwrap().0, empty).await.unwrap();
    until("the values are back", async || data(&lab).await == want).await;
}

/// Its Node has subnets already, so no master has to give out any before it has written the values.
#[tokio::test(flavor = "multi_thread")]
async fn a_minion_takes_values_that_come_late() {
    let lab = Lab::new().await;
    lab.api.annotated_node("n1", json!({"k8s.ovn.org/node-subnets": r#"{"default":["10.244.0.0/24"]}"#})).await;
    let minion = minion(&lab).after("Open_vSwitch").await;
    let values = json!({"data": {"cluster-subnets": "10.244.0.0/16/24", "service-cidrs": "10.112.0.0/16"}});
    lab.api.ask(Method::PATCH, CLUSTER, values).await.unwrap();
    minion.after("starting over").await.after("of the cluster is 10.244.0.0/16/24, of this host 10.96.0.0/16").await;
}

/// With the rights of dist/yaml of an earlier release.
#[tokio::test(flavor = "multi_thread")]
async fn without_rights_to_it_a_master_works_and_logs_that() {
    let lab = Lab::new().await;
    lab.api.node("n1").await;
    lab.api.delete(CLUSTER).await;
    let master = lab.start("init-master=one", MASTER);
    lab.ready(&master).await;
    assert!(master.log().contains("give the account the rights that dist/yaml has"), "{}", master.log());
    let empty = json!({"metadata": {"name": "ovnkube-cluster"}});
    lab.api.ask(Method::POST, CLUSTER.rsplit_once('/').unwrap().0, empty).await.unwrap();
    until("the node has a subnet", async || !lab.subnet("n1").await.is_empty()).await;
}

/// An agent asks once for what masters tell the hosts: a label that comes and goes needs no other request.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_once_for_what_masters_tell_hosts() {
    let lab = Lab::new().await;
    lab.api.node("n1").await;
    let label = async |value: Value| {
        let labels = json!({"metadata": {"labels": {"ovn.kubernetes.io/host-route": value}}});
        lab.api.ask(Method::PATCH, "/api/v1/nodes/n1", labels).await.unwrap();
    };
    let before = lab.api.lists("configmaps").await;
    let minion = minion(&lab).after("Open_vSwitch").await;
    until("the agent asks", async || lab.api.lists("configmaps").await == before + 1).await;
    for value in ["true", "false", "true"] {
        label(json!(value)).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    let bad = json!({"data": {"host-routes": "az2 224.0.0.0/8\n"}});
    lab.api.ask(Method::PATCH, CLUSTER, bad).await.unwrap();
    let minion = minion.after("its addresses are multicast").await;
    assert_eq!(lab.api.lists("configmaps").await, before + 1);
    assert!(!minion.log().contains("give the account the rights"), "{}", minion.log());
}
