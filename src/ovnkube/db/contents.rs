//! What is written into a database when a backup is restored: a copy of it, with the schema and the own rows of the servers.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use ovnkube_db::OwnRows;

use super::files::Temporary;
use super::place::Place;
use super::programs::{client, text, tool};

/// The copy, until it is dropped.
pub(crate) struct Contents(Temporary);

impl Contents {
    pub(crate) fn copied(file: &Path) -> Result<Self> {
        let copy = Temporary::beside(file, "copy");
        write(&copy, &mut File::open(file)?)?;
        Ok(Self(copy))
    }

    pub(crate) fn open(&self) -> Result<File> {
        Ok(File::open(&self.0.0)?)
    }

    /// Gives it the schema that a server has. `file`: what it is a copy of.
    pub(crate) async fn convert(&self, place: &Place, address: &str, file: &Path) -> Result<()> {
        let schema = Temporary::beside(file, "schema");
        let mut command = client(place.tls.as_ref());
        let text = text(command.args(["--no-leader-only", "get-schema", address, place.database.name])).await?;
        write(&schema, &mut text.as_bytes())?;
        tool(&[OsStr::new("convert"), self.0.0.as_os_str(), schema.0.as_os_str()]).await?;
        Ok(())
    }

    /// Puts the servers' own rows in the place of those of the backup. `before`: what they have, with its schema.
    pub(crate) async fn keep_own_rows(&self, place: &Place, before: &Path) -> Result<()> {
        let database = place.database.name;
        let (theirs, own) = (own_rows(&self.0.0, database).await?, own_rows(before, database).await?);
        let transaction = own.put_in_place_of(&theirs, database);
        let answer = tool(&[OsStr::new("transact"), self.0.0.as_os_str(), OsStr::new(&transaction)]).await?;
        if let Some(why) = ovnkube_db::not_done(&answer) {
            bail!("cannot keep the rows of Connection and SSL, and nothing was changed: {why}");
        }
        Ok(())
    }
}

async fn own_rows(file: &Path, database: &str) -> Result<OwnRows> {
    let question = OwnRows::question(database);
    let answer = tool(&[OsStr::new("query"), file.as_os_str(), OsStr::new(&question)]).await?;
    OwnRows::parse(&answer)
        .with_context(|| format!("ovsdb-tool does not tell Connection and SSL of {}: {answer}", file.display()))
}

fn write(made: &Temporary, from: &mut dyn io::Read) -> Result<()> {
    io::copy(from, &mut made.create()?).with_context(|| format!("cannot write {}", made.0.display()))?;
    Ok(())
}
