//! Kills and restarts of the master and of the servers that it uses.

use ovnkube_tests::nb::until;
use serde_json::Value;

use crate::lab::Lab;
use crate::process::Process;

/// Versions of all objects that are annotated.
async fn versions(lab: &Lab) -> Vec<Value> {
    let mut objects = lab.api.list("/api/v1/nodes").await;
    objects.extend(lab.api.pods().await);
    objects.iter().map(|object| object["metadata"]["resourceVersion"].clone()).collect()
}

/// A master with two nodes and two pods on each.
async fn cluster(lab: &Lab) -> Process {
    let process = lab.start("init-master=one", &[]);
    for node in ["a", "b"] {
        lab.api.node(node).await;
        for n in 0..2 {
            lab.api.pod(&format!("{node}-{n}"), node).await;
        }
    }
    lab.wired(4).await;
    lab.quiet().await;
    process
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_writes_nothing() {
    let lab = Lab::new().await;
    let process = cluster(&lab).await;
    assert!(process.terminate().0.success());
    let (written, annotated) = (lab.transactions().len(), versions(&lab).await);
    let process = lab.start("init-master=one", &[]);
    lab.ready(&process).await;
    // the next thing it does shows that everything before is done
    lab.api.pod("next", "a").await;
    lab.wired(5).await;
    assert_eq!(lab.transactions().len(), written + 1);
    let now = versions(&lab).await;
    assert!(annotated.iter().all(|version| now.contains(version)), "annotated again");
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_in_a_burst_lose_and_double_nothing() {
    const PODS: usize = 50;
    let lab = Lab::new().await;
    let process = cluster(&lab).await;
    let ports = async |at_least| until("ports", async || lab.ports().len() >= at_least).await;
    let burst = async {
        for n in 0..PODS {
            lab.api.pod(&format!("burst-{n}"), if n % 3 == 0 { "a" } else { "b" }).await;
        }
    };
    let kills = async {
        let mut process = process;
        for at_least in [10, 25] {
            ports(at_least).await;
            process.kill();
            process = lab.start("init-master=one", &[]);
        }
        process
    };
    let ((), mut process) = tokio::join!(burst, kills);
    lab.wired(4 + PODS).await;
    assert!(process.is_running());
    lab.quiet().await;
    let before = lab.wirings().await;
    process.kill();
    let written = lab.transactions().len();
    let process = lab.start("init-master=one", &[]);
    lab.ready(&process).await;
    assert_eq!(lab.transactions().len(), written);
    assert_eq!(lab.wirings().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_is_lost_and_returns() {
    let mut lab = Lab::new().await;
    let mut process = cluster(&lab).await;
    lab.nb.kill();
    until("it is missed", async || process.log().contains("database is away")).await;
    lab.api.pod("meanwhile", "a").await;
    lab.api.delete_pod("b-0").await;
    lab.nb.start();
    lab.wired(4).await;
    lab.api.pod("next", "b").await;
    lab.wired(5).await;
    assert!(process.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_is_lost_and_returns() {
    let lab = Lab::new().await;
    let mut process = cluster(&lab).await;
    let written = lab.transactions().len();
    lab.api.kill();
    until("it is missed", async || process.log().contains("trying again")).await;
    lab.api.start();
    lab.api.pod("next", "b").await;
    lab.wired(5).await;
    assert_eq!(lab.transactions().len(), written + 1, "only the new pod is news");
    assert!(process.is_running());
}
