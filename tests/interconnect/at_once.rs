//! Two clusters of ovnkube that join at the same time.

use std::collections::BTreeSet;
use std::sync::Arc;

use ovnkube_apply::Listening;
use ovnkube_tests::nb::{Release, until};
use ovnkube_tests::settings::Settings;

use crate::lab::{Lab, shared};

/// With room for two in each, so that both often want the same address first.
const SWITCHES: u8 = 6;

/// Each gets an address in every switch, and none has both. Neither is told of a failure, and a restart finds nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_join_at_once() {
    let both = Arc::new(shared(Release::Host));
    let (one, two) =
        (Lab::of(both.clone(), ("c1", "172.18.0.2")).await, Lab::of(both.clone(), ("c2", "172.19.0.2")).await);
    for n in 0..SWITCHES {
        one.add_switch(&format!("ts{n}"), &format!("169.254.{n}.0/30"));
    }
    let other = Settings { cluster_subnets: "10.64.0.0/14/23".into(), ..Settings::default() };
    let other_engine = async || two.engine_of(&other, Listening::default()).await;
    one.configure(&[]).await;
    two.configure(&[("az-name", "az2")]).await;

    both.iter().for_each(|server| server.signal("STOP"));
    let engines = (one.engine().await, other_engine().await);
    both.iter().for_each(|server| server.signal("CONT"));
    for (lab, zone, chassis) in [(&one, "az1", "c1"), (&two, "az2", "c2")] {
        until("it has ports in all switches", async || lab.ports().len() == usize::from(SWITCHES)).await;
        for n in 0..SWITCHES {
            lab.bind(&format!("cr-{zone}-ts{n}"), chassis).await;
        }
    }
    for (lab, prefix) in [(&one, "10.64.0.0/14"), (&two, "10.128.0.0/14")] {
        until("each switch is a way", async || lab.routes().matches(prefix).count() == usize::from(SWITCHES)).await;
    }
    let [ports, others] = [&one, &two].map(|lab| {
        let addresses = lab.ports().into_iter().filter_map(|port| Some(port.split_once(',')?.1.to_owned()));
        addresses.collect::<BTreeSet<_>>()
    });
    assert_eq!((ports.len(), ports.intersection(&others).count()), (usize::from(SWITCHES), 0), "{ports:?} {others:?}");
    for lab in [&one, &two] {
        assert_eq!(lab.events_that_say("cannot").await, 0);
        lab.is_quiet().await;
    }

    let before = (one.everything(), two.everything());
    drop(engines);
    let engines = (one.engine().await, other_engine().await);
    for lab in [&one, &two] {
        lab.is_quiet().await;
    }
    assert_eq!((one.everything(), two.everything()), before);
    assert_eq!((engines.0.writes(), engines.1.writes()), ((0, 0), (0, 0)));
}
