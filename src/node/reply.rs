//! What the shim gets back: a CNI result, or a refusal with a CNI error code.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::subject::Sandbox;

/// Result of ADD in the form of CNI 1.0.0, as in the CNI library; the shim converts it.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub dst: IpNetwork,
    pub gw: IpAddr,
}

/// Longest text of a refusal, in characters. It may quote an annotation, which has up to 256 KiB, and the agent, the shim, the
/// runtime and the kubelet each write it to their logs, every few seconds.
const LONGEST: usize = 2000;

/// A request that failed. Goes over the wire as status 400, the text as body and the code in the
/// header `cni-code`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    pub code: u32,
    pub text: String,
}

impl Refusal {
    /// Code 2: a field of the network configuration that is not supported.
    pub(crate) fn unsupported(text: String) -> Self {
        Self { code: 2, text }
    }

    /// Code 4: wrong environment variables.
    pub(crate) fn env(text: String) -> Self {
        Self { code: 4, text }
    }

    /// Code 4: the sandbox already has its one interface, under another name.
    pub(crate) fn second(sandbox: &Sandbox, has: &str) -> Self {
        Self::env(format!(
            "cannot add interface {}: the sandbox already has {has}, and this network gives a pod one interface; take this \
             network out of the pod's additional networks",
            sandbox.interface
        ))
    }

    /// Code 6: content that cannot be decoded.
    pub(crate) fn decode(text: String) -> Self {
        Self { code: 6, text }
    }

    /// Code 7: wrong network configuration.
    pub(crate) fn conf(text: String) -> Self {
        Self { code: 7, text }
    }

    /// Code 11: a retry may work.
    pub(crate) fn again(text: String) -> Self {
        Self { code: 11, text }
    }

    /// Code 50: the plugin cannot serve ADD now.
    pub(crate) fn not_ready(text: String) -> Self {
        Self { code: 50, text }
    }

    /// Code 999: anything else.
    pub(crate) fn failed(error: impl std::fmt::Display) -> Self {
        Self { code: 999, text: error.to_string() }
    }

    /// Adds pod and sandbox to the text, and shortens it.
    pub(crate) fn about(self, sandbox: &Sandbox) -> Self {
        let pod = sandbox.pod.as_ref().map_or_else(|| "unknown pod".to_owned(), ToString::to_string);
        let mut text = format!("[{pod} {}] {}", sandbox.container_id, self.text);
        if let Some((end, _)) = text.char_indices().nth(LONGEST) {
            text.truncate(end);
            text.push('…');
        }
        Self { code: self.code, text }
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
