//! Clusters joined by the interconnection databases: ours with its real engine and API, another one with OVN's own daemon.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod anew;
mod at_once;
mod declared;
mod edits;
mod hanging;
mod hostile;
mod lab;
mod restarts;
mod schemas;
mod ways;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::{Lab, Other, shared};
use ovnkube_apply::Listening;
use ovnkube_tests::api::Running;
use ovnkube_tests::nb::{Daemon, Release, Server, until};
use serde_json::json;

/// Joins a cluster with OVN's own daemon and ours, by the switch `ts`.
async fn joined(lab: &Lab) -> (Other, Running) {
    lab.add_switch("ts", "169.254.100.0/24");
    let other = Other::join(lab, "az2", "ts", "169.254.100.77/24").await;
    let engine = lab.engine().await;
    join(lab, &other).await;
    (other, engine)
}

async fn join(lab: &Lab, other: &Other) {
    lab.configure(&[]).await;
    lab.bind("cr-az1-ts", "c1").await;
    are_joined(lab, other).await;
}

/// What each side shows of the other.
async fn are_joined(lab: &Lab, other: &Other) {
    until("their prefix is here", async || lab.routes().contains("10.244.0.0/16")).await;
    until("our prefix is there", async || other.routes().contains("10.128.0.0/14")).await;
    let policies = lab.nb.nbctl(&["lr-policy-list", "ovn_cluster_router"]);
    assert!(policies.contains("616") && policies.contains("ip4.dst == 10.244.0.0/16"), "{policies}");
    let chassis = lab.sb.sbctl(&["--bare", "--columns=other_config", "find", "chassis", "name=gw2"]);
    assert!(chassis.contains("is-remote=true"), "{chassis}");
    until("their port is on their gateway", async || lab.chassis_of("ts-az2") == "gw2").await;
    until("our port is on our gateway", async || other.chassis_of("ts-az1") == "c1").await;
}

async fn routes_are_exchanged(release: Release) {
    let lab = Lab::up(release).await;
    let (other, engine) = joined(&lab).await;

    // their northd balances over the ways to us
    let learned = other.nb.nbctl(&[
        "--bare",
        "--columns=options",
        "find",
        "logical_router_static_route",
        "ip_prefix=\"10.128.0.0/14\"",
    ]);
    assert!(learned.contains("origin=static"), "{learned}");

    // a restart finds everything as it should be
    let _engine = lab.restart(engine, lab.engine()).await;

    // a second switch is a second way
    lab.add_switch("ts1", "169.254.101.0/24");
    other.attach("ts1", "169.254.101.77/24").await;
    until("their port is there", async || lab.nb.nbctl(&["lsp-list", "ts1"]).contains("ts1-az2")).await;
    other.stop();
    lab.create(&[Lab::route(&lab.zone("az2"), "ts1", "10.99.0.0/16", "169.254.101.77")]);
    lab.is_quiet().await;
    assert!(!lab.routes().contains("10.99."), "our port in the switch is on no gateway yet");
    lab.bind("cr-az1-ts1", "c1").await;
    until("the way is used", async || lab.routes().contains("10.99.0.0/16")).await;
    other.go_on();
    until("two ways to them", async || lab.routes().matches("10.244.0.0/16").count() == 2).await;
    until("two ways to us", async || other.routes().matches("10.128.0.0/14").count() == 2).await;
    until("their router balances", async || {
        let flows = other.sb.sbctl(&["lflow-list", "ovn-cluster"]);
        flows.lines().any(|flow| flow.contains("10.128.0.0/14") && flow.contains("select("))
    })
    .await;
    lab.shared[0].ctl("ovn-ic-nbctl", &["ts-del", "ts1"]);
    until("one way to them", async || lab.routes().matches("10.244.0.0/16").count() == 1).await;
    until("its port is gone", async || !lab.nb.nbctl(&["lrp-list", "ovn_cluster_router"]).contains("az1-ts1")).await;

    // off: nothing of it is left anywhere
    lab.configure(&[("enable-ic", "false")]).await;
    until("their prefix is gone", async || !lab.routes().contains("10.244.0.0/16")).await;
    until("our prefix is gone", async || !other.routes().contains("10.128.0.0/14")).await;
    until("we have left", async || !lab.zones().contains("az1")).await;
    until("the switch is gone", async || !lab.nb.nbctl(&["ls-list"]).contains("(ts)")).await;
    until("their chassis is gone", async || !lab.has_chassis("gw2")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_are_exchanged_with_ovn_23_03() {
    routes_are_exchanged(Release::Host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_are_exchanged_with_ovn_26_03() {
    routes_are_exchanged(Release::Lts).await;
}

/// The one that had the name first stays as it is, and so does one that is given the name of another one later.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_cluster_takes_changes_nothing() {
    let lab = Lab::up(Release::Lts).await;
    let (other, _engine) = joined(&lab).await;
    let before = lab.ports();
    lab.configure(&[("az-name", "az2")]).await;
    lab.event_says("another cluster has az-name \"az2\" too").await;
    assert_eq!(lab.ports(), before);
    assert!(lab.routes().contains("10.244.0.0/16") && other.routes().contains("10.128.0.0/14"));
    lab.configure(&[]).await;

    let zone = lab.zone("az1");
    let gateway = ["create", "gateway", "name=gw3", "hostname=gw3", &zone];
    let encap = ["--id=@e", "create", "encap", "ip=172.20.0.2", "type=geneve", "gateway_name=gw3", "--"];
    lab.shared[1].ctl("ovn-ic-sbctl", &[&encap[..], &gateway[..], &["encaps=@e"]].concat());
    lab.event_says("IC-SB has rows of another cluster under az-name \"az1\", which is this one's: gateway gw3").await;
    lab.is_quiet().await;
    assert_eq!(lab.ports(), before);
    assert!(lab.routes().contains("10.244.0.0/16"), "{}", lab.routes());
    // what this cluster writes goes on
    lab.subnet("ours", json!({"cidrBlock": "10.130.0.0/15", "disableInterConnection": true})).await;
    until("less is offered", async || lab.shared_rows().contains("10.128.0.0/15")).await;
    assert!(!lab.shared_rows().contains("10.128.0.0/14") && lab.shared_rows().contains("gw3"));
}

/// A cluster with both families says when no switch has one of them. A switch that gets it keeps its port and address.
#[tokio::test(flavor = "multi_thread")]
async fn a_switch_gets_another_family_later() {
    let lab = Lab::up(Release::Lts).await;
    lab.add_switch("ts", "169.254.100.0/24");
    let _engine = lab.dual_engine().await;
    lab.configure(&[]).await;
    lab.bind("cr-az1-ts", "c1").await;
    lab.event_says("do not reach those here by IPv6: no transit switch has a subnet of that family").await;
    until("IPv4 is offered", async || lab.shared_rows().contains("10.128.0.0/14")).await;
    let before = lab.ports();
    assert!(!lab.shared_rows().contains("fd01::/48"));
    lab.set_subnets("ts", "169.254.100.0/24,fe80:a9fe:64::/112");
    until("IPv6 is offered", async || lab.shared_rows().contains("fd01::/48")).await;
    let after = lab.ports();
    let [before, after] = [&before, &after].map(|ports| ports.first().unwrap().replace('"', ""));
    assert!(after.starts_with(&before) && after.contains(" fe80:a9fe:64::"), "{before} became {after}");
}

/// What people close is neither offered nor learned, from the moment they say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_a_subnet_closes_stays_here() {
    let lab = Lab::up(Release::Host).await;
    let (other, _engine) = joined(&lab).await;
    lab.subnet("ours", json!({"cidrBlock": "10.130.0.0/16", "disableInterConnection": true, "gateway": "10.130.0.1"}))
        .await;
    until("the rest is offered", async || other.routes().contains("10.131.0.0/16")).await;
    until("the whole is not", async || !other.routes().contains("10.128.0.0/14")).await;
    assert!(other.routes().contains("10.128.0.0/15"), "{}", other.routes());
    // other fields of Kube-OVN stay
    assert_eq!(lab.api.get("/apis/kubeovn.io/v1/subnets/ours").await["spec"]["gateway"], "10.130.0.1");

    lab.subnet("bad", json!({"cidrBlock": "10.244", "disableInterConnection": true})).await;
    lab.subnet("theirs", json!({"cidrBlock": "10.244.0.0/17", "disableInterConnection": true})).await;
    until("the rest of theirs is used", async || lab.routes().contains("10.244.128.0/17")).await;
    assert!(!lab.routes().contains("10.244.0.0/1"), "{}", lab.routes());
    lab.api.event("BadField", "bad").await;

    lab.subnet("theirs", json!({"cidrBlock": "10.244.0.0/16,fd10::/64"})).await;
    until("none of theirs is used", async || !lab.routes().contains("10.244.")).await;
    lab.subnet("theirs", json!({"disableInterConnection": false})).await;
    until("all of theirs is used", async || lab.routes().contains("10.244.0.0/16")).await;
    lab.delete_subnet("ours").await;
    until("all is offered", async || other.routes().contains("10.128.0.0/14")).await;
    until("and not in pieces", async || !other.routes().contains("10.131.0.0/16")).await;
}

/// Our own databases need nobody else to be rid of the others' rows.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_leaves_databases_that_are_dead() {
    let mut lab = Lab::up(Release::Lts).await;
    let (_other, _engine) = joined(&lab).await;
    lab.shared_mut().iter_mut().for_each(Server::kill);
    lab.configure(&[("enable-ic", "false")]).await;
    until("their prefix is gone", async || !lab.routes().contains("10.244.0.0/16")).await;
    until("their chassis is gone", async || !lab.has_chassis("gw2")).await;
    assert!(lab.has_chassis("c1"));
}

/// Until the other clusters know the new name, they have a way by the earlier one.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_gets_another_name_without_a_gap() {
    let lab = Lab::up(Release::Lts).await;
    let (other, engine) = joined(&lab).await;
    let no_gap = || {
        assert!(other.routes().contains("10.128.0.0/14"), "{}", other.routes());
        assert!(lab.routes().contains("10.244.0.0/16"), "{}", lab.routes());
        let ports = lab.ports();
        assert!(ports.iter().filter(|port| port.contains("/24")).count() == 1, "packets leave by one port: {ports:?}");
    };
    lab.configure(&[("az-name", "az7")]).await;
    until("the new port", async || {
        no_gap();
        lab.ports().len() == 2
    })
    .await;
    // as long as no gateway has the new port, nothing goes
    drop(engine);
    let _engine = lab.engine().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    no_gap();
    assert!(lab.zones().contains("az1"), "{}", lab.zones());
    lab.bind("cr-az7-ts", "c1").await;
    until("the earlier name is gone", async || {
        no_gap();
        !lab.zones().contains("az1")
    })
    .await;
    until("and its port", async || lab.ports().len() == 1).await;
    no_gap();
    assert!(lab.ports()[0].contains("az7-ts"), "{:?}", lab.ports());
    until("their port", async || other.chassis_of("ts-az7") == "c1").await;
    assert_eq!(other.chassis_of("ts-az1"), "");
}

/// Nothing is left and joined again where only the servers of the databases change.
#[tokio::test(flavor = "multi_thread")]
async fn other_servers_of_the_same_databases_change_no_row() {
    let lab = Lab::up(Release::Lts).await;
    let (other, _engine) = joined(&lab).await;
    lab.is_quiet().await;
    let before = lab.rows();
    for hosts in ["127.0.0.1,localhost", "localhost"] {
        lab.configure(&[("ic-db-host", hosts)]).await;
        for _ in 0..20 {
            assert!(other.routes().contains("10.128.0.0/14"), "{}", other.routes());
            assert_eq!(lab.rows(), before);
        }
    }
    lab.configure(&[("ic-db-host", "localhost"), ("gw-nodes", "n1,n2")]).await;
    lab.event_says("cannot use n2 of key gw-nodes").await;
}

/// A cluster stays where it is until it has reached the databases that people name, and does not wait for dead ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_moves_to_other_databases() {
    let mut lab = Lab::up(Release::Lts).await;
    let (other, _engine) = joined(&lab).await;
    lab.configure(&[("ic-nb-port", "1"), ("ic-sb-port", "1")]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(other.routes().contains("10.128.0.0/14"), "{}", other.routes());

    let first = std::mem::replace(&mut lab.shared, Arc::new(shared(Release::Lts)));
    lab.configure(&[]).await;
    until("it is in the others", async || lab.zones().contains("az1")).await;
    let zones = || first[1].ctl("ovn-ic-sbctl", &["--bare", "--columns=name", "list", "availability_zone"]);
    until("it has left the first ones", async || !zones().contains("az1")).await;

    let mut second = std::mem::replace(&mut lab.shared, first);
    Arc::get_mut(&mut second).unwrap().iter_mut().for_each(Server::kill);
    let begun = Instant::now();
    lab.configure(&[]).await;
    until("it is in the first ones again", async || lab.zones().contains("az1")).await;
    assert!(begun.elapsed() < Duration::from_secs(8), "it waited for dead databases: {:?}", begun.elapsed());
}

/// What metrics say of the other clusters.
fn series(engine: &Running, name: &str) -> Vec<String> {
    let (text, prefix) = (engine.metrics.text().unwrap(), format!("ovnkube_interconnection_{name}"));
    text.lines().filter_map(|line| Some(line.strip_prefix(&prefix)?.to_owned())).collect()
}

/// A cluster whose controller is dead keeps its routes, and people are told.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_does_not_follow_is_silent() {
    let lab = Lab::up(Release::Lts).await;
    lab.add_switch("ts", "169.254.100.0/24");
    let other = Other::join(&lab, "az2", "ts", "169.254.100.77/24").await;
    let listening = Listening { ask_after: Duration::from_secs(1), silent_after: Duration::from_secs(4) };
    let engine = lab.engine_that(listening).await;
    join(&lab, &other).await;
    let is = |name: &str, text: &str| series(&engine, name).iter().any(|series| series == text);
    let asked =
        || lab.shared[0].ctl("ovn-ic-nbctl", &["get", "ic_nb_global", ".", "nb_ic_cfg"]).parse::<u64>().unwrap();
    let begun = asked();
    until("it asks", async || asked() > begun + 5).await;
    assert!(is("silent", "{az=\"az2\"} 0"), "{}", engine.metrics.text().unwrap());
    // when it asked is known to whoever looks, also to a program that has not followed
    let questions = lab.shared[0].ctl("ovn-ic-nbctl", &["get", "ic_nb_global", ".", "external_ids:ovnkube-questions"]);
    let words: Vec<u64> = questions.trim_matches('"').split(' ').map(|word| word.parse().unwrap()).collect();
    assert!(matches!(words[..], [last, at, before, was] if last == before + 1 && at >= was), "{questions}");
    // OVN's tool waits for all clusters, ours too
    lab.shared[0].ctl("ovn-ic-nbctl", &["--timeout=20", "--wait=sb", "sync"]);

    other.stop();
    lab.event_says("cluster az2 is silent").await;
    until("a metric says so", async || is("silent", "{az=\"az2\"} 1")).await;
    assert!(lab.routes().contains("10.244.0.0/16"), "{}", lab.routes());
    other.go_on();
    until("it is there again", async || is("silent", "{az=\"az2\"} 0")).await;

    assert!(is("clusters", " 1") && is("gateways", "{az=\"az2\"} 1"), "{}", engine.metrics.text().unwrap());
    assert!(is("routes", "{az=\"az2\",state=\"used\"} 1"), "{}", engine.metrics.text().unwrap());
    lab.configure(&[("enable-ic", "false")]).await;
    until("there is nothing to say", async || series(&engine, "").is_empty()).await;
}

/// Of two clusters that offer the same addresses, the one that joined first is used, also after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_clusters_with_the_same_addresses_the_earlier_one_is_used() {
    let lab = Lab::up(Release::Lts).await;
    let (other, engine) = joined(&lab).await;
    lab.add_cluster("az0", "gw0", "172.20.0.2", "ts", (9, "169.254.100.66/24"));
    let zone = lab.zone("az0");
    let route = |prefix: &str| Lab::route(&zone, "ts", prefix, "169.254.100.66");
    lab.create(&["10.244.0.0/16", "10.244.9.0/24", "10.9.0.0/16"].map(route));
    until("what nobody else has is used", async || lab.routes().contains("10.9.0.0/16")).await;
    lab.event_says("10.244.0.0/16: it overlaps 10.244.0.0/16 of cluster az2, which joined earlier; give one").await;
    lab.event_says("10.244.9.0/24: it overlaps 10.244.0.0/16 of cluster az2").await;
    let is_first = || assert!(lab.routes().matches("10.244.").count() == 1, "{}", lab.routes());
    is_first();
    drop(engine);
    let _engine = lab.engine().await;
    lab.is_quiet().await;
    is_first();
    assert!(lab.routes().contains("169.254.100.77"), "{}", lab.routes());
    // what is left of the earlier one is removed, as ovnkube ic clean does it
    other.stop();
    for table in ["route", "port_binding", "gateway", "availability_zone"] {
        let column = if table == "availability_zone" { "name=az2".to_owned() } else { lab.zone("az2") };
        lab.destroy(table, &[&column]);
    }
    until("the later one is used", async || lab.routes().matches("10.244.").count() == 2).await;
}

/// OVN's own daemon would do it, but a network of ovnkube's clusters has none. A key that is told earlier than its switch stays, and
/// one that was left before a master started goes.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_switch_goes_with_the_last_port_in_it() {
    for (release, restarts) in [(Release::Host, false), (Release::Lts, true)] {
        let lab = Lab::up(release).await;
        lab.add_switch("ts", "169.254.100.0/24");
        let engine = lab.engine().await;
        lab.configure(&[]).await;
        let keys = || {
            let keys =
                lab.shared[1].ctl("ovn-ic-sbctl", &["--bare", "--columns=transit_switch", "list", "datapath_binding"]);
            keys.split_whitespace().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        until("the first one has a key", async || keys().len() == 1).await;
        let key = ["create", "datapath_binding", "transit_switch=ts1", "tunnel_key=16711690"];
        lab.shared[1].ctl("ovn-ic-sbctl", &key);
        tokio::time::sleep(Duration::from_secs(5)).await;
        lab.add_switch("ts1", "169.254.101.0/24");
        lab.add_cluster("az2", "gw2", "172.20.0.2", "ts1", (9, "169.254.101.66/24"));
        until("our port is there", async || lab.shared_rows().contains("ts1-az1")).await;
        assert!(lab.shared_rows().contains("16711690") && keys().len() == 2, "{}", lab.shared_rows());
        lab.shared[0].ctl("ovn-ic-nbctl", &["ts-del", "ts1"]);
        until("our port is gone", async || !lab.shared_rows().contains("ts1-az1")).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(keys().len(), 2, "another cluster still has a port there");
        let engine = (!restarts).then_some(engine);
        lab.shared[1].ctl("ovn-ic-sbctl", &["--all", "destroy", "port_binding"]);
        let _engine = match engine {
            Some(engine) => engine,
            None => lab.engine().await,
        };
        until("its key is gone", async || keys().into_iter().eq(["ts"])).await;
    }
}

/// People hear once that it waits, and for what.
#[tokio::test(flavor = "multi_thread")]
async fn what_interconnection_waits_for_is_an_event() {
    let lab = Lab::up(Release::Lts).await;
    let daemon = Daemon::ic(&lab.nb, &lab.sb, [&lab.shared[0], &lab.shared[1]]);
    until("ovn-ic works", async || daemon.ic_is_active(&lab.nb)).await;
    lab.add_switch("ts", "169.254.100.0/24");
    let other = Other::join(&lab, "az2", "ts", "169.254.100.77/24").await;
    let engine = lab.engine().await;
    lab.configure(&[]).await;
    lab.event_says("stays as it is: another program holds the lock ovn_ic of the southbound database; stop ovn-ic")
        .await;
    drop(daemon);
    lab.bind("cr-az1-ts", "c1").await;
    are_joined(&lab, &other).await;
    // one that comes later does nothing
    let daemon = Daemon::ic(&lab.nb, &lab.sb, [&lab.shared[0], &lab.shared[1]]);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!daemon.ic_is_active(&lab.nb));
    are_joined(&lab, &other).await;
    drop(daemon);
    let is_well = || series(&engine, "problems").iter().any(|series| series == " 0");
    until("all is well", async || is_well()).await;

    lab.configure(&[("ic-nb-port", "1"), ("ic-sb-port", "1")]).await;
    let says =
        "stays in the previous databases: the northbound interconnection database cannot be reached at port 1 of";
    lab.event_says(says).await;
    lab.configure(&[]).await;
    until("all is well", async || is_well()).await;

    lab.shared[1].signal("STOP");
    let stopped = Instant::now();
    let says = "stays as it is: the southbound interconnection database cannot be reached at port";
    lab.event_says(says).await;
    // at most 10 s of silence until it counts as lost; it is said 10 s after that
    assert!(stopped.elapsed() < Duration::from_secs(24), "{:?}", stopped.elapsed());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(lab.events_that_say(says).await, 1);
    assert!(lab.routes().contains("10.244.0.0/16"), "{}", lab.routes());
    lab.shared[1].signal("CONT");
    until("all is well", async || is_well()).await;
}

/// It is not the server that is at fault.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_tls_is_not_reached_without_a_certificate() {
    let lab = Lab::up(Release::Lts).await;
    let _engine = lab.engine().await;
    lab.configure(&[("ic-db-host", "ssl:127.0.0.1")]).await;
    lab.event_says("cannot be reached: ic-db-host has ssl:, and this master has no certificate; give it").await;
}

/// Two clusters may be given the same name by mistake. The second one writes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_cluster_has_is_refused() {
    let lab = Lab::up(Release::Lts).await;
    lab.add_switch("ts", "169.254.100.0/24");
    let other = Other::join(&lab, "az1", "ts", "169.254.100.77/24").await;
    let before = lab.shared_rows();
    let _engine = lab.engine().await;
    lab.configure(&[]).await;
    lab.event_says("another cluster has az-name \"az1\" too").await;
    assert_eq!(lab.shared_rows(), before);
    drop(other);
}

/// A cluster that offers everything and far too much gets what one cluster may have, and its neighbours work on.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_routes_of_a_cluster_are_bounded() {
    let lab = Lab::up(Release::Lts).await;
    let (other, engine) = joined(&lab).await;
    other.stop();
    let zone = lab.zone("az2");
    let route = |prefix: String| Lab::route(&zone, "ts", &prefix, "169.254.100.77");
    lab.create(&["0.0.0.0/0", "::/0", "10.0.0.0/8"].map(|prefix| route(prefix.into())));
    for part in 0..10 {
        let routes: Vec<_> = (0..1000).map(|n| route(format!("20.{}.{}.0/24", part * 4 + n / 250, n % 250))).collect();
        lab.create(&routes);
    }
    let is =
        |state: &str, n: usize| series(&engine, "routes").contains(&format!("{{az=\"az2\",state=\"{state}\"}} {n}"));
    until("all are judged", async || is("used", 1024) && is("refused", 10_001 + 2 - 1024)).await;
    until("those that are used are there", async || lab.routes().matches("169.254.100.77").count() == 1024).await;
    lab.event_says("0.0.0.0/0: it is everything").await;
    lab.event_says("10.0.0.0/8: it overlaps 10.128.0.0/14, which this cluster uses for pods").await;
    assert!(!lab.routes().contains("0.0.0.0/0 "), "{}", lab.routes());

    // its own network goes on
    lab.api.node("n2", json!({"k8s.ovn.org/node-chassis-id": "c2"})).await;
    until("another node has its switch", async || lab.nb.nbctl(&["ls-list"]).contains("(n2)")).await;
    lab.shared[1].ctl("ovn-ic-sbctl", &["--all", "destroy", "route"]);
    until("none is left", async || !lab.routes().contains("169.254.100.77")).await;
}

/// Whatever other clusters write, this cluster's own network stays as it is, and what can be used is used.
#[tokio::test(flavor = "multi_thread")]
async fn bad_rows_of_other_clusters_are_left_out() {
    let lab = Lab::up(Release::Lts).await;
    lab.shared[0].ctl("ovn-ic-nbctl", &["ts-add", "join"]);
    lab.shared[0].ctl("ovn-ic-nbctl", &["ts-add", "none"]);
    let (other, _engine) = joined(&lab).await;
    let zone = lab.zone("az2");
    other.stop();
    let create = |table: &str, columns: &[&str]| {
        lab.shared[1].ctl("ovn-ic-sbctl", &[&["create", table, &zone], columns].concat());
    };
    let route = ["transit_switch=ts", "origin=static", "route_table=\"\""];
    for (prefix, next_hop) in [
        ("0.0.0.0/0", "169.254.100.77"),
        ("10.129.0.0/16", "169.254.100.77"),
        ("10.96.7.0/24", "169.254.100.77"),
        ("20.1.0.0/16", "169.254.100.200"),
        ("20.2.0.0/16", "172.18.1.1"),
        ("nonsense", "169.254.100.77"),
        ("20.3.0.0/16", "169.254.100.77"),
    ] {
        let (prefix, next_hop) = (format!("ip_prefix=\"{prefix}\""), format!("nexthop=\"{next_hop}\""));
        create("route", &[&route[..], &[&prefix, &next_hop]].concat());
    }
    for (number, name) in ["k8s-n1", "stor-n1", "a_pod", "ts-\\\"||1"].iter().enumerate() {
        let (name, key) = (format!("logical_port=\"{name}\""), format!("tunnel_key={}", 100 + number));
        let address = format!("address=\"0a:58:a9:fe:64:{:02x} 169.254.100.{}/24\"", 90 + number, 90 + number);
        create("port_binding", &["transit_switch=ts", &name, &key, &address]);
    }
    until("the good one is used", async || lab.routes().contains("20.3.0.0/16")).await;
    let routes = lab.routes();
    for prefix in ["0.0.0.0/0 ", "10.129", "10.96.7", "20.1.", "20.2.", "nonsense"] {
        assert!(!routes.contains(prefix), "{prefix}: {routes}");
    }
    let ports = lab.nb.nbctl(&["lsp-list", "ts"]);
    assert!(ports.lines().count() == 2, "{ports}");
    let switches = lab.nb.nbctl(&["ls-list"]);
    assert!(!switches.contains("(none)"), "{switches}");
    for says in [
        "10.129.0.0/16: it overlaps 10.128.0.0/14, which this cluster uses for pods",
        "cannot use transit switch",
        "k8s-n1",
    ] {
        lab.event_says(says).await;
    }
}
