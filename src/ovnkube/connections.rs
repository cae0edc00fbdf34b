//! What this host reaches by which address: the API server, the databases, its name servers. No service may take these over.

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
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// While a name has not been found.
const LOOK_AGAIN_SOON: Duration = Duration::from_secs(5);
/// A resolver asks its second name server when the first one has not answered for 5 s. At the start nothing waits for longer.
const ANSWER_AT_START: Duration = Duration::from_secs(6);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// A name that is spread over many hosts has no more addresses here.
const MOST_ADDRESSES: usize = 256;
/// What systemd-resolved asks is in the second; the first then names itself.
const NAME_SERVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// More of such a file is not read, bytes.
const LONGEST_FILE: u64 = 64 * 1024;

const API_SERVER: &str = "the API server";
const NORTHBOUND: &str = "the northbound database";
const SOUTHBOUND: &str = "the southbound database";
const NAME_SERVER: &str = "a name server of the nodes";

/// Where this process connects to.
pub(crate) struct Connections {
    /// Addresses or names, and what is there.
    hosts: Vec<(String, &'static str)>,
    /// All addresses that a name has had: connections to earlier ones are still open.
    known: BTreeMap<String, Vec<IpAddr>>,
    /// Names that were warned about.
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

    /// Finds out, and tells before anything else is told: until then nothing is decided about services.
    pub(crate) async fn tell(&mut self, changes: &mpsc::Sender<Change>) {
        self.look_up(ANSWER_AT_START).await;
        // whoever listens ends with the process
        let _ = changes.send(Change::Connections(self.addresses())).await;
    }

    /// Asks for names again, looks for other name servers, and tells what differs, for ever. Does not keep the channel open.
    pub(crate) async fn keep_telling(mut self, changes: mpsc::WeakSender<Change>) {
        let mut told = self.addresses();
        loop {
            sleep(if self.unknown.is_empty() { LOOK_AGAIN } else { LOOK_AGAIN_SOON }).await;
            self.look_up(ANSWER_WITHIN).await;
            let now = self.addresses();
            if let Some(changes) = changes.upgrade().filter(|_| now != told) {
                let _ = changes.send(Change::Connections(now.clone())).await;
                told = now;
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
                    debug!(name, error, "cannot find a host's addresses; those that it had count");
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
        // a service cannot have those of the host itself
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
    // a host without one asks nobody
    file.map(|_| text).unwrap_or_default()
}

/// Of the lines `nameserver ADDRESS`.
fn name_servers(text: &str) -> Vec<IpAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.trim().split('%').next()?.parse().ok()).collect()
}
