//! Databases as text, and what is said of them. A letter is a server: `L` leads, `F` follows, `d` has lost its cluster, `x`
//! does not answer; outside a cluster `A` takes writes and `B` copies. The first one is 10.0.0.1 with the id `aaaa`.

use crate::{
    Answer, ClusterStatus, Control, DatabaseFile, Listed, Model, Northd, Observed, Report, Seen, State, TimerStep,
    file_problems, judge,
};

pub(crate) const CLUSTER: &str = "5c34d84c-4029-4156-a1b8-b8599569fa5b";

fn id(at: usize) -> String {
    ["aaaa", "bbbb", "cccc", "dddd", "eeee"][at].to_owned()
}

fn raft(at: usize) -> String {
    format!("tcp:10.0.0.{}:6643", at + 1)
}

/// Servers, seen from the host of one of them or, without `here`, from elsewhere.
pub(crate) fn seen(letters: &str, here: Option<usize>) -> Observed {
    let leader = letters.find('L');
    let one = |(at, letter): (usize, char)| {
        let clustered = "LFd".contains(letter);
        let answer = Answer {
            model: if clustered { Model::Clustered } else { Model::Standalone },
            connected: letter != 'd',
            leader: letter == 'L' || !clustered,
            read_only: (!clustered).then_some(letter == 'B'),
            cluster: clustered.then(|| CLUSTER.to_owned()),
            member: clustered.then(|| format!("{}4cd4-ffaa-4c0f-9661-506e78d550c4", id(at))),
            index: clustered.then_some(if letter == 'L' { 1000 } else { 1000 - at as u64 }),
            schema: Some("7.0.0".to_owned()),
        };
        let silent = letter == 'x';
        Seen {
            address: format!("tcp:10.0.0.{}:6641", at + 1),
            answer: (!silent).then_some(answer),
            problem: silent.then(|| "it was silent for 3 s".to_owned()),
            control: (here == Some(at)).then(|| control(letters, at, leader)),
            unnamed: false,
        }
    };
    Observed {
        database: "OVN_Northbound",
        servers: letters.chars().enumerate().map(one).collect(),
        addressed: true,
        northd: None,
    }
}

fn control(letters: &str, here: usize, leader: Option<usize>) -> Control {
    let letter = letters.chars().nth(here).unwrap();
    let silent = |at| if "LF".contains(letters.chars().nth(at).unwrap()) { 300 } else { 40_000 };
    let is_up = |at| letters.chars().nth(at) != Some('x');
    let listed = |at| Listed {
        id: id(at),
        address: raft(at),
        is_self: at == here,
        silent_ms: Some(silent(at)),
        calls: is_up(at) && at != here,
        reached: Some(is_up(at)),
    };
    let status = ClusterStatus {
        cluster: CLUSTER.to_owned(),
        member: format!("{}4cd4-ffaa-4c0f-9661-506e78d550c4", id(here)),
        address: raft(here),
        status: if letter == 'd' { "disconnected from the cluster (election timeout)" } else { "cluster member" }
            .to_owned(),
        role: if letter == 'L' { "leader" } else { "follower" }.to_owned(),
        term: 5,
        leader: leader.map_or("unknown".to_owned(), id),
        election_timer_ms: 1000,
        timer_changes: false,
        entries: 4,
        members: (0..letters.len()).map(listed).collect(),
    };
    Control { cluster: "LFd".contains(letter).then_some(status), ..Control::default() }
}

#[test]
fn what_is_said_of_clusters() {
    let cases = [
        ("LFF", State::Healthy, "healthy: all 3 members are connected, one may fail"),
        ("LFFFF", State::Healthy, "healthy: all 5 members are connected, 2 may fail"),
        ("LF", State::Healthy, "takes writes, but no member may fail: there are 2"),
        ("LFx", State::Degraded, "works, but one more loss stops writes: 2 of 3 members are connected"),
        ("LFd", State::Degraded, "works, but one more loss stops writes: 2 of 3 members are connected"),
        ("LFFFx", State::Degraded, "works, and one more member may fail: 4 of 5 members are connected"),
        ("LFFxx", State::Degraded, "works, but one more loss stops writes: 3 of 5 members are connected"),
        ("dxx", State::Broken, "no leader, no writes: 1 of 3 members answers, and 2 are needed"),
        ("ddx", State::Broken, "no leader, no writes: 2 of 3 members answer, but they elect none"),
        ("ddd", State::Broken, "no leader, no writes: 3 of 3 members answer, but they elect none"),
    ];
    for (letters, state, text) in cases {
        for here in [None, Some(0)] {
            let judgement = judge(&seen(letters, here));
            assert_eq!((judgement.state, &*judgement.text), (state, text), "{letters} {here:?}");
            let needs_remedy = !text.starts_with("healthy");
            assert_eq!(judgement.remedy.is_some(), needs_remedy, "{letters}: {:?}", judgement.remedy);
        }
    }
    let remedy = |letters| judge(&seen(letters, Some(0))).remedy.unwrap();
    assert!(remedy("LFx").contains("tcp:10.0.0.3:6641") && remedy("LFx").contains("ovnkube db leave nb cccc"));
    assert!(remedy("LFd").contains("check the network between it and them"));
    assert!(remedy("dxx").contains("tcp:10.0.0.2:6641, tcp:10.0.0.3:6641"));
}

/// The last server is found on this host only, and no address leads to it.
pub(crate) fn beside(letters: &str) -> Observed {
    let mut observed = seen(letters, Some(letters.len() - 1));
    let here = observed.servers.last_mut().unwrap();
    (here.unnamed, here.address) = (true, "unix:/here".to_owned());
    observed
}

/// A member of another cluster, on other hosts.
pub(crate) fn beside_another(letters: &str) -> Observed {
    let mut observed = beside(letters);
    let here = observed.servers.last_mut().unwrap();
    here.answer.as_mut().unwrap().cluster = Some("0000".to_owned());
    let status = here.control.as_mut().unwrap().cluster.as_mut().unwrap();
    status.members.retain(|listed| listed.is_self);
    observed
}

#[test]
fn a_server_of_this_host_that_no_address_names() {
    let strange = "; the server on this host, unix:/here, is not known to be one of these";
    let silent = "no server of the database answers: tcp:10.0.0.1:6641, tcp:10.0.0.2:6641";
    for observed in [beside("xxA"), beside_another("xxL")] {
        let said = judge(&observed);
        assert_eq!((said.state, said.text), (State::Broken, format!("{silent}{strange}")));
        assert!(said.remedy.unwrap().ends_with("; if clients are to use it, give its address with --nb-address"));
    }
    let text = |observed| judge(&observed).text;
    assert!(text(beside("LFA")).starts_with("some servers are in a cluster, but not unix:/here"));
    assert!(text(beside("AA")).starts_with("tcp:10.0.0.1:6641, unix:/here all take writes"));
    assert!(text(beside_another("LFL")).starts_with("the servers are in different clusters"));
    assert_eq!(text(beside("LFF")), "healthy: all 3 members are connected, one may fail");
    // its members are at these hosts
    assert!(text(beside("xxd")).starts_with("no leader, no writes: 1 of 3 members answers"));
    // it copies the silent one
    let mut copy = beside("xB");
    copy.servers[1].control.as_mut().unwrap().backup_of = Some("tcp:10.0.0.1:6641".to_owned());
    assert!(text(copy).starts_with("no active server, no writes: unix:/here only copies"));
}

/// Its process lives, and members hear it: its port for clients is closed, or they do not trust its certificate.
#[test]
fn a_leader_that_does_not_answer_clients_is_named() {
    let with = |letters: &str, here: usize, change: &dyn Fn(&mut Listed)| {
        let mut observed = seen(letters, Some(here));
        let status = observed.servers[here].control.as_mut().unwrap().cluster.as_mut().unwrap();
        status.leader = id(0);
        let leader = &mut status.members[0];
        (leader.silent_ms, leader.reached) = (Some(300), Some(true));
        change(leader);
        (judge(&observed), Report::of(&observed).to_string())
    };
    for letters in ["xFF", "xFx"] {
        let (said, text) = with(letters, 1, &|_| {});
        let want = "no writes: tcp:10.0.0.1:6641 leads, but does not answer clients";
        assert_eq!((said.state, &*said.text), (State::Broken, want));
        assert!(said.remedy.unwrap().starts_with("look at that port and its certificate"));
        assert!(text.contains("tcp:10.0.0.1:6641 (aaaa): leads, but does not answer: it was silent for 3 s"), "{text}");
    }
    // it has just died
    for change in [&|leader: &mut Listed| leader.reached = Some(false), &|leader: &mut Listed| {
        leader.silent_ms = Some(1001);
    }] as [&dyn Fn(&mut Listed); 2]
    {
        assert!(with("xFF", 1, change).0.text.starts_with("no leader, no writes: 2 of 3 members answer"));
    }
}

#[test]
fn what_is_said_of_single_servers_and_pairs() {
    let cases = [
        ("A", State::Healthy, "takes writes; a single server: nothing takes over if it fails"),
        ("AB", State::Healthy, "healthy: tcp:10.0.0.1:6641 is active, 1 copy it"),
        ("Ax", State::Degraded, "takes writes, but nothing takes over if tcp:10.0.0.1:6641 fails"),
        ("ABx", State::Degraded, "takes writes; tcp:10.0.0.1:6641 is active"),
        ("B", State::Broken, "no active server, no writes: tcp:10.0.0.1:6641 only copies another server"),
        ("xB", State::Broken, "no active server, no writes: tcp:10.0.0.2:6641 only copies another server"),
        (
            "AA",
            State::Broken,
            "tcp:10.0.0.1:6641, tcp:10.0.0.2:6641 all take writes, and none copies another: clients see different contents",
        ),
        ("xx", State::Broken, "no server of the database answers: tcp:10.0.0.1:6641, tcp:10.0.0.2:6641"),
        (
            "LFA",
            State::Broken,
            "some servers are in a cluster, but not tcp:10.0.0.3:6641: clients see different contents",
        ),
    ];
    for (letters, state, text) in cases {
        let judgement = judge(&seen(letters, None));
        assert_eq!((judgement.state, &*judgement.text), (state, text), "{letters}");
    }
}

#[test]
fn what_only_some_hosts_know() {
    // elsewhere, nobody knows of the other members
    assert_eq!(judge(&seen("L", None)).text, "takes writes; its other members were not asked");
    assert_eq!(judge(&seen("L", Some(0))).text, "takes writes, but no member may fail: it is the only one");
    assert_eq!(judge(&seen("F", None)).text, "the leader was not asked: tcp:10.0.0.1:6641 is connected to it");
    // a host of one knows them, also if they were not asked
    let mut observed = seen("LFF", Some(0));
    let status = observed.servers[0].control.as_mut().unwrap().cluster.as_mut().unwrap();
    status.members.iter_mut().for_each(|listed| listed.silent_ms = Some(40_000));
    observed.servers.truncate(1);
    assert_eq!(judge(&observed).text, "works; 1 of 3 members are known to be connected");
    assert!(Report::of(&observed).to_string().contains("tcp:10.0.0.2:6643 (bbbb): a member that was not asked"));
    let mut heard = observed.clone();
    let status = heard.servers[0].control.as_mut().unwrap().cluster.as_mut().unwrap();
    status.members.iter_mut().for_each(|listed| listed.silent_ms = Some(100));
    assert_eq!(judge(&heard).text, "healthy: all 3 members are connected, one may fail");
    // two clusters
    let mut observed = seen("LL", None);
    observed.servers[1].answer.as_mut().unwrap().cluster = Some("0000".to_owned());
    assert_eq!(
        judge(&observed).text,
        format!("the servers are in different clusters: tcp:10.0.0.2:6641 in 0000; tcp:10.0.0.1:6641 in {CLUSTER}")
    );
    // a member that lost its file joined again: both have its address
    let mut observed = seen("LFF", Some(0));
    let status = observed.servers[0].control.as_mut().unwrap().cluster.as_mut().unwrap();
    status.members.push(Listed { id: "ffff".to_owned(), address: raft(2), ..Listed::default() });
    let judgement = judge(&observed);
    assert!(judgement.text.contains("member ffff has the address of another one, tcp:10.0.0.3:6643"), "{judgement:?}");
    assert_eq!(judgement.remedy.unwrap(), "run ovnkube db leave nb ffff on the host of a member");
    // which one it is, a follower that has asked neither does not know
    let mut unasked = seen("FLF", Some(0));
    let status = unasked.servers[0].control.as_mut().unwrap().cluster.as_mut().unwrap();
    status.members[2].silent_ms = None;
    status.members.push(Listed { id: "ffff".to_owned(), address: raft(2), ..Listed::default() });
    unasked.servers.truncate(2);
    let judgement = judge(&unasked);
    assert_eq!(judgement.text, "works; 2 of 4 members are known to be connected");
    assert!(judgement.remedy.unwrap().starts_with("give the addresses of all members with --nb-address, also of"));
    // far behind
    let mut observed = seen("LFF", None);
    observed.servers[2].answer.as_mut().unwrap().index = Some(100);
    assert_eq!(judge(&observed).text, "works, but tcp:10.0.0.3:6641 is 900 entries behind the leader");
}

#[test]
fn a_member_that_could_not_write_is_named() {
    let failed = |letters: &str, here: usize| {
        let mut observed = seen(letters, Some(here));
        observed.servers[here].control.as_mut().unwrap().cluster.as_mut().unwrap().status = "failed".to_owned();
        observed
    };
    let remedy = "look at its disk, make room there if it is full, and then start ovsdb-server again";
    let one = judge(&failed("d", 0));
    assert_eq!(
        one.text,
        "no leader, no writes: tcp:10.0.0.1:6641 could not write its file, and takes part in nothing since"
    );
    assert_eq!(one.remedy.unwrap(), remedy);
    let three = failed("LFd", 2);
    let said = judge(&three);
    assert_eq!(said.text, "works, but one more loss stops writes: 2 of 3 members are connected");
    let want = format!("tcp:10.0.0.3:6641 could not write its file, and takes part in nothing since: {remedy}");
    assert_eq!(said.remedy.unwrap(), want);
    assert!(Report::of(&three).to_string().contains("(cccc), this host: has failed: it could not write its file"));
    // elsewhere it is not known why
    assert!(
        judge(&seen("LFd", Some(0)))
            .remedy
            .unwrap()
            .contains("could not write its file, this command tells on its host")
    );
}

#[test]
fn a_member_that_does_not_confirm_is_named() {
    let with = |here: usize, ms| {
        let mut observed = seen("LFF", Some(here));
        let status = observed.servers[here].control.as_mut().unwrap().cluster.as_mut().unwrap();
        status.members[2].silent_ms = Some(ms);
        (judge(&observed), Report::of(&observed).to_string())
    };
    assert_eq!(with(0, 5000).0.state, State::Healthy);
    let (said, text) = with(0, 5001);
    assert_eq!(said.text, "works, but one more loss stops writes: 2 of 3 members are connected");
    assert!(said.remedy.unwrap().starts_with("tcp:10.0.0.3:6641 answers clients, but does not confirm to the leader"));
    assert!(text.contains("(cccc): answers, but does not confirm what the leader sends"), "{text}");
    // a follower hears its leader only
    assert_eq!(with(1, 5001).0.state, State::Healthy);
    // on its own host, while its disk is full
    let mut own = seen("FLF", Some(0));
    let file = DatabaseFile { path: "/db".to_owned(), bytes: 9, free: Some(0), read_only: false };
    own.servers[0].control.as_mut().unwrap().file = Some(file);
    assert!(judge(&own).remedy.unwrap().contains("run ovnkube db compact, before ovsdb-server is stopped"));
}

/// As Pacemaker's agent starts them: before there is an active server, they have the address of nobody.
#[test]
fn a_backup_that_has_copied_nothing_is_named() {
    let mut observed = seen("ABB", Some(1));
    let control = observed.servers[1].control.as_mut().unwrap();
    (control.backup_of, control.apart) = (Some("tcp:192.0.2.254:6641".to_owned()), true);
    let said = judge(&observed);
    let want = "takes writes, but the backup tcp:10.0.0.2:6641 has copied nothing yet, and cannot take over from tcp:10.0.0.1:6641";
    assert_eq!((said.state, &*said.text), (State::Degraded, want));
    assert!(said.remedy.unwrap().contains("see that it reaches tcp:192.0.2.254:6641"));
    let text = Report::of(&observed).to_string();
    assert!(text.contains("backup, takes no writes, has copied nothing yet of tcp:192.0.2.254:6641"), "{text}");
    observed.servers[0].answer.as_mut().unwrap().read_only = Some(true);
    assert!(judge(&observed).text.starts_with("no active server"));
}

#[test]
fn tables_that_a_backup_lacks_are_named() {
    let with = |tables: &[&str]| {
        let mut observed = seen("AB", Some(1));
        let control = observed.servers[1].control.as_mut().unwrap();
        control.backup_of = Some("tcp:10.0.0.9:6641".to_owned());
        control.excluded = tables.iter().map(ToString::to_string).collect();
        (judge(&observed), Report::of(&observed).to_string())
    };
    let (said, _) = with(&[]);
    assert_eq!(said.state, State::Healthy);
    let (said, text) = with(&["ACL", "SSL"]);
    assert_eq!(said.state, State::Degraded);
    assert!(said.text.ends_with(
        "the backup on this host does not copy ACL from tcp:10.0.0.9:6641: if it becomes active, these are lost"
    ));
    assert!(said.remedy.unwrap().contains("ovsdb-server/set-sync-exclude-tables \"\""));
    assert!(text.contains("copies tcp:10.0.0.9:6641 without ACL, SSL"), "{text}");
    // where a server listens is its own affair
    assert_eq!(with(&["Connection", "SSL"]).0.state, State::Healthy);
}

/// The text that ovsdb-server 3.1 prints.
#[test]
fn the_status_of_a_cluster_is_read() {
    let text = "5ba9\nName: OVN_Northbound\nCluster ID: 5c34 (5c34d84c-4029-4156-a1b8-b8599569fa5b)\n\
                Server ID: 5ba9 (5ba96cd4-ffaa-4c0f-9661-506e78d550c4)\nAddress: tcp:127.0.0.1:17643\nStatus: cluster member\n\
                Role: leader\nTerm: 5\nLeader: self\nVote: self\n\nElection timer: 1000 (changing to 2000)\nLog: [2, 6]\n\
                Connections: ->1ea3 (->8c99)\nServers:\n    5ba9 (5ba9 at tcp:127.0.0.1:17643) (self) next_index=5 match_index=5\n\
                \x20   8c99 (8c99 at tcp:[::1]:17644) next_index=6 match_index=0 last msg 11126 ms ago\n";
    let status = ClusterStatus::parse(text).unwrap();
    assert!(status.is_member() && status.is_leader());
    assert_eq!((&*status.cluster, status.term, status.election_timer_ms, status.entries), (CLUSTER, 5, 1000, 4));
    assert!(status.timer_changes);
    let members: Vec<_> = status.members.iter().map(|m| (&*m.id, &*m.address, m.is_self, m.silent_ms)).collect();
    assert_eq!(members, [("5ba9", "tcp:127.0.0.1:17643", true, None), ("8c99", "tcp:[::1]:17644", false, Some(11126))]);
    for text in
        ["", "Servers:", "Server ID:", "Server ID: x\nServers:\n (", "Server ID: a (b)\nServers:\n)(\n(a at\n( at )"]
    {
        let _ = ClusterStatus::parse(text);
    }
}

/// The text of followers: of one that joined by the address of the leader, and does not know whom that connection leads to.
#[test]
fn the_connections_of_a_member_are_read() {
    let with = |connections: &str, others: &[&str]| {
        let others: Vec<String> = others.iter().map(|id| format!("    {id} ({id} at tcp:x:1)\n")).collect();
        let text = format!(
            "Server ID: aab2 (aab2)\nConnections: {connections}\nServers:\n    aab2 (aab2 at tcp:x:2) (self)\n{}",
            others.concat()
        );
        let status = ClusterStatus::parse(&text).unwrap();
        status.members[1..].iter().map(|listed| (listed.calls, listed.reached)).collect::<Vec<_>>()
    };
    let two = ["6618", "d7f3"];
    assert_eq!(with("->0000 <-6618 <-d7f3 ->d7f3", &two), [(true, Some(true)), (true, Some(true))]);
    assert_eq!(with("->0000 <-6618 (->d7f3)", &two), [(true, Some(true)), (false, Some(false))]);
    assert_eq!(with("(->0000) (->d7f3)", &two), [(false, Some(false)), (false, Some(false))]);
    assert_eq!(with("->0000 (->0000) <-0000", &two), [(false, None), (false, None)]);
    assert_eq!(with("->0000 ->d7f3", &["6618", "d7f3", "60fb"]), [(false, None), (false, Some(true)), (false, None)]);
    assert_eq!(with("", &two), [(false, Some(false)), (false, Some(false))]);
    // unix sockets have the same name
    let status = |connections: &str| {
        let text = format!(
            "Server ID: afa4 (afa4)\nConnections: {connections}\nServers:\n    raft (3c1e at unix:/c/raft)\n    raft (afa4 at \
             unix:/b/raft) (self)\n    raft (bc53 at unix:/a/raft) last msg 66 ms ago\n"
        );
        let status = ClusterStatus::parse(&text).unwrap();
        [0, 2].map(|at| (status.members[at].calls, status.members[at].reached))
    };
    assert_eq!(status("->raft <-raft <-raft ->raft"), [(false, Some(true)); 2]);
    assert_eq!(status("->raft <-raft (->raft)"), [(false, None); 2]);
    assert_eq!(status("(->raft) (->raft)"), [(false, Some(false)); 2]);
    with("( -> <- (-> )->6618 (<-6618)", &two);
}

/// A healthy cluster, on the host of the first member.
fn guarded(change: impl FnOnce(&mut Control), northd: Option<Northd>) -> (State, String, String) {
    let mut observed = Observed { northd, ..seen("LFF", Some(0)) };
    change(observed.servers[0].control.as_mut().unwrap());
    let said = judge(&observed);
    assert!(said.text.starts_with("healthy: all 3 members are connected, one may fail"), "{}", said.text);
    let more = said.text.trim_start_matches("healthy: all 3 members are connected, one may fail").to_owned();
    (said.state, more.trim_start_matches("; ").to_owned(), said.remedy.unwrap_or_default())
}

#[test]
fn disks_logs_and_northd_are_guarded() {
    let file = |bytes, free| Some(DatabaseFile { path: "/db".to_owned(), bytes, free, read_only: false });
    let with_file = |bytes, free| guarded(|control| control.file = file(bytes, free), None);
    let well = || (State::Healthy, String::new(), String::new());
    assert_eq!(with_file(1_000_000, None), well());
    assert_eq!(with_file(1_000_000, Some(101_000_000)), well());
    let (state, text, remedy) = with_file(1_000_000, Some(100_999_999));
    assert_eq!((state, &*text), (State::Degraded, "the disk of /db is nearly full: 100 MB are left"));
    assert!(remedy.starts_with("make room there"), "{remedy}");
    assert_eq!(with_file(u64::MAX, Some(1)).1, "the disk of /db is nearly full: 1 bytes are left");
    assert_eq!((with_file(1, Some(0)).0, &*with_file(1, Some(0)).1), (State::Degraded, "the disk of /db is full"));
    let locked =
        |control: &mut Control| control.file = file(1, None).map(|file| DatabaseFile { read_only: true, ..file });
    assert_eq!(guarded(locked, None).1, "/db is on a file system that takes no writes");
    // of a server that is alone, that is the end of writes
    let mut alone = seen("A", Some(0));
    alone.servers[0].control.as_mut().unwrap().file = file(1, Some(0));
    assert_eq!(judge(&alone).state, State::Broken);

    let with_entries = |entries, bytes| {
        let grow = |control: &mut Control| {
            control.file = file(bytes, None);
            control.cluster.as_mut().unwrap().entries = entries;
        };
        guarded(grow, None)
    };
    assert_eq!(with_entries(100_001, 100_000_000), well());
    assert_eq!(with_entries(100_000, 200_000_000), well());
    let (state, text, remedy) = with_entries(100_001, 200_000_000);
    assert_eq!((state, &*text), (State::Degraded, "the log in /db has grown to 100001 entries and 200 MB"));
    assert_eq!(remedy, "run ovnkube db compact nb on this host");

    let northd = |this_host: Option<&str>, nb_cfg, sb_cfg| {
        let northd = Northd {
            this_host: this_host.map(str::to_owned),
            active: Some(true),
            nb_cfg: Some(nb_cfg),
            sb_cfg: Some(sb_cfg),
        };
        let line = Report::of(&Observed { northd: Some(northd.clone()), ..seen("LFF", Some(0)) }).to_string();
        let line = line.lines().find(|line| line.starts_with("  northd")).unwrap().trim().to_owned();
        (guarded(|_| {}, Some(northd)), line)
    };
    assert_eq!(northd(Some("active"), 0, 0), (well(), "northd, here: active, no change was marked".to_owned()));
    let all = "northd, not here, active on another host, has taken in all marked changes, the newest is 7";
    assert_eq!(northd(None, 7, 7), (well(), all.to_owned()));
    let ((state, text, _), line) = northd(Some("standby"), 7, 5);
    assert_eq!((state, &*text), (State::Degraded, "northd has not taken in the newest change that was marked"));
    assert_eq!(line, "northd, here: standby, active on another host, has taken in mark 5 of 7");
    let ((_, text, remedy), _) = northd(Some("paused"), 7, 7);
    assert_eq!(
        (&*text, &*remedy),
        ("northd on this host is paused", "run ovn-appctl -t ovn-northd resume on this host")
    );
    // what is wrong with servers is said first
    let mut lost = seen("LFx", Some(0));
    lost.servers[0].control.as_mut().unwrap().file = file(1000, Some(1000));
    let said = judge(&lost);
    assert!(
        said.text.starts_with("works, but one more loss stops writes") && said.text.ends_with("1000 bytes are left")
    );
    assert!(said.remedy.unwrap().ends_with("; make room there: without it, ovsdb-server cannot write"));
}

#[test]
fn masters_say_that_a_disk_is_full_and_a_log_has_grown() {
    let told = |free, entries: Option<u64>| {
        let file = DatabaseFile { path: "/db".to_owned(), bytes: 200_000_000, free: Some(free), read_only: false };
        let status = entries.map(|entries| ClusterStatus { entries, ..ClusterStatus::default() });
        let problems = file_problems(&file, status.as_ref(), "sb").into_iter();
        problems.map(|problem| (problem.reason, problem.is_full, problem.text)).collect::<Vec<_>>()
    };
    let grown = || {
        let text = "the log in /db has grown to 100001 entries and 200 MB; run ovnkube db compact sb on this host";
        ("DatabaseLogGrown", false, text.to_owned())
    };
    assert!(told(1_000_000_000, None).is_empty() && told(1_000_000_000, Some(100_000)).is_empty());
    assert_eq!(told(1_000_000_000, Some(100_001)), [grown()]);
    let both = told(0, Some(100_001));
    assert_eq!(both[1..], [grown()]);
    let (reason, is_full, text) = &both[0];
    assert_eq!((*reason, *is_full), ("DatabaseDiskFull", true));
    assert!(
        text.starts_with("the disk of /db is full; make room there: ovsdb-server cannot write until then; as soon")
    );
    let nearly = told(1000, None);
    assert_eq!((nearly.len(), nearly[0].0, nearly[0].1), (1, "DatabaseDiskFull", false));
}

#[test]
fn the_active_northd_is_named_or_missed() {
    let with = |this_host: Option<&str>, active| {
        let northd = Northd { this_host: this_host.map(str::to_owned), active, nb_cfg: Some(0), sb_cfg: Some(0) };
        let text = Report::of(&Observed { northd: Some(northd.clone()), ..seen("LFF", Some(0)) }).to_string();
        let line = text.lines().find(|line| line.starts_with("  northd")).unwrap().trim().to_owned();
        let line = line.trim_end_matches(", no change was marked").to_owned();
        let (state, text, _) = guarded(|_| {}, Some(northd));
        assert_eq!(state == State::Healthy, text.is_empty(), "{text}");
        (line, text)
    };
    let none = "no northd is active: changes of the northbound database have no effect";
    for (here, active, line, problem) in [
        (Some("active"), Some(true), "here: active", ""),
        (Some("standby"), Some(true), "here: standby, active on another host", ""),
        (None, Some(true), "not here, active on another host", ""),
        (None, None, "not here, not known whether active elsewhere", ""),
        (None, Some(false), "not here, none is active", none),
        (Some("standby"), Some(false), "here: standby, none is active", none),
        (Some("paused"), Some(false), "here: paused, none is active", "northd on this host is paused"),
        (
            Some("active"),
            Some(false),
            "here: active, none is active",
            "northd on this host is active, but not with the southbound database of --sb-address",
        ),
        (
            Some("no answer: no answer within 3 s"),
            Some(true),
            "here: no answer: no answer within 3 s, one has the lock of the active one",
            "northd on this host does not answer",
        ),
    ] {
        assert_eq!(with(here, active), (format!("northd, {line}"), problem.to_owned()));
    }
}

#[test]
fn an_election_timer_is_doubled_at_most() {
    let with = |timer: &str, role: &str, wanted| {
        let text =
            format!("Server ID: a (b)\nStatus: cluster member\nRole: {role}\nElection timer: {timer}\nServers:\n");
        ClusterStatus::parse(&text).unwrap().timer_step(wanted)
    };
    assert_eq!(with("1000", "leader", 5000), TimerStep::Set(2000));
    assert_eq!(with("4000", "leader", 5000), TimerStep::Set(5000));
    assert_eq!(with("5000", "leader", 5000), TimerStep::Right);
    assert_eq!(with("16000", "leader", 1000), TimerStep::Set(1000));
    assert_eq!(with("1000", "follower", 5000), TimerStep::NotOurs);
    assert_eq!(with("", "leader", 5000), TimerStep::NotOurs);
    assert_eq!(with("18446744073709551615", "leader", 5000), TimerStep::Set(5000));
    assert_eq!(with("2000 (changing to 4000)", "leader", 5000), TimerStep::UnderWay);
    assert_eq!(with("4000 (changing to 8000)", "leader", 4000), TimerStep::UnderWay);
}

#[test]
fn the_report_for_people_and_programs() {
    let report = Report::of(&seen("LFx", Some(0)));
    let text = report.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "OVN_Northbound, cluster 5c34d84c-4029-4156-a1b8-b8599569fa5b, schema 7.0.0, term 5",
            "  tcp:10.0.0.1:6641 (aaaa), this host: leader, entry 1000",
            "  tcp:10.0.0.2:6641 (bbbb): follower, 1 entry behind",
            "  tcp:10.0.0.3:6641 (cccc): no answer: it was silent for 3 s, last heard 40 s ago by this host's",
        ]
    );
    assert!(lines[4].starts_with("  works, but one more loss stops writes"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["database"], &json["state"]), (&"OVN_Northbound".into(), &"degraded".into()));
    assert_eq!((&json["servers"][1]["role"], &json["servers"][2]["role"]), (&"follower".into(), &"unknown".into()));
    assert_eq!((&json["servers"][2]["connected"], &json["servers"][2]["silent_ms"]), (&false.into(), &40_000.into()));
}
