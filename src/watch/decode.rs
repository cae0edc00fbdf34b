//! One object's text as a change, for whoever has objects but no API server: replays, tests.

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
}

/// Reads the JSON of an object of a watched kind, exactly as a watch of the controller would.
pub fn decode(json: &str) -> Result<Change, Error> {
    let object: Kinded = serde_json::from_str(json).map_err(|e| Error::failed("decode object", e))?;
    match object.kind.as_str() {
        "Node" => change::<Nodes>(json),
        "Namespace" => change::<Namespaces>(json),
        "Pod" => change::<Pods>(json),
        "Service" => change::<Services>(json),
        "EndpointSlice" => change::<EndpointSlices>(json),
        "NetworkPolicy" => change::<NetworkPolicies>(json),
        "ServiceCIDR" => change::<ServiceCidrs>(json),
        other => Err(Error::failed("decode object", format!("{other:?} is not a kind that is watched"))),
    }
}

fn change<W: Watched>(json: &str) -> Result<Change, Error> {
    let object: W::Object<'_> = serde_json::from_str(json).map_err(|e| Error::failed("decode object", e))?;
    Ok(W::change(W::key(W::metadata(&object)), &object))
}
