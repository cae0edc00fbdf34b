//! Whether a transit switch goes together with what this cluster has: nothing of the cluster's own may be changed, and no traffic
//! of it taken away.

use ovnkube_model::Local;
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovsdb_data::Cache;
use ovnkube_plan::names;

use crate::switches::{Reader, Switch};
use crate::ways::is_ours;

/// Key of `other_config` with the transit switch that a switch stands for.
const TRANSIT: &str = "interconn-ts";

/// Why a switch cannot be used, and what to do. `others`: those that are used.
pub(crate) fn problem(switch: &Switch, others: &[Switch], reader: Reader<'_>) -> Option<String> {
    if reader.offer.nodes.contains(&switch.name) {
        return Some("a node has this name; give the switch another one".to_owned());
    }
    subnets(switch, others, &reader.offer.local)
        .map(|problem| format!("its subnet {problem}; give the switch another subnet in all clusters"))
        .or_else(|| ports(switch, others).map(|problem| format!("{problem}; give it another name")))
        .or_else(|| {
            northbound(switch, reader.nb?).map(|problem| format!("{problem}; give one of the two another name"))
        })
}

/// Its subnet becomes a route of the cluster's router.
fn subnets(switch: &Switch, others: &[Switch], local: &Local) -> Option<String> {
    switch.subnets.iter().find_map(|net| {
        let others = others.iter().flat_map(|other| other.subnets.iter().map(move |of| (other, of)));
        let mut others = others.filter(|(_, of)| of.overlaps(*net));
        let other = || others.next().map(|(other, of)| format!("overlaps {of} of transit switch {}", other.name));
        local.find(*net).or_else(other).map(|taken| format!("{net} {taken}"))
    })
}

/// `a` in `b-c` and `a-b` in `c` have ports of the same name.
fn ports(switch: &Switch, others: &[Switch]) -> Option<String> {
    let mut ends = switch.ports().map(|own| names::transit(&switch.name, &own.zone));
    let taken = |end: &names::TransitPorts| {
        let of = |other: &&Switch| {
            let mut ports = other.ports().map(|own| names::transit(&other.name, &own.zone));
            ports.any(|port| port.router_side == end.router_side || port.switch_side == end.switch_side)
        };
        others.iter().find(of)
    };
    ends.find_map(|end| Some(format!("its port {} is called as that in {}", end.router_side, taken(&end)?.name)))
}

/// Rows that somebody else has made.
fn northbound(switch: &Switch, nb: &Cache) -> Option<String> {
    let rows =
        |table, name: &str| nb.lookup(table, name).iter().filter_map(|uuid| nb.get(table, *uuid)).collect::<Vec<_>>();
    let is_transit = |row: &Row| row.map(ls::OTHER_CONFIG).get(TRANSIT) == Some(switch.name.as_ref());
    if rows(ls::TABLE, &switch.name).iter().any(|row| !is_transit(row) && !is_ours(row)) {
        return Some("the northbound database has another switch of this name".to_owned());
    }
    switch.ports().find_map(|own| {
        let ends = names::transit(&switch.name, &own.zone);
        let is_other = |row: &Row| !is_ours(row) && row.str(lsp::TYPE) != "router";
        rows(lsp::TABLE, &ends.switch_side)
            .iter()
            .any(|row| is_other(row))
            .then(|| format!("the northbound database has another port {}", ends.switch_side))
    })
}

/// Whether a row of ports of switches in NB is another one than that of a port of another cluster.
pub(crate) fn is_taken(nb: &Cache, port: &str) -> bool {
    let mut rows = nb.lookup(lsp::TABLE, port).iter().filter_map(|uuid| nb.get(lsp::TABLE, *uuid));
    rows.any(|row| row.str(lsp::TYPE) != "remote")
}
