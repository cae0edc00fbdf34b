//! The subnets of the nodes.

use std::collections::BTreeSet;
use std::fmt;

use roaring::RoaringBitmap;

use crate::{Error, Subnet};

/// One entry of `cluster-subnets`: `10.128.0.0/14/23` gives every node a /23 of 10.128.0.0/14.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClusterSubnet {
    pub cidr: Subnet,
    /// Prefix length of a node's subnet.
    pub host_prefix: u8,
}

impl fmt::Display for ClusterSubnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cidr, self.host_prefix)
    }
}

/// Allocates node subnets of one address family from one or several ranges; the first range with space is
/// used first. Within a range freed subnets are reused last.
#[derive(Debug, Clone, Default)]
pub struct SubnetPool {
    ranges: Vec<Range>,
    /// All subnets taken, sorted by base, to check for overlap.
    taken: BTreeSet<Subnet>,
}

#[derive(Debug, Clone)]
struct Range {
    of: ClusterSubnet,
    used: RoaringBitmap,
    count: u64,
    cursor: u32,
}

impl SubnetPool {
    pub fn new(ranges: impl IntoIterator<Item = ClusterSubnet>) -> Self {
        Self { ranges: ranges.into_iter().map(Range::new).collect(), taken: BTreeSet::new() }
    }

    /// True if no range was given: the cluster does not have this family.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Marks a subnet that a node already has. Its length may differ from `host_prefix` (the setting may have
    /// changed), but it must lie in a range and overlap no other taken subnet.
    pub fn take(&mut self, subnet: Subnet) -> Result<(), Error> {
        let Some(range) = self.ranges.iter_mut().find(|r| r.of.cidr.contains_subnet(subnet)) else {
            return Err(Error::Outside { what: subnet.to_string(), range: self.names() });
        };
        if self.taken.iter().any(|other| other.overlaps(subnet)) {
            return Err(Error::Taken { what: subnet.to_string() });
        }
        range.mark(subnet, true);
        self.taken.insert(subnet);
        Ok(())
    }

    /// Takes a free subnet and returns it.
    pub fn allocate(&mut self) -> Result<Subnet, Error> {
        for range in &mut self.ranges {
            if let Some(subnet) = range.allocate() {
                self.taken.insert(subnet);
                return Ok(subnet);
            }
        }
        Err(Error::Exhausted { what: "node subnet", range: self.names() })
    }

    /// Frees a subnet. Freeing one that was never taken does nothing.
    pub fn free(&mut self, subnet: Subnet) {
        if !self.taken.remove(&subnet) {
            return;
        }
        let Some(range) = self.ranges.iter_mut().find(|r| r.of.cidr.contains_subnet(subnet)) else { return };
        range.mark(subnet, false);
        // a longer one may have shared its slot
        let rest: Vec<_> = self.taken.iter().copied().filter(|s| range.of.cidr.contains_subnet(*s)).collect();
        let slot = range.of.host_prefix;
        for other in rest.into_iter().filter(|s| s.prefix() > slot) {
            range.mark(other, true);
        }
    }

    fn names(&self) -> String {
        self.ranges.iter().map(|r| r.of.to_string()).collect::<Vec<_>>().join(",")
    }
}

impl Range {
    fn new(of: ClusterSubnet) -> Self {
        let bits = of.host_prefix.saturating_sub(of.cidr.prefix()).min(32);
        Self { of, used: RoaringBitmap::new(), count: 1 << bits, cursor: 0 }
    }

    fn allocate(&mut self) -> Option<Subnet> {
        if self.used.len() >= self.count {
            return None;
        }
        let last = u32::try_from(self.count - 1).unwrap_or(u32::MAX);
        let index = (self.cursor..=last).chain(0..=last).find(|i| !self.used.contains(*i))?;
        let subnet = self.of.cidr.nth_subnet(self.of.host_prefix, u128::from(index))?;
        self.used.insert(index);
        self.cursor = if index == last { 0 } else { index + 1 };
        Some(subnet)
    }

    /// Marks the slots that `subnet` lies in or covers.
    fn mark(&mut self, subnet: Subnet, used: bool) {
        let shift = (if subnet.is_ipv6() { 128 } else { 32 }) - u32::from(self.of.host_prefix);
        let Some(offset) = self.of.cidr.offset(subnet.base()) else { return };
        let first = u32::try_from(offset.checked_shr(shift).unwrap_or(0)).unwrap_or(u32::MAX);
        let slots =
            1u32.checked_shl(u32::from(self.of.host_prefix.saturating_sub(subnet.prefix()))).unwrap_or(u32::MAX);
        let range = first..=first.saturating_add(slots - 1);
        if used {
            self.used.insert_range(range);
        } else {
            self.used.remove_range(range);
        }
    }
}
