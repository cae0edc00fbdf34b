//! The steps that move a NIC into its bridge or back, worked out from the current state. A step is only in the plan
//! while it is needed, so the plan of an interrupted move is the rest of it.
//!
//! ```text
//!  to the bridge:  make bridge ─ up ─ add addresses to it ─ add the NIC ─ move routes ─ remove the NIC's addresses
//!  back:           up ─ add addresses to the NIC ─ remove it from the bridge ─ move routes ─ remove the bridge's
//!                  addresses ─ remove bridge
//! ```
//! An address is added to one link before it is removed from the other, so the host always has it. Packets flow again
//! as soon as the routes are moved. An address that another host may have too is added only after the NIC has changed
//! sides, so that the kernel can detect that host.

#[cfg(test)]
mod tests;

use std::fmt;

/// The longest name of a link, bytes.
pub const LONGEST_NAME: usize = 15;

/// The name of the bridge for a NIC.
pub fn bridge_of(nic: &str) -> String {
    format!("br{nic}")
}

/// One of the two links of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UplinkLink {
    Nic,
    Bridge,
}

/// An address that the kernel may have to check for duplicates before it is used.
pub trait MayConflict {
    fn may_conflict(&self) -> bool;
}

/// What one link holds. `A` is an address, `R` a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSnapshot<A, R> {
    pub up: bool,
    pub addresses: Vec<A>,
    pub routes: Vec<R>,
}

/// Both links, and what database and journal say about them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Observed<A, R> {
    /// `None`: there is no such link.
    pub nic: Option<LinkSnapshot<A, R>>,
    /// The bridge's row exists.
    pub row: bool,
    /// The NIC is a port of it.
    pub port: bool,
    /// The switch has taken the port.
    pub taken: bool,
    /// Packets that arrive on the NIC go to the switch, not to the host.
    pub caught: bool,
    /// `None`: the switch has not made the link.
    pub bridge: Option<LinkSnapshot<A, R>>,
    /// What the bridge held when its link vanished, and no link has now.
    pub lost: LinkSnapshot<A, R>,
    /// The journal does not match this state.
    pub unwritten: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<A, R> {
    MakeBridge,
    SetUp(UplinkLink),
    AddAddress(UplinkLink, A),
    AddPort,
    /// Waits until the switch has taken the port.
    AwaitPort,
    RemovePort,
    /// Waits until the switch has released the NIC.
    AwaitRelease,
    MoveRoute(UplinkLink, R),
    RemoveAddress(UplinkLink, A),
    RemoveBridge,
    /// Writes the journal.
    Write,
}

/// The steps until the bridge holds everything.
pub fn to_bridge<A: Clone + MayConflict, R: Clone>(have: &Observed<A, R>) -> Vec<Step<A, R>> {
    let Some(nic) = &have.nic else { return Vec::new() };
    let mut steps = Vec::new();
    if !have.row {
        steps.push(Step::MakeBridge);
    }
    if have.bridge.as_ref().is_none_or(|bridge| !bridge.up) {
        steps.push(Step::SetUp(UplinkLink::Bridge));
    }
    let [conflicting, sure] = additions(UplinkLink::Bridge, nic.addresses.iter().chain(&have.lost.addresses));
    steps.extend(sure);
    if !have.port {
        // from here on the kernel may drop addresses and routes
        steps.extend([Step::Write, Step::AddPort]);
    }
    if !(have.port && have.taken) {
        steps.push(Step::AwaitPort);
    }
    steps.extend(conflicting);
    let routes = nic.routes.iter().chain(&have.lost.routes).cloned();
    steps.extend(routes.map(|route| Step::MoveRoute(UplinkLink::Bridge, route)));
    // reversed: a removed primary address takes its secondary ones along
    steps.extend(nic.addresses.iter().rev().cloned().map(|address| Step::RemoveAddress(UplinkLink::Nic, address)));
    if steps.is_empty() && have.unwritten {
        steps.push(Step::Write);
    }
    steps
}

/// The steps until the NIC holds everything and there is no bridge.
pub fn to_nic<A: Clone + MayConflict, R: Clone>(have: &Observed<A, R>) -> Vec<Step<A, R>> {
    let mut steps = Vec::new();
    if let Some(nic) = &have.nic {
        if !nic.up {
            steps.push(Step::SetUp(UplinkLink::Nic));
        }
        let held = have.bridge.iter().chain([&have.lost]);
        let [conflicting, sure] = additions(UplinkLink::Nic, held.clone().flat_map(|held| &held.addresses));
        steps.extend(sure);
        if have.port {
            steps.push(Step::RemovePort);
        }
        if have.port || (have.row && have.caught) {
            steps.push(Step::AwaitRelease);
        }
        steps.extend(conflicting);
        steps.extend(held.flat_map(|held| &held.routes).cloned().map(|route| Step::MoveRoute(UplinkLink::Nic, route)));
        let taken = have.bridge.iter().flat_map(|held| held.addresses.iter().rev()).cloned();
        steps.extend(taken.map(|address| Step::RemoveAddress(UplinkLink::Bridge, address)));
    }
    if have.row {
        steps.push(Step::RemoveBridge);
    }
    steps
}

/// Steps that add the addresses: those that may conflict, and the others.
fn additions<'a, A: Clone + MayConflict + 'a, R>(
    to: UplinkLink,
    addresses: impl Iterator<Item = &'a A>,
) -> [Vec<Step<A, R>>; 2] {
    let (conflicting, sure): (Vec<&A>, Vec<&A>) = addresses.partition(|address| address.may_conflict());
    let give = |all: Vec<&A>| all.into_iter().cloned().map(|address| Step::AddAddress(to, address)).collect();
    [give(conflicting), give(sure)]
}

impl fmt::Display for UplinkLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UplinkLink::Nic => "the interface",
            UplinkLink::Bridge => "the bridge",
        })
    }
}

impl<A: fmt::Display, R: fmt::Display> fmt::Display for Step<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::MakeBridge => write!(f, "make the bridge"),
            Step::SetUp(end) => write!(f, "set {end} up"),
            Step::AddAddress(end, address) => write!(f, "add address {address} to {end}"),
            Step::AddPort => write!(f, "add the interface to the bridge"),
            Step::AwaitPort => write!(f, "wait until the switch has taken the interface"),
            Step::AwaitRelease => write!(f, "wait until the switch has let the interface go"),
            Step::RemovePort => write!(f, "remove the interface from the bridge"),
            Step::MoveRoute(end, route) => write!(f, "move route {route} to {end}"),
            Step::RemoveAddress(end, address) => write!(f, "remove address {address} from {end}"),
            Step::RemoveBridge => write!(f, "remove the bridge"),
            Step::Write => write!(f, "write down what the bridge holds"),
        }
    }
}
