//! A master sets the certificate and the port of databases' servers.

use std::path::Path;
use std::process::Command;

use ovnkube_ovn::sb;
use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::raft::{self, Member};

use crate::lab::Lab;

/// A server that takes its certificate and its ports from the database, as `ovn-ctl` starts it.
fn server() -> Member {
    let args = [
        "--remote=db:OVN_Northbound,NB_Global,connections",
        "--private-key=db:OVN_Northbound,SSL,private_key",
        "--certificate=db:OVN_Northbound,SSL,certificate",
        "--ca-cert=db:OVN_Northbound,SSL,ca_cert",
    ];
    Member::alone(Release::Lts, &args)
}

fn issue(dir: &Path, words: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/tls/issue");
    let out = Command::new(script).current_dir(dir).args(words).output().unwrap();
    assert!(out.status.success(), "issue {words:?}: {}", String::from_utf8_lossy(&out.stderr));
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn written(server: &Member) -> String {
    raft::run(Release::Lts, "ovsdb-tool", &["-m".as_ref(), "show-log".as_ref(), server.file().as_os_str()])
}

/// Of a database's server, and of a master.
fn certificates(dir: &Path) {
    issue(dir, &["authorities"]);
    issue(dir, &["server", "db", "127.0.0.1"]);
    issue(dir, &["master", "one"]);
}

/// Of the master, with these certificates: the address and the keys of a database, but for its server's certificate.
fn flags(side: &str, port: u16, dir: &Path) -> Vec<String> {
    let mut flags =
        vec![format!("--{side}-address=ssl:127.0.0.1:{port}"), format!("--{side}-run-dir={}", dir.display())];
    for (flag, file) in [
        ("client-privkey", "master-one.key"),
        ("client-cert", "master-one.crt"),
        ("client-cacert", "control.crt"),
        ("server-privkey", "server-db.key"),
        ("server-cacert", "control.crt"),
    ] {
        flags.push(format!("--{side}-{flag}={}", dir.join(file).display()));
    }
    flags
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_sets_the_certificate_of_a_server_and_its_port() {
    let (lab, nb) = (Lab::new().await, server());
    lab.api.node("a").await;
    let dir = nb.dir().to_owned();
    certificates(&dir);
    // rows of an administrator, which stay
    nb.nbctl(&["--inactivity-probe=7000", "set-connection", "ptcp:0:127.0.0.1"]);
    let port = free_port();
    let flags = flags("nb", port, &dir);
    let with = |cert: &str| {
        let cert = format!("--nb-server-cert={}", dir.join(cert).display());
        flags.iter().chain([&cert]).map(String::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let start = |cert: &str| {
        let words = with(cert);
        lab.start("init-master=one", &words.iter().map(String::as_str).collect::<Vec<_>>())
    };

    // a file that is not there would cut off all clients
    let before = written(&nb);
    let wrong = start("server-other.crt");
    until("the missing file", async || wrong.log().contains("this host has no file")).await;
    assert_eq!(written(&nb), before);
    wrong.kill();

    let master = start("server-db.crt");
    until("the node's switch, written over TLS", async || nb.nbctl(&["ls-list"]).contains("(a)")).await;
    assert!(
        master
            .log()
            .contains(&format!("database session is live database=\"OVN_Northbound\" remote=ssl:127.0.0.1:{port}"))
    );
    let connections = nb.nbctl(&["get-connection"]);
    assert_eq!(connections.split_whitespace().collect::<Vec<_>>(), [&format!("pssl:{port}")[..], "ptcp:0:127.0.0.1"]);
    assert!(nb.nbctl(&["get-ssl"]).contains(&format!("Certificate: {}", dir.join("server-db.crt").display())));

    // nothing is written again
    lab.ready(&master).await;
    master.kill();
    let before = written(&nb);
    let again = start("server-db.crt");
    lab.ready(&again).await;
    assert_eq!(written(&nb), before);

    // an administrator's files stay
    nb.nbctl(&["set-ssl", "/nowhere/key.pem", "/nowhere/cert.pem", "/nowhere/ca.pem"]);
    until("the message", async || {
        again.log().contains("its servers have the certificate /nowhere/cert.pem with other files already")
    })
    .await;
    assert!(nb.nbctl(&["get-ssl"]).contains("/nowhere/cert.pem"));

    // what is deleted comes back
    nb.nbctl(&["del-connection"]);
    nb.nbctl(&["del-ssl"]);
    until("the rows", async || {
        nb.nbctl(&["get-connection"]).trim() == format!("pssl:{port}")
            && nb.nbctl(&["get-ssl"]).contains("server-db.crt")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_sets_the_certificate_of_the_southbound_server() {
    let lab = Lab::new().await;
    let args = [
        ("remote", "SB_Global,connections"),
        ("private-key", "SSL,private_key"),
        ("certificate", "SSL,certificate"),
        ("ca-cert", "SSL,ca_cert"),
    ];
    let args = args.map(|(flag, column)| format!("--{flag}=db:OVN_Southbound,{column}"));
    let server = Server::with(Release::Lts, &sb::DATABASE, &args);
    std::os::unix::fs::symlink(server.socket(), lab.dir.file("ovnsb_db.sock")).unwrap();
    let dir = &lab.dir.file("");
    certificates(dir);
    let port = free_port();
    let mut flags = flags("sb", port, dir);
    flags.push(format!("--sb-server-cert={}", dir.join("server-db.crt").display()));
    let master = lab.start("init-master=one", &flags.iter().map(String::as_str).collect::<Vec<_>>());
    let live = format!("database session is live database=\"OVN_Southbound\" remote=ssl:127.0.0.1:{port}");
    until("a session over TLS", async || master.log().contains(&live)).await;
    // of the southbound database, the mode and the role come first
    assert!(server.sbctl(&["get-connection"]).trim().ends_with(&format!(" pssl:{port}")));
    assert!(server.sbctl(&["get-ssl"]).contains(&format!("Certificate: {}", lab.dir.file("server-db.crt").display())));
}
