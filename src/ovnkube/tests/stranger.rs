//! A master whose database was created again.

use std::net::SocketAddr;

use ovnkube_tests::nb::{Release, until};
use ovnkube_tests::raft::Member;

use crate::lab::Lab;
use crate::one_process::get;
use crate::process::Process;

/// What the log and `/readyz` say.
fn refusal(member: &Member, used: &str) -> String {
    format!(
        "{}: server is in cluster {}, but this process uses cluster {used}; give",
        member.remote(),
        member.cluster_id()
    )
}

async fn events(lab: &Lab) -> Vec<String> {
    events_of(lab, "DatabaseOfAnotherCluster").await
}

async fn events_of(lab: &Lab, wanted: &str) -> Vec<String> {
    let events = lab.api.events("ovn-kubernetes").await;
    events.into_iter().filter(|(reason, _)| reason == wanted).map(|(_, message)| message).collect()
}

/// Waits until the pod `one` has a port; its addresses.
async fn port(member: &Member) -> String {
    let addresses =
        || member.nbctl(&["--bare", "--columns=addresses", "find", "Logical_Switch_Port", "name=default_one"]);
    until("the port", async || !addresses().is_empty()).await;
    addresses()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_created_again_is_refused_until_a_restart() {
    let lab = Lab::new().await;
    lab.api.node("a").await;
    lab.api.pod("one", "a").await;
    let mut member = Member::cluster(Release::Lts, 1).remove(0);
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, a | 128, b, c], 9411));
    let flags = [format!("--nb-address={}", member.remote()), format!("--metrics-bind-address={address}")];
    let start = || -> Process { lab.start("init-master=one", &flags.each_ref().map(String::as_str)) };
    let master = start();
    lab.ready(&master).await;
    let (first, addresses) = (member.cluster_id(), port(&member).await);
    assert!(get(address, "/readyz").ends_with("ok\n"));

    let kept = member.dir().join("kept");
    member.kill();
    std::fs::rename(member.file(), &kept).unwrap();
    member.create_cluster();
    member.start();
    member.joined();
    let said = refusal(&member, &first);
    let ready = || get(address, "/readyz");
    until("the refusal in /readyz", async || ready().contains(&format!("northbound database: {said}"))).await;
    assert!(ready().starts_with("HTTP/1.0 503") && ready().contains("restart ovnkube"), "{}", ready());
    until("an Event", async || events(&lab).await.len() == 1).await;
    assert!(events(&lab).await[0].starts_with(&format!("the northbound database is not used: {said}")));
    // it is asked each second, and said once
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    let (_, why) = said.split_once(": ").unwrap();
    assert_eq!(master.log().matches(&format!("error={why}")).count(), 1, "{}", master.log());
    assert_eq!(events(&lab).await.len(), 1);
    assert_eq!(member.nbctl(&["ls-list"]), "", "it wrote");

    // the right one is back
    member.kill();
    let again = member.dir().join("again");
    std::fs::rename(member.file(), &again).unwrap();
    std::fs::rename(&kept, member.file()).unwrap();
    member.start();
    until("the first database is used", async || ready().ends_with("ok\n")).await;
    lab.api.pod("two", "a").await;
    until("a new port", async || member.nbctl(&["lsp-list", "a"]).contains("default_two")).await;

    // it was created again on purpose
    member.kill();
    std::fs::rename(&again, member.file()).unwrap();
    member.start();
    until("the refusal in /readyz", async || ready().contains(&said)).await;
    assert!(master.terminate().0.success());
    let master = start();
    lab.ready(&master).await;
    assert!(get(address, "/readyz").ends_with("ok\n"));
    assert_eq!(port(&member).await, addresses, "all is written again, with the same addresses");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_copy_of_the_database_is_refused_until_a_restart() {
    let lab = Lab::new().await;
    lab.api.node("a").await;
    lab.api.pod("one", "a").await;
    let mut member = Member::cluster(Release::Lts, 1).remove(0);
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, a | 128, b, c], 9412));
    let flags = [format!("--nb-address={}", member.remote()), format!("--metrics-bind-address={address}")];
    let start = || -> Process { lab.start("init-master=one", &flags.each_ref().map(String::as_str)) };
    let [old, new] = ["old", "new"].map(|name| member.dir().join(name));
    member.kill();
    std::fs::copy(member.file(), &old).unwrap();
    member.start();
    member.joined();
    let master = start();
    lab.ready(&master).await;
    let addresses = port(&member).await;
    // more than an election adds
    for n in 0..10 {
        member.nbctl(&["set", "NB_Global", ".", &format!("external_ids:x={n}")]);
    }
    let ready = || get(address, "/readyz");
    until("the master is ready", async || ready().ends_with("ok\n")).await;

    member.kill();
    std::fs::rename(member.file(), &new).unwrap();
    std::fs::copy(&old, member.file()).unwrap();
    member.start();
    member.joined();
    let said = format!("{}: the log of the server ends before entry ", member.remote());
    until("the refusal in /readyz", async || ready().contains(&format!("northbound database: {said}"))).await;
    assert!(ready().starts_with("HTTP/1.0 503") && ready().contains("restart ovnkube"), "{}", ready());
    until("an Event", async || events_of(&lab, "DatabaseOlderThanSeen").await.len() == 1).await;
    let event = events_of(&lab, "DatabaseOlderThanSeen").await.remove(0);
    assert!(event.starts_with(&format!("the northbound database is not used: {said}")), "{event}");
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(events_of(&lab, "DatabaseOlderThanSeen").await.len(), 1);
    assert_eq!(member.nbctl(&["ls-list"]), "", "it wrote");

    // the right one is back
    member.kill();
    std::fs::rename(&new, member.file()).unwrap();
    member.start();
    until("the first database is used", async || ready().ends_with("ok\n")).await;
    // the old one is wanted
    member.kill();
    std::fs::rename(&old, member.file()).unwrap();
    member.start();
    until("the refusal in /readyz", async || ready().contains(&said)).await;
    assert!(master.terminate().0.success());
    let master = start();
    lab.ready(&master).await;
    assert_eq!(port(&member).await, addresses, "all is written again, with the same addresses");
}
