//! Finds out all that `status`, `routes` and `diagnose` tell.

use std::time::Duration;

use ovnkube_apply::{DAEMON_LOCK, seconds};
use ovnkube_config::Settings;
use ovnkube_db::Observed;
use ovnkube_interconnect::report::{Contents, Facts, Looked, interconn};
use ovnkube_model::{Asks, Interconnection, InterconnectionConfig};
use ovnkube_ovsdb::Client;
use tokio::time::{Instant, sleep, timeout};

use super::databases::Opened;
use super::first::First;
use super::kubernetes::Kubernetes;
use super::servers::shared_servers;

/// A server says at once whether a lock is free, unless it is busy.
const LOCK_WITHIN: Duration = Duration::from_secs(2);
/// A master at work writes what is missing within this time.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

pub(super) async fn look(settings: &Settings) -> Facts {
    let First { mut kubernetes, own, names, .. } = First::read(settings).await;
    let known = || names.as_ref().map_err(Clone::clone);
    let (opened, servers) =
        tokio::join!(Opened::open(settings, own, known()), of_shared(settings, names.as_ref().ok()));
    let locked = locked(&opened.sb).await;
    let contents = settled(&opened, &mut kubernetes, locked == Ok(true)).await;
    let gateways = kubernetes.gateways(known(), |chassis| match &opened.sb {
        Ok(sb) => Ok(interconn(&sb.cache(), chassis)),
        Err(why) => Err(why.clone()),
    });
    let Contents { switches, zones, northbound, southbound, settled, problems, routes, declared } = contents;
    Facts {
        now: seconds(),
        cluster: kubernetes.world.cluster_uid().cloned(),
        former: kubernetes.world.joined.former(),
        asked: kubernetes.asked,
        settings: kubernetes.settings,
        disabled: kubernetes.disabled,
        gateways,
        servers,
        switches,
        zones,
        northbound,
        southbound,
        locked,
        settled,
        problems,
        routes,
        declared,
    }
}

async fn of_shared(settings: &Settings, names: Option<&Interconnection>) -> Vec<Observed> {
    match names {
        Some(names) => shared_servers(settings, names).await.into(),
        None => Vec::new(),
    }
}

/// Whether another client holds the lock. If nobody does, it is held here for a moment.
pub(super) async fn locked(sb: &Looked<Client>) -> Looked<bool> {
    let sb = sb.as_ref().map_err(Clone::clone)?;
    let mut lock = sb.lock(DAEMON_LOCK);
    Ok(timeout(LOCK_WITHIN, lock.until(true)).await.is_err())
}

/// Whether a master goes by the ConfigMap, if it says that the cluster is joined.
fn is_taken(kubernetes: &Kubernetes, contents: &Contents) -> bool {
    match (&kubernetes.asked, &contents.northbound) {
        (Ok(Some(InterconnectionConfig { asks: Asks::On(wanted), .. })), Ok(northbound)) => northbound.keeps(wanted),
        _ => true,
    }
}

/// What the databases hold; if a master is at work, once it has written what is missing, or soon.
async fn settled(opened: &Opened, kubernetes: &mut Kubernetes, works: bool) -> Contents {
    let until = Instant::now() + SETTLED_WITHIN;
    loop {
        let contents = opened.contents(&mut kubernetes.world);
        let is_settled = contents.settled != Ok(false) && contents.is_written() && is_taken(kubernetes, &contents);
        if is_settled || !works || Instant::now() > until {
            return contents;
        }
        sleep(LOOK_AGAIN).await;
    }
}
