//! Rules that send marked packets to a routing table of their own.

use nix::errno::Errno;
use rtnetlink::IpVersion;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};

use crate::net::{all, failed, is};
use crate::{Net, Result};

/// `ip rule add priority PRIORITY fwmark MARK lookup TABLE`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub priority: u32,
    pub mark: u32,
    pub table: u8,
}

impl Net {
    /// Adds the rule for IPv4 or IPv6 unless it is there.
    pub async fn ensure_rule(&self, ipv6: bool, want: Rule) -> Result<()> {
        let what = || format!("add rule {want:?}");
        let have = self.rules(family(ipv6)).await.map_err(|e| failed(what(), e))?;
        if have.iter().any(|message| want.is(message)) {
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

    /// A rule that is not there is fine.
    pub async fn delete_rule(&self, ipv6: bool, unwanted: Rule) -> Result<()> {
        let what = || format!("delete rule {unwanted:?}");
        let have = self.rules(family(ipv6)).await.map_err(|e| failed(what(), e))?;
        for message in have.into_iter().filter(|message| unwanted.is(message)) {
            match self.handle.rule().del(message).execute().await {
                Err(e) if !is(&e, Errno::ENOENT) => return Err(failed(what(), e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// None of a family that the host does not know, as IPv6 when it is disabled at boot.
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

impl Rule {
    fn is(self, message: &RuleMessage) -> bool {
        message.header.table == self.table
            && message.attributes.contains(&RuleAttribute::Priority(self.priority))
            && message.attributes.contains(&RuleAttribute::FwMark(self.mark))
    }
}
