//! The address that a member is to have. It stays in the file for ever, other hosts must reach it, and what passes there is all that
//! the database has: it is protected as clients are, and has a port that no client uses.

use std::net::IpAddr;

use crate::observed::{Observed, host_of};
use crate::refused::{Verdict, refuse};

/// Where OVN's servers listen for clients, if nothing else is said.
const CLIENTS: [&str; 2] = ["6641", "6642"];

/// The cluster that a member is to join, as far as it is known before it has joined.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cluster<'a> {
    /// Addresses of members that are given.
    pub(crate) members: &'a [String],
    /// What this host's member had until now.
    pub(crate) old: Option<&'a str>,
}

/// Whether a member may have this address: of a new cluster, or of one that is joined.
pub(crate) fn usable(observed: &Observed, local: &str, joined: Option<Cluster<'_>>) -> Verdict<()> {
    let cluster = joined.unwrap_or_default();
    reachable(observed, local)?;
    port(observed, local)?;
    cluster.members.iter().try_for_each(|member| members_port(observed, member))?;
    match Address::of(local) {
        Some(address) if address.scheme == "tcp" => plain(observed, &address, cluster),
        Some(address) => protected(observed, &address, joined),
        None => Ok(()),
    }
}

/// A loopback address is for a cluster on one host, whose clients use such addresses too.
fn reachable(observed: &Observed, local: &str) -> Verdict<()> {
    let word = observed.word();
    let scheme = clients(observed).next().map_or("tcp", |client| client.scheme);
    let example = Address { scheme, host: "10.0.0.1", port: free_port(observed, local) };
    let remedy = format!("write an address of this host that the other members reach, such as {}", example.text());
    match reach(local) {
        Reach::Nobody => refuse(format!("{local} is no address that a member can be reached at; {remedy}")),
        Reach::ThisHost if observed.servers.iter().any(|seen| reach(&seen.address) != Reach::ThisHost) => {
            refuse(format!(
                "{local} leads every host to itself, and --{word}-address names servers that others reach: no member of another host could \
             join; {remedy}"
            ))
        }
        Reach::ThisHost | Reach::Others => Ok(()),
    }
}

/// Other members would be looked for at this port too, and be open to clients.
fn port(observed: &Observed, local: &str) -> Verdict<()> {
    let Some(address) = Address::of(local).filter(|address| is_of_clients(observed, address.port)) else {
        return Ok(());
    };
    let other = Address { port: free_port(observed, local), ..address };
    refuse(format!(
        "{local} has the port {}, at which clients connect; write another one, such as {}",
        address.port,
        other.text()
    ))
}

fn members_port(observed: &Observed, member: &str) -> Verdict<()> {
    match Address::of(member).filter(|address| is_of_clients(observed, address.port)) {
        None => Ok(()),
        Some(address) => refuse(format!(
            "{member} has the port {}, at which clients connect, and not other members; write the address that ovsdb-tool \
             db-local-address prints of the file there",
            address.port
        )),
    }
}

/// Plain TCP is for a cluster where nothing is known to use TLS.
fn plain(observed: &Observed, local: &Address<'_>, cluster: Cluster<'_>) -> Verdict<()> {
    let is_tls = |address: &Address<'_>| address.scheme == "ssl";
    let client = clients(observed).find(is_tls).map(|client| format!("clients use TLS ({})", client.text()));
    let member = || cluster.known().find(is_tls).map(|member| format!("members use TLS ({})", member.text()));
    client.or_else(member).map_or(Ok(()), |they| {
        refuse(format!(
            "{} is plain TCP, and {they}: what members send each other could be read and changed on its way; write {}",
            local.text(),
            Address { scheme: "ssl", ..*local }.text()
        ))
    })
}

/// TLS is for a cluster whose clients or members use it. It may still have members without: they get others one by one.
fn protected(observed: &Observed, local: &Address<'_>, joined: Option<Cluster<'_>>) -> Verdict<()> {
    let (word, cluster) = (observed.word(), joined.unwrap_or_default());
    let all = || clients(observed).chain(cluster.known());
    let local_text = local.text();
    if let Some(they) = all().next().filter(|_| all().all(|address| address.scheme == "tcp")) {
        let they = they.text();
        let hint = joined.map_or(String::new(), |_| {
            format!(". If members use TLS already, write their addresses behind {local_text}")
        });
        return refuse(format!(
            "{local_text} is TLS, and nobody is known to use it, but {they} is plain TCP; write {}, or give the addresses at \
             which clients use TLS with --{word}-address{hint}",
            Address { scheme: "tcp", ..*local }.text()
        ));
    }
    match cluster.old.and_then(Address::of) {
        Some(old) if old.scheme == "tcp" && cluster.members.is_empty() => refuse(format!(
            "this host's member was at {}, and others may be at plain TCP too, where they are not found at the port of \
             {local_text}; write the addresses of some members behind it",
            old.text()
        )),
        _ => Ok(()),
    }
}

impl<'a> Cluster<'a> {
    /// What tells how its members talk. The old address does only if no others are given.
    fn known(self) -> impl Iterator<Item = Address<'a>> {
        let old = self.old.filter(|_| self.members.is_empty());
        self.members.iter().map(String::as_str).chain(old).filter_map(Address::of)
    }
}

/// `tcp:10.0.0.1:6643`.
#[derive(Clone, Copy)]
struct Address<'a> {
    scheme: &'a str,
    host: &'a str,
    port: &'a str,
}

impl<'a> Address<'a> {
    /// Nothing of a unix socket.
    fn of(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once(':')?;
        let (host, port) = rest.rsplit_once(':').filter(|_| matches!(scheme, "tcp" | "ssl"))?;
        Some(Self { scheme, host, port })
    }

    fn text(&self) -> String {
        format!("{}:{}:{}", self.scheme, self.host, self.port)
    }
}

/// The addresses for clients that are given.
fn clients(observed: &Observed) -> impl Iterator<Item = Address<'_>> {
    observed.servers.iter().filter_map(|seen| Address::of(&seen.address))
}

fn is_of_clients(observed: &Observed, port: &str) -> bool {
    CLIENTS.contains(&port) || clients(observed).any(|client| client.port == port)
}

/// The address's own port, or else one that OVN's scripts use.
fn free_port<'a>(observed: &Observed, local: &'a str) -> &'a str {
    let usual = if observed.word() == "sb" { ["6644", "16644"] } else { ["6643", "16643"] };
    let own = Address::of(local).map(|address| address.port);
    own.into_iter().chain(usual).find(|port| !is_of_clients(observed, port)).unwrap_or("26643")
}

/// Who reaches a server at an address.
#[derive(PartialEq, Eq)]
enum Reach {
    Nobody,
    ThisHost,
    Others,
}

fn reach(address: &str) -> Reach {
    let Some(host) = host_of(address) else { return Reach::ThisHost };
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() || address.is_multicast() => Reach::Nobody,
        Ok(address) if address.is_loopback() => Reach::ThisHost,
        Err(_) if host == "localhost" || host.ends_with(".localhost") => Reach::ThisHost,
        _ => Reach::Others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seen;

    fn verdict(local: &str, clients: &str, joined: Option<(&[&str], Option<&str>)>) -> String {
        let mut observed = seen("x", None);
        observed.servers[0].address = clients.to_owned();
        let members: Vec<String> =
            joined.iter().flat_map(|(members, _)| members.iter().map(ToString::to_string)).collect();
        let joined = joined.map(|(_, old)| Cluster { members: &members, old });
        usable(&observed, local, joined).map_or_else(|refused| refused.0, |()| String::new())
    }

    const TCP: &str = "tcp:10.0.0.9:6643";
    const TLS: &str = "ssl:10.0.0.9:6643";
    const CLIENT_TCP: &str = "tcp:10.0.0.1:6641";
    const CLIENT_TLS: &str = "ssl:10.0.0.1:6641";
    const MEMBER_TCP: &str = "tcp:10.0.0.1:6643";
    const MEMBER_TLS: &str = "ssl:10.0.0.1:6643";
    const SOCKET: &str = "unix:/run/nb.sock";

    #[test]
    fn a_new_cluster_is_protected_as_clients_are() {
        for (local, clients, want) in [
            (TCP, CLIENT_TCP, ""),
            (TLS, CLIENT_TLS, ""),
            ("ssl:[fd00::9]:6643", "ssl:[fd00::1]:6641", ""),
            (
                TCP,
                CLIENT_TLS,
                "tcp:10.0.0.9:6643 is plain TCP, and clients use TLS (ssl:10.0.0.1:6641): what members send each other could be \
                 read and changed on its way; write ssl:10.0.0.9:6643",
            ),
            (
                TLS,
                CLIENT_TCP,
                "ssl:10.0.0.9:6643 is TLS, and nobody is known to use it, but tcp:10.0.0.1:6641 is plain TCP; write \
                 tcp:10.0.0.9:6643, or give the addresses at which clients use TLS with --nb-address",
            ),
        ] {
            assert_eq!(verdict(local, clients, None), want, "{local} {clients}");
        }
    }

    #[test]
    fn one_that_joins_is_protected_as_clients_and_members_are() {
        let [in_tcp, in_tls]: [&[&str]; 2] = [&[MEMBER_TCP], &[MEMBER_TLS]];
        for (local, clients, members, old, want) in [
            (TCP, CLIENT_TCP, &[][..], None, ""),
            (TCP, CLIENT_TCP, in_tcp, None, ""),
            (TCP, CLIENT_TCP, in_tls, None, "and members use TLS (ssl:10.0.0.1:6643)"),
            (TCP, CLIENT_TCP, &[], Some(MEMBER_TLS), "and members use TLS (ssl:10.0.0.1:6643)"),
            (TCP, CLIENT_TLS, &[], None, "and clients use TLS"),
            (TCP, CLIENT_TLS, in_tcp, None, "; write ssl:10.0.0.9:6643"),
            (TCP, SOCKET, &[], None, ""),
            (TLS, CLIENT_TLS, &[], None, ""),
            (TLS, CLIENT_TLS, in_tls, None, ""),
            // on the way to TLS
            (TLS, CLIENT_TLS, in_tcp, None, ""),
            (TLS, CLIENT_TLS, in_tcp, Some(MEMBER_TCP), ""),
            (
                TLS,
                CLIENT_TLS,
                &[],
                Some(MEMBER_TCP),
                "this host's member was at tcp:10.0.0.1:6643, and others may be at plain TCP too, where they are not found at the \
                 port of ssl:10.0.0.9:6643; write the addresses of some members behind it",
            ),
            (TLS, CLIENT_TCP, in_tls, None, ""),
            (TLS, CLIENT_TCP, &[], Some(MEMBER_TLS), ""),
            (TLS, CLIENT_TCP, &[], None, "If members use TLS already, write their addresses behind ssl:10.0.0.9:6643"),
            (TLS, CLIENT_TCP, in_tcp, None, "write tcp:10.0.0.9:6643"),
            (TLS, SOCKET, in_tcp, None, "but tcp:10.0.0.1:6643 is plain TCP"),
        ] {
            // sockets are of this host, and a member at an address is not reached there
            let said = verdict(local, clients, Some((members, old)));
            let is_right = if want.is_empty() { said.is_empty() } else { said.contains(want) };
            assert!(is_right, "{local} {clients} {members:?} {old:?}: {said:?}, not {want:?}");
        }
    }

    #[test]
    fn members_have_a_port_without_clients() {
        for (local, clients, member, want) in [
            (
                "tcp:10.0.0.9:6641",
                "tcp:10.0.0.1:16641",
                MEMBER_TCP,
                "tcp:10.0.0.9:6641 has the port 6641, at which clients connect; write another one, such as tcp:10.0.0.9:6643",
            ),
            ("ssl:[fd00::9]:6642", CLIENT_TLS, MEMBER_TLS, "such as ssl:[fd00::9]:6643"),
            ("tcp:10.0.0.9:16641", "tcp:10.0.0.1:16641", MEMBER_TCP, "has the port 16641"),
            (TCP, "tcp:10.0.0.1:6643", "tcp:10.0.0.1:7000", "such as tcp:10.0.0.9:16643"),
            ("tcp:0.0.0.0:6641", CLIENT_TCP, MEMBER_TCP, "such as tcp:10.0.0.1:6643"),
            (
                TCP,
                CLIENT_TCP,
                "tcp:10.0.0.2:6641",
                "tcp:10.0.0.2:6641 has the port 6641, at which clients connect, and not other members; write",
            ),
            ("unix:/run/raft", SOCKET, "unix:/run/other", ""),
        ] {
            let said = verdict(local, clients, Some((&[member], None)));
            let is_right = if want.is_empty() { said.is_empty() } else { said.contains(want) };
            assert!(is_right, "{local} {clients} {member}: {said:?}, not {want:?}");
        }
    }
}
