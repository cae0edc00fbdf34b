//! A master whose northd does not run.

use std::net::SocketAddr;
use std::process::Stdio;

use ovnkube_tests::nb::{Release, until};

use crate::lab::Lab;
use crate::one_process::get;

#[tokio::test(flavor = "multi_thread")]
async fn a_master_says_that_no_northd_is_active() {
    let lab = Lab::new().await;
    lab.api.node("a").await;
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, a | 128, b, c], 9414));
    let flags = [format!("--nb-run-dir={}", lab.dir.file("").display()), format!("--metrics-bind-address={address}")];
    let master = lab.start("init-master=one", &flags.each_ref().map(String::as_str));
    let series = || {
        let metrics = get(address, "/metrics");
        let lines = metrics.lines().filter(|line| line.starts_with("ovnkube_northd_") && !line.ends_with("} 0"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    lab.ready(&master).await;
    let events = async || {
        let events = lab.api.events("ovn-kubernetes").await;
        events.into_iter().filter(|(reason, _)| reason == "NoNorthd").map(|(_, message)| message).collect::<Vec<_>>()
    };
    until("an Event", async || events().await.len() == 1).await;
    assert!(
        events().await[0]
            .starts_with("no northd is active: what ovnkube writes to the northbound database has no effect")
    );
    assert_eq!(series(), ["ovnkube_northd_active 0"]);

    let mut command = Release::Lts.command("ovn-northd");
    for (flag, server) in [("--ovnnb-db", &lab.nb), ("--ovnsb-db", &lab.sb)] {
        command.arg(format!("{flag}=unix:{}", server.socket().display()));
    }
    command
        .args(["--no-chdir", "-vconsole:off", "-vsyslog:off"])
        .arg(format!("--unixctl={}", lab.dir.file("ovn-northd.ctl").display()));
    let mut northd =
        command.stdin(Stdio::null()).stderr(Stdio::null()).env("OVN_RUNDIR", lab.dir.file("")).spawn().unwrap();
    until("the end of that", async || master.log().contains("a northd is active again")).await;
    assert_eq!(events().await.len(), 1);
    assert_eq!(series(), ["ovnkube_northd_active 1", "ovnkube_northd_here{state=\"active\"} 1"]);
    let _ = northd.kill();
    let _ = northd.wait();
}
