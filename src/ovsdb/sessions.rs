//! Keeps a client connected: one session after the other, each with a server that is good then.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::candidates::Candidates;
use crate::conn::Conn;
use crate::fault::Fault;
use crate::session::Session;
use crate::shared::Shared;

/// A server that was good and sends nothing for so long, before its session is live, hangs or works on a large answer. From
/// outside both look the same, so it is kept, and others are asked as well: one of them that is good takes its place.
const SILENT: Duration = Duration::from_secs(3);
/// How often it is looked at while others are asked.
const LOOK: Duration = Duration::from_millis(100);
/// Where any server is good, all may work for long on the same answer: each that was left in a row doubles the time for the next,
/// so many times.
const DOUBLED: u32 = 4;

/// Why a session is over, and the next one if there is one.
enum Over {
    Ended(Fault, Duration),
    Left((usize, Session)),
}

/// Runs sessions until the task is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut candidates = Candidates::new(&shared.options.remotes);
    let mut left = 0;
    let (mut at, mut session) = candidates.find(&shared, None).await;
    loop {
        let conn = session.conn();
        let silent = SILENT * 2_u32.pow(left);
        let over = tokio::select! {
            biased;
            (fault, lived) = session.follow(&shared) => Over::Ended(fault, lived),
            other = another(&shared, &mut candidates, at, &conn, silent) => Over::Left(other),
        };
        (at, session) = match over {
            Over::Ended(fault, lived) => {
                drop(session);
                if !lived.is_zero() {
                    left = 0;
                }
                candidates.ended(&shared, at, &fault, lived);
                candidates.find(&shared, None).await
            }
            Over::Left(other) => {
                left = DOUBLED.min(left + 1);
                session.leave(&shared, &Fault::Hangs);
                candidates.ended(&shared, at, &Fault::Hangs, Duration::ZERO);
                other
            }
        };
    }
}

/// Returns another server that is good, while that of this connection is silent and its session is not live.
async fn another(
    shared: &Arc<Shared>,
    candidates: &mut Candidates,
    at: usize,
    conn: &Conn,
    silent: Duration,
) -> (usize, Session) {
    if shared.options.remotes.len() < 2 {
        return pending().await;
    }
    let mut state = shared.state.subscribe();
    loop {
        let received = conn.received();
        if shared.is_live() {
            // the sender is in `shared`
            let _ = state.wait_for(|state| !state.is_live()).await;
        }
        sleep(silent).await;
        if shared.is_live() || !conn.is_silent_since(received) {
            continue;
        }
        let goes_on = async {
            while !shared.is_live() && conn.is_silent_since(received) {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            () = goes_on => {}
            other = candidates.find(shared, Some(at)) => return other,
        }
    }
}
