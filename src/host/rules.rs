//! Rules that send marked packets to a routing table of their own.

use nix::errno::Errno;
use rtnetlink::IpVersion;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};

use ovnkube_node_plan::host::Rule;

use crate::net::{all, failed, is};
use crate::{Net, Result};

impl Net {
    /// Adds the rule for IPv4 or IPv6 unless it exists.
    pub async fn ensure_rule(&self, ipv6: bool, want: Rule) -> Result<()> {
        let what = || format!("add rule {want}");
        let have = self.rules(family(ipv6)).await.map_err(|e| failed(what(), e))?;
        if have.iter().any(|message| rule_of(message) == Some(want)) {
            return Ok(());
        }
        let add = self.handle.rule().add().table_id(want.table.into()).priority(want.priority).fw_mark(want.mark);
        let add = add.action(RuleAction::ToTable);
        let added = if ipv6 { add.v6().execute().await } else { add.v4().execute().await };
        match added {
            Err(e) if !is(&e, Errno::EEXIST) => Err(failed(what(), e)),
            _ => Ok(()),
        }
    }

    /// Deletes the rule; no error when it does not exist.
    pub async fn delete_rule(&self, ipv6: bool, unwanted: Rule) -> Result<()> {
        let what = || format!("delete rule {unwanted}");
        let have = self.rules(family(ipv6)).await.map_err(|e| failed(what(), e))?;
        for message in have.into_iter().filter(|message| rule_of(message) == Some(unwanted)) {
            match self.handle.rule().del(message).execute().await {
                Err(e) if !is(&e, Errno::ENOENT) => return Err(failed(what(), e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// All rules of a family; none if the host does not support it, such as IPv6 disabled at boot.
    pub(crate) async fn rules(&self, family: AddressFamily) -> std::result::Result<Vec<RuleMessage>, rtnetlink::Error> {
        let mut get = self.handle.rule().get(IpVersion::V4);
        get.message_mut().header.family = family;
        match all(get.execute()).await {
            Err(e) if is(&e, Errno::EAFNOSUPPORT) => Ok(Vec::new()),
            have => have,
        }
    }
}

fn family(ipv6: bool) -> AddressFamily {
    if ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

/// `None`: it has no priority or no mark, unlike the agent's rules.
pub(crate) fn rule_of(message: &RuleMessage) -> Option<Rule> {
    let (mut priority, mut mark) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Priority(n) => priority = Some(*n),
            RuleAttribute::FwMark(n) => mark = Some(*n),
            _ => {}
        }
    }
    Some(Rule { priority: priority?, mark: mark?, table: message.header.table })
}
