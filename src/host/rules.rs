//! Rules that send marked packets to a routing table of their own.

use nix::errno::Errno;
use rtnetlink::IpVersion;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleHeader, RuleMessage};

use ovnkube_node_plan::host::Rule;

use crate::answer::{Fault, all, failed, in_time, is};
use crate::{Error, Net, Result};

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
        // without `replace` the kernel would refuse it beside someone else's rule that also has a prefix
        let added =
            async { if ipv6 { add.v6().replace().execute().await } else { add.v4().replace().execute().await } };
        in_time(added).await.map_err(|e| failed(what(), e))
    }

    /// Deletes the rule; no error when it does not exist. An error if the kernel would delete someone else's
    /// rule instead.
    pub async fn delete_rule(&self, ipv6: bool, unwanted: Rule) -> Result<()> {
        let what = || format!("delete rule {unwanted}");
        let have = self.rules(family(ipv6)).await.map_err(|e| failed(what(), e))?;
        let mut comes_after_others = false;
        for message in have.into_iter().filter(|message| main_parts(message) == Some(unwanted)) {
            if rule_of(&message).is_none() {
                comes_after_others = true;
                continue;
            }
            // the kernel deletes the first rule that has all that the request names, whatever else it has
            if comes_after_others {
                return Err(Error::RuleAfterAnother { rule: unwanted });
            }
            match in_time(self.handle.rule().del(message).execute()).await {
                Err(e) if !is(&e, Errno::ENOENT) => return Err(failed(what(), e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// All rules of a family; none if the host does not support it, such as IPv6 disabled at boot.
    pub(crate) async fn rules(&self, family: AddressFamily) -> std::result::Result<Vec<RuleMessage>, Fault> {
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

/// `None`: it is none of the agent's, which have a priority, a mark and a table and nothing else. A rule that someone
/// else made for fewer packets, such as those from one prefix, is not to be taken for ours.
pub(crate) fn rule_of(message: &RuleMessage) -> Option<Rule> {
    let RuleHeader { dst_len, src_len, tos, action, flags, .. } = message.header;
    let is_for_all = (dst_len, src_len, tos) == (0, 0, 0) && !flags.contains(RuleFlags::Invert);
    let is_usual = |attribute: &RuleAttribute| match attribute {
        RuleAttribute::Priority(_)
        | RuleAttribute::FwMark(_)
        | RuleAttribute::Table(_)
        | RuleAttribute::Protocol(_) => true,
        // the kernel shows these for each rule with a mark: it compares the whole mark, and no route is left out
        RuleAttribute::FwMask(n) | RuleAttribute::SuppressPrefixLen(n) => *n == u32::MAX,
        _ => false,
    };
    let is_ours = is_for_all && action == RuleAction::ToTable && message.attributes.iter().all(is_usual);
    if is_ours { main_parts(message) } else { None }
}

/// `None`: it has no priority or no mark.
fn main_parts(message: &RuleMessage) -> Option<Rule> {
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
