use ovnkube_ovn::nb::{
    acl, logical_router as lr, logical_router_port as lrp, logical_router_static_route as route, logical_switch as ls,
    logical_switch_port as lsp, port_group,
};
use ovnkube_ovn::{Atom, Database, Datum, Row, Table, nb, owner};

use crate::{
    Ownership, Unserved, identity, is_anothers_acl, is_garbage, member_columns, ownership, router_peer_port, unserved,
};

const NB: &Database = &nb::DATABASE;

fn pod_port(name: &str) -> Row {
    Row::new(lsp::TABLE).with(lsp::NAME, name).with(lsp::EXTERNAL_IDS, [("pod", "true")])
}

fn is_ours(row: &Row) -> bool {
    is_garbage(row, false)
}

#[test]
fn only_the_default_networks_rows_are_ours() {
    assert!(is_ours(&pod_port("ns_pod")));
    assert!(!is_ours(&pod_port("blue_ns_pod")));
    assert!(!is_ours(&Row::new(lsp::TABLE).with(lsp::NAME, "ns_pod")));
    let port_of_router = |name: &str| Row::new(lsp::TABLE).with(lsp::NAME, name).with(lsp::TYPE, "router");
    assert!(is_ours(&port_of_router("stor-n1")));
    assert!(is_ours(&port_of_router("etor-GR_n1")) && is_ours(&port_of_router("jtor-GR_n1")));
    assert!(!is_ours(&port_of_router("stor-blue_n1")) && !is_ours(&port_of_router("etor-GR_blue_n1")));
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
fn a_nodes_switch_is_known_by_its_router_port() {
    let switch =
        |name: &str| Row::new(ls::TABLE).with(ls::NAME, name).with(ls::OTHER_CONFIG, [("subnet", "10.0.0.0/24")]);
    let peer_of = |row: &Row| router_peer_port(row).map(|(table, name)| (table.name, name));
    assert_eq!(peer_of(&switch("n1")), Some(("Logical_Switch_Port", "stor-n1".to_owned())));
    assert!(is_garbage(&switch("n1"), true) && !is_garbage(&switch("n1"), false));
    assert!(!is_garbage(&switch("blue_n1"), true));
    assert!(!is_garbage(&Row::new(ls::TABLE).with(ls::NAME, "n1"), true));
    let outside = Row::new(ls::TABLE).with(ls::NAME, "ext_n1");
    assert_eq!(peer_of(&outside), Some(("Logical_Switch_Port", "etor-GR_n1".to_owned())));
    assert!(is_garbage(&outside, true) && !is_garbage(&outside, false));
}

#[test]
fn the_owner_of_a_route() {
    let bare = || Row::new(route::TABLE).with(route::IP_PREFIX, "100.64.0.2").with(route::NEXTHOP, "100.64.0.2");
    let marks = owner::marks(owner::GATEWAY);
    assert_eq!(ownership(&bare()), Ownership::Bare);
    assert_eq!(
        ownership(&bare().with(route::EXTERNAL_IDS, [("k8s.ovn.org/node-masquerade-subnet", "")])),
        Ownership::Bare
    );
    // what others add to our row does not make it foreign
    let more = bare().with(route::EXTERNAL_IDS, marks.into_iter().chain([("theirs", "1")]));
    assert_eq!(ownership(&more.with(route::OPTIONS, [("ecmp_symmetric_reply", "true")])), Ownership::Marked);
    assert_eq!(ownership(&bare().with(route::EXTERNAL_IDS, [marks[0]])), Ownership::Foreign);
    assert_eq!(ownership(&bare().with(route::EXTERNAL_IDS, [("owner", "somebody")])), Ownership::Foreign);
    assert_eq!(ownership(&bare().with(route::OPTIONS, [("ecmp_symmetric_reply", "true")])), Ownership::Foreign);
    assert!(!is_ours(&bare()) && is_ours(&bare().with(route::EXTERNAL_IDS, marks)));
}

/// A person may have written the same route: it is none that ours would take over, and later remove.
#[test]
fn a_route_to_another_cluster_is_another_one_than_a_persons() {
    let bare = || Row::new(route::TABLE).with(route::IP_PREFIX, "10.17.0.0/24").with(route::NEXTHOP, "169.254.100.31");
    let ours = bare().with(route::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION));
    assert_ne!(identity(&bare()), identity(&ours));
    let learned = [("ic-learned-route", "6a4bb2c5-0000-4000-8000-000000000000")];
    let learned = bare().with(route::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION).into_iter().chain(learned));
    assert_eq!(identity(&learned), identity(&ours));
    // those of gateways may be of ovn-kubernetes, without marks
    assert_eq!(identity(&bare()), identity(&bare().with(route::EXTERNAL_IDS, owner::marks(owner::GATEWAY))));
}

/// If ovn-kubernetes returned, it would take a rule with these ids for one of an egress address.
#[test]
fn marks_have_no_name() {
    assert!(
        owner::marks(owner::GATEWAY).iter().all(|(key, _)| *key != owner::NAME && *key != "name" && *key != owner::ID)
    );
}

#[test]
fn only_features_that_are_not_planned_have_acls_in_groups_of_ours() {
    let marked = |table, owner_type| {
        let column = if table == acl::TABLE { acl::EXTERNAL_IDS } else { port_group::EXTERNAL_IDS };
        Row::new(table).with(column, ids(owner_type))
    };
    let (namespace, cluster) = (marked(port_group::TABLE, "Namespace"), marked(port_group::TABLE, "Cluster"));
    let firewall = marked(acl::TABLE, "EgressFirewall");
    assert!(is_anothers_acl(&namespace, &firewall) && is_anothers_acl(&cluster, &firewall));
    for owner_type in ["NetworkPolicy", "NetpolNamespace"] {
        assert!(!is_anothers_acl(&marked(port_group::TABLE, owner_type), &firewall), "{owner_type}");
    }
    let of_policy = marked(acl::TABLE, "NetworkPolicy");
    let somebodys = Row::new(acl::TABLE).with(acl::EXTERNAL_IDS, [("owner", "somebody")]);
    for acl in [of_policy, somebodys, Row::new(acl::TABLE)] {
        assert!(!is_anothers_acl(&namespace, &acl), "{acl}");
    }
}

fn ids(owner_type: &str) -> [(&str, &str); 2] {
    [(owner::OWNER_CONTROLLER, owner::DEFAULT_NETWORK), (owner::OWNER_TYPE, owner_type)]
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

fn with_ids(table: &'static Table, ids: &[(&str, &str)]) -> Row {
    let mut row = Row::new(table);
    let pairs = ids.iter().map(|(key, value)| (Atom::Str((*key).into()), Atom::Str((*value).into())));
    row.put(table.column("external_ids").unwrap(), Datum::map(pairs));
    row
}

/// The table, its external ids (`OWNER-TYPE NAME` or `KEY=VALUE`), and what they say: rows as ovn-kubernetes 1.3.0 writes them, or as others may.
const MARKS: [(&str, &str, &str); 22] = [
    ("Logical_Router_Policy", "EgressIP eip_a/web", "EgressIP of eip"),
    ("NAT", "EgressIP eip_a/web", "EgressIP of eip"),
    ("Logical_Router_Policy", "EgressIP EIP-No-Reroute-Pod-To-Join", ""),
    ("QoS", "EgressIP EgressIP-Mark-Reply-Traffic", ""),
    ("Address_Set", "EgressIP node-ips", ""),
    ("ACL", "EgressFirewall a", "EgressFirewall of a"),
    ("Address_Set", "EgressService egresssvc-served-pods", ""),
    ("ACL", "UDNIsolation AllowHostARPSecondary", ""),
    ("Address_Set", "UDNEnabledService default/kubernetes", ""),
    ("Address_Set", "HybridNodeRoute n1", ""),
    ("ACL", "AdvertisedNetwork advertised-network-subnets", ""),
    ("Address_Set", "Cluster no-overlay-snat-exemption", "transport no-overlay of no-overlay-snat-exemption"),
    ("Address_Set", "Namespace no-overlay-snat-exemption", ""),
    ("ACL", "NetworkPolicy a:b", ""),
    ("Logical_Router_Policy", "EgressSVC=a/b", "EgressService of a/b"),
    ("Logical_Router_Static_Route", "name=hybrid-subnet-n1-gr", "hybrid overlay of n1-gr"),
    ("Logical_Router_Static_Route", "ic-node=n2", "interconnect of n2"),
    ("Logical_Router_Static_Route", "k8s.ovn.org/owner-controller=RouteImport", "RouteAdvertisements of RouteImport"),
    ("Logical_Switch", "k8s.ovn.org/network=default", ""),
    ("Logical_Router", "k8s.ovn.org/network=blue", "UserDefinedNetwork or NetworkAttachmentDefinition of blue"),
    ("NAT", "name=egressip", ""),
    ("Logical_Router_Policy", "owner=somebody", ""),
];

#[test]
fn only_marks_of_a_used_feature_count() {
    for (table, ids, want) in MARKS {
        let table = NB.table(table).unwrap();
        let ids = match (ids.split_once('='), ids.split_once(' ')) {
            (Some((key, value)), _) => vec![(key, value)],
            (None, Some((kind, name))) => {
                let owner = [(owner::OWNER_CONTROLLER, owner::DEFAULT_NETWORK), (owner::OWNER_TYPE, kind)];
                owner.into_iter().chain([(owner::NAME, name)]).collect()
            }
            _ => panic!("{ids}"),
        };
        let row = with_ids(table, &ids);
        let have = unserved(&row).map(|(feature, object)| format!("{feature} of {object}")).unwrap_or_default();
        assert_eq!(have, want, "{} {ids:?}", table.name);
        assert!(want.is_empty() || !is_ours(&row), "no sweep removes {have}");
    }
}

#[test]
fn what_is_said_has_a_limit() {
    let table = acl::TABLE;
    let row = |n: usize| {
        let id = format!("default-network-controller:EgressFirewall:ns{n:02}:0");
        let kind = [(owner::OWNER_CONTROLLER, owner::DEFAULT_NETWORK), (owner::OWNER_TYPE, "EgressFirewall")];
        let name = format!("ns{n:02}");
        let ids: Vec<_> = kind.into_iter().chain([(owner::NAME, name.as_str()), (owner::ID, id.as_str())]).collect();
        with_ids(table, &ids)
    };
    let rows: Vec<Row> = (0..50).rev().map(row).collect();
    let text = Unserved::of(rows.iter()).to_string();
    let id = |n: usize| format!("ACL default-network-controller:EgressFirewall:ns{n:02}:0");
    let want = format!("EgressFirewall, 50 rows of ns00, ns01, ns02: {}, {}, {} and 47 more", id(0), id(1), id(2));
    assert_eq!(text, want);
}
