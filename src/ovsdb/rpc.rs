//! JSON-RPC 1.0 messages in OVSDB's form.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A request, notification or reply, with its parts still undecoded.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

/// An error instead of a result. Servers send an object, some a bare string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) error: String,
    pub(crate) details: String,
}

impl RpcError {
    pub(crate) fn read(raw: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct Object {
            error: String,
            #[serde(default)]
            details: String,
        }
        if let Ok(Object { error, details }) = serde_json::from_str(raw.get()) {
            return RpcError { error, details };
        }
        let error = serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().chars().take(200).collect());
        RpcError { error, details: String::new() }
    }

    pub(crate) fn is_unknown_method(&self) -> bool {
        self.error == "unknown method"
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)?;
        if self.details.is_empty() { Ok(()) } else { write!(f, ": {}", self.details) }
    }
}

/// Bytes of a request.
pub(crate) fn request(id: u64, method: &str, params: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    serde_json::to_vec(&Request { id, method, params })
}

/// Bytes of the reply to a request from the server.
pub(crate) fn reply(id: &RawValue, result: Option<&RawValue>, error: Option<&str>) -> Vec<u8> {
    let result = result.map_or("null", RawValue::get);
    let error = error.map_or_else(|| "null".to_owned(), |e| format!("\"{e}\""));
    format!(r#"{{"id":{},"result":{result},"error":{error}}}"#, id.get()).into_bytes()
}
