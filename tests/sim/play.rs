//! Plays a story, and shortens one that fails.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use ovnkube_tests::settings::Settings;

use crate::api::ApiServer;
use crate::story::{Event, Story};
use crate::world::World;
use crate::{checks, deeds, pools};

thread_local! {
    /// The first panic of this thread, also one within a task of a master.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What was played.
#[derive(Default)]
pub(crate) struct Played {
    stories: u64,
    events: u64,
    faults: u64,
    transactions: u64,
    patches: u64,
    /// Simulated time, ms.
    time: u64,
    /// Of all messages and their times.
    pub(crate) trace: u64,
}

impl Played {
    pub(crate) fn add(&mut self, other: &Self) {
        self.stories += other.stories;
        self.events += other.events;
        self.faults += other.faults;
        self.transactions += other.transactions;
        self.patches += other.patches;
        self.time += other.time;
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stories, events, faults, transactions, patches, time, .. } = self;
        let hours = *time as f64 / 3_600_000.0;
        write!(f, "{stories} stories held: {events} events, {faults} faults, {transactions} transactions, ")?;
        write!(f, "{patches} patches, {hours:.1} hours of simulated time")
    }
}

/// Shows the log of the masters if `SIM_LOG` says which.
pub(crate) fn log() {
    if let Ok(filter) = std::env::var("SIM_LOG") {
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().without_time().try_init();
    }
}

/// Plays a story; returns why it fails.
pub(crate) fn play(story: &Story) -> Result<Played, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // the harness reports panics of other threads
            let is_played = PANIC.with_borrow(Option::is_some);
            if !is_played {
                return usual(info);
            }
            let text = info.payload().downcast_ref::<&str>().copied();
            let text =
                text.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            PANIC.with_borrow_mut(|panic| {
                if let Some(empty) = panic.as_mut().filter(|panic| panic.is_empty()) {
                    *empty = format!("{text} ({place})");
                }
            });
        }));
    });
    PANIC.set(Some(String::new()));
    let done = catch_unwind(AssertUnwindSafe(|| through(story)));
    let why = PANIC.take().unwrap_or_default();
    match done {
        Ok(played) if why.is_empty() => Ok(played),
        _ => Err(why),
    }
}

fn through(story: &Story) -> Played {
    fastrand::seed(story.seed);
    let usual = if story.both_families { "10.128.0.0/14/23,fd01::/48/64" } else { "10.128.0.0/14/23" };
    let subnets = if story.small_ranges { pools::small_ranges(story.both_families) } else { usual };
    let settings = Settings { cluster_subnets: subnets.into(), ..Settings::default() };
    let mut world = World::new(story.seed, &story.clocks, settings.network(), ApiServer::new());
    if story.pair {
        world.nb.make_pair();
    }
    for (gap, event) in &story.events {
        world.run_until(world.now + gap);
        match event {
            Event::Rest => checks::at_rest(&mut world, story.small_ranges),
            event => deeds::happen(&mut world, *event),
        }
    }
    checks::at_rest(&mut world, story.small_ranges);
    let faults = story.events.iter().filter(|(_, event)| matches!(event, Event::Fault(_))).count() as u64;
    Played {
        stories: 1,
        events: story.events.len() as u64 - faults,
        faults,
        transactions: world.writes.0,
        patches: world.writes.1,
        time: world.now,
        trace: world.trace,
    }
}

/// Where a story has failed.
fn place(why: &str) -> &str {
    why.rsplit_once('(').map_or(why, |(_, place)| place)
}

/// Leaves out events, as long as the story fails in the same way.
pub(crate) fn shortened(mut story: Story, mut why: String) -> (Story, String) {
    let mut size = story.events.len().div_ceil(2).max(1);
    loop {
        let mut end = story.events.len();
        while end > 0 {
            let start = end.saturating_sub(size);
            let mut shorter = story.clone();
            let gone: u64 = shorter.events.drain(start..end).map(|(gap, _)| gap).sum();
            // what is left happens when it did
            if let Some((gap, _)) = shorter.events.get_mut(start) {
                *gap += gone;
            }
            if let Err(because) = play(&shorter)
                && place(&because) == place(&why)
            {
                (story, why) = (shorter, because);
            }
            end = start;
        }
        if size == 1 {
            return (story, why);
        }
        size = size.div_ceil(2);
    }
}
