//! Developer tasks of this repository: `cargo run -p xtask -- codegen` writes the typed rows of
//! `src/ovn/generated` from the `.ovsschema` files of `src/ovn/schema`; `-- pages` writes the man page and the
//! completions of shells in `dist/`.

#[cfg(test)]
mod circles;
mod codegen;
#[cfg(test)]
mod modules;
mod pages;
#[cfg(test)]
mod pure;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod words;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("codegen") => codegen::write(),
        Some("pages") => pages::write(),
        _ => bail!("usage: cargo run -p xtask -- codegen|pages"),
    }
}
