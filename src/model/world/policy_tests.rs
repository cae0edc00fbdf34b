//! The index finds what a search through everything would find, after any sequence of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::World;
use super::row_names::Named;
use crate::pod_set::of_policy;
use crate::tests::network;
use crate::{
    Affected, Change, Kind, Meta, NamedPort, Namespace, Namespaces, NetworkPolicy, NetworkSettings, ObjectKey, Pod,
    PodFields, PodKey, PodSet, PolicyFields, Protocol, Selector,
};

const KEYS: [&str; 2] = ["app", "tier"];
const VALUES: [&str; 3] = ["a", "b", ""];
/// The namespace that represents nodes.
const OF_NODES: &str = "ns0";

type Labels = BTreeMap<String, String>;

fn meta<T>(labels: &Labels, parse: impl Fn(&Meta<'_>) -> T) -> T {
    parse(&Meta { uid: "u", created: 1, labels, annotations: &BTreeMap::new() })
}

fn labels() -> impl Strategy<Value = Labels> {
    let one = (0..2usize, 0..3usize).prop_map(|(k, v)| (KEYS[k].to_owned(), VALUES[v].to_owned()));
    proptest::collection::btree_map(0..2usize, one, 0..3).prop_map(|map| map.into_values().collect())
}

fn selector() -> impl Strategy<Value = Value> {
    let requirement = (0..4usize, 0..2usize, 0..3usize, 0..3usize).prop_map(|(operator, key, one, other)| {
        let key = KEYS[key];
        match operator {
            0 => json!({"key": key, "operator": "Exists"}),
            1 => json!({"key": key, "operator": "DoesNotExist"}),
            2 => json!({"key": key, "operator": "In", "values": [VALUES[one], VALUES[other]]}),
            _ => json!({"key": key, "operator": "NotIn", "values": [VALUES[one]]}),
        }
    });
    prop_oneof![
        1 => Just(json!({})),
        2 => labels().prop_map(|labels| json!({"matchLabels": labels})),
        2 => (labels(), proptest::collection::vec(requirement, 1..3))
            .prop_map(|(labels, list)| json!({"matchLabels": labels, "matchExpressions": list})),
    ]
}

fn rule() -> impl Strategy<Value = Value> {
    let peer = prop_oneof![
        selector().prop_map(|s| json!({"podSelector": s})),
        selector().prop_map(|s| json!({"namespaceSelector": s})),
        (selector(), selector()).prop_map(|(n, p)| json!({"namespaceSelector": n, "podSelector": p})),
        Just(json!({"ipBlock": {"cidr": "10.0.0.0/8"}})),
    ];
    let port = prop_oneof![Just(json!({"port": 80})), Just(json!({"port": "web"})), Just(json!({"port": "api"}))];
    (proptest::collection::vec(peer, 0..3), proptest::collection::vec(port, 0..3))
        .prop_map(|(peers, ports)| json!({"from": peers, "to": peers, "ports": ports}))
}

fn policy() -> impl Strategy<Value = NetworkPolicy> {
    let rules = || proptest::collection::vec(rule(), 0..3);
    (selector(), rules(), rules()).prop_map(|(pods, ingress, egress)| {
        let spec = json!({"podSelector": pods, "ingress": ingress, "egress": egress});
        let fields: PolicyFields = serde_json::from_value(spec).unwrap();
        meta(&Labels::new(), |meta| NetworkPolicy::parse(meta, &fields))
    })
}

fn pod() -> impl Strategy<Value = Pod> {
    let port = (0..2usize, 0..2u16).prop_map(|(name, number)| NamedPort {
        name: ["web", "api"][name].into(),
        protocol: Protocol::Tcp,
        number: 80 + number,
    });
    let ports = proptest::collection::vec(port, 0..3);
    (labels(), ports, any::<bool>(), any::<bool>()).prop_map(|(labels, ports, finished, host_network)| {
        let fields = PodFields { node_name: Some("n"), finished, host_network, ports: &ports, ..PodFields::default() };
        meta(&labels, |meta| Pod::parse(meta, fields))
    })
}

#[derive(Debug, Clone)]
enum Happens {
    Namespace(usize, Option<Labels>),
    Pod(usize, usize, Option<Box<Pod>>),
    Policy(usize, usize, Option<Box<NetworkPolicy>>),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        (0..2usize, proptest::option::weighted(0.8, labels())).prop_map(|(n, l)| Happens::Namespace(n, l)),
        (0..2usize, 0..3usize, proptest::option::weighted(0.8, pod())).prop_map(|(n, p, pod)| Happens::Pod(
            n,
            p,
            pod.map(Box::new)
        )),
        (0..2usize, 0..3usize, proptest::option::weighted(0.7, policy())).prop_map(|(n, p, policy)| Happens::Policy(
            n,
            p,
            policy.map(Box::new)
        )),
    ]
}

fn change(what: Happens) -> Change {
    let name = |n: usize| format!("ns{n}");
    match what {
        Happens::Namespace(n, labels) => {
            Change::Namespace(name(n).as_str().into(), labels.map(|labels| meta(&labels, Namespace::parse)))
        }
        Happens::Pod(n, p, pod) => Change::Pod(PodKey::new(name(n), format!("p{p}")), pod),
        Happens::Policy(n, p, policy) => Change::NetworkPolicy(ObjectKey::new(name(n), format!("x{p}")), policy),
    }
}

/// For each pod the policies that select it and the sets it is in, found by a search through everything.
fn by_asking(world: &World) -> BTreeMap<PodKey, (BTreeSet<ObjectKey>, BTreeSet<String>)> {
    let sets: BTreeSet<PodSet> = world.policies.iter().flat_map(|(key, policy)| of_policy(key, policy)).collect();
    let about = |key: &PodKey, pod: &Pod| {
        let mine = world.policies.iter().filter(|(policy, _)| policy.namespace == key.namespace);
        mine.filter(|(_, policy)| policy.pods.as_ref().unwrap().matches(&pod.labels))
            .map(|(key, _)| key.clone())
            .collect()
    };
    let of = |key: &PodKey, pod: &Pod| {
        let mut names = BTreeSet::new();
        for set in sets.iter().filter(|_| !pod.finished) {
            let there = match &set.namespaces {
                Namespaces::One(name) => *name == key.namespace,
                Namespaces::Labelled(s) | Namespaces::Whole(s) => {
                    world.namespaces.get(&key.namespace).is_some_and(|n| s.matches(&n.labels))
                }
            };
            let meant = !pod.host_network || !matches!(set.namespaces, Namespaces::Whole(_));
            if there && meant && set.pods.matches(&pod.labels) {
                match &set.port {
                    None => drop(names.insert(set.to_string())),
                    Some((protocol, name)) => names.extend(pod.numbers(*protocol, name).map(|n| format!("{set}:{n}"))),
                }
            }
        }
        names
    };
    world.pods.iter().map(|(key, e)| (key.clone(), (about(key, &e.pod), of(key, &e.pod)))).collect()
}

fn by_index(world: &World) -> BTreeMap<PodKey, (BTreeSet<ObjectKey>, BTreeSet<String>)> {
    let sets = |key: &PodKey, pod: &Pod| {
        let sets = world.sets_of(key, pod).into_iter();
        sets.map(|(set, number)| number.map_or(set.to_string(), |n| format!("{set}:{n}"))).collect()
    };
    let about = |key: &PodKey, pod: &Pod| world.policies_of(key, pod).map(|(key, _)| key.clone()).collect();
    world.pods.iter().map(|(key, e)| (key.clone(), (about(key, &e.pod), sets(key, &e.pod)))).collect()
}

/// The numbers of the sets of each policy.
fn seen_by_policies(world: &World) -> BTreeMap<String, BTreeSet<String>> {
    let numbers = |(key, policy)| {
        let sets = of_policy(key, policy).into_iter();
        let numbers =
            sets.flat_map(|set| world.policies.numbers(&set).map(|n| format!("{set} {n}")).collect::<Vec<_>>());
        (key.to_string(), numbers.collect())
    };
    world.policies.iter().map(numbers).collect()
}

/// The sets of pods that nodes are in, too: of namespaces as a whole, with [`OF_NODES`] among them.
fn of_nodes_by_asking(world: &World) -> BTreeSet<PodSet> {
    let sets = world.policies.iter().flat_map(|(key, policy)| of_policy(key, policy));
    let Some(namespace) = world.namespaces.get(OF_NODES) else { return BTreeSet::new() };
    let is_it = |selector: &Selector| selector.matches(&namespace.labels);
    sets.filter(|set| set.port.is_none() && matches!(&set.namespaces, Namespaces::Whole(s) if is_it(s))).collect()
}

fn numbers_by_asking(world: &World) -> BTreeSet<String> {
    by_asking(world).into_values().flat_map(|(_, sets)| sets).filter(|name| name.contains("_tcp:")).collect()
}

/// What has a port group or an address set.
fn named_by_asking(world: &World) -> BTreeSet<Named> {
    let namespaces = world.namespaces.keys().chain(world.policies.namespaces()).cloned().map(Named::Namespace);
    let policies = world.policies.iter().map(|(key, _)| Named::Policy(key.clone()));
    let whole = world.policies.sets().filter(|set| set.port.is_none()).map(|set| Named::Set(set.clone(), None));
    let numbers = world
        .policies
        .sets()
        .flat_map(|set| world.policies.numbers(set).map(move |number| Named::Set(set.clone(), Some(number))));
    namespaces.chain(policies).chain(whole).chain(numbers).chain([Named::Cluster]).collect()
}

proptest! {
    #[test]
    fn the_index_is_complete_and_every_changed_view_is_affected(
        story in proptest::collection::vec(happens(), 1..40), settled_at in 0..20usize,
    ) {
        let network = NetworkSettings { host_network_namespace: Some(OF_NODES.into()), ..network(&[("10.1.0.0/16", 24)]) };
        let mut world = World::new(network, [Kind::Pod]);
        for (at, what) in story.into_iter().enumerate() {
            if at == settled_at {
                world.apply(Change::Synced(Kind::Pod));
            }
            let (pods, policies, of_nodes) = (by_asking(&world), seen_by_policies(&world), of_nodes_by_asking(&world));
            let affected = world.apply(change(what));
            prop_assert_eq!(by_index(&world), by_asking(&world));
            prop_assert_eq!(world.sets_of_nodes().map(|set| PodSet::clone(set)).collect::<BTreeSet<_>>(), of_nodes_by_asking(&world));
            if at < settled_at {
                continue;
            }
            for (key, now) in by_asking(&world) {
                let namespace = Affected::Namespace(key.namespace.clone());
                let seen = affected.contains(&Affected::Pod(key.clone())) || affected.contains(&namespace);
                prop_assert!(seen || pods.get(&key) == Some(&now), "{key} was not affected: {affected:?}");
            }
            for (key, now) in seen_by_policies(&world) {
                let (namespace, name) = key.split_once('/').unwrap();
                let seen = affected.contains(&Affected::NetworkPolicy(ObjectKey::new(namespace, name)));
                prop_assert!(seen || policies.get(&key) == Some(&now), "policy {key} was not affected: {affected:?}");
            }
            for set in of_nodes.symmetric_difference(&of_nodes_by_asking(&world)) {
                let seen = affected.contains(&Affected::PodSet(Arc::new(set.clone())));
                prop_assert!(seen || affected.contains(&Affected::Namespace(OF_NODES.into())), "{set} was not affected: {affected:?}");
            }
            let numbers: BTreeSet<_> = world.policies.sets()
                .flat_map(|set| world.policies.numbers(set).map(move |n| format!("{set}:{n}"))).collect();
            prop_assert_eq!(numbers, numbers_by_asking(&world));
            prop_assert_eq!(world.row_names.by_hash.values().cloned().collect::<BTreeSet<_>>(), named_by_asking(&world));
        }
    }
}

/// The work for a pod does not grow with policies that have nothing to do with it.
#[test]
fn a_pod_affects_only_policies_that_select_it() {
    let mut world = World::new(network(&[("10.1.0.0/16", 24)]), [Kind::Pod]);
    world.apply(Change::Synced(Kind::Pod));
    let spec = |n: u32| {
        let own = json!({"matchLabels": {"app": format!("app-{n}")}});
        json!({"podSelector": own, "ingress": [{"from": [{"podSelector": own}, {"namespaceSelector": own, "podSelector": {}},
            {"namespaceSelector": {}, "podSelector": own}], "ports": [{"port": "web"}, {"port": 1}]}]})
    };
    for n in 0..2000 {
        let fields: PolicyFields = serde_json::from_value(spec(n)).unwrap();
        let policy = meta(&Labels::new(), |meta| NetworkPolicy::parse(meta, &fields));
        let affected =
            world.apply(Change::NetworkPolicy(ObjectKey::new("ns", format!("p{n}")), Some(Box::new(policy))));
        assert_eq!(affected.len(), 5, "itself and its sets: {affected:?}");
    }
    let labels = Labels::from([("app".to_owned(), "app-7".to_owned()), ("tier".to_owned(), "x".to_owned())]);
    let ports = [NamedPort { name: "web".into(), protocol: Protocol::Tcp, number: 8080 }];
    let fields = PodFields { node_name: Some("n"), ports: &ports, ..PodFields::default() };
    let pod = meta(&labels, |meta| Pod::parse(meta, fields));
    let key = PodKey::new("ns", "pod");
    world.apply(Change::Namespace("ns".into(), Some(meta(&Labels::new(), Namespace::parse))));
    let affected = world.apply(Change::Pod(key.clone(), Some(Box::new(pod.clone()))));
    assert_eq!(affected.len(), 3, "itself, the set of its number and the policy that uses it: {affected:?}");
    assert_eq!(world.policies_of(&key, &pod).count(), 1);
    assert_eq!(world.sets_of(&key, &pod).len(), 3);
    let same = PodKey::new("ns", "another");
    assert_eq!(world.apply(Change::Pod(same, Some(Box::new(pod)))).len(), 1, "the number is known already");
}

/// The work for a namespace does not grow with policies that select it.
#[test]
fn a_namespace_affects_no_policy_that_selects_it() {
    let mut world = World::new(network(&[("10.1.0.0/16", 24)]), [Kind::Pod]);
    world.apply(Change::Synced(Kind::Pod));
    for n in 0..2000 {
        let spec = json!({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}}]}]});
        let fields: PolicyFields = serde_json::from_value(spec).unwrap();
        let policy = meta(&Labels::new(), |meta| NetworkPolicy::parse(meta, &fields));
        world.apply(Change::NetworkPolicy(ObjectKey::new("ns", format!("p{n}")), Some(Box::new(policy))));
    }
    let labels = Labels::from([("app".to_owned(), "a".to_owned())]);
    for namespace in [Some(&Labels::new()), Some(&labels), None] {
        let namespace = namespace.map(|labels| meta(labels, Namespace::parse));
        let affected = world.apply(Change::Namespace("new".into(), namespace));
        assert_eq!(affected, BTreeSet::from([Affected::Namespace("new".into())]));
    }
}

/// Whoever has pods can give their ports any number. Pods that run nowhere do not count, and of the others the numbers
/// that most of them have.
#[test]
fn a_named_port_stands_for_a_bounded_number_of_numbers() {
    let mut world = World::new(network(&[("10.1.0.0/16", 24)]), [Kind::Pod]);
    world.apply(Change::Synced(Kind::Pod));
    for name in ["ns", "other"] {
        world.apply(Change::Namespace(name.into(), Some(meta(&Labels::new(), Namespace::parse))));
    }
    let pod = |number: u16, node: Option<&str>| {
        let ports = [NamedPort { name: "web".into(), protocol: Protocol::Tcp, number }];
        let fields = PodFields { node_name: node, ports: &ports, ..PodFields::default() };
        Some(Box::new(meta(&Labels::new(), |meta| Pod::parse(meta, fields))))
    };
    let spec =
        json!({"policyTypes": ["Egress"], "egress": [{"to": [{"namespaceSelector": {}}], "ports": [{"port": "web"}]}]});
    let fields: PolicyFields = serde_json::from_value(spec).unwrap();
    let policy = ObjectKey::new("ns", "x");
    let parsed = meta(&Labels::new(), |meta| NetworkPolicy::parse(meta, &fields));
    world.apply(Change::NetworkPolicy(policy.clone(), Some(Box::new(parsed))));
    let numbers = |world: &World| {
        let set = world.policies.sets().find(|set| set.port.is_some()).unwrap();
        world.policies.numbers(set).collect::<Vec<_>>()
    };
    let key = |number: u16| PodKey::new("other", format!("p{number}"));
    for n in 0..3 {
        world.apply(Change::Pod(PodKey::new("ns", format!("own{n}")), pod(8080, Some("n"))));
    }
    for number in 1..=100 {
        let affected = world.apply(Change::Pod(key(number), pod(number, None)));
        assert_eq!(affected, BTreeSet::from([Affected::Pod(key(number))]), "it runs nowhere");
    }
    assert_eq!(numbers(&world), [8080]);
    for number in 1..=100 {
        let affected = world.apply(Change::Pod(key(number), pod(number, Some("n"))));
        let is_new = affected.contains(&Affected::NetworkPolicy(policy.clone()));
        assert_eq!(is_new, number <= 64, "{number}: the 64th is one too many, of which the policy is told");
    }
    let expected: Vec<u16> = std::iter::once(8080).chain(1..=63).collect();
    assert_eq!(numbers(&world), expected);
    let sets = |world: &World, number: u16| world.sets_of(&key(number), &world.pods[&key(number)].pod).len();
    assert_eq!([63, 64, 90].map(|number| sets(&world, number)), [1, 0, 0]);
    let notices = world.notices(&Affected::NetworkPolicy(policy.clone()));
    let messages: Vec<_> = notices.iter().map(|notice| (notice.reason, notice.message.as_str())).collect();
    let message = "cannot use spec.egress[0].ports: pods have more than 64 numbers for port \"web\", for which this policy has \
                   room; the less common ones select nothing; give the pods' ports fewer numbers, or write the numbers in a \
                   policy with fewer peers";
    assert_eq!(messages, [("BadField", message)]);

    // a number that more pods have takes the place of another, whose pods are planned again
    let affected = world.apply(Change::Pod(PodKey::new("ns", "more"), pod(90, Some("n"))));
    for other in [Affected::Pod(key(63)), Affected::Pod(key(90)), Affected::NetworkPolicy(policy.clone())] {
        assert!(affected.contains(&other), "{other:?} is not in {affected:?}");
    }
    assert!(!affected.contains(&Affected::Pod(key(62))), "{affected:?}");
    assert_eq!([62, 63, 90].map(|number| sets(&world, number)), [1, 0, 1]);
    for number in 1..=99 {
        world.apply(Change::Pod(key(number), None));
    }
    assert_eq!(numbers(&world), [8080, 90, 100]);
    assert_eq!(sets(&world, 100), 1);
    assert!(world.notices(&Affected::NetworkPolicy(policy)).is_empty());
}

/// A pod may have any number of containers, each with its number for the same name.
#[test]
fn a_pod_has_a_bounded_number_of_numbers_for_a_name() {
    let port = |name: &str, number: u16| NamedPort { name: name.into(), protocol: Protocol::Tcp, number };
    let read = |ports: &[NamedPort]| {
        let fields = PodFields { node_name: Some("n"), ports, ..PodFields::default() };
        meta(&Labels::new(), |meta| Pod::parse(meta, fields))
    };
    let numbers = |pod: &Pod, name: &str| pod.numbers(Protocol::Tcp, name).collect::<Vec<_>>();
    let many: Vec<_> = (1..=100).map(|number| port("web", number)).chain([port("api", 5)]).collect();
    let pod = read(&many);
    assert_eq!(numbers(&pod, "web"), (1..=8).collect::<Vec<_>>());
    assert_eq!((numbers(&pod, "api"), pod.ports.len()), (vec![5], 10));
    let twice: Vec<_> = (1..=8).chain(1..=8).map(|number| port("web", number)).collect();
    let mut world = World::new(network(&[("10.1.0.0/16", 24)]), [Kind::Pod]);
    world.apply(Change::Synced(Kind::Pod));
    let told = |world: &mut World, pod: Pod| {
        let key = PodKey::new("ns", "pod");
        world.apply(Change::Pod(key.clone(), Some(Box::new(pod))));
        let notices = world.notices(&Affected::Pod(key));
        notices.into_iter().map(|notice| (notice.reason, notice.message)).collect::<Vec<_>>()
    };
    assert!(told(&mut world, read(&twice)).is_empty());
    let message = "network policies that refer to ports by the name \"web\" use only the first 8 numbers that the pod's \
                   containers have for it; give the other ports other names";
    assert_eq!(told(&mut world, pod), [("TooManyPorts", message.to_owned())]);
}

/// Selectors that may match all pods of the cluster are bounded for all policies of a namespace together. Which ones are
/// used depends on the policies that there are, not on their history.
#[test]
fn a_namespace_has_room_for_a_bounded_number_of_open_selectors() {
    let settled = || {
        let mut world = World::new(network(&[("10.1.0.0/16", 24)]), [Kind::Pod]);
        world.apply(Change::Synced(Kind::Pod));
        let fields = PodFields { node_name: Some("n"), ..PodFields::default() };
        for namespace in ["ns", "other"] {
            world.apply(Change::Namespace(namespace.into(), Some(meta(&Labels::new(), Namespace::parse))));
            let pod = meta(&Labels::new(), |meta| Pod::parse(meta, fields));
            world.apply(Change::Pod(PodKey::new(namespace, "pod"), Some(Box::new(pod))));
        }
        world
    };
    let policy = |first: usize| {
        let peer = |n| json!({"namespaceSelector": {"matchExpressions": [{"key": format!("k{n}"), "operator": "DoesNotExist"}]}});
        let peers: Vec<_> = (first..first + 80).map(peer).chain([json!({"podSelector": {}})]).collect();
        let fields: PolicyFields = serde_json::from_value(json!({"ingress": [{"from": peers}]})).unwrap();
        Some(Box::new(meta(&Labels::new(), |meta| NetworkPolicy::parse(meta, &fields))))
    };
    let key = |namespace: &str, name: &str| ObjectKey::new(namespace, name);
    let change = |name: &str, first: Option<usize>| Change::NetworkPolicy(key("ns", name), first.and_then(policy));
    let sets = |world: &World| world.policies.sets().map(ToString::to_string).collect::<BTreeSet<_>>();
    let left_out = |world: &World, name: &str| {
        let notices = world.notices(&Affected::NetworkPolicy(key("ns", name)));
        notices.iter().map(|notice| notice.message.clone()).collect::<Vec<_>>().join("; ")
    };
    let mut world = settled();
    for (name, first) in [("c", 160), ("a", 0), ("b", 80)] {
        world.apply(change(name, Some(first)));
    }
    let (pod, of_pod) =
        (PodKey::new("other", "pod"), |world: &World, key: &PodKey| world.sets_of(key, &world.pods[key].pod).len());
    assert_eq!(of_pod(&world, &pod), 200);
    assert_eq!(of_pod(&world, &PodKey::new("ns", "pod")), 201, "that of its own namespace too");
    assert_eq!(["a", "b"].map(|name| left_out(&world, name)), ["", ""]);
    assert!(left_out(&world, "c").contains("more than 200 different selectors"), "{}", left_out(&world, "c"));
    assert!(left_out(&world, "c").contains("40 of this policy select nothing"), "{}", left_out(&world, "c"));
    let rooms = world.policies.sets().filter(|set| world.policies.has_room("ns", set)).count();
    assert_eq!(rooms, world.policies.sets().count());

    // the same in another order, and after others that are gone
    let mut other = settled();
    for (name, first) in [("0", Some(400)), ("b", Some(80)), ("a", Some(0)), ("c", Some(160)), ("0", None)] {
        other.apply(change(name, first));
    }
    assert_eq!(sets(&other), sets(&world));

    // other namespaces have room, and with their sets the policy of this one has none
    world.apply(Change::NetworkPolicy(key("other", "c"), policy(160)));
    assert_eq!(of_pod(&world, &pod), 241, "and that of its own namespace");
    assert!(left_out(&world, "c").contains("40 of this policy"));
    world.apply(Change::NetworkPolicy(key("other", "c"), None));

    let affected = world.apply(change("a", None));
    for what in [Affected::NetworkPolicy(key("ns", "c")), Affected::Pod(pod.clone())] {
        assert!(affected.contains(&what), "{what:?} is not in {affected:?}");
    }
    assert_eq!((of_pod(&world, &pod), left_out(&world, "c")), (160, String::new()));
}
