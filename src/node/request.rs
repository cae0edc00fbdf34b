//! What the shim asks for, decoded and checked before anything is done.
//!
//! Everything here comes from outside: a request that is not exactly well-formed is refused as a
//! whole, with the CNI error code that fits.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ovnkube_model::PodKey;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::conf::NAME;
use crate::reply::{Refusal, Route};
use crate::subject::Sandbox;

/// A request of the shim (ours or the Go original's).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Add(Sandbox),
    Del(Sandbox),
    /// With the routes that ADD reported; `None`: the runtime does not say what ADD reported.
    Check(Sandbox, Option<Vec<Route>>),
    Status,
    /// Container ids that are still in use.
    Gc(Vec<String>),
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    config: String,
}

#[derive(Deserialize)]
struct Conf {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "runtimeConfig")]
    runtime: Option<RuntimeConf>,
    /// What ADD reported.
    #[serde(default, rename = "prevResult")]
    previous: Value,
    /// `None`: the key is missing. `null` is how Go writes an empty list.
    #[serde(default, rename = "cni.dev/valid-attachments", deserialize_with = "listed")]
    valid: Option<Vec<Attachment>>,
}

#[derive(Deserialize)]
struct RuntimeConf {
    #[serde(default, rename = "CNIDeviceInfoFile")]
    device_info: String,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(rename = "containerID")]
    container_id: String,
}

impl Request {
    /// The span for the request's log lines: names its sandbox and pod.
    pub(crate) fn span(&self) -> tracing::Span {
        let (command, sandbox) = match self {
            Self::Add(sandbox) => ("ADD", sandbox),
            Self::Del(sandbox) => ("DEL", sandbox),
            Self::Check(sandbox, _) => ("CHECK", sandbox),
            Self::Status => return tracing::error_span!("cni", command = "STATUS"),
            Self::Gc(_) => return tracing::error_span!("cni", command = "GC"),
        };
        let pod = sandbox.pod.as_ref().map(tracing::field::display);
        tracing::error_span!("cni", command, pod, sandbox = sandbox.container_id)
    }

    /// Decodes the HTTP body `{"env": {"CNI_…": …}, "config": <base64 of the shim's stdin>}`.
    pub fn decode(body: &[u8]) -> Result<Self, Refusal> {
        let wire: Wire = object(body).map_err(|e| Refusal::decode(format!("cannot read the request: {e}")))?;
        let conf = conf(&wire.config);
        let command = wire.env.get("CNI_COMMAND").map_or("", String::as_str);
        match command {
            "ADD" | "CHECK" => {
                let conf = conf?;
                conf.refuse_device()?;
                let sandbox = sandbox(&wire.env, Need::Everything)?;
                Ok(if command == "ADD" { Self::Add(sandbox) } else { Self::Check(sandbox, conf.reported_routes()) })
            }
            "DEL" => Ok(Self::Del(sandbox(&wire.env, Need::Identity)?)),
            "STATUS" => conf.map(|_| Self::Status),
            "GC" => gc(conf?),
            other => {
                conf?;
                Err(Refusal::env(format!("cannot use CNI_COMMAND {other:?}: it must be ADD, DEL, CHECK, STATUS or GC")))
            }
        }
    }
}

fn conf(config: &str) -> Result<Conf, Refusal> {
    let text = STANDARD
        .decode(config)
        .map_err(|e| Refusal::decode(format!("cannot decode the network configuration: {e}")))?;
    object(&text).map_err(|e| Refusal::decode(format!("cannot read the network configuration: {e}")))
}

impl Conf {
    /// Not for GC, and DEL does not even read it: a sandbox must end whatever its configuration says.
    fn refuse_device(&self) -> Result<(), Refusal> {
        if self.runtime.as_ref().is_none_or(|runtime| runtime.device_info.is_empty()) {
            return Ok(());
        }
        let why = "cannot use runtimeConfig.CNIDeviceInfoFile: devices are not supported";
        Err(Refusal::unsupported(why.to_owned()))
    }

    fn reported_routes(&self) -> Option<Vec<Route>> {
        let routes = self.previous.as_object()?.get("routes").and_then(Value::as_array);
        Some(routes.into_iter().flatten().filter_map(|route| Route::deserialize(route).ok()).collect())
    }
}

/// Reads a JSON object: serde alone would accept a list for a struct.
fn object<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let object: Map<String, Value> = serde_json::from_slice(text)?;
    serde_json::from_value(Value::Object(object))
}

fn listed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Attachment>>, D::Error> {
    Ok(Some(Option::deserialize(from)?.unwrap_or_default()))
}

/// Everything that is not in the list is removed, so the list must exist and be that of the pods' network.
fn gc(conf: Conf) -> Result<Request, Refusal> {
    if conf.name != NAME {
        let name = conf.name;
        return Err(Refusal::conf(format!(
            "cannot collect garbage of network {name:?}: pods are wired to {NAME:?} alone"
        )));
    }
    let valid = conf
        .valid
        .ok_or_else(|| Refusal::conf("cannot collect garbage: cni.dev/valid-attachments is missing".to_owned()))?;
    Ok(Request::Gc(valid.into_iter().map(|attachment| attachment.container_id).collect()))
}

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Everything,
    Identity,
}

fn sandbox(env: &BTreeMap<String, String>, need: Need) -> Result<Sandbox, Refusal> {
    let var = |name: &str| env.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let required =
        |name: &str| var(name).ok_or_else(|| Refusal::env(format!("cannot use the CNI variables: {name} is not set")));
    let container_id = required("CNI_CONTAINERID")?;
    if !is_container_id(container_id) {
        return Err(Refusal::env(format!(
            "cannot use CNI_CONTAINERID {container_id:?}: it must begin with a letter or digit and have at most 128 \
             letters, digits, '_', '.' and '-'"
        )));
    }
    let interface = required("CNI_IFNAME")?;
    if !is_interface(interface) {
        return Err(Refusal::env(format!(
            "cannot use CNI_IFNAME {interface:?}: it must have at most 15 characters, without '/', ':', spaces and control \
             characters"
        )));
    }
    let (netns, pod) = (var("CNI_NETNS").map(netns).transpose(), args(var("CNI_ARGS").unwrap_or_default()));
    // a sandbox must end, whatever its pod is called: what is not needed is not refused
    let (netns, (pod, pod_uid)) = match need {
        Need::Everything => (netns?, pod?),
        Need::Identity => (netns.unwrap_or_default(), pod.unwrap_or_default()),
    };
    if need == Need::Everything {
        required("CNI_NETNS")?;
        if pod.is_none() {
            return Err(Refusal::env("cannot use CNI_ARGS: K8S_POD_NAMESPACE or K8S_POD_NAME is missing".to_owned()));
        }
    }
    Ok(Sandbox { container_id: container_id.to_owned(), interface: interface.to_owned(), netns, pod, pod_uid })
}

/// The pod and its uid in `K=V;K=V`; a value may contain `=`. Keys other than the three are the runtime's own.
fn args(text: &str) -> Result<(Option<PodKey>, Option<String>), Refusal> {
    let (mut namespace, mut name, mut uid) = (None, None, None);
    for (key, value) in text.split(';').filter_map(|pair| pair.split_once('=')) {
        let checked = |ok: bool| {
            if ok {
                Ok(value)
            } else {
                Err(Refusal::env(format!("cannot use CNI_ARGS: {key} {value:?} is not a Kubernetes name")))
            }
        };
        match key {
            "K8S_POD_NAMESPACE" => namespace = Some(checked(is_dns_name(value))?),
            "K8S_POD_NAME" => name = Some(checked(is_dns_name(value))?),
            "K8S_POD_UID" => uid = Some(checked(is_uid(value))?.to_owned()).filter(|uid| !uid.is_empty()),
            _ => {}
        }
    }
    Ok((namespace.zip(name).map(|(namespace, name)| PodKey::new(namespace, name)), uid))
}

fn netns(path: &str) -> Result<PathBuf, Refusal> {
    let wrong = |why: &str| Refusal::env(format!("cannot use CNI_NETNS {path:?}: {why}"));
    if path.contains('\0') || path.len() > 4096 {
        return Err(wrong("it is not a path"));
    }
    let path = Path::new(path);
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err(wrong("it must be an absolute path without '..'"));
    }
    Ok(path.to_owned())
}

/// The CNI specification's rule, with a maximum length: the id is part of a link's alias. Runtimes use 64 characters.
fn is_container_id(id: &str) -> bool {
    id.len() <= 128
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// What the kernel accepts as the name of a link.
fn is_interface(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 15
        && name != "."
        && name != ".."
        && !name.bytes().any(|b| b == b'/' || b == b':' || b.is_ascii_whitespace() || b.is_ascii_control())
}

fn is_dns_name(name: &str) -> bool {
    name.len() <= 253
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
}

fn is_uid(uid: &str) -> bool {
    uid.len() <= 64 && uid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}
