//! An observed host and what the agent changes there first: one case for each file in `golden/`. Run with
//! `UPDATE=1` to write the plans into the files.
#![allow(clippy::unwrap_used)]

mod seen;

use std::fs;

use ovnkube_node_plan::change::HostChange;
use ovnkube_node_plan::gateway::{Place, routing};
use ovnkube_node_plan::links::{self, HostState};
use ovnkube_node_plan::management_port::ManagementPort;
use ovnkube_node_plan::observed::Observed;
use ovnkube_node_plan::other_clusters;
use ovnkube_node_plan::stale;

use seen::Case;

/// All planned changes: first the removal of earlier settings' remains, then what is missing.
fn plan(case: &Case, host: &Observed) -> Result<Vec<HostChange>, String> {
    let ranges = stale::Ranges { cluster: &case.cluster, service: &[], masquerade: &case.masquerade };
    let Some(settings) = &case.gateway else {
        let mut changes = if case.cleanup { stale::of_no_node(&ranges, host) } else { leftovers(None, &ranges, host) };
        changes.extend(case.cleanup.then(|| stale::tables(&ranges, host)).into_iter().flatten());
        return Ok(changes.into_iter().chain(missing(case, None, host)).collect());
    };
    settings.check_host(case.ranges(), host).map_err(|e| e.to_string())?;
    let place = settings.place(case.ranges(), host).map_err(|e| e.to_string())?;
    let bridge = settings.find(&place, case.ranges(), &case.internal, host).map_err(|e| e.to_string())?;
    let stale = leftovers(Some(&place), &ranges, host);
    Ok(stale.into_iter().chain(missing(case, Some(&bridge), host)).collect())
}

/// The tables that the agent does not read make no difference to what it plans.
fn leftovers(stays: Option<&Place>, ranges: &stale::Ranges<'_>, host: &Observed) -> Vec<HostChange> {
    let changes = stale::gateways(stays, ranges, host);
    if !stale::needs_tables(stays, ranges, host) {
        let unread = Observed { tables: Vec::new(), ..host.clone() };
        assert_eq!(stale::gateways(stays, ranges, &unread), changes);
    }
    changes
}

fn missing(
    case: &Case,
    bridge: Option<&ovnkube_node_plan::gateway::GatewayBridge>,
    host: &Observed,
) -> Vec<HostChange> {
    let Some(port) = ManagementPort::new(&case.management()) else { return Vec::new() };
    let want = if let Some(bridge) = bridge {
        let facts = routing::Facts {
            bridge,
            management: &port,
            masquerade: &case.masquerade,
            service_cidrs: &case.services,
            mtu: case.mtu,
            checksums_in_software: false,
        };
        routing::want(&facts, host)
    } else {
        port.state(host)
    };
    let mut changes = links::diff(&want, host);
    changes.extend(links::diff(&others(case, host).0, host));
    changes
}

/// Routes to other clusters, and what is said of prefixes that have none.
fn others(case: &Case, host: &Observed) -> (HostState, Option<String>) {
    let gateways: Vec<_> = case.subnets.iter().filter_map(|subnet| subnet.nth(1)).collect();
    let facts =
        other_clusters::Facts { prefixes: case.others.as_ref(), gateways: &gateways, mtu: None, needed: &case.needed };
    let (state, held) = other_clusters::want(&facts, host);
    (state, other_clusters::say(&held))
}

/// Applying the planned changes soon leads to an empty plan.
fn settles(name: &str, mut case: Case) {
    for _ in 0..3 {
        let host = case.host.clone();
        let Ok(changes) = plan(&case, &host) else { return };
        if changes.is_empty() {
            return;
        }
        for change in &changes {
            seen::carry_out(&mut case.host, change);
        }
    }
    let left = plan(&case, &case.host).unwrap();
    assert!(left.is_empty(), "{name}: still to be done after three looks: {left:#?}");
}

#[test]
fn observed_hosts_and_their_changes() {
    let mut cases: Vec<_> = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 8, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for path in cases {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let case = Case::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let have: Vec<String> = match plan(&case, &case.host) {
            Ok(changes) => changes.iter().map(ToString::to_string).chain(others(&case, &case.host).1).collect(),
            Err(why) => vec![why],
        };
        settles(&name, case.clone());
        let (have, want) = (have.join("\n"), case.changes.join("\n"));
        if have != want && std::env::var_os("UPDATE").is_some() {
            let (given, _) = text.split_once("changes:").unwrap();
            let lines: Vec<String> = have.lines().map(|line| format!("\n  - {line:?}")).collect();
            let lines = if lines.is_empty() { " []".to_owned() } else { lines.concat() };
            fs::write(&path, format!("{given}changes:{lines}\n")).unwrap();
        } else if have != want {
            println!("=== {name}\n{have}");
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "what is planned differs from what stands in {wrong:?}");
}
