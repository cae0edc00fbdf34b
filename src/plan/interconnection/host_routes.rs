//! What tells node agents to which prefixes of other clusters their hosts should have routes.

use ovnkube_model::{World, keys};

use crate::{Patch, PatchTarget, Seen, Want};

pub(super) fn want(world: &World) -> Want {
    let joined = &world.joined;
    let Some((uid, is_bare)) = joined.config().filter(|_| joined.is_known()) else { return Want::default() };
    let prefixes: Vec<String> = joined.host_prefixes().0.map(ToString::to_string).collect();
    let (text, have) = (prefixes.join(","), joined.published());
    if have.map(AsRef::as_ref).unwrap_or_default() == text {
        return Want::default();
    }
    let patch = Patch {
        target: PatchTarget::InterconnectionConfig,
        uid: uid.clone(),
        annotations: vec![(keys::HOST_ROUTES, text)],
        seen: if is_bare { Seen::Bare } else { Seen::Texts(vec![have.cloned()]) },
        labels: Vec::new(),
        network_unavailable: None,
    };
    Want { patch: Some(patch), ..Want::default() }
}
