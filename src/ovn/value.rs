//! Values of OVSDB columns.
//!
//! A [`Datum`] is the value of one column of one row: one atom, a set of atoms or a map. It is stored in the form that
//! is sent: a set of one atom *is* that atom, an empty set and an empty map are both [`Datum::EMPTY`], everything else
//! is sorted and without duplicates. So equality is plain `==`, output is always in the same order, and membership is a
//! binary search.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use uuid::Uuid;

use crate::pieces::{Items, Pieces, toggled};

/// Which of the five OVSDB types an atom has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Int,
    Real,
    Bool,
    Str,
    Uuid,
}

/// A floating point number with a total order, so that sets and maps of it can be sorted.
#[derive(Clone, Copy)]
pub struct Real(pub f64);

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Real {}
impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Real {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
impl Hash for Real {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// One value. Strings are shared: a clone of a row copies no text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    Int(i64),
    Real(Real),
    Bool(bool),
    Str(Arc<str>),
    Uuid(Uuid),
}

impl Atom {
    pub fn kind(&self) -> Kind {
        match self {
            Atom::Int(_) => Kind::Int,
            Atom::Real(_) => Kind::Real,
            Atom::Bool(_) => Kind::Bool,
            Atom::Str(_) => Kind::Str,
            Atom::Uuid(_) => Kind::Uuid,
        }
    }

    /// The text of a string atom, shared.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        if let Atom::Str(s) = self { Some(s) } else { None }
    }

    /// The text of a string atom.
    pub fn as_str(&self) -> Option<&str> {
        if let Atom::Str(s) = self { Some(s) } else { None }
    }

    pub fn as_int(&self) -> Option<i64> {
        if let Atom::Int(i) = self { Some(*i) } else { None }
    }

    pub fn as_uuid(&self) -> Option<Uuid> {
        if let Atom::Uuid(u) = self { Some(*u) } else { None }
    }

    /// Whether this is what the server leaves out of an insert: 0, 0.0, false, "" or the zero uuid.
    pub fn is_default(&self) -> bool {
        match self {
            Atom::Int(i) => *i == 0,
            Atom::Real(r) => r.0 == 0.0,
            Atom::Bool(b) => !b,
            Atom::Str(s) => s.is_empty(),
            Atom::Uuid(u) => u.is_nil(),
        }
    }
}

/// The value of one column of one row; the module describes its canonical form. Shared like strings: a clone copies no
/// members.
#[derive(Clone, PartialEq, Eq)]
pub struct Datum(Repr);

#[derive(Clone, PartialEq, Eq)]
enum Repr {
    Empty,
    One(Atom),
    /// Two or more, sorted.
    Set(Arc<[Atom]>),
    /// More than [`WHOLE`].
    Large(Arc<Pieces<Atom>>),
    /// One or more, sorted by key, keys unique.
    Map(Arc<[(Atom, Atom)]>),
}

/// Larger sets are stored in pieces.
const WHOLE: usize = 128;

impl Datum {
    pub const EMPTY: Datum = Datum(Repr::Empty);

    pub fn one(atom: Atom) -> Self {
        Datum(Repr::One(atom))
    }

    /// A set of any number of atoms, in any order; duplicates are dropped.
    pub fn set(atoms: impl IntoIterator<Item = Atom>) -> Self {
        let mut atoms: Vec<Atom> = atoms.into_iter().collect();
        if !atoms.is_sorted_by(|a, b| a < b) {
            atoms.sort_unstable();
            atoms.dedup();
        }
        match atoms.len() {
            0 => Datum::EMPTY,
            1 => atoms.pop().map_or(Datum::EMPTY, Datum::one),
            2..=WHOLE => Datum(Repr::Set(atoms.into())),
            _ => Datum(Repr::Large(Arc::new(Pieces::of_sorted(&atoms)))),
        }
    }

    /// A map of any pairs; of two pairs with the same key, the later counts.
    pub fn map(pairs: impl IntoIterator<Item = (Atom, Atom)>) -> Self {
        let mut pairs: Vec<(Atom, Atom)> = pairs.into_iter().collect();
        if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
            pairs.reverse();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            pairs.dedup_by(|a, b| a.0 == b.0);
        }
        if pairs.is_empty() { Datum::EMPTY } else { Datum(Repr::Map(pairs.into())) }
    }

    /// The members of a scalar, optional or set, sorted; empty for a map.
    pub fn atoms(&self) -> Items<'_, Atom> {
        match &self.0 {
            Repr::Large(pieces) => pieces.items(),
            _ => Items::of(self.small()),
        }
    }

    /// The members, unless they are in pieces.
    fn small(&self) -> &[Atom] {
        match &self.0 {
            Repr::One(a) => std::slice::from_ref(a),
            Repr::Set(s) => s,
            Repr::Empty | Repr::Map(_) | Repr::Large(_) => &[],
        }
    }

    /// The members that `other` lacks, sorted. Between versions of a large set this costs what they differ in.
    pub fn only_here<'a>(&'a self, other: &'a Datum) -> impl Iterator<Item = &'a Atom> {
        only_in(self.unshared(other).into_iter().flatten(), other.unshared(self).into_iter().flatten())
    }

    fn unshared<'a>(&'a self, other: &'a Datum) -> Vec<&'a [Atom]> {
        match (&self.0, &other.0) {
            (Repr::Large(mine), Repr::Large(theirs)) => mine.unshared(theirs).collect(),
            (Repr::Large(mine), _) => mine.slices().collect(),
            _ => vec![self.small()],
        }
    }

    /// The pairs that `other` lacks, sorted.
    pub fn pairs_only_here<'a>(&'a self, other: &'a Datum) -> impl Iterator<Item = &'a (Atom, Atom)> {
        only_in(self.pairs().iter(), other.pairs().iter())
    }

    /// The shared pairs of a map; `None` for anything else.
    pub(crate) fn shared_pairs(&mut self) -> Option<&mut Arc<[(Atom, Atom)]>> {
        if let Repr::Map(pairs) = &mut self.0 { Some(pairs) } else { None }
    }

    /// The pairs of a map, sorted by key; empty for anything else.
    pub fn pairs(&self) -> &[(Atom, Atom)] {
        if let Repr::Map(m) = &self.0 { m } else { &[] }
    }

    /// The only atom of a scalar or a set of one.
    pub fn single(&self) -> Option<&Atom> {
        if let Repr::One(a) = &self.0 { Some(a) } else { None }
    }

    /// Number of atoms or pairs.
    pub fn len(&self) -> usize {
        self.atoms().len() + self.pairs().len()
    }

    pub fn is_empty(&self) -> bool {
        matches!(self.0, Repr::Empty)
    }

    pub fn is_map(&self) -> bool {
        matches!(self.0, Repr::Map(_))
    }

    /// Whether a set holds `atom`, in O(log n).
    pub fn contains(&self, atom: &Atom) -> bool {
        match &self.0 {
            Repr::Large(pieces) => pieces.contains(atom),
            _ => self.small().binary_search(atom).is_ok(),
        }
    }

    /// The value of a string key.
    pub fn value_of(&self, key: &str) -> Option<&Atom> {
        let pairs = self.pairs();
        let at = pairs.binary_search_by(|(k, _)| k.as_str().unwrap_or_default().cmp(key)).ok()?;
        pairs.get(at).map(|(_, v)| v)
    }

    /// Every uuid in it: members of a set, keys and values of a map.
    pub fn uuids(&self) -> impl Iterator<Item = Uuid> + '_ {
        let pairs = self.pairs().iter().flat_map(|(k, v)| [k, v]);
        self.atoms().chain(pairs).filter_map(Atom::as_uuid)
    }

    /// The value after a `modify` of update2/update3 on a column that can hold more than one value: sets take the
    /// symmetric difference; a map's pair is removed if key and value exist already, replaced if the value differs,
    /// else added.
    #[must_use]
    pub fn patched(&self, diff: &Datum) -> Datum {
        match (&self.0, &diff.0) {
            (_, Repr::Empty) => self.clone(),
            (Repr::Map(_) | Repr::Empty, Repr::Map(change)) => patch_map(self.pairs(), change),
            (Repr::Large(pieces), _) => {
                let change: Vec<Atom> = diff.atoms().cloned().collect();
                Self::of_pieces(pieces.toggled(&change))
            }
            (_, Repr::Large(_)) => diff.patched(self),
            _ => Datum::set(toggled(self.small(), diff.small())),
        }
    }

    fn of_pieces(pieces: Pieces<Atom>) -> Self {
        if pieces.len() > WHOLE { Datum(Repr::Large(Arc::new(pieces))) } else { Datum::set(pieces.items().cloned()) }
    }
}

impl Default for Datum {
    fn default() -> Self {
        Datum::EMPTY
    }
}

/// The items of sorted `a` that sorted `b` lacks, in one walk over both.
fn only_in<'a, T: Ord + 'a>(
    a: impl Iterator<Item = &'a T>,
    b: impl Iterator<Item = &'a T>,
) -> impl Iterator<Item = &'a T> {
    let mut rest = b.peekable();
    a.filter(move |item| {
        while rest.next_if(|r| r < item).is_some() {}
        rest.peek() != Some(item)
    })
}

fn patch_map(old: &[(Atom, Atom)], change: &[(Atom, Atom)]) -> Datum {
    let mut out = Vec::with_capacity(old.len() + change.len());
    let (mut a, mut b) = (old.iter().peekable(), change.iter().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some((k, v)), Some((l, w))) if k == l => {
                if v != w {
                    out.push((k.clone(), w.clone()));
                }
                a.next();
                b.next();
            }
            (Some((k, _)), Some((l, _))) if k < l => out.extend(a.next().cloned()),
            (Some(_), None) => out.extend(a.next().cloned()),
            (_, Some(_)) => out.extend(b.next().cloned()),
            (None, None) => return Datum::map(out),
        }
    }
}

impl fmt::Debug for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Int(i) => write!(f, "{i}"),
            Atom::Real(r) => write!(f, "{:?}", r.0),
            Atom::Bool(b) => write!(f, "{b}"),
            Atom::Str(s) => write!(f, "{s:?}"),
            Atom::Uuid(u) => write!(f, "{u}"),
        }
    }
}

impl fmt::Debug for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Empty => f.write_str("[]"),
            Repr::One(a) => a.fmt(f),
            Repr::Set(_) | Repr::Large(_) => f.debug_list().entries(self.atoms()).finish(),
            Repr::Map(m) => f.debug_map().entries(m.iter().map(|(k, v)| (k, v))).finish(),
        }
    }
}
