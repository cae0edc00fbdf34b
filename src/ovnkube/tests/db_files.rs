//! `ovnkube db` and the files that are there already.

use std::path::Path;
use std::process::Command;

use ovnkube_tests::nb::Release;
use ovnkube_tests::raft::{self, Member};

use crate::db::{addresses, db, told};
use crate::db_disk::Small;
use crate::lab::Dir;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The names in a directory that have this in them.
fn names(dir: &Path, part: &str) -> Vec<String> {
    let all = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = all.filter(|name| name.contains(part)).collect();
    names.sort();
    names
}

#[test]
fn the_file_of_another_cluster_is_not_used() {
    let old = Member::cluster(Release::Host, 1).remove(0);
    let kept = old.dir().join("kept");
    std::fs::copy(old.file(), &kept).unwrap();
    let new = Member::cluster(Release::Host, 1).remove(0);
    let here = Member::new(Release::Host);
    std::fs::copy(&kept, here.file()).unwrap();
    let (own, other) = (old.raft(), here.raft());
    let problem = format!("is that of a member of another cluster, {}: {} is in", old.cluster_id(), new.remote());
    for words in [
        vec!["join", "nb", &own, &new.raft()],
        vec!["join", "nb", &other, &new.raft()],
        vec!["replace", "nb", &other, &new.raft()],
        vec!["bootstrap", "nb", &own],
    ] {
        db(&here, &words, &new.remote()).has(2, &problem);
    }
    db(&here, &["join", "nb", &own, &new.raft()], "unix:/nowhere").has(2, "start ovsdb-server, and it goes on");
    assert_eq!(std::fs::read(&kept).unwrap(), std::fs::read(here.file()).unwrap());

    // one that was made to join and was never used
    std::fs::remove_file(here.file()).unwrap();
    db(&here, &["join", "nb", &other, &new.raft()], &new.remote()).has(0, "is made");
    let said = db(&here, &["bootstrap", "nb", &other], "unix:/nowhere");
    said.has(2, "was made to join a cluster, and has no contents; move it away");
}

#[test]
fn a_file_whose_end_is_lost_is_that_of_a_member() {
    let mut member = Member::cluster(Release::Host, 1).remove(0);
    member.nbctl(&["ls-add", "kept"]);
    member.kill();
    let cut = |member: &Member, bytes: u64| {
        let file = std::fs::File::options().write(true).open(member.file()).unwrap();
        file.set_len(member.file().metadata().unwrap().len() - bytes).unwrap();
    };
    cut(&member, 7);
    let log = Command::new("ovsdb-tool").arg("show-log").arg(member.file()).output().unwrap();
    assert!(!log.status.success());
    let own = member.raft();
    db(&member, &["join", "nb", &own, "unix:/nowhere"], "unix:/nowhere").has(2, "that of a member already");
    db(&member, &["bootstrap", "nb", &own], "unix:/nowhere").has(2, "start ovsdb-server, and it goes on");
    let new = format!("{own}2");
    db(&member, &["replace", "nb", &new, &own], "unix:/nowhere").has(2, "no server answers");
    // it goes on
    member.start();
    member.joined();
    member.kill();
    // only its first record is whole: others were there
    std::fs::remove_file(member.file()).unwrap();
    member.create_cluster();
    let first = std::fs::read(member.file()).unwrap();
    std::fs::write(member.file(), [&first[..], b"OVSDB CLUSTER 100 0123456789"].concat()).unwrap();
    db(&member, &["bootstrap", "nb", &own], "unix:/nowhere").has(2, "start ovsdb-server, and it goes on");
}

#[test]
fn a_link_is_followed_and_never_replaced() {
    let (here, disk) = (Member::new(Release::Host), Dir::new());
    let (file, behind) = (here.file(), disk.file("nb.db"));
    std::os::unix::fs::symlink(&behind, &file).unwrap();
    let bootstrap = || db(&here, &["bootstrap", "nb", &here.raft()], "unix:/nowhere");
    bootstrap().has(2, "is a link that leads nowhere");
    assert!(file.is_symlink() && !file.exists());
    // its disk is mounted
    let schema = raft::schema(Release::Host, "ovn-nb.ovsschema");
    raft::run(Release::Host, "ovsdb-tool", &["create".as_ref(), behind.as_os_str(), schema.as_os_str()]);
    bootstrap().has(0, &format!("{} is made, and the old one is {}.alone", behind.display(), behind.display()));
    assert!(file.is_symlink());
    assert_eq!(names(here.dir(), ".alone"), [] as [String; 0]);
    bootstrap().has(0, "is made already");
}

#[test]
fn no_file_of_others_is_lost() {
    let (member, dir) = (Member::alone(Release::Host, &[]), Dir::new());
    let address = member.remote();
    member.nbctl(&["ls-add", "a"]);
    let backup = dir.file("backup");
    let own = dir.file("backup.new");
    std::fs::write(&own, "own").unwrap();
    db(&member, &["backup", "nb", text(&backup)], &address).has(0, "are in");
    db(&member, &["backup", "nb", text(&own)], &address).has(1, "it exists; name another file");
    // a link that leads nowhere is a name too
    let link = dir.file("link");
    std::os::unix::fs::symlink("/nowhere/file", &link).unwrap();
    db(&member, &["backup", "nb", text(&link)], &address).has(1, "it exists; name another file");
    // once more, as after a restore that was cut short
    for replaced in ["backup.replaced", "backup.replaced.2", "backup.replaced.3"] {
        let said = db(&member, &["restore", "nb", text(&backup)], &address);
        said.has(0, &format!("what it had before is in {}.", dir.file(replaced).display()));
    }
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "own");
    assert_eq!(
        names(backup.parent().unwrap(), "backup"),
        ["backup", "backup.new", "backup.replaced", "backup.replaced.2", "backup.replaced.3"]
    );
    // a server that no address names is not used
    let other = dir.file("other");
    db(&member, &["backup", "nb", text(&other)], "tcp:127.0.0.1:1").has(2, "is not known to be one of these");
    db(&member, &["restore", "nb", text(&backup)], "tcp:127.0.0.1:1").has(2, "is not known to be one of these");
    assert!(!other.exists());
    let said = db(&member, &["status", "nb"], "tcp:127.0.0.1:1");
    said.has(2, &format!("tcp:127.0.0.1:1; the server on this host, {address}, is not known to be one of these"));
}

/// All but the last block fits: ovsdb-client writes that one when it ends, and says nothing.
#[test]
fn a_backup_that_a_full_disk_cut_off_is_none() {
    let (member, dir) = (Member::alone(Release::Host, &[]), Dir::new());
    let address = member.remote();
    member.nbctl(&["set", "NB_Global", ".", &format!("external_ids:x={}", "x".repeat(9000))]);
    let whole = dir.file("whole");
    db(&member, &["backup", "nb", text(&whole)], &address).has(0, "are in");
    let size = usize::try_from(whole.metadata().unwrap().len()).unwrap();
    let disk = dir.file("disk");
    std::fs::create_dir(&disk).unwrap();
    let small = Small::new(&disk, 1000);
    small.fill(size / 4096 * 4096);
    let backup = disk.join("backup");
    let said = db(&member, &["backup", "nb", text(&backup)], &address);
    said.has(1, "cannot back up OVN_Northbound to");
    said.has(1, "what was written is not complete");
    assert_eq!(names(&disk, "backup"), [] as [String; 0]);
    small.make_room();
    db(&member, &["backup", "nb", text(&backup)], &address).has(0, "are in");
    assert_eq!(names(&disk, "backup"), ["backup"]);
}

#[tokio::test]
async fn to_leave_once_more_says_that_it_is_done() {
    let mut members = Member::cluster(Release::Host, 3);
    let all = addresses(&members);
    told(&members[0], &all, 0, "healthy").await;
    // of three, the leader may leave
    let at = members.iter().position(Member::is_leader).unwrap();
    let other = (at + 1) % 3;
    // what a busy machine delays is no reason for another election
    members[at].set_election_timer(&[2000, 4000]);
    db(&members[at], &["leave", "nb"], &all).has(0, "this host's member has left its cluster");
    db(&members[at], &["leave", "nb"], &all).has(0, "this host's member has left its cluster");
    members[at].kill();
    db(&members[at], &["leave", "nb"], &all).has(0, "stop ovsdb-server and remove its file");
    // the others elect one
    let two = format!("{},{}", members[other].remote(), members[(at + 2) % 3].remote());
    told(&members[other], &two, 0, "there are 2").await;
    // its file is no obstacle to join again
    let (own, first) = (members[at].raft(), members[other].raft());
    db(&members[at], &["replace", "nb", &format!("{own}2"), &first], &all).has(2, "that has left its cluster, and no");
    db(&members[at], &["bootstrap", "nb", &own], &all)
        .has(2, "no server can use it; move it away, or write ovnkube db join");
    let left = members[at].file().display().to_string() + ".left";
    db(&members[at], &["join", "nb", &own, &first], &all)
        .has(0, &format!("that of the member that has left is {left}"));
    db(&members[at], &["join", "nb", &own, &first], &all).has(0, "is made; start ovsdb-server");
    members[at].start();
    members[at].joined();
    told(&members[other], &all, 0, "healthy").await;
    // of another host, it is not known
    let elsewhere = Member::new(Release::Host);
    db(&elsewhere, &["leave", "nb"], &all).has(2, "no ovsdb-server of the database runs on this host");
    members[other].control(&["ovsdb-server/remove-db", "OVN_Northbound"]);
    db(&members[other], &["leave", "nb"], &all).has(2, "runs on this host without the database OVN_Northbound");
}
