//! Rules that send packets to a routing table.

use crate::tests::{apart, run};
use crate::*;

#[test]
fn marked_packets_have_a_table() {
    apart(async || {
        run("ip", &["link", "set", "lo", "up"]);
        let net = Net::here().await.unwrap();
        let lo = net.link("lo").await.unwrap().unwrap();
        let routes = ["10.96.0.0/16", "fd00:10:96::/112"].map(|to| Route {
            destination: to.parse().unwrap(),
            gateway: None,
            source: None,
            mtu: None,
        });
        for _ in 0..2 {
            for (ipv6, route) in [(false, routes[0]), (true, routes[1])] {
                net.ensure_rule(ipv6, RULE).await.unwrap();
                net.ensure_route_in(&lo, 7, route).await.unwrap();
            }
        }
        for (family, to) in [("-4", "10.96.0.0/16"), ("-6", "fd00:10:96::/112")] {
            let rules = run("ip", &[family, "rule"]);
            assert_eq!(rules.matches("30:\tfrom all fwmark 0x1745ec lookup 7").count(), 1, "{rules}");
            assert!(run("ip", &[family, "route", "show", "table", "7"]).contains(to));
        }
        assert_eq!(net.routes_in(&lo, 7).await.unwrap(), routes);
        assert_eq!(net.routes(&lo).await.unwrap(), []);
    });
}

/// An administrator's rule with the same priority, mark and table, but for fewer packets, is not the agent's.
#[test]
fn a_narrower_rule_is_anothers() {
    apart(async || {
        let net = Net::here().await.unwrap();
        for narrower in [
            "from 192.0.2.0/24 fwmark 0x1745ec",
            "to 192.0.2.0/24 fwmark 0x1745ec",
            "iif lo fwmark 0x1745ec",
            "oif lo fwmark 0x1745ec",
            "tos 0x10 fwmark 0x1745ec",
            "uidrange 0-1 fwmark 0x1745ec",
            "ipproto tcp fwmark 0x1745ec",
            "sport 80 fwmark 0x1745ec",
            "dport 80 fwmark 0x1745ec",
            "suppress_prefixlength 0 fwmark 0x1745ec",
            "suppress_ifgroup 1 fwmark 0x1745ec",
            "not fwmark 0x1745ec",
            "fwmark 0x1745ec/0xffffff",
        ] {
            change_rule("add", narrower);
            let before = run("ip", &["rule"]);
            assert!(before.contains("30:"), "{narrower}");
            assert_eq!(net.look(false).await.unwrap().rules, [], "{narrower}");
            net.delete_rule(false, RULE).await.unwrap();
            assert_eq!(run("ip", &["rule"]), before, "{narrower}");
            change_rule("del", narrower);
        }
    });
}

#[test]
fn only_the_agents_rule_is_deleted() {
    apart(async || {
        let net = Net::here().await.unwrap();
        let narrower = "from 192.0.2.0/24 fwmark 0x1745ec";
        change_rule("add", narrower);
        net.ensure_rule(false, RULE).await.unwrap();
        assert_eq!(net.look(false).await.unwrap().rules, [(false, RULE)]);
        let both = run("ip", &["rule"]);
        // the kernel would delete the first
        assert!(matches!(net.delete_rule(false, RULE).await, Err(Error::RuleAfterAnother { .. })));
        assert_eq!(run("ip", &["rule"]), both);
        change_rule("del", narrower);
        change_rule("add", narrower);
        net.delete_rule(false, RULE).await.unwrap();
        let left = run("ip", &["rule"]);
        let left: Vec<&str> = left.lines().filter(|line| line.starts_with("30:")).collect();
        assert_eq!(left, ["30:\tfrom 192.0.2.0/24 fwmark 0x1745ec lookup 7"]);
    });
}

/// For each form of the agent's rules: it is made once, it is told from narrower ones, and these stay.
#[test]
fn rules_for_the_hosts_own_packets() {
    apart(async || {
        let net = Net::here().await.unwrap();
        for (packets, shown, narrower) in [
            (Packets::Own, "from all iif lo lookup 71", "to 192.0.2.0/24 iif lo lookup 71"),
            (Packets::Own, "from all iif lo lookup 71", "fwmark 0x1 iif lo lookup 71"),
            (
                Packets::OwnNotByDefault,
                "from all iif lo lookup 71 suppress_prefixlength 0",
                "to 192.0.2.0/24 iif lo lookup 71 suppress_prefixlength 0",
            ),
        ] {
            let rule = Rule { priority: 32765, packets, table: 71 };
            for (ipv6, family) in [(false, "-4"), (true, "-6")] {
                net.ensure_rule(ipv6, rule).await.unwrap();
                net.ensure_rule(ipv6, rule).await.unwrap();
                let rules = run("ip", &[family, "rule"]);
                assert_eq!(rules.matches(&format!("32765:\t{shown}\n")).count(), 1, "{rules}");
                assert_eq!(net.look(false).await.unwrap().rules, [(ipv6, rule)]);
                net.delete_rule(ipv6, rule).await.unwrap();
            }
            let by_hand = |verb: &str| {
                let args = ["rule", verb, "priority", "32765"].into_iter().chain(narrower.split(' '));
                run("ip", &args.collect::<Vec<_>>());
            };
            by_hand("add");
            let before = run("ip", &["rule"]);
            net.ensure_rule(false, rule).await.unwrap();
            assert_eq!(net.look(false).await.unwrap().rules, [(false, rule)], "{narrower}");
            // the kernel would delete the first
            assert!(matches!(net.delete_rule(false, rule).await, Err(Error::RuleAfterAnother { .. })), "{narrower}");
            by_hand("del");
            net.delete_rule(false, rule).await.unwrap();
            by_hand("add");
            assert_eq!(run("ip", &["rule"]), before);
            net.delete_rule(false, rule).await.unwrap();
            assert_eq!(run("ip", &["rule"]), before);
            by_hand("del");
        }
    });
}

const RULE: Rule = Rule { priority: 30, packets: Packets::Marked(0x0017_45ec), table: 7 };

fn change_rule(verb: &str, which: &str) {
    let args = ["rule", verb, "priority", "30", "lookup", "7"].into_iter().chain(which.split(' '));
    run("ip", &args.collect::<Vec<_>>());
}
