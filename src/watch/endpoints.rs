//! Reads and makes an Endpoints object. Watches use EndpointSlices; charts of ovn-kubernetes name the databases by Endpoints.

use std::collections::BTreeMap;
use std::net::IpAddr;

use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::client::{JSON, query_value};
use crate::{Client, Error};

/// What listens where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Sorted.
    pub addresses: Vec<IpAddr>,
    /// Ports by their names, the same at every address.
    pub ports: BTreeMap<String, u16>,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    subsets: Vec<Subset>,
}

#[derive(Deserialize)]
struct Subset {
    #[serde(default)]
    addresses: Vec<Address>,
    #[serde(default)]
    ports: Vec<Port>,
}

#[derive(Deserialize)]
struct Address {
    ip: IpAddr,
}

#[derive(Deserialize)]
struct Port {
    #[serde(default)]
    name: String,
    port: u16,
}

impl Client {
    /// The first subset of an Endpoints object; `None` if there is no such object. Needs the right to get it.
    pub async fn endpoints(&self, namespace: &str, name: &str) -> Result<Option<Endpoints>, Error> {
        let action = format!("read endpoints {namespace}/{name}");
        let path = format!("{}/{}", all(namespace), query_value(name));
        match self.exchange::<Object>(&action, Method::GET, &path, JSON, Vec::new()).await {
            Ok(found) => Ok(Some(found.subsets.into_iter().next().map(Endpoints::from).unwrap_or_default())),
            Err(Error::Gone { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes an Endpoints object; [`Error::Conflict`] if it exists. Needs the right to create it.
    pub async fn make_endpoints(&self, namespace: &str, name: &str, want: &Endpoints) -> Result<(), Error> {
        let action = format!("create endpoints {namespace}/{name}");
        let addresses: Vec<_> = want.addresses.iter().map(|ip| json!({ "ip": ip })).collect();
        let ports: Vec<_> = want.ports.iter().map(|(name, port)| json!({ "name": name, "port": port })).collect();
        let object = json!({
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": { "name": name, "namespace": namespace },
            "subsets": [{ "addresses": addresses, "ports": ports }],
        });
        self.send(&action, Method::POST, &all(namespace), JSON, object.to_string().into_bytes()).await
    }
}

impl From<Subset> for Endpoints {
    fn from(subset: Subset) -> Self {
        let mut addresses: Vec<_> = subset.addresses.into_iter().map(|address| address.ip).collect();
        addresses.sort_unstable();
        Self { addresses, ports: subset.ports.into_iter().map(|port| (port.name, port.port)).collect() }
    }
}

fn all(namespace: &str) -> String {
    format!("/api/v1/namespaces/{}/endpoints", query_value(namespace))
}
