//! Moves that can't be brought to their end.

use nix::sys::signal::Signal;

use super::lab::{eventually, in_node, run};
use super::{
    forget, has_link, has_port, held, host, is_right, is_written, mac_and_mtu, set_journal, settings, start_and_move,
};

fn ip(args: &str) {
    run("ip", &args.split(' ').collect::<Vec<_>>());
}

/// A route that the kernel takes on no link any more: the others are turned all the same, and in the end all is undone.
#[test]
fn a_route_that_can_not_be_turned() {
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

/// The same long after the trial: the node does without it.
#[test]
fn a_route_that_can_not_be_turned_later() {
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
        eventually("the gateway", || lab.annotations().contains_key("k8s.ovn.org/l3-gateway-config"));
        assert!(held("eth0").contains("10.50.0.0/16"));
        ip("addr add 172.18.0.4/16 dev eth0");
        let address = "172.18.0.4/16";
        eventually("another address", || held("breth0").contains(address) && !held("eth0").contains(address));
    });
}

/// An ovs-vswitchd that hangs, under a datapath that goes on without it: what comes in still goes to the bridge, so the
/// routes stay there until it lets the NIC go. Another master of the NIC stands for the kernel's datapath.
#[test]
fn a_switch_that_does_not_let_go() {
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
        eventually("the refusal", || lab.waits_for().contains("ovs-vswitchd did not let it go within"));
        assert!(held("breth0").contains("default via 172.18.255.1") && !held("eth0").contains("default"));
        ip("link set eth0 nomaster");
        lab.signal("vswitchd", Signal::SIGCONT);
        eventually("the end of it", || lab.waits_for().contains("it was lost, so all was moved back"));
        assert_eq!((held("eth0"), has_link("breth0"), has_port(lab)), (before, false, false));
        eventually("an answer", || outside.pings("172.18.0.2"));
    });
}

/// An ovs-vswitchd that has made the link of the bridge and has yet to set its flags, as they were when it was made: the
/// link goes down by that, and the kernel would drop what it holds by then.
#[test]
fn a_switch_that_has_hardly_made_its_bridge() {
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
        // nobody waits for it where the link is an old one
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
