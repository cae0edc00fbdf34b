//! Rows as text: labels for uuids, defaults left out, everything sorted, so that the databases of two
//! programs or two runs can be compared. The format is
//!
//! ```text
//! Logical_Router_Port(rtos-node-000)
//!     gateway_chassis: "Gateway_Chassis(rtos-node-000-chassis)"
//!     networks: "10.128.0.1/23"
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use ovnkube_apply::northbound_fence;
use ovnkube_ovn::nb::nb_global;
use ovnkube_ovn::schema::{Base, ColumnInfo};
use ovnkube_ovn::{Atom, ColumnId, Datum, Kind, Row, Uuid, nb};
use ovnkube_ovsdb::{Cache, Client, Txn};
use serde_json::{Value, json};

/// Columns of one row by name.
pub type Columns = BTreeMap<String, Value>;

/// Rows by label. Labels need not be unique: then there are several `Columns`, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dump(pub BTreeMap<String, Vec<Columns>>);

/// Tables that others write and that the tests ignore, except for keys of ours in the first.
const OTHERS: [&str; 3] = ["NB_Global", "Connection", "SSL"];

/// How keys of ours begin.
const OUR_KEYS: [&str; 2] = ["ovnkube", "k8s.ovn.org/"];

/// Columns that ovn-northd fills in asynchronously (ovn-nb(5)): the state of a port.
const NORTHDS: [(&str, &str); 2] = [("Logical_Switch_Port", "up"), ("Logical_Router_Port", "status")];

impl Dump {
    /// Everything in the cache.
    pub fn of(client: &Client) -> Self {
        Self::of_cache(&client.cache())
    }

    /// The same for a cache.
    pub fn of_cache(cache: &Cache) -> Self {
        let mut labels = HashMap::new();
        let tables = || nb::DATABASE.tables.iter().filter(|t| !OTHERS.contains(&t.name));
        for table in tables() {
            for (uuid, row) in cache.iter(table) {
                labels.insert(uuid, format!("{}({})", table.name, label(row)));
            }
        }
        let mut dump = Self::default();
        for table in tables() {
            for (uuid, row) in cache.iter(table) {
                let label = labels.get(&uuid).cloned().unwrap_or_default();
                dump.0.entry(label).or_default().push(columns(row, &labels));
            }
        }
        let global = cache.iter(nb_global::TABLE).map(|(_, row)| our_keys(row)).find(|keys| !keys.is_empty());
        dump.0.extend(global.map(|keys| ("NB_Global".to_owned(), vec![keys])));
        dump.0.values_mut().for_each(|rows| rows.sort_by_key(|row| format!("{row:?}")));
        dump
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Self {
        let mut dump = Self::default();
        let mut label = String::new();
        for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
            match line.strip_prefix("    ") {
                None => {
                    line.clone_into(&mut label);
                    dump.0.entry(label.clone()).or_default().push(Columns::new());
                }
                Some(cell) => {
                    let (column, value) = cell.split_once(": ").unwrap_or_else(|| panic!("no column in {cell:?}"));
                    let value = serde_json::from_str(value).unwrap_or_else(|e| panic!("{cell:?}: {e}"));
                    if is_northds(label.split('(').next().unwrap_or_default(), column) {
                        continue;
                    }
                    dump.0.get_mut(&label).unwrap().last_mut().unwrap().insert(column.to_owned(), value);
                }
            }
        }
        dump
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for (label, rows) in &self.0 {
            for row in rows {
                render(&mut text, label, row);
            }
        }
        text
    }

    /// Rows that `old` does not have, and the labels of rows that only `old` has.
    pub fn since(&self, old: &Self) -> String {
        let mut text = String::new();
        for label in old.0.keys().filter(|label| !self.0.contains_key(*label)) {
            let _ = writeln!(text, "gone {label}");
        }
        for (label, rows) in self.0.iter().filter(|(label, rows)| old.0.get(*label) != Some(*rows)) {
            for row in rows {
                render(&mut text, label, row);
            }
        }
        text
    }
}

fn render(text: &mut String, label: &str, row: &Columns) {
    let _ = writeln!(text, "{label}");
    for (column, value) in row {
        let _ = writeln!(text, "    {column}: {value}");
    }
}

/// The label of a row: its owner id, its name, or its identifying columns.
fn label(row: &Row) -> String {
    let table = row.table();
    let text = |name: &str| {
        let atom = table.column(name).and_then(|c| row.get(c)).and_then(Datum::single);
        atom.map(|atom| atom.as_str().map_or_else(|| format!("{atom:?}"), str::to_owned)).unwrap_or_default()
    };
    let ids = table.column("external_ids").and_then(|c| row.get(c));
    let id = ids.and_then(|ids| ids.value_of("k8s.ovn.org/id")).and_then(Atom::as_str).unwrap_or_default();
    let name = text("name");
    if !id.is_empty() {
        return id.to_owned();
    }
    if !name.is_empty() {
        return name;
    }
    let or_none = |column: &str| Some(text(column)).filter(|t| !t.is_empty()).unwrap_or_else(|| "[]".into());
    match table.name {
        "NAT" => format!(
            "{} {}->{} {} {}",
            text("type"),
            text("logical_ip"),
            text("external_ip"),
            text("logical_port"),
            text("match")
        ),
        "Logical_Router_Static_Route" => {
            format!("{} {} via {} {}", text("ip_prefix"), or_none("policy"), text("nexthop"), or_none("output_port"))
        }
        "Logical_Router_Policy" => format!("{} {}", text("priority"), text("match")),
        "Static_MAC_Binding" => format!("{} {}", text("logical_port"), text("ip")),
        "Chassis_Template_Var" => text("chassis"),
        "Meter_Band" => format!("band rate {}", text("rate")),
        _ => String::new(),
    }
}

/// Keys of ours in the row about the database itself, but for the one under which each master writes another name.
fn our_keys(global: &Row) -> Columns {
    let writer = northbound_fence(String::new()).key;
    let is_ours = |key: &str| key != writer && OUR_KEYS.iter().any(|start| key.starts_with(start));
    let mut columns = Columns::new();
    for (name, column) in [("external_ids", nb_global::EXTERNAL_IDS), ("options", nb_global::OPTIONS)] {
        let pairs = global.map(column).iter().filter(|pair| is_ours(pair.0));
        let pairs: serde_json::Map<String, Value> = pairs.map(|(key, value)| (key.to_owned(), json!(value))).collect();
        if !pairs.is_empty() {
            columns.insert(name.to_owned(), Value::Object(pairs));
        }
    }
    columns
}

fn is_northds(table: &str, column: &str) -> bool {
    NORTHDS.contains(&(table, column))
}

fn columns(row: &Row, labels: &HashMap<Uuid, String>) -> Columns {
    let shown = |atom: &Atom| match atom {
        Atom::Uuid(uuid) => json!(labels.get(uuid).map_or("?", String::as_str)),
        Atom::Str(text) => json!(text),
        Atom::Int(n) => json!(n),
        Atom::Bool(b) => json!(b),
        Atom::Real(r) => json!(r.0),
    };
    let mut columns = Columns::new();
    for (column, datum) in row.cells() {
        let value = if datum.is_map() {
            datum.pairs().iter().map(|(k, v)| (shown(k).as_str().unwrap_or_default().to_owned(), shown(v))).collect()
        } else if let Some(atom) = datum.single() {
            shown(atom)
        } else {
            let mut list: Vec<Value> = datum.atoms().map(shown).collect();
            list.sort_by_key(ToString::to_string);
            Value::Array(list)
        };
        let says_nothing = value == json!("") || value == json!(false) || value == json!(0);
        let wanted = |info: &&ColumnInfo| !says_nothing && !is_northds(row.table().name, info.name);
        if let Some(info) = row.table().info(column).filter(wanted) {
            columns.insert(info.name.to_owned(), value);
        }
    }
    columns
}

/// A transaction that creates the rows of a dump, with uuids.
pub fn load(dump: &Dump) -> Txn {
    let mut uuids: HashMap<&str, Vec<Uuid>> = HashMap::new();
    let fresh = |label: &str, n: usize| ovnkube_ovn::derived_uuid("loaded", &format!("{label} {n}"));
    for (label, rows) in &dump.0 {
        uuids.insert(label, (0..rows.len()).map(|n| fresh(label, n)).collect());
    }
    // references to one label resolve to its rows in order
    let mut used: HashMap<String, usize> = HashMap::new();
    let mut resolve = |label: &str| {
        let all = uuids.get(label).unwrap_or_else(|| panic!("no row {label}"));
        let n = used.entry(label.to_owned()).or_default();
        *n += 1;
        all[(*n - 1) % all.len()]
    };
    let mut txn = Txn::new(&nb::DATABASE);
    for (label, rows) in &dump.0 {
        let table = nb::DATABASE.table(label.split('(').next().unwrap_or_default()).unwrap();
        for (n, columns) in rows.iter().enumerate() {
            let mut row = Row::new(table);
            for (name, value) in columns {
                let column = table.column(name).unwrap_or_else(|| panic!("{}.{name} is not known", table.name));
                row.put(column, datum(table.info(column).unwrap(), value, &mut resolve));
            }
            txn.insert(fresh(label, n), row);
        }
    }
    txn
}

fn datum(info: &ColumnInfo, value: &Value, resolve: &mut impl FnMut(&str) -> Uuid) -> Datum {
    match (info.value, value) {
        (Some(of), Value::Object(map)) => {
            Datum::map(map.iter().map(|(k, v)| (atom(info.key, &json!(k), resolve), atom(of, v, resolve))))
        }
        (_, Value::Array(list)) => Datum::set(list.iter().map(|v| atom(info.key, v, resolve))),
        (_, one) => Datum::one(atom(info.key, one, resolve)),
    }
}

fn atom(base: Base, value: &Value, resolve: &mut impl FnMut(&str) -> Uuid) -> Atom {
    match base.kind {
        Kind::Uuid => Atom::Uuid(resolve(value.as_str().unwrap())),
        Kind::Str => Atom::Str(value.as_str().unwrap().into()),
        Kind::Int => Atom::Int(value.as_i64().unwrap()),
        Kind::Bool => Atom::Bool(value.as_bool().unwrap()),
        Kind::Real => panic!("no column in use holds a real number"),
    }
}

/// The uuids of all rows, to check that rows were kept and not recreated.
pub fn uuids(cache: &Cache) -> BTreeMap<Uuid, (&'static str, Row)> {
    let tables = nb::DATABASE.tables.iter().filter(|t| !OTHERS.contains(&t.name));
    tables.flat_map(|t| cache.iter(t).map(|(uuid, row)| (uuid, (t.name, Row::clone(row))))).collect()
}

/// The value of the column of that name, if the row has it.
pub fn cell<'a>(row: &'a Row, name: &str) -> Option<&'a Datum> {
    let column: ColumnId = row.table().column(name)?;
    row.get(column)
}
