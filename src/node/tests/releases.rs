//! The node's ovn-controller and northd are of different releases of OVN.
#![allow(clippy::unwrap_used)]

mod lab;

use lab::{Lab, eventually, in_node};
use ovnkube_model::OvnRelease;
use ovnkube_node::Change;

fn waits(lab: &Lab) -> String {
    lab.vsctl("--if-exists get Open_vSwitch . external_ids:ovn-match-northd-version").replace('"', "")
}

#[test]
fn a_node_waits_for_a_northd_that_is_newer_or_its_own() {
    in_node(|lab| {
        lab.start_all();
        let text = lab.tool("ovn-controller", &["--version"]);
        let own = OvnRelease::parse(text.split_whitespace().nth(1).unwrap()).unwrap();
        let (older, newer) = (OvnRelease::new(21, 3, 0), OvnRelease::new(99, 3, 0));
        eventually("quiet", || lab.waits_for().is_empty());
        assert_eq!(waits(lab), "");
        let set = |lab: &mut Lab, northd: Option<OvnRelease>, is: &str, is_warned: bool| {
            lab.send(Change::Northd(northd));
            eventually(&format!("{is} with {northd:?}"), || waits(lab) == is);
            eventually("the warning", || lab.has_warning("OlderThanNorthd") == is_warned);
        };
        set(lab, Some(own), "true", false);
        set(lab, Some(older), "false", false);
        set(lab, Some(newer), "true", true);
        // what is not known changes nothing
        set(lab, None, "true", false);
        // the same while ovn-controller does not run, and for the next one
        set(lab, Some(older), "false", false);
        lab.kill("controller");
        set(lab, Some(newer), "true", true);
        lab.start_controller();
        set(lab, Some(older), "false", false);
        lab.stop_agent();
        lab.kill("controller");
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        assert_eq!(waits(lab), "");
    });
}
