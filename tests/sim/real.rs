//! The simulated database answers as a real `ovsdb-server` does, and has the same rows afterwards.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::net::UnixStream;

use ovnkube_ovn::nb::DATABASE;
use ovnkube_ovn::wire::Interner;
use ovnkube_ovsdb_data::{Cache, Conditions, Decoder, Layout, Monitored};
use ovnkube_policy_truth::Random;
use ovnkube_tests::dump;
use ovnkube_tests::nb::{Release, Server};
use serde_json::{Value, json};

use crate::database::Database;
use crate::observer::Observer;

const TRANSACTIONS: usize = 1500;
/// Few rows of each table: so inserts meet existing rows, and references meet missing ones.
const ROWS: usize = 5;

/// Tables, columns that refer to rows of other tables, and those.
const REFERENCES: [(&str, &str, &str); 12] = [
    ("Logical_Switch", "ports", "Logical_Switch_Port"),
    ("Logical_Switch", "acls", "ACL"),
    ("Logical_Switch", "load_balancer", "Load_Balancer"),
    ("Logical_Switch", "load_balancer_group", "Load_Balancer_Group"),
    ("Port_Group", "ports", "Logical_Switch_Port"),
    ("Port_Group", "acls", "ACL"),
    ("Load_Balancer_Group", "load_balancer", "Load_Balancer"),
    ("Logical_Router", "nat", "NAT"),
    ("NAT", "exempted_ext_ips", "Address_Set"),
    ("Meter", "bands", "Meter_Band"),
    ("Logical_Switch", "copp", "Copp"),
    ("Logical_Router", "ports", "Logical_Router_Port"),
];

/// A connection to the real server.
struct Raw(UnixStream);

impl Raw {
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.0.write_all(json!({"id": 1, "method": method, "params": params}).to_string().as_bytes()).unwrap();
        // a reply ends where its braces close; nothing else is sent before the next request
        let reply = serde_json::Deserializer::from_reader(&self.0).into_iter::<Value>().next().unwrap().unwrap();
        assert_eq!(reply["error"], Value::Null, "{method}");
        reply["result"].clone()
    }
}

fn uuid(table: &str, random: &mut Random) -> String {
    let row = random.below(ROWS);
    ovnkube_ovn::derived_uuid(table, &row.to_string()).to_string()
}

fn some(table: &str, random: &mut Random) -> Value {
    let all: Vec<Value> = (0..random.below(4)).map(|_| json!(["uuid", uuid(table, random)])).collect();
    let mut seen = std::collections::BTreeSet::new();
    json!(["set", all.into_iter().filter(|one| seen.insert(one.to_string())).collect::<Vec<_>>()])
}

/// A row with some columns, mostly valid ones.
fn row(table: &str, random: &mut Random) -> Value {
    let mut row = json!({});
    for (_, column, to) in REFERENCES.iter().filter(|(of, _, _)| *of == table) {
        if random.chance(50) {
            let optional = ["exempted_ext_ips", "copp"].contains(column);
            row[column] = if optional { json!(["uuid", uuid(to, random)]) } else { some(to, random) };
        }
    }
    let name = format!("n{}", random.below(4));
    match table {
        "ACL" => {
            let action = random.one(&["drop", "allow", "allow-related", "nonsense"]);
            let (direction, priority) = (random.one(&["from-lport", "to-lport"]), random.one(&[1, 1000, 32_768]));
            let fields = json!({"action": action, "direction": direction, "priority": priority, "match": "ip4"});
            ovnkube_watch::merge_patch(&mut row, &fields);
        }
        "NAT" => {
            let fields = json!({"type": random.one(&["snat", "dnat"]), "logical_ip": name, "external_ip": name});
            ovnkube_watch::merge_patch(&mut row, &fields);
        }
        "Meter_Band" => {
            ovnkube_watch::merge_patch(&mut row, &json!({"action": "drop", "rate": 1 + random.below(3)}));
        }
        "Meter" => ovnkube_watch::merge_patch(&mut row, &json!({"name": name, "unit": "pktps"})),
        "Logical_Router_Port" => ovnkube_watch::merge_patch(&mut row, &json!({"name": name, "mac": "m"})),
        _ => row["name"] = json!(name),
    }
    if random.chance(40) {
        row["external_ids"] = json!(["map", [["a", name], ["b", "x"]]]);
    }
    row
}

fn operation(random: &mut Random) -> Value {
    let (table, column, to) = random.one(&REFERENCES);
    let table = if random.chance(30) { to } else { table };
    let uuid = uuid(table, random);
    let select = json!([["_uuid", "==", ["uuid", uuid]]]);
    match random.below(10) {
        0..4 => json!({"op": "insert", "table": table, "uuid": uuid, "row": row(table, random)}),
        4 => json!({"op": "delete", "table": table, "where": select}),
        5 => json!({"op": "update", "table": table, "where": select, "row": row(table, random)}),
        6 => {
            let ids = "external_ids";
            let mutations = match random.below(3) {
                0 => json!([[ids, "insert", ["map", [["a", "new"], ["c", "y"]]]]]),
                1 => json!([[ids, "delete", ["set", ["a", "c"]]]]),
                _ => json!([[ids, "delete", ["set", ["a"]]], [ids, "insert", ["map", [["a", "set"]]]]]),
            };
            json!({"op": "mutate", "table": table, "where": select, "mutations": mutations})
        }
        _ if table == to => json!({"op": "comment", "comment": "nothing"}),
        at => {
            let how = if at == 7 { "delete" } else { "insert" };
            json!({"op": "mutate", "table": table, "where": select, "mutations": [[column, how, some(to, random)]]})
        }
    }
}

/// Which operations have failed, how, and how many rows the others found. The server's words differ between releases.
fn summary(results: &Value) -> Vec<String> {
    let one = |result: &Value| format!("{} {}", result["error"], result["count"]);
    results.as_array().unwrap().iter().map(one).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_are_treated_as_by_a_real_server() {
    let server = Server::new(Release::Lts);
    let mut raw = Raw(UnixStream::connect(server.socket()).unwrap());
    let schema = raw.ask("get_schema", &json!(["OVN_Northbound"]));
    let mut database = Database::new(&schema.to_string());
    let mut random = Random::new(1);
    let mut errors: BTreeMap<String, u32> = BTreeMap::new();
    let (mut told, mut texts) = (Cache::new(&DATABASE, |_| None, |_| false), Interner::default());
    let layout = Layout::new(&DATABASE, &Monitored::whole(&DATABASE), database.schema(), Conditions::default());
    for number in 0..TRANSACTIONS {
        let ops: Vec<Value> = (0..=random.below(5)).map(|_| operation(&mut random)).collect();
        let params: Vec<Value> = [json!("OVN_Northbound")].into_iter().chain(ops.iter().cloned()).collect();
        let theirs = raw.ask("transact", &json!(params));
        let (ours, changes) = database.transact(&ops, |_| true);
        let ours = json!(ours);
        assert_eq!(summary(&ours), summary(&theirs), "{number}: {}\n{ours}\n{theirs}", json!(ops));
        let update = database.update(&changes, &None, false);
        let updates = Decoder { database: &DATABASE, layout: &layout, texts: &mut texts }.updates(&update).unwrap();
        told.apply(updates, &layout).1.unwrap();
        let error = ours.as_array().unwrap().iter().find_map(|result| result["error"].as_str());
        *errors.entry(error.unwrap_or("none").to_owned()).or_default() += 1;
    }
    let real = server.client().await;
    let ours = Observer::of(&database);
    assert_eq!(dump::uuids(&ours.cache), dump::uuids(&real.cache()));
    assert_eq!(dump::uuids(&ours.cache), dump::uuids(&told), "updates tell all");
    for error in ["none", "constraint violation", "referential integrity violation", "duplicate uuid"] {
        assert!(errors.get(error).is_some_and(|count| *count > 20), "{error}: {errors:?}");
    }
}
