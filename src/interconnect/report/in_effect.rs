//! Which interconnection is in effect: what the ConfigMap says, or what the masters have kept of an earlier one.

use std::collections::BTreeMap;

use ovnkube_model::{Asks, BadKey, Change, Interconnection, InterconnectionConfig, Meta};
use serde::Serialize;

use super::northbound::{Kept, Northbound};

/// Something that was looked at, or why that was not possible.
pub type Looked<T> = Result<T, String>;

/// What the ConfigMap says; `None`: there is none.
pub type Asked = Option<InterconnectionConfig>;

/// Reads the data of the ConfigMap.
pub fn asked(data: Option<&BTreeMap<String, String>>) -> Asked {
    let nothing = BTreeMap::new();
    let meta = Meta { uid: "", created: 0, labels: &nothing, annotations: &nothing };
    data.map(|data| InterconnectionConfig::parse(&meta, data))
}

/// What the masters go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The ConfigMap, or that there is none.
    ConfigMap,
    /// The last one that they could use.
    Kept,
    /// No key can be used, and nothing is kept.
    Nothing,
    Unknown,
}

/// What is in effect, and what it names.
#[derive(Debug, Clone, Copy)]
pub struct InEffect<'a> {
    pub source: Source,
    /// Whether the cluster is to be joined.
    pub is_on: bool,
    /// Where the shared databases are, also while it is off.
    pub names: Option<&'a Interconnection>,
    pub(crate) kept: Option<&'a Kept>,
    /// Why the ConfigMap, or what is kept, could not be read.
    unread: Option<&'a str>,
    bad: &'a [BadKey],
}

impl<'a> InEffect<'a> {
    pub fn of(asked: &'a Looked<Asked>, northbound: &'a Looked<Northbound>) -> Self {
        let kept = northbound.as_ref().ok().and_then(|northbound| northbound.kept.as_ref());
        let of_kept = kept.map(|kept| &kept.names);
        let unread = asked.as_ref().err().or(northbound.as_ref().err()).map(String::as_str);
        let without = if unread.is_some() { Source::Unknown } else { Source::Nothing };
        let (source, is_on, names) = match asked.as_ref().map(|config| config.as_ref().map(|config| &config.asks)) {
            Ok(Some(Asks::On(names))) => (Source::ConfigMap, true, Some(&**names)),
            // where it was joined says more than where it would be
            Ok(Some(Asks::Off(others))) => (Source::ConfigMap, false, of_kept.or(others.as_deref())),
            Ok(None) => (Source::ConfigMap, false, of_kept),
            Ok(Some(Asks::Unclear)) | Err(_) => match kept {
                Some(kept) => (Source::Kept, kept.is_on, of_kept),
                None => (without, false, None),
            },
        };
        let bad = asked.as_ref().ok().and_then(Option::as_ref).map(|config| config.bad.as_slice()).unwrap_or_default();
        Self { source, is_on, names, kept, unread, bad }
    }

    /// Whether it is known that the cluster is to be joined with no others.
    pub(crate) fn is_off(&self) -> bool {
        !self.is_on && matches!(self.source, Source::ConfigMap | Source::Kept)
    }

    /// Where the shared databases are, or why that is not known.
    pub fn found(&self) -> Looked<&'a Interconnection> {
        self.names.ok_or_else(|| match self.unread {
            Some(why) => format!("it is not known where the shared databases are: {why}"),
            None => "the ConfigMap ovn-ic-config in kube-system does not say where the shared databases are, and the masters have kept \
                     no earlier one"
                .to_owned(),
        })
    }

    /// What is in effect, and where the shared databases are, if that is not what the ConfigMap says.
    pub fn said(&self) -> Option<String> {
        let last = "the last ConfigMap that a master could use";
        let what_counts = match self.bad {
            [] => format!("{last} is in effect"),
            [_] => "what it said last counts".to_owned(),
            _ => "what they said last counts".to_owned(),
        };
        match (self.source, self.kept) {
            (Source::Kept, Some(kept)) => {
                let zone = &kept.names.zone;
                let what = if kept.is_on { joined(&kept.names) } else { format!("this cluster was {zone} and leaves") };
                Some(format!("{}, so {what_counts}: {what}", self.why()))
            }
            (Source::Nothing, _) => {
                Some(format!("{}, and no earlier one is kept: this cluster is joined with no others", self.why()))
            }
            (Source::ConfigMap, Some(kept)) if !self.is_on => {
                Some(format!("where it was joined is known from {last}, as {}", kept.names.zone))
            }
            _ => None,
        }
    }

    /// Why the ConfigMap is not in effect.
    fn why(&self) -> String {
        let keys: Vec<&str> = self.bad.iter().map(|bad| bad.key.as_ref()).collect();
        match keys.as_slice() {
            [] => "the ConfigMap cannot be read".to_owned(),
            [key] => format!("key {key} cannot be used"),
            keys => format!("keys {} cannot be used", keys.join(", ")),
        }
    }

    /// What a model of the cluster is told: as if it were on.
    pub fn change(&self) -> Change {
        let on = |names: &Interconnection| InterconnectionConfig::on("".into(), names.clone());
        Change::Interconnection(self.names.map(on))
    }
}

pub(crate) fn joined(names: &Interconnection) -> String {
    let routes = match (names.auto_route, names.routes.is_empty()) {
        (true, _) => "are exchanged",
        (false, true) => "are written by hand",
        (false, false) => "are those of key routes",
    };
    let mtu = names.gateway_mtu.map(|mtu| format!("; packets have at most {mtu} bytes")).unwrap_or_default();
    format!("this cluster is {} and is joined; routes {routes}{mtu}", names.zone)
}
