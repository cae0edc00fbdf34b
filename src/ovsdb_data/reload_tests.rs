//! Any story of updates and downloads: the events that it makes, applied to what was known, give what is known then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ovnkube_ovn::nb::{self, logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovn::wire::Interner;
use ovnkube_ovn::{Row, Table, Uuid, derived_uuid};
use serde_json::{Value, json};

use crate::cache::{Cache, RowChange};
use crate::layout::{Conditions, Layout, Monitored};
use crate::update::{Decoder, Updates};

/// Names of switches that may be there, each with the port that it has, and a text.
type Content = BTreeMap<u8, (u8, u8)>;

/// What a server does to its content, and what it sends of it.
#[derive(Debug, Clone, bolero::TypeGenerator)]
enum Step {
    Put(u8, u8, u8),
    Delete(u8),
    /// The client is away meanwhile, then downloads everything.
    Reload,
    /// The same, from a server that was restored, as it was at the last download.
    Restored,
}

const NAMES: u8 = 6;

fn uuid(table: &Table, name: u8) -> Uuid {
    derived_uuid(table.name, &name.to_string())
}

fn row((port, text): (u8, u8)) -> Value {
    json!({"name": "n", "ports": ["uuid", uuid(lsp::TABLE, port).to_string()], "external_ids": ["map", [["k", text.to_string()]]]})
}

struct Client {
    cache: Cache,
    layout: Layout,
    texts: Interner,
    /// What a reader knows from the events alone.
    told: BTreeMap<Uuid, Arc<Row>>,
    /// All rows that ever went.
    gone: BTreeSet<Uuid>,
}

impl Client {
    fn new() -> Self {
        let schema = ovnkube_ovn::ServerSchema::parse(include_bytes!("../ovn/schema/ovn-nb.ovsschema")).unwrap();
        let layout = Layout::new(&nb::DATABASE, &Monitored::whole(&nb::DATABASE), &schema, Conditions::new());
        let cache = Cache::new(&nb::DATABASE, |row| row.text(ls::NAME).cloned(), |_| true);
        Self { cache, layout, texts: Interner::default(), told: BTreeMap::new(), gone: BTreeSet::new() }
    }

    fn updates(&mut self, content: impl Iterator<Item = (u8, (u8, u8))>) -> Updates {
        let rows = content.map(|(name, has)| (uuid(ls::TABLE, name).to_string(), json!({"initial": row(has)})));
        let json = json!({"Logical_Switch": rows.collect::<serde_json::Map<_, _>>()}).to_string();
        Decoder { database: &nb::DATABASE, layout: &self.layout, texts: &mut self.texts }.updates(&json).unwrap()
    }

    fn hear(&mut self, changes: Vec<RowChange>) {
        for RowChange { uuid, old, new, .. } in changes {
            assert_ne!(old, new, "an event of no change");
            assert_eq!(self.told.get(&uuid), old.as_ref(), "the row before is the one that was told last");
            if let Some(new) = new {
                self.told.insert(uuid, new);
            } else {
                self.gone.insert(uuid);
                self.told.remove(&uuid);
            }
        }
    }

    fn put(&mut self, name: u8, has: (u8, u8)) {
        let updates = self.updates([(name, has)].into_iter());
        let (changes, result) = self.cache.apply(updates, &self.layout);
        result.unwrap();
        self.hear(changes);
    }

    fn delete(&mut self, name: u8) {
        let json = json!({"Logical_Switch": {uuid(ls::TABLE, name).to_string(): {"delete": null}}}).to_string();
        let decoder = Decoder { database: &nb::DATABASE, layout: &self.layout, texts: &mut self.texts };
        let updates = decoder.updates(&json).unwrap();
        let (changes, result) = self.cache.apply(updates, &self.layout);
        result.unwrap();
        self.hear(changes);
    }

    /// A download of all. It must report what differs, and nothing else.
    fn reload(&mut self, content: &Content) {
        let updates = self.updates(content.iter().map(|(name, has)| (*name, *has)));
        let changes = self.cache.replace(updates);
        self.hear(changes);
        let again = self.updates(content.iter().map(|(name, has)| (*name, *has)));
        assert!(self.cache.replace(again).is_empty(), "the same once more is no change");
    }

    /// The cache, its indexes and what was told agree with the server.
    fn check(&self, content: &Content) {
        let cached: BTreeMap<Uuid, Arc<Row>> =
            self.cache.iter(ls::TABLE).map(|(uuid, row)| (uuid, Arc::clone(row))).collect();
        assert_eq!(cached, self.told);
        let names: BTreeSet<Uuid> = content.keys().map(|name| uuid(ls::TABLE, *name)).collect();
        assert_eq!(cached.keys().copied().collect::<BTreeSet<_>>(), names);
        assert_eq!(self.cache.lookup(ls::TABLE, "n"), names.iter().copied().collect::<Vec<_>>());
        for port in 0..NAMES {
            let want: BTreeSet<Uuid> =
                content.iter().filter(|(_, has)| has.0 == port).map(|(name, _)| uuid(ls::TABLE, *name)).collect();
            let parents = self.cache.parents(uuid(lsp::TABLE, port)).map(|parent| parent.uuid);
            assert_eq!(parents.collect::<BTreeSet<_>>(), want);
        }
        // no new row gets the uuid of one that is there, or was
        for name in 0..NAMES {
            let fresh = self.cache.fresh_uuid(ls::TABLE, &name.to_string());
            assert!(!self.gone.contains(&fresh) && !self.told.contains_key(&fresh), "{name} is used again");
        }
    }
}

#[test]
fn a_reload_reports_what_differs_and_forgets_nothing() {
    bolero::check!().with_type::<Vec<Step>>().for_each(|steps| {
        let (mut client, mut content, mut earlier) = (Client::new(), Content::new(), Content::new());
        // whether the client has missed something
        let mut is_away = false;
        for step in steps {
            match step {
                Step::Put(name, port, text) => {
                    let (name, has) = (name % NAMES, (port % NAMES, *text));
                    content.insert(name, has);
                    is_away |= text % 2 == 0;
                    if !is_away {
                        client.put(name, has);
                    }
                }
                Step::Delete(name) => {
                    let name = name % NAMES;
                    if content.remove(&name).is_some() && !is_away {
                        client.delete(name);
                    }
                }
                Step::Reload | Step::Restored => {
                    if matches!(step, Step::Restored) {
                        content.clone_from(&earlier);
                    }
                    client.reload(&content);
                    earlier.clone_from(&content);
                    is_away = false;
                }
            }
            if !is_away {
                client.check(&content);
            }
        }
    });
}

/// A database that was emptied: northd may not have looked before it is filled again, however large it was.
#[test]
fn all_rows_that_go_at_once_are_remembered() {
    const ROWS: u32 = 20_000;
    let name = |n: u32| n.to_string();
    let mut client = Client::new();
    let fill = |client: &mut Client| {
        let row = |n| (derived_uuid(ls::TABLE.name, &name(n)).to_string(), json!({"initial": {"name": name(n)}}));
        let json = json!({"Logical_Switch": (0..ROWS).map(row).collect::<serde_json::Map<_, _>>()}).to_string();
        Decoder { database: &nb::DATABASE, layout: &client.layout, texts: &mut client.texts }.updates(&json).unwrap()
    };
    let is_remembered =
        |client: &Client, n| client.cache.fresh_uuid(ls::TABLE, &name(n)) != derived_uuid(ls::TABLE.name, &name(n));
    let all = fill(&mut client);
    client.cache.replace(all);
    let empty = client.updates(std::iter::empty());
    client.cache.replace(empty);
    assert!((0..ROWS).all(|n| is_remembered(&client, n)));
    // and later ones do not displace all of them
    client.put(1, (1, 1));
    client.delete(1);
    assert!((0..ROWS).filter(|n| !is_remembered(&client, *n)).count() < 10);

    // with an update, too
    let mut client = Client::new();
    let all = fill(&mut client);
    client.cache.replace(all);
    let row = |n| (derived_uuid(ls::TABLE.name, &name(n)).to_string(), json!({"delete": null}));
    let json = json!({"Logical_Switch": (0..ROWS).map(row).collect::<serde_json::Map<_, _>>()}).to_string();
    let decoder = Decoder { database: &nb::DATABASE, layout: &client.layout, texts: &mut client.texts };
    let updates = decoder.updates(&json).unwrap();
    let (_, result) = client.cache.apply(updates, &client.layout);
    result.unwrap();
    assert!((0..ROWS).all(|n| is_remembered(&client, n)));
}
