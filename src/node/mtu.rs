//! How large pods' packets may be: as somebody set it, or what the uplink leaves beside the tunnel's headers.
//!
//! ```text
//!  uplink 1500 ─ tunnel 58 (IPv6: 78) ─▶ 1442 ─▶ pods, management port, annotation of the Node, flows
//! ```
//! What does not fit together is told: a log line and an Event on the Node, once for each state.

use std::net::IpAddr;

use ovnkube_host::{Link, Net};
use tokio::sync::watch;

use crate::ovs::Ovs;
use crate::settings::MtuSettings;
use crate::{Result, Warning};

/// Bytes, where neither a person nor an uplink says anything.
const FALLBACK: u32 = 1400;

/// Ethernet of the inner packet, UDP, the tunnel's own header; OVN adds an option to Geneve's.
fn tunnel_headers(encap_type: &str, encap_ip: IpAddr) -> u32 {
    let outer_ip = if encap_ip.is_ipv6() { 40 } else { 20 };
    let options = if encap_type == "geneve" { 8 } else { 0 };
    14 + outer_ip + 8 + 8 + options
}

/// Keeps the pods' MTU and says what is wrong with it.
pub(crate) struct Mtu<'a> {
    settings: &'a MtuSettings,
    now: watch::Sender<Option<u32>>,
    warnings: Warnings,
    /// The last MTU that running pods were compared with.
    compared: Option<u32>,
}

/// Where the tunnels end.
struct Uplink {
    name: String,
    mtu: u32,
    headers: u32,
}

impl<'a> Mtu<'a> {
    /// `now` is where new pods' interfaces get it from.
    pub(crate) fn new(settings: &'a MtuSettings, now: watch::Sender<Option<u32>>, warnings: Warnings) -> Self {
        Self { settings, now, warnings, compared: None }
    }

    /// Looks at the uplink, tells new pods, and returns the MTU; `None` as long as the tunnels' address is
    /// not known. An uplink that is not there for a moment, as while ovs-vswitchd restarts, changes nothing:
    /// not what was found before, nor what the Node was `annotated` with.
    pub(crate) async fn find(
        &mut self,
        encap_type: &str,
        encap_ips: &[IpAddr],
        annotated: Option<u32>,
        here: &Net,
    ) -> Result<Option<u32>> {
        let uplink = self.uplink(encap_type, encap_ips, here).await?;
        let room = uplink.as_ref().map(|uplink| uplink.mtu.saturating_sub(uplink.headers));
        let last = *self.now.borrow();
        let fallback = (!encap_ips.is_empty()).then_some(FALLBACK);
        let Some(mtu) = self.settings.given.or(room).or(last).or(annotated).or(fallback) else { return Ok(None) };
        if last != Some(mtu) {
            tracing::info!("pods' MTU is {mtu}");
            self.now.send_replace(Some(mtu));
        }
        if let Some(uplink) = uplink {
            self.warnings.tell("MtuTooLarge", uplink.problem(mtu));
        }
        Ok(Some(mtu))
    }

    /// What the Node is annotated with: only what the controller cannot know.
    pub(crate) fn annotation(&self, mtu: Option<u32>) -> Option<String> {
        if self.settings.given.is_some() { Some(String::new()) } else { Some(mtu?.to_string()) }
    }

    /// Interfaces keep their MTU as long as their pods live.
    pub(crate) async fn compare_pods(&mut self, mtu: u32, here: &Net, ovs: &Ovs) -> Result<()> {
        if self.compared == Some(mtu) {
            return Ok(());
        }
        let ports = ovs.pod_ports();
        let mut other = Vec::new();
        for link in here.links().await?.into_iter().filter(|link| link.mtu != mtu) {
            other.extend(ports.iter().find(|port| port.link == link.name).map(|port| (port.pod(), link.mtu)));
        }
        other.sort();
        let problem = other.first().map(|(pod, has)| {
            let count = other.len();
            format!(
                "{count} pods of this node have another MTU than {mtu}, such as {pod} with {has}: packets that are too \
                 large for the receiver are lost; restart these pods"
            )
        });
        self.warnings.tell("PodsWithOtherMtu", problem);
        self.compared = Some(mtu);
        Ok(())
    }

    /// The link with the tunnels' address; of several the one that carries least.
    async fn uplink(&self, encap_type: &str, encap_ips: &[IpAddr], here: &Net) -> Result<Option<Uplink>> {
        let mut least: Option<Uplink> = None;
        for ip in encap_ips {
            let Some(Link { name, mtu, .. }) = here.link_with(*ip).await? else { continue };
            let headers = if self.settings.single_node { 0 } else { tunnel_headers(encap_type, *ip) };
            if least.as_ref().is_none_or(|least| mtu < least.mtu) {
                least = Some(Uplink { name, mtu, headers });
            }
        }
        Ok(least)
    }
}

impl Uplink {
    fn problem(&self, mtu: u32) -> Option<String> {
        let Self { name, mtu: carries, headers } = self;
        let needs = mtu + headers;
        (needs > *carries).then(|| {
            format!(
                "pods' MTU {mtu} and {headers} bytes of tunnel headers need {needs}, but {name} carries {carries}: large \
                 packets between nodes are lost; raise the MTU of {name}, or set mtu to {} at most and restart the pods",
                carries.saturating_sub(*headers)
            )
        })
    }
}

/// Tells each problem when it comes up, and in the log when it is over.
pub(crate) struct Warnings {
    to: tokio::sync::mpsc::UnboundedSender<Warning>,
    told: Vec<Warning>,
}

impl Warnings {
    pub(crate) fn new(to: tokio::sync::mpsc::UnboundedSender<Warning>) -> Self {
        Self { to, told: Vec::new() }
    }

    /// `problem` is all that is wrong about `reason` now.
    pub(crate) fn tell(&mut self, reason: &'static str, problem: Option<String>) {
        let before = self.told.iter().position(|told| told.reason == reason);
        if before.and_then(|at| self.told.get(at)).map(|told| &told.message) == problem.as_ref() {
            return;
        }
        if let Some(at) = before {
            self.told.remove(at);
        }
        let Some(message) = problem else {
            tracing::info!("no more {reason}");
            return;
        };
        tracing::warn!("{message}");
        let warning = Warning { about: None, reason, message };
        self.told.push(warning.clone());
        // the process ends: nobody listens
        let _ = self.to.send(warning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_tunnels() {
        let (v4, v6) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        let headers = [("geneve", v4), ("geneve", v6), ("vxlan", v4), ("vxlan", v6)];
        assert_eq!(headers.map(|(kind, ip)| tunnel_headers(kind, ip)), [58, 78, 50, 70]);
    }

    #[test]
    fn a_problem_is_told_once() {
        let (to, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut warnings = Warnings::new(to);
        for problem in [None, Some("a"), Some("a"), Some("b"), None, Some("b")] {
            warnings.tell("R", problem.map(str::to_owned));
            warnings.tell("Other", Some("stays".to_owned()));
        }
        drop(warnings);
        let messages: Vec<String> = std::iter::from_fn(|| told.try_recv().ok()).map(|w| w.message).collect();
        assert_eq!(messages, ["stays", "a", "b", "b"]);
    }
}
