//! A process is killed before each step of a move, in either direction; the host keeps its addresses, and the next
//! process completes the move.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use nix::sys::signal::{Signal, raise};

use super::lab::{Lab, eventually, in_node, run};
use super::{
    GatewaySettings, configure, has_link, has_port, held, host, is_moved, is_right, mac_and_mtu, set_journal, settings,
    start_and_move,
};

/// Names the directory of the lab to a process that a test starts.
pub(super) const DIR: &str = "OVNKUBE_TEST_DIR";
const WAY: &str = "OVNKUBE_TEST_WAY";
const STEPS: &str = "OVNKUBE_TEST_STEPS";
/// A way: the bridge was set down before.
const DOWN: &str = "down";

/// Does it in a child process that dies by SIGKILL before step `steps`; false: it completed before.
fn dies(lab: &Lab, way: &str, steps: usize) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::a_move_is_killed_after_each_step", "--nocapture"]);
    command.env(DIR, &lab.dir).env(WAY, way).env(STEPS, steps.to_string());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let killed = output.status.signal() == Some(Signal::SIGKILL as i32);
    assert!(killed || output.status.success(), "{:?}: {said}", output.status);
    for address in ["172.18.0.2/16", "172.18.0.3/16", "fd00:172::2/64"] {
        // the kernel removes this one when the link goes down
        if way == DOWN && address.starts_with("fd00") {
            continue;
        }
        let shown = run("ip", &["addr"]);
        assert!(shown.contains(address), "after {steps} steps {address} is not in:\n{shown}");
    }
    killed
}

/// What the child process does.
fn process(way: &str) {
    ovnkube_node::before_each_step(|done| {
        if done >= std::env::var(STEPS).unwrap().parse().unwrap() {
            raise(Signal::SIGKILL).unwrap();
        }
    });
    let mut lab = Lab::of(std::env::var(DIR).unwrap().into());
    lab.gateway = Some(settings());
    if way == "away" {
        assert_eq!(lab.clean_up(), Vec::<String>::new());
    } else {
        lab.start_agent_alone();
        eventually("the move", || match way {
            "back" => !has_link("breth0"),
            DOWN => held("breth0").contains("default via fd00:172::1"),
            _ => is_moved(&lab),
        });
    }
    // the directory belongs to the test that started this process
    std::process::exit(0);
}

fn clean_up(lab: &Lab, before: &str) {
    assert_eq!(lab.clean_up(), Vec::<String>::new());
    assert_eq!((held("eth0").as_str(), has_link("breth0")), (before, false));
}

#[test]
fn a_move_is_killed_after_each_step() {
    if let Ok(way) = std::env::var(WAY) {
        return process(&way);
    }
    in_node(|lab| {
        let outside = host(lab);
        let (before, link) = (held("eth0"), mac_and_mtu("eth0"));
        let mut steps = 0;
        while dies(lab, "forth", steps) {
            // the next process does not even know which interface was given
            lab.gateway = Some(GatewaySettings { interface: None, ..settings() });
            start_and_move(lab);
            is_right(lab, &outside, &before, &link);
            lab.crash_agent();
            clean_up(lab, &before);
            steps += 1;
        }
        assert!(steps >= 13, "{steps} steps");
    });
}

/// `-cleanup-node` finds a move that was interrupted at any step.
#[test]
fn a_move_that_was_killed_is_cleaned_up() {
    in_node(|lab| {
        host(lab);
        let before = held("eth0");
        let rows = |lab: &Lab| ["Bridge", "Port", "Interface"].map(|table| lab.vsctl(&format!("list {table}")));
        let number = |lab: &Lab, of: &str| lab.vsctl(&format!("get Open_vSwitch . {of}")).parse::<u64>().unwrap();
        let (had, mut steps) = (rows(lab), 0);
        while dies(lab, "forth", steps) {
            let asked = number(lab, "next_cfg") + u64::from(lab.vsctl("list-br").contains("breth0"));
            clean_up(lab, &before);
            assert_eq!(rows(lab), had);
            // it waited for the switch, which would otherwise make a bridge of rows that it read before
            assert_eq!((number(lab, "next_cfg"), number(lab, "cur_cfg")), (asked, asked));
            steps += 1;
        }
    });
}

/// `-cleanup-node` is killed, and run again.
#[test]
fn a_move_back_is_killed_after_each_step() {
    in_node(|lab| {
        let outside = host(lab);
        let before = held("eth0");
        // another program's bridge, with the name that ours would have
        lab.vsctl("add-br brother -- set Bridge brother datapath_type=netdev external_ids:bridge-uplink=other");
        let mut steps = 0;
        loop {
            lab.gateway = Some(settings());
            start_and_move(lab);
            lab.crash_agent();
            if !dies(lab, "away", steps) {
                break;
            }
            clean_up(lab, &before);
            eventually("an answer without the bridge", || outside.pings("172.18.0.2"));
            steps += 1;
        }
        assert!(steps >= 10, "{steps} steps");
        assert_eq!((held("eth0"), lab.vsctl("list-br")), (before, "brother".to_owned()));
    });
}

/// The next process completes the undo of a move.
#[test]
fn a_move_that_is_undone_is_killed_after_each_step() {
    in_node(|lab| {
        let outside = host(lab);
        let before = held("eth0");
        let mut steps = 0;
        loop {
            lab.gateway = Some(settings());
            start_and_move(lab);
            lab.crash_agent();
            set_journal(lab, |journal| journal["undone"] = "it was lost".into());
            let killed = dies(lab, "back", steps);
            if killed {
                lab.start_agent();
                eventually("the end of it", || lab.waits_for().contains("it was lost, so all was moved back"));
                lab.crash_agent();
            }
            assert_eq!((held("eth0"), lab.vsctl("list-br")), (before.clone(), "br-int".to_owned()));
            eventually("an answer without the bridge", || outside.pings("172.18.0.2"));
            if !killed {
                break;
            }
            // the steps are those of any move back
            steps += 3;
        }
        assert!(steps >= 10, "{steps} steps");
    });
}

/// The power fails: links, addresses and routes are lost, the switch's database is not. The host's own setup adds
/// addresses to the NIC again, and the agent moves it again.
#[test]
fn a_power_cut_after_each_step_of_a_move() {
    in_node(|lab| {
        let outside = host(lab);
        let (before, link) = (held("eth0"), mac_and_mtu("eth0"));
        let mut steps = 0;
        while dies(lab, "forth", steps) {
            super::cut_power(lab);
            configure();
            lab.start_vswitchd();
            lab.gateway = Some(settings());
            start_and_move(lab);
            is_right(lab, &outside, &before, &link);
            lab.crash_agent();
            clean_up(lab, &before);
            steps += 1;
        }
    });
}

/// A bridge that someone set down has lost its routes, and another program took the NIC out of it; everything is
/// restored however often the process dies meanwhile.
#[test]
fn a_bridge_that_was_set_down_is_killed_after_each_step() {
    in_node(|lab| {
        let outside = host(lab);
        let (before, link) = (held("eth0"), mac_and_mtu("eth0"));
        lab.gateway = Some(settings());
        for (disturbance, at_least, stride) in [("link", 7, 1), ("port", 10, 3)] {
            let mut steps = 0;
            loop {
                start_and_move(lab);
                eventually("all it held", || held("breth0") == before && has_port(lab));
                lab.crash_agent();
                if disturbance == "port" {
                    lab.vsctl("del-port eth0");
                }
                run("ip", &["link", "set", "breth0", "down"]);
                if !dies(lab, DOWN, steps) {
                    break;
                }
                steps += stride;
            }
            assert!(steps >= at_least, "{disturbance}: {steps} steps");
        }
        start_and_move(lab);
        eventually("all it held", || held("breth0") == before);
        is_right(lab, &outside, &before, &link);
    });
}
