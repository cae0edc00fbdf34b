//! The CNI verbs.
//!
//! ```text
//! ADD ─ wait for the pod's annotation ─┬ veth pair ┬ addresses, routes, offload ┬ result
//!                                      │           └ OVS port ─ ovn-installed ──┘
//!                                      └ anything fails: port and pair are removed again
//! ```
//! A sandbox has one interface. Requests for another one change nothing.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ovnkube_host::{Link, Net, Netns};
use ovnkube_model::{Name, PodKey, PodNetwork, keys};
use ovnkube_node_plan::vswitch::BR_INT;
use ovnkube_telemetry::NodeHealth;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::bandwidth::{self, Bandwidth};
use crate::ovs::Ovs;
use crate::pair::{Tag, USUAL_NAME, delete_pair, host_name};
use crate::pods::{PodOnNode, Pods};
use crate::ports::{PodPort, PortWant};
use crate::reply::{CniResult, Refusal, Route};
use crate::request::Request;
use crate::sandbox::Wiring;
use crate::sandbox_locks::SandboxLocks;
use crate::stamp;
use crate::subject::Sandbox;
use crate::{Error, Readiness, Result};

/// How long a request may take; the kubelet gives up a little later.
const LIMIT: Duration = Duration::from_secs(120);
/// How long ovs-vswitchd may take to release a link.
const SWITCH_LIMIT: Duration = Duration::from_secs(10);
/// How long the cleanup after a failed ADD may take.
const UNDO_LIMIT: Duration = Duration::from_secs(5);

/// Everything the verbs work with.
pub(crate) struct Cni {
    pub(crate) here: Net,
    pub(crate) ovs: Ovs,
    pub(crate) pods: Pods,
    pub(crate) locks: SandboxLocks,
    /// MTU of pods; `None`: not known yet.
    pub(crate) mtu: watch::Receiver<Option<u32>>,
    /// MTU of pods' routes, where it is less.
    pub(crate) route_mtu: Option<u32>,
    /// The result of the last look at the node.
    pub(crate) ready: watch::Receiver<Readiness>,
    /// When the node was last found ready; STATUS reports it as ready for `patience` from then on.
    pub(crate) health: NodeHealth,
    pub(crate) patience: Duration,
    /// Where STATUS writes that the node is ready, see [`stamp`].
    pub(crate) stamp: PathBuf,
}

/// A pod to wire: the parts of the request that ADD and CHECK need.
struct Subject<'a> {
    sandbox: &'a Sandbox,
    netns: Netns,
    pod: &'a PodKey,
}

impl Cni {
    pub(crate) async fn serve(&self, request: Request) -> std::result::Result<Option<CniResult>, Refusal> {
        match request {
            Request::Add(sandbox) => self.add(&sandbox).await.map(Some).map_err(|e| e.about(&sandbox)),
            Request::Del(sandbox) => self.del(&sandbox).await.map(|()| None).map_err(|e| e.about(&sandbox)),
            Request::Check(sandbox, routes) => {
                let checked = self.in_time(self.check(&sandbox, routes.as_deref())).await;
                checked.map(|()| None).map_err(|e| e.about(&sandbox))
            }
            Request::Gc(valid) => self.gc(&valid).await.map(|()| None),
            Request::Status => self.status().map(|()| None),
        }
    }

    // === ADD

    async fn add(&self, sandbox: &Sandbox) -> std::result::Result<CniResult, Refusal> {
        let started = Instant::now();
        let subject = Subject::open(sandbox)?;
        let queue = self.locks.queue(&sandbox.container_id);
        let cancelled = queue.cancel.notified();
        tokio::pin!(cancelled);
        // from now on, also while it waits for the lock
        cancelled.as_mut().enable();
        self.refuse_second(sandbox).await?;
        queue.take_for(&sandbox.interface).map_err(|other| Refusal::second(sandbox, &other))?;
        let turn = self.locks.turn();
        // a request for an earlier pod of this name comes too late to take the place of the present one's sandbox
        if self.pods.get(subject.pod).is_none_or(|pod| pod.is_of(sandbox.pod_uid.as_deref())) {
            self.claim(&subject, turn);
        }
        let waiting_for = Mutex::new("an earlier request for this sandbox has not ended".to_owned());
        let _guard = tokio::select! {
            guard = queue.lock.lock() => guard,
            () = &mut cancelled => return Err(deleted("its sandbox")),
            () = self.ended() => return Err(ended()),
            () = sleep_until(started + LIMIT) => return Err(late(&waiting_for)),
        };
        let outcome = tokio::select! {
            outcome = self.wire(&subject, turn, &waiting_for) => outcome,
            () = &mut cancelled => Err(deleted("its sandbox")),
            () = self.ended() => Err(ended()),
            () = sleep_until(started + LIMIT) => Err(late(&waiting_for)),
        };
        match &outcome {
            Ok(_) => {
                tracing::info!(took_ms = started.elapsed().as_millis(), "wired");
            }
            Err(_) => self.unwind(sandbox).await,
        }
        outcome
    }

    /// Waits until the agent ends that these requests came to: nothing that they may wait for reaches them then.
    async fn ended(&self) {
        let mut ready = self.ready.clone();
        while ready.changed().await.is_ok() {}
    }

    fn claim(&self, subject: &Subject<'_>, turn: u64) {
        self.locks.claim(&subject.pod.port_name(), &subject.sandbox.container_id, turn);
    }

    /// Wires the pod, but stops when it is deleted: another pod may get its addresses a moment later.
    async fn wire(
        &self,
        subject: &Subject<'_>,
        turn: u64,
        waiting_for: &Mutex<String>,
    ) -> std::result::Result<CniResult, Refusal> {
        let uid = subject.sandbox.pod_uid.as_deref();
        let pod = self.pods.until(waiting_for, |pods| pods.find(subject.pod, uid)).await;
        self.claim(subject, turn);
        tokio::select! {
            outcome = self.wire_pod(subject, waiting_for) => outcome,
            () = self.pods.deleted(subject.pod, &pod.uid) => Err(deleted("it")),
        }
    }

    async fn wire_pod(
        &self,
        subject: &Subject<'_>,
        waiting_for: &Mutex<String>,
    ) -> std::result::Result<CniResult, Refusal> {
        let uid = subject.sandbox.pod_uid.as_deref();
        let (pod, network) = self.pods.until(waiting_for, |pods| pods.ready(subject.pod, uid)).await;
        let port = PodPort::new(subject.pod, &pod, &network, &subject.sandbox.container_id);
        let want = PortWant { bandwidth: limits(&pod)?, port };
        let port = &want.port;
        // before that the type of the datapath and the ports that exist are not known
        note(waiting_for, "there is no connection to the Open_vSwitch database");
        self.ovs.synced().await;
        note(waiting_for, "the node's network is not ready");
        let wiring = self.wiring(subject, &pod, network, self.mtu().await);
        let host = self.ensure_pair(&wiring).await?;
        let plugged = async {
            self.ovs.plug(&want, || self.still_counts(port)).await?;
            note(
                waiting_for,
                "ovn-controller has not set ovn-installed on the port; see that it is connected and that the logical port is there",
            );
            self.ovs.installed(port).await
        };
        tokio::try_join!(wiring.configure(), plugged)?;
        self.still_counts(port)?;
        // a pod may be created with addresses that are not its own: its logical port exists only after they
        // are corrected, and the kubelet tries again
        let (_, now) = self.pods.ready(subject.pod, uid).map_err(|why| not_wired(&why))?;
        if now != wiring.network {
            return Err(not_wired("its addresses were corrected meanwhile; the kubelet tries again"));
        }
        Ok(wiring.result(&host))
    }

    /// MTU of pods; waits for the first look at the node.
    async fn mtu(&self) -> u32 {
        match self.mtu.clone().wait_for(Option::is_some).await.map(|mtu| *mtu) {
            Ok(Some(mtu)) => mtu,
            // the agent is ending
            _ => std::future::pending().await,
        }
    }

    /// The veth pair, up on the node's side. A correct pair of an earlier attempt is kept. If it is wrong or gone, its
    /// port is removed first: ovs-vswitchd would keep using the old link, and the pod would not be reachable.
    async fn ensure_pair(&self, wiring: &Wiring) -> Result<Link> {
        if let Some(link) = wiring.find_pair(&self.here).await? {
            return Ok(link);
        }
        if self.ovs.bridge_of(wiring.host_name()).is_some() {
            self.ovs.unplug(&[&wiring.container_id]).await?;
            if !self.ovs.is_carried_out(SWITCH_LIMIT).await? {
                return Err(Error::SwitchSilent { name: wiring.host_name().to_owned() });
            }
        }
        delete_pair(&self.here, &wiring.container_id, false).await?;
        wiring.make_pair(&self.here).await
    }

    fn wiring(&self, subject: &Subject<'_>, pod: &PodOnNode, network: PodNetwork, mtu: u32) -> Wiring {
        Wiring {
            container_id: subject.sandbox.container_id.clone(),
            pod_uid: subject.sandbox.pod_uid.clone().unwrap_or_else(|| pod.uid.to_string()),
            netns: subject.netns.clone(),
            interface: subject.sandbox.interface.clone(),
            network,
            mtu,
            route_mtu: self.route_mtu,
            checksums_in_software: self.ovs.is_userspace(),
        }
    }

    /// Fails if a later sandbox of the same pod has replaced this one.
    pub(crate) fn still_counts(&self, port: &PodPort) -> Result<()> {
        match self.locks.successor(&port.iface_id, &port.sandbox) {
            Some(by) => Err(Error::Superseded { iface_id: port.iface_id.clone(), by }),
            None => Ok(()),
        }
    }

    /// Undoes ADD. What it cannot do in time is left to DEL, which the kubelet sends after a failed ADD.
    async fn unwind(&self, sandbox: &Sandbox) {
        let warn = |error: &dyn std::fmt::Display| tracing::warn!(%error, "cannot undo ADD");
        if let Ok(errors) = timeout(UNDO_LIMIT, self.remove(&sandbox.container_id)).await {
            for error in &errors {
                warn(error);
            }
        } else {
            let limit = UNDO_LIMIT.as_secs();
            warn(&format!("it takes longer than {limit} s; the DEL that follows does the rest"));
        }
    }

    async fn refuse_second(&self, sandbox: &Sandbox) -> std::result::Result<(), Refusal> {
        let other = self.other_interface(sandbox).await?;
        other.map_or(Ok(()), |other| Err(Refusal::second(sandbox, &other)))
    }

    /// The sandbox's interface, if it is not the one that the request is about.
    async fn other_interface(&self, sandbox: &Sandbox) -> Result<Option<String>> {
        let container_id = &sandbox.container_id;
        let Some(link) = self.here.link(host_name(container_id)).await? else { return Ok(None) };
        let is_port = |port: PodPort| port.link == link.name && port.sandbox == *container_id;
        let has = match Tag::of(&link).filter(|tag| tag.container_id == *container_id) {
            Some(Tag { wired: Some(wired), .. }) => Some(wired.interface),
            None if !self.pod_ports_read().await?.into_iter().any(is_port) => None,
            // an earlier release or ovn-kubernetes made it, and its pod may have renamed it
            _ if sandbox.interface == USUAL_NAME => None,
            _ => self.here.other_end(&link).await?.map(|inside| inside.name),
        };
        Ok(has.filter(|has| *has != sandbox.interface))
    }

    async fn pod_ports_read(&self) -> Result<Vec<PodPort>> {
        self.ovs.is_read().await?;
        Ok(self.ovs.pod_ports())
    }

    // === DEL, GC

    /// Succeeds for an interface that the sandbox does not have, as DEL requires.
    async fn del(&self, sandbox: &Sandbox) -> std::result::Result<(), Refusal> {
        let (id, interface) = (&sandbox.container_id, &sandbox.interface);
        let nothing = |has: String| {
            tracing::info!(interface, has, "nothing to delete: the sandbox has another interface");
            Ok(())
        };
        let queue = self.locks.queue(id);
        let other = match queue.other_than(interface) {
            None => self.other_interface(sandbox).await?,
            other => other,
        };
        // an ADD may have found a sandbox without an interface meanwhile
        if let Some(has) = other.or_else(|| queue.other_than(interface)) {
            return nothing(has);
        }
        queue.cancel.notify_waiters();
        self.in_time(async {
            let _guard = queue.lock.lock().await;
            if let Some(has) = queue.other_than(interface) {
                return nothing(has);
            }
            let errors = self.remove(&sandbox.container_id).await;
            self.locks.release(&sandbox.container_id);
            // perhaps the port of an earlier sandbox waits for this
            self.pods.look_again();
            all(&errors)
        })
        .await
    }

    async fn in_time(
        &self,
        work: impl Future<Output = std::result::Result<(), Refusal>>,
    ) -> std::result::Result<(), Refusal> {
        timeout(LIMIT, work).await.unwrap_or_else(|_| {
            let cause = if self.ovs.is_connected() { String::new() } else { format!(": {}", self.stuck()) };
            Err(Refusal::again(format!("cannot carry the request out within two minutes{cause}")))
        })
    }

    /// Removes port and pair of a sandbox, as far as they exist.
    async fn remove(&self, container_id: &str) -> Vec<Error> {
        let mut errors = Vec::new();
        let removed = self.ovs.unplug(&[container_id]).await.unwrap_or_else(|e| {
            errors.push(e);
            Vec::new()
        });
        let known = removed.iter().any(|port| port.link == host_name(container_id));
        errors.extend(delete_pair(&self.here, container_id, known).await.err());
        errors
    }

    async fn gc(&self, valid: &[String]) -> std::result::Result<(), Refusal> {
        self.in_time(async {
            let mut errors = Vec::new();
            let mut dead: BTreeSet<String> = self.ovs.sandboxes().await?.into_iter().collect();
            // also those that have lost their port; on a separate socket, since other tasks list links meanwhile
            let here = Net::here().await.map_err(Error::from)?;
            let links = here.links().await.map_err(Error::from)?;
            dead.extend(links.iter().filter_map(Tag::of).map(|tag| tag.container_id));
            // a running request decides itself
            dead.retain(|id| !valid.contains(id) && !self.locks.busy(id));
            for container_id in &dead {
                let queue = self.locks.queue(container_id);
                let Ok(_guard) = queue.lock.try_lock() else { continue };
                tracing::info!(sandbox = container_id, "removing the port of a sandbox that is gone");
                errors.extend(self.remove(container_id).await);
                self.locks.release(container_id);
            }
            all(&errors)
        })
        .await
    }

    /// Removes ports whose link vanished with its pod, without a DEL. `of_pods`: also of a pod that is on the node, whose
    /// link an ADD may be about to make again. Looks up each link that seems to be gone: a list of all may miss one while
    /// others are added and removed. Returns why some stay, and whether some stay only until their pod goes.
    pub(crate) async fn remove_dead_ports(&self, of_pods: bool) -> (Vec<Error>, bool) {
        let links: HashSet<String> = match self.here.links().await {
            Ok(links) => links.into_iter().map(|link| link.name).collect(),
            Err(error) => return (vec![error.into()], false),
        };
        let names = if of_pods { HashSet::new() } else { self.pods.port_names() };
        let mut ports = self.ovs.pod_ports();
        ports.retain(|port| !links.contains(&port.link));
        let (kept, dead): (Vec<_>, Vec<_>) = ports.into_iter().partition(|port| names.contains(&port.iface_id));
        let mut errors = Vec::new();
        for port in dead {
            let queue = self.locks.queue(&port.sandbox);
            // a running request decides itself
            let Ok(_guard) = queue.lock.try_lock() else { continue };
            if let Err(error) = self.remove_if_dead(&port).await {
                let is_for_all = matches!(error, Error::DatabaseSilent { .. });
                errors.push(error);
                if is_for_all {
                    break;
                }
            }
        }
        (errors, !kept.is_empty())
    }

    async fn remove_if_dead(&self, port: &PodPort) -> Result<()> {
        if self.here.link(&port.link).await?.is_none() {
            self.ovs.unplug(&[&port.sandbox]).await?;
            self.locks.release(&port.sandbox);
            tracing::info!(port = port.link, pod = port.iface_id, "removed the port of a dead sandbox");
        }
        Ok(())
    }

    // === CHECK, STATUS

    /// `routes`: those that ADD reported.
    async fn check(&self, sandbox: &Sandbox, routes: Option<&[Route]>) -> std::result::Result<(), Refusal> {
        let subject = Subject::open(sandbox)?;
        self.refuse_second(sandbox).await?;
        let (pod, network) =
            self.pods.ready(subject.pod, sandbox.pod_uid.as_deref()).map_err(|why| not_checked(&why))?;
        self.ovs.is_read().await?;
        let want = PodPort::new(subject.pod, &pod, &network, &sandbox.container_id);
        let mut faults = self.wiring(&subject, &pod, network, self.mtu().await).faults(&self.here, routes).await?;
        if let Some(bridge) = self.ovs.bridge_of(&want.link).filter(|bridge| bridge != BR_INT) {
            faults.push(format!("OVS port {} is on bridge {bridge}", want.link));
        }
        let have = self.ovs.pod_ports();
        match have.iter().find(|port| port.link == want.link) {
            None => faults.push(format!("OVS has no port {}", want.link)),
            Some(port) if port.iface_id.is_empty() => faults.push(format!("OVS port {} has no iface-id", port.link)),
            Some(port) if port.iface_id != want.iface_id || port.sandbox != want.sandbox => {
                faults.push(format!("OVS port {} belongs to {} of sandbox {}", port.link, port.iface_id, port.sandbox));
            }
            Some(_) => {}
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Refusal::failed(format!("cannot confirm the pod's network: {}", faults.join(", "))))
        }
    }

    /// Does not report short problems: the kubelet reacts at once and takes running pods out of their services.
    fn status(&self) -> std::result::Result<(), Refusal> {
        if self.health.was_programmed_within(Duration::ZERO) {
            // one that has ended leaves no file
            if self.ready.has_changed().is_ok() {
                stamp::set(&self.stamp);
            }
            return Ok(());
        }
        // this agent may have started just now
        if self.health.was_programmed_within(self.patience) || stamp::is_recent(&self.stamp, self.patience) {
            return Ok(());
        }
        let why = self.ready.borrow().clone().err().unwrap_or_else(|| self.stuck().to_owned());
        Err(Refusal::not_ready(format!("cannot wire pods: {why}")))
    }

    /// Why a look at the node does not finish.
    fn stuck(&self) -> &'static str {
        if !self.ovs.is_connected() {
            "there is no connection to the Open_vSwitch database"
        } else if !self.health.is_answering() {
            "ovs-vswitchd does not answer the agent; see that it runs: `ovs-appctl version`"
        } else {
            "something on the node does not answer the agent; see that ovs-vswitchd runs: `ovs-appctl version`"
        }
    }
}

impl<'a> Subject<'a> {
    fn open(sandbox: &'a Sandbox) -> std::result::Result<Self, Refusal> {
        let (Some(path), Some(pod)) = (&sandbox.netns, &sandbox.pod) else {
            return Err(Refusal::env("cannot find the pod: CNI_NETNS or the pod's name is missing".to_owned()));
        };
        let netns = Netns::open_other(path).map_err(|e| Refusal::env(e.to_string()))?;
        Ok(Self { sandbox, netns, pod })
    }
}

pub(crate) fn limits(pod: &PodOnNode) -> std::result::Result<Bandwidth, Refusal> {
    let parse = |key: &str, text: &Option<Name>| {
        let rate = |text| bandwidth::parse(text).map_err(|why| format!("cannot use annotation {key} {text:?}: {why}"));
        text.as_deref().map(rate).transpose().map_err(Refusal::failed)
    };
    Ok(Bandwidth {
        ingress: parse(keys::INGRESS_BANDWIDTH, &pod.ingress_bandwidth)?,
        egress: parse(keys::EGRESS_BANDWIDTH, &pod.egress_bandwidth)?,
    })
}

fn all(errors: &[Error]) -> std::result::Result<(), Refusal> {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    if texts.is_empty() { Ok(()) } else { Err(Refusal::again(texts.join("; "))) }
}

fn not_wired(why: &str) -> Refusal {
    Refusal::again(format!("cannot wire the pod: {why}"))
}

fn not_checked(why: &str) -> Refusal {
    Refusal::again(format!("cannot check the pod: {why}"))
}

fn note(waiting_for: &Mutex<String>, what: &str) {
    what.clone_into(&mut waiting_for.lock().unwrap_or_else(PoisonError::into_inner));
}

fn late(waiting_for: &Mutex<String>) -> Refusal {
    let what = waiting_for.lock().unwrap_or_else(PoisonError::into_inner);
    Refusal::again(format!("cannot wire the pod within two minutes: {what}"))
}

fn ended() -> Refusal {
    not_wired("the node agent ends or starts over; the kubelet tries again")
}

fn deleted(what: &str) -> Refusal {
    Refusal::failed(format!("cannot wire the pod: {what} was deleted meanwhile"))
}
