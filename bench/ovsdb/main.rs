//! Measures the OVSDB client against the raw limit: a socket without parsing.
//!
//! `ovsdb-bench raw-monitor|monitor SOCKET`, `ovsdb-bench raw-txn|txn SOCKET COUNT WINDOW`; prints
//! one line `RESULT key=value …`. `run.sh` starts the servers and writes the tables.

mod ours;
mod raw;

use std::time::Duration;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [_, "raw-monitor", socket] => raw::monitor(socket),
        [_, "monitor", socket] => ours::monitor(socket),
        [_, "raw-txn", socket, count, window] => raw::transactions(socket, count.parse()?, window.parse()?),
        [_, "txn", socket, count, window] => ours::transactions(socket, count.parse()?, window.parse()?),
        _ => bail!("usage: ovsdb-bench raw-monitor|monitor SOCKET | raw-txn|txn SOCKET COUNT WINDOW"),
    }
}

/// Prints how long transactions took.
#[expect(clippy::print_stdout, reason = "the result is the program's output")]
fn report(total: Duration, mut each: Vec<Duration>) {
    each.sort();
    let at = |percent: usize| each.get(each.len() * percent / 100).copied().unwrap_or_default();
    let rate = each.len() as f64 / total.as_secs_f64();
    println!("RESULT rate={rate:.0} p50={} p99={}", at(50).as_micros(), at(99).as_micros());
}
