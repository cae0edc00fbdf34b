//! The steps of a move, worked out from what is there. A step is only in the plan while it is needed, so the plan of
//! a move that ended anywhere is its rest.
//!
//! ```text
//!  to the bridge:  make bridge ─ up ─ give it the addresses ─ add the NIC ─ turn routes ─ take the NIC's addresses
//!  back:           up ─ give the NIC the addresses ─ remove it from the bridge ─ turn routes ─ take ─ remove bridge
//! ```
//! An address is given before it is taken: there is no moment at which the host has none. Packets flow again as soon
//! as the routes are turned. An address that another host may have too is given where that one can be heard: when the
//! NIC is where the packets are.

use std::fmt;

/// One of the two links of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Nic,
    Bridge,
}

/// An address that may have to be looked for on the network before it is used.
pub(crate) trait Doubt {
    fn is_doubted(&self) -> bool;
}

/// What one link holds. `A` is an address, `R` a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder<A, R> {
    pub(crate) up: bool,
    pub(crate) addresses: Vec<A>,
    pub(crate) routes: Vec<R>,
}

/// Both links, and what is written about them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Have<A, R> {
    /// `None`: there is no such link.
    pub(crate) nic: Option<Holder<A, R>>,
    /// The bridge's row is there.
    pub(crate) row: bool,
    /// The NIC is a port of it.
    pub(crate) port: bool,
    /// The switch has taken the port.
    pub(crate) taken: bool,
    /// What comes in by the NIC goes to the switch and not to the host.
    pub(crate) caught: bool,
    /// `None`: the switch has not made the link.
    pub(crate) bridge: Option<Holder<A, R>>,
    /// What the bridge held when its link vanished, and nobody has now.
    pub(crate) lost: Holder<A, R>,
    /// The journal says otherwise.
    pub(crate) unwritten: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step<A, R> {
    MakeBridge,
    SetUp(End),
    Give(End, A),
    AddPort,
    /// Until the switch has it.
    AwaitPort,
    RemovePort,
    /// Until the switch has let it go.
    AwaitRelease,
    Turn(End, R),
    Take(End, A),
    RemoveBridge,
    /// Into the journal.
    Write,
}

/// What is missing until the bridge holds everything.
pub(crate) fn to_bridge<A: Clone + Doubt, R: Clone>(have: &Have<A, R>) -> Vec<Step<A, R>> {
    let Some(nic) = &have.nic else { return Vec::new() };
    let mut steps = Vec::new();
    if !have.row {
        steps.push(Step::MakeBridge);
    }
    if have.bridge.as_ref().is_none_or(|bridge| !bridge.up) {
        steps.push(Step::SetUp(End::Bridge));
    }
    let [doubted, sure] = gifts(End::Bridge, nic.addresses.iter().chain(&have.lost.addresses));
    steps.extend(sure);
    if !have.port {
        // the kernel may forget from here on
        steps.extend([Step::Write, Step::AddPort]);
    }
    if !(have.port && have.taken) {
        steps.push(Step::AwaitPort);
    }
    steps.extend(doubted);
    let turned = nic.routes.iter().chain(&have.lost.routes).cloned();
    steps.extend(turned.map(|route| Step::Turn(End::Bridge, route)));
    // a primary address takes its secondary ones along
    steps.extend(nic.addresses.iter().rev().cloned().map(|address| Step::Take(End::Nic, address)));
    if steps.is_empty() && have.unwritten {
        steps.push(Step::Write);
    }
    steps
}

/// What is missing until the NIC holds everything and there is no bridge.
pub(crate) fn to_nic<A: Clone + Doubt, R: Clone>(have: &Have<A, R>) -> Vec<Step<A, R>> {
    let mut steps = Vec::new();
    if let Some(nic) = &have.nic {
        if !nic.up {
            steps.push(Step::SetUp(End::Nic));
        }
        let held = have.bridge.iter().chain([&have.lost]);
        let [doubted, sure] = gifts(End::Nic, held.clone().flat_map(|held| &held.addresses));
        steps.extend(sure);
        if have.port {
            steps.push(Step::RemovePort);
        }
        if have.port || (have.row && have.caught) {
            steps.push(Step::AwaitRelease);
        }
        steps.extend(doubted);
        steps.extend(held.flat_map(|held| &held.routes).cloned().map(|route| Step::Turn(End::Nic, route)));
        let taken = have.bridge.iter().flat_map(|held| held.addresses.iter().rev()).cloned();
        steps.extend(taken.map(|address| Step::Take(End::Bridge, address)));
    }
    if have.row {
        steps.push(Step::RemoveBridge);
    }
    steps
}

/// Those that are doubted and those that are not.
fn gifts<'a, A: Clone + Doubt + 'a, R>(to: End, addresses: impl Iterator<Item = &'a A>) -> [Vec<Step<A, R>>; 2] {
    let (doubted, sure): (Vec<&A>, Vec<&A>) = addresses.partition(|address| address.is_doubted());
    let give = |all: Vec<&A>| all.into_iter().cloned().map(|address| Step::Give(to, address)).collect();
    [give(doubted), give(sure)]
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::Nic => "the interface",
            End::Bridge => "the bridge",
        })
    }
}

impl<A: fmt::Display, R: fmt::Display> fmt::Display for Step<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::MakeBridge => write!(f, "make the bridge"),
            Step::SetUp(end) => write!(f, "set {end} up"),
            Step::Give(end, address) => write!(f, "give {end} address {address}"),
            Step::AddPort => write!(f, "add the interface to the bridge"),
            Step::AwaitPort => write!(f, "wait until the switch has taken the interface"),
            Step::AwaitRelease => write!(f, "wait until the switch has let the interface go"),
            Step::RemovePort => write!(f, "remove the interface from the bridge"),
            Step::Turn(end, route) => write!(f, "turn route {route} to {end}"),
            Step::Take(end, address) => write!(f, "take address {address} from {end}"),
            Step::RemoveBridge => write!(f, "remove the bridge"),
            Step::Write => write!(f, "write down what the bridge holds"),
        }
    }
}
