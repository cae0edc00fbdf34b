//! `ovnkube db` and a master where the disk is full: real servers with their files on a small file system.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ovnkube_tests::nb::{Release, until};
use ovnkube_tests::raft::Member;

use crate::db::{addresses, db, told};
use crate::lab::Lab;
use crate::one_process::get;

/// A small file system in the directory of a host, until dropped.
pub(crate) struct Small(PathBuf);

impl Small {
    pub(crate) fn new(dir: &Path, kilobytes: u32) -> Self {
        let size = format!("size={kilobytes}k");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size, "none"]).arg(dir);
        assert!(command.status().unwrap().success(), "this test needs root");
        Self(dir.to_owned())
    }

    /// Takes what is left, but for this much.
    pub(crate) fn fill(&self, left: usize) {
        let _ = std::fs::write(self.filling(), vec![b'x'; 4 << 20]);
        let all = self.filling().metadata().unwrap().len();
        let file = std::fs::File::options().write(true).open(self.filling()).unwrap();
        file.set_len(all - left as u64).unwrap();
    }

    pub(crate) fn make_room(&self) {
        std::fs::remove_file(self.filling()).unwrap();
    }

    fn filling(&self) -> PathBuf {
        self.0.join("filling")
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// The only member of a cluster, whose file is on a small file system.
fn alone_on_a_small_disk() -> (Member, Small) {
    let mut member = Member::new(Release::Host);
    let small = Small::new(member.dir(), 1000);
    member.create_cluster();
    member.start();
    member.joined();
    (member, small)
}

/// A server in no cluster, whose file is on a small file system.
fn in_no_cluster(release: Release) -> (Member, Small) {
    let mut alone = Member::new(release);
    let small = Small::new(alone.dir(), 1000);
    let (file, schema) = (alone.file(), ovnkube_tests::raft::schema(release, "ovn-nb.ovsschema"));
    let words = ["create".as_ref(), file.as_os_str(), schema.as_os_str()];
    ovnkube_tests::raft::run::<&std::ffi::OsStr>(release, "ovsdb-tool", &words);
    alone.start();
    (alone, small)
}

/// More than is left on a page of the file.
fn large(letter: &str) -> String {
    format!("external_ids:x={}", letter.repeat(8000))
}

#[tokio::test]
async fn a_member_that_could_not_write_is_named_and_started_again() {
    let (mut member, small) = alone_on_a_small_disk();
    let address = member.remote();
    small.fill(0);
    let update = format!(
        r#"["OVN_Northbound",{{"op":"insert","table":"Address_Set","row":{{"name":"{}"}}}}]"#,
        "x".repeat(8000)
    );
    // it never answers
    let mut command = Release::Host.command("ovsdb-client");
    let out = command.args(["--timeout=5", "transact", &address, &update]).output().unwrap();
    assert!(!out.status.success());
    let no_leader =
        format!("no leader, no writes: {address} could not write its file, and takes part in nothing since");
    let said = told(&member, &address, 2, &no_leader).await;
    assert!(said.out.contains("this host: has failed: it could not write its file"), "{}", said.out);
    assert!(said.out.contains("is full"), "{}", said.out);

    // room alone does not help
    small.make_room();
    let said = told(&member, &address, 2, &no_leader).await;
    assert!(said.out.contains("then start ovsdb-server again"), "{}", said.out);
    member.kill();
    member.start();
    told(&member, &address, 2, "takes writes, but no member may fail: it is the only one; the disk of").await;
    member.kill();
}

#[tokio::test]
async fn a_follower_whose_disk_was_full_is_compacted_before_it_is_stopped() {
    let mut members = Member::cluster(Release::Host, 2);
    let mut last = Member::new(Release::Host);
    let small = Small::new(last.dir(), 1000);
    let first = members[0].remote();
    db(&last, &["join", "nb", &last.raft(), &members[0].raft()], &first).has(0, "is made; start ovsdb-server");
    last.start();
    last.joined();
    members.push(last);
    let all = addresses(&members);
    // such a small disk is always nearly full
    told(&members[2], &all, 2, "healthy: all 3 members are connected, one may fail; the disk of").await;

    small.fill(0);
    for letter in ["a", "b", "c"] {
        members[0].nbctl(&["set", "NB_Global", ".", &large(letter)]);
    }
    // it says that all is well
    let said = told(&members[2], &all, 2, "is full").await;
    assert!(said.out.contains("run ovnkube db compact, before ovsdb-server is stopped"), "{}", said.out);
    let leader = members.iter().find(|member| member.is_leader()).unwrap();
    let said = told(leader, &all, 2, "2 of 3 members are connected").await;
    let of = members[2].remote();
    let line = said.out.lines().find(|line| line.contains(&of)).unwrap();
    assert!(line.contains("answers, but does not confirm what the leader sends"), "{}", said.out);
    assert!(
        said.out.contains(&format!("{of} answers clients, but does not confirm to the leader what it is sent")),
        "{}",
        said.out
    );
    db(&members[2], &["compact", "nb"], &all).has(2, "make room there first");

    small.make_room();
    members[0].nbctl(&["ls-add", "later"]);
    db(&members[2], &["compact", "nb"], &all).has(0, "the file had ");
    members[2].kill();
    members[2].start();
    told(&members[0], &all, 0, "healthy: all 3 members are connected, one may fail").await;
    until("all contents", async || members[2].nbctl(&["ls-list"]).contains("later")).await;
    // the file system goes first
    members.clear();
}

#[tokio::test]
async fn a_file_is_compacted_where_there_is_room_for_its_contents() {
    let (mut member, small) = alone_on_a_small_disk();
    let address = member.remote();
    for letter in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        member.nbctl(&["set", "NB_Global", ".", &large(letter)]);
    }
    let before = member.file().metadata().unwrap().len();
    // less than the schema and one value
    small.fill(16_000);
    let said = db(&member, &["compact", "nb"], &address);
    said.has(
        2,
        &format!("the server writes a second file beside {} meanwhile, which may need", member.file().display()),
    );
    said.has(2, &format!("and {} has ", member.dir().display()));
    assert_eq!(member.file().metadata().unwrap().len(), before);
    // less than the file has, but more than its contents
    small.make_room();
    small.fill(before as usize - 10_000);
    db(&member, &["compact", "nb"], &address).has(0, "the file had ");
    assert!(member.file().metadata().unwrap().len() < before);

    // alone, a server whose disk is full says nothing of it, and cannot be written
    member.kill();
    drop(member);
    drop(small);
    let (mut alone, small) = in_no_cluster(Release::Host);
    small.fill(0);
    let said = told(&alone, &alone.remote(), 2, "is full").await;
    assert!(said.out.contains("make room there: ovsdb-server cannot write until then"), "{}", said.out);
    alone.kill();
    drop(alone);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_says_that_the_disk_of_its_own_server_is_nearly_full() {
    let lab = Lab::new().await;
    let (alone, small) = in_no_cluster(Release::Lts);
    let flags = [format!("--nb-address={}", alone.remote()), format!("--nb-run-dir={}", alone.dir().display())];
    let master = lab.start("init-master=one", &flags.each_ref().map(String::as_str));
    let events = async || lab.api.events("ovn-kubernetes").await;
    // such a small disk always is
    let told = format!("OVN_Northbound on host one: the disk of {} is nearly full: ", alone.file().display());
    let tells = |(reason, message): &(String, String)| {
        reason == "DatabaseDiskFull" && message.starts_with(&told) && message.contains("; make room there")
    };
    until("an Event", async || events().await.iter().any(tells)).await;
    assert_eq!(master.log().matches(&told).count(), 1, "{}", master.log());
    master.kill();
    drop(alone);
    drop(small);
}

/// The names of the ports of pods.
fn ports(member: &Member) -> Vec<String> {
    let words = ["--bare", "--columns=name", "find", "Logical_Switch_Port", "external_ids:pod=true"];
    let mut names: Vec<String> = member.nbctl(&words).split_whitespace().map(str::to_owned).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_goes_on_where_the_disk_of_a_server_alone_was_full() {
    let lab = Lab::new().await;
    lab.api.node("a").await;
    let (mut alone, small) = in_no_cluster(Release::Lts);
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, a | 128, b, c], 9413));
    let flags = [format!("--nb-address={}", alone.remote()), format!("--metrics-bind-address={address}")];
    let master = lab.start("init-master=one", &flags.each_ref().map(String::as_str));
    lab.ready(&master).await;
    let ready = || get(address, "/readyz");
    until("the master is ready", async || ready().ends_with("ok\n")).await;

    // or ovn-nbctl would write when it reads
    alone.nbctl(&["init"]);
    small.fill(0);
    // the first ones fit into what is left of a page
    let pods: Vec<String> = (10..40).map(|n| format!("p{n}")).collect();
    for pod in &pods {
        lab.api.pod(pod, "a").await;
    }
    let said = format!("northbound database: {}: server cannot write its file: ", alone.remote());
    until("the full disk in /readyz", async || ready().contains(&said)).await;
    assert!(ready().contains("No space left on device; make room on its disk"), "{}", ready());
    let events = async || lab.api.events("ovn-kubernetes").await;
    let tells = |(reason, message): &(String, String)| {
        reason == "DatabaseCannotWrite" && message.starts_with("the northbound database takes no changes: unix:")
    };
    until("an Event", async || events().await.iter().any(tells)).await;
    // it is tried again less and less often
    let tries = || master.log().matches("transaction failed").count();
    let before = tries();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(tries() - before < 30, "{} tries", tries() - before);
    assert!(ports(&alone).len() < pods.len());

    small.make_room();
    let wanted: Vec<String> = pods.iter().map(|pod| format!("default_{pod}")).collect();
    until("all ports", async || ports(&alone) == wanted).await;
    until("the end of that in /readyz", async || ready().ends_with("ok\n")).await;
    // no pod was blamed for it
    for pod in &pods {
        assert!(lab.api.events(pod).await.is_empty(), "{}", master.log());
    }
    let addresses = ["--bare", "--columns=name,addresses", "find", "Logical_Switch_Port"];
    let before = alone.nbctl(&addresses);
    alone.kill();
    alone.start();
    assert_eq!(ports(&alone), wanted, "the file has what the server said");
    assert_eq!(alone.nbctl(&addresses), before);
}

/// A server that cannot write stops: a copy is not worth that.
#[tokio::test]
async fn a_backup_does_not_fill_the_disk_of_the_database() {
    let (member, small) = alone_on_a_small_disk();
    let (address, file) = (member.remote(), member.dir().join("nb.backup"));
    small.fill(20_000);
    db(&member, &["backup", "nb", file.to_str().unwrap()], &address).has(2, "has its file on the same disk, where");
    assert!(!file.exists());
    small.make_room();
    db(&member, &["backup", "nb", file.to_str().unwrap()], &address).has(0, "are in");
}
