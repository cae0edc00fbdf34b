//! Decides which service has an address and port that several claim.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::{ObjectKey, Protocol, Service};

/// Where a service is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Frontend {
    Address(IpAddr, Protocol, u16),
    NodePort(Protocol, u16),
}

/// What a claim is made with, in order of precedence. Every author of a service may write `externalIPs`; the API server gives cluster
/// IPs, and load balancers the addresses of `status.loadBalancer.ingress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum By {
    ClusterIp,
    LoadBalancer,
    /// Also a node port, which has no address.
    Spec,
}

/// In order of precedence; among those that are equal, the older service before the younger one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    with: By,
    created: i64,
    by: ObjectKey,
}

/// All claims to all frontends.
#[derive(Debug, Default)]
pub(super) struct Claims {
    frontends: BTreeMap<Frontend, Claimants>,
    /// Every port of a cluster IP belongs to its service.
    cluster_ips: BTreeMap<IpAddr, Claimants>,
}

/// Sorted by precedence. Nearly always there is one.
type Claimants = Vec<Claim>;

impl Claims {
    /// Replaces the claims of a service; returns the others that gain or lose something by it.
    pub(super) fn change(
        &mut self,
        key: &ObjectKey,
        old: Option<&Service>,
        new: Option<&Service>,
    ) -> BTreeSet<ObjectKey> {
        let (old_frontends, new_frontends) = (frontends(key, old), frontends(key, new));
        let (old_ips, new_ips) = (cluster_ips(key, old), cluster_ips(key, new));
        let mut concerned = BTreeSet::new();
        for (frontend, claim) in old_frontends.difference(&new_frontends) {
            retire(&mut self.frontends, frontend, claim, &mut concerned);
        }
        for (frontend, claim) in new_frontends.difference(&old_frontends) {
            enter(&mut self.frontends, *frontend, claim, &mut concerned);
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

    /// The service that has a frontend, if it is another one than `key`. A claim to anything but a cluster IP counts
    /// only if `may_have` agrees.
    pub(super) fn conflicting_service(
        &self,
        key: &ObjectKey,
        frontend: Frontend,
        may_have: impl Fn(&ObjectKey) -> bool,
    ) -> Option<&ObjectKey> {
        let owner = match frontend {
            Frontend::Address(ip, ..) => self.cluster_ips.get(&ip).and_then(|claims| claims.first()),
            Frontend::NodePort(..) => None,
        };
        let owner = owner.or_else(|| {
            self.frontends.get(&frontend)?.iter().find(|claim| claim.with == By::ClusterIp || may_have(&claim.by))
        });
        owner.map(|claim| &claim.by).filter(|by| *by != key)
    }

    /// Adds all services that claim an address to `into`.
    pub(super) fn at(&self, ip: IpAddr, into: &mut BTreeSet<ObjectKey>) {
        let all = Frontend::Address(ip, Protocol::Tcp, 0)..=Frontend::Address(ip, Protocol::Sctp, u16::MAX);
        into.extend(self.frontends.range(all).flat_map(|(_, claims)| claims.iter().map(|claim| claim.by.clone())));
    }
}

fn frontends(key: &ObjectKey, service: Option<&Service>) -> BTreeSet<(Frontend, Claim)> {
    let Some(service) = service else { return BTreeSet::new() };
    let claim = |with| Claim { with, created: service.created, by: key.clone() };
    let mut frontends = BTreeSet::new();
    for port in &service.ports {
        let address = |ip: IpAddr| Frontend::Address(ip, port.protocol, port.port);
        frontends.extend(service.cluster_ips.iter().map(|ip| (address(*ip), claim(By::ClusterIp))));
        frontends.extend(service.balanced_ips().map(|ip| (address(ip), claim(By::LoadBalancer))));
        frontends.extend(service.external_ips.iter().map(|ip| (address(*ip), claim(By::Spec))));
        frontends.extend(port.node_port.map(|number| (Frontend::NodePort(port.protocol, number), claim(By::Spec))));
    }
    frontends
}

fn cluster_ips(key: &ObjectKey, service: Option<&Service>) -> BTreeSet<(IpAddr, Claim)> {
    let Some(service) = service else { return BTreeSet::new() };
    let claim = Claim { with: By::ClusterIp, created: service.created, by: key.clone() };
    service.cluster_ips.iter().map(|ip| (*ip, claim.clone())).collect()
}

fn retire<K: Ord>(all: &mut BTreeMap<K, Claimants>, at: &K, claim: &Claim, concerned: &mut BTreeSet<ObjectKey>) {
    let Some(claims) = all.get_mut(at) else { return };
    claims.retain(|other| other != claim);
    concerned.extend(claims.iter().map(|claim| claim.by.clone()));
    if claims.is_empty() {
        all.remove(at);
    }
}

fn enter<K: Ord>(all: &mut BTreeMap<K, Claimants>, at: K, claim: &Claim, concerned: &mut BTreeSet<ObjectKey>) {
    let claims = all.entry(at).or_default();
    concerned.extend(claims.iter().map(|claim| claim.by.clone()));
    if let Err(place) = claims.binary_search(claim) {
        claims.reserve_exact(1);
        claims.insert(place, claim.clone());
    }
}
