//! Plans as a function of the observed state.

use super::{LinkSnapshot, MayConflict, Observed, Step, UplinkLink, to_bridge, to_nic};

type Now = Observed<&'static str, &'static str>;
type Todo = Step<&'static str, &'static str>;

impl MayConflict for &'static str {
    fn may_conflict(&self) -> bool {
        self.starts_with('?')
    }
}

fn holder(addresses: &[&'static str], routes: &[&'static str]) -> LinkSnapshot<&'static str, &'static str> {
    LinkSnapshot { up: true, addresses: addresses.to_vec(), routes: routes.to_vec() }
}

/// A host before any step.
fn fresh() -> Now {
    Observed {
        nic: Some(holder(&["a1", "a2"], &["net", "default"])),
        row: false,
        port: false,
        taken: false,
        caught: false,
        bridge: None,
        lost: holder(&[], &[]),
        unwritten: true,
    }
}

/// Simulates the kernel and the switch.
fn act(now: &mut Now, step: &Todo) {
    let bridge = |now: &mut Now| now.bridge.get_or_insert_with(|| holder(&[], &[])).clone();
    let mut ends = (now.nic.clone().unwrap(), now.bridge.clone().unwrap_or_else(|| holder(&[], &[])));
    let (to, from) = match step {
        Step::AddAddress(UplinkLink::Nic, _)
        | Step::MoveRoute(UplinkLink::Nic, _)
        | Step::RemoveAddress(UplinkLink::Bridge, _) => (&mut ends.0, &mut ends.1),
        _ => (&mut ends.1, &mut ends.0),
    };
    match step {
        Step::MakeBridge => {
            now.row = true;
            bridge(now).up = false;
            now.bridge.as_mut().unwrap().up = false;
            return;
        }
        Step::SetUp(UplinkLink::Bridge) => to.up = true,
        Step::SetUp(UplinkLink::Nic) => from.up = true,
        Step::AddPort => now.port = true,
        Step::AwaitPort => (now.taken, now.caught) = (true, true),
        Step::RemovePort => (now.port, now.taken) = (false, false),
        Step::AwaitRelease => now.caught = false,
        Step::Write => {
            now.unwritten = false;
            now.lost = holder(&[], &[]);
        }
        Step::AddAddress(_, address) => {
            to.addresses.retain(|have| have != address);
            to.addresses.push(address);
        }
        Step::MoveRoute(_, route) => {
            from.routes.retain(|have| have != route);
            to.routes.retain(|have| have != route);
            to.routes.push(route);
        }
        Step::RemoveAddress(_, address) => from.addresses.retain(|have| have != address),
        Step::RemoveBridge => {
            (now.row, now.port, now.taken, now.caught, now.bridge) = (false, false, false, false, None);
            now.nic = Some(ends.0);
            return;
        }
    }
    now.nic = Some(ends.0);
    if now.bridge.is_some() {
        now.bridge = Some(ends.1);
    }
}

/// Runs plans until one is empty; returns all steps.
fn run(now: &mut Now, plan: fn(&Now) -> Vec<Todo>) -> Vec<Todo> {
    let mut all = Vec::new();
    loop {
        let steps = plan(now);
        if steps.is_empty() {
            return all;
        }
        assert!(all.len() < 100, "no end: {all:?}");
        for step in steps {
            act(now, &step);
            has_all(now);
            all.push(step);
        }
    }
}

/// The host can use its addresses at every moment.
fn has_all(now: &Now) {
    let held: Vec<_> = [&now.nic, &now.bridge].into_iter().flatten().flat_map(|held| &held.addresses).collect();
    assert!(held.contains(&&"a1") && held.contains(&&"a2"), "{now:?}");
}

#[test]
fn the_steps_of_a_move() {
    use UplinkLink::{Bridge, Nic};
    let mut now = fresh();
    let steps = run(&mut now, to_bridge);
    assert_eq!(
        steps,
        [
            Step::MakeBridge,
            Step::SetUp(Bridge),
            Step::AddAddress(Bridge, "a1"),
            Step::AddAddress(Bridge, "a2"),
            Step::Write,
            Step::AddPort,
            Step::AwaitPort,
            Step::MoveRoute(Bridge, "net"),
            Step::MoveRoute(Bridge, "default"),
            Step::RemoveAddress(Nic, "a2"),
            Step::RemoveAddress(Nic, "a1"),
        ]
    );
    assert_eq!(now.bridge, fresh().nic);
    let steps = run(&mut now, to_nic);
    assert_eq!(
        steps,
        [
            Step::AddAddress(Nic, "a1"),
            Step::AddAddress(Nic, "a2"),
            Step::RemovePort,
            Step::AwaitRelease,
            Step::MoveRoute(Nic, "net"),
            Step::MoveRoute(Nic, "default"),
            Step::RemoveAddress(Bridge, "a2"),
            Step::RemoveAddress(Bridge, "a1"),
            Step::RemoveBridge,
        ]
    );
    assert_eq!(now.nic, fresh().nic);
}

/// After any number of steps, in either direction, the plan is the rest of the move.
#[test]
fn a_move_that_was_interrupted_anywhere() {
    let mut moved = fresh();
    let forth = run(&mut moved, to_bridge);
    let back = run(&mut moved.clone(), to_nic);
    let set = |held: &Option<LinkSnapshot<&'static str, &'static str>>| {
        let mut held = held.clone().unwrap();
        held.addresses.sort_unstable();
        held.routes.sort_unstable();
        held
    };
    for (start, steps) in [(fresh(), &forth), (moved, &back)] {
        for count in 0..=steps.len() {
            let mut now = start.clone();
            for step in &steps[..count] {
                act(&mut now, step);
            }
            let mut there = now.clone();
            run(&mut there, to_bridge);
            assert_eq!((set(&there.bridge), there.port), (set(&fresh().nic), true));
            assert_eq!(there.nic, Some(holder(&[], &[])));
            let mut home = now;
            run(&mut home, to_nic);
            assert_eq!((set(&home.nic), home.row, home.port), (set(&fresh().nic), false, false));
        }
    }
}

#[test]
fn what_a_bridge_lost_is_restored() {
    let mut now = fresh();
    run(&mut now, to_bridge);
    // the switch was restarted and made another link
    now.lost = now.bridge.replace(LinkSnapshot { up: false, ..holder(&[], &[]) }).unwrap();
    let steps = to_bridge(&now);
    assert_eq!(
        steps[..3],
        [
            Step::SetUp(UplinkLink::Bridge),
            Step::AddAddress(UplinkLink::Bridge, "a1"),
            Step::AddAddress(UplinkLink::Bridge, "a2")
        ]
    );
    assert!(to_nic(&now).contains(&Step::AddAddress(UplinkLink::Nic, "a1")));
}

#[test]
fn nothing_to_do() {
    let mut now = fresh();
    run(&mut now, to_bridge);
    assert_eq!(to_bridge(&now), []);
    assert_eq!(to_bridge(&Observed { unwritten: true, ..now }), [Step::Write]);
    assert_eq!(to_nic(&fresh()), []);
    assert_eq!(to_bridge(&Observed { nic: None, ..fresh() }), []);
}

/// An address that another host may have is added where that host can be detected.
#[test]
fn a_doubted_address() {
    let nic = Some(holder(&["a1", "?a2"], &[]));
    let steps = to_bridge(&Observed { nic, ..fresh() });
    let place = |step: &Todo| steps.iter().position(|one| one == step).unwrap();
    assert!(place(&Step::AddAddress(UplinkLink::Bridge, "a1")) < place(&Step::AddPort));
    assert!(place(&Step::AwaitPort) < place(&Step::AddAddress(UplinkLink::Bridge, "?a2")));
    assert!(place(&Step::AddAddress(UplinkLink::Bridge, "?a2")) < place(&Step::RemoveAddress(UplinkLink::Nic, "?a2")));
}

/// The process ended before the switch had released the NIC: routes stay where the packets arrive.
#[test]
fn a_switch_that_still_has_the_nic() {
    let mut now = fresh();
    run(&mut now, to_bridge);
    act(&mut now, &Step::RemovePort);
    let steps = to_nic(&now);
    let place = |step: &Todo| steps.iter().position(|one| one == step).unwrap();
    assert!(place(&Step::AwaitRelease) < place(&Step::MoveRoute(UplinkLink::Nic, "default")));
    // and a switch that has not taken it yet
    let mut now = fresh();
    run(&mut now, to_bridge);
    now.taken = false;
    assert_eq!(to_bridge(&now), [Step::AwaitPort]);
}
