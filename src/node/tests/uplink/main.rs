//! A NIC is moved into a bridge of its own and out of it again: the host's addresses and routes after every outcome.
#![allow(clippy::unwrap_used)]

mod boot;
mod failing;
mod killed;
#[path = "../lab/mod.rs"]
mod lab;
mod routers;

use lab::{Lab, Pod, eventually, in_node, run};
use ovnkube_model::GatewayMode;
use ovnkube_node::GatewaySettings;

fn settings() -> GatewaySettings {
    lab::gateway::settings("eth0", GatewayMode::Shared)
}

/// A host as DHCP and its administrator set it up.
fn configure() {
    for args in [
        "addr replace 172.18.0.2/16 brd 172.18.255.255 dev eth0 valid_lft 3600 preferred_lft 1800",
        "addr replace 172.18.0.3/16 dev eth0",
        "addr replace fd00:172::2/64 dev eth0 nodad",
        "route replace default via 172.18.255.1 dev eth0 proto dhcp src 172.18.0.2 metric 100",
        "route replace 10.9.0.0/16 via 172.18.0.9 dev eth0 table 77 mtu 1300",
        "-6 route replace default via fd00:172::1 dev eth0 metric 512",
    ] {
        run("ip", &args.split(' ').collect::<Vec<_>>());
    }
}

fn host(lab: &mut Lab) -> Pod {
    for args in ["addr flush dev eth0", "link set eth0 mtu 1450", "rule add from 172.18.0.3 lookup 77"] {
        run("ip", &args.split(' ').collect::<Vec<_>>());
    }
    configure();
    let outside = lab.outside();
    // the agent waits for a next hop that does not answer
    outside.ip_cmd("addr add fd00:172::1/64 dev wire nodad");
    lab.start_switch();
    outside
}

/// Addresses and routes of a link, without its name and the seconds of lifetimes.
fn held(link: &str) -> String {
    let show = |args: &str| run("ip", &args.split(' ').collect::<Vec<_>>());
    let addresses = show(&format!("-o addr show dev {link}"));
    let addresses = addresses.lines().filter(|line| !line.contains("fe80:") && !line.contains("169.254.169."));
    let addresses = addresses.map(|line| {
        let (what, life) = line.split_once("valid_lft").unwrap();
        let what = what.split_once(link).unwrap().1.replace(&format!(" {link}"), "").replace('\\', "");
        format!("{} {}", what.trim(), if life.contains("forever") { "for ever" } else { "for a while" })
    });
    let routes = show("route show table all") + &show("-6 route show table all");
    let routes = routes.lines().filter(|line| line.contains(&format!("dev {link} ")) && !line.contains("table local"));
    let routes = routes.filter(|line| !line.contains("fe80:") && !line.starts_with("multicast"));
    let routes = routes.filter(|line| !line.contains("169.254.169."));
    let mut all: Vec<String> =
        addresses.chain(routes.map(|line| line.replace(&format!("dev {link} "), "").trim().to_owned())).collect();
    all.sort();
    all.dedup();
    all.join("\n")
}

fn mac_and_mtu(link: &str) -> (String, String) {
    let shown = run("ip", &["-o", "link", "show", "dev", link]);
    let value = |after: &str| shown.split_once(after).unwrap().1.split(' ').next().unwrap().to_owned();
    (value("link/ether "), value("mtu "))
}

fn has_link(link: &str) -> bool {
    run("ip", &["-o", "link"]).contains(&format!(": {link}: "))
        || run("ip", &["-o", "link"]).contains(&format!(": {link}@"))
}

fn journal(lab: &Lab) -> String {
    let found = lab.vsctl("--columns=external_ids find Bridge name=breth0");
    found.replace('\\', "")
}

/// Whether the journal describes the present link, and is complete.
fn is_written(lab: &Lab) -> bool {
    let (journal, index) = (journal(lab), nix::net::if_::if_nametoindex("breth0"));
    index.is_ok_and(|index| journal.contains(&format!(r#""link":{index},"#))) && !journal.contains(r#""down":true"#)
}

/// Changes the journal in the bridge's row, as another program could.
fn set_journal(lab: &Lab, change: impl Fn(&mut serde_json::Value)) {
    let shown = lab.vsctl("get Bridge breth0 external_ids:ovnkube-uplink");
    let text: String = serde_json::from_str(&shown).unwrap();
    let mut journal = serde_json::from_str(&text).unwrap();
    change(&mut journal);
    let text = serde_json::to_string(&journal.to_string()).unwrap();
    lab.vsctl_args(&["--no-wait", "set", "Bridge", "breth0", &format!("external_ids:ovnkube-uplink={text}")]);
}

/// The kernel's state is lost; the switch's database is not.
fn cut_power(lab: &mut Lab) {
    lab.kill("vswitchd");
    lab.kill("db");
    if lab::datapath() == "system" {
        run("ovs-dpctl", &["del-dp", "ovs-system"]);
    }
    for args in ["link del breth0", "addr flush dev eth0", "route flush table 77"] {
        // some of it may already be removed with the rest
        let _ = std::process::Command::new("ip").args(args.split(' ')).output();
    }
    lab.start_database_server("db");
}

fn has_port(lab: &Lab) -> bool {
    lab.vsctl("--bare --columns=name find Port name=eth0") == "eth0"
}

/// The move is completed and the probation is over.
fn is_moved(lab: &Lab) -> bool {
    let journal = journal(lab);
    journal.contains("ovnkube-uplink") && !journal.contains("trial") && held("eth0").is_empty()
}

fn start_and_move(lab: &mut Lab) {
    lab.start_agent();
    eventually("the move", || is_moved(lab));
}

/// The bridge has everything that the NIC had.
fn is_right(lab: &Lab, outside: &Pod, before: &str, link: &(String, String)) {
    assert_eq!(held("breth0"), before);
    assert_eq!(held("eth0"), "");
    eventually("the bridge's MTU", || mac_and_mtu("breth0") == *link);
    assert_eq!(lab.vsctl("list-ports breth0"), "eth0");
    Lab::seal();
    eventually("an answer over the bridge", || outside.pings("172.18.0.2"));
    Lab::unseal();
}

#[test]
fn a_nic_is_moved_into_a_bridge() {
    in_node(|lab| {
        let outside = host(lab);
        lab.gateway = Some(settings());
        let (before, link) = (held("eth0"), mac_and_mtu("eth0"));
        assert_eq!(before.lines().count(), 8, "{before}");
        start_and_move(lab);
        is_right(lab, &outside, &before, &link);
        let shown = run("ip", &["addr", "show", "dev", "breth0"]);
        let valid = shown.split_once("valid_lft ").unwrap().1.split_once("sec").unwrap().0.parse::<u32>().unwrap();
        assert!((3000..=3600).contains(&valid), "{shown}");
        lab.hears_of_its_node();
        eventually("the annotation", || {
            lab.annotations().get("k8s.ovn.org/l3-gateway-config").is_some_and(|text| {
                text.contains(r#""bridge-id":"breth0","interface-id":"breth0_node-1""#)
                    && text.contains(&format!(r#""mac-address":"{}""#, link.0))
            })
        });
        assert_eq!(lab.vsctl("get Open_vSwitch . external_ids:ovn-bridge-mappings"), r#""physnet:breth0""#);
        let rows = |lab: &Lab| lab.vsctl("list Bridge") + &lab.vsctl("list Port") + &lab.vsctl("list Open_vSwitch");
        let number = |lab: &Lab, of: &str| lab.vsctl(&format!("get Open_vSwitch . {of}"));
        eventually("a switch that has followed", || number(lab, "cur_cfg") == number(lab, "next_cfg"));
        let had = rows(lab);

        // a second start does nothing
        lab.crash_agent();
        lab.start_agent();
        lab.hears_of_its_node();
        eventually("the second start", || lab.annotations().contains_key("k8s.ovn.org/l3-gateway-config"));
        assert_eq!(rows(lab), had);
        // nor does one that looks for the default route
        lab.crash_agent();
        lab.gateway = Some(GatewaySettings { interface: None, ..settings() });
        lab.start_agent();
        lab.hears_of_its_node();
        eventually("the third start", || lab.annotations().contains_key("k8s.ovn.org/l3-gateway-config"));
        assert_eq!(rows(lab), had);

        // a DHCP client renews its lease on the bridge
        run(
            "ip",
            &["addr", "add", "172.18.0.2/16", "brd", "+", "dev", "eth0", "valid_lft", "9000", "preferred_lft", "8000"],
        );
        eventually("the renewed lease", || {
            held("eth0").is_empty() && run("ip", &["addr", "show", "dev", "breth0"]).contains("valid_lft 8")
        });
        assert_eq!(held("breth0"), before);
        // and gets another address one day: the old one is not restored
        run("ip", &["addr", "add", "172.18.0.4/16", "dev", "eth0"]);
        run("ip", &["addr", "del", "172.18.0.3/16", "dev", "breth0"]);
        eventually("the new address", || held("breth0").contains("172.18.0.4/16") && held("eth0").is_empty());
        eventually("the journal", || journal(lab).contains("172.18.0.4/16") && !journal(lab).contains("172.18.0.3/16"));
        assert!(!held("breth0").contains("172.18.0.3/16"));
    });
}

#[test]
fn a_switch_that_loses_its_bridge_gets_it_back() {
    in_node(|lab| {
        let outside = host(lab);
        lab.gateway = Some(settings());
        let (before, link) = (held("eth0"), mac_and_mtu("eth0"));
        start_and_move(lab);
        forget(lab);
        eventually("all it held", || has_link("breth0") && held("breth0") == before);
        is_right(lab, &outside, &before, &link);
        // while no agent runs
        lab.crash_agent();
        forget(lab);
        eventually("an empty bridge", || has_link("breth0") && held("breth0").is_empty());
        lab.start_agent();
        eventually("all it held", || held("breth0") == before);
        is_right(lab, &outside, &before, &link);
        // a link that is set down loses its routes and IPv6 addresses
        run("ip", &["link", "set", "breth0", "down"]);
        eventually("all it held", || held("breth0") == before && is_written(lab));
        is_right(lab, &outside, &before, &link);
        run("ip", &["addr", "add", "10.77.0.1/24", "dev", "breth0"]);
        run("ip", &["route", "add", "10.78.0.0/16", "via", "10.77.0.9"]);
        eventually("the journal", || journal(lab).contains("10.78.0.0/16"));
        lab.crash_agent();
        run("ip", &["link", "set", "breth0", "down"]);
        assert_ne!(held("breth0"), before);
        // someone removed an address that the kernel keeps, and with it the routes through it
        run("ip", &["addr", "del", "172.18.0.3/16", "dev", "breth0"]);
        run("ip", &["addr", "del", "10.77.0.1/24", "dev", "breth0"]);
        let before = before.lines().filter(|line| !line.contains("172.18.0.3/16")).collect::<Vec<_>>().join("\n");
        lab.start_agent();
        eventually("the rest", || held("breth0") == before);
        is_right(lab, &outside, &before, &link);
        // Open vSwitch was started with --delete-transient-ports
        lab.vsctl("del-port eth0");
        eventually("the port", || has_port(lab));
        is_right(lab, &outside, &before, &link);
    });
}

/// The switch restarts, and the kernel's module with it.
fn forget(lab: &mut Lab) {
    lab.kill("vswitchd");
    run("ip", &["link", "del", "breth0"]);
    lab.start_vswitchd();
}

/// A bridge that forwards nothing is not kept.
#[test]
fn a_move_that_loses_the_next_hop_is_undone() {
    in_node(|lab| {
        let outside = host(lab);
        lab.gateway = Some(GatewaySettings { api_server: Some("172.18.255.1:6443".into()), ..settings() });
        let server = outside.enter(|| std::net::TcpListener::bind("172.18.255.1:6443").unwrap()).join().unwrap();
        let before = held("eth0");
        run("nft", &["table inet cut { chain out { type filter hook output priority 0; oifname breth0 drop; }; }"]);
        run("nft", &["table arp cut { chain out { type filter hook output priority 0; oifname breth0 drop; }; }"]);
        lab.start_agent();
        eventually("the move", || has_port(lab) && held("breth0") == before);
        let undone = "API server 172.18.255.1:6443";
        eventually("the end of it", || lab.waits_for().contains(undone));
        assert!(!has_link("breth0"));
        assert_eq!((held("eth0"), lab.vsctl("list-br")), (before.clone(), "br-int".to_owned()));
        eventually("an answer", || outside.pings("172.18.0.2"));
        run("nft", &["delete table inet cut; delete table arp cut"]);
        // the NIC is not moved again until the agent restarts
        std::thread::sleep(std::time::Duration::from_secs(2));
        assert_eq!(lab.vsctl("list-br"), "br-int");
        lab.crash_agent();
        start_and_move(lab);
        assert_eq!(held("breth0"), before);
        drop(server);
    });
}

/// A program on the host reacts to the move and removes the default route, a while later.
#[test]
fn a_default_route_that_is_lost_after_the_move_comes_back() {
    in_node(|lab| {
        let outside = host(lab);
        lab.gateway = Some(GatewaySettings { probation: std::time::Duration::from_secs(600), ..settings() });
        let before = held("eth0");
        lab.start_agent();
        eventually("the move", || held("eth0").is_empty() && held("breth0") == before);
        eventually("the probation", || {
            let journal = journal(lab);
            journal.contains("trial") && journal.contains("the default route for IPv4")
        });
        lab.hears_of_its_node();
        eventually("the gateway", || lab.annotations().contains_key("k8s.ovn.org/l3-gateway-config"));
        run("ip", &["route", "del", "default", "dev", "breth0"]);
        let undone = "the default route for IPv4 was lost for 20 s";
        eventually("the end of it", || lab.waits_for().contains(undone));
        assert!(!has_link("breth0"));
        assert_eq!((held("eth0"), lab.vsctl("list-br")), (before, "br-int".to_owned()));
        eventually("an answer", || outside.pings("172.18.0.2"));
    });
}

#[test]
fn a_bridge_in_probation_is_set_down() {
    in_node(|lab| {
        host(lab);
        lab.gateway = Some(GatewaySettings { probation: std::time::Duration::from_secs(600), ..settings() });
        let before = held("eth0");
        lab.start_agent();
        let is_in_probation = |lab: &Lab| held("breth0") == before && journal(lab).contains("trial") && is_written(lab);
        lab.hears_of_its_node();
        eventually("the gateway", || lab.annotations().contains_key("k8s.ovn.org/l3-gateway-config"));
        eventually("the probation", || is_in_probation(lab));
        run("ip", &["link", "set", "breth0", "down"]);
        eventually("all it held", || is_in_probation(lab));
        // it is restored once only: what is removed from now on stays removed
        run("ip", &["route", "del", "10.9.0.0/16", "table", "77"]);
        std::thread::sleep(std::time::Duration::from_secs(2));
        assert!(!held("breth0").contains("10.9.0.0/16"));
    });
}

#[test]
fn a_probation_is_passed() {
    in_node(|lab| {
        host(lab);
        lab.gateway = Some(GatewaySettings { probation: std::time::Duration::from_secs(10), ..settings() });
        lab.start_agent();
        eventually("the probation", || journal(lab).contains("trial"));
        eventually("its end", || is_moved(lab));
    });
}

/// A default route over several next hops, found and moved as one.
#[test]
fn a_default_route_with_several_next_hops() {
    in_node(|lab| {
        let outside = lab.outside();
        outside.ip_cmd("addr add 172.18.255.2/16 dev wire");
        for args in [
            "addr add fd00:172::2/64 dev eth0 nodad",
            "route add default nexthop via 172.18.255.1 dev eth0 weight 2 nexthop via 172.18.255.2 dev eth0",
            "-6 route add default nexthop via fd00:172::1 dev eth0 nexthop via fd00:172::9 dev eth0",
        ] {
            run("ip", &args.split(' ').collect::<Vec<_>>());
        }
        lab.start_switch();
        let before = held("eth0");
        assert_eq!(before.matches("nexthop via").count(), 4, "{before}");
        lab.gateway = Some(GatewaySettings { interface: None, ..settings() });
        start_and_move(lab);
        assert_eq!(held("breth0"), before);
        eventually("an answer over the bridge", || outside.pings("172.18.0.2"));
        lab.hears_of_its_node();
        eventually("the annotation", || {
            let annotations = lab.annotations();
            annotations.get("k8s.ovn.org/l3-gateway-config").is_some_and(|text| text.contains("172.18.255."))
        });
        lab.crash_agent();
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        assert_eq!(held("eth0"), before);
    });
}

/// A link with members, such as a bond, or a VLAN of one, goes into the bridge; its members stay. Not every kernel has
/// bonds and VLANs; all have bridges.
#[test]
fn a_link_with_members_is_moved_into_a_bridge() {
    in_node(|lab| {
        let outside = lab.outside();
        for args in [
            "addr flush dev eth0",
            "link add bond0.100 type bridge",
            "link set eth0 master bond0.100",
            "addr add 172.18.0.2/16 dev bond0.100",
            "link set bond0.100 up",
            "route add default via 172.18.255.1",
        ] {
            run("ip", &args.split(' ').collect::<Vec<_>>());
        }
        lab.start_switch();
        let before = held("bond0.100");
        // the interface of the default route
        lab.gateway = Some(GatewaySettings { interface: None, ..settings() });
        lab.start_agent();
        eventually("the move", || has_link("brbond0.100") && held("brbond0.100") == before);
        assert_eq!((held("bond0.100"), lab.vsctl("list-ports brbond0.100")), (String::new(), "bond0.100".to_owned()));
        assert!(run("ip", &["link", "show", "master", "bond0.100"]).contains("eth0"));
        eventually("an answer over the bridge", || outside.pings("172.18.0.2"));
        lab.crash_agent();
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        assert_eq!(held("bond0.100"), before);
        eventually("an answer without it", || outside.pings("172.18.0.2"));
    });
}

#[test]
fn an_unsuitable_interface_is_refused() {
    in_node(|lab| {
        host(lab);
        let before = held("eth0");
        let refuses = |lab: &mut Lab, change: &dyn Fn(&mut GatewaySettings), want: &str| {
            let mut settings = settings();
            change(&mut settings);
            lab.gateway = Some(settings);
            let said = lab.refusal();
            assert!(said.contains(want) && !said.contains('\n'), "{said}\nis not: {want}");
        };
        let waits = |lab: &mut Lab, interface: &str, want: &str| {
            lab.gateway = Some(GatewaySettings { interface: Some(interface.into()), ..settings() });
            lab.start_agent();
            eventually(want, || lab.waits_for().contains(want));
            lab.crash_agent();
        };
        let overlap =
            "cannot start the gateway: network 172.18.0.2/16 of link eth0 overlaps service range 172.16.0.0/12";
        refuses(lab, &|s| s.service_cidrs = vec!["172.16.0.0/12".parse().unwrap()], overlap);
        let overlap = "cannot start the gateway: network 172.18.0.2/16 of link eth0 overlaps join subnet 172.18.4.0/24";
        refuses(lab, &|s| s.join_subnets = vec!["172.18.4.0/24".parse().unwrap()], overlap);
        let outside = "next hop 10.1.1.1 is outside its network 172.18.0.2/16; correct --gateway-nexthop";
        refuses(lab, &|s| s.next_hops = vec!["10.1.1.1".parse().unwrap()], outside);
        waits(lab, "eth9", "cannot use eth9 as gateway interface: there is no such link and no such bridge");
        lab.vsctl("add-br br-9 -- set Bridge br-9 datapath_type=netdev -- add-port br-9 eth0");
        refuses(
            lab,
            &|_| {},
            "cannot use eth0 as gateway interface: it is a port of bridge br-9; give --gateway-interface=br-9",
        );
        lab.vsctl("del-br br-9");
        run("ip", &["link", "add", "br-linux", "type", "bridge"]);
        waits(lab, "br-linux", "cannot use br-linux as gateway interface: it has no IPv4 address");
        run("ip", &["link", "add", "m0", "type", "veth", "peer", "name", "a-name-too-long"]);
        run("ip", &["link", "set", "m0", "master", "br-linux"]);
        refuses(lab, &|s| s.interface = Some("m0".into()), "it is a member of br-linux");
        refuses(lab, &|s| s.interface = Some("a-name-too-long".into()), "would have too long a name for a link");
        run("ip", &["link", "add", "breth0", "type", "veth", "peer", "name", "other"]);
        refuses(lab, &|_| {}, "its bridge would be breth0, and there is another link of that name");
        run("ip", &["link", "del", "breth0"]);
        // nothing was changed
        assert_eq!((held("eth0"), lab.vsctl("list-br")), (before, String::new()));
    });
}
