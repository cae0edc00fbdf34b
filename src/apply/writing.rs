//! Whether a controller can write to a database, for people.

use ovnkube_ovsdb::{Standing, State};
use tokio::sync::watch;

const AWAY: &str = "no server of it can be used; the log of this process says why";
const LOCKED: &str = "another controller holds its lock ovnkube_controller: if that one does not stop, two clusters use the same \
                      database";

/// Whether a database can be written to, and why not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Writing {
    /// No controller of this process writes to it.
    #[default]
    Idle,
    Possible,
    Blocked(&'static str),
}

impl Writing {
    fn of(state: &State, standing: Standing) -> Self {
        match (state.is_live(), standing.held) {
            (false, _) => Self::Blocked(AWAY),
            (true, false) => Self::Blocked(LOCKED),
            (true, true) => Self::Possible,
        }
    }
}

/// Says it whenever it changes, for as long as there is a database.
pub(crate) async fn say(
    mut state: watch::Receiver<State>,
    mut standing: watch::Receiver<Standing>,
    said: watch::Sender<Writing>,
) {
    loop {
        let now = Writing::of(&state.borrow_and_update(), *standing.borrow_and_update());
        said.send_if_modified(|before| std::mem::replace(before, now) != now);
        let changed = tokio::select! {
            biased;
            changed = state.changed() => changed,
            changed = standing.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}
