//! Servers that do not answer: how long they delay a client while another server would answer.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ovnkube_ovn::nb::logical_switch as ls;
use ovnkube_ovn::{Row, Uuid, nb};
use ovnkube_ovsdb::{Client, Options, Remote, State, Txn, Unfit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Instant;

use crate::lab::{Dir, Host, NB, Server, live, options, within};

/// A server of an empty database that listens on TCP, too.
fn listening(dir: &Dir) -> Server {
    let db = dir.file("db");
    Host.run("ovsdb-tool", &["create".as_ref(), db.as_os_str(), Host.schema(NB).as_os_str()]);
    Server::start(Host, dir, "s", &db, &["--remote=ptcp:0:127.0.0.1".to_owned()])
}

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
    let servers = dirs.each_ref().map(listening);
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

/// Passes bytes on between a client and a server. When the client asks for what contains `words`, `hangs` is called before.
async fn between(listener: TcpListener, port: u16, words: &'static str, hangs: impl Fn()) {
    let mut both = Vec::new();
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let (mut from_client, mut to_client) = client.split();
        let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (mut from_server, mut to_server) = server.split();
        let asks = async {
            let mut bytes = vec![0; 1 << 16];
            while let Ok(n @ 1..) = from_client.read(&mut bytes).await {
                if String::from_utf8_lossy(&bytes[..n]).contains(words) {
                    hangs();
                }
                to_server.write_all(&bytes[..n]).await.unwrap();
            }
        };
        tokio::select! {
            () = asks => {}
            _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
        }
        // the other side learns of the end with this test
        both.push((client, server));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_after_its_greeting_is_left_within_seconds() {
    for words in ["\"get_schema\"", "\"monitor_cond_since\""] {
        let dirs = [Dir::new(), Dir::new()];
        let servers = dirs.each_ref().map(|dir| std::sync::Arc::new(listening(dir)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let remotes = vec![tcp(listener.local_addr().unwrap().port()), tcp(servers[1].port())];
        // the other one would be chosen as well
        servers[1].signal("-STOP");
        let (hanging, other) = (servers[0].clone(), servers[1].clone());
        let at = std::sync::Arc::new(std::sync::Mutex::new(None));
        let (port, hung) = (servers[0].port(), at.clone());
        let passes = tokio::spawn(between(listener, port, words, move || {
            hung.lock().unwrap().get_or_insert_with(Instant::now);
            hanging.signal("-STOP");
            other.signal("-CONT");
        }));
        let client = live(options(remotes.clone())).await;
        let took = at.lock().unwrap().unwrap().elapsed();
        servers[0].signal("-CONT");
        assert_eq!(*client.state().borrow(), State::Live { remote: remotes[1].clone() });
        assert!(took < Duration::from_secs(8), "{words}: {took:?}");
        client.transact(write(1)).await.unwrap();
        passes.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_works_on_a_large_answer_is_waited_for() {
    let dir = Dir::new();
    let server = std::sync::Arc::new(listening(&dir));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let remotes = vec![tcp(listener.local_addr().unwrap().port()), tcp(deaf.local_addr().unwrap().port())];
    let (port, hanging) = (server.port(), server.clone());
    let passes = tokio::spawn(between(listener, port, "\"monitor_cond_since\"", move || hanging.signal("-STOP")));
    let client = Client::connect(options(remotes.clone()));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!client.state().borrow().is_live());
    server.signal("-CONT");
    within("the answer", client.synced()).await;
    assert_eq!(*client.state().borrow(), State::Live { remote: remotes[0].clone() });
    let stats = client.stats();
    assert_eq!((stats.sessions, stats.downloads), (1, 1));
    passes.abort();
}

/// The only member of a cluster, which listens on TCP, too.
fn of_a_cluster(dir: &Dir) -> Server {
    let (db, address) = (dir.file("db"), format!("unix:{}", dir.file("raft").display()));
    let schema = Host.schema(NB);
    let words = ["create-cluster".as_ref(), db.as_os_str(), schema.as_os_str(), address.as_ref()];
    Host.run::<&OsStr>("ovsdb-tool", &words);
    let server = Server::start(Host, dir, "s", &db, &["--remote=ptcp:0:127.0.0.1".to_owned()]);
    server.wait_joined();
    server
}

/// While the right one works on its answer, another one is asked too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_another_cluster_is_forgotten_when_the_right_one_answers() {
    let dirs = [Dir::new(), Dir::new()];
    let [right, other] = dirs.each_ref().map(|dir| Arc::new(of_a_cluster(dir)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let remotes = vec![tcp(listener.local_addr().unwrap().port()), tcp(other.port())];
    // the right one is found first
    other.signal("-STOP");
    let (port, slow, found, hung) = (right.port(), right.clone(), other.clone(), AtomicBool::default());
    let passes = tokio::spawn(between(listener, port, "\"monitor_cond_since\"", move || {
        if !hung.swap(true, Ordering::Relaxed) {
            slow.signal("-STOP");
            found.signal("-CONT");
        }
    }));
    let client = Client::connect(options(remotes.clone()));
    let mut unfit = client.unfit();
    let is_of_another = |said: &Option<Unfit>| matches!(said, Some(Unfit::Stranger(_)));
    within("the other cluster", unfit.wait_for(is_of_another)).await.unwrap();
    right.signal("-CONT");
    within("the answer", client.synced()).await;
    assert_eq!(*client.state().borrow(), State::Live { remote: remotes[0].clone() });
    assert_eq!(*unfit.borrow(), None);
    client.transact(write(1)).await.unwrap();
    assert_eq!(*unfit.borrow(), None);
    passes.abort();
}

/// A row that makes the download longer than what is processed at once.
fn large() -> Txn {
    let mut txn = Txn::new(&nb::DATABASE);
    let text = "x".repeat(2 << 20);
    txn.insert(Uuid::from_u128(1), Row::new(ls::TABLE).with(ls::NAME, "large").with(ls::OTHER_CONFIG, [("x", text)]));
    txn
}

/// All threads for long work are taken while a large answer is there.
#[test]
fn an_answer_that_waits_for_the_processor_is_no_silence() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).max_blocking_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let dirs = [Dir::new(), Dir::new()];
        let servers = dirs.each_ref().map(listening);
        for server in &servers {
            live(options(vec![server.remote()])).await.transact(large()).await.unwrap();
        }
        let taken = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_secs(8)));
        let client = Client::connect(options(servers.iter().map(|server| tcp(server.port())).collect()));
        let (mut state, mut said) = (client.state(), Vec::new());
        within("the download", async {
            while !state.borrow_and_update().is_live() {
                state.changed().await.unwrap();
                said.push(state.borrow().clone());
            }
        })
        .await;
        let is_left = |state: &State| matches!(state, State::Disconnected { error } if error.contains("is silent"));
        assert!(!said.iter().any(is_left), "{said:?}");
        assert!(taken.is_finished(), "the answer did not wait");
        taken.await.unwrap();
    });
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
