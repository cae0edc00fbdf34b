//! That a step is not done.

/// Why a step is not done, and what to do first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub String);

pub(crate) type Verdict<T> = Result<T, Refused>;

pub(crate) fn refuse<T>(text: String) -> Verdict<T> {
    Err(Refused(text))
}
