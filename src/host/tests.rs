//! Tests in namespaces that they create; they need root.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

/// A named namespace that is removed when the value is dropped.
pub(crate) struct Scratch(pub(crate) String);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("ovnkube-host-{}-{name}", std::process::id());
        run("ip", &["netns", "add", &name]);
        Self(name)
    }

    fn path(&self) -> String {
        format!("/run/netns/{}", self.0)
    }

    pub(crate) fn open(&self) -> Netns {
        Netns::open_other(Path::new(&self.path())).unwrap()
    }

    pub(crate) fn ip(&self, args: &str) -> String {
        let args: Vec<&str> = ["-n", &self.0].into_iter().chain(args.split(' ')).collect();
        run("ip", &args)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

pub(crate) fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}; install it with lab/install"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const MAC: Mac = [0x0a, 0x58, 10, 128, 0, 3];
const NODE_MAC: Mac = [0x02, 1, 2, 3, 4, 5];

#[tokio::test]
async fn a_pair_between_two_namespaces() {
    let (node, pod) = (Scratch::new("n1"), Scratch::new("p1"));
    let (node_ns, pod_ns) = (node.open(), pod.open());
    let (here, there) = (Net::within(&node_ns).await.unwrap(), Net::within(&pod_ns).await.unwrap());
    let name = "0123456789abcde";
    here.add_veth(Veth { name, mac: NODE_MAC, peer: "eth0", peer_netns: &pod_ns, peer_mac: MAC, mtu: 1400 })
        .await
        .unwrap();
    let host_end = here.link(name).await.unwrap().unwrap();
    let eth0 = there.link("eth0").await.unwrap().unwrap();
    assert_eq!((host_end.mtu, host_end.mac), (1400, Some(NODE_MAC)));
    assert_eq!((eth0.mtu, eth0.mac, eth0.up), (1400, Some(MAC), false));
    // from either side, also after a rename
    pod.ip("link set eth0 name other");
    let other = there.link("other").await.unwrap();
    let seen = here.other_end(&host_end).await.unwrap().unwrap();
    assert_eq!((seen.index, seen.name.as_str(), seen.mac), (eth0.index, "other", Some(MAC)));
    assert_eq!(there.other_end(&other.unwrap()).await.unwrap().unwrap().name, name);
    // whatever bytes the pod's root writes on it
    let sh = |script: &str| drop(run("ip", &["netns", "exec", &pod.0, "sh", "-c", script]));
    sh(r"ip link set other alias $(printf '\377x')");
    let seen = here.other_end(&host_end).await.unwrap().unwrap();
    assert_eq!((seen.name.as_str(), seen.mac), ("other", Some(MAC)));
    sh(r"ip link set other name $(printf 'e\377')");
    let seen = here.other_end(&host_end).await.unwrap().unwrap();
    assert_eq!((seen.name.as_str(), seen.mac), ("e\u{fffd}", Some(MAC)));
    sh(r"ip link set $(printf 'e\377') name eth0 alias ''");
    let alone = here.link("lo").await.unwrap().unwrap();
    assert_eq!(here.other_end(&alone).await.unwrap(), None);

    let route = Route::via("10.128.0.0/14".parse().unwrap(), "10.128.0.1".parse().unwrap());
    let default6 = Route::via("::/0".parse().unwrap(), "fd00::1".parse().unwrap());
    pod_ns.run(|| sysctl::set_link("ipv6", "eth0", "accept_dad", "0")).await.unwrap().unwrap();
    // twice: the second time nothing is left to do
    for _ in 0..2 {
        here.set_up(&host_end).await.unwrap();
        there.set_up(&eth0).await.unwrap();
        for address in ["10.128.0.3/23", "fd00::3/64"] {
            there.ensure_address(&eth0, address.parse().unwrap()).await.unwrap();
        }
        there.ensure_route(&eth0, route).await.unwrap();
        there.ensure_route(&eth0, default6).await.unwrap();
        there.ensure_neighbour(&eth0, "10.128.0.1".parse().unwrap(), MAC).await.unwrap();
    }
    let mut addresses = there.addresses(&eth0).await.unwrap();
    addresses.sort();
    assert_eq!(addresses, ["10.128.0.3/23", "fd00::3/64"].map(|a| a.parse().unwrap()));
    assert_eq!(there.routes(&eth0).await.unwrap(), [route, default6]);
    assert!(pod.ip("route").contains("10.128.0.0/14 via 10.128.0.1 dev eth0"));
    assert!(pod.ip("neigh show dev eth0").contains("10.128.0.1 lladdr 0a:58:0a:80:00:03 PERMANENT"));
    assert!(!pod.ip("addr show dev eth0").contains("tentative"));

    // another source and MTU: the route is replaced, and read as it was given
    let source = Some("10.128.0.3".parse().unwrap());
    let narrow = Route { source, mtu: Some(1300), ..route };
    there.ensure_route(&eth0, narrow).await.unwrap();
    let direct = Route { destination: "10.1.0.1/32".parse().unwrap(), gateway: None, source, mtu: None };
    there.ensure_route(&eth0, direct).await.unwrap();
    assert_eq!(there.routes(&eth0).await.unwrap(), [direct, narrow, default6]);
    there.delete_route_in(&eth0, ovnkube_node_plan::host::MAIN, direct).await.unwrap();
    there.ensure_route(&eth0, route).await.unwrap();
    let default = DefaultRoute { metric: 1024, gateway: "fd00::1".parse().unwrap(), link: eth0.index };
    assert_eq!(there.default_routes().await.unwrap(), [default]);

    there.delete_route_in(&eth0, ovnkube_node_plan::host::MAIN, route).await.unwrap();
    there.delete_address(&eth0, "10.128.0.3/23".parse().unwrap()).await.unwrap();
    assert_eq!(there.routes(&eth0).await.unwrap(), [default6]);
    for _ in 0..2 {
        here.delete("0123456789abcde").await.unwrap();
    }
    assert_eq!(there.link("eth0").await.unwrap(), None);
}

/// Duplicate address detection reports a conflict a moment after an address was added.
#[tokio::test]
async fn an_address_of_another_host_is_not_listed() {
    let (one, other) = (Scratch::new("d1"), Scratch::new("d2"));
    let (one_ns, other_ns) = (one.open(), other.open());
    let here = Net::within(&one_ns).await.unwrap();
    here.add_veth(Veth { name: "left", mac: NODE_MAC, peer: "eth0", peer_netns: &other_ns, peer_mac: MAC, mtu: 1400 })
        .await
        .unwrap();
    one_ns.run(|| sysctl::set_link("ipv6", "left", "accept_dad", "1")).await.unwrap().unwrap();
    other.ip("addr add fd00::3/64 dev eth0 nodad");
    other.ip("link set eth0 up");
    one.ip("link set left up");
    let left = here.link("left").await.unwrap().unwrap();
    for address in ["fd00::3/64", "fd00::4/64"] {
        one.ip(&format!("addr add {address} dev left"));
    }
    let started = Instant::now();
    while !one.ip("addr show dev left").contains("dadfailed") {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", one.ip("addr show dev left"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let usable: ipnetwork::IpNetwork = "fd00::4/64".parse().unwrap();
    assert_eq!(here.addresses(&left).await.unwrap(), [usable]);
    assert_eq!(here.all_addresses("eth0").await.unwrap(), [usable]);
    // an explicit delete removes it like any other
    here.delete_address(&left, "fd00::3/64".parse().unwrap()).await.unwrap();
    assert!(!one.ip("addr show dev left").contains("fd00::3"));
}

/// The source address that the kernel chooses for `to`.
fn source(netns: &Scratch, to: &str) -> String {
    let route = netns.ip(&format!("-6 route get {to}"));
    route.split("src ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn an_unpreferred_address_is_no_default_source() {
    let node = Scratch::new("n4");
    node.ip("link add v0 type veth peer name v1");
    node.ip("link set v0 up");
    node.ip("link set v1 up");
    let here = Net::within(&node.open()).await.unwrap();
    let link = here.link("v0").await.unwrap().unwrap();
    here.ensure_address(&link, "fd00:1::2/64".parse().unwrap()).await.unwrap();
    for _ in 0..2 {
        here.ensure_unpreferred_address(&link, "fd69::2/125".parse().unwrap()).await.unwrap();
    }
    here.ensure_route(&link, Route::via("::/0".parse().unwrap(), "fd00:1::1".parse().unwrap())).await.unwrap();
    // both match that destination equally well, so the kernel would choose the newer one
    assert_eq!(source(&node, "2001:db8::1"), "fd00:1::2");
    assert!(here.addresses(&link).await.unwrap().contains(&"fd69::2/125".parse().unwrap()));
}

#[tokio::test]
async fn links_change_in_place() {
    let node = Scratch::new("n2");
    node.ip("link add name a type veth peer name z");
    let here = Net::within(&node.open()).await.unwrap();
    let link = here.link("a").await.unwrap().unwrap();
    here.ensure_mtu(&link, 1234).await.unwrap();
    here.ensure_mac(&link, MAC).await.unwrap();
    here.set_alias(&link, "whose").await.unwrap();
    here.rename(&link, "b").await.unwrap();
    let changed = here.link("b").await.unwrap().unwrap();
    assert_eq!((changed.mtu, changed.mac, changed.alias.as_deref()), (1234, Some(MAC), Some("whose")));
    assert!(here.links().await.unwrap().iter().all(|l| l.name != "a"));
}

#[tokio::test]
async fn tx_checksum_offload_is_turned_off() {
    let pod = Scratch::new("p3");
    pod.ip("link add v0 type veth peer name v1");
    let features = || run("ip", &["netns", "exec", &pod.0, "ethtool", "-k", "v0"]);
    assert!(features().contains("tx-checksumming: on"));
    for _ in 0..2 {
        ethtool::tx_checksum_off(Some(&pod.open()), "v0").await.unwrap();
    }
    assert!(features().contains("tx-checksumming: off"), "{}", features());
    assert!(features().contains("rx-checksumming: on"));
    let missing = ethtool::tx_checksum_off(Some(&pod.open()), "v9").await.unwrap_err();
    assert!(
        missing.to_string().starts_with("cannot switch TX checksum offload of v9 off: No such device"),
        "{missing}"
    );
}

#[tokio::test]
async fn changes_wake_the_caller() {
    // in the process's own namespace: on loopback nothing else uses this address
    let mut changes = changes::Changes::watch().unwrap();
    run("ip", &["addr", "add", "127.77.77.77/32", "dev", "lo"]);
    changes.next().await;
    run("ip", &["addr", "del", "127.77.77.77/32", "dev", "lo"]);
    changes.next().await;
}

/// Runs `test` in a namespace of its own, on a runtime of its own.
pub(crate) fn apart<T: Send + 'static>(test: impl AsyncFnOnce() -> T + Send + 'static) -> T {
    let work = || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test())
    };
    std::thread::spawn(work).join().unwrap()
}

#[test]
fn arp_entries_wake_nobody() {
    apart(async || {
        for args in
            ["link add v0 type veth peer name v1", "link set v0 addrgenmode none up", "link set v1 addrgenmode none up"]
        {
            run("ip", &args.split(' ').collect::<Vec<_>>());
        }
        let mut changes = changes::Changes::watch().unwrap();
        // the kernel reports some changes late
        while tokio::time::timeout(Duration::from_secs(2), changes.next()).await.is_ok() {}
        let neighbour = |state: &str| {
            let entry = ["neigh", "replace", "10.128.0.1", "lladdr", "0a:58:0a:80:00:01", "dev", "v0", "nud", state];
            run("ip", &entry);
        };
        for state in ["reachable", "stale", "reachable"] {
            neighbour(state);
        }
        tokio::select! {
            () = changes.next() => panic!("woken by ARP"),
            () = tokio::time::sleep(Duration::from_millis(300)) => {}
        }
        neighbour("permanent");
        changes.next().await;
        run("ip", &["neigh", "del", "10.128.0.1", "dev", "v0"]);
        changes.next().await;
    });
}

#[test]
fn changes_of_nftables_wake_the_caller() {
    apart(async || {
        let mut changes = changes::Changes::watch().unwrap();
        while tokio::time::timeout(Duration::from_secs(2), changes.next()).await.is_ok() {}
        for what in ["add", "delete"] {
            run("nft", &[what, "table", "inet", "other"]);
            changes.next().await;
        }
    });
}

#[test]
fn many_route_changes_wake_once() {
    apart(async || {
        run("ip", &["link", "set", "lo", "up"]);
        let mut changes = changes::Changes::watch().unwrap();
        let (done, mut is_done) = tokio::sync::oneshot::channel();
        let namespace = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
        std::thread::spawn(move || {
            nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            for n in 0..200 {
                run("ip", &["route", "add", &format!("10.1.{n}.0/24"), "dev", "lo"]);
            }
            done.send(()).unwrap();
        });
        let (started, mut woken) = (Instant::now(), 0);
        loop {
            tokio::select! {
                () = changes.next() => woken += 1,
                _ = &mut is_done => break,
            }
        }
        assert!((1..=started.elapsed().as_secs() + 2).contains(&woken), "{woken} in {:?}", started.elapsed());
    });
}

#[test]
fn only_other_network_namespaces_are_opened() {
    let dir = std::env::temp_dir().join(format!("ovnkube-host-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (file, link, fifo) = (dir.join("file"), dir.join("link"), dir.join("fifo"));
    std::fs::write(&file, "x").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    run("mkfifo", &[fifo.to_str().unwrap()]);
    for path in [&file, &link, &fifo, &dir] {
        assert!(matches!(Netns::open(path), Err(Error::NotNetns { .. })), "{}", path.display());
    }
    assert!(matches!(Netns::open(&dir.join("nothing")), Err(Error::OpenNetns { .. })));
    assert!(matches!(Netns::open_other(Path::new("/proc/self/ns/net")), Err(Error::OwnNetns { .. })));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn sysctl_keys_cannot_leave_the_directory() {
    for key in [&["net", "..", "kernel", "hostname"][..], &["net/ipv4"], &["net", ""], &["a\0b"]] {
        assert!(sysctl::set(key, "1").is_err(), "{key:?}");
    }
    assert!(sysctl::set_link("ipv4", "nosuchlink", "forwarding", "1").is_err());
}

/// A family without support in the kernel, such as IPv6 disabled at boot.
#[test]
fn a_family_without_kernel_support_is_empty() {
    use rtnetlink::packet_route::AddressFamily;
    apart(async || {
        run("ip", &["link", "set", "lo", "up"]);
        run("ip", &["route", "add", "192.0.2.0/24", "dev", "lo"]);
        let here = Net::here().await.unwrap();
        // NET/ROM: the kernel has no rules or routes for it
        assert!(here.rules(AddressFamily::Netrom).await.unwrap().is_empty());
        assert!(here.all_tables_of(AddressFamily::Netrom).await.unwrap().is_empty());
        assert!(!here.rules(AddressFamily::Inet).await.unwrap().is_empty());
        assert!(!here.all_tables_of(AddressFamily::Inet).await.unwrap().is_empty());
    });
}

/// A sender that never pauses keeps reaching the first endpoint until the connection is ended.
#[test]
fn a_udp_sender_moves_on() {
    apart(async || {
        run("ip", &["link", "set", "lo", "up"]);
        for (host, family) in [("127.0.0.1", "ip"), ("::1", "ip6")] {
            let bind = |port| tokio::net::UdpSocket::bind((host, port));
            let (old, new, client) = (bind(5353).await.unwrap(), bind(5354).await.unwrap(), bind(0).await.unwrap());
            let lead_to = async |port: u16| {
                let to = if family == "ip" { format!("{host}:{port}") } else { format!("[{host}]:{port}") };
                let rules =
                    format!("\tchain out {{\n type nat hook output priority -100\n udp dport 30053 dnat to {to}\n}}\n");
                let table = format!("{family} test");
                nft::change(&table, &nft::replacement(&table, &rules)).await.unwrap();
            };
            let arrives = async |at: &tokio::net::UdpSocket| {
                client.send_to(b"x", (host, 30053)).await.unwrap();
                tokio::time::timeout(Duration::from_millis(500), at.recv(&mut [0])).await.is_ok()
            };
            lead_to(5353).await;
            assert!(arrives(&old).await);
            lead_to(5354).await;
            assert!(arrives(&old).await, "a connection holds without this");
            let ended = async |port: u16| {
                let is_stale = move |c: &conntrack::Connection| c.to.port() == port && c.answers.port() != 5354;
                conntrack::end_udp(is_stale).await.unwrap()
            };
            assert_eq!(ended(30054).await, 0);
            assert_eq!(ended(30053).await, 1);
            assert!(arrives(&new).await);
            assert_eq!(ended(30053).await, 0);
        }
    });
}

/// Everything that a link has can be moved to another link and back without loss.
#[tokio::test]
async fn a_links_settings_move_to_another_link() {
    let node = Scratch::new("held");
    for args in [
        "link add name nic type veth peer name nic1",
        "link add name bri type veth peer name bri1",
        "link set nic up",
        "link set bri up",
        "link set nic1 up",
        "link set bri1 up",
        "addr add 172.18.0.2/16 brd 172.18.255.255 dev nic valid_lft 3600 preferred_lft 1800",
        "addr add 172.18.0.3/16 dev nic",
        "addr add 10.9.0.2/24 dev nic noprefixroute",
        "addr add fd00:172::2/64 dev nic nodad",
        "route add 10.9.0.0/24 dev nic proto kernel scope link src 10.9.0.2 metric 100",
        "route add default via 172.18.255.1 dev nic src 172.18.0.3 metric 100 mtu 1300",
        "route add 10.10.0.0/16 via 10.9.0.1 dev nic table 77 proto static",
        "route add 10.11.0.0/16 via 192.0.2.1 dev nic onlink",
        "route add 10.12.0.0/16 nexthop via 172.18.0.8 dev nic weight 2 nexthop via 172.18.0.9 dev nic",
        "-6 route add fd00:12::/64 nexthop via fd00:172::8 dev nic nexthop via fd00:172::9 dev nic",
        "-6 route add default via fe80::1 dev nic metric 1024 expires 900",
    ] {
        node.ip(args);
    }
    let net = Net::within(&node.open()).await.unwrap();
    let (a, b) = (net.link("nic").await.unwrap().unwrap(), net.link("bri").await.unwrap().unwrap());
    let text = |link: &str| {
        let seconds = without_lifetimes(&node.ip(&format!("addr show dev {link}")));
        // the kernel adds the route of an IPv6 address to itself a moment after the address
        let own = format!("local fd00:172::2 dev {link} ");
        for _ in 0..600 {
            if ["", "-6 "].iter().all(|family| node.ip(&format!("{family}route show table all")).contains(&own)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let routes: Vec<String> = ["route show table all", "-6 route show table all"]
            .iter()
            .flat_map(|args| node.ip(args).lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| line.contains(&format!("dev {link} ")) && !line.contains("fe80::/64"))
            .filter(|line| !line.starts_with("multicast") && !line.starts_with("local fe80"))
            .map(|line| without_lifetimes(&line).replace(&format!("dev {link} "), "dev LINK "))
            .collect();
        (seconds, routes)
    };
    let addresses = |text: &(String, Vec<String>)| {
        let lines = text.0.lines().filter(|line| line.trim().starts_with("inet") && !line.contains("fe80"));
        lines.map(|line| line.trim_end_matches(" nic").trim_end_matches(" bri").to_owned()).collect::<Vec<_>>()
    };
    let before = text("nic");
    for (from, to) in [(&a, &b), (&b, &a)] {
        let (held, routes) = (net.held_addresses(from).await.unwrap(), net.held_routes(from).await.unwrap());
        assert_eq!(held.len(), 4, "{held:?}");
        let kept: Vec<_> = held.iter().map(|one| SavedAddress::decode(&one.encode()).unwrap()).collect();
        assert_eq!(kept, held);
        let kept: Vec<_> = routes.iter().map(|one| SavedRoute::decode(&one.encode()).unwrap()).collect();
        assert_eq!(kept, routes);
        for one in &held {
            net.hold_address(to, one).await.unwrap();
        }
        for one in &routes {
            net.hold_route(to, one).await.unwrap();
            net.drop_route(from, one).await.unwrap();
        }
        for one in held.iter().rev() {
            net.delete_address(from, one.address()).await.unwrap();
        }
        assert!(net.held_addresses(from).await.unwrap().is_empty() && net.held_routes(from).await.unwrap().is_empty());
        let after = text(&to.name);
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        assert_eq!(addresses(&before), addresses(&after));
        assert_eq!(sorted(before.1.clone()), sorted(after.1.clone()));
    }
    let first = net.held_addresses(&a).await.unwrap().remove(0);
    let valid = first.valid().unwrap();
    assert!((3500..=3600).contains(&valid), "{valid}");
    assert_eq!(first.clone().aged(100).unwrap().valid(), Some(valid - 100));
    assert_eq!(first.aged(3600), None);
}

/// Without remaining lifetimes, which differ between two snapshots.
fn without_lifetimes(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut after = "";
        let mut kept = Vec::new();
        for word in line.split(' ') {
            let life = matches!(after, "valid_lft" | "preferred_lft" | "expires");
            kept.push(if life { "N" } else { word });
            after = word;
        }
        words.push(kept.join(" "));
    }
    words.join("\n")
}

#[tokio::test]
async fn a_program_that_hangs_is_killed() {
    let file = std::env::temp_dir().join(format!("ovnkube-host-{}-hangs", std::process::id()));
    let script = format!("echo $$ >{0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    let mut command = tokio::process::Command::new("sh");
    let limit = Duration::from_secs(1);
    assert!(program::end(command.args(["-c", &script]), "", limit).await.unwrap().is_none());
    // on a machine too busy to start it there is nothing to kill
    if let Ok(pid) = std::fs::read_to_string(&file) {
        std::fs::remove_file(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        let started = Instant::now();
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(started.elapsed() < Duration::from_secs(60), "it still runs");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// As when memory is short: the commands that `nft` was given are not at fault.
#[tokio::test]
async fn a_program_that_is_killed_has_refused_nothing() {
    let sh = program::Program { name: "sh", package: "dash", remedy: "wait" };
    for (script, is_refusal, said) in [
        ("echo no >&2; exit 1", true, "cannot try: sh: no"),
        ("echo no memory >&2; exit 2", false, "cannot try: sh: no memory"),
        ("kill -9 $$", false, "cannot try: sh: signal 9 ended it"),
    ] {
        let error = sh.run("try", &["-c", script], "", &[0]).await.unwrap_err();
        assert_eq!(nft::is_refusal(&error), is_refusal, "{error}");
        assert!(error.to_string().starts_with(said), "{error}");
    }
}

#[tokio::test]
async fn plugins_report_their_versions() {
    let file = std::env::temp_dir().join(format!("ovnkube-host-{}-plugin", std::process::id()));
    let of = async |script: &str| {
        // written by a child process: a fork of another test would keep it open, so it could not be run
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" >"$2"; chmod 755 "$2""#;
        run("sh", &["-c", write, "sh", script, &file.display().to_string()]);
        cni::versions(&file).await
    };
    let said =
        of(r#"read conf; echo "{\"cniVersion\": \"1.0.0\", \"supportedVersions\": [\"0.4.0\", \"$CNI_COMMAND\"]}""#);
    assert_eq!(said.await, Ok(vec!["0.4.0".to_owned(), "VERSION".to_owned()]));
    assert_eq!(of("echo '{}'").await, Ok(Vec::new()));
    assert!(of("exit 1").await.is_err());
    std::fs::remove_file(&file).unwrap();
    assert!(cni::versions(&file).await.is_err());
}
