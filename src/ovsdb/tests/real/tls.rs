//! TLS with a private CA.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use ovnkube_ovn::nb::logical_switch as ls;
use ovnkube_ovn::{Row, Uuid, nb};
use ovnkube_ovsdb::{Client, Options, Remote, State, TlsFiles, Txn};

use crate::cluster::{Cluster, write};
use crate::lab::{Dir, Lts, NB, Server, assert_cache_is_fresh, live, options, within};
use crate::pki::{Authority, CLIENT, LATER, OVER, SERVER, files};

/// As `ovs-pki` makes it for `ovnnb`: its alternative name is not a host name.
const OF_OVS_PKI: &str = "basicConstraints=CA:FALSE\nsubjectAltName=DNS:ovnnb id:7";

/// Arguments of a server with the certificate `name` that trusts `ca`.
fn listens(dir: &Dir, name: &str, ca: &str) -> [String; 4] {
    let file = |name: String| dir.file(&name).display().to_string();
    [
        "--remote=pssl:0:127.0.0.1".to_owned(),
        format!("--private-key={}", file(format!("{name}.key"))),
        format!("--certificate={}", file(format!("{name}.pem"))),
        format!("--ca-cert={}", file(format!("{ca}.pem"))),
    ]
}

/// A server with the certificate `name`, and what it trusts of `good`.
fn secure_server(dir: &Dir, name: &str) -> (Server, u16) {
    let db = dir.file(&format!("{name}.db"));
    Lts.run("ovsdb-tool", &["create".as_ref(), db.as_os_str(), Lts.schema(NB).as_os_str()]);
    let server = Server::start(Lts, dir, name, &db, &listens(dir, name, "good"));
    let port = server.port();
    (server, port)
}

fn at(host: &str, port: u16, tls: impl Into<Option<TlsFiles>>) -> Options {
    Options { tls: tls.into(), ..options(vec![Remote::Ssl { host: host.to_owned(), port }]) }
}

fn pinned(tls: &TlsFiles, name: &str) -> TlsFiles {
    TlsFiles { common_name: Some(name.to_owned()), ..tls.clone() }
}

async fn refused(options: Options, reasons: &[&str]) {
    let client = Client::connect(options);
    let mut state = client.state();
    // a server's last words may come too late on a busy machine: then those at the next attempt count
    let is_told = |state: &State| {
        let State::Disconnected { error } = state else { return false };
        reasons.iter().all(|reason| error.contains(reason))
    };
    let told = tokio::time::timeout(std::time::Duration::from_secs(60), state.wait_for(is_told)).await;
    assert!(told.is_ok(), "{:?} does not contain all of {reasons:?}", client.state().borrow());
}

fn authority(dir: &Dir, name: &'static str) -> Authority {
    Authority::new(dir.path(), name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_must_have_the_name_of_its_address() {
    let dir = Dir::new();
    let good = authority(&dir, "good");
    good.signs("ovnnb", SERVER);
    good.signs("ovnkube", CLIENT);
    let tls = files(dir.path(), "ovnkube", "good");
    let (server, port) = secure_server(&dir, "ovnnb");

    let client = live(at("127.0.0.1", port, tls.clone())).await;
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(Uuid::from_u128(1), Row::new(ls::TABLE).with(ls::NAME, "big".repeat(100_000)));
    client.transact(txn).await.unwrap();
    assert_cache_is_fresh(&client, server.remote()).await;

    let names = ["\"localhost\"", "\"127.0.0.1\", \"db.example\"", "\"ovnnb\"", "cert-common-name"];
    refused(at("localhost", port, tls), &names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_must_have_the_configured_name() {
    let dir = Dir::new();
    let good = authority(&dir, "good");
    good.signs("ovnnb", OF_OVS_PKI);
    good.signs_for("else", "named", SERVER, ["20210101000000Z", "20450101000000Z"]);
    good.signs("ovnkube", CLIENT);
    let tls = files(dir.path(), "ovnkube", "good");
    let (_server, port) = secure_server(&dir, "ovnnb");
    let (_named, named) = secure_server(&dir, "named");

    // if its certificate contains no address, its own name must be configured
    refused(at("127.0.0.1", port, tls.clone()), &["\"127.0.0.1\"", "\"ovnnb\"", "cert-common-name"]).await;
    live(at("127.0.0.1", port, pinned(&tls, "ovnnb"))).await;
    refused(at("127.0.0.1", port, pinned(&tls, "ovnsb")), &["\"ovnsb\"", "\"ovnnb\""]).await;

    // the subject or any other name is accepted, whatever the address is
    for name in ["else", "db.example", "127.0.0.1"] {
        live(at("localhost", named, pinned(&tls, name))).await;
    }
    refused(at("127.0.0.1", named, pinned(&tls, "10.0.0.1")), &["\"10.0.0.1\"", "\"127.0.0.1\""]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_a_servers_certificate_are_reported() {
    let dir = Dir::new();
    let good = authority(&dir, "good");
    authority(&dir, "bad");
    good.signs("ovnkube", CLIENT);
    good.signs("ovnnb", SERVER);
    good.signs("node", CLIENT);
    good.signs_for("old", "old", SERVER, OVER);
    good.signs_for("new", "new", SERVER, LATER);
    let with = |ca: &str, port| at("127.0.0.1", port, files(dir.path(), "ovnkube", ca));
    for (server, ca, reason) in [
        ("ovnnb", "bad", "client-cacert"),
        ("node", "good", "not one for servers"),
        ("old", "good", "ended"),
        ("new", "good", "not valid yet"),
    ] {
        let (_server, port) = secure_server(&dir, server);
        refused(with(ca, port), &["the server's certificate", reason]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_the_own_certificate_are_reported() {
    let dir = Dir::new();
    let (good, bad) = (authority(&dir, "good"), authority(&dir, "bad"));
    good.signs("ovnnb", SERVER);
    good.signs("server", "extendedKeyUsage=serverAuth");
    good.signs_for("old", "old", CLIENT, OVER);
    good.signs_for("new", "new", CLIENT, LATER);
    bad.signs("stranger", CLIENT);
    let (_server, port) = secure_server(&dir, "ovnnb");
    let with = |name: &str| at("127.0.0.1", port, files(dir.path(), name, "good"));
    for (name, reason) in
        [("stranger", "authority"), ("server", "not one for clients"), ("old", "ended"), ("new", "not valid yet")]
    {
        // the server's alert may be lost when it closes the connection
        for _ in 0..10 {
            refused(with(name), &["refuses the certificate in client-cert", reason]).await;
        }
    }
    refused(at("127.0.0.1", port, None), &["no certificate configured"]).await;
    refused(with("nobody"), &["nobody.pem"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_files_are_used_for_the_next_connection() {
    let dir = Dir::new();
    let good = authority(&dir, "good");
    good.signs("ovnnb", SERVER);
    good.signs("ovnkube", CLIENT);
    let (_server, port) = secure_server(&dir, "ovnnb");
    let options = || at("127.0.0.1", port, files(dir.path(), "ovnkube", "good"));
    let client = live(options()).await;

    std::fs::write(dir.file("ovnkube.pem"), "nothing").unwrap();
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(Uuid::from_u128(1), Row::new(ls::TABLE).with(ls::NAME, "a"));
    client.transact(txn).await.unwrap();
    assert_eq!(client.stats().sessions, 1);
    refused(options(), &["no certificate in it"]).await;
    good.signs("ovnkube", CLIENT);
    live(options()).await;
}

/// The server also reads its files again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_uses_a_new_certificate_while_it_runs() {
    let dir = Dir::new();
    let good = authority(&dir, "good");
    good.signs_for("ovnnb", "ovnnb", SERVER, OVER);
    good.signs("ovnkube", CLIENT);
    let (_server, port) = secure_server(&dir, "ovnnb");
    let options = at("127.0.0.1", port, files(dir.path(), "ovnkube", "good"));
    refused(options.clone(), &["ended"]).await;
    let client = Client::connect(options);
    good.signs("ovnnb", SERVER);
    within("a session with the new certificate", client.synced()).await;
}

/// A whole file takes the place of another one.
fn replace(dir: &Dir, from: &str, to: &str) {
    std::fs::copy(dir.file(from), dir.file("copy")).unwrap();
    std::fs::rename(dir.file("copy"), dir.file(to)).unwrap();
}

/// Takes the port of a server that is gone, and notes the first byte that each client sends.
fn first_bytes(port: u16) -> Arc<Mutex<Vec<u8>>> {
    let (listener, bytes) = (TcpListener::bind(("127.0.0.1", port)).unwrap(), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&bytes);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut first = [0];
            if stream.unwrap().read_exact(&mut first).is_ok() {
                noted.lock().unwrap().push(first[0]);
            }
        }
    });
    bytes
}

/// Begins each connection with TLS.
const HANDSHAKE: u8 = 22;

/// All is replaced while a session is live: the authority, the servers' certificates, the client's. Then the leader dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_files_are_used_with_a_new_leader() {
    let dir = Dir::new();
    let (old, new) = (authority(&dir, "old"), authority(&dir, "new"));
    old.signs("server", SERVER);
    old.signs("ovnkube", CLIENT);
    replace(&dir, "old.pem", "trusted.pem");
    let mut cluster = Cluster::with(Lts, &listens(&dir, "server", "trusted"));
    let ports: Vec<u16> = cluster.members.iter().map(Server::port).collect();
    let remotes = |ports: &[u16]| {
        ports.iter().map(|port| Remote::Ssl { host: "127.0.0.1".to_owned(), port: *port }).collect::<Vec<_>>()
    };
    let client = live(Options { tls: Some(files(dir.path(), "ovnkube", "trusted")), ..options(remotes(&ports)) }).await;
    within("write", write(&client, 1)).await;
    let State::Live { remote: Remote::Ssl { port, .. } } = client.state().borrow().clone() else { panic!("not live") };
    let leader = ports.iter().position(|of| *of == port).unwrap();

    for kind in ["key", "pem"] {
        replace(&dir, &format!("ovnkube.{kind}"), &format!("former.{kind}"));
    }
    new.signs("server", SERVER);
    replace(&dir, "new.pem", "trusted.pem");
    // the certificate is there, and its key is not yet
    new.signs("next", CLIENT);
    replace(&dir, "next.pem", "ovnkube.pem");
    within("write in the session of before", write(&client, 2)).await;
    assert_eq!(client.stats().sessions, 1);

    cluster.members[leader].kill();
    let plain = first_bytes(port);
    let half = |s: &State| matches!(s, State::Disconnected { error } if error.contains("cannot use certificate"));
    within("half of the files", client.state().wait_for(half)).await.unwrap();
    replace(&dir, "next.key", "ovnkube.key");
    within("write with a new leader", write(&client, 3)).await;
    assert_eq!(client.stats().sessions, 2);
    assert_eq!(client.cache().len(ls::TABLE), 3);

    // what was valid before is so no more, on either side
    let State::Live { remote } = client.state().borrow().clone() else { panic!("not live") };
    let with =
        |name: &str, ca: &str| Options { tls: Some(files(dir.path(), name, ca)), ..options(vec![remote.clone()]) };
    refused(with("former", "trusted"), &["refuses the certificate in client-cert", "authority"]).await;
    refused(with("ovnkube", "old"), &["the server's certificate", "client-cacert"]).await;
    // a server without TLS has the port of the first leader: nothing is said to it but the handshake
    let tls = Some(files(dir.path(), "ovnkube", "trusted"));
    let lost = Client::connect(Options { tls, ..options(remotes(&[port])) });
    let asked = || plain.lock().unwrap().clone();
    within("questions", async {
        while asked().len() < 3 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(asked().iter().all(|first| *first == HANDSHAKE), "{:?}", asked());
    assert!(!lost.state().borrow().is_live());
}
