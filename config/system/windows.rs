//! Words of the command line, which on Windows are UTF-16.

use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::{OsStrExt, OsStringExt};

/// What follows the first `=`; nothing if there is none.
pub(crate) fn after_equals(word: &OsStr) -> OsString {
    let value: Vec<_> = word.encode_wide().skip_while(|unit| *unit != u16::from(b'=')).skip(1).collect();
    OsString::from_wide(&value)
}
