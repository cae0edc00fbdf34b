//! Why databases that joined clusters share are not used, or are waited for, and what to do.

use ovnkube_interconnect::FILLED_WITHIN;
use ovnkube_model::{Name, Server};
use ovnkube_ovn::{ic_nb, ic_sb};
use ovnkube_ovsdb::Unfit;

/// The most servers that a message names.
const NAMED: usize = 5;
/// How a master forgets which databases it had.
const AGAIN: &str = "restart the master, or set enable-ic to \"false\" and then to \"true\"";
/// Why servers with TLS are not reached where this process has no certificate: it has that of its northbound database.
pub(crate) const UNCERTIFIED: &str = "cannot be reached: ic-db-host has ssl:, and this master has no certificate; give it an nb-address with ssl: \
     and the keys nb-client-privkey, nb-client-cert and nb-client-cacert, or leave ssl: out";

/// A shared database, as people write where it is.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) which: &'static str,
    pub(crate) servers: &'a [Server],
    pub(crate) port: u16,
    /// The key of the port.
    pub(crate) key: &'static str,
}

/// Why a shared database is not used, and what to do. `unfit`: what its servers answer; `uncertified`: see [`UNCERTIFIED`].
pub(crate) fn away(place: Place<'_>, unfit: Option<&Unfit>, uncertified: Option<&str>) -> Name {
    let Place { which, servers, port, key } = place;
    let refused = unfit.and_then(|unfit| refused(unfit, key)).or_else(|| uncertified.map(str::to_owned));
    let why = refused.unwrap_or_else(|| {
        let hosts = servers.iter().take(NAMED).map(|server| server.host.as_ref()).collect::<Vec<_>>().join(", ");
        format!("cannot be reached at port {port} of {hosts}; start it, or correct ic-db-host and {key}")
    });
    format!("the {which} interconnection database {why}").into()
}

/// Why a shared database is not used although its servers answer, and what to do; `None`: not for that reason.
fn refused(unfit: &Unfit, key: &str) -> Option<String> {
    // what to do with a database of the cluster's own follows there
    let first = |why: &str| why.split("; ").next().unwrap_or_default().to_owned();
    Some(match unfit {
        Unfit::TooLarge(why) => format!("is not used: {why}"),
        Unfit::Missing { why, has } => {
            // the wanted one is not among these
            let is_shared = |name: &String| [ic_nb::DATABASE.name, ic_sb::DATABASE.name].contains(&name.as_str());
            if has.iter().any(is_shared) {
                format!("is not used: {why}; ic-nb-port and ic-sb-port may be swapped")
            } else {
                format!("is not used: {why}; correct ic-db-host or {key}")
            }
        }
        Unfit::Stranger(why) => format!(
            "is not used, since its servers now have another one than before: {}; if it was made anew, {AGAIN}. If not, start the servers of \
             before, or correct ic-db-host",
            first(why)
        ),
        Unfit::Older(why) => format!(
            "is not used, since its servers have an old copy: {}; start a member that has all entries, or, to go on with what is there, \
             {AGAIN}",
            first(why)
        ),
        Unfit::Full(_) => return None,
    })
}

/// What to say where no transit switch is left.
pub(crate) fn emptied() -> Name {
    let within = FILLED_WITHIN.as_secs();
    let what = "the northbound interconnection database has no transit switch any more";
    format!("{what}; if it was made anew, add the switches of before, which otherwise go after {within} s").into()
}

/// What to say where not all is there that is used.
pub(crate) fn incomplete() -> Name {
    let within = FILLED_WITHIN.as_secs();
    let what = "the shared databases lack ways to other clusters that this cluster uses";
    format!("{what}; if they were made anew, start the masters of all clusters: what is missing goes after {within} s")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(unfit: Option<&Unfit>) -> Name {
        let servers = [Server { host: "192.0.2.1".into(), tls: false }];
        let place = Place { which: "northbound", servers: &servers, port: 6645, key: "ic-nb-port" };
        away(place, unfit, None)
    }

    fn missing(has: &str) -> Unfit {
        let why = format!("tcp:192.0.2.1:6645: the server has no database OVN_IC_Northbound but {has}");
        Unfit::Missing { has: vec![has.to_owned()], why }
    }

    #[test]
    fn a_server_that_answers_is_not_said_to_be_away() {
        let is = "the northbound interconnection database is not used: tcp:192.0.2.1:6645: the server has no database OVN_IC_Northbound but";
        let swapped = format!("{is} OVN_IC_Southbound; ic-nb-port and ic-sb-port may be swapped");
        assert_eq!(says(Some(&missing("OVN_IC_Southbound"))).as_ref(), swapped);
        let other = format!("{is} OVN_Northbound; correct ic-db-host or ic-nb-port");
        assert_eq!(says(Some(&missing("OVN_Northbound"))).as_ref(), other);
        let away = "the northbound interconnection database cannot be reached at port 6645 of 192.0.2.1; start it, or correct ic-db-host and \
                    ic-nb-port";
        assert_eq!(says(None).as_ref(), away);
    }
}
