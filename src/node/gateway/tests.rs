//! The table in a real kernel.

use std::net::SocketAddr;
use std::path::Path;

use super::*;
use crate::tests::apart;
use ovnkube_model::{Family, Mac, Protocol};
use ovnkube_node_plan::gateway::nft::{TABLE, Wanted};
use ovnkube_node_plan::host::Link;
use ovnkube_node_plan::observed::LinkState;
use ovnkube_node_plan::services;
use ovnkube_node_plan::services::element::{Element, Key, Set};

/// 192.0.2.`n` leads to `to`.
fn external(n: u8, protocol: Protocol, port: u16, to: &str) -> (Element, Option<SocketAddr>) {
    let key = Key::of_ip([192, 0, 2, n].into(), protocol, port);
    (Element::new(Set::Ips, Family::V4, key), Some(to.parse().unwrap()))
}

#[test]
fn an_element_that_the_kernel_refuses_holds_up_no_other() {
    apart(async || {
        let wanted = |last: u8, ninth: &str| {
            let value = |n| if n == 9 { ninth.to_owned() } else { format!("10.96.0.{n}:80") };
            let elements = (1..=last).map(|n| external(n, Protocol::Tcp, 80, &value(n)));
            Wanted { body: services::nft::body(), elements: elements.collect() }
        };
        let shown = async || ovnkube_host::nft::list(TABLE).await.unwrap().unwrap();
        let mut table = table::Table::default();
        // an IPv4 destination cannot become an IPv6 one
        for (last, ninth) in [(20, "[fd00::9]:80"), (21, "[fd00::9]:80"), (21, "10.96.0.9:80"), (22, "[fd00::8]:80")] {
            table.ensure(wanted(last, ninth)).await.unwrap();
            let refused: Vec<_> = table.refused().iter().map(|refused| refused.element.key().to_string()).collect();
            let is_fine = ninth == "10.96.0.9:80";
            assert_eq!(refused, if is_fine { Vec::new() } else { vec!["192.0.2.9 . tcp . 80"] });
            let shown = shown().await;
            for n in (1..=last).filter(|n| *n != 9 || is_fine) {
                assert!(shown.contains(&format!("192.0.2.{n} . tcp . 80 : 10.96.0.{n} . 80")), "{n} is not in {shown}");
            }
            let generation = ovnkube_host::nft::generation().await.unwrap();
            table.ensure(wanted(last, ninth)).await.unwrap();
            assert_eq!(ovnkube_host::nft::generation().await.unwrap(), generation, "it is tried once");
        }
    });
}

/// Nobody is told that all is well: when the table can be written again, the kernel refuses the same.
#[test]
fn a_refused_element_stays_known_while_the_table_cannot_be_written() {
    apart(async || {
        let elements =
            || [external(1, Protocol::Tcp, 80, "10.96.0.1:80"), external(2, Protocol::Tcp, 80, "[fd00::2]:80")];
        let good = || Wanted { body: services::nft::body(), elements: elements().into() };
        let bad = || Wanted { body: "no rule\n".to_owned(), ..good() };
        let mut table = table::Table::default();
        table.ensure(good()).await.unwrap();
        let before = table.refused().to_vec();
        assert_eq!(before.len(), 1);
        ovnkube_host::nft::delete(TABLE).await.unwrap();
        assert!(table.ensure(bad()).await.is_err());
        assert_eq!(table.refused(), before);
        table.ensure(good()).await.unwrap();
        assert_eq!(table.refused(), before);
        let without = Wanted { elements: elements().into_iter().take(1).collect(), ..good() };
        table.ensure(without).await.unwrap();
        assert!(table.refused().is_empty());
    });
}

/// Connections that could not be ended are still to be ended at the next look, by what is wanted then.
#[test]
fn stale_connections_are_reported_until_they_are_ended() {
    apart(async || {
        let wanted = |to: &[u8]| {
            let element = |n: &u8| external(*n, Protocol::Udp, 53, &format!("10.96.0.{n}:53"));
            Wanted { body: services::nft::body(), elements: to.iter().map(element).collect() }
        };
        let frontends = |moved: &services::nft::Moved| -> Vec<(String, usize)> {
            moved.iter().map(|((ip, ..), led)| (ip.unwrap().to_string(), led.len())).collect()
        };
        let mut table = table::Table::default();
        let both = vec![("192.0.2.1".to_owned(), 1), ("192.0.2.2".to_owned(), 1)];
        for _ in 0..2 {
            assert_eq!(frontends(&table.ensure(wanted(&[1, 2])).await.unwrap()), both);
        }
        table.forget_turned();
        assert!(table.ensure(wanted(&[1, 2])).await.unwrap().is_empty());
        // a service is deleted, and another program empties the table before its connections are ended
        for to in [&[2][..], &[2], &[1, 2], &[2]] {
            let moved = table.ensure(wanted(to)).await.unwrap();
            assert_eq!(frontends(&moved)[0], ("192.0.2.1".to_owned(), usize::from(to.len() > 1)));
            ovnkube_host::nft::delete(TABLE).await.unwrap();
        }
    });
}

/// Without the table, nothing of what passes FORWARD of iptables would be kept from pods.
#[test]
fn a_table_that_went_and_cannot_be_written_is_not_there() {
    apart(async || {
        let good = || Wanted {
            body: services::nft::body(),
            elements: [external(1, Protocol::Tcp, 80, "10.96.0.1:80")].into(),
        };
        let bad = || Wanted { body: "no rule\n".to_owned(), ..good() };
        let mut table = table::Table::default();
        assert!(table.ensure(bad()).await.is_err());
        assert!(!table.is_there());
        table.ensure(good()).await.unwrap();
        assert!(table.is_there());
        assert!(table.ensure(bad()).await.is_err());
        assert!(table.is_there(), "the one of before stays");
        ovnkube_host::nft::delete(TABLE).await.unwrap();
        assert!(table.ensure(bad()).await.is_err());
        assert!(!table.is_there());
        table.ensure(good()).await.unwrap();
        assert!(table.is_there());
    });
}

/// Services come and go whatever becomes of a route.
#[test]
fn a_link_that_cannot_be_set_up_does_not_hold_up_the_table() {
    apart(async || {
        let masquerade_subnets = vec!["169.254.169.0/29".parse().unwrap()];
        let gateway = Some(GatewaySettings::default());
        let settings = NodeSettings { masquerade_subnets, gateway, ..NodeSettings::default() };
        let mut gateway = Gateway::new(&settings, Warnings::default()).unwrap();
        let node = "172.18.0.2/16".parse::<IpNetwork>().unwrap();
        // it was seen, and went before it could be set up
        let link = Link { name: "br-ex".into(), ..Link::default() };
        let gone = LinkState { link: link.clone(), ..LinkState::default() };
        let host = Observed { links: vec![gone], ..Observed::default() };
        let site =
            GatewayBridge { link, uplink: None, mac: Mac::of(node.ip()), ips: vec![node], next_hops: Vec::new() };
        let subnets = ["10.128.0.0/24".parse().unwrap()];
        let facts = management_port::Facts {
            subnets: &subnets,
            cluster: &subnets,
            mac: None,
            mtu: 1400,
            route_mtu: None,
            checksums_in_software: false,
        };
        let mgmt = ManagementPort::new(&facts).unwrap();
        let here = Net::here().await.unwrap();
        let applier =
            Applier { here: &here, ovs: None, run_dir: Path::new("/"), masquerade: &settings.masquerade_subnets };
        let (node, services) = (OwnNode::default(), Want::default());
        let outcome = gateway.ensure(&site, &node, &mgmt, &host, applier, &services).await;
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("br-ex"), "{error}");
        assert!(ovnkube_host::nft::list(TABLE).await.unwrap().is_some());
    });
}
