//! The rights of each certificate, with the databases set up as docs/tls.md describes: certificates from `dist/tls/issue`,
//! NB and SB that trust one authority, and in front of SB a relay that trusts both and assigns nodes a role.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use ovnkube_ovn::sb::chassis;
use ovnkube_ovn::{Database, nb, sb};
use ovnkube_ovsdb::{Client, Options, Remote, State, TlsFiles};
use ovnkube_tests::dir::fresh_dir;
use ovnkube_tests::nb::Release::{self, Host as Installed, Lts};
use ovnkube_tests::nb::{Daemon, Host, Server, until, within};

/// A directory of certificates: servers `db`, masters `master`, nodes `a` and `b`.
struct Certificates(PathBuf);

impl Certificates {
    fn new() -> Self {
        let dir = fresh_dir("ovnkube-tls");
        let issue = |words: &[&str]| {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/tls/issue");
            let out = Command::new(script).current_dir(&dir).args(words).output().unwrap();
            assert!(out.status.success(), "issue {words:?}: {}", String::from_utf8_lossy(&out.stderr));
        };
        issue(&["authorities"]);
        issue(&["server", "db", "127.0.0.1", "localhost"]);
        issue(&["master", "master"]);
        issue(&["node", "a"]);
        issue(&["node", "b"]);
        Self(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn client(&self, who: &str) -> TlsFiles {
        TlsFiles {
            certificate: self.file(&format!("{who}.crt")),
            private_key: self.file(&format!("{who}.key")),
            ca: self.file("control.crt"),
            common_name: None,
        }
    }

    /// Arguments of a server with certificate `who` that trusts `authority`.
    fn server(&self, who: &str, authority: &str) -> Vec<String> {
        let file = |name: String| self.file(&name).display().to_string();
        vec![
            format!("--private-key={}", file(format!("{who}.key"))),
            format!("--certificate={}", file(format!("{who}.crt"))),
            format!("--ca-cert={}", file(format!("{authority}.crt"))),
        ]
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const RELEASES: [Release; 2] = [Installed, Lts];
/// Listens on a port that the system chooses.
const ANY_PORT: &str = "pssl:0:127.0.0.1";

struct Databases {
    certificates: Certificates,
    nb: Server,
    sb: Server,
    relay: Server,
    _northd: Daemon,
}

impl Databases {
    /// Starts them and waits for the role, which northd writes.
    async fn up(release: Release) -> Self {
        eprintln!("{release:?}");
        let certificates = Certificates::new();
        let listens = |remote: &str, authority: &str| {
            [vec![format!("--remote={remote}")], certificates.server("server-db", authority)].concat()
        };
        let nb = Server::with(release, &nb::DATABASE, &listens(ANY_PORT, "control"));
        let sb = Server::with(release, &sb::DATABASE, &listens(ANY_PORT, "control"));
        sb.sbctl(&["init"]);
        sb.sbctl(&["set-connection", "role=ovn-controller", ANY_PORT]);
        let northd = Daemon::northd(&nb, &sb);
        let role = ["--bare", "--columns=permissions", "find", "RBAC_Role", "name=ovn-controller"];
        until("the role", async || sb.sbctl(&role).contains("Chassis_Private")).await;
        let rows = "db:OVN_Southbound,SB_Global,connections";
        let remote = format!("ssl:127.0.0.1:{}", sb.port());
        let relay = Server::relay(release, &sb::DATABASE, &remote, &listens(rows, "both"));
        // it listens only once it has the rows
        relay.port();
        Self { certificates, nb, sb, relay, _northd: northd }
    }

    /// `ovn-sbctl` at a server, with the certificate of `who`: its output, or the reason why it was refused.
    fn sbctl(&self, who: &str, server: &Server, words: &[&str]) -> Result<String, String> {
        let tls = self.certificates.client(who);
        let mut command = self.sb.release().command("ovn-sbctl");
        command.args(["--no-leader-only", "-t", "20"]).arg(format!("--db=ssl:127.0.0.1:{}", server.port()));
        command.arg("-p").arg(&tls.private_key).arg("-c").arg(&tls.certificate).arg("-C").arg(&tls.ca);
        let out = command.args(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
        if out.status.success() { Ok(text(out.stdout)) } else { Err(text(out.stderr)) }
    }

    #[track_caller]
    fn is_prohibited(&self, who: &str, words: &[&str]) {
        let said = self.sbctl(who, &self.relay, words).expect_err("it may");
        assert!(said.contains("RBAC rules for client"), "{words:?}: {said}");
    }

    /// With its encapsulation, as ovn-controller adds it.
    fn adds_chassis(&self, who: &str, name: &str) -> Result<String, String> {
        let encap = format!("--id=@e create Encap chassis_name={name} type=geneve ip=10.0.0.{}", name.as_bytes()[0]);
        let add = format!("{encap} -- create Chassis name={name} hostname=host-{name} encaps=@e");
        let add: Vec<_> = add.split(' ').collect();
        self.sbctl(who, &self.relay, &add)
    }

    fn options(&self, database: &'static Database, who: &str, server: &Server) -> Options {
        let remote = Remote::Ssl { host: "127.0.0.1".to_owned(), port: server.port() };
        Options { tls: Some(self.certificates.client(who)), leader_only: false, ..Options::new(database, vec![remote]) }
    }
}

async fn live(options: Options) -> Client {
    let client = Client::connect(options);
    within("first download", client.synced()).await;
    client
}

async fn refused(options: Options, reason: &str) {
    let client = Client::connect(options);
    let mut state = client.state();
    let refused = |state: &State| matches!(state, State::Disconnected { error } if error.contains(reason));
    within(reason, state.wait_for(refused)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn masters_can_use_all_databases_and_nodes_the_relay() {
    for release in RELEASES {
        let all = Databases::up(release).await;
        live(all.options(&nb::DATABASE, "master-master", &all.nb)).await;
        live(all.options(&sb::DATABASE, "master-master", &all.sb)).await;
        live(all.options(&sb::DATABASE, "node-a", &all.relay)).await;
        let reason = "not of an authority that the server trusts";
        refused(all.options(&nb::DATABASE, "node-a", &all.nb), reason).await;
        refused(all.options(&sb::DATABASE, "node-a", &all.sb), reason).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_can_write_only_its_own_chassis() {
    for release in RELEASES {
        let all = Databases::up(release).await;
        all.nb.nbctl(&["ls-add", "s"]);
        until("flows", async || !all.relay.sbctl(&["lflow-list"]).is_empty()).await;
        all.adds_chassis("node-a", "a").unwrap();
        all.adds_chassis("node-b", "b").unwrap();
        let said = all.adds_chassis("node-a", "c").expect_err("it may");
        assert!(said.contains("RBAC rules for client"), "{said}");

        all.is_prohibited("node-a", &["chassis-del", "b"]);
        all.is_prohibited("node-a", &["set", "Chassis", "b", "hostname=else", "other_config:x=y"]);
        let encap = all.sb.sbctl(&["--bare", "--columns=_uuid", "find", "Encap", "chassis_name=b"]);
        all.is_prohibited("node-a", &["set", "Encap", &encap, "ip=10.0.0.9"]);
        for elsewhere in [
            &["set", "SB_Global", ".", "options:x=y"][..],
            &["del-connection"],
            &["set-connection", "pssl:0:127.0.0.1"],
            &["create", "Address_Set", "name=x"],
            &["--all", "destroy", "RBAC_Role"],
            &["--all", "destroy", "Logical_Flow"],
        ] {
            all.is_prohibited("node-a", elsewhere);
        }
        // not even its own
        all.is_prohibited("node-a", &["set", "Chassis", "a", "hostname=else"]);
        all.sbctl("node-a", &all.relay, &["chassis-del", "a"]).unwrap();
        // masters remove these rows when a Node is deleted
        all.sbctl("master-master", &all.sb, &["chassis-del", "b"]).unwrap();
        // the relay applies the role to every client
        all.is_prohibited("master-master", &["set", "SB_Global", ".", "options:x=y"]);
    }
}

/// northd and masters work while they hold a lock, and any client of a server may take one of its locks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_takes_no_lock_of_the_databases() {
    let all = Databases::up(Lts).await;
    let master = live(all.options(&sb::DATABASE, "master-master", &all.sb)).await;
    let node = live(all.options(&sb::DATABASE, "node-a", &all.relay)).await;
    let mut held = master.lock("a_lock");
    within("the master's lock", held.until(true)).await;
    let mut stolen = node.lock("a_lock");
    stolen.steal();
    within("the relay's lock of that name", stolen.until(true)).await;
    // the reply to this request comes after any effect of the node's lock request
    within("an answer", master.lock("another").until(true)).await;
    assert!(held.is_held());
}

/// Documented in docs/security.md, so that the role is not overestimated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_role_does_not_prevent() {
    for release in RELEASES {
        let all = Databases::up(release).await;
        all.nb.nbctl(&["ls-add", "s", "--", "lsp-add", "s", "of-b"]);
        until("the port", async || {
            all.relay.sbctl(&["--bare", "--columns=logical_port", "list", "Port_Binding"]) == "of-b"
        })
        .await;
        all.adds_chassis("node-a", "a").unwrap();
        let chassis = all.sb.sbctl(&["--bare", "--columns=_uuid", "find", "Chassis", "name=a"]);
        let ours = format!("chassis={chassis}");
        all.sbctl("node-a", &all.relay, &["set", "Port_Binding", "of-b", &ours]).unwrap();
        let datapath = all.sb.sbctl(&["--bare", "--columns=datapath", "find", "Port_Binding", "logical_port=of-b"]);
        let datapath = format!("datapath={datapath}");
        let neighbour =
            ["create", "MAC_Binding", "logical_port=of-b", "ip=10.0.0.1", "mac=\"0a:00:00:00:00:01\"", &datapath];
        all.sbctl("node-a", &all.relay, &neighbour).unwrap();
        all.is_prohibited("node-a", &["set", "Port_Binding", "of-b", "mac=unknown"]);
        all.is_prohibited("node-a", &["destroy", "Port_Binding", "of-b"]);
    }
}

/// `who` acts as the southbound database and would accept any client.
fn impostor(all: &Databases, who: &str) -> Server {
    let args = [vec![format!("--remote={ANY_PORT}")], all.certificates.server(who, "both")].concat();
    Server::with(all.sb.release(), &sb::DATABASE, &args)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_server_certificate_is_accepted_for_a_server() {
    for release in RELEASES {
        let all = Databases::up(release).await;
        for who in ["node-a", "master-master"] {
            let false_sb = impostor(&all, who);
            refused(all.options(&sb::DATABASE, "master-master", &false_sb), "the server's certificate is refused")
                .await;
            let address = format!("ssl:127.0.0.1:{}", false_sb.port());

            let relay = all.certificates.server("server-db", "both");
            let relay = Server::relay(release, &sb::DATABASE, &address, &relay);
            until("a relay that refuses it", async || relay.said().contains("certificate verify failed")).await;

            let host = host(&all, "b", &address);
            until("an ovn-controller that refuses it", async || host.said().contains("certificate verify failed"))
                .await;
            assert_eq!(false_sb.sbctl(&["list", "Chassis"]), "");
        }
        // the relay accepts the same ovn-controller, which adds its chassis under the role
        let host = host(&all, "b", &format!("ssl:127.0.0.1:{}", all.relay.port()));
        let sb = live(all.options(&sb::DATABASE, "master-master", &all.sb)).await;
        let there = async || sb.cache().iter(chassis::TABLE).any(|(_, row)| row.str(chassis::NAME) == "b");
        until("a chassis", there).await;
        assert!(!host.said().contains("RBAC"), "{}", host.said());
    }
}

fn host(all: &Databases, node: &str, address: &str) -> Host {
    let files = ["key", "crt"].map(|kind| all.certificates.file(&format!("node-{node}.{kind}")));
    let settings = [("system-id", node), ("ovn-remote", address), ("ovn-encap-ip", "127.0.0.1")];
    Host::with(all.sb.release(), &settings, Some([&files[0], &files[1], &all.certificates.file("control.crt")]))
}
