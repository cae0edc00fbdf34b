//! Whether the other clusters are there.
//!
//! IC-NB has a number that any cluster may raise. Whoever has followed what the databases held then writes this number to its own
//! row in IC-SB. A cluster that has done so before, and does not any more, is silent. So is one of ovnkube that never did: databases
//! that are new begin with 0, and it may die before the first question. Of another one that never did, nothing can be known: OVN's own
//! daemon of 23.03 does not do it, and databases of that release have no such number.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ovnkube_model::Name;

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub struct Listening {
    /// The number is raised when it has stood for so long. Not often: a cluster of OVN's own daemon that joins later counts from 0,
    /// one transaction each.
    pub ask_after: Duration,
    /// A cluster that has not followed for so long is silent.
    pub silent_after: Duration,
}

impl Default for Listening {
    fn default() -> Self {
        Self { ask_after: Duration::from_secs(3600), silent_after: Duration::from_secs(600) }
    }
}

/// The numbers in the databases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    /// `None`: the database has none.
    pub asked: Option<i64>,
    /// Of the other clusters, where they have one.
    pub answers: BTreeMap<Name, i64>,
    /// Those of ovnkube: they follow from the start.
    pub followers: BTreeSet<Name>,
}

/// What was heard so far. All times are from one moment on.
#[derive(Debug, Default)]
pub struct Hearing {
    asked: Option<(i64, Duration)>,
    /// The number of each cluster, and since when it is another than the one that was asked for.
    heard: BTreeMap<Name, (i64, Option<Duration>)>,
}

impl Hearing {
    pub fn hear(&mut self, numbers: &Numbers, now: Duration) {
        if self.asked.map(|(asked, _)| asked) != numbers.asked {
            self.asked = numbers.asked.map(|asked| (asked, now));
        }
        self.heard.retain(|name, _| numbers.answers.contains_key(name));
        for (name, answer) in &numbers.answers {
            let follows = *answer != 0 || numbers.followers.contains(name);
            let lags = follows && numbers.asked.is_some_and(|asked| asked != *answer);
            let (heard, since) = self.heard.entry(name.clone()).or_insert((*answer, None));
            let began = since.filter(|_| *heard == *answer).unwrap_or(now);
            (*heard, *since) = (*answer, lags.then_some(began));
        }
    }

    /// The clusters that are silent.
    pub fn silent(&self, listening: Listening, now: Duration) -> BTreeSet<&Name> {
        let lags = self.heard.iter().filter_map(|(name, (_, since))| Some((name, (*since)?)));
        lags.filter(|(_, since)| *since + listening.silent_after <= now).map(|(name, _)| name).collect()
    }

    /// Whether to raise the number: nobody has for long, and somebody may answer. Each cluster (`own`) waits a bit differently, so
    /// that mostly one does it.
    pub fn asks(&self, own: u64, listening: Listening, now: Duration) -> bool {
        self.next_question(own, listening).is_some_and(|at| at <= now)
    }

    /// When something is due next.
    pub fn next(&self, own: u64, listening: Listening, now: Duration) -> Option<Duration> {
        let silences = self.heard.values().filter_map(|(_, since)| Some((*since)? + listening.silent_after));
        silences.chain(self.next_question(own, listening)).filter(|at| *at > now).min()
    }

    fn next_question(&self, own: u64, listening: Listening) -> Option<Duration> {
        let (asked, since) = self.asked?;
        let apart = listening.ask_after / 4 * u32::try_from(own % 256).unwrap_or_default() / 256;
        (asked < i64::MAX && !self.heard.is_empty()).then(|| since + listening.ask_after + apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENING: Listening =
        Listening { ask_after: Duration::from_secs(100), silent_after: Duration::from_secs(10) };

    fn numbers(asked: i64, answers: &[(&str, i64)]) -> Numbers {
        Numbers {
            asked: Some(asked),
            answers: answers.iter().map(|(name, answer)| ((*name).into(), *answer)).collect(),
            followers: BTreeSet::new(),
        }
    }

    fn silent(hearing: &Hearing, now: u64) -> Vec<&str> {
        hearing.silent(LISTENING, Duration::from_secs(now)).into_iter().map(AsRef::as_ref).collect()
    }

    #[test]
    fn who_followed_before_and_does_not_any_more_is_silent() {
        let mut hearing = Hearing::default();
        let mut hear = |asked, answers: &[(&str, i64)], now| {
            hearing.hear(&numbers(asked, answers), Duration::from_secs(now));
            silent(&hearing, now).join(" ")
        };
        // one that never answered is not known to be able to
        assert_eq!(hear(7, &[("a", 7), ("b", 6), ("old", 0)], 0), "");
        assert_eq!(hear(7, &[("a", 7), ("b", 6), ("old", 0)], 9), "");
        assert_eq!(hear(7, &[("a", 7), ("b", 6), ("old", 0)], 10), "b");
        // that others ask again does not make it heard
        assert_eq!(hear(8, &[("a", 7), ("b", 6), ("old", 0)], 11), "b");
        assert_eq!(hear(8, &[("a", 8), ("b", 6), ("old", 0)], 12), "b");
        // one that counts up is there
        assert_eq!(hear(8, &[("a", 8), ("b", 7), ("old", 0)], 13), "");
        assert_eq!(hear(8, &[("a", 8), ("b", 8), ("old", 0)], 14), "");
        assert_eq!(hear(8, &[("a", 8), ("old", 0)], 99), "");
    }

    /// Databases that are new begin with 0.
    #[test]
    fn a_cluster_of_ovnkube_that_dies_before_the_first_question_is_silent() {
        let mut hearing = Hearing::default();
        let followers: BTreeSet<Name> = ["new".into()].into();
        let mut hear = |asked, now| {
            let numbers = Numbers { followers: followers.clone(), ..numbers(asked, &[("new", 0), ("old", 0)]) };
            hearing.hear(&numbers, Duration::from_secs(now));
            silent(&hearing, now).join(" ")
        };
        assert_eq!([hear(0, 0), hear(0, 99), hear(1, 100), hear(1, 109)], [""; 4]);
        assert_eq!(hear(1, 110), "new");
    }

    #[test]
    fn the_question_comes_when_nobody_asked_for_long() {
        let mut hearing = Hearing::default();
        let at = Duration::from_secs;
        assert!(!hearing.asks(0, LISTENING, at(1000)), "the database has no number");
        hearing.hear(&numbers(7, &[]), at(0));
        assert!(!hearing.asks(0, LISTENING, at(1000)), "nobody can answer");
        hearing.hear(&numbers(7, &[("a", 7)]), at(0));
        assert_eq!(hearing.next(0, LISTENING, at(0)), Some(at(100)));
        assert!(!hearing.asks(0, LISTENING, at(99)) && hearing.asks(0, LISTENING, at(100)));
        assert!(!hearing.asks(255, LISTENING, at(100)) && hearing.asks(255, LISTENING, at(125)));
        hearing.hear(&numbers(8, &[("a", 7)]), at(100));
        assert!(!hearing.asks(0, LISTENING, at(199)));
        assert_eq!(hearing.next(0, LISTENING, at(100)), Some(at(110)));
        hearing.hear(&numbers(i64::MAX, &[("a", 8)]), at(200));
        assert!(!hearing.asks(0, LISTENING, at(1000)));
    }
}
