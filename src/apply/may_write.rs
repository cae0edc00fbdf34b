//! The check that is made before each write.

use std::sync::Arc;

/// Returns whether this process may write now.
pub type MayWrite = Arc<dyn Fn() -> bool + Send + Sync>;
