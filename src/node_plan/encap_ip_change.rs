//! Keeps the tunnels of a node whose address changes: ovn-controller publishes the new address at once.
//!
//! Its connection to SB still uses the old address as source, so nothing gets through. ovn-controller would notice that
//! only after two probe intervals, which are minutes. So for a short while it probes every few seconds.

use std::collections::BTreeMap;
use std::time::Duration;

const ENCAP_IP: &str = "ovn-encap-ip";
const PROBE_INTERVAL: &str = "ovn-remote-probe-interval";
/// Milliseconds.
const SOON: u32 = 5000;
/// How long to probe so often: two such intervals and a reconnect.
pub const WHILE: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub struct EncapIpChange(Option<Duration>);

impl EncapIpChange {
    /// Shortens the probe interval in the wanted `external_ids` for [`WHILE`] after the tunnels' address changes from
    /// `had` to another. `now` counts from the agent's start.
    pub fn amend(&mut self, had: Option<&str>, external_ids: &mut BTreeMap<&'static str, String>, now: Duration) {
        if had.zip(external_ids.get(ENCAP_IP)).is_some_and(|(had, want)| had != want) {
            self.0 = Some(now);
        }
        self.0 = self.0.filter(|at| now.saturating_sub(*at) < WHILE);
        let Some(interval) = external_ids.get_mut(PROBE_INTERVAL).filter(|_| self.is_recent()) else { return };
        // 0 disables probes
        if interval.parse().is_ok_and(|given: u32| given == 0 || given > SOON) {
            *interval = SOON.to_string();
        }
    }

    /// Whether to look again when [`WHILE`] is over.
    pub fn is_recent(&self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_frequent_for_a_while() {
        let mut change = EncapIpChange::default();
        let mut probe = |had: Option<&str>, given: &str, seconds: u64| {
            let mut ids = BTreeMap::from([(ENCAP_IP, "10.0.0.2".to_owned()), (PROBE_INTERVAL, given.to_owned())]);
            change.amend(had, &mut ids, Duration::from_secs(seconds));
            ids.remove(PROBE_INTERVAL).unwrap()
        };
        // the first address, and the same one
        assert_eq!(probe(None, "100000", 0), "100000");
        assert_eq!(probe(Some("10.0.0.2"), "100000", 0), "100000");
        // another one
        assert_eq!(probe(Some("10.0.0.1"), "100000", 1), "5000");
        assert_eq!(probe(Some("10.0.0.2"), "100000", 15), "5000");
        assert_eq!(probe(Some("10.0.0.2"), "0", 15), "5000");
        assert_eq!(probe(Some("10.0.0.2"), "3000", 15), "3000");
        assert_eq!(probe(Some("10.0.0.2"), "100000", 21), "100000");
    }
}
