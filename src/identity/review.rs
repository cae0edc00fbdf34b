//! AdmissionReview, `admission.k8s.io/v1`: JSON in, JSON out.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::rules::{Request, decide};

const API: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// What is sent back.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Of HTTP: 200 for every review that can be read.
    pub status: u16,
    /// An AdmissionReview with a `response`.
    pub body: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    request: Asked,
}

#[derive(Deserialize)]
struct Asked {
    uid: String,
    #[serde(flatten)]
    request: Request,
}

/// The answer to the body of a request.
pub fn answer(body: &[u8]) -> Answer {
    let review: Review = match serde_json::from_slice(body) {
        Ok(review) => review,
        Err(problem) => return refuse(400, &format!("cannot read the AdmissionReview: {problem}")),
    };
    if review.api_version != API || review.kind != KIND {
        let what = format!("{} of {}", review.kind, review.api_version);
        return refuse(400, &format!("cannot judge {what}; send {KIND} of {API}"));
    }
    let uid = &review.request.uid;
    match decide(&review.request.request) {
        Ok(()) => Answer { status: 200, body: wrap(&json!({"uid": uid, "allowed": true})) },
        Err(why) => Answer { status: 200, body: wrap(&denied(uid, 403, "Forbidden", &why)) },
    }
}

/// A denial of something that is no review: with this status of HTTP, the API server treats it as a failed webhook.
pub(crate) fn refuse(status: u16, why: &str) -> Answer {
    Answer { status, body: wrap(&denied("", status, "BadRequest", why)) }
}

fn denied(uid: &str, code: u16, reason: &str, message: &str) -> Value {
    json!({"uid": uid, "allowed": false, "status": {"code": code, "reason": reason, "message": message}})
}

fn wrap(response: &Value) -> Value {
    json!({"apiVersion": API, "kind": KIND, "response": response})
}
