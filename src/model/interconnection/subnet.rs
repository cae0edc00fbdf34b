//! Subnets of Kube-OVN, as far as they concern other clusters.
//!
//! ```text
//! cidrBlock: "10.199.0.0/16,fd00:199::/64"
//! disableInterConnection: true
//! ```

use ovnkube_ipam::Subnet;
use serde::{Deserialize, Serialize};

use super::range::range;
use super::text::short;
use crate::{Meta, Name};

/// The most ranges of one Subnet.
const MOST: usize = 16;

/// A `Subnet` of `kubeovn.io/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterconnectionSubnet {
    pub uid: Name,
    /// Ranges that are neither offered to other clusters nor learned from them.
    pub closed: Vec<Subnet>,
    /// What is wrong with `cidrBlock`, and what to write instead.
    pub bad: Vec<String>,
}

impl InterconnectionSubnet {
    /// A Subnet that does not disable interconnection closes nothing, whatever its `cidrBlock` is.
    pub fn parse(meta: &Meta<'_>, cidr_block: &str, disable: bool) -> Self {
        let mut parsed = Self { uid: meta.uid.into(), closed: Vec::new(), bad: Vec::new() };
        if !disable {
            return parsed;
        }
        let mut texts = cidr_block.split(',').map(str::trim).filter(|text| !text.is_empty()).peekable();
        if texts.peek().is_none() {
            parsed.bad.push("is missing; write a range, or one of each family with a comma".into());
        }
        for text in texts.by_ref().take(MOST) {
            match range(text) {
                Some(range) => parsed.closed.push(range),
                None => parsed.bad.push(format!("has {:?}; write a range, such as 10.199.0.0/16", short(text))),
            }
        }
        if texts.next().is_some() {
            parsed.bad.push(format!("has more than {MOST} ranges, and the others are not used; write another Subnet"));
        }
        parsed
    }

    /// Whether it has an effect, or should have one.
    pub(crate) fn concerns(&self) -> bool {
        !self.closed.is_empty() || !self.bad.is_empty()
    }
}
