//! `ovnkube` as far as settings go, for trying: `cargo run -p ovnkube-config --example show -- config -mtu=1500`.
//! `config` prints every value; a run that would start says how it would.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use ovnkube_config::{Command, Loaded, Places, cli, load};

fn main() -> ExitCode {
    let env = |name: &str| std::env::var(name).ok();
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    match show(std::env::args_os().skip(1), env, &Places::default(), &mut out, &mut err) {
        Ok(code) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints what the command line asks for and gives the exit code.
pub(crate) fn show(
    args: impl IntoIterator<Item = OsString>,
    env: impl Fn(&str) -> Option<String>,
    places: &Places,
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<u8> {
    let loaded = match load(args, env, places) {
        Ok(loaded) => loaded,
        Err(error) => {
            writeln!(err, "ovnkube: {error}")?;
            return Ok(error.exit_code());
        }
    };
    for warning in &loaded.warnings {
        writeln!(err, "warning: {warning}")?;
    }
    match &loaded.command {
        Command::Print(text) => write!(out, "{text}")?,
        Command::Config { json } => cli::run_config(&loaded, *json, out)?,
        Command::Replay { file } => writeln!(out, "replay {}", file.display())?,
        Command::Plan { node } => writeln!(out, "plan {node}")?,
        Command::Preflight { node } => writeln!(out, "preflight {node}")?,
        Command::InstallCni { program } => {
            writeln!(out, "install-cni {} {}", program.display(), loaded.settings.cni.bin_dir.display())?;
        }
        Command::ReadinessProbe(target) => writeln!(out, "readiness-probe {}", target.word())?,
        Command::Db(command) => writeln!(out, "db {command:?}")?,
        Command::Ic(command) => writeln!(out, "ic {command:?}")?,
        Command::Event(command) => writeln!(out, "event {command:?}")?,
        Command::EndpointsWait => writeln!(out, "endpoints wait")?,
        Command::EndpointsPublish { addresses, ports } => writeln!(out, "endpoints publish {addresses:?} {ports:?}")?,
        Command::Identity(flags) => writeln!(out, "identity {:?} {}", flags.webhook, flags.approver)?,
        Command::Why { from, to, port, objects } => writeln!(out, "why {from} {to} {port} {objects:?}")?,
        Command::Run => run(&loaded, out, err)?,
    }
    Ok(0)
}

fn run(loaded: &Loaded, out: &mut impl Write, err: &mut impl Write) -> io::Result<()> {
    for one in loaded.not_yet() {
        writeln!(err, "not yet: {one}")?;
    }
    let settings = &loaded.settings;
    writeln!(out, "{:?}\n{:?}", settings.mode, settings.kube_access)?;
    writeln!(out, "nb {}\nsb {}", settings.nb.address(), settings.sb.address())
}
