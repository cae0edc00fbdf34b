//! Which lease says who may write, and its times.

use std::time::Duration;

/// A lease, the name of a candidate, and the times.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    pub namespace: String,
    pub name: String,
    /// Name of this process. A lease found in this name is taken as soon as it is not renewed, so that a restart does
    /// not wait long.
    pub identity: String,
    /// How long other processes leave an unchanged lease alone.
    pub lease: Duration,
    /// How long the holder may write after it sent a renewal.
    pub renew: Duration,
    /// Time between renewals, or between checks of a lease that another process holds.
    pub retry: Duration,
}
