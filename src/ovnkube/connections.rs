//! The addresses that this host depends on: the API server, the databases, its name servers. No service may take them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::net::IpAddr;
use std::time::Duration;

use futures::future::join_all;
use ovnkube_config::{Database, Settings};
use ovnkube_model::{Change, Name};
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

const API_SERVER: &str = "the API server";
const NORTHBOUND: &str = "the northbound database";
const SOUTHBOUND: &str = "the southbound database";
const NAME_SERVER: &str = "a name server of the nodes";

/// What this process connects to.
pub(crate) struct Connections {
    /// Addresses or names, with what is there.
    hosts: Vec<(String, &'static str)>,
    /// All addresses that a name has had: connections to earlier ones may still be open.
    known: BTreeMap<String, Vec<IpAddr>>,
    /// Names that are not resolved, for which a warning was logged.
    unknown: BTreeSet<String>,
}

impl Connections {
    /// `api_server`: as `10.0.0.1:6443` or `[fd00::1]:6443`.
    pub(crate) fn of(settings: &Settings, api_server: &str) -> Self {
        let api_server = (host_of(api_server).to_owned(), API_SERVER);
        let of_database = |database: &Database, what| {
            let hosts = translate::remotes(database).into_iter().filter_map(|remote| Some((host(&remote)?, what)));
            hosts.collect::<Vec<_>>()
        };
        let databases = [of_database(&settings.nb, NORTHBOUND), of_database(&settings.sb, SOUTHBOUND)].concat();
        Self {
            hosts: [api_server].into_iter().chain(databases).collect(),
            known: BTreeMap::new(),
            unknown: BTreeSet::new(),
        }
    }

    /// Looks the addresses up and sends them first: until then nothing is decided about services.
    pub(crate) async fn send(&mut self, changes: &mpsc::Sender<Change>) {
        self.look_up(ANSWER_AT_START).await;
        // the receiver ends with the process
        let _ = changes.send(Change::Connections(self.addresses())).await;
    }

    /// Repeats the look-up and sends what changed, without end. Does not keep the channel open.
    pub(crate) async fn keep_sending(mut self, changes: mpsc::WeakSender<Change>) {
        let mut sent = self.addresses();
        loop {
            sleep(if self.unknown.is_empty() { CHECK_AGAIN } else { LOOK_AGAIN_SOON }).await;
            self.look_up(ANSWER_WITHIN).await;
            let now = self.addresses();
            if let Some(changes) = changes.upgrade().filter(|_| now != sent) {
                let _ = changes.send(Change::Connections(now.clone())).await;
                sent = now;
            }
        }
    }

    async fn look_up(&mut self, within: Duration) {
        let names = self.hosts.iter().filter(|(host, _)| host.parse::<IpAddr>().is_err());
        let names: BTreeSet<_> = names.map(|(name, _)| name.clone()).collect();
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
                        found a service may take them"
                    );
                }
                Err(_) => {}
            }
        }
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

    fn addresses(&self) -> BTreeMap<IpAddr, Name> {
        let of_hosts = self.hosts.iter().flat_map(|(host, what)| {
            let ips = host.parse().map_or_else(|_| self.known.get(host).cloned().unwrap_or_default(), |ip| vec![ip]);
            ips.into_iter().map(move |ip| (ip, *what))
        });
        let name_servers = NAME_SERVERS.iter().flat_map(|path| name_servers(&read(path)));
        let all = name_servers.map(|ip| (ip, NAME_SERVER)).chain(of_hosts);
        // a service cannot have loopback addresses
        all.filter(|(ip, _)| !ip.is_loopback()).map(|(ip, what)| (ip.to_canonical(), what.into())).collect()
    }
}

fn host(remote: &Remote) -> Option<String> {
    match remote {
        Remote::Unix(_) => None,
        Remote::Tcp { host, .. } | Remote::Ssl { host, .. } => Some(host.clone()),
    }
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
