//! The addresses of one node's switch: which pod has which, and which pod is given which.
//!
//! Pods are settled in passes, so that no pod is given what another one has, in whatever order they are read:
//!
//! 1. what pods run with: their status reports it, and it cannot change while they run,
//! 2. what pods have been given, or are annotated with,
//! 3. for pods that have nothing by then: what the user requests, then free addresses.
//!
//! In each pass the older pod comes first.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::{AddressPool, Error, Mac, Subnet};

use super::pod_entry::{PodEntry, Problem};
use crate::{Pod, PodAddresses, PodKey};

/// Addresses of a node's subnet that pods never get: the network address, the gateway `.1` and the
/// management port `.2`.
const RESERVED: u32 = 3;

/// Whether a pod of a node with these subnets can be given this address.
pub fn is_for_pods(subnets: &[Subnet], ip: IpAddr) -> bool {
    subnets.iter().any(|subnet| AddressPool::new(*subnet, RESERVED).take(ip).is_ok())
}

/// The pools of one node's switch.
#[derive(Debug)]
pub(super) struct Switch {
    /// At most one per family.
    pools: Vec<AddressPool>,
    /// MACs that users requested and those derived from IPv6 addresses, of which several may have the same. All others
    /// are derived from an IPv4 address and are as unique as it is.
    macs: BTreeMap<Mac, PodKey>,
    /// MACs that the gateway `.1` and the management port `.2` may have: those derived from their IPv6 addresses.
    node_macs: Vec<Mac>,
    /// The MAC of the management port if it is annotated.
    pub(super) management_mac: Option<Mac>,
    /// The API server shows these subnets as the node's, so that pods without addresses may be given some.
    pub(super) confirmed: bool,
}

/// The result for one pod.
pub(super) struct Settled {
    pub(super) key: PodKey,
    pub(super) addresses: Option<PodAddresses>,
    /// Why the annotated addresses were not used.
    pub(super) refused: Option<String>,
    /// Why it has no addresses, unless it only waits for its node's subnet.
    pub(super) failed: Option<Problem>,
}

/// The evidence for an address in a pod's status, strongest first.
#[derive(Clone, Copy)]
enum Certain {
    /// The pod was given this address.
    Had,
    /// The pod's annotation says the same.
    Annotated,
    Told,
}

/// A pod while it is being settled.
struct Candidate<'a> {
    key: &'a PodKey,
    pod: &'a Pod,
    had: Option<&'a PodAddresses>,
    annotated: Option<&'a PodAddresses>,
    /// Its status and its annotation agree, as far as they are in these subnets.
    as_annotated: bool,
    ips: Vec<IpAddr>,
    mac: Option<Mac>,
    refused: Option<String>,
    failed: Option<Problem>,
}

impl Switch {
    /// Takes over the pools of `old` that are still wanted.
    pub(super) fn new(subnets: &[Subnet], confirmed: bool, management_mac: Option<Mac>, old: Option<Self>) -> Self {
        let (mut pools, macs) = old.map_or_else(Default::default, |old| (old.pools, old.macs));
        let mut pool = |subnet: &Subnet| match pools.iter().position(|pool| pool.subnet() == *subnet) {
            Some(index) => pools.swap_remove(index),
            None => AddressPool::new(*subnet, RESERVED),
        };
        let of_node =
            |subnet: &Subnet| [1, 2].into_iter().filter_map(|n| subnet.nth(n)).map(Mac::of).collect::<Vec<_>>();
        let node_macs = subnets.iter().filter(|subnet| subnet.is_ipv6()).flat_map(of_node).collect();
        Self { pools: subnets.iter().map(&mut pool).collect(), macs, node_macs, management_mac, confirmed }
    }

    pub(super) fn subnets(&self) -> impl Iterator<Item = Subnet> + '_ {
        self.pools.iter().map(AddressPool::subnet)
    }

    /// The subnet that an address must be in: the one of its family.
    pub(super) fn subnet_for(&self, ip: IpAddr) -> Option<Subnet> {
        self.subnets().find(|subnet| subnet.is_ipv6() == ip.is_ipv6())
    }

    fn contains(&self, ip: IpAddr) -> bool {
        self.subnets().any(|subnet| subnet.contains(ip))
    }

    /// Whether a pod runs with an address of these subnets that it has not been given.
    pub(super) fn is_elsewhere(&self, entry: &PodEntry) -> bool {
        let Some(addresses) = &entry.addresses else { return false };
        entry.pod.runs_with().any(|ip| self.contains(ip) && !addresses.each().any(|have| have == ip))
    }

    /// Settles these pods together: each gets what it has, what it requests, or a free address.
    pub(super) fn settle<'a>(&mut self, pods: impl Iterator<Item = (&'a PodKey, &'a PodEntry)>) -> Vec<Settled> {
        let mut all = Vec::new();
        for (key, entry) in pods {
            if let Some(addresses) = &entry.addresses {
                self.free(key, addresses);
            }
            all.push(Candidate::new(key, entry, self));
        }
        all.sort_by(|a, b| (a.pod.created, &a.pod.uid).cmp(&(b.pod.created, &b.pod.uid)));
        for certain in [Certain::Had, Certain::Annotated, Certain::Told] {
            for pod in all.iter_mut().filter(|pod| pod.pod.running) {
                self.take_what_it_runs_with(pod, certain);
            }
        }
        for pod in &mut all {
            self.take_what_is_known(pod);
        }
        for pod in all.iter_mut().filter(|pod| !pod.ips.is_empty()) {
            self.find_mac(pod);
        }
        for asks in [true, false] {
            for pod in all.iter_mut().filter(|pod| pod.ips.is_empty() && pod.pod.request.is_some() == asks) {
                self.give(pod);
            }
        }
        all.into_iter().map(|pod| self.settled(pod)).collect()
    }

    fn take_what_it_runs_with(&mut self, pod: &mut Candidate<'_>, certain: Certain) {
        for ip in pod.pod.runs_with() {
            let is_certain = match certain {
                Certain::Had => pod.had.is_some_and(|had| had.each().any(|have| have == ip)),
                Certain::Annotated => pod.as_annotated,
                Certain::Told => true,
            };
            if is_certain && !pod.has_family_of(ip) && self.take(&[ip]).is_ok() {
                pod.ips.push(ip);
            }
        }
        self.keep_mac(pod);
    }

    /// Takes all known addresses or none, except for families that the switch has no subnet of and families
    /// that the pod has an address of already.
    fn take_what_is_known(&mut self, pod: &mut Candidate<'_>) {
        let Some(known) = pod.known() else { return };
        let rest: Vec<_> =
            known.each().filter(|ip| self.subnet_for(*ip).is_some() && !pod.has_family_of(*ip)).collect();
        let taken = match rest.as_slice() {
            [] if pod.ips.is_empty() => Err(format!("they are not in {}", self.names())),
            [a, b] if a.is_ipv6() == b.is_ipv6() => Err(format!("{a} and {b} are of the same family")),
            _ => self.take(&rest).map_err(|error| error.to_string()),
        };
        match taken {
            Ok(()) => pod.ips.extend(rest),
            Err(why) => pod.refused = Some(why),
        }
        self.keep_mac(pod);
    }

    /// Keeps the MAC that the pod is known by, unless another pod has it.
    fn keep_mac(&mut self, pod: &mut Candidate<'_>) {
        if pod.ips.is_empty() || pod.mac.is_some() {
            return;
        }
        for addresses in [pod.had, pod.annotated].into_iter().flatten() {
            match self.claim_mac(pod.key, addresses.mac, &pod.ips) {
                Ok(()) => return pod.mac = Some(addresses.mac),
                Err(why) if addresses.are(&pod.ips) => pod.refused = Some(why),
                Err(_) => {}
            }
        }
    }

    /// Finds the MAC of a pod that has addresses but no MAC yet: the requested one, else the one derived from its
    /// addresses. If that is another's, the pod gets other addresses, unless it runs.
    fn find_mac(&mut self, pod: &mut Candidate<'_>) {
        if pod.mac.is_some() {
            return;
        }
        let asked = pod.pod.request.as_ref().and_then(|request| request.mac);
        pod.mac = asked.filter(|mac| self.claim_mac(pod.key, *mac, &pod.ips).is_ok());
        if pod.mac.is_none()
            && let Err(why) = self.claim_derived_mac(pod.key, &pod.ips)
            && !pod.pod.running
        {
            self.free_ips(std::mem::take(&mut pod.ips).into_iter());
            pod.refused = Some(why);
        }
    }

    /// Gives addresses to a pod that has none: the requested ones, and free ones. If a request cannot be met, the
    /// pod waits: a user who requests an address does not want another one.
    fn give(&mut self, pod: &mut Candidate<'_>) {
        if !self.confirmed {
            return;
        }
        let request = pod.pod.request.as_deref().cloned().unwrap_or_default();
        let refused = |why: String| ("AddressRequestRefused", format!("cannot give the requested address: {why}"));
        let exhausted = |error: Error| ("AddressesExhausted", format!("cannot give the pod an address: {error}"));
        let claimed = request.mac.map_or(Ok(()), |mac| self.claim_mac(pod.key, mac, &request.ips));
        let given = claimed.map_err(refused).and_then(|()| {
            self.take(&request.ips).map_err(|error| refused(error.to_string()))?;
            let ips = self.complete(request.ips).map_err(exhausted)?;
            if request.mac.is_none() {
                self.claim_derived_mac(pod.key, &ips).map_err(|why| {
                    self.free_ips(ips.iter().copied());
                    refused(why)
                })?;
            }
            Ok(ips)
        });
        match given {
            Ok(ips) => (pod.ips, pod.mac) = (ips, request.mac),
            Err(problem) => {
                pod.failed = Some(problem);
                request.mac.inspect(|mac| self.unclaim_mac(pod.key, *mac));
            }
        }
    }

    fn settled(&self, pod: Candidate<'_>) -> Settled {
        let known = pod.known();
        let Candidate { key, mut ips, refused, failed, .. } = pod;
        // an annotation with the same addresses in another order need not be written again
        match known.filter(|known| known.are(&ips)) {
            Some(known) => ips.sort_by_key(|ip| known.each().position(|have| have == *ip)),
            None => ips.sort_by_key(|ip| self.subnets().position(|subnet| subnet.contains(*ip))),
        }
        let with_prefix = |ip: &IpAddr| IpNetwork::new(*ip, self.subnet_for(*ip)?.prefix()).ok();
        let mac = pod.mac.or(derived_mac(&ips));
        let addresses = mac.map(|mac| PodAddresses { ips: ips.iter().filter_map(with_prefix).collect(), mac });
        Settled { key: key.clone(), addresses, refused, failed }
    }

    /// Takes all of `ips` (one per pool) or none of them.
    fn take(&mut self, ips: &[IpAddr]) -> Result<(), Error> {
        for (index, ip) in ips.iter().enumerate() {
            let taken = match self.pools.iter_mut().find(|pool| pool.subnet().contains(*ip)) {
                Some(pool) => pool.take(*ip),
                None => Err(Error::Outside { what: ip.to_string(), range: self.names() }),
            };
            if let Err(error) = taken {
                self.free_ips(ips.iter().take(index).copied());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Completes `have` with an address of every pool that it has none of. On an error `have` is freed.
    fn complete(&mut self, mut have: Vec<IpAddr>) -> Result<Vec<IpAddr>, Error> {
        let Self { pools, macs, node_macs, management_mac, .. } = self;
        let is_nodes = |mac: Mac| node_macs.contains(&mac) || *management_mac == Some(mac);
        let is_free = |mac: Mac| !macs.contains_key(&mac) && !is_nodes(mac);
        for pool in pools {
            if have.iter().any(|ip| pool.subnet().contains(*ip)) {
                continue;
            }
            match allocate(pool, |ip| is_free(Mac::of(ip))) {
                Ok(ip) => have.push(ip),
                Err(error) => {
                    self.free_ips(have.into_iter());
                    return Err(error);
                }
            }
        }
        Ok(have)
    }

    /// Frees a pod's addresses and MAC.
    pub(super) fn free(&mut self, key: &PodKey, addresses: &PodAddresses) {
        self.free_ips(addresses.each());
        self.unclaim_mac(key, addresses.mac);
    }

    fn free_ips(&mut self, ips: impl Iterator<Item = IpAddr>) {
        for ip in ips {
            self.pools.iter_mut().for_each(|pool| pool.free(ip));
        }
    }

    /// Claims a MAC for a pod with these addresses. A MAC that begins with 0a:58 belongs to the IPs that it is derived
    /// from: to the IPv4 one of this switch if there is one.
    fn claim_mac(&mut self, key: &PodKey, mac: Mac, ips: &[IpAddr]) -> Result<(), String> {
        if let [0x0a, 0x58, a, b, c, d] = mac.0 {
            let spelled = IpAddr::from([a, b, c, d]);
            let is_anothers = self.contains(spelled) && !ips.contains(&spelled);
            if is_anothers || !ips.iter().any(|ip| Mac::of(*ip) == mac) {
                return Err(format!("MAC {mac} belongs to another address (0a:58 and the octets of the IP)"));
            }
        }
        match self.macs.get(&mac) {
            Some(other) if other != key => return Err(format!("MAC {mac} is taken by pod {other}")),
            _ if self.node_macs.contains(&mac) || self.management_mac == Some(mac) => {
                return Err(format!("MAC {mac} is that of the node's gateway or management port"));
            }
            _ if ips.iter().any(|ip| ip.is_ipv4() && Mac::of(*ip) == mac) => {}
            _ => drop(self.macs.insert(mac, key.clone())),
        }
        Ok(())
    }

    fn claim_derived_mac(&mut self, key: &PodKey, ips: &[IpAddr]) -> Result<(), String> {
        derived_mac(ips).map_or(Ok(()), |mac| self.claim_mac(key, mac, ips))
    }

    fn unclaim_mac(&mut self, key: &PodKey, mac: Mac) {
        if self.macs.get(&mac) == Some(key) {
            self.macs.remove(&mac);
        }
    }

    pub(super) fn names(&self) -> String {
        self.subnets().map(|s| s.to_string()).collect::<Vec<_>>().join(",")
    }
}

impl<'a> Candidate<'a> {
    fn new(key: &'a PodKey, entry: &'a PodEntry, switch: &Switch) -> Self {
        let annotated = entry.pod.annotated.as_ref().map(|annotated| &annotated.addresses);
        let as_annotated = annotated.is_some_and(|annotated| {
            let mut told = entry.pod.runs_with().filter(|ip| switch.contains(*ip));
            let mut ours = annotated.each().filter(|ip| switch.contains(*ip));
            told.all(|ip| annotated.each().any(|own| own == ip))
                && ours.all(|ip| entry.pod.runs_with().any(|own| own == ip))
        });
        let had = entry.addresses.as_ref();
        Self {
            key,
            pod: &entry.pod,
            had,
            annotated,
            as_annotated,
            ips: Vec::new(),
            mac: None,
            refused: None,
            failed: None,
        }
    }

    /// The addresses it was given, else the annotated ones.
    fn known(&self) -> Option<&'a PodAddresses> {
        self.had.or(self.annotated)
    }

    fn has_family_of(&self, ip: IpAddr) -> bool {
        self.ips.iter().any(|have| have.is_ipv6() == ip.is_ipv6())
    }
}

/// Allocates the first address that fits. The others stay free.
fn allocate(pool: &mut AddressPool, fits: impl Fn(IpAddr) -> bool) -> Result<IpAddr, Error> {
    let mut passed = Vec::new();
    let found = loop {
        match pool.allocate() {
            Ok(ip) if !fits(ip) => passed.push(ip),
            found => break found,
        }
    };
    for ip in passed {
        pool.free(ip);
    }
    found
}

/// The MAC derived from these addresses: from the IPv4 one if there is one.
fn derived_mac(ips: &[IpAddr]) -> Option<Mac> {
    ips.iter().find(|ip| ip.is_ipv4()).or(ips.first()).map(|ip| Mac::of(*ip))
}
