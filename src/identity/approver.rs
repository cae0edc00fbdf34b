//! Approves and denies what node agents ask for.

use std::convert::Infallible;
use std::ops::ControlFlow;

use ovnkube_watch::Client;

use crate::approval::judge;
use crate::names::SIGNER;

/// Decides about every request of a node agent's certificate, for ever. Several approvers decide the same: the first one writes it.
pub async fn approve(api: &Client) -> Infallible {
    api.follow_signing_requests("spec.signerName", SIGNER, |request| ControlFlow::Continue(judge(request))).await
}
