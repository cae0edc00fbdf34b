//! Rows of features that are not served, as ovn-kubernetes writes them.

use ovnkube_ovn::nb::{self, logical_router as lr};
use ovnkube_plan::{Unserved, is_taken_over};
use ovnkube_tests::dump::{self, Dump};
use ovnkube_tests::nb::{Release, Server};

/// What a database has, one feature a line.
async fn held(rows: &str) -> String {
    let server = Server::new(Release::Lts);
    let client = server.client().await;
    client.transact(dump::load(&Dump::parse(rows))).await.unwrap();
    let cache = client.cache();
    assert!(cache.iter(lr::TABLE).all(|(_, row)| !is_taken_over(row)), "no master of ours was here");
    let all = nb::DATABASE.tables.iter().flat_map(|table| cache.iter(table)).map(|(_, row)| &**row);
    Unserved::of(all).features().map(|(feature, holding)| [feature, ": ", &holding, "\n"].concat()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_of_ovn_kubernetes_uses() {
    assert_eq!(held(include_str!("../parity/global-base.nb")).await, "");
    let want = include_str!("../parity/global-features.unserved");
    assert_eq!(held(include_str!("../parity/global-features.nb")).await, want);
}
