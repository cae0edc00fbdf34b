//! CertificateSigningRequests: made, followed, and approved or denied.

use std::ops::ControlFlow;
use std::time::Duration;

use futures::AsyncBufRead;
use http::Method;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::client::{JSON, query_value};
use crate::events::shortened;
use crate::stream::{Page, Problem, event, read_line};
use crate::{Client, Error};

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// A request has 2 to 4 kB, and may have 4 MB: whole pages of these can be read too.
const PAGE: u32 = 50;
/// How long a watch lasts. Everything is listed again after it, which finds also what was missed.
const WATCH: Duration = Duration::from_secs(300);
/// How long it lasts after a verdict could not be written; doubled each time.
const FIRST_WATCH: Duration = Duration::from_secs(3);
/// The longest then: others may wait for it, too.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const SHORT_LIVED: Duration = Duration::from_secs(5);

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub is_approved: bool,
    /// Why, for people; a long one is shortened.
    pub message: String,
}

impl Client {
    /// Makes a CertificateSigningRequest and returns the name that the API server gave it. Needs the right to create it.
    pub async fn request_certificate(
        &self,
        prefix: &str,
        spec: CertificateSigningRequestSpec,
    ) -> Result<String, Error> {
        let action = "create a certificatesigningrequest";
        let metadata = ObjectMeta { generate_name: Some(prefix.to_owned()), ..ObjectMeta::default() };
        let body = CertificateSigningRequest { metadata, spec, status: None };
        let body = serde_json::to_vec(&body).map_err(|e| Error::failed(action, e))?;
        let made: CertificateSigningRequest = self.exchange(action, Method::POST, PATH, JSON, body).await?;
        made.metadata.name.ok_or_else(|| Error::failed(action, "the answer has no name"))
    }

    /// Calls `see` with each CertificateSigningRequest that has this value in this field, and again when it changes, until it
    /// breaks; writes the verdicts that it returns. Needs the rights to list and watch, and with verdicts those to update
    /// `approval` and to approve for the signer.
    pub async fn follow_signing_requests<T>(
        &self,
        field: &str,
        value: &str,
        mut see: impl FnMut(&CertificateSigningRequest) -> ControlFlow<T, Option<Verdict>>,
    ) -> T {
        let selector = format!("&fieldSelector={}", query_value(&format!("{field}={value}")));
        let (mut backoff, mut pause) = (Backoff::default(), FIRST_WATCH);
        loop {
            let (began, mut after) = (Instant::now(), None);
            match self.follow_once(&selector, &mut pause, &mut see).await {
                Ok(ControlFlow::Break(found)) => return found,
                Ok(ControlFlow::Continue(())) => {}
                // it was logged once
                Err(error) if error.is_forbidden() => tracing::debug!(%error, "trying again"),
                Err(error) => {
                    after = error.retry_after();
                    tracing::warn!(%error, "trying again");
                }
            }
            if began.elapsed() > SHORT_LIVED {
                backoff.reset();
            }
            sleep(after.unwrap_or_default() + backoff.next()).await;
        }
    }

    /// Lists, then watches until the watch ends. A verdict on a listed request that cannot be written keeps no other from being
    /// written: the watch comes all the same, and ends after `pause`, which then gets longer.
    async fn follow_once<T>(
        &self,
        selector: &str,
        pause: &mut Duration,
        see: &mut impl FnMut(&CertificateSigningRequest) -> ControlFlow<T, Option<Verdict>>,
    ) -> Result<ControlFlow<T>, Error> {
        let action = "list certificatesigningrequests";
        let (mut text, mut next, mut failure) = (Vec::new(), String::new(), None);
        let version = loop {
            let path = format!("{PATH}?limit={PAGE}&continue={}{selector}", query_value(&next));
            self.get(action, &path, &mut text).await?;
            let page: Page<'_> = serde_json::from_slice(&text).map_err(|e| Error::failed(action, e))?;
            for item in page.items {
                match self.pass(item.get(), see).await {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(found) => return Ok(found),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            next = page.metadata.r#continue;
            if next.is_empty() {
                break page.metadata.resource_version;
            }
        };
        let lasts = if let Some(error) = failure {
            tracing::warn!(%error, "trying again in {} s", pause.as_secs());
            std::mem::replace(pause, LONGEST_PAUSE.min(*pause * 2))
        } else {
            *pause = FIRST_WATCH;
            WATCH
        };
        let path = format!(
            "{PATH}?watch=1&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}{selector}",
            lasts.as_secs(),
            query_value(&version)
        );
        let action = "watch certificatesigningrequests";
        let stream = self.stream(action, &path).await?;
        self.pass_all(action, std::pin::pin!(stream), see).await
    }

    async fn pass_all<T>(
        &self,
        action: &str,
        mut stream: impl AsyncBufRead + Unpin,
        see: &mut impl FnMut(&CertificateSigningRequest) -> ControlFlow<T, Option<Verdict>>,
    ) -> Result<ControlFlow<T>, Error> {
        let mut line = Vec::new();
        while read_line(action, &mut stream, &mut line).await? {
            let (kind, text) = event(&line).map_err(|e| Error::failed(action, e))?;
            match kind {
                "ADDED" | "MODIFIED" => {
                    if let ControlFlow::Break(found) = self.pass(text, see).await? {
                        return Ok(ControlFlow::Break(found));
                    }
                }
                "DELETED" | "BOOKMARK" => {}
                _ => {
                    let problem: Problem = serde_json::from_str(text).map_err(|e| Error::failed(action, e))?;
                    return Err(Error::from_status(action, problem.code, &problem.message));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Fails only if the same request should be passed again.
    async fn pass<T>(
        &self,
        text: &str,
        see: &mut impl FnMut(&CertificateSigningRequest) -> ControlFlow<T, Option<Verdict>>,
    ) -> Result<ControlFlow<T>, Error> {
        let request: CertificateSigningRequest = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => {
                tracing::warn!(%error, "skipped a certificatesigningrequest that cannot be read");
                return Ok(ControlFlow::Continue(()));
            }
        };
        let verdict = match see(&request) {
            ControlFlow::Break(found) => return Ok(ControlFlow::Break(found)),
            ControlFlow::Continue(verdict) => verdict,
        };
        if let Some(verdict) = verdict {
            self.write_verdict(request, &verdict).await?;
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn write_verdict(&self, mut request: CertificateSigningRequest, verdict: &Verdict) -> Result<(), Error> {
        let name = request.metadata.name.clone().unwrap_or_default();
        let message = shortened(&verdict.message);
        let (kind, reason, verb) =
            if verdict.is_approved { ("Approved", "AutoApproved", "approve") } else { ("Denied", "CSRDenied", "deny") };
        let conditions = &mut request.status.get_or_insert_default().conditions;
        conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
            type_: kind.to_owned(),
            status: "True".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            ..CertificateSigningRequestCondition::default()
        });
        let action = format!("{verb} certificatesigningrequest {name}");
        let body = serde_json::to_vec(&request).map_err(|e| Error::failed(&action, e))?;
        let path = format!("{PATH}/{}/approval", query_value(&name));
        match self.send(&action, Method::PUT, &path, JSON, body).await {
            Ok(()) if verdict.is_approved => tracing::info!(name, why = message, "approved"),
            Ok(()) => tracing::warn!(name, why = message, "denied"),
            // another approver was faster, and what it wrote comes next
            Err(error @ (Error::Conflict { .. } | Error::Gone { .. })) => {
                tracing::debug!(%error, "nothing to do any more");
            }
            Err(error) if error.is_retryable() => return Err(error),
            Err(error) => tracing::warn!(%error, "the request stays as it is"),
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "signing_tests.rs"]
mod tests;
