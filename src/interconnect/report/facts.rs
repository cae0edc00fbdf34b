//! What was found out about an interconnection.

use std::collections::BTreeSet;

use ovnkube_db::Observed;
use ovnkube_model::{Change, Interconnection, Name, PeerRoute, World};
use ovnkube_ovn::ic_nb::transit_switch;
use ovnkube_ovn::ic_sb::route;
use ovnkube_ovsdb_data::Cache;
use ovnkube_plan::offer;

use super::declared::DeclaredRoute;
use super::in_effect::{Asked, InEffect, Looked};
use super::northbound::Northbound;
use super::ways::Routes;
use super::zones::{Zone, mark_silent, zones};
use crate::databases::{Databases, is_interconn, local_chassis};
use crate::ours::Moment;
use crate::rows::since;
use crate::step::{Step, step};
use crate::text::short;

/// A node that the ConfigMap names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayNode {
    pub name: String,
    pub exists: bool,
    pub ready: bool,
    pub labelled: bool,
    /// The id of its chassis, which its agent writes.
    pub chassis: Option<Name>,
    /// Whether ovn-controller there makes tunnels to other clusters; `Ok(None)`: there is no such chassis.
    pub interconn: Looked<Option<bool>>,
}

/// All that is known. Each part that could not be looked at says why.
#[derive(Debug)]
pub struct Facts {
    /// Seconds since 1970.
    pub now: u64,
    pub asked: Looked<Asked>,
    /// The uid that stands for this cluster.
    pub cluster: Option<Name>,
    /// The names that it had before.
    pub former: BTreeSet<Name>,
    /// Settings of this host that are not the cluster's, one sentence each.
    pub settings: Vec<String>,
    pub gateways: Looked<Vec<GatewayNode>>,
    /// The servers of IC-NB and IC-SB, as they answered.
    pub servers: Vec<Observed>,
    /// Names of the transit switches in IC-NB.
    pub switches: Looked<Vec<String>>,
    pub zones: Looked<Vec<Zone>>,
    pub northbound: Looked<Northbound>,
    pub southbound: Looked<()>,
    /// Whether a program has the lock of OVN's own daemon, which the master takes too.
    pub locked: Looked<bool>,
    /// Whether all rows of this cluster are as they should be.
    pub settled: Looked<bool>,
    /// What the databases hold that cannot be used.
    pub problems: Vec<String>,
    pub routes: Looked<Vec<Routes>>,
    /// Known if `routes` are.
    pub declared: Vec<DeclaredRoute>,
    /// Subnets that are not offered: name and range.
    pub disabled: Looked<Vec<(String, String)>>,
}

impl Facts {
    pub(crate) fn in_effect(&self) -> InEffect<'_> {
        InEffect::of(&self.asked, &self.northbound)
    }

    pub(crate) fn names(&self) -> Option<&Interconnection> {
        self.in_effect().names
    }

    pub(crate) fn is_on(&self) -> bool {
        self.in_effect().is_on
    }
}

/// The databases that were reached, and why the others were not.
pub struct Reached<'a> {
    pub ic_nb: Looked<&'a Cache>,
    pub ic_sb: Looked<&'a Cache>,
    pub nb: Looked<&'a Cache>,
    pub sb: Looked<&'a Cache>,
}

impl<'a> Reached<'a> {
    /// The databases that a step needs.
    fn all(&self) -> Looked<Databases<'a>> {
        let get = |looked: &Looked<&'a Cache>| looked.clone();
        Ok(Databases { ic_nb: get(&self.ic_nb)?, ic_sb: get(&self.ic_sb)?, sb: get(&self.sb)? })
    }
}

/// What the databases hold, as far as `world` tells what should be there.
pub struct Contents {
    pub switches: Looked<Vec<String>>,
    pub zones: Looked<Vec<Zone>>,
    pub northbound: Looked<Northbound>,
    pub southbound: Looked<()>,
    pub settled: Looked<bool>,
    pub problems: Vec<String>,
    pub routes: Looked<Vec<Routes>>,
    /// Known if `routes` are.
    pub declared: Vec<DeclaredRoute>,
}

impl Contents {
    /// Reads the databases at the time `now`. `world` learns what the other clusters have.
    pub fn read(world: &mut World, reached: &Reached<'_>, now: u64) -> Self {
        let northbound = reached.nb.clone().map(Northbound::read);
        let mut zones = reached.ic_sb.clone().map(zones);
        if let (Ok(zones), Ok(ic_nb)) = (&mut zones, &reached.ic_nb) {
            mark_silent(zones, ic_nb, now);
        }
        let stepped = stepped(world, reached);
        let settled = stepped.as_ref().map(is_settled).map_err(Clone::clone);
        let (problems, routes, declared) = match stepped {
            Ok(Step { mut peers, .. }) => {
                // people are told what is to be there once gateways are
                peers.routes.append(&mut peers.waiting);
                peers.routes.sort();
                world.apply(Change::Peers(Box::new(peers.clone())));
                let own = offer(world);
                let is_other = |zone: &&Zone| {
                    own.as_ref().is_none_or(|own| !zone.is_of(&own.cluster, &own.wanted.zone, &own.former))
                };
                let others: Vec<String> =
                    zones.iter().flatten().filter(is_other).map(|zone| zone.name.clone()).collect();
                let made =
                    |route: &PeerRoute| since(reached.ic_sb.as_ref().ok()?.get(route::TABLE, route.id.parse().ok()?)?);
                let routes = Routes::of(&others, world, &peers, northbound.as_ref().ok(), made);
                let declared = DeclaredRoute::all(world, &peers, northbound.as_ref().ok());
                (peers.problems, Ok(routes), declared)
            }
            Err(why) => (Vec::new(), Err(why), Vec::new()),
        };
        let switches = reached.ic_nb.clone().map(|ic_nb| {
            let mut names: Vec<String> =
                ic_nb.iter(transit_switch::TABLE).map(|(_, row)| short(row.str(transit_switch::NAME))).collect();
            names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
            names
        });
        let southbound = reached.sb.clone().map(|_| ());
        Self { switches, zones, northbound, southbound, settled, problems, routes, declared }
    }

    /// Whether the northbound database lacks no way that is used.
    pub fn is_written(&self) -> bool {
        self.routes.iter().flatten().all(Routes::is_written) && self.declared.iter().all(|route| route.missing() == 0)
    }

    /// Whether a gateway has a port of the cluster of this name.
    pub fn has_gateway(&self, name: &str) -> bool {
        self.zones.iter().flatten().any(|zone| zone.name == name && zone.has_active_gateway())
    }

    /// Whether all is there of the cluster of this name, with a gateway if it had one.
    pub fn is_whole(&self, name: &str, had_gateway: bool) -> bool {
        let switches = self.switches.as_ref().is_ok_and(Vec::is_empty)
            || self.northbound.as_ref().is_ok_and(|northbound| !northbound.switches.is_empty());
        self.settled == Ok(true) && switches && self.is_written() && (!had_gateway || self.has_gateway(name))
    }
}

fn stepped(world: &World, reached: &Reached<'_>) -> Looked<Step> {
    let databases = reached.all()?;
    let offer = offer(world).ok_or("it is not known what this cluster offers")?;
    // a cluster that gets another name has rows of both until the others have followed
    Ok(step(&offer, databases, reached.nb.clone().ok(), Moment::default()))
}

fn is_settled(step: &Step) -> bool {
    [&step.claims, &step.offers, &step.chassis].iter().all(|txn| txn.is_empty())
}

/// Whether ovn-controller of a chassis makes tunnels to other clusters.
pub fn interconn(sb: &Cache, name: &str) -> Option<bool> {
    local_chassis(sb, name).map(is_interconn)
}
