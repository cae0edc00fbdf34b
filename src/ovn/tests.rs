use std::sync::Arc;

use serde::de::DeserializeSeed;

use crate::nb::{acl, address_set, logical_switch as ls, logical_switch_port as lsp, port_group};
use crate::schema::{ColumnInfo, Table};
use crate::wire::{DatumSeed, Interner, WireDatum};
use crate::{Atom, ColumnId, Datum, OwnerId, Row, ServerSchema, Uuid, derived_uuid, nb, sb, vswitch};

fn info(table: &'static Table, id: impl Into<ColumnId>) -> &'static ColumnInfo {
    table.info(id.into()).unwrap()
}

fn parse(column: &ColumnInfo, json: &str) -> Result<Datum, serde_json::Error> {
    let mut texts = Interner::default();
    DatumSeed { column, texts: &mut texts }.deserialize(&mut serde_json::Deserializer::from_str(json))
}

fn show(column: &ColumnInfo, datum: &Datum) -> String {
    serde_json::to_string(&WireDatum { datum, is_map: column.is_map() }).unwrap()
}

/// The rows of a cluster repeat the same values.
#[test]
fn equal_values_of_many_rows_are_stored_once() {
    let mut texts = Interner::default();
    let mut read = |column, json: &str| {
        let seed = DatumSeed { column: info(lsp::TABLE, column), texts: &mut texts };
        seed.deserialize(&mut serde_json::Deserializer::from_str(json)).unwrap()
    };
    let address = "\"0a:58:0a:01:00:03 10.1.0.3\"";
    let (sent, allowed) = (read(lsp::ADDRESSES.id(), address), read(lsp::PORT_SECURITY.id(), address));
    let text = |datum: &Datum| datum.single().and_then(Atom::as_text).cloned().unwrap();
    assert!(Arc::ptr_eq(&text(&sent), &text(&allowed)));
    let marks = r#"["map",[["namespace","a"],["pod","true"]]]"#;
    let (one, other) = (read(lsp::EXTERNAL_IDS.id(), marks), read(lsp::EXTERNAL_IDS.id(), marks));
    assert!(std::ptr::eq(one.pairs(), other.pairs()));
    // other values in between do not change what is read
    for n in 0..10_000 {
        let pairs = format!(r#"["map",[["namespace","n{n}"],["pod","true"]]]"#);
        assert_eq!(
            read(lsp::EXTERNAL_IDS.id(), &pairs).value_of("namespace"),
            Some(&Atom::Str(format!("n{n}").into()))
        );
    }
    assert_eq!(read(lsp::EXTERNAL_IDS.id(), marks), one);
    // long values are not stored
    let long = format!(r#"["map",[["k","{}"]]]"#, "x".repeat(2000));
    let (first, second) = (read(lsp::EXTERNAL_IDS.id(), &long), read(lsp::EXTERNAL_IDS.id(), &long));
    assert!(!std::ptr::eq(first.pairs(), second.pairs()));
}

#[test]
fn rows_read_back_what_was_written() {
    let port = Uuid::from_u128(7);
    let row = Row::new(lsp::TABLE)
        .with(lsp::NAME, "ns_pod")
        .with(lsp::ADDRESSES, ["0a:58:0a:01:00:03 10.1.0.3"])
        .with(lsp::OPTIONS, [("iface-id-ver", "u1"), ("requested-chassis", "n1")])
        .with(lsp::TAG, None::<i64>)
        .with(lsp::ENABLED, Some(true));
    assert_eq!(row.str(lsp::NAME), "ns_pod");
    assert_eq!(row.str(lsp::TYPE), "");
    assert_eq!(row.strs(lsp::ADDRESSES).collect::<Vec<_>>(), ["0a:58:0a:01:00:03 10.1.0.3"]);
    assert_eq!(row.map(lsp::OPTIONS).get("requested-chassis"), Some("n1"));
    assert_eq!(row.map(lsp::EXTERNAL_IDS).get("x"), None);
    assert!(row.bool(lsp::ENABLED) && !row.bool(lsp::UP));
    let switch = Row::new(ls::TABLE).with(ls::PORTS, [port, Uuid::from_u128(3)]);
    assert_eq!(switch.uuids(ls::PORTS).collect::<Vec<_>>(), [Uuid::from_u128(3), port]);
    assert_eq!(Row::new(acl::TABLE).with(acl::PRIORITY, 1001).int(acl::PRIORITY), 1001);
}

#[test]
fn rows_print_sorted() {
    let row = Row::new(lsp::TABLE)
        .with(lsp::NAME, "p")
        .with(lsp::EXTERNAL_IDS, [("pod", "true"), ("namespace", "a")])
        .with(lsp::ADDRESSES, ["b", "a"]);
    let text =
        r#"Logical_Switch_Port{addresses: ["a", "b"], external_ids: {"namespace": "a", "pod": "true"}, name: "p"}"#;
    assert_eq!(format!("{row}"), text);
}

#[test]
fn wanted_cells_compare_with_defaults() {
    let want = Row::new(lsp::TABLE).with(lsp::NAME, "p").with(lsp::TYPE, "").with(lsp::OPTIONS, [("", ""); 0]);
    let have = Row::new(lsp::TABLE).with(lsp::NAME, "q");
    let differing: Vec<ColumnId> = want.differing(&have).map(|(id, _)| id).collect();
    assert_eq!(differing, [lsp::NAME.id()]);
    assert_eq!(want.differing(&want.clone()).count(), 0);
}

#[test]
fn both_wire_forms_of_a_set_of_one_are_one() {
    let addresses = info(lsp::TABLE, lsp::ADDRESSES);
    assert_eq!(parse(addresses, r#""dynamic""#).unwrap(), parse(addresses, r#"["set",["dynamic"]]"#).unwrap());
    assert_eq!(parse(addresses, r#"["set",[]]"#).unwrap(), Datum::EMPTY);
    let ports = info(ls::TABLE, ls::PORTS);
    let u = Uuid::from_u128(9);
    assert_eq!(parse(ports, &format!(r#"["uuid","{u}"]"#)).unwrap(), Datum::one(Atom::Uuid(u)));
    assert_eq!(parse(ports, &format!(r#"["set",[["uuid","{u}"]]]"#)).unwrap(), Datum::one(Atom::Uuid(u)));
}

#[test]
fn values_survive_the_wire() {
    let ids = info(lsp::TABLE, lsp::EXTERNAL_IDS);
    for (column, json) in [
        (ids, r#"["map",[["a","1"],["b","\"q\\\u00e9"]]]"#),
        (ids, r#"["map",[]]"#),
        (info(lsp::TABLE, lsp::ADDRESSES), r#"["set",["a","b"]]"#),
        (info(lsp::TABLE, lsp::TAG), r#"["set",[]]"#),
        (info(lsp::TABLE, lsp::TAG), "5"),
        (info(acl::TABLE, acl::LOG), "true"),
        (
            info(ls::TABLE, ls::PORTS),
            r#"["set",[["uuid","00000000-0000-0000-0000-000000000001"],["uuid","00000000-0000-0000-0000-000000000002"]]]"#,
        ),
        (info(nb::qos::TABLE, nb::qos::BANDWIDTH), r#"["map",[["burst",5],["rate",7]]]"#),
    ] {
        let datum = parse(column, json).unwrap();
        let back = show(column, &datum);
        assert_eq!(parse(column, &back).unwrap(), datum, "{json}");
        assert_eq!(back, json.replace("\\u00e9", "é"));
    }
}

#[test]
fn wrong_types_are_refused() {
    let (ids, tag, ports) =
        (info(lsp::TABLE, lsp::EXTERNAL_IDS), info(lsp::TABLE, lsp::TAG), info(ls::TABLE, ls::PORTS));
    for (column, json) in [
        (ids, r#"["set",["a"]]"#),
        (ids, r#""a""#),
        (ids, r#"["map",[["a"]]]"#),
        (ids, r#"["map",[["a","b","c"]]]"#),
        (tag, r#""five""#),
        (tag, "5.5"),
        (tag, "18446744073709551615"),
        (tag, r#"["map",[]]"#),
        (tag, r#"["set",[],1]"#),
        (tag, r#"["set"]"#),
        (tag, "[]"),
        (tag, "null"),
        (tag, "{}"),
        (ports, r#"["uuid","nope"]"#),
        (ports, r#"["named-uuid","x"]"#),
        (ports, r#""x""#),
    ] {
        assert!(parse(column, json).is_err(), "{json}");
    }
    assert_eq!(parse(tag, "5.0").unwrap(), parse(tag, "5").unwrap());
}

#[test]
fn differences_of_sets_and_maps_apply() {
    let set = |texts: &[&str]| Datum::set(texts.iter().map(|t| Atom::Str((*t).into())));
    assert_eq!(set(&["a", "b", "c"]).patched(&set(&["b", "d"])), set(&["a", "c", "d"]));
    assert_eq!(set(&["a"]).patched(&set(&["a"])), Datum::EMPTY);
    assert_eq!(Datum::EMPTY.patched(&set(&["a"])), set(&["a"]));
    assert_eq!(set(&["a"]).patched(&Datum::EMPTY), set(&["a"]));
    let map = |pairs: &[(&str, &str)]| {
        Datum::map(pairs.iter().map(|(k, v)| (Atom::Str((*k).into()), Atom::Str((*v).into()))))
    };
    let old = map(&[("gone", "1"), ("kept", "1"), ("new value", "1")]);
    let new = old.patched(&map(&[("gone", "1"), ("new value", "2"), ("added", "3")]));
    assert_eq!(new, map(&[("added", "3"), ("kept", "1"), ("new value", "2")]));
    assert_eq!(map(&[("a", "1")]).patched(&map(&[("a", "1")])), Datum::EMPTY);
    assert_eq!(map(&[("a", "1"), ("a", "2")]), map(&[("a", "2")]));
}

const NB: &str = include_str!("schema/ovn-nb.ovsschema");

#[test]
fn schemas_match_the_compiled_rows() {
    for (database, schema) in [
        (&nb::DATABASE, NB),
        (&sb::DATABASE, include_str!("schema/ovn-sb.ovsschema")),
        (&vswitch::DATABASE, include_str!("schema/vswitch.ovsschema")),
    ] {
        let server = ServerSchema::parse(schema.as_bytes()).unwrap();
        assert_eq!((server.name.as_str(), server.version.as_str()), (database.name, database.version));
        assert_eq!(server.tables.len(), database.tables.len());
        for (at, table) in database.tables.iter().enumerate() {
            assert_eq!(usize::from(table.id), at);
            assert_eq!(database.table(table.name), Some(*table));
            assert_eq!(server.tables[table.name].is_root, table.is_root);
            assert_eq!(server.tables[table.name].columns.len(), table.columns.len());
            for (id, column) in table.iter() {
                assert_eq!(table.column(column.name), Some(id));
                let theirs = &server.column(table, column).unwrap().ty;
                assert_eq!((theirs.min, theirs.max), (column.min, column.max));
                let refers = theirs.key.refers.as_ref().map(|(t, strong)| (t.as_str(), *strong));
                assert_eq!(refers, column.key.refers.map(|r| (r.table, r.strong)));
                assert!(column.is_default(&column.default_datum()));
            }
        }
    }
}

#[test]
fn limits_of_columns_are_known() {
    let server = ServerSchema::parse(NB.as_bytes()).unwrap();
    let acl = &server.tables["ACL"].columns;
    assert_eq!(acl["priority"].ty.key.range, (0, 32767));
    assert_eq!(acl["action"].ty.key.allowed, ["allow", "allow-related", "allow-stateless", "drop", "reject", "pass"]);
    assert_eq!(acl["name"].ty.key.range, (i64::MIN, 63));
    assert_eq!((acl["name"].ty.min, acl["name"].ty.max), (0, 1));
    assert_eq!(acl["sample_new"].ty.key.refers, Some(("Sample".to_owned(), true)));
    assert!(!server.tables["ACL"].is_root && server.tables["Logical_Switch"].is_root);
    assert_eq!(server.tables["NB_Global"].max_rows, Some(1));
    assert_eq!(port_group::TABLE.indexes, [&[port_group::NAME.id()]]);
    let weak = info(port_group::TABLE, port_group::PORTS).references().next().unwrap();
    assert_eq!((weak.table, weak.strong), ("Logical_Switch_Port", false));
}

#[test]
fn bad_schemas_are_errors() {
    for bad in [
        "",
        "{}",
        r#"{"name":"x","tables":{"t":{"columns":{"c":{"type":{"min":1}}}}}}"#,
        r#"{"name":"x","tables":{"t":{"columns":{"c":{"type":"blob"}}}}}"#,
    ] {
        assert!(ServerSchema::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn owner_ids_and_names() {
    let policy = OwnerId::new("NetworkPolicy").name("a:allow-web");
    assert_eq!(OwnerId::new("Namespace").name("a").hashed_name(), "a17441831628731841464");
    assert_eq!(OwnerId::new("Namespace").name("a").key("ip-family", "v4").hashed_name(), "a4702457242462544204");
    assert_eq!(policy.id(), "default-network-controller:NetworkPolicy:a:allow-web");
    assert_eq!(policy.hashed_name(), "a4797058936268187883");
    let served = OwnerId::new("EgressIP").name("egressip-served-pods").key("ip-family", "v4").key("network", "default");
    let row = Row::new(address_set::TABLE).with(address_set::EXTERNAL_IDS, served.external_ids());
    let ids: Vec<_> = row.map(address_set::EXTERNAL_IDS).iter().collect();
    assert_eq!(
        ids,
        [
            ("ip-family", "v4"),
            ("k8s.ovn.org/id", "default-network-controller:EgressIP:egressip-served-pods:v4:default"),
            ("k8s.ovn.org/name", "egressip-served-pods"),
            ("k8s.ovn.org/owner-controller", "default-network-controller"),
            ("k8s.ovn.org/owner-type", "EgressIP"),
            ("network", "default"),
        ]
    );
    assert_eq!(OwnerId::of("udn-enabled-svc", "UDNEnabledService").id(), "udn-enabled-svc:UDNEnabledService");
}

#[test]
fn derived_uuids_depend_on_table_and_id() {
    let a = derived_uuid("Logical_Switch", "n1");
    assert_eq!(a, derived_uuid("Logical_Switch", "n1"));
    assert_ne!(a, derived_uuid("Logical_Router", "n1"));
    assert_ne!(a, derived_uuid("Logical_Switch", "n2"));
    assert_eq!(a.get_version_num(), 5);
}

#[test]
fn values_stay_small() {
    assert_eq!(std::mem::size_of::<Atom>(), 24);
    assert_eq!(std::mem::size_of::<Datum>(), 24);
}
