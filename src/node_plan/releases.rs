//! What a node does while its ovn-controller and northd are of different releases of OVN, as during an update.
//!
//! An ovn-controller understands what an older northd writes, but not what one of a newer series does: it would drop flows that it has,
//! and pods would lose their network. With `external_ids:ovn-match-northd-version` it leaves its flows as they are while the two differ
//! in anything. That must not be so for longer than it has to: meanwhile no pod can start.
//!
//! ```text
//!  ovn-controller of an older series    waits: flows stay as they are, until this node is updated
//!  of northd's own release              the same, so that an update of northd finds it set
//!  of another release of the series     does not wait
//!  of a newer series                    does not wait, as in an update that begins with the nodes
//! ```

use std::time::Duration;

use ovnkube_model::OvnRelease;

/// So long a port waits for an ovn-controller that works. Others are built from other sources than northd, though the release is the same.
const PATIENCE: Duration = Duration::from_secs(30);

/// The releases; `None`: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Releases {
    pub controller: Option<OvnRelease>,
    pub northd: Option<OvnRelease>,
}

impl Releases {
    /// Whether ovn-controller waits while northd differs; `None`: what is set stays. `is_stuck`: as [`Stuck`] says.
    pub fn waits(&self, is_stuck: bool) -> Option<bool> {
        let (controller, northd) = self.controller.zip(self.northd)?;
        Some(controller.is_of_older_series(northd) || (controller == northd && !is_stuck))
    }

    /// What to say of a node that waits for its update.
    pub fn problem(&self) -> Option<String> {
        let both = self.controller.zip(self.northd);
        let (controller, northd) = both.filter(|(controller, northd)| controller.is_of_older_series(*northd))?;
        Some(format!(
            "ovn-controller of this node is of OVN {controller}, northd of {northd}: the node keeps the flows that it has. Running pods keep \
             their network, but pods that start here get none, pods and nodes that are new are not reached from here, and changes of services and \
             policies have no effect here. Do not restart Open vSwitch or the host: the flows would be lost. Update OVN on this node (in pods: the \
             image of the DaemonSet ovnkube); nodes come first, then masters and databases"
        ))
    }
}

/// Whether ovn-controller does not work because it waits, although it is of northd's release: then the two are different builds.
#[derive(Debug, Default)]
pub struct Stuck {
    of: Releases,
    since: Option<Duration>,
    is_stuck: bool,
}

impl Stuck {
    /// `is_port_waiting`: whether a port lacks its flows. `now` counts from the agent's start.
    pub fn look(&mut self, releases: &Releases, is_port_waiting: bool, now: Duration) -> bool {
        if self.of != *releases {
            *self = Self { of: *releases, ..Self::default() };
        }
        self.since = self.since.or(Some(now)).filter(|_| is_port_waiting);
        self.is_stuck |= self.since.is_some_and(|since| now.saturating_sub(since) >= PATIENCE);
        self.is_stuck
    }

    /// When to look again although nothing has changed.
    pub fn due(&self, now: Duration) -> Option<Duration> {
        self.since.filter(|_| !self.is_stuck).map(|since| (since + PATIENCE).saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn releases(controller: Option<&str>, northd: Option<&str>) -> Releases {
        let release = |text| OvnRelease::parse(text).unwrap();
        Releases { controller: controller.map(release), northd: northd.map(release) }
    }

    #[test]
    fn only_a_newer_series_is_waited_for() {
        let of = |controller, northd| {
            let releases = releases(controller, northd);
            (releases.waits(false), releases.problem().is_some())
        };
        assert_eq!(of(Some("26.03.1"), Some("26.09.0")), (Some(true), true));
        assert_eq!(of(Some("26.03.1"), Some("26.03.1")), (Some(true), false));
        assert_eq!(of(Some("26.03.1"), Some("26.03.2")), (Some(false), false));
        assert_eq!(of(Some("26.03.2"), Some("26.03.1")), (Some(false), false));
        assert_eq!(of(Some("26.09.0"), Some("26.03.1")), (Some(false), false));
        for (controller, northd) in [(None, None), (Some("26.03.1"), None), (None, Some("26.03.1"))] {
            assert_eq!(of(controller, northd), (None, false));
        }
        assert_eq!(releases(Some("26.03.1"), Some("26.03.1")).waits(true), Some(false));
        assert_eq!(releases(Some("26.03.1"), Some("26.09.1")).waits(true), Some(true));
    }

    #[test]
    fn builds_that_differ_are_known_by_ports_that_wait() {
        let (same, other) = (releases(Some("26.03.1"), Some("26.03.1")), releases(Some("26.03.1"), Some("26.03.2")));
        let mut stuck = Stuck::default();
        let mut at = |releases: &Releases, is_port_waiting, seconds| {
            let now = Duration::from_secs(seconds);
            let is_stuck = stuck.look(releases, is_port_waiting, now);
            (is_stuck, stuck.due(now).map(|due| due.as_secs()))
        };
        assert_eq!(at(&same, false, 0), (false, None));
        assert_eq!(at(&same, true, 10), (false, Some(30)));
        assert_eq!(at(&same, true, 39), (false, Some(1)));
        // it was served
        assert_eq!(at(&same, false, 39), (false, None));
        assert_eq!(at(&same, true, 40), (false, Some(30)));
        assert_eq!(at(&same, true, 70), (true, None));
        // it stays so until one of them changes
        assert_eq!(at(&same, false, 71), (true, None));
        assert_eq!(at(&other, true, 72), (false, Some(30)));
    }
}
