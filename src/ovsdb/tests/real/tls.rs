//! TLS with a private CA.

use ovnkube_ovn::nb::logical_switch as ls;
use ovnkube_ovn::{Row, Uuid, nb};
use ovnkube_ovsdb::{Client, Options, Remote, State, TlsFiles, Txn};

use crate::lab::{Dir, Lts, NB, Server, assert_cache_is_fresh, live, options, within};
use crate::pki::{Authority, CLIENT, LATER, OVER, SERVER, files};

/// As `ovs-pki` makes it for `ovnnb`: its alternative name is not a host name.
const OF_OVS_PKI: &str = "basicConstraints=CA:FALSE\nsubjectAltName=DNS:ovnnb id:7";

/// A server with the certificate `name`, and what it trusts of `good`.
fn secure_server(dir: &Dir, name: &str) -> (Server, u16) {
    let db = dir.file(&format!("{name}.db"));
    Lts.run("ovsdb-tool", &["create".as_ref(), db.as_os_str(), Lts.schema(NB).as_os_str()]);
    let file = |name: &str| dir.file(name).display().to_string();
    let args = [
        "--remote=pssl:0:127.0.0.1".to_owned(),
        format!("--private-key={}", file(&format!("{name}.key"))),
        format!("--certificate={}", file(&format!("{name}.pem"))),
        format!("--ca-cert={}", file("good.pem")),
    ];
    let server = Server::start(Lts, dir, name, &db, &args);
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
