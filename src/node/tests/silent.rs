//! Daemons of the node stop answering, and nothing else changes.
#![allow(clippy::unwrap_used)]

mod lab;

use std::time::Duration;

use lab::{Lab, container, error, eventually, in_node, result, run};
use nix::sys::signal::Signal;
use ovnkube_node::Change;

#[test]
fn a_switch_that_hangs_is_noticed_without_a_change() {
    in_node(|lab| {
        lab.start_all();
        eventually("quiet", || lab.waits_for().is_empty());
        lab.signal("vswitchd", Signal::SIGSTOP);
        eventually("the report", || lab.waits_for().contains("ovs-vswitchd does not answer the agent"));
        lab.signal("vswitchd", Signal::SIGCONT);
        eventually("it is ready again", || lab.waits_for().is_empty());
    });
}

/// OVN sets the mark. What another program wants to restore it ends itself.
#[test]
fn a_wait_that_ovn_left_for_the_next_switch_is_ended() {
    in_node(|lab| {
        lab.start_ovs();
        lab.end_waits();
        let waits = |lab: &Lab| lab.vsctl("get Open_vSwitch . other_config").contains("flow-restore-wait");
        let is_marked = |lab: &Lab| lab.vsctl("get Open_vSwitch . external_ids").contains("ovn-managed");
        std::thread::sleep(Duration::from_secs(2));
        let wait = "set Open_vSwitch . other_config:flow-restore-wait=true";
        lab.vsctl(&format!("{wait} external_ids:ovn-managed-flow-restore-wait=true"));
        std::thread::sleep(Duration::from_secs(2));
        assert!(waits(lab), "it is for the next switch");
        lab.kill("vswitchd");
        lab.start_vswitchd();
        eventually("the end of the wait", || !waits(lab) && !is_marked(lab));
        lab.kill("vswitchd");
        lab.vsctl(&format!("--no-wait {wait}"));
        lab.start_vswitchd();
        std::thread::sleep(Duration::from_secs(3));
        assert!(waits(lab), "another program ends it");
    });
}

#[test]
fn a_database_that_hangs_stops_no_other_work() {
    in_node(|lab| {
        lab.start_all();
        let pod = lab.pod("web", 3);
        lab.annotate(&pod);
        result(&lab.shim(&pod, &container("s1"), "ADD"));
        run("ip", &["addr", "add", "172.18.0.3/16", "dev", "eth0"]);
        eventually("quiet", || lab.waits_for().is_empty());
        lab.signal("db", Signal::SIGSTOP);
        lab.internal_ips = vec!["172.18.0.3"];
        lab.send(Change::Node(lab.node()));
        eventually("the reason", || {
            lab.waits_for().contains("cannot set the node's Open_vSwitch rows: the Open_vSwitch")
        });
        let (code, text) = error(&lab.shim(&pod, &container("s1"), "DEL"));
        assert!(code == 11 && text.contains("the Open_vSwitch database did not answer within 10 s"), "{code} {text}");
        lab.signal("db", Signal::SIGCONT);
        eventually("the address", || lab.vsctl("get Open_vSwitch . external_ids:ovn-encap-ip").contains("172.18.0.3"));
        result(&lab.shim(&pod, &container("s1"), "DEL"));
        eventually("it is ready again", || lab.waits_for().is_empty());
    });
}
