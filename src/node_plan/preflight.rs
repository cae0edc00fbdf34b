//! What has to be done on a host before a node agent can work there.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ovnkube_model::Finding;
use serde::Deserialize;

use crate::cni_conf::{FILE, OLD};
use crate::mtu::{Uplink, tunnel_headers};

/// The host and what is wanted of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observed {
    /// `geneve` or `vxlan`.
    pub encap_type: String,
    /// MTU of pods; `None`: what the uplink leaves.
    pub mtu: Option<u32>,
    /// The link on which tunnels would end, its MTU, and its address.
    pub uplink: Option<(String, u32, IpAddr)>,
    /// What the programs of [`PROGRAMS`] say of their version; those that are not there are missing.
    pub programs: BTreeMap<String, String>,
    /// The kernel's modules, of those that are needed: loaded, built in, or there to be loaded.
    pub modules: Vec<String>,
    /// Open vSwitch is set to do without them.
    pub is_userspace: bool,
    pub cni_dir: String,
    /// Names of the files there.
    pub cni_files: Vec<String>,
    /// The directory for the CNI program.
    pub cni_bin_dir: String,
    /// The settings of each containerd that runs: their file, and the directories of CNI programs that it names.
    pub containerds: Vec<(String, Vec<String>)>,
    /// Process ids.
    pub kube_proxies: Vec<u32>,
}

/// A program that agents need, the oldest version that works with them, and the package of Debian that has it.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    least: (u32, u32),
    package: &'static str,
}

/// Open vSwitch 3.1 is the one of OVN 23.03; nftables has had what the gateway needs for longer than its 1.0.
pub const PROGRAMS: [Program; 3] = [
    Program { name: "nft", least: (0, 9), package: "nftables" },
    Program { name: "ovs-vswitchd", least: (3, 1), package: "openvswitch-switch" },
    Program { name: "ovn-controller", least: (23, 3), package: "ovn-host" },
];

impl Program {
    fn problem(&self, said: Option<&String>) -> Option<Finding> {
        let Self { name, least: (major, minor), package } = self;
        let least = if *major > 20 { format!("{major}.{minor:02}") } else { format!("{major}.{minor}") };
        let Some(said) = said else {
            let remedy = format!(
                "install the package {package}, {least} or later; where everything runs in pods, the image has it"
            );
            return Some(Finding::new("a program is missing", *name, remedy));
        };
        match version(said) {
            Some(have) if have >= self.least => None,
            Some(_) => Some(Finding::new(
                "a program is too old",
                format!("{name}: {said}"),
                format!("update the package {package} to {least} or later"),
            )),
            None => Some(Finding::new(
                "a program tells no version",
                format!("{name}: {said:?}"),
                format!("see that `{name} --version` works; install the package {package} again"),
            )),
        }
    }
}

/// The first two numbers of the first word that is a version.
fn version(said: &str) -> Option<(u32, u32)> {
    said.split_whitespace().find_map(|word| {
        let mut parts = word.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    })
}

/// The kernel's modules that tunnels of this type need.
pub fn modules(encap_type: &str) -> [&str; 2] {
    ["openvswitch", encap_type]
}

/// Everything to do, in the order of the checks.
pub fn check(observed: &Observed) -> Vec<Finding> {
    let Observed { encap_type, mtu, uplink, cni_dir, cni_bin_dir, kube_proxies, .. } = observed;
    let mut found: Vec<Finding> = missing(&observed.modules, encap_type).filter(|_| !observed.is_userspace).collect();
    found.extend(PROGRAMS.iter().filter_map(|program| program.problem(observed.programs.get(program.name))));
    match uplink {
        Some((name, carries, ip)) => {
            let headers = tunnel_headers(encap_type, *ip);
            found.extend(mtu.and_then(|mtu| small(&Uplink { name: name.clone(), mtu: *carries, headers }, mtu)));
        }
        None => found.push(Finding::new("no uplink", "no default route, and no link with encap-ip", "set encap-ip")),
    }
    for file in observed.cni_files.iter().filter(|file| is_first(file)) {
        let what = "another network configuration would be used";
        found.push(Finding::new(what, format!("{cni_dir}/{file}"), format!("remove it: it sorts before {FILE}")));
    }
    found.extend(observed.containerds.iter().filter_map(|(file, dirs)| elsewhere(file, dirs, cni_bin_dir)));
    for pid in kube_proxies {
        found.push(Finding::new("kube-proxy runs", format!("process {pid}"), "stop it: ovnkube serves what it serves"));
    }
    found
}

fn missing(have: &[String], encap_type: &str) -> impl Iterator<Item = Finding> {
    let missing = modules(encap_type).into_iter().filter(|module| !have.iter().any(|known| known == module));
    missing.map(|module| {
        let remedy = "install the kernel's modules, or use the userspace datapath \
                      (external_ids:ovn-bridge-datapath-type=netdev of Open_vSwitch)";
        Finding::new("the kernel lacks a module", module, remedy)
    })
}

fn small(uplink: &Uplink, mtu: u32) -> Option<Finding> {
    let Uplink { name, mtu: carries, headers } = uplink;
    let place = format!("{name} carries {carries} bytes, pods' {mtu} and {headers} of tunnel headers are more");
    let remedy = format!("raise the MTU of {name}, or set mtu to at most {}", uplink.room());
    uplink.problem(mtu).map(|_| Finding::new("the uplink's MTU is too small", place, remedy))
}

/// A containerd would not find the CNI program, and no pod would start. Debian's package sets another directory than containerd's default.
fn elsewhere(file: &str, dirs: &[String], ours: &str) -> Option<Finding> {
    if dirs.is_empty() || dirs.iter().any(|dir| dir == ours) {
        return None;
    }
    let place = format!("{} in {file}", dirs.join(", "));
    let remedy = format!("set bin_dir there to {ours}, which must have loopback too, and restart containerd");
    Some(Finding::new("containerd looks elsewhere for network plugins", place, remedy))
}

/// The file with the settings of a containerd that runs with this command line, whose words end in NUL.
pub fn containerd_file(command: &str) -> String {
    let mut words = command.split('\0').skip(1);
    while let Some(word) = words.next() {
        let (flag, value) = word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
        if matches!(flag, "-c" | "--c" | "-config" | "--config") {
            return value.or_else(|| words.next()).unwrap_or_default().to_owned();
        }
    }
    "/etc/containerd/config.toml".to_owned()
}

/// The directories of CNI programs that settings of containerd name. None: its default, which is that of agents too.
pub fn containerd_dirs(settings: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_of_cni = false;
    for line in settings.lines().map(str::trim) {
        if line.starts_with('[') {
            is_of_cni = line.ends_with(".cni]");
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        if is_of_cni && matches!(key.trim(), "bin_dir" | "bin_dirs") {
            let texts = value.split(['"', '\'']).skip(1).step_by(2);
            found.extend(texts.filter(|text| !text.is_empty()).map(str::to_owned));
        }
    }
    found
}

/// Whether a runtime would use this file in place of ours. The agent removes what ovn-kubernetes wrote.
fn is_first(file: &str) -> bool {
    let is_read = [".conf", ".conflist", ".json"].iter().any(|end| file.ends_with(end));
    is_read && file < FILE && file != OLD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directories_that_containerd_looks_in() {
        let debian = r#"version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"#;
        assert_eq!(containerd_dirs(debian), ["/usr/lib/cni"]);
        let second =
            "[plugins.'io.containerd.cri.v1.runtime'.cni]\n  bin_dir = ''\n  bin_dirs = ['/opt/cni/bin', '/x']\n";
        assert_eq!(containerd_dirs(second), ["/opt/cni/bin", "/x"]);
        for none in
            ["", "version = 2", "#[x.cni]\n#bin_dir = \"/x\"", "[x.cni]\n#bin_dir = \"/x\"", "[x]\nbin_dir = \"/x\""]
        {
            assert!(containerd_dirs(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn the_file_of_a_containerd_is_that_of_its_command_line() {
        for (command, file) in [
            ("containerd\0", "/etc/containerd/config.toml"),
            ("", "/etc/containerd/config.toml"),
            ("containerd\0--log-level\0debug\0-c\0/a.toml\0", "/a.toml"),
            ("containerd\0--config=/b.toml\0--address\0/x.sock\0", "/b.toml"),
            ("containerd\0--config\0", ""),
        ] {
            assert_eq!(containerd_file(command), file, "{command:?}");
        }
    }
}
