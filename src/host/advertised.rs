//! What routers advertise to the host over IPv6: addresses and default routes, which end unless they are advertised
//! again. A link that forwards obeys no advertisements unless it is told to do so nevertheless, and when one link begins
//! to forward the kernel drops the advertised routes of all links that would not obey then. So whoever lets a link
//! forward takes the host's default route away, at once or when it ends, unless it is done as here.

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

/// What of an advertisement is obeyed, and how.
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

/// Lets what comes in by the link be forwarded. Links that obey advertisements go on with it. Before Linux 6.17 no link
/// forwards IPv6 unless all do (ip-sysctl, `force_forwarding`).
pub fn forward(link: &str) -> Result<()> {
    let set = be_router(link);
    if set.is_err() || get_link(IPV6, "all", FORWARDING)? != "0" {
        return set;
    }
    match set_link(IPV6, link, FORCE, "1") {
        Err(Error::Sysctl { source, .. }) if source.kind() == ErrorKind::NotFound => be_router("all"),
        set => set,
    }
}

/// Sets `forwarding` of the link, or of `all` links.
fn be_router(link: &str) -> Result<()> {
    if get_link(IPV6, link, FORWARDING)? != "0" {
        return Ok(());
    }
    let obeying: Vec<String> = links()?.into_iter().filter(|name| obeys(name) == Some(UNLESS_FORWARDING)).collect();
    let tell = |name: &String, value| {
        // one that vanishes meanwhile has nothing to lose
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

/// Takes back what [`forward`] did to a link, which forwards from now on if new ones do. That all forward stays: others
/// may count on it by now.
pub fn put_back(link: &str) -> Result<()> {
    for key in [FORWARDING, FORCE] {
        // older kernels have but one of them
        let _ = inherit(IPV6, link, key);
    }
    let is = |key, value| get_link(IPV6, link, key).map(|have| have == value);
    if is(FORWARDING, "0")? && is(ACCEPT, ALWAYS)? && get_link(IPV6, "default", ACCEPT)? != ALWAYS {
        return set_link(IPV6, link, ACCEPT, UNLESS_FORWARDING);
    }
    Ok(())
}

/// Lets `to` do with advertisements what `from` does, also while it forwards. `anyway`: some program does it in the
/// place of the kernel. A host without IPv6 is fine.
pub fn obey_as(from: &str, to: &str, anyway: bool) -> Result<()> {
    if get_link(IPV6, to, ACCEPT).is_err() {
        return Ok(());
    }
    for key in MANNER {
        // older kernels have not all of them
        if let Ok(value) = get_link(IPV6, from, key) {
            set_link(IPV6, to, key, &value)?;
        }
    }
    set_link(IPV6, to, ACCEPT, if anyway || obeys(from).is_some() { ALWAYS } else { NEVER })
}

/// The value of `accept_ra` by which the link obeys; `None`: it doesn't.
fn obeys(link: &str) -> Option<&'static str> {
    let is = |key, value| get_link(IPV6, link, key).is_ok_and(|have| have == value);
    if is(ACCEPT, ALWAYS) {
        return Some(ALWAYS);
    }
    (is(ACCEPT, UNLESS_FORWARDING) && is(FORWARDING, "0")).then_some(UNLESS_FORWARDING)
}

fn links() -> Result<Vec<String>> {
    let failed = |source| Error::Sysctl { key: "net.ipv6.conf".to_owned(), source };
    let all = fs::read_dir("/proc/sys/net/ipv6/conf").map_err(failed)?;
    let names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name != "all" && name != "default").collect())
}
