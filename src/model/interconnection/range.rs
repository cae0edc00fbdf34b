//! Ranges of addresses that people and other clusters name.

use std::sync::LazyLock;

use ipnetwork::IpNetwork;
use ovnkube_ipam::Subnet;

/// As in Kube-OVN, the address may be any one of the range.
pub(super) fn range(text: &str) -> Option<Subnet> {
    let network: IpNetwork = text.parse().ok()?;
    text.contains('/').then(|| Subnet::of(network))
}

/// The prefix, and all ranges that contain it: the largest first.
pub(super) fn around(prefix: Subnet) -> impl DoubleEndedIterator<Item = Subnet> {
    (0..=prefix.prefix()).filter_map(move |length| IpNetwork::new(prefix.base(), length).ok().map(Subnet::of))
}

/// Addresses that no pod of any cluster has, and what they are.
static NOBODYS: LazyLock<Vec<(Subnet, &str)>> = LazyLock::new(|| {
    let all = [
        ("0.0.0.0/8", "no hosts'"),
        ("127.0.0.0/8", "every host's own"),
        ("169.254.0.0/16", "link-local"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/127", "every host's own"),
        ("fe80::/10", "link-local"),
        ("ff00::/8", "multicast"),
    ];
    all.into_iter().filter_map(|(text, what)| Some((range(text)?, what))).collect()
});

/// Why nobody's traffic for the prefix goes to another cluster.
pub fn nowhere(prefix: Subnet) -> Option<String> {
    if prefix.prefix() == 0 {
        return Some("it is everything".into());
    }
    let (range, what) = NOBODYS.iter().find(|(range, _)| range.overlaps(prefix))?;
    Some(if range.contains_subnet(prefix) {
        format!("its addresses are {what}")
    } else {
        format!("it contains {range}, whose addresses are {what}")
    })
}
