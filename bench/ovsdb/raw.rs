//! The limit: the same bytes over a blocking socket, without cache, checks or events.

use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ovnkube_ovn::nb;
use ovnkube_ovsdb::Framer;
use serde_json::{Value, json};

struct Conn {
    socket: UnixStream,
    framer: Framer,
}

impl Conn {
    fn open(path: &str) -> Result<Self> {
        Ok(Conn { socket: UnixStream::connect(path)?, framer: Framer::new(1 << 30) })
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        Ok(self.socket.write_all(message.to_string().as_bytes())?)
    }

    fn recv(&mut self) -> Result<Range<usize>> {
        loop {
            if let Some(range) = self.framer.next_message()? {
                return Ok(range);
            }
            let buffer = self.framer.buffer();
            let length = buffer.len();
            buffer.resize(buffer.capacity(), 0);
            let n = self.socket.read(buffer.get_mut(length..).unwrap_or_default())?;
            buffer.truncate(length + n);
            ensure!(n > 0, "server closed the connection");
        }
    }

    fn call(&mut self, message: &Value) -> Result<Value> {
        self.send(message)?;
        let range = self.recv()?;
        Ok(serde_json::from_slice(self.framer.message(range))?)
    }

    /// The request for all tables and columns that this server has.
    fn monitor_request(&mut self) -> Result<Value> {
        let schema = self.call(&json!({"method": "get_schema", "params": [nb::DATABASE.name], "id": 1}))?;
        let tables = schema.pointer("/result/tables").and_then(Value::as_object).context("read schema")?;
        let columns = |t: &Value| {
            let names: Vec<String> = t["columns"].as_object().map(|c| c.keys().cloned().collect()).unwrap_or_default();
            json!([{ "columns": names }])
        };
        let wanted: Value = tables.iter().map(|(name, table)| (name.clone(), columns(table))).collect();
        let zero = "00000000-0000-0000-0000-000000000000";
        Ok(json!({"method": "monitor_cond_since", "params": [nb::DATABASE.name, "m", wanted, zero], "id": 2}))
    }
}

#[expect(clippy::print_stdout, reason = "the result is the program's output")]
pub(crate) fn monitor(path: &str) -> Result<()> {
    let mut conn = Conn::open(path)?;
    let request = conn.monitor_request()?;
    conn.send(&request)?;
    // no framing: the reply ends when the socket is silent after a closing brace
    conn.socket.set_read_timeout(Some(Duration::from_millis(300)))?;
    let (mut bytes, mut last, mut chunk) = (0, 0, vec![0; 1 << 18]);
    loop {
        match conn.socket.read(&mut chunk) {
            Ok(0) => bail!("server closed the connection"),
            Ok(n) => {
                bytes += n;
                last = chunk.get(n - 1).copied().unwrap_or_default();
            }
            Err(_) if bytes > 0 && last == b'}' => break,
            Err(_) => {}
        }
    }
    println!("RESULT bytes={bytes}");
    Ok(())
}

pub(crate) fn transactions(path: &str, count: usize, window: usize) -> Result<()> {
    let mut conn = Conn::open(path)?;
    let select = json!({"op": "select", "table": "Logical_Switch", "where": [], "columns": ["_uuid"]});
    let found = conn.call(&json!({"method": "transact", "params": [nb::DATABASE.name, select], "id": 1}))?;
    let rows = found.pointer("/result/0/rows").and_then(Value::as_array).context("read switches")?;
    let mut switches: Vec<&str> = rows.iter().filter_map(|r| r.pointer("/_uuid/1")?.as_str()).collect();
    switches.sort_unstable();
    let messages: Vec<Vec<u8>> = (0..count).map(|n| message(n, switches.get(n % switches.len()).copied())).collect();
    let request = conn.monitor_request()?;
    conn.send(&request)?;
    conn.recv()?;
    // The server stops reading from a client that does not read its replies: sending and receiving
    // need a thread each, or a big window would deadlock.
    let begun = Arc::new(Mutex::new(vec![Instant::now(); count]));
    let (permit, done) = sync_channel::<()>(window);
    let mut socket = conn.socket.try_clone()?;
    let (start, starts) = (Instant::now(), Arc::clone(&begun));
    let writer = std::thread::spawn(move || -> Result<()> {
        let mut out = Vec::with_capacity(1 << 17);
        for (n, message) in messages.iter().enumerate() {
            if permit.try_send(()).is_err() {
                socket.write_all(&out)?;
                out.clear();
                permit.send(())?;
            }
            if let Some(at) = starts.lock().ok().as_deref_mut().and_then(|s| s.get_mut(n)) {
                *at = Instant::now();
            }
            out.extend_from_slice(message);
            if out.len() > 1 << 16 || window == 1 {
                socket.write_all(&out)?;
                out.clear();
            }
        }
        Ok(socket.write_all(&out)?)
    });
    let mut each = Vec::with_capacity(count);
    while each.len() < count {
        let range = conn.recv()?;
        let reply: Value = serde_json::from_slice(conn.framer.message(range))?;
        let Some(id) = reply["id"].as_u64() else { continue };
        ensure!(!reply["result"].to_string().contains("error"), "transaction failed: {reply}");
        let at = begun.lock().ok().and_then(|s| s.get(id as usize - 100).copied()).context("match reply")?;
        each.push(at.elapsed());
        done.recv()?;
    }
    crate::report(start.elapsed(), each);
    writer.join().ok().context("join writer")?
}

fn message(n: usize, switch: Option<&str>) -> Vec<u8> {
    let row = json!({
        "name": format!("raw-{}-{n}", std::process::id()),
        "addresses": "0a:58:0a:80:00:05 10.128.0.5",
        "port_security": "0a:58:0a:80:00:05 10.128.0.5",
        "external_ids": ["map", [["namespace", "bench"], ["pod", "true"]]],
        "options": ["map", [["requested-chassis", "node-0001"], ["iface-id-ver", "5f1c9f5e-7a0b-4c58-9b1e-000000000001"]]],
    });
    let insert = json!({"op": "insert", "table": "Logical_Switch_Port", "uuid-name": "n", "row": row});
    let mutate = json!({"op": "mutate", "table": "Logical_Switch", "where": [["_uuid", "==", ["uuid", switch]]],
        "mutations": [["ports", "insert", ["named-uuid", "n"]]]});
    json!({"method": "transact", "id": n + 100, "params": [nb::DATABASE.name, insert, mutate]}).to_string().into_bytes()
}
