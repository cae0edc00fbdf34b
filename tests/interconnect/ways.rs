//! Ways to the other clusters: while gateways come and go, and by IPv6.

use std::sync::Arc;

use ovnkube_apply::Listening;
use ovnkube_tests::nb::{Release, until};
use ovnkube_tests::settings::Settings;

use crate::joined;
use crate::lab::{Lab, shared};

/// While its gateway is away, whatever people edit then, and for the next master. Others' rows say what is offered.
#[tokio::test(flavor = "multi_thread")]
async fn a_way_that_is_used_stays_without_its_gateway() {
    let lab = Lab::up(Release::Host).await;
    let (_other, engine) = joined(&lab).await;
    lab.unbind("cr-az1-ts");
    lab.configure(&[("routes", "az2 10.17.0.0/16")]).await;
    until("the edit is in effect", async || lab.routes().contains("10.17.0.0/16")).await;
    lab.is_quiet().await;
    assert!(lab.routes().contains("10.244.0.0/16"), "{}", lab.routes());

    let _engine = lab.restart(engine, lab.engine()).await;

    // a prefix that was not used waits for the gateway
    lab.configure(&[("routes", "az2 10.17.0.0/16\naz2 fd17::/64")]).await;
    lab.is_quiet().await;
    assert!(!lab.routes().contains("fd17::"), "{}", lab.routes());
}

/// What a master knows of transit switches and addresses is enough to follow gateways and routes. A new switch waits.
#[tokio::test(flavor = "multi_thread")]
async fn gateways_and_routes_are_followed_while_the_northbound_database_is_dead() {
    let mut lab = Lab::up(Release::Lts).await;
    lab.add_switch("ts", "169.254.100.0/24");
    lab.add_cluster("az2", "gw2", "172.19.0.2", "ts", (9, "169.254.100.77/24"));
    let _engine = lab.engine().await;
    lab.configure(&[]).await;
    lab.bind("cr-az1-ts", "c1").await;
    until("our prefix is there", async || lab.shared_rows().contains("10.128.0.0/14")).await;
    lab.is_quiet().await;
    lab.shared_mut()[0].keep_port();
    lab.shared_mut()[0].kill();
    lab.event_says("the northbound interconnection database cannot be reached").await;

    // another gateway has our port
    let sbctl = |words: &[&str]| lab.shared[1].ctl("ovn-ic-sbctl", words);
    lab.sb.sbctl(&[
        "chassis-add",
        "c3",
        "geneve",
        "172.18.0.3",
        "--",
        "set",
        "chassis",
        "c3",
        "other_config:is-interconn=true",
    ]);
    lab.unbind("cr-az1-ts");
    lab.bind("cr-az1-ts", "c3").await;
    let gateway = || sbctl(&["--bare", "--columns=gateway", "find", "port_binding", "logical_port=ts-az1"]);
    until("the others know it", async || gateway() == "c3").await;
    // and another one theirs
    let set = |table: &str, row: &str, column: &str| {
        let uuid = sbctl(&["--bare", "--columns=_uuid", "find", table, row]);
        sbctl(&["set", table, &uuid, column]);
    };
    set("gateway", "name=gw2", "name=gw3");
    set("port_binding", "logical_port=ts-az2", "gateway=gw3");
    until("it is followed", async || lab.chassis_of("ts-az2") == "gw3").await;
    lab.create(&[Lab::route(&lab.zone("az2"), "ts", "10.244.0.0/16", "169.254.100.77")]);
    until("a new route is used", async || lab.routes().contains("10.244.0.0/16")).await;

    lab.shared_mut()[0].start();
    lab.add_switch("ts1", "169.254.101.0/24");
    until("our port in a new switch", async || lab.shared_rows().contains("ts1-az1")).await;
}

/// Pods, transit switch and tunnels have IPv6 alone.
#[tokio::test(flavor = "multi_thread")]
async fn clusters_without_ipv4_are_joined() {
    let lab = Lab::of(Arc::new(shared(Release::Lts)), ("c1", "fd00:172:18::2")).await;
    let settings =
        Settings { cluster_subnets: "fd01::/48/64".into(), service_cidrs: "fd02::/112".into(), ..Settings::default() };
    lab.add_switch("ts", "fd00:a9fe:64::/64");
    lab.add_cluster("az2", "gw2", "fd00:172:19::2", "ts", (9, "fd00:a9fe:64::77/64"));
    lab.create(&[Lab::route(&lab.zone("az2"), "ts", "fd99::/48", "fd00:a9fe:64::77")]);
    let engine = lab.engine_of(&settings, Listening::default()).await;
    lab.configure(&[]).await;
    lab.bind("cr-az1-ts", "c1").await;
    until("their prefix is here", async || lab.routes().contains("fd99::/48")).await;
    until("ours is there", async || lab.shared_rows().contains("fd01::/48")).await;
    let policies = lab.nb.nbctl(&["lr-policy-list", "ovn_cluster_router"]);
    assert!(policies.contains("648") && policies.contains("ip6.dst == fd99::/48"), "{policies}");
    assert!(lab.shared_rows().contains("fd00:172:18::2"), "{}", lab.shared_rows());
    until("their gateway is a chassis here", async || lab.has_chassis("gw2")).await;

    lab.restart(engine, lab.engine_of(&settings, Listening::default())).await;
}
