//! What routers advertise has the same effect on the bridge as on the NIC, also while the host forwards.

use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6, sendto, setsockopt, socket, sockopt,
};

use super::lab::{Lab, Pod, eventually, in_node, run};
use super::{cut_power, has_port, set_journal, settings, start_and_move};

/// A router outside that advertises itself and the network `2001:db8:7::/64` for this many seconds; ends when dropped.
struct Router {
    seconds: Arc<AtomicU16>,
    stop: Arc<AtomicBool>,
}

impl Router {
    fn start(outside: &Pod) -> Self {
        let router = Self { seconds: Arc::new(AtomicU16::new(60)), stop: Arc::default() };
        let (seconds, stop) = (Arc::clone(&router.seconds), Arc::clone(&router.stop));
        outside.enter(move || {
            let socket = socket(AddressFamily::Inet6, SockType::Raw, SockFlag::empty(), SockProtocol::IcmpV6).unwrap();
            setsockopt(&socket, sockopt::Ipv6MulticastHops, &255).unwrap();
            let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
            let all = SockaddrIn6::from(SocketAddrV6::new(all, 0, 0, if_nametoindex("wire").unwrap()));
            while !stop.load(Ordering::Relaxed) {
                // its own address is tentative at first
                let _ = sendto(
                    socket.as_raw_fd(),
                    &advertisement(seconds.load(Ordering::Relaxed)),
                    &all,
                    MsgFlags::empty(),
                );
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        router
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn advertisement(seconds: u16) -> Vec<u8> {
    let [high, low] = seconds.to_be_bytes();
    let life = u32::from(seconds).to_be_bytes();
    let router = [134, 0, 0, 0, 64, 0, high, low, 0, 0, 0, 0, 0, 0, 0, 0];
    let prefix =
        [&[3, 4, 64, 0xc0][..], &life, &life, &[0; 4], &Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 0).octets()];
    [&router[..], &prefix.concat()].concat()
}

/// The longest lifetime after `key`, in seconds.
fn lasts(shown: &str, key: &str) -> u32 {
    let fields: Vec<&str> = shown.split_whitespace().collect();
    let after = fields.iter().zip(fields.iter().skip(1)).filter(|(one, _)| **one == key);
    after.filter_map(|(_, life)| life.trim_end_matches("sec").parse().ok()).max().unwrap_or(0)
}

fn route(link: &str) -> String {
    run("ip", &["-6", "route", "show", "default", "dev", link])
}

fn address(link: &str) -> String {
    run("ip", &["-6", "addr", "show", "dev", link, "to", "2001:db8:7::/64"])
}

#[test]
fn router_advertisements_apply_to_the_bridge() {
    in_node(|lab| {
        let outside = lab.outside();
        run("ip", &["route", "add", "default", "via", "172.18.255.1"]);
        let router = Router::start(&outside);
        eventually("an address and a route", || route("eth0").contains("proto ra") && !address("eth0").is_empty());
        lab.cluster_subnets = vec!["10.128.0.0/14", "fd01::/48"];
        lab.node_subnets = vec!["10.128.0.0/24", "fd01:0:0:1::/64"];
        lab.gateway = Some(settings());
        lab.start_switch();
        lab.start_ovn();
        lab.bridge = "breth0";
        lab.make_router();
        lab.start_agent();
        eventually("the port", || has_port(lab));
        // in this lab the host's own stack also gets the frames of the switch's ports
        Lab::seal();
        lab.ready();
        let forwards = |link: &str| run("sysctl", &["-n", &format!("net.ipv6.conf.{link}.forwarding")]).trim() == "1";
        eventually("the gateway", || forwards("breth0") && forwards("ovn-k8s-mp0"));
        // sent only now
        router.seconds.store(9000, Ordering::Relaxed);
        eventually("a default route that goes on", || lasts(&route("breth0"), "expires") > 8000);
        eventually("an address that goes on", || lasts(&address("breth0"), "valid_lft") > 8000);
        drop(router);
        lab.crash_agent();
        lab.kill("controller");
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        // and afterwards to the NIC
        assert!(lasts(&route("eth0"), "expires") > 5000, "{}", route("eth0"));
        assert!(lasts(&address("eth0"), "valid_lft") > 5000, "{}", address("eth0"));
    });
}

/// systemd-networkd keeps the kernel from accepting advertisements on the NIC; after a reboot nothing says so yet.
#[test]
fn advertisements_that_a_program_accepted_apply_to_the_bridge_after_a_reboot() {
    in_node(|lab| {
        run("ip", &["route", "add", "default", "via", "172.18.255.1"]);
        run("sysctl", &["-q", "net.ipv6.conf.eth0.accept_ra=0"]);
        run(
            "ip",
            &["-6", "route", "add", "default", "via", "fe80::1", "dev", "eth0", "proto", "ra", "expires", "3600"],
        );
        let obeys = || run("sysctl", &["-n", "net.ipv6.conf.breth0.accept_ra"]).trim() == "2";
        lab.gateway = Some(settings());
        lab.start_switch();
        start_and_move(lab);
        assert!(obeys());
        lab.crash_agent();
        set_journal(lab, |journal| journal["boot"] = "the one before".into());
        cut_power(lab);
        run("ip", &["addr", "add", "172.18.0.2/16", "dev", "eth0"]);
        run("ip", &["route", "add", "default", "via", "172.18.255.1"]);
        lab.start_vswitchd();
        start_and_move(lab);
        assert!(obeys());
    });
}
