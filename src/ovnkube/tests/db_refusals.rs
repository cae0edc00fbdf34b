//! What `ovnkube db` refuses of real clusters and pairs, or warns of.

use ovnkube_tests::nb::{Release, until};
use ovnkube_tests::raft::Member;

use crate::db::{addresses, db, told};

#[tokio::test]
async fn nobody_leaves_a_cluster_without_a_leader() {
    let mut members = Member::cluster(Release::Host, 5);
    let all = addresses(&members);
    told(&members[0], &all, 0, "healthy: all 5 members are connected, 2 may fail").await;
    let leader = members.iter().position(Member::is_leader).unwrap();
    // for so long the others believe that it is there
    members[leader].set_election_timer(&[2000, 4000, 8000, 16_000, 32_000, 60_000]);
    members[leader].kill();
    let (here, lost) = (&members[(leader + 1) % 5], members[leader].remote());
    let status = here.control(&["cluster/status", "OVN_Northbound"]);
    assert!(status.contains("Status: cluster member"), "{status}");
    let said = db(here, &["leave", "nb"], &all);
    said.has(
        2,
        &format!("the cluster has no leader, so nobody can agree that this member leaves. Look at {lost} first"),
    );
    let status = here.control(&["cluster/status", "OVN_Northbound"]);
    assert!(status.contains("Status: cluster member"), "it leaves: {status}");
    // of the addresses of two, it is not known that there is a majority
    let two = format!("{},{}", here.remote(), members[(leader + 2) % 5].remote());
    db(here, &["leave", "nb"], &two).has(2, "first: start ovsdb-server there");
}

#[tokio::test]
async fn no_member_is_removed_that_lives_and_was_not_asked() {
    let mut members = Member::cluster(Release::Host, 3);
    let leader = members.iter().position(Member::is_leader).unwrap();
    let (here, third) = ((leader + 1) % 3, (leader + 2) % 3);
    let two = format!("{},{}", members[leader].remote(), members[here].remote());
    let (first, old) = (members[leader].raft(), members[third].id());
    let all = addresses(&members);
    told(&members[here], &all, 0, "healthy").await;
    let remove = |id: &str, addresses: &str| db(&members[here], &["leave", "nb", id], addresses);
    remove(&old, &two).has(2, "is there: it leaves by itself");

    // it lost its file, and joins again at its old address: both seem to accept connections there
    members[third].kill();
    std::fs::remove_file(members[third].file()).unwrap();
    let own = members[third].raft();
    db(&members[third], &["join", "nb", &own, &first], &two).has(0, "is made");
    members[third].start();
    members[third].joined();
    let new = members[third].id();
    told(&members[here], &all, 2, &format!("member {old} has the address of another one")).await;
    let remove = |id: &str, addresses: &str| db(&members[here], &["leave", "nb", id], addresses);
    remove(&new, &two).has(2, "is there");
    remove(&old, &all).has(0, &format!("member {old} at {own} is removed"));

    // it is down: of unix sockets, the server does not tell which one is
    members[third].kill();
    let remove = |id: &str, addresses: &str| db(&members[here], &["leave", "nb", id], addresses);
    until("the end of its connection", async || {
        remove(&new, &two).err.contains("it was not asked; give its address too, with --nb-address")
    })
    .await;
    remove(&new, &all).has(0, "then 2 of 2 members are connected, and none may fail");
}

#[test]
fn no_cluster_is_made_where_others_cannot_join() {
    let here = Member::new(Release::Host);
    let clients = "tcp:127.0.0.1:1";
    for (local, clients, problem) in [
        (
            "tcp:0.0.0.0:6643",
            clients,
            "tcp:0.0.0.0:6643 is no address that a member can be reached at; write an address of this",
        ),
        ("ssl:[::]:6643", clients, "is no address that a member can be reached at"),
        ("tcp:127.0.0.1:6643", "tcp:10.255.255.1:6641", "tcp:127.0.0.1:6643 leads every host to itself"),
    ] {
        db(&here, &["bootstrap", "nb", local], clients).has(2, problem);
        assert!(!here.file().exists());
    }
    // without the addresses of the others, it is not known whether they have a cluster
    let run_dir = format!("--nb-run-dir={}", here.dir().display());
    let location = format!("--nb-db-location={}", here.file().display());
    let config = here.dir().join("ovn_k8s.conf");
    std::fs::write(&config, "").unwrap();
    let config = format!("--config-file={}", config.display());
    let out = crate::process::ovnkube(["db", "bootstrap", "nb", "tcp:10.0.0.1:6643", &run_dir, &location, &config]);
    let out = { out }.output().unwrap();
    let error = String::from_utf8(out.stderr).unwrap();
    let problem = "no address of the database is given, so nobody was asked whether there is a cluster already";
    assert!(out.status.code() == Some(2) && error.contains(problem), "{error}");
    assert!(!here.file().exists());
}

#[tokio::test]
async fn tables_that_a_backup_does_not_copy() {
    let active = Member::alone(Release::Host, &[]);
    active.nbctl(&["--", "ls-add", "s", "--", "acl-add", "s", "to-lport", "1", "ip4", "drop"]);
    active.nbctl(&["create", "Address_Set", "name=a"]);
    let from = format!("--sync-from={}", active.remote());
    let backup =
        Member::alone(Release::Host, &[&from, "--sync-exclude-tables=OVN_Northbound:Address_Set,OVN_Northbound:SSL"]);
    let both = format!("{},{}", active.remote(), backup.remote());
    let said = told(&backup, &both, 2, "the backup on this host does not copy Address_Set").await;
    let copies = format!("backup, takes no writes, copies {} without Address_Set, SSL", active.remote());
    assert!(said.out.contains(&copies) && said.out.contains("leave --sync-exclude-tables out"), "{}", said.out);
    assert!(backup.nbctl(&["acl-list", "s"]).contains("ip4"));
    assert_eq!(backup.nbctl(&["--bare", "--columns=name", "list", "Address_Set"]).trim(), "");
    // on another host it cannot be seen
    told(&active, &both, 0, "is active, 1 copy it").await;
    // as it says
    backup.control(&["ovsdb-server/set-sync-exclude-tables", ""]);
    let healthy = format!("healthy: {} is active, 1 copy it", active.remote());
    let said = told(&backup, &both, 0, &healthy).await;
    assert!(!said.out.contains("without"), "{}", said.out);
    assert_eq!(backup.nbctl(&["--bare", "--columns=name", "list", "Address_Set"]).trim(), "a");
}
