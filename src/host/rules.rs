//! Rules that send marked packets, or the host's own, to a routing table.

use nix::errno::Errno;
use rtnetlink::IpVersion;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleHeader, RuleMessage};

use ovnkube_node_plan::host::{Packets, Rule};

use crate::answer::{Fault, all, failed, in_time, is};
use crate::{Error, Net, Result};

/// Packets that come from nowhere else count as received there.
const LOOPBACK: &str = "lo";

impl Net {
    /// Adds the rule for IPv4 or IPv6 unless it exists.
    pub async fn ensure_rule(&self, ipv6: bool, want: Rule) -> Result<()> {
        let what = || format!("add rule {want}");
        let have = self.rules(family(ipv6)).await.map_err(|e| failed(what(), e))?;
        if have.iter().any(|message| rule_of(message) == Some(want)) {
            return Ok(());
        }
        let mut add = self.handle.rule().add().table_id(want.table.into()).priority(want.priority);
        add.message_mut().attributes.extend(of_packets(want.packets));
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
        for message in have.into_iter().filter(|message| has_all(message, unwanted)) {
            if rule_of(&message) != Some(unwanted) {
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

/// What a rule says of its packets.
fn of_packets(packets: Packets) -> Vec<RuleAttribute> {
    let own = RuleAttribute::Iifname(LOOPBACK.to_owned());
    match packets {
        Packets::Marked(mark) => vec![RuleAttribute::FwMark(mark)],
        Packets::Own => vec![own],
        Packets::OwnNotByDefault => vec![own, RuleAttribute::SuppressPrefixLen(0)],
    }
}

/// Whether it has all that a rule of the agent has. It may have more.
fn has_all(message: &RuleMessage, rule: Rule) -> bool {
    let mut parts = of_packets(rule.packets);
    parts.push(RuleAttribute::Priority(rule.priority));
    message.header.table == rule.table && parts.iter().all(|part| message.attributes.contains(part))
}

/// `None`: it is none of the agent's, which have a priority, their packets and a table and nothing else. A rule that someone
/// else made for fewer packets, such as those from one prefix, is not to be taken for ours.
pub(crate) fn rule_of(message: &RuleMessage) -> Option<Rule> {
    let RuleHeader { dst_len, src_len, tos, action, flags, table, .. } = message.header;
    let is_for_all = (dst_len, src_len, tos) == (0, 0, 0) && !flags.contains(RuleFlags::Invert);
    if !is_for_all || action != RuleAction::ToTable {
        return None;
    }
    let (mut priority, mut packets) = (None, Vec::new());
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Priority(n) => priority = Some(*n),
            // the kernel shows the last two for each rule: it compares the whole mark, and no route is left out
            RuleAttribute::Table(_)
            | RuleAttribute::Protocol(_)
            | RuleAttribute::FwMask(u32::MAX)
            | RuleAttribute::SuppressPrefixLen(u32::MAX) => {}
            other => packets.push(other),
        }
    }
    let packets = match packets.as_slice() {
        [RuleAttribute::FwMark(mark)] => Packets::Marked(*mark),
        [RuleAttribute::Iifname(link)] if link == LOOPBACK => Packets::Own,
        [RuleAttribute::Iifname(link), RuleAttribute::SuppressPrefixLen(0)]
        | [RuleAttribute::SuppressPrefixLen(0), RuleAttribute::Iifname(link)]
            if link == LOOPBACK =>
        {
            Packets::OwnNotByDefault
        }
        _ => return None,
    };
    Some(Rule { priority: priority?, packets, table })
}
