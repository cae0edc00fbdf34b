//! The certificate with which a database's server listens for TLS: rows of the database, as `ovn-nbctl set-ssl` and `set-connection`
//! write them. They name files, which each server reads.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use ovnkube_apply::{MayWrite, another_cluster};
use ovnkube_config::{Remote as Address, ServerKeys, Settings, Side};
use ovnkube_model::{Name, World};
use ovnkube_ovn::nb::logical_router as lr;
use ovnkube_ovn::{Atom, Column, Database, Datum, Row, Table, derived_uuid, kind, nb, sb};
use ovnkube_ovsdb::{Cache, Client, Condition, Monitored, Options, Remote, Txn};
use ovnkube_plan::names;
use ovnkube_watch::Client as Api;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::db::look::{is_here, servers};
use crate::db::place::Place;
use crate::stranger::namespace_uid;

/// How long servers are awaited until it is looked again which of them is on this host.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How often the rows are compared with the settings.
const AGAIN: Duration = Duration::from_secs(10);
/// Milliseconds after which a server asks a silent client whether it still lives.
const PROBE: i64 = 60_000;

/// The tables of a database that say how its server listens.
struct Tables {
    word: &'static str,
    database: &'static Database,
    global: &'static Table,
    ssl: Column<kind::Opt<kind::Uuid>>,
    connections: Column<kind::Set<kind::Uuid>>,
    keys: &'static Table,
    private_key: Column<kind::One<kind::Str>>,
    certificate: Column<kind::One<kind::Str>>,
    ca_cert: Column<kind::One<kind::Str>>,
    connection: &'static Table,
    target: Column<kind::One<kind::Str>>,
    probe: Column<kind::Opt<kind::Int>>,
}

const NORTH: Tables = Tables {
    word: "nb",
    database: &nb::DATABASE,
    global: nb::nb_global::TABLE,
    ssl: nb::nb_global::SSL,
    connections: nb::nb_global::CONNECTIONS,
    keys: nb::ssl::TABLE,
    private_key: nb::ssl::PRIVATE_KEY,
    certificate: nb::ssl::CERTIFICATE,
    ca_cert: nb::ssl::CA_CERT,
    connection: nb::connection::TABLE,
    target: nb::connection::TARGET,
    probe: nb::connection::INACTIVITY_PROBE,
};

const SOUTH: Tables = Tables {
    word: "sb",
    database: &sb::DATABASE,
    global: sb::sb_global::TABLE,
    ssl: sb::sb_global::SSL,
    connections: sb::sb_global::CONNECTIONS,
    keys: sb::ssl::TABLE,
    private_key: sb::ssl::PRIVATE_KEY,
    certificate: sb::ssl::CERTIFICATE,
    ca_cert: sb::ssl::CA_CERT,
    connection: sb::connection::TABLE,
    target: sb::connection::TARGET,
    probe: sb::connection::INACTIVITY_PROBE,
};

/// Whose the databases are: the northbound one tells.
struct Whose {
    nb: Client,
    /// The uid of this cluster's namespace kube-system.
    own: Name,
}

/// Keeps the rows of each database that has keys for its server configured. Never returns.
pub(crate) async fn keep(settings: &Settings, api: &Api, may_write: MayWrite) {
    if settings.nb.server.is_some() || settings.sb.server.is_some() {
        let own = own_uid(api).await;
        let whose = Whose { nb: open(&Place::of(settings, Side::North), &NORTH).await, own };
        let sides = [(Side::North, &settings.nb, NORTH), (Side::South, &settings.sb, SOUTH)];
        let kept = sides.into_iter().filter_map(|(side, reached, tables)| {
            let keys = reached.server.as_ref()?;
            let place = Place::of(settings, side);
            Some(keep_one(place, tables, keys, targets(&reached.remotes), &whose, &may_write))
        });
        join_all(kept).await;
    }
    std::future::pending::<()>().await;
}

async fn own_uid(api: &Api) -> Name {
    loop {
        if let Ok(Some(uid)) = timeout(LOOK_AGAIN, namespace_uid(api, World::SYSTEM)).await {
            return uid;
        }
        sleep(AGAIN).await;
    }
}

async fn open(place: &Place, tables: &Tables) -> Client {
    loop {
        let client = connect(place, tables).await;
        // names may have no addresses yet, and this host not its own
        if timeout(LOOK_AGAIN, client.synced()).await.is_ok() {
            return client;
        }
    }
}

async fn keep_one(
    place: Place,
    tables: Tables,
    keys: &ServerKeys,
    targets: BTreeSet<String>,
    whose: &Whose,
    may_write: &MayWrite,
) {
    let client = if tables.is_northbound() { whose.nb.clone() } else { open(&place, &tables).await };
    let mut told = String::new();
    loop {
        client.synced().await;
        if may_write() {
            match step(&client, &place, &tables, keys, &targets, whose).await {
                Ok(()) => told.clear(),
                Err(error) if error != told => {
                    warn!(database = tables.database.name, %error, "the server's certificate is not set; trying again every 10 s");
                    told = error;
                }
                Err(_) => {}
            }
        }
        sleep(AGAIN).await;
    }
}

async fn connect(place: &Place, tables: &Tables) -> Client {
    // before its server has a certificate, it is reached only on this host, where any member passes writes on to its leader
    let all = place.remotes.clone();
    let here = spawn_blocking(move || all.iter().any(is_here)).await.unwrap_or_default();
    let own = here.then(|| Remote::Unix(place.run_file("sock")));
    let others = place.remotes.iter().filter(|remote| own.as_ref() != Some(remote)).cloned();
    let remotes = own.iter().cloned().chain(others).collect();
    let mut monitored = vec![
        Monitored::only(tables.global, [tables.ssl.id(), tables.connections.id()]),
        Monitored::all(tables.keys),
        Monitored::all(tables.connection),
    ];
    if tables.is_northbound() {
        monitored.push(Monitored::only(lr::TABLE, [lr::NAME.id(), lr::EXTERNAL_IDS.id()]));
    }
    let client = Client::connect(Options {
        tls: place.tls.clone(),
        tables: monitored,
        identity: ovnkube_plan::identity,
        leader_only: false,
        ..Options::new(tables.database, remotes)
    });
    if tables.is_northbound() {
        // each node has a router too
        let named = (lr::NAME.id(), Datum::one(Atom::Str(names::CLUSTER_ROUTER.into())));
        client.set_condition(lr::TABLE, Condition::Any(vec![named]));
    }
    client
}

/// Writes what is missing, unless the databases are another cluster's.
async fn step(
    client: &Client,
    place: &Place,
    tables: &Tables,
    keys: &ServerKeys,
    targets: &BTreeSet<String>,
    whose: &Whose,
) -> Result<(), String> {
    another_cluster(&whose.nb.cache(), &whose.own).map_or(Ok(()), Err)?;
    let (txn, taken) = tables.missing(&client.cache(), keys, targets)?;
    if !txn.is_empty() {
        // rows that name files which are not there would cut off all clients
        if let Some(path) = [&keys.privkey, &keys.cert, &keys.cacert].into_iter().find(|path| !path.is_file()) {
            return Err(format!(
                "this host has no file {}; put it there, and on the hosts of all servers",
                path.display()
            ));
        }
        if is_elsewhere(place, client).await {
            return Err(format!(
                "the server that is reached first is in another cluster than those at the addresses of the database; correct \
                 -{word}-address, or -{word}-run-dir where this host's server is",
                word = tables.word
            ));
        }
        client.transact(txn).await.map_err(|error| error.to_string())?;
        info!(database = tables.database.name, "the server's certificate and port are set");
    }
    taken.map_or(Ok(()), |target| {
        Err(format!("its port is that of the connection {target}; remove this one with del-connection"))
    })
}

/// Whether the addresses lead to another cluster than that of the server in use: a host may have a member of another one too, whose socket
/// is in the usual place. Before servers have a certificate, none answers there.
async fn is_elsewhere(place: &Place, client: &Client) -> bool {
    let named = servers(&place.remotes, place.tls.as_ref(), place.database).await;
    let answers = named.servers.into_iter().filter_map(|seen| seen.answer);
    // a relay names none
    let clusters: BTreeSet<Option<String>> = answers.map(|answer| answer.cluster).collect();
    clusters.iter().any(Option::is_some) && !clusters.contains(&client.cluster())
}

impl Tables {
    fn is_northbound(&self) -> bool {
        self.word == NORTH.word
    }

    /// What the database lacks, and a connection without TLS that has a port of ours. Fails if its server has other files: with
    /// wrong ones it would refuse everybody. No lock is held for it: what arrives after anybody else has set a certificate or a port
    /// changes nothing.
    fn missing(
        &self,
        cache: &Cache,
        keys: &ServerKeys,
        targets: &BTreeSet<String>,
    ) -> Result<(Txn, Option<String>), String> {
        let mut txn = Txn::new(self.database);
        let global = cache.iter(self.global).next();
        let uuid = global.map_or_else(|| derived_uuid(self.global.name, ""), |(uuid, _)| uuid);
        if let Some((_, row)) = global {
            txn.wait_holds(uuid, self.seen(row));
        } else {
            txn.insert(uuid, Row::new(self.global));
        }
        let have = global.map(|(_, row)| row);
        let want = Row::new(self.keys)
            .with(self.private_key, keys.privkey.display().to_string())
            .with(self.certificate, keys.cert.display().to_string())
            .with(self.ca_cert, keys.cacert.display().to_string());
        match have.and_then(|row| row.uuid(self.ssl)).and_then(|at| Some((at, cache.get(self.keys, at)?))) {
            Some((_, row)) if want.differing(row).next().is_none() => {}
            Some((_, row)) => {
                return Err(format!(
                    "its servers have the certificate {} with other files already; correct the settings, or run ovn-{}ctl \
                     del-ssl on the host of a server to have them used",
                    row.str(self.certificate),
                    self.word
                ));
            }
            None => {
                let at = cache.fresh_uuid(self.keys, "server");
                txn.insert(at, want);
                txn.update(uuid, Row::new(self.global).with(self.ssl, Some(at)));
            }
        }
        let there: Vec<&str> = have
            .into_iter()
            .flat_map(|row| row.uuids(self.connections))
            .filter_map(|at| Some(cache.get(self.connection, at)?.str(self.target)))
            .collect();
        let mut taken = None;
        for target in targets {
            let same_port = |have: &&&str| port(have).is_some() && port(have) == port(target);
            match there.iter().find(same_port) {
                Some(have) if have.starts_with("pssl:") => {}
                Some(have) => taken = Some((*have).to_owned()),
                None => {
                    let at = cache.fresh_uuid(self.connection, target);
                    txn.insert(
                        at,
                        Row::new(self.connection).with(self.target, target.as_str()).with(self.probe, Some(PROBE)),
                    );
                    txn.insert_into(self.global, uuid, self.connections, Datum::set([Atom::Uuid(at)]));
                }
            }
        }
        if txn.lines().is_empty() {
            txn = Txn::new(self.database);
        }
        Ok((txn, taken))
    }

    /// What is replaced, or added to.
    fn seen(&self, row: &Row) -> Row {
        let columns = [self.ssl.id(), self.connections.id()];
        let cell = |column| (column, row.get(column).cloned().unwrap_or(Datum::EMPTY));
        Row::from_cells(self.global, columns.map(cell))
    }
}

/// Where servers are to listen so that clients reach them at these addresses.
fn targets(addresses: &[Address]) -> BTreeSet<String> {
    let mut ports: BTreeSet<u16> = BTreeSet::new();
    let mut is_ipv6 = false;
    for address in addresses {
        if let Address::Ssl(host, port) = address {
            ports.insert(*port);
            is_ipv6 |= host.contains(':');
        }
    }
    let any = if is_ipv6 { ":[::]" } else { "" };
    ports.into_iter().map(|port| format!("pssl:{port}{any}")).collect()
}

/// `6641` of `pssl:6641:10.0.0.1`.
fn port(target: &str) -> Option<&str> {
    let rest = target.strip_prefix("pssl:").or_else(|| target.strip_prefix("ptcp:"))?;
    rest.split(':').next()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::path::Path;

    use ovnkube_ovsdb::Class;
    use ovnkube_tests::nb::{Release, Server, until, within};
    use ovnkube_tests::raft::Member;

    use super::*;

    fn settings(flags: &[String]) -> Settings {
        let words = ["--config-file=/dev/null", "-init-node=n"].map(str::to_owned);
        let words = words.iter().chain(flags).map(Into::into);
        ovnkube_config::load(words, |_| None, &ovnkube_config::Places::default()).unwrap().settings
    }

    /// Files that are there.
    fn keys(dir: &Path) -> ServerKeys {
        let file = |name: &str| {
            let path = dir.join(name);
            std::fs::write(&path, "").unwrap();
            path
        };
        ServerKeys { privkey: file("key"), cert: file("cert"), cacert: file("ca") }
    }

    /// A master was given a wrong address, and its own cluster has a certificate for the server.
    #[tokio::test]
    async fn another_clusters_databases_get_no_certificate() {
        let (server, sb) = (Server::new(Release::Lts), Server::southbound(Release::Lts));
        let settings = settings(&[
            format!("--nb-address=unix:{}", server.socket().display()),
            format!("--sb-address=unix:{}", sb.socket().display()),
        ]);
        let keys = keys(server.socket().parent().unwrap());
        let mark = format!("external_ids:{}=theirs", names::CLUSTER_UID);
        sb.sbctl(&["init"]);
        server.nbctl(&["lr-add", "GR_n1", "--", "lr-add", names::CLUSTER_ROUTER]);
        server.nbctl(&["set", "Logical_Router", names::CLUSTER_ROUTER, &mark]);
        let [north, southern] = [Side::North, Side::South].map(|side| Place::of(&settings, side));
        let nb = within("the database", open(&north, &NORTH)).await;
        let south = within("the database", open(&southern, &SOUTH)).await;
        assert_eq!(nb.cache().len(lr::TABLE), 1);
        let (whose, targets) = (Whose { nb: nb.clone(), own: "ours".into() }, BTreeSet::new());
        for (client, place, tables) in [(&nb, &north, &NORTH), (&south, &southern, &SOUTH)] {
            let refused = step(client, place, tables, &keys, &targets, &whose).await.unwrap_err();
            assert!(refused.starts_with("the northbound database is another cluster's"), "{refused}");
        }
        assert!(!server.nbctl(&["get-ssl"]).contains("cert") && !sb.sbctl(&["get-ssl"]).contains("cert"));

        // this cluster is to take the databases over
        server.nbctl(&["remove", "Logical_Router", names::CLUSTER_ROUTER, "external_ids", names::CLUSTER_UID]);
        until("the mark's end", async || another_cluster(&nb.cache(), "ours").is_none()).await;
        for (client, place, tables) in [(&nb, &north, &NORTH), (&south, &southern, &SOUTH)] {
            step(client, place, tables, &keys, &targets, &whose).await.unwrap();
        }
        for ssl in [server.nbctl(&["get-ssl"]), sb.sbctl(&["get-ssl"])] {
            assert!(ssl.contains(&keys.cert.display().to_string()), "{ssl}");
        }
    }

    /// Its host has a member of another one, which no address leads to.
    #[tokio::test]
    async fn a_member_of_another_cluster_gets_no_certificate() {
        let [used, other] = [(); 2].map(|()| Member::cluster(Release::Lts, 1).remove(0));
        let at = |member: &Member| Place::of(&settings(&[format!("--nb-address={}", member.remote())]), Side::North);
        let keys = keys(other.dir());
        // makes the row about the database, which every call would else
        other.nbctl(&["init"]);
        let nb = within("the database", open(&at(&other), &NORTH)).await;
        let (whose, targets) = (Whose { nb: nb.clone(), own: "ours".into() }, BTreeSet::new());
        let refused = step(&nb, &at(&used), &NORTH, &keys, &targets, &whose).await.unwrap_err();
        assert!(refused.starts_with("the server that is reached first is in another cluster"), "{refused}");
        assert!(!other.nbctl(&["get-ssl"]).contains("cert"));
        step(&nb, &at(&other), &NORTH, &keys, &targets, &whose).await.unwrap();
        assert!(other.nbctl(&["get-ssl"]).contains(&keys.cert.display().to_string()));
    }

    /// A master decides, sleeps, and sends when an administrator has decided otherwise.
    #[tokio::test]
    async fn what_is_sent_late_replaces_no_certificate() {
        let server = Server::new(Release::Lts);
        let place = |name: &str| server.socket().with_file_name(name);
        let keys = ServerKeys { privkey: place("key"), cert: place("cert"), cacert: place("ca") };
        let options = Options {
            tables: vec![
                Monitored::only(NORTH.global, [NORTH.ssl.id(), NORTH.connections.id()]),
                Monitored::all(NORTH.keys),
                Monitored::all(NORTH.connection),
            ],
            ..server.options()
        };
        let client = Client::connect(options);
        within("the database", client.synced()).await;
        let targets = BTreeSet::from(["pssl:6641".to_owned()]);
        let decided = || NORTH.missing(&client.cache(), &keys, &targets).unwrap().0;
        server.nbctl(&["init"]);
        until("the row", async || !client.cache().is_empty(NORTH.global)).await;
        let late = decided();
        server.nbctl(&["set-ssl", "/other/key", "/other/cert", "/other/ca"]);
        assert_eq!(client.transact(late).await.unwrap_err().class, Class::Conflict);
        assert!(server.nbctl(&["get-ssl"]).contains("/other/cert"));
        assert_eq!(server.nbctl(&["get-connection"]), "");

        server.nbctl(&["del-ssl"]);
        until("its end", async || client.cache().is_empty(NORTH.keys)).await;
        let (first, late) = (decided(), decided());
        client.transact(first).await.unwrap();
        server.nbctl(&["del-connection"]);
        client.transact(late).await.unwrap_err();
        assert_eq!(server.nbctl(&["get-connection"]), "");
        let again = decided();
        assert!(!again.is_empty());
        client.transact(again).await.unwrap();
        assert!(decided().is_empty(), "nothing is written again");
    }
}
