//! Memory, CPU time and open files of this process, read on request from /proc; without it there are none.

use std::fmt;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Linux reports CPU time in hundredths of a second on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(crate) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if !Path::new("/proc/self").exists() {
            return Ok(());
        }
        let mut say = |name: &str, help: &str, unit: Option<&Unit>, metric: &dyn Encode| {
            metric.encode_to(&mut encoder, name, help, unit)
        };
        say("process_resident_memory", "Resident memory", Some(&Unit::Bytes), &ConstGauge::new(resident()))?;
        say("process_cpu", "CPU time, user and system", Some(&Unit::Seconds), &ConstCounter::new(cpu_seconds()))?;
        let files = read_dir("/proc/self/fd").map_or(0, Iterator::count);
        say("process_open_fds", "Open files", None, &ConstGauge::new(files as i64))
    }
}

trait Encode {
    fn encode_to(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
    ) -> fmt::Result;
}

impl<M: EncodeMetric> Encode for M {
    fn encode_to(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
    ) -> fmt::Result {
        self.encode(encoder.encode_descriptor(name, help, unit, self.metric_type())?)
    }
}

fn resident() -> i64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kilobytes: i64 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
    kilobytes * 1024
}

fn cpu_seconds() -> f64 {
    let stat = read_to_string("/proc/self/stat").unwrap_or_default();
    // the name in brackets may hold blanks; user and system time are fields 14 and 15
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SECOND
}
