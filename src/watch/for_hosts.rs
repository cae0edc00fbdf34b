//! What the ConfigMap `ovnkube-cluster` tells the hosts.

use ovnkube_model::{Change, ForHosts, Kind, Name};

use crate::config_map::WatchedConfigMap;
use crate::object::{Metadata, Watched};

pub(crate) struct ForHostsConfigs;

impl Watched for ForHostsConfigs {
    const KIND: Kind = Kind::ForHosts;
    /// Of one namespace, which the caller names.
    const PATH: &'static str = "/api/v1/configmaps";
    const PAGE: u32 = 1;
    const IS_PATIENT: bool = true;
    type Key = Name;
    type Object<'a> = WatchedConfigMap<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o WatchedConfigMap<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(key: Name, object: &WatchedConfigMap<'_>) -> Change {
        let (told, bad) = ForHosts::read(&object.data);
        for (bad, problem) in bad {
            tracing::warn!(config_map = %key, "key {bad} {problem}; only masters write it: restart the master");
        }
        Change::ForHosts(Box::new(told))
    }

    fn gone(_key: Name) -> Change {
        Change::ForHosts(Box::default())
    }
}
