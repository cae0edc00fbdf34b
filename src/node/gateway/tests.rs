//! The table in a real kernel.

use super::*;
use crate::tests::apart;
use ovnkube_node_plan::gateway::nft::{TABLE, Wanted};
use ovnkube_node_plan::services;

#[test]
fn an_element_that_the_kernel_refuses_holds_up_no_other() {
    apart(async || {
        let wanted = |last: u8, ninth: &str| {
            let key = |n| ("external-ips-v4", format!("192.0.2.{n} . tcp . 80"));
            let value = |n| if n == 9 { ninth.to_owned() } else { format!("10.96.0.{n} . 80") };
            Wanted { body: services::nft::body(), elements: (1..=last).map(|n| (key(n), value(n))).collect() }
        };
        let shown = async || ovnkube_host::nft::list(TABLE).await.unwrap().unwrap();
        let mut table = table::Table::default();
        for (last, ninth) in [(20, "10.96.0.9 . 80000"), (21, "10.96.0.9 . 80000"), (21, "10.96.0.9 . 80"), (22, "no")]
        {
            table.ensure(wanted(last, ninth)).await.unwrap();
            let refused: Vec<_> = table.refused().iter().map(|refused| refused.key.as_str()).collect();
            let is_fine = ninth == "10.96.0.9 . 80";
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
            let element =
                |n: &u8| (("external-ips-v4", format!("192.0.2.{n} . udp . 53")), format!("10.96.0.{n} . 53"));
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
