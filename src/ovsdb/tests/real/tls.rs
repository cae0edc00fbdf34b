//! TLS with certificates as `ovs-pki` makes them: a CA of one's own, names that are no host names.

use std::path::{Path, PathBuf};
use std::process::Command;

use ovnkube_ovn::nb::logical_switch as ls;
use ovnkube_ovn::{Row, Uuid, nb};
use ovnkube_ovsdb::{Client, Options, Remote, State, TlsFiles, Txn};

use crate::lab::{Dir, NB, Server, Trixie, assert_cache_is_fresh, live, options, within};

fn openssl(dir: &Path, args: &str) {
    let out = Command::new("openssl").current_dir(dir).args(args.split(' ')).output();
    let out = out.unwrap_or_else(|e| panic!("openssl is missing ({e}): run lab/install"));
    assert!(out.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&out.stderr));
}

/// A CA `ca` in its own right.
fn authority(dir: &Path, ca: &str) {
    openssl(
        dir,
        &format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /C=US/O=Open_vSwitch/CN={ca} -keyout {ca}.key -out {ca}.pem"
        ),
    );
}

/// A certificate for `name`, signed by `ca`. The alternative name is no DNS name, as `ovs-pki` has it.
fn certificate(dir: &Path, ca: &str, name: &str) {
    openssl(
        dir,
        &format!("req -newkey rsa:2048 -nodes -subj /C=US/O=Open_vSwitch/CN={name} -keyout {name}.key -out {name}.csr"),
    );
    std::fs::write(dir.join("ext"), format!("basicConstraints=CA:FALSE\nsubjectAltName=DNS:{name} id:7\n")).unwrap();
    let sign = format!(
        "x509 -req -days 2 -in {name}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial -extfile ext -out {name}.pem"
    );
    openssl(dir, &sign);
}

fn files(dir: &Dir, name: &str, ca: &str) -> TlsFiles {
    TlsFiles {
        certificate: dir.file(&format!("{name}.pem")),
        private_key: dir.file(&format!("{name}.key")),
        ca: dir.file(&format!("{ca}.pem")),
        common_name: None,
    }
}

fn secure_server(dir: &Dir) -> (Server, Remote) {
    let db = dir.file("db");
    Trixie.run("ovsdb-tool", &["create".as_ref(), db.as_os_str(), Trixie.schema(NB).as_os_str()]);
    let file = |name: &str| dir.file(name).display().to_string();
    let args = [
        "--remote=pssl:0:127.0.0.1".to_owned(),
        format!("--private-key={}", file("ovnnb.key")),
        format!("--certificate={}", file("ovnnb.pem")),
        format!("--ca-cert={}", file("good.pem")),
    ];
    let server = Server::start(Trixie, dir, "s", &db, &args);
    let remote = Remote::Ssl { host: "127.0.0.1".to_owned(), port: server.port() };
    (server, remote)
}

async fn refused(options: Options, reason: &str) {
    let client = Client::connect(options);
    let mut state = client.state();
    let ended = within(
        "refusal",
        state.wait_for(|s| matches!(s, State::Disconnected { error } if !error.starts_with("not connected yet"))),
    )
    .await;
    let State::Disconnected { error } = ended.unwrap().clone() else { unreachable!() };
    assert!(error.contains(reason), "{error:?} does not say {reason:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_checked_and_names_are_not() {
    let dir = Dir::new();
    authority(&dir.file(""), "good");
    authority(&dir.file(""), "bad");
    certificate(&dir.file(""), "good", "ovnnb");
    certificate(&dir.file(""), "good", "ovnkube");
    certificate(&dir.file(""), "bad", "stranger");
    let (server, remote) = secure_server(&dir);
    let with = |tls: Option<TlsFiles>| Options { tls, ..options(vec![remote.clone()]) };

    let client = live(with(Some(files(&dir, "ovnkube", "good")))).await;
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(Uuid::from_u128(1), Row::new(ls::TABLE).with(ls::NAME, "big".repeat(100_000)));
    client.transact(txn).await.unwrap();
    assert_cache_is_fresh(&client, server.remote()).await;

    let pinned = |name: &str| TlsFiles { common_name: Some(name.to_owned()), ..files(&dir, "ovnkube", "good") };
    live(with(Some(pinned("ovnnb")))).await;
    refused(with(Some(pinned("ovnsb"))), "NotValidForName").await;
    refused(with(Some(files(&dir, "ovnkube", "bad"))), "UnknownIssuer").await;
    refused(with(Some(files(&dir, "stranger", "good"))), "alert").await;
    refused(with(None), "no certificate configured").await;
    refused(with(Some(files(&dir, "nobody", "good"))), "nobody.pem").await;

    // new files are taken with the next connection, the live one stays
    let swapped: PathBuf = dir.file("ovnkube.pem");
    std::fs::write(&swapped, "nothing").unwrap();
    let mut txn = Txn::new(&nb::DATABASE);
    txn.delete(ls::TABLE, Uuid::from_u128(1));
    client.transact(txn).await.unwrap();
    assert_eq!(client.stats().sessions, 1);
    refused(with(Some(files(&dir, "ovnkube", "good"))), "no certificate in it").await;
    certificate(&dir.file(""), "good", "ovnkube");
    live(with(Some(files(&dir, "ovnkube", "good")))).await;
}
