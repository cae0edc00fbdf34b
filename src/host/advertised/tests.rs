//! Router advertisements on real links.

use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6, sendto, setsockopt, socket, sockopt,
};

use crate::tests::{Scratch, run};
use crate::{Net, SavedAddress, advertised, sysctl};
use ovnkube_node_plan::uplink::MayConflict;

/// Two links of a node, with a router at the other end of each.
struct Network {
    node: Scratch,
    routers: Scratch,
}

impl Network {
    fn new(name: &str) -> Self {
        let network = Self { node: Scratch::new(name), routers: Scratch::new(&format!("{name}-routers")) };
        for (link, peer) in [("left", "to-left"), ("right", "to-right")] {
            network.node.ip(&format!("link add {link} type veth peer name {peer} netns {}", network.routers.0));
            for (scratch, link) in [(&network.node, link), (&network.routers, peer)] {
                // addresses are used at once
                let dad = format!("net.ipv6.conf.{link}.accept_dad=0");
                run("ip", &["netns", "exec", &scratch.0, "sysctl", "-q", &dad]);
                scratch.ip(&format!("link set {link} up"));
            }
        }
        network
    }

    /// The router at `link` advertises itself for this many seconds; the node accepts it.
    async fn is_obeyed(&self, link: &str, seconds: u16) {
        let (from, [high, low]) = (format!("to-{link}"), seconds.to_be_bytes());
        let advertisement = [134, 0, 0, 0, 64, 0, high, low, 0, 0, 0, 0, 0, 0, 0, 0];
        let end = Instant::now() + Duration::from_secs(60);
        while !(u32::from(seconds) - 50..=u32::from(seconds)).contains(&self.lasts(link)) {
            assert!(Instant::now() < end, "{link} does not obey: {}", self.node.ip("-6 route"));
            let from = from.clone();
            let send = move || {
                let socket =
                    socket(AddressFamily::Inet6, SockType::Raw, SockFlag::empty(), SockProtocol::IcmpV6).unwrap();
                setsockopt(&socket, sockopt::Ipv6MulticastHops, &255).unwrap();
                let index = if_nametoindex(from.as_str()).unwrap();
                let all = SocketAddrV6::new(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), 0, 0, index);
                // a link that has just come up has no address yet
                let _ = sendto(socket.as_raw_fd(), &advertisement, &SockaddrIn6::from(all), MsgFlags::empty());
            };
            self.routers.open().run(send).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Remaining lifetime in seconds of the default route through `link`.
    fn lasts(&self, link: &str) -> u32 {
        let shown = self.node.ip(&format!("-6 route show default dev {link}"));
        let life = shown.split_once("expires ").and_then(|(_, rest)| rest.split_once("sec"));
        life.map_or(0, |(seconds, _)| seconds.parse().unwrap())
    }

    async fn on_node<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.node.open().run(work).await.unwrap()
    }

    async fn get(&self, link: &'static str, key: &'static str) -> String {
        self.on_node(move || sysctl::get_link("ipv6", link, key).unwrap()).await
    }
}

#[tokio::test]
async fn links_that_forward_still_accept_advertisements() {
    let network = Network::new("obeying");
    network.is_obeyed("left", 1000).await;
    network.is_obeyed("right", 1000).await;
    network.on_node(|| advertised::forward("left").unwrap()).await;
    // no link loses its route
    assert!(network.lasts("left") > 0 && network.lasts("right") > 0);
    assert_eq!(
        (network.get("left", "forwarding").await.as_str(), network.get("left", "accept_ra").await.as_str()),
        ("1", "2")
    );
    assert_eq!(
        (network.get("right", "forwarding").await.as_str(), network.get("right", "accept_ra").await.as_str()),
        ("0", "1")
    );
    network.is_obeyed("left", 2000).await;
    network.on_node(|| sysctl::set_link("ipv6", "left", "forwarding", "0").unwrap()).await;
    network.on_node(|| advertised::put_back("left").unwrap()).await;
    assert_eq!(network.get("left", "accept_ra").await, "1");

    // a link that ignores advertisements still does
    network.on_node(|| sysctl::set_link("ipv6", "left", "accept_ra", "0").unwrap()).await;
    network.on_node(|| advertised::forward("all").unwrap()).await;
    assert!(network.lasts("right") > 0);
    assert_eq!(
        (network.get("left", "accept_ra").await.as_str(), network.get("right", "accept_ra").await.as_str()),
        ("0", "2")
    );
    network.is_obeyed("right", 3000).await;

    // `obey_as` copies what the other link does
    network.on_node(|| sysctl::set_link("ipv6", "right", "autoconf", "0").unwrap()).await;
    network.on_node(|| advertised::obey_as("right", "left", false).unwrap()).await;
    assert_eq!(
        (network.get("left", "accept_ra").await.as_str(), network.get("left", "autoconf").await.as_str()),
        ("2", "0")
    );
    network.is_obeyed("left", 3000).await;
    network.on_node(|| sysctl::set_link("ipv6", "right", "accept_ra", "0").unwrap()).await;
    network.on_node(|| advertised::obey_as("right", "left", false).unwrap()).await;
    assert_eq!(network.get("left", "accept_ra").await, "0");
    network.on_node(|| advertised::obey_as("right", "left", true).unwrap()).await;
    assert_eq!(network.get("left", "accept_ra").await, "2");
}

/// On a host that did not forward before, packets that arrive on the forwarding links are forwarded.
#[tokio::test]
async fn links_forward() {
    let node = Scratch::new("forwards");
    let [left, right] = ["left", "right"].map(|link| {
        let beyond = Scratch::new(&format!("forwards-{link}"));
        node.ip(&format!("link add {link} type veth peer name eth0 netns {}", beyond.0));
        for (host, link, address) in [(&node, link, "1"), (&beyond, "eth0", "2")] {
            host.ip(&format!("link set {link} up"));
            let net = if beyond.0.ends_with("left") { 7 } else { 8 };
            host.ip(&format!("addr add fd00:{net}::{address}/64 dev {link} nodad"));
        }
        beyond
    });
    left.ip("-6 route add default via fd00:7::1");
    right.ip("-6 route add default via fd00:8::1");
    let passes = || {
        let ping = ["netns", "exec", &left.0, "ping", "-6", "-c", "1", "-W", "1", "fd00:8::2"];
        std::process::Command::new("ip").args(ping).output().unwrap().status.success()
    };
    assert!(!passes());
    let forward = || ["left", "right"].map(|link| advertised::forward(link).unwrap());
    node.open().run(forward).await.unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while !passes() {
        assert!(Instant::now() < end, "no packet passes: {}", node.ip("-6 route"));
    }
}

/// An advertised route that was moved does not block the next advertisement.
#[tokio::test]
async fn an_advertised_route_that_was_moved() {
    let network = Network::new("moved");
    network.is_obeyed("left", 1000).await;
    let net = Net::within(&network.node.open()).await.unwrap();
    let (a, b) = (net.link("left").await.unwrap().unwrap(), net.link("right").await.unwrap().unwrap());
    let held = net.held_routes(&a).await.unwrap();
    let advertised = held.iter().find(|route| route.is_advertised()).unwrap();
    assert!(advertised.is_default(true) && !advertised.is_default(false) && !advertised.is_lasting());
    // the same router is at the other link now
    let router = network.routers.ip("-6 -o addr show dev to-left scope link");
    let router = router.split_whitespace().find(|word| word.starts_with("fe80:")).unwrap();
    network.routers.ip("addr flush dev to-right");
    network.routers.ip(&format!("addr add {router} dev to-right nodad"));
    net.hold_route(&b, advertised).await.unwrap();
    net.drop_route(&a, advertised).await.unwrap();
    assert!(network.lasts("right") > 0 && network.lasts("left") == 0);
    network.is_obeyed("right", 3000).await;
    let shown = network.node.ip("-6 route show default dev right");
    assert_eq!(shown.lines().count(), 2, "{shown}");
}

/// An address that another host also has stays unused, whichever link has it.
#[tokio::test]
async fn a_duplicate_address() {
    let network = Network::new("doubted");
    for link in ["to-left", "to-right"] {
        network.routers.ip(&format!("addr add fd00:7::9/64 dev {link} nodad"));
    }
    for link in ["left", "right"] {
        run("ip", &["netns", "exec", &network.node.0, "sysctl", "-q", &format!("net.ipv6.conf.{link}.accept_dad=1")]);
    }
    let net = Net::within(&network.node.open()).await.unwrap();
    let (a, b) = (net.link("left").await.unwrap().unwrap(), net.link("right").await.unwrap().unwrap());
    network.node.ip("addr add fd00:8::9/64 dev left nodad");
    network.node.ip("addr add fd00:7::9/64 dev left");
    let failed = async |link: &str| {
        let end = Instant::now() + Duration::from_secs(60);
        while !network.node.ip(&format!("addr show dev {link}")).contains("dadfailed") {
            assert!(Instant::now() < end, "{}", network.node.ip("addr"));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    failed("left").await;
    let held = net.held_addresses(&a).await.unwrap();
    for one in &held {
        assert_eq!(one.may_conflict(), one.address().to_string() == "fd00:7::9/64", "{one}");
        assert_eq!(SavedAddress::decode(&one.encode()).as_ref(), Some(one));
        net.hold_address(&b, one).await.unwrap();
    }
    let sure = network.node.ip("addr show dev right to fd00:8::/64");
    assert!(sure.contains("fd00:8::9") && !sure.contains("tentative"), "{sure}");
    failed("right").await;
}
