//! Moves a NIC into a bridge with all that the host has on it, and back: the gateway needs a bridge, and most hosts
//! have only a NIC.
//!
//! ```text
//!   before                     after
//!   host ── eth0 ── outside    host ── breth0 ──(OVS)── eth0 ── outside
//!           addresses, routes          addresses, routes, MAC, MTU
//! ```
//! There is no moment that a crash could not be survived at: `plan` works the rest out of what is there, and
//! `journal` keeps what the kernel may forget. After the move the host is on trial for a while: next hops, API server
//! and default route that were there before must be there, or all is undone.

mod journal;
mod look;
mod plan;
mod rows;
mod setup;
#[cfg(test)]
mod tests;
mod trial;

use std::sync::OnceLock;
use std::time::Duration;

use ovnkube_host::{HeldAddress, HeldRoute, Link, Net, advertised};
use ovnkube_model::{Mac, Subnet};
use tokio::time::{Instant, sleep, timeout};

use crate::ovs::Ovs;
use crate::{Error, Result};
use journal::Journal;
use look::{Seen, nothing};
use plan::{Doubt, End, Have, Holder, Step};
pub(crate) use rows::{Made, bridge_of, made};
pub(crate) use setup::Setup;
pub(crate) use trial::Watched;

/// How long ovs-vswitchd may take for a bridge or a port.
const SWITCH: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);
/// After a step that failed.
const AGAIN: Duration = Duration::from_secs(1);
/// So often is looked whether a plan was carried out; a DHCP client may act at the same time.
const ROUNDS: usize = 5;
/// The longest name of a link.
pub(crate) const LONGEST_NAME: usize = 15;

type Held = Holder<HeldAddress, HeldRoute>;
type Now = Have<HeldAddress, HeldRoute>;
type Todo = Step<HeldAddress, HeldRoute>;

static BEFORE_STEP: OnceLock<fn(usize)> = OnceLock::new();

/// For tests that kill the process: `hook` is called before each step of a move, with the number of those that were done.
pub fn before_each_step(hook: fn(usize)) {
    let _ = BEFORE_STEP.set(hook);
}

/// A NIC and its bridge.
pub(crate) struct Uplink<'a> {
    nic: &'a str,
    /// Addresses of the gateway's own, which are nobody else's.
    masquerade: &'a [Subnet],
    here: &'a Net,
    ovs: &'a Ovs,
    /// What the journal knows and neither link has counts as lost by the bridge.
    restore: bool,
    /// Routes that the bridge should have too.
    missing: &'a [HeldRoute],
    /// Routes that stay where they are.
    left: &'a [HeldRoute],
}

/// Routes that the bridge does not take.
#[derive(Debug, Default)]
pub(crate) struct Unturned {
    since: Option<Instant>,
    /// It is no longer tried with these.
    left: Vec<HeldRoute>,
}

impl Unturned {
    pub(crate) fn left(&self) -> Vec<HeldRoute> {
        self.left.clone()
    }

    /// After a move that `failed` by these routes, or by something else.
    fn note(&mut self, failed: Vec<HeldRoute>, why: &Error) {
        if failed.is_empty() {
            self.since = None;
        } else if self.since.get_or_insert_with(Instant::now).elapsed() > trial::PATIENCE {
            for route in &failed {
                tracing::warn!("route {route} can't be turned to the gateway bridge and stays as it is: {why}");
            }
            self.left.extend(failed);
            self.since = None;
        }
    }
}

/// What came of a plan, however it ended.
#[derive(Debug, Default)]
struct Outcome {
    trial: Vec<String>,
    /// Routes that could not be turned.
    failed: Vec<HeldRoute>,
}

/// What ovs-vswitchd has to do before it goes on.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Bridge,
    NoBridge,
    Port,
    NoPort,
}

impl Wanted {
    fn words(self) -> &'static str {
        match self {
            Self::Bridge => "make its bridge",
            Self::NoBridge => "remove its bridge",
            Self::Port => "take it into its bridge",
            Self::NoPort => "let it go",
        }
    }
}

impl Doubt for HeldAddress {
    fn is_doubted(&self) -> bool {
        HeldAddress::is_doubted(self)
    }
}

impl<'a> Uplink<'a> {
    pub(crate) fn new(nic: &'a str, masquerade: &'a [Subnet], here: &'a Net, ovs: &'a Ovs) -> Self {
        Self { nic, masquerade, here, ovs, restore: false, missing: &[], left: &[] }
    }

    /// What the bridge should have too, and what it shall do without.
    pub(crate) fn with(self, missing: &'a [HeldRoute], left: &'a [HeldRoute]) -> Self {
        Self { missing, left, ..self }
    }

    /// Moves all to the bridge. Nothing is done when it is there. Undone when those of `watched` who were there before
    /// are not after it, or when it can't be brought to its end. Returns whether the trial goes on, which `passed` ends.
    pub(crate) async fn to_bridge(&self, watched: &Watched, passed: bool, unturned: &mut Unturned) -> Result<bool> {
        if let Some(why) = self.journal().and_then(|journal| journal.undone) {
            return Err(self.undo(why).await);
        }
        let end = Instant::now() + trial::PATIENCE;
        loop {
            let mut outcome = Outcome::default();
            let moved = self.carry_out(plan::to_bridge, Some(watched), &mut outcome).await;
            let Outcome { trial, failed } = outcome;
            // before that the host has its NIC, and afterwards it did without the step for long
            let at_stake = !trial.is_empty() && self.made().is_some_and(|made| made.port);
            match moved {
                Ok(()) => {
                    unturned.since = None;
                    return self.judge(watched, &trial, passed).await;
                }
                Err(e) if !at_stake => {
                    unturned.note(failed, &e);
                    return Err(e);
                }
                Err(e) if Instant::now() > end => return Err(self.undo(e.to_string()).await),
                Err(e) => tracing::warn!("{e}; trying again"),
            }
            sleep(AGAIN).await;
        }
    }

    async fn judge(&self, watched: &Watched, trial: &[String], passed: bool) -> Result<bool> {
        if trial.is_empty() {
            return Ok(false);
        }
        let bridge = bridge_of(self.nic);
        let silent = watched.silent(trial, &bridge, self.here).await?;
        if silent.is_empty() && passed {
            tracing::info!("{} is in bridge {bridge} with all its addresses and routes", self.nic);
            self.write(&[]).await?;
        }
        if silent.is_empty() {
            return Ok(!passed);
        }
        let (silent, seconds) = (silent.join(", "), trial::PATIENCE.as_secs());
        Err(self.undo(format!("{silent} was lost for {seconds} s after the addresses were moved")).await)
    }

    /// Moves all back, with what was lost on the way. Returns why, or what keeps it from being done.
    async fn undo(&self, why: String) -> Error {
        match self.move_back(&why).await {
            // without a row nothing is left to be moved
            Err(e) if self.made().is_some() => return e,
            Err(e) => tracing::warn!("{e}"),
            Ok(()) => {}
        }
        Error::Undone { nic: self.nic.to_owned(), bridge: bridge_of(self.nic), why }
    }

    async fn move_back(&self, why: &str) -> Result<()> {
        if let Some(mut journal) = self.journal().filter(|journal| journal.undone.is_none()) {
            journal.undone = Some(why.to_owned());
            self.apply("write the journal of", |cache, made| Ok(made.write(cache, &journal))).await?;
        }
        Uplink { restore: true, ..*self }.to_nic().await
    }

    /// Moves all back to the NIC and removes the bridge.
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
            outcome.trial = self.journal().map(|journal| journal.trial).unwrap_or_default();
            let steps = plan(&self.see().await?.have);
            if steps.is_empty() {
                return Ok(());
            }
            if let Some(watched) = watched
                && steps.contains(&Step::AddPort)
            {
                outcome.trial = watched.answering(self.nic, self.here).await?;
                self.warn_of_leases(&steps);
            }
            failed = None;
            outcome.failed.clear();
            for step in steps {
                // what is left of a route needs its addresses
                if failed.is_some() && !matches!(step, Step::Turn(..)) {
                    break;
                }
                if let Some(hook) = BEFORE_STEP.get() {
                    hook(done);
                }
                tracing::info!("gateway interface {}: {}", self.nic, step);
                match (self.act(&step, &outcome.trial).await, step) {
                    // others may be what the host is reached by
                    (Err(e), Step::Turn(_, route)) => {
                        failed = failed.or(Some(e));
                        outcome.failed.push(route);
                    }
                    (done, _) => done?,
                }
                done += 1;
            }
        }
        let why = "somebody else changes its addresses or those of its bridge all the time";
        Err(failed.unwrap_or_else(|| self.refuse(why)))
    }

    /// Who leased them may not hear the NIC any more.
    fn warn_of_leases(&self, steps: &[Todo]) {
        for step in steps {
            if let Step::Give(_, address) = step
                && address.address().is_ipv4()
                && let Some(seconds) = address.valid()
            {
                tracing::warn!(
                    "address {address} of {} ends in {seconds} s unless it is leased anew; systemd-networkd can't do that for an \
                     interface in a bridge of Open vSwitch: describe bridge {} in the host's own setup, or run the DHCP client on it",
                    self.nic,
                    bridge_of(self.nic)
                );
            }
        }
    }

    fn made(&self) -> Option<Made> {
        self.ovs.read(made).into_iter().find(|made| made.nic == self.nic)
    }

    fn journal(&self) -> Option<Journal> {
        self.made()?.journal
    }

    async fn link(&self, end: End) -> Result<Link> {
        let name = match end {
            End::Nic => self.nic.to_owned(),
            End::Bridge => bridge_of(self.nic),
        };
        self.here.link(&name).await?.ok_or(Error::LinkGone { name })
    }

    async fn act(&self, step: &Todo, trial: &[String]) -> Result<()> {
        match step {
            Step::MakeBridge => self.make(trial).await,
            Step::SetUp(End::Bridge) => self.set_bridge_up().await,
            Step::SetUp(End::Nic) => Ok(self.here.set_up(&self.link(End::Nic).await?).await?),
            Step::Write => self.write(trial).await,
            Step::Give(to, address) => Ok(self.here.hold_address(&self.link(*to).await?, address).await?),
            Step::AddPort => self.add_port().await,
            Step::AwaitPort => self.until(Wanted::Port).await,
            Step::RemovePort => self.apply("remove", |cache, made| Ok(made.remove_port(cache))).await,
            Step::AwaitRelease => self.await_release().await,
            Step::Turn(to, route) => {
                match self.here.hold_route(&self.link(*to).await?, route).await {
                    Err(e) if !route.is_lasting() => tracing::warn!("{e}; leaving it to whoever made it"),
                    held => held?,
                }
                let from = if *to == End::Nic { End::Bridge } else { End::Nic };
                // a bridge that has vanished took its routes along
                let Ok(from) = self.link(from).await else { return Ok(()) };
                Ok(self.here.drop_route(&from, route).await?)
            }
            Step::Take(from, address) => {
                Ok(self.here.delete_address(&self.link(*from).await?, address.address()).await?)
            }
            Step::RemoveBridge => {
                self.apply("remove the bridge of", |cache, made| Ok(made.remove(cache))).await?;
                // it may be about to make the link of a bridge that is hardly there
                if !self.ovs.is_carried_out(SWITCH).await? {
                    tracing::warn!(
                        "ovs-vswitchd says nothing; looking only whether bridge {} is gone",
                        bridge_of(self.nic)
                    );
                }
                self.until(Wanted::NoBridge).await
            }
        }
    }

    async fn make(&self, trial: &[String]) -> Result<()> {
        let link = self.link(End::Nic).await?;
        let mac = link.mac.map(Mac).ok_or_else(|| self.refuse("it has no MAC address"))?;
        let held = self.held(Some(&link)).await?.unwrap_or_else(nothing);
        let journal = Journal::of(0, &held, trial, None);
        self.ovs.apply("make the gateway bridge", |cache| rows::make(cache, self.nic, mac, &journal)).await
    }

    async fn set_bridge_up(&self) -> Result<()> {
        self.until(Wanted::Bridge).await?;
        let index = self.link(End::Bridge).await?.index;
        match self.journal() {
            Some(journal) if journal.is_of(index) => self.note_down(journal).await,
            _ => self.await_made().await?,
        }
        let (nic, bridge) = (self.link(End::Nic).await?, self.link(End::Bridge).await?);
        // a program that does it in the kernel's place is not heard on the NIC now, or was not started yet
        let before = self.journal().is_some_and(|journal| journal.advertised);
        let now = self.here.held_routes(&nic).await?.iter().any(HeldRoute::is_advertised);
        advertised::obey_as(self.nic, &bridge.name, before || now)?;
        Ok(self.here.set_up(&bridge).await?)
    }

    /// ovs-vswitchd sets flags and MAC address of a link a while after it has made it, and with the flags that it saw
    /// before, the link goes down again: the kernel would drop what is on it.
    async fn await_made(&self) -> Result<()> {
        match timeout(SWITCH, self.ovs.is_carried_out(SWITCH)).await {
            Ok(Ok(true)) => Ok(()),
            // a host whose disk is full needs its network too
            Ok(Err(e)) => {
                tracing::warn!("{e}; not waiting for ovs-vswitchd");
                Ok(())
            }
            Ok(Ok(false)) | Err(_) => Err(self.in_vain(Wanted::Bridge)),
        }
    }

    /// Once a link is up again nobody can see that it was down.
    async fn note_down(&self, mut journal: Journal) {
        if std::mem::replace(&mut journal.down, true) {
            return;
        }
        let written = self.apply("write the journal of", |cache, made| Ok(made.write(cache, &journal)));
        match timeout(SWITCH, written).await {
            Ok(Ok(())) => {}
            Ok(Err(e)) => tracing::warn!("{e}; going on without"),
            Err(late) => tracing::warn!("write the journal of {}: {late}; going on without", self.nic),
        }
    }

    async fn add_port(&self) -> Result<()> {
        self.apply("add to its bridge", |cache, made| made.add_port(cache)).await
    }

    async fn await_release(&self) -> Result<()> {
        let released = self.until(Wanted::NoPort).await;
        if released.is_err() {
            // what comes in still goes to the bridge, and the next ovs-vswitchd would see no reason to let go
            self.add_port().await?;
        }
        released
    }

    async fn write(&self, trial: &[String]) -> Result<()> {
        let Seen { have, mut journal } = self.see().await?;
        // its link was set down or is another one than it was: what is missing has to be given first
        let is_new = have.lost.addresses.iter().any(|held| held.address().is_ipv4());
        if is_new || !have.bridge.is_some_and(|bridge| bridge.up) {
            return Err(self.refuse("somebody else changes its bridge"));
        }
        match self.journal() {
            // what was written before a trial is what the host gets back after it
            Some(mut before) if have.port && !trial.is_empty() => {
                before.down = journal.down;
                journal = before;
            }
            _ => journal.trial = trial.to_vec(),
        }
        self.apply("write the journal of", |cache, made| Ok(made.write(cache, &journal))).await
    }

    async fn apply(
        &self,
        what: &str,
        plan: impl Fn(&ovnkube_ovsdb::Cache, &Made) -> Result<ovnkube_ovsdb::Txn>,
    ) -> Result<()> {
        let made = self.made().ok_or_else(|| self.refuse("its bridge was removed by somebody else"))?;
        self.ovs.apply(&format!("{what} {}", self.nic), |cache| plan(cache, &made)).await
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

    async fn is(&self, wanted: Wanted) -> Result<bool> {
        Ok(match wanted {
            Wanted::Bridge => self.here.link(&bridge_of(self.nic)).await?.is_some(),
            Wanted::NoBridge => self.here.link(&bridge_of(self.nic)).await?.is_none(),
            Wanted::Port => self.ovs.port_number(self.nic).is_some(),
            Wanted::NoPort => self.here.link(self.nic).await?.is_none_or(|link| link.master.is_none()),
        })
    }

    fn in_vain(&self, wanted: Wanted) -> Error {
        self.refuse(&format!("waited {} s in vain for ovs-vswitchd to {}", SWITCH.as_secs(), wanted.words()))
    }

    fn refuse(&self, why: &str) -> Error {
        Error::Gateway { interface: self.nic.to_owned(), why: why.to_owned() }
    }
}
