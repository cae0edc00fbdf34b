//! What can go wrong with the Kubernetes API, and whether trying again helps.

use std::error::Error as StdError;
use std::fmt::Display;
use std::time::Duration;

use thiserror::Error as ThisError;

/// Every message is one line and names what was being done to which object.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The settings cannot work: nothing was sent.
    #[error("{0}")]
    Access(String),
    /// The object is gone, or another one has its name now. Whatever was meant for it is void.
    #[error("{action}: {problem}")]
    Gone { action: String, problem: String },
    /// Somebody else changed the object meanwhile: read it again.
    #[error("{action}: {problem}")]
    Conflict { action: String, problem: String },
    /// The API refuses and will refuse again.
    #[error("{action}: {problem}")]
    Refused { action: String, problem: String },
    /// The account may not do this. The client has logged it.
    #[error("{action}: {problem}")]
    Forbidden { action: String, problem: String },
    /// No answer, or one that does not say how much later to try again.
    #[error("{action}: {problem}")]
    Failed { action: String, problem: String },
    /// The API has too much to do and says when to ask again.
    #[error("{action}: {problem}; again after {} s", after.as_secs())]
    Later { action: String, problem: String, after: Duration },
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Later { .. } | Self::Conflict { .. })
    }

    /// How long the API wants to be left alone with this, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Later { after, .. } => Some(*after),
            _ => None,
        }
    }

    /// Whether the object the call was for does not exist any more.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
    }

    /// Whether the account lacks a right: the first time for each kind of request, that has been logged already.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbidden { .. })
    }

    /// Whether the API server does not have what was asked for, or keeps it from us.
    pub(crate) fn is_withheld(&self) -> bool {
        matches!(self, Self::Gone { .. } | Self::Refused { .. } | Self::Forbidden { .. })
    }

    pub(crate) fn failed(action: &str, problem: impl Display) -> Self {
        Self::Failed { action: action.to_owned(), problem: problem.to_string() }
    }

    /// With the time that the answer's `Retry-After` named.
    pub(crate) fn later(self, after: Option<Duration>) -> Self {
        match (self, after) {
            (Self::Failed { action, problem }, Some(after)) => Self::Later { action, problem, after },
            (other, _) => other,
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
            // a patch that names a uid is refused so where the object has another one
            409 | 422 if is_uid_mismatch(message) => Self::Gone { action, problem },
            409 => Self::Conflict { action, problem },
            // 401: the token may be in the middle of its rotation
            401 | 408 | 429 | 500.. => Self::Failed { action, problem },
            403 => Self::Forbidden { action, problem },
            _ => Self::Refused { action, problem },
        }
    }
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

fn with_remedy(problem: String) -> String {
    let remedy = if problem.contains("UnknownIssuer") {
        "set k8s-cacert to the CA of the API server's certificate"
    } else if problem.contains("Connection refused") {
        "is the API server up, and k8s-apiserver its address?"
    } else if problem.contains("Unauthorized") {
        "check the token or client certificate"
    } else {
        return problem;
    };
    format!("{problem}; {remedy}")
}
