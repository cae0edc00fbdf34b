//! What fails on the node.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use ovnkube_node_plan::gateway::Refused;

/// What failed on the node.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Host(#[from] ovnkube_host::Error),
    #[error("cannot {what}: {problem}")]
    Transact { what: String, problem: ovnkube_ovsdb::TxnError },
    #[error(transparent)]
    Remote(#[from] ovnkube_ovsdb::RemoteError),
    #[error("cannot connect to Open_vSwitch at {remote}: {why}")]
    OvsRemote { remote: String, why: String },
    #[error(
        "cannot {what}: the Open_vSwitch database did not answer within 10 s; see that ovsdb-server runs: \
         `ovs-vsctl show`"
    )]
    DatabaseSilent { what: String },
    #[error("cannot go on: the connection to the kernel's netlink has failed; start the agent again")]
    NetlinkEnded,
    #[error("cannot find the Open_vSwitch row: the database is empty; run `ovs-vsctl init`")]
    NoOvs,
    #[error("cannot find bridge br-int: it is not there yet")]
    NoBridge,
    #[error(transparent)]
    Gateway(#[from] Refused),
    #[error(
        "cannot keep {nic} in bridge {bridge}: {why}, so all was moved back; find out why the bridge passes \
         nothing (ovs-vsctl show, ovs-vswitchd's log) and restart the node agent"
    )]
    Undone { nic: String, bridge: String, why: String },
    #[error(
        "cannot read the own Node and the services: the API server has not sent all of them within 20 s; see that \
         it is reached and that the Node is there"
    )]
    NothingHeard,
    #[error("cannot clean up the node: a test ended it")]
    Halted,
    #[error(
        "cannot use link {name}: it exists and is not of this sandbox; see what it is, and remove it: ip -d link show {name}"
    )]
    LinkTaken { name: String },
    #[error(
        "cannot remove link {name}: ovs-vswitchd does not release it; see that it runs, and that ovn-controller does not"
    )]
    LinkStays { name: String },
    #[error("cannot use link {link}: it was put into bridge {bridge}; take it out: ovs-vsctl del-port {link}")]
    PortElsewhere { link: String, bridge: String },
    #[error("cannot take link {name} out of Open vSwitch: ovs-vswitchd does not answer; see that it runs")]
    SwitchSilent { name: String },
    #[error("cannot use link {name}: it is gone")]
    LinkGone { name: String },
    #[error("cannot use link {name}: it was set down")]
    LinkDown { name: String },
    #[error("cannot wire OVS port {link}: it was removed or given to a later sandbox of the pod")]
    PortGone { link: String },
    #[error("cannot wire {iface_id}: a later sandbox of the pod, {by}, has its place")]
    Superseded { iface_id: String, by: String },
    #[error("cannot serve {path}: another node agent does; stop that one, its DaemonSet or its unit: a host has one agent", path = path.display())]
    SecondAgent { path: PathBuf },
    #[error("cannot serve {path}: {problem}", path = path.display())]
    Socket { path: PathBuf, problem: io::Error },
    #[error("cannot {verb} {path}: {problem}", path = path.display())]
    Conf { verb: &'static str, path: PathBuf, problem: io::Error },
    #[error("cannot use CNI plugin {name:?}: it must be the name of a file, without '/'")]
    PluginName { name: String },
    #[error("{}", joined(.0))]
    Several(Vec<Self>),
}

fn joined(errors: &[Error]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Error {
    /// Fails with all errors of pieces of work that do not depend on each other, with each once.
    pub(crate) fn all(outcomes: impl IntoIterator<Item = Result<()>>) -> Result<()> {
        let mut told = BTreeSet::new();
        let mut errors = Vec::new();
        for error in outcomes.into_iter().filter_map(Result::err) {
            let these = match error {
                Self::Several(these) => these,
                one => vec![one],
            };
            errors.extend(these.into_iter().filter(|error| told.insert(error.to_string())));
        }
        if errors.len() > 1 {
            return Err(Self::Several(errors));
        }
        errors.pop().map_or(Ok(()), Err)
    }

    /// The gateway cannot use `interface` as long as `why` applies.
    pub(crate) fn gateway(interface: &str, why: &str) -> Self {
        Refused::Interface { interface: interface.to_owned(), why: why.to_owned(), permanent: false }.into()
    }

    /// This error as the reason why a NIC could not stay in its bridge.
    pub(crate) fn reason(&self) -> String {
        if let Self::Gateway(Refused::Interface { why, .. }) = self {
            return why.clone();
        }
        let text = self.to_string();
        text.strip_prefix("cannot ").map_or_else(|| text.clone(), |what| format!("the move could not {what}"))
    }

    /// Whether a retry cannot help: the agent must be restarted with other settings.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self, Self::Gateway(refused) if refused.is_permanent())
    }
}

pub(crate) type Result<T> = std::result::Result<T, Error>;
