//! What the shim gets back: a CNI result, or a refusal with a CNI error code.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use serde::Serialize;

use crate::Error;
use crate::request::Sandbox;

/// Result of ADD in the form of CNI 1.0.0, as the CNI library has it; the shim converts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CniResult {
    #[serde(rename = "cniVersion")]
    pub version: &'static str,
    pub interfaces: Vec<Interface>,
    pub ips: Vec<Ip>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    pub name: String,
    pub mac: String,
    pub mtu: u32,
    /// Path of the pod's namespace; `None` on the node's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ip {
    /// Index into `interfaces`.
    pub interface: usize,
    pub address: IpNetwork,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    pub dst: IpNetwork,
    pub gw: IpAddr,
}

/// A request that failed. Goes over the wire as status 400, the text as body and the code in the
/// header `cni-code`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    pub code: u32,
    pub text: String,
}

impl Refusal {
    /// 2: a field of the network configuration that we don't serve.
    pub(crate) fn unsupported(text: String) -> Self {
        Self { code: 2, text }
    }

    /// 4: environment variables.
    pub(crate) fn env(text: String) -> Self {
        Self { code: 4, text }
    }

    /// The same: the sandbox has its one interface already, under another name.
    pub(crate) fn second(sandbox: &Sandbox, has: &str) -> Self {
        Self::env(format!(
            "CNI_IFNAME {}: the sandbox has its interface already, {has}; this network gives a pod one: take it out of the \
             pod's additional networks",
            sandbox.interface
        ))
    }

    /// 6: content that can't be read.
    pub(crate) fn decode(text: String) -> Self {
        Self { code: 6, text }
    }

    /// 7: network configuration.
    pub(crate) fn conf(text: String) -> Self {
        Self { code: 7, text }
    }

    /// 11: may work when tried again.
    pub(crate) fn again(text: String) -> Self {
        Self { code: 11, text }
    }

    /// 50: the plugin can't serve ADD now.
    pub(crate) fn not_ready(text: String) -> Self {
        Self { code: 50, text }
    }

    /// 999: anything else.
    pub(crate) fn failed(error: impl std::fmt::Display) -> Self {
        Self { code: 999, text: error.to_string() }
    }

    /// Says which pod and sandbox it was about.
    pub(crate) fn about(self, sandbox: &Sandbox) -> Self {
        let pod = sandbox.pod.as_ref().map_or_else(|| "unknown pod".to_owned(), ToString::to_string);
        Self { code: self.code, text: format!("[{pod} {}] {}", sandbox.container_id, self.text) }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Transact { .. } | Error::NoBridge | Error::NoOvs | Error::SwitchSilent { .. } => {
                Self::again(error.to_string())
            }
            other => Self::failed(other),
        }
    }
}
