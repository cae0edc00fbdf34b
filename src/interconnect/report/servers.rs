//! How the servers of the shared databases are.

use ovnkube_db::{Observed, Role, Server, Servers};

/// The longest words of a server that are told.
const LONGEST: usize = 200;

/// In words, if they take writes; otherwise what is wrong, and what to do.
pub fn judge(observed: &Observed) -> Result<String, (String, String)> {
    let servers = Servers::of(observed);
    let with = |role: Role| servers.all.iter().filter(move |server| server.role == role && server.connected);
    let silent: Vec<&Server> = servers.all.iter().filter(|server| !server.answers()).collect();
    let port = if observed.database == "OVN_IC_Northbound" { "ic-nb-port" } else { "ic-sb-port" };
    let members = servers.all.iter().filter(|server| matches!(server.role, Role::Leader | Role::Follower)).count();
    let start = || format!("start ovsdb-server of {}, or correct the keys ic-db-host and {port}", names(&silent));
    let why = || silent.iter().map(|server| reason(server)).collect::<Vec<_>>().join(", ");
    if silent.len() == servers.all.len() {
        return Err((format!("no server answers: {}", why()), start()));
    }
    if members > 0 && servers.all.iter().any(|server| matches!(server.role, Role::Active | Role::Backup)) {
        let remedy = "name only servers of one Raft cluster in the key ic-db-host";
        return Err(("some servers are in a Raft cluster and others are not".into(), remedy.into()));
    }
    let leader = with(Role::Leader).next().or_else(|| with(Role::Active).next());
    let Some(leader) = leader else {
        let remedy = if silent.is_empty() {
            "name all servers in the key ic-db-host; if they are, check that the members reach each other".to_owned()
        } else {
            start()
        };
        return Err(("no leader answers, so nothing can be written".into(), remedy));
    };
    if with(Role::Active).count() > 1 {
        let remedy = "name one of them in the key ic-db-host, or make them one Raft cluster";
        return Err(("the servers are not one Raft cluster: clusters see different contents".into(), remedy.into()));
    }
    if !silent.is_empty() {
        return Err((format!("works, but without {}", why()), start()));
    }
    let lost: Vec<&Server> = servers.all.iter().filter(|server| !server.connected).collect();
    if !lost.is_empty() {
        let remedy = format!("check the network between {} and the others", names(&lost));
        return Err((format!("works, but {} has lost the other members", names(&lost)), remedy));
    }
    Ok(match members {
        0 => format!("a single server, {}: nothing takes over if it fails", leader.address),
        1 => format!("{} leads; other members are not named in the key ic-db-host", leader.address),
        more => format!("all {more} members are connected, {} leads", leader.address),
    })
}

/// Why a server is of no use: `tcp:10.0.0.3:6645 (connection refused)`.
fn reason(server: &Server) -> String {
    // some of it may be a stranger's words
    let problem: String = server.problem.iter().flat_map(|problem| problem.chars()).take(LONGEST).collect();
    format!("{} ({problem})", server.address).replace(char::is_control, " ")
}

fn names(servers: &[&Server]) -> String {
    servers.iter().map(|server| server.address.as_str()).collect::<Vec<_>>().join(", ")
}
