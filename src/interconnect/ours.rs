//! The rows of this cluster in IC-SB: its zone, gateways, ports and routes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ovnkube_model::Name;
use ovnkube_ovn::ic_nb::transit_switch;
use ovnkube_ovn::ic_sb::{availability_zone, datapath_binding, encap, gateway, port_binding, route};
use ovnkube_ovn::sb::{chassis, encap as sb_encap, port_binding as binding};
use ovnkube_ovn::{Row, Uuid, derived_uuid, ic_sb};
use ovnkube_ovsdb_data::{Cache, Txn};
use ovnkube_plan::{Offer, names};

use crate::databases::{Databases, is_interconn, local_chassis, number};
use crate::former::{Former, Stage};
use crate::keys::{self, is_of_switch};
use crate::rows::{CLUSTER, has_marks, is_new, is_of, marks, rows_of_all, zone_of};
use crate::switches::Switch;
use crate::text::{first, remove_zone, short, typed};
use crate::ways::Way;
use crate::write::put;

/// External id of a route with the uuid of the router that it leads to. OVN's own daemon, from 24.03 on, skips routes without
/// it and those of its own routers.
const ROUTER: &str = "lr-id";
/// How OVN's own daemon has to take our routes. For northd from 25.03 on, a route of origin `connected` is of a network that the
/// router has itself: several to one prefix are no ECMP, only one of them is used, and it ties with a network that the router really
/// has.
const ORIGIN: &str = "static";
const SWITCH_PORT: &str = "transit-switch-port";

/// The most gateways that a message names.
const NAMED: usize = 5;

/// When a step is taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moment<'a> {
    /// The other clusters had time to follow what was written last.
    pub is_settled: bool,
    /// Seconds since 1970.
    pub now: u64,
    /// Names that this cluster had, and has made zones of: these go when they are empty.
    pub vacated: &'a [Name],
    /// Keys of switches that have not been there for a while: these go. IC-NB may tell of a new switch later than IC-SB of its key.
    pub stale: &'a [Uuid],
    /// The ways that have been open for a while; `None`: all that are open.
    pub known: Option<&'a BTreeSet<Way>>,
    /// IC-NB is away: it is known as it was. Nothing is written there, and switches may be there that are not known.
    pub is_partial: bool,
}

/// This cluster in the databases.
pub(crate) struct Ours<'a> {
    offer: &'a Offer,
    databases: Databases<'a>,
    zone: Option<Uuid>,
    /// The chassis that have its ports now.
    carrying: BTreeSet<Name>,
    /// Its rows in its zone.
    rows: Vec<(Uuid, &'a Row)>,
    /// Those that another cluster has there, or may have. They stay as they are.
    others: BTreeMap<Uuid, &'a Row>,
    /// The routes in its zone, by switch, prefix and next hop.
    routes: HashMap<[&'a str; 3], (Uuid, &'a Row)>,
}

impl<'a> Ours<'a> {
    /// Fails if another cluster has the same name, and this one nothing there.
    pub(crate) fn find(offer: &'a Offer, databases: Databases<'a>) -> Result<Self, String> {
        let ours = Self::of(offer, databases);
        if ours.rows.is_empty() && !ours.others.is_empty() {
            return Err(format!(
                "another cluster has az-name {0:?} too; give this one another name. If that cluster is gone, remove what is left \
                 of it: ovnkube ic clean az {0}",
                short(&offer.wanted.zone)
            ));
        }
        Ok(ours)
    }

    fn of(offer: &'a Offer, databases: Databases<'a>) -> Self {
        let zone = zone_of(databases.ic_sb, &offer.wanted.zone);
        let rows = rows_of_all(databases.ic_sb).filter(|(_, _, of)| zone.is_some() && *of == zone);
        let rows: Vec<(Uuid, &Row)> = rows.map(|(uuid, row, _)| (uuid, row)).collect();
        let (carrying, others, routes) = (BTreeSet::new(), BTreeMap::new(), HashMap::new());
        let mut ours = Self { offer, databases, zone, carrying, rows: Vec::new(), others, routes };
        let is_route = |row: &Row| row.table() == route::TABLE && row.str(route::ROUTE_TABLE).is_empty();
        ours.routes = rows.iter().filter(|(_, row)| is_route(row)).map(|of| (route_id(of.1), *of)).collect();
        let marked: Vec<Option<bool>> = rows.iter().map(|(_, row)| ours.is_marked(row)).collect();
        let is_only = marked.contains(&Some(true)) && !marked.contains(&Some(false));
        for ((uuid, row), is_ours) in rows.into_iter().zip(marked) {
            if is_ours.unwrap_or(is_only) {
                ours.rows.push((uuid, row));
            } else {
                ours.others.insert(uuid, row);
            }
        }
        ours
    }

    /// Whose a row of the zone is; `None`: OVN's own daemon made it, and it does not say.
    fn is_marked(&self, row: &Row) -> Option<bool> {
        match row.external_ids().get(CLUSTER) {
            Some(cluster) => Some(cluster == self.offer.cluster.as_ref()),
            None if row.table() != gateway::TABLE => None,
            None => {
                let name = row.str(gateway::NAME);
                Some(self.offer.own_chassis.contains(name) || self.local_chassis(name).is_some())
            }
        }
    }

    /// What others have in the zone, and what to do.
    pub(crate) fn intruders(&self) -> Option<String> {
        let zone = short(&self.offer.wanted.zone);
        (!self.others.is_empty()).then(|| {
            format!(
                "IC-SB has rows of another cluster under az-name {zone:?}, which is this one's: {}. They stay, and the others take \
                 them for this cluster's; remove them: ovnkube ic clean az {zone}. If it is a cluster that is in use, give one of the two \
                 another az-name",
                first(self.others.values().map(|row| in_words(row)), NAMED)
            )
        })
    }

    /// A chassis of this cluster.
    fn local_chassis(&self, name: &str) -> Option<&'a Row> {
        local_chassis(self.databases.sb, name)
    }

    /// Notes which chassis have its ports now.
    pub(crate) fn look(&mut self, switches: &[Switch]) {
        self.carrying =
            switches.iter().flat_map(Switch::ends).filter_map(|ends| self.gateway_of(&ends.router_side)).collect();
    }

    pub(crate) fn carrying(&self) -> BTreeSet<Name> {
        self.carrying.clone()
    }

    /// Whether it has written a gateway just now.
    pub(crate) fn has_new_gateway(&self, now: u64) -> bool {
        let mut rows = self.databases.ic_sb.iter(gateway::TABLE);
        rows.any(|(uuid, row)| self.is_mine(uuid, row) && is_new(row, now))
    }

    /// Gateways of which the others cannot know yet. `now`: seconds since 1970.
    pub(crate) fn new_gateways(&self, now: u64) -> BTreeSet<Name> {
        let is_old = |name: &&Name| {
            let mut rows = self.databases.ic_sb.iter(gateway::TABLE).filter(|(uuid, row)| self.is_mine(*uuid, row));
            rows.any(|(_, row)| row.str(gateway::NAME) == name.as_ref() && !is_new(row, now))
        };
        self.offer.gateways.values().flatten().filter(|name| !is_old(name)).cloned().collect()
    }

    /// Returns the stage of a change of names.
    pub(crate) fn write(
        &self,
        txn: &mut Txn,
        switches: &[Switch],
        former: &Former<'_>,
        Moment { is_settled, now, vacated, .. }: Moment<'_>,
        problems: &mut Vec<String>,
    ) -> Stage {
        let name = &self.offer.wanted.zone;
        let stage = former.stage(&self.rows, !self.offer.prefixes.is_empty(), switches);
        let offers = match stage {
            Stage::Attach => self.rows.iter().any(|(_, row)| row.table() == route::TABLE),
            Stage::Offer => is_settled,
            Stage::Withdraw | Stage::Detach | Stage::Done => true,
        };
        problems.extend(self.intruders());
        let ic_sb = self.databases.ic_sb;
        let zone = self.zone.unwrap_or_else(|| ic_sb.fresh_uuid(availability_zone::TABLE, name));
        let mut kept = BTreeSet::new();
        self.gateways(txn, zone, now, &mut kept, problems);
        let router = derived_uuid("Logical_Router", &self.offer.cluster).to_string();
        let prefixes: Vec<String> = self.offer.prefixes.iter().map(ToString::to_string).collect();
        for switch in switches {
            if self.port(txn, zone, (switch, now), &mut kept, problems) && offers {
                self.routes(txn, (zone, &router), (switch, now), &prefixes, &mut kept);
            }
        }
        for (uuid, row) in self.rows.iter().filter(|(uuid, _)| !kept.contains(uuid)) {
            txn.delete(row.table(), *uuid);
        }
        if kept.is_empty() {
            self.leave_zone(txn, false);
        } else {
            self.put_zone(txn);
            self.datapaths(txn, switches, problems);
        }
        former.remove(txn, is_settled.then_some(stage), &kept);
        self.vacated(txn, vacated);
        stage
    }

    /// A zone is made together with the first row in it, and goes with the last one: an empty one does not say whose it is, and nobody
    /// would remove it.
    fn put_zone(&self, txn: &mut Txn) {
        let name = &self.offer.wanted.zone;
        let mut row = Row::new(availability_zone::TABLE).with(availability_zone::NAME, name.as_ref());
        if let Some((_, number)) = number(self.databases.ic_nb) {
            row.set(availability_zone::NB_IC_CFG, number);
        }
        put(txn, self.databases.ic_sb, self.zone, name, row);
    }

    /// Removes the zone, if nobody else has anything in it. `was_here`: this process has had it, though no row says so.
    fn leave_zone(&self, txn: &mut Txn, was_here: bool) {
        if let Some(zone) = self.zone.filter(|_| self.others.is_empty() && (was_here || !self.rows.is_empty())) {
            txn.delete(availability_zone::TABLE, zone);
        }
    }

    fn vacated(&self, txn: &mut Txn, names: &[Name]) {
        let ic_sb = self.databases.ic_sb;
        for zone in names.iter().filter(|name| **name != self.offer.wanted.zone).filter_map(|name| zone_of(ic_sb, name))
        {
            if !rows_of_all(ic_sb).any(|(_, _, of)| of == Some(zone)) {
                txn.delete(availability_zone::TABLE, zone);
            }
        }
    }

    /// What removes all that is this cluster's, and the zone if nobody else has anything in it. `was_here`: this process has had
    /// the zone.
    pub(crate) fn removal(offer: &'a Offer, databases: Databases<'a>, was_here: bool) -> Txn {
        let (ours, mut txn) = (Self::of(offer, databases), Txn::new(&ic_sb::DATABASE));
        for (uuid, row) in &ours.rows {
            txn.delete(row.table(), *uuid);
        }
        ours.leave_zone(&mut txn, was_here);
        ours.former().remove(&mut txn, Some(Stage::Detach), &BTreeSet::new());
        txn
    }

    /// What this cluster has under an earlier name.
    pub(crate) fn former(&self) -> Former<'a> {
        Former::find(self.databases.ic_sb, Some(self.databases.sb), self.offer, self.zone)
    }

    /// The chassis that may carry traffic.
    fn gateways(&self, txn: &mut Txn, zone: Uuid, now: u64, kept: &mut BTreeSet<Uuid>, problems: &mut Vec<String>) {
        let ic_sb = self.databases.ic_sb;
        let wanted: BTreeSet<&Name> = self.offer.gateways.values().flatten().chain(&self.carrying).collect();
        for name in wanted {
            let Some(row) = self.offered(name) else { continue };
            let have = ic_sb.iter(gateway::TABLE).find(|(_, row)| row.str(gateway::NAME) == name.as_ref());
            let have = have.map(|(uuid, row)| (uuid, row.as_ref()));
            if let Some((_, row)) = have.filter(|(uuid, row)| !self.is_mine(*uuid, row)) {
                problems.push(format!(
                    "cannot offer gateway {name}: in IC-SB it is one of cluster {}; have that cluster remove it, or if it is gone for good: {}",
                    short(zone_name(ic_sb, row)),
                    typed("ovnkube ic clean node", name, "remove its row in IC-SB")
                ));
                continue;
            }
            let encaps = self.encaps(txn, (name, row), have, problems);
            if encaps.is_empty() {
                continue;
            }
            let want = Row::new(gateway::TABLE)
                .with(gateway::NAME, name.as_ref())
                .with(gateway::AVAILABILITY_ZONE, zone)
                .with(gateway::HOSTNAME, row.str(chassis::HOSTNAME))
                .with(gateway::ENCAPS, encaps)
                .with(gateway::EXTERNAL_IDS, marks(&self.offer.cluster, have.map(|(_, row)| row), now));
            kept.insert(put(txn, ic_sb, have.map(|(uuid, _)| uuid), name, want));
        }
    }

    /// Whether a gateway is written or removed here: it is in this zone, or is one that is offered and has this cluster's mark. The mark
    /// alone does not count: others can write it.
    fn is_mine(&self, uuid: Uuid, gateway: &Row) -> bool {
        let of_zone = self.zone.is_some() && gateway.uuid(gateway::AVAILABILITY_ZONE) == self.zone;
        let in_zone = of_zone && !self.others.contains_key(&uuid);
        in_zone || (is_of(gateway, &self.offer.cluster) && self.offered(gateway.str(gateway::NAME)).is_some())
    }

    /// The chassis of this name, if it may carry traffic: ovn-controller makes tunnels to other clusters only where it is told to.
    fn offered(&self, name: &str) -> Option<&'a Row> {
        let is_gateway = self.offer.gateways.values().flatten().any(|gateway| gateway.as_ref() == name);
        self.local_chassis(name).filter(|row| (is_gateway || self.carrying.contains(name)) && is_interconn(row))
    }

    /// The gateways that carry nothing, with the reason and what to do.
    pub(crate) fn idle(&self) -> Option<String> {
        let idle = |(node, chassis): (&Name, &Option<Name>)| {
            Some(format!("{node}: {}", self.carries_nothing(chassis.as_ref())?))
        };
        let idle: Vec<String> = self.offer.gateways.iter().filter_map(idle).collect();
        let more = idle.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(". {more} more") } else { String::new() };
        (!idle.is_empty()).then(|| {
            let named = idle.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(". ");
            format!("of gw-nodes only the others carry packets between clusters. {named}{more}")
        })
    }

    /// Why a gateway with this chassis carries nothing, and what to do.
    fn carries_nothing(&self, chassis: Option<&Name>) -> Option<String> {
        let Some(name) = chassis else {
            let why = "its agent has not written the id of its chassis; start ovnkube's agent there, or see its log";
            return Some(why.to_owned());
        };
        let Some(row) = self.local_chassis(name) else {
            let remedy = "start ovn-controller there, or see its log";
            return Some(format!("chassis {name} is not in the southbound database; {remedy}"));
        };
        let why =
            "ovn-controller makes no tunnels to other clusters: is-interconn is not true; see the log of its agent";
        (!is_interconn(row)).then(|| why.to_owned())
    }

    /// Where a gateway receives tunnels. The database takes each address once.
    fn encaps(
        &self,
        txn: &mut Txn,
        (name, chassis): (&Name, &Row),
        have: Option<(Uuid, &Row)>,
        problems: &mut Vec<String>,
    ) -> Vec<Uuid> {
        let (ic_sb, sb) = (self.databases.ic_sb, self.databases.sb);
        let mut encaps = Vec::new();
        for row in chassis.uuids(chassis::ENCAPS).filter_map(|uuid| sb.get(sb_encap::TABLE, uuid)) {
            let (kind, ip) = (row.str(sb_encap::TYPE), row.str(sb_encap::IP));
            let is_same = |uuid: &Uuid| {
                let row = ic_sb.get(encap::TABLE, *uuid);
                row.is_some_and(|row| row.str(encap::TYPE) == kind && row.str(encap::IP) == ip)
            };
            let mut others = ic_sb.iter(gateway::TABLE).filter(|(uuid, row)| !self.is_mine(*uuid, row));
            if let Some((_, other)) = others.find(|(_, row)| row.uuids(gateway::ENCAPS).any(|uuid| is_same(&uuid))) {
                problems.push(format!(
                    "cannot offer {kind} {ip} of gateway {name}: in IC-SB gateway {} of cluster {} has it; give one of the two hosts another \
                     address, or if that cluster is gone for good: {}",
                    short(other.str(gateway::NAME)),
                    short(zone_name(ic_sb, other)),
                    remove_zone(zone_name(ic_sb, other))
                ));
                continue;
            }
            let same = have.into_iter().flat_map(|(_, row)| row.uuids(gateway::ENCAPS)).find(is_same);
            let want = Row::new(encap::TABLE)
                .with(encap::GATEWAY_NAME, name.as_ref())
                .with(encap::TYPE, kind)
                .with(encap::IP, ip)
                .with(encap::OPTIONS, row.map(sb_encap::OPTIONS).iter());
            encaps.push(put(txn, ic_sb, same, &format!("{name} {kind} {ip}"), want));
        }
        encaps
    }

    /// The keys of switches that do not exist and in which nobody has a port any more: they are no cluster's, so as with OVN's own
    /// daemon any cluster removes them.
    pub(crate) fn stale_datapaths(&self) -> impl Iterator<Item = Uuid> {
        let Databases { ic_nb, ic_sb, .. } = self.databases;
        let existing = ic_nb.iter(transit_switch::TABLE).map(|(_, row)| row.str(transit_switch::NAME));
        let in_use = ic_sb.iter(port_binding::TABLE).map(|(_, row)| row.str(port_binding::TRANSIT_SWITCH));
        let known: BTreeSet<&str> = existing.chain(in_use).collect();
        let rows = ic_sb.iter(datapath_binding::TABLE);
        let stale = move |row: &Row| is_of_switch(row) && !known.contains(row.str(datapath_binding::TRANSIT_SWITCH));
        rows.filter(move |(_, row)| stale(row)).map(|(uuid, _)| uuid)
    }

    /// Any cluster chooses the key of a switch that has none. All choose the same row, so that the database refuses all but
    /// the first.
    fn datapaths(&self, txn: &mut Txn, switches: &[Switch], problems: &mut Vec<String>) {
        let ic_sb = self.databases.ic_sb;
        let rows = ic_sb.iter(datapath_binding::TABLE);
        let mut taken: BTreeSet<i64> = rows.map(|(_, row)| row.int(datapath_binding::TUNNEL_KEY)).collect();
        for switch in switches.iter().filter(|switch| switch.key.is_none()) {
            let usable = keys::new(self.databases.ic_nb);
            let Some(key) = keys::next(&usable, &taken) else {
                problems.push(format!(
                    "no tunnel key from {} to {} is left for transit switch {}; remove rows of Datapath_Binding in IC-SB whose switches are \
                     gone",
                    usable.start(),
                    usable.end(),
                    switch.name
                ));
                return;
            };
            taken.insert(key);
            let mut row = Row::new(datapath_binding::TABLE)
                .with(datapath_binding::TRANSIT_SWITCH, switch.name.as_ref())
                .with(datapath_binding::TUNNEL_KEY, key);
            if ic_sb.supports(datapath_binding::TABLE, datapath_binding::TYPE) {
                row.set(datapath_binding::TYPE, Some(keys::SWITCH));
                row.set(datapath_binding::NB_IC_UUID, Some(switch.uuid));
            }
            put(txn, ic_sb, None, &switch.uuid.to_string(), row);
        }
    }

    /// Writes the port in a switch. Whether it is on a gateway.
    fn port(
        &self,
        txn: &mut Txn,
        zone: Uuid,
        (switch, now): (&Switch, u64),
        kept: &mut BTreeSet<Uuid>,
        problems: &mut Vec<String>,
    ) -> bool {
        let Some(own) = &switch.own else { return false };
        let ic_sb = self.databases.ic_sb;
        let ends = names::transit(&switch.name, &self.offer.wanted.zone);
        let ports = || ic_sb.iter(port_binding::TABLE);
        let have = ports().find(|(_, row)| row.str(port_binding::LOGICAL_PORT) == ends.switch_side);
        let of_zone = |row: &Row| row.uuid(port_binding::AVAILABILITY_ZONE) == self.zone;
        let is_ours = |uuid: Uuid, row: &Row| {
            (of_zone(row) || is_of(row, &self.offer.cluster)) && !self.others.contains_key(&uuid)
        };
        if have.is_some_and(|(uuid, row)| !is_ours(uuid, row)) {
            problems.push(format!("another cluster has a port {}; give this one another az-name", ends.switch_side));
            return false;
        }
        // the database takes a key once in each switch, and somebody may have changed ours
        let in_switch = |row: &Row| row.str(port_binding::TRANSIT_SWITCH) == switch.name.as_ref();
        let others = ports().filter(|(uuid, row)| in_switch(row) && have.is_none_or(|(own, _)| own != *uuid));
        let taken: BTreeSet<i64> = others.map(|(_, row)| row.int(port_binding::TUNNEL_KEY)).collect();
        let is_usable = |key: &i64| keys::PORTS.contains(key) && !taken.contains(key);
        let key = have.filter(|(_, row)| in_switch(row)).map(|(_, row)| row.int(port_binding::TUNNEL_KEY));
        let Some(key) = key.filter(is_usable).or_else(|| keys::next(&keys::PORTS, &taken)) else {
            problems.push(format!("transit switch {} has no tunnel key left; remove ports that are gone", switch.name));
            return false;
        };
        let gateway = self.gateway_of(&ends.router_side);
        let networks: Vec<String> = own.addresses.iter().map(ToString::to_string).collect();
        let mut want = Row::new(port_binding::TABLE)
            .with(port_binding::LOGICAL_PORT, ends.switch_side.as_str())
            .with(port_binding::TRANSIT_SWITCH, switch.name.as_ref())
            .with(port_binding::AVAILABILITY_ZONE, zone)
            .with(port_binding::TUNNEL_KEY, key)
            .with(port_binding::ADDRESS, format!("{} {}", own.mac, networks.join(" ")))
            .with(port_binding::GATEWAY, gateway.as_deref().unwrap_or_default())
            .with(port_binding::EXTERNAL_IDS, marks(&self.offer.cluster, have.map(|(_, row)| row.as_ref()), now));
        if ic_sb.supports(port_binding::TABLE, port_binding::TYPE) {
            want.set(port_binding::TYPE, Some(SWITCH_PORT));
            want.set(port_binding::NB_IC_UUID, Some(switch.uuid));
        }
        kept.insert(put(txn, ic_sb, have.map(|(uuid, _)| uuid), &ends.switch_side, want));
        gateway.is_some()
    }

    /// The chassis that holds a gateway port now.
    fn gateway_of(&self, router_port: &str) -> Option<Name> {
        let sb = self.databases.sb;
        let redirect = format!("cr-{router_port}");
        let mut rows = sb.iter(binding::TABLE);
        let (_, row) = rows.find(|(_, row)| row.str(binding::LOGICAL_PORT) == redirect)?;
        let chassis = sb.get(chassis::TABLE, row.uuid(binding::CHASSIS)?)?;
        Some(chassis.str(chassis::NAME).into())
    }

    /// What the others may reach through a switch whose port is on a gateway.
    fn routes(
        &self,
        txn: &mut Txn,
        (zone, router): (Uuid, &str),
        (switch, now): (&Switch, u64),
        prefixes: &[String],
        kept: &mut BTreeSet<Uuid>,
    ) {
        let ic_sb = self.databases.ic_sb;
        let own = switch.own.iter().flat_map(|own| &own.addresses);
        let next_hops: Vec<String> = own.map(|net| net.ip().to_string()).collect();
        for prefix in prefixes {
            for next_hop in next_hops.iter().filter(|hop| hop.contains(':') == prefix.contains(':')) {
                let id = [switch.name.as_ref(), prefix.as_str(), next_hop.as_str()];
                let have = self.routes.get(&id).copied();
                if have.is_some_and(|(uuid, _)| self.others.contains_key(&uuid)) {
                    // the database takes it once
                    continue;
                }
                if let Some((uuid, _)) = have.filter(|(_, row)| self.is_in_order(row, zone, router)) {
                    kept.insert(uuid);
                    continue;
                }
                let marks = marks(&self.offer.cluster, have.map(|(_, row)| row), now);
                let want = Row::new(route::TABLE)
                    .with(route::TRANSIT_SWITCH, switch.name.as_ref())
                    .with(route::AVAILABILITY_ZONE, zone)
                    .with(route::ROUTE_TABLE, "")
                    .with(route::IP_PREFIX, prefix.as_str())
                    .with(route::NEXTHOP, next_hop.as_str())
                    .with(route::ORIGIN, ORIGIN)
                    .with(route::EXTERNAL_IDS, marks.into_iter().chain([(ROUTER, router.to_owned())]));
                let name = format!("{} {} {prefix} {next_hop}", self.offer.cluster, switch.name);
                kept.insert(put(txn, ic_sb, have.map(|(uuid, _)| uuid), &name, want));
            }
        }
    }

    /// Whether a route, found by its switch, prefix and next hop, has all else that it should have. Most have: a row to compare with
    /// would cost more.
    fn is_in_order(&self, route: &Row, zone: Uuid, router: &str) -> bool {
        route.uuid(route::AVAILABILITY_ZONE) == Some(zone)
            && route.str(route::ORIGIN) == ORIGIN
            && has_marks(route, &self.offer.cluster, (ROUTER, router))
    }
}

/// What tells routes of a zone apart.
fn route_id(row: &Row) -> [&str; 3] {
    [row.str(route::TRANSIT_SWITCH), row.str(route::IP_PREFIX), row.str(route::NEXTHOP)]
}

/// `gateway gw3`
fn in_words(row: &Row) -> String {
    let (what, name) = match row.table() {
        table if table == gateway::TABLE => ("gateway", row.str(gateway::NAME)),
        table if table == port_binding::TABLE => ("port", row.str(port_binding::LOGICAL_PORT)),
        _ => ("a route to", row.str(route::IP_PREFIX)),
    };
    format!("{what} {}", short(name))
}

/// The name of the cluster that a gateway is of.
fn zone_name<'a>(ic_sb: &'a Cache, gateway: &Row) -> &'a str {
    let zone = gateway.uuid(gateway::AVAILABILITY_ZONE).and_then(|zone| ic_sb.get(availability_zone::TABLE, zone));
    zone.map(|row| row.str(availability_zone::NAME)).unwrap_or_default()
}
