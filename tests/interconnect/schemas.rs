//! Shared databases with the schema of another release of OVN.

use ovnkube_ovn::ic_sb::port_binding;
use ovnkube_tests::nb::{Release, until};
use serde_json::Value;

use crate::anew::removals;
use crate::lab::Lab;

/// From OVN 23.03 to 26.03 while clusters are joined: no row goes, not even for a moment, what is new there is used, and others are followed.
#[tokio::test(flavor = "multi_thread")]
async fn shared_databases_get_a_newer_schema() {
    let lab = Lab::up(Release::Host).await;
    lab.add_switch("ts", "169.254.100.0/24");
    lab.add_other();
    let _engine = lab.engine().await;
    lab.configure(&[]).await;
    lab.bind("cr-az1-ts", "c1").await;
    until("their prefix is here", async || lab.routes().contains("10.244.0.0/16")).await;
    until("ours is there", async || lab.shared_rows().contains("10.128.0.0/14")).await;
    lab.is_quiet().await;
    let south = lab.shared[1].client().await;
    // its row, and the new column
    let our_port = || {
        let cache = south.cache();
        let (uuid, row) =
            cache.iter(port_binding::TABLE).find(|(_, row)| row.str(port_binding::LOGICAL_PORT) == "ts-az1")?;
        Some((uuid, row.str(port_binding::TYPE).to_owned()))
    };
    let (port, none) = our_port().unwrap();
    assert_eq!(none, "");
    let (before, seen) = (lab.own_rows(), lab.nb.log().len());

    for (server, name) in lab.shared.iter().zip(["ovn-ic-nb", "ovn-ic-sb"]) {
        let text = std::fs::read(Release::Lts.file(&format!("usr/share/ovn/{name}.ovsschema"))).unwrap();
        server.convert(|schema| *schema = serde_json::from_slice(&text).unwrap());
    }
    until("our port has its type", async || our_port() == Some((port, "transit-switch-port".into()))).await;
    assert_eq!(lab.own_rows(), before);
    lab.create(&[Lab::route(&lab.zone("az2"), "ts", "10.99.0.0/16", "169.254.100.77")]);
    until("a new prefix is used", async || lab.routes().contains("10.99.0.0/16")).await;
    assert_eq!(removals(&lab.nb, seen), Vec::<Value>::new());
}

/// Older than all releases that are supported.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_without_a_table_is_named_with_what_to_do() {
    let lab = Lab::up(Release::Lts).await;
    lab.add_switch("ts", "169.254.100.0/24");
    let mut whole = Value::Null;
    lab.shared[1].convert(|schema| {
        whole = schema.clone();
        schema["tables"].as_object_mut().unwrap().remove("Route").unwrap();
    });
    let _engine = lab.engine().await;
    lab.configure(&[]).await;
    lab.bind("cr-az1-ts", "c1").await;
    lab.event_says("the southbound interconnection database does not take what this cluster writes").await;
    lab.event_says("has no table Route; if its schema is older than that of OVN 23.03, update OVN of its servers")
        .await;
    lab.shared[1].convert(|schema| *schema = whole);
    until("our prefix is there", async || lab.shared_rows().contains("10.128.0.0/14")).await;
}
