//! `-remove-node`: what it removes, what it leaves, and when it refuses.

use std::path::Path;

use ovnkube_tests::dump::Dump;
use ovnkube_tests::nb::{Host, until};
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::process::{Process, ovnkube};

/// The output of a run.
struct Said {
    success: bool,
    out: String,
    err: String,
}

/// Removes node b. Addresses of servers that are not given do not work.
fn remove(lab: &Lab, kubeconfig: Option<&Path>, nb: Option<&Path>, sb: Option<&Path>) -> Said {
    let nowhere = lab.dir.file("nowhere");
    let unix = |path: Option<&Path>| format!("unix:{}", path.unwrap_or(&nowhere).display());
    let mut words = vec![
        "-remove-node=b".to_owned(),
        format!("--nb-address={}", unix(nb)),
        format!("--sb-address={}", unix(sb)),
        kubeconfig.map_or_else(
            || "--k8s-apiserver=http://127.0.0.1:1".to_owned(),
            |path| format!("--k8s-kubeconfig={}", path.display()),
        ),
    ];
    words.extend(lab.common(&[]));
    let output = ovnkube(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { success: output.status.success(), out: text(output.stdout), err: text(output.stderr) }
}

/// With all servers reachable.
fn remove_b(lab: &Lab) -> Said {
    remove(lab, Some(&lab.api.kubeconfig()), Some(&lab.nb.socket()), Some(&lab.sb.socket()))
}

/// A cluster that node b was added to, with a gateway and two pods, after `before` was taken.
struct Cluster {
    /// Ends before the API is another test's.
    master: Option<Process>,
    lab: Lab,
    before: Dump,
}

impl Cluster {
    async fn up() -> Self {
        let lab = Lab::new().await;
        lab.api.annotated_node("a", annotations("a", 1)).await;
        lab.api.pod("one", "a").await;
        let master = lab.start("init-master=one", &["--host-network-namespace=default"]);
        lab.wired(1).await;
        let nb = lab.nb.client().await;
        let has_gateway = async |node: &str| {
            let router = format!("Logical_Router(GR_{node})");
            until(&router, async || Dump::of(&nb).0.contains_key(&router)).await;
        };
        has_gateway("a").await;
        lab.quiet().await;
        let before = Dump::of(&lab.nb.client().await);
        lab.sb.sbctl(&["chassis-add", "c-b", "geneve", "172.18.0.2", "--", "create", "chassis_private", "name=c-b"]);
        lab.sb.sbctl(&["chassis-add", "c-else", "geneve", "172.18.0.8"]);
        lab.api.annotated_node("b", annotations("b", 2)).await;
        for pod in ["two", "three"] {
            lab.api.pod(pod, "b").await;
        }
        lab.wired(3).await;
        has_gateway("b").await;
        lab.quiet().await;
        Self { lab, before, master: Some(master) }
    }

    async fn without_controller() -> Self {
        let mut cluster = Self::up().await;
        cluster.master.take().unwrap().kill();
        cluster
    }

    /// What differs from before, downloaded again: an existing client may not have received yet what another program
    /// has just written.
    async fn rows(&self) -> String {
        let now = Dump::of(&self.lab.nb.client().await);
        now.since(&self.before) + &self.before.since(&now)
    }

    fn chassis(&self) -> String {
        let names = |table| self.lab.sb.sbctl(&["--bare", "--columns=name", "list", table]);
        let both = format!("{} {}", names("chassis"), names("chassis_private"));
        let mut names: Vec<_> = both.split_whitespace().collect();
        names.sort_unstable();
        names.join(" ")
    }

    /// The annotations of node b.
    async fn is_annotated(&self) -> bool {
        let node = self.lab.api.get("/api/v1/nodes/b").await;
        node["metadata"]["annotations"].to_string().contains("k8s.ovn.org")
    }
}

/// As the node's agent writes them.
fn annotations(node: &str, address: u32) -> Value {
    let gateway = json!({"default": {
        "mode": "shared", "interface-id": format!("br-ex_{node}"), "mac-address": format!("02:42:ac:12:00:0{address}"),
        "ip-addresses": [format!("172.18.0.{address}/16")], "next-hops": ["172.18.255.1"], "node-port-enable": "true",
    }});
    json!({"k8s.ovn.org/node-chassis-id": format!("c-{node}"), "k8s.ovn.org/l3-gateway-config": gateway.to_string()})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_deleted_leaves_nothing() {
    let cluster = Cluster::without_controller().await;
    assert!(cluster.rows().await.contains("Logical_Router(GR_b)"));
    cluster.lab.api.delete("/api/v1/nodes/b").await;
    let said = remove_b(&cluster.lab);
    assert!(said.success, "{}", said.err);
    assert!(
        said.out.contains("northbound database: removed ") && said.out.contains("removed chassis c-b\n"),
        "{}",
        said.out
    );
    assert_eq!((cluster.rows().await, cluster.chassis()), (String::new(), "c-else".to_owned()));
    // a second run is accepted
    let said = remove_b(&cluster.lab);
    assert!(said.success, "{}", said.err);
    assert!(said.out.contains("nothing of node b") && said.out.contains("no chassis of node b"), "{}", said.out);
    assert_eq!((cluster.rows().await, cluster.chassis()), (String::new(), "c-else".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_exists_stays_while_a_controller_works() {
    let mut cluster = Cluster::up().await;
    let rows = cluster.rows().await;
    let said = remove_b(&cluster.lab);
    assert!(!said.success && said.err.contains("kubectl delete node b"), "{}", said.err);
    // when it is unknown whether it exists
    let said = remove(&cluster.lab, None, Some(&cluster.lab.nb.socket()), Some(&cluster.lab.sb.socket()));
    assert!(!said.success && said.err.contains("not known whether node b still exists"), "{}", said.err);
    assert_eq!(cluster.rows().await, rows);
    assert!(cluster.is_annotated().await);
    cluster.master.take().unwrap().kill();

    let said = remove_b(&cluster.lab);
    assert!(said.success, "{}", said.err);
    assert!(said.out.contains("node b still exists"), "{}", said.out);
    assert_eq!((cluster.rows().await, cluster.chassis()), (String::new(), "c-else".to_owned()));
    assert!(!cluster.is_annotated().await);
    let said = remove_b(&cluster.lab);
    assert!(said.success && said.out.contains("no annotations to remove"), "{} {}", said.out, said.err);
    // as the message says: a controller adds it again
    let _master = cluster.lab.start("init-master=two", &["--host-network-namespace=default"]);
    until("the node is back", async || cluster.is_annotated().await).await;
    cluster.lab.wired(3).await;
}

/// What can be reached is done and reported, and so is what cannot.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_are_away() {
    let cluster = Cluster::without_controller().await;
    let (kubeconfig, nb, sb) = (cluster.lab.api.kubeconfig(), cluster.lab.nb.socket(), cluster.lab.sb.socket());
    let said = remove(&cluster.lab, Some(&kubeconfig), None, None);
    assert!(!said.success, "{}", said.out);
    for problem in ["rows of node b there stay", "chassis of node b there stay"] {
        assert!(said.err.contains(problem), "{problem}: {}", said.err);
    }
    assert!(!cluster.is_annotated().await);
    assert!(cluster.rows().await.contains("Logical_Router(GR_b)") && cluster.chassis().contains("c-b"));

    let said = remove(&cluster.lab, None, Some(&nb), None);
    assert!(!said.success && !said.err.contains("rows of node b"), "{}", said.err);
    assert_eq!((cluster.rows().await, cluster.chassis().contains("c-b")), (String::new(), true));

    // the rows that named its chassis are gone: it is known by its hostname
    cluster.lab.sb.sbctl(&["set", "chassis", "c-b", "hostname=b"]);
    let said = remove(&cluster.lab, None, Some(&nb), Some(&sb));
    assert!(said.success && said.out.contains("the API server was not reached"), "{} {}", said.out, said.err);
    assert_eq!((cluster.rows().await, cluster.chassis()), (String::new(), "c-else".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_still_runs_is_reported() {
    let cluster = Cluster::without_controller().await;
    cluster.lab.api.delete("/api/v1/nodes/b").await;
    let host =
        Host::start(&cluster.lab.sb, &[("system-id", "c-live"), ("hostname", "b"), ("ovn-encap-ip", "172.18.0.7")]);
    until("its chassis", async || cluster.chassis().contains("c-live")).await;
    let said = remove_b(&cluster.lab);
    assert!(!said.success && said.err.contains("cannot remove chassis c-live: it is there again"), "{}", said.err);
    assert_eq!(cluster.rows().await, "");
    drop(host);
    let said = remove_b(&cluster.lab);
    assert!(said.success, "{}", said.err);
    assert_eq!(cluster.chassis(), "c-else");
}
