//! A host that boots: its own network setup and the agent run at the same time.

use std::time::Duration;

use ovnkube_node::GatewaySettings;

use super::killed::DIR;
use super::lab::{Lab, eventually, in_node, run};
use super::{cut_power, held, host, is_moved, journal, set_journal, settings, start_and_move};

fn ip(args: &str) {
    run("ip", &args.split(' ').collect::<Vec<_>>());
}

/// The setup adds an address to the NIC first and sets the default route a little later. A route that it never sets is
/// restored.
#[test]
fn a_default_route_that_is_set_late() {
    in_node(|lab| {
        host(lab);
        let before = held("eth0");
        restart(lab);
        lab.gateway = Some(GatewaySettings { default_route: Duration::from_secs(600), ..settings() });
        lab.start_agent();
        eventually("an address", || lab.waits_for().contains("has not finished: it has no IPv"));
        for args in [
            "addr add 172.18.0.2/16 brd 172.18.255.255 dev eth0 valid_lft 3600 preferred_lft 1800",
            "addr add 172.18.0.3/16 dev eth0",
            "addr add fd00:172::2/64 dev eth0 nodad",
        ] {
            ip(args);
        }
        eventually("the default route", || {
            lab.waits_for().contains("the default route from before the reboot is not set yet")
        });
        // on the NIC: there is the address, and nowhere else
        ip("route add default via 172.18.255.1 dev eth0 proto dhcp src 172.18.0.2 metric 100");
        ip("route add 10.9.0.0/16 via 172.18.0.9 dev eth0 table 77 mtu 1300");
        // when the time for the route that is not set has run out
        lab.crash_agent();
        lab.gateway = Some(impatient());
        lab.start_agent();
        eventually("the move", || is_moved(lab));
        assert_eq!(held("breth0"), before);
    });
}

/// A host with two families, one of which is set up long after the other: the agent keeps its earlier routes meanwhile.
#[test]
fn an_address_that_comes_late() {
    in_node(|lab| {
        host(lab);
        restart(lab);
        let long = Duration::from_secs(600);
        lab.gateway = Some(GatewaySettings { first_address: long, default_route: long, ..settings() });
        lab.start_agent();
        eventually("both", || lab.waits_for().contains("it has no IPv4 and no IPv6 address yet"));
        ip("addr add fd00:172::2/64 dev eth0 nodad");
        ip("-6 route add default via fd00:172::1 dev eth0 metric 512");
        eventually("IPv4", || {
            let waits = lab.waits_for();
            waits.contains("it has no IPv4 address yet") && !waits.contains("IPv6")
        });
        lab.crash_agent();
        lab.gateway = Some(impatient());
        lab.start_agent();
        eventually("the move of IPv6", || is_moved(lab) && journal(lab).contains("awaited"));
        assert!(held("breth0").contains("default via fd00:172::1"));
        ip("addr add 172.18.0.2/16 brd 172.18.255.255 dev eth0 valid_lft 3600 preferred_lft 1800");
        eventually("the default route", || held("breth0").contains("default via 172.18.255.1"));
        eventually("the end", || is_moved(lab) && !journal(lab).contains("awaited"));
        assert!(held("breth0").contains("default via fd00:172::1"));
    });
}

/// The address appears while its link is moved, so that the program that set it cannot set the route any more.
#[test]
fn an_address_that_comes_during_the_move() {
    if let Ok(dir) = std::env::var(DIR) {
        let mut lab = Lab::of(dir.into());
        ovnkube_node::before_each_step(|done| {
            if done == 2 {
                ip("addr add 172.18.0.2/16 brd 172.18.255.255 dev eth0");
            }
        });
        lab.gateway = Some(impatient());
        lab.start_agent_alone();
        eventually("the move", || is_moved(&lab) && held("breth0").contains("172.18.0.2"));
        eventually("the default route", || held("breth0").contains("default via 172.18.255.1"));
        eventually("the end", || !journal(&lab).contains("awaited"));
        std::process::exit(0);
    }
    in_node(|lab| {
        host(lab);
        restart(lab);
        ip("addr add fd00:172::2/64 dev eth0 nodad");
        ip("-6 route add default via fd00:172::1 dev eth0 metric 512");
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "boot::an_address_that_comes_during_the_move", "--nocapture"]);
        let output = command.env(DIR, &lab.dir).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
}

/// The DHCP server gives another address than before: a route with the old one as its source cannot be set.
#[test]
fn an_address_that_is_another_one() {
    in_node(|lab| {
        host(lab);
        restart(lab);
        ip("addr add 172.18.0.7/16 dev eth0");
        ip("addr add fd00:172::2/64 dev eth0 nodad");
        lab.gateway = Some(impatient());
        lab.start_agent();
        eventually("the move", || is_moved(lab) && journal(lab).contains("172.18.0.7/16"));
        let held = held("breth0");
        assert!(held.contains("default via fd00:172::1") && !held.contains("172.18.255.1"), "{held}");
    });
}

/// A host whose NIC was moved, after a reboot.
fn restart(lab: &mut Lab) {
    lab.gateway = Some(settings());
    start_and_move(lab);
    lab.crash_agent();
    set_journal(lab, |journal| journal["boot"] = "the one before".into());
    cut_power(lab);
    lab.start_vswitchd();
}

fn impatient() -> GatewaySettings {
    GatewaySettings { first_address: Duration::ZERO, default_route: Duration::ZERO, ..settings() }
}
