//! Whom a node's switch or router sends packets to.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ovnkube_model::{Backend, Family, Name, Network, Site};

use super::configs::{Behind, Config};

/// Of packets that come in by a node's switch, which is from its pods.
pub(super) fn on_switch(config: &Config<'_>, family: Family, node: &Name, site: &Site) -> Arc<str> {
    let behind = config.behind(family);
    if behind.all.has_hints() {
        return text(&behind.all.cluster(Some(site.place(node))), |backend| backend.ip);
    }
    behind.cluster_text.clone()
}

/// Of packets that keep to the node they come in at.
pub(super) fn local(behind: &Behind<'_>, node: &Name) -> Arc<str> {
    text(&behind.all.local(node), |backend| backend.ip)
}

/// Of packets that come in by a node's gateway router: from outside and from the host itself.
pub(super) fn on_router(config: &Config<'_>, family: Family, node: &Name, site: &Site, network: &Network) -> Arc<str> {
    let behind = config.behind(family);
    let own = site.router.as_ref().map(|router| router.ips.as_slice()).unwrap_or_default();
    let is_own = |backend: &Backend| own.contains(&backend.ip);
    let local = config.external_local.then(|| behind.all.local(node));
    let near = || behind.all.has_hints().then(|| behind.all.cluster(Some(site.place(node))));
    let chosen = local.or_else(near);
    let backends = chosen.as_deref().unwrap_or(&behind.cluster);
    if chosen.is_none() && !backends.iter().any(is_own) {
        return behind.cluster_text.clone();
    }
    // from the host to itself: with the host's own address it would not come back this way
    let host = network.masquerade_address(family, 2);
    text(backends, |backend| host.filter(|_| is_own(backend)).unwrap_or(backend.ip))
}

/// `10.128.0.5:8080,10.129.0.5:8080`, in the order of the addresses' text.
pub(super) fn text(backends: &[Backend], address: impl Fn(&Backend) -> IpAddr) -> Arc<str> {
    let mut sorted: Vec<_> = backends.iter().map(|backend| (backend.ip.to_string(), backend)).collect();
    sorted.sort_unstable();
    let mut list = String::with_capacity(sorted.len() * 20);
    for (_, backend) in sorted {
        if !list.is_empty() {
            list.push(',');
        }
        // writing to a String cannot fail
        let _ = write!(list, "{}", SocketAddr::new(address(backend), backend.port));
    }
    list.into()
}
