//! What a node does while its ovn-controller and northd are of different releases of OVN, as during an update.
//!
//! An ovn-controller understands what an older northd writes, but not what a newer one does: it would drop flows that it has, and pods
//! would lose their network. With `external_ids:ovn-match-northd-version` it leaves its flows as they are while the two differ in anything.
//! That must not be so where northd is the older one, as in an update that begins with the nodes: meanwhile no pod can start.
//!
//! ```text
//!  ovn-controller < northd    waits: flows stay as they are, until this node is updated
//!  ovn-controller = northd    the same, so that an update of northd finds it set
//!  ovn-controller > northd    does not wait
//! ```

use ovnkube_model::OvnRelease;

/// The releases; `None`: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Releases {
    pub controller: Option<OvnRelease>,
    pub northd: Option<OvnRelease>,
}

impl Releases {
    /// Whether ovn-controller waits while northd differs; `None`: what is set stays.
    pub fn waits(&self) -> Option<bool> {
        let (controller, northd) = self.controller.zip(self.northd)?;
        Some(controller <= northd)
    }

    /// What to say of a node that waits for its update.
    pub fn problem(&self) -> Option<String> {
        let (controller, northd) =
            self.controller.zip(self.northd).filter(|(controller, northd)| controller < northd)?;
        Some(format!(
            "ovn-controller of this node is of OVN {controller}, northd of {northd}: the node keeps the flows that it has. Running pods keep \
             their network, but pods that start here get none, pods and nodes that are new are not reached from here, and changes of services and \
             policies have no effect here. Do not restart Open vSwitch or the host: the flows would be lost. Update OVN on this node (in pods: the \
             image of the DaemonSet ovnkube); nodes come first, then masters and databases"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_newer_northd_is_waited_for() {
        let of = |controller: Option<&str>, northd: Option<&str>| {
            let release = |text| OvnRelease::parse(text).unwrap();
            let releases = Releases { controller: controller.map(release), northd: northd.map(release) };
            (releases.waits(), releases.problem().is_some())
        };
        assert_eq!(of(Some("26.03.1"), Some("26.09.0")), (Some(true), true));
        assert_eq!(of(Some("26.03.1"), Some("26.03.2")), (Some(true), true));
        assert_eq!(of(Some("26.03.1"), Some("26.03.1")), (Some(true), false));
        assert_eq!(of(Some("26.03.2"), Some("26.03.1")), (Some(false), false));
        assert_eq!(of(Some("26.09.0"), Some("26.03.1")), (Some(false), false));
        for (controller, northd) in [(None, None), (Some("26.03.1"), None), (None, Some("26.03.1"))] {
            assert_eq!(of(controller, northd), (None, false));
        }
    }
}
