//! The endpoints to which a node's switch or router sends packets.

use std::sync::Arc;

use ovnkube_model::{Backend, Family, Name, NetworkSettings, Site};

use super::configs::{Behind, Config};
use super::text::text;

/// For packets that arrive at a node's switch, which come from its pods.
pub(super) fn on_switch(config: &Config<'_>, family: Family, node: &Name, site: &Site) -> Arc<str> {
    let behind = config.behind(family);
    if behind.has_hints {
        return text(&behind.all.cluster(Some(site.topology(node))), |backend| backend.ip);
    }
    behind.cluster_text.clone()
}

/// For packets that stay on the node where they arrive.
pub(super) fn local(behind: &Behind<'_>, node: &Name) -> Arc<str> {
    text(&behind.all.local(node), |backend| backend.ip)
}

/// For packets that arrive at a node's gateway router: from outside and from the host itself.
pub(super) fn on_router(
    config: &Config<'_>,
    family: Family,
    node: &Name,
    site: &Site,
    network: &NetworkSettings,
) -> Arc<str> {
    let behind = config.behind(family);
    let own = site.router.as_ref().map(|router| router.ips.as_slice()).unwrap_or_default();
    let is_own = |backend: &Backend| own.contains(&backend.ip);
    let local = config.external_local.then(|| behind.all.local(node));
    let near = || behind.has_hints.then(|| behind.all.cluster(Some(site.topology(node))));
    let chosen = local.or_else(near);
    let backends = chosen.as_deref().unwrap_or(&behind.cluster);
    if chosen.is_none() && !backends.iter().any(is_own) {
        return behind.cluster_text.clone();
    }
    // from the host to itself: a packet to the host's own address would not come back this way
    let host = network.masquerade(family).map(|masquerade| masquerade.host.ip());
    text(backends, |backend| host.filter(|_| is_own(backend)).unwrap_or(backend.ip))
}
