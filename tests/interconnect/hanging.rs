//! Servers of the shared databases that hang.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ovnkube_ovn::ic_sb::route;
use ovnkube_ovsdb::{Client, Options};
use ovnkube_tests::nb::{Release, until};
use serde_json::json;

use crate::lab::{Lab, members};

/// Longer than a server may be silent while nothing is written: then another one would have been found without the write.
const SILENT: Duration = Duration::from_secs(10);

/// Its system goes on, so no connection ends. The two other members elect a leader, to which this cluster goes because it has something to
/// write. Until then everything stays. Of the other database the two have no server.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_hangs_is_left_for_another_member() {
    let lab = Lab::of(Arc::new(members(Release::Lts)), ("c1", "172.18.0.2")).await;
    lab.add_switch("ts", "169.254.100.0/24");
    lab.add_other();
    let _engine = lab.engine().await;
    lab.configure(&[("ic-db-host", "127.0.0.1,127.0.0.2,127.0.0.3")]).await;
    lab.bind("cr-az1-ts", "c1").await;
    until("their prefix is here", async || lab.routes().contains("10.244.0.0/16")).await;
    until("ours is there", async || lab.shared_rows().contains("10.128.0.0/14")).await;
    lab.is_quiet().await;
    let zone = lab.zone("az2");
    // OVN's tools ask only leaders, so it is alone until all is as it should be
    let (first, port) = (&lab.shared[1], lab.shared[1].port());
    let others = ["127.0.0.2", "127.0.0.3"].map(|host| first.joining(&[format!("--remote=ptcp:{port}:{host}")]));
    let follower = Client::connect(Options { leader_only: false, ..others[0].options() });
    let is_offered = |prefix: &str| {
        let cache = follower.cache();
        cache.iter(route::TABLE).any(|(_, row)| row.str(route::IP_PREFIX) == prefix)
    };
    until("the others have it", async || is_offered("10.128.0.0/14")).await;

    first.signal("STOP");
    let began = Instant::now();
    lab.subnet("ours", json!({"cidrBlock": "10.130.0.0/16", "disableInterConnection": true})).await;
    let theirs = Lab::route(&zone, "ts", "10.99.0.0/16", "169.254.100.77");
    let words: Vec<&str> = ["--no-leader-only"].into_iter().chain(theirs.iter().skip(1).map(String::as_str)).collect();
    others[0].ctl("ovn-ic-sbctl", &words);
    until("the others have what is left of ours", async || {
        assert!(lab.routes().contains("10.244.0.0/16"), "{}", lab.routes());
        is_offered("10.131.0.0/16") && !is_offered("10.128.0.0/14")
    })
    .await;
    until("their new prefix is here", async || lab.routes().contains("10.99.0.0/16")).await;
    let took = began.elapsed();
    // what it got before it hung, it is no leader to write any more
    first.signal("CONT");
    assert!(took < SILENT, "{took:?}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(is_offered("10.131.0.0/16") && !is_offered("10.128.0.0/14"));
    assert!(lab.routes().contains("10.99.0.0/16") && lab.routes().contains("10.244.0.0/16"), "{}", lab.routes());
}
