//! Developer tasks of this repository: `cargo run -p xtask -- codegen` writes the typed rows of
//! `src/ovn/generated` from the `.ovsschema` files of `src/ovn/schema`.

#[cfg(test)]
mod circles;
mod codegen;
#[cfg(test)]
mod modules;
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
        _ => bail!("usage: cargo run -p xtask -- codegen"),
    }
}
