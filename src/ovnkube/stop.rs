//! The signal that stops the parts.

use tokio::sync::watch;

/// Each part has a clone.
#[derive(Clone)]
pub(crate) struct Stop(pub(crate) watch::Receiver<bool>);

impl Stop {
    /// Whether the part has to stop.
    pub(crate) fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the part has to stop.
    pub(crate) async fn wait(&mut self) {
        // the sender lives as long as the parts do
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
