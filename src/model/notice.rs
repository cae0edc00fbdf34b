//! Messages to users about an object; each becomes a Kubernetes Event.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Name, ObjectKey, PodKey};

/// The object a notice is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Object {
    Node { name: Name, uid: Name },
    Pod { key: PodKey, uid: Name },
    Namespace { name: Name, uid: Name },
    Service { key: ObjectKey, uid: Name },
    NetworkPolicy { key: ObjectKey, uid: Name },
    ServiceCidr { name: Name, uid: Name },
    ConfigMap { key: ObjectKey, uid: Name },
    Subnet { name: Name, uid: Name },
}

/// An object in the API's terms.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub namespace: Option<&'a str>,
    pub name: &'a str,
    pub uid: &'a str,
}

impl Object {
    pub fn about(&self) -> About<'_> {
        let (api_version, kind, namespace, name, uid) = match self {
            Self::Node { name, uid } => ("v1", "Node", None, name, uid),
            Self::Namespace { name, uid } => ("v1", "Namespace", None, name, uid),
            Self::Pod { key, uid } => ("v1", "Pod", Some(&key.namespace), &key.name, uid),
            Self::Service { key, uid } => ("v1", "Service", Some(&key.namespace), &key.name, uid),
            Self::NetworkPolicy { key, uid } => {
                ("networking.k8s.io/v1", "NetworkPolicy", Some(&key.namespace), &key.name, uid)
            }
            Self::ConfigMap { key, uid } => ("v1", "ConfigMap", Some(&key.namespace), &key.name, uid),
            Self::Subnet { name, uid } => ("kubeovn.io/v1", "Subnet", None, name, uid),
            Self::ServiceCidr { name, uid } => ("networking.k8s.io/v1", "ServiceCIDR", None, name, uid),
        };
        About { api_version, kind, namespace: namespace.map(|name| &**name), name, uid }
    }
}

/// `pod a/b`
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let About { kind, namespace, name, .. } = self.about();
        write!(f, "{} ", kind.to_lowercase())?;
        namespace.map_or(Ok(()), |namespace| write!(f, "{namespace}/"))?;
        f.write_str(name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    Normal,
    Warning,
}

/// One message about one object. An equal notice is no news.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Notice {
    pub object: Object,
    pub severity: Severity,
    /// CamelCase, as Kubernetes wants it: `AddressConflict`.
    pub reason: &'static str,
    /// What happened, to which field, and what to do.
    pub message: String,
}
