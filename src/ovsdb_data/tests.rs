//! Decoding of any bytes, what updates do to rows, and which changes are own.

use std::sync::Arc;

use ovnkube_ovn::nb::{self, load_balancer as lb, logical_switch as ls};
use ovnkube_ovn::wire::Interner;
use ovnkube_ovn::{Atom, Datum, Row, Table, Uuid};
use serde_json::json;

use crate::cache::{Cache, RowChange};
use crate::error::{Class, TxnError};
use crate::layout::{Conditions, Layout, Monitored};
use crate::nearly::nearly;
use crate::own::is_own;
use crate::txn::Txn;
use crate::update::Decoder;

fn layout() -> Layout {
    let schema = ovnkube_ovn::ServerSchema::parse(include_bytes!("../ovn/schema/ovn-nb.ovsschema")).unwrap();
    Layout::new(&nb::DATABASE, &Monitored::whole(&nb::DATABASE), &schema, Conditions::new())
}

#[test]
fn any_bytes_can_be_decoded() {
    let layout = layout();
    bolero::check!().with_type::<(bool, Vec<u8>)>().for_each(|(raw, bytes)| {
        let text = if *raw { String::from_utf8_lossy(bytes).into_owned() } else { nearly(bytes) };
        let mut texts = Interner::default();
        macro_rules! decoder {
            () => {
                Decoder { database: &nb::DATABASE, layout: &layout, texts: &mut texts }
            };
        }
        let _ = decoder!().since_reply(&text);
        let _ = decoder!().notification(&text, true);
        let _ = decoder!().notification(&text, false);
        let _ = ovnkube_ovn::ServerSchema::parse(text.as_bytes());
        if let Ok(updates) = decoder!().updates(&text) {
            let mut cache = Cache::new(&nb::DATABASE, |_| None, |_| true);
            let _ = cache.apply(updates, &layout);
        }
    });
}

#[test]
fn a_set_is_narrowed_to_the_texts_that_the_server_allows() {
    let mut schema: serde_json::Value =
        serde_json::from_slice(include_bytes!("../ovn/schema/ovn-nb.ovsschema")).unwrap();
    let row = Row::new(lb::TABLE)
        .with(lb::NAME, "x")
        .with(lb::PROTOCOL, Some("tcp"))
        .with(lb::SELECTION_FIELDS, ["ip_src", "ipv6_src", "ip_dst"]);
    let narrowed = |schema: &serde_json::Value| {
        let mut cache = Cache::new(&nb::DATABASE, |_| None, |_| true);
        cache.set_schema(Arc::new(ovnkube_ovn::ServerSchema::parse(schema.to_string().as_bytes()).unwrap()));
        cache.narrowed(&row).collect::<Vec<_>>()
    };
    assert!(narrowed(&schema).is_empty());
    // OVN 23.03
    schema["tables"]["Load_Balancer"]["columns"]["selection_fields"]["type"]["key"]["enum"] =
        json!(["set", ["eth_src", "eth_dst", "ip_src", "ip_dst", "tp_src", "tp_dst"]]);
    let left = Datum::set(["ip_dst", "ip_src"].map(|text| Atom::Str(text.into())));
    assert_eq!(narrowed(&schema), [(lb::SELECTION_FIELDS.id(), left)]);
}

#[test]
fn updates_apply_as_the_server_means_them() {
    let (layout, mut texts) = (layout(), Interner::default());
    let mut cache = Cache::new(&nb::DATABASE, |row| row.text(ls::NAME).cloned(), |_| true);
    let mut apply = |json: serde_json::Value| {
        let decoder = Decoder { database: &nb::DATABASE, layout: &layout, texts: &mut texts };
        let updates = decoder.updates(&json.to_string()).unwrap();
        let (changes, result) = cache.apply(updates, &layout);
        let rows = cache.iter(ls::TABLE).map(|(_, row)| row.to_string()).collect::<Vec<_>>();
        (changes.len(), result, rows)
    };
    let (u, p, q) = (Uuid::from_u128(1).to_string(), Uuid::from_u128(2).to_string(), Uuid::from_u128(3).to_string());
    let modify = |columns: serde_json::Value| json!({"Logical_Switch": {u.as_str(): {"modify": columns}}});
    let row = |text: &str| vec![format!("Logical_Switch{{{text}}}")];
    assert!(apply(modify(json!({"name": "x"}))).1.is_err(), "a change of a row that is not there");
    let new = json!({"Logical_Switch": {u.as_str(): {"initial": {"name": "n", "ports": ["uuid", p], "_version": ["uuid", q], "future": 1}}}, "Future": {}});
    assert_eq!(apply(new.clone()).2, row(&format!("name: \"n\", ports: {p}")));
    assert_eq!(apply(new).0, 0, "the same again is no change");
    // sets: elements in the difference and in the set are removed, elements only in the difference are added
    let two = json!(["set", [["uuid", p], ["uuid", q]]]);
    assert_eq!(apply(modify(json!({"ports": two}))).2, row(&format!("name: \"n\", ports: {q}")));
    // maps: an equal pair is removed, another value replaces, a new key is added
    let map = |pairs: serde_json::Value| json!({"external_ids": ["map", pairs]});
    assert_eq!(apply(modify(map(json!([["a", "1"], ["b", "2"], ["c", "3"]])))).0, 1);
    let after = apply(modify(map(json!([["a", "1"], ["b", "9"], ["d", "4"]])))).2;
    assert_eq!(
        after,
        row(&format!("external_ids: {{\"b\": \"9\", \"c\": \"3\", \"d\": \"4\"}}, name: \"n\", ports: {q}"))
    );
    assert_eq!(apply(modify(map(json!([["b", "9"], ["c", "3"], ["d", "4"]])))).0, 1);
    // optional: the new value, or none
    let copp = |value| modify(json!({ "copp": value }));
    assert_eq!(apply(copp(json!(["uuid", p]))).2, row(&format!("copp: {p}, name: \"n\", ports: {q}")));
    assert_eq!(apply(copp(json!(["set", []]))).2, row(&format!("name: \"n\", ports: {q}")));
    // a scalar that becomes its default is left out, as in a first download
    assert_eq!(apply(modify(json!({"name": ""}))).2, row(&format!("ports: {q}")));
    assert_eq!(apply(json!({"Logical_Switch": {u.as_str(): {"delete": null}}})).2, Vec::<String>::new());
    assert!(apply(json!({"Logical_Switch": {u.as_str(): {"delete": null}}})).1.is_err());
}

#[test]
fn a_change_is_own_only_if_all_of_it_is() {
    let (switch, p, q) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
    let row = |ports: &[Uuid], ids: &[(&str, &str)]| {
        let row =
            Row::new(ls::TABLE).with(ls::NAME, "n").with(ls::PORTS, ports).with(ls::EXTERNAL_IDS, ids.iter().copied());
        Some(Arc::new(row))
    };
    let own = |old, new, write: &dyn Fn(&mut Txn)| {
        let mut txn = Txn::new(&nb::DATABASE);
        write(&mut txn);
        let change = RowChange { table: ls::TABLE, uuid: switch, old, new };
        is_own(&change, [Arc::new(txn)].iter())
    };
    let one = |u| Datum::one(Atom::Uuid(u));
    let plug = |t: &mut Txn| _ = t.insert_into(ls::TABLE, switch, ls::PORTS, one(p));
    assert!(own(row(&[], &[]), row(&[p], &[]), &plug));
    assert!(!own(row(&[], &[]), row(&[p, q], &[]), &plug), "another client added q");
    assert!(!own(row(&[q], &[]), row(&[p], &[]), &plug), "another client removed q");
    assert!(!own(row(&[], &[]), row(&[p], &[("a", "1")]), &plug), "another column changed too");
    let unplug = |t: &mut Txn| _ = t.remove_from(ls::TABLE, switch, ls::PORTS, one(p));
    assert!(own(row(&[p, q], &[]), row(&[q], &[]), &unplug) && !own(row(&[p, q], &[]), row(&[], &[]), &unplug));
    let keys = |t: &mut Txn| {
        t.set_keys(ls::TABLE, switch, ls::EXTERNAL_IDS, [("a", "2")]);
        t.remove_keys(ls::TABLE, switch, ls::EXTERNAL_IDS, ["b"]);
    };
    assert!(own(row(&[], &[("a", "1"), ("b", "1")]), row(&[], &[("a", "2")]), &keys));
    assert!(!own(row(&[], &[("a", "1")]), row(&[], &[("a", "3")]), &keys), "another value than ours");
    assert!(!own(row(&[], &[("c", "1")]), row(&[], &[("a", "2")]), &keys));
    let insert = |t: &mut Txn| _ = t.insert(switch, Row::new(ls::TABLE).with(ls::NAME, "n"));
    assert!(own(None, row(&[], &[]), &insert) && !own(None, row(&[p], &[]), &insert));
    let delete = |t: &mut Txn| _ = t.delete(ls::TABLE, switch);
    assert!(own(row(&[], &[]), None, &delete) && !own(row(&[], &[]), None, &plug));
    let update = |t: &mut Txn| {
        _ = t.update(switch, Row::new(ls::TABLE).with(ls::PORTS, [q]).with(ls::EXTERNAL_IDS, [("", ""); 0]));
    };
    assert!(own(row(&[p], &[("a", "1")]), row(&[q], &[]), &update) && !own(row(&[], &[]), row(&[p], &[]), &update));
}

#[test]
fn parents_are_known_of_the_tables_that_are_asked_for_them() {
    let (layout, mut texts) = (layout(), Interner::default());
    let [switch, port, acl] = [1, 2, 3].map(Uuid::from_u128);
    let row = json!({"name": "n", "ports": ["uuid", port.to_string()], "acls": ["uuid", acl.to_string()]});
    let json = json!({"Logical_Switch": {switch.to_string(): {"initial": row}}}).to_string();
    let parents: [fn(&Table) -> bool; 2] = [|_| true, |table| table.name == "ACL"];
    let known = parents.map(|has_parents| {
        let mut updates =
            || Decoder { database: &nb::DATABASE, layout: &layout, texts: &mut texts }.updates(&json).unwrap();
        let [mut whole, mut changed] = [(); 2].map(|()| Cache::new(&nb::DATABASE, |_| None, has_parents));
        whole.replace(updates());
        changed.apply(updates(), &layout).1.unwrap();
        [whole, changed].map(|cache| [port, acl].map(|child| cache.parents(child).map(|p| p.uuid).collect::<Vec<_>>()))
    });
    let [all, some] = [[vec![switch], vec![switch]], [vec![], vec![switch]]];
    assert_eq!(known, [[all.clone(), all], [some.clone(), some]]);
}

/// Whatever became of the claim, nothing of the caller's transaction was sent.
#[test]
fn a_failed_claim_says_that_nothing_was_sent() {
    for error in ["timed out", "not owner", "canceled", "cluster error", "not allowed", "I/O error", "permission error"]
    {
        let claim = TxnError::new(Class::of(error), Some(1), "why").of_claim();
        assert!(claim.is_retryable() && !claim.maybe_committed() && claim.op.is_none(), "{error}: {claim}");
        assert!(claim.to_string().contains("why"), "{error}: {claim}");
    }
    for class in [Class::NotConnected, Class::Lost, Class::TimedOut, Class::Missing, Class::Invalid] {
        let claim = TxnError::new(class, None, "").of_claim();
        assert!(claim.is_retryable() && !claim.maybe_committed(), "{class:?}: {claim}");
    }
    assert_eq!(
        TxnError::new(Class::TimedOut, None, "").of_claim().to_string(),
        "the database is not connected: no reply in time"
    );
}
