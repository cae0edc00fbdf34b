//! Whatever happened to nodes and pods: once everything is annotated, a start decides what is decided already.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::tests::{ONE, Story, with_meta};
use crate::{Change, Pod, PodFields, PodKey, keys};

#[derive(Debug, Clone, Copy)]
enum Event {
    NodeComes(u8),
    NodeGoes(u8),
    /// The pod, bound to the node.
    PodComes(u8, u8),
    PodStarts(u8),
    PodGoes(u8),
    /// Another program takes over.
    Restarts,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0u8..3).prop_map(Event::NodeComes),
        3 => (0u8..3).prop_map(Event::NodeGoes),
        4 => (0u8..3, 0u8..3).prop_map(|(pod, node)| Event::PodComes(pod, node)),
        4 => (0u8..3).prop_map(Event::PodStarts),
        1 => (0u8..3).prop_map(Event::PodGoes),
        2 => Just(Event::Restarts),
    ]
}

/// What the API server has of a pod.
#[derive(Debug, Clone, Default)]
struct Shown {
    created: i64,
    node: String,
    annotation: Option<String>,
    ips: Vec<std::net::IpAddr>,
}

#[derive(Debug, Clone, Default)]
struct Api {
    /// With their subnets.
    nodes: BTreeMap<String, Vec<String>>,
    pods: BTreeMap<String, Shown>,
}

fn tell_node(story: &mut Story, name: &str, subnets: &[String]) {
    let text = format!(r#"{{"default":{subnets:?}}}"#);
    let annotations: &[_] = if subnets.is_empty() { &[] } else { &[(keys::NODE_SUBNETS, text.as_str())] };
    story.node(name, annotations);
}

fn tell_pod(story: &mut Story, name: &str, pod: &Shown) {
    let fields = PodFields { node_name: Some(&pod.node), ips: &pod.ips, ..PodFields::default() };
    let annotations: Vec<_> = pod.annotation.iter().map(|text| (keys::POD_NETWORKS, text.as_str())).collect();
    let parsed =
        with_meta(&format!("{name}-{}", pod.created), pod.created, &annotations, |meta| Pod::parse(meta, fields));
    story.world.apply(Change::Pod(PodKey::new("ns", name), Some(Box::new(parsed))));
}

impl Api {
    /// Writes what the story decided, as its program would; true if there was anything to write.
    fn obeys(&mut self, story: &mut Story) -> bool {
        let mut changed = false;
        for (name, shown) in &mut self.nodes {
            let decided: Vec<_> = subnets(story, name);
            if !decided.is_empty() && *shown != decided {
                shown.clone_from(&decided);
                tell_node(story, name, &decided);
                changed = true;
            }
        }
        for (name, shown) in &mut self.pods {
            let entry = &story.world.pods[&PodKey::new("ns", name.as_str())];
            let Some(addresses) = &entry.addresses else { continue };
            let ips: Vec<_> = addresses.ips.iter().map(ToString::to_string).collect();
            let text = format!(r#"{{"default":{{"ip_addresses":{ips:?},"mac_address":"{}"}}}}"#, addresses.mac);
            if shown.annotation.as_ref() != Some(&text) {
                shown.annotation = Some(text);
                tell_pod(story, name, shown);
                changed = true;
            }
        }
        changed
    }

    fn shows(&mut self, story: &mut Story) {
        for _ in 0..20 {
            if !self.obeys(story) {
                return;
            }
        }
        panic!("writes without end");
    }

    /// A program that starts now.
    fn start(&self, ranges: &[(&str, u8)]) -> Story {
        let mut story = Story::new(ranges);
        self.nodes.iter().for_each(|(name, subnets)| tell_node(&mut story, name, subnets));
        self.pods.iter().for_each(|(name, pod)| tell_pod(&mut story, name, pod));
        story.sync();
        story
    }

    fn happens(&mut self, story: &mut Story, event: Event, now: i64, ranges: &[(&str, u8)]) {
        match event {
            Event::NodeComes(n) => {
                let name = format!("n{n}");
                self.nodes.entry(name.clone()).or_insert_with(|| {
                    tell_node(story, &name, &[]);
                    Vec::new()
                });
            }
            Event::NodeGoes(n) => {
                let name = format!("n{n}");
                self.nodes.remove(&name);
                story.world.apply(Change::Node(name.as_str().into(), None));
            }
            Event::PodComes(p, n) => {
                let name = format!("p{p}");
                self.pods.entry(name.clone()).or_insert_with(|| {
                    let pod = Shown { created: now, node: format!("n{n}"), ..Shown::default() };
                    tell_pod(story, &name, &pod);
                    pod
                });
            }
            Event::PodStarts(p) => {
                let name = format!("p{p}");
                let Some(pod) = self.pods.get_mut(&name).filter(|pod| pod.ips.is_empty()) else { return };
                let Some(addresses) = &story.world.pods[&PodKey::new("ns", name.as_str())].addresses else { return };
                if pod.annotation.is_some() {
                    pod.ips = addresses.each().collect();
                    tell_pod(story, &name, pod);
                }
            }
            Event::PodGoes(p) => {
                self.pods.remove(&format!("p{p}"));
                story.gone(&format!("p{p}"));
            }
            Event::Restarts => *story = self.start(ranges),
        }
    }
}

fn subnets(story: &Story, node: &str) -> Vec<String> {
    let network = story.world.node_networks.get(node);
    network.iter().flat_map(|network| &network.subnets).map(ToString::to_string).collect()
}

fn decided(story: &Story, api: &Api) -> BTreeMap<String, Vec<String>> {
    let nodes = api.nodes.keys().map(|name| (name.clone(), subnets(story, name)));
    let pods = api.pods.keys().map(|name| (name.clone(), story.ips(name)));
    nodes.chain(pods).collect()
}

proptest! {
    #[test]
    fn a_start_decides_what_is_decided(
        events in prop::collection::vec((event(), prop::bool::weighted(0.8)), 1..40),
        dual in any::<bool>(),
        is_tight in any::<bool>(),
    ) {
        let v4 = if is_tight { ("10.1.0.0/23", 24) } else { ("10.1.0.0/16", 24) };
        let ranges = &[v4, ("fd01::/48", 64)][..if dual { 2 } else { 1 }];
        let (mut story, mut api) = (Story::settled(ranges), Api::default());
        for (now, (event, is_shown)) in events.iter().enumerate() {
            api.happens(&mut story, *event, i64::try_from(now).unwrap(), ranges);
            if *is_shown {
                api.shows(&mut story);
            }
        }
        api.shows(&mut story);
        let again = api.start(ranges);
        prop_assert_eq!(decided(&story, &api), decided(&again, &api));
    }
}

fn all_happen(events: &[Event]) -> (Story, Api) {
    let (mut story, mut api) = (Story::settled(ONE), Api::default());
    for (now, event) in (0..).zip(events) {
        api.happens(&mut story, *event, now, ONE);
        api.shows(&mut story);
    }
    (story, api)
}

/// The first pod runs in the subnet that the node had before it was deleted and another node got it. The second one keeps the node in its new
/// subnet; when it goes, the node gets the former one again.
#[test]
fn a_node_returns_to_its_pod_when_the_pod_that_kept_it_goes() {
    let (story, api) = all_happen(&[
        Event::NodeComes(0),
        Event::PodComes(0, 0),
        Event::PodStarts(0),
        Event::NodeGoes(0),
        Event::NodeComes(1),
        Event::NodeComes(0),
        Event::PodComes(1, 0),
        Event::PodStarts(1),
        Event::NodeGoes(1),
        Event::PodGoes(1),
    ]);
    assert_eq!(subnets(&story, "n0"), ["10.1.0.0/24"]);
    assert_eq!(decided(&story, &api), decided(&api.start(ONE), &api));
}

#[test]
fn a_node_follows_its_running_pod_when_another_leaves_the_subnet() {
    let (story, _) = all_happen(&[
        Event::NodeComes(1),
        Event::PodComes(3, 1),
        Event::PodStarts(3),
        Event::NodeGoes(1),
        Event::Restarts,
        Event::NodeComes(2),
        Event::NodeComes(1),
        Event::NodeGoes(2),
    ]);
    assert_eq!(story.ips("p3"), ["10.1.0.3/24"]);
}
