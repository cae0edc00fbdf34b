//! The gateways of the other clusters, and their tunnels. Every gateway host of this cluster makes each of these.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ovnkube_model::Name;
use ovnkube_ovn::Row;
use ovnkube_ovn::ic_sb::{encap, gateway};
use ovnkube_ovn::sb::{chassis, encap as sb_encap};
use ovnkube_ovsdb_data::Cache;

use crate::databases::is_remote;
use crate::rows::CLUSTER;
use crate::switches::Reader;
use crate::text::{is_chassis, short};

/// The most tunnel addresses of a gateway. Together with the bound of gateways, a transaction with all of them is one that a
/// database of several servers takes.
const ADDRESSES: usize = 8;
const GENEVE: &str = "geneve";
const VXLAN: &str = "vxlan";
/// Option with the UDP port.
const PORT: &str = "dst_port";

/// A gateway of another cluster.
pub(crate) struct Gateway {
    pub(crate) zone: Name,
    /// What tells its cluster from others of the same name.
    pub(crate) cluster: Option<Name>,
    pub(crate) hostname: Name,
    pub(crate) encaps: BTreeSet<Encap>,
}

/// Where a host receives tunnels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Encap {
    pub(crate) kind: Name,
    pub(crate) ip: IpAddr,
    pub(crate) options: BTreeMap<Name, Name>,
}

/// The tunnels that this cluster has.
pub(crate) struct Tunnels<'a> {
    kinds: BTreeSet<&'a str>,
    port: u16,
}

impl<'a> Tunnels<'a> {
    pub(crate) fn of(reader: Reader<'a>) -> Self {
        let sb = reader.databases.sb;
        let own = sb.iter(chassis::TABLE).filter(|(_, row)| !is_remote(row));
        let encaps = own.flat_map(|(_, row)| row.uuids(chassis::ENCAPS));
        let encaps = encaps.filter_map(|uuid| sb.get(sb_encap::TABLE, uuid));
        Self { kinds: encaps.map(|row| row.str(sb_encap::TYPE)).collect(), port: reader.offer.encap_port }
    }

    /// Fails with the reason, and what to do.
    pub(crate) fn read_gateway(&self, ic_sb: &Cache, zone: &str, row: &Row) -> Result<Gateway, String> {
        let count = row.uuids(gateway::ENCAPS).count();
        if count > ADDRESSES {
            return Err(format!(
                "it has {count} tunnel addresses, and a gateway may have at most {ADDRESSES}; correct it in that cluster"
            ));
        }
        let rows = row.uuids(gateway::ENCAPS).filter_map(|uuid| ic_sb.get(encap::TABLE, uuid));
        let encaps = rows.filter_map(|row| self.read_encap(row)).map(|encap| ((encap.kind.clone(), encap.ip), encap));
        let encaps: BTreeMap<_, Encap> = encaps.collect();
        if encaps.is_empty() || !is_chassis(row.str(gateway::NAME)) {
            return Err("it has no address that a tunnel from here can have, or its name is not the id of a chassis; correct it in \
                        that cluster"
                .into());
        }
        if let Some(port) = encaps.values().find_map(|encap| self.bad_port(encap)) {
            return Err(format!(
                "its tunnels have UDP port {port}, and those of this cluster {}; give both clusters the same encap-port",
                self.port
            ));
        }
        let cluster = row.external_ids().get(CLUSTER).map(Name::from);
        let hostname = short(row.str(gateway::HOSTNAME)).into();
        Ok(Gateway { zone: zone.into(), cluster, hostname, encaps: encaps.into_values().collect() })
    }

    /// Where one chassis has VXLAN, northd numbers all that this cluster has as it must for VXLAN, which has room for few. So VXLAN
    /// is used only where this cluster has it itself.
    fn read_encap(&self, row: &Row) -> Option<Encap> {
        let kind = row.str(encap::TYPE);
        let ip = row.str(encap::IP).parse().ok().filter(|ip| is_of_host(*ip))?;
        let options = row.map(encap::OPTIONS);
        let options = options.iter().filter(|(key, value)| is_option(key, value));
        let options = options.map(|(key, value)| (key.into(), value.into())).collect();
        let is_known = kind == GENEVE || (kind == VXLAN && self.kinds.contains(VXLAN));
        is_known.then(|| Encap { kind: kind.into(), ip, options })
    }

    /// The port of a tunnel, if this cluster has none by it: the hosts would open it for everyone.
    fn bad_port<'e>(&self, encap: &'e Encap) -> Option<&'e Name> {
        let usual = if *encap.kind == *VXLAN { 4789 } else { 6081 };
        let is_own = |port: u16| port == self.port && self.kinds.contains(encap.kind.as_ref());
        let is_fit = |port: &&Name| port.parse().is_ok_and(|port| port == usual || is_own(port));
        encap.options.get(PORT).filter(|port| !is_fit(port))
    }
}

/// Options of tunnels that ovn-controller knows, with values that it knows.
fn is_option(key: &str, value: &str) -> bool {
    match key {
        "csum" | "is_default" => matches!(value, "true" | "false"),
        PORT => value.parse::<u16>().is_ok_and(|port| port != 0),
        _ => false,
    }
}

/// Whether a host can have this address, for tunnels.
fn is_of_host(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && !is_broadcast
}
