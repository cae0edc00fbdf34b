//! `ovnkube ic`: how this cluster is joined with others, and what people have removed of it. What is said and what is removed is decided
//! in `ovnkube-interconnect`; here Kubernetes and the databases are read and written.

mod databases;
mod first;
mod kubernetes;
mod look;
pub(crate) mod servers;
mod steps;

use anyhow::{Context as _, Result};
use ovnkube_config::{IcCommand, Settings};
use ovnkube_interconnect::report::{RouteList, Status, Verdict, checks};
use serde::Serialize;

use crate::db::{Failed, print};
use look::look;

/// Runs the command. Whether all is well: nothing is to be done about the interconnection.
pub(crate) async fn run(settings: &Settings, command: &IcCommand) -> Result<bool, Failed> {
    match command {
        IcCommand::Status { json } => {
            let status = Status::of(&look(settings).await);
            say(&status, &status.to_string(), *json)?;
            Ok(status.is_in_order())
        }
        IcCommand::Routes { json } => {
            let facts = look(settings).await;
            let routes = RouteList::of(&facts);
            say(&routes, &routes.to_string(), *json)?;
            Ok(routes.is_in_order())
        }
        IcCommand::Diagnose { json } => {
            let checks = checks(&look(settings).await);
            let lines: Vec<String> = checks.iter().map(ToString::to_string).collect();
            say(&checks, &lines.join("\n"), *json)?;
            Ok(checks.iter().all(|check| check.verdict == Verdict::Ok))
        }
        IcCommand::Reset => {
            print(&steps::reset(settings).await?)?;
            Ok(true)
        }
        IcCommand::Clean { left, force } => {
            print(&steps::clean(settings, left, *force).await?)?;
            Ok(true)
        }
    }
}

fn say<T: Serialize>(answer: &T, text: &str, json: bool) -> Result<()> {
    if json {
        print(&serde_json::to_string_pretty(answer).context("cannot print the answer")?)
    } else {
        print(text.trim_end())
    }
}
