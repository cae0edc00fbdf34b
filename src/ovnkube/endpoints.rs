//! `ovnkube endpoints`: where the databases are, as the charts of ovn-kubernetes tell it: in the Endpoints object
//! `ovnkube-db` of the namespace of the settings, which the databases' pod makes.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ovnkube_config::{DatabasePorts, Settings};
use ovnkube_watch::{Client, Endpoints, Error};
use tokio::time::sleep;

use crate::translate;

const NAME: &str = "ovnkube-db";
const NORTH: &str = "north";
const SOUTH: &str = "south";
const RETRY: Duration = Duration::from_secs(2);

/// Makes the object, unless it says the same already.
pub(crate) async fn publish(settings: &Settings, addresses: &[IpAddr], ports: DatabasePorts) -> Result<()> {
    let namespace = &settings.kubernetes.ovn_config_namespace;
    let mut addresses = addresses.to_vec();
    addresses.sort_unstable();
    let ports = [(NORTH.to_owned(), ports.north), (SOUTH.to_owned(), ports.south)];
    let want = Endpoints { addresses, ports: ports.into() };
    let api = Client::connect(&translate::access(settings, "endpoints")).await?;
    let mut told = String::new();
    loop {
        let done = match api.endpoints(namespace, NAME).await {
            Ok(Some(have)) if have == want => return Ok(()),
            // the pod's account may not change it; and clients that know the other address must not be left with it
            Ok(Some(have)) => bail!(
                "cannot tell where the databases are: the endpoints {namespace}/{NAME} say {}, but they are at {}; if no \
                 database runs there any more, kubectl delete endpoints -n {namespace} {NAME}",
                lists(&have).join(" and "),
                lists(&want).join(" and "),
            ),
            Ok(None) => api.make_endpoints(namespace, NAME, &want).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(()) | Err(Error::Conflict { .. }) => {}
            Err(error) if error.is_retryable() || error.is_gone() => {
                say(&mut told, format!("{error}; trying again"));
                sleep(RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for the object, and returns the addresses of the northbound and of the southbound database, a line each.
pub(crate) async fn wait(settings: &Settings) -> Result<String> {
    let namespace = &settings.kubernetes.ovn_config_namespace;
    let api = Client::connect(&translate::access(settings, "endpoints")).await?;
    let mut told = String::new();
    loop {
        match api.endpoints(namespace, NAME).await {
            Ok(Some(have)) if !have.addresses.is_empty() => {
                let lists = lists(&have);
                let [north, south] = <[String; 2]>::try_from(lists).ok().context(format!(
                    "cannot use the endpoints {namespace}/{NAME}: the ports {NORTH} and {SOUTH} are missing"
                ))?;
                return Ok(format!("{north}\n{south}\n"));
            }
            Ok(_) => {
                say(&mut told, format!("waits for the databases: their pod makes the endpoints {namespace}/{NAME}"));
            }
            Err(error) if error.is_retryable() => say(&mut told, format!("{error}; trying again")),
            Err(error) => return Err(error.into()),
        }
        sleep(RETRY).await;
    }
}

/// `tcp:ADDRESS:PORT,…` of the northbound, then of the southbound database; without those that have no port.
fn lists(endpoints: &Endpoints) -> Vec<String> {
    let list = |name| {
        let port = *endpoints.ports.get(name)?;
        let remote = |ip: &IpAddr| format!("tcp:{}", SocketAddr::new(*ip, port));
        Some(endpoints.addresses.iter().map(remote).collect::<Vec<_>>().join(","))
    };
    [NORTH, SOUTH].into_iter().filter_map(list).collect()
}

/// Says it once.
fn say(told: &mut String, text: String) {
    if *told != text {
        let _ = writeln!(std::io::stderr(), "ovnkube: {text}");
        *told = text;
    }
}
