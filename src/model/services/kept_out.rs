//! Pods that `loadBalancerSourceRanges` keep from the addresses of a load balancer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Services;
use crate::{BadField, Family, ObjectKey, Protocol, Subnet};

/// Limit for the prefixes of pods in the ACL of a service and a family. Longer ACLs would delay everything else, in the
/// databases and on nodes.
const MOST_PREFIXES: usize = 50_000;

/// The pods that may not send to some addresses and ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOut {
    pub pods: Vec<Subnet>,
    /// The ports by what they share.
    pub at: BTreeMap<(Protocol, Vec<IpAddr>), BTreeSet<u16>>,
    /// No pod may send there, since the ranges leave too many parts of the pod network.
    is_everyone: bool,
}

impl Services {
    /// The pods of a family that the ranges of a service keep out; `None` if there are none.
    pub fn kept_out(&self, key: &ObjectKey, family: Family) -> Option<KeptOut> {
        let service = self.get(key)?;
        let ranges = service.source_ranges.iter().map(|range| Subnet::of(*range));
        let ranges: Vec<_> = ranges.filter(|range| Family::of_subnet(*range) == family).collect();
        if ranges.is_empty() {
            return None;
        }
        let balanced: BTreeSet<_> = service.ingress_ips.iter().filter(|ip| Family::of(**ip) == family).collect();
        let mut at: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for port in service.ports.iter().filter(|_| !balanced.is_empty()) {
            let mut ips = self.external_ips(key, port);
            ips.retain(|ip| balanced.contains(ip));
            if !ips.is_empty() {
                at.entry((port.protocol, ips)).or_default().insert(port.port);
            }
        }
        let all = self.owners.rules.pods.iter().copied().filter(|pods| Family::of_subnet(*pods) == family);
        // the ACL lists them for each of these
        let most = MOST_PREFIXES / at.len().max(1);
        let left = all.clone().try_fold(Vec::new(), |mut left, pods| {
            left.extend(pods.without(&ranges, most - left.len())?);
            Some(left)
        });
        let is_everyone = left.is_none();
        let pods: Vec<_> = left.unwrap_or_else(|| all.collect());
        (!at.is_empty() && !pods.is_empty()).then_some(KeptOut { pods, at, is_everyone })
    }

    /// Whether the ranges of a service keep a sender from one of its addresses.
    pub fn keeps_out(&self, key: &ObjectKey, from: IpAddr, at: IpAddr) -> bool {
        let Some(service) = self.get(key) else { return false };
        let is_pod = || self.kept_out(key, Family::of(at)).is_some_and(|out| out.pods.iter().any(|p| p.contains(from)));
        service.keeps_out(from, at) || service.ingress_ips.contains(&at) && is_pod()
    }

    /// Ranges that no ACL can hold.
    pub(super) fn unusable_ranges(&self, key: &ObjectKey) -> impl Iterator<Item = BadField> {
        let families = Family::ALL.into_iter();
        let everyone = families.filter(|family| self.kept_out(key, *family).is_some_and(|out| out.is_everyone));
        everyone.map(|family| {
            let limit =
                format!("more than {MOST_PREFIXES} parts of the pod network, the limit for the ACL of a service");
            let problem = format!(
                "{} ranges leave {limit}; they allow no pod; write wider ranges, which end where nodes' subnets end",
                family.version()
            );
            BadField::new("spec.loadBalancerSourceRanges", problem)
        })
    }
}
