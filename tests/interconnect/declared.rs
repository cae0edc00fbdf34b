//! Prefixes that people say are behind a cluster.

use ovnkube_tests::nb::{Release, Server, until};

use crate::joined;
use crate::lab::Lab;

/// The ways to a prefix in our router.
fn ways(lab: &Lab, prefix: &str) -> Vec<String> {
    let routes = lab.routes();
    let ways = routes.lines().filter_map(|line| line.trim_start().strip_prefix(prefix));
    ways.filter_map(|rest| rest.split_whitespace().next().map(str::to_owned)).collect()
}

/// Whatever address the other cluster has; also while the shared databases are away.
#[tokio::test(flavor = "multi_thread")]
async fn a_declared_prefix_follows_its_cluster() {
    let mut lab = Lab::up(Release::Lts).await;
    let (other, engine) = joined(&lab).await;
    let text = "az2 10.17.0.0/16\naz9 10.18.0.0/16\naz2 10.128.9.0/24\nnonsense";
    lab.configure(&[("auto-route", "false"), ("routes", text)]).await;
    until("the route is there", async || ways(&lab, "10.17.0.0/16") == ["169.254.100.77"]).await;
    until("nothing is learned", async || ways(&lab, "10.244.0.0/16").is_empty()).await;
    until("nothing is offered", async || !other.routes().contains("10.128.0.0/14")).await;
    lab.event_says("10.18.0.0/16 behind az9: it waits for cluster az9, which has not joined; correct the name").await;
    lab.event_says("10.128.9.0/24 behind az2: it overlaps 10.128.0.0/14, which this cluster uses for pods").await;
    lab.event_says("cannot use key routes has \"nonsense\"; write the az-name of a cluster").await;
    let policies = lab.nb.nbctl(&["lr-policy-list", "ovn_cluster_router"]);
    assert!(policies.contains("616") && policies.contains("ip4.dst == 10.17.0.0/16"), "{policies}");
    assert!(!lab.routes().contains("10.18.") && !lab.routes().contains("10.128.9."), "{}", lab.routes());

    // a restart finds everything as it should be
    lab.is_quiet().await;
    let before = lab.everything();
    drop(engine);
    let engine = lab.engine().await;
    lab.is_quiet().await;
    assert_eq!((lab.everything(), engine.writes()), (before, (0, 0)));

    // another address, and another switch
    other.nb.nbctl(&["set", "logical_router_port", "az2-ts", "networks=\"169.254.100.78/24\""]);
    until("the route follows", async || ways(&lab, "10.17.0.0/16") == ["169.254.100.78"]).await;
    lab.add_switch("ts1", "169.254.101.0/24");
    other.attach("ts1", "169.254.101.77/24").await;
    lab.bind("cr-az1-ts1", "c1").await;
    until("two ways", async || ways(&lab, "10.17.0.0/16") == ["169.254.100.78", "169.254.101.77"]).await;

    // what is learned too is no second route
    lab.configure(&[("routes", "az2 10.244.0.0/16")]).await;
    until("what is not declared is gone", async || ways(&lab, "10.17.0.0/16").is_empty()).await;
    until("it is learned by both ways", async || {
        lab.routes().lines().filter(|line| line.contains("10.244.0.0/16") && line.contains("learned")).count() == 2
    })
    .await;
    assert_eq!(ways(&lab, "10.244.0.0/16").len(), 2, "{}", lab.routes());

    lab.configure(&[("auto-route", "false"), ("routes", "az2 10.244.0.0/16")]).await;
    until("it is declared only", async || !lab.routes().contains("learned")).await;
    assert_eq!(ways(&lab, "10.244.0.0/16").len(), 2, "{}", lab.routes());
    lab.shared_mut().iter_mut().for_each(Server::kill);
    lab.configure(&[("auto-route", "false"), ("routes", "")]).await;
    until("it is gone, also while the shared databases are away", async || ways(&lab, "10.244.0.0/16").is_empty())
        .await;
}

/// A person may have written the same route and policy: those stay as they are, and when the prefix is not declared any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_by_hand_is_not_taken_over() {
    let lab = Lab::up(Release::Lts).await;
    let (_other, _engine) = joined(&lab).await;
    let (prefix, to) = ("10.17.0.0/16", "ip4.dst == 10.17.0.0/16");
    lab.nb.nbctl(&["lr-route-add", "ovn_cluster_router", prefix, "169.254.100.77"]);
    lab.nb.nbctl(&["lr-policy-add", "ovn_cluster_router", "616", to, "reroute", "169.254.100.77"]);
    let route = || lab.nb.nbctl(&["--bare", "find", "logical_router_static_route", "ip_prefix=10.17.0.0/16"]);
    let policy = || lab.nb.nbctl(&["--bare", "find", "logical_router_policy", &format!("match=\"{to}\"")]);
    let by_hand = (route(), policy());
    lab.configure(&[("auto-route", "false"), ("routes", "az2 10.17.0.0/16")]).await;
    until("there is one of ours", async || ways(&lab, prefix).len() == 2).await;
    assert!(route().contains(&by_hand.0) && route().contains("k8s.ovn.org/owner-type"), "{}", route());
    assert!(policy().contains(&by_hand.1) && policy().contains("k8s.ovn.org/owner-type"), "{}", policy());
    lab.configure(&[("auto-route", "false"), ("routes", "")]).await;
    until("ours is gone", async || ways(&lab, prefix).len() == 1).await;
    assert_eq!((route(), policy()), by_hand);
}
