//! The addresses that clusters have in transit switches.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ovnkube_model::Subnet;
use ovnkube_ovn::owner;

/// The most addresses of a subnet that are tried.
const MOST: u128 = 65_534;

/// A free address of each subnet, all with the same number. Which one depends on the names, so that a cluster mostly gets
/// the same again.
pub(crate) fn choose(names: &str, subnets: &[Subnet], taken: &BTreeSet<IpAddr>) -> Option<Vec<IpAddr>> {
    let room = |subnet: &Subnet| (1_u128 << subnet.host_bits().min(17)).saturating_sub(2);
    let count = subnets.iter().map(room).min()?.min(MOST);
    if count == 0 {
        return None;
    }
    let first = u128::from(owner::fnv1a(names)) % count;
    (0..count).find_map(|n| {
        let number = (first + n) % count + 1;
        let addresses: Option<Vec<IpAddr>> = subnets.iter().map(|subnet| subnet.nth(number)).collect();
        addresses.filter(|addresses| !addresses.iter().any(|ip| taken.contains(ip)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clusters_get_different_addresses() {
        let subnets: [Subnet; 2] = ["169.254.100.0/24".parse().unwrap(), "fe80:a9fe:64::/112".parse().unwrap()];
        let mut taken = BTreeSet::new();
        for n in 0..254 {
            let chosen = choose(&format!("az{n} ts"), &subnets, &taken).unwrap();
            assert!(subnets.iter().zip(&chosen).all(|(subnet, ip)| subnet.contains(*ip) && *ip != subnet.base()));
            assert!(chosen.iter().all(|ip| taken.insert(*ip)), "{chosen:?}");
        }
        assert_eq!(choose("one more", &subnets, &taken), None);
    }

    #[test]
    fn a_subnet_without_room_has_no_address() {
        assert_eq!(choose("az", &["10.0.0.0/31".parse().unwrap()], &BTreeSet::new()), None);
        assert_eq!(choose("az", &[], &BTreeSet::new()), None);
    }
}
