//! The controller crashes after each of its writes in turn and starts again: no address is ever assigned
//! twice, nothing is left over, and a last start has nothing to write.

use ovnkube_model::Change;
use ovnkube_tests::dump::Dump;
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, rules};
use serde_json::json;

type Happens = fn(&mut Objects) -> Vec<Change>;

/// The events in order; the writes of the previous one may be unfinished at each.
const STORY: &[Happens] = &[
    |o| o.put(node("n1")),
    |o| o.put(namespace("a")),
    |o| o.put(pod("a", "p1", "n1")),
    |o| o.put(pod("a", "p2", "n1")),
    |o| o.put(node("n2")),
    |o| o.put(pod("a", "q1", "n2")),
    |o| o.delete("Pod", "a", "p1"),
    |o| o.put(pod("a", "p3", "n1")),
    // requests the address of the deleted pod
    |o| {
        let mut fixed = pod("a", "fixed", "n1");
        fixed["metadata"]["annotations"] = json!({"v1.multus-cni.io/default-network": r#"[{"ips":["10.128.0.3"]}]"#});
        o.put(fixed)
    },
    // the same name on another node
    |o| [o.delete("Pod", "a", "p2"), o.put(pod("a", "p2", "n2"))].concat(),
    |o| o.merge(&json!({"kind": "Pod", "metadata": {"namespace": "a", "name": "q1"}, "status": {"phase": "Failed"}})),
    |o| o.put(pod("a", "q2", "n2")),
    |o| o.delete("Node", "", "n2"),
    |o| o.put(node("n3")),
    |o| o.put(pod("a", "r1", "n3")),
    |o| o.delete("Pod", "a", "q2"),
    |o| o.delete("Namespace", "", "a"),
    |o| o.put(namespace("a")),
    |o| o.put(node("n2")),
];

/// Plays the story with a crash after write `crash`, doing up to `pace` writes after each event;
/// returns the total number of writes.
async fn play(server: &Server, crash: usize, pace: usize, annotations_first: bool) -> usize {
    let mut objects = Objects::default();
    let network = Settings::default().network();
    let mut controller = Controller::start(network.clone(), server.client().await, &objects);
    (controller.batch, controller.rows) = (2, 3);
    let mut written = 0;
    for happens in STORY {
        let changes = happens(&mut objects);
        controller.take(changes);
        for _ in 0..pace {
            if controller.step(&mut objects, annotations_first).await.is_none() {
                break;
            }
            rules::addresses_are_unique(&controller.nb.cache());
            rules::subnets_are_unique(&controller.nb.cache());
            written += 1;
            if written == crash {
                controller = Controller::start(network.clone(), server.client().await, &objects);
                (controller.batch, controller.rows) = (2, 3);
            }
        }
    }
    while controller.step(&mut objects, annotations_first).await.is_some() {
        rules::addresses_are_unique(&controller.nb.cache());
        written += 1;
        if written == crash {
            controller = Controller::start(network.clone(), server.client().await, &objects);
        }
    }
    check(&mut objects, &controller).await;
    written
}

/// I1, I2, I3 and I8, and the rows equal those of a fresh controller.
pub(crate) async fn check(objects: &mut Objects, controller: &Controller) {
    rules::addresses_are_unique(&controller.nb.cache());
    rules::pods_are_wired(objects, &controller.world, &controller.nb.cache());
    let network = controller.world.settings.clone();
    let rows = Dump::of(&controller.nb);
    let mut again = Controller::start(network.clone(), controller.nb.clone(), objects);
    let (transactions, patches) = again.settle(objects).await;
    assert_eq!((transactions, patches), (0, Vec::new()), "{}", Dump::of(&controller.nb).since(&rows));
    let empty = Server::new(Release::Lts);
    let mut fresh = Controller::start(network, empty.client().await, objects);
    let (_, patches) = fresh.settle(objects).await;
    assert_eq!(patches, Vec::new(), "annotations of a fresh start");
    let fresh = Dump::of(&fresh.nb);
    assert_eq!(rows.since(&fresh), "", "rows that a fresh start would not make");
    assert_eq!(fresh.since(&rows), "", "rows that a fresh start would also make");
}

async fn crash_everywhere(pace: usize, annotations_first: bool) {
    let all = play(&Server::new(Release::Lts), 0, pace, annotations_first).await;
    assert!(all > 30, "a story of {all} writes is too short");
    for crash in 1..=all {
        play(&Server::new(Release::Lts), crash, pace, annotations_first).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_each_write_of_a_slow_controller() {
    crash_everywhere(2, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_each_write_with_annotations_before_rows() {
    crash_everywhere(100, true).await;
}
