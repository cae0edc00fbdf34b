//! The steps of `ovnkube db` on real servers.

use std::path::Path;

use ovnkube_tests::nb::{Release, until};
use ovnkube_tests::raft::{self, Member};

use crate::db::{addresses, db, told};
use crate::lab::Dir;

const ALL_WELL: &str = "healthy: all 3 members are connected, one may fail";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A cluster as it is made by hand: one creates it, two join.
fn made() -> Vec<Member> {
    let mut members: Vec<Member> = (0..3).map(|_| Member::new(Release::Host)).collect();
    let raft: Vec<String> = members.iter().map(Member::raft).collect();
    let first = members[0].remote();
    db(&members[1], &["join", "nb", &raft[1], &raft[0]], &first).has(2, "no server answers that takes writes");
    db(&members[0], &["bootstrap", "nb", &raft[0]], &first)
        .has(0, "start ovsdb-server: ovn-ctl --db-nb-cluster-local-addr=");
    members[0].start();
    members[0].joined();
    // what a busy machine delays is no reason for another election
    members[0].set_election_timer(&[2000, 4000]);
    db(&members[0], &["bootstrap", "nb", &raft[0]], &first)
        .has(2, "refused: ovsdb-server of the database runs on this host");
    db(&members[1], &["bootstrap", "nb", &raft[1]], &first).has(2, "is in a cluster already; write ovnkube db join nb");
    for at in [1, 2] {
        // the second time, the first join was cut short
        for _ in 0..2 {
            db(&members[at], &["join", "nb", &raft[at], &raft[0]], &first)
                .has(0, "ovnnb_db.db is made; start ovsdb-server");
        }
        members[at].start();
        members[at].joined();
        db(&members[at], &["join", "nb", &raft[at], &raft[0]], &first).has(2, "stop it first");
    }
    members
}

#[tokio::test]
async fn members_come_and_go() {
    let mut members = made();
    let all = addresses(&members);
    told(&members[0], &all, 0, ALL_WELL).await;

    // one dies: nobody else may leave, and its own place can be given up
    let (dead, moved) = (members[2].id(), members[2].raft());
    db(&members[0], &["leave", "nb", &dead], &all).has(2, "is there: it leaves by itself");
    members[2].kill();
    told(&members[0], &all, 2, "one more loss stops writes").await;
    db(&members[1], &["leave", "nb"], &all).has(2, "1 of the 2 other members are connected, and 2 are needed");
    db(&members[0], &["leave", "nb", &members[0].id()], &all).has(2, "is the member on this host");
    db(&members[0], &["leave", "nb", "ffff"], &all).has(2, "ffff is none of the members");

    // its host comes back with another address
    let new = format!("{moved}2");
    db(&members[2], &["join", "nb", &new, &members[0].raft()], &all).has(2, "write ovnkube db replace nb");
    db(&members[2], &["replace", "nb", &moved, &members[0].raft()], &all).has(2, "start ovsdb-server, and it goes on");
    let said = db(&members[2], &["replace", "nb", &new, &members[0].raft()], &all);
    said.has(0, &format!("remove the old one: ovnkube db leave nb {dead}"));
    assert!(members[2].dir().join(format!("ovnnb_db.db.{dead}")).exists());
    members[2].start();
    members[2].joined();
    told(&members[0], &all, 2, "3 of 4 members").await;
    // those of the test have one name for each other: only the leader knows which one is dead
    let leader = members.iter().find(|member| member.is_leader()).unwrap();
    db(leader, &["leave", "nb", &dead], &all).has(0, &format!("member {dead} at {moved} is removed"));
    for member in [&dead, &moved] {
        db(leader, &["leave", "nb", member], &all).has(0, &format!("{member} is no member of the cluster any more"));
    }
    told(&members[0], &all, 0, ALL_WELL).await;
    assert_ne!(members[2].id(), dead);

    // one leaves: a follower does not know whether both others confirm. The last one cannot leave
    let leader = members.iter().position(Member::is_leader).unwrap();
    let (one, other) = ((leader + 1) % 3, (leader + 2) % 3);
    db(&members[one], &["leave", "nb"], &all).has(2, "only the leader knows");
    db(&members[leader], &["leave", "nb"], &all).has(0, "then 2 of 2 members are connected, and none may fail");
    members[leader].kill();
    let both = format!("{},{}", members[one].remote(), members[other].remote());
    told(&members[one], &both, 0, "no member may fail: there are 2").await;
    db(&members[other], &["leave", "nb"], &both).has(0, "then 1 of 1 members are connected");
    told(&members[one], &members[one].remote(), 0, "it is the only one").await;
    db(&members[one], &["leave", "nb"], &both).has(2, "it is the only member: the database would be gone");
}

#[tokio::test]
async fn contents_are_saved_and_brought_back() {
    let (dir, mut members) = (Dir::new(), made());
    let all = addresses(&members);
    let backup = dir.file("backup.db");
    members[1].nbctl(&["ls-add", "kept"]);
    db(&members[1], &["backup", "nb", text(&backup)], &all).has(0, "backup.db");
    db(&members[1], &["backup", "nb", text(&backup)], &all).has(1, "it exists; name another file");
    members[1].nbctl(&["--", "ls-del", "kept", "--", "ls-add", "later"]);

    // what is no backup of it
    let (file, other) = (members[2].file(), dir.file("sb.db"));
    let schema = raft::schema(Release::Host, "ovn-sb.ovsschema");
    raft::run(Release::Host, "ovsdb-tool", &["create".as_ref(), other.as_os_str(), schema.as_os_str()]);
    db(&members[1], &["restore", "nb", text(&file)], &all).has(1, "it is no backup; a file of a cluster's member");
    db(&members[1], &["restore", "nb", text(&other)], &all).has(2, "is of the database OVN_Southbound");
    db(&members[1], &["restore", "nb", "/nowhere"], &all).has(1, "/nowhere");
    assert!(members[1].nbctl(&["ls-list"]).contains("later"));

    db(&members[1], &["restore", "nb", text(&backup)], &all).has(0, "what it had before is in");
    // it is written by the leader, and this member may be a moment behind
    until("the contents of the backup", async || {
        let rows = members[1].nbctl(&["ls-list"]);
        rows.contains("kept") && !rows.contains("later")
    })
    .await;
    let replaced = dir.file("backup.db.replaced");
    assert!(std::fs::read_to_string(&replaced).unwrap().contains("later"));

    for n in 0..50 {
        members[1].nbctl(&["set", "NB_Global", ".", &format!("external_ids:x={n}")]);
    }
    // this member may be a moment behind here, too
    until("the last of them", async || members[1].nbctl(&["get", "NB_Global", ".", "external_ids:x"]).contains("49"))
        .await;
    let before = members[1].file().metadata().unwrap().len();
    db(&members[1], &["compact", "nb"], &all).has(0, "the file had ");
    assert!(members[1].file().metadata().unwrap().len() < before);

    // two are lost: the third still has everything, for a new cluster
    members[0].kill();
    members[2].kill();
    told(&members[1], &all, 2, "no leader, no writes: 1 of 3 members answers").await;
    db(&members[1], &["leave", "nb", &members[2].id()], &all).has(2, "there is no leader, so no member can be removed");
    db(&members[1], &["restore", "nb", text(&backup)], &all).has(2, "no server answers that takes writes");
    let rescue = dir.file("rescue.db");
    db(&members[1], &["backup", "nb", text(&rescue)], &all).has(0, "there is no leader: the backup has what");
    let mut fresh = Member::new(Release::Host);
    db(&fresh, &["bootstrap", "nb", &fresh.raft(), text(&rescue)], &fresh.remote()).has(0, "is made; start");
    fresh.start();
    fresh.joined();
    assert!(fresh.nbctl(&["ls-list"]).contains("kept"));
}

#[tokio::test]
async fn a_single_server_becomes_a_cluster_and_gets_a_newer_schema() {
    let mut member = Member::alone(Release::Host, &[]);
    let address = member.remote();
    member.nbctl(&["ls-add", "kept"]);
    db(&member, &["leave", "nb"], &address).has(2, "is in no cluster: stop it with ovn-ctl");
    db(&member, &["bootstrap", "nb", &member.raft()], &address).has(2, "stop it first");
    member.kill();
    db(&member, &["join", "nb", &member.raft(), "unix:/nowhere"], &address).has(2, "joining would lose its contents");
    db(&member, &["bootstrap", "nb", &member.raft(), text(&member.file())], &address).has(2, "would get another one");
    db(&member, &["bootstrap", "nb", &member.raft()], &address).has(0, "ovnnb_db.db.alone");
    member.start();
    member.joined();
    assert!(member.nbctl(&["ls-list"]).contains("kept"));

    let schema = |release| raft::schema(release, "ovn-nb.ovsschema");
    let (older, newer) = (schema(Release::Host), schema(Release::Lts));
    db(&member, &["convert", "nb"], &address).has(0, "already");
    db(&member, &["convert", "nb", text(&newer)], &address).has(0, "OVN_Northbound has the schema 7.");
    db(&member, &["convert", "nb", text(&older)], &address).has(2, "7.0.0 is older: tables and columns would be lost");
    assert!(member.nbctl(&["ls-list"]).contains("kept"));
    let south = raft::schema(Release::Host, "ovn-sb.ovsschema");
    db(&member, &["convert", "nb", text(&south)], &address).has(2, "is of the database OVN_Southbound");
    db(&member, &["convert", "nb", "/nowhere"], &address).has(1, "cannot read the schema /nowhere");
}
