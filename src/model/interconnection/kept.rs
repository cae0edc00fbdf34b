//! What a master keeps of an interconnection for the next one, in the northbound database: without it, a restart in the middle of a
//! move would forget where the cluster is.
//!
//! ```text
//! wanted:  the last ConfigMap that could be used, until the cluster has left
//! present: where the cluster is, until it has reached the wanted databases
//! left:    where it was before, until nothing of it is there
//! former:  the names that it had before
//! ```
//!
//! The earlier names are kept here, since marks in the shared databases are no proof: whoever writes there can write them.

use std::collections::BTreeMap;

use serde_json::json;

use super::config::{Asks, Interconnection};
use super::text::{is_zone, own_word};
use crate::Name;

/// Keys beside those of the ConfigMap.
const PRESENT: &str = "present";
const LEFT: &str = "left";
/// The most databases that are remembered to be left.
const MOST: usize = 8;
const FORMER: &str = "former";
/// The most earlier names that are remembered.
const MOST_NAMES: usize = 4;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) wanted: Option<Interconnection>,
    pub(crate) present: Option<Interconnection>,
    pub(crate) left: Vec<Interconnection>,
    /// The latest one last.
    pub(crate) former: Vec<Name>,
}

impl Kept {
    /// What a text of [`Kept::text`] asks for, and the rest of it.
    pub(crate) fn of_text(text: &str) -> (Asks, Self) {
        let asks = Asks::of_text(text);
        let data: BTreeMap<String, String> = serde_json::from_str(text).unwrap_or_default();
        let of = |text: &str| Asks::of_text(text).names().cloned();
        let left: Vec<String> = data.get(LEFT).and_then(|left| serde_json::from_str(left).ok()).unwrap_or_default();
        let kept = Self {
            wanted: asks.names().cloned(),
            present: data.get(PRESENT).and_then(|text| of(text)),
            left: left.iter().filter_map(|text| of(text)).take(MOST).collect(),
            former: data.get(FORMER).map(|names| names_in(names)).unwrap_or_default(),
        };
        (asks, kept)
    }

    /// For the next master; `None`: there is nothing. `is_on`: the cluster is not about to leave.
    pub(crate) fn text(&self, is_on: bool) -> Option<String> {
        let mut keys = self.wanted.as_ref()?.keys(is_on);
        keys.extend(self.present.as_ref().map(|present| (PRESENT, present.text(true))));
        let left: Vec<String> = self.left.iter().map(|left| left.text(false)).collect();
        keys.extend((!left.is_empty()).then(|| (LEFT, json!(left).to_string())));
        keys.extend((!self.former.is_empty()).then(|| (FORMER, self.former.join(","))));
        Some(json!(keys).to_string())
    }

    /// Wants this from now on. `was_on`: the cluster was in the databases that were wanted before, or was to go there.
    pub(crate) fn want(&mut self, new: &Interconnection, was_on: bool) {
        let before = self.wanted.replace(new.clone());
        self.had(before.as_ref().map(|before| before.zone.clone()));
        let before = before.filter(|before| !before.has_servers_of(new));
        if was_on {
            self.present = self.present.take().or(before);
        } else {
            let present = self.present.take();
            self.leave(before.into_iter().chain(present));
        }
        self.settle();
    }

    /// Takes what an earlier master has kept. `was_on`: it did not leave.
    pub(crate) fn recover(&mut self, earlier: Self, was_on: bool) {
        let Self { wanted, present, left, former } = earlier;
        let since = std::mem::take(&mut self.former);
        self.had(former.into_iter().chain(wanted.as_ref().map(|wanted| wanted.zone.clone())).chain(since));
        self.leave(left);
        match (&self.wanted, was_on) {
            (None, _) => (self.wanted, self.present) = (wanted, present),
            (Some(_), true) => self.present = present.or(wanted),
            (Some(_), false) => self.leave(wanted.into_iter().chain(present)),
        }
        self.settle();
    }

    /// The cluster is in these databases now. `is_same`: they are those in which it was, with other servers.
    pub(crate) fn moved(&mut self, to: &Interconnection, is_same: bool) {
        let from = self.present.replace(to.clone());
        self.leave(from.filter(|_| !is_same));
        self.settle();
    }

    /// Nothing of the cluster is in these databases any more. `is_off`: nobody wants it to be anywhere.
    pub(crate) fn has_left(&mut self, from: &Interconnection, is_off: bool) {
        self.left.retain(|left| !left.has_servers_of(from));
        if is_off {
            self.present = self.present.take().filter(|present| !present.has_servers_of(from));
            self.wanted = self.wanted.take().filter(|wanted| !wanted.has_servers_of(from));
            self.wanted = self.wanted.take().or_else(|| self.present.take()).or_else(|| self.left.pop());
            if self.wanted.is_none() {
                self.former.clear();
            }
        }
    }

    /// All databases that may have rows of the cluster.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Interconnection> {
        self.wanted.iter().chain(&self.present).chain(&self.left)
    }

    fn leave(&mut self, from: impl IntoIterator<Item = Interconnection>) {
        self.left.extend(from);
    }

    /// The cluster had these names.
    fn had(&mut self, names: impl IntoIterator<Item = Name>) {
        for name in names {
            self.former.retain(|other| *other != name);
            self.former.push(name);
        }
    }

    /// None is there twice, and what is wanted is not left.
    fn settle(&mut self) {
        let Some(wanted) = &self.wanted else { return };
        self.former.retain(|name| *name != wanted.zone);
        let more = self.former.len().saturating_sub(MOST_NAMES);
        self.former.drain(..more);
        self.present = self.present.take().filter(|present| !present.has_servers_of(wanted));
        let mut known: Vec<Interconnection> = self.present.iter().chain([wanted]).cloned().collect();
        self.left.retain(|left| {
            let is_new = !known.iter().any(|known| known.has_servers_of(left));
            known.extend(is_new.then(|| left.clone()));
            is_new
        });
        let more = self.left.len().saturating_sub(MOST);
        self.left.drain(..more);
    }
}

/// A person can write there, too: a name of which ports of our own could begin is none.
fn names_in(text: &str) -> Vec<Name> {
    let names = text.split(',').filter(|name| is_zone(name) && own_word(name).is_none());
    names.take(MOST_NAMES).map(Name::from).collect()
}
