//! The OVS and OVN programs of one release.

use std::path::PathBuf;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// What is installed on this machine: OVS 3.1 and OVN 23.03 on Debian 12, the oldest supported.
    Host,
    /// OVN 26.03 and OVS 4.0 of Debian sid, unpacked next to it.
    Lts,
}

impl Release {
    fn root(self) -> PathBuf {
        let home = std::env::var_os("LAB_HOME").unwrap_or_else(|| "/var/lib/ovnkube-lab".into());
        if self == Self::Host { "/".into() } else { PathBuf::from(home).join("lts") }
    }

    /// `name` as `ovn/ovn-nb.ovsschema`.
    pub fn schema(self, name: &str) -> String {
        let path = self.root().join("usr/share").join(name);
        assert!(path.exists(), "{} is missing: run lab/install", path.display());
        path.display().to_string()
    }

    pub fn command(self, program: &str) -> Command {
        let root = self.root();
        // ovs-vswitchd is an alternative: a dangling link until a package manager configures it
        let found =
            ["usr/sbin", "usr/bin", "usr/lib/openvswitch-switch"].iter().map(|dir| root.join(dir).join(program));
        let path = found.into_iter().find(|path| path.exists());
        let path = path.unwrap_or_else(|| panic!("{program} of {self:?} is missing: run lab/install"));
        if self == Self::Host {
            return Command::new(path);
        }
        // its own loader, which has another name on each architecture, is next to its libraries
        let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        let mut files = libraries.read_dir().unwrap().map(|file| file.unwrap());
        let loader = files.find(|file| file.file_name().to_string_lossy().starts_with("ld-linux-")).unwrap();
        let mut command = Command::new(loader.path());
        command.args(["--argv0", program, "--library-path"]).arg(libraries).arg(path);
        command
    }
}

impl super::Lab {
    /// As a host's service manager does: some releases end when a database loses what they need.
    pub fn revive_controller(&mut self) {
        if self.daemons.get_mut("controller").unwrap().try_wait().unwrap().is_some() {
            self.start_controller();
        }
    }
}
