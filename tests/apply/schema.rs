//! A schema that lacks what an older OVN does not have.

use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects};
use serde_json::Value;

fn remove(schema: &mut Value, table: &str, columns: [(&str, &str); 2]) {
    let tables = schema["tables"].as_object_mut().unwrap();
    tables.remove(table).unwrap();
    for (of, column) in columns {
        tables[of]["columns"].as_object_mut().unwrap().remove(column).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_rows_of_missing_tables_are_left_out() {
    let server = Server::new(Release::Lts);
    let socket = format!("unix:{}", server.socket().display());
    let client = |words: &[&str]| {
        let out = server.release().command("ovsdb-client").args(words).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    };
    let mut schema = serde_json::from_slice(&client(&["get-schema", &socket, "OVN_Northbound"])).unwrap();
    remove(&mut schema, "Copp", [("Logical_Router", "copp"), ("Logical_Switch", "copp")]);
    let file = server.socket().with_file_name("old.ovsschema");
    std::fs::write(&file, schema.to_string()).unwrap();
    client(&["convert", &socket, file.to_str().unwrap()]);

    let mut objects = Objects::default();
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
}
