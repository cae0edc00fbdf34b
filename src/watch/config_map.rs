//! Reads and writes a ConfigMap; and what is read of one that is watched.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::client::{JSON, MERGE_PATCH, query_value};
use crate::object::Metadata;
use crate::{Client, Error};

/// Keys and values of a ConfigMap.
pub type Data = BTreeMap<String, String>;

/// One that is watched.
#[derive(Debug, Deserialize)]
pub(crate) struct WatchedConfigMap<'a> {
    #[serde(borrow)]
    pub(crate) metadata: Metadata<'a>,
    #[serde(default)]
    pub(crate) data: Data,
}

#[derive(Deserialize)]
struct ConfigMap {
    metadata: Meta,
    #[serde(default)]
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    resource_version: String,
}

impl Client {
    /// Contents of a ConfigMap, `None` if it does not exist. Needs the right to get it.
    pub async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Data>, Error> {
        Ok(self.find(namespace, name).await?.map(|found| found.data))
    }

    /// Writes these keys where the ConfigMap differs; returns what it held before. Needs the right to get and patch it, and to
    /// create it if it does not exist.
    ///
    /// `may_write` is asked once it is read: another program that was allowed to write before that wrote what was read, and one
    /// that writes later changes the version. Either way this is [`Error::Conflict`].
    pub async fn set_config_map(
        &self,
        namespace: &str,
        name: &str,
        data: &Data,
        may_write: impl Fn() -> bool,
    ) -> Result<Data, Error> {
        let action = format!("write config map {namespace}/{name}");
        let body = |body: serde_json::Value| body.to_string().into_bytes();
        let found = self.find(namespace, name).await?;
        if !may_write() {
            return Err(Error::Conflict { action, problem: "the lease was lost meanwhile".to_owned() });
        }
        let Some(found) = found else {
            let made = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data });
            self.exchange::<ConfigMap>(&action, Method::POST, &all(namespace), JSON, body(made)).await?;
            return Ok(Data::new());
        };
        if data.iter().any(|(key, value)| found.data.get(key) != Some(value)) {
            let version = found.metadata.resource_version;
            let change = body(json!({ "metadata": { "resourceVersion": version }, "data": data }));
            self.exchange::<ConfigMap>(&action, Method::PATCH, &one(namespace, name), MERGE_PATCH, change).await?;
        }
        Ok(found.data)
    }

    async fn find(&self, namespace: &str, name: &str) -> Result<Option<ConfigMap>, Error> {
        let action = format!("read config map {namespace}/{name}");
        match self.exchange(&action, Method::GET, &one(namespace, name), JSON, Vec::new()).await {
            Ok(found) => Ok(Some(found)),
            Err(Error::Gone { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

pub(crate) fn all(namespace: &str) -> String {
    format!("/api/v1/namespaces/{}/configmaps", query_value(namespace))
}

fn one(namespace: &str, name: &str) -> String {
    format!("{}/{}", all(namespace), query_value(name))
}
