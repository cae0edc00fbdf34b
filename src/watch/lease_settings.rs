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

impl LeaseSettings {
    /// `lease` is 10 s, `renew` 8 s and `retry` 2 s, the namespace `ovn-kubernetes`.
    pub fn new(name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: "ovn-kubernetes".into(),
            name: name.into(),
            identity: identity.into(),
            lease: Duration::from_secs(10),
            renew: Duration::from_secs(8),
            retry: Duration::from_secs(2),
        }
    }
}
