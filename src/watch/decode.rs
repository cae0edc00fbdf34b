//! Decodes one object's text to a change, for callers that have objects but no API server: replays, tests.

use ovnkube_model::Change;
use serde::Deserialize;

use crate::Error;
use crate::endpoint_slices::EndpointSlices;
use crate::interconnection::InterconnectionConfigs;
use crate::interconnection_subnets::InterconnectionSubnets;
use crate::namespaces::Namespaces;
use crate::network_policies::NetworkPolicies;
use crate::nodes::Nodes;
use crate::object::{Identified, Watched, WatchedKey};
use crate::pods::Pods;
use crate::service_cidrs::ServiceCidrs;
use crate::services::Services;

#[derive(Deserialize)]
struct Kinded {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: Named,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

/// Decodes the JSON of an object of a watched kind, exactly as a watch of the controller does.
pub fn decode(json: &str) -> Result<Change, Error> {
    decoded(json, false)
}

/// The change when an object is gone; of its JSON only kind, namespace and name matter.
pub fn decode_gone(json: &str) -> Result<Change, Error> {
    decoded(json, true)
}

fn decoded(json: &str, is_gone: bool) -> Result<Change, Error> {
    let object: Kinded = serde_json::from_str(json).map_err(|e| Error::failed("decode an object", e))?;
    let action = format!("decode {} {:?}", object.kind, object.metadata.name);
    let decoded = match object.kind.as_str() {
        "Node" => change::<Nodes>(json, is_gone),
        "Namespace" => change::<Namespaces>(json, is_gone),
        "Pod" => change::<Pods>(json, is_gone),
        "Service" => change::<Services>(json, is_gone),
        "EndpointSlice" => change::<EndpointSlices>(json, is_gone),
        "NetworkPolicy" => change::<NetworkPolicies>(json, is_gone),
        "ConfigMap" => change::<InterconnectionConfigs>(json, is_gone),
        "Subnet" => change::<InterconnectionSubnets>(json, is_gone),
        "ServiceCIDR" => change::<ServiceCidrs>(json, is_gone),
        other => return Err(Error::failed("decode an object", format!("{other:?} is not a kind that is watched"))),
    };
    decoded.map_err(|e| Error::failed(&action, e))
}

fn change<W: Watched>(json: &str, is_gone: bool) -> serde_json::Result<Change> {
    if is_gone {
        let object: Identified<'_> = serde_json::from_str(json)?;
        return Ok(W::gone(W::Key::of(&object.metadata.into_metadata())));
    }
    let object: W::Object<'_> = serde_json::from_str(json)?;
    Ok(W::change(W::Key::of(W::metadata(&object)), &object))
}
