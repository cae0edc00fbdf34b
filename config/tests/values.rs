//! How the types of settings parse text.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are not in test functions

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnetwork::Ipv4Network;
use ovnkube_config::values::FromText;
use ovnkube_config::{ClusterSubnet, Collector, DbAddress, LabelSelector, Places, Remote, load};
use proptest::prelude::*;

fn subnets(text: &str) -> String {
    let list = Vec::<ClusterSubnet>::from_text(text).unwrap();
    list.iter().map(ClusterSubnet::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn cluster_subnets() {
    assert_eq!(subnets("11.11.0.0/16"), "11.11.0.0/16/24");
    assert_eq!(subnets("10.128.0.0/14/23"), "10.128.0.0/14/23");
    assert_eq!(subnets("10.128.0.0/14/23, fd01::/48"), "10.128.0.0/14/23 fd01::/48/64");
    assert_eq!(subnets("fd01::/48/64,,"), "fd01::/48/64");
    assert_eq!(subnets("10.128.7.9/14/23"), "10.128.0.0/14/23");
    assert_eq!(Ipv4Network::from_text("100.64.3.4/16").unwrap().to_string(), "100.64.0.0/16");
    for wrong in [
        "10.0.0.0",
        "10.0.0.0/16/",
        "10.0.0.0/16/24/1",
        "10.0.0.0/16/33",
        "10.0.0.0/-1",
        "x/16",
        "fd01::/64/64",
        "010.0.0.0/8/24",
    ] {
        assert!(Vec::<ClusterSubnet>::from_text(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn durations() {
    let of = |text: &str| Duration::from_text(text).ok();
    assert_eq!(of("1m40s"), Some(Duration::from_secs(100)));
    assert_eq!(of("1.5h"), Some(Duration::from_secs(5400)));
    assert_eq!(of("100ms"), Some(Duration::from_millis(100)));
    assert_eq!(of("1h2m3s4ms5us6ns"), Some(Duration::new(3723, 4_005_006)));
    assert_eq!(of("0"), Some(Duration::ZERO));
    for wrong in ["", "1", "s", "-1s", "1d", "1m 2s", ".s", "1..2s", "99999999999999999999h"] {
        assert_eq!(of(wrong), None, "{wrong}");
    }
}

#[test]
fn database_addresses() {
    let of = |text: &str| DbAddress::from_text(text).map(|list| list.0);
    assert_eq!(of(""), Ok(vec![]));
    assert_eq!(of("tcp://10.0.0.1:6641"), of("tcp:10.0.0.1:6641"));
    assert_eq!(of("ssl:[::1]:6641"), Ok(vec![Remote::Ssl("::1".into(), 6641)]));
    assert_eq!(of("unix:/run/nb.sock"), Ok(vec![Remote::Unix(PathBuf::from("/run/nb.sock"))]));
    assert_eq!(of("unix:///run/nb.sock"), of("unix:/run/nb.sock"));
    assert_eq!(of("unix:/run//nb.sock"), Ok(vec![Remote::Unix(PathBuf::from("/run//nb.sock"))]), "two names, not one");
    assert_eq!(of("tcp:ovn-nb.example:6641, tcp:b:1").unwrap().len(), 2);
    for wrong in [
        "tcp:",
        "tcp::6641",
        "tcp:h:0",
        "tcp:h:x",
        "tcp:[::1:6641",
        "tcp:[zz]:1",
        "ssl:a b:1",
        "tcp:a..b:1",
        "6641",
        "unix:",
        ",",
        "tcp:a:1,",
        "tcp:a:1,,tcp:b:1",
    ] {
        assert!(of(wrong).is_err(), "{wrong}");
    }
}

/// OVS's spelling of a remote reads back as the same remote.
fn remote() -> impl Strategy<Value = Remote> {
    prop_oneof![
        (any::<std::net::IpAddr>(), 1u16..).prop_map(|(ip, port)| Remote::Tcp(ip.to_string(), port)),
        ("[a-z][a-z0-9-]{0,8}(\\.[a-z]{1,5})?", 1u16..).prop_map(|(name, port)| Remote::Ssl(name, port)),
        "/[a-z0-9/._-]{1,20}"
            .prop_filter("no //", |path| !path.contains("//"))
            .prop_map(|path| Remote::Unix(path.into())),
    ]
}

proptest! {
    #[test]
    fn remotes_read_back(remote in remote()) {
        prop_assert_eq!(DbAddress::from_text(&remote.to_string()).unwrap().0, vec![remote]);
    }

    #[test]
    fn cluster_subnets_read_back(address: [u8; 4], prefix in 0u8..=28, more in 1u8..=29) {
        let host_prefix = (prefix + more).min(29);
        let text = format!("{}/{prefix}/{host_prefix}", std::net::Ipv4Addr::from(address));
        let subnet = ClusterSubnet::from_text(&text).unwrap();
        prop_assert_eq!(ClusterSubnet::from_text(&subnet.to_string()).unwrap(), subnet);
        prop_assert_eq!((subnet.net.prefix(), subnet.host_prefix), (prefix, host_prefix));
    }
}

#[test]
fn listen_addresses_and_collectors() {
    let listen = |text: &str| SocketAddr::from_text(text).map(|address| address.to_string());
    assert_eq!(listen("0.0.0.0:9409").as_deref(), Ok("0.0.0.0:9409"));
    assert_eq!(listen("[::]:10256").as_deref(), Ok("[::]:10256"));
    assert_eq!(listen(":9409").as_deref(), Ok("[::]:9409"));
    assert_eq!(listen("localhost:9409").as_deref(), Ok("127.0.0.1:9409"));
    assert!(listen("::1:9409").is_err() && listen("10.0.0.1").is_err() && listen("10.0.0.1:x").is_err());
    let collectors = Vec::<Collector>::from_text("10.128.0.150:2056,:6343").unwrap();
    assert_eq!(collectors[0], Collector { ip: Some("10.128.0.150".parse().unwrap()), port: 2056 });
    assert_eq!(collectors[1], Collector { ip: None, port: 6343 });
    assert!(Collector::from_text(":0").is_err());
}

#[test]
fn label_selectors() {
    let labels = BTreeMap::from([("zone", "a"), ("k8s.io/os", "linux"), ("empty", "")]);
    let matches = |text: &str| LabelSelector::from_text(text).unwrap().matches(|key| labels.get(key).copied());
    for yes in [
        "zone",
        "zone=a",
        "zone==a",
        "zone!=b",
        "nope!=b",
        "!nope",
        "zone in (a, b)",
        "zone notin (b)",
        "nope notin (b)",
        "zone=a,k8s.io/os=linux",
        "empty=",
        " zone = a ",
    ] {
        assert!(matches(yes), "{yes}");
    }
    for no in ["nope", "zone=b", "zone!=a", "!zone", "zone in (b)", "zone notin (a,b)", "zone=a,nope", "nope in (a)"] {
        assert!(!matches(no), "{no}");
    }
    for wrong in ["zone in a", "zone in (a", "zone (a)", "a b", "=a", ",", "zone=a)", "z((a))", "!", "zone=a b"] {
        assert!(LabelSelector::from_text(wrong).is_err(), "{wrong}");
    }
}

/// Any command line: no panic, and an error is one line.
#[test]
fn fuzz_command_lines() {
    let places = Places { config_file: "/nonexistent".into(), service_account: "/nonexistent".into() };
    let words = [
        "-",
        "--",
        "=",
        "mtu",
        "nodeport",
        "init-node",
        "cluster-subnets",
        "nb-address",
        "k8s-service-cidrs",
        "config",
        "-o",
        "json",
        "10.0.0.0/8",
        "/24",
        ",",
        "tcp:",
        "ssl:",
        "[::1]:1",
        "0",
        "1",
        "true",
        " ",
        "é",
        "\n",
        "x",
        "--help",
        "encap-ip",
        "db-txn-timeout",
    ];
    bolero::check!().with_type::<Vec<Vec<u8>>>().for_each(|line| {
        let word = |picks: &Vec<u8>| {
            picks.iter().filter_map(|pick| words.get(usize::from(*pick) % 40)).copied().collect::<String>()
        };
        if let Err(error) = load(line.iter().map(|picks| word(picks).into()), |_| None, &places) {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    });
}
