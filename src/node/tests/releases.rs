//! The node's ovn-controller and northd are of different releases of OVN.
#![allow(clippy::unwrap_used)]

mod lab;

use lab::{Lab, Release, eventually, in_node_of};
use ovnkube_model::OvnRelease;
use ovnkube_node::Change;

fn waits(lab: &Lab) -> String {
    lab.vsctl("--if-exists get Open_vSwitch . external_ids:ovn-match-northd-version").replace('"', "")
}

fn release(lab: &Lab) -> OvnRelease {
    let text = lab.tool("ovn-controller", &["--version"]);
    OvnRelease::parse(text.split_whitespace().nth(1).unwrap()).unwrap()
}

fn becomes(lab: &Lab, is: &str, is_warned: bool) {
    eventually(&format!("it is {is}"), || waits(lab) == is);
    eventually("the warning", || lab.has_warning("OlderThanNorthd") == is_warned);
}

#[test]
fn a_node_waits_for_a_northd_that_is_newer_or_its_own() {
    in_node_of(Release::Host, |lab| {
        lab.start_all();
        eventually("quiet", || lab.waits_for().is_empty());
        assert_eq!(waits(lab), "");
        let (own, older, newer) = (release(lab), OvnRelease::new(21, 3, 0), OvnRelease::new(26, 9, 0));
        for (northd, is, is_warned) in [(own, "true", false), (older, "false", false), (newer, "true", true)] {
            lab.send(Change::Northd(northd));
            becomes(lab, is, is_warned);
        }
        // what was known stands while ovn-controller does not run
        lab.kill("controller");
        lab.send(Change::Northd(older));
        becomes(lab, "false", false);
        lab.send(Change::Northd(own));
        becomes(lab, "true", false);
        // the agent asks the next one, which is newer
        lab.release = Release::Lts;
        lab.start_controller();
        becomes(lab, "false", false);
        lab.send(Change::Northd(release(lab)));
        becomes(lab, "true", false);
        lab.stop_agent();
        lab.kill("controller");
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        assert_eq!(waits(lab), "");
    });
}
