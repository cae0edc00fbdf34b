//! Parsing of policies, and the search for those that concern a pod.

use std::collections::BTreeMap;

use super::fields::PolicyFields;
use super::*;
use crate::{Labels, Meta, SelectorFields};

fn labels(of: &[(&str, &str)]) -> Labels {
    Labels::from(&of.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>())
}

fn selector(json: &str) -> Result<Selector, String> {
    Selector::parse(&serde_json::from_str::<SelectorFields>(json).unwrap())
}

fn policy(spec: &str) -> NetworkPolicy {
    let fields: PolicyFields = serde_json::from_str(spec).unwrap();
    let none = BTreeMap::new();
    NetworkPolicy::parse(&Meta { uid: "u", created: 1, labels: &none, annotations: &none }, &fields)
}

fn bad(spec: &str) -> Vec<String> {
    policy(spec).bad.iter().map(|bad| bad.field.to_string()).collect()
}

#[test]
fn selectors_match_the_reference() {
    let web = labels(&[("app", "web"), ("tier", "")]);
    for (text, matches) in [
        (r"{}", true),
        (r#"{"matchLabels":{"app":"web"}}"#, true),
        (r#"{"matchLabels":{"app":"Web"}}"#, false),
        (r#"{"matchLabels":{"tier":""}}"#, true),
        (r#"{"matchLabels":{"other":""}}"#, false),
        (r#"{"matchExpressions":[{"key":"app","operator":"In","values":["db","web"]}]}"#, true),
        (r#"{"matchExpressions":[{"key":"other","operator":"NotIn","values":["x"]}]}"#, true),
        (r#"{"matchExpressions":[{"key":"app","operator":"NotIn","values":["web"]}]}"#, false),
        (r#"{"matchExpressions":[{"key":"tier","operator":"Exists"},{"key":"z","operator":"DoesNotExist"}]}"#, true),
        (r#"{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]}"#, false),
    ] {
        assert_eq!(selector(text).unwrap().matches(&web), matches, "{text}");
    }
}

#[test]
fn invalid_selectors_are_refused() {
    for text in [
        r#"{"matchLabels":{"app":"a||b"}}"#,
        r#"{"matchLabels":{"app":"\"} || 1"}}"#,
        r#"{"matchLabels":{"a b":"x"}}"#,
        r#"{"matchLabels":{"app":"ü"}}"#,
        r#"{"matchLabels":{"UPPER.example/app":"x"}}"#,
        r#"{"matchExpressions":[{"key":"app","operator":"In","values":[]}]}"#,
        r#"{"matchExpressions":[{"key":"app","operator":"In"}]}"#,
        r#"{"matchExpressions":[{"key":"app","operator":"Exists","values":["x"]}]}"#,
        r#"{"matchExpressions":[{"key":"app","operator":"Equals","values":["x"]}]}"#,
        r#"{"matchExpressions":[{"key":"","operator":"Exists"}]}"#,
    ] {
        assert!(selector(text).is_err(), "{text}");
    }
}

#[test]
fn selectors_are_named_as_by_ovn_kubernetes() {
    let text = r#"{"matchLabels":{"b":"2","a":"1"},"matchExpressions":[{"key":"z","operator":"NotIn","values":["y","x"]},{"key":"k","operator":"Exists"}]}"#;
    let name =
        "LS{ML:{a: 1,b: 2,},ME:{LSR{Key:k,Operator:Exists,Values:[],},LSR{Key:z,Operator:NotIn,Values:[x y],}},}";
    assert_eq!(selector(text).unwrap().to_string(), name);
    assert_eq!(Selector::default().to_string(), "LS{}");
}

#[test]
fn policy_types_default_to_the_rules() {
    let about = |spec| {
        let policy = policy(spec);
        (policy.ingress.map(|rules| rules.len()), policy.egress.map(|rules| rules.len()))
    };
    assert_eq!(about(r"{}"), (Some(0), None));
    assert_eq!(about(r#"{"egress":[]}"#), (Some(0), None));
    assert_eq!(about(r#"{"egress":[{}]}"#), (Some(0), Some(1)));
    assert_eq!(about(r#"{"policyTypes":["Egress"],"ingress":[{}]}"#), (None, Some(0)));
    assert_eq!(about(r#"{"policyTypes":["Ingress","Egress"],"ingress":[{},{}]}"#), (Some(2), Some(0)));
    assert_eq!(about(r#"{"policyTypes":["Inward"]}"#), (None, None));
    assert_eq!(bad(r#"{"policyTypes":["Inward"]}"#), ["spec.policyTypes"]);
}

#[test]
fn invalid_parts_select_nothing_and_the_rest_works() {
    let rules = r#"{"podSelector":{"matchLabels":{"a":"b c"}},"ingress":[
        {"from":[{"ipBlock":{"cidr":"10.0.0.0"}}],"ports":[{"port":80},{"port":0},{"port":"Web"},{"port":9,"endPort":8}]},
        {"from":[{"podSelector":{}},{},{"ipBlock":{"cidr":"10.0.0.0/8","except":["fd00::/8"]}}],"ports":[{"protocol":"ICMP"}]},
        {"from":[{"ipBlock":{"cidr":"10.0.0.0/8"},"podSelector":{}}],"ports":[{"endPort":8},{"port":"web","endPort":8}]},
        {"from":[],"ports":[]}]}"#;
    let policy = policy(rules);
    assert_eq!(policy.pods, None);
    let rules = policy.ingress.unwrap();
    assert_eq!(rules[0].peers, Some(vec![]));
    assert_eq!(rules[0].ports, Some(vec![PolicyPort::Numbers(Protocol::Tcp, 80, 80)]));
    assert_eq!(rules[1].peers, Some(vec![Peer::Pods { namespaces: None, pods: Selector::default() }]));
    assert_eq!(rules[1].ports, Some(vec![]));
    assert_eq!((&rules[2].peers, &rules[2].ports), (&Some(vec![]), &Some(vec![])));
    assert_eq!((&rules[3].peers, &rules[3].ports), (&None, &None));
    let fields: Vec<_> = policy.bad.iter().map(|bad| bad.field.as_ref()).collect();
    let expected = [
        "spec.ingress[0].from[0]",
        "spec.ingress[0].ports[1]",
        "spec.ingress[0].ports[2]",
        "spec.ingress[0].ports[3]",
        "spec.ingress[1].from[1]",
        "spec.ingress[1].from[2]",
        "spec.ingress[1].ports[0]",
        "spec.ingress[2].from[0]",
        "spec.ingress[2].ports[0]",
        "spec.ingress[2].ports[1]",
        "spec.podSelector",
    ];
    assert_eq!(fields, expected);
}

/// API servers accept them, and read decimal numbers.
#[test]
fn leading_zeros_of_blocks_are_ignored() {
    let read = |cidr: &str, except: &str| {
        let block = format!(r#"{{"cidr":"{cidr}","except":["{except}"]}}"#);
        let policy = policy(&format!(r#"{{"ingress":[{{"from":[{{"ipBlock":{block}}}]}}]}}"#));
        let peers = policy.ingress.unwrap()[0].peers.clone().unwrap();
        let blocks = peers.iter().filter_map(|peer| if let Peer::Block(block) = peer { Some(block) } else { None });
        blocks.map(|block| format!("{} {:?}", block.cidr, block.except)).collect::<Vec<_>>()
    };
    assert_eq!(read("010.000.0.0/08", "10.016.0.0/012"), ["10.0.0.0/8 [10.16.0.0/12]"]);
    assert_eq!(read("2001:db8::/032", "2001:0db8:0001::/048"), ["2001:db8::/32 [2001:db8:1::/48]"]);
    for bad in ["0300.0.0.0/8", "010.0.0.0", "0x10.0.0.0/8", "10.0.0/8", "/8", "0/0"] {
        assert_eq!(read(bad, "10.16.0.0/12"), [""; 0], "{bad}");
    }
}

/// A block that excludes all of itself, or nothing, is a mistake.
#[test]
fn exceptions_are_inside_their_block() {
    for (cidr, except, problem) in [
        ("10.0.0.0/8", "10.1.0.0/16", None),
        ("10.0.0.0/8", "10.0.0.0/8", Some("10.0.0.0/8 is not a smaller range inside 10.0.0.0/8")),
        ("10.0.0.0/8", "10.1.2.3/4", Some("0.0.0.0/4 is not a smaller range inside 10.0.0.0/8")),
        ("10.0.0.0/8", "11.0.0.0/16", Some("11.0.0.0/16 is not a smaller range inside 10.0.0.0/8")),
        ("10.0.0.0/8", "fd00::/16", Some("fd00::/16 is not a smaller range inside 10.0.0.0/8")),
    ] {
        let block = format!(r#"{{"cidr":"{cidr}","except":["10.9.0.0/16","{except}"]}}"#);
        let policy = policy(&format!(r#"{{"ingress":[{{"from":[{{"ipBlock":{block}}}]}}]}}"#));
        let told = policy.bad.first().map(|bad| format!("{}: {}", bad.field, bad.problem));
        let expected = problem.map(|problem| {
            format!(
                "spec.ingress[0].from[0]: ipBlock.except: {problem}; correct it or leave it out; it selects nothing"
            )
        });
        assert_eq!(told, expected);
        let peers = policy.ingress.unwrap()[0].peers.clone().unwrap();
        assert_eq!(peers.len(), usize::from(problem.is_none()));
    }
}

/// A block that would need an ACL of 82 MB selects nothing; other parts of the policy work, up to a limit for all
/// together.
#[test]
fn a_block_with_exceptions_beyond_the_bound_selects_nothing() {
    let except = (0..25_000).map(|n| format!(r#""fd00:{:x}::{:x}/128""#, n % 250, n)).collect::<Vec<_>>().join(",");
    let huge = format!(r#"{{"ipBlock":{{"cidr":"fd00::/16","except":[{except}]}}}}"#);
    let some = r#"{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16","10.3.0.0/16"]}}"#;
    let read = policy(&format!(r#"{{"ingress":[{{"from":[{some},{huge},{some},{{"podSelector":{{}}}}]}}]}}"#));
    let peers = read.ingress.unwrap()[0].peers.clone().unwrap();
    let kinds: Vec<_> = peers.iter().map(|peer| if let Peer::Block(b) = peer { Some(b.index) } else { None }).collect();
    assert_eq!(kinds, [Some(0), Some(2), None]);
    let fields: Vec<_> = read.bad.iter().map(|bad| bad.field.as_ref()).collect();
    assert_eq!(fields, ["spec.ingress[0].from[1]"]);
    assert!(read.bad[0].problem.contains("50000") && read.bad[0].problem.contains("selects nothing"), "{:?}", read.bad);
    // a rule whose only peer is too large allows no peer
    let read = policy(&format!(r#"{{"egress":[{{"to":[{huge}]}}]}}"#));
    assert_eq!(read.egress.unwrap()[0].peers, Some(vec![]));
}

/// Blocks and ports are multiplied in ACLs, so their product is limited.
#[test]
fn many_blocks_beside_many_ports_are_bounded_together() {
    let list = |count: usize, one: &dyn Fn(usize) -> String| (0..count).map(one).collect::<Vec<_>>().join(",");
    let block = |n: usize| format!(r#"{{"ipBlock":{{"cidr":"10.{}.{}.0/24"}}}}"#, n / 250, n % 250);
    let of = |blocks: usize, ports: usize| {
        let ports = list(ports, &|n| format!(r#"{{"port":{}}}"#, n + 1));
        let read = policy(&format!(r#"{{"ingress":[{{"from":[{}],"ports":[{ports}]}}]}}"#, list(blocks, &block)));
        (read.ingress.unwrap()[0].peers.as_ref().unwrap().len(), read.bad.len())
    };
    assert_eq!(of(300, 50), (300, 0));
    // the number of Events is limited
    assert_eq!(of(5000, 5000), (9, 20));
    // beside the address sets of the names
    let named = list(200, &|n| format!(r#"{{"port":"p{n}"}}"#));
    let read = policy(&format!(r#"{{"ingress":[{{"from":[{}],"ports":[{named}]}}]}}"#, list(130, &block)));
    assert_eq!(read.ingress.unwrap()[0].peers.as_ref().unwrap().len(), 124);
}

#[test]
fn blocks_keep_their_place_and_lose_host_bits() {
    let policy = policy(
        r#"{"egress":[{"to":[{"ipBlock":{"cidr":"x"}},{"podSelector":{}},{"ipBlock":{"cidr":"10.1.2.3/8","except":["10.9.9.9/16"]}}]}]}"#,
    );
    let Some(Peer::Block(block)) = policy.egress.unwrap()[0].peers.clone().unwrap().pop() else { panic!() };
    assert_eq!((block.index, block.cidr.to_string()), (1, "10.0.0.0/8".to_owned()));
    assert_eq!(block.except[0].to_string(), "10.9.0.0/16");
}

fn list(count: usize, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect::<Vec<_>>().join(",")
}

/// How many peers of the only rule are used, and how many are reported.
fn used(direction: &str, peers: &str, ports: &str) -> (usize, usize) {
    let word = if direction == "ingress" { "from" } else { "to" };
    let read = policy(&format!(r#"{{"{direction}":[{{"{word}":[{peers}],"ports":[{ports}]}}]}}"#));
    let rules = if direction == "ingress" { read.ingress } else { read.egress };
    (rules.unwrap()[0].peers.as_ref().unwrap().len(), read.bad.len())
}

/// A named port is an ACL for each of its numbers, so the room for numbers depends on everything else.
#[test]
fn a_large_policy_has_room_for_fewer_numbers() {
    let block = |n: usize| format!(r#"{{"ipBlock":{{"cidr":"10.{}.{}.0/24"}}}}"#, n / 250, n % 250);
    let most = |blocks: usize, names: usize| {
        let ports = list(names, |n| format!(r#"{{"port":"p{n}"}}"#));
        let read = policy(&format!(r#"{{"ingress":[{{"from":[{}],"ports":[{ports}]}}]}}"#, list(blocks, block)));
        (read.most_numbers, read.bad.len())
    };
    assert_eq!(policy("{}").most_numbers, 64);
    assert_eq!([most(1, 1), most(300, 2), most(1000, 2), most(4900, 5)], [(64, 0), (64, 0), (24, 0), (2, 0)]);
    // an ACL for each rule and number
    let selected = list(3000, |_| r#"{"from":[{"podSelector":{}}],"ports":[{"port":"web"}]}"#.to_owned());
    let everybody = list(3000, |_| r#"{"ports":[{"port":"web"}]}"#.to_owned());
    for rules in [selected, everybody] {
        let read = policy(&format!(r#"{{"ingress":[{rules}]}}"#));
        assert_eq!((read.most_numbers, read.bad.len()), (16, 0));
    }
    // in egress rules the pods of each selector may have other numbers
    let selector = |n: usize| format!(r#"{{"podSelector":{{"matchLabels":{{"app":"a{n}"}}}}}}"#);
    let rule = format!(r#"{{"to":[{}],"ports":[{{"port":"web"}}]}}"#, list(100, selector));
    let read = policy(&format!(r#"{{"egress":[{}]}}"#, list(20, |_| rule.clone())));
    assert_eq!((read.most_numbers, read.bad.len()), (22, 0));
}

/// A selector with a named port is an address set for each number and family. What counts is what rules make of it.
#[test]
fn selectors_with_named_ports_are_bounded() {
    let app = |n: usize| format!(r#"{{"podSelector":{{"matchLabels":{{"app":"a{n}"}}}}}}"#);
    let (web, both) = (r#"{"port":"web"}"#, r#"{"port":"web"},{"port":"api"}"#);
    assert_eq!(used("egress", &list(101, app), both), (101, 0));
    assert_eq!(used("egress", &list(2005, app), web), (2000, 5), "no set is of all pods, and none regardless of ports");
    let with_block = format!(r#"{},{{"ipBlock":{{"cidr":"10.0.0.0/8"}}}}"#, list(2000, app));
    assert_eq!(used("egress", &with_block, web), (2000, 1), "the pods of a block may be any");
    assert_eq!(used("egress", &list(1005, app), r#"{"port":"web"},{"port":1}"#), (1000, 5), "two sets each");
    assert_eq!(used("ingress", &list(2005, app), web), (1999, 6), "and the policy's own pods");
    let most = |count: usize, ports: &str| {
        let read = policy(&format!(r#"{{"egress":[{{"to":[{}],"ports":[{ports}]}}]}}"#, list(count, app)));
        (read.most_numbers, read.bad.len())
    };
    assert_eq!([most(101, both), most(2000, web)], [(64, 0), (8, 0)]);

    let rules = |direction: &str, count: usize| {
        let rule = |n: usize| format!(r#"{{"ports":[{{"port":"p{n}"}}]}}"#);
        let read = policy(&format!(r#"{{"podSelector":{{}},"{direction}":[{}]}}"#, list(count, rule)));
        let sets = crate::pod_set::of_policy(&crate::ObjectKey::new("ns", "x"), &read).len();
        let rules = if direction == "ingress" { read.ingress } else { read.egress };
        (rules.unwrap().iter().filter(|rule| rule.peers.is_none()).count(), sets, read.bad.len())
    };
    assert_eq!(rules("ingress", 2005), (2000, 2000, 5), "a rule beyond the limit has no sets");
    assert_eq!(rules("egress", 105), (100, 100, 5), "each may be of all pods of the cluster");
    // the same pods as peers are the same set
    let own = r#"{"podSelector":{"matchLabels":{"app":"a"}},"ingress":[{"ports":[{"port":"web"}]}],
        "egress":[{"to":[{"podSelector":{"matchLabels":{"app":"a"}}}],"ports":[{"port":"web"}]}]}"#;
    let other = own.replacen(r#""app":"a""#, r#""app":"b""#, 1);
    assert_ne!(policy(own).need, policy(&other).need);
}

/// A rule for all peers is an ACL too, and ports are listed beside selectors as well.
#[test]
fn rules_without_blocks_are_bounded_too() {
    let read = policy(&format!(r#"{{"ingress":[{}]}}"#, list(50_002, |_| "{}".to_owned())));
    let rules = read.ingress.unwrap();
    let for_all = rules.iter().filter(|rule| rule.peers.is_none()).count();
    assert_eq!((for_all, rules.len(), read.bad.len()), (50_000, 50_002, 2));
    assert_eq!(rules[50_001].peers, Some(vec![]), "it selects nothing");
    assert_eq!(&*read.bad[0].field, "spec.ingress[50000]");

    let ports = list(30_000, |n| format!(r#"{{"port":{}}}"#, n + 1));
    for (from, first) in [("", None), (r#""from":[{"podSelector":{}}],"#, Some(1))] {
        let read = policy(&format!(r#"{{"ingress":[{}]}}"#, list(2, |_| format!(r#"{{{from}"ports":[{ports}]}}"#))));
        let peers: Vec<_> = read.ingress.unwrap().iter().map(|rule| rule.peers.as_ref().map(Vec::len)).collect();
        assert_eq!(peers, [first, Some(0)]);
    }
}

/// The text of a selector is in the ids of its address sets, of which there are many for a named port.
#[test]
fn long_selectors_name_no_set() {
    let selector = |values: usize| {
        let values = list(values, |n| format!(r#""v{n:050}""#));
        format!(r#"{{"matchExpressions":[{{"key":"k","operator":"In","values":[{values}]}}]}}"#)
    };
    for kind in ["podSelector", "namespaceSelector"] {
        let peers = [180, 200].map(|values| format!(r#"{{"{kind}":{}}}"#, selector(values)));
        assert_eq!(used("ingress", &peers.join(","), ""), (1, 1), "{kind}");
    }
    let about = |values: usize| {
        let rules = r#"[{"ports":[{"port":80},{"port":"web"}]},{}]"#;
        policy(&format!(r#"{{"podSelector":{},"ingress":{rules}}}"#, selector(values)))
    };
    let (short, long) = (about(180), about(200));
    let key = crate::ObjectKey::new("ns", "p");
    assert!(short.bad.is_empty() && crate::PodSet::subjects(&key, &short).is_some());
    let fields: Vec<_> = long.bad.iter().map(|bad| &*bad.field).collect();
    assert_eq!(fields, ["spec.ingress[0].ports"]);
    assert_eq!(crate::PodSet::subjects(&key, &long), None);
    assert!(long.pods.is_some(), "it still selects its pods");
}

/// Each different selector is a set of addresses, which lists all pods that it matches.
#[test]
fn different_selectors_are_bounded() {
    let app = |n: usize| format!(r#"{{"podSelector":{{"matchLabels":{{"app":"a{n}"}}}},"namespaceSelector":{{}}}}"#);
    assert_eq!(used("ingress", &list(2005, app), r#"{"port":80}"#), (2000, 5));
    assert_eq!(used("ingress", &list(2005, |n| app(n % 500)), r#"{"port":80}"#), (2005, 0), "the same ones again");
    let names = list(99, |n| format!(r#"{{"port":"p{n}"}}"#));
    assert_eq!(used("ingress", &list(100, app), &names), (100, 0));
    assert_eq!(used("egress", &list(25, app), &names), (20, 5), "a set for each name");

    // what may match all pods of the cluster
    let without = |n: usize| format!(r#"{{"matchExpressions":[{{"key":"k{n}","operator":"DoesNotExist"}}]}}"#);
    let everywhere = |n: usize| format!(r#"{{"namespaceSelector":{}}}"#, without(n));
    assert_eq!(used("ingress", &list(105, everywhere), ""), (100, 5));
    let by_label =
        |n: usize| format!(r#"{{"podSelector":{},"namespaceSelector":{{"matchLabels":{{"a":"b"}}}}}}"#, without(n));
    assert_eq!(used("ingress", &list(105, by_label), ""), (105, 0));
    let own = |n: usize| format!(r#"{{"podSelector":{}}}"#, without(n));
    assert_eq!(used("ingress", &list(105, own), ""), (105, 0));
    let values = |count: usize| list(count, |n| format!(r#""v{n}""#));
    let one_of = |n: usize, count: usize| {
        let expression = format!(r#"{{"key":"k{n}","operator":"In","values":[{}]}}"#, values(count));
        format!(r#"{{"namespaceSelector":{{"matchExpressions":[{expression}]}}}}"#)
    };
    assert_eq!(used("ingress", &list(105, |n| one_of(n, 50)), ""), (105, 0));
    assert_eq!(used("ingress", &list(105, |n| one_of(n, 51)), ""), (100, 5));
    let told = policy(&format!(r#"{{"ingress":[{{"from":[{}]}}]}}"#, list(101, everywhere))).bad;
    let problem = "with it the policy would have more than 100 different selectors that require no label with one of a few \
                   values, the limit; list several values in one selector, or divide the policy; it selects nothing";
    assert_eq!(told, [crate::BadField::new("spec.ingress[0].from[100]", problem)]);
}
