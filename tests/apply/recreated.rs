//! A network policy that somebody replaces: northd sees in one pass that its port group went and that it is there again.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use ovnkube_apply::REST;
use ovnkube_ovn::nb::{acl, load_balancer, logical_switch_port as lsp, port_group};
use ovnkube_ovn::{Table, Uuid, owner::OwnerId};
use ovnkube_ovsdb::Client as Database;
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::nb::{Daemon, Release, Server, until};
use ovnkube_tests::settings::Settings;
use serde_json::{Value, json};

const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies";

/// A pod on a node, and both databases with northd between them.
struct Lab {
    api: Api,
    north: Server,
    south: Server,
    northd: Daemon,
    nb: Database,
}

impl Lab {
    async fn up(release: Release) -> Self {
        let (api, north, south) = (Api::up().await, Server::new(release), Server::southbound(release));
        let northd = Daemon::northd(&north, &south);
        let nb = north.client().await;
        api.namespace("a").await;
        api.node("n1", json!({"k8s.ovn.org/node-chassis-id": "chassis-n1"})).await;
        api.pod("a", "p1", "n1", json!({})).await;
        Self { api, north, south, northd, nb }
    }

    async fn engine(&self) -> Running {
        Running::start(&self.api, Settings::default().network(), Some(self.north.client().await)).await
    }

    async fn make_policy(&self) {
        let policy = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "web"},
            "spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}]},
        });
        self.api.ask(Method::POST, POLICIES, policy).await.unwrap();
        until("the group has the pod's port and a rule", async || {
            self.group().is_some_and(|(_, ports, acls)| (ports, acls) == (1, 1))
        })
        .await;
    }

    async fn delete_policy(&self) {
        self.api.ask(Method::DELETE, &format!("{POLICIES}/web"), Value::Null).await.unwrap();
        until("the group has nothing", async || self.group().is_none_or(|(_, ports, acls)| (ports, acls) == (0, 0)))
            .await;
    }

    async fn make_service(&self) {
        let service = json!({"metadata": {"name": "web"}, "spec": {"clusterIP": "10.96.0.9", "ports": [{"port": 80}]}});
        self.api.ask(Method::POST, "/api/v1/namespaces/a/services", service).await.unwrap();
        until("a load balancer", async || self.has(load_balancer::TABLE, "Service_a/web_TCP_cluster")).await;
    }

    fn has(&self, table: &'static Table, name: &str) -> bool {
        !self.nb.cache().lookup(table, name).is_empty()
    }

    /// What the southbound database says, without uuids.
    fn contents(&self) -> Vec<String> {
        let of = [
            ("port_group", "name,ports"),
            ("address_set", "name,addresses"),
            ("port_binding", "logical_port,type,mac"),
            ("load_balancer", "name,vips"),
            ("logical_flow", "pipeline,table_id,priority,match,actions"),
        ];
        let rows = |(table, columns): (&str, &str)| {
            let text = self.south.sbctl(&["--bare", &format!("--columns={columns}"), "list", table]);
            let rows: BTreeSet<String> =
                text.split("\n\n").map(|row| format!("{table}: {}", row.trim().replace('\n', " | "))).collect();
            rows
        };
        of.into_iter().flat_map(rows).collect()
    }

    /// The policy's group, and how many ports and ACLs it has.
    fn group(&self) -> Option<(Uuid, usize, usize)> {
        let cache = self.nb.cache();
        let name = OwnerId::new("NetworkPolicy").name("a:web").hashed_name();
        let uuid = *cache.lookup(port_group::TABLE, &name).first()?;
        let row = cache.get(port_group::TABLE, uuid)?;
        Some((uuid, row.uuids(port_group::PORTS).count(), row.uuids(port_group::ACLS).count()))
    }

    /// The pod's groups in the southbound database.
    fn southbound(&self) -> String {
        self.south.sbctl(&["--bare", "--columns=name", "find", "port_group", "ports=a_p1"])
    }

    /// Whether northd has given the pod's port to the policy's group.
    fn is_in_southbound_group(&self) -> bool {
        let name = OwnerId::new("NetworkPolicy").name("a:web").hashed_name();
        self.southbound().lines().any(|group| group.ends_with(&format!("_{name}")))
    }
}

/// 26.03.1 lost the group, and with it all that the policy allows.
#[tokio::test(flavor = "multi_thread")]
async fn northd_keeps_the_group_of_a_replaced_policy() {
    for release in [Release::Lts, Release::Trixie] {
        let lab = Lab::up(release).await;
        let _engine = lab.engine().await;
        lab.make_policy().await;
        until("northd has the group", async || lab.is_in_southbound_group()).await;
        for round in 0..3 {
            lab.northd.signal("STOP");
            lab.delete_policy().await;
            lab.make_policy().await;
            lab.northd.signal("CONT");
            // a mark passes through northd after all that was written before it
            lab.north.nbctl(&["--wait=sb", "sync"]);
            assert!(
                lab.is_in_southbound_group(),
                "{release:?}, round {round}: the pod's groups are {}",
                lab.southbound()
            );
        }
    }
}

/// Whatever is replaced within one pass of northd: the southbound database is as another northd would fill it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_replaced_at_once_is_all_there() {
    for release in [Release::Lts, Release::Trixie, Release::Host] {
        let mut lab = Lab::up(release).await;
        let _engine = lab.engine().await;
        lab.make_policy().await;
        lab.make_service().await;
        lab.north.nbctl(&["--wait=sb", "sync"]);
        lab.northd.signal("STOP");
        lab.delete_policy().await;
        lab.api.delete_pod("a", "p1").await;
        until("no port", async || !lab.has(lsp::TABLE, "a_p1")).await;
        lab.api.ask(Method::DELETE, "/api/v1/namespaces/a/services/web", Value::Null).await.unwrap();
        until("no load balancer", async || !lab.has(load_balancer::TABLE, "Service_a/web_TCP_cluster")).await;
        lab.api.delete_namespace("a").await;
        until("no namespace", async || lab.api.find("/api/v1/namespaces/a").await.is_none()).await;
        lab.api.namespace("a").await;
        lab.api.pod("a", "p1", "n1", json!({})).await;
        lab.make_policy().await;
        lab.make_service().await;
        lab.northd.signal("CONT");
        lab.north.nbctl(&["--wait=sb", "sync"]);
        let have = lab.contents();
        lab.northd = Daemon::northd(&lab.north, &lab.south);
        lab.north.nbctl(&["--wait=sb", "sync"]);
        assert_eq!(have, lab.contents(), "{release:?}: left, what stood there; right, what another northd made of it");
        assert!(lab.is_in_southbound_group(), "{release:?}");
    }
}

/// Its row goes a while later, also if a master that knows nothing of it has come in between.
#[tokio::test(flavor = "multi_thread")]
async fn the_group_of_a_deleted_policy_goes() {
    let lab = Lab::up(Release::Lts).await;
    let engine = lab.engine().await;
    lab.make_policy().await;
    let (group, ..) = lab.group().unwrap();
    lab.delete_policy().await;
    assert!(
        lab.nb.cache().iter(acl::TABLE).all(|(_, row)| !row.str(acl::MATCH).contains("192.0.2.0")),
        "no rule is left"
    );
    if let Some((same, ..)) = lab.group() {
        assert_eq!(same, group);
        drop(engine);
        let _engine = lab.engine().await;
        tokio::time::timeout(REST + Duration::from_secs(60), until("no group", async || lab.group().is_none()))
            .await
            .unwrap();
    } else {
        assert!(!is_faulty(&lab), "this northd would lose the group");
    }
}

fn is_faulty(lab: &Lab) -> bool {
    let options = lab.north.nbctl(&["get", "nb_global", ".", "options:northd_internal_version"]);
    ["26.03.0-", "26.03.1-"].iter().any(|faulty| options.contains(faulty))
}
