//! Which steps are allowed. Each is refused if it could lose the majority or contents, with the member to look at and what to do.

use std::collections::BTreeSet;

use crate::cluster_status::{ClusterStatus, Listed};
use crate::judge::{absent, majority, names};
use crate::local::{Cluster, usable};
use crate::observed::{DatabaseFile, Model, Observed, Seen, host_of};
use crate::refused::{Verdict, refuse};
use crate::room;
use crate::servers::{Role, Server, Servers};

/// The server that a step uses, and what its user has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub address: String,
    pub note: Option<String>,
    /// The server's schema, if that of a backup is older.
    pub older_than: Option<String>,
}

/// A member to remove, and what its user has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub id: String,
    pub address: String,
    pub note: Option<String>,
}

/// What this host has of the database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Here {
    #[default]
    Nothing,
    /// A server runs, with whatever file.
    Runs,
    /// A file of a database that is not in a cluster.
    Alone,
    /// The file of a member that has left its cluster: no server can use it.
    Left,
    /// A member's file.
    Member {
        id: String,
        address: String,
        /// The cluster that it is of, where that is known.
        cluster: Option<String>,
        /// Whether it has joined; otherwise the join was cut short.
        joined: bool,
        /// Whether no server has ever used it.
        fresh: bool,
        /// The member whose file it has replaced, which is still kept beside it, if it has not joined.
        replaces: Option<String>,
    },
}

const LEFT: &str = "the file of this host is that of a member that has left its cluster, and no server can use it";

/// Copies the contents to a file.
pub fn backup(observed: &Observed) -> Verdict<Source> {
    let servers = Servers::named(observed);
    one_cluster(&servers)?;
    let with = |role| servers.all.iter().filter(move |server| server.role == role && server.answers());
    let from =
        |server: &Server, note: Option<String>| Ok(Source { address: server.address.clone(), note, older_than: None });
    if let Some(leader) = servers.leader().filter(|leader| leader.answers()) {
        return from(leader, None);
    }
    if let Some(newest) = with(Role::Follower).max_by_key(|member| (member.index, member.connected)) {
        let note = format!(
            "there is no leader: the backup has what {} has, up to entry {}; a member that does not answer may have more",
            newest.address,
            newest.index.unwrap_or_default()
        );
        return from(newest, Some(note));
    }
    match (with(Role::Active).collect::<Vec<_>>().as_slice(), with(Role::Backup).next()) {
        ([one], _) => from(one, None),
        ([], Some(copy)) => {
            let note = format!("{} only copies another server, which does not answer and may have more", copy.address);
            from(copy, Some(note))
        }
        ([], None) => refuse(unreachable(&servers, observed)),
        (several, _) => refuse(two_active(several)),
    }
}

/// The server on this host writes its file anew: a second one beside it, which takes its place. `contents`: their bytes, if known.
pub fn compact(observed: &Observed, contents: Option<u64>) -> Verdict<()> {
    file_here(observed)?.map_or(Ok(()), |file| room::for_second(file, contents))
}

/// Whether [`compact`] has to know the size of the contents: a file that has grown does not fit beside itself, and shrinks a lot.
pub fn is_tight(observed: &Observed) -> bool {
    file_here(observed).is_ok_and(|file| file.is_some_and(room::is_tight))
}

/// The file of the server on this host.
fn file_here(observed: &Observed) -> Verdict<Option<&DatabaseFile>> {
    let (seen, _) = here(observed)?;
    Ok(seen.control.as_ref().and_then(|control| control.file.as_ref()))
}

/// The member on this host leaves its cluster.
pub fn leave(observed: &Observed) -> Verdict<Option<String>> {
    let (_, status) = here(observed)?;
    let word = observed.word();
    let Some(status) = status else {
        return refuse("the server on this host is in no cluster: stop it with ovn-ctl instead".to_owned());
    };
    if status.is_leaving() {
        return Ok(None);
    }
    if !status.is_member() {
        return refuse(format!(
            "the member on this host is not connected to its cluster ({}), so it cannot tell the others; bring it back, or \
             remove it on the host of another member: ovnkube db leave {word} {}",
            status.status,
            first_digits(&status.member)
        ));
    }
    let servers = Servers::of(observed);
    let others: Vec<&Server> = servers.members().filter(|member| !is_self(member, status)).collect();
    if !others.is_empty() && servers.leader().is_none() {
        let of = if others.iter().all(|member| member.connected) { &others } else { &absent(&others) };
        return refuse(format!(
            "the cluster has no leader, so nobody can agree that this member leaves. Look at {} first: start ovsdb-server there, \
             and wait until ovnkube db status {word}, with the addresses of all members, names a leader",
            names(of.iter().copied())
        ));
    }
    if others.is_empty() {
        return refuse(format!(
            "it is the only member: the database would be gone. Back it up (ovnkube db backup {word} FILE) and let another \
             member join first, or stop it with ovn-ctl"
        ));
    }
    let note = enough(&others, word)?;
    match servers.leader().filter(|_| note.is_some() && !status.is_leader() && is_missed(others.len())) {
        Some(leader) => refuse(only_the_leader_knows(leader, others.len(), word, status)),
        None => Ok(note),
    }
}

/// Whether the member that leaves may be missed: of an odd number, as many must confirm what is written without it. Of an even number one
/// fewer must, so those that confirm now are enough.
fn is_missed(stay: usize) -> bool {
    majority(stay) == majority(stay + 1)
}

/// A member that does not confirm what it is sent, as with a full disk, is connected to all others. Only its leader notices.
fn only_the_leader_knows(leader: &Server, stay: usize, word: &str, status: &ClusterStatus) -> String {
    format!(
        "{} of the {stay} members that stay would have to confirm what is written, and no more are connected. Whether each of them \
         does, only the leader knows: ovnkube db status {word} on the host of {} names one that does not. Let a new member join first \
         (ovnkube db join); or, if all do, stop ovsdb-server here and run ovnkube db leave {word} {} there",
        majority(stay),
        leader.address,
        first_digits(&status.member)
    )
}

/// Whether those that stay can still write, and what their user has to know. To remove a member that is down needs no more than that:
/// it confirms nothing, and without it no more have to.
fn enough(others: &[&Server], word: &str) -> Verdict<Option<String>> {
    let (all, connected) = (others.len(), others.iter().filter(|member| member.connected).count());
    let unasked: Vec<&Server> = others.iter().copied().filter(|member| !member.asked && !member.connected).collect();
    if connected >= majority(all) {
        return Ok(no_spare(connected, all));
    }
    refuse(if unasked.is_empty() {
        format!(
            "{connected} of the {all} other members are connected, and {} are needed: nothing could be written any more. Look at \
             {} first",
            majority(all),
            missing(others)
        )
    } else {
        format!(
            "{connected} of the {all} other members are known to be connected, and {} are needed; give the addresses of all members \
             with --{word}-address, also of {}",
            majority(all),
            names(unasked.into_iter())
        )
    })
}

/// Removes a member that is lost for ever: by the member on this host.
pub fn remove(observed: &Observed, wanted: &str) -> Verdict<Removal> {
    let (_, status) = here(observed)?;
    let word = observed.word();
    let Some(status) = status else { return refuse("the server on this host is in no cluster".to_owned()) };
    let found: Vec<&Listed> = status.members.iter().filter(|listed| listed.is(wanted)).collect();
    let [listed] = found.as_slice() else {
        let known = status.members.iter().map(|listed| format!("{} at {}", listed.id, listed.address));
        let known = known.collect::<Vec<_>>().join(", ");
        let problem = if found.is_empty() { "is none of the members" } else { "are several members; write the digits" };
        return refuse(format!("{wanted} {problem}: {known}"));
    };
    if listed.is_self {
        return refuse(format!("{wanted} is the member on this host; write ovnkube db leave {word}"));
    }
    let servers = Servers::of(observed);
    let members: Vec<&Server> = servers.members().collect();
    let (removed, others): (Vec<&Server>, Vec<&Server>) =
        members.iter().copied().partition(|member| member.id.as_deref() == Some(&*listed.id));
    let member = removed.first();
    if !status.is_member() || servers.leader().is_none() {
        return refuse(format!(
            "there is no leader, so no member can be removed; first bring back {}. If so many are lost for ever that there \
             will be no majority, make a new cluster from a backup: ovnkube db backup, then bootstrap",
            missing(&others)
        ));
    }
    if let Some(member) = member.filter(|member| member.connected || member.answers()) {
        return refuse(is_there(&member.address, word));
    }
    let is_asked = member.is_some_and(|member| member.asked);
    match lives(listed, status, &members) {
        Some(true) => return refuse(is_there(&listed.address, word)),
        None if !is_asked => {
            return refuse(format!(
                "it is not known whether {} is there: it was not asked; give its address too, with --{word}-address",
                listed.address
            ));
        }
        _ => {}
    }
    let note = enough(&others, word)?;
    Ok(Removal { id: listed.id.clone(), address: listed.address.clone(), note })
}

/// Whether the cluster of the member on this host has no such member: it may have been removed before.
pub fn lacks(observed: &Observed, wanted: &str) -> bool {
    let status = observed.named_here().and_then(|(_, control)| control.cluster.as_ref());
    status.is_some_and(|status| status.is_member() && !status.members.iter().any(|listed| listed.is(wanted)))
}

fn is_there(address: &str, word: &str) -> String {
    format!(
        "{address} is there: it leaves by itself, with ovnkube db leave {word} on its host. If it cannot, stop its ovsdb-server first"
    )
}

/// Whether a member lives, by its connections with the one on this host. A follower hears nothing from it otherwise.
fn lives(listed: &Listed, status: &ClusterStatus, members: &[&Server]) -> Option<bool> {
    let is_connected = |id: &str| members.iter().any(|member| member.connected && member.id.as_deref() == Some(id));
    // one that lost its file has joined again: its new member accepts the connections that are for the old one
    let has_successor = status.members.iter().any(|other| {
        other.id != listed.id
            && other.address == listed.address
            && (other.is_self || other.calls || is_connected(&other.id))
    });
    match (listed.calls, has_successor) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        // a leader hears from every member that lives
        (false, false) => listed.reached.or(status.is_leader().then_some(false)),
    }
}

/// This host gets a file that joins the cluster, which is returned. `members`: addresses of some, if they are given.
pub fn join(observed: &Observed, here: &Here, local: &str, members: &[String]) -> Verdict<String> {
    let word = observed.word();
    same_cluster(observed, here)?;
    match here {
        Here::Runs => return refuse(runs()),
        Here::Alone => {
            return refuse(
                "the file of this host is a database that is not in a cluster, and joining would lose its contents; move the \
                 file away first"
                    .to_owned(),
            );
        }
        Here::Member { address, joined: true, .. } if address == local => {
            return refuse(
                "the file of this host is that of a member already: start ovsdb-server, and it goes on".to_owned(),
            );
        }
        Here::Member { address, joined: true, .. } => {
            return refuse(format!(
                "the file of this host is that of the member at {address}; if this host has a new address, write ovnkube db \
                 replace {word} {local}"
            ));
        }
        Here::Member { .. } | Here::Left | Here::Nothing => {}
    }
    usable(observed, local, Some(Cluster { members, old: None }))?;
    cluster_to_join(observed)
}

/// A member whose host has a new address joins as a new one. Returns the cluster, and the digits of the old member.
pub fn replace(observed: &Observed, here: &Here, local: &str, members: &[String]) -> Verdict<(String, String)> {
    same_cluster(observed, here)?;
    let usable = |old| usable(observed, local, Some(Cluster { members, old }));
    match here {
        // it was cut short, or done, and nothing has used it
        Here::Member { joined: false, replaces: Some(old), .. } => {
            usable(None)?;
            Ok((cluster_to_join(observed)?, old.clone()))
        }
        Here::Member { id, address, joined: true, .. } if address != local => {
            usable(Some(address))?;
            Ok((cluster_to_join(observed)?, first_digits(id)))
        }
        Here::Member { joined: true, .. } => {
            refuse(format!("the file of this host has the address {local} already: start ovsdb-server, and it goes on"))
        }
        Here::Runs => refuse(runs()),
        Here::Left => refuse(format!("{LEFT}; write ovnkube db join {} {local}", observed.word())),
        Here::Alone | Here::Nothing | Here::Member { .. } => {
            refuse(format!("this host has no file of a member; write ovnkube db join {} {local}", observed.word()))
        }
    }
}

/// This host gets a file that is a new cluster. `contents`: those of a backup. False if it has it: the step was cut short when only its
/// end was missing, or is done again.
pub fn bootstrap(observed: &Observed, here: &Here, local: &str, contents: bool) -> Verdict<bool> {
    let word = observed.word();
    same_cluster(observed, here)?;
    let is_made = match here {
        Here::Runs => return refuse(runs()),
        // of the same backup, or another one: nothing is lost
        Here::Member { address, fresh: true, joined: true, .. } if address == local => !contents,
        Here::Member { joined: false, .. } => {
            return refuse(format!(
                "the file of this host was made to join a cluster, and has no contents; move it away, or write ovnkube db join {word} \
                 {local}"
            ));
        }
        Here::Member { address, .. } => {
            return refuse(format!(
                "the file of this host is that of the member at {address}: start ovsdb-server, and it goes on. If its cluster is \
                 lost for ever, move the file away"
            ));
        }
        Here::Left => return refuse(format!("{LEFT}; move it away, or write ovnkube db join {word} {local}")),
        Here::Alone if contents => {
            return refuse(
                "this host has a file of the database, and would get another one; move it away first".to_owned(),
            );
        }
        Here::Alone | Here::Nothing => false,
    };
    if !observed.addressed {
        return refuse(format!(
            "no address of the database is given, so nobody was asked whether there is a cluster already, and there would be two; \
             write --{word}-address with the addresses for clients of all hosts that are to have members, this host's too"
        ));
    }
    usable(observed, local, None)?;
    for seen in &observed.servers {
        let is_this_host = match host_of(&seen.address) {
            Some(host) => Some(host) == host_of(local),
            None => true,
        };
        match &seen.answer {
            Some(answer) if answer.model == Model::Clustered => {
                return refuse(format!(
                    "{} is in a cluster already; write ovnkube db join {word} {local}",
                    seen.address
                ));
            }
            Some(_) => {
                return refuse(format!(
                    "{} has the database, outside a cluster; create the cluster on its host, so that the contents stay, or stop \
                     it if they are not needed",
                    seen.address
                ));
            }
            None if is_this_host => {}
            None => {
                return refuse(format!(
                    "{} does not answer, and may be in a cluster: there would be two. Start it, or leave it out of \
                     --{word}-address if it never had the database ({})",
                    seen.address,
                    seen.problem.as_deref().unwrap_or("no answer")
                ));
            }
        }
    }
    Ok(!is_made)
}

/// Whether a member's file is of the cluster that answers. With another one's, members would elect a leader with contents of that time.
fn same_cluster(observed: &Observed, here: &Here) -> Verdict<()> {
    let Here::Member { cluster: Some(own), joined: true, .. } = here else { return Ok(()) };
    let servers = Servers::named(observed);
    let other = servers.all.iter().find(|server| server.cluster.as_ref().is_some_and(|cluster| cluster != own));
    other.map_or(Ok(()), |other| {
        refuse(format!(
            "the file of this host is that of a member of another cluster, {own}: {} is in {}. Move the file away",
            other.address,
            other.cluster.as_deref().unwrap_or_default()
        ))
    })
}

/// Replaces the contents with those of a backup of `schema`, which has so many bytes.
pub fn restore(observed: &Observed, name: &str, schema: &str, bytes: u64) -> Verdict<Source> {
    let writer = writer(observed, name)?;
    let running = writer.schema.as_deref().unwrap_or_default();
    if version(schema) > version(running) {
        return refuse(format!(
            "the backup has schema {schema}, and the database {running}: what is new would be lost. First write ovnkube db convert {}",
            observed.word()
        ));
    }
    room::for_contents(observed, Some(bytes))?;
    let older_than = (version(schema) < version(running)).then(|| running.to_owned());
    Ok(Source { address: writer.address, note: None, older_than })
}

/// Gives the database a newer schema. Nothing if it has it.
pub fn convert(observed: &Observed, name: &str, schema: &str) -> Verdict<Option<Source>> {
    let writer = writer(observed, name)?;
    let running = writer.schema.as_deref().unwrap_or_default();
    match version(running).cmp(&version(schema)) {
        std::cmp::Ordering::Equal => Ok(None),
        std::cmp::Ordering::Greater => refuse(format!(
            "the database has schema {running}, and {schema} is older: tables and columns would be lost. An older release of OVN \
             works with the newer schema"
        )),
        std::cmp::Ordering::Less => {
            room::for_contents(observed, None)?;
            Ok(Some(Source { address: writer.address, note: None, older_than: None }))
        }
    }
}

/// The server that takes writes.
fn writer(observed: &Observed, name: &str) -> Verdict<Server> {
    if name != observed.database {
        return refuse(format!("the file is of the database {name}, not {}", observed.database));
    }
    let servers = Servers::named(observed);
    one_cluster(&servers)?;
    if let Some(leader) = servers.leader().filter(|leader| leader.answers()) {
        return Ok(leader.clone());
    }
    let active: Vec<&Server> = servers.all.iter().filter(|server| server.role == Role::Active).collect();
    let member = servers.all.iter().find(|server| matches!(server.role, Role::Leader | Role::Follower));
    match (active.as_slice(), member) {
        ([], _) => refuse(unreachable(&servers, observed)),
        (several, Some(member)) => refuse(format!(
            "{} is in a cluster, and {} is not: they have different contents; give the addresses of one database",
            member.address,
            names(several.iter().copied())
        )),
        ([one], None) => Ok((*one).clone()),
        (several, None) => refuse(two_active(several)),
    }
}

/// The server on this host that answers and that the addresses mean, and what it says of its cluster.
fn here(observed: &Observed) -> Verdict<(&Seen, Option<&ClusterStatus>)> {
    let word = observed.word();
    let Some((seen, control)) = observed.here() else {
        return refuse(format!(
            "no ovsdb-server of the database runs on this host; run this on the host of one, or name the directory of its control \
             socket with --{word}-run-dir"
        ));
    };
    if !observed.is_named(seen) {
        let named = observed.servers.iter().filter(|seen| !seen.unnamed).map(|seen| seen.address.as_str());
        return refuse(format!(
            "the server on this host, {}, is not used, because it is not known to be one of these: {}; if it is meant, give its \
             address with --{word}-address",
            seen.address,
            named.collect::<Vec<_>>().join(", ")
        ));
    }
    match &control.problem {
        Some(problem) => refuse(format!("the ovsdb-server on this host does not answer: {problem}; restart it")),
        None => Ok((seen, control.cluster.as_ref())),
    }
}

fn cluster_to_join(observed: &Observed) -> Verdict<String> {
    let servers = Servers::named(observed);
    one_cluster(&servers)?;
    let word = observed.word();
    match servers.leader().and_then(|leader| leader.cluster.clone()) {
        Some(cluster) => Ok(cluster),
        None if servers.all.iter().any(|server| server.role == Role::Follower) => refuse(format!(
            "the cluster has no leader, or it was not asked; look at ovnkube db status {word}, with the addresses of all members"
        )),
        None if servers.all.iter().any(Server::answers) => refuse(
            "none of the servers that answer is in a cluster; create it with ovnkube db bootstrap, on one host"
                .to_owned(),
        ),
        None => refuse(unreachable(&servers, observed)),
    }
}

fn one_cluster(servers: &Servers) -> Verdict<()> {
    let clusters: BTreeSet<&str> = servers.all.iter().filter_map(|server| server.cluster.as_deref()).collect();
    match clusters.len() {
        0 | 1 => Ok(()),
        _ => refuse(format!(
            "the servers {} are in different clusters; give the addresses of one",
            names(servers.all.iter())
        )),
    }
}

/// What a majority without a spare member means.
fn no_spare(connected: usize, all: usize) -> Option<String> {
    (connected == majority(all)).then(|| {
        format!("then {connected} of {all} members are connected, and none may fail: let a new one join, with ovnkube db join")
    })
}

fn unreachable(servers: &Servers, observed: &Observed) -> String {
    let word = observed.word();
    let unused = observed.servers.iter().find(|seen| servers.all.iter().all(|server| server.address != seen.address));
    let unused = unused.map(|seen| {
        format!("; the server on this host, {}, is not used, because it is not known to be one of these", seen.address)
    });
    format!(
        "no server answers that takes writes: {}; look at ovnkube db status {word}, start ovsdb-server there, or give the right \
         addresses with --{word}-address{}",
        names(servers.all.iter()),
        unused.unwrap_or_default()
    )
}

fn two_active(several: &[&Server]) -> String {
    format!("{} all take writes, with different contents; give the address of one", names(several.iter().copied()))
}

fn runs() -> String {
    "ovsdb-server of the database runs on this host; stop it first, with ovn-ctl".to_owned()
}

fn missing(members: &[&Server]) -> String {
    names(absent(members).into_iter())
}

fn is_self(member: &Server, status: &ClusterStatus) -> bool {
    member.id.as_ref().is_some_and(|id| status.member.starts_with(&**id))
}

fn first_digits(id: &str) -> String {
    id.chars().take(4).collect()
}

/// `7.0.0` as numbers.
fn version(text: &str) -> Vec<u64> {
    text.split('.').map(|part| part.parse().unwrap_or_default()).collect()
}
