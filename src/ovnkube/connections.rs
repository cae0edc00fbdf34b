//! The addresses that this host depends on: the API server, the databases, its name servers. No service may take them,
//! and pods may not connect to databases without TLS.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use futures::future::join_all;
use ovnkube_config::{Database, Settings};
use ovnkube_model::{Change, Connections as Found, Subnet};
use ovnkube_ovsdb::Remote;
use tokio::net::lookup_host;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::translate;

/// Names may get other addresses, and the host other name servers.
const CHECK_AGAIN: Duration = Duration::from_secs(60);
/// While a name has not been found.
const LOOK_AGAIN_SOON: Duration = Duration::from_secs(5);
/// A resolver asks its second name server after 5 s without an answer. At the start nothing waits longer than this.
const ANSWER_AT_START: Duration = Duration::from_secs(6);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Limit of addresses of a name, which may be spread over many hosts.
const MOST_ADDRESSES: usize = 256;
/// With systemd-resolved the first file names only systemd-resolved itself, and the second the servers that it asks.
const NAME_SERVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// How much of such a file is read, bytes.
const LONGEST_FILE: u64 = 64 * 1024;

/// OVN's ports of a host with databases: northbound and southbound, for clients, then for the members of a Raft cluster; then the same
/// of the databases that join clusters.
const OVN_PORTS: RangeInclusive<u16> = 6641..=6648;

const API_SERVER: &str = "the API server";
const NORTHBOUND: &str = "the northbound database";
const SOUTHBOUND: &str = "the southbound database";
const NAME_SERVER: &str = "a name server of the nodes";

/// What this process connects to.
pub(crate) struct Connections {
    hosts: Vec<Host>,
    /// All addresses that a name has had: connections to earlier ones may still be open.
    known: BTreeMap<String, Vec<IpAddr>>,
    /// Names that are not resolved, for which a warning was logged.
    unknown: BTreeSet<String>,
    /// Ranges whose packets nodes send into OVN, with their keys.
    inside: Vec<(&'static str, Subnet)>,
    /// Addresses in them, for which a warning was logged.
    told: BTreeSet<IpAddr>,
}

struct Host {
    /// Or its address.
    name: String,
    what: &'static str,
    /// Port of a database that is reached without TLS.
    plain: Option<u16>,
}

impl Connections {
    /// `api_server`: as `10.0.0.1:6443` or `[fd00::1]:6443`.
    pub(crate) fn of(settings: &Settings, api_server: &str) -> Self {
        let mut hosts = vec![Host { name: host_of(api_server).to_owned(), what: API_SERVER, plain: None }];
        for (database, what) in [(&settings.nb, NORTHBOUND), (&settings.sb, SOUTHBOUND)] {
            hosts.extend(of_database(database, what));
        }
        let inside = settings.ranges_inside().into_iter().map(|(key, range)| (key, Subnet::of(range))).collect();
        Self { hosts, known: BTreeMap::new(), unknown: BTreeSet::new(), inside, told: BTreeSet::new() }
    }

    /// Looks the addresses up and sends them first: until then nothing is decided about services.
    pub(crate) async fn send(&mut self, changes: &mpsc::Sender<Change>) {
        self.look_up(ANSWER_AT_START).await;
        // the receiver ends with the process
        let _ = changes.send(Change::Connections(self.found())).await;
    }

    /// Repeats the look-up and sends what changed, without end. Does not keep the channel open.
    pub(crate) async fn keep_sending(mut self, changes: mpsc::WeakSender<Change>) {
        let mut sent = self.found();
        loop {
            sleep(if self.unknown.is_empty() { CHECK_AGAIN } else { LOOK_AGAIN_SOON }).await;
            self.look_up(ANSWER_WITHIN).await;
            let now = self.found();
            if let Some(changes) = changes.upgrade().filter(|_| now != sent) {
                let _ = changes.send(Change::Connections(now.clone())).await;
                sent = now;
            }
        }
    }

    async fn look_up(&mut self, within: Duration) {
        let names = self.hosts.iter().map(|host| &host.name).filter(|host| host.parse::<IpAddr>().is_err());
        let names: BTreeSet<_> = names.cloned().collect();
        let ask = async |name: String| {
            let answer = timeout(within, lookup_host((name.as_str(), 0))).await;
            let found = answer.map_err(|_| "no answer".to_owned()).and_then(|found| found.map_err(|e| e.to_string()));
            let found = found.map(|found| found.map(|address| address.ip()).collect::<Vec<_>>());
            (name, found)
        };
        for (name, found) in join_all(names.into_iter().map(ask)).await {
            match found {
                Ok(ips) => self.learn(name, ips),
                Err(error) if self.known.contains_key(&name) => {
                    debug!(name, error, "cannot find a host's addresses; the earlier ones are used");
                }
                Err(error) if self.unknown.insert(name.clone()) => {
                    warn!(
                        name,
                        error,
                        "cannot find the addresses of a host that this process connects to; until they are \
                        found a service may take them, and pods may reach it"
                    );
                }
                Err(_) => {}
            }
        }
        for (ip, what, key, range) in self.misplaced() {
            if self.told.insert(ip) {
                warn!(
                    "{ip} is in {range} of {key}: nodes send into OVN what goes there, and lose {what} unless they have a longer route to it; \
                    take another range"
                );
            }
        }
    }

    /// Addresses in a range whose packets nodes send into OVN: what is there, key and range. They are not refused: a host may have
    /// longer routes, and a master may be in another cluster, with ranges of its own.
    fn misplaced(&self) -> Vec<(IpAddr, &'static str, &'static str, Subnet)> {
        let ips = |host: &Host| self.addresses(&host.name).into_iter().map(|ip| ip.to_canonical()).collect::<Vec<_>>();
        let all = self.hosts.iter().flat_map(|host| ips(host).into_iter().map(move |ip| (ip, host.what)));
        let in_range = |(ip, what)| {
            let (key, range) = self.inside.iter().find(|(_, range)| range.contains(ip))?;
            Some((ip, what, *key, *range))
        };
        all.filter_map(in_range).collect()
    }

    fn learn(&mut self, name: String, ips: Vec<IpAddr>) {
        self.unknown.remove(&name);
        let known = self.known.entry(name).or_default();
        for ip in ips {
            if !known.contains(&ip) && known.len() < MOST_ADDRESSES {
                known.push(ip);
            }
        }
    }

    fn found(&self) -> Found {
        let name_servers = NAME_SERVERS.iter().flat_map(|path| name_servers(&read(path)));
        let mut found = Found::default();
        let mut owners: BTreeMap<_, _> = name_servers.map(|ip| (ip, NAME_SERVER)).collect();
        for host in &self.hosts {
            for ip in self.addresses(&host.name) {
                owners.insert(ip, host.what);
                let ports = host.plain.into_iter().flat_map(|port| OVN_PORTS.chain([port]));
                found.databases.extend(ports.map(|port| SocketAddr::new(ip.to_canonical(), port)));
            }
        }
        // a service cannot have loopback addresses
        owners.retain(|ip, _| !ip.is_loopback());
        found.owners = owners.into_iter().map(|(ip, what)| (ip.to_canonical(), what.into())).collect();
        found
    }

    fn addresses(&self, host: &str) -> Vec<IpAddr> {
        host.parse().map_or_else(|_| self.known.get(host).cloned().unwrap_or_default(), |ip| vec![ip])
    }
}

fn of_database(database: &Database, what: &'static str) -> Vec<Host> {
    let host = |remote| match remote {
        Remote::Unix(_) => None,
        Remote::Tcp { host, port } => Some(Host { name: host, what, plain: Some(port) }),
        Remote::Ssl { host, .. } => Some(Host { name: host, what, plain: None }),
    };
    translate::remotes(database).into_iter().filter_map(host).collect()
}

/// `10.0.0.1:6443` and `[fd00::1]:6443` without port and brackets.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn read(path: &str) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(path).and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text));
    // a host without this file has no name servers in it
    file.map(|_| text).unwrap_or_default()
}

/// The addresses of lines `nameserver ADDRESS`.
fn name_servers(text: &str) -> Vec<IpAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.trim().split('%').next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_without_tls_and_addresses_in_ovns_ranges_are_found() {
        let hosts = [
            ("10.0.0.1", NORTHBOUND, Some(6641)),
            ("10.0.0.1", SOUTHBOUND, Some(7000)),
            ("10.0.0.2", SOUTHBOUND, None),
            ("db.example", SOUTHBOUND, Some(6642)),
        ];
        let hosts = hosts.map(|(name, what, plain)| Host { name: name.to_owned(), what, plain }).into();
        let inside =
            [("cluster-subnets", "10.0.0.2/31"), ("v6-join-subnet", "fd00::/64"), ("v4-join-subnet", "10.9.0.0/16")];
        let inside = inside.map(|(key, range)| (key, range.parse::<Subnet>().unwrap())).to_vec();
        let (known, unknown, told) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut connections = Connections { hosts, known, unknown, inside, told };
        let text = |found: &Found| found.databases.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let of = |ip: &str| (6641..=6648).map(|port| format!("{ip}:{port}")).collect::<Vec<_>>().join(" ");
        let first = format!("{} 10.0.0.1:7000", of("10.0.0.1"));
        assert_eq!(text(&connections.found()), first);
        connections.learn("db.example".to_owned(), vec!["fd00::9".parse().unwrap()]);
        assert_eq!(text(&connections.found()), format!("{first} {}", of("[fd00::9]")));
        assert_eq!(&*connections.found().owners[&"10.0.0.2".parse().unwrap()], SOUTHBOUND);
        let misplaced = connections.misplaced().into_iter();
        let misplaced: Vec<_> = misplaced.map(|(ip, what, key, _)| format!("{ip} {what} {key}")).collect();
        let wanted = [("10.0.0.2", "cluster-subnets"), ("fd00::9", "v6-join-subnet")];
        assert_eq!(misplaced, wanted.map(|(ip, key)| format!("{ip} {SOUTHBOUND} {key}")));
    }
}
