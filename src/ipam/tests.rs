use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

fn subnet(text: &str) -> Subnet {
    text.parse().unwrap()
}
fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
fn pool(ranges: &[(&str, u8)]) -> SubnetPool {
    SubnetPool::new(ranges.iter().map(|(c, p)| ClusterSubnet { cidr: subnet(c), host_prefix: *p }))
}

#[test]
fn macs_follow_from_addresses() {
    assert_eq!(Mac::of(ip("10.128.0.3")).to_string(), "0a:58:0a:80:00:03");
    assert_eq!("0a:58:0a:80:00:03".parse::<Mac>().unwrap(), Mac::of(ip("10.128.0.3")));
    assert!(Mac::of(ip("fd00::1")).is_unicast());
    assert_eq!(Mac::of(ip("10.244.1.1")).link_local().to_string(), "fe80::858:aff:fef4:101");
    for wrong in ["", "0a:58", "0a:58:0a:80:00:03:04", "0a:58:0a:80:00:zz", "a:58:0a:80:00:03", "+1:58:0a:80:00:03"] {
        assert!(wrong.parse::<Mac>().is_err(), "{wrong}");
    }
}

#[test]
fn subnets_have_no_host_bits() {
    assert_eq!(subnet("10.128.0.0/23").nth(1), Some(ip("10.128.0.1")));
    assert_eq!(subnet("10.128.0.0/23").nth(512), None);
    assert_eq!(subnet("fd01::/64").nth(2), Some(ip("fd01::2")));
    assert_eq!(subnet("10.128.0.0/14").nth_subnet(23, 2), Some(subnet("10.128.4.0/23")));
    assert_eq!(subnet("0.0.0.0/0").offset(ip("255.255.255.255")), Some(u128::from(u32::MAX)));
    assert_eq!(subnet("::/0").nth(5), Some(ip("::5")));
    for wrong in ["10.128.0.1/23", "10.128.0.0", "10.128.0.0/33", "x/8"] {
        assert!(wrong.parse::<Subnet>().is_err(), "{wrong}");
    }
}

#[test]
fn addresses_come_in_order_and_come_back_last() {
    let mut pool = AddressPool::new(subnet("10.1.0.0/29"), 3);
    assert_eq!(pool.allocate().unwrap(), ip("10.1.0.3"));
    assert_eq!(pool.allocate().unwrap(), ip("10.1.0.4"));
    pool.free(ip("10.1.0.3"));
    assert_eq!(pool.allocate().unwrap(), ip("10.1.0.5"));
    assert_eq!(pool.allocate().unwrap(), ip("10.1.0.6"));
    assert_eq!(pool.allocate().unwrap(), ip("10.1.0.3"));
    assert!(matches!(pool.allocate(), Err(Error::Exhausted { .. })));
    // gateway, management port, broadcast and foreign addresses are never taken
    for reserved in ["10.1.0.0", "10.1.0.1", "10.1.0.2", "10.1.0.7", "10.2.0.4", "fd00::4"] {
        pool.free(ip(reserved));
        assert!(pool.take(ip(reserved)).is_err(), "{reserved}");
    }
}

#[test]
fn node_subnets_from_several_ranges() {
    let mut pool = pool(&[("10.0.0.0/23", 24), ("10.9.0.0/24", 24)]);
    pool.take(subnet("10.0.1.0/24")).unwrap();
    assert_eq!(pool.allocate().unwrap(), subnet("10.0.0.0/24"));
    assert_eq!(pool.allocate().unwrap(), subnet("10.9.0.0/24"));
    assert!(matches!(pool.allocate(), Err(Error::Exhausted { .. })));
    pool.free(subnet("10.0.1.0/24"));
    assert_eq!(pool.allocate().unwrap(), subnet("10.0.1.0/24"));
    assert!(matches!(pool.take(subnet("10.7.0.0/24")), Err(Error::Outside { .. })));
    assert!(matches!(pool.take(subnet("10.0.0.0/23")), Err(Error::Taken { .. })));
}

#[test]
fn a_subnet_of_another_length_blocks_every_slot_it_covers() {
    let mut pool = pool(&[("10.0.0.0/22", 24)]);
    pool.take(subnet("10.0.0.0/23")).unwrap();
    pool.take(subnet("10.0.2.128/25")).unwrap();
    pool.take(subnet("10.0.2.0/25")).unwrap();
    pool.free(subnet("10.0.2.0/25"));
    assert_eq!(pool.allocate().unwrap(), subnet("10.0.3.0/24"));
    assert!(pool.allocate().is_err());
}

#[test]
fn numbers_start_at_the_first() {
    let mut ids = IdPool::new(2, 4);
    ids.take(3).unwrap();
    assert_eq!((ids.allocate().unwrap(), ids.allocate().unwrap()), (2, 4));
    assert!(ids.allocate().is_err());
    assert!(ids.take(9).is_err());
}

#[test]
fn subnets_without_others() {
    let left = |of: &str, others: &[&str]| {
        let others: Vec<_> = others.iter().map(|other| subnet(other)).collect();
        subnet(of).without(&others, 128).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(left("10.0.0.0/8", &[]), ["10.0.0.0/8"]);
    assert_eq!(left("10.0.0.0/8", &["10.64.0.0/10", "10.128.0.0/9", "11.0.0.0/8", "fd00::/8"]), ["10.0.0.0/10"]);
    assert_eq!(left("10.0.0.0/8", &["0.0.0.0/0"]), [""; 0]);
    assert_eq!(left("0.0.0.0/0", &["0.0.0.0/1", "128.0.0.0/1"]), [""; 0]);
    assert_eq!(left("fd00::/126", &["fd00::1/128", "fd00::1/128"]), ["fd00::/128", "fd00::2/127"]);
    // one bit after the other
    assert_eq!(left("0.0.0.0/0", &["10.0.0.1/32"]).len(), 32);
    assert_eq!(left("::/0", &["fd00::1/128", "ff00::/8"]).len(), 128);
}

/// A subnet of `fd00::/120` or of `10.0.0.0/24`, or something around these.
fn any_subnet(is_ipv6: bool) -> impl Strategy<Value = Subnet> {
    let (base, bits) = if is_ipv6 { (ip("fd00::"), 128) } else { (ip("10.0.0.0"), 32) };
    (bits - 10..=bits, 0u128..256).prop_map(move |(prefix, n)| {
        let ip = Subnet::of(ipnetwork::IpNetwork::new(base, bits - 8).unwrap()).nth(n).unwrap();
        Subnet::of(ipnetwork::IpNetwork::new(ip, prefix).unwrap())
    })
}

proptest! {
    /// Exactly the difference, each address of it once.
    #[test]
    fn without_is_the_difference(
        (of, others) in any::<bool>().prop_flat_map(|is_ipv6| {
            (any_subnet(is_ipv6), prop::collection::vec(any_subnet(is_ipv6), 0..6))
        })
    ) {
        let left = of.without(&others, usize::MAX).unwrap();
        for n in 0..1u128 << of.host_bits() {
            let ip = of.nth(n).unwrap();
            let times = left.iter().filter(|subnet| subnet.contains(ip)).count();
            prop_assert_eq!(times, usize::from(!others.iter().any(|other| other.contains(ip))), "{}", ip);
        }
        prop_assert!(left.iter().all(|subnet| of.contains_subnet(*subnet)));
        prop_assert_eq!(of.without(&others, left.len()), Some(left.clone()));
        prop_assert_eq!(left.len().checked_sub(1).and_then(|fewer| of.without(&others, fewer)), None);
        // two halves of one subnet would be one
        let double = |a: Subnet| a.prefix().checked_sub(1).map(|prefix| {
            Subnet::of(ipnetwork::IpNetwork::new(a.base(), prefix).unwrap())
        });
        prop_assert!(left.windows(2).all(|pair| pair[0].prefix() != pair[1].prefix() || double(pair[0]) != double(pair[1])));
    }

    /// Whatever is taken, freed and allocated: no address is given out twice, and the count is right.
    #[test]
    fn addresses_are_unique(steps in prop::collection::vec((0u8..3, 0u32..64), 1..200)) {
        let range = subnet("10.1.0.0/26");
        let mut pool = AddressPool::new(range, 3);
        let mut have = std::collections::BTreeSet::new();
        for (what, n) in steps {
            let ip = range.nth(u128::from(n)).unwrap();
            match what {
                0 => if let Ok(new) = pool.allocate() { prop_assert!(have.insert(new)); } else { prop_assert_eq!(have.len(), 60) },
                1 => prop_assert_eq!(pool.take(ip).is_ok(), (3..63).contains(&n) && have.insert(ip)),
                _ => { pool.free(ip); have.remove(&ip); }
            }
            prop_assert_eq!(pool.free_count(), 60 - have.len() as u64);
        }
    }

    /// Node subnets never overlap, whatever lengths were annotated before.
    #[test]
    fn node_subnets_never_overlap(steps in prop::collection::vec((0u8..3, 22u8..28, 0u128..64), 1..100)) {
        let range = subnet("10.0.0.0/20");
        let mut pool = pool(&[("10.0.0.0/20", 24)]);
        let mut have: Vec<Subnet> = Vec::new();
        for (what, prefix, n) in steps {
            let new = match what {
                0 => pool.allocate().ok(),
                1 => range.nth_subnet(prefix, n).filter(|s| pool.take(*s).is_ok()),
                _ => { if !have.is_empty() { let s = have.swap_remove(n as usize % have.len()); pool.free(s); } None }
            };
            if let Some(new) = new {
                prop_assert!(have.iter().all(|s| !s.overlaps(new)), "{new} in {have:?}");
                have.push(new);
            }
        }
    }
}
