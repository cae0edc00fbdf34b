//! Restores ports of running pods that vanish from Open vSwitch.
//!
//! ```text
//!  links with our alias: sandbox, interface, uid of the pod ─┐
//!  pods' ports on br-int ────────────────────────────────────┴▶ has each sandbox its port? ─▶ done
//!                                                                 │ no
//!                                                                 ▼
//!  the pod of that uid, as the API server has it ─▶ is the sandbox still its own? ─▶ one transaction for all
//! ```
//! Nothing is stored: links live as long as sandboxes, and their aliases survive when Open vSwitch loses everything.
//! A sandbox belongs to its pod as long as the pod has not ended, has no later sandbox, and its interface has the
//! annotated MAC address: otherwise another pod may have the name or the addresses by now.

use std::collections::HashMap;
use std::sync::Arc;

use ovnkube_host::{Link, Net};
use ovnkube_model::{Mac, Name, PodKey};
use ovnkube_ovsdb::Class;

use crate::cni::{Cni, limits};
use crate::pair::{Tag, USUAL_NAME, Wired, host_name};
use crate::pods::Owner;
use crate::ports::{Plugged, PodPort, PortWant};
use crate::sandbox_locks::Queue;
use crate::warnings::Warnings;
use crate::{Error, Result};

pub(crate) struct Ports {
    /// At the last look every sandbox had its port.
    complete: bool,
    /// At the last look a request was working on one of them, or something failed that may pass without a notification.
    busy: bool,
    /// Pairs without an owner in their alias got one from their rows.
    tagged: bool,
    warnings: Warnings,
}

/// A sandbox without its port.
struct Lost<'a> {
    link: &'a Link,
    container_id: String,
    /// As the runtime knows it.
    pod_uid: String,
    /// As the API server knows it.
    uid: &'a Name,
}

impl Lost<'_> {
    /// Whether the port is there, but for another object of the pod, as a mirror of before.
    fn has_port(&self, key: &PodKey, have: &HashMap<String, Plugged>) -> bool {
        let port = have.get(&self.link.name);
        port.is_some_and(|port| port.sandbox == self.container_id && port.iface_id == key.port_name())
    }
}

/// Why a sandbox gets no port.
struct Problem {
    why: String,
    /// Nothing tells when it is over.
    passes: bool,
}

impl From<String> for Problem {
    fn from(why: String) -> Self {
        Self { why, passes: false }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let passes = match &error {
            Error::Host(_) => true,
            Error::Transact { problem, .. } => problem.class == Class::Disk,
            _ => false,
        };
        Self { why: error.to_string(), passes }
    }
}

impl Ports {
    pub(crate) fn new(warnings: Warnings) -> Self {
        Self { complete: false, busy: false, tagged: false, warnings }
    }

    /// Whether every sandbox has its port, as far as possible.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether to look again without a notification.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(crate) async fn compare(&mut self, cni: &Cni) -> Result<()> {
        let mut links = cni.here.links().await?;
        if !self.tagged {
            tag(&mut links, cni).await;
            self.tagged = true;
        }
        let pods = cni.pods.by_uid();
        name_static(&mut links, &pods, cni).await;
        self.put_back(cni, &links, &cni.ovs.plugged(), &pods).await
    }

    async fn put_back(
        &mut self,
        cni: &Cni,
        links: &[Link],
        have: &HashMap<String, Plugged>,
        pods: &HashMap<Name, Owner>,
    ) -> Result<()> {
        let (mut lost, mut waits) = lost(links, have, pods);
        let found = lost.len();
        lost.retain(|(key, lost)| cni.locks.successor(&key.port_name(), &lost.container_id).is_none());
        waits |= lost.len() < found;
        // a running request decides itself; a new one waits until the port is restored
        let queues: Vec<Arc<Queue>> = lost.iter().map(|(_, lost)| cni.locks.queue(&lost.container_id)).collect();
        let locks: Vec<_> = queues.iter().map(|queue| queue.lock.try_lock()).collect();
        self.busy = locks.iter().any(std::result::Result::is_err);
        let (mut want, mut problems) = (Vec::new(), Vec::new());
        for ((key, lost), _) in lost.iter().zip(&locks).filter(|(_, lock)| lock.is_ok()) {
            // a mirror that came just now has no annotation yet; the port is that of the one before
            if lost.has_port(key, have) && cni.pods.annotated(key, Some(&lost.pod_uid)).is_err() {
                waits = true;
                continue;
            }
            match wanted(cni, key, lost).await {
                Ok(found) => want.extend(found),
                Err(Problem { why, passes }) => {
                    self.busy |= passes;
                    problems.push((key.to_string(), why));
                }
            }
        }
        self.busy |= !plug(cni, &want, &mut problems).await;
        self.complete = !self.busy && !waits && problems.is_empty();
        self.warnings.report("PodsWithoutPort", problem(problems));
        Ok(())
    }
}

/// The newest sandbox of each pod, where it has no port that ovn-controller binds for the pod; and whether there are
/// others without one that may need it later: their pod is not known yet, or its later sandbox may end.
fn lost<'a>(
    links: &'a [Link],
    have: &HashMap<String, Plugged>,
    pods: &'a HashMap<Name, Owner>,
) -> (Vec<(&'a PodKey, Lost<'a>)>, bool) {
    let mut newest: HashMap<&PodKey, Lost<'_>> = HashMap::new();
    let mut waits = false;
    for link in links {
        let Some(Tag { container_id, wired: Some(Wired { pod_uid, .. }) }) = Tag::of(link) else { continue };
        let Some(Owner { key, uid }) = pods.get(pod_uid.as_str()) else {
            waits |= !have.contains_key(&link.name);
            continue;
        };
        // links are numbered in the order they are made
        if newest.get(key).is_none_or(|other| other.link.index < link.index) {
            newest.insert(key, Lost { link, container_id, pod_uid, uid });
        }
    }
    let mut lost = Vec::new();
    for (key, sandbox) in newest {
        let (iface_id, iface_id_ver) = (key.port_name(), sandbox.uid.to_string());
        let want = Plugged { sandbox: sandbox.container_id.clone(), iface_id, iface_id_ver };
        if have.get(&sandbox.link.name) == Some(&want) {
            continue;
        }
        // its ADD has not finished, or failed
        if have.values().any(|other| other.iface_id == want.iface_id && other.sandbox != want.sandbox) {
            waits = true;
        } else {
            lost.push((key, sandbox));
        }
    }
    lost.sort_by_key(|(key, _)| *key);
    (lost, waits)
}

/// The wanted port of a sandbox whose lock is held; `None`: the sandbox has ended. The error says why it gets no port.
async fn wanted(cni: &Cni, key: &PodKey, lost: &Lost<'_>) -> std::result::Result<Option<PortWant>, Problem> {
    let still = cni.here.link(&lost.link.name).await.map_err(Error::from)?;
    if still.is_none_or(|link| link.index != lost.link.index) {
        return Ok(None);
    }
    // it runs with what it was given: annotated addresses change nothing of that
    let (pod, network) = cni.pods.annotated(key, Some(&lost.pod_uid))?;
    let Some(inside) = cni.here.other_end(lost.link).await.map_err(Error::from)? else { return Ok(None) };
    let mac = inside.mac.map(Mac);
    if mac != Some(network.mac_address) {
        let has = mac.map_or_else(|| "no MAC address".to_owned(), |mac| format!("the MAC address {mac}"));
        let annotated = network.mac_address;
        return Err(
            format!("its interface has {has}, and the pod is annotated with {annotated}; restart the pod").into()
        );
    }
    let bandwidth = limits(&pod).map_err(|refusal| refusal.text)?;
    Ok(Some(PortWant { port: PodPort::new(key, &pod, &network, &lost.container_id), bandwidth }))
}

/// Adds all ports at once, or one by one if one is refused. Returns false when it must be repeated.
async fn plug(cni: &Cni, want: &[PortWant], problems: &mut Vec<(String, String)>) -> bool {
    if want.is_empty() {
        return true;
    }
    if let Ok(done) = plug_these(cni, want).await {
        return done;
    }
    let mut done = true;
    for one in want {
        match plug_these(cni, std::slice::from_ref(one)).await {
            Ok(now) => done &= now,
            Err(e) => {
                let Problem { why, passes } = e.into();
                done &= !passes;
                problems.push((one.port.pod(), why));
            }
        }
    }
    done
}

async fn plug_these(cni: &Cni, want: &[PortWant]) -> Result<bool> {
    let done = match cni.ovs.try_plug(want, |port| cni.still_counts(port)).await {
        // a later sandbox came since the look
        Err(Error::Superseded { .. }) => false,
        outcome => outcome?,
    };
    for PortWant { port, .. } in want.iter().filter(|_| done) {
        tracing::warn!(
            pod = port.pod(),
            sandbox = port.sandbox,
            "put back a port that was missing or wrong in Open vSwitch"
        );
    }
    Ok(done)
}

fn problem(problems: Vec<(String, String)>) -> Option<String> {
    let count = problems.len();
    let (pod, why) = problems.into_iter().min()?;
    Some(format!("{count} pods of this node have no port in Open vSwitch, such as {pod}: {why}"))
}

/// Writes the owner into the alias of pairs whose rows name it: those that ovn-kubernetes or an earlier release made.
async fn tag(links: &mut [Link], cni: &Cni) {
    let ports = cni.ovs.pod_ports();
    for link in links {
        let untold = match Tag::of(link) {
            None => link.alias.is_none(),
            Some(tag) => tag.wired.is_none(),
        };
        let of_link = |port: &&PodPort| port.link == link.name && host_name(&port.sandbox) == link.name;
        let Some(port) = ports.iter().find(of_link).filter(|_| untold) else { continue };
        if let Err(e) = tag_as(link, port, &cni.here).await {
            tracing::warn!(pod = port.pod(), error = %e, "cannot name the pod in the alias of its link");
        }
    }
}

/// Writes the hash of a static pod in place of its mirror's uid, which [`tag`] may have found: the hash outlives the mirror.
async fn name_static(links: &mut [Link], pods: &HashMap<Name, Owner>, cni: &Cni) {
    for link in links {
        let Some(Tag { container_id, wired: Some(wired) }) = Tag::of(link) else { continue };
        let Some(owner) = pods.get(wired.pod_uid.as_str()).filter(|owner| *owner.uid == *wired.pod_uid) else {
            continue;
        };
        let Some(hash) = cni.pods.get(&owner.key).and_then(|pod| pod.config_hash) else { continue };
        // a hash that two pods have is of neither
        if pods.get(&hash) != Some(owner) {
            continue;
        }
        let tag = Tag { container_id, wired: Some(Wired { pod_uid: hash.to_string(), ..wired }) };
        if let Err(e) = write_tag(link, &tag, &cni.here).await {
            tracing::warn!(pod = %owner.key, error = %e, "cannot name the static pod in the alias of its link");
        }
    }
}

async fn tag_as(link: &mut Link, port: &PodPort, here: &Net) -> Result<()> {
    // under another name it may be an interface that its pod has renamed
    let Some(inside) = here.other_end(link).await?.filter(|inside| inside.name == USUAL_NAME) else { return Ok(()) };
    let wired = Wired { interface: inside.name, pod_uid: port.iface_id_ver.clone() };
    write_tag(link, &Tag { container_id: port.sandbox.clone(), wired: Some(wired) }, here).await
}

async fn write_tag(link: &mut Link, tag: &Tag, here: &Net) -> Result<()> {
    // the database and annotations may contain any text
    let alias = tag.alias();
    if alias.len() <= 255 && Tag::parse(&alias).as_ref() == Some(tag) {
        here.set_alias(link, &alias).await?;
        link.alias = Some(alias);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ovnkube_ovsdb::TxnError;

    use super::*;

    fn link(index: u32, sandbox: &str, uid: &str) -> Link {
        let alias = format!("ovnkube sandbox {sandbox} eth0 {uid}");
        let (mac, other, other_netns, master) = (None, None, None, None);
        Link { index, name: sandbox.into(), mac, mtu: 1400, up: true, alias: Some(alias), master, other, other_netns }
    }

    fn have(ports: &[(&str, &str, &str)]) -> HashMap<String, Plugged> {
        let plugged = |(link, sandbox, pod): &(&str, &str, &str)| {
            let (iface_id, iface_id_ver) = (format!("default_{pod}"), format!("uid-{pod}"));
            (link.to_string(), Plugged { sandbox: sandbox.to_string(), iface_id, iface_id_ver })
        };
        ports.iter().map(plugged).collect()
    }

    /// The sandboxes that get a port, and whether others may later.
    fn of(links: &[Link], ports: &[(&str, &str, &str)]) -> (Vec<String>, bool) {
        of_pods(links, ports, &["a", "b"].map(|name| owner(&format!("uid-{name}"), name, &format!("uid-{name}"))))
    }

    /// The pod `name` of that uid, by the uid that its runtime uses.
    fn owner(by: &str, name: &str, uid: &str) -> (Name, Owner) {
        (by.into(), Owner { key: PodKey::new("default", name), uid: uid.into() })
    }

    fn of_pods(links: &[Link], ports: &[(&str, &str, &str)], pods: &[(Name, Owner)]) -> (Vec<String>, bool) {
        let pods = pods.iter().cloned().collect();
        let (lost, waits) = lost(links, &have(ports), &pods);
        (lost.into_iter().map(|(_, lost)| lost.container_id).collect(), waits)
    }

    #[test]
    fn each_pods_newest_sandbox_has_a_port() {
        let (a, b, later) = (link(4, "s1", "uid-a"), link(5, "s2", "uid-b"), link(9, "s3", "uid-a"));
        let both = [a.clone(), b.clone()];
        assert_eq!(of(&both, &[("s1", "s1", "a"), ("s2", "s2", "b")]), (vec![], false));
        assert_eq!(of(&both, &[]), (vec!["s1".into(), "s2".into()], false));
        // a link whose row names another pod has no port
        assert_eq!(of(&both, &[("s1", "s1", "b"), ("s2", "s2", "b")]), (vec!["s1".into()], false));
        assert_eq!(of(&both, &[("s1", "s9", "a"), ("s2", "s2", "b")]), (vec![], true));
        // in any order
        for pair in [[a.clone(), later.clone()], [later.clone(), a.clone()]] {
            assert_eq!(of(&pair, &[]), (vec!["s3".into()], false));
            assert_eq!(of(&pair, &[("s3", "s3", "a")]), (vec![], false));
            // the later one's ADD has not finished
            assert_eq!(of(&pair, &[("s1", "s1", "a")]), (vec![], true));
        }
    }

    /// ovn-controller releases a port whose uid is not that of the logical port.
    #[test]
    fn a_port_has_the_uid_of_the_present_mirror() {
        let (links, ports) = ([link(4, "s1", "hash")], [("s1", "s1", "a")]);
        assert_eq!(of_pods(&links, &ports, &[owner("hash", "a", "uid-a")]), (vec![], false));
        assert_eq!(of_pods(&links, &ports, &[owner("hash", "a", "another")]), (vec!["s1".into()], false));
    }

    #[test]
    fn what_passes_without_a_notification_is_looked_at_again() {
        let refused = |class| Error::Transact { what: "add ports".into(), problem: TxnError::new(class, None, "no") };
        for (error, passes) in [
            (refused(Class::Disk), true),
            (refused(Class::Constraint), false),
            (Error::Host(ovnkube_host::Error::Silent { what: "look up a link".into() }), true),
            (Error::LinkTaken { name: "0abc".into() }, false),
        ] {
            let why = error.to_string();
            let problem = Problem::from(error);
            assert_eq!((problem.why, problem.passes), (why.clone(), passes), "{why}");
        }
    }

    #[test]
    fn sandboxes_of_others_are_left_alone() {
        let unknown = link(4, "s1", "uid-c");
        assert_eq!(of(std::slice::from_ref(&unknown), &[]), (vec![], true));
        assert_eq!(of(&[unknown], &[("s1", "s1", "c")]), (vec![], false));
        let mut other = link(4, "s1", "uid-a");
        other.name = "eth1".into();
        let untold = Link { alias: Some("ovnkube sandbox s1".into()), ..link(4, "s1", "uid-a") };
        let none = Link { alias: None, ..untold.clone() };
        assert_eq!(of(&[other, untold, none], &[]), (vec![], false));
    }
}
