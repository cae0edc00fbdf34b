//! Ranges of services: the configured ones, and those of `ServiceCIDR` objects that overlap no other range; without the
//! addresses of nodes in them.

use ipnetwork::IpNetwork;
use ovnkube_model::{Object, ServiceCidr, Subnet};

use crate::Warning;
use crate::services::Want;

/// The ranges in which no service may have an address, by purpose.
pub struct Taken<'a> {
    pub cluster: &'a [Subnet],
    pub join: &'a [Subnet],
    pub masquerade: &'a [Subnet],
    /// The node's addresses with their networks.
    pub host: &'a [IpNetwork],
}

/// The ranges that are served, in as few pieces as possible; and warnings about the others, in their objects' order.
pub fn of_services(node: &str, given: &[Subnet], want: &Want, taken: &Taken<'_>) -> (Vec<Subnet>, Vec<Warning>) {
    let (mut served, mut wrong) = (given.to_vec(), Vec::new());
    for (name, ServiceCidr { uid, cidrs, bad }) in &want.ranges {
        let mut warn = |reason, message| {
            let about = Some(Object::ServiceCidr { name: name.clone(), uid: uid.clone() });
            wrong.push(Warning { about, reason, message });
        };
        for text in bad {
            let why = "it is not a range; write it without host bits, as 10.97.0.0/16";
            warn("BadField", format!("cannot use {text:?} in spec.cidrs: {why}"));
        }
        for cidr in cidrs.iter().filter(|cidr| taken.has_family_of(**cidr)) {
            if served.contains(cidr) {
                continue;
            }
            match taken.by(*cidr) {
                // until the addresses of nodes are known, some of it may be theirs
                None => served.extend(want.nodes.as_ref().map(|_| *cidr)),
                Some(whose) => {
                    let message =
                        format!("cannot reach services of {cidr} from node {node}: the range overlaps {whose}");
                    warn("RangeConflict", format!("{message}; use another range"));
                }
            }
        }
    }
    let nodes: Vec<_> = want.nodes.iter().flatten().map(|ip| Subnet::of(IpNetwork::from(*ip))).collect();
    let mut pieces: Vec<_> = served.iter().flat_map(|range| range.without(&nodes)).collect();
    // ranges may contain each other
    pieces.sort_unstable();
    pieces.dedup();
    (pieces, wrong)
}

impl Taken<'_> {
    fn has_family_of(&self, cidr: Subnet) -> bool {
        self.cluster.iter().any(|range| range.is_ipv6() == cidr.is_ipv6())
    }

    /// What the range overlaps, in words.
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
