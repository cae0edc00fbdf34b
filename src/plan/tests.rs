use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_port as lrp, logical_switch as ls, logical_switch_port as lsp,
};
use ovnkube_ovn::{Database, Row, nb};

use crate::{identity, is_garbage, member_columns};

const NB: &Database = &nb::DATABASE;

fn pod_port(name: &str) -> Row {
    Row::new(lsp::TABLE).with(lsp::NAME, name).with(lsp::EXTERNAL_IDS, [("pod", "true")])
}

fn is_ours(row: &Row) -> bool {
    is_garbage(row, std::iter::empty())
}

#[test]
fn only_the_default_networks_rows_are_ours() {
    assert!(is_ours(&pod_port("ns_pod")));
    assert!(!is_ours(&pod_port("blue_ns_pod")));
    assert!(!is_ours(&Row::new(lsp::TABLE).with(lsp::NAME, "ns_pod")));
    let cable = |name: &str| Row::new(lsp::TABLE).with(lsp::NAME, name).with(lsp::TYPE, "router");
    assert!(is_ours(&cable("stor-n1")));
    assert!(is_ours(&cable("etor-GR_n1")) && is_ours(&cable("jtor-GR_n1")));
    assert!(!is_ours(&cable("stor-blue_n1")) && !is_ours(&cable("etor-GR_blue_n1")));
    let port = |name: &str| Row::new(lrp::TABLE).with(lrp::NAME, name);
    assert!(is_ours(&port("rtos-n1")));
    assert!(is_ours(&port("rtoj-GR_n1")) && is_ours(&port("rtoe-GR_n1")));
    assert!(!is_ours(&port("rtos-blue_n1")) && !is_ours(&port("rtoj-GR_blue_n1")));
    let router =
        |name: &str| Row::new(lr::TABLE).with(lr::NAME, name).with(lr::EXTERNAL_IDS, [("k8s-cluster-router", "yes")]);
    assert!(is_ours(&router("ovn_cluster_router")));
    assert!(!is_ours(&router("blue_ovn_cluster_router")));
}

#[test]
fn a_nodes_switch_is_told_by_its_cable() {
    let switch =
        |name: &str| Row::new(ls::TABLE).with(ls::NAME, name).with(ls::OTHER_CONFIG, [("subnet", "10.0.0.0/24")]);
    assert!(is_garbage(&switch("n1"), ["vm", "stor-n1"].into_iter()));
    assert!(!is_garbage(&switch("n1"), ["vm", "stor-n2"].into_iter()));
    assert!(!is_garbage(&switch("blue_n1"), ["stor-blue_n1"].into_iter()));
    assert!(!is_garbage(&Row::new(ls::TABLE).with(ls::NAME, "n1"), ["stor-n1"].into_iter()));
    let outside = Row::new(ls::TABLE).with(ls::NAME, "ext_n1");
    assert!(is_garbage(&outside, ["etor-GR_n1"].into_iter()));
    assert!(!is_garbage(&outside, ["vm"].into_iter()));
}

#[test]
fn members_are_sets_and_nameless_rows_have_no_identity() {
    for table in NB.tables {
        for column in member_columns(table) {
            assert_eq!(table.info(*column).unwrap().max, u32::MAX, "{}", table.name);
        }
        let id = identity(&Row::new(table));
        assert!(id.is_none_or(|id| !id.is_empty()), "{}", table.name);
    }
}
