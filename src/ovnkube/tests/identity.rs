//! `ovnkube identity` as the webhook of a real API server, and the policies that it replaces: both give the same answers.

use std::path::{Path, PathBuf};
use std::process::Command;

use http::Method;
use kube::config::{KubeConfigOptions, Kubeconfig};
use ovnkube_tests::nb::until;
use ovnkube_tests::servers::Servers;
use serde_json::{Value, json};

use crate::lab::Dir;
use crate::process::{Process, ovnkube};

#[path = "../../../tests/identity/cases.rs"]
#[allow(unreachable_pub, reason = "shared with the tests of the rules")]
mod cases;

use cases::Case;

const POLICIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/yaml/admission.yaml");
const WEBHOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/identity/webhook.yaml");

/// An API server of its own: no other test could write as a node meanwhile.
struct Api {
    servers: Servers,
}

impl Api {
    async fn up() -> Self {
        let api = Self { servers: Servers::up() };
        // so that nothing but admission refuses what a case is about
        let all =
            ["--clusterrole=cluster-admin", "--serviceaccount=ovn-kubernetes:ovn-node", "--group=system:ovn-nodes"];
        api.servers.kubectl(&[&["create", "clusterrolebinding", "agents"], &all[..]].concat());
        for name in ["own", "other"] {
            api.admin(Method::POST, "/api/v1/nodes", json!({"metadata": {"name": name}})).await.unwrap();
        }
        let account = json!({"metadata": {"name": "default"}});
        let _ = api.admin(Method::POST, "/api/v1/namespaces/default/serviceaccounts", account).await;
        api
    }

    fn kubeconfig(&self, user: &str) -> PathBuf {
        match user {
            "agent" => self.servers.agent(Some("own")),
            "agent-of-nobody" => self.servers.agent(None),
            "certificate" => self.servers.user("system:ovn-node:own", &["system:ovn-nodes"]),
            "certificate-of-nobody" => self.servers.user("somebody", &["system:ovn-nodes"]),
            "kubelet" => self.servers.user("system:node:own", &["system:nodes"]),
            "kubelet-new" => self.servers.user("system:node:new", &["system:nodes"]),
            "master" => self.servers.master(),
            _ => panic!("{user} is no user"),
        }
    }

    async fn admin(&self, method: Method, path: &str, body: Value) -> Result<Value, String> {
        ask(&self.servers.file("admin.kubeconfig"), method, path, body).await
    }

    /// Brings the case's object into its state before, whatever earlier cases left.
    async fn prepare(&self, case: &Case) {
        let (list, _, name) = case.place();
        let path = format!("{}/{name}", folder(list));
        if list == "nodes" && case.verb != "create" {
            // a token is bound to a Node that is not created again
            let nothing = json!({"metadata": {"annotations": null, "labels": null, "finalizers": null}, "spec": {"unschedulable": null}});
            self.admin(Method::PATCH, &path, nothing).await.unwrap();
            self.admin(Method::PATCH, &path, json!({"metadata": case.before()["metadata"]})).await.unwrap();
            return;
        }
        let _ = self.admin(Method::DELETE, &path, json!({"gracePeriodSeconds": 0})).await;
        if case.verb != "create" {
            self.admin(Method::POST, folder(list), case.before()).await.unwrap();
        }
    }

    /// What the API server says to the request of a case: nothing, if it does it.
    async fn judge(&self, case: &Case) -> Option<String> {
        self.prepare(case).await;
        let (list, sub_resource, name) = case.place();
        let path = format!("{}/{name}/{sub_resource}", folder(list));
        let (method, path, body) = match &*case.verb {
            "create" => (Method::POST, folder(list), case.after()),
            "update" => (Method::PATCH, path.trim_end_matches('/'), case.patch.clone()),
            _ => (Method::DELETE, path.trim_end_matches('/'), Value::Null),
        };
        ask(&self.kubeconfig(&case.user), method, path, body).await.err()
    }

    /// Every case, once the last of those that are denied is denied: what restricts nodes takes effect after a moment.
    async fn judge_all(&self, cases: &[Case]) -> Vec<String> {
        let as_expected = |case: &Case, said: &Option<String>| match (&case.denied, said) {
            (None, None) => true,
            (Some(why), Some(said)) => said.contains(why.as_str()),
            _ => false,
        };
        for list in ["nodes", "pods"] {
            let denied = cases.iter().rfind(|case| case.place().0 == list && case.denied.is_some()).unwrap();
            until("a denial", async || self.judge(denied).await.is_some()).await;
        }
        let mut faults = Vec::new();
        for case in cases {
            let said = self.judge(case).await;
            if !as_expected(case, &said) {
                faults.push(format!("{} of {} {}: {said:?}, not {:?}", case.what, case.user, case.verb, case.denied));
            }
        }
        faults
    }
}

fn folder(list: &str) -> &'static str {
    match list {
        "nodes" => "/api/v1/nodes",
        "pods" => "/api/v1/namespaces/default/pods",
        _ => "/api/v1/namespaces/default/events",
    }
}

/// Sends a request with the credentials of a kubeconfig.
pub(crate) async fn ask(kubeconfig: &Path, method: Method, path: &str, body: Value) -> Result<Value, String> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    client.request(request.body(body).unwrap()).await.map_err(|error| error.to_string())
}

/// Makes `tls.crt` and `tls.key` for localhost; returns the certificate in base64.
fn certificate(dir: &Path) -> String {
    let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -days 2 \
                -addext subjectAltName=DNS:localhost -keyout tls.key -out tls.crt";
    let run = |program: &str, args: &str| {
        let out = Command::new(program).current_dir(dir).args(args.split_whitespace()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    run("openssl", args);
    run("base64", "-w0 tls.crt")
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_and_webhook_give_the_same_answers() {
    let api = Api::up().await;
    let dir = Dir::new();
    let all = cases::all();
    assert_eq!(api.judge_all(&all).await, Vec::<String>::new(), "with the policies");

    api.servers.kubectl(&["delete", "-f", POLICIES]);
    let denied = all.iter().rfind(|case| case.denied.is_some()).unwrap();
    until("nothing restricts nodes", async || api.judge(denied).await.is_none()).await;
    let bundle = certificate(&dir.file(""));
    let words = [
        "identity".to_owned(),
        format!("--webhook-cert-dir={}", dir.file("").display()),
        "--webhook-port=0".to_owned(),
        "--disable-approver".to_owned(),
        "--config-file=/dev/null".to_owned(),
    ];
    let webhook = Process::start(&dir.file("log"), words).after("the admission webhook is served").await;
    let port = webhook.log().split("127.0.0.1:").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let text = std::fs::read_to_string(WEBHOOK).unwrap();
    let text = text
        .replace("localhost:9444", &format!("localhost:{port}"))
        .replace("caBundle: ''", &format!("caBundle: {bundle}"));
    let file = dir.file("webhook.yaml");
    std::fs::write(&file, text).unwrap();
    api.servers.kubectl(&["apply", "-f", &file.display().to_string()]);
    assert_eq!(api.judge_all(&all).await, Vec::<String>::new(), "with the webhook");

    // the API server refuses what it cannot ask about, and nothing else
    let (status, _) = webhook.terminate();
    assert!(status.success());
    let of = |name: &str| all.iter().find(|case| case.what == name && case.user == "kubelet").unwrap();
    assert!(api.judge(of("an agent's")).await.unwrap().contains("failed calling webhook"));
    assert_eq!(api.judge(of("its status")).await, None, "a heartbeat");
    assert_eq!(api.judge(of("the status of a pod")).await, None);
}

#[test]
fn without_a_certificate_it_says_what_to_do() {
    let run = |words: &[&str]| {
        let out = ovnkube(words).output().unwrap();
        (out.status.code().unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let (code, said) =
        run(&["identity", "--webhook-cert-dir=/nowhere", "--config-file=/dev/null", "--disable-approver"]);
    assert!(code == 1 && said.contains("cannot read /nowhere/tls.crt: "), "{said}");
    let (code, said) = run(&["identity"]);
    assert!(code == 2 && said.contains("name the directory of tls.crt and tls.key with --webhook-cert-dir"), "{said}");
}
