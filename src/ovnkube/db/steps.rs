//! The steps. Each looks, asks whether it is allowed, acts, and says what was done and what its user does next.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use ovnkube_config::{Raft, Remote};
use ovnkube_db::{ClusterStatus, Here, Listed};
use ovnkube_ovsdb::NoAnswer;
use tokio::time::{Instant, sleep};

use super::contents::Contents;
use super::files::{Temporary, beside, install, is_open, kept_members, open_by, unused};
use super::look::{is_here, look, runs};
use super::place::{Place, WITHIN, is_there};
use super::programs::{Failed, client, printed, text, tool, tool_prints, tool_says};
use crate::system::{is_same_disk, is_same_file};

/// A large file takes long to write.
const COMPACT_WITHIN: Duration = Duration::from_secs(120);
/// The others agree at once, or do not answer.
const AGREE_WITHIN: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

const LEFT: &str =
    "this host's member has left its cluster; stop ovsdb-server and remove its file: nothing can use it any more";

pub(crate) struct Steps {
    place: Place,
}

impl Steps {
    pub(crate) fn new(place: Place) -> Self {
        Self { place }
    }

    fn name(&self) -> &'static str {
        self.place.database.name
    }

    pub(crate) async fn backup(&self, file: &Path) -> Result<String, Failed> {
        let source = ovnkube_db::backup(&look(&self.place).await)?;
        self.has_room(file, 0)?;
        self.save(&source.address, file).await?;
        let note = source.note.map(|note| format!("; {note}")).unwrap_or_default();
        Ok(format!("the contents of {} are in {}{note}", source.address, file.display()))
    }

    /// Refuses to fill the disk that the member on this host writes to: it would stop. `more` is written beside the file, or by the member.
    fn has_room(&self, file: &Path, more: u64) -> Result<(), Failed> {
        let directory = file.parent().filter(|directory| *directory != Path::new("")).unwrap_or(Path::new("."));
        let member = open_by(&self.place).filter(|member| is_same_disk(directory, Path::new(&member.path)));
        let Some((bytes, free)) = member.and_then(|member| Some((member.bytes, member.free?))) else { return Ok(()) };
        // the copy may be as large, and the member may write its own file anew
        let needed = bytes.saturating_mul(2).saturating_add(more);
        if free >= needed {
            return Ok(());
        }
        Err(Failed::Refused(format!(
            "cannot write {}: the database on this host has its file on the same disk, where {} kB are left; name a file on another disk, or \
             make room for {} kB",
            file.display(),
            free / 1000,
            needed / 1000
        )))
    }

    /// Writes the contents that a server has to a new file.
    async fn save(&self, address: &str, file: &Path) -> Result<()> {
        absent(file)?;
        let new = Temporary::beside(file, "new");
        let out = new.create()?;
        let mut command = client(self.place.tls.as_ref());
        command.args(["--no-leader-only", "backup", address, self.name()]).stdout(Stdio::from(out));
        let written = async {
            text(&mut command).await?;
            let has = tool(&[OsStr::new("db-name"), new.0.as_os_str()]).await?;
            if has != self.name() {
                bail!("what the server sent is of the database {has}");
            }
            // ovsdb-client does not notice a disk that fills at the end
            if let Some(why) = damage(&new.0).await {
                bail!("what was written is not complete: {why}; is the disk full?");
            }
            Ok(install(&new.0, file, false)?)
        };
        written.await.with_context(|| format!("cannot back up {} to {}", self.name(), file.display()))
    }

    pub(crate) async fn restore(&self, file: &Path) -> Result<String, Failed> {
        let cannot = || format!("cannot restore {}", file.display());
        let words = |word: &'static str| [OsStr::new(word), file.as_os_str()];
        if !tool_says(&words("db-is-standalone")).await? {
            let problem =
                "it is no backup; a file of a cluster's member is none, and would bring back what was true then";
            return Err(anyhow!("{}: {problem}", cannot()).into());
        }
        let (name, schema) = (tool(&words("db-name")).await?, tool(&words("db-version")).await?);
        let observed = look(&self.place).await;
        let bytes = file.metadata().map_or(0, |file| file.len());
        let target = ovnkube_db::restore(&observed, &name, &schema, bytes)?;
        whole(file, "restore").await?;
        // of a restore that was cut short, one may be there
        let replaced = unused(file, "replaced");
        self.has_room(&replaced, bytes.saturating_mul(2))?;
        let contents = Contents::copied(file).with_context(cannot)?;
        if target.older_than.is_some() {
            contents.convert(&self.place, &target.address, file).await.with_context(cannot)?;
        }
        self.save(&target.address, &replaced).await?;
        contents.keep_own_rows(&self.place, &replaced).await.with_context(cannot)?;
        let from = contents.open().with_context(cannot)?;
        let mut command = client(self.place.tls.as_ref());
        command.args(["restore", &target.address, self.name()]).stdin(Stdio::from(from));
        text(&mut command).await.map_err(|error| {
            anyhow!(
                "{}: {error:#}{}; what the database had before is in {}",
                cannot(),
                if is_open_ended(&error) { "; it is not known whether it was written" } else { "" },
                replaced.display()
            )
        })?;
        let how =
            target.older_than.map(|newer| format!(", converted from schema {schema} to {newer}")).unwrap_or_default();
        Ok(format!(
            "{} has the contents of {}{how}; what it had before is in {}. Where it listens, and with which certificate (Connection, SSL), \
             stays as it was. ovnkube and northd write at once what differs from Kubernetes",
            target.address,
            file.display(),
            replaced.display()
        ))
    }

    pub(crate) async fn compact(&self) -> Result<String, Failed> {
        let observed = look(&self.place).await;
        let contents = if ovnkube_db::is_tight(&observed) { self.contents().await.ok() } else { None };
        ovnkube_db::compact(&observed, contents)?;
        let size = || open_by(&self.place).map_or(0, |file| file.bytes / 1000);
        let before = size();
        let done = self.place.control("ovsdb-server/compact", &[self.name()], COMPACT_WITHIN).await;
        done.map_err(|error| anyhow!("cannot compact the database: {error}; is the disk full?"))?;
        Ok(format!("the file had {before} kB and has {} kB", size()))
    }

    /// The bytes of what the server on this host has, without what was before: it is sent as a compacted file has it.
    async fn contents(&self) -> Result<u64> {
        let socket = format!("unix:{}", self.place.run_file("sock").display());
        let mut command = client(None);
        command.args(["--timeout=60", "--no-leader-only", "backup", &socket, self.name()]);
        printed(&mut command).await
    }

    pub(crate) async fn leave(&self) -> Result<String, Failed> {
        let observed = look(&self.place).await;
        if observed.here().is_none() && self.has_left().await? {
            return Ok(LEFT.to_owned());
        }
        let note = ovnkube_db::leave(&observed)?;
        let asked = self.place.control("cluster/leave", &[self.name()], WITHIN).await;
        let silence = accepted(asked).map_err(|why| anyhow!("cannot leave the cluster: {why}"))?;
        // a server closes a database whose cluster it has left
        let is_gone = async || {
            let names = self.place.control("ovsdb-server/list-dbs", &[], WITHIN).await;
            names.is_ok_and(|names| !names.lines().any(|name| name == self.name()))
        };
        if !agreed(is_gone).await {
            return Err(not_known("this host's member leaves its cluster", silence, self.place.word, "").into());
        }
        let note = note.map(|note| format!("; {note}")).unwrap_or_default();
        Ok(format!("{LEFT}{note}"))
    }

    /// Whether the member whose file this host has left its cluster: an earlier command was cut short at its end.
    async fn has_left(&self) -> Result<bool, Failed> {
        let file = self.place.file();
        let noted = is_there(&file) && {
            let (log, _) = tool_prints(&[OsStr::new("show-log"), file.as_os_str()]).await?;
            is_left(&log)
        };
        if !noted && runs(&self.place).await {
            return Err(Failed::Refused(format!(
                "ovsdb-server runs on this host without the database {}: look at its log, and at the files that it was started with",
                self.name()
            )));
        }
        Ok(noted)
    }

    pub(crate) async fn remove(&self, member: &str) -> Result<String, Failed> {
        let observed = look(&self.place).await;
        if ovnkube_db::lacks(&observed, member) && self.has_had(member).await {
            return Ok(format!("{member} is no member of the cluster any more"));
        }
        let removal = ovnkube_db::remove(&observed, member)?;
        let asked = self.place.control("cluster/kick", &[self.name(), &removal.id], WITHIN).await;
        let silence = accepted(asked).map_err(|why| anyhow!("cannot remove member {}: {why}", removal.id))?;
        let is_gone = async || {
            let said = self.place.control("cluster/status", &[self.name()], WITHIN).await.ok();
            let status = said.as_deref().and_then(ClusterStatus::parse);
            status.is_some_and(|status| !status.members.iter().any(|listed| listed.id == removal.id))
        };
        if !agreed(is_gone).await {
            let what = format!("member {} is removed", removal.id);
            return Err(not_known(&what, silence, self.place.word, &format!(" {}", removal.id)).into());
        }
        let note = removal.note.map(|note| format!("; {note}")).unwrap_or_default();
        Ok(format!("member {} at {} is removed from the cluster{note}", removal.id, removal.address))
    }

    /// Whether the log of the member on this host tells of this one.
    async fn has_had(&self, member: &str) -> bool {
        let Some(file) = open_by(&self.place) else { return false };
        let log = tool_prints(&[OsStr::new("show-log"), OsStr::new(&file.path)]).await;
        log.is_ok_and(|(log, _)| lists(&log).any(|list| listed(list).any(|listed| listed.is(member))))
    }

    pub(crate) async fn join(&self, raft: &Raft) -> Result<String, Failed> {
        let file = self.file()?;
        let (observed, here) = (look(&self.place).await, self.here(&file).await?);
        let local = raft.local.to_string();
        let cluster = ovnkube_db::join(&observed, &here, &local, &members(raft))?;
        of_this_host(&raft.local)?;
        let new = self.joiner(&file, &cluster, raft).await?;
        let left = (here == Here::Left).then(|| unused(&file, "left"));
        left.as_deref().map(|left| keep(&file, left)).transpose()?;
        installed(&new, &file, here != Here::Nothing)?;
        let kept = left.map(|left| format!(", and that of the member that has left is {}", left.display()));
        Ok(format!("{} is made{}; {}", file.display(), kept.unwrap_or_default(), self.start(&raft.local)))
    }

    pub(crate) async fn replace(&self, raft: &Raft) -> Result<String, Failed> {
        let file = self.file()?;
        let (observed, here) = (look(&self.place).await, self.here(&file).await?);
        let local = raft.local.to_string();
        let (cluster, old) = ovnkube_db::replace(&observed, &here, &local, &members(raft))?;
        of_this_host(&raft.local)?;
        let kept = beside(&file, &old);
        // of a replacement that was cut short at its end, the old file is kept already
        let is_kept = matches!(here, Here::Member { joined: false, .. });
        if !is_kept {
            not_another(&kept, &file)?;
        }
        let new = self.joiner(&file, &cluster, raft).await?;
        if !is_kept {
            keep(&file, &kept)?;
        }
        installed(&new, &file, true)?;
        Ok(format!(
            "{} is made, and the old one is {}; {}, and as soon as it is a member, remove the old one: ovnkube db leave {} {old}",
            file.display(),
            kept.display(),
            self.start(&raft.local),
            self.place.word
        ))
    }

    pub(crate) async fn bootstrap(&self, local: &Remote, contents: Option<&Path>) -> Result<String, Failed> {
        let file = self.file()?;
        let (observed, here) = (look(&self.place).await, self.here(&file).await?);
        let start = format!("ovn-ctl {} start_{}_ovsdb, with its other options", self.own(local), self.place.word);
        if !ovnkube_db::bootstrap(&observed, &here, &local.to_string(), contents.is_some())? {
            return Ok(format!("{} is made already; start ovsdb-server: {start}", file.display()));
        }
        of_this_host(local)?;
        if let Some(contents) = contents {
            whole(contents, "make the cluster from").await?;
        }
        let schema = self.schema();
        let from: &Path = match contents {
            Some(contents) => contents,
            None if here == Here::Alone => &file,
            None => &schema,
        };
        let command = if from == schema { "schema-name" } else { "db-name" };
        let has = tool(&[OsStr::new(command), from.as_os_str()]).await?;
        if has != self.name() {
            let problem = format!("{} is of the database {has}, not {}", from.display(), self.name());
            return Err(anyhow!("cannot make the cluster: {problem}").into());
        }
        let copy = Some(beside(&file, "alone")).filter(|_| here == Here::Alone);
        copy.as_deref().map(|copy| not_another(copy, &file)).transpose()?;
        let local_text = local.to_string();
        let new = Temporary::beside(&file, "new");
        tool(&[OsStr::new("create-cluster"), new.0.as_os_str(), from.as_os_str(), OsStr::new(&local_text)]).await?;
        copy.as_deref().map(|copy| keep(&file, copy)).transpose()?;
        installed(&new, &file, here != Here::Nothing)?;
        let kept = copy.map(|copy| format!(", and the old one is {}", copy.display())).unwrap_or_default();
        Ok(format!("{} is made{kept}; start ovsdb-server: {start}", file.display()))
    }

    pub(crate) async fn convert(&self, schema: Option<&Path>) -> Result<String, Failed> {
        let schema = schema.map_or_else(|| self.schema(), Path::to_owned);
        let (name, version) = (schema_word(&schema, "name").await?, schema_word(&schema, "version").await?);
        let Some(target) = ovnkube_db::convert(&look(&self.place).await, &name, &version)? else {
            return Ok(format!("{} has the schema {version} already", self.name()));
        };
        let mut command = client(self.place.tls.as_ref());
        command.args(["convert", &target.address]).arg(&schema);
        text(&mut command).await.with_context(|| format!("cannot convert {}", self.name()))?;
        Ok(format!("{} has the schema {version}", self.name()))
    }

    /// The file of the database on this host, or where it is to be. A file is made beside the one that a link leads to.
    fn file(&self) -> Result<PathBuf, Failed> {
        let file = self.place.file();
        if !file.is_symlink() {
            return Ok(file);
        }
        file.canonicalize().map_err(|error| {
            Failed::Refused(format!(
                "{} is a link that leads nowhere ({error}); mount the disk of its file, or remove the link",
                file.display()
            ))
        })
    }

    /// What this host has of the database.
    async fn here(&self, file: &Path) -> Result<Here> {
        if runs(&self.place).await || is_open(file) {
            return Ok(Here::Runs);
        }
        if !is_there(file) {
            return Ok(Here::Nothing);
        }
        let words = |word: &'static str| [OsStr::new(word), file.as_os_str()];
        if tool_says(&words("db-is-standalone")).await? {
            return Ok(Here::Alone);
        }
        let (id, address) = (tool(&words("db-sid")).await?, tool(&words("db-local-address")).await?);
        // ovsdb-server ignores a record at the end that a loss of power has cut off
        let (log, is_whole) = tool_prints(&words("show-log")).await?;
        if is_left(&log) {
            return Ok(Here::Left);
        }
        // a member that has not joined yet has none
        let cluster = tool(&words("db-cid")).await.ok();
        let joined = cluster.is_some() && is_listed(&log, &id);
        let replaces = if joined { None } else { replaced(file).await };
        Ok(Here::Member { id, address, cluster, joined, fresh: is_whole && records(&log) == 1, replaces })
    }

    /// Makes the file with which a server joins, beside the one that it will be.
    async fn joiner(&self, file: &Path, cluster: &str, raft: &Raft) -> Result<Temporary> {
        let (local, cluster) = (raft.local.to_string(), format!("--cid={cluster}"));
        let others = if raft.others.is_empty() { self.same_port(&raft.local) } else { raft.others.clone() };
        let others: Vec<String> = others.iter().map(Remote::to_string).filter(|other| *other != local).collect();
        if others.is_empty() {
            bail!(
                "cannot join: it is not known where the members reach each other; write their addresses behind {local}"
            );
        }
        let new = Temporary::beside(file, "new");
        let mut words =
            vec![OsStr::new(&cluster), OsStr::new("join-cluster"), new.0.as_os_str(), OsStr::new(self.name())];
        words.push(OsStr::new(&local));
        words.extend(others.iter().map(OsStr::new));
        tool(&words).await?;
        Ok(new)
    }

    /// The hosts that clients use, at the same port as this one.
    fn same_port(&self, local: &Remote) -> Vec<Remote> {
        use ovnkube_ovsdb::Remote as Client;
        let with = |remote: &Client| match (remote, local) {
            (Client::Tcp { host, .. } | Client::Ssl { host, .. }, Remote::Tcp(_, port)) => {
                Some(Remote::Tcp(host.clone(), *port))
            }
            (Client::Tcp { host, .. } | Client::Ssl { host, .. }, Remote::Ssl(_, port)) => {
                Some(Remote::Ssl(host.clone(), *port))
            }
            _ => None,
        };
        self.place.remotes.iter().filter_map(with).collect()
    }

    fn start(&self, local: &Remote) -> String {
        let (word, own) = (self.place.word, self.own(local));
        format!(
            "start ovsdb-server: ovn-ctl {own} --db-{word}-cluster-remote-addr=ADDRESS start_{word}_ovsdb, \
             with the address of a member and its other options"
        )
    }

    /// The options with this host's address; without the second one, a file that is lost would be made anew for plain TCP.
    fn own(&self, local: &Remote) -> String {
        let word = self.place.word;
        let tls = if local.scheme() == "ssl" { format!(" --db-{word}-cluster-local-proto=ssl") } else { String::new() };
        format!("--db-{word}-cluster-local-addr={}{tls}", host(local))
    }

    /// Where OVN's package has it.
    fn schema(&self) -> PathBuf {
        format!("/usr/share/ovn/ovn-{}.ovsschema", self.place.word).into()
    }
}

/// The member whose file is kept beside the one that replaces it. A person's copy may have such a name too.
async fn replaced(file: &Path) -> Option<String> {
    for member in kept_members(file) {
        let id = tool(&[OsStr::new("db-sid"), beside(file, &member).as_os_str()]).await;
        if id.is_ok_and(|id| id.starts_with(&member)) {
            return Some(member);
        }
    }
    None
}

/// How many records the output of `ovsdb-tool show-log` has.
fn records(log: &str) -> usize {
    log.lines().filter(|line| line.starts_with("record ")).count()
}

async fn whole(file: &Path, step: &str) -> Result<(), Failed> {
    damage(file).await.map_or(Ok(()), |why| {
        Err(Failed::Refused(format!(
            "cannot {step} {}: it is damaged, and nothing was changed: {why}; take another backup, or copy this one again",
            file.display()
        )))
    })
}

/// Reads all of a backup. Servers and tools ignore what is behind a damaged record, and a file that ends early between two records looks
/// like a database without contents.
async fn damage(file: &Path) -> Option<String> {
    match tool(&[OsStr::new("show-log"), file.as_os_str()]).await {
        Err(error) => Some(error.to_string()),
        Ok(log) if records(&log) < 2 => Some("it has a schema and no contents".to_owned()),
        Ok(_) => None,
    }
}

/// Whether a server may have done what ovsdb-client has asked: its answer is lost, or it lost its cluster meanwhile.
fn is_open_ended(error: &anyhow::Error) -> bool {
    let said = error.to_string();
    ["transaction failed", "cluster error", "does not end within"].iter().any(|part| said.contains(part))
}

/// Whether the newest list of servers in a member's log has the member. The file of a join that was cut short has only others'.
fn is_listed(log: &str, id: &str) -> bool {
    lists(log).last().is_some_and(|list| listed(list).any(|listed| listed.is(id)))
}

/// The lists of servers in a member's log, such as `1a2b("tcp:10.0.0.1:6643"), 3c4d("tcp:10.0.0.2:6643")`.
fn lists(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter_map(|line| line.trim_start().trim_start_matches("prev_").strip_prefix("servers: "))
}

fn listed(list: &str) -> impl Iterator<Item = Listed> {
    list.split(", ").filter_map(|server| {
        let (id, address) = server.trim().split_once('(')?;
        let address = address.trim_end_matches(')').trim_matches('"').to_owned();
        Some(Listed { id: id.to_owned(), address, ..Listed::default() })
    })
}

/// Whether the member with this log has left its cluster.
fn is_left(log: &str) -> bool {
    log.lines().any(|line| line.trim() == "note: \"left\"")
}

async fn schema_word(schema: &Path, word: &str) -> Result<String> {
    let command = format!("schema-{word}");
    let read = tool(&[OsStr::new(&command), schema.as_os_str()]).await;
    read.with_context(|| format!("cannot read the schema {}", schema.display()))
}

/// What a server answers when it is to change its cluster: why it does not, or why it is not known whether it does. Then it may do it all
/// the same, and what it did shows later.
fn accepted(asked: Result<String, NoAnswer>) -> Result<Option<String>, String> {
    match asked {
        // an earlier command was cut short
        Err(NoAnswer::Refused(why)) if why.contains("already in progress") => Ok(None),
        Err(NoAnswer::Refused(why)) => Err(why),
        Err(NoAnswer::Failed(why)) => Ok(Some(why)),
        Ok(_) => Ok(None),
    }
}

/// The error about a change that may come yet. `silence`: why the server did not say that it tries.
fn not_known(what: &str, silence: Option<String>, word: &str, member: &str) -> anyhow::Error {
    let silence =
        silence.map(|why| format!("this host's server has not said that it tries ({why}), and ")).unwrap_or_default();
    anyhow!(
        "it is not known whether {what}: {silence}it is not done after {} s, but may be later. Look at ovnkube db status {word}, and if it \
         stays so, run ovnkube db leave {word}{member} again",
        AGREE_WITHIN.as_secs()
    )
}

/// Waits until all members agree, within a limit.
async fn agreed(mut is_done: impl AsyncFnMut() -> bool) -> bool {
    let until = Instant::now() + AGREE_WITHIN;
    while !is_done().await {
        if Instant::now() > until {
            return false;
        }
        sleep(LOOK_AGAIN).await;
    }
    true
}

/// The addresses of members that are given.
fn members(raft: &Raft) -> Vec<String> {
    raft.others.iter().map(Remote::to_string).collect()
}

/// The server listens at its address for members, and can do so only where its host has it. With another host's, it would still join: the
/// others would count it, and look for it where another member is, or nobody.
fn of_this_host(local: &Remote) -> Result<(), Failed> {
    let address = ovnkube_ovsdb::Remote::parse(&local.to_string()).map_err(|error| Failed::Error(error.into()))?;
    if matches!(address, ovnkube_ovsdb::Remote::Unix(_)) || is_here(&address) {
        return Ok(());
    }
    Err(Failed::Refused(format!(
        "{} is no address of this host, and its ovsdb-server could not listen there; write an address of this host, or give it this one \
         first",
        host(local)
    )))
}

fn host(local: &Remote) -> String {
    match local {
        Remote::Tcp(host, _) | Remote::Ssl(host, _) => host.clone(),
        Remote::Unix(path) => path.display().to_string(),
    }
}

/// No file is overwritten.
fn absent(file: &Path) -> Result<()> {
    if is_there(file) {
        bail!("cannot write {}: it exists; name another file, or move it away", file.display());
    }
    Ok(())
}

/// The same of a name under which a file is to be kept. It may be kept already, by a step that was cut short.
fn not_another(kept: &Path, file: &Path) -> Result<()> {
    if is_same_file(kept, file) { Ok(()) } else { absent(kept) }
}

/// A file that is about to be replaced stays under another name.
fn keep(file: &Path, kept: &Path) -> Result<()> {
    if is_same_file(kept, file) {
        return Ok(());
    }
    std::fs::hard_link(file, kept).with_context(|| format!("cannot keep {} as {}", file.display(), kept.display()))
}

fn installed(new: &Temporary, file: &Path, replaces: bool) -> Result<()> {
    install(&new.0, file, replaces).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_answer_may_do_it_all_the_same() {
        let refused = |why: &str| Err(NoAnswer::Refused(why.to_owned()));
        assert_eq!(accepted(Ok(String::new())), Ok(None));
        assert_eq!(accepted(refused("already in progress of leaving cluster")), Ok(None));
        assert_eq!(accepted(refused("unknown server")), Err("unknown server".to_owned()));
        let silence = accepted(Err(NoAnswer::Failed("no answer within 3 s".to_owned()))).unwrap();
        let said = not_known("member 1a2b is removed", silence, "nb", " 1a2b").to_string();
        assert!(
            said.starts_with(
                "it is not known whether member 1a2b is removed: this host's server has not said that it tries (no answer within 3 s)"
            ),
            "{said}"
        );
        assert!(said.ends_with("run ovnkube db leave nb 1a2b again"), "{said}");
    }
}
