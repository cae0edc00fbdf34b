//! How a database is: whether it takes writes, what may still fail, and what to do.

use std::collections::{BTreeMap, BTreeSet};

use crate::guards::{COMPACT, with_guards};
use crate::judgement::{Judgement, State};
use crate::observed::{Model, Observed, Seen};
use crate::servers::{Role, Server, Servers, Trouble};

/// A member that lacks more entries than this is told: a busy cluster's followers lack some at every moment.
const FAR_BEHIND: u64 = 500;

pub fn judge(observed: &Observed) -> Judgement {
    let servers = Servers::of(observed);
    let judgement = observed.stranger().map_or_else(|| of_servers(observed, &servers), |here| strange(observed, here));
    with_guards(judgement, observed, &servers)
}

/// None of the named servers answers, and that on this host is nothing that clients with these addresses see.
fn strange(observed: &Observed, here: &Seen) -> Judgement {
    let named = observed.named();
    let judged = of_servers(&named, &Servers::of(&named));
    let word = observed.word();
    let remedy = format!("if clients are to use it, give its address with --{word}-address");
    Judgement::new(
        judged.state,
        format!("{}; the server on this host, {}, is not known to be one of these", judged.text, here.address),
        judged.remedy.map_or(remedy.clone(), |first| format!("{first}; {remedy}")),
    )
}

fn of_servers(observed: &Observed, servers: &Servers) -> Judgement {
    let models: BTreeSet<Model> =
        observed.servers.iter().filter_map(|seen| Some(seen.answer.as_ref()?.model)).collect();
    let word = observed.word();
    let is_clustered = models.contains(&Model::Clustered) || servers.complete;
    if is_clustered && models.contains(&Model::Standalone) {
        let alone = servers.all.iter().filter(|server| matches!(server.role, Role::Active | Role::Backup));
        return Judgement::new(
            State::Broken,
            format!("some servers are in a cluster, but not {}: clients see different contents", names(alone)),
            format!("give clients the addresses of the cluster's members only, with --{word}-address"),
        );
    }
    if is_clustered {
        cluster(servers, word)
    } else if models.contains(&Model::Standalone) {
        alone(servers, word)
    } else if models.contains(&Model::Relay) {
        let text = "only relays answer, which show what other servers have";
        Judgement::new(
            State::Degraded,
            text,
            format!("give the addresses of the database's servers with --{word}-address"),
        )
    } else {
        let of = names(servers.all.iter());
        let remedy = format!("start ovsdb-server there, or give the right addresses with --{word}-address");
        Judgement::new(State::Broken, format!("no server of the database answers: {of}"), remedy)
    }
}

/// Half of the members and one more.
pub(crate) fn majority(members: usize) -> usize {
    members / 2 + 1
}

fn cluster(servers: &Servers, word: &str) -> Judgement {
    let clusters: BTreeSet<&str> = servers.all.iter().filter_map(|server| server.cluster.as_deref()).collect();
    if clusters.len() > 1 {
        let of = |id: &&str| {
            let its = servers.all.iter().filter(|server| server.cluster.as_deref() == Some(*id));
            format!("{} in {id}", names(its))
        };
        let of: Vec<String> = clusters.iter().map(of).collect();
        return Judgement::new(
            State::Broken,
            format!("the servers are in different clusters: {}", of.join("; ")),
            format!(
                "find out which one has the right contents, and give clients its addresses only, with --{word}-address; masters \
                 that have used another one must be restarted"
            ),
        );
    }
    let members: Vec<&Server> = servers.members().collect();
    match servers.leader() {
        Some(_) => led(&members, servers, word),
        None => leaderless(&members, servers, word),
    }
}

fn led(members: &[&Server], servers: &Servers, word: &str) -> Judgement {
    let (all, connected) = (members.len(), members.iter().filter(|member| member.connected).count());
    let spare = connected.saturating_sub(majority(all));
    let of = format!("{connected} of {all} members are connected");
    if let Some((lost, address)) = predecessor(members) {
        return Judgement::new(
            State::Degraded,
            format!(
                "works, but member {lost} has the address of another one, {address}: it lost its file, and still counts for the majority"
            ),
            format!("run ovnkube db leave {word} {lost} on the host of a member"),
        );
    }
    if let Some(told) = unasked(members, word) {
        return Judgement::new(
            State::Degraded,
            format!("works; {connected} of {all} members are known to be connected"),
            told,
        );
    }
    let missing = members.iter().copied().filter(|member| !member.connected);
    if connected < all {
        let text = match spare {
            0 => format!("works, but one more loss stops writes: {of}"),
            1 => format!("works, and one more member may fail: {of}"),
            _ => format!("works, and {spare} more members may fail: {of}"),
        };
        return Judgement::new(State::Degraded, text, bring_back(missing, word));
    }
    if let Some(slow) = members.iter().find(|member| member.behind.is_some_and(|behind| behind > FAR_BEHIND)) {
        return Judgement::new(
            State::Degraded,
            format!("works, but {} is {} entries behind the leader", slow.address, slow.behind.unwrap_or_default()),
            "look again: if that number does not fall, its host or its disk is too slow",
        );
    }
    if !servers.complete && all == 1 {
        let remedy = format!("give the addresses of all members with --{word}-address, or run this on the host of one");
        return Judgement::new(State::Healthy, "takes writes; its other members were not asked", remedy);
    }
    match (all, spare) {
        (1, _) => Judgement::new(
            State::Healthy,
            "takes writes, but no member may fail: it is the only one",
            "let two more join, with ovnkube db join",
        ),
        (_, 0) => Judgement::new(
            State::Healthy,
            format!("takes writes, but no member may fail: there are {all}"),
            "let one more join, with ovnkube db join",
        ),
        (_, 1) => Judgement::new(State::Healthy, format!("healthy: all {all} members are connected, one may fail"), ""),
        _ => Judgement::new(State::Healthy, format!("healthy: all {all} members are connected, {spare} may fail"), ""),
    }
}

fn leaderless(members: &[&Server], servers: &Servers, word: &str) -> Judgement {
    let all = members.len();
    let answering = members.iter().filter(|member| member.answers()).count();
    if let Some(leader) = members.iter().find(|member| member.role == Role::Leader && !member.answers()) {
        return Judgement::new(
            State::Broken,
            format!("no writes: {} leads, but does not answer clients", leader.address),
            "look at that port and its certificate, and whether ovsdb-server is overloaded there",
        );
    }
    if let Some(connected) = members.iter().find(|member| member.connected)
        && !servers.complete
    {
        return Judgement::new(
            State::Degraded,
            format!("the leader was not asked: {} is connected to it", connected.address),
            format!("give the addresses of all members with --{word}-address, or run this on the host of one"),
        );
    }
    if let Some(failed) = members.iter().find(|member| member.trouble == Some(Trouble::Failed))
        && answering >= majority(all)
    {
        let text = format!(
            "no leader, no writes: {} could not write its file, and takes part in nothing since",
            failed.address
        );
        return Judgement::new(State::Broken, text, START_AGAIN);
    }
    if let Some(told) = unasked(members, word) {
        let text = format!("no leader is known: {answering} of {all} members answer, and the others were not asked");
        return Judgement::new(State::Broken, text, told);
    }
    if answering < majority(all) {
        let silent = members.iter().copied().filter(|member| !member.answers());
        let text = format!(
            "no leader, no writes: {answering} of {all} members {}, and {} are needed",
            if answering == 1 { "answers" } else { "answer" },
            majority(all)
        );
        return Judgement::new(State::Broken, text, bring_back(silent, word));
    }
    let text = format!("no leader, no writes: {answering} of {all} members answer, but they elect none");
    let remedy = "look again in some seconds; if it stays so, they do not reach each other: check the network between the \
                  members' hosts, the ports 6643 and 6644, and their certificates";
    Judgement::new(State::Broken, text, remedy)
}

/// What to do if members were not asked of which the one on this host knows nothing.
fn unasked(members: &[&Server], word: &str) -> Option<String> {
    let of: Vec<&Server> = members.iter().copied().filter(|member| !member.asked && !member.connected).collect();
    let id = of.first()?.id.as_deref().unwrap_or("SERVER");
    Some(format!(
        "give the addresses of all members with --{word}-address, also of {}; one that is lost for ever is removed by ovnkube db \
         leave {word} {id}",
        names(of.iter().copied())
    ))
}

/// A member that has the same address as one that answers.
fn predecessor<'a>(members: &[&'a Server]) -> Option<(&'a str, &'a str)> {
    let mut by_address: BTreeMap<&str, Vec<&Server>> = BTreeMap::new();
    for &member in members {
        by_address.entry(member.raft_address.as_deref()?).or_default().push(member);
    }
    let (address, both) = by_address.into_iter().find(|(_, both)| both.len() > 1)?;
    // of several, one may be the member that lives
    match absent(&both).as_slice() {
        [lost] => Some((lost.id.as_deref()?, address)),
        _ => None,
    }
}

/// What to do about a member that could not write its file: it does not try again by itself.
const START_AGAIN: &str = "look at its disk, make room there if it is full, and then start ovsdb-server again";

fn bring_back<'a>(missing: impl Iterator<Item = &'a Server>, word: &str) -> String {
    let missing: Vec<&Server> = missing.collect();
    let of = names(missing.iter().copied());
    match missing.as_slice() {
        [one] if one.trouble == Some(Trouble::Failed) => {
            format!("{of} could not write its file, and takes part in nothing since: {START_AGAIN}")
        }
        [one] if one.trouble == Some(Trouble::Mute) => format!(
            "{of} answers clients, but does not confirm to the leader what it is sent: its disk is full or fails, or it hangs. \
             On its host, look at ovnkube db status {word}; {COMPACT}"
        ),
        [one] if one.answers() => {
            let disk = if one.this_host {
                ""
            } else {
                "; whether it could not write its file, this command tells on its host"
            };
            format!(
                "{of} answers, but is not connected to the others: check the network between it and them, the ports 6643 and 6644, \
                 and its certificate{disk}"
            )
        }
        [one] => {
            let id = one.id.as_deref().unwrap_or("SERVER");
            format!(
                "start ovsdb-server of {of} again; if its file is lost for ever, let a new member join (ovnkube db join) and \
                 remove the old one (ovnkube db leave {word} {id})"
            )
        }
        _ => format!("start ovsdb-server of {of} again, with their files"),
    }
}

fn alone(servers: &Servers, word: &str) -> Judgement {
    let with = |role| servers.all.iter().filter(move |server| server.role == role);
    let silent = || servers.all.iter().filter(|server| !server.answers());
    let (active, backups) = (with(Role::Active).count(), with(Role::Backup).count());
    let apart = with(Role::Backup).find(|server| server.trouble == Some(Trouble::Apart));
    if let Some(backup) = apart.filter(|_| active == 1) {
        let of = backup.backup_of.as_deref().unwrap_or("the other server");
        return Judgement::new(
            State::Degraded,
            format!(
                "takes writes, but the backup {} has copied nothing yet, and cannot take over from {}",
                backup.address,
                names(with(Role::Active))
            ),
            format!(
                "look again in some seconds; if it stays so, see that it reaches {of}, or start it again with another --sync-from"
            ),
        );
    }
    match (active, backups, silent().count()) {
        (0, _, _) => Judgement::new(
            State::Broken,
            format!("no active server, no writes: {} only copies another server", names(with(Role::Backup))),
            format!(
                "start the active server again, or make this one active: on its host, ovs-appctl -t \
                 /var/run/ovn/ovn{word}_db.ctl ovsdb-server/disconnect-active-ovsdb-server"
            ),
        ),
        (1, 0, 0) => {
            Judgement::new(State::Healthy, "takes writes; a single server: nothing takes over if it fails", "")
        }
        (1, 0, _) => Judgement::new(
            State::Degraded,
            format!("takes writes, but nothing takes over if {} fails", names(with(Role::Active))),
            format!("start ovsdb-server of {} again", names(silent())),
        ),
        (1, _, 0) => Judgement::new(
            State::Healthy,
            format!("healthy: {} is active, {backups} copy it", names(with(Role::Active))),
            "",
        ),
        (1, _, _) => Judgement::new(
            State::Degraded,
            format!("takes writes; {} is active", names(with(Role::Active))),
            format!("start ovsdb-server of {} again", names(silent())),
        ),
        _ => Judgement::new(
            State::Broken,
            format!(
                "{} all take writes, and none copies another: clients see different contents",
                names(with(Role::Active))
            ),
            "make all but one a backup: on its host, ovs-appctl ovsdb-server/set-active-ovsdb-server ADDRESS, then \
             ovsdb-server/connect-active-ovsdb-server. What only that one has is lost",
        ),
    }
}

/// The members of these that are not connected.
pub(crate) fn absent<'a>(members: &[&'a Server]) -> Vec<&'a Server> {
    members.iter().copied().filter(|member| !member.connected).collect()
}

pub(crate) fn names<'a>(servers: impl Iterator<Item = &'a Server>) -> String {
    servers.map(|server| server.address.as_str()).collect::<Vec<_>>().join(", ")
}
