//! Splits a byte stream into JSON objects. OVSDB's JSON-RPC has neither delimiter nor length, so a message ends where
//! its braces close.

use std::ops::Range;

use memchr::{memchr2, memchr3};

/// Why a stream cannot be split: no peer that speaks the protocol sends this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("cannot read a message: it begins with byte {0:#04x}, not with an object")]
    Garbage(u8),
    #[error("cannot read a message: it is longer than {0} bytes")]
    TooLong(usize),
}

/// Buffer of received bytes, and how far they were scanned.
pub struct Framer {
    bytes: Vec<u8>,
    /// Start of the message being read.
    start: usize,
    /// Bytes before this were scanned.
    seen: usize,
    depth: u32,
    in_string: bool,
    limit: usize,
}

impl Framer {
    /// Capacity that is kept once everything is read.
    const KEEP: usize = 1 << 16;

    /// Longer messages than `limit` bytes are an error.
    pub fn new(limit: usize) -> Self {
        Framer { bytes: Vec::new(), start: 0, seen: 0, depth: 0, in_string: false, limit }
    }

    /// The buffer to append received bytes to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(Self::KEEP);
            (self.start, self.seen) = (0, 0);
        } else if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.seen -= self.start;
            self.start = 0;
        }
        self.bytes.reserve(1 << 16);
        &mut self.bytes
    }

    /// Range of the next complete message; `None` if more bytes are needed.
    pub fn next_message(&mut self) -> Result<Option<Range<usize>>, FrameError> {
        if self.depth == 0 {
            self.skip_space()?;
        }
        while let Some(rest) = self.bytes.get(self.seen..).filter(|r| !r.is_empty()) {
            if self.in_string {
                self.seen += match memchr2(b'"', b'\\', rest) {
                    Some(at) if rest.get(at) == Some(&b'"') => {
                        self.in_string = false;
                        at + 1
                    }
                    // the escaped byte is scanned together with the backslash
                    Some(at) if at + 1 == rest.len() => {
                        self.seen += at;
                        break;
                    }
                    Some(at) => at + 2,
                    None => rest.len(),
                };
                continue;
            }
            let Some(at) = memchr3(b'{', b'}', b'"', rest) else {
                self.seen = self.bytes.len();
                break;
            };
            self.seen += at + 1;
            match rest.get(at) {
                Some(b'{') => self.depth += 1,
                Some(b'"') => self.in_string = true,
                _ => self.depth = self.depth.saturating_sub(1),
            }
            if self.depth == 0 {
                let range = self.start..self.seen;
                self.start = self.seen;
                return Ok(Some(range));
            }
        }
        if self.bytes.len() - self.start > self.limit { Err(FrameError::TooLong(self.limit)) } else { Ok(None) }
    }

    /// The bytes of a message. Valid until [`Framer::buffer`] is called.
    pub fn message(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// The bytes of a message, owned; not copied if nothing comes after it.
    pub fn take(&mut self, range: Range<usize>) -> Vec<u8> {
        if range.start == 0 && range.end == self.bytes.len() {
            (self.start, self.seen) = (0, 0);
            return std::mem::take(&mut self.bytes);
        }
        self.message(range).to_vec()
    }

    fn skip_space(&mut self) -> Result<(), FrameError> {
        let rest = self.bytes.get(self.start..).unwrap_or_default();
        let space = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.start += space;
        self.seen = self.seen.max(self.start);
        match self.bytes.get(self.start) {
            Some(b'{') | None => Ok(()),
            Some(other) => Err(FrameError::Garbage(*other)),
        }
    }
}
