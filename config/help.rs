//! The help line of a setting.

use std::fmt::Write as _;

use crate::table::Setting;

/// Help, default, file key and variable of a flag.
pub(crate) fn flag_help(setting: &Setting) -> String {
    let mut text = setting.help().to_owned();
    if !setting.default.is_empty() {
        let _ = write!(text, " Default: {}.", setting.default);
    }
    if !setting.section.is_empty() {
        let _ = write!(text, " File: [{}] {}.", setting.section, setting.key);
    }
    if !setting.env.is_empty() {
        let _ = write!(text, " Environment: {}.", setting.env);
    }
    text + &setting.stage_note()
}
