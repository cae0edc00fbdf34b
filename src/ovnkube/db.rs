//! `ovnkube db`: how the servers of the OVN databases are, and steps that change them. What is said and which steps are allowed
//! is decided in `ovnkube-db`; here the servers are asked, and the programs of Open vSwitch run.

mod contents;
pub(crate) mod files;
pub(crate) mod look;
pub(crate) mod place;
mod programs;
mod steps;

use std::io::Write as _;

use anyhow::{Context as _, Result};
use ovnkube_config::{DbCommand, DbStep, Settings, Side};
use ovnkube_db::Report;

use place::Place;
use steps::Steps;

pub(crate) use programs::Failed;

/// Runs the command. Whether all is well: nothing is to be done about the servers that it prints.
pub(crate) async fn run(settings: &Settings, command: &DbCommand) -> Result<bool, Failed> {
    match command {
        DbCommand::Status { side, json } => Ok(status(settings, *side, *json).await?),
        DbCommand::Do(side, step) => {
            let steps = Steps::new(Place::of(settings, *side));
            let said = match step {
                DbStep::Backup(file) => steps.backup(file).await?,
                DbStep::Restore(file) => steps.restore(file).await?,
                DbStep::Compact => steps.compact().await?,
                DbStep::Leave(None) => steps.leave().await?,
                DbStep::Leave(Some(member)) => steps.remove(member).await?,
                DbStep::Join(raft) => steps.join(raft).await?,
                DbStep::Replace(raft) => steps.replace(raft).await?,
                DbStep::Bootstrap(local, contents) => steps.bootstrap(local, contents.as_deref()).await?,
                DbStep::Convert(schema) => steps.convert(schema.as_deref()).await?,
            };
            print(&said)?;
            Ok(true)
        }
    }
}

async fn status(settings: &Settings, side: Option<Side>, json: bool) -> Result<bool> {
    let (north, south) = (Place::of(settings, Side::North), Place::of(settings, Side::South));
    let observed = match side {
        Some(Side::North) => vec![look::look(&north).await],
        Some(Side::South) => vec![look::look(&south).await],
        None => <[_; 2]>::from(tokio::join!(look::look(&north), look::look(&south))).into(),
    };
    let reports: Vec<Report> = observed.iter().map(Report::of).collect();
    if json {
        print(&serde_json::to_string_pretty(&reports).context("cannot print the answer")?)?;
    } else {
        let texts: Vec<String> = reports.iter().map(|report| report.to_string().trim_end().to_owned()).collect();
        print(&texts.join("\n\n"))?;
    }
    Ok(reports.iter().all(Report::is_healthy))
}

pub(crate) fn print(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot print the answer")
}
