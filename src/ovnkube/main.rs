//! `ovnkube`: turns a Kubernetes cluster into an OVN network. See `ovnkube --help`.

mod cluster;
mod connections;
mod controller;
mod node;
mod pidfile;
mod recording;
mod remove;
mod roles;
mod stop;
mod translate;
mod why;

use std::io::Write as _;
use std::process::ExitCode;

use ovnkube_config::{Command, Loaded, Places, cli};

fn main() -> ExitCode {
    let env = |name: &str| std::env::var(name).ok();
    match ovnkube_config::load(std::env::args_os().skip(1), env, &Places::default()) {
        Ok(loaded) => run(&loaded),
        // for this command exit code 2 means that there is something to change
        Err(error) if std::env::args_os().any(|word| word == "plan") => fail(&error, 1),
        Err(error) => fail(&error, error.exit_code()),
    }
}

fn run(loaded: &Loaded) -> ExitCode {
    let printed = match &loaded.command {
        Command::Print(text) => write!(std::io::stdout(), "{text}"),
        Command::Config { json } => {
            warn(loaded);
            cli::run_config(loaded, *json, &mut std::io::stdout().lock())
        }
        Command::Plan { node } => return plan(loaded, node),
        Command::Replay { file } => {
            return match recording::replay(file, &mut std::io::stdout().lock()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(&format!("{error:#}"), 1),
            };
        }
        Command::Why { from, to, port, objects } => {
            let answer = why::Words { from, to, port, objects: objects.as_deref() }.answer(&loaded.settings);
            match answer {
                Ok(text) => write!(std::io::stdout(), "{text}"),
                Err(error) => return fail(&format!("{error:#}"), 1),
            }
        }
        Command::Run => {
            return roles::run(loaded).map_or_else(|error| fail(&format!("{error:#}"), 1), |()| ExitCode::SUCCESS);
        }
    };
    // the reader of our output may have closed it
    printed.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// Exits with 0 if there is nothing to change, and with 2 if there is.
fn plan(loaded: &Loaded, node: &str) -> ExitCode {
    warn(loaded);
    match roles::plan(loaded, node) {
        Ok(changes) => {
            let printed = changes.iter().try_for_each(|change| writeln!(std::io::stdout(), "{change}"));
            match (printed, changes.is_empty()) {
                (Err(_), _) => ExitCode::FAILURE,
                (Ok(()), true) => ExitCode::SUCCESS,
                (Ok(()), false) => ExitCode::from(2),
            }
        }
        Err(error) => fail(&format!("{error:#}"), 1),
    }
}

fn warn(loaded: &Loaded) {
    for warning in &loaded.warnings {
        let _ = writeln!(std::io::stderr(), "ovnkube: {warning}");
    }
}

fn fail(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "ovnkube: {error}");
    ExitCode::from(code)
}
