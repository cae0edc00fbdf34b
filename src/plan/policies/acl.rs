//! ACLs, with the columns that all of them share.

use ovnkube_model::{AclSeverity, Direction};
use ovnkube_ovn::nb::acl;
use ovnkube_ovn::{OwnerId, Row};

use crate::RowWant;

/// Priority of ACLs that allow.
pub(super) const ALLOW: i64 = 1001;
/// Priority of ACLs that drop.
pub(super) const DENY: i64 = 1000;
/// Earlier tiers are for administrators' policies, the later one for their defaults.
pub(super) const TIER: i64 = 2;
/// Priority after all others of a tier.
const LAST: i64 = 0;
/// Longest name, characters.
const LONGEST_NAME: usize = 63;
/// The meter that limits the log messages of each ACL.
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

    /// Passes on to the next tier what no ACL of this one has matched.
    ///
    /// OVN itself should do so. But behind all ACLs northd 25.03.0 writes a flow that counts in every tier:
    /// `ls_out_acl_eval, priority=1, match=(ip && ct.est && ct_mark.blocked == 1), action=(reg0[1] = 1; reg8[16] = 1;
    /// next;)`. Once an ACL has denied an established connection, this flow lets its next packet in (`reg8[16]`) unless
    /// an ACL of the first tier matches it, and has the connection committed as allowed again (`reg0[1]`); the packet
    /// after that is denied. So every other packet would pass. We know of no issue for this in OVN's tracker.
    /// Without tiers there is nothing to pass on.
    pub(super) fn next_tier(owner: &OwnerId, direction: Direction, tier: i64, matches: String) -> Self {
        let owner = owner.clone().key("type", "nextTier").key("tier", &tier.to_string());
        Self { tier, ..Self::new(owner, direction, LAST, "pass", matches) }
    }

    /// Sets its name in log messages.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = Some(name.chars().take(LONGEST_NAME).collect());
        self
    }

    /// Makes it log what it matches.
    pub(super) fn logging(mut self, severity: Option<AclSeverity>) -> Self {
        self.severity = severity;
        self
    }

    pub(super) fn row(self) -> RowWant {
        // egress is checked after load balancing: by the endpoint, not by the service's address
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
