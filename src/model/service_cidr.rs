//! Ranges that Services take their addresses from, in addition to those of the settings.

use serde::{Deserialize, Serialize};

use crate::{Meta, Name, Subnet};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceCidr {
    pub uid: Name,
    pub cidrs: Vec<Subnet>,
    /// Entries of `spec.cidrs` that cannot be parsed.
    pub bad: Vec<String>,
}

impl ServiceCidr {
    pub fn parse(meta: &Meta<'_>, cidrs: &[String]) -> Self {
        let mut parsed = Self { uid: meta.uid.into(), cidrs: Vec::new(), bad: Vec::new() };
        for text in cidrs {
            match text.parse() {
                Ok(cidr) => parsed.cidrs.push(cidr),
                Err(_) => parsed.bad.push(text.clone()),
            }
        }
        parsed
    }
}
