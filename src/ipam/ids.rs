//! Small numbers, one per owner.

use roaring::RoaringBitmap;

use crate::Error;

/// Allocates the lowest free number of a range.
#[derive(Debug, Clone)]
pub struct IdPool {
    used: RoaringBitmap,
    first: u32,
    last: u32,
}

impl IdPool {
    /// A pool over `first..=last`.
    pub fn new(first: u32, last: u32) -> Self {
        Self { used: RoaringBitmap::new(), first, last }
    }

    pub fn take(&mut self, id: u32) -> Result<(), Error> {
        if !(self.first..=self.last).contains(&id) {
            return Err(Error::Outside { what: id.to_string(), range: self.range() });
        }
        if self.used.insert(id) { Ok(()) } else { Err(Error::Taken { what: id.to_string() }) }
    }

    pub fn allocate(&mut self) -> Result<u32, Error> {
        let id = (self.first..=self.last)
            .find(|id| !self.used.contains(*id))
            .ok_or_else(|| Error::Exhausted { what: "number", range: self.range() })?;
        self.used.insert(id);
        Ok(id)
    }

    pub fn free(&mut self, id: u32) {
        self.used.remove(id);
    }

    fn range(&self) -> String {
        format!("{}-{}", self.first, self.last)
    }
}
