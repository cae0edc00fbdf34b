//! What is found out before the shared databases: where they are, and whether this cluster is to be joined.

use ovnkube_config::Settings;
use ovnkube_interconnect::report::{InEffect, Looked, Northbound};
use ovnkube_model::{Change, Interconnection};
use ovnkube_ovsdb::Client;

use super::databases::own;
use super::kubernetes::Kubernetes;

pub(super) struct First {
    pub(super) kubernetes: Kubernetes,
    /// The northbound and the southbound database of this cluster.
    pub(super) own: [Looked<Client>; 2],
    pub(super) names: Looked<Interconnection>,
    pub(super) is_on: bool,
    /// What is in effect where the ConfigMap does not say it.
    pub(super) said: Option<String>,
}

impl First {
    pub(super) async fn read(settings: &Settings) -> Self {
        let (mut kubernetes, own) = tokio::join!(Kubernetes::read(settings), own(settings));
        let [nb, _] = &own;
        let northbound = nb.as_ref().map(|nb| Northbound::read(&nb.cache())).map_err(Clone::clone);
        let in_effect = InEffect::of(&kubernetes.asked, &northbound);
        let (names, is_on, said) = (in_effect.found().cloned(), in_effect.is_on, in_effect.said());
        let change = in_effect.change();
        // the earlier names of the cluster, above all
        let kept = northbound.as_ref().ok().and_then(|northbound| northbound.kept.as_ref());
        let stored = kept.map(|kept| Change::InterconnectionStored(kept.text.as_str().into()));
        for change in stored.into_iter().chain([change]) {
            kubernetes.world.apply(change);
        }
        Self { kubernetes, own, names, is_on, said }
    }
}
