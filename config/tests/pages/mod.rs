//! The checked-in files that are made from the table of settings: the sample file and docs/configuration.md.

use std::fmt::Write as _;

use ovnkube_config::settings::{HEADINGS, SETTINGS};
use ovnkube_config::table::{Kind, Setting, Stage};

/// The annotated sample `ovn_k8s.conf`: every key with its default, commented out, so that the file
/// can be installed unchanged without overriding the environment.
pub(crate) fn sample() -> String {
    let mut text = String::from(
        "# Configuration of ovnkube, by default /etc/openvswitch/ovn_k8s.conf.\n\
         # Every key is here with its default. To change one, remove the ; before it.\n\
         # Flags win over this file; this file wins over the environment.\n",
    );
    for (section, heading) in HEADINGS.iter().filter(|(section, _)| !section.is_empty()) {
        let _ = write!(text, "\n# === {} ===\n[{section}]\n", heading.trim());
        for setting in SETTINGS.iter().filter(|setting| setting.section == *section) {
            let _ = write!(
                text,
                "\n# {}{}\n;{} = {}\n",
                setting.help(),
                setting.stage_note(),
                setting.key,
                setting.default
            );
        }
    }
    text
}

/// The page docs/configuration.md.
pub(crate) fn docs() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         All settings, by section of the configuration file. A flag wins over the file, the file\n\
         over the environment, the environment over the pod's service account, and that over the default. A flag\n\
         wins even when its value is the default. `ovnkube config` takes the same flags and prints every effective\n\
         value with the layer it came from (`-o json` for programs).\n\n\
         Flags may be written `-name value`, `-name=value`, `--name value` or `--name=value`; a boolean is `-name`\n\
         or `-name=false`. If a flag is repeated, the last one counts. The file is INI: names ignore case, `;` and `#` start\n\
         a comment, values with such characters go in double quotes, a boolean key without a value is true. An\n\
         unknown key causes a warning; text that is not INI prevents the start. An empty environment variable\n\
         counts as not set; an empty flag or key is an empty value.\n\n\
         *Later* marks settings that are read and checked but have no effect yet: ovnkube logs that when one is set.\n",
    );
    for (section, heading) in HEADINGS {
        let _ = write!(text, "\n## {}", heading.trim());
        if section.is_empty() {
            text.push_str("\n\nOnly on the command line.\n");
        } else {
            let _ = writeln!(text, ": `[{section}]`");
        }
        text.push_str("\n| key | flag | default | meaning |\n|---|---|---|---|\n");
        for setting in SETTINGS.iter().filter(|setting| setting.section == *section) {
            text.push_str(&docs_row(setting));
        }
    }
    text
}

fn docs_row(setting: &Setting) -> String {
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let mut flags: Vec<String> = Vec::new();
    if !setting.flag.is_empty() {
        flags.push(format!("`-{}`", setting.flag));
    }
    flags.extend(setting.aliases.iter().map(|alias| format!("(old: `-{alias}`)")));
    let mut meaning = setting.help().replace('|', "\\|");
    if !setting.env.is_empty() {
        let _ = write!(meaning, " Environment: `{}`.", setting.env);
    }
    if let (Kind::Int, Some((least, most))) = (setting.kind, setting.range) {
        let _ = write!(meaning, " {least} to {most}.");
    }
    for (section, key) in setting.old_keys {
        let _ = write!(meaning, " Old key: `[{section}] {key}`.");
    }
    match setting.stage {
        Stage::Works => {}
        Stage::Later => meaning.push_str(" *Later.*"),
        Stage::Ignored(reason) => {
            let _ = write!(meaning, " *Does nothing: {reason}.*");
        }
    }
    format!("| {} | {} | {} | {meaning} |\n", code(setting.key), flags.join(" "), code(setting.default))
}
