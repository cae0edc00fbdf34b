//! In place of the node agent's part, on systems that are no nodes: every command says so.

use std::future::{Ready, ready};

use anyhow::{Result, anyhow};
use ovnkube_config::Settings;
use ovnkube_model::Finding;
use ovnkube_telemetry::NodeHealth;

use crate::stop::Stop;

fn refused<T>(cannot: &str) -> Ready<Result<T>> {
    ready(Err(anyhow!("cannot {cannot}: nodes run Linux, and this is Windows; run this command on the node")))
}

pub(crate) fn run(_: Settings, name: String, _: NodeHealth, _: Stop) -> Ready<Result<()>> {
    refused(&format!("run the agent of node {name}"))
}

pub(crate) fn tell_refusal(_: &Settings, _: &str, _: &str) -> Ready<()> {
    ready(())
}

pub(crate) fn answers() -> Ready<Result<bool>> {
    refused("ask the agent of a node")
}

pub(crate) fn has_been_ready() -> Ready<Result<Option<bool>>> {
    refused("ask the agent of a node")
}

pub(crate) fn plan(_: &Settings, name: &str) -> Ready<Result<Vec<String>>> {
    refused(&format!("plan for node {name}"))
}

pub(crate) fn preflight(_: &Settings) -> Ready<Result<Vec<Finding>>> {
    refused("check this host")
}

pub(crate) fn clean_up(_: &Settings, name: &str) -> Ready<Result<()>> {
    refused(&format!("clean up node {name}"))
}
