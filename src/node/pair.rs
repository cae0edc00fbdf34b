//! The node's end of a sandbox's veth pair. Its alias names the owner, so that it is known even if all else is lost.

use ovnkube_host::{Link, Mac, Net, Veth, sysctl};
use ovnkube_ovn::derived_uuid;

use crate::sandbox::{Wiring, optional};
use crate::{Error, Result};

const ALIAS: &str = "ovnkube sandbox ";

/// Name of the node's end, as in ovn-kubernetes.
pub(crate) fn host_name(container_id: &str) -> &str {
    container_id.get(..15).unwrap_or(container_id)
}

/// The name that container runtimes give the interface of a pod's own network.
pub(crate) const USUAL_NAME: &str = "eth0";

/// The owner of a pair: `ovnkube sandbox <container id> <interface> <uid of the pod>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) container_id: String,
    /// `None`: an earlier release made the pair, which wrote only the sandbox.
    pub(crate) wired: Option<Wired>,
}

/// What a sandbox was wired for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wired {
    /// Name of the interface in the pod.
    pub(crate) interface: String,
    /// The uid by which the runtime knows the pod: for a static pod the hash of its file.
    pub(crate) pod_uid: String,
}

impl Tag {
    /// The owner of a link; `None`: the agent did not make it.
    pub(crate) fn of(link: &Link) -> Option<Self> {
        let tag = Self::parse(link.alias.as_deref()?)?;
        (host_name(&tag.container_id) == link.name).then_some(tag)
    }

    pub(crate) fn parse(alias: &str) -> Option<Self> {
        let mut fields = alias.strip_prefix(ALIAS)?.split(' ').map(str::to_owned);
        let container_id = fields.next().filter(|id| !id.is_empty())?;
        let wired = match (fields.next(), fields.next(), fields.next()) {
            (None, ..) => None,
            (Some(interface), Some(pod_uid), None) if !interface.is_empty() && !pod_uid.is_empty() => {
                Some(Wired { interface, pod_uid })
            }
            _ => return None,
        };
        Some(Self { container_id, wired })
    }

    pub(crate) fn alias(&self) -> String {
        let wired = self.wired.as_ref().map(|wired| format!(" {} {}", wired.interface, wired.pod_uid));
        format!("{ALIAS}{}{}", self.container_id, wired.unwrap_or_default())
    }
}

/// Whether a link with that alias is ours.
pub(crate) fn is_alias(text: &str) -> bool {
    text.starts_with(ALIAS)
}

/// Deletes the node's end, and with it the pod's. `known`: OVS says the link is this sandbox's,
/// as for pairs that ovn-kubernetes made.
pub(crate) async fn delete_pair(here: &Net, container_id: &str, known: bool) -> Result<()> {
    let Some(link) = here.link(host_name(container_id)).await? else { return Ok(()) };
    if known || Tag::of(&link).is_some_and(|tag| tag.container_id == container_id) {
        here.delete(&link.name).await?;
    }
    Ok(())
}

impl Wiring {
    pub(crate) fn host_name(&self) -> &str {
        host_name(&self.container_id)
    }

    /// The node's end of a pair as [`Wiring::make_pair`] makes it; `None`: it must be made.
    pub(crate) async fn find_pair(&self, here: &Net) -> Result<Option<Link>> {
        let Some(mut link) = here.link(self.host_name()).await? else { return Ok(None) };
        let tag = Tag::of(&link);
        let inside = Net::within(&self.netns).await?.link(&self.interface).await?;
        let is_right = inside.is_some_and(|inside| {
            let belong = inside.other == Some(link.index) && link.other == Some(inside.index);
            belong && inside.mac == Some(self.network.mac_address.0)
        });
        let is_ours = match &tag {
            Some(tag) => tag.container_id == self.container_id,
            // a pair that was made just before a crash has no alias yet
            None => is_right && link.alias.is_none(),
        };
        if !is_ours {
            return Err(Error::LinkTaken { name: link.name });
        }
        if !is_right {
            return Ok(None);
        }
        if tag != Some(self.tag()) {
            here.set_alias(&link, &self.tag().alias()).await?;
        }
        switch_ipv6_off(&link)?;
        here.ensure_mtu(&link, self.mtu).await?;
        here.set_up(&link).await?;
        link.mtu = self.mtu;
        Ok(Some(link))
    }

    /// Makes a new pair, up on the node's side.
    pub(crate) async fn make_pair(&self, here: &Net) -> Result<Link> {
        here.add_veth(Veth {
            name: self.host_name(),
            mac: mac_of(&self.container_id),
            peer: &self.interface,
            peer_netns: &self.netns,
            peer_mac: self.network.mac_address.0,
            mtu: self.mtu,
        })
        .await?;
        let link =
            here.link(self.host_name()).await?.ok_or_else(|| Error::LinkGone { name: self.host_name().to_owned() })?;
        here.set_alias(&link, &self.tag().alias()).await?;
        switch_ipv6_off(&link)?;
        here.set_up(&link).await?;
        Ok(link)
    }

    fn tag(&self) -> Tag {
        let wired = Wired { interface: self.interface.clone(), pod_uid: self.pod_uid.clone() };
        Tag { container_id: self.container_id.clone(), wired: Some(wired) }
    }
}

/// Router advertisements of the pod must not configure the node.
fn switch_ipv6_off(link: &Link) -> Result<()> {
    optional(sysctl::set_link("ipv6", &link.name, "disable_ipv6", "1"))
}

/// Always the same address for a sandbox. udev keeps an address that was set, but would replace a random one.
fn mac_of(container_id: &str) -> Mac {
    let mut mac = Mac::default();
    for (to, from) in mac.iter_mut().zip(derived_uuid("veth", container_id).as_bytes()) {
        *to = *from;
    }
    // unicast and locally administered
    mac[0] = (mac[0] & 0xfc) | 0x02;
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_show_what_was_wired() {
        let wired = |interface: &str, pod_uid: &str| Wired { interface: interface.into(), pod_uid: pod_uid.into() };
        for (alias, wired) in [
            ("ovnkube sandbox 0abc", None),
            ("ovnkube sandbox 0abc eth0 617450f5-33fb", Some(wired("eth0", "617450f5-33fb"))),
        ] {
            let tag = Tag { container_id: "0abc".into(), wired };
            assert_eq!(Tag::parse(alias), Some(tag.clone()));
            assert_eq!(tag.alias(), alias);
        }
        for alias in [
            "",
            "ovnkube sandbox ",
            "ovnkube sandbox 0abc eth0",
            "ovnkube sandbox 0abc eth0 ",
            "ovnkube sandbox 0abc e u x",
            "eth0",
        ] {
            assert_eq!(Tag::parse(alias), None, "{alias:?}");
        }
    }

    /// The kernel keeps 255 bytes; these are the longest values that a request may have.
    #[test]
    fn the_longest_alias_fits() {
        let wired = Wired { interface: "i".repeat(15), pod_uid: "u".repeat(64) };
        let tag = Tag { container_id: "c".repeat(128), wired: Some(wired) };
        assert!(tag.alias().len() <= 255);
        assert_eq!(Tag::parse(&tag.alias()), Some(tag));
    }

    #[test]
    fn the_nodes_end_keeps_its_address() {
        let mac = mac_of("0123456789abcdef");
        assert_eq!(mac, mac_of("0123456789abcdef"));
        assert_ne!(mac, mac_of("0123456789abcdee"));
        assert_eq!(mac[0] & 3, 2);
    }
}
