//! IPv6 forwarding on a host that gets addresses and default routes from router advertisements. They expire unless they
//! are advertised again. A link that forwards ignores advertisements unless its `accept_ra` is 2. When a link starts to
//! forward, the kernel also drops the advertised routes of all links that would then ignore advertisements. So setting
//! `forwarding` alone would remove the host's default route, at once or when it expires; this module keeps it.

#[cfg(test)]
mod tests;

use std::fs;
use std::io::ErrorKind;

use crate::sysctl::{get_link, inherit, set_link};
use crate::{Error, Result};

const IPV6: &str = "ipv6";
const ACCEPT: &str = "accept_ra";
const FORWARDING: &str = "forwarding";
const FORCE: &str = "force_forwarding";
/// Values of `accept_ra`.
const NEVER: &str = "0";
const UNLESS_FORWARDING: &str = "1";
const ALWAYS: &str = "2";

/// Sysctls that say which parts of an advertisement a link accepts, and how.
const MANNER: [&str; 8] = [
    "accept_ra_defrtr",
    "accept_ra_pinfo",
    "accept_ra_rtr_pref",
    "accept_ra_rt_info_min_plen",
    "accept_ra_rt_info_max_plen",
    "ra_defrtr_metric",
    "autoconf",
    "use_tempaddr",
];

/// Enables forwarding of IPv6 packets that arrive on the link. Links that accept advertisements still do afterwards.
/// Before Linux 6.17 no link forwards IPv6 unless all do (ip-sysctl, `force_forwarding`).
pub fn forward(link: &str) -> Result<()> {
    let set = be_router(link);
    if set.is_err() || get_link(IPV6, "all", FORWARDING)? != "0" {
        return set;
    }
    match set_link(IPV6, link, FORCE, "1") {
        Err(Error::Sysctl { problem, .. }) if problem.kind() == ErrorKind::NotFound => be_router("all"),
        set => set,
    }
}

/// Whether the link forwards IPv6.
pub fn forwards(link: &str) -> bool {
    let is_on = |link, key| get_link(IPV6, link, key).is_ok_and(|have| have != "0");
    is_on(link, FORWARDING) && (is_on("all", FORWARDING) || is_on(link, FORCE))
}

/// Sets `forwarding` of the link, or of `all` links, without losing advertised routes.
fn be_router(link: &str) -> Result<()> {
    if get_link(IPV6, link, FORWARDING)? != "0" {
        return Ok(());
    }
    let obeying: Vec<String> = links()?.into_iter().filter(|name| obeys(name) == Some(UNLESS_FORWARDING)).collect();
    let tell = |name: &String, value| {
        // a link that vanishes meanwhile has nothing to lose
        let _ = set_link(IPV6, name, ACCEPT, value);
    };
    for name in &obeying {
        tell(name, ALWAYS);
    }
    let set = set_link(IPV6, link, FORWARDING, "1");
    for name in obeying.iter().filter(|name| link != "all" && *name != link) {
        tell(name, UNLESS_FORWARDING);
    }
    set
}

/// Undoes [`forward`] for a link: it forwards only if new links do. `forwarding` of `all` links stays set: other
/// programs may rely on it by now.
pub fn put_back(link: &str) -> Result<()> {
    for key in [FORWARDING, FORCE] {
        // older kernels have only one of them
        let _ = inherit(IPV6, link, key);
    }
    let is = |key, value| get_link(IPV6, link, key).map(|have| have == value);
    if is(FORWARDING, "0")? && is(ACCEPT, ALWAYS)? && get_link(IPV6, "default", ACCEPT)? != ALWAYS {
        return set_link(IPV6, link, ACCEPT, UNLESS_FORWARDING);
    }
    Ok(())
}

/// Makes `to` treat advertisements as `from` does, also while it forwards. `anyway`: `to` accepts them even if the
/// kernel ignores them on `from`, where a program handles them instead. No error on a host without IPv6.
pub fn obey_as(from: &str, to: &str, anyway: bool) -> Result<()> {
    if get_link(IPV6, to, ACCEPT).is_err() {
        return Ok(());
    }
    for key in MANNER {
        // older kernels lack some of them
        if let Ok(value) = get_link(IPV6, from, key) {
            set_link(IPV6, to, key, &value)?;
        }
    }
    set_link(IPV6, to, ACCEPT, if anyway || obeys(from).is_some() { ALWAYS } else { NEVER })
}

/// The value of `accept_ra` with which the link accepts advertisements; `None`: it ignores them.
fn obeys(link: &str) -> Option<&'static str> {
    let is = |key, value| get_link(IPV6, link, key).is_ok_and(|have| have == value);
    if is(ACCEPT, ALWAYS) {
        return Some(ALWAYS);
    }
    (is(ACCEPT, UNLESS_FORWARDING) && is(FORWARDING, "0")).then_some(UNLESS_FORWARDING)
}

fn links() -> Result<Vec<String>> {
    let failed = |problem| Error::Sysctl { verb: "list", key: "net.ipv6.conf".to_owned(), problem };
    let all = fs::read_dir("/proc/sys/net/ipv6/conf").map_err(failed)?;
    let names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name != "all" && name != "default").collect())
}
