//! Converts the agent's result (CNI 1.x) to the version that a network configuration asks for.

use serde_json::{Map, Value};

/// `result` as CNI `version` wants it. Before 1.0.0 each address carries its family, interfaces have no
/// `mtu`, and the result always has `dns`; since 1.0.0 the family is gone.
pub(crate) fn to_version(mut result: Map<String, Value>, version: &str) -> Value {
    result.insert("cniVersion".to_owned(), version.into());
    let old = version.starts_with("0.");
    for ip in objects(&mut result, "ips") {
        if old {
            ip.insert("version".to_owned(), family(ip).into());
        } else {
            ip.remove("version");
        }
    }
    if old {
        objects(&mut result, "interfaces").for_each(|interface| drop(interface.remove("mtu")));
        result.entry("dns").or_insert_with(|| Value::Object(Map::new()));
    }
    Value::Object(result)
}

fn objects<'a>(result: &'a mut Map<String, Value>, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    result.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn family(ip: &Map<String, Value>) -> &'static str {
    let address = ip.get("address").and_then(Value::as_str).unwrap_or_default();
    if address.contains(':') { "6" } else { "4" }
}
