//! Releases of OVN, which programs of it tell.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A release of OVN: year, month and patch, such as 26.03.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OvnRelease([u32; 3]);

impl OvnRelease {
    pub const fn new(year: u32, month: u32, patch: u32) -> Self {
        Self([year, month, patch])
    }

    /// From `26.03.1`, also with what northd adds to it, as in `26.03.1-21.8.0-82.14`: the versions of its tables and of its flows.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('-').next()?.split('.').map(|number| number.parse().ok());
        let release = Self([numbers.next()??, numbers.next()??, numbers.next()??]);
        numbers.next().is_none().then_some(release)
    }
}

impl fmt::Display for OvnRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, patch] = self.0;
        write!(f, "{year}.{month:02}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered() {
        let release = |text: &str| OvnRelease::parse(text).unwrap();
        assert_eq!(release("26.03.1-21.8.0-82.14"), OvnRelease::new(26, 3, 1));
        assert_eq!(release("26.03.1-21.8.0-82.14").to_string(), "26.03.1");
        assert!(release("25.03.9") < release("25.09.0") && release("25.09.0") < release("25.09.1"));
        for text in ["", "26.03", "26.3.x", "26.03.1.1", "-26.03.1", "26..1", "9999999999.1.1"] {
            assert_eq!(OvnRelease::parse(text), None, "{text}");
        }
    }
}
