//! Which steps are allowed, and what a refusal says.

use crate::observed::host_of;
use crate::tests::{CLUSTER, beside, beside_another, seen};
use crate::{
    DatabaseFile, Here, Listed, Refused, Servers, backup, bootstrap, compact, convert, is_tight, join, lacks, leave,
    remove, replace, restore,
};

const LOCAL: &str = "tcp:10.0.0.9:6643";

fn member(address: &str, joined: bool, fresh: bool) -> Here {
    let cluster = Some(CLUSTER.to_owned());
    Here::Member { id: "abcd0000".to_owned(), address: address.to_owned(), cluster, joined, fresh, replaces: None }
}

/// The file of a member of another cluster.
fn of_another(address: &str, fresh: bool) -> Here {
    match member(address, true, fresh) {
        Here::Member { id, address, joined, fresh, replaces, .. } => {
            Here::Member { id, address, cluster: Some("0000".to_owned()), joined, fresh, replaces }
        }
        other => other,
    }
}

/// `Ok` with what its user is told, or the refusal.
fn told<T>(verdict: Result<T, Refused>, note: impl Fn(T) -> String) -> Result<String, String> {
    verdict.map(note).map_err(|Refused(why)| why)
}

#[track_caller]
fn check(case: &str, verdict: &Result<String, String>, want: Result<&str, &str>) {
    match (verdict, want) {
        (Ok(said), Ok(want)) => {
            assert!(if want.is_empty() { said.is_empty() } else { said.contains(want) }, "{case}: {said:?}");
        }
        (Err(why), Err(want)) => assert!(why.contains(want), "{case}: {why}"),
        _ => panic!("{case}: {verdict:?}, not {want:?}"),
    }
}

#[test]
fn who_may_leave() {
    let only_the_leader = "2 of the 2 members that stay would have to confirm what is written, and no more are connected. Whether each of \
         them does, only the leader knows: ovnkube db status nb on the host of tcp:10.0.0.1:6641 names one that does not. Let a new";
    for (letters, here, want) in [
        ("LFF", 0, Ok("then 2 of 2 members are connected, and none may fail")),
        ("LFFFF", 1, Ok("")),
        ("LFFFx", 0, Ok("then 3 of 4 members are connected")),
        ("LF", 1, Ok("then 1 of 1 members are connected")),
        // a follower does not know whether another one confirms
        ("LFF", 1, Err(only_the_leader)),
        ("LFF", 1, Err("or, if all do, stop ovsdb-server here and run ovnkube db leave nb bbbb there")),
        (
            "LFFFx",
            1,
            Err("3 of the 4 members that stay would have to confirm what is written, and no more are connected"),
        ),
        // now 3 of 4 must confirm, then 2 of 3
        ("LFFF", 1, Ok("")),
        ("LFFx", 1, Ok("then 2 of 3 members are connected, and none may fail")),
        (
            "LFx",
            1,
            Err(
                "1 of the 2 other members are connected, and 2 are needed: nothing could be written any more. Look at tcp:10.0.0.3:6641",
            ),
        ),
        ("LFd", 0, Err("Look at tcp:10.0.0.3:6641")),
        ("LFFxx", 0, Err("2 of the 4 other members are connected, and 3 are needed")),
        // the old leader is gone, and nobody has noticed yet
        (
            "FFFFx",
            0,
            Err("has no leader, so nobody can agree that this member leaves. Look at tcp:10.0.0.5:6641 first"),
        ),
        ("FFF", 0, Err("Look at tcp:10.0.0.2:6641, tcp:10.0.0.3:6641 first")),
        ("L", 0, Err("it is the only member: the database would be gone")),
        ("ddx", 0, Err("is not connected to its cluster")),
        ("A", 0, Err("is in no cluster")),
    ] {
        let verdict = told(leave(&seen(letters, Some(here))), Option::unwrap_or_default);
        check(&format!("{letters} {here}"), &verdict, want);
    }
    let verdict = told(leave(&seen("LFF", None)), Option::unwrap_or_default);
    check("elsewhere", &verdict, Err("no ovsdb-server of the database runs on this host"));
    // a command that was cut short has begun it
    let mut begun = seen("LFx", Some(1));
    begun.servers[1].control.as_mut().unwrap().cluster.as_mut().unwrap().status = "leaving cluster".to_owned();
    check("begun", &told(leave(&begun), Option::unwrap_or_default), Ok(""));
    // who was not asked is not known to be there
    let mut some = seen("FLFFF", Some(0));
    some.servers.truncate(2);
    let verdict = told(leave(&some), Option::unwrap_or_default);
    let others = "tcp:10.0.0.3:6643, tcp:10.0.0.4:6643, tcp:10.0.0.5:6643";
    let want = format!(
        "1 of the 4 other members are known to be connected, and 3 are needed; give the addresses of all members with --nb-address, also of {others}"
    );
    check("not asked", &verdict, Err(&want));
}

/// Its disk is full, say: it says itself that all is well, and its leader does not hear it.
#[test]
fn nobody_leaves_one_that_does_not_confirm() {
    let with = |here: usize| {
        let mut observed = seen("LFF", Some(here));
        let status = observed.servers[here].control.as_mut().unwrap().cluster.as_mut().unwrap();
        status.members[2].silent_ms = Some(40_000);
        told(leave(&observed), Option::unwrap_or_default)
    };
    check("the leader", &with(0), Err("1 of the 2 other members are connected, and 2 are needed"));
    check("a follower", &with(1), Err("only the leader knows"));
}

#[test]
fn who_may_be_removed() {
    for (letters, member, want) in [
        ("LFx", "cccc", Ok("cccc tcp:10.0.0.3:6643 then 2 of 2 members are connected, and none may fail")),
        ("LFx", "tcp:10.0.0.3:6643", Ok("cccc")),
        ("LFx", "cccc4cd4-ffaa-4c0f-9661-506e78d550c4", Ok("cccc")),
        ("LFFFx", "eeee", Ok("eeee tcp:10.0.0.5:6643 ")),
        ("LFF", "cccc", Err("tcp:10.0.0.3:6641 is there: it leaves by itself")),
        ("LFd", "cccc", Err("tcp:10.0.0.3:6641 is there")),
        ("LFx", "aaaa", Err("aaaa is the member on this host; write ovnkube db leave nb")),
        ("LFx", "ffff", Err("ffff is none of the members: aaaa at tcp:10.0.0.1:6643, bbbb at")),
        ("LFx", "c", Err("c is none of the members")),
        (
            "dxx",
            "cccc",
            Err(
                "there is no leader, so no member can be removed; first bring back tcp:10.0.0.1:6641, tcp:10.0.0.2:6641",
            ),
        ),
        ("A", "cccc", Err("the server on this host is in no cluster")),
    ] {
        let note = |removal: crate::Removal| {
            format!("{} {} {}", removal.id, removal.address, removal.note.unwrap_or_default())
        };
        check(&format!("{letters} {member}"), &told(remove(&seen(letters, Some(0)), member), note), want);
    }
}

/// Only of a cluster that the member on this host is in, it can be said that a member is not in it.
#[test]
fn who_is_no_member() {
    for (letters, member, want) in [
        ("LFx", "ffff", true),
        ("LFx", "tcp:10.0.0.9:6643", true),
        ("LFx", "cccc", false),
        ("LFx", "tcp:10.0.0.3:6643", false),
        ("A", "ffff", false),
        ("x", "ffff", false),
    ] {
        assert_eq!(lacks(&seen(letters, Some(0)), member), want, "{letters} {member}");
    }
}

/// A follower hears its leader only, and knows of a member that was not asked by its connections.
#[test]
fn who_may_be_removed_that_was_not_asked() {
    let removed = |letters: &str, change: &dyn Fn(&mut Vec<Listed>)| {
        let mut observed = seen(letters, Some(1));
        let status = observed.servers[1].control.as_mut().unwrap().cluster.as_mut().unwrap();
        for listed in &mut status.members[2..] {
            listed.silent_ms = None;
        }
        change(&mut status.members);
        observed.servers.truncate(2);
        told(remove(&observed, "cccc"), |removal| removal.id)
    };
    let is_there = Err("tcp:10.0.0.3:6643 is there: it leaves by itself");
    check("it lives", &removed("LFF", &|_| {}), is_there);
    check("it accepts connections", &removed("LFF", &|members| members[2].calls = false), is_there);
    check("it is down", &removed("LFx", &|_| {}), Ok("cccc"));
    let unknown = |members: &mut Vec<Listed>| members[2].reached = None;
    check(
        "nobody knows",
        &removed("LFx", &unknown),
        Err("it is not known whether tcp:10.0.0.3:6643 is there: it was not asked; give its address too"),
    );
    // of five, two of which are down: with the third, there would be no majority for ever
    check("it lives", &removed("LFFxx", &|_| {}), is_there);
    let few = "2 of the 4 other members are known to be connected, and 3 are needed; give the addresses of all members with \
               --nb-address, also of tcp:10.0.0.4:6643, tcp:10.0.0.5:6643";
    check("too few are known", &removed("LFxxx", &|_| {}), Err(few));
    // it lost its file and joined again: its new member accepts connections for both
    let joined_again = |calls: bool| {
        move |members: &mut Vec<Listed>| {
            members[2].reached = Some(true);
            members[3].address = members[2].address.clone();
            (members[3].calls, members[3].reached) = (calls, Some(calls));
        }
    };
    check("its successor lives", &removed("LFxFF", &joined_again(true)), Err("2 of the 4 other members are known"));
    check("nobody calls", &removed("LFxFF", &joined_again(false)), is_there);
}

#[test]
fn who_may_join() {
    let member = |address: &str, joined| member(address, joined, false);
    let replaced = |address: &str| Here::Member {
        id: "abcd0000".to_owned(),
        address: address.to_owned(),
        cluster: Some(CLUSTER.to_owned()),
        joined: false,
        fresh: true,
        replaces: Some("1234".to_owned()),
    };
    let other = "tcp:10.0.0.3:6643";
    for (letters, here, want) in [
        ("LFF", Here::Nothing, Ok(CLUSTER)),
        ("LFx", Here::Nothing, Ok(CLUSTER)),
        ("LFF", member(other, false), Ok(CLUSTER)),
        ("LFF", Here::Left, Ok(CLUSTER)),
        ("ddx", Here::Left, Err("the cluster has no leader")),
        ("LFF", Here::Runs, Err("stop it first")),
        ("LFF", Here::Alone, Err("joining would lose its contents")),
        ("LFF", member(LOCAL, true), Err("that of a member already: start ovsdb-server")),
        ("LFF", member(other, true), Err("write ovnkube db replace nb tcp:10.0.0.9:6643")),
        (
            "Lxx",
            of_another(LOCAL, false),
            Err("of a member of another cluster, 0000: tcp:10.0.0.1:6641 is in 5c34d84c"),
        ),
        ("dxx", of_another(LOCAL, false), Err("Move the file away")),
        ("xxx", of_another(LOCAL, false), Err("that of a member already: start ovsdb-server")),
        ("Lxx", of_another(other, false), Err("of a member of another cluster")),
        ("ddx", Here::Nothing, Err("the cluster has no leader")),
        ("F", Here::Nothing, Err("or it was not asked")),
        ("A", Here::Nothing, Err("create it with ovnkube db bootstrap")),
        ("xxx", Here::Nothing, Err("no server answers that takes writes")),
    ] {
        check(&format!("join {letters} {here:?}"), &told(join(&seen(letters, None), &here, LOCAL, &[]), |id| id), want);
    }
    for (letters, here, want) in [
        ("LFx", member(other, true), Ok("abcd")),
        ("LFx", member(LOCAL, true), Err("has the address tcp:10.0.0.9:6643 already")),
        ("LFx", member(other, false), Err("write ovnkube db join nb tcp:10.0.0.9:6643")),
        ("LFx", of_another(other, false), Err("of a member of another cluster")),
        ("LFx", Here::Nothing, Err("has no file of a member")),
        (
            "LFx",
            Here::Left,
            Err("has left its cluster, and no server can use it; write ovnkube db join nb tcp:10.0.0.9"),
        ),
        ("LFx", Here::Runs, Err("stop it first")),
        ("ddx", member(other, true), Err("the cluster has no leader")),
        // it was cut short
        ("LFx", replaced(LOCAL), Ok("1234")),
        ("LFx", replaced(other), Ok("1234")),
        ("ddx", replaced(LOCAL), Err("the cluster has no leader")),
    ] {
        check(
            &format!("replace {letters} {here:?}"),
            &told(replace(&seen(letters, None), &here, LOCAL, &[]), |(_, old)| old),
            want,
        );
    }
}

#[test]
fn who_may_make_a_cluster() {
    let local = "tcp:10.0.0.1:6643";
    let used = member(local, true, false);
    for (letters, here, contents, want) in [
        ("x", Here::Nothing, false, Ok("")),
        ("x", Here::Alone, false, Ok("")),
        ("x", Here::Nothing, true, Ok("")),
        ("x", Here::Alone, true, Err("would get another one")),
        ("x", Here::Left, false, Err("has left its cluster, and no server can use it; move it away")),
        ("x", Here::Left, true, Err("move it away, or write ovnkube db join nb")),
        ("x", Here::Runs, false, Err("stop it first")),
        ("x", used.clone(), false, Err("start ovsdb-server, and it goes on")),
        ("x", used, true, Err("start ovsdb-server, and it goes on")),
        // it was cut short at its end, or is done again
        ("x", member(local, true, true), false, Ok("made already")),
        ("x", member(local, true, true), true, Ok("")),
        ("x", member("tcp:10.0.0.2:6643", true, true), false, Err("start ovsdb-server, and it goes on")),
        ("xL", member(local, true, true), true, Err("is in a cluster already")),
        ("xL", member(local, true, true), false, Err("is in a cluster already")),
        ("xL", of_another(local, true), false, Err("of a member of another cluster")),
        ("xx", member(local, true, true), false, Err("tcp:10.0.0.2:6641 does not answer")),
        // it waits for a cluster for ever
        ("x", member(local, false, true), false, Err("was made to join a cluster, and has no contents; move it away")),
        ("x", member(local, false, true), true, Err("was made to join a cluster")),
        (
            "xx",
            Here::Nothing,
            false,
            Err("tcp:10.0.0.2:6641 does not answer, and may be in a cluster: there would be two"),
        ),
        (
            "xL",
            Here::Nothing,
            false,
            Err("tcp:10.0.0.2:6641 is in a cluster already; write ovnkube db join nb tcp:10.0.0.1:6643"),
        ),
        ("xd", Here::Nothing, false, Err("is in a cluster already")),
        ("xA", Here::Nothing, false, Err("tcp:10.0.0.2:6641 has the database, outside a cluster")),
    ] {
        let said = |makes: bool| if makes { String::new() } else { "made already".to_owned() };
        let verdict = told(bootstrap(&seen(letters, None), &here, local, contents), said);
        check(&format!("{letters} {here:?}"), &verdict, want);
    }
}

#[test]
fn which_addresses_a_member_may_have() {
    let nobody = "is no address that a member can be reached at; write an address of this host that the other members reach, such as";
    let this_host = "leads every host to itself";
    for (local, clients, want) in [
        ("tcp:10.0.0.1:6643", "tcp:10.0.0.1:6641", Ok("")),
        ("ssl:[fd00::1]:6643", "tcp:10.0.0.1:6641", Err("nobody is known to use it")),
        ("tcp:db1.example:6643", "tcp:10.0.0.1:6641", Ok("")),
        ("tcp:0.0.0.0:6643", "tcp:10.0.0.1:6641", Err(nobody)),
        ("ssl:[::]:6644", "ssl:[fd00::1]:6642", Err("such as ssl:10.0.0.1:6644")),
        ("tcp:0.0.0.0:6643", "tcp:127.0.0.1:6641", Err(nobody)),
        ("tcp:127.0.0.1:6643", "tcp:10.0.0.1:6641", Err(this_host)),
        ("tcp:[::1]:6643", "tcp:10.0.0.1:6641", Err(this_host)),
        ("tcp:localhost:6643", "tcp:10.0.0.1:6641", Err(this_host)),
        ("unix:/run/raft", "tcp:10.0.0.1:6641", Err(this_host)),
        // a trial on one host
        ("tcp:127.0.0.1:6643", "tcp:127.0.0.1:6641", Ok("")),
        ("unix:/run/raft", "unix:/run/nb.sock", Ok("")),
    ] {
        let mut none = seen("x", None);
        none.servers[0].address = clients.to_owned();
        // it is the server of this host
        let verdict = if host_of(local) == host_of(clients) || want.is_err() {
            told(bootstrap(&none, &Here::Nothing, local, false), |_| String::new())
        } else {
            none.servers.clear();
            told(bootstrap(&none, &Here::Nothing, local, false), |_| String::new())
        };
        check(&format!("bootstrap {local} {clients}"), &verdict, want);
        let mut cluster = seen("LFF", None);
        cluster.servers[0].address = clients.to_owned();
        let own = clients.contains("127") || clients.contains("unix");
        cluster.servers.truncate(if own { 1 } else { 3 });
        let want = want.map(|_| CLUSTER);
        check(&format!("join {local} {clients}"), &told(join(&cluster, &Here::Nothing, local, &[]), |id| id), want);
        let here = member("tcp:10.0.0.3:6643", true, false);
        let verdict = told(replace(&cluster, &here, local, &[]), |(cluster, _)| cluster);
        check(&format!("replace {local} {clients}"), &verdict, want);
    }
    // nobody was asked
    let mut nowhere = seen("x", None);
    nowhere.addressed = false;
    let verdict = told(bootstrap(&nowhere, &Here::Nothing, "tcp:10.0.0.1:6643", false), |_| String::new());
    check(
        "no addresses",
        &verdict,
        Err("no address of the database is given, so nobody was asked whether there is a cluster"),
    );
    check("no addresses", &verdict, Err("write --nb-address with the addresses for clients of all hosts"));
}

#[test]
fn what_room_the_compaction_of_a_file_needs() {
    for (bytes, free, path, want) in [
        (1_000_000, Some(1_000_000), "/var/lib/ovn/nb.db", Ok("")),
        (1_000_000, None, "/var/lib/ovn/nb.db", Ok("")),
        (
            1_000_000,
            Some(999_999),
            "/var/lib/ovn/nb.db",
            Err(
                "beside /var/lib/ovn/nb.db meanwhile, which may need 1000 kB, and /var/lib/ovn has 999 kB left; make room there first",
            ),
        ),
        (9, Some(0), "/nb.db", Err("may need 9 bytes, and / has 0 bytes left")),
        (9, Some(0), "nb.db", Err("and . has")),
    ] {
        let mut observed = seen("LFF", Some(0));
        let file = DatabaseFile { path: path.to_owned(), bytes, free, read_only: false };
        observed.servers[0].control.as_mut().unwrap().file = Some(file);
        check(&format!("{bytes} {free:?}"), &told(compact(&observed, None), |()| String::new()), want);
    }
    // what ovnkube db status recommends for a log that has grown is done if the contents fit
    let mut grown = seen("LFF", Some(0));
    for (free, contents, want) in [
        (Some(8_000_000), 6_000_000, Ok("")),
        (Some(7_499_999), 6_000_000, Err("which may need 7500 kB, and /var/lib/ovn has 7499 kB left")),
        (Some(0), 1000, Err("may need 1250 bytes, and /var/lib/ovn has 0 bytes left; make room there first")),
        // the file lacks what the server could not write
        (Some(199_999_999), 300_000_000, Err("which may need 375 MB")),
        (None, 300_000_000, Ok("")),
    ] {
        let file = DatabaseFile { path: "/var/lib/ovn/nb.db".to_owned(), bytes: 200_000_000, free, read_only: false };
        grown.servers[0].control.as_mut().unwrap().file = Some(file);
        assert_eq!(is_tight(&grown), free.is_some_and(|free| free < 200_000_000), "{free:?}");
        let verdict = told(compact(&grown, Some(contents)), |()| String::new());
        check(&format!("{free:?} {contents}"), &verdict, want);
    }
    grown.servers[0].control = None;
    assert!(!is_tight(&grown), "no server is here");
}

/// Each member writes them behind what its file has, wherever the backup is.
#[test]
fn what_room_new_contents_need() {
    let with = |mut observed: crate::Observed, bytes, free| {
        let file = DatabaseFile { path: "/var/lib/ovn/nb.db".to_owned(), bytes, free, read_only: false };
        observed.servers[2].control.as_mut().unwrap().file = Some(file);
        let restored = restore(&observed, "OVN_Northbound", "7.0.0", 2_000_000);
        let converted = convert(&observed, "OVN_Northbound", "7.11.0");
        (told(restored, |source| source.address), told(converted, |source| source.unwrap().address))
    };
    let member = || seen("LFF", Some(2));
    let short = "for /var/lib/ovn/nb.db, that may need 3000 kB, and /var/lib/ovn has 2999 kB left; make room there first, and on the disks \
                 of the other members: ovnkube db status nb shows them, each on its own host";
    let leader = Ok("tcp:10.0.0.1:6641");
    for (case, (restored, converted), want, want_converted) in [
        ("enough", with(member(), 1_000_000, Some(3_000_000)), leader, leader),
        ("not known", with(member(), 1_000_000, None), leader, leader),
        ("for one", with(member(), 1_000_000, Some(2_999_999)), Err(short), leader),
        ("for none", with(member(), 1_000_000, Some(1_999_999)), Err("may need 3000 kB"), Err("may need 2000 kB")),
        ("a server that is not meant", with(beside_another("LFL"), 1_000_000, Some(0)), leader, leader),
    ] {
        check(&format!("restore, {case}"), &restored, want);
        check(&format!("convert, {case}"), &converted, want_converted);
    }
    // it has the schema already
    let mut full = member();
    let file = DatabaseFile { path: "/db".to_owned(), bytes: 9, free: Some(0), read_only: false };
    full.servers[2].control.as_mut().unwrap().file = Some(file);
    assert_eq!(convert(&full, "OVN_Northbound", "7.0.0"), Ok(None));
}

/// The addresses mean other servers than the one on this host.
#[test]
fn no_step_uses_a_server_that_was_not_named() {
    let unused = "takes writes: tcp:10.0.0.1:6641, tcp:10.0.0.2:6641; look at ovnkube db status nb, start ovsdb-server there, or \
                  give the right addresses with --nb-address; the server on this host, unix:/here, is not used";
    let address = |source: crate::Source| source.address;
    let mut copy = beside("xB");
    copy.servers[1].control.as_mut().unwrap().backup_of = Some("tcp:10.0.0.1:6641".to_owned());
    let backed_up = "tcp:10.0.0.1:6641";
    let not_here = Err(
        "the server on this host, unix:/here, is not used, because it is not known to be one of these: tcp:10.0.0.1:6641, \
         tcp:10.0.0.2:6641; if it is meant, give its address with --nb-address",
    );
    let not_of_it = [not_here; 3];
    let is_there = Err("tcp:10.0.0.1:6641 is there");
    let no_cluster = Err("is in no cluster");
    for (case, observed, read, written, joined, [compacted, left, removed]) in [
        ("silent", beside("xxA"), Err(unused), Err(unused), Err(unused), not_of_it),
        ("without a leader", beside("ddA"), Ok(backed_up), Err(unused), Err("the cluster has no leader"), not_of_it),
        ("another cluster, silent", beside_another("xxL"), Err(unused), Err(unused), Err(unused), not_of_it),
        ("another cluster", beside_another("LFL"), Ok(backed_up), Ok(backed_up), Ok(CLUSTER), not_of_it),
        (
            "its cluster",
            beside("FFL"),
            Ok("unix:/here"),
            Ok("unix:/here"),
            Ok(CLUSTER),
            [Ok(""), Ok("then 2 of 2 members are connected"), is_there],
        ),
        (
            "a copy",
            copy,
            Ok("unix:/here"),
            Err("no server answers"),
            Err("none of the servers that answer is in"),
            [Ok(""), no_cluster, no_cluster],
        ),
    ] {
        check(&format!("compact {case}"), &told(compact(&observed, None), |()| String::new()), compacted);
        check(&format!("leave {case}"), &told(leave(&observed), Option::unwrap_or_default), left);
        check(&format!("remove {case}"), &told(remove(&observed, "aaaa"), |removal| removal.id), removed);
        let is_meant = left != not_here;
        assert!(is_meant || !lacks(&observed, "ffff"), "{case}");
        check(&format!("backup {case}"), &told(backup(&observed), address), read);
        check(&format!("restore {case}"), &told(restore(&observed, "OVN_Northbound", "7.0.0", 0), address), written);
        let converted = convert(&observed, "OVN_Northbound", "7.11.0");
        check(&format!("convert {case}"), &told(converted, |source| source.unwrap().address), written);
        check(&format!("join {case}"), &told(join(&observed, &Here::Nothing, LOCAL, &[]), |id| id), joined);
    }
    // not even if its address is given
    let both = restore(&seen("ddA", None), "OVN_Northbound", "7.0.0", 0);
    check("both", &told(both, address), Err("tcp:10.0.0.1:6641 is in a cluster, and tcp:10.0.0.3:6641 is not"));
}

/// The first one is cut off from the others, who have elected another.
#[test]
fn of_two_leaders_the_one_that_has_more_counts() {
    let mut observed = seen("LFL", None);
    observed.servers[0].answer.as_mut().unwrap().index = Some(900);
    let newer = "tcp:10.0.0.3:6641";
    assert_eq!(backup(&observed).unwrap().address, newer);
    assert_eq!(restore(&observed, "OVN_Northbound", "7.0.0", 0).unwrap().address, newer);
    let behind: Vec<_> = Servers::of(&observed).all.iter().map(|server| server.behind).collect();
    assert_eq!(behind, [Some(100), Some(1), Some(0)]);
}

#[test]
fn what_contents_are_read_and_written() {
    for (letters, want) in [
        ("FLF", Ok("tcp:10.0.0.2:6641 ")),
        ("xLF", Ok("tcp:10.0.0.2:6641 ")),
        ("xdd", Ok("tcp:10.0.0.2:6641 there is no leader: the backup has what tcp:10.0.0.2:6641 has, up to entry 999")),
        ("A", Ok("tcp:10.0.0.1:6641 ")),
        ("BA", Ok("tcp:10.0.0.2:6641 ")),
        ("xB", Ok("tcp:10.0.0.2:6641 tcp:10.0.0.2:6641 only copies another server")),
        ("AA", Err("all take writes, with different contents")),
        ("xx", Err("no server answers")),
    ] {
        let note = |source: crate::Source| format!("{} {}", source.address, source.note.unwrap_or_default());
        check(&format!("backup {letters}"), &told(backup(&seen(letters, None)), note), want);
    }
    let address = |source: crate::Source| source.address;
    let converted = |source: crate::Source| match source.older_than {
        Some(newer) => format!("{} older than {newer}", source.address),
        None => source.address,
    };
    for (letters, name, schema, want) in [
        ("FLF", "OVN_Northbound", "7.0.0", Ok("tcp:10.0.0.2:6641")),
        ("FLx", "OVN_Northbound", "6.3.0", Ok("tcp:10.0.0.2:6641 older than 7.0.0")),
        ("BA", "OVN_Northbound", "7.0.0", Ok("tcp:10.0.0.2:6641")),
        ("FLF", "OVN_Northbound", "7.11.0", Err("First write ovnkube db convert nb")),
        ("FLF", "OVN_Southbound", "7.0.0", Err("the file is of the database OVN_Southbound, not OVN_Northbound")),
        ("ddx", "OVN_Northbound", "7.0.0", Err("no server answers that takes writes")),
        ("B", "OVN_Northbound", "7.0.0", Err("no server answers that takes writes")),
        ("AA", "OVN_Northbound", "7.0.0", Err("all take writes")),
    ] {
        check(
            &format!("restore {letters} {schema}"),
            &told(restore(&seen(letters, None), name, schema, 0), converted),
            want,
        );
    }
    for (letters, schema, want) in [
        ("FLF", "7.11.0", Ok("tcp:10.0.0.2:6641")),
        ("FLF", "7.0.0", Ok("")),
        ("FLF", "6.3.1", Err("6.3.1 is older: tables and columns would be lost")),
        ("ddx", "7.11.0", Err("no server answers that takes writes")),
    ] {
        let note = |source: Option<crate::Source>| source.map(address).unwrap_or_default();
        check(
            &format!("convert {letters} {schema}"),
            &told(convert(&seen(letters, None), "OVN_Northbound", schema), note),
            want,
        );
    }
    for (letters, want) in [("LFF", Ok("")), ("A", Ok("")), ("dxx", Ok(""))] {
        check(&format!("compact {letters}"), &told(compact(&seen(letters, Some(0)), None), |()| String::new()), want);
    }
}
