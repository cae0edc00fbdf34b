//! An ACL with what all of them have in common.

use ovnkube_model::{AclSeverity, Direction};
use ovnkube_ovn::nb::acl;
use ovnkube_ovn::{OwnerId, Row};

use crate::RowWant;

/// Priority of what is let through.
pub(super) const ALLOW: i64 = 1001;
/// Priority of what is dropped.
pub(super) const DENY: i64 = 1000;
/// Tiers before it are for administrators' policies, the one behind it for their defaults.
pub(super) const TIER: i64 = 2;
/// Priority behind all others of a tier.
const LAST: i64 = 0;
/// Longest name, characters.
const LONGEST_NAME: usize = 63;
/// Limits all log messages together.
const METER: &str = "acl-logging";

pub(super) struct Acl {
    owner: OwnerId,
    direction: Direction,
    priority: i64,
    tier: i64,
    action: &'static str,
    matches: String,
    name: Option<String>,
    severity: Option<AclSeverity>,
}

impl Acl {
    pub(super) fn new(
        owner: OwnerId,
        direction: Direction,
        priority: i64,
        action: &'static str,
        matches: String,
    ) -> Self {
        Self { owner, direction, priority, tier: TIER, action, matches, name: None, severity: None }
    }

    /// Leaves what no ACL of an earlier tier has matched to the next one.
    ///
    /// OVN itself should do so. But once an ACL has denied a connection that was established, its
    /// packets that match nothing in the first tier are let in, and the connection counts as allowed
    /// again: every other packet would pass. Where there are no tiers, there is nothing to leave.
    pub(super) fn next_tier(owner: &OwnerId, direction: Direction, tier: i64, matches: String) -> Self {
        let owner = owner.clone().key("type", "nextTier").key("tier", &tier.to_string());
        Self { tier, ..Self::new(owner, direction, LAST, "pass", matches) }
    }

    /// What its log messages call it.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = Some(name.chars().take(LONGEST_NAME).collect());
        self
    }

    /// Has it log what it matches.
    pub(super) fn logging(mut self, severity: Option<AclSeverity>) -> Self {
        self.severity = severity;
        self
    }

    pub(super) fn row(self) -> RowWant {
        // what goes out is judged by where a service sends it, not by the service's address
        let (direction, options) = match self.direction {
            Direction::Egress => ("from-lport", Some(("apply-after-lb", "true"))),
            Direction::Ingress => ("to-lport", None),
        };
        let row = RowWant::new(self.owner.id(), Row::new(acl::TABLE));
        let row = if self.tier == TIER { row } else { row.needs(acl::TIER) };
        row.with(acl::ACTION, self.action)
            .with(acl::DIRECTION, direction)
            .with(acl::EXTERNAL_IDS, self.owner.external_ids())
            .with(acl::LOG, self.severity.is_some())
            .with(acl::MATCH, self.matches)
            .with(acl::METER, Some(METER))
            .with(acl::NAME, self.name)
            .with(acl::OPTIONS, options)
            .with(acl::PRIORITY, self.priority)
            .with(acl::SEVERITY, self.severity.map(AclSeverity::name))
            .with(acl::TIER, self.tier)
    }
}
