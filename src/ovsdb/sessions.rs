//! Keeps a client connected: one session after the other, each with a server that is good then.

use std::sync::Arc;

use crate::candidates::Candidates;
use crate::shared::Shared;

/// Runs sessions until the task is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut candidates = Candidates::new(&shared.options.remotes);
    loop {
        let (at, mut session) = candidates.find(&shared).await;
        let (fault, lived) = session.follow(&shared).await;
        drop(session);
        candidates.ended(&shared, at, &fault, lived);
    }
}
