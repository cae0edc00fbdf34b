//! The words of `ovnkube ic`.

use crate::Error;

/// What is asked about the interconnection with other clusters, or of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IcCommand {
    Status {
        json: bool,
    },
    Routes {
        json: bool,
    },
    Diagnose {
        json: bool,
    },
    /// Remove all that this cluster has, so that it is made anew.
    Reset,
    Clean {
        left: Left,
        /// Also what may be alive.
        force: bool,
    },
}

/// What something that is gone left in the shared databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// The cluster of this az-name.
    Zone(String),
    /// The gateway on this host.
    Gateway(String),
}

const ACTIONS: &str = "status, routes, diagnose, reset and clean";

/// The words after `ic`.
pub(crate) fn parse<'a>(
    words: &mut impl Iterator<Item = &'a str>,
    json: bool,
    force: bool,
) -> Result<IcCommand, Error> {
    let usage = |problem: String| Error::Usage(format!("ic {problem}; ovnkube ic --help tells more"));
    let action = words.next().ok_or_else(|| usage(format!("needs to know what to do: {ACTIONS}")))?;
    let command = match action {
        "status" => IcCommand::Status { json },
        "routes" => IcCommand::Routes { json },
        "diagnose" => IcCommand::Diagnose { json },
        "reset" => IcCommand::Reset,
        "clean" => {
            let kind = words.next().ok_or_else(|| usage("clean needs to know what: az NAME or node NAME".into()))?;
            let mut name = || {
                let name = words.next().filter(|name| !name.is_empty());
                name.map(str::to_owned).ok_or_else(|| usage(format!("clean {kind} needs a name")))
            };
            let left = match kind {
                "az" => Left::Zone(name()?),
                "node" => Left::Gateway(name()?),
                _ => return Err(usage(format!("clean: {kind:?} is neither az nor node"))),
            };
            IcCommand::Clean { left, force }
        }
        _ => return Err(usage(format!("{action:?} is none of {ACTIONS}"))),
    };
    if json && matches!(action, "reset" | "clean") {
        return Err(usage("prints JSON with status, routes and diagnose only; leave -o out".into()));
    }
    if force && action != "clean" {
        return Err(usage("takes --force with clean only; leave it out".into()));
    }
    Ok(command)
}
