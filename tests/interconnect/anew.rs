//! Which database it is: other servers of the same one, and one that was made anew.

use std::sync::Arc;
use std::time::Duration;

use ovnkube_ovn::ic_sb::route;
use ovnkube_ovsdb::{Event, Subscription};
use ovnkube_tests::nb::{Release, until};
use tokio::time::sleep;

use crate::lab::{Lab, members};

/// Whether no row changes for so many seconds.
async fn is_quiet(changes: &mut Subscription, seconds: u64) -> bool {
    sleep(Duration::from_secs(seconds)).await;
    !changes.take().iter().any(|event| matches!(event, Event::Row(_)))
}

/// Nobody has run `init` there, as with ovnkube's own scripts: only the clusters have rows.
#[tokio::test(flavor = "multi_thread")]
async fn other_servers_of_the_same_raft_databases_change_no_row() {
    let lab = Lab::of(Arc::new(members(Release::Lts)), ("c1", "172.18.0.2")).await;
    lab.add_switch("ts", "169.254.100.0/24");
    let _engine = lab.engine().await;
    lab.configure(&[]).await;
    lab.bind("cr-az1-ts", "c1").await;
    // OVN's own tool would do what init does
    let south = lab.shared[1].client().await;
    until("our prefix is offered", async || south.cache().len(route::TABLE) == 1).await;
    let mut changes = south.subscribe();
    until("nothing changes", async || is_quiet(&mut changes, 2).await).await;

    lab.configure(&[("ic-db-host", "127.0.0.1,localhost")]).await;
    let has_moved = |kept: &str| kept.contains("localhost") && !kept.contains("present");
    until("it has moved", async || has_moved(&lab.kept())).await;
    assert!(is_quiet(&mut changes, 3).await, "it has left its own databases");
    assert!(!lab.kept().contains("left"), "{}", lab.kept());
}
