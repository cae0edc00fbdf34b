//! What can go wrong with the Kubernetes API, and whether a retry helps.

use std::error::Error as StdError;
use std::fmt::Display;
use std::time::Duration;

use thiserror::Error as ThisError;

/// What the API server says, with 422, of a JSON patch with a test that fails; it does not say which.
const UNMET: &str = "the server rejected our request due to an error in our request";

/// What it says, with 403, of an object that is created in a namespace that is being deleted. The account has the right.
const TERMINATING: &str = "because it is being terminated";

/// An error of the Kubernetes API. Each message is one line and names the action and the object.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The settings cannot work; nothing was sent.
    #[error("{0}")]
    Access(String),
    /// The object is gone, or another one has its name now, or its namespace goes. The request does not apply to that one.
    #[error("cannot {action}: {problem}")]
    Gone { action: String, problem: String },
    /// The object was changed meanwhile: read it again.
    #[error("cannot {action}: {problem}")]
    Conflict { action: String, problem: String },
    /// The API refuses this and will refuse it again.
    #[error("cannot {action}: {problem}")]
    Refused { action: String, problem: String },
    /// The account may not do this. The client has logged it.
    #[error("cannot {action}: {problem}")]
    Forbidden { action: String, problem: String },
    /// No answer, or one that may differ later (`answered`); `after`: the API is overloaded and says when to ask again.
    #[error("cannot {action}: {problem}{}", wait(.after.as_ref()))]
    Failed { action: String, problem: String, after: Option<Duration>, answered: bool },
    /// The answer has more bytes than are read.
    #[error("cannot {action}: the answer is longer than {most} bytes")]
    Long { action: String, most: usize },
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Conflict { .. } | Self::Long { .. })
    }

    /// Whether the API server did not answer, so that others cannot be answered either.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self, Self::Failed { answered: false, .. })
    }

    /// How long the API asks to wait before a retry, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Failed { after, .. } => *after,
            _ => None,
        }
    }

    /// Whether the object of the call no longer exists.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
    }

    /// Whether the account lacks a right. The first such error for each kind of request has been logged already.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbidden { .. })
    }

    /// Whether the API server lacks what was asked for, or does not let us read it.
    pub(crate) fn is_withheld(&self) -> bool {
        matches!(self, Self::Gone { .. } | Self::Refused { .. } | Self::Forbidden { .. })
    }

    pub(crate) fn failed(action: &str, problem: impl Display) -> Self {
        Self::Failed { action: action.to_owned(), problem: problem.to_string(), after: None, answered: false }
    }

    /// Adds the time from the answer's `Retry-After`.
    pub(crate) fn later(self, after: Option<Duration>) -> Self {
        match self {
            Self::Failed { action, problem, answered, .. } => Self::Failed { action, problem, after, answered },
            other => other,
        }
    }

    pub(crate) fn from_kube(action: &str, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from_status(action, status.code, &status.message),
            other => Self::failed(action, with_remedy(chain(other))),
        }
    }

    pub(crate) fn from_status(action: &str, code: u16, message: &str) -> Self {
        let action = action.to_owned();
        let problem = with_remedy(format!("{} ({code})", one_line(message)));
        match code {
            404 | 410 => Self::Gone { action, problem },
            // the API server refuses a patch with a uid this way if the object has another uid
            409 | 422 if is_uid_mismatch(message) => Self::Gone { action, problem },
            422 if message.contains(UNMET) => Self::Conflict { action, problem },
            409 => Self::Conflict { action, problem },
            // 401: the token may be in the middle of its rotation
            401 | 408 | 429 | 500.. => Self::Failed { action, problem, after: None, answered: true },
            403 if message.contains(TERMINATING) => Self::Gone { action, problem },
            403 => Self::Forbidden { action, problem },
            _ => Self::Refused { action, problem },
        }
    }
}

fn wait(after: Option<&Duration>) -> String {
    after.map_or_else(String::new, |after| format!("; the API server asks to wait {} s", after.as_secs()))
}

fn is_uid_mismatch(message: &str) -> bool {
    message.contains("metadata.uid") || message.contains("UID in precondition")
}

/// The error and all its causes in one line; each cause once.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = one_line(&error.to_string());
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = one_line(&error.to_string());
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    text
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Windows has other words for it, in the language of the machine.
const REFUSED_ON_WINDOWS: &str = "(os error 10061)";

fn with_remedy(problem: String) -> String {
    let remedy = if problem.contains("UnknownIssuer") {
        "set k8s-cacert to the CA of the API server's certificate"
    } else if problem.contains("Connection refused") || problem.contains(REFUSED_ON_WINDOWS) {
        "see that the API server runs and that k8s-apiserver is its address"
    } else if problem.contains("Unauthorized") {
        "check the token or client certificate"
    } else {
        return problem;
    };
    format!("{problem}; {remedy}")
}

#[cfg(test)]
mod tests {
    use super::with_remedy;

    #[test]
    fn a_refused_connection_has_its_remedy_on_both_systems() {
        for problem in [
            "tcp connect error: Connection refused (os error 111)",
            "tcp connect error: No connection could be made because the target machine actively refused it. (os error 10061)",
        ] {
            let said = with_remedy(problem.to_owned());
            assert!(said.ends_with("; see that the API server runs and that k8s-apiserver is its address"), "{said}");
        }
    }
}
