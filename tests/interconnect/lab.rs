//! The databases that clusters share, our cluster, and another one with OVN's own daemon.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use http::Method;
use ovnkube_apply::{Listening, MayWrite};
use ovnkube_ovn::{Database, ic_nb, ic_sb, owner};
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::nb::{Daemon, Release, Server, until};
use ovnkube_tests::objects::interconnection;
use ovnkube_tests::settings::Settings;
use serde_json::{Value, json};

const SUBNETS: &str = "/apis/kubeovn.io/v1/subnets";
const CONFIG: &str = "/api/v1/namespaces/kube-system/configmaps";

/// The shared databases and our cluster.
pub(crate) struct Lab {
    pub(crate) api: Api,
    /// IC-NB and IC-SB.
    pub(crate) shared: Arc<[Server; 2]>,
    pub(crate) nb: Server,
    pub(crate) sb: Server,
    _northd: Daemon,
}

impl Lab {
    /// With node `n1`, whose chassis `c1` is a gateway. `release`: of all programs of OVN.
    pub(crate) async fn up(release: Release) -> Self {
        Self::of(Arc::new(shared(release)), ("c1", "172.18.0.2")).await
    }

    /// A cluster with the gateway `chassis`, which has the address `tunnel`.
    pub(crate) async fn of(shared: Arc<[Server; 2]>, (chassis, tunnel): (&str, &str)) -> Self {
        let release = shared[0].release();
        let api = Api::up().await;
        let _ = api.ask(Method::DELETE, &format!("{CONFIG}/ovn-ic-config"), Value::Null).await;
        let (nb, sb) = (Server::new(release), Server::southbound(release));
        let northd = Daemon::northd(&nb, &sb);
        gateway(&sb, chassis, tunnel);
        api.node("n1", json!({"k8s.ovn.org/node-chassis-id": chassis})).await;
        Self { api, shared, nb, sb, _northd: northd }
    }

    /// One more node, whose chassis is a gateway and has the mark that its agent gives it.
    pub(crate) async fn add_node(&self, node: &str, (chassis, tunnel): (&str, &str)) {
        self.api.node(node, json!({"k8s.ovn.org/node-chassis-id": chassis})).await;
        gateway(&self.sb, chassis, tunnel);
        let (host, mark) =
            (format!("hostname={node}"), format!("other_config:ovn-cms-options={}", owner::NODE_CHASSIS));
        self.sb.sbctl(&["set", "chassis", chassis, &host, &mark]);
    }

    /// Of a cluster that is alone.
    pub(crate) fn shared_mut(&mut self) -> &mut [Server; 2] {
        Arc::get_mut(&mut self.shared).unwrap()
    }

    pub(crate) async fn engine(&self) -> Running {
        self.engine_that(Listening::default()).await
    }

    pub(crate) async fn engine_that(&self, listening: Listening) -> Running {
        self.engine_of(&Settings::default(), listening).await
    }

    /// Of a cluster with IPv4 and IPv6.
    pub(crate) async fn dual_engine(&self) -> Running {
        let settings = Settings {
            cluster_subnets: "10.128.0.0/14/23,fd01::/48/64".into(),
            service_cidrs: "172.30.0.0/16,fd02::/112".into(),
            ..Settings::default()
        };
        self.engine_of(&settings, Listening::default()).await
    }

    pub(crate) async fn engine_of(&self, settings: &Settings, listening: Listening) -> Running {
        let engine = self.start(settings, listening, Arc::new(|| true)).await;
        engine.ready().await;
        engine
    }

    /// One that writes only `left` times.
    pub(crate) async fn engine_that_writes(&self, left: Arc<AtomicI64>) -> Running {
        self.engine_that_may_write(Arc::new(move || left.fetch_sub(1, Ordering::SeqCst) > 0)).await
    }

    /// One that asks this before each write. It need not be ready.
    pub(crate) async fn engine_that_may_write(&self, may_write: MayWrite) -> Running {
        self.start(&Settings::default(), Listening::default(), may_write).await
    }

    async fn start(&self, settings: &Settings, listening: Listening, may_write: MayWrite) -> Running {
        let databases = (Some(self.nb.client().await), Some(self.sb.client().await));
        Running::listening(&self.api.access(), settings.network(), databases, may_write, listening).await
    }

    /// Writes the ConfigMap; `changed`: keys with other values than usual.
    pub(crate) async fn configure(&self, changed: &[(&str, &str)]) {
        let body = interconnection([0, 1].map(|of| self.shared[of].port()), changed);
        if self.api.find(&format!("{CONFIG}/ovn-ic-config")).await.is_some() {
            self.api.ask(Method::PATCH, &format!("{CONFIG}/ovn-ic-config"), body).await.unwrap();
        } else {
            self.api.ask(Method::POST, CONFIG, body).await.unwrap();
        }
    }

    pub(crate) async fn delete_configuration(&self) {
        self.api.ask(Method::DELETE, &format!("{CONFIG}/ovn-ic-config"), Value::Null).await.unwrap();
    }

    /// Creates a Subnet, or changes fields of it.
    pub(crate) async fn subnet(&self, name: &str, spec: Value) {
        let path = format!("{SUBNETS}/{name}");
        if self.api.find(&path).await.is_some() {
            self.api.ask(Method::PATCH, &path, json!({"spec": spec})).await.unwrap();
        } else {
            let body =
                json!({"apiVersion": "kubeovn.io/v1", "kind": "Subnet", "metadata": {"name": name}, "spec": spec});
            self.api.ask(Method::POST, SUBNETS, body).await.unwrap();
        }
    }

    pub(crate) async fn delete_subnet(&self, name: &str) {
        self.api.ask(Method::DELETE, &format!("{SUBNETS}/{name}"), Value::Null).await.unwrap();
    }

    pub(crate) fn set_subnets(&self, switch: &str, subnets: &str) {
        let ids = format!("external_ids:subnet=\"{subnets}\"");
        self.shared[0].ctl("ovn-ic-nbctl", &["set", "transit_switch", switch, &ids]);
    }

    pub(crate) fn add_switch(&self, name: &str, subnet: &str) {
        let ids = format!("external_ids:subnet={subnet}");
        let words = ["ts-add", name, "--", "set", "transit_switch", name, &ids, "external_ids:vendor=kube-ovn"];
        self.shared[0].ctl("ovn-ic-nbctl", &words);
    }

    /// Binds a port to a chassis, as ovn-controller there would.
    pub(crate) async fn bind(&self, port: &str, chassis: &str) {
        bind(&self.sb, port, chassis).await;
    }

    /// Its gateway has left the port.
    pub(crate) fn unbind(&self, port: &str) {
        self.sb.sbctl(&["lsp-unbind", port]);
    }

    /// Binds it if the port is there.
    pub(crate) fn bind_if_there(&self, port: &str, chassis: &str) {
        let find = ["--bare", "--columns=_uuid", "find", "chassis", &format!("name={chassis}")];
        let chassis = format!("chassis={}", self.sb.sbctl(&find));
        self.sb.sbctl(&["--if-exists", "set", "port_binding", port, &chassis]);
    }

    /// Binds each port of our router in a transit switch to the first of its gateways that is there, as the hosts would.
    pub(crate) fn hosts_follow(&self) {
        let list = |columns: &'static str, table: &'static str| {
            ["--bare", "--no-headings", "-f", "csv", columns, "list", table]
        };
        let chassis = self.sb.sbctl(&list("--columns=name,_uuid", "chassis"));
        let chassis: BTreeMap<&str, &str> = chassis.lines().filter_map(|row| row.split_once(',')).collect();
        let gateways = self.nb.nbctl(&list("--columns=name,chassis_name,priority", "gateway_chassis"));
        let mut first: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
        for row in gateways.lines() {
            let words: Vec<&str> = row.split(',').collect();
            let [name, gateway, priority] = words[..] else { continue };
            let port = name.strip_suffix(gateway).and_then(|port| port.strip_suffix('-'));
            // others are those of nodes
            let port = port.filter(|port| port.contains("-ts"));
            if let (Some(port), Some(uuid), Ok(priority)) = (port, chassis.get(gateway), priority.parse()) {
                let best = first.entry(port).or_insert((priority, *uuid));
                *best = (*best).max((priority, *uuid));
            }
        }
        let bind = |(port, (_, uuid)): (&str, (i64, &str))| {
            let (port, chassis) = (format!("cr-{port}"), format!("chassis={uuid}"));
            ["--", "--if-exists", "set", "port_binding", &port, &chassis].map(str::to_owned)
        };
        let words: Vec<String> = first.into_iter().flat_map(bind).collect();
        if let Some((_, words)) = words.split_first() {
            self.sb.sbctl(&words.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }

    pub(crate) fn routes(&self) -> String {
        self.nb.nbctl(&["lr-route-list", "ovn_cluster_router"])
    }

    /// The ports of our router in transit switches, each with its addresses.
    pub(crate) fn ports(&self) -> Vec<String> {
        let columns = "--columns=name,networks";
        let ports = self.nb.nbctl(&["--bare", "--no-headings", "-f", "csv", columns, "list", "logical_router_port"]);
        ports.lines().filter(|port| port.contains("-ts")).map(str::to_owned).collect()
    }

    /// The column of a row of another cluster.
    pub(crate) fn zone(&self, name: &str) -> String {
        let find = ["--bare", "--columns=_uuid", "find", "availability_zone", &format!("name={name}")];
        format!("availability_zone={}", self.shared[1].ctl("ovn-ic-sbctl", &find))
    }

    /// The words that create a route of another cluster.
    pub(crate) fn route(zone: &str, switch: &str, prefix: &str, next_hop: &str) -> Vec<String> {
        let columns = [("transit_switch", switch), ("ip_prefix", prefix), ("nexthop", next_hop), ("origin", "static")];
        let columns = columns.map(|(column, value)| format!("{column}=\"{value}\""));
        ["--", "create", "route", zone, "route_table=\"\""].map(str::to_owned).into_iter().chain(columns).collect()
    }

    /// The words that create a port of another cluster. `zone`: its name and its column.
    pub(crate) fn port(
        (name, column): (&str, &str),
        gateway: &str,
        switch: &str,
        (key, address): (u32, &str),
    ) -> Vec<String> {
        let columns = [
            format!("transit_switch={switch}"),
            format!("logical_port={switch}-{name}"),
            format!("tunnel_key={key}"),
            format!("gateway={gateway}"),
            format!("address=\"0a:58:00:00:00:{key:02x} {address}\""),
        ];
        ["--", "create", "port_binding", column].map(str::to_owned).into_iter().chain(columns).collect()
    }

    /// Removes the rows of a table of the shared southbound database that have these columns.
    pub(crate) fn destroy(&self, table: &str, columns: &[&str]) {
        let find = [&["--bare", "--columns=_uuid", "find", table][..], columns].concat();
        let rows = self.shared[1].ctl("ovn-ic-sbctl", &find);
        let words: Vec<&str> = ["destroy", table].into_iter().chain(rows.split_whitespace()).collect();
        self.shared[1].ctl("ovn-ic-sbctl", &words);
    }

    /// Creates rows in the shared southbound database, all at once.
    pub(crate) fn create(&self, rows: &[Vec<String>]) {
        let words: Vec<&str> = rows.iter().flatten().map(String::as_str).collect();
        self.shared[1].ctl("ovn-ic-sbctl", words.strip_prefix(&["--"]).unwrap_or(&words));
    }

    /// A cluster that is only rows: a gateway with a port in the switch.
    pub(crate) fn add_cluster(
        &self,
        zone: &str,
        gateway: &str,
        tunnel: &str,
        switch: &str,
        (key, address): (u32, &str),
    ) {
        self.shared[1].ctl("ovn-ic-sbctl", &["create", "availability_zone", &format!("name={zone}")]);
        let column = self.zone(zone);
        let encap = [&format!("ip=\"{tunnel}\""), "type=geneve", &format!("gateway_name={gateway}")].map(str::to_owned);
        let words = [
            "--",
            "create",
            "gateway",
            &format!("name={gateway}"),
            &format!("hostname={gateway}"),
            &column,
            "encaps=@e",
        ];
        let encap = ["--id=@e", "create", "encap"].map(str::to_owned).into_iter().chain(encap);
        let port = Self::port((zone, &column), gateway, switch, (key, address));
        let words: Vec<String> = encap.chain(words.map(str::to_owned)).chain(port).collect();
        self.shared[1].ctl("ovn-ic-sbctl", &words.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// A cluster in the switch `ts` that is only rows, and its prefix.
    pub(crate) fn add_other(&self) {
        self.add_cluster("az2", "gw2", "172.19.0.2", "ts", (9, "169.254.100.77/24"));
        self.create(&[Self::route(&self.zone("az2"), "ts", "10.244.0.0/16", "169.254.100.77")]);
    }

    pub(crate) fn zones(&self) -> String {
        self.shared[1].ctl("ovn-ic-sbctl", &["--bare", "--columns=name", "list", "availability_zone"])
    }

    pub(crate) fn chassis_of(&self, port: &str) -> String {
        chassis_of(&self.sb, port)
    }

    pub(crate) fn has_chassis(&self, name: &str) -> bool {
        self.sb.sbctl(&["--bare", "--columns=name", "list", "chassis"]).contains(name)
    }

    /// What the shared databases hold, without when it was made.
    pub(crate) fn shared_rows(&self) -> String {
        shared_rows(&self.shared)
    }

    /// What all databases hold of the interconnection.
    pub(crate) fn everything(&self) -> String {
        format!("{}\n{}", self.rows(), self.kept())
    }

    /// The same without what a master keeps for the next one.
    pub(crate) fn rows(&self) -> String {
        format!("{}\n{}", self.own_rows(), self.shared_rows())
    }

    /// What its own databases hold of it.
    pub(crate) fn own_rows(&self) -> String {
        let nb = ["logical_switch", "logical_router_port", "logical_router_static_route", "logical_router_policy"];
        let nb = nb.iter().map(|table| sorted(&self.nb.nbctl(&["--format=csv", "list", table])));
        let columns = "--columns=_uuid,name,encaps,external_ids,other_config";
        let sb = sorted(&self.sb.sbctl(&["--format=csv", columns, "list", "chassis"]));
        nb.chain([sb]).collect::<Vec<_>>().join("\n")
    }

    /// What the next master finds.
    pub(crate) fn kept(&self) -> String {
        self.nb.nbctl(&["--columns=external_ids", "list", "logical_router", "ovn_cluster_router"])
    }

    /// Waits until nothing changes for a second.
    pub(crate) async fn is_quiet(&self) {
        let last = RefCell::new(String::new());
        until("nothing changes", async || {
            let now = self.everything();
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            now == last.replace(now.clone())
        })
        .await;
    }

    /// Another engine takes the place of this one, and finds everything as it should be.
    pub(crate) async fn restart(&self, engine: Running, again: impl Future<Output = Running>) -> Running {
        let before = self.everything();
        drop(engine);
        let engine = again.await;
        self.is_quiet().await;
        assert_eq!(self.everything(), before);
        assert_eq!(engine.writes(), (0, 0));
        engine
    }

    /// Waits for an Event of the ConfigMap with this text.
    pub(crate) async fn event_says(&self, text: &str) {
        until(&format!("an event that says {text}"), async || self.events_that_say(text).await > 0).await;
    }

    /// How often Events of the ConfigMap said this.
    pub(crate) async fn events_that_say(&self, text: &str) -> u64 {
        let events = self.api.get("/api/v1/namespaces/kube-system/events").await;
        let events = events["items"].as_array().cloned().unwrap_or_default();
        let says = events.iter().filter(|e| {
            e["involvedObject"]["name"] == "ovn-ic-config" && e["message"].as_str().unwrap().contains(text)
        });
        says.map(|e| e["series"]["count"].as_u64().or(e["count"].as_u64()).unwrap_or(1)).sum()
    }
}

static DATABASES: [&Database; 2] = [&ic_nb::DATABASE, &ic_sb::DATABASE];
/// Where their servers listen.
const LISTEN: &str = "--remote=ptcp:0:127.0.0.1";

/// IC-NB and IC-SB, empty.
pub(crate) fn shared(release: Release) -> [Server; 2] {
    let shared = DATABASES.map(|database| Server::with(release, database, &[LISTEN.to_owned()]));
    shared[0].ctl("ovn-ic-nbctl", &["init"]);
    shared[1].ctl("ovn-ic-sbctl", &["init"]);
    shared
}

/// What they hold, without when it was made.
pub(crate) fn shared_rows(shared: &[Server; 2]) -> String {
    let tables = ["availability_zone", "gateway", "encap", "port_binding", "route", "datapath_binding"];
    let of = |table: &&str| sorted(&shared[1].ctl("ovn-ic-sbctl", &["--format=csv", "list", table]));
    let switches = sorted(&shared[0].ctl("ovn-ic-nbctl", &["--format=csv", "list", "transit_switch"]));
    timeless(&tables.iter().map(of).chain([switches]).collect::<Vec<_>>().join("\n"))
}

/// The same in Raft clusters, and without what `init` makes.
pub(crate) fn members(release: Release) -> [Server; 2] {
    DATABASES.map(|database| Server::member(release, database, &[LISTEN.to_owned()]))
}

/// Another cluster: databases, northd and OVN's own daemon.
pub(crate) struct Other {
    zone: String,
    pub(crate) nb: Server,
    pub(crate) sb: Server,
    _northd: Daemon,
    ic: Daemon,
}

impl Other {
    /// A cluster with pods in 10.244.0.0/16 and the gateway `gw2`.
    pub(crate) async fn join(lab: &Lab, zone: &str, switch: &str, address: &str) -> Self {
        let release = lab.nb.release();
        let (nb, sb) = (Server::new(release), Server::southbound(release));
        let northd = Daemon::northd(&nb, &sb);
        let name = format!("name={zone}");
        nb.nbctl(&["set", "NB_Global", ".", &name, "options:ic-route-adv=true", "options:ic-route-learn=true"]);
        nb.nbctl(&[
            "lr-add",
            "ovn-cluster",
            "--",
            "lrp-add",
            "ovn-cluster",
            "rtos",
            "0a:58:0a:f4:00:01",
            "10.244.0.1/16",
        ]);
        gateway(&sb, "gw2", "172.19.0.2");
        let ic = Daemon::ic(&nb, &sb, [&lab.shared[0], &lab.shared[1]]);
        let other = Self { zone: zone.into(), nb, sb, _northd: northd, ic };
        other.attach(switch, address).await;
        until("the other cluster has joined", async || lab.shared_rows().contains(address)).await;
        other
    }

    /// Gives it a port in a transit switch, as Kube-OVN does.
    pub(crate) async fn attach(&self, switch: &str, address: &str) {
        until("the switch is there", async || self.nb.nbctl(&["ls-list"]).contains(&format!("({switch})"))).await;
        let (router, port) = (format!("{}-{switch}", self.zone), format!("{switch}-{}", self.zone));
        let mac = if switch == "ts" { "0a:58:a9:fe:64:4d" } else { "0a:58:a9:fe:65:4d" };
        self.nb.nbctl(&["lrp-add", "ovn-cluster", &router, mac, address]);
        let peer = format!("router-port={router}");
        self.nb.nbctl(&[
            "lsp-add",
            switch,
            &port,
            "--",
            "lsp-set-type",
            &port,
            "router",
            "--",
            "lsp-set-addresses",
            &port,
            "router",
            "--",
            "lsp-set-options",
            &port,
            &peer,
            "--",
            "lrp-set-gateway-chassis",
            &router,
            "gw2",
            "100",
        ]);
        bind(&self.sb, &format!("cr-{router}"), "gw2").await;
    }

    /// Stops its daemon; its rows stay.
    pub(crate) fn stop(&self) {
        self.ic.signal("STOP");
    }

    pub(crate) fn go_on(&self) {
        self.ic.signal("CONT");
    }

    pub(crate) fn routes(&self) -> String {
        self.nb.nbctl(&["lr-route-list", "ovn-cluster"])
    }

    pub(crate) fn chassis_of(&self, port: &str) -> String {
        chassis_of(&self.sb, port)
    }
}

fn gateway(sb: &Server, chassis: &str, address: &str) {
    let hostname = format!("hostname={chassis}");
    let words = ["chassis-add", chassis, "geneve", address, "--", "set", "chassis", chassis, &hostname];
    sb.sbctl(&[&words[..], &["other_config:is-interconn=true"]].concat());
}

async fn bind(sb: &Server, port: &str, chassis: &str) {
    until(&format!("port {port}"), async || has_port(sb, port)).await;
    sb.sbctl(&["--may-exist", "lsp-bind", port, chassis]);
}

fn has_port(sb: &Server, port: &str) -> bool {
    !sb.sbctl(&["--bare", "--columns=_uuid", "find", "port_binding", &format!("logical_port={port}")]).is_empty()
}

fn chassis_of(sb: &Server, port: &str) -> String {
    let uuid = sb.sbctl(&["--bare", "--columns=chassis", "find", "port_binding", &format!("logical_port={port}")]);
    if uuid.is_empty() {
        return uuid;
    }
    sb.sbctl(&["get", "chassis", &uuid, "name"]).trim_matches('"').to_owned()
}

/// The text without the times that rows of our clusters have.
fn timeless(text: &str) -> String {
    let mut parts = text.split(", ovnkube-since=");
    let first = parts.next().unwrap_or_default().to_owned();
    let digits = |c: char| c.is_ascii_digit() || c == '"';
    parts.fold(first, |all, part| all + part.trim_start_matches(digits))
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}
