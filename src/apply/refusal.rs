//! What people are told of a key that the database refuses.

use ovnkube_model::{Notice, Severity, World};
use ovnkube_ovsdb::TxnError;
use ovnkube_plan::Key;
use ovnkube_watch::Events;

/// Publishes an Event on the object that says why it has no network.
pub(crate) fn report(events: &Events, world: &World, key: &Key, error: &TxnError) {
    if let Some(object) = ovnkube_plan::object(key, world) {
        let message = format!(
            "cannot write its rows to the northbound database: {error}; change the object, or wait: ovnkube tries again"
        );
        events.publish(Notice { object, severity: Severity::Warning, reason: "RowsRefused", message });
    }
}
