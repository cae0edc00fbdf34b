//! The databases that are read, and what several files here read in them.

use ovnkube_ovn::ic_nb::{self, ic_nb_global};
use ovnkube_ovn::sb::chassis;
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::{Cache, Txn};

/// The databases that a step reads.
#[derive(Clone, Copy)]
pub struct Databases<'a> {
    pub ic_nb: &'a Cache,
    pub ic_sb: &'a Cache,
    pub sb: &'a Cache,
}

/// Whether a chassis is another cluster's.
pub fn is_remote(row: &Row) -> bool {
    row.map(chassis::OTHER_CONFIG).get("is-remote") == Some("true")
}

/// Whether ovn-controller makes tunnels to other clusters there.
pub(crate) fn is_interconn(row: &Row) -> bool {
    row.map(chassis::OTHER_CONFIG).get("is-interconn") == Some("true")
}

/// A chassis of this cluster.
pub(crate) fn local_chassis<'a>(sb: &'a Cache, name: &str) -> Option<&'a Row> {
    let mut rows = sb.iter(chassis::TABLE).map(|(_, row)| row.as_ref());
    rows.find(|row| row.str(chassis::NAME) == name && !is_remote(row))
}

/// The number that all clusters write to their zones when they have followed, and its row.
pub(crate) fn number(ic_nb: &Cache) -> Option<(Uuid, i64)> {
    let (uuid, row) = ic_nb.iter(ic_nb_global::TABLE).next()?;
    ic_nb.supports(ic_nb_global::TABLE, ic_nb_global::NB_IC_CFG).then(|| (uuid, row.int(ic_nb_global::NB_IC_CFG)))
}

/// External id beside this number: the last values that ovnkube has given it, the latest first, each with the time in seconds since
/// 1970.
const QUESTIONS: &str = "ovnkube-questions";
/// A cluster that is silent lags behind an earlier one, too.
const MOST_QUESTIONS: usize = 2;

/// What raises this number, also above `least`, at the time `now`. `None`: the database has none.
pub(crate) fn raise(ic_nb: &Cache, least: i64, now: u64) -> Option<Txn> {
    let (uuid, before) = number(ic_nb)?;
    let next = before.max(least).checked_add(1).unwrap_or_default();
    let row = |number: i64| Row::new(ic_nb_global::TABLE).with(ic_nb_global::NB_IC_CFG, number);
    let mut txn = Txn::new(&ic_nb::DATABASE);
    txn.wait_holds(uuid, row(before));
    txn.update(uuid, row(next));
    let questions = [(next, now)].into_iter().chain(questions(ic_nb)).take(MOST_QUESTIONS);
    let texts: Vec<String> = questions.map(|(number, at)| format!("{number} {at}")).collect();
    txn.set_keys(ic_nb_global::TABLE, uuid, ic_nb_global::EXTERNAL_IDS, [(QUESTIONS, texts.join(" "))]);
    Some(txn)
}

/// The last numbers that ovnkube has asked all clusters to follow, and when.
pub(crate) fn questions(ic_nb: &Cache) -> Vec<(i64, u64)> {
    let (Some((_, row)), Some((_, last))) = (ic_nb.iter(ic_nb_global::TABLE).next(), number(ic_nb)) else {
        return Vec::new();
    };
    let mut words = row.external_ids().get(QUESTIONS).unwrap_or_default().split(' ');
    let questions = std::iter::from_fn(|| Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?)));
    // somebody may have set the number back
    questions.take(MOST_QUESTIONS).filter(|(number, _)| *number <= last).collect()
}
