//! Any annotation value is parsed without harm, in bounded time and memory.

use std::collections::BTreeMap;

use ovnkube_model::{Meta, Node, NodeFields, Pod, PodAnnotation, PodFields, keys};

const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "default",
    "ip_addresses",
    "mac_address",
    "ips",
    "mac",
    "gateway_ips",
    "routes",
    "10.128.0.3/23",
    "fd01::/64",
    "0a:58:0a:80:00:03",
    "0",
    "-1",
    "99999999999999999999",
    "null",
    "true",
    "\u{0}",
    "é",
];

fn read(text: &str) {
    let annotations: BTreeMap<String, String> = [
        keys::POD_NETWORKS,
        keys::DEFAULT_NETWORK,
        keys::NODE_SUBNETS,
        keys::NODE_ID,
        keys::MGMT_PORT_MACS,
        keys::HYBRID_SUBNET,
        keys::CHASSIS_ID,
    ]
    .iter()
    .map(|key| ((*key).to_owned(), text.to_owned()))
    .collect();
    let meta = Meta { uid: "u", created: 0, labels: &BTreeMap::new(), annotations: &annotations };
    let pod = Pod::parse(&meta, PodFields::default());
    if let Some(annotated) = &pod.annotated {
        assert!(annotated.addresses.ips.len() <= 2);
        assert!(annotated.addresses.mac.is_unicast());
    }
    assert!(pod.bad.len() <= 2);
    let node = Node::parse(&meta, NodeFields::default());
    assert!(node.subnets.len() <= 2 && node.bad.len() <= 4);
    assert!(PodAnnotation::parse(text).is_ok() == pod.annotated.is_some());
}

#[test]
fn text_of_pieces() {
    bolero::check!().with_type::<Vec<u8>>().for_each(|picks| {
        read(&picks.iter().map(|pick| PIECES[usize::from(*pick) % PIECES.len()]).collect::<String>());
    });
}

#[test]
fn any_text() {
    bolero::check!().with_type::<String>().for_each(|text| read(text));
}

#[test]
fn deep_and_long_text() {
    for text in [
        "[".repeat(1 << 20),
        "{\"default\":".repeat(1 << 16),
        "1".repeat(1 << 20),
        format!("{{\"default\":[{}\"\"]}}", "\"10.0.0.0/24\",".repeat(1 << 16)),
    ] {
        read(&text);
    }
}
