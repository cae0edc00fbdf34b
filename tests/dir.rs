//! A directory for a test.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A new temporary directory.
pub fn fresh_dir(prefix: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let name = format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        match std::fs::create_dir(&dir) {
            // left by a crashed process with the same number
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            made => {
                made.unwrap();
                return dir;
            }
        }
    }
}
