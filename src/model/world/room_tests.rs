//! All policies of a namespace together have limits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::World;
use super::open_sets::{MOST_OPEN_SETS, OpenSets};
use super::room::Room;
use crate::network_policy::OF_NAMESPACE;
use crate::tests::{network, on_cpu};
use crate::{
    Affected, Change, Kind, Meta, NamedPort, Namespace, Namespaces, Need, NetworkPolicy, ObjectKey, Pod, PodFields,
    PodKey, PodSet, PolicyFields, Protocol, Selector, SelectorFields,
};

fn meta<T>(created: i64, parse: impl Fn(&Meta<'_>) -> T) -> T {
    parse(&Meta { uid: "u", created, labels: &BTreeMap::new(), annotations: &BTreeMap::new() })
}

/// A cluster whose namespace `ns` has a pod for each of these numbers of its port `web`.
fn world(numbers: impl Iterator<Item = u16>) -> World {
    let mut world = World::new(network(&[("10.1.0.0/16", 24)]), [Kind::Pod]);
    world.apply(Change::Synced(Kind::Pod));
    world.apply(Change::Namespace("ns".into(), Some(meta(1, Namespace::parse))));
    for number in numbers {
        let ports = [NamedPort { name: "web".into(), protocol: Protocol::Tcp, number }];
        let fields = PodFields { node_name: Some("n"), ports: &ports, ..PodFields::default() };
        let pod = meta(1, |meta| Pod::parse(meta, fields));
        world.apply(Change::Pod(pod_key(number), Some(Box::new(pod))));
    }
    world
}

fn pod_key(number: u16) -> PodKey {
    PodKey::new("ns", format!("p{number}"))
}

fn change(namespace: &str, name: &str, policy: Option<(i64, Vec<Value>)>) -> Change {
    let parsed = policy.map(|(created, rules)| {
        let fields: PolicyFields = serde_json::from_value(json!({"ingress": rules})).unwrap();
        Box::new(meta(created, |meta| NetworkPolicy::parse(meta, &fields)))
    });
    Change::NetworkPolicy(ObjectKey::new(namespace, name), parsed)
}

/// A fifth of what a namespace has room for.
fn fifth() -> Vec<Value> {
    vec![json!({}); 40_000]
}

fn about(name: &str) -> Affected {
    Affected::NetworkPolicy(ObjectKey::new("ns", name))
}

/// The policies that allow something.
fn allowing(world: &World) -> BTreeSet<String> {
    let all =
        world.policies.iter().filter(|(_, policy)| policy.ingress.as_ref().is_some_and(|rules| !rules.is_empty()));
    all.map(|(key, _)| key.to_string()).collect()
}

fn names(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_oldest_policies_of_a_namespace_have_room() {
    let mut world = world(1..=1);
    for (name, created) in [("c", 3), ("a", 6), ("f", 1), ("e", 2), ("b", 5), ("d", 4)] {
        world.apply(change("ns", name, Some((created, fifth()))));
    }
    world.apply(change("other", "a", Some((9, fifth()))));
    world.apply(change("ns", "small", Some((7, vec![json!({})]))));
    assert_eq!(allowing(&world), names(&["ns/b", "ns/c", "ns/d", "ns/e", "ns/f", "other/a"]));

    // the others isolate the pods that they select, and their authors are told
    let pod = &world.pods[&pod_key(1)].pod;
    assert_eq!(world.policies_of(&pod_key(1), pod).count(), 7);
    assert_eq!(world.policies.get(&ObjectKey::new("ns", "a")).unwrap().ingress, Some(Vec::new()));
    let told = |world: &World, name: &str| {
        world.notices(&about(name)).into_iter().map(|notice| notice.message).collect::<Vec<_>>().join("; ")
    };
    for name in ["a", "small"] {
        assert!(told(&world, name).contains("the policies of namespace ns need more than"), "{}", told(&world, name));
    }
    assert_eq!(told(&world, "b"), "");
    assert!(world.apply(change("ns", "a", Some((6, fifth())))).is_empty(), "it is known already");

    // one that goes leaves its room to the oldest of them
    let affected = world.apply(change("ns", "f", None));
    assert!(affected.contains(&about("a")), "{affected:?}");
    assert_eq!(allowing(&world), names(&["ns/a", "ns/b", "ns/c", "ns/d", "ns/e", "other/a"]));
    // one that is made again is the youngest
    let affected = world.apply(change("ns", "e", Some((10, fifth()))));
    assert!(affected.contains(&about("e")), "{affected:?}");
    assert_eq!(allowing(&world), names(&["ns/a", "ns/b", "ns/c", "ns/d", "ns/small", "other/a"]));
    for name in ["a", "b", "c", "d", "e", "small"] {
        world.apply(change("ns", name, None));
    }
    world.apply(change("ns", "last", Some((11, fifth()))));
    assert_eq!(allowing(&world), names(&["ns/last", "other/a"]));
}

proptest! {
    /// Whatever comes and goes, room ends where the sum says, and those are named for whom that makes a difference.
    #[test]
    fn room_ends_where_the_sum_of_the_older_ones_does(
        steps in vec((0..6_usize, 0..4_i64, option::of(0..NEEDS.len())), 1..40)
    ) {
        let (mut room, mut all) = (Room::default(), BTreeMap::new());
        for (name, created, has) in steps {
            let name = format!("p{name}");
            let before = left_out(&all);
            let (had, has) = (all.remove(&name), has.map(|index| (created, need(NEEDS[index]))));
            all.extend(has.map(|has| (name.clone(), has)));
            let shift = room.change(&ObjectKey::new("ns", name.as_str()), had, has);
            let after = left_out(&all);
            for (name, (created, _)) in &all {
                let has_room = room.has_room(&ObjectKey::new("ns", name.as_str()), *created);
                prop_assert_eq!(has_room, !after.contains(name), "{}", name);
            }
            let others = before.symmetric_difference(&after).filter(|other| **other != name);
            let told: BTreeSet<_> = shift.others.iter().map(ToString::to_string).collect();
            prop_assert_eq!(told, others.cloned().collect::<BTreeSet<_>>());
        }
    }
}

/// Rows of policies, as parts of the room of a namespace.
const NEEDS: [usize; 5] = [0, 1, 90_000, 199_999, 200_000];

/// What a policy needs whose rules are so many rows.
fn need(rows: usize) -> Need {
    serde_json::from_value(json!({"entries": 0, "named_entries": 0, "rows": rows, "named_rows": 0})).unwrap()
}

/// The policies for which there is no room, by looking at all of them.
fn left_out(all: &BTreeMap<String, (i64, Need)>) -> BTreeSet<String> {
    let ordered: BTreeMap<_, _> = all.iter().map(|(name, (created, need))| ((*created, name), *need)).collect();
    let mut used = Need::default();
    let without = ordered.iter().skip_while(|(_, need)| {
        used = used + **need;
        used.fits(OF_NAMESPACE)
    });
    without.map(|((_, name), _)| (*name).clone()).collect()
}

/// A tenant may have any number of policies; each change must not cost a look at all of them.
#[test]
fn many_policies_without_room_cost_no_look_at_all_of_them() {
    let (mut room, started) = (Room::default(), on_cpu());
    for number in 0..30_000 {
        let key = ObjectKey::new("ns", format!("p{number}"));
        let shift = room.change(&key, None, Some((number, need(100))));
        assert!(shift.others.is_empty() && room.has_room(&key, number) == (number < 2000), "{number}");
    }
    let took = on_cpu().saturating_sub(started);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// Sets that may hold nearly all pods of the cluster.
fn open(numbers: impl Iterator<Item = usize>) -> BTreeSet<Arc<PodSet>> {
    let one = |number: usize| {
        let expression = json!({"key": format!("k{number}"), "operator": "DoesNotExist"});
        let fields: SelectorFields = serde_json::from_value(json!({"matchExpressions": [expression]})).unwrap();
        Arc::new(PodSet::new(Namespaces::Whole(Selector::parse(&fields).unwrap()), Selector::default()))
    };
    numbers.map(one).collect()
}

proptest! {
    /// Whichever sets policies begin or cease to use, those are named that get room or lose it.
    #[test]
    fn room_for_open_sets_ends_where_that_of_all_does(steps in vec((0..4_usize, 0..300_usize, 0..150_usize), 1..12)) {
        let (mut open_sets, mut all) = (OpenSets::default(), BTreeMap::new());
        let without_room = |all: &BTreeMap<String, BTreeSet<Arc<PodSet>>>| {
            let mut known = BTreeSet::new();
            let sets = all.values().flatten().filter(|set| known.insert(Arc::clone(set)));
            sets.skip(MOST_OPEN_SETS).cloned().collect::<BTreeSet<_>>()
        };
        for (name, first, count) in steps {
            let name = format!("p{name}");
            let before = without_room(&all);
            let has = open(first..first + count);
            let had = all.insert(name.clone(), has.clone()).unwrap_or_default();
            let after = without_room(&all);
            let (was_out, is_out) = open_sets.replace(&ObjectKey::new("ns", name.as_str()), &had, &has);
            prop_assert!(was_out.is_subset(&before) && is_out.is_subset(&after));
            prop_assert_eq!(&was_out ^ &is_out, &before ^ &after);
            prop_assert_eq!(&had - &was_out, &had - &before);
            prop_assert_eq!(&has - &is_out, &has - &after);
            prop_assert_eq!(open_sets.is_full("ns"), !after.is_empty());
        }
    }
}

/// The policies of a tenant may name any number of them; each change must not cost a look at all of them.
#[test]
fn many_open_sets_cost_no_look_at_all_of_them() {
    let mut open_sets = OpenSets::default();
    let key = |number: usize| ObjectKey::new("ns", format!("p{number:05}"));
    for number in 0..300 {
        open_sets.replace(&key(number), &BTreeSet::new(), &open(100 * number..100 * (number + 1)));
    }
    let (none, one, started) = (BTreeSet::new(), open(0..1), on_cpu());
    for number in 300..5_300 {
        assert_eq!(open_sets.replace(&key(number), &none, &none), (none.clone(), none.clone()));
        assert_eq!(open_sets.replace(&key(number), &none, &one), (none.clone(), none.clone()));
    }
    let took = on_cpu().saturating_sub(started);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// Many policies with named ports have room for fewer numbers, and the numbers beyond that have no address sets either.
#[test]
fn a_namespace_has_room_for_fewer_numbers_of_many_named_ports() {
    let mut world = world(1..=20);
    let set = |world: &mut World, name: &str, rules: usize| {
        world.apply(change("ns", name, Some((1, vec![json!({"ports": [{"port": "web"}]}); rules]))))
    };
    let numbers = |world: &World| {
        let set = world.policies.sets().find(|set| set.port.is_some()).unwrap();
        let seen = world.policies.common_numbers(set, world.policies.most_numbers(&ObjectKey::new("ns", "a"))).count();
        assert_eq!(world.policies.numbers(set).count(), seen);
        seen
    };
    let sets = |world: &World, number: u16| world.sets_of(&pod_key(number), &world.pods[&pod_key(number)].pod).len();
    for (name, rules) in [("e", 1), ("a", 3000), ("b", 3000), ("c", 3000), ("d", 3000)] {
        set(&mut world, name, rules);
    }
    for (rules, most, has_other) in [(3000, 8, 0), (1, 16, 1)] {
        let affected = set(&mut world, "e", rules);
        assert_eq!((numbers(&world), sets(&world, 8), sets(&world, 12)), (most, 1, has_other));
        for what in [about("a"), Affected::Pod(pod_key(12))] {
            assert!(affected.contains(&what), "{what:?} is not in {affected:?}");
        }
        assert!(!affected.contains(&Affected::Pod(pod_key(8))), "{affected:?}");
        let notices = world.notices(&about("a"));
        let text = format!("more than {most} numbers");
        assert!(!notices.is_empty() && notices.iter().all(|notice| notice.message.contains(&text)), "{notices:?}");
    }
    for name in ["a", "b", "c", "d", "e"] {
        world.apply(change("ns", name, None));
    }
    assert_eq!(world.policies.sets().count(), 0);
}
