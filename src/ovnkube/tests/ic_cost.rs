//! What joined clusters cost the master: with real databases, northd and API. It measures, and asserts no time; `make bench` runs it.

use std::time::{Duration, Instant};

use ovnkube_ovn::ic_sb::route;
use ovnkube_tests::nb::until;
use tokio::time::timeout;

use crate::ic::Joined;
use crate::process::Process;

const ROUTES: usize = 250;
const MORE: usize = 20;
const PODS: usize = 100;

/// One route more among many by three transit switches, of another cluster and of this one, and one pod more, beside them and without them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures"]
async fn what_a_route_and_a_pod_cost_a_joined_cluster() {
    let (joined, master) = Joined::joined().await;
    for (switch, subnet) in [("ts1", 101), ("ts2", 102)] {
        joined.add_way(switch, subnet).await;
    }
    joined.offer_by_three(0..ROUTES);
    let there = || joined.lab.nb.nbctl(&["lr-route-list", "ovn_cluster_router"]).matches("169.254.102.77").count();
    until("all routes are there", async || there() >= ROUTES).await;

    let nb = joined.lab.nb.client().await;
    let mut changes = nb.subscribe();
    let mut took = Vec::new();
    let before = master.cpu();
    for n in ROUTES..ROUTES + MORE {
        while timeout(Duration::from_millis(500), changes.recv()).await.is_ok() {}
        joined.offer_by_three(n..n + 1);
        let created = Instant::now();
        changes.recv().await;
        took.push(created.elapsed());
    }
    until("the others are there, too", async || there() >= ROUTES + MORE).await;
    let route = master.cpu().saturating_sub(before) / MORE as u32;
    took.sort_unstable();

    let (mut offered, offer) = cost_of_an_offer(&joined, &master).await;
    offered.sort_unstable();

    let beside = cpu_of_a_pod(&joined, &master, "beside").await;
    joined.configure(&[("enable-ic", "false")]).await;
    until("they are gone", async || there() == 0).await;
    let without = cpu_of_a_pod(&joined, &master, "without").await;
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "interconnection {:.1} {:.1} {:.2} {:.1} {:.1} {:.2} {:.3} {:.3}",
        ms(took[MORE / 2]),
        ms(took[MORE - 1]),
        ms(route),
        ms(offered[MORE / 2]),
        ms(offered[MORE - 1]),
        ms(offer),
        ms(beside),
        ms(without)
    );
    joined.end().await;
}

/// One prefix more that this cluster offers, beside `ROUTES` of them: how long it takes each time, and CPU time of the master.
async fn cost_of_an_offer(joined: &Joined, master: &Process) -> (Vec<Duration>, Duration) {
    // of two /24 the second is hidden, and so the first is a prefix; of the last pairs both are hidden at first
    let range = |n: usize, length: u8| format!("10.{}.{}.0/{length}", 128 + n / 256, n % 256);
    for n in 0..ROUTES + MORE {
        let hidden = if n < ROUTES { range(2 * n + 1, 24) } else { range(2 * n, 23) };
        joined.hide(&format!("hidden-{n}"), &hidden).await;
    }
    let shared = joined.shared_southbound().await;
    let first = |n: usize| range(2 * n, 24);
    let ways = |n: usize| {
        let cache = shared.cache();
        cache.iter(route::TABLE).filter(|(_, row)| row.str(route::IP_PREFIX) == first(n)).count()
    };
    until("all prefixes are offered", async || (0..ROUTES).all(|n| ways(n) == 3)).await;
    let mut changes = shared.subscribe();
    let mut took = Vec::new();
    let before = master.cpu();
    for n in ROUTES..ROUTES + MORE {
        while timeout(Duration::from_millis(500), changes.recv()).await.is_ok() {}
        assert_eq!(ways(n), 0, "{} is hidden", first(n));
        let created = Instant::now();
        joined.hide(&format!("hidden-{n}"), &range(2 * n + 1, 24)).await;
        while ways(n) < 3 {
            timeout(Duration::from_secs(30), changes.recv()).await.expect("the prefix is offered");
        }
        took.push(created.elapsed());
    }
    (took, master.cpu().saturating_sub(before) / MORE as u32)
}

/// CPU time of the master for each pod, until all are written.
async fn cpu_of_a_pod(joined: &Joined, master: &Process, name: &str) -> Duration {
    // what came before is done
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = master.cpu();
    for n in 0..PODS {
        joined.lab.api.pod(&format!("{name}-{n}"), "n1").await;
    }
    let ports = || joined.lab.ports().keys().filter(|port| port.contains(&format!("_{name}-"))).count();
    until("all pods have ports", async || ports() == PODS).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    master.cpu().saturating_sub(before) / PODS as u32
}
