//! Prints every change of a cluster as a line of JSON; with `-q` only a summary a second.
//!
//! ```text
//! cargo run --example watch -- KUBECONFIG [-q] [NODE]
//! ```

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use ovnkube_model::Change;
use ovnkube_watch::{Access, Client, Scope, start};
use tokio::sync::mpsc::channel;
use tokio::time::interval;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let (flags, words): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word.starts_with('-'));
    let kubeconfig = words.first().context("usage: watch KUBECONFIG [-q] [NODE]")?;
    let access = Access { kubeconfig: Some(kubeconfig.into()), role: "example".into(), ..Access::default() };
    let client = Client::connect(&access).await?;
    let scope = words.get(1).map_or(Scope::Controller, |node| Scope::Node(node.as_str().into()));
    let (sender, mut changes) = channel(1024);
    let _watches = start(&client, &scope, &sender);
    drop(sender);

    let (quiet, began, mut count) = (!flags.is_empty(), Instant::now(), 0_u64);
    let mut said = 0;
    let mut tick = interval(Duration::from_secs(1));
    let mut out = std::io::stdout();
    loop {
        tokio::select! {
            change = changes.recv() => {
                let Some(change) = change else { return Ok(()) };
                count += 1;
                if !quiet || matches!(change, Change::Synced(_)) {
                    writeln!(out, "{:.3} {}", began.elapsed().as_secs_f64(), json(&change)?)?;
                }
            }
            _ = tick.tick() => if quiet && count != said {
                said = count;
                writeln!(out, "{:.3} {count} changes, {}", began.elapsed().as_secs_f64(), usage()?)?;
            }
        }
    }
}

fn json(change: &Change) -> anyhow::Result<String> {
    Ok(serde_json::to_string(change)?)
}

/// Memory and CPU time used so far.
fn usage() -> anyhow::Result<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let rss = status.lines().find(|l| l.starts_with("VmRSS")).unwrap_or_default();
    let peak = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
    let stat = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: u64 = stat.split(' ').next().unwrap_or_default().parse()?;
    Ok(format!("{rss}, {peak}, main thread {} ms", nanoseconds / 1_000_000))
}
