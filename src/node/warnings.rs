//! What is wrong on this node now.

use std::collections::BTreeMap;

use ovnkube_node_plan::Warning;
use tokio::sync::watch;

/// The warnings that stand now. Clones share them; each part of the agent says under a name of its own what it finds.
#[derive(Debug, Clone, Default)]
pub struct Warnings(watch::Sender<BTreeMap<&'static str, Vec<Warning>>>);

/// Follows the warnings that stand.
#[derive(Debug)]
pub struct Standing(watch::Receiver<BTreeMap<&'static str, Vec<Warning>>>);

impl Warnings {
    /// `now` is everything that is wrong about `subject`. What is new is logged.
    pub(crate) fn replace(&self, subject: &'static str, now: Vec<Warning>) {
        self.0.send_if_modified(|standing| {
            let before = standing.get(subject).map(Vec::as_slice).unwrap_or_default();
            if before == now {
                return false;
            }
            for Warning { reason, message, .. } in now.iter().filter(|warning| !before.contains(warning)) {
                tracing::warn!(reason, "{message}");
            }
            if now.is_empty() {
                tracing::info!(subject, "the problem is over");
            }
            standing.insert(subject, now);
            true
        });
    }

    /// `problem` is everything that is wrong about the own Node for this reason.
    pub fn report(&self, reason: &'static str, problem: Option<String>) {
        self.replace(reason, problem.map(|message| Warning { about: None, reason, message }).into_iter().collect());
    }

    /// Also sees what stands already.
    pub fn follow(&self) -> Standing {
        let mut standing = self.0.subscribe();
        standing.mark_changed();
        Standing(standing)
    }
}

impl Standing {
    /// Waits for a change; never ends without one.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub fn now(&self) -> Vec<Warning> {
        self.0.borrow().values().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_is_what_was_said_last_about_each_subject() {
        let warnings = Warnings::default();
        let mut standing = warnings.0.subscribe();
        let mut said = Vec::new();
        for problem in [None, Some("a"), Some("a"), Some("b"), None, Some("b")] {
            warnings.report("R", problem.map(str::to_owned));
            warnings.report("Other", Some("stays".to_owned()));
            if standing.has_changed().unwrap() {
                standing.mark_unchanged();
                said.push(warnings.follow().now().into_iter().map(|warning| warning.message).collect::<Vec<_>>());
            }
        }
        assert_eq!(said, [vec!["stays"], vec!["stays", "a"], vec!["stays", "b"], vec!["stays"], vec!["stays", "b"]]);
    }
}
