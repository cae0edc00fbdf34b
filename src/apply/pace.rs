//! How often what other clusters write is followed. Whoever writes to the shared databases can change a row again and again, and two
//! clusters can take the same rows for their own: each change would be a transaction here, for northd and for every host. Also what is to be
//! followed.

use std::time::Duration;

use ovnkube_ovn::ic_sb::route;
use ovnkube_ovsdb::Event;
use tokio::time::Instant;

/// Each change that is followed counts for so long.
const EACH: Duration = Duration::from_secs(1);
/// What counts at the same time: as many changes as come at once where clusters join, and more than any edit makes.
const MOST: Duration = Duration::from_secs(100);

/// A step that led to nothing counts for so many times as long as it took, at most [`EACH`]: rows of others that mean nothing here, and change
/// all the time, cost this part of a CPU in the end.
const IN_VAIN: u32 = 10;

/// See the module.
pub(crate) struct Pace {
    /// Until when the steps so far count, one after another.
    until: Instant,
    /// As the last step saw it, the cluster has no earlier name in the shared databases.
    pub(crate) has_one_name: bool,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { until: now, has_one_name: false }
    }

    /// When the next change may be followed; `None`: now.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let more = self.until.saturating_duration_since(now + MOST);
        (!more.is_zero()).then(|| now + more)
    }

    /// Whether there may be something to do after these events of IC-SB. With many prefixes a step costs more than to write one of them,
    /// so none follows only since routes are there that the last step wrote. While the cluster has an earlier name, one does: packets
    /// leave by the new ports once the routes by these are there.
    pub(crate) fn calls_for_step(&self, events: &[Event]) -> bool {
        let is_known = |event: &Event| matches!(event, Event::Row(row) if row.own && row.table == route::TABLE);
        !(self.has_one_name && events.iter().all(is_known))
    }

    /// A change was followed.
    pub(crate) fn note(&mut self, now: Instant) {
        self.until = self.until.max(now) + EACH;
    }

    /// A step led to nothing, and took so long.
    pub(crate) fn note_in_vain(&mut self, now: Instant, took: Duration) {
        self.until = self.until.max(now) + EACH.min(took * IN_VAIN);
    }
}

#[cfg(test)]
mod tests {
    use ovnkube_ovn::ic_sb::port_binding;
    use ovnkube_ovn::{Table, Uuid};
    use ovnkube_ovsdb::RowEvent;

    use super::*;

    #[test]
    fn only_routes_that_it_wrote_itself_call_for_no_step() {
        let row = |table: &'static Table, own| {
            Event::Row(RowEvent { table, uuid: Uuid::nil(), old: None, overwritten: None, new: None, own })
        };
        let ours = || row(route::TABLE, true);
        let mut pace = Pace::new(Instant::now());
        assert!(pace.calls_for_step(&[ours()]), "its packets may go over to other ports");
        pace.has_one_name = true;
        assert!(!pace.calls_for_step(&[ours(), ours()]));
        for other in [row(route::TABLE, false), row(port_binding::TABLE, true), Event::Lost, Event::Synced] {
            assert!(pace.calls_for_step(&[ours(), other]));
        }
    }

    /// How many of the changes that come so often, for five minutes, are followed when they come.
    fn followed(pace: &mut Pace, began: Instant, every: Duration) -> u32 {
        let times = (0..).map(|n| every * n).take_while(|time| *time < Duration::from_secs(300));
        let at_once = times.map(|time| began + time).filter(|now| {
            let is_due = pace.due(*now).is_none();
            if is_due {
                pace.note(*now);
            }
            is_due
        });
        u32::try_from(at_once.count()).unwrap()
    }

    #[test]
    fn a_row_that_changes_again_and_again_is_followed_once_a_second() {
        let began = Instant::now();
        let mut pace = Pace::new(began);
        assert_eq!(followed(&mut pace, began, EACH), 300, "each of few");
        let mut pace = Pace::new(began);
        let many = followed(&mut pace, began, EACH / 50);
        assert!((395..=405).contains(&many), "{many}");
        let end = began + Duration::from_secs(300);
        let due = pace.due(end).map(|due| due - end);
        assert!(due.is_none_or(|due| due <= EACH), "{due:?}");
        let later = end + MOST + EACH;
        (0..100).for_each(|_| pace.note(later));
        assert!(pace.due(later).is_none(), "a hundred at once again");
    }

    #[test]
    fn steps_that_lead_to_nothing_take_a_small_part_of_the_time() {
        let (began, took) = (Instant::now(), Duration::from_millis(20));
        let (mut pace, mut now, mut steps) = (Pace::new(began), began, 0);
        while now < began + Duration::from_secs(300) {
            now = pace.due(now).unwrap_or(now) + took;
            pace.note_in_vain(now, took);
            steps += 1;
        }
        // a tenth of the time, and what may count at first
        assert!((1990..=2010).contains(&steps), "{steps}");
        now = pace.due(now).unwrap_or(now);
        pace.note_in_vain(now, EACH);
        assert!(pace.due(now) <= Some(now + EACH), "no longer than a change is awaited");
    }
}
