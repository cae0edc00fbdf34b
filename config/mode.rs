//! Which parts run in this process.

use crate::Error;
use crate::layers::{Layered, Source};
use crate::settings::CommandLine;

/// Parts to run, each with the identity it runs under. At most one of the ways: run, clean up, remove.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mode {
    /// Hands out node subnets; opens no OVN database. The identity holds the lease.
    pub cluster_manager: Option<String>,
    /// Writes the OVN northbound database. The identity holds the lease.
    pub controller: Option<String>,
    /// Wires pods on this node; the name of the node in Kubernetes.
    pub node: Option<String>,
    /// Undoes what the node agent set up on this host.
    pub cleanup_node: Option<String>,
    /// Removes a node's rows from the OVN databases.
    pub remove_node: Option<String>,
}

impl Mode {
    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the northbound database is opened.
    pub fn uses_northbound(&self) -> bool {
        self.controller.is_some() || self.remove_node.is_some()
    }

    /// Whether the southbound database is opened, by itself or by the node's ovn-controller.
    pub fn uses_southbound(&self) -> bool {
        self.uses_northbound() || self.node.is_some()
    }

    /// Whether the Kubernetes API is used.
    pub fn uses_kubernetes(&self) -> bool {
        self.cluster_manager.is_some() || self.controller.is_some() || self.node.is_some()
    }

    /// Mode of the flags. A mix that cannot run is an error; none at all is not, see `is_empty`.
    pub(crate) fn of(flags: &CommandLine, layered: &Layered) -> Result<Self, Error> {
        let named = [
            ("init-master", &flags.init_master),
            ("init-cluster-manager", &flags.init_cluster_manager),
            ("init-ovnkube-controller", &flags.init_ovnkube_controller),
            ("init-node", &flags.init_node),
            ("cleanup-node", &flags.cleanup_node),
            ("remove-node", &flags.remove_node),
        ];
        let given: Vec<(&str, &str)> =
            named.iter().filter_map(|(flag, value)| value.as_deref().map(|value| (*flag, value))).collect();
        for (flag, _) in &named {
            // an empty name is most likely a variable that was not set
            match layered.get("", flag) {
                Some(one) if one.source == Source::Flag => check_name(flag, &one.text)?,
                _ => {}
            }
        }
        alone(&given)?;
        if let [(first, name), rest @ ..] = given.as_slice()
            && let Some((other, another)) = rest.iter().find(|(_, other)| other != name)
        {
            return Err(Error::Usage(format!(
                "--{first} is {name:?} but --{other} is {another:?}; parts of one process must have the same name"
            )));
        }
        let mode = Self {
            cluster_manager: flags.init_master.clone().or_else(|| flags.init_cluster_manager.clone()),
            controller: flags.init_master.clone().or_else(|| flags.init_ovnkube_controller.clone()),
            node: flags.init_node.clone(),
            cleanup_node: flags.cleanup_node.clone(),
            remove_node: flags.remove_node.clone(),
        };
        if mode.cluster_manager.is_some() && mode.node.is_some() && mode.controller.is_none() {
            return Err(Error::Usage(
                "--init-cluster-manager and --init-node need --init-ovnkube-controller in the same process; \
                 add it, or write --init-master, or run them as two processes"
                    .to_owned(),
            ));
        }
        Ok(mode)
    }
}

/// `--cleanup-node` and `--remove-node` go with no other mode.
fn alone(given: &[(&str, &str)]) -> Result<(), Error> {
    let lonely = given.iter().find(|(flag, _)| matches!(*flag, "cleanup-node" | "remove-node"));
    match lonely.and_then(|(lonely, _)| given.iter().find(|(flag, _)| flag != lonely).map(|(other, _)| (lonely, other)))
    {
        Some((lonely, other)) => {
            Err(Error::Usage(format!("--{lonely} goes with no other mode, but --{other} is given; run it by itself")))
        }
        None => Ok(()),
    }
}

/// A node's name must be Kubernetes' own; a master's is only the holder of a lease.
fn check_name(flag: &str, name: &str) -> Result<(), Error> {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let (fine, rule) = if flag.ends_with("-node") {
        (name.split('.').all(label), "lower case letters, digits, dashes and dots, as kubectl get nodes shows it")
    } else {
        (!name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control()), "this host's name")
    };
    if fine && name.len() <= 253 {
        return Ok(());
    }
    Err(Error::Usage(format!("cannot use {name:?} for --{flag}: it is not a name; write {rule}")))
}
