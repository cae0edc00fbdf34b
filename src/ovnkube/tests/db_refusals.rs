//! What `ovnkube db` refuses of real clusters and pairs, or warns of.

use std::path::Path;
use std::process::Command;

use ovnkube_tests::nb::{Release, until};
use ovnkube_tests::raft::Member;

use crate::db::{Said, addresses, command, db, said, told};
use crate::lab::Dir;

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

/// A port of this process, at an address of its own.
fn free() -> String {
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let host = format!("127.{}.{b}.{c}", a | 128);
    std::net::TcpListener::bind((host, 0)).unwrap().local_addr().unwrap().to_string()
}

#[test]
fn members_talk_as_clients_do_and_at_another_port() {
    let here = Member::new(Release::Host);
    for (local, clients, problem) in [
        (
            "tcp:127.0.0.1:6643",
            "ssl:127.0.0.1:1",
            "tcp:127.0.0.1:6643 is plain TCP, and clients use TLS (ssl:127.0.0.1:1): what members send each other could be read and \
             changed on its way; write ssl:127.0.0.1:6643",
        ),
        (
            "ssl:127.0.0.1:6643",
            "tcp:127.0.0.1:1",
            "ssl:127.0.0.1:6643 is TLS, and nobody is known to use it, but tcp:127.0.0.1:1 is plain TCP",
        ),
        (
            "tcp:127.0.0.1:6641",
            "tcp:127.0.0.1:1",
            "tcp:127.0.0.1:6641 has the port 6641, at which clients connect; write another one, such as tcp:127.0.0.1:6643",
        ),
        ("tcp:127.0.0.1:1", "tcp:127.0.0.1:1", "tcp:127.0.0.1:1 has the port 1, at which clients connect"),
    ] {
        db(&here, &["bootstrap", "nb", local], clients).has(2, problem);
        assert!(!here.file().exists(), "{local} {clients}");
    }
    // as one would join: its members are at a unix socket, its clients are not
    let first = Member::cluster(Release::Host, 1).remove(0);
    let at = free();
    let (host, port) = at.rsplit_once(':').unwrap();
    first.control(&["ovsdb-server/add-remote", &format!("ptcp:{port}:{host}")]);
    let clients = format!("tcp:{at}");
    for (local, members, problem) in [
        (format!("ssl:{host}:6643"), None, "is TLS, and nobody is known to use it"),
        (format!("tcp:{host}:6642"), None, "has the port 6642, at which clients connect"),
        (clients.clone(), None, "at which clients connect; write another one"),
        (format!("tcp:{host}:6643"), Some(&*clients), "at which clients connect, and not other members"),
        (format!("tcp:{host}:6643"), Some("ssl:10.0.0.1:6643"), "and members use TLS (ssl:10.0.0.1:6643)"),
    ] {
        let words = ["join", "nb", &local].into_iter().chain(members).collect::<Vec<_>>();
        db(&here, &words, &clients).has(2, problem);
        assert!(!here.file().exists(), "{local} {members:?}");
    }
    db(&here, &["join", "nb", &format!("tcp:{host}:6643"), &first.raft()], &clients).has(0, "is made");
}

/// It would join all the same, and the others would look for it elsewhere.
#[test]
fn a_member_has_an_address_of_its_host() {
    let (first, here) = (Member::cluster(Release::Host, 1).remove(0), Member::new(Release::Host));
    let other = "tcp:198.51.100.7:6643";
    let problem = "198.51.100.7 is no address of this host, and its ovsdb-server could not listen there";
    db(&here, &["join", "nb", other, &first.raft()], &first.remote()).has(2, problem);
    db(&here, &["bootstrap", "nb", other], "unix:/nowhere").has(2, problem);
    assert!(!here.file().exists());
    db(&here, &["join", "nb", &format!("tcp:{}", free()), &first.raft()], &first.remote()).has(0, "is made");
}

fn issue(dir: &Path, words: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/tls/issue");
    let out = Command::new(script).current_dir(dir).args(words).output().unwrap();
    assert!(out.status.success(), "issue {words:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// A host with certificates, whose server has stopped and left no file.
fn with_tls(keys: &[String; 3]) -> Member {
    let mut member = Member::alone(Release::Host, &keys.each_ref().map(String::as_str));
    member.kill();
    std::fs::remove_file(member.file()).unwrap();
    member
}

/// The one way from plain TCP to TLS: the members that are there keep their addresses.
#[tokio::test]
async fn a_cluster_without_tls_gets_members_with_it() {
    let dir = Dir::new();
    let file = |name: &str| dir.file(name).display().to_string();
    let [plain, own, clients] = [free(), free(), free()];
    let (host, port) = clients.rsplit_once(':').unwrap();
    for words in [vec!["authorities"], vec!["server", "db", host], vec!["master", "one"]] {
        issue(dir.file("control.crt").parent().unwrap(), &words);
    }
    let keys = [("private-key", "server-db.key"), ("certificate", "server-db.crt"), ("ca-cert", "control.crt")]
        .map(|(flag, name)| format!("--{flag}={}", file(name)));
    let mut members = [with_tls(&keys), with_tls(&keys)];
    let (plain, own) = (format!("tcp:{plain}"), format!("ssl:{own}"));
    db(&members[0], &["bootstrap", "nb", &plain], "unix:/nowhere").has(0, "is made");
    members[0].start();
    members[0].joined();
    members[0].control(&["ovsdb-server/add-remote", &format!("pssl:{port}:{host}")]);
    let run = |member: &Member, words: &[&str]| -> Said {
        let mut command = command(member, words, &format!("ssl:{clients}"));
        for (flag, name) in [("privkey", "master-one.key"), ("cert", "master-one.crt"), ("cacert", "control.crt")] {
            command.arg(format!("--nb-client-{flag}={}", file(name)));
        }
        said(&mut command)
    };
    let in_plain = own.replace("ssl:", "tcp:");
    run(&members[1], &["join", "nb", &in_plain, &plain]).has(2, &format!("write {own}"));
    let said = run(&members[1], &["join", "nb", &own, &plain]);
    said.has(0, "is made; start ovsdb-server");
    said.has(0, " --db-nb-cluster-local-proto=ssl ");
    members[1].start();
    members[1].joined();
    let both = addresses(&members);
    told(&members[0], &both, 0, "there are 2").await;
    // the first one's file says that members may be at plain TCP, and not only at TLS
    members[0].kill();
    let moved = format!("ssl:{host}:6643");
    run(&members[0], &["replace", "nb", &moved]).has(2, "write the addresses of some members behind it");
}

#[tokio::test]
async fn a_backup_that_reaches_nobody_is_none() {
    let active = Member::alone(Release::Host, &[]);
    let backup = Member::alone(Release::Host, &["--sync-from=unix:/nowhere"]);
    let both = format!("{},{}", active.remote(), backup.remote());
    let nothing = format!("takes writes, but the backup {} has copied nothing yet, and cannot", backup.remote());
    let said = told(&backup, &both, 2, &nothing).await;
    assert!(said.out.contains("backup, takes no writes, has copied nothing yet of unix:/nowhere"), "{}", said.out);
    // on another host it cannot be seen
    told(&active, &both, 0, "is active, 1 copy it").await;
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
