//! `ovnkube db` is killed between any two of its steps, and run again.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use ovnkube_tests::nb::Release;
use ovnkube_tests::raft::Member;

use crate::db::{Said, addresses, command, db, said, told};
use crate::lab::Dir;

/// What changes names of files, and what makes contents last.
const CALLS: [&str; 4] = ["?link,?linkat", "?rename,?renameat,?renameat2", "fsync", "?unlink,?unlinkat"];

/// Runs a command and kills it, or a program that it runs, when it makes one of these system calls for the n-th time: each process counts
/// its own. Nothing if none makes so many.
fn cut(whole: &Command, calls: &str, nth: usize) -> Option<Said> {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
    command
        .args(["-e", &format!("inject={calls}:signal=KILL:when={nth}")])
        .arg(whole.get_program())
        .args(whole.get_args());
    for (name, value) in whole.get_envs() {
        command.env(name, value.unwrap());
    }
    Some(said(&mut command)).filter(|said| said.code != 0)
}

/// Kills the command at each step of another host, and runs it again; what the host has then is checked.
fn each(
    prepared: impl Fn() -> Member,
    words: impl Fn(&Member) -> Vec<String>,
    addresses: &str,
    check: impl Fn(&mut Member),
) {
    let mut cuts = 0;
    for calls in CALLS {
        for nth in 1..6 {
            let mut here = prepared();
            let words = words(&here);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let Some(was) = cut(&command(&here, &words, addresses), calls, nth) else { break };
            cuts += 1;
            // the file has its old contents or the new ones, never a part
            if here.file().exists() {
                let whole = Command::new("ovsdb-tool").arg("show-log").arg(here.file()).output().unwrap();
                assert!(whole.status.success(), "{calls} {nth}: {whole:?}");
            }
            let again = db(&here, &words, addresses);
            assert!(again.code == 0, "{calls} {nth}: {} {}\nbefore: {} {}", again.out, again.err, was.out, was.err);
            check(&mut here);
        }
    }
    assert!(cuts >= 4, "{cuts}: nothing was cut");
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn a_cluster_that_is_made_of_the_file_of_a_server() {
    let prepared = || {
        let mut member = Member::alone(Release::Host, &[]);
        member.nbctl(&["ls-add", "kept"]);
        member.kill();
        member
    };
    let own = |here: &Member| strings(&["bootstrap", "nb", &here.raft()]);
    // the address of nobody: a unix socket is taken for this host's
    each(prepared, own, "unix:/nowhere", |here| {
        assert!(here.dir().join("ovnnb_db.db.alone").exists());
        here.start();
        here.joined();
        assert!(here.nbctl(&["ls-list"]).contains("kept"));
        here.kill();
        // now it is a member with a life
        db(here, &["bootstrap", "nb", &here.raft()], "unix:/nowhere").has(2, "start ovsdb-server, and it goes on");
    });
}

#[test]
fn a_cluster_that_is_made_of_a_backup() {
    let (source, dir) = (Member::alone(Release::Host, &[]), Dir::new());
    source.nbctl(&["ls-add", "kept"]);
    let backup = dir.file("backup");
    let path: &Path = &backup;
    db(&source, &["backup", "nb", path.to_str().unwrap()], &source.remote()).has(0, "are in");
    let words = |here: &Member| strings(&["bootstrap", "nb", &here.raft(), path.to_str().unwrap()]);
    each(
        || Member::new(Release::Host),
        words,
        "unix:/nowhere",
        |here| {
            // once more is the same
            let words = words(here);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            db(here, &words, "unix:/nowhere").has(0, "is made; start ovsdb-server");
            db(here, &words[..3], "unix:/nowhere").has(0, "is made already; start ovsdb-server");
            here.start();
            here.joined();
            assert!(here.nbctl(&["ls-list"]).contains("kept"));
        },
    );
}

#[tokio::test]
async fn a_member_that_moves() {
    let members = Member::cluster(Release::Host, 2);
    let all = addresses(&members);
    let first = members[0].raft();
    let prepared = || {
        let mut member = Member::new(Release::Host);
        db(&member, &["join", "nb", &member.raft(), &first], &all).has(0, "is made");
        member.start();
        member.joined();
        member.kill();
        // it does not count for the majority
        let id = member.id();
        members[0].control(&["cluster/kick", "OVN_Northbound", &id]);
        member
    };
    let moved = |here: &Member| strings(&["replace", "nb", &format!("{}2", here.raft()), &first]);
    each(prepared, moved, &all, |here| {
        let kept: Vec<_> = std::fs::read_dir(here.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.len() == "ovnnb_db.db.abcd".len() && name.starts_with("ovnnb_db.db."))
            .filter(|name| name.strip_suffix(".new").is_none())
            .collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        // once more is the same
        let words = moved(here);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let old = kept[0].rsplit_once('.').unwrap().1;
        db(here, &words, &all).has(0, &format!("remove the old one: ovnkube db leave nb {old}"));
    });
    told(&members[0], &all, 0, "takes writes, but no member may fail: there are 2").await;
}

/// The programs of a directory in their names: they kill the command that started one of them, before or after the program itself.
const KILLS: &str = r#"#!/bin/sh
dir=${0%/*} PATH=${PATH#*:}
moment() {
  n=$(($(cat "$dir/moments") + 1))
  echo $n >"$dir/moments"
  [ $n != "$(cat "$dir/last")" ] || { kill -KILL $PPID; exit; }
}
moment
"${0##*/}" "$@"
code=$?
moment
exit $code
"#;

/// Runs a command and kills it before or after a program that it runs: at the moment of this number. Nothing if there are fewer.
fn cut_between_programs(whole: &mut Command, last: usize) -> Option<Said> {
    let dir = Dir::new();
    for name in ["ovsdb-client", "ovsdb-tool"] {
        std::fs::write(dir.file(name), KILLS).unwrap();
        std::fs::set_permissions(dir.file(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::fs::write(dir.file("moments"), "0").unwrap();
    std::fs::write(dir.file("last"), last.to_string()).unwrap();
    let path = std::env::var("PATH").unwrap();
    whole.env("PATH", format!("{}:{path}", dir.file("moments").parent().unwrap().display()));
    Some(said(whole)).filter(|said| said.code != 0)
}

/// The server has its port at every moment: there is one transaction.
#[test]
fn a_restore_that_is_killed_leaves_the_server_where_it_listens() {
    let (server, dir) = (Member::alone(Release::Host, &[]), Dir::new());
    let (address, backup) = (server.remote(), dir.file("backup"));
    let path: &Path = &backup;
    let words = ["restore", "nb", path.to_str().unwrap()];
    server.nbctl(&["--", "ls-add", "of-the-backup", "--", "set-connection", "ptcp:6641:127.0.0.1"]);
    db(&server, &["backup", "nb", path.to_str().unwrap()], &address).has(0, "are in");
    server.nbctl(&["--", "set-connection", "pssl:6641:127.0.0.1", "--", "set-ssl", "/key", "/cert", "/ca"]);
    let own = || (server.nbctl(&["get-connection"]), server.nbctl(&["get-ssl"]));
    let before = own();
    let mut seen = Vec::new();
    for last in 1.. {
        server.nbctl(&["--may-exist", "ls-add", "later"]);
        let Some(was) = cut_between_programs(&mut command(&server, &words, &address), last) else { break };
        // by a signal, and not for another reason
        assert_eq!(was.code, -1, "{last}: {} {}", was.out, was.err);
        assert_eq!(own(), before, "{last}: {} {}", was.out, was.err);
        // all, or nothing
        let rows = server.nbctl(&["ls-list"]);
        let all = rows.contains("of-the-backup") && rows.lines().count() == 1;
        assert!(all || rows.contains("later"), "{last}: {rows}");
        seen.push(all);
    }
    // the last moment is the one after the program that restores
    assert!(seen.pop() == Some(true) && !seen.is_empty() && !seen.contains(&true), "{seen:?}");
    db(&server, &words, &address).has(0, "stays as it was");
    assert_eq!((own(), server.nbctl(&["ls-list"]).contains("later")), (before, false));
}
