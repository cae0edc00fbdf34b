//! What needs no server: framing and decoding of any bytes, addresses, `_Server` rows.

use std::sync::Arc;

use ovnkube_ovn::nb::{logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovn::wire::Interner;
use ovnkube_ovn::{Atom, Datum, Row, Uuid, nb};
use serde_json::json;

use crate::cache::{Cache, RowChange};
use crate::events::{Event, Subscribers};
use crate::fault::Fault;
use crate::frame::{FrameError, Framer};
use crate::layout::{Conditions, Layout, Monitored};
use crate::outcome;
use crate::remote::Remote;
use crate::rpc::{Message, RpcError};
use crate::server::{Seen, ServerRow};
use crate::tls::{WrongName, common_name};
use crate::txn::{Txn, is_own};
use crate::update::Decoder;

fn layout() -> Layout {
    let schema = nb::DATABASE.server_schema().unwrap();
    Layout::new(&nb::DATABASE, &Monitored::whole(&nb::DATABASE), &schema, Conditions::new())
}

/// Cuts `bytes`, handed over in pieces of `size`, into messages.
fn cut(bytes: &[u8], size: usize) -> (Vec<Vec<u8>>, Option<FrameError>) {
    let (mut framer, mut out) = (Framer::new(1 << 20), Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        framer.buffer().extend_from_slice(piece);
        loop {
            match framer.next_message() {
                Ok(Some(range)) => out.push(framer.message(range).to_vec()),
                Ok(None) => break,
                Err(e) => return (out, Some(e)),
            }
        }
    }
    (out, None)
}

#[test]
fn messages_end_where_their_braces_close() {
    let messages = [r#"{"id":1,"result":[]}"#, "{}", r#"{"a":"}{\"\\","b":{"c":"\\\\"}}"#, r#"{"é":"\u007d"}"#];
    let stream = format!(" {}\n\n{} {}{} {{\"half\":", messages[0], messages[1], messages[2], messages[3]);
    for size in 1..=stream.len() {
        let (out, error) = cut(stream.as_bytes(), size);
        assert_eq!(out, messages.map(|m| m.as_bytes().to_vec()), "in pieces of {size}");
        assert_eq!(error, None);
    }
    assert_eq!(cut(b"{} x{}", 100), (vec![b"{}".to_vec()], Some(FrameError::Garbage(b'x'))));
    let mut framer = Framer::new(10);
    framer.buffer().extend_from_slice(b"{\"0123456789");
    assert_eq!(framer.next_message(), Err(FrameError::TooLong(10)));
    let mut framer = Framer::new(10);
    framer.buffer().extend_from_slice(b"{\"a\":1}");
    let range = framer.next_message().unwrap().unwrap();
    assert_eq!(framer.take(range), b"{\"a\":1}");
    framer.buffer().extend_from_slice(b"{}");
    let range = framer.next_message().unwrap().unwrap();
    assert_eq!(framer.message(range), b"{}");
}

#[test]
fn framing_does_not_depend_on_the_pieces() {
    bolero::check!().with_type::<(Vec<u8>, u8)>().for_each(|(bytes, size)| {
        let (whole, error) = cut(bytes, usize::MAX);
        assert_eq!(cut(bytes, usize::from(*size)), (whole.clone(), error));
        for message in whole {
            assert!(message.first() == Some(&b'{') && message.last() == Some(&b'}'));
        }
    });
}

/// Text that is nearly what a server sends: tokens of updates, in any order.
fn nearly(choices: &[u8]) -> String {
    const TOKENS: [&str; 40] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"Logical_Switch\"",
        "\"Logical_Switch_Port\"",
        "\"ACL\"",
        "\"initial\"",
        "\"insert\"",
        "\"modify\"",
        "\"delete\"",
        "\"old\"",
        "\"new\"",
        "null",
        "\"name\"",
        "\"ports\"",
        "\"external_ids\"",
        "\"00000000-0000-0000-0000-000000000001\"",
        "\"00000000-0000-0000-0000-000000000002\"",
        "\"uuid\"",
        "\"set\"",
        "\"map\"",
        "[\"set\",[",
        "[\"map\",[[",
        "]]",
        "1",
        "1.0",
        "-5",
        "1e300",
        "true",
        "\"x\"",
        "\"\\u00e9\\\"\"",
        "{\"Logical_Switch\":{",
        "{\"00000000-0000-0000-0000-000000000001\":{",
        "\"modify\":{\"ports\":",
        "\"modify\":{\"name\":\"y\"}}}}",
        "[true,",
        "[\"m\",",
    ];
    choices.iter().filter_map(|c| TOKENS.get(usize::from(*c) % TOKENS.len()).copied()).collect()
}

#[test]
fn no_bytes_break_the_decoder() {
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
        let _ = outcome::read(&text, &Txn::new(&nb::DATABASE), &[0, 1]);
        let _ = ovnkube_ovn::ServerSchema::parse(text.as_bytes());
        if let Ok(message) = serde_json::from_slice::<Message<'_>>(text.as_bytes()) {
            let _ = message.error.map(RpcError::read);
        }
        if let Ok(value) = serde_json::from_str(&text) {
            ServerRow::default().update(&value, "x");
        }
        if let Ok(updates) = decoder!().updates(&text) {
            let mut cache = Cache::new(&nb::DATABASE, |_| None);
            let _ = cache.apply(updates, &layout);
        }
    });
}

#[test]
fn updates_apply_as_the_server_means_them() {
    let (layout, mut texts) = (layout(), Interner::default());
    let mut cache = Cache::new(&nb::DATABASE, |row| Some(row.str(ls::NAME).to_owned()).filter(|n| !n.is_empty()));
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
    // sets: what is in the difference and in the set goes, what is not comes
    let two = json!(["set", [["uuid", p], ["uuid", q]]]);
    assert_eq!(apply(modify(json!({"ports": two}))).2, row(&format!("name: \"n\", ports: {q}")));
    // maps: a pair that is the same goes, another value replaces, a new key comes
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
fn events_of_a_row_fold() {
    let subscribers = Subscribers::default();
    let mut sub = subscribers.add(false);
    let row = |name: &str| Some(Arc::new(Row::new(lsp::TABLE).with(lsp::NAME, name)));
    let tell = |old: Option<Arc<Row>>, new: Option<Arc<Row>>, own| {
        subscribers.rows(&[(RowChange { table: lsp::TABLE, uuid: Uuid::from_u128(1), old, new }, own)]);
    };
    let mut told = || -> Vec<String> {
        let show = |e: Event| match e {
            Event::Row(r) => format!(
                "{:?} > {:?} {}",
                r.old.map(|r| r.str(lsp::NAME).to_owned()),
                r.new.map(|r| r.str(lsp::NAME).to_owned()),
                r.own
            ),
            other => format!("{other:?}"),
        };
        sub.take().into_iter().map(show).collect()
    };
    tell(row("a"), row("b"), true);
    tell(row("b"), row("c"), false);
    assert_eq!(told(), [r#"Some("a") > Some("c") false"#]);
    tell(None, row("a"), false);
    tell(row("a"), None, false);
    assert_eq!(told(), [""; 0], "what others made and unmade is nothing");
    tell(row("a"), row("b"), true);
    tell(row("b"), row("a"), false);
    assert_eq!(told(), [r#"Some("a") > Some("a") false"#], "somebody undid what we wrote");
    subscribers.synced();
    subscribers.lost();
    tell(row("a"), None, false);
    assert_eq!(told(), ["Lost", r#"Some("a") > None false"#]);
    subscribers.lost();
    tell(None, row("b"), false);
    subscribers.synced();
    assert_eq!(told(), ["Lost", r#"None > Some("b") false"#, "Synced"]);
}

#[test]
fn addresses_parse() {
    for (text, shown) in [
        ("tcp:10.0.0.1:6641", "tcp:10.0.0.1:6641"),
        ("tcp://nb.example:6641", "tcp:nb.example:6641"),
        ("ssl:[fd00::1]:6642", "ssl:[fd00::1]:6642"),
        (" unix:/run/ovn/ovnnb_db.sock", "unix:/run/ovn/ovnnb_db.sock"),
    ] {
        assert_eq!(Remote::parse(text).unwrap().to_string(), shown);
    }
    assert_eq!(Remote::parse_list("tcp:a:1,ssl:[::1]:2").unwrap().len(), 2);
    for bad in [
        "",
        "tcp",
        "tcp:",
        "tcp:a",
        "tcp:a:0",
        "tcp:a:65536",
        "tcp::1",
        "ssl:fd00::1:6641",
        "ssl:[x]:1",
        "ssl:[::1]",
        "unix:",
        "http:a:1",
        "tcp:a:1,",
    ] {
        assert!(Remote::parse_list(bad).is_err(), "{bad}");
    }
}

#[test]
fn members_that_cannot_be_trusted_are_left() {
    let row = |fields: serde_json::Value| {
        let mut row = ServerRow::default();
        row.update(&json!({"Database": {"u": {"initial": fields}, "v": {"initial": {"name": "_Server"}}}}), "db");
        row
    };
    let member = |leader: bool, connected: bool, index: u64| {
        row(
            json!({"name": "db", "model": "clustered", "leader": leader, "connected": connected, "index": index, "cid": ["uuid", "c1"]}),
        )
    };
    let seen = |index| Some(Seen { cluster: "c1".to_owned(), index });
    let check = |row: &ServerRow, leader_only, seen: Option<Seen>| row.check("db", leader_only, seen.as_ref());
    assert!(check(&member(true, true, 5), true, seen(5)).is_ok());
    assert!(matches!(check(&member(true, true, 4), true, seen(5)), Err(Fault::Stale { has: 4, seen: 5 })));
    let other = Some(Seen { cluster: "c0".to_owned(), index: 99 });
    assert!(check(&member(true, true, 4), true, other).is_ok(), "a cluster made anew starts anew");
    assert!(matches!(check(&member(false, true, 5), true, None), Err(Fault::NotLeader)));
    assert!(check(&member(false, true, 5), false, None).is_ok());
    assert!(matches!(check(&member(true, false, 5), false, None), Err(Fault::Partitioned)));
    let relay = row(json!({"name": "db", "model": "relay", "connected": true}));
    assert!(check(&relay, false, None).is_ok());
    assert!(matches!(check(&relay, true, None), Err(Fault::NotLeader)));
    assert!(check(&row(json!({"name": "db", "model": "standalone"})), true, None).is_ok());
    assert!(matches!(check(&row(json!({"name": "other"})), true, None), Err(Fault::NoDatabase { wanted: "db", .. })));
    let mut changing = member(true, true, 5);
    changing.update(&json!({"Database": {"u": {"modify": {"index": 6}}, "v": {"modify": {"leader": false}}}}), "db");
    assert_eq!(changing.seen(), seen(6));
    assert!(check(&changing, true, None).is_ok(), "what happens to another database says nothing");
    changing.update(&json!({"Database": {"u": {"modify": {"leader": false}}}}), "db");
    assert!(check(&changing, true, None).is_err());
    changing.update(&json!({"Database": {"u": {"delete": null}}}), "db");
    assert!(matches!(check(&changing, true, None), Err(Fault::NoDatabase { wanted: "db", .. })));
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
    assert!(!own(row(&[], &[]), row(&[p, q], &[]), &plug), "somebody else plugged q");
    assert!(!own(row(&[q], &[]), row(&[p], &[]), &plug), "somebody else took q");
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

/// A certificate as far as its subject, whose names are these.
fn certificate_of(names: &[u8]) -> Vec<u8> {
    let sequence = |content: &[u8]| [&[0x30, content.len() as u8], content].concat();
    let empty = [0x02, 0];
    let fields = [&[0xa0, 0][..], &empty, &empty, &empty, &empty, &sequence(names)].concat();
    sequence(&sequence(&fields))
}

#[test]
fn a_certificates_subject_is_found() {
    let name = |oid: u8, text: &str| {
        let attribute = [&[0x06, 3, 0x55, 0x04, oid, 0x0c, text.len() as u8], text.as_bytes()].concat();
        let sequence = [&[0x30, attribute.len() as u8], &attribute[..]].concat();
        [&[0x31, sequence.len() as u8], &sequence[..]].concat()
    };
    let names = [name(0x0a, "organisation"), name(0x03, "ovnnb"), name(0x0b, "unit")].concat();
    assert_eq!(common_name(&certificate_of(&names)).as_deref(), Some("ovnnb"));
    assert_eq!(common_name(&certificate_of(&name(0x0a, "organisation"))), None);
}

#[test]
fn any_bytes_are_taken_for_a_certificate() {
    bolero::check!().with_type::<Vec<u8>>().for_each(|bytes| {
        common_name(bytes);
        common_name(&certificate_of(bytes.get(..100).unwrap_or(bytes)));
    });
}

#[test]
fn a_certificate_with_many_names_makes_no_long_message() {
    let names = (0..1000).map(|n| format!("host-{n}.example")).collect();
    let said = WrongName { wanted: "10.0.0.1".to_owned(), names }.to_string();
    assert!(said.contains("\"host-7.example\", ... and not for \"10.0.0.1\"") && said.len() < 400, "{said}");
}
