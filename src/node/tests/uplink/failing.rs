//! Moves that cannot be completed.

use nix::sys::signal::Signal;

use super::lab::{eventually, in_node, run};
use super::{
    forget, has_link, has_port, held, host, is_right, is_written, mac_and_mtu, set_journal, settings, start_and_move,
};

fn ip(args: &str) {
    run("ip", &args.split(' ').collect::<Vec<_>>());
}

/// A route that the kernel no longer accepts on any link: the other routes are moved, and then everything is undone.
#[test]
fn a_route_that_cannot_be_moved() {
    in_node(|lab| {
        let outside = host(lab);
        ip("route add 192.0.2.0/24 dev eth0");
        ip("route add 10.50.0.0/16 via 192.0.2.1 dev eth0");
        ip("route del 192.0.2.0/24 dev eth0");
        let before = held("eth0");
        lab.gateway = Some(settings());
        lab.start_agent();
        eventually("the other routes", || {
            if !has_link("breth0") {
                return false;
            }
            let (nic, bridge) = (held("eth0"), held("breth0"));
            nic.contains("10.50.0.0/16")
                && !nic.contains("default")
                && ["default via 172.18.255.1", "default via fd00:172::1"].iter().all(|route| bridge.contains(route))
        });
        eventually("the end of it", || lab.waits_for().contains("add route 10.50.0.0/16 via 192.0.2.1"));
        eventually("why", || lab.waits_for().contains("so all was moved back"));
        assert_eq!((held("eth0"), has_link("breth0")), (before, false));
        eventually("an answer", || outside.pings("172.18.0.2"));
    });
}

/// The same long after the probation: the node works without the route.
#[test]
fn a_route_that_cannot_be_moved_later() {
    in_node(|lab| {
        host(lab);
        lab.gateway = Some(settings());
        start_and_move(lab);
        lab.crash_agent();
        ip("route add 192.0.2.0/24 dev eth0");
        ip("route add 10.50.0.0/16 via 192.0.2.1 dev eth0");
        ip("route del 192.0.2.0/24 dev eth0");
        lab.start_agent();
        eventually("why it waits", || lab.waits_for().contains("add route 10.50.0.0/16 via 192.0.2.1"));
        lab.hears_of_its_node();
        eventually("the gateway", || lab.annotations().contains_key("k8s.ovn.org/l3-gateway-config"));
        assert!(held("eth0").contains("10.50.0.0/16"));
        ip("addr add 172.18.0.4/16 dev eth0");
        let address = "172.18.0.4/16";
        eventually("another address", || held("breth0").contains(address) && !held("eth0").contains(address));
    });
}

/// An ovs-vswitchd that hangs, while its datapath still works: packets from outside still go to the bridge, so the
/// routes stay there until it releases the NIC. Another master of the NIC stands for the kernel's datapath.
#[test]
fn a_switch_that_does_not_release_the_nic() {
    in_node(|lab| {
        let outside = host(lab);
        let before = held("eth0");
        lab.gateway = Some(settings());
        start_and_move(lab);
        lab.crash_agent();
        set_journal(lab, |journal| journal["undone"] = "it was lost".into());
        lab.signal("vswitchd", Signal::SIGSTOP);
        ip("link add datapath type bridge");
        ip("link set eth0 master datapath");
        lab.start_agent();
        eventually("the refusal", || lab.waits_for().contains("ovs-vswitchd did not release it within"));
        assert!(held("breth0").contains("default via 172.18.255.1") && !held("eth0").contains("default"));
        ip("link set eth0 nomaster");
        lab.signal("vswitchd", Signal::SIGCONT);
        eventually("the end of it", || lab.waits_for().contains("it was lost, so all was moved back"));
        assert_eq!((held("eth0"), has_link("breth0"), has_port(lab)), (before, false, false));
        eventually("an answer", || outside.pings("172.18.0.2"));
    });
}

/// An ovs-vswitchd that has created the link of the bridge but not yet set its flags, which are still those of a new
/// link: setting them sets the link down, and the kernel would drop the addresses and routes that it has by then.
#[test]
fn a_switch_that_has_only_started_to_make_its_bridge() {
    in_node(|lab| {
        let outside = host(lab);
        let (before, link) = (held("eth0"), mac_and_mtu("eth0"));
        lab.gateway = Some(settings());
        start_and_move(lab);
        lab.crash_agent();
        forget(lab);
        eventually("the link", || has_link("breth0"));
        lab.signal("vswitchd", Signal::SIGSTOP);
        lab.start_agent();
        eventually("the refusal", || lab.waits_for().contains("ovs-vswitchd did not make its bridge within"));
        assert_eq!(held("breth0"), "");
        lab.signal("vswitchd", Signal::SIGCONT);
        eventually("all it held", || held("breth0") == before);
        is_right(lab, &outside, &before, &link);
        // nothing waits for it if the link is an old one
        eventually("the journal", || is_written(lab));
        lab.crash_agent();
        lab.signal("vswitchd", Signal::SIGSTOP);
        ip("link set breth0 down");
        lab.start_agent();
        eventually("all it held", || held("breth0") == before);
        lab.signal("vswitchd", Signal::SIGCONT);
        is_right(lab, &outside, &before, &link);
    });
}
