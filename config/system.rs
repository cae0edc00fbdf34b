//! Words of the command line, which on unix are bytes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What follows the first `=`; nothing if there is none.
pub(crate) fn after_equals(word: &OsStr) -> OsString {
    let value = word.as_bytes().splitn(2, |byte| *byte == b'=').nth(1);
    OsString::from_vec(value.unwrap_or_default().to_vec())
}
