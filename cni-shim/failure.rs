//! Errors in the form of the CNI specification.

use std::fmt;

use serde_json::json;

/// A CNI error: printed as JSON on stdout, exit 1. `msg` says what could not be done, `details` why.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u32,
    msg: String,
    details: String,
}

impl Failure {
    /// 1: the configuration asks for a version that this plugin does not support.
    pub(crate) fn version(asked: &str, known: &[&str]) -> Self {
        let why = format!("it is for CNI {asked}, and this plugin supports {}", known.join(", "));
        Self::new(1, "cannot use the network configuration", &why)
    }

    /// 4: environment variables.
    pub(crate) fn env(details: &str) -> Self {
        Self::new(4, "cannot use the environment variables", details)
    }

    /// 5: input or output.
    pub(crate) fn io(details: &str) -> Self {
        Self::new(5, "cannot read the network configuration on stdin", details)
    }

    /// 6: content that cannot be decoded.
    pub(crate) fn decode(content: &str, details: &str) -> Self {
        Self::new(6, &format!("cannot read {content}"), details)
    }

    /// The node agent did not reply: STATUS returns "not available" (50), unless the agent has worked a moment ago, the others
    /// "try again later" (11).
    pub(crate) fn agent(command: &str, error: &str) -> Self {
        let code = if command == "STATUS" { 50 } else { 11 };
        // dist/images/ovnkube.sh knows ovnkube's own program by these words
        Self::new(code, "cannot reach the node agent", &format!("{error}; see that ovnkube runs on this node"))
    }

    /// The node agent refused. `code` is its CNI code if it sent one; 999 means "other".
    pub(crate) fn refused(code: Option<u32>, text: &str) -> Self {
        Self::new(code.unwrap_or(999), text.trim(), "")
    }

    /// `version` is empty when the configuration could not be read.
    pub(crate) fn json(&self, version: &str) -> String {
        let version = if version.is_empty() { "0.3.1" } else { version };
        json!({ "cniVersion": version, "code": self.code, "msg": self.msg, "details": self.details }).to_string()
    }

    fn new(code: u32, msg: &str, details: &str) -> Self {
        Self { code, msg: msg.to_owned(), details: details.to_owned() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}: {}", self.code, self.msg)?;
        if self.details.is_empty() { Ok(()) } else { write!(f, ": {}", self.details) }
    }
}
