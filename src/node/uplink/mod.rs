//! Moves a NIC into a bridge with all that the host has on it, and back: the gateway needs a bridge, and most hosts
//! have only a NIC.
//!
//! ```text
//!   before                     after
//!   host ── eth0 ── outside    host ── breth0 ──(OVS)── eth0 ── outside
//!           addresses, routes          addresses, routes, MAC, MTU
//! ```
//! A crash at any moment does no harm: `plan` works out the remaining steps from the current state, and `journal` keeps
//! what the kernel may drop. After the move connectivity is checked for a while: next hops, API server and default
//! routes that were there before must be there, or the move is undone.

mod boot_grace;
mod connectivity_check;
mod journal;
mod observe;
mod rows;

use std::sync::OnceLock;
use std::time::Duration;

use ovnkube_host::{SavedAddress, SavedRoute, advertised};
use ovnkube_model::Mac;
use ovnkube_node_plan::uplink as plan;
use ovnkube_node_plan::uplink::{Step, UplinkLink, bridge_of};
use tokio::time::{Instant, sleep, timeout};

use crate::{Error, Result};
pub(crate) use boot_grace::BootGrace;
use connectivity_check::Check;
pub(crate) use connectivity_check::Watched;
use journal::Journal;
pub(crate) use observe::Uplink;
use observe::{Now, Seen, Wanted, nothing};
pub(crate) use rows::{Made, UPLINK, made};

/// How long ovs-vswitchd may take for a bridge or a port.
const SWITCH: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);
/// Pause after a failed step.
const AGAIN: Duration = Duration::from_secs(1);
/// How many plans are made until one is empty; a DHCP client may act at the same time.
const ROUNDS: usize = 5;
type Todo = Step<SavedAddress, SavedRoute>;

static BEFORE_STEP: OnceLock<fn(usize)> = OnceLock::new();

/// For tests that kill the process: `hook` is called before each step of a move, with the number of completed steps.
pub fn before_each_step(hook: fn(usize)) {
    let _ = BEFORE_STEP.set(hook);
}

/// Routes that cannot be moved to the bridge.
#[derive(Debug, Default)]
pub(crate) struct UnmovedRoutes {
    since: Option<Instant>,
    /// Routes that the agent no longer tries to move.
    left: Vec<SavedRoute>,
}

impl UnmovedRoutes {
    pub(crate) fn left(&self) -> Vec<SavedRoute> {
        self.left.clone()
    }

    /// Records why a move failed: by these routes, or if there are none, by something else.
    fn note(&mut self, failed: Vec<SavedRoute>, why: &Error) {
        if failed.is_empty() {
            self.since = None;
        } else if self.since.get_or_insert_with(Instant::now).elapsed() > connectivity_check::PATIENCE {
            for route in &failed {
                tracing::warn!(%route, error = %why, "cannot move a route to the gateway bridge; it stays as it is");
            }
            self.left.extend(failed);
            self.since = None;
        }
    }
}

/// The result of a plan, also of one that failed.
#[derive(Debug, Default)]
struct Outcome {
    checks: Vec<Check>,
    /// Routes that could not be moved.
    failed: Vec<SavedRoute>,
}

impl Uplink<'_> {
    /// Moves everything to the bridge, unless it is there. Undoes the move when a check of `watched` passed before but
    /// not after it, or when it cannot be completed. Returns whether the connectivity check goes on; `passed` ends it.
    pub(crate) async fn to_bridge(&self, watched: &Watched, passed: bool, unmoved: &mut UnmovedRoutes) -> Result<bool> {
        if let Some(why) = self.journal().and_then(|journal| journal.undone) {
            return Err(self.undo(why).await);
        }
        let end = Instant::now() + connectivity_check::PATIENCE;
        loop {
            let mut outcome = Outcome::default();
            let moved = self.carry_out(plan::to_bridge, Some(watched), &mut outcome).await;
            let Outcome { checks, failed } = outcome;
            // before the port is added the host has its NIC; after the check it has worked without the step for long
            let at_stake = !checks.is_empty() && self.made().is_some_and(|made| made.port);
            match moved {
                Ok(()) => {
                    unmoved.since = None;
                    return self.verify(watched, &checks, passed).await;
                }
                Err(e) if !at_stake => {
                    unmoved.note(failed, &e);
                    return Err(e);
                }
                Err(e) if Instant::now() > end => return Err(self.undo(e.reason()).await),
                Err(e) => tracing::warn!(error = %e, "trying again to move a NIC into its bridge"),
            }
            sleep(AGAIN).await;
        }
    }

    async fn verify(&self, watched: &Watched, checks: &[Check], passed: bool) -> Result<bool> {
        if checks.is_empty() {
            return Ok(false);
        }
        let bridge = bridge_of(self.nic);
        let silent = watched.silent(checks, &bridge, self.here).await?;
        if silent.is_empty() && passed {
            tracing::info!(nic = self.nic, bridge, "the NIC is in its bridge with all its addresses and routes");
            self.write(&[]).await?;
        }
        if silent.is_empty() {
            return Ok(!passed);
        }
        let silent: Vec<String> = silent.iter().map(ToString::to_string).collect();
        let (silent, seconds) = (silent.join(", "), connectivity_check::PATIENCE.as_secs());
        Err(self.undo(format!("{silent} was lost for {seconds} s after the addresses were moved")).await)
    }

    /// Moves everything back, including what was lost. Returns the reason as an error, or what prevents the undo.
    async fn undo(&self, why: String) -> Error {
        match self.move_back(&why).await {
            // without a row nothing remains to be moved
            Err(e) if self.made().is_some() => return e,
            Err(e) => tracing::warn!(error = %e, "the bridge is gone: nothing is left to move back"),
            Ok(()) => {}
        }
        Error::Undone { nic: self.nic.to_owned(), bridge: bridge_of(self.nic), why }
    }

    async fn move_back(&self, why: &str) -> Result<()> {
        if let Some(mut journal) = self.journal().filter(|journal| journal.undone.is_none()) {
            journal.undone = Some(why.to_owned());
            self.apply("write the journal of NIC", |cache, made| Ok(made.write(cache, &journal))).await?;
        }
        Uplink { restore: true, ..*self }.to_nic().await
    }

    /// The steps that [`Uplink::to_bridge`] would begin with, as text.
    pub(crate) async fn steps_to_bridge(&self) -> Result<Vec<String>> {
        Ok(plan::to_bridge(&self.see().await?.have).iter().map(ToString::to_string).collect())
    }

    /// Moves everything back to the NIC and removes the bridge.
    pub(crate) async fn to_nic(&self) -> Result<()> {
        self.carry_out(plan::to_nic, None, &mut Outcome::default()).await
    }

    async fn carry_out(
        &self,
        plan: fn(&Now) -> Vec<Todo>,
        watched: Option<&Watched>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let (mut done, mut failed) = (0, None);
        for _ in 0..ROUNDS {
            outcome.checks = self.journal().map(|journal| journal.checks()).unwrap_or_default();
            let steps = plan(&self.see().await?.have);
            if steps.is_empty() {
                return Ok(());
            }
            if let Some(watched) = watched
                && steps.contains(&Step::AddPort)
            {
                outcome.checks = watched.answering(self.nic, self.here).await?;
                self.warn_of_leases(&steps);
            }
            failed = None;
            outcome.failed.clear();
            for step in steps {
                // a route that was not moved still needs its addresses
                if failed.is_some() && !matches!(step, Step::MoveRoute(..)) {
                    break;
                }
                if let Some(hook) = BEFORE_STEP.get() {
                    hook(done);
                }
                tracing::info!(nic = self.nic, %step, "moving the gateway interface");
                match (self.act(&step, &outcome.checks).await, step) {
                    // the host may be reached by other routes, so go on
                    (Err(e), Step::MoveRoute(_, route)) => {
                        failed = failed.or(Some(e));
                        outcome.failed.push(route);
                    }
                    (done, _) => done?,
                }
                done += 1;
            }
        }
        let why = "another program keeps changing its addresses or those of its bridge";
        Err(failed.unwrap_or_else(|| self.refuse(why)))
    }

    /// Warns of leased addresses: their DHCP client may no longer receive packets from the NIC.
    fn warn_of_leases(&self, steps: &[Todo]) {
        for step in steps {
            if let Step::AddAddress(_, address) = step
                && address.address().is_ipv4()
                && let Some(seconds) = address.valid()
            {
                tracing::warn!(
                    %address,
                    nic = self.nic,
                    bridge = bridge_of(self.nic),
                    seconds,
                    "the lease of an address ends unless it is renewed; systemd-networkd cannot do that for an interface in a \
                     bridge of Open vSwitch: describe the bridge in the host's own setup, or run the DHCP client on it"
                );
            }
        }
    }

    async fn act(&self, step: &Todo, checks: &[Check]) -> Result<()> {
        match step {
            Step::MakeBridge => self.make(checks).await,
            Step::SetUp(UplinkLink::Bridge) => self.set_bridge_up().await,
            Step::SetUp(UplinkLink::Nic) => Ok(self.here.set_up(&self.link(UplinkLink::Nic).await?).await?),
            Step::Write => self.write(checks).await,
            Step::AddAddress(to, address) => Ok(self.here.hold_address(&self.link(*to).await?, address).await?),
            Step::AddPort => self.add_port().await,
            Step::AwaitPort => self.until(Wanted::Port).await,
            Step::RemovePort => {
                self.apply("remove NIC from its bridge", |cache, made| Ok(made.remove_port(cache))).await
            }
            Step::AwaitRelease => self.await_release().await,
            Step::MoveRoute(to, route) => {
                match self.here.hold_route(&self.link(*to).await?, route).await {
                    Err(e) if !route.is_lasting() => {
                        tracing::warn!(error = %e, "leaving the route to the program that made it");
                    }
                    held => held?,
                }
                let from = if *to == UplinkLink::Nic { UplinkLink::Bridge } else { UplinkLink::Nic };
                // a bridge that has vanished took its routes with it
                let Ok(from) = self.link(from).await else { return Ok(()) };
                Ok(self.here.drop_route(&from, route).await?)
            }
            Step::RemoveAddress(from, address) => {
                Ok(self.here.delete_address(&self.link(*from).await?, address.address()).await?)
            }
            Step::RemoveBridge => {
                self.apply("remove the bridge of NIC", |cache, made| Ok(made.remove(cache))).await?;
                // it may still be creating the link of a bridge that was just added
                if !self.ovs.is_carried_out(SWITCH).await? {
                    tracing::warn!(
                        bridge = bridge_of(self.nic),
                        "ovs-vswitchd does not answer; waiting only until the bridge is gone"
                    );
                }
                self.until(Wanted::NoBridge).await
            }
        }
    }

    async fn make(&self, checks: &[Check]) -> Result<()> {
        let link = self.link(UplinkLink::Nic).await?;
        let mac = link.mac.map(Mac).ok_or_else(|| self.refuse("it has no MAC address"))?;
        let held = self.held(Some(&link)).await?.unwrap_or_else(nothing);
        let journal = Journal::of(0, &held, checks, None);
        self.ovs.apply("make the gateway bridge", |cache| rows::make(cache, self.nic, mac, &journal)).await
    }

    async fn set_bridge_up(&self) -> Result<()> {
        self.until(Wanted::Bridge).await?;
        let index = self.link(UplinkLink::Bridge).await?.index;
        match self.journal() {
            Some(journal) if journal.is_of(index) => self.note_down(journal).await,
            _ => self.await_made().await?,
        }
        let (nic, bridge) = (self.link(UplinkLink::Nic).await?, self.link(UplinkLink::Bridge).await?);
        // a program that handles advertisements in the kernel's place does not act on the NIC now, or has not started
        let before = self.journal().is_some_and(|journal| journal.advertised);
        let now = self.here.held_routes(&nic).await?.iter().any(SavedRoute::is_advertised);
        advertised::obey_as(self.nic, &bridge.name, before || now)?;
        Ok(self.here.set_up(&bridge).await?)
    }

    /// Waits until ovs-vswitchd has finished with a new link. It sets flags and MAC address a while after creating it,
    /// and the flags that it read before set the link down again: the kernel would drop what is on it.
    async fn await_made(&self) -> Result<()> {
        match timeout(SWITCH, self.ovs.is_carried_out(SWITCH)).await {
            Ok(Ok(true)) => Ok(()),
            // go on: a host whose disk is full needs its network too
            Ok(Err(e)) => {
                tracing::warn!(error = %e, "not waiting for ovs-vswitchd");
                Ok(())
            }
            Ok(Ok(false)) | Err(_) => Err(self.in_vain(Wanted::Bridge)),
        }
    }

    /// Records that the link was down, which cannot be seen once it is up again.
    async fn note_down(&self, mut journal: Journal) {
        if std::mem::replace(&mut journal.down, true) {
            return;
        }
        let written = self.apply("write the journal of NIC", |cache, made| Ok(made.write(cache, &journal)));
        match timeout(SWITCH, written).await {
            Ok(Ok(())) => {}
            Ok(Err(e)) => tracing::warn!(error = %e, "cannot write the journal; going on without it"),
            Err(late) => tracing::warn!(nic = self.nic, error = %late, "cannot write the journal; going on without it"),
        }
    }

    async fn add_port(&self) -> Result<()> {
        self.apply("add NIC to its bridge", |cache, made| made.add_port(cache)).await
    }

    async fn await_release(&self) -> Result<()> {
        let released = self.until(Wanted::NoPort).await;
        if released.is_err() {
            // packets still go to the bridge, and a restarted ovs-vswitchd would not release the NIC
            self.add_port().await?;
        }
        released
    }

    async fn write(&self, checks: &[Check]) -> Result<()> {
        let Seen { have, mut journal } = self.see().await?;
        // its link was set down or replaced: what is missing must be added first
        let is_new = have.lost.addresses.iter().any(|held| held.address().is_ipv4());
        if is_new || !have.bridge.is_some_and(|bridge| bridge.up) {
            return Err(self.refuse("another program changes its bridge"));
        }
        match self.journal() {
            // what was written before a connectivity check is restored if the check fails
            Some(mut before) if have.port && !checks.is_empty() => {
                before.down = journal.down;
                journal = before;
            }
            _ => journal.set_checks(checks),
        }
        self.apply("write the journal of NIC", |cache, made| Ok(made.write(cache, &journal))).await
    }

    /// Changes the bridge's rows. `NIC` in `what` stands for the NIC's name.
    async fn apply(
        &self,
        what: &str,
        plan: impl Fn(&ovnkube_ovsdb::Cache, &Made) -> Result<ovnkube_ovsdb::Txn>,
    ) -> Result<()> {
        let made = self.made().ok_or_else(|| self.refuse("its bridge was removed"))?;
        self.ovs.apply(&what.replace("NIC", self.nic), |cache| plan(cache, &made)).await
    }

    async fn until(&self, wanted: Wanted) -> Result<()> {
        let end = Instant::now() + SWITCH;
        while !self.is(wanted).await? {
            if Instant::now() > end {
                return Err(self.in_vain(wanted));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    fn in_vain(&self, wanted: Wanted) -> Error {
        self.refuse(&format!(
            "ovs-vswitchd did not {} within {} s; see that it runs",
            wanted.action(),
            SWITCH.as_secs()
        ))
    }
}
