//! Names, labels and namespaces that somebody chose so that they have the hash of another's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::World;
use super::row_names::Named;
use crate::tests::{ONE, network};
use crate::{
    Affected, Change, Direction, Family, Kind, Meta, Name, Namespace, NetworkPolicy, ObjectKey, Pod, PodFields, PodKey,
    PodSet, PolicyFields, Selector, SelectorFields,
};

/// In the namespace `attacker`, it has the hash of what denies ingress in the namespace `victim`.
const POLICY: &str = "j5sstcw9jes6zicy1pbg";
/// There, it has the hash of `victim/own`.
const OTHER_POLICY: &str = "62kb6iewx9s28w6hk85n";
/// What denies egress in it has the hash of what denies ingress in `victim`.
const NAMESPACE: &str = "fl704oy5z1n6wb0tco59";
/// In `attacker`, pods with this label `app` are a set that has the hash of those with `app: client` in `victim`.
const LABEL: &str = "v2o18pwxs137e18kcc19";

struct Story {
    world: World,
}

impl Story {
    fn new() -> Self {
        Self { world: World::new(network(ONE), [Kind::Pod]) }
    }

    fn settled() -> Self {
        let mut story = Self::new();
        story.world.apply(Change::Synced(Kind::Pod));
        story
    }

    fn namespace(&mut self, name: &str, created: i64) -> BTreeSet<Affected> {
        let namespace = meta(created, Namespace::parse);
        self.world.apply(Change::Namespace(name.into(), Some(namespace)))
    }

    fn policy(&mut self, namespace: &str, name: &str, created: i64, from: &Value) -> BTreeSet<Affected> {
        let fields: PolicyFields =
            serde_json::from_value(json!({"podSelector": {}, "ingress": [{"from": [from]}]})).unwrap();
        let policy = meta(created, |meta| NetworkPolicy::parse(meta, &fields));
        self.world.apply(Change::NetworkPolicy(ObjectKey::new(namespace, name), Some(Box::new(policy))))
    }

    fn no_policy(&mut self, namespace: &str, name: &str) -> BTreeSet<Affected> {
        self.world.apply(Change::NetworkPolicy(ObjectKey::new(namespace, name), None))
    }

    fn pod(&mut self, namespace: &str) -> Affected {
        let pod = meta(1, |meta| Pod::parse(meta, PodFields { node_name: Some("n1"), ..PodFields::default() }));
        let key = PodKey::new(namespace, "p");
        self.world.apply(Change::Pod(key.clone(), Some(Box::new(pod))));
        Affected::Pod(key)
    }

    fn of_policy(&self, namespace: &str, name: &str) -> String {
        self.world.policy_group(&ObjectKey::new(namespace, name)).hashed_name()
    }

    fn deny(&self, namespace: &str, direction: Direction) -> String {
        self.world.deny_group(namespace, direction).hashed_name()
    }

    fn of_set(&self, namespace: &str, label: &str, family: Family) -> String {
        let set = set(namespace, label);
        let name = self.world.pod_set(&set, None, family).hashed_name();
        assert_eq!(self.world.pod_set_name(&set, None, family), name);
        name
    }
}

fn meta<T>(created: i64, parse: impl Fn(&Meta<'_>) -> T) -> T {
    parse(&Meta { uid: "u", created, labels: &BTreeMap::new(), annotations: &BTreeMap::new() })
}

fn app(label: &str) -> Value {
    json!({"podSelector": {"matchLabels": {"app": label}}})
}

fn set(namespace: &str, label: &str) -> PodSet {
    let fields: SelectorFields = serde_json::from_value(json!({"matchLabels": {"app": label}})).unwrap();
    let pods = Selector::parse(&fields).unwrap();
    PodSet::new(crate::Namespaces::One(namespace.into()), pods)
}

fn is_long(name: &str) -> bool {
    name.len() == 33
}

fn policy(namespace: &str, name: &str) -> Affected {
    Affected::NetworkPolicy(ObjectKey::new(namespace, name))
}

#[test]
fn a_policy_does_not_get_the_group_of_another_namespace() {
    let mut story = Story::settled();
    let pod = story.pod("attacker");
    story.policy("attacker", POLICY, 1, &json!({"podSelector": {}}));
    let usual = story.of_policy("attacker", POLICY);
    assert_eq!(usual, "a6039952836002023886");
    let affected = story.policy("victim", "own", 2, &json!({"podSelector": {}}));
    assert_eq!(story.deny("victim", Direction::Ingress), usual);
    assert!(is_long(&story.of_policy("attacker", POLICY)));
    assert!(affected.contains(&policy("attacker", POLICY)) && affected.contains(&pod), "{affected:?}");
    let notices = |story: &Story| -> Vec<_> {
        story.world.notices(&policy("attacker", POLICY)).into_iter().map(|n| n.reason).collect()
    };
    assert_eq!(notices(&story), ["NameCollision"]);
    let affected = story.no_policy("victim", "own");
    assert_eq!(story.of_policy("attacker", POLICY), usual);
    assert!(affected.contains(&policy("attacker", POLICY)) && affected.contains(&pod), "{affected:?}");
    assert!(notices(&story).is_empty());
}

/// A new master finds what the old one found, in whatever order it reads.
#[test]
fn of_two_policies_the_older_one_keeps_its_group() {
    let policies = [("attacker", OTHER_POLICY, 7), ("victim", "own", 5)];
    for at_start in [[0, 1], [1, 0]] {
        for is_settled in [false, true] {
            let mut story = if is_settled { Story::settled() } else { Story::new() };
            for (namespace, name, created) in at_start.map(|at| policies[at]) {
                story.policy(namespace, name, created, &json!({"podSelector": {}}));
            }
            story.world.apply(Change::Synced(Kind::Pod));
            assert_eq!(story.of_policy("victim", "own"), "a7766714652053522038");
            assert!(is_long(&story.of_policy("attacker", OTHER_POLICY)));
        }
    }
}

/// Made again, a policy is the younger one.
#[test]
fn a_policy_made_again_under_its_name_counts_by_its_new_age() {
    let mut story = Story::settled();
    story.policy("victim", "own", 5, &json!({"podSelector": {}}));
    story.policy("attacker", OTHER_POLICY, 7, &json!({"podSelector": {}}));
    let affected = story.policy("victim", "own", 9, &json!({"podSelector": {}}));
    assert!(is_long(&story.of_policy("victim", "own")));
    assert!(affected.contains(&policy("attacker", OTHER_POLICY)) && affected.contains(&policy("victim", "own")));
}

#[test]
fn a_set_of_pods_does_not_get_anothers_addresses() {
    let mut story = Story::settled();
    story.policy("attacker", "a", 3, &app(LABEL));
    let usual = story.of_set("attacker", LABEL, Family::V4);
    let affected = story.policy("victim", "v", 2, &app("client"));
    assert_eq!(story.of_set("victim", "client", Family::V4), usual);
    assert!(is_long(&story.of_set("attacker", LABEL, Family::V4)));
    assert!(is_long(&story.of_set("attacker", LABEL, Family::V6)));
    let set = |namespace, label| Affected::PodSet(Arc::new(set(namespace, label)));
    assert!(affected.contains(&set("attacker", LABEL)) && affected.contains(&policy("attacker", "a")), "{affected:?}");
    // an older policy that refers to the set makes it the older one
    let affected = story.policy("attacker", "older", 1, &app(LABEL));
    assert_eq!(story.of_set("attacker", LABEL, Family::V4), usual);
    assert!(affected.contains(&set("victim", "client")) && affected.contains(&policy("victim", "v")), "{affected:?}");
    story.no_policy("attacker", "older");
    assert_eq!(story.of_set("victim", "client", Family::V4), usual);
    for name in ["a", "older"] {
        story.no_policy("attacker", name);
    }
    story.no_policy("victim", "v");
    assert!(story.world.row_names.by_hash.values().all(|of| *of == Named::Cluster));
}

/// It is made without the text that the id has.
#[test]
fn the_name_of_a_set_is_the_hash_of_its_id() {
    let world = World::new(network(ONE), [Kind::Pod]);
    let named = |set: &PodSet| set.clone().with_port(crate::Protocol::Udp, &Name::from("dns"));
    let selector = |label: &str| set("ns", label).pods;
    let sets = [
        set("ns", "web"),
        PodSet::everybody(),
        PodSet::new(crate::Namespaces::Labelled(selector("a")), selector("b")),
        PodSet::new(crate::Namespaces::Whole(selector("a")), Selector::default()),
    ];
    for set in sets.iter().cloned().chain(sets.iter().map(named)) {
        for (number, family) in [None, Some(53)].into_iter().flat_map(|number| Family::ALL.map(|of| (number, of))) {
            let owner = world.pod_set(&set, number, family);
            assert_eq!(world.pod_set_name(&set, number, family), owner.hashed_name(), "{}", owner.id());
        }
    }
}

#[test]
fn of_two_namespaces_the_older_one_keeps_its_group() {
    let mut story = Story::settled();
    let pod = story.pod("victim");
    story.namespace(NAMESPACE, 2);
    let affected = story.namespace("victim", 1);
    assert_eq!(story.deny("victim", Direction::Ingress), "a6039952836002023886");
    assert!(is_long(&story.deny(NAMESPACE, Direction::Egress)) && !is_long(&story.deny(NAMESPACE, Direction::Ingress)));
    assert!(affected.contains(&Affected::Namespace(NAMESPACE.into())));
    assert!(!affected.contains(&pod), "its names are what they were");
    let name: Name = "victim".into();
    story.world.apply(Change::Namespace(name, None));
    assert!(!is_long(&story.deny(NAMESPACE, Direction::Egress)));
}

/// One of three goes and comes back, as a policy does that somebody replaces: it does not share its row with one of the others.
#[test]
fn one_of_three_that_is_made_again_shares_no_row() {
    let mut story = Story::settled();
    story.namespace("victim", 1);
    story.namespace(NAMESPACE, 2);
    story.policy("attacker", POLICY, 3, &json!({"podSelector": {}}));
    let names = |story: &Story| {
        let of_policy = story.of_policy("attacker", POLICY);
        BTreeSet::from([story.deny("victim", Direction::Ingress), story.deny(NAMESPACE, Direction::Egress), of_policy])
    };
    assert_eq!(names(&story).len(), 3);
    story.world.apply(Change::Namespace("victim".into(), None));
    let affected = story.namespace("victim", 4);
    assert_eq!(names(&story).len(), 3, "{affected:?}");
    assert!(is_long(&story.deny("victim", Direction::Ingress)), "it is younger than the other namespace");
    for name in ["victim", NAMESPACE] {
        story.world.apply(Change::Namespace(name.into(), None));
    }
    assert!(!is_long(&story.of_policy("attacker", POLICY)));
    story.no_policy("attacker", POLICY);
    assert!(story.world.row_names.by_hash.values().all(|of| *of == Named::Cluster));
}
