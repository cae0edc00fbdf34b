//! The man page and the completions of shells, from the command line that `ovnkube` parses.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::PossibleValue;
use clap_complete::Shell;

/// Begins the man page.
const SYNOPSIS: &str = r".SH SYNOPSIS
.B ovnkube
\-\-init\-master \fINAME\fR \-\-init\-node \fINAME\fR [\fIFLAGS\fR]
.br
.B ovnkube
\fICOMMAND\fR [\fIFLAGS\fR]
.SH DESCRIPTION
Runs the parts that the flags \-\-init\-... name, until it gets a signal; with a command, it does that and ends.
Flags may be written with one dash or two, as \-name value or \-name=value. Booleans are \-name or \-name=false.
The first of these that sets a value wins: flag, configuration file, environment variable, service account.
.SH COMMANDS
ovnkube COMMAND \-\-help tells more.
";

/// Ends the man page.
const MORE: &str = r#".SH FILES
.TP
.I /etc/openvswitch/ovn_k8s.conf
The configuration file, unless \-\-config\-file names another one.
.TP
.I /etc/default/ovnkube\-master, /etc/default/ovnkube\-node
Variables of the systemd units: OVNKUBE_NAME, the name in the cluster, and OVNKUBE_OPTS, more flags.
.SH "EXIT STATUS"
.TP
0
It ended as asked.
.TP
1
It failed; one line on standard error tells why.
.TP
2
A flag, a key or a value is wrong. For the command plan: something would be changed.
.SH "SEE ALSO"
.BR ovn\-nbctl (8),
.BR ovn\-controller (8),
.BR ovs\-vsctl (8)
"#;

/// Writes every page.
pub(crate) fn write() -> Result<()> {
    for (file, text) in pages()? {
        let path = place(file);
        let folder = path.parent().context("no folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn place(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../dist")).join(file)
}

/// Each file below `dist/`, and its text.
fn pages() -> Result<[(&'static str, String); 4]> {
    Ok([
        ("man/ovnkube.8", man()?),
        ("completions/ovnkube.bash", completions(Shell::Bash)),
        ("completions/ovnkube.fish", completions(Shell::Fish)),
        ("completions/ovnkube.zsh", completions(Shell::Zsh)),
    ])
}

fn man() -> Result<String> {
    let command = ovnkube_config::cli::documented();
    let words = command.get_arguments().filter(|arg| arg.is_positional()).flat_map(clap::Arg::get_possible_values);
    let commands: String = words.map(|word| listed(&word)).collect();
    let man = clap_mangen::Man::new(command.mut_args(|arg| if arg.is_positional() { arg.hide(true) } else { arg }));
    let man = man.section("8").manual("ovnkube").date("");
    let mut text = b".\\\" Written by `cargo run -p xtask -- pages`; do not edit.\n".to_vec();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    text.extend(SYNOPSIS.as_bytes());
    text.extend(commands.as_bytes());
    man.render_options_section(&mut text)?;
    text.extend(MORE.as_bytes());
    Ok(String::from_utf8(text)?)
}

/// A command in the man page.
fn listed(word: &PossibleValue) -> String {
    let does = word.get_help().map(ToString::to_string).unwrap_or_default();
    format!(".TP\n.B {}\n{}\n", word.get_name(), does.replace('-', "\\-"))
}

fn completions(shell: Shell) -> String {
    let mut text = Vec::new();
    // names in the order of the words: the program's own is the first one
    let mut command = ovnkube_config::cli::documented().no_binary_name(false);
    clap_complete::generate(shell, &mut command, "ovnkube", &mut text);
    let made = String::from_utf8_lossy(&text).into_owned();
    let note = "# Written by `cargo run -p xtask -- pages`; do not edit.\n";
    // zsh reads the first line
    match made.split_once('\n') {
        Some((first, rest)) if first.starts_with("#compdef") => format!("{first}\n{note}{rest}"),
        _ => format!("{note}{made}"),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn checked_in_pages_are_what_the_command_line_gives() -> Result<()> {
        for (file, text) in pages()? {
            let have = std::fs::read_to_string(place(file))?;
            assert!(have == text, "dist/{file} is out of date: run `cargo run -p xtask -- pages`");
        }
        Ok(())
    }

    #[test]
    fn man_has_every_flag() -> Result<()> {
        let page = man()?.replace("\\-", "-");
        for arg in ovnkube_config::cli::documented().get_arguments() {
            let Some(flag) = arg.get_long() else { continue };
            assert!(page.contains(&format!("--{flag}")), "no --{flag} in the man page");
        }
        Ok(())
    }

    /// What bash offers for the word `typed`.
    fn offered(typed: &str) -> Result<String> {
        let script = format!(
            "source {:?}; COMP_WORDS=(ovnkube {typed}) COMP_CWORD=1; _ovnkube ovnkube {typed} ovnkube; echo ${{COMPREPLY[@]}}",
            place("completions/ovnkube.bash")
        );
        let output = Command::new("bash").args(["-c", &script]).output().context("cannot run bash")?;
        Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
    }

    #[test]
    fn bash_completes_commands_and_flags() -> Result<()> {
        assert_eq!(offered("wh")?, "why");
        assert_eq!(offered("--init-m")?, "--init-master");
        assert_eq!(offered("--routable")?, "--routable-mtu");
        Ok(())
    }
}
