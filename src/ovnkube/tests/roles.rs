//! Cluster manager and controller as two processes.

use serde_json::json;

use crate::lab::Lab;

const SUBNETS: &str = "k8s.ovn.org/node-subnets";
const FLAGS: &[&str] = &["--cluster-subnets=10.132.0.0/16/24"];

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_follows_the_annotations() {
    let lab = Lab::new().await;
    lab.api.node("a").await;
    lab.api.pod("one", "a").await;
    let controller = lab.start("init-ovnkube-controller=ctl", FLAGS);
    lab.ready(&controller).await;
    assert!(lab.ports().is_empty() && lab.subnet("a").await.is_empty(), "only the cluster manager gives out subnets");

    let manager = lab.start("init-cluster-manager=cm", FLAGS);
    lab.wired(1).await;
    let subnet = lab.subnet("a").await;
    assert!(lab.nb.nbctl(&["get", "Logical_Switch", "a", "other_config:subnet"]).contains(&subnet));

    // an annotation is used, whoever wrote it
    assert!(manager.terminate().0.success());
    let chosen = json!({SUBNETS: r#"{"default":["10.132.77.0/24"]}"#, "k8s.ovn.org/node-id": "77"});
    lab.api.annotated_node("b", chosen).await;
    lab.api.pod("two", "b").await;
    lab.wired(2).await;
    assert!(lab.wirings().await["two"].contains(" 10.132.77."));

    // there is one zone, whatever is annotated
    let west = json!({SUBNETS: r#"{"default":["10.132.78.0/24"]}"#, "k8s.ovn.org/zone-name": "west"});
    lab.api.annotated_node("c", west).await;
    lab.api.pod("three", "c").await;
    lab.wired(3).await;
    assert!(lab.wirings().await["three"].contains(" 10.132.78."));
    assert!(controller.terminate().0.success());
}
