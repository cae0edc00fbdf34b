use serde_json::json;

use super::*;

#[test]
fn base64_is_the_standard_one() {
    for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
        assert_eq!(wire::base64(plain.as_bytes()), coded);
    }
    assert_eq!(wire::base64(&[0xff, 0xfe, 0xfd]), "//79");
}

fn result() -> Map<String, Value> {
    let result = json!({
        "cniVersion": "1.0.0",
        "interfaces": [{"name": "0123456789abcde", "mac": "76:90:f1:60:68:85", "mtu": 1400}, {"name": "eth0", "mac": "0a:58:0a:80:00:03", "mtu": 1400, "sandbox": "/run/netns/p"}],
        "ips": [{"interface": 1, "address": "10.128.0.3/23", "gateway": "10.128.0.1"}, {"interface": 1, "address": "fd00::3/64"}],
    });
    result.as_object().unwrap().clone()
}

#[test]
fn older_results_name_the_address_family() {
    let old = convert::to_version(result(), "0.4.0");
    assert_eq!(old["cniVersion"], "0.4.0");
    assert_eq!(
        old["ips"][0],
        json!({"version": "4", "interface": 1, "address": "10.128.0.3/23", "gateway": "10.128.0.1"})
    );
    assert_eq!(old["ips"][1]["version"], "6");
    assert_eq!(old["dns"], json!({}));
    assert_eq!(old["interfaces"][0], json!({"name": "0123456789abcde", "mac": "76:90:f1:60:68:85"}));
}

#[test]
fn newer_results_do_not() {
    let mut old = convert::to_version(result(), "0.3.1").as_object().unwrap().clone();
    old.insert("interfaces".to_owned(), result()["interfaces"].clone());
    let new = convert::to_version(old, "1.1.0");
    assert_eq!(new["cniVersion"], "1.1.0");
    assert_eq!(new["ips"], result()["ips"]);
    assert_eq!(new["interfaces"][1]["mtu"], 1400);
}

#[test]
fn version_answers_in_the_version_asked_for() {
    let answer: Value = serde_json::from_str(&versions(br#"{"cniVersion":"0.4.0"}"#)).unwrap();
    assert_eq!(answer, json!({"cniVersion": "0.4.0", "supportedVersions": VERSIONS}));
    let answer: Value = serde_json::from_str(&versions(b"")).unwrap();
    assert_eq!(answer["cniVersion"], *VERSIONS.last().unwrap());
}
