//! `ovn-k8s-cni-overlay`: the program the container runtime runs for every pod.
//!
//! ```text
//! runtime ──CNI_* + stdin──▶ shim ──POST /, unix socket──▶ node agent
//!         ◀─stdout, exit──        ◀── {"Result": …} ──────
//! ```
//! It decides nothing: the node agent does the work. The shim limits what it reads, answers
//! `VERSION` itself, and prints the result in the version that the network configuration asks for.

mod convert;
mod failure;
mod log;
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
mod wire;

use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Instant;

use failure::Failure;
use serde_json::{Map, Value, json};

/// The CNI versions that this plugin supports, oldest first.
const VERSIONS: &[&str] = &["0.3.1", "0.4.0", "1.0.0", "1.1.0"];
const STDIN_LIMIT: u64 = 512 * 1024;
/// Names of the inputs, for errors.
const CONFIGURATION: &str = "the network configuration on stdin";
const REPLY: &str = "the node agent's reply";

fn main() -> ExitCode {
    let started = Instant::now();
    let mut call = Call::default();
    let outcome = call.run();
    call.log(&outcome, started);
    let (text, code) = match outcome {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(failure) => (failure.json(&call.version), ExitCode::FAILURE),
    };
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if printed.is_err() { ExitCode::FAILURE } else { code }
}

/// One run of the plugin; filled in as far as the input can be read, for errors and the log.
#[derive(Default)]
struct Call {
    command: String,
    /// cniVersion of the network configuration; empty until known.
    version: String,
    conf: Value,
    /// The `CNI_*` variables, as a JSON object.
    env: Value,
}

impl Call {
    /// Returns the text for stdout.
    fn run(&mut self) -> Result<String, Failure> {
        self.env = cni_env()?;
        self.command = self.var("CNI_COMMAND").to_owned();
        // before it waits for input, which somebody at a terminal does not give
        if self.command.is_empty() {
            return Err(Failure::env("CNI_COMMAND is not set; a container runtime starts this program"));
        }
        let stdin = stdin()?;
        if self.command == "VERSION" {
            return Ok(versions(&stdin));
        }
        self.conf = serde_json::from_slice(&stdin).map_err(|e| Failure::decode(CONFIGURATION, &e.to_string()))?;
        if !self.conf.is_object() {
            return Err(Failure::decode(CONFIGURATION, "it is not a JSON object"));
        }
        let version = match self.conf.get("cniVersion") {
            None => "0.3.1",
            Some(version) => {
                version.as_str().ok_or_else(|| Failure::decode(CONFIGURATION, "cniVersion is not a string"))?
            }
        };
        if !VERSIONS.contains(&version) {
            return Err(Failure::version(version, VERSIONS));
        }
        version.clone_into(&mut self.version);
        self.forward(&stdin)
    }

    fn forward(&self, stdin: &[u8]) -> Result<String, Failure> {
        let body = format!(r#"{{"env":{},"config":"{}"}}"#, self.env, wire::base64(stdin));
        let socket = wire::socket();
        let reply = match wire::post(socket.clone(), body, wire::patience(&self.command)) {
            Ok(reply) => reply,
            Err(_) if self.command == "STATUS" && wire::was_ready(&socket) => return Ok(String::new()),
            Err(error) => return Err(Failure::agent(&self.command, &error)),
        };
        if reply.status != 200 {
            return Err(Failure::refused(reply.cni_code, &reply.text()));
        }
        let mut reply: Value =
            serde_json::from_slice(&reply.body).map_err(|e| Failure::decode(REPLY, &e.to_string()))?;
        if self.command != "ADD" {
            return Ok(String::new());
        }
        match reply.get_mut("Result").map(Value::take) {
            Some(Value::Object(result)) => Ok(convert::to_version(result, &self.version).to_string()),
            _ => Err(Failure::decode(REPLY, "it has no Result")),
        }
    }

    fn var(&self, name: &str) -> &str {
        self.env.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn log(&self, outcome: &Result<String, Failure>, started: Instant) {
        let took = started.elapsed().as_micros();
        let subject = format!(
            "{} {} {} {}",
            self.command,
            self.var("CNI_CONTAINERID"),
            self.var("CNI_IFNAME"),
            self.var("CNI_ARGS")
        );
        match outcome {
            Ok(_) => log::write(&self.conf, log::INFO, &format!("{subject}: done in {took} us")),
            Err(failure) => log::write(&self.conf, log::ERROR, &format!("{subject}: {failure} ({took} us)")),
        }
    }
}

fn versions(stdin: &[u8]) -> String {
    let asked: Option<Value> = serde_json::from_slice(stdin).ok();
    let version =
        asked.as_ref().and_then(|v| v.get("cniVersion")).and_then(Value::as_str).filter(|v| VERSIONS.contains(v));
    json!({ "cniVersion": version.or(VERSIONS.last().copied()), "supportedVersions": VERSIONS }).to_string()
}

/// The `CNI_*` variables of this process.
fn cni_env() -> Result<Value, Failure> {
    let mut env = Map::new();
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with("CNI_")) else { continue };
        let value = value.to_str().ok_or_else(|| Failure::env(&format!("{name} is not UTF-8")))?;
        env.insert(name.to_owned(), value.into());
    }
    Ok(Value::Object(env))
}

fn stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(STDIN_LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::io(&e.to_string()))?;
    if bytes.len() as u64 > STDIN_LIMIT {
        return Err(Failure::decode(CONFIGURATION, &format!("it is longer than {STDIN_LIMIT} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
