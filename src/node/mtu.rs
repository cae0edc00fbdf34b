//! The MTU of pods: as the administrator set it, or what the uplink leaves besides the tunnel's headers.
//!
//! ```text
//!  uplink 1500 ─ tunnel 58 (IPv6: 78) ─▶ 1442 ─▶ pods, management port, annotation of the Node, flows
//! ```
//! MTUs that do not fit together are reported once for each state: a log line and an Event on the Node.

use std::net::IpAddr;

use ovnkube_node_plan::mtu::{Known, Uplink};
use ovnkube_node_plan::observed::Observed;
use tokio::sync::watch;

use crate::ovs::Ovs;
use crate::settings::MtuSettings;
use crate::warnings::Warnings;

/// Maintains the pods' MTU and reports what is wrong with it.
pub(crate) struct Mtu<'a> {
    settings: &'a MtuSettings,
    now: watch::Sender<Option<u32>>,
    warnings: Warnings,
    /// The last MTU that running pods were compared with.
    compared: Option<u32>,
}

impl<'a> Mtu<'a> {
    /// `now`: new pods' interfaces get the MTU from here.
    pub(crate) fn new(settings: &'a MtuSettings, now: watch::Sender<Option<u32>>, warnings: Warnings) -> Self {
        Self { settings, now, warnings, compared: None }
    }

    /// Looks at the uplink, publishes the MTU for new pods and returns it; `None` as long as the tunnels'
    /// address is not known. An uplink that is missing for a moment, as while ovs-vswitchd restarts, changes
    /// neither the MTU found before nor the one that the Node is `annotated` with.
    pub(crate) fn find(
        &mut self,
        encap_type: &str,
        encap_ips: &[IpAddr],
        annotated: Option<u32>,
        host: &Observed,
    ) -> Option<u32> {
        let uplink = Uplink::find(host, encap_type, encap_ips, self.settings.single_node);
        let last = *self.now.borrow();
        let known = Known { given: self.settings.given, room: uplink.as_ref().map(Uplink::room), last, annotated };
        let mtu = known.of_pods(encap_ips)?;
        if last != Some(mtu) {
            tracing::info!(mtu, "found the MTU of pods");
            self.now.send_replace(Some(mtu));
        }
        if let Some(uplink) = uplink {
            self.warnings.report("MtuTooLarge", uplink.problem(mtu));
        }
        Some(mtu)
    }

    /// The Node's MTU annotation: empty if the MTU is configured, since the controller knows it then.
    pub(crate) fn annotation(&self, mtu: Option<u32>) -> Option<String> {
        if self.settings.given.is_some() { Some(String::new()) } else { Some(mtu?.to_string()) }
    }

    /// Warns of running pods with another MTU: interfaces keep theirs as long as their pods live.
    pub(crate) fn compare_pods(&mut self, mtu: u32, host: &Observed, ovs: &Ovs) {
        if self.compared == Some(mtu) {
            return;
        }
        let ports = ovs.pod_ports();
        let mut other = Vec::new();
        for link in host.links.iter().map(|state| &state.link).filter(|link| link.mtu != mtu) {
            other.extend(ports.iter().find(|port| port.link == link.name).map(|port| (port.pod(), link.mtu)));
        }
        other.sort();
        let problem = other.first().map(|(pod, has)| {
            let count = other.len();
            format!(
                "{count} pods of this node have an MTU other than {mtu}, such as {pod} with {has}: packets that are \
                 too large for the receiver are lost; restart these pods"
            )
        });
        self.warnings.report("PodsWithOtherMtu", problem);
        self.compared = Some(mtu);
    }
}
