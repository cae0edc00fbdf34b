//! Tests without a server: framing and decoding of any bytes, addresses, `_Server` rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ovnkube_ovn::nb::{self, logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::{RowChange, Txn};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::client::Client;
use crate::conn::{ReadHalf, UNACKNOWLEDGED, WriteHalf};
use crate::events::{Event, Subscribers};
use crate::fault::Fault;
use crate::frame::{FrameError, Framer};
use crate::nearly::nearly;
use crate::options::Options;
use crate::outcome;
use crate::remote::Remote;
use crate::rpc::{Message, RpcError};
use crate::server::{Seen, ServerRow};
use crate::session;
use crate::shared::Shared;
use crate::state::State;
use crate::tls::{WrongName, common_name};

/// Splits `bytes`, handed over in pieces of `size`, into messages.
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
fn framing_does_not_depend_on_how_bytes_are_split() {
    bolero::check!().with_type::<(Vec<u8>, u8)>().for_each(|(bytes, size)| {
        let (whole, error) = cut(bytes, usize::MAX);
        assert_eq!(cut(bytes, usize::from(*size)), (whole.clone(), error));
        for message in whole {
            assert!(message.first() == Some(&b'{') && message.last() == Some(&b'}'));
        }
    });
}

#[test]
fn any_bytes_can_be_read() {
    bolero::check!().with_type::<(bool, Vec<u8>)>().for_each(|(raw, bytes)| {
        let text = if *raw { String::from_utf8_lossy(bytes).into_owned() } else { nearly(bytes) };
        let _ = outcome::read(&text, &Txn::new(&nb::DATABASE), &[0, 1]);
        if let Ok(message) = serde_json::from_slice::<Message<'_>>(text.as_bytes()) {
            let _ = message.error.map(RpcError::read);
        }
        if let Ok(value) = serde_json::from_str(&text) {
            ServerRow::default().update(&value, "x");
        }
    });
}

#[test]
fn events_of_a_row_are_merged() {
    let subscribers = Subscribers::default();
    let mut sub = subscribers.add(false);
    let row = |name: &str| Some(Arc::new(Row::new(lsp::TABLE).with(lsp::NAME, name)));
    let tell = |old: Option<Arc<Row>>, new: Option<Arc<Row>>, own| {
        subscribers.rows(&[(RowChange { table: lsp::TABLE, uuid: Uuid::from_u128(1), old, new }, own)]);
    };
    let mut told = || -> Vec<String> {
        let name = |row: Option<Arc<Row>>| row.map_or("none".to_owned(), |row| row.str(lsp::NAME).to_owned());
        let show = |e: Event| match e {
            Event::Row(r) => format!("{} > {} > {} {}", name(r.old), name(r.overwritten), name(r.new), r.own),
            other => format!("{other:?}"),
        };
        sub.take().into_iter().map(show).collect()
    };
    tell(row("a"), row("b"), true);
    tell(row("b"), row("c"), true);
    assert_eq!(told(), ["a > none > c true"]);
    tell(row("a"), row("b"), true);
    tell(row("b"), row("c"), false);
    assert_eq!(told(), ["a > b > c false"]);
    tell(None, row("a"), true);
    tell(row("a"), row("b"), false);
    tell(row("b"), None, false);
    assert_eq!(told(), ["none > a > none false"], "others deleted a row that was just written");
    tell(None, row("a"), false);
    tell(row("a"), None, false);
    assert_eq!(told(), [""; 0], "a change that others reverted is not reported");
    tell(row("a"), row("b"), true);
    tell(row("b"), row("a"), false);
    assert_eq!(told(), ["a > b > a false"], "others reverted our change");
    subscribers.synced();
    subscribers.lost();
    tell(row("a"), None, false);
    assert_eq!(told(), ["Lost", "a > none > none false"]);
    subscribers.lost();
    tell(None, row("b"), false);
    subscribers.synced();
    assert_eq!(told(), ["Lost", "none > none > b false", "Synced"]);
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
fn untrusted_members_are_left() {
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
    let refused = check(&member(true, true, 100), true, other.clone()).unwrap_err().to_string();
    assert!(refused.starts_with("server is in cluster c1, but this process uses cluster c0; give "), "{refused}");
    let alone = row(json!({"name": "db", "model": "standalone"}));
    let refused = check(&alone, true, other).unwrap_err().to_string();
    assert!(refused.starts_with("server is in no cluster, but this process uses cluster c0; "), "{refused}");
    let long = row(json!({"name": "db", "model": "clustered", "connected": true, "leader": true, "index": 9,
        "cid": ["uuid", format!("a\n{}", "b".repeat(1000))]}));
    let refused = check(&long, true, seen(5)).unwrap_err().to_string();
    assert!(refused.len() < 300 && !refused.contains('\n'), "{refused}");
    assert!(matches!(check(&member(false, true, 5), true, None), Err(Fault::NotLeader)));
    assert!(check(&member(false, true, 5), false, None).is_ok());
    assert!(matches!(check(&member(true, false, 5), false, None), Err(Fault::Partitioned)));
    let relay = row(json!({"name": "db", "model": "relay", "connected": true}));
    assert!(check(&relay, false, None).is_ok());
    let refused = check(&relay, true, None).unwrap_err();
    assert!(refused.to_string().starts_with("server is a relay of db ") && !refused.may_pass(), "{refused}");
    let lost = row(json!({"name": "db", "model": "relay", "connected": false}));
    assert!(matches!(check(&lost, true, None), Err(Fault::Relay("db"))), "whether it has its server or not");
    assert!(matches!(check(&lost, false, None), Err(Fault::Partitioned)));
    assert!(check(&alone, true, None).is_ok());
    assert!(matches!(check(&row(json!({"name": "other"})), true, None), Err(Fault::NoDatabase { wanted: "db", .. })));
    let mut changing = member(true, true, 5);
    changing.update(&json!({"Database": {"u": {"modify": {"index": 6}}, "v": {"modify": {"leader": false}}}}), "db");
    assert_eq!(changing.seen(), seen(6));
    assert!(check(&changing, true, None).is_ok(), "changes of another database do not matter");
    changing.update(&json!({"Database": {"u": {"modify": {"leader": false}}}}), "db");
    assert!(check(&changing, true, None).is_err());
    changing.update(&json!({"Database": {"u": {"delete": null}}}), "db");
    assert!(matches!(check(&changing, true, None), Err(Fault::NoDatabase { wanted: "db", .. })));
}

/// A certificate up to its subject, which has these names.
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
fn any_bytes_can_be_parsed_as_a_certificate() {
    bolero::check!().with_type::<Vec<u8>>().for_each(|bytes| {
        common_name(bytes);
        common_name(&certificate_of(bytes.get(..100).unwrap_or(bytes)));
    });
}

#[test]
fn many_names_in_a_certificate_make_no_long_message() {
    let names = (0..1000).map(|n| format!("host-{n}.example")).collect();
    let said = WrongName { wanted: "10.0.0.1".to_owned(), names }.to_string();
    assert!(said.contains("\"host-7.example\", ..., but not \"10.0.0.1\"") && said.len() < 400, "{said}");
}

/// A client of one member, and the other end of each connection that it dials.
fn dialling() -> (Client, mpsc::UnboundedReceiver<DuplexStream>) {
    let (dialled, servers) = mpsc::unbounded_channel();
    let dial = move |_: &Remote| {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        dialled.send(theirs).unwrap();
        let (read, write) = tokio::io::split(ours);
        (Box::new(read) as ReadHalf, Box::new(write) as WriteHalf)
    };
    let remotes = vec![Remote::Unix("member".into())];
    let client = Client::connect(Options { dial: Some(Arc::new(dial)), ..Options::new(&nb::DATABASE, remotes) });
    (client, servers)
}

/// The next request on a connection, and its id.
async fn request(from: &mut (impl AsyncRead + Unpin), framer: &mut Framer) -> (String, Value) {
    loop {
        if let Some(range) = framer.next_message().unwrap() {
            let message: Value = serde_json::from_slice(framer.message(range)).unwrap();
            return (message["method"].as_str().unwrap().to_owned(), message["id"].clone());
        }
        assert!(from.read_buf(framer.buffer()).await.unwrap() > 0, "the client has closed the connection");
    }
}

/// A member that is elected is used at once, over the connection on which it said that it does not lead.
#[tokio::test(start_paused = true)]
async fn a_member_is_watched_until_it_leads() {
    let (client, mut servers) = dialling();
    let server = servers.recv().await.unwrap();
    let (mut from, mut to) = tokio::io::split(server);
    let mut framer = Framer::new(1 << 20);
    let mut say = async |message: Value| to.write_all(message.to_string().as_bytes()).await.unwrap();

    let (method, id) = request(&mut from, &mut framer).await;
    assert_eq!(method, "set_db_change_aware");
    say(json!({"id": id, "result": {}, "error": null})).await;
    let (method, id) = request(&mut from, &mut framer).await;
    assert_eq!(method, "monitor_cond");
    let row = json!({"name": "OVN_Northbound", "model": "clustered", "connected": true, "leader": false});
    say(json!({"id": id, "result": {"Database": {"row": {"initial": row}}}, "error": null})).await;
    let not_leader = |s: &State| matches!(s, State::Disconnected { error } if error.contains("not the leader"));
    client.state().wait_for(not_leader).await.unwrap();

    tokio::time::sleep(Duration::from_millis(900)).await;
    let change = json!({"Database": {"row": {"modify": {"leader": true}}}});
    say(json!({"id": null, "method": "update2", "params": ["_Server", change]})).await;
    assert_eq!(request(&mut from, &mut framer).await.0, "get_schema");
    assert!(servers.try_recv().is_err(), "it was not dialled again");
}

/// A monitor that starts just after the database was converted is not cancelled.
#[tokio::test(start_paused = true)]
async fn a_conversion_just_before_the_monitor_is_seen() {
    let (client, mut servers) = dialling();
    let mut server = servers.recv().await.unwrap();
    let (mut framer, mut asked) = (Framer::new(1 << 20), Vec::new());
    while asked.len() < 9 {
        let next = tokio::time::timeout(Duration::from_secs(60), request(&mut server, &mut framer));
        let (method, id) = next.await.unwrap_or_else(|_| panic!("nothing else is asked than {asked:?}"));
        let is_converted = asked.iter().any(|asked| asked == "get_schema");
        let columns = if is_converted { json!({"name": {"type": "string"}}) } else { json!({}) };
        let result = match method.as_str() {
            "monitor_cond" => {
                let row = json!({"name": "OVN_Northbound", "model": "clustered", "connected": true, "leader": true});
                json!({"Database": {"row": {"initial": row}}})
            }
            "get_schema" => json!({"name": "OVN_Northbound", "tables": {"Logical_Switch": {"columns": columns}}}),
            "monitor_cond_since" => json!([false, Uuid::nil().to_string(), {}]),
            _ => json!({}),
        };
        asked.push(method);
        let reply = json!({"id": id, "result": result, "error": null}).to_string();
        server.write_all(reply.as_bytes()).await.unwrap();
    }
    let again = ["get_schema", "monitor_cond_since", "get_schema"];
    assert_eq!(asked[2..], [&again[..], &["monitor_cancel"], &again].concat());
    client.synced().await;
    assert!(client.supports(ls::TABLE, ls::NAME));
}

/// With the limit, Linux gives up a host that is gone after 20 s instead of 5.
#[tokio::test]
async fn what_is_unacknowledged_is_limited_until_the_rows_are_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let remote = Remote::Tcp { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
    tokio::spawn(async move {
        let (mut server, _) = listener.accept().await.unwrap();
        let mut framer = Framer::new(1 << 20);
        loop {
            let (method, id) = request(&mut server, &mut framer).await;
            let row = json!({"name": "OVN_Northbound", "model": "clustered", "connected": true, "leader": true});
            let result = match method.as_str() {
                "monitor_cond" => json!({"Database": {"row": {"initial": row}}}),
                "get_schema" => json!({"name": "OVN_Northbound", "tables": {}}),
                "monitor_cond_since" => json!([false, Uuid::nil().to_string(), {}]),
                _ => json!({}),
            };
            let reply = json!({"id": id, "result": result, "error": null}).to_string();
            server.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    let shared = Arc::new(Shared::new(Options::new(&nb::DATABASE, vec![remote.clone()])));
    let mut session = session::greet(&shared, remote, |_| ()).await.unwrap();
    let socket = session.limit.as_ref().unwrap().0.try_clone().unwrap();
    assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNACKNOWLEDGED));
    let mut state = shared.state.subscribe();
    tokio::select! {
        (fault, _) = session.follow(&shared) => panic!("{fault}"),
        _ = state.wait_for(State::is_live) => {}
    }
    assert_eq!(socket.tcp_user_timeout().unwrap(), None);
}

/// One that forgets to tell is asked again.
#[tokio::test(start_paused = true)]
async fn a_member_that_tells_nothing_is_asked_again() {
    let dials = Arc::new(AtomicUsize::new(0));
    let count = dials.clone();
    let dial = move |_: &Remote| {
        count.fetch_add(1, Ordering::Relaxed);
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let row = json!({"name": "OVN_Northbound", "model": "clustered", "connected": true, "leader": false});
            let mut framer = Framer::new(1 << 20);
            for result in [json!({}), json!({"Database": {"row": {"initial": row}}})] {
                let (_, id) = request(&mut theirs, &mut framer).await;
                let reply = json!({"id": id, "result": result, "error": null}).to_string();
                theirs.write_all(reply.as_bytes()).await.unwrap();
            }
            let _ = theirs.read_buf(framer.buffer()).await;
        });
        let (read, write) = tokio::io::split(ours);
        (Box::new(read) as ReadHalf, Box::new(write) as WriteHalf)
    };
    let remotes = vec![Remote::Unix("member".into())];
    let _client = Client::connect(Options { dial: Some(Arc::new(dial)), ..Options::new(&nb::DATABASE, remotes) });
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    assert_eq!(dials.load(Ordering::Relaxed), 11);
}
