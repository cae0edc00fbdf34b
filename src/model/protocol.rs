//! The protocols that have ports.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// As Kubernetes spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }

    /// As OVN spells it.
    pub fn ovn(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    pub fn parse(text: Option<&str>) -> Result<Self, String> {
        match text {
            None | Some("" | "TCP") => Ok(Self::Tcp),
            Some("UDP") => Ok(Self::Udp),
            Some("SCTP") => Ok(Self::Sctp),
            Some(other) => Err(format!("protocol {other:?} is not supported; write TCP, UDP or SCTP")),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
