//! Keys of the ConfigMap that cannot be used.

use super::*;

#[test]
fn a_bad_key_is_named_with_its_remedy() {
    for (key, value, says) in [
        ("enable-ic", "maybe", "write \"true\" or \"false\""),
        ("enable-ic", "-", "is missing"),
        ("az-name", "-", "give each cluster a name of its own"),
        ("az-name", "a b", "letters, digits"),
        ("az-name", "-a", "at both ends"),
        ("az-name", "a\u{7}b", "letters, digits"),
        ("az-name", "a_b", "letters, digits"),
        ("az-name", "a234567890b234567890c234567890d234567890e234567890f234567890g234", "at most 63"),
        ("az-name", "rtos", "ports of this cluster's routers begin with rtos; write another name"),
        ("az-name", "cr-az1", "begin with cr"),
        ("ic-db-host", "10.0.0", "write addresses or DNS names"),
        ("ic-db-host", "a/b", "write addresses or DNS names"),
        ("ic-db-host", " , ", "write one or more"),
        ("ic-nb-port", "0", "write a port from 1 to 65535"),
        ("ic-sb-port", "66460", "write a port from 1 to 65535"),
        ("gw-nodes", "a_b", "write names of nodes"),
        ("auto-route", "yes", "write \"true\" or \"false\""),
        ("gateway-mtu", "576", "write a number from 1280 to 65535"),
        ("gateway-mtu", "70000", "write a number from 1280 to 65535"),
        ("host-route", "yes", "write \"true\" or \"false\""),
    ] {
        let config = parse(&[(key, value)]);
        assert_eq!(config.asks, Asks::Unclear, "{key}: {value}");
        let [bad] = &config.bad[..] else { panic!("{key}: {:?}", config.bad) };
        assert!(bad.key.as_ref() == key && bad.problem.contains(says), "{bad}");
    }
}

/// An edit of several keys: those that can be used count, also where another one cannot.
#[test]
fn a_bad_key_says_what_it_said_last() {
    let Asks::On(last) = parse(&[("gateway-mtu", "1300")]).asks else { panic!("on") };
    let then = |data: &[(&str, &str)]| parse(data).with_last(&last);
    let on = |data: &[(&str, &str)]| parse(data).asks;
    let moved = ("gw-nodes", "c");
    assert_eq!(then(&[moved, ("gateway-mtu", "12")]), on(&[moved, ("gateway-mtu", "1300")]));
    assert_eq!(then(&[moved, ("host-route", "maybe"), ("auto-route", "maybe")]), on(&[moved]));
    assert_eq!(
        then(&[moved, ("az-name", "-"), ("routes", "az2 10.7.0.0/16,x")]),
        on(&[moved, ("routes", "az2 10.7.0.0/16")])
    );
    // not a new host with the port of the former one
    assert_eq!(then(&[moved, ("ic-db-host", "10.0.0.9"), ("ic-nb-port", "x")]), on(&[moved]));
    assert_eq!(then(&[moved, ("enable-ic", "maybe"), ("gateway-mtu", "1280")]), on(&[moved, ("gateway-mtu", "1280")]));
}

/// The same in a cluster, also where a master starts with it: what was kept comes after the ConfigMap then.
#[test]
fn other_keys_of_an_edit_with_a_bad_one_count() {
    let network = NetworkSettings::default;
    let gateways = |world: &World| world.joined.wanted().map(|wanted| wanted.gateways.clone());
    let edit = || Change::Interconnection(Some(parse(&[("gw-nodes", "c"), ("gateway-mtu", "12")])));
    let mut world = World::new(network(), []);
    world.apply(edit());
    assert_eq!(gateways(&world), None, "nothing is known of the bad key");
    world.apply(Change::Interconnection(Some(parse(&[]))));
    world.apply(edit());
    assert_eq!(gateways(&world), Some(vec!["c".into()]));
    let kept = world.joined.kept().unwrap();
    let mut next = World::new(network(), []);
    next.apply(Change::Interconnection(Some(parse(&[("gw-nodes", "d"), ("gateway-mtu", "12")]))));
    next.apply(Change::InterconnectionStored(kept.as_str().into()));
    assert_eq!(gateways(&next), Some(vec!["d".into()]));
}

#[test]
fn all_bad_keys_are_named() {
    assert_eq!(parse(&[("az-name", "-"), ("gw-nodes", "-"), ("ic-nb-port", "x")]).bad.len(), 3);
}
