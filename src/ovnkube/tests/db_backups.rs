//! Backups that are damaged, have another schema, or say that servers listen elsewhere.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use ovnkube_tests::nb::{Release, until};
use ovnkube_tests::raft::{self, Member};

use crate::db::db;
use crate::lab::Dir;

#[test]
fn a_damaged_backup_changes_nothing() {
    let (member, dir) = (Member::alone(Release::Host, &[]), Dir::new());
    let address = member.remote();
    let backup = dir.file("backup");
    for name in ["a", "b", "c"] {
        member.nbctl(&["ls-add", name]);
    }
    db(&member, &["backup", "nb", backup.to_str().unwrap()], &address).has(0, "are in");
    member.nbctl(&["ls-add", "later"]);
    let whole = std::fs::read(&backup).unwrap();
    let second = whole.windows(10).rposition(|bytes| bytes == b"OVSDB JSON").unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let log = || raft::run(Release::Host, "ovsdb-tool", &["show-log".as_ref(), member.file().as_os_str()]);
    let before = log();
    let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
    for left in [whole.len() - 1, whole.len() - 50, second + 20, second + 11, second, second - 1, 5000, 30, 0] {
        cases.push((format!("{left} bytes are left"), whole[..left].to_vec()));
    }
    for at in [3, 12, 40, 5000, second + 2, second + 12, second + 30, second + 70, whole.len() - 30, whole.len() - 1] {
        cases.push((format!("a bit of byte {at} differs"), flipped(at)));
    }
    for (case, bytes) in cases {
        let file = dir.file("damaged");
        std::fs::write(&file, bytes).unwrap();
        let said = db(&member, &["restore", "nb", file.to_str().unwrap()], &address);
        assert!(said.code != 0, "{case}: {}", said.out);
        assert!(said.err.contains("/damaged"), "{case}: {}", said.err);
        assert!(!dir.file("damaged.replaced").exists(), "{case}");
        assert_eq!(log(), before, "{case}");
        // nor does it become a cluster
        let host = Member::new(Release::Host);
        let said = db(&host, &["bootstrap", "nb", &host.raft(), file.to_str().unwrap()], &host.remote());
        assert!(said.code != 0 && !host.file().exists(), "{case}: {}", said.out);
    }
    let file = dir.file("damaged");
    std::fs::write(&file, &whole[..second]).unwrap();
    let said = db(&member, &["restore", "nb", file.to_str().unwrap()], &address);
    said.has(2, "it is damaged, and nothing was changed: it has a schema and no contents; take another backup");
    std::fs::write(&file, flipped(second + 70)).unwrap();
    db(&member, &["restore", "nb", file.to_str().unwrap()], &address).has(2, "have SHA-1 hash");
}

#[test]
fn backups_with_other_schemas() {
    let (member, dir) = (Member::alone(Release::Host, &[]), Dir::new());
    let address = member.remote();
    let [older, newer]: [PathBuf; 2] = ["older", "newer"].map(|name| dir.file(name));
    member.nbctl(&["ls-add", "first"]);
    db(&member, &["backup", "nb", older.to_str().unwrap()], &address).has(0, "are in");
    let schema = raft::schema(Release::Lts, "ovn-nb.ovsschema");
    db(&member, &["convert", "nb", schema.to_str().unwrap()], &address).has(0, "has the schema 7.");
    member.nbctl(&["ls-add", "second"]);
    db(&member, &["backup", "nb", newer.to_str().unwrap()], &address).has(0, "are in");

    let said = db(&member, &["restore", "nb", older.to_str().unwrap()], &address);
    said.has(0, ", converted from schema 7.0.0 to 7.");
    assert_eq!(member.nbctl(&["--bare", "--columns=name", "list", "Logical_Switch"]).trim(), "first");
    let left: Vec<String> = std::fs::read_dir(older.parent().unwrap())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(left.iter().all(|name| !name.contains("schema") && !name.contains("copy")), "{left:?}");
    // what was there has the newer schema, and comes back
    let replaced = dir.file("older.replaced");
    db(&member, &["restore", "nb", replaced.to_str().unwrap()], &address).has(0, "has the contents of");
    assert!(member.nbctl(&["ls-list"]).contains("second"));

    let old = Member::alone(Release::Host, &[]);
    old.nbctl(&["ls-add", "kept"]);
    let said = db(&old, &["restore", "nb", newer.to_str().unwrap()], &old.remote());
    said.has(2, "what is new would be lost. First write ovnkube db convert nb");
    assert!(old.nbctl(&["ls-list"]).contains("kept") && !dir.file("newer.replaced").exists());
}

/// A server that listens where the database says, as `ovn-ctl` starts it.
fn listening() -> Member {
    Member::alone(Release::Host, &["--remote=db:OVN_Northbound,NB_Global,connections"])
}

/// A port, for a short time nobody's.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn is_open(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Rows of a database that no ovn-nbctl has written, which would make its first row.
fn insert(member: &Member, name: &str) {
    let row = format!(r#"["OVN_Northbound",{{"op":"insert","table":"Logical_Switch","row":{{"name":"{name}"}}}}]"#);
    raft::run(Release::Host, "ovsdb-client", &["transact", &member.remote(), &row]);
}

/// What says where a server listens.
fn own_rows(member: &Member) -> [String; 3] {
    let rows = member.nbctl(&["--bare", "--columns=target,inactivity_probe", "list", "Connection"]);
    // in the order of their ids
    let mut rows: Vec<&str> = rows.trim().split("\n\n").collect();
    rows.sort_unstable();
    [member.nbctl(&["get-connection"]), rows.join("\n\n"), member.nbctl(&["get-ssl"])]
}

#[tokio::test]
async fn a_server_listens_as_before_whatever_a_backup_has() {
    let (server, dir) = (listening(), Dir::new());
    let address = server.remote();
    let [plain, port] = [free(), free()];
    let file = |name: &str| dir.file(name).display().to_string();
    let save = |server: &Member, name: &str| {
        db(server, &["backup", "nb", &file(name)], &server.remote()).has(0, "are in");
    };
    // another one's contents, without any row that says where it listens
    let other = listening();
    insert(&other, "other");
    save(&other, "empty");
    server.nbctl(&["ls-add", "first"]);
    server.nbctl(&["set-ssl", "/old/key", "/old/cert", "/old/ca"]);
    save(&server, "closed");
    server.nbctl(&["set-connection", &format!("ptcp:{plain}:127.0.0.1")]);
    until("the old port", async || is_open(plain)).await;
    save(&server, "plain");

    let target = format!("ptcp:{port}:127.0.0.1");
    server.nbctl(&["--inactivity-probe=7000", "set-connection", &target, "pssl:6641:127.0.0.1"]);
    server.nbctl(&["set-ssl", "/new/key", "/new/cert", "/new/ca"]);
    until("the new port", async || is_open(port) && !is_open(plain)).await;
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let before = own_rows(&server);
    for (backup, switch) in [("plain", "first"), ("closed", "first"), ("empty", "other"), ("plain", "first")] {
        server.nbctl(&["ls-add", "later"]);
        let said = db(&server, &["restore", "nb", &file(backup)], &address);
        said.has(0, "has the contents of");
        assert_eq!(own_rows(&server), before, "{backup}");
        said.has(0, "Where it listens, and with which certificate (Connection, SSL), stays as it was");
        assert_eq!(server.nbctl(&["--bare", "--columns=name", "list", "Logical_Switch"]).trim(), switch, "{backup}");
        assert!(is_open(port) && !is_open(plain), "{backup}");
    }
    // it has never closed it
    client.write_all(br#"{"id":0,"method":"echo","params":[]}"#).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client.read_exact(&mut [0; 9]).unwrap();
    // nor is the backup changed, or anything left
    assert!(std::fs::read_to_string(dir.file("plain")).unwrap().contains(&format!("ptcp:{plain}")));
    let left = std::fs::read_dir(dir.file("")).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.contains("copy") || name.contains("lock")).collect::<Vec<_>>(), [""; 0]);

    // a server that listens nowhere else opens no port
    let (alone, member) = (listening(), Member::cluster(Release::Host, 1).remove(0));
    insert(&alone, "kept");
    member.nbctl(&["set-connection", &format!("ptcp:{plain}:127.0.0.1")]);
    save(&member, "of-a-cluster");
    member.nbctl(&["del-connection"]);
    for (nowhere, backup) in [(&alone, "plain"), (&member, "of-a-cluster")] {
        db(nowhere, &["restore", "nb", &file(backup)], &nowhere.remote()).has(0, "stays as it was");
        assert_eq!(own_rows(nowhere).map(|rows| rows.trim().to_owned()), [""; 3].map(str::to_owned), "{backup}");
    }
}
