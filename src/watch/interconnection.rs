//! The ConfigMap `ovn-ic-config`.

use ovnkube_model::{Change, InterconnectionConfig, Kind, ObjectKey};

use crate::config_map::WatchedConfigMap;
use crate::object::{Metadata, Watched};

pub(crate) struct InterconnectionConfigs;

impl Watched for InterconnectionConfigs {
    const KIND: Kind = Kind::Interconnection;
    const PATH: &'static str = "/api/v1/namespaces/kube-system/configmaps";
    const PAGE: u32 = 1;
    /// Clusters that are not joined to others need not give the right to read it.
    const OPTIONAL: bool = true;
    type Key = ObjectKey;
    type Object<'a> = WatchedConfigMap<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o WatchedConfigMap<'a>) -> &'o Metadata<'a> {
        &object.metadata
    }

    fn change(_key: ObjectKey, object: &WatchedConfigMap<'_>) -> Change {
        Change::Interconnection(Some(InterconnectionConfig::parse(&object.metadata.meta(), &object.data)))
    }

    fn gone(_key: ObjectKey) -> Change {
        Change::Interconnection(None)
    }

    fn hidden(is_hidden: bool) -> Option<Change> {
        Some(Change::InterconnectionHidden(is_hidden))
    }
}
