//! Says that another master has the name of this one and holds the lease: as an Event of the namespace of ovnkube. The log has it from the
//! election.

use ovnkube_watch::Leader;
use tokio::time::sleep;

use crate::stranger::{REMIND, Report};

impl Report {
    /// Runs for as long as the process does.
    pub(crate) async fn tell_of_twin(self, leader: Leader, identity: String) {
        loop {
            leader.twin().await;
            let message = format!(
                "two masters are called {identity}: one of them has the lease, and the other one waits; stop one, or give each the \
                 name of its own host"
            );
            self.events.publish(self.warning("MasterNameTaken", message).await);
            sleep(REMIND).await;
        }
    }
}
