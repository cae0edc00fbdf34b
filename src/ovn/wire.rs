//! OVSDB's JSON form of values, decoded directly into [`Datum`]s without a tree in between.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use serde::ser::{SerializeTuple, Serializer};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::schema::ColumnInfo;
use crate::value::{Atom, Datum, Kind, Real};

/// Stores repeated texts and maps once, shared by every row that has them. Bounded, so hostile content cannot make it
/// grow.
#[derive(Default)]
pub struct Interner {
    /// Keys of `external_ids`, enum members.
    keys: HashSet<Arc<str>>,
    /// Other texts: names of nodes, an address that is in a port twice and in several sets.
    texts: Recent<str>,
    /// Whole maps: the options of all load balancers.
    maps: Recent<[(Atom, Atom)]>,
}

impl Interner {
    const MAX_KEYS: usize = 4096;
    const MAX_KEY: usize = 48;
    const TEXTS: usize = 2048;
    const MAX_TEXT: usize = 512;
    const MAPS: usize = 512;
    /// Bytes of all keys and values of a map.
    const MAX_MAP: usize = 1024;

    fn key(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.keys.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        if self.keys.len() < Self::MAX_KEYS && text.len() <= Self::MAX_KEY {
            self.keys.insert(Arc::clone(&new));
        }
        new
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if text.len() > Self::MAX_TEXT { text.into() } else { self.texts.get(Self::TEXTS, text, |text| text.into()) }
    }

    fn map(&mut self, mut datum: Datum) -> Datum {
        let bytes = |atom: &Atom| 8 + atom.as_str().map_or(0, str::len);
        let size = |pairs: &[(Atom, Atom)]| pairs.iter().map(|(key, value)| bytes(key) + bytes(value)).sum::<usize>();
        if let Some(pairs) = datum.shared_pairs().filter(|pairs| size(pairs) <= Self::MAX_MAP) {
            *pairs = self.maps.get(Self::MAPS, &**pairs, |_| Arc::clone(pairs));
        }
        datum
    }
}

/// The last item for each of some hashes.
struct Recent<T: ?Sized> {
    slots: Vec<Option<Arc<T>>>,
    hasher: RandomState,
}

impl<T: ?Sized> Default for Recent<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), hasher: RandomState::new() }
    }
}

impl<T: ?Sized + Hash + Eq> Recent<T> {
    /// The stored item, else one from `make`, which replaces another. At most `size` are kept.
    fn get(&mut self, size: usize, wanted: &T, make: impl FnOnce(&T) -> Arc<T>) -> Arc<T> {
        if self.slots.is_empty() {
            self.slots.resize(size, None);
        }
        let at = self.hasher.hash_one(wanted) as usize % size;
        match self.slots.get_mut(at) {
            Some(Some(known)) if **known == *wanted => Arc::clone(known),
            Some(slot) => Arc::clone(slot.insert(make(wanted))),
            None => make(wanted),
        }
    }
}

/// A JSON string, borrowed unless it has an escape.
#[derive(Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Decodes one column's value by the column's type: a single atom where a set is allowed, an integer where a real is
/// expected, sets and maps in any order. Wrong types are errors.
pub struct DatumSeed<'a> {
    pub column: &'a ColumnInfo,
    pub texts: &'a mut Interner,
}

impl<'de> DeserializeSeed<'de> for DatumSeed<'_> {
    type Value = Datum;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Datum, D::Error> {
        d.deserialize_any(self)
    }
}

impl DatumSeed<'_> {
    fn key(&mut self) -> AtomSeed<'_> {
        let is_key = self.column.is_map() || self.column.is_enum;
        AtomSeed { kind: self.column.key.kind, is_key, texts: self.texts }
    }

    fn value(&mut self) -> AtomSeed<'_> {
        AtomSeed { kind: self.column.value.map_or(Kind::Str, |v| v.kind), is_key: false, texts: self.texts }
    }

    fn scalar<E: Error>(mut self, got: impl FnOnce(AtomSeed<'_>) -> Result<Atom, E>) -> Result<Datum, E> {
        if self.column.is_map() {
            return Err(E::custom(format_args!("column {} wants a map", self.column.name)));
        }
        got(self.key()).map(Datum::one)
    }
}

impl<'de> Visitor<'de> for DatumSeed<'_> {
    type Value = Datum;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of column {}", self.column.name)
    }
    fn visit_i64<E: Error>(self, v: i64) -> Result<Datum, E> {
        self.scalar(|a| a.visit_i64(v))
    }
    fn visit_u64<E: Error>(self, v: u64) -> Result<Datum, E> {
        self.scalar(|a| a.visit_u64(v))
    }
    fn visit_f64<E: Error>(self, v: f64) -> Result<Datum, E> {
        self.scalar(|a| a.visit_f64(v))
    }
    fn visit_bool<E: Error>(self, v: bool) -> Result<Datum, E> {
        self.scalar(|a| a.visit_bool(v))
    }
    fn visit_str<E: Error>(self, v: &str) -> Result<Datum, E> {
        self.scalar(|a| a.visit_str(v))
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Datum, A::Error> {
        let class: Text = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let is_map = self.column.is_map();
        let out = match &*class.0 {
            "uuid" if !is_map && self.column.key.kind == Kind::Uuid => {
                seq.next_element()?.map(|u| Datum::one(Atom::Uuid(u)))
            }
            "set" if !is_map => seq.next_element_seed(Members(&mut self))?.map(Datum::set),
            "map" if is_map => {
                let pairs = seq.next_element_seed(Pairs(&mut self))?.map(Datum::map);
                pairs.map(|map| self.texts.map(map))
            }
            other => return Err(A::Error::invalid_value(Unexpected::Str(other), &self)),
        };
        if seq.next_element::<serde::de::IgnoredAny>()?.is_some() {
            return Err(A::Error::invalid_length(3, &self));
        }
        out.ok_or_else(|| A::Error::invalid_length(1, &self))
    }
}

struct AtomSeed<'a> {
    kind: Kind,
    is_key: bool,
    texts: &'a mut Interner,
}

impl AtomSeed<'_> {
    fn wrong<E: Error>(&self, got: Unexpected<'_>) -> E {
        E::invalid_type(got, self)
    }
}

impl<'de> DeserializeSeed<'de> for AtomSeed<'_> {
    type Value = Atom;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Atom, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AtomSeed<'_> {
    type Value = Atom;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an atom of type {:?}", self.kind)
    }
    fn visit_i64<E: Error>(self, v: i64) -> Result<Atom, E> {
        match self.kind {
            Kind::Int => Ok(Atom::Int(v)),
            Kind::Real => Ok(Atom::Real(Real(v as f64))),
            _ => Err(self.wrong(Unexpected::Signed(v))),
        }
    }
    fn visit_u64<E: Error>(self, v: u64) -> Result<Atom, E> {
        i64::try_from(v).map_err(|_| self.wrong(Unexpected::Unsigned(v))).and_then(|v| self.visit_i64(v))
    }
    fn visit_f64<E: Error>(self, v: f64) -> Result<Atom, E> {
        match self.kind {
            Kind::Real => Ok(Atom::Real(Real(v))),
            // 5.0 is an integer; the bound is where f64 stops holding each integer
            Kind::Int if v.fract() == 0.0 && v.abs() < 9e15 => Ok(Atom::Int(v as i64)),
            _ => Err(self.wrong(Unexpected::Float(v))),
        }
    }
    fn visit_bool<E: Error>(self, v: bool) -> Result<Atom, E> {
        if self.kind == Kind::Bool { Ok(Atom::Bool(v)) } else { Err(self.wrong(Unexpected::Bool(v))) }
    }
    fn visit_str<E: Error>(self, v: &str) -> Result<Atom, E> {
        match self.kind {
            Kind::Str if self.is_key => Ok(Atom::Str(self.texts.key(v))),
            Kind::Str => Ok(Atom::Str(self.texts.text(v))),
            _ => Err(self.wrong(Unexpected::Str(v))),
        }
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Atom, A::Error> {
        let class: Option<Text> = seq.next_element()?;
        if self.kind != Kind::Uuid || class.is_none_or(|c| c.0 != "uuid") {
            return Err(self.wrong(Unexpected::Seq));
        }
        let uuid: Uuid = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        if seq.next_element::<serde::de::IgnoredAny>()?.is_some() {
            return Err(A::Error::invalid_length(3, &self));
        }
        Ok(Atom::Uuid(uuid))
    }
}

struct Members<'a, 'b>(&'a mut DatumSeed<'b>);

impl<'de> DeserializeSeed<'de> for Members<'_, '_> {
    type Value = Vec<Atom>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Vec<Atom>, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Members<'_, '_> {
    type Value = Vec<Atom>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the members of {}", self.0.column.name)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Atom>, A::Error> {
        let mut out = Vec::new();
        while let Some(atom) = seq.next_element_seed(self.0.key())? {
            out.push(atom);
        }
        Ok(out)
    }
}

struct Pairs<'a, 'b>(&'a mut DatumSeed<'b>);

impl<'de> DeserializeSeed<'de> for Pairs<'_, '_> {
    type Value = Vec<(Atom, Atom)>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Pairs<'_, '_> {
    type Value = Vec<(Atom, Atom)>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pairs of {}", self.0.column.name)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut out = Vec::new();
        while let Some(pair) = seq.next_element_seed(Pair(&mut *self.0))? {
            out.push(pair);
        }
        Ok(out)
    }
}

struct Pair<'a, 'b>(&'a mut DatumSeed<'b>);

impl<'de> DeserializeSeed<'de> for Pair<'_, '_> {
    type Value = (Atom, Atom);
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_tuple(2, self)
    }
}

impl<'de> Visitor<'de> for Pair<'_, '_> {
    type Value = (Atom, Atom);
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a pair of {}", self.0.column.name)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let key = seq.next_element_seed(self.0.key())?;
        let value = seq.next_element_seed(self.0.value())?;
        key.zip(value).ok_or_else(|| A::Error::invalid_length(1, &self))
    }
}

impl Serialize for Atom {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Atom::Int(i) => s.serialize_i64(*i),
            Atom::Real(r) => s.serialize_f64(r.0),
            Atom::Bool(b) => s.serialize_bool(*b),
            Atom::Str(t) => s.serialize_str(t),
            Atom::Uuid(u) => ("uuid", u).serialize(s),
        }
    }
}

/// A datum as OVSDB's JSON. The column decides how an empty one is written.
pub struct WireDatum<'a> {
    pub datum: &'a Datum,
    pub is_map: bool,
}

impl Serialize for WireDatum<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if let Some(atom) = self.datum.single() {
            return atom.serialize(s);
        }
        let mut pair = s.serialize_tuple(2)?;
        if self.is_map {
            pair.serialize_element("map")?;
            pair.serialize_element(self.datum.pairs())?;
        } else {
            pair.serialize_element("set")?;
            pair.serialize_element(&AllMembers(self.datum))?;
        }
        pair.end()
    }
}

struct AllMembers<'a>(&'a Datum);

impl Serialize for AllMembers<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.0.atoms())
    }
}
