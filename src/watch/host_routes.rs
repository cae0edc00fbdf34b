//! What the ConfigMap `ovnkube-cluster` says of routes of hosts.

use ovnkube_model::{Change, HostRoutes, Kind, Name, keys};

use crate::config_map::WatchedConfigMap;
use crate::object::{Metadata, Watched};

pub(crate) struct HostRoutesConfigs;

impl Watched for HostRoutesConfigs {
    const KIND: Kind = Kind::HostRoutes;
    /// Of one namespace, which the caller names.
    const PATH: &'static str = "/api/v1/configmaps";
    const PAGE: u32 = 1;
    type Key = Name;
    type Object<'a> = WatchedConfigMap<'a>;

    fn key(meta: &Metadata<'_>) -> Name {
        meta.name()
    }

    fn metadata<'o, 'a: 'o>(object: &'o WatchedConfigMap<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: Name, object: &WatchedConfigMap<'_>) -> Change {
        let read = HostRoutes::read(&object.data);
        for problem in read.iter().flat_map(|(_, bad)| bad) {
            tracing::warn!(config_map = %key, "key {} {problem}; only masters write it: restart the master", keys::HOST_ROUTES);
        }
        Change::HostRoutes(read.map(|(routes, _)| routes))
    }

    fn gone(_key: Name) -> Change {
        Change::HostRoutes(None)
    }
}
