//! Gives the agent what masters tell the hosts in the ConfigMap `ovnkube-cluster`.

use ovnkube_model::{Change, ForHosts, HostRoutes, Kind, ObjectKey};
use ovnkube_watch::{Client, Scope};
use tokio::sync::{mpsc, watch};

use super::told::{CHANGES, Own, tell};

/// Runs until the watch or the agent ends.
pub(super) async fn watch(
    api: &Client,
    config_map: ObjectKey,
    mut own: watch::Receiver<Own>,
    agent: mpsc::Sender<ovnkube_node::Change>,
) {
    let (changes, mut incoming) = mpsc::channel(CHANGES);
    let _watches = ovnkube_watch::start(api, &Scope::ForHosts(config_map), &changes);
    drop(changes);
    let (mut now, mut is_synced, mut told) = (ForHosts::default(), false, None);
    loop {
        tokio::select! {
            change = incoming.recv() => match change {
                Some(Change::ForHosts(read)) => {
                    now = *read;
                    // one that somebody has removed from the ConfigMap is still northd's
                    if let Some(northd) = now.northd {
                        tell(&agent, ovnkube_node::Change::Northd(northd)).await;
                    }
                }
                Some(Change::Synced(Kind::ForHosts)) => is_synced = true,
                Some(_) => continue,
                None => return,
            },
            node = own.changed() => if node.is_err() {
                return std::future::pending().await;
            },
        }
        let is_labelled = own.borrow_and_update().as_ref().map(|(_, node)| node.looks_for_routes());
        let routes = routes(&now, is_synced, is_labelled);
        if routes.is_some() && routes != told {
            told.clone_from(&routes);
            tell(&agent, ovnkube_node::Change::OtherClusters(routes.unwrap_or_default())).await;
        }
    }
}

/// The routes of this host; `None`: not known yet. `is_labelled`: whether the own Node has the label of hosts with routes to other
/// clusters; `None`: the Node is not known.
fn routes(told: &ForHosts, is_synced: bool, is_labelled: Option<bool>) -> Option<HostRoutes> {
    let wanted = if is_labelled? { is_synced.then(|| told.routes.clone())? } else { None };
    Some(wanted.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_with_the_label_have_routes() {
        let prefixes = [("10.244.0.0/16".parse().unwrap(), "az2".into())].into();
        let some = HostRoutes { prefixes, ..HostRoutes::default() };
        let told = ForHosts { routes: Some(some.clone()), northd: None };
        assert_eq!(routes(&told, true, Some(true)), Some(some));
        assert_eq!(routes(&told, true, Some(false)), Some(HostRoutes::default()));
        // an agent that may not read them leaves the routes of a host with the label as they are
        assert_eq!(routes(&told, false, Some(true)), None);
        assert_eq!(routes(&told, false, Some(false)), Some(HostRoutes::default()));
        assert_eq!(routes(&told, true, None), None);
    }
}
