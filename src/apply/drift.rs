//! What the changes of other programs mean for us.

use ovnkube_model::World;
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::logical_switch_port as lsp;
use ovnkube_ovsdb::{Cache, RowEvent};
use ovnkube_plan::{Key, RowKey, identity, is_garbage};
use tokio::time::Instant;
use tracing::debug;

use crate::batch::has_lost_addresses;
use crate::owner_index::OwnerIndex;
use crate::sweep::Sweep;

pub(crate) struct Drift {
    /// Those that want one of the rows, or something in one.
    pub(crate) keys: Vec<Key>,
    /// New rows that look like ours, or new elements in our rows, may be superfluous.
    leaves_rows: bool,
    /// There are ports that look like ours and that no key wants, or not with these addresses, as when the database was put back from a
    /// backup. The addresses may have been given to others.
    brings_ports: bool,
}

impl Drift {
    pub(crate) fn of(events: &[RowEvent], owner_index: &OwnerIndex, world: &World, cache: &Cache) -> Self {
        // a row that was renamed is missing under its old name
        let rows = events.iter().flat_map(|event| [&event.new, &event.old, &event.overwritten]).flatten();
        let ids = rows.filter_map(|row| Some((row.table().name, identity(row)?)));
        let keys = owner_index.interested(&ids.collect());
        let leftovers = || events.iter().filter_map(|event| event.new.as_deref()).filter(|row| is_garbage(row, false));
        let is_unwanted_port = |row: &Row| {
            let is_wanted = || owner_index.is_wanted(&RowKey::new(lsp::TABLE, row.str(lsp::NAME)));
            row.table() == lsp::TABLE && !is_wanted()
        };
        let leaves_rows = !keys.is_empty() || leftovers().next().is_some();
        if leaves_rows {
            debug!(rows = events.len(), keys = keys.len(), "changed by another program");
        }
        // one that stands in another node's switch than where it was last would not go with its key
        let is_another = |key: &Key| {
            let had = owner_index.get(key).filter(|_| matches!(key, Key::Pods(_)));
            had.is_some_and(|had| has_lost_addresses(key, &ovnkube_plan::want(key, world), had, cache))
        };
        let brings_ports = leftovers().any(is_unwanted_port) || keys.iter().any(is_another);
        Self { keys, leaves_rows, brings_ports }
    }

    pub(crate) fn request_sweep(&self, sweep: &mut Sweep, now: Instant) {
        if self.brings_ports {
            sweep.request_before_keys(now);
        } else if self.leaves_rows {
            sweep.request(now);
        }
    }
}
