//! What the northbound database has of the interconnection.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Asks, Interconnection, Subnet};
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_port as lrp, logical_router_static_route as route, logical_switch as ls,
};
use ovnkube_ovn::{Row, owner};
use ovnkube_ovsdb_data::Cache;
use ovnkube_plan::names;
use serde::Serialize;

use crate::in_use::way;
use crate::rows::is_ours;
use crate::text::short;

/// What is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Northbound {
    /// Transit switches, and whether each is ours.
    pub switches: BTreeMap<String, bool>,
    /// Ports of routers by name, with their addresses, and whether each is ours.
    pub ports: BTreeMap<String, (Vec<IpNetwork>, bool)>,
    /// Routes that are ours, learned or declared: prefix and next hop.
    pub learned: BTreeSet<(Subnet, IpAddr)>,
    /// Routes that are not ours.
    pub others: Vec<ByHand>,
    pub kept: Option<Kept>,
}

/// The last interconnection that the masters could use, until it is left. They keep it for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub names: Interconnection,
    /// Not so while the cluster leaves.
    pub is_on: bool,
    /// All that is kept, as it is there.
    pub text: String,
}

impl Kept {
    fn read(nb: &Cache) -> Option<Self> {
        let (_, router) = nb.iter(lr::TABLE).find(|(_, row)| row.str(lr::NAME) == names::CLUSTER_ROUTER)?;
        let text = router.external_ids().get(names::KEPT_INTERCONNECTION)?;
        let asks = Asks::of_text(text);
        Some(Self { names: asks.names()?.clone(), is_on: matches!(asks, Asks::On(_)), text: text.into() })
    }
}

/// A route that somebody else wrote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ByHand {
    pub prefix: Subnet,
    pub next_hop: IpAddr,
}

impl Northbound {
    pub fn read(nb: &Cache) -> Self {
        let is_transit = |row: &Row| row.map(ls::OTHER_CONFIG).contains_key("interconn-ts");
        let switches = nb.iter(ls::TABLE).filter(|(_, row)| is_transit(row));
        let ports = nb.iter(lrp::TABLE).map(|(_, row)| {
            let networks = row.strs(lrp::NETWORKS).filter_map(|net| net.parse().ok()).collect();
            (short(row.str(lrp::NAME)), (networks, is_ours(row)))
        });
        let mut found = Self {
            switches: switches.map(|(_, row)| (short(row.str(ls::NAME)), is_ours(row))).collect(),
            ports: ports.collect(),
            kept: Kept::read(nb),
            ..Self::default()
        };
        for (_, row) in nb.iter(route::TABLE) {
            let Some((prefix, next_hop)) = way(row) else { continue };
            if is_ours(row) {
                found.learned.insert((prefix, next_hop));
            } else if !row.external_ids().contains_key(owner::OWNER_TYPE) {
                found.others.push(ByHand { prefix, next_hop });
            }
        }
        found.others.sort();
        found
    }

    /// Whether a route's next hop is in a transit switch of this cluster.
    pub(crate) fn leads_to_transit(&self, route: &ByHand) -> bool {
        let mut own = self.ports.values().filter(|(_, is_ours)| *is_ours).flat_map(|(networks, _)| networks);
        own.any(|network| network.contains(route.next_hop))
    }

    /// Whether a master has taken up that this is wanted.
    pub fn keeps(&self, wanted: &Interconnection) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.is_on && kept.names.text(true) == wanted.text(true))
    }

    /// Whether nothing of an interconnection is there.
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty() && self.learned.is_empty()
    }
}
