//! What policies need in the database.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// Limit for the numbers that a named port stands for.
pub(crate) const MOST_NUMBERS: usize = 64;

/// Limits for all policies of a namespace together: they are kept in memory, here, in the databases and on nodes.
pub(crate) const OF_NAMESPACE: Limit = Limit { entries: 800_000, rows: 200_000 };

/// What policies may need at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) entries: usize,
    pub(crate) rows: usize,
}

/// What one or several policies need in the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Prefixes, selectors and ports in ACLs.
    pub(super) entries: usize,
    /// Those that are needed for each number of a named port.
    pub(super) named_entries: usize,
    /// ACLs and address sets.
    pub(super) rows: usize,
    /// Those that are needed for each number of a named port.
    pub(super) named_rows: usize,
}

impl Need {
    /// Whether there is room for one number of each named port.
    pub(crate) fn fits(self, limit: Limit) -> bool {
        self.entries + self.named_entries <= limit.entries && self.rows + self.named_rows <= limit.rows
    }

    /// For how many numbers of each named port there is room.
    pub(crate) fn most_numbers(self, limit: Limit) -> usize {
        let in_acls = limit.entries.saturating_sub(self.entries) / self.named_entries.max(1);
        let of_rows = limit.rows.saturating_sub(self.rows) / self.named_rows.max(1);
        in_acls.min(of_rows).clamp(1, MOST_NUMBERS)
    }
}

impl Add for Need {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            named_entries: self.named_entries + other.named_entries,
            rows: self.rows + other.rows,
            named_rows: self.named_rows + other.named_rows,
        }
    }
}

impl Sub for Need {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            entries: self.entries - other.entries,
            named_entries: self.named_entries - other.named_entries,
            rows: self.rows - other.rows,
            named_rows: self.named_rows - other.named_rows,
        }
    }
}
