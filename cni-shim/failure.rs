//! Errors in the form of the CNI specification.

use std::fmt;

use serde_json::json;

/// A CNI error: printed as JSON on stdout, exit 1.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u32,
    msg: String,
    details: String,
}

impl Failure {
    /// 1: the configuration asks for a version that this plugin doesn't speak.
    pub(crate) fn version(asked: &str, known: &[&str]) -> Self {
        Self::new(1, "incompatible CNI versions", &format!("config is {asked}, plugin supports {}", known.join(", ")))
    }

    /// 4: environment variables.
    pub(crate) fn env(details: &str) -> Self {
        Self::new(4, "invalid environment variables", details)
    }

    /// 5: input or output.
    pub(crate) fn io(details: &str) -> Self {
        Self::new(5, "input or output failed", details)
    }

    /// 6: content that is not what it should be.
    pub(crate) fn decode(details: &str) -> Self {
        Self::new(6, "failed to decode content", details)
    }

    /// The node agent did not answer: STATUS says "not available" (50), the others "try again later" (11).
    pub(crate) fn agent(command: &str, error: &str) -> Self {
        let code = if command == "STATUS" { 50 } else { 11 };
        Self::new(code, "the node agent does not answer; is ovnkube running on this node?", error)
    }

    /// The node agent said no. `code` is its CNI code when it sent one; 999 stands for "other".
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
