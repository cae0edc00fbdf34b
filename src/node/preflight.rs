//! Looks at a host before an agent runs there. Changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ipnetwork::IpNetwork;
use ovnkube_host::{Look, Net};
use ovnkube_model::Finding;
use ovnkube_node_plan::host::DefaultRoute;
use ovnkube_node_plan::preflight::{self, Observed, containerd_dirs, containerd_file, modules};

use crate::ovs::Ovs;
use crate::{Error, Result};

/// Most processes that are looked at.
const PROCESSES: usize = 100_000;
/// Most files of the runtime's directory that are looked at.
const FILES: usize = 1000;

/// What an agent would be started with.
#[derive(Debug, Clone, Copy)]
pub struct HostQuestion<'a> {
    /// `geneve` or `vxlan`.
    pub encap_type: &'a str,
    /// Empty: an address of a link with a default route.
    pub encap_ips: &'a [IpAddr],
    /// The family of the pods' first range. Of a host that has both, it is taken for that of the node's address.
    pub ipv6: bool,
    /// `None`: what the uplink leaves.
    pub mtu: Option<u32>,
    /// `/etc/cni/net.d`.
    pub cni_dir: &'a Path,
    /// `/opt/cni/bin`.
    pub cni_bin_dir: &'a Path,
    /// Where the Open_vSwitch database is.
    pub ovs_remote: &'a str,
}

/// Everything to do on this host.
pub async fn preflight(question: &HostQuestion<'_>) -> Result<Vec<Finding>> {
    let look = Net::here().await?.look(false).await?;
    let needed = modules(question.encap_type);
    let modules: Vec<String> = needed.into_iter().filter(|name| has_module(name)).map(str::to_owned).collect();
    Ok(preflight::check(&Observed {
        is_userspace: modules.len() < needed.len() && is_userspace(question.ovs_remote).await,
        modules,
        encap_type: question.encap_type.to_owned(),
        mtu: question.mtu,
        uplink: uplink(question, &look),
        programs: programs().await,
        cni_dir: question.cni_dir.display().to_string(),
        cni_files: cni_files(question.cni_dir)?,
        cni_bin_dir: question.cni_bin_dir.display().to_string(),
        containerds: containerds(question.cni_bin_dir),
        kube_proxies: processes("kube-proxy"),
    }))
}

/// Addresses of the links with a default route: by these the host is reached, so they can be in no range of the cluster.
pub async fn uplink_addresses() -> Result<Vec<IpAddr>> {
    let look = Net::here().await?.look(false).await?;
    let leads_out = |index| look.default_routes.iter().any(|route| route.link == index);
    let uplinks = look.links.iter().filter(|state| leads_out(state.link.index));
    Ok(uplinks.flat_map(|state| &state.addresses).map(IpNetwork::ip).collect())
}

fn uplink(question: &HostQuestion<'_>, look: &Look) -> Option<(String, u32, IpAddr)> {
    let ip = question.encap_ips.first().copied().or_else(|| default_address(look, question.ipv6))?;
    let state = look.links.iter().find(|state| state.addresses.iter().any(|have| have.ip() == ip))?;
    Some((state.link.name.clone(), state.link.mtu, ip))
}

/// An address that the kubelet may give the Node: of a default route's link and family, rather of this family. A link that has a route by
/// router advertisements may have no address of IPv6 besides its link-local one.
fn default_address(look: &Look, ipv6: bool) -> Option<IpAddr> {
    let address = |route: &DefaultRoute| {
        let state = look.links.iter().find(|state| state.link.index == route.link)?;
        state.addresses.iter().map(IpNetwork::ip).find(|ip| ip.is_ipv6() == route.gateway.is_ipv6())
    };
    let found: Vec<IpAddr> = look.default_routes.iter().filter_map(address).collect();
    found.iter().find(|ip| ip.is_ipv6() == ipv6).or_else(|| found.first()).copied()
}

/// What those that are there say of their version.
async fn programs() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for program in &preflight::PROGRAMS {
        if let Some(said) = ovnkube_host::version(program.name).await {
            found.insert(program.name.to_owned(), said);
        }
    }
    found
}

/// Whether br-int has the userspace datapath, or will have it. Where Open vSwitch does not run this is not known, and it is taken for no.
async fn is_userspace(ovs_remote: &str) -> bool {
    Ovs::reach(ovs_remote, "start Open vSwitch").await.is_ok_and(|ovs| ovs.is_userspace() || ovs.is_set_to_userspace())
}

/// Whether the kernel has a module: loaded, built in, or among the files of this release.
fn has_module(name: &str) -> bool {
    if Path::new("/sys/module").join(name).exists() {
        return true;
    }
    let Ok(release) = fs::read_to_string("/proc/sys/kernel/osrelease") else { return false };
    let dir = PathBuf::from("/lib/modules").join(release.trim());
    let file = format!("/{name}.ko");
    let mut lists =
        ["modules.dep", "modules.builtin"].iter().filter_map(|list| fs::read_to_string(dir.join(list)).ok());
    lists.any(|list| list.lines().any(|line| line.split(':').next().is_some_and(|path| path.contains(&file))))
}

fn cni_files(dir: &Path) -> Result<Vec<String>> {
    let failed = |problem| Error::Conf { verb: "read", path: dir.to_owned(), problem };
    let entries = match fs::read_dir(dir) {
        // a runtime creates it, or the agent
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut files: Vec<String> = entries
        .take(FILES)
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()
        .map_err(failed)?;
    files.sort();
    Ok(files)
}

/// The file of settings of each containerd that runs, and the directories of CNI programs that it names.
fn containerds(ours: &Path) -> Vec<(String, Vec<String>)> {
    let settings = |pid: u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let file = containerd_file(&String::from_utf8_lossy(&command));
        // a containerd in a container has a root of its own
        let text = fs::read_to_string(format!("/proc/{pid}/root{file}")).ok()?;
        Some((file, by_our_name(containerd_dirs(&text), ours)))
    };
    let mut found: Vec<_> = processes("containerd").into_iter().filter_map(settings).collect();
    found.sort();
    found.dedup();
    found
}

/// With our own name for our directory, which may have another one there, such as by a link.
fn by_our_name(dirs: Vec<String>, ours: &Path) -> Vec<String> {
    let id = |path: &Path| fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    let is_ours = |dir: &Path| dir == ours || id(dir).is_some_and(|dir| Some(dir) == id(ours));
    let named = |dir: String| if is_ours(Path::new(&dir)) { ours.display().to_string() } else { dir };
    dirs.into_iter().map(named).collect()
}

/// Ids of the processes of this name.
fn processes(name: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().take(PROCESSES).flatten();
    let id = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
        (comm.trim_end() == name).then_some(id)
    };
    let mut found: Vec<u32> = entries.filter_map(id).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use ovnkube_node_plan::host::Link;
    use ovnkube_node_plan::observed::LinkState;

    use super::*;

    /// Routes are in the kernel's order of preference, whatever their family.
    #[test]
    fn tunnels_end_at_an_address_of_the_pods_family() {
        let address = |ipv6: bool, addresses: [&[&str]; 2], routes: &[(&str, u32)]| {
            let link = |index: u32, of: &[&str]| LinkState {
                link: Link { index, ..Link::default() },
                addresses: of.iter().map(|address| address.parse().unwrap()).collect(),
                ..LinkState::default()
            };
            let route = |(gateway, link): &(&str, u32)| DefaultRoute {
                metric: 0,
                gateway: gateway.parse().unwrap(),
                link: *link,
            };
            let [first, second] = addresses;
            let look = Look {
                links: vec![link(1, first), link(2, second)],
                default_routes: routes.iter().map(route).collect(),
                ..Look::default()
            };
            default_address(&look, ipv6).map(|ip| ip.to_string())
        };
        let both: [&[&str]; 2] = [&["fd00:18::2/64"], &["172.18.0.2/16", "fd00:19::2/64"]];
        let routes = [("fe80::1", 1), ("172.18.0.1", 2)];
        assert_eq!(address(false, both, &routes).as_deref(), Some("172.18.0.2"));
        assert_eq!(address(true, both, &routes).as_deref(), Some("fd00:18::2"));
        // the only family that leads out
        assert_eq!(address(true, both, &[("172.18.0.1", 2)]).as_deref(), Some("172.18.0.2"));
        assert_eq!(address(false, both, &[("fe80::1", 1)]).as_deref(), Some("fd00:18::2"));
        // a route by router advertisements to a link without an address of them
        let one: [&[&str]; 2] = [&[], &["172.18.0.2/16"]];
        assert_eq!(address(true, one, &routes).as_deref(), Some("172.18.0.2"));
        assert_eq!(address(false, one, &[("fe80::1", 1)]), None);
        assert_eq!(address(false, both, &[]), None);
    }

    /// On Debian, people make one directory a link to the other.
    #[test]
    fn our_directory_is_known_by_its_other_names() {
        let home = std::env::temp_dir().join(format!("ovnkube-by-our-name-{}", std::process::id()));
        let (ours, link) = (home.join("bin"), home.join("link"));
        fs::create_dir_all(&ours).unwrap();
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        let text = |path: &Path| path.display().to_string();
        let named = |dirs: &[String]| by_our_name(dirs.to_vec(), &ours);
        let others = [text(&home), "/nowhere".to_owned()];
        assert_eq!(named(&others), others);
        assert_eq!(named(&[text(&link), text(&ours) + "/"]), [text(&ours), text(&ours)]);
        // no directory is that of nobody
        assert_eq!(by_our_name(vec!["/nowhere".to_owned()], Path::new("/not/there")), ["/nowhere"]);
        fs::remove_dir_all(&home).unwrap();
    }
}
