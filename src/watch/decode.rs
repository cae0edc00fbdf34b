//! Decodes one object's text to a change, for callers that have objects but no API server: replays, tests.

use ovnkube_model::Change;
use serde::Deserialize;

use crate::Error;
use crate::endpoint_slices::EndpointSlices;
use crate::namespaces::Namespaces;
use crate::network_policies::NetworkPolicies;
use crate::nodes::Nodes;
use crate::object::Watched;
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
    let object: Kinded = serde_json::from_str(json).map_err(|e| Error::failed("decode an object", e))?;
    let action = format!("decode {} {:?}", object.kind, object.metadata.name);
    match object.kind.as_str() {
        "Node" => change::<Nodes>(&action, json),
        "Namespace" => change::<Namespaces>(&action, json),
        "Pod" => change::<Pods>(&action, json),
        "Service" => change::<Services>(&action, json),
        "EndpointSlice" => change::<EndpointSlices>(&action, json),
        "NetworkPolicy" => change::<NetworkPolicies>(&action, json),
        "ServiceCIDR" => change::<ServiceCidrs>(&action, json),
        other => Err(Error::failed("decode an object", format!("{other:?} is not a kind that is watched"))),
    }
}

fn change<W: Watched>(action: &str, json: &str) -> Result<Change, Error> {
    let object: W::Object<'_> = serde_json::from_str(json).map_err(|e| Error::failed(action, e))?;
    Ok(W::change(W::key(W::metadata(&object)), &object))
}
