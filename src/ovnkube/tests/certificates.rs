//! Certificates of node agents: asked for, approved by `ovnkube identity`, signed by a real kube-controller-manager, used and renewed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use http::Method;
use ovnkube_identity::{NodeCertificate, Wanted, current};
use ovnkube_tests::nb::until;
use ovnkube_tests::servers::Servers;
use ovnkube_watch::{Access, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::identity::ask;
use crate::lab::Dir;
use crate::process::Process;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const APPROVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/identity/approver.yaml");
/// What the signer gives, although agents ask for ten minutes: so that a test sees a renewal.
const LIFE: Duration = Duration::from_secs(20);

struct Cluster {
    servers: Servers,
    dir: Dir,
}

impl Cluster {
    async fn up() -> Self {
        let servers = Servers::with_signers(LIFE);
        servers.kubectl(&["apply", "-f", APPROVER]);
        let cluster = Self { servers, dir: Dir::new() };
        for name in ["own", "other"] {
            cluster.admin(Method::POST, "/api/v1/nodes", json!({"metadata": {"name": name}})).await.unwrap();
        }
        cluster
    }

    async fn admin(&self, method: Method, path: &str, body: Value) -> Result<Value, String> {
        ask(&self.servers.file("admin.kubeconfig"), method, path, body).await
    }

    /// `ovnkube identity` with the account of dist/identity.
    async fn approver(&self, log: &str) -> Process {
        let kubeconfig = self.servers.account("ovnkube-approver");
        let words = [
            "identity".to_owned(),
            "--disable-webhook".to_owned(),
            format!("--k8s-kubeconfig={}", kubeconfig.display()),
            "--config-file=/dev/null".to_owned(),
        ];
        Process::start(&self.dir.file(log), words).after("approving certificates").await
    }

    fn kubelet(&self, node: &str) -> PathBuf {
        self.servers.user(&format!("system:node:{node}"), &["system:nodes"])
    }

    fn certificates(&self) -> PathBuf {
        self.dir.file("certificates")
    }

    /// The agent of the node, with the kubelet's credentials to begin with.
    fn wanted(&self, node: &str) -> Wanted {
        let access = |kubeconfig| Access { kubeconfig: Some(kubeconfig), role: "test".into(), ..Access::default() };
        let bootstrap = access(self.kubelet(node));
        // the certificate replaces the user that this kubeconfig has
        let own = access(self.servers.user("nobody", &[]));
        let own = Access { client_pem: Some(current(&self.certificates())), ..own };
        let (node, dir) = (node.to_owned(), self.certificates());
        Wanted { node, dir, duration: Duration::from_secs(600), bootstrap, own }
    }

    /// Whom the API server takes the holder of the kept certificate for.
    async fn whoami(&self) -> Result<Value, String> {
        let pem = current(&self.certificates());
        let port = self.servers.port();
        let ca = self.servers.file("ca.crt");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("https://127.0.0.1:{port}"), "certificate-authority": ca}}],
            "users": [{"name": "u", "user": {"client-certificate": pem, "client-key": pem}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        let file = self.dir.file("kept.kubeconfig");
        std::fs::write(&file, config.to_string()).unwrap();
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let review = ask(&file, Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review).await?;
        Ok(review["status"]["userInfo"].clone())
    }

    async fn requests(&self) -> Vec<Value> {
        let list = self.admin(Method::GET, REQUESTS, Value::Null).await.unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Makes a request as a user and returns its first condition: type and message.
    async fn verdict(&self, kubeconfig: &Path, subject: &str, extension: &str, usages: &[&str]) -> (String, String) {
        let request = openssl_request(&self.dir, subject, extension);
        let spec = json!({
            "request": request, "signerName": "kubernetes.io/kube-apiserver-client", "usages": usages, "expirationSeconds": 600,
        });
        let kind = "CertificateSigningRequest";
        let body = json!({"apiVersion": "certificates.k8s.io/v1", "kind": kind, "metadata": {"generateName": "t-"}, "spec": spec});
        let made = ask(kubeconfig, Method::POST, REQUESTS, body).await.unwrap();
        let path = format!("{REQUESTS}/{}", made["metadata"]["name"].as_str().unwrap());
        let condition = async || {
            let now = self.admin(Method::GET, &path, Value::Null).await.unwrap();
            now["status"]["conditions"][0].clone()
        };
        until("a verdict", async || condition().await.is_object()).await;
        let condition = condition().await;
        let text = |key: &str| condition[key].as_str().unwrap().to_owned();
        (text("type"), text("message"))
    }
}

/// Base64 of the PEM text of a request with a new key.
fn openssl_request(dir: &Dir, subject: &str, extension: &str) -> String {
    let mut command = Command::new("openssl");
    command.current_dir(dir.file("")).args(["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    command.args(["-nodes", "-keyout", "t.key", "-out", "t.csr", "-subj", subject]);
    if !extension.is_empty() {
        command.args(["-addext", extension]);
    }
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let out = Command::new("base64").arg("-w0").arg(dir.file("t.csr")).output().unwrap();
    String::from_utf8(out.stdout).unwrap()
}

fn kept(dir: &Path) -> Vec<u8> {
    std::fs::read(current(dir)).unwrap()
}

/// Gets a certificate ready, then renews it until it is aborted.
fn keep(wanted: Wanted) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut certificate = NodeCertificate::new(wanted);
        certificate.ready().await;
        match certificate.keep().await {}
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_gets_a_certificate_keeps_it_and_renews_it() {
    let cluster = Cluster::up().await;
    let dir = cluster.certificates();
    // two approvers do not harm each other
    let approvers = [cluster.approver("first").await, cluster.approver("second").await];

    let mut certificate = NodeCertificate::new(cluster.wanted("own"));
    certificate.ready().await;
    let me = cluster.whoami().await.unwrap();
    assert_eq!((&me["username"], &me["groups"][0]), (&json!("system:ovn-node:own"), &json!("system:ovn-nodes")));
    let requests = cluster.requests().await;
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["spec"]["username"], "system:node:own");
    assert_eq!(requests[0]["status"]["conditions"].as_array().unwrap().len(), 1);

    // after a restart it is used as it is
    let first = kept(&dir);
    let mut again = NodeCertificate::new(cluster.wanted("own"));
    again.ready().await;
    assert_eq!((kept(&dir), cluster.requests().await.len()), (first.clone(), 1));

    // a client that began with it goes on with its successors, which the agent asks for with its own rights
    let client = Client::connect(&cluster.wanted("own").own).await.unwrap();
    let task = keep(cluster.wanted("own"));
    until("a renewal", async || kept(&dir) != first).await;
    let renewed = cluster.requests().await;
    assert!(renewed.iter().any(|one| one["spec"]["username"] == "system:ovn-node:own"), "{renewed:?}");
    let second = kept(&dir);
    until("another renewal", async || kept(&dir) != second).await;
    assert_eq!(cluster.whoami().await.unwrap()["username"], "system:ovn-node:own");
    assert!(client.node("own").await.unwrap().is_some(), "the first certificate has expired meanwhile");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2, "the file and the link to it");
    task.abort();

    for approver in approvers {
        assert!(!approver.log().contains("denied"), "{}", approver.log());
        assert!(approver.terminate().0.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_used_are_replaced() {
    let cluster = Cluster::up().await;
    let _approver = cluster.approver("log").await;
    let file = current(&cluster.certificates());
    std::fs::create_dir(cluster.certificates()).unwrap();
    std::fs::write(&file, "garbage").unwrap();
    NodeCertificate::new(cluster.wanted("own")).ready().await;
    assert_eq!(cluster.whoami().await.unwrap()["username"], "system:ovn-node:own");
    let first = kept(&cluster.certificates());

    // of another node: the host was renamed
    NodeCertificate::new(cluster.wanted("other")).ready().await;
    assert_eq!(cluster.whoami().await.unwrap()["username"], "system:ovn-node:other");
    assert_ne!(kept(&cluster.certificates()), first);

    // expired while the agent was down
    let second = kept(&cluster.certificates());
    tokio::time::sleep(LIFE + Duration::from_secs(1)).await;
    cluster.whoami().await.unwrap_err();
    NodeCertificate::new(cluster.wanted("other")).ready().await;
    assert_ne!(kept(&cluster.certificates()), second);
    assert_eq!(cluster.whoami().await.unwrap()["username"], "system:ovn-node:other");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_agents_ask_for_is_approved() {
    let cluster = Cluster::up().await;
    let approver = cluster.approver("log").await;
    let kubelet = cluster.kubelet("own");
    let (name, organization) = ("/CN=system:ovn-node:own", "/O=system:ovn-nodes");
    let subject = format!("{organization}{name}");
    let usages = ["digital signature", "client auth"];

    let (verdict, why) = cluster.verdict(&kubelet, &subject, "", &usages).await;
    assert_eq!(verdict, "Approved", "{why}");
    let other = cluster.kubelet("other");
    let more = format!("{subject}/O=others");
    let fewer = ["client auth"];
    let many = ["digital signature", "key encipherment", "client auth"];
    let admin = cluster.servers.file("admin.kubeconfig");
    let cases: [(&Path, &str, &str, &[&str], &str); 8] = [
        (&other, &subject, "", &usages, "that of the agent of system:node:other is"),
        (&kubelet, &more, "", &usages, "O=others"),
        (&kubelet, name, "", &usages, "the subject is CN=system:ovn-node:own"),
        (&kubelet, &subject, "subjectAltName=DNS:other", &usages, "it asks for extensions"),
        (&kubelet, &subject, "", &fewer, "the usages are client auth;"),
        (&kubelet, &subject, "", &many, "key encipherment"),
        (&admin, &subject, "", &usages, "neither a kubelet nor a node agent"),
        (
            &kubelet,
            "/O=system:ovn-nodes/CN=system:ovn-node:other",
            "",
            &usages,
            "that of the agent of system:node:own is",
        ),
    ];
    for (user, subject, extension, usages, why) in cases {
        let (verdict, said) = cluster.verdict(user, subject, extension, usages).await;
        assert!(
            verdict == "Denied" && said.contains(why),
            "{subject} {extension} {usages:?}: {verdict}: {said}, not {why}"
        );
    }
    assert!(approver.log().contains("denied"));

    // an agent that is denied says why: this one has another node's kubelet
    let wanted = Wanted { bootstrap: cluster.wanted("other").bootstrap, ..cluster.wanted("own") };
    let task = keep(wanted);
    let denied = async || {
        let all = cluster.requests().await;
        let own = |one: &&Value| one["metadata"]["name"].as_str().unwrap().starts_with("csr-ovn-node-");
        all.iter().filter(own).filter(|one| one["status"]["conditions"][0]["type"] == "Denied").count()
    };
    until("two attempts", async || denied().await >= 2).await;
    task.abort();
    assert!(!current(&cluster.certificates()).exists());
}

/// The binary asks before it does anything else.
#[tokio::test(flavor = "multi_thread")]
async fn the_node_agent_waits_for_its_certificate() {
    let cluster = Cluster::up().await;
    let config = cluster.dir.file("agent.conf");
    let dir = cluster.dir.file("none");
    std::fs::write(&config, format!("[ovspaths]\nrun-dir={0}\n[cni]\nconf-dir={0}\n", dir.display())).unwrap();
    let words = [
        "--init-node=own".to_owned(),
        format!("--config-file={}", config.display()),
        format!("--bootstrap-kubeconfig={}", cluster.kubelet("own").display()),
        format!("--cert-dir={}", cluster.certificates().display()),
        format!("--k8s-apiserver=https://127.0.0.1:{}", cluster.servers.port()),
        format!("--k8s-cacert={}", cluster.servers.file("ca.crt").display()),
        "--sb-address=tcp:127.0.0.1:1".to_owned(),
    ];
    let start = || Process::apart(&cluster.dir.file("agent"), words.clone());
    let agent = start().after("asked for a certificate").await;
    assert_eq!(cluster.requests().await.len(), 1);
    // nobody approves yet
    let (status, _) = agent.terminate();
    assert!(status.success() && !current(&cluster.certificates()).exists());

    let _approver = cluster.approver("approver").await;
    let agent = start().after("have a new certificate").await.after("Open_vSwitch").await;
    assert_eq!(cluster.whoami().await.unwrap()["username"], "system:ovn-node:own");
    assert!(!agent.log().contains("forbidden"), "{}", agent.log());
    let (status, _) = agent.terminate();
    assert!(status.success());
    let agent = start().after("using the certificate that was kept").await.after("Open_vSwitch").await;
    drop(agent);
}
