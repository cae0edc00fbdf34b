//! Backups that are damaged, or have another schema.

use std::path::PathBuf;

use ovnkube_tests::nb::Release;
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
    assert!(left.iter().all(|name| !name.contains("schema") && !name.contains("converted")), "{left:?}");
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
