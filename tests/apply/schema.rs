//! A schema that lacks what an older OVN does not have.

use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects};
use serde_json::{Value, json};

fn remove(schema: &mut Value, table: &str, columns: [(&str, &str); 2]) {
    let tables = schema["tables"].as_object_mut().unwrap();
    tables.remove(table).unwrap();
    for (of, column) in columns {
        tables[of]["columns"].as_object_mut().unwrap().remove(column).unwrap();
    }
}

fn without_copp(schema: &mut Value) {
    remove(schema, "Copp", [("Logical_Router", "copp"), ("Logical_Switch", "copp")]);
    schema["version"] = "6.3.0".into();
}

/// As in OVN 23.03.
fn without_ipv6_fields(schema: &mut Value) {
    let fields = &mut schema["tables"]["Load_Balancer"]["columns"]["selection_fields"]["type"]["key"]["enum"];
    assert!(fields.to_string().contains("ipv6_src"), "{fields}");
    *fields = json!(["set", ["eth_src", "eth_dst", "ip_src", "ip_dst", "tp_src", "tp_dst"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_schema_lacks_is_left_out() {
    let server = Server::new(Release::Lts);
    server.convert(|schema| {
        without_copp(schema);
        without_ipv6_fields(schema);
    });
    let mut objects = Objects::default();
    let affinity = json!({"clientIP": {"timeoutSeconds": 86_400}});
    let ports = json!([{"name": "http", "port": 80}]);
    objects.put(json!({
        "kind": "Service", "metadata": {"name": "web", "namespace": "a"},
        "spec": {"clusterIP": "fd02::7", "ports": ports, "sessionAffinity": "ClientIP", "sessionAffinityConfig": affinity},
    }));
    for object in [node("n1"), namespace("a"), pod("a", "p", "n1")] {
        objects.put(object);
    }
    for transactions in [1..=usize::MAX, 0..=0] {
        let nb = server.client().await;
        let mut controller = Controller::start(Settings::default().network(), nb, &objects);
        let (made, _) = controller.settle(&mut objects).await;
        assert!(transactions.contains(&made), "{made} transactions");
    }
    assert!(server.nbctl(&["lsp-list", "n1"]).contains("a_p"));
    assert!(server.nbctl(&["lr-list"]).contains("ovn_cluster_router"));
    let fields = server.nbctl(&["--bare", "--columns=selection_fields", "list", "load_balancer"]);
    assert_eq!(fields.trim(), "ip_dst ip_src");
}

/// OVN is updated, and its database gets the new schema, while a master runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_used_at_once() {
    let api = Api::up().await;
    let server = Server::new(Release::Lts);
    let mut whole = Value::Null;
    server.convert(|schema| {
        whole = schema.clone();
        without_copp(schema);
    });
    api.namespace("a").await;
    api.node("n1", serde_json::json!({})).await;
    api.pod("a", "p", "n1", serde_json::json!({})).await;
    let engine = Running::start(&api, Settings::default().network(), Some(server.client().await)).await;
    engine.ready().await;
    until("the pod's port", async || server.nbctl(&["lsp-list", "n1"]).contains("a_p")).await;
    api.event("DatabaseTooOld", "ovn-kubernetes").await;
    let events = api.get("/api/v1/events").await;
    let mut messages = events["items"].as_array().unwrap().iter().map(|event| event["message"].as_str().unwrap());
    let told = "the northbound database's schema is too old: version 6.3.0; what belongs into these is left out: Copp, \
                Logical_Router.copp, Logical_Switch.copp; update OVN to 23.03 or later";
    assert!(messages.any(|message| message == told), "{events}");
    server.convert(|schema| *schema = whole);
    until("rows for which there was no table", async || !server.nbctl(&["list", "copp"]).trim().is_empty()).await;
}
