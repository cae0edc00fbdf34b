//! What the policies of a namespace need together. The oldest ones have room, as far as it lasts, whatever came first.

use std::collections::{BTreeMap, BTreeSet};

use crate::network_policy::{MOST_NUMBERS, OF_NAMESPACE};
use crate::{BadField, Name, Need, NetworkPolicy, ObjectKey};

/// When a policy was created, and what it needs.
pub(super) type Claim = (i64, Need);

#[derive(Debug, Default)]
pub(super) struct Room(BTreeMap<Name, OfNamespace>);

#[derive(Debug, Default)]
struct OfNamespace {
    /// By age and name of the policies.
    needs: BTreeMap<(i64, Name), Need>,
    total: Need,
    share: Share,
}

/// What there is room for in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Share {
    /// The policies for which there is none.
    pub(super) left_out: BTreeSet<Name>,
    /// For so many numbers of each named port: a power of two, so that it seldom changes.
    pub(super) most_numbers: usize,
}

impl Default for Share {
    fn default() -> Self {
        Self { left_out: BTreeSet::new(), most_numbers: MOST_NUMBERS }
    }
}

impl OfNamespace {
    fn share(&self) -> Share {
        let most_numbers = |need: Need| 1_usize << need.most_numbers(OF_NAMESPACE).ilog2();
        if self.total.fits(OF_NAMESPACE) {
            return Share { left_out: BTreeSet::new(), most_numbers: most_numbers(self.total) };
        }
        let (mut used, mut is_full, mut left_out) = (Need::default(), false, BTreeSet::new());
        for ((_, name), need) in &self.needs {
            is_full |= !(used + *need).fits(OF_NAMESPACE);
            if is_full {
                left_out.insert(name.clone());
            } else {
                used = used + *need;
            }
        }
        Share { left_out, most_numbers: most_numbers(used) }
    }
}

impl Room {
    /// A policy comes, goes, or takes the place of another one of its name.
    pub(super) fn change(&mut self, key: &ObjectKey, had: Option<Claim>, has: Option<Claim>) {
        let of_namespace = self.0.entry(key.namespace.clone()).or_default();
        if let Some((created, need)) = had {
            of_namespace.needs.remove(&(created, key.name.clone()));
            of_namespace.total = of_namespace.total - need;
        }
        if let Some((created, need)) = has {
            of_namespace.needs.insert((created, key.name.clone()), need);
            of_namespace.total = of_namespace.total + need;
        }
        of_namespace.share = of_namespace.share();
        if of_namespace.needs.is_empty() {
            self.0.remove(&key.namespace);
        }
    }

    pub(super) fn share(&self, namespace: &str) -> Share {
        self.0.get(namespace).map(|of_namespace| of_namespace.share.clone()).unwrap_or_default()
    }

    pub(super) fn most_numbers(&self, namespace: &str) -> usize {
        self.0.get(namespace).map_or(MOST_NUMBERS, |of_namespace| of_namespace.share.most_numbers)
    }

    pub(super) fn has_room(&self, key: &ObjectKey) -> bool {
        self.0.get(&key.namespace).is_none_or(|of_namespace| !of_namespace.share.left_out.contains(&key.name))
    }
}

/// The policy as long as there is no room for it: it isolates the pods that it selects, and allows nothing.
pub(super) fn without_rules(key: &ObjectKey, policy: &NetworkPolicy) -> NetworkPolicy {
    let problem = format!(
        "the policies of namespace {} need more than {} prefixes, selectors and ports in ACLs, or more than {} ACLs and address \
         sets, the limit for all together; the oldest policies are used, and this one allows nothing to the pods that it \
         selects; remove policies, or write fewer rules, peers or ports",
        key.namespace, OF_NAMESPACE.entries, OF_NAMESPACE.rows
    );
    NetworkPolicy {
        uid: policy.uid.clone(),
        created: policy.created,
        pods: policy.pods.clone(),
        ingress: policy.ingress.as_ref().map(|_| Vec::new()),
        egress: policy.egress.as_ref().map(|_| Vec::new()),
        stateless: policy.stateless,
        most_numbers: policy.most_numbers,
        need: policy.need,
        bad: std::iter::once(BadField::new("spec", problem)).chain(policy.bad.iter().cloned()).collect(),
    }
}
