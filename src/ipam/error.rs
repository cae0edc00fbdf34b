//! Errors of the pools.

/// Why a pool did not allocate or take something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address or subnet lies outside of the pool's ranges.
    #[error("{what} is outside of {range}")]
    Outside { what: String, range: String },
    /// It is already taken.
    #[error("{what} is taken")]
    Taken { what: String },
    /// Nothing is free.
    #[error("no free {what} in {range}")]
    Exhausted { what: &'static str, range: String },
}
