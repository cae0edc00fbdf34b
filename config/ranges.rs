//! Ranges of addresses, checked against each other: those of this host's settings, and those that the cluster has.

use ipnetwork::IpNetwork;

use crate::settings::Settings;
use crate::values::ClusterSubnet;

/// Section, key and value of a setting.
pub(crate) type Range = (&'static str, &'static str, IpNetwork);

impl Settings {
    /// For values that came from elsewhere than from this host's settings. The error has no remedy.
    pub fn check_ranges(&self) -> Result<(), String> {
        if let Some((a, b)) = self.overlapping() {
            return Err(format!("{} of {} and {} of {} overlap", a.2, a.1, b.2, b.1));
        }
        if let Some((key, prefix, longest)) = self.too_small() {
            return Err(format!("a /{prefix} is too small for {key}, which needs a /{longest}"));
        }
        for v4 in [true, false] {
            let of_family = self.kubernetes.service_cidrs.iter().filter(|net| net.is_ipv4() == v4).count();
            if of_family > 1 {
                return Err(format!("service-cidrs has {of_family} ranges of one family"));
            }
        }
        Ok(())
    }

    /// Pods, services, join switch, masquerade addresses and transit switch must not share addresses.
    pub(crate) fn overlapping(&self) -> Option<(Range, Range)> {
        let ranges = self.ranges();
        ranges.iter().enumerate().find_map(|(at, one)| {
            let other = ranges.iter().skip(at + 1).find(|other| overlap(one.2, other.2))?;
            Some((*one, *other))
        })
    }

    /// Ranges whose packets nodes send into OVN, with their keys. Those of services are left out: pods know the API server by an address
    /// in them.
    pub fn ranges_inside(&self) -> Vec<(&'static str, IpNetwork)> {
        let inside = self.ranges().into_iter().filter(|(_, key, _)| *key != "service-cidrs");
        inside.map(|(_, key, range)| (key, range)).collect()
    }

    fn ranges(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        let subnets = |list: &[ClusterSubnet]| list.iter().map(|subnet| subnet.net).collect::<Vec<_>>();
        ranges
            .extend(subnets(&self.default.cluster_subnets).into_iter().map(|net| ("default", "cluster-subnets", net)));
        ranges.extend(self.kubernetes.service_cidrs.iter().map(|net| ("kubernetes", "service-cidrs", *net)));
        ranges.push(("gateway", "v4-join-subnet", self.gateway.v4_join_subnet.into()));
        ranges.push(("gateway", "v6-join-subnet", self.gateway.v6_join_subnet.into()));
        ranges.push(("gateway", "v4-masquerade-subnet", self.gateway.v4_masquerade_subnet.into()));
        ranges.push(("gateway", "v6-masquerade-subnet", self.gateway.v6_masquerade_subnet.into()));
        if self.features.interconnect {
            let manager = &self.clustermanager;
            ranges.push(("clustermanager", "v4-transit-switch-subnet", manager.v4_transit_subnet.into()));
            ranges.push(("clustermanager", "v6-transit-switch-subnet", manager.v6_transit_subnet.into()));
        }
        if self.hybridoverlay.enabled {
            let hybrid = subnets(&self.hybridoverlay.cluster_subnets);
            ranges.extend(hybrid.into_iter().map(|net| ("hybridoverlay", "cluster-subnets", net)));
        }
        ranges
    }

    /// The key of a subnet that has no room for its addresses, its prefix and the longest one that has room.
    pub(crate) fn too_small(&self) -> Option<(&'static str, u8, u8)> {
        let gateway = &self.gateway;
        let rules = [
            ("v4-join-subnet", gateway.v4_join_subnet.prefix(), 29),
            ("v6-join-subnet", gateway.v6_join_subnet.prefix(), 125),
            ("v4-masquerade-subnet", gateway.v4_masquerade_subnet.prefix(), 29),
            ("v6-masquerade-subnet", gateway.v6_masquerade_subnet.prefix(), 125),
        ];
        rules.into_iter().find(|(_, prefix, longest)| prefix > longest)
    }
}

fn overlap(a: IpNetwork, b: IpNetwork) -> bool {
    a.contains(b.network()) || b.contains(a.network())
}
