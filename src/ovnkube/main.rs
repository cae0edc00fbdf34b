//! `ovnkube`: turns a Kubernetes cluster into an OVN network. See `ovnkube --help`.

mod cluster;
mod connections;
mod controller;
mod db;
mod disks;
mod election_timer;
mod endpoints;
mod event;
mod host_routes;
mod ic;
mod install_cni;
#[cfg_attr(windows, path = "system/no_node.rs")]
mod node;
mod northd;
mod pidfile;
mod preflight;
mod probe;
mod recording;
mod remove;
mod roles;
mod server_keys;
mod stop;
mod stranger;
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
mod translate;
mod twin;
mod why;
mod writing;

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use ovnkube_config::{Command, Loaded, Places, cli};

fn main() -> ExitCode {
    let env = |name: &str| std::env::var(name).ok();
    match ovnkube_config::load(std::env::args_os().skip(1), env, &Places::default()) {
        Ok(loaded) => run(&loaded),
        // for these commands exit code 2 means that there is something to do
        Err(error) if std::env::args_os().any(|word| ["db", "ic", "plan", "preflight"].iter().any(|w| word == *w)) => {
            fail(&error, 1)
        }
        Err(error) => fail(&error, error.exit_code()),
    }
}

fn run(loaded: &Loaded) -> ExitCode {
    // what runs on logs them
    if !matches!(loaded.command, Command::Run | Command::Identity(_)) || loaded.settings.mode.remove_node.is_some() {
        warn(loaded);
    }
    let printed = match &loaded.command {
        Command::Print(text) => write!(std::io::stdout(), "{text}"),
        Command::Config { json } => cli::run_config(loaded, *json, &mut std::io::stdout().lock()),
        Command::Plan { node } => return report(|| roles::plan(loaded, node)),
        Command::Preflight { node } => return report(|| roles::preflight(loaded, *node)),
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
        Command::EndpointsWait => match roles::databases(loaded) {
            Ok(text) => write!(std::io::stdout(), "{text}"),
            Err(error) => return fail(&format!("{error:#}"), 1),
        },
        Command::EndpointsPublish { addresses, ports } => {
            return roles::publish(loaded, addresses, *ports)
                .map_or_else(|error| fail(&format!("{error:#}"), 1), |()| ExitCode::SUCCESS);
        }
        Command::Event(command) => {
            return roles::event(loaded, command)
                .map_or_else(|error| fail(&format!("{error:#}"), 1), |()| ExitCode::SUCCESS);
        }
        Command::InstallCni { program } => {
            let cni = &loaded.settings.cni;
            match install_cni::run(program, &cni.bin_dir, &cni.plugin) {
                Ok(text) => write!(std::io::stdout(), "{text}"),
                Err(error) => return fail(&format!("{error:#}"), 1),
            }
        }
        Command::ReadinessProbe(target) => {
            return roles::probe(loaded, *target)
                .map_or_else(|error| fail(&format!("{error:#}"), 1), |()| ExitCode::SUCCESS);
        }
        Command::Db(command) => return told(roles::db(loaded, command)),
        Command::Ic(command) => return told(roles::ic(loaded, command)),
        Command::Identity(flags) => {
            return roles::identity(loaded, flags)
                .map_or_else(|error| fail(&format!("{error:#}"), 1), |()| ExitCode::SUCCESS);
        }
        Command::Run => {
            return roles::run(loaded).map_or_else(|error| fail(&format!("{error:#}"), 1), |()| ExitCode::SUCCESS);
        }
    };
    // the reader of our output may have closed it
    printed.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// 0 if all is well or done, 2 if something is to be done.
fn told(outcome: Result<bool, db::Failed>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(db::Failed::Refused(why)) => fail(&format!("refused: {why}"), 2),
        Err(db::Failed::Error(error)) => fail(&format!("{error:#}"), 1),
    }
}

/// Prints what is to be done, one step a line. Exits with 0 if that is nothing, and with 2 if it is something.
fn report<T: Display>(find: impl FnOnce() -> anyhow::Result<Vec<T>>) -> ExitCode {
    match find() {
        Ok(steps) => {
            let printed = steps.iter().try_for_each(|step| writeln!(std::io::stdout(), "{step}"));
            match (printed, steps.is_empty()) {
                (Err(_), _) => ExitCode::FAILURE,
                (Ok(()), true) => ExitCode::SUCCESS,
                (Ok(()), false) => ExitCode::from(2),
            }
        }
        Err(error) => fail(&format!("{error:#}"), 1),
    }
}

fn warn(loaded: &Loaded) {
    for warning in loaded.remarks() {
        let _ = writeln!(std::io::stderr(), "ovnkube: {warning}");
    }
}

fn fail(error: &dyn Display, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "ovnkube: {error}");
    ExitCode::from(code)
}
