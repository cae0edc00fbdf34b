//! Ranges of services: those that were given, and those of `ServiceCIDR` objects that are nobody else's; all but the
//! addresses of nodes in them.

use ipnetwork::IpNetwork;
use ovnkube_model::{Object, ServiceCidr, Subnet};

use crate::Warning;
use crate::services::Want;

/// What no service may have an address of, and what for.
pub(super) struct Taken<'a> {
    pub(super) cluster: &'a [Subnet],
    pub(super) join: &'a [Subnet],
    pub(super) masquerade: &'a [Subnet],
    /// The node's addresses with their networks.
    pub(super) host: &'a [IpNetwork],
}

/// What is served, in as few pieces as that takes; with what is wrong with the others, in the order of their objects.
pub(super) fn of_services(node: &str, given: &[Subnet], want: &Want, taken: &Taken<'_>) -> (Vec<Subnet>, Vec<Warning>) {
    let (mut served, mut wrong) = (given.to_vec(), Vec::new());
    for (name, ServiceCidr { uid, cidrs, bad }) in &want.ranges {
        let mut warn = |reason, message| {
            let about = Some(Object::ServiceCidr { name: name.clone(), uid: uid.clone() });
            wrong.push(Warning { about, reason, message });
        };
        for text in bad {
            let why = "is no range; write it without host bits, as 10.97.0.0/16";
            warn("BadField", format!("spec.cidrs: {text:?} {why}"));
        }
        for cidr in cidrs.iter().filter(|cidr| taken.has_family_of(**cidr)) {
            if served.contains(cidr) {
                continue;
            }
            match taken.by(*cidr) {
                // until it is known which addresses nodes have, some of it may be theirs
                None => served.extend(want.nodes.as_ref().map(|_| *cidr)),
                Some(whose) => {
                    let message = format!("node {node} does not reach services of {cidr}: it overlaps {whose}");
                    warn("RangeConflict", format!("{message}; use another range"));
                }
            }
        }
    }
    let nodes: Vec<_> = want.nodes.iter().flatten().map(|ip| Subnet::of(IpNetwork::from(*ip))).collect();
    let mut pieces: Vec<_> = served.iter().flat_map(|range| range.without(&nodes)).collect();
    // ranges may lie in each other
    pieces.sort_unstable();
    pieces.dedup();
    (pieces, wrong)
}

impl Taken<'_> {
    fn has_family_of(&self, cidr: Subnet) -> bool {
        self.cluster.iter().any(|range| range.is_ipv6() == cidr.is_ipv6())
    }

    /// Whom the range shares addresses with.
    fn by(&self, cidr: Subnet) -> Option<String> {
        let lists = [("cluster", self.cluster), ("join", self.join), ("masquerade", self.masquerade)];
        let mut subnets = lists.into_iter().flat_map(|(what, list)| list.iter().map(move |range| (what, *range)));
        let subnet = subnets.find(|(_, range)| range.overlaps(cidr));
        let host = || self.host.iter().find(|address| Subnet::of(**address).overlaps(cidr));
        subnet
            .map(|(what, range)| format!("{what} subnet {range}"))
            .or_else(|| host().map(|address| format!("the network of its address {address}")))
    }
}
