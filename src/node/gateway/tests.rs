//! The table in a real kernel.

use std::net::SocketAddr;

use super::*;
use crate::tests::apart;
use ovnkube_model::{Family, Protocol};
use ovnkube_node_plan::gateway::nft::{TABLE, Wanted};
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
