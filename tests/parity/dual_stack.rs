//! Takeover of a cluster with both address families that ovn-kubernetes set up.
//!
//! `dual-stack.nb` has its rows for the objects of `dual-stack.yaml`. Annotations begin with IPv4, whichever
//! family comes first in the settings.

use ovnkube_tests::dump::{self, Dump};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects};

use crate::more::{of_cluster, with_what_differs};

/// The uid of namespace kube-system.
const CLUSTER: &str = "7faa5628-85d5-4695-8d89-58c2a48fb352";
const V4_FIRST: [&str; 2] = ["10.244.0.0/16/24,fd00:10:244::/48/64", "10.96.0.0/16,fd00:10:96::/112"];
const V6_FIRST: [&str; 2] = ["fd00:10:244::/48/64,10.244.0.0/16/24", "fd00:10:96::/112,10.96.0.0/16"];

fn settings([subnets, services]: [&str; 2]) -> Settings {
    Settings {
        cluster_subnets: subnets.into(),
        service_cidrs: services.into(),
        egress_firewall: false,
        ..crate::settings()
    }
}

/// Takes over and checks that no row was recreated; objects are annotated already.
async fn take_over(original: &Dump, ranges: [&str; 2]) -> Dump {
    let server = crate::taken_over(original).await;
    let mut objects: Objects = crate::read(include_str!("dual-stack.yaml"));
    let mut controller = Controller::start(settings(ranges).network(), server.client().await, &objects);
    let before = dump::uuids(&controller.nb.cache());
    let (_, patches) = controller.settle(&mut objects).await;
    let now = dump::uuids(&controller.nb.cache());
    assert!(before.keys().all(|uuid| now.contains_key(uuid)), "rows were recreated");
    assert!(controller.notices.is_empty(), "{:?}", controller.notices);
    assert_eq!(patches, [], "annotations that differ from ovn-kubernetes'");
    Dump::of(&controller.nb)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_intended_differences() {
    let original = Dump::parse(include_str!("dual-stack.nb"));
    let have = take_over(&original, V4_FIRST).await;
    let want = of_cluster(with_what_differs(original), CLUSTER);
    assert_eq!(have.since(&want), "", "rows of ours");
    assert_eq!(want.since(&have), "", "rows of ovn-kubernetes");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_intended_differences_with_ipv6_first() {
    let ranges = |list: &str| list.replace("10.244.0.0/16 fd00:10:244::/48", "fd00:10:244::/48 10.244.0.0/16");
    let original = Dump::parse(&ranges(include_str!("dual-stack.nb")));
    let have = take_over(&original, V6_FIRST).await;
    let want = of_cluster(with_what_differs(original), CLUSTER);
    assert_eq!(have.since(&want), "", "rows of ours");
    assert_eq!(want.since(&have), "", "rows of ovn-kubernetes");
}
