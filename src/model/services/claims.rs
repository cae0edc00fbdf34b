//! Who may be reached at an address and port, where several services say so.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::{ObjectKey, Protocol, Service};

/// What a service is reached at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Door {
    Address(IpAddr, Protocol, u16),
    NodePort(Protocol, u16),
}

/// In the order in which claims count: cluster IPs before what users wrote, the older service before the
/// younger one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    is_external: bool,
    created: i64,
    by: ObjectKey,
}

/// All claims to all doors.
#[derive(Debug, Default)]
pub(super) struct Claims {
    doors: BTreeMap<Door, BTreeSet<Claim>>,
    /// Every port of a cluster IP is its service's own.
    cluster_ips: BTreeMap<IpAddr, BTreeSet<Claim>>,
}

impl Claims {
    /// Replaces the claims of a service; the others that gain or lose something by it.
    pub(super) fn change(
        &mut self,
        key: &ObjectKey,
        old: Option<&Service>,
        new: Option<&Service>,
    ) -> BTreeSet<ObjectKey> {
        let (old_doors, new_doors) = (doors(key, old), doors(key, new));
        let (old_ips, new_ips) = (cluster_ips(key, old), cluster_ips(key, new));
        let mut concerned = BTreeSet::new();
        for (door, claim) in old_doors.difference(&new_doors) {
            retire(&mut self.doors, door, claim, &mut concerned);
        }
        for (door, claim) in new_doors.difference(&old_doors) {
            enter(&mut self.doors, *door, claim, &mut concerned);
        }
        for (ip, claim) in old_ips.difference(&new_ips) {
            retire(&mut self.cluster_ips, ip, claim, &mut concerned);
            self.at(*ip, &mut concerned);
        }
        for (ip, claim) in new_ips.difference(&old_ips) {
            enter(&mut self.cluster_ips, *ip, claim, &mut concerned);
            self.at(*ip, &mut concerned);
        }
        concerned.remove(key);
        concerned
    }

    /// The service whose a door is, where it is not this one's. What users wrote down for a service counts
    /// only if `may_have` says so.
    pub(super) fn rival(
        &self,
        key: &ObjectKey,
        door: Door,
        may_have: impl Fn(&ObjectKey) -> bool,
    ) -> Option<&ObjectKey> {
        let owner = match door {
            Door::Address(ip, ..) => self.cluster_ips.get(&ip).and_then(BTreeSet::first),
            Door::NodePort(..) => None,
        };
        let owner =
            owner.or_else(|| self.doors.get(&door)?.iter().find(|claim| !claim.is_external || may_have(&claim.by)));
        owner.map(|claim| &claim.by).filter(|by| *by != key)
    }

    /// Everybody who is reached at an address.
    pub(super) fn at(&self, ip: IpAddr, into: &mut BTreeSet<ObjectKey>) {
        let all = Door::Address(ip, Protocol::Tcp, 0)..=Door::Address(ip, Protocol::Sctp, u16::MAX);
        into.extend(self.doors.range(all).flat_map(|(_, claims)| claims.iter().map(|claim| claim.by.clone())));
    }
}

fn doors(key: &ObjectKey, service: Option<&Service>) -> BTreeSet<(Door, Claim)> {
    let Some(service) = service else { return BTreeSet::new() };
    let claim = |is_external| Claim { is_external, created: service.created, by: key.clone() };
    let mut doors = BTreeSet::new();
    for port in &service.ports {
        let address = |ip: IpAddr| Door::Address(ip, port.protocol, port.port);
        doors.extend(service.cluster_ips.iter().map(|ip| (address(*ip), claim(false))));
        doors.extend(service.outer_ips().map(|ip| (address(ip), claim(true))));
        doors.extend(port.node_port.map(|number| (Door::NodePort(port.protocol, number), claim(true))));
    }
    doors
}

fn cluster_ips(key: &ObjectKey, service: Option<&Service>) -> BTreeSet<(IpAddr, Claim)> {
    let Some(service) = service else { return BTreeSet::new() };
    let claim = Claim { is_external: false, created: service.created, by: key.clone() };
    service.cluster_ips.iter().map(|ip| (*ip, claim.clone())).collect()
}

fn retire<K: Ord>(all: &mut BTreeMap<K, BTreeSet<Claim>>, at: &K, claim: &Claim, concerned: &mut BTreeSet<ObjectKey>) {
    let Some(claims) = all.get_mut(at) else { return };
    claims.remove(claim);
    concerned.extend(claims.iter().map(|claim| claim.by.clone()));
    if claims.is_empty() {
        all.remove(at);
    }
}

fn enter<K: Ord>(all: &mut BTreeMap<K, BTreeSet<Claim>>, at: K, claim: &Claim, concerned: &mut BTreeSet<ObjectKey>) {
    let claims = all.entry(at).or_default();
    concerned.extend(claims.iter().map(|claim| claim.by.clone()));
    claims.insert(claim.clone());
}
