//! Ranges of services: the configured ones, and those of `ServiceCIDR` objects that overlap no other range; without the
//! addresses of nodes in them.

use ipnetwork::IpNetwork;
use ovnkube_model::{Object, ServiceCidr, Subnet};

use crate::Warning;
use crate::services::Want;

/// Limit for the pieces of all ranges: each is a route of the host and an element of its filters. Whoever controls a node can
/// claim many addresses.
const MOST_PIECES: usize = 10_000;

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
    let nodes: Vec<_> = want.nodes.iter().flatten().map(|ip| Subnet::of(IpNetwork::from(*ip))).collect();
    let whole_or_without = |range: &Subnet| range.without(&nodes, MOST_PIECES).unwrap_or_else(|| vec![*range]);
    let mut pieces: Vec<_> = given.iter().flat_map(whole_or_without).collect();
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
            let left = match taken.by(*cidr) {
                // until the addresses of nodes are known, some of it may be theirs
                None if want.nodes.is_none() => continue,
                None => {
                    let left = cidr.without(&nodes, MOST_PIECES.saturating_sub(pieces.len()));
                    left.ok_or_else(|| "has addresses of too many nodes".to_owned())
                }
                Some(whose) => Err(format!("overlaps {whose}")),
            };
            match left {
                Ok(left) => {
                    served.push(*cidr);
                    pieces.extend(left);
                }
                Err(why) => {
                    let message = format!("cannot reach services of {cidr} from node {node}: the range {why}");
                    warn("RangeConflict", format!("{message}; use another range"));
                }
            }
        }
    }
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
