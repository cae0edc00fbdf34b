//! Keeps what agents read of routes of their hosts to other clusters: two keys of the ConfigMap `ovnkube-cluster`. Where no cluster has
//! such routes, nothing is asked or written.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use ovnkube_apply::MayWrite;
use ovnkube_config::Settings;
use ovnkube_model::keys;
use ovnkube_watch::{Client, Data};
use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::cluster::{self, LOOK_AGAIN};

/// Other clusters come and go with many prefixes: one change serves them all.
const SETTLE: Duration = Duration::from_secs(2);
/// First pause after a failure; it doubles.
const TRY_AGAIN: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A resolver asks its second name server after 5 s without an answer.
const FOUND_WITHIN: Duration = Duration::from_secs(6);
/// Limit of addresses of a name.
const MOST_ADDRESSES: usize = 64;

/// All addresses that names of servers have had: masters may still be connected with earlier ones.
#[derive(Default)]
struct Addresses(BTreeMap<String, BTreeSet<IpAddr>>);

impl Addresses {
    /// What agents read: addresses in place of the names of servers, so that not every host has to ask.
    async fn put_in(&mut self, mut data: Data) -> Data {
        let Some(servers) = data.get_mut(keys::HOST_ROUTE_SERVERS) else { return data };
        let mut all = BTreeSet::new();
        for server in servers.split(',').filter(|server| !server.is_empty()) {
            match server.parse() {
                Ok(ip) => drop(all.insert(ip)),
                Err(_) => all.extend(self.of(server).await),
            }
        }
        *servers = all.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",");
        data
    }

    async fn of(&mut self, name: &str) -> impl Iterator<Item = IpAddr> {
        let answer = timeout(FOUND_WITHIN, lookup_host((name, 0))).await;
        let known = self.0.entry(name.to_owned()).or_default();
        if let Ok(Ok(found)) = answer {
            known.extend(found.map(|address| address.ip().to_canonical()).take(MOST_ADDRESSES));
        } else {
            debug!(name, "cannot find the addresses of a server of the shared databases");
        }
        while known.len() > MOST_ADDRESSES {
            known.pop_first();
        }
        known.iter().copied()
    }
}

/// Runs while somebody says what agents should read.
pub(crate) async fn keep(
    api: &Client,
    settings: &Settings,
    may_write: MayWrite,
    mut told: watch::Receiver<Option<Data>>,
) {
    let namespace = &settings.kubernetes.ovn_config_namespace;
    let mut written: Option<Data> = None;
    let mut pause = TRY_AGAIN;
    let mut addresses = Addresses::default();
    loop {
        // only whether somebody told is kept: the guard of what was told must not live on while this waits. Names may have other
        // addresses by then, too
        let is_told = timeout(LOOK_AGAIN, told.wait_for(|told| *told != written)).await.map(|told| told.is_ok());
        match is_told {
            Ok(true) => sleep(SETTLE).await,
            Ok(false) => break,
            Err(_) if written.is_none() => continue,
            Err(_) => {}
        }
        let want = told.borrow_and_update().clone();
        if let Some(data) = want.clone().filter(|_| may_write()) {
            let data = addresses.put_in(data).await;
            if cluster::put(api, namespace, &data, &may_write).await.is_ok() {
                (written, pause) = (want, TRY_AGAIN);
                continue;
            }
        }
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn agents_read_addresses_in_place_of_names() {
        let mut addresses = Addresses::default();
        let told = |servers: &str| Data::from([(keys::HOST_ROUTE_SERVERS.to_owned(), servers.to_owned())]);
        let mut read = async |servers: &str| addresses.put_in(told(servers)).await[keys::HOST_ROUTE_SERVERS].clone();
        assert_eq!(read("").await, "");
        assert_eq!(read("10.0.0.1,fd00::1").await, "10.0.0.1,fd00::1");
        let found = read("10.0.0.1,localhost").await;
        assert!(found.split(',').any(|ip| ip == "127.0.0.1" || ip == "::1"), "{found}");
        assert!(found.contains("10.0.0.1") && !found.contains("localhost"), "{found}");
        // a name that is not found now has the addresses that it had
        addresses.0.insert("none.invalid".to_owned(), ["10.0.0.9".parse().unwrap()].into());
        assert_eq!(addresses.put_in(told("none.invalid")).await, told("10.0.0.9"));
    }
}
