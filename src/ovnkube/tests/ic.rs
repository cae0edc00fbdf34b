//! `ovnkube ic` with real databases, a real API and a real master.

use http::Method;
use ovnkube_ovn::{ic_nb, ic_sb};
use ovnkube_ovsdb::Client;
use ovnkube_tests::nb::{Daemon, Release, Server, until};
use ovnkube_tests::objects::interconnection;
use serde_json::{Value, json};

use crate::api::CLUSTER;
use crate::db::Said;
use crate::lab::Lab;
use crate::process::{Process, ovnkube};

const NODE: &str = "/api/v1/nodes/n1";
const CONFIG: &str = "/api/v1/namespaces/kube-system/configmaps";

/// A cluster with one gateway, and the shared databases, which have the cluster az2 too.
pub(crate) struct Joined {
    pub(crate) lab: Lab,
    shared: [Server; 2],
    _northd: Daemon,
}

impl Joined {
    async fn new() -> Self {
        let lab = Lab::new().await;
        let listen = ["--remote=ptcp:0:127.0.0.1".to_owned()];
        let shared = [&ic_nb::DATABASE, &ic_sb::DATABASE].map(|database| Server::with(Release::Lts, database, &listen));
        shared[0].ctl("ovn-ic-nbctl", &["init"]);
        shared[1].ctl("ovn-ic-sbctl", &["init"]);
        let subnet = "external_ids:subnet=169.254.100.0/24";
        shared[0].ctl("ovn-ic-nbctl", &["ts-add", "ts", "--", "set", "transit_switch", "ts", subnet]);
        let northd = Daemon::northd(&lab.nb, &lab.sb);
        let chassis = ["chassis-add", "c1", "geneve", "172.18.0.2", "--", "set", "chassis", "c1", "hostname=n1"];
        lab.sb.sbctl(&[&chassis[..], &["other_config:is-interconn=true"]].concat());
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        let annotations = json!({"k8s.ovn.org/node-chassis-id": "c1"});
        let node = json!({"metadata": {"name": "n1", "annotations": annotations}, "status": ready});
        lab.api.ask(Method::POST, "/api/v1/nodes", node).await.unwrap();
        let joined = Self { lab, shared, _northd: northd };
        joined.dead_cluster("az2", "uid2");
        joined
    }

    /// The rows of a cluster of which nothing else is left. `cluster`: its uid, empty for one of OVN's own daemon.
    fn dead_cluster(&self, zone: &str, cluster: &str) {
        let mark = if cluster.is_empty() { String::new() } else { format!("external_ids:ovnkube-cluster={cluster}") };
        let rows = [
            format!("--id=@z create availability_zone name={zone}"),
            "--id=@e create encap type=geneve ip=172.19.0.2 gateway_name=gw2".into(),
            format!("create gateway name=gw2 hostname=host2 availability_zone=@z encaps=@e {mark}"),
            format!(
                "create port_binding logical_port=ts-{zone} transit_switch=ts availability_zone=@z tunnel_key=30 \
                 address=0a:58:a9:fe:64:4d_169.254.100.77/24 gateway=gw2 {mark}"
            ),
            format!("create route {} {mark}", Self::route("10.244.0.0/16")),
        ];
        // a word is what stands between spaces; `_` stands for one in a word
        let words = rows.iter().flat_map(|row| ["--"].into_iter().chain(row.split_whitespace()));
        let words: Vec<String> = words.map(quoted).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.shared[1].ctl("ovn-ic-sbctl", &words);
    }

    fn route(prefix: &str) -> String {
        format!("transit_switch=ts availability_zone=@z ip_prefix={prefix} nexthop=169.254.100.77 origin=connected")
    }

    fn offer(&self, zone: &str, prefix: &str) {
        let uuid = self.rows("availability_zone", "_uuid", &format!("name={zone}"));
        let row = format!("create route {}", Self::route(prefix)).replace("@z", &uuid);
        let words: Vec<String> = row.split_whitespace().map(quoted).collect();
        self.shared[1].ctl("ovn-ic-sbctl", &words.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// A column of rows of the southbound shared database.
    fn rows(&self, table: &str, column: &str, which: &str) -> String {
        self.shared[1].ctl("ovn-ic-sbctl", &["--bare", &format!("--columns={column}"), "find", table, which])
    }

    pub(crate) async fn configure(&self, changed: &[(&str, &str)]) {
        let body = interconnection([0, 1].map(|of| self.shared[of].port()), changed);
        if self.lab.api.ask(Method::POST, CONFIG, body.clone()).await.is_err() {
            self.lab.api.ask(Method::PATCH, &format!("{CONFIG}/ovn-ic-config"), body).await.unwrap();
        }
    }

    /// A master that has joined the cluster with az2.
    pub(crate) async fn joined() -> (Self, Process) {
        let joined = Self::new().await;
        joined.configure(&[]).await;
        let master = joined.lab.start("init-master=one", &[]);
        joined.bind("ts").await;
        until("all is in order", async || joined.ic(&["status"]).code == 0).await;
        (joined, master)
    }

    /// Binds the port in a switch to the gateway, as ovn-controller there would.
    async fn bind(&self, switch: &str) {
        let port = format!("logical_port=cr-az1-{switch}");
        until("the port is on the gateway", async || {
            self.bind_now(switch);
            !self.lab.sb.sbctl(&["--bare", "--columns=chassis", "find", "port_binding", &port]).is_empty()
        })
        .await;
    }

    /// The same, if the port is there.
    fn bind_now(&self, switch: &str) {
        let chassis = format!("chassis={}", self.lab.sb.sbctl(&["get", "chassis", "c1", "_uuid"]));
        self.lab.sb.sbctl(&["--if-exists", "set", "port_binding", &format!("cr-az1-{switch}"), &chassis]);
    }

    /// Writes a Subnet whose addresses the cluster does not offer.
    pub(crate) async fn hide(&self, name: &str, range: &str) {
        const SUBNETS: &str = "/apis/kubeovn.io/v1/subnets";
        let spec = json!({"cidrBlock": range, "disableInterConnection": true});
        let body = json!({"apiVersion": "kubeovn.io/v1", "kind": "Subnet", "metadata": {"name": name}, "spec": spec});
        if self.lab.api.ask(Method::POST, SUBNETS, body.clone()).await.is_err() {
            self.lab.api.ask(Method::PATCH, &format!("{SUBNETS}/{name}"), body).await.unwrap();
        }
    }

    /// A client of the southbound shared database.
    pub(crate) async fn shared_southbound(&self) -> Client {
        self.shared[1].client().await
    }

    /// Another transit switch, in which both clusters have ports. `subnet`: the third number of its addresses.
    pub(crate) async fn add_way(&self, switch: &str, subnet: u8) {
        let subnets = format!("external_ids:subnet=169.254.{subnet}.0/24");
        self.shared[0].ctl("ovn-ic-nbctl", &["ts-add", switch, "--", "set", "transit_switch", switch, &subnets]);
        let zone = self.rows("availability_zone", "_uuid", "name=az2");
        let row = format!(
            "create port_binding logical_port={switch}-az2 transit_switch={switch} availability_zone={zone} tunnel_key=30 \
             address=0a:58:a9:fe:{subnet:02x}:4d_169.254.{subnet}.77/24 gateway=gw2"
        );
        let words: Vec<String> = row.split_whitespace().map(quoted).collect();
        self.shared[1].ctl("ovn-ic-sbctl", &words.iter().map(String::as_str).collect::<Vec<_>>());
        self.bind(switch).await;
    }

    /// The other cluster offers these prefixes, each by the switches `ts`, `ts1` and `ts2`.
    pub(crate) fn offer_by_three(&self, numbers: std::ops::Range<usize>) {
        let zone = self.rows("availability_zone", "_uuid", "name=az2");
        let row = |n: usize, (switch, subnet): (&str, u8)| {
            let (high, low) = (n / 250, n % 250);
            format!(
                "-- create route transit_switch={switch} availability_zone={zone} ip_prefix=20.{high}.{low}.0/24 \
                 nexthop=169.254.{subnet}.77 origin=connected"
            )
        };
        let rows = numbers.flat_map(|n| [("ts", 100), ("ts1", 101), ("ts2", 102)].map(|switch| row(n, switch)));
        let words: Vec<String> = rows.flat_map(|row| row.split_whitespace().map(quoted).collect::<Vec<_>>()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).skip(1).collect();
        self.shared[1].ctl("ovn-ic-sbctl", &words);
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let lab = &self.lab;
        let flags = [
            format!("--k8s-kubeconfig={}", lab.api.kubeconfig().display()),
            format!("--nb-address=unix:{}", lab.nb.socket().display()),
            format!("--sb-address=unix:{}", lab.sb.socket().display()),
        ];
        let words = ["ic"].iter().chain(words).map(ToString::to_string);
        ovnkube(words.chain(flags).chain(lab.common(&[])))
    }

    fn ic(&self, words: &[&str]) -> Said {
        said(self.command(words).output().unwrap())
    }

    /// While `ovnkube ic reset` waits for the master, the port gets its gateway again.
    async fn reset(&self) -> Said {
        let reset = self.command(&["reset"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let reset = tokio::task::spawn_blocking(move || reset.wait_with_output().unwrap());
        while !reset.is_finished() {
            self.bind_now("ts");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        said(reset.await.unwrap())
    }

    /// Removed with the test, so that the next one's masters do not see it.
    pub(crate) async fn end(self) {
        self.lab.api.delete(&format!("{CONFIG}/ovn-ic-config")).await;
    }
}

fn said(out: std::process::Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: out.status.code().unwrap(), out: text(out.stdout), err: text(out.stderr) }
}

/// The value of a column, in double quotes where it is none of the words of OVN's programs.
fn quoted(word: &str) -> String {
    match word.split_once('=') {
        Some((column, value)) if value.contains(['.', ':']) && !column.starts_with("--") => {
            format!("{column}=\"{}\"", value.replace('_', " "))
        }
        _ => word.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_joined_cluster_is_told_and_reset() {
    let joined = Joined::new().await;
    joined.ic(&["status"]).has(0, "joined with no others");
    joined.ic(&["reset"]).has(1, "does not say where the shared databases are");

    // without a master, each thing that is missing is told
    joined.configure(&[]).await;
    let diagnosed = joined.ic(&["diagnose"]);
    for line in [
        "ok       ConfigMap: this cluster is az1 and is joined; routes are exchanged",
        "wrong    gateways: node n1 has no label ovn.kubernetes.io/ic-gw=true; ",
        "ok       OVN_IC_Northbound: a single server, tcp:127.0.0.1:",
        "wrong    lock: nobody holds the lock ovn_ic",
        "wrong    this cluster: az1 is not in the shared databases; ",
        "wrong    prefixes: the northbound database lacks 1 route to az2; ",
    ] {
        assert!(diagnosed.out.lines().any(|said| said.starts_with(line)), "{line}\n{}", diagnosed.out);
    }
    joined.ic(&["reset"]).has(2, "no master keeps the interconnection");
    joined.configure(&[("gw-nodes", "n1,n2"), ("auto-route", "maybe")]).await;
    let diagnosed = joined.ic(&["diagnose"]);
    diagnosed.has(2, "wrong    ConfigMap: key auto-route is \"maybe\"; write");
    diagnosed
        .has(2, "key auto-route cannot be used, and no earlier one is kept: this cluster is joined with no others");
    joined
        .ic(&["reset"])
        .has(1, "does not say where the shared databases are, and the masters have kept no earlier one");
    joined.configure(&[("gw-nodes", "n1")]).await;

    let master = joined.lab.start("init-master=one", &[]);
    joined.bind("ts").await;
    until("all is in order", async || joined.ic(&["status"]).code == 0).await;
    let status = joined.ic(&["status"]);
    for line in [
        "cluster az1, this one, joined for ",
        "  gateway n1 (c1): geneve 172.18.0.2",
        "  gateway host2 (gw2): geneve 172.19.0.2",
    ] {
        assert!(status.out.lines().any(|said| said.starts_with(line)), "{line}\n{}", status.out);
    }
    assert!(status.out.contains("  prefixes: 1 learned, 0 refused"), "{}", status.out);
    joined.ic(&["diagnose"]).has(0, "ok       other clusters: 1 with active gateways: az2");
    joined.ic(&["routes"]).has(0, "cluster az2\n  10.244.0.0/16 by ts 169.254.100.77: used\n");
    let made = joined.rows("route", "external_ids", "ip_prefix=\"10.128.0.0/14\"");
    assert!(made.contains("ovnkube-since="), "{made}");

    joined.configure(&[("routes", "az2 10.17.0.0/16")]).await;
    until("the declared route is written", async || joined.ic(&["routes"]).code == 0).await;
    joined.ic(&["routes"]).has(0, ": used\ndeclared\n  10.17.0.0/16 of az2 by ts 169.254.100.77: used\n");
    joined.ic(&["diagnose"]).has(0, "ok       declared routes: 1 used");
    joined.configure(&[("routes", "az9 10.17.0.0/16,ten")]).await;
    joined
        .ic(&["routes"])
        .has(2, "  10.17.0.0/16 of az9: not used, it waits for cluster az9, which has not joined; correct");
    joined.ic(&["diagnose"]).has(2, "wrong    ConfigMap: key routes has \"ten\"; write the az-name");
    joined.configure(&[("routes", "")]).await;

    joined.offer("az2", "10.129.0.0/16");
    joined.ic(&["routes"]).has(
        2,
        "10.129.0.0/16 by ts 169.254.100.77: refused, it overlaps 10.128.0.0/14, which this cluster uses for pods",
    );
    let routes: Value = serde_json::from_str(&joined.ic(&["routes", "-o", "json"]).out).unwrap();
    let prefixes = &routes["clusters"][0]["prefixes"];
    assert_eq!((&prefixes[0]["prefix"], &prefixes[0]["used"]), (&json!("10.129.0.0/16"), &json!(false)), "{routes}");
    let status: Value = serde_json::from_str(&joined.ic(&["status", "-o", "json"]).out).unwrap();
    assert_eq!((&status["az_name"], &status["clusters"][1]["refused"]), (&json!("az1"), &json!(1)), "{status}");

    // what was damaged is made anew, and the address stays
    let address = joined.rows("port_binding", "address", "logical_port=ts-az1");
    let reset = joined.reset().await;
    reset.has(0, "removes from the northbound database: 1 transit switch, 1 router port, 1 route, 1 policy");
    reset.has(0, "the master has made it anew within");
    assert_eq!(joined.rows("port_binding", "address", "logical_port=ts-az1"), address);

    // off: another cluster's rows are nobody's here; what a dead database kept of this one is removed later
    drop(master);
    joined.configure(&[("enable-ic", "false")]).await;
    joined
        .ic(&["status"])
        .has(2, "still have this cluster as az1: 1 gateway, 1 port, 1 route; remove it: ovnkube ic reset");
    joined.ic(&["reset"]).has(0, "removed");
    assert_eq!(joined.rows("availability_zone", "name", "name!=x"), "az2");
    joined.ic(&["status"]).has(0, "nothing is to be done");
    joined.end().await;
}

/// Traffic goes on in both cases, so that nobody would notice before the others fail, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_server_and_an_idle_gateway_are_events() {
    let (joined, _master) = Joined::joined().await;
    joined.configure(&[("ic-db-host", "127.0.0.1,127.0.0.9")]).await;
    let event = async |reason: &str, text: &str| {
        let events = joined.lab.api.get("/api/v1/namespaces/kube-system/events").await;
        let events = events["items"].as_array().unwrap().clone();
        events.iter().any(|e| e["reason"] == reason && e["message"].as_str().unwrap().contains(text))
    };
    let text = "OVN_IC_Northbound: works, but without tcp:127.0.0.9:";
    until("the dead server is told", async || event("InterconnectionServers", text).await).await;
    joined.lab.sb.sbctl(&["set", "chassis", "c1", "other_config:is-interconn=false"]);
    let text = "n1: ovn-controller makes no tunnels to other clusters";
    until("the gateway is told", async || event("GatewayIdle", text).await).await;
    joined.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_dead_clusters_left_is_removed_and_what_is_alive_is_not() {
    let (joined, _master) = Joined::joined().await;
    joined.ic(&["clean", "az", "az1"]).has(2, "az1 is this cluster; to leave");
    joined.ic(&["clean", "node", "c1"]).has(2, "is a gateway of this cluster; take it out of gw-nodes");
    joined.ic(&["clean", "az", "az9"]).has(0, "there is no cluster \"az9\"; there are: az1, az2");
    joined.ic(&["clean", "node", "gw9"]).has(0, "no cluster has a gateway \"gw9\"");

    // one that did not follow a number of long ago is silent
    let follow = |number: u32| {
        joined.shared[1].ctl("ovn-ic-sbctl", &["set", "availability_zone", "az2", &format!("nb_ic_cfg={number}")]);
    };
    let asked = ["nb_ic_cfg=9", "external_ids:ovnkube-questions=\"9 1000000000\""];
    joined.shared[0].ctl("ovn-ic-nbctl", &[&["set", "ic_nb_global", "."][..], &asked].concat());
    follow(8);
    let silent = joined.ic(&["status"]);
    silent.has(2, "cluster az2, silent for ");
    silent.has(2, "az2 is silent: its controller has not answered for ");
    follow(9);
    joined.ic(&["status"]).has(0, "nothing is to be done");

    // a gateway that is gone has no ports, and nothing leads there
    joined.ic(&["clean", "node", "host2"]).has(0, "removed of cluster az2: 1 gateway that had 1 port, and 1 route");
    assert_eq!(joined.rows("port_binding", "gateway", "logical_port=ts-az2"), "");
    joined.ic(&["status"]).has(2, "az2 has no active gateway; start its gateways");
    joined.ic(&["clean", "az", "az2"]).has(0, "removed of cluster az2: 0 gateways, 1 port, 0 routes");
    joined.ic(&["clean", "az", "az2"]).has(0, "there is no cluster \"az2\"");

    // one that may be too old to answer
    joined.dead_cluster("az3", "");
    joined.ic(&["clean", "az", "az3"]).has(2, "it never has: its OVN may be too old to");
    joined.ic(&["clean", "az", "az3", "--force"]).has(0, "removed of cluster az3: 1 gateway, 1 port, 1 route");
    assert_eq!(joined.rows("availability_zone", "name", "name!=x"), "az1");

    // one with OVN's own daemon is alive
    let (nb, sb) = (Server::new(Release::Lts), Server::southbound(Release::Lts));
    nb.nbctl(&["set", "NB_Global", ".", "name=az4"]);
    // ovn-ic 26.03 crashes while the southbound database is empty
    sb.sbctl(&["init"]);
    let _northd = Daemon::northd(&nb, &sb);
    let daemon = Daemon::ic(&nb, &sb, [&joined.shared[0], &joined.shared[1]]);
    until("it has joined", async || joined.rows("availability_zone", "name", "name=az4") == "az4").await;
    joined.ic(&["clean", "az", "az4"]).has(2, "cluster az4 is alive: it answers");
    daemon.signal("STOP");
    joined.ic(&["clean", "az", "az4"]).has(0, "removed of cluster az4");
    joined.end().await;
}

/// What a master writes for agents, with the rights of its account.
#[tokio::test(flavor = "multi_thread")]
async fn agents_are_told_which_routes_hosts_have() {
    let (mut joined, master) = Joined::joined().await;
    let version =
        async |path: &str, joined: &Joined| joined.lab.api.get(path).await["metadata"]["resourceVersion"].clone();
    let told = async |joined: &Joined| joined.lab.api.get(CLUSTER).await["data"]["host-routes"].clone();
    let label = async |joined: &Joined| {
        joined.lab.api.get(NODE).await["metadata"]["labels"]["ovn.kubernetes.io/host-route"].clone()
    };
    let both = async |joined: &Joined| (told(joined).await, label(joined).await);
    assert_eq!(both(&joined).await, (Value::Null, Value::Null), "nothing without the option");

    joined.configure(&[("host-route", "true")]).await;
    until("the prefix", async || both(&joined).await == (json!("az2 10.244.0.0/16\n"), json!("true"))).await;
    assert_eq!(joined.lab.api.get(CLUSTER).await["data"]["host-route-servers"], "127.0.0.1");
    joined.offer("az2", "10.245.0.0/16");
    let routes = "az2 10.244.0.0/16\naz2 10.245.0.0/16\n";
    until("both", async || told(&joined).await == routes).await;
    joined.lab.api.ask(Method::PATCH, CLUSTER, json!({"data": {"host-routes": "az9 10.9.0.0/16\n"}})).await.unwrap();
    until("an edit by hand is put right", async || told(&joined).await == routes).await;

    // the next master writes only what is new
    let before = (version(NODE, &joined).await, version(CLUSTER, &joined).await);
    drop(master);
    let master = joined.lab.start("init-master=two", &[]);
    until("it works", async || joined.ic(&["diagnose"]).out.contains("ok       lock")).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!((version(NODE, &joined).await, version(CLUSTER, &joined).await), before);
    joined.offer("az2", "10.246.0.0/16");
    until("the next one", async || told(&joined).await.to_string().contains("10.246.0.0/16")).await;

    // off needs no shared database
    joined.shared.iter_mut().for_each(Server::kill);
    joined.configure(&[("host-route", "false")]).await;
    until("none", async || both(&joined).await == (json!(""), json!("false"))).await;
    // nor does a master that starts then; one was killed in between
    drop(master);
    let left = json!({"data": {"host-routes": "az2 10.244.0.0/16\n"}});
    joined.lab.api.ask(Method::PATCH, CLUSTER, left).await.unwrap();
    let labels = json!({"metadata": {"labels": {"ovn.kubernetes.io/host-route": "true"}}});
    joined.lab.api.ask(Method::PATCH, NODE, labels).await.unwrap();
    let _master = joined.lab.start("init-master=three", &[]);
    until("none", async || both(&joined).await == (json!(""), json!("false"))).await;
    joined.end().await;
}

/// What cannot be read is said, with what is known.
#[tokio::test(flavor = "multi_thread")]
async fn databases_and_an_api_that_are_away() {
    let (mut joined, _master) = Joined::joined().await;
    joined.shared[1].kill();
    let diagnosed = joined.ic(&["diagnose"]);
    diagnosed.has(2, "wrong    OVN_IC_Southbound: no server answers: tcp:127.0.0.1:");
    diagnosed.has(2, "ok       OVN_IC_Northbound");
    diagnosed.has(2, "unknown  this cluster: cannot reach the southbound interconnection database within 10 s");
    joined.ic(&["reset"]).has(2, "nothing is removed");
    joined.ic(&["clean", "az", "az2"]).has(1, "cannot clean: cannot reach the southbound interconnection");

    joined.lab.api.kill();
    let diagnosed = joined.ic(&["diagnose"]);
    diagnosed.has(2, "unknown  ConfigMap: ");
    diagnosed.has(
        2,
        "the ConfigMap cannot be read, so the last ConfigMap that a master could use is in effect: this cluster is az1",
    );
    diagnosed.has(2, "ok       OVN_IC_Northbound");
    joined.ic(&["reset"]).has(1, "cannot reset: ");
    joined.ic(&["clean", "az", "az2"]).has(1, "cannot find out which rows are this cluster's");
    joined.lab.api.start();
    until("the API", async || joined.lab.api.ask(Method::GET, CONFIG, Value::Null).await.is_ok()).await;
    joined.end().await;
}

/// A ConfigMap that is gone or bad does not keep people from seeing and removing what is there: the masters have kept the last one.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_config_map_that_can_be_used_the_one_that_was_kept_is_told() {
    const KEPT: &str = "key gw-nodes cannot be used, so what it said last counts: this cluster is az1";
    let (joined, master) = Joined::joined().await;
    joined.configure(&[("gw-nodes", "a_b")]).await;
    for words in [&["status"][..], &["routes"], &["diagnose"]] {
        let said = joined.ic(words);
        said.has(2, "key gw-nodes names \"a_b\"");
        said.has(2, KEPT);
    }
    joined.ic(&["routes"]).has(2, "10.244.0.0/16 by ts 169.254.100.77: used");
    let status: Value = serde_json::from_str(&joined.ic(&["status", "-o", "json"]).out).unwrap();
    assert_eq!((&status["in_effect"], &status["az_name"]), (&json!("kept"), &json!("az1")), "{status}");
    let reset = joined.reset().await;
    reset.has(0, KEPT);
    reset.has(0, "the master has made it anew within");
    let cleaned = joined.ic(&["clean", "az", "az2", "--force"]);
    cleaned.has(0, KEPT);
    cleaned.has(0, "removed of cluster az2: ");

    // it goes while no master runs
    drop(master);
    joined.lab.api.delete(&format!("{CONFIG}/ovn-ic-config")).await;
    let said = joined.ic(&["status"]);
    said.has(2, "there is no ovn-ic-config in kube-system: this cluster is joined with no others");
    said.has(2, "where it was joined is known from the last ConfigMap that a master could use, as az1");
    said.has(2, "still have this cluster as az1: 1 gateway, 1 port, 1 route; remove it: ovnkube ic reset");
    joined.dead_cluster("az2", "");
    joined.ic(&["clean", "az", "az2", "--force"]).has(0, "removed of cluster az2: ");
    joined.ic(&["reset"]).has(0, "removed");
    assert_eq!(joined.rows("availability_zone", "name", "name!=x"), "");
    joined.ic(&["status"]).has(0, "nothing is to be done");
}
