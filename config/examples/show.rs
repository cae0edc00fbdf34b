//! `ovnkube` as far as settings go, for trying and for snapshots: `config` prints, a run that would
//! start says which mode. `SHOW_ROOT` moves the default file and the service account below a directory.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use ovnkube_config::{Command, Error, Places, cli, load};

fn main() -> ExitCode {
    match show(&mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "ovnkube: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn show(out: &mut impl Write) -> Result<(), Error> {
    let mut places = Places::default();
    if let Ok(root) = std::env::var("SHOW_ROOT") {
        let below = |path: &Path| Path::new(&root).join(path.strip_prefix("/").unwrap_or(path));
        places = Places { config_file: below(&places.config_file), service_account: below(&places.service_account) };
    }
    let loaded = load(std::env::args_os().skip(1), |name| std::env::var(name).ok(), &places)?;
    let mut err = std::io::stderr().lock();
    for warning in &loaded.warnings {
        let _ = writeln!(err, "warning: {warning}");
    }
    let _ = match &loaded.command {
        Command::Print(text) => write!(out, "{text}"),
        Command::Config { json } => cli::run_config(&loaded, *json, out),
        Command::Run => {
            for one in loaded.not_yet() {
                let _ = writeln!(err, "not yet: {one}");
            }
            writeln!(
                out,
                "{:#?}\n{:#?}\nnb {}\nsb {}",
                loaded.settings.mode,
                loaded.settings.kube_access,
                loaded.settings.nb.address(),
                loaded.settings.sb.address()
            )
        }
    };
    Ok(())
}
