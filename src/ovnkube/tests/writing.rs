//! A leader that cannot write to a database.

use std::net::SocketAddr;

use http::Method;
use ovnkube_tests::nb::{Release, Server, until};
use serde_json::json;

use crate::lab::Lab;
use crate::one_process::get;

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_a_database_says_so() {
    let lab = Lab::new().await;
    let mut nb = Server::new(Release::Lts);
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, a | 128, b, c], 9416));
    let flags = [format!("--nb-address=unix:{}", nb.socket().display()), format!("--metrics-bind-address={address}")];
    let master = lab.start("init-master=one", &flags.each_ref().map(String::as_str));
    lab.ready(&master).await;
    let ready = || get(address, "/readyz");
    let shows = |database: &str, value: u8| {
        let line = format!("ovnkube_database_writable{{database=\"{database}\"}} {value}");
        get(address, "/metrics").lines().any(|found| found == line)
    };
    until("it may write to both", async || shows("northbound", 1) && shows("southbound", 1)).await;
    assert!(ready().ends_with("ok\n"), "{}", ready());

    nb.kill();
    until("the database is not writable", async || shows("northbound", 0)).await;
    let said = "writes to the northbound database: nothing can be written: no server of it can be used";
    until("that in /readyz", async || ready().contains(said)).await;
    assert!(ready().starts_with("HTTP/1.0 503") && shows("southbound", 1), "{}", ready());
    let events = async || {
        let mut events = lab.api.events("ovn-kubernetes").await;
        events.retain(|(reason, _)| reason == "DatabaseNotWritable");
        events.into_iter().map(|(_, message)| message).collect::<Vec<_>>()
    };
    until("an Event", async || !events().await.is_empty()).await;
    let told = events().await;
    assert!(
        told.len() == 1 && told[0].starts_with("nothing can be written to the northbound database: no"),
        "{told:?}"
    );

    // another takes the lease by force and does not renew it: nothing is written in the second term yet
    let written = "ovnkube_controller_ready_duration_seconds 0.0\n";
    assert!(!get(address, "/metrics").contains(written));
    let path = "/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases/ovn-kubernetes-master";
    lab.api.ask(Method::PATCH, path, json!({"spec": {"holderIdentity": "thief"}})).await.unwrap();
    until("the second term", async || master.log().matches("holds the lease").count() == 2).await;
    until("the time of the second term", async || get(address, "/metrics").contains(written)).await;

    nb.start();
    until("it is ready again", async || ready().ends_with("ok\n") && shows("northbound", 1)).await;
}
