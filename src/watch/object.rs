//! The parts of an object that all kinds share.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use ovnkube_model::{Change, Kind, Meta, Name, ObjectKey, PodKey};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A kind of object that is watched.
pub(crate) trait Watched: 'static {
    const KIND: Kind;
    /// The list over all namespaces.
    const PATH: &'static str;
    /// Objects in a page of a list; limits the memory of a list to about 2 MB.
    const PAGE: u32;
    /// Whether an API server may lack the kind, or an account the right to read it: the rest works without it.
    const OPTIONAL: bool = false;
    /// Whether to wait for a minute where the account has no right to read it: for what may be new to the accounts, and is asked for by every
    /// node.
    const IS_PATIENT: bool = false;
    type Key: WatchedKey;
    /// The fields that matter, borrowed from the text.
    type Object<'a>: Deserialize<'a>;

    fn metadata<'o, 'a: 'o>(object: &'o Self::Object<'a>) -> &'o Metadata<'a>;
    fn change(key: Self::Key, object: &Self::Object<'_>) -> Change;
    fn gone(key: Self::Key) -> Change;
    /// What to report when the account has no right to read the kind, and when it has it again; only if [`Watched::OPTIONAL`].
    fn hidden(_is_hidden: bool) -> Option<Change> {
        None
    }
}

/// What identifies an object among those of its kind.
pub(crate) trait WatchedKey: Ord + Clone + Display + Send + Sync {
    fn of(meta: &Metadata<'_>) -> Self;
    /// The namespace in it.
    fn namespace(&mut self) -> Option<&mut Name> {
        None
    }
}

impl WatchedKey for Name {
    fn of(meta: &Metadata<'_>) -> Self {
        meta.name.as_ref().into()
    }
}

impl WatchedKey for ObjectKey {
    fn of(meta: &Metadata<'_>) -> Self {
        Self::new(meta.namespace.as_ref(), meta.name.as_ref())
    }

    fn namespace(&mut self) -> Option<&mut Name> {
        Some(&mut self.namespace)
    }
}

impl WatchedKey for PodKey {
    fn of(meta: &Metadata<'_>) -> Self {
        Self::new(meta.namespace.as_ref(), meta.name.as_ref())
    }

    fn namespace(&mut self) -> Option<&mut Name> {
        Some(&mut self.namespace)
    }
}

/// `metadata` without unused fields; `managedFields` alone would be half of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) resource_version: Cow<'a, str>,
    #[serde(borrow, default)]
    creation_timestamp: Option<Cow<'a, str>>,
    #[serde(default)]
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Metadata<'_> {
    pub(crate) fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The same for the model.
    pub(crate) fn meta(&self) -> Meta<'_> {
        let created = self.creation_timestamp.as_ref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
        Meta {
            uid: &self.uid,
            created: created.map_or(0, jiff::Timestamp::as_second),
            labels: &self.labels,
            annotations: &self.annotations,
        }
    }
}

/// The identity of an object: all that is needed of a deleted one, or of one that cannot be decoded.
#[derive(Debug, Deserialize)]
pub(crate) struct Identified<'a> {
    #[serde(borrow)]
    pub(crate) metadata: Identity<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Identity<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) resource_version: Cow<'a, str>,
}

impl<'a> Identity<'a> {
    pub(crate) fn into_metadata(self) -> Metadata<'a> {
        Metadata {
            name: self.name,
            namespace: self.namespace,
            uid: self.uid,
            resource_version: self.resource_version,
            ..Metadata::default()
        }
    }
}
