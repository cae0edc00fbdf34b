//! Lists and watches the objects of one kind, until the receiver is gone.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use ovnkube_model::{Change, Name, Names};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::futures::Notified;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::{Backoff, between};
use crate::client::{LONGEST_ANSWER, query_value};
use crate::error::chain;
use crate::object::{Identified, Metadata, Watched, WatchedKey};
use crate::{Client, Error};

/// Between these times the API server is asked to end a watch.
const SHORTEST_WATCH: Duration = Duration::from_secs(290);
const LONGEST_WATCH: Duration = Duration::from_secs(590);
/// A quiet watch brings a bookmark a minute; one that is silent for longer than this is dead.
const SILENCE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 150 });
/// Something may end quiet watches before their first bookmark, such as a load balancer. After this time in all without any
/// word, there is a list: few, since for some kinds the API server reads all of it for each.
const UNHEARD: Duration = Duration::from_secs(3600);
/// After a watch that ended sooner than this, there is a pause before the next.
const SHORT_LIVED: Duration = Duration::from_secs(5);
/// Within this time after a doubt about connections, the watches are opened again.
const SPREAD: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 2 });
/// Pause before asking again for a kind that the API server does not provide.
const WITHHELD: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 60_000 });
/// Most bytes of a page with several objects. Objects may have some MB, if only in the JSON of what etcd holds in a shorter form: of
/// such ones, a page has fewer.
pub(crate) const LARGEST_PAGE: usize = if cfg!(test) { 8 * 1024 } else { 32 * 1024 * 1024 };
/// Page size of a list without pages: more objects than a cluster can have.
const WHOLE: u32 = 500_000;
/// Longest line of a watch, in bytes; etcd accepts objects of 1.5 MB.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// Lists and watches until the receiver of `changes` is gone.
pub(crate) async fn run<W: Watched>(client: Client, selector: String, changes: Sender<Change>) {
    run_at::<W>(client, W::PATH.to_owned(), selector, changes).await;
}

/// The same, of objects at another path, such as those of one namespace.
pub(crate) async fn run_at<W: Watched>(client: Client, path: String, selector: String, changes: Sender<Change>) {
    let listened_to = changes.clone();
    let stream = Stream::<W> {
        client,
        path,
        selector,
        changes,
        known: BTreeMap::new(),
        names: Names::default(),
        round: 0,
        version: None,
        unheard: Duration::ZERO,
        patience: SILENCE,
        is_withheld: false,
        paged: true,
        page: W::PAGE,
        synced: false,
        availability: Availability::Readable,
    };
    tokio::select! {
        biased;
        () = listened_to.closed() => {}
        () = forever(stream) => {}
    }
}

async fn forever<W: Watched>(mut stream: Stream<W>) {
    let mut backoff = Backoff::default();
    loop {
        let (began, mut after) = (Instant::now(), None);
        let end = if stream.version.is_some() { stream.watch().await } else { stream.list().await };
        if began.elapsed() > SHORT_LIVED {
            backoff.reset();
        }
        match end {
            Ok(WatchEnd::Listed) => continue,
            Ok(WatchEnd::Ended) => {}
            Ok(WatchEnd::Doubted) => {
                sleep(between(Duration::ZERO, SPREAD)).await;
                continue;
            }
            Ok(WatchEnd::Withheld) => {
                sleep(WITHHELD).await;
                continue;
            }
            Err(Stop::NobodyListens) => return,
            Err(Stop::Expired) => {
                tracing::info!(kind = Stream::<W>::kind(), "the version watched from is too old; listing again");
                stream.expire();
            }
            Err(Stop::Failed(error)) => {
                after = error.retry_after();
                if error.is_forbidden() {
                    tracing::debug!(%error, "trying again");
                    // the right may be on its way
                    if W::IS_PATIENT && backoff.is_long() {
                        sleep(WITHHELD).await;
                    }
                } else {
                    tracing::warn!(%error, "trying again");
                }
                // a list that was too much at once may succeed in pages
                stream.paged = true;
                if W::OPTIONAL && error.is_withheld() {
                    // the list finds that the kind is hidden, and says so; if it is not, only the watch may not be opened
                    stream.version = None;
                    if std::mem::replace(&mut stream.is_withheld, true) {
                        sleep(WITHHELD).await;
                    }
                }
            }
        }
        if after.is_some() || began.elapsed() < SHORT_LIVED {
            // not all that were told the same time ask at once
            sleep(after.unwrap_or_default() + backoff.next()).await;
        }
    }
}

struct Stream<W: Watched> {
    client: Client,
    path: String,
    /// Part of every query.
    selector: String,
    changes: Sender<Change>,
    /// Objects that the receiver knows: the uid, and the round of lists in which it was last seen.
    known: BTreeMap<W::Key, (Name, u32)>,
    names: Names,
    round: u32,
    /// The version to watch from; `None`: list first.
    version: Option<String>,
    /// How long, in all, watches were open since one of them has brought anything.
    unheard: Duration,
    /// How long they may be silent before there is a list: longer after each list that had to be made for it.
    patience: Duration,
    /// Whether the last watch could not be opened for want of a right.
    is_withheld: bool,
    /// Whether lists come in pages. The list after a paged one that expired does not.
    paged: bool,
    /// Objects in a page: fewer once pages were too large, until they are small.
    page: u32,
    synced: bool,
    availability: Availability,
}

/// What the last list found of the kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Availability {
    Readable,
    /// The API server lacks it.
    Missing,
    /// The account may not read it.
    Hidden,
}

enum WatchEnd {
    Listed,
    Ended,
    /// Nobody knows whether it would still bring anything: the API server may hang.
    Doubted,
    /// The API server lacks the kind, or does not let us read it.
    Withheld,
}

enum Stop {
    NobodyListens,
    /// The version to watch from, or the list being paged through, is too old.
    Expired,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        if error.is_gone() { Self::Expired } else { Self::Failed(error) }
    }
}

#[derive(Deserialize)]
pub(crate) struct Page<'a> {
    pub(crate) metadata: PageMeta,
    #[serde(borrow, default)]
    pub(crate) items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageMeta {
    pub(crate) resource_version: String,
    #[serde(default)]
    pub(crate) r#continue: String,
}

#[derive(Deserialize)]
struct Frame<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
pub(crate) struct Problem {
    #[serde(default)]
    pub(crate) code: u16,
    #[serde(default)]
    pub(crate) message: String,
}

impl<W: Watched> Stream<W> {
    fn action(verb: &str) -> String {
        format!("{verb} {}", Self::kind())
    }

    fn kind() -> &'static str {
        W::PATH.rsplit('/').next().unwrap_or_default()
    }

    fn expire(&mut self) {
        // a paged list that expired would expire again, so the next has no pages; after one without pages, the next has
        // pages again
        self.paged = self.version.take().is_some() || !self.paged;
    }

    /// Reports all objects that exist, then those that no longer do: a relist is a diff.
    async fn list(&mut self) -> Result<WatchEnd, Stop> {
        let action = Self::action("list");
        self.round += 1;
        let (mut text, mut next) = (Vec::new(), String::new());
        loop {
            let limit = if self.paged { self.page } else { WHOLE };
            let has_several = self.paged && limit > 1;
            let most = if has_several { LARGEST_PAGE } else { LONGEST_ANSWER };
            let path = format!("{}?limit={limit}&continue={}{}", self.path, query_value(&next), self.selector);
            match self.client.get_up_to(most, &action, &path, &mut text).await {
                Err(Error::Long { .. }) if has_several => {
                    self.page = limit / 2;
                    tracing::info!(
                        kind = Self::kind(),
                        page = self.page,
                        "a page of the list is too large; asking for fewer objects"
                    );
                    continue;
                }
                Err(error) if W::OPTIONAL && next.is_empty() && error.is_withheld() => {
                    if self.availability == Availability::Readable {
                        tracing::info!(%error, "going on without these objects");
                    }
                    if error.is_gone() {
                        // with the kind, all objects of it have gone
                        self.remove_older(self.round).await?;
                        self.note(Availability::Missing).await?;
                    } else {
                        self.note(Availability::Hidden).await?;
                    }
                    self.sync().await?;
                    return Ok(WatchEnd::Withheld);
                }
                read => read?,
            }
            if self.paged && text.len() < LARGEST_PAGE / 4 {
                // who made large objects may have deleted them
                self.page = W::PAGE.min(self.page.saturating_mul(2));
            }
            let page: Page<'_> = serde_json::from_slice(&text).map_err(|e| Error::failed(&action, e))?;
            for item in page.items {
                self.put(item.get()).await?;
            }
            next = page.metadata.r#continue;
            if next.is_empty() {
                self.version = Some(page.metadata.resource_version);
                break;
            }
        }
        self.paged = true;
        self.remove_older(self.round).await?;
        self.note(Availability::Readable).await?;
        self.sync().await?;
        Ok(WatchEnd::Listed)
    }

    /// Reports as gone all objects that a round of lists has not seen.
    async fn remove_older(&mut self, round: u32) -> Result<(), Stop> {
        let gone: Vec<W::Key> = self.known.iter().filter(|(_, seen)| seen.1 != round).map(|(k, _)| k.clone()).collect();
        for key in gone {
            self.remove(key).await?;
        }
        Ok(())
    }

    /// Says when the account loses the right to read the kind, and when it gets it back.
    async fn note(&mut self, availability: Availability) -> Result<(), Stop> {
        let was_hidden = std::mem::replace(&mut self.availability, availability) == Availability::Hidden;
        let is_hidden = availability == Availability::Hidden;
        if was_hidden != is_hidden
            && let Some(change) = W::hidden(is_hidden)
        {
            self.say(change).await?;
        }
        Ok(())
    }

    async fn sync(&mut self) -> Result<(), Stop> {
        if !std::mem::replace(&mut self.synced, true) {
            self.say(Change::Synced(W::KIND)).await?;
        }
        Ok(())
    }

    async fn watch(&mut self) -> Result<WatchEnd, Stop> {
        let action = Self::action("watch");
        let path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}{}",
            self.path,
            between(SHORTEST_WATCH, LONGEST_WATCH).as_secs(),
            query_value(self.version.as_deref().unwrap_or_default()),
            self.selector,
        );
        let doubt = self.client.doubt.clone();
        let mut doubted = pin!(doubt.next());
        let stream = tokio::select! {
            biased;
            stream = self.client.stream(&action, &path) => stream?,
            () = doubted.as_mut() => return Ok(WatchEnd::Doubted),
        };
        self.is_withheld = false;
        let (opened, mut heard) = (Instant::now(), false);
        let end = self.follow(&action, stream, doubted, &mut heard).await;
        let silent = opened.elapsed();
        if heard {
            (self.unheard, self.patience) = (Duration::ZERO, SILENCE);
            return end;
        }
        self.unheard += silent;
        if silent >= SILENCE && self.unheard >= self.patience || self.unheard >= UNHEARD {
            // perhaps the API server has yet to reach this version, as after etcd was restored from an older snapshot. But for
            // minutes after its start it may have no bookmarks for a quiet kind
            (self.unheard, self.version) = (Duration::ZERO, None);
            self.patience = UNHEARD.min(self.patience * 2);
        }
        end
    }

    /// Takes in what a watch brings, until its end or a doubt.
    async fn follow(
        &mut self,
        action: &str,
        stream: impl AsyncBufRead,
        mut doubted: Pin<&mut Notified<'_>>,
        heard: &mut bool,
    ) -> Result<WatchEnd, Stop> {
        let mut stream = std::pin::pin!(stream);
        let mut line = Vec::new();
        loop {
            let is_line = tokio::select! {
                biased;
                is_line = read_line(action, &mut stream, &mut line) => is_line?,
                // what was read is passed on whole: else a deletion could be lost
                () = doubted.as_mut() => return Ok(WatchEnd::Doubted),
            };
            if !is_line {
                return Ok(WatchEnd::Ended);
            }
            *heard = true;
            let (kind, text) = event(&line).map_err(|e| Error::failed(action, e))?;
            match kind {
                "ADDED" | "MODIFIED" => self.version = self.put(text).await?.or(self.version.take()),
                "DELETED" | "BOOKMARK" => {
                    let meta = identify(text).map_err(|e| Error::failed(action, e))?;
                    self.version = Some(meta.resource_version.to_string());
                    if kind == "DELETED" {
                        self.remove(W::Key::of(&meta)).await?;
                    }
                }
                _ => {
                    let problem: Problem = serde_json::from_str(text).map_err(|e| Error::failed(action, e))?;
                    return Err(Error::from_status(action, problem.code, &problem.message).into());
                }
            }
        }
    }

    /// Takes in an object and returns its version. An object that cannot be decoded stays as it was.
    async fn put(&mut self, text: &str) -> Result<Option<String>, Stop> {
        let (key, uid, version, change) = match serde_json::from_str::<W::Object<'_>>(text) {
            Ok(object) => {
                let meta = W::metadata(&object);
                let mut key = W::Key::of(meta);
                if let Some(namespace) = key.namespace() {
                    self.names.share(namespace);
                }
                let mut change = W::change(key.clone(), &object);
                change.share(&mut self.names);
                let uid = change.uid().cloned().unwrap_or_else(|| meta.uid.as_ref().into());
                (key, uid, meta.resource_version.to_string(), Some(change))
            }
            Err(problem) => {
                let Ok(meta) = identify(text) else {
                    tracing::warn!(kind = Self::kind(), error = %problem, "skipped an object without a name");
                    return Ok(None);
                };
                let key = W::Key::of(&meta);
                tracing::warn!(kind = Self::kind(), %key, error = %problem, "skipped an object that cannot be read");
                (key, Name::from(meta.uid.as_ref()), meta.resource_version.to_string(), None)
            }
        };
        let replaced = match self.known.entry(key.clone()) {
            Entry::Vacant(entry) => {
                if change.is_some() {
                    entry.insert((uid, self.round));
                }
                false
            }
            Entry::Occupied(mut entry) => {
                let replaced = entry.get().0 != uid;
                entry.insert((uid, self.round));
                replaced
            }
        };
        if replaced {
            self.say(W::gone(key)).await?;
        }
        if let Some(change) = change {
            self.say(change).await?;
        }
        Ok(Some(version))
    }

    async fn remove(&mut self, key: W::Key) -> Result<(), Stop> {
        if self.known.remove(&key).is_some() {
            self.say(W::gone(key)).await?;
        }
        Ok(())
    }

    async fn say(&self, change: Change) -> Result<(), Stop> {
        self.changes.send(change).await.map_err(|_| Stop::NobodyListens)
    }
}

/// The type of a watch event, and its object's text. The API server writes each event in the same form, so the text is
/// not searched for the object's end: the decoder of the object finds it.
pub(crate) fn event(line: &[u8]) -> serde_json::Result<(&str, &str)> {
    let usual = || {
        let rest = std::str::from_utf8(line).ok()?.trim_end().strip_prefix("{\"type\":\"")?;
        let (kind, object) = rest.split_once("\",\"object\":")?;
        Some((kind, object.strip_suffix('}')?)).filter(|_| kind.bytes().all(|b| b.is_ascii_uppercase()))
    };
    usual().map_or_else(|| serde_json::from_slice::<Frame<'_>>(line).map(|f| (f.r#type, f.object.get())), Ok)
}

fn identify(text: &str) -> serde_json::Result<Metadata<'_>> {
    Ok(serde_json::from_str::<Identified<'_>>(text)?.metadata.into_metadata())
}

/// Reads a line; `false` at the end, even if that is in the middle of a line.
pub(crate) async fn read_line(
    action: &str,
    stream: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> Result<bool, Error> {
    line.clear();
    let mut stream = stream.take(LONGEST_LINE);
    let read = timeout(SILENCE, stream.read_until(b'\n', line)).await;
    let silent = |_| Error::failed(action, format!("nothing was heard for {} s", SILENCE.as_secs()));
    read.map_err(silent)?.map_err(|e| Error::failed(action, chain(&e)))?;
    Ok(line.ends_with(b"\n"))
}

#[cfg(test)]
mod tests {
    use super::event;

    #[test]
    fn an_event_is_read_however_it_is_written() {
        let object = r#"{"a":"\",\"object\":","b":{}}"#;
        let usual = format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n");
        let others = [
            format!("{{ \"type\": \"MODIFIED\", \"object\": {object} }}\n"),
            format!("{{\"object\":{object},\"type\":\"MODIFIED\"}}\n"),
        ];
        for line in [usual].iter().chain(&others) {
            assert_eq!(event(line.as_bytes()).unwrap(), ("MODIFIED", object), "{line}");
        }
        for bad in ["", "{}", "{\"type\":\"MODIFIED\"}", "{\"type\":\"MODIFIED\",\"object\":"] {
            assert!(event(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
