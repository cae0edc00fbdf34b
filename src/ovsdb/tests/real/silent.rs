//! Servers that do not answer: how long they delay a client while another server would answer.

use std::time::Duration;

use ovnkube_ovn::nb::logical_switch as ls;
use ovnkube_ovn::{Row, Uuid, nb};
use ovnkube_ovsdb::{Client, Options, Remote, State, Txn};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Instant;

use crate::lab::{Dir, Host, NB, Server, live, options, within};

fn tcp(port: u16) -> Remote {
    Remote::Tcp { host: "127.0.0.1".to_owned(), port }
}

/// A listener with a full queue: it does not answer, like a host that is off.
async fn black_hole() -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let to = listener.local_addr().unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) = tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(to)).await {
        filling.push(stream.unwrap());
    }
    (listener, filling)
}

fn write(n: u128) -> Txn {
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(Uuid::from_u128(n), Row::new(ls::TABLE).with(ls::NAME, format!("s{n}")));
    txn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_members_delay_nothing() {
    let dir = Dir::new();
    let server = Server::standalone(Host, &dir, NB);
    // connections that are not accepted, or accepted and never served
    let (hole, _filling) = black_hole().await;
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = [&hole, &deaf].map(|listener| tcp(listener.local_addr().unwrap().port()));
    // so many that the good one is unlikely to be one of the first, and that asking them one after another, each until it
    // is given up, would take minutes
    let remotes = silent.iter().cycle().take(40).cloned().chain([server.remote()]).collect();
    let wait = Duration::from_secs(30);
    let slow = Options { connect_timeout: wait, step_timeout: wait, ..options(remotes) };
    let client = live(slow).await;
    client.transact(write(1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_member_is_left_while_a_write_waits() {
    let dirs = [Dir::new(), Dir::new()];
    let args = ["--remote=ptcp:0:127.0.0.1".to_owned()];
    let servers = dirs.each_ref().map(|dir| {
        let db = dir.file("db");
        Host.run("ovsdb-tool", &["create".as_ref(), db.as_os_str(), Host.schema(NB).as_os_str()]);
        Server::start(Host, dir, "s", &db, &args)
    });
    let remotes: Vec<Remote> = servers.iter().map(|server| tcp(server.port())).collect();
    // given up after four parts of ten while a write waits, else after all of them
    let probe = Duration::from_secs(40);
    let client = live(Options { probe: Some(probe), ..options(remotes.clone()) }).await;
    let at =
        remotes.iter().position(|remote| *client.state().borrow() == State::Live { remote: remote.clone() }).unwrap();
    servers[at].signal("-STOP");
    let started = Instant::now();
    let error = client.transact(write(1)).await.unwrap_err();
    assert!(error.maybe_committed(), "{error}");
    within("the other member", client.synced()).await;
    let took = started.elapsed();
    client.transact(write(2)).await.unwrap();
    servers[at].signal("-CONT");
    assert!(took < probe, "{took:?}");
}

#[tokio::test]
async fn servers_are_tried_again_within_a_second() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let remote = tcp(listener.local_addr().unwrap().port());
    let _client = Client::connect(Options { leader_only: false, ..options(vec![remote]) });
    // with waits that double up to their limit this would take longer than a minute
    let tries = async {
        for _ in 0..16 {
            drop(listener.accept().await);
        }
    };
    tokio::time::timeout(Duration::from_secs(60), tries).await.expect("the tries");
}
