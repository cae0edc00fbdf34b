//! The pods' MTU: taken from the uplink or from the settings, followed while the agent runs, reported if too large.
#![allow(clippy::unwrap_used)]

mod lab;

use lab::{Lab, container, eventually, in_node, result, run};
use ovnkube_node::MtuSettings;

fn start(lab: &mut Lab, mtu: MtuSettings) {
    lab.mtu = mtu;
    lab.start_all();
}

fn uplink_carries(bytes: u32) {
    run("ip", &["link", "set", "wire", "mtu", &bytes.to_string()]);
    run("ip", &["link", "set", "eth0", "mtu", &bytes.to_string()]);
}

fn has_mtu(link: &str, mtu: u32) -> bool {
    run("ip", &["link", "show", link]).contains(&format!(" mtu {mtu} "))
}

/// The next warning, `REASON: message`.
fn warning(lab: &mut Lab) -> String {
    let mut warnings = Vec::new();
    eventually("a warning", || {
        warnings.extend(lab.warnings());
        !warnings.is_empty()
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    format!("{}: {}", warnings[0].reason, warnings[0].message)
}

#[test]
fn the_mtu_follows_the_uplink() {
    in_node(|lab| {
        start(lab, MtuSettings::default());
        assert!(has_mtu("ovn-k8s-mp0", 1442));
        assert_eq!(lab.annotations()["k8s.ovn.org/node-mtu"], "1442");
        let pod = lab.pod("web", 3);
        lab.annotate(&pod);
        result(&lab.shim(&pod, &container("0123456789abcdef"), "ADD"));
        assert!(pod.ip_cmd("link show eth0").contains(" mtu 1442 "));
        assert!(has_mtu("0123456789abcde", 1442));
        assert_eq!(lab.warnings(), []);
        // the uplink's MTU grows: new pods get more, and the running one is reported
        uplink_carries(9000);
        eventually("the management port to follow", || has_mtu("ovn-k8s-mp0", 8942));
        eventually("the annotation", || lab.annotations()["k8s.ovn.org/node-mtu"] == "8942");
        let second = lab.pod("db", 4);
        lab.annotate(&second);
        result(&lab.shim(&second, &container("1123456789abcdef"), "ADD"));
        assert!(second.ip_cmd("link show eth0").contains(" mtu 8942 "));
        assert_eq!(
            warning(lab),
            "PodsWithOtherMtu: 1 pods of this node have an MTU other than 8942, such as default/web with 1442: packets that \
             are too large for the receiver are lost; restart these pods"
        );
        // its address is missing for a moment, as while ovs-vswitchd restarts: nothing changes
        run("ip", &["addr", "del", "172.18.0.2/16", "dev", "eth0"]);
        eventually("the agent to see it", || lab.annotations()["k8s.ovn.org/host-cidrs"] == "[]");
        assert!(has_mtu("ovn-k8s-mp0", 8942));
        assert_eq!(lab.annotations()["k8s.ovn.org/node-mtu"], "8942");
        // nor if the agent starts meanwhile: until it knows its node it reports nothing, then the same as before
        lab.crash_agent();
        lab.annotated_mtu = Some(8942);
        lab.start_agent();
        eventually("the agent to look", || lab.waits_for().contains("the node has no subnet yet"));
        assert!(lab.all_annotations().is_empty(), "{:?}", lab.all_annotations());
        lab.ready();
        eventually("the annotation", || lab.annotations().contains_key("k8s.ovn.org/node-mtu"));
        assert_eq!(lab.annotations()["k8s.ovn.org/node-mtu"], "8942");
        assert!(has_mtu("ovn-k8s-mp0", 8942));
    });
}

#[test]
fn an_mtu_too_large_for_the_uplink_is_reported() {
    in_node(|lab| {
        start(lab, MtuSettings { given: Some(1443), ..MtuSettings::default() });
        assert!(has_mtu("ovn-k8s-mp0", 1443));
        assert!(!lab.annotations().contains_key("k8s.ovn.org/node-mtu"));
        let want = "MtuTooLarge: pods' MTU 1443 and 58 bytes of tunnel headers need 1501, but eth0 carries 1500: large \
                    packets between nodes are lost; raise the MTU of eth0, or set mtu to at most 1442 and restart the pods";
        assert_eq!(warning(lab), want);
        // reported again when it comes back, not before
        uplink_carries(1501);
        run("ip", &["addr", "add", "172.19.0.2/32", "dev", "eth0"]);
        eventually("the agent to look", || lab.annotations()["k8s.ovn.org/host-cidrs"].contains("172.19.0.2"));
        assert_eq!(lab.warnings(), []);
        uplink_carries(1500);
        assert_eq!(warning(lab), want);
    });
}

#[test]
fn one_node_has_no_tunnels() {
    in_node(|lab| {
        start(lab, MtuSettings { given: Some(1500), single_node: true, ..MtuSettings::default() });
        assert!(has_mtu("ovn-k8s-mp0", 1500));
        assert_eq!(lab.warnings(), []);
    });
}

#[test]
fn routes_can_use_less() {
    in_node(|lab| {
        start(lab, MtuSettings { given: Some(1400), routable: Some(1300), single_node: false });
        assert!(has_mtu("ovn-k8s-mp0", 1400));
        let routes = run("ip", &["route"]);
        assert!(routes.contains("10.128.0.0/14 via 10.128.0.1 dev ovn-k8s-mp0 proto static mtu 1300"), "{routes}");
        let pod = lab.pod("web", 3);
        lab.annotate(&pod);
        let id = container("0123456789abcdef");
        result(&lab.shim(&pod, &id, "ADD"));
        assert!(pod.ip_cmd("link show eth0").contains(" mtu 1400 "));
        let routes = pod.ip_cmd("route");
        assert_eq!(routes.matches("mtu 1300").count(), 3, "{routes}");
        // a change of the setting does not change pods
        lab.stop_agent();
        lab.mtu.routable = None;
        lab.start_agent();
        lab.ready();
        lab.annotate(&pod);
        result(&lab.shim(&pod, &id, "CHECK"));
        eventually("the management port's route", || !run("ip", &["route"]).contains("mtu"));
    });
}
