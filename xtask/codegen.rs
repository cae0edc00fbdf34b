//! Typed rows from `.ovsschema` files.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use ovnkube_ovn::schema::{ServerBase, ServerColumn, ServerSchema, ServerTable};
use ovnkube_ovn::value::Kind;

/// Module name and schema file.
const DATABASES: [(&str, &str); 5] =
    [("nb", "ovn-nb"), ("sb", "ovn-sb"), ("ic_nb", "ovn-ic-nb"), ("ic_sb", "ovn-ic-sb"), ("vswitch", "vswitch")];

/// Writes every generated file.
pub(crate) fn write() -> Result<()> {
    for (module, schema) in DATABASES {
        let path = generated(module);
        std::fs::write(&path, generate(schema)?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn ovn() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../src/ovn"))
}

fn generated(module: &str) -> PathBuf {
    ovn().join("generated").join(format!("{module}.rs"))
}

fn generate(file: &str) -> Result<String> {
    let path = ovn().join("schema").join(format!("{file}.ovsschema"));
    let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let schema = ServerSchema::parse(&text).with_context(|| format!("cannot parse {}", path.display()))?;
    let mut out =
        format!("//! The {} database. Written by `cargo run -p xtask -- codegen`; do not edit.\n\n", schema.name);
    out += "use crate::row::{Column, kind::{Bool, Int, Map, One, Opt, Set, Str, Uuid}};\n";
    out += "use crate::schema::{ColumnId, Database, Table, column};\n";
    out += "use crate::value::Kind;\n\n";
    writeln!(out, "pub static DATABASE: Database = Database {{")?;
    writeln!(out, "    name: {:?},\n    version: {:?},", schema.name, schema.version)?;
    let tables: Vec<String> = schema.tables.keys().map(|t| format!("&{}::DEFINITION", module(t))).collect();
    writeln!(out, "    tables: &[\n        {},\n    ],", tables.join(",\n        "))?;
    out += "};\n";
    for (id, (name, table)) in schema.tables.iter().enumerate() {
        write_table(&mut out, id, name, table)?;
    }
    Ok(out)
}

fn module(table: &str) -> String {
    table.to_lowercase()
}

fn write_table(out: &mut String, id: usize, name: &str, table: &ServerTable) -> Result<()> {
    let used = KINDS.iter().filter(|k| table.columns.values().any(|c| kind_of(c).contains(**k)));
    let used: Vec<&str> = used.copied().collect();
    writeln!(out, "\npub mod {} {{", module(name))?;
    writeln!(out, "    use super::{{Column, ColumnId, Kind, Table, column, {}}};\n", used.join(", "))?;
    for (at, (column, def)) in table.columns.iter().enumerate() {
        // the constant TABLE is the table itself
        let constant = if column == "table" { "TABLE_COLUMN".to_owned() } else { column.to_uppercase() };
        writeln!(out, "    pub const {constant}: Column<{}> = Column::new({at});", kind_of(def))?;
    }
    writeln!(out, "\n    pub const TABLE: &Table = &DEFINITION;\n")?;
    writeln!(out, "    pub(super) static DEFINITION: Table = Table {{")?;
    writeln!(
        out,
        "        name: {name:?},\n        id: {id},\n        is_root: {},\n        columns: &[",
        table.is_root
    )?;
    for (column, def) in &table.columns {
        writeln!(out, "            {},", column_info(column, def))?;
    }
    let place = |c: &String| table.columns.keys().position(|k| k == c).map(|i| format!("ColumnId({i})"));
    let index =
        |cols: &Vec<String>| Some(format!("&[{}]", cols.iter().map(place).collect::<Option<Vec<_>>>()?.join(", ")));
    let indexes: Option<Vec<String>> = table.indexes.iter().map(index).collect();
    let indexes = indexes.with_context(|| format!("cannot resolve indexes of {name}"))?.join(", ");
    writeln!(out, "        ],\n        indexes: &[{indexes}],\n    }};\n}}")?;
    // a table without an index does not use the name
    if table.indexes.is_empty() {
        let with = format!("    use super::{{Column, ColumnId, Kind, Table, column, {}}};\n", used.join(", "));
        let without = with.replace("ColumnId, ", "");
        let at = out.rfind(&with).context("cannot find the imports")?;
        out.replace_range(at..at + with.len(), &without);
    }
    Ok(())
}

const KINDS: [&str; 8] = ["Bool", "Int", "Map", "One", "Opt", "Set", "Str", "Uuid"];

fn kind_of(column: &ServerColumn) -> String {
    let ty = &column.ty;
    match &ty.value {
        Some(value) => format!("Map<{:?}, {:?}>", ty.key.kind, value.kind),
        None if ty.max > 1 => format!("Set<{:?}>", ty.key.kind),
        None if ty.min == 0 => format!("Opt<{:?}>", ty.key.kind),
        None => format!("One<{:?}>", ty.key.kind),
    }
}

fn column_info(name: &str, column: &ServerColumn) -> String {
    let ty = &column.ty;
    let mut out = format!("column({name:?}, {}, {}, ", base(&ty.key), limits(ty.min, ty.max));
    out += &ty.value.as_ref().map_or("None".to_owned(), |v| format!("Some({})", base(v)));
    let is_enum = ty.key.kind == Kind::Str && !ty.key.allowed.is_empty();
    format!("{out}, {is_enum})")
}

fn limits(min: u32, max: u32) -> String {
    if max == u32::MAX { format!("({min}, u32::MAX)") } else { format!("({min}, {max})") }
}

fn base(base: &ServerBase) -> String {
    let refers = base.refers.as_ref().map_or("None".to_owned(), |(t, strong)| format!("Some(({t:?}, {strong}))"));
    format!("(Kind::{:?}, {refers})", base.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_in_rows_are_what_the_schemas_give() {
        for (module, schema) in DATABASES {
            let have = std::fs::read_to_string(generated(module)).unwrap();
            assert!(
                have == generate(schema).unwrap(),
                "{module}.rs is out of date: run `cargo run -p xtask -- codegen`"
            );
        }
    }
}
