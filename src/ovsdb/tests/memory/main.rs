//! The cost of one huge update. Runs in its own process, because it measures its memory.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

#[allow(dead_code, reason = "only a server is needed here")]
#[path = "../real/lab.rs"]
mod lab;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use lab::{Dir, Lts, NB, Server, live, options, within};
use ovnkube_ovn::nb::logical_switch as ls;
use ovnkube_ovsdb::Client;

const MIB: usize = 1 << 20;
const HUGE: usize = 64 * MIB;

/// MiB of `VmHWM` (the maximum) or `VmRSS` (now).
fn memory(what: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}

/// Sends a transaction without the client under test, and never has all of it in memory.
fn transact(server: &Server, operation: (&str, usize, &str)) {
    let mut socket = UnixStream::connect(&server.socket).unwrap();
    let (before, letters, after) = operation;
    write!(socket, r#"{{"method":"transact","id":1,"params":["OVN_Northbound",{before}"#).unwrap();
    let chunk = vec![b'x'; MIB];
    for _ in 0..letters / MIB {
        socket.write_all(&chunk).unwrap();
    }
    write!(socket, "{after}]}}").unwrap();
    let mut reply = [0; 1024];
    let length = socket.read(&mut reply).unwrap();
    let reply = String::from_utf8_lossy(&reply[..length]);
    assert!(reply.contains(r#""error":null"#) && !reply.contains("details"), "{reply}");
}

fn values(client: &Client) -> Vec<usize> {
    let cache = client.cache();
    cache.iter(ls::TABLE).map(|(_, row)| row.map(ls::EXTERNAL_IDS).get("k").map_or(0, str::len)).collect()
}

/// 64 MB in one update: the rows are correct, memory is at most a few times that, and is freed afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_huge_update() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let client = live(options(vec![server.remote()])).await;
    let before = memory("VmHWM");
    let insert = r#"{"op":"insert","table":"Logical_Switch","row":{"name":"huge","external_ids":["map",[["k",""#;
    transact(&server, (insert, HUGE, r#""]]]}}"#));
    within("the huge row", async {
        while values(&client) != [HUGE] {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let most = memory("VmHWM") - before;
    assert!(most < 5 * HUGE / MIB, "{most} MiB for an update of {} MiB", HUGE / MIB);
    transact(&server, (r#"{"op":"delete","table":"Logical_Switch","where":[["name","==","huge"]]}"#, 0, ""));
    within("its end", async {
        while !values(&client).is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // the next small message also frees the buffers
    transact(&server, (r#"{"op":"insert","table":"Logical_Switch","row":{"name":"small"}}"#, 0, ""));
    within("a small row", async {
        while values(&client) != [0] {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let left = memory("VmRSS").saturating_sub(before);
    assert!(left < HUGE / MIB, "{left} MiB are still used after the row was deleted");
    println!("most {most} MiB, left {left} MiB");
}
