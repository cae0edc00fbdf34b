//! Maps whose keys are uuids.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use ovnkube_ovn::Uuid;

/// Uuids are random already: hashing them again would cost time and not help.
#[derive(Default)]
pub(crate) struct UuidHasher(u64);

impl Hasher for UuidHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.0 = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }
}

pub(crate) type UuidMap<T> = HashMap<Uuid, T, BuildHasherDefault<UuidHasher>>;
