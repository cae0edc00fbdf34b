//! A prefix without host bits, and arithmetic on the addresses in it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnetwork::IpNetwork;

/// An IP prefix: `10.128.0.0/23`. Unlike [`IpNetwork`], which may carry an interface's own address,
/// this has no host bits, so equal prefixes are equal values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subnet {
    base: IpAddr,
    prefix: u8,
}

impl Subnet {
    /// The subnet that `net` lies in (host bits are dropped).
    pub fn of(net: IpNetwork) -> Self {
        Self { base: net.network(), prefix: net.prefix() }
    }

    pub fn base(self) -> IpAddr {
        self.base
    }

    pub fn prefix(self) -> u8 {
        self.prefix
    }

    pub fn is_ipv6(self) -> bool {
        self.base.is_ipv6()
    }

    /// How many bits addresses in this subnet may differ in.
    pub fn host_bits(self) -> u8 {
        let bits = if self.is_ipv6() { 128 } else { 32 };
        bits - self.prefix
    }

    pub fn contains(self, ip: IpAddr) -> bool {
        self.offset(ip).is_some()
    }

    pub fn contains_subnet(self, other: Self) -> bool {
        other.prefix >= self.prefix && self.contains(other.base)
    }

    pub fn overlaps(self, other: Self) -> bool {
        self.contains_subnet(other) || other.contains_subnet(self)
    }

    /// The distance of `ip` from the first address; `None` outside of the subnet.
    pub fn offset(self, ip: IpAddr) -> Option<u128> {
        if ip.is_ipv6() != self.is_ipv6() {
            return None;
        }
        let distance = number(ip).checked_sub(number(self.base))?;
        (self.host_bits() == 128 || distance >> self.host_bits() == 0).then_some(distance)
    }

    /// The `n`-th address, counted from the network address; `None` past the end.
    pub fn nth(self, n: u128) -> Option<IpAddr> {
        if self.host_bits() < 128 && n >> self.host_bits() != 0 {
            return None;
        }
        let sum = number(self.base).checked_add(n)?;
        Some(match self.base {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(u32::try_from(sum).ok()?)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(sum)),
        })
    }

    /// The `n`-th address with this subnet's prefix length, as interfaces carry it: `10.128.0.1/23`.
    pub fn nth_with_prefix(self, n: u128) -> Option<IpNetwork> {
        IpNetwork::new(self.nth(n)?, self.prefix).ok()
    }

    /// The `n`-th subnet of length `prefix` within this one.
    pub fn nth_subnet(self, prefix: u8, n: u128) -> Option<Self> {
        let bits = prefix.checked_sub(self.prefix)?;
        let shift = self.host_bits().checked_sub(bits)?;
        if bits < 128 && n >> bits != 0 {
            return None;
        }
        let base = self.nth(n.checked_shl(u32::from(shift)).unwrap_or(0))?;
        Some(Self { base, prefix })
    }

    /// What is left of it without `others`, in as few subnets as possible; `None` for more than `most`, which is found
    /// without making them all.
    pub fn without(self, others: &[Self], most: usize) -> Option<Vec<Self>> {
        if others.iter().any(|other| other.contains_subnet(self)) {
            return Some(Vec::new());
        }
        let mut within: Vec<Self> = others.iter().copied().filter(|other| self.contains_subnet(*other)).collect();
        within.sort_unstable();
        let mut left = Vec::new();
        self.leave(&within, most, &mut left).then_some(left)
    }

    /// Collects what is left without those `within` it, which are sorted; false once that would be more than `most`.
    fn leave(self, within: &[Self], most: usize, left: &mut Vec<Self>) -> bool {
        // it sorts before those that lie in it
        match within.first() {
            None => {
                left.push(self);
                return left.len() <= most;
            }
            Some(first) if *first == self => return true,
            Some(_) => {}
        }
        let [low, high] = [0, 1].map(|half| self.nth_subnet(self.prefix + 1, half));
        let (Some(low), Some(high)) = (low, high) else { return true };
        let at = within.partition_point(|other| *other < high);
        let (in_low, in_high) = within.split_at_checked(at).unwrap_or_default();
        low.leave(in_low, most, left) && high.leave(in_high, most, left)
    }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl fmt::Debug for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Subnet {
    type Err = String;

    /// Rejects host bits: `10.128.0.1/23` is an address, not a subnet.
    fn from_str(text: &str) -> Result<Self, String> {
        let net: IpNetwork = text.parse().map_err(|_| format!("{text:?} is not a CIDR"))?;
        if !text.contains('/') {
            return Err(format!("{text:?} has no prefix length"));
        }
        let subnet = Self::of(net);
        if subnet.base != net.ip() {
            return Err(format!("{text:?} has host bits set: the subnet is {subnet}"));
        }
        Ok(subnet)
    }
}
