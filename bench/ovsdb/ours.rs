//! The project's client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use ovnkube_ovn::nb::{logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovn::{Atom, Datum, Row, Uuid, derived_uuid, nb};
use ovnkube_ovsdb::{Client, Options, Remote, Txn};

/// As a controller identifies rows: by owner id, else by name.
fn identity(row: &Row) -> Option<Arc<str>> {
    let table = row.table();
    let owner = table.column("external_ids").and_then(|c| row.get(c)?.value_of("k8s.ovn.org/id")?.as_text());
    let name = || table.column("name").and_then(|c| row.get(c)?.single()?.as_text());
    owner.or_else(name).cloned()
}

async fn connect(socket: &str) -> Client {
    let remotes = vec![Remote::Unix(socket.into())];
    let client = Client::connect(Options { identity, ..Options::new(&nb::DATABASE, remotes) });
    client.synced().await;
    client
}

#[expect(clippy::print_stdout, reason = "the result is the program's output")]
pub(crate) fn monitor(socket: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = connect(socket).await;
        let rows: usize = nb::DATABASE.tables.iter().map(|t| client.cache().len(t)).sum();
        println!("RESULT rows={rows}");
        // as a controller does: it does not free memory at exit
        std::process::exit(0)
    })
}

pub(crate) fn transactions(socket: &str, count: usize, window: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = connect(socket).await;
        let mut switches: Vec<Uuid> = client.cache().iter(ls::TABLE).map(|(uuid, _)| uuid).collect();
        switches.sort();
        let mut events = client.subscribe();
        tokio::spawn(async move {
            loop {
                events.recv().await;
            }
        });
        let (switches, start) = (Arc::new(switches), Instant::now());
        let lanes: Vec<_> = (0..window)
            .map(|lane| {
                let (client, switches) = (client.clone(), Arc::clone(&switches));
                tokio::spawn(async move { run(&client, &switches, (lane..count).step_by(window)).await })
            })
            .collect();
        let mut each = Vec::new();
        for lane in lanes {
            each.extend(lane.await??);
        }
        crate::report(start.elapsed(), each);
        std::process::exit(0)
    })
}

async fn run(client: &Client, switches: &[Uuid], numbers: impl Iterator<Item = usize>) -> Result<Vec<Duration>> {
    let mut each = Vec::new();
    for n in numbers {
        let start = Instant::now();
        let Some(switch) = switches.get(n % switches.len()) else { continue };
        let name = format!("bench-{}-{n}", std::process::id());
        let port = derived_uuid("Logical_Switch_Port", &name);
        let row = Row::new(lsp::TABLE)
            .with(lsp::NAME, name)
            .with(lsp::ADDRESSES, ["0a:58:0a:80:00:05 10.128.0.5"])
            .with(lsp::PORT_SECURITY, ["0a:58:0a:80:00:05 10.128.0.5"])
            .with(lsp::EXTERNAL_IDS, [("namespace", "bench"), ("pod", "true")])
            .with(
                lsp::OPTIONS,
                [("requested-chassis", "node-0001"), ("iface-id-ver", "5f1c9f5e-7a0b-4c58-9b1e-000000000001")],
            );
        let mut txn = Txn::new(&nb::DATABASE);
        txn.insert(port, row);
        txn.insert_into(ls::TABLE, *switch, ls::PORTS, Datum::one(Atom::Uuid(port)));
        client.transact(txn).await?;
        each.push(start.elapsed());
    }
    Ok(each)
}
