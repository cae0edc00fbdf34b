//! What an agent keeps: which files it can use, when it renews them, and what stays when one cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::dir::fresh_dir;
use crate::kept::{Validity, pause, read};
use crate::store;

/// A certificate for ten days, with its key.
fn pem(subject: &str) -> String {
    let dir = fresh_dir("ovnkube-kept");
    let args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "10"];
    let files = ["-keyout", "key", "-out", "crt", "-subj", subject];
    let out = Command::new("openssl").current_dir(&dir).args(args).args(files).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = |name| fs::read_to_string(dir.join(name)).unwrap();
    let both = text("crt") + &text("key");
    fs::remove_dir_all(&dir).unwrap();
    both
}

fn of_agent(node: &str) -> String {
    pem(&format!("/O=system:ovn-nodes/CN=system:ovn-node:{node}"))
}

fn parts(pem: &str) -> (&str, &str) {
    pem.split_at(pem.find("-----BEGIN PRIVATE KEY").unwrap())
}

#[test]
fn only_the_certificate_of_this_node_with_its_key_is_used() {
    let own = of_agent("own");
    let validity = read(own.as_bytes(), "own").unwrap();
    let days = validity.not_after.duration_since(validity.not_before).unwrap().as_secs() / 86400;
    assert_eq!(days, 10);
    assert_eq!(validity.fault(SystemTime::now()), None);

    let (certificate, key) = parts(&own);
    let another = of_agent("own");
    let strange = pem("/O=system:ovn-nodes/O=system:masters/CN=system:ovn-node:own");
    let cases = [
        (String::new(), "there is no certificate in it"),
        ("garbage".to_owned(), "there is no certificate in it"),
        ("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n".to_owned(), "it is not PEM"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(), "its certificate cannot be read"),
        (certificate.to_owned(), "there is no private key in it"),
        (key.to_owned(), "there is no certificate in it"),
        (format!("{certificate}{}", parts(&another).1), "its key is not that of its certificate"),
        (of_agent("other"), "it is that of CN=system:ovn-node:other, O=system:ovn-nodes, not of the agent of node own"),
        (strange, "not of the agent of node own"),
        (pem("/CN=somebody"), "it is that of CN=somebody"),
    ];
    for (pem, why) in cases {
        let said = read(pem.as_bytes(), "own").unwrap_err();
        assert!(said.contains(why), "{said:?}, not {why:?}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let own = of_agent("own").into_bytes();
    bolero::check!().with_type::<Vec<(u16, u8)>>().for_each(|changes| {
        let mut pem = own.clone();
        for (at, byte) in changes {
            let at = usize::from(*at) % pem.len();
            pem[at] = *byte;
        }
        let _ = read(&pem, "own");
    });
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn it_is_renewed_long_before_its_end() {
    let validity = Validity { not_before: at(1000), not_after: at(2000) };
    let cases = [
        // stored when it began, earliest, latest
        (1000, 0.0, 1700),
        (1000, 1.0, 1900),
        (1000, 0.5, 1800),
        // dated back
        (1500, 0.0, 1850),
        (1500, 1.0, 1950),
        // the clock of this host is behind: it still ends after 1,000 s
        (900, 0.0, 1600),
        (10, 0.0, 710),
        (10, 1.0, 910),
        // a time that makes no sense
        (5000, 0.0, 1700),
        (1000, -3.0, 1700),
        (1000, 7.0, 1900),
    ];
    for (stored, random, expected) in cases {
        assert_eq!(validity.renew_at(at(stored), random), at(expected), "{stored} {random}");
    }
    let reversed = Validity { not_before: at(2000), not_after: at(1000) };
    assert_eq!(reversed.renew_at(at(1), 0.5), at(1));
    assert_eq!(reversed.renew_at(at(1500), 0.5), at(2000));

    assert_eq!(validity.fault(at(1000)), None);
    assert_eq!(validity.fault(at(1999)), None);
    assert!(validity.fault(at(2003)).unwrap().contains("expired 3 s ago"));
    assert_eq!(validity.fault(at(2000)).unwrap(), "it expired 0 s ago");
    // the clock of this host is behind
    assert_eq!(validity.fault(at(997)), None);
    assert_eq!(validity.behind(at(997)), Some(Duration::from_secs(3)));
    assert_eq!([1000, 1001, 2003].map(|now| validity.behind(at(now))), [None; 3]);
}

#[test]
fn pauses_grow_to_a_bound() {
    let seconds = [0, 1, 2, 3, 4, 5, 6, 7, u32::MAX].map(|failures| pause(failures).as_secs());
    assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 30, 30, 30]);
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn kept(dir: &Path) -> Option<Vec<u8>> {
    store::read(dir).unwrap().map(|(pem, _)| pem)
}

#[test]
fn the_newest_file_is_linked_and_the_others_go() {
    let dir = fresh_dir("ovnkube-kept");
    let certificates = dir.join("a/b");
    assert_eq!(kept(&certificates), None);
    store::write(&certificates, b"first").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&certificates), mode(&store::current(&certificates))), (0o700, 0o600));
    assert_eq!(kept(&certificates).unwrap(), b"first");

    // what earlier runs and crashes left
    for name in
        ["ovnkube-client-2020-01-01-00-00-00.pem", "ovnkube-client-updated.pem", ".ovnkube-client-new", "other.pem"]
    {
        fs::write(certificates.join(name), "old").unwrap();
    }
    // the name has the millisecond
    std::thread::sleep(std::time::Duration::from_millis(2));
    store::write(&certificates, b"second").unwrap();
    assert_eq!(kept(&certificates).unwrap(), b"second");
    let left = names(&certificates);
    let to = fs::read_link(store::current(&certificates)).unwrap();
    assert_eq!(left, ["other.pem", to.to_str().unwrap(), "ovnkube-client-current.pem"]);
    assert_eq!(mode(&certificates.join(to)), 0o600);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_old_one() {
    let dir = fresh_dir("ovnkube-kept");
    store::write(&dir, b"first").unwrap();
    let before = names(&dir);
    // root may write everywhere, but no file where a directory is
    fs::create_dir(dir.join(".ovnkube-client-new")).unwrap();
    store::write(&dir, b"second").unwrap_err();
    fs::remove_dir(dir.join(".ovnkube-client-new")).unwrap();
    assert_eq!((kept(&dir).unwrap(), names(&dir)), (b"first".to_vec(), before.clone()));
    fs::create_dir(dir.join("ovnkube-client-updated.pem")).unwrap();
    store::write(&dir, b"third").unwrap_err();
    assert_eq!(kept(&dir).unwrap(), b"first");
    fs::remove_dir_all(&dir).unwrap();

    let file = fresh_dir("ovnkube-kept").join("file");
    fs::write(&file, "").unwrap();
    store::write(&file, b"x").unwrap_err();
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn a_second_file_of_one_moment_does_not_replace_the_first() {
    let dir = fresh_dir("ovnkube-kept");
    let name = "ovnkube-client-2020-01-01-00-00-00-000.pem";
    store::keep(&dir, name, b"first").unwrap();
    let before = names(&dir);
    assert_eq!(store::keep(&dir, name, b"second").unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!((kept(&dir).unwrap(), names(&dir)), (b"first".to_vec(), before));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_directory_or_a_huge_file_is_not_read() {
    let dir = fresh_dir("ovnkube-kept");
    fs::create_dir(store::current(&dir)).unwrap();
    assert!(store::read(&dir).unwrap_err().to_string().contains("not a regular file"));
    fs::remove_dir(store::current(&dir)).unwrap();
    fs::File::create(store::current(&dir)).unwrap().set_len(2 * 1024 * 1024).unwrap();
    assert!(store::read(&dir).unwrap_err().to_string().contains("sensible size"));
    fs::remove_dir_all(&dir).unwrap();
}
