//! Reads any kind of object once, for checks that a person runs.

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{JSON, query_value};
use crate::{Client, Error};

/// Objects of one answer.
const PAGE: u32 = 500;
/// Most answers that are read of one list.
const PAGES: usize = 400;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    r#continue: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    git_version: String,
}

impl Client {
    /// The API server's version: `v1.36.2`.
    pub async fn version(&self) -> Result<String, Error> {
        let version: Version =
            self.exchange("read the API server's version", Method::GET, "/version", JSON, Vec::new()).await?;
        Ok(version.git_version)
    }

    /// What `keep` takes of every object of a list, such as `/api/v1/nodes`. Nothing if the API server has no such list.
    pub async fn survey<T>(&self, path: &str, mut keep: impl FnMut(&Value) -> Option<T>) -> Result<Vec<T>, Error> {
        let action = format!("list {path}");
        let (mut kept, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES {
            let from = format!("{path}?limit={PAGE}&continue={}", query_value(&next));
            let page: Page = match self.exchange(&action, Method::GET, &from, JSON, Vec::new()).await {
                Err(Error::Gone { .. }) if next.is_empty() => return Ok(kept),
                page => page?,
            };
            kept.extend(page.items.iter().filter_map(&mut keep));
            next = page.metadata.r#continue;
            if next.is_empty() {
                return Ok(kept);
            }
        }
        Err(Error::Failed {
            action,
            problem: format!("it has more than {} objects", PAGES * PAGE as usize),
            after: None,
            answered: true,
        })
    }
}
