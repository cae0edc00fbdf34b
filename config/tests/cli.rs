//! What users see: whole runs, one snapshot per behaviour under tests/cli. `INSTA_UPDATE=always`
//! renews them.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are not in test functions

use std::fs;
use std::path::{Path, PathBuf};

use ovnkube_config::Places;

#[path = "../examples/show.rs"]
#[allow(dead_code)]
mod show;

/// Runs with a default file at ROOT/ovn_k8s.conf and prints exit code, output and errors.
fn run(root: &Path, args: &str, env: &[(&str, &str)]) -> String {
    let places = Places { config_file: root.join("ovn_k8s.conf"), service_account: root.join("sa") };
    let in_root = |text: &str| text.replace("ROOT", &root.display().to_string());
    let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code =
        show::show(args.split_whitespace().map(|arg| in_root(arg).into()), env, &places, &mut out, &mut err).unwrap();
    let (out, err) = (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap());
    let text = format!("$ ovnkube {args}\nexit {code}\n--- output\n{out}--- errors\n{err}");
    text.replace(&root.display().to_string(), "ROOT")
}

/// A fresh directory with a kubeconfig, a certificate's files and odd things in the place of files.
fn root(file: Option<&str>) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{:?}", std::thread::current().id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("directory")).unwrap();
    for name in ["kubeconfig", "key.pem", "cert.pem", "ca.pem"] {
        fs::write(dir.join(name), "content").unwrap();
    }
    fs::write(dir.join("empty"), "").unwrap();
    if let Some(text) = file {
        fs::write(dir.join("ovn_k8s.conf"), text).unwrap();
    }
    dir
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "../../tests/cli", prepend_module_to_snapshot => false, omit_expression => true
    }, { insta::assert_snapshot!(name, text) });
}

/// The example file of the original documentation, with one flag and one variable on top.
const FILE: &str = "\
[default]
mtu=1500
conntrack-zone=64321

[kubernetes]
apiserver=https://1.2.3.4:6443
token=TG9yZW0gaXBzdW0gZG9sb3Igc2l0IGFtZXQK
cacert=/etc/kubernetes/ca.crt

[logging]
loglevel=5
logfile=/var/log/ovnkube.log

[cni]
conf-dir=/etc/cni/net.d
plugin=ovn-k8s-cni-overlay

[ovnnorth]
address=ssl:1.2.3.4:6641
client-privkey=/path/to/private.key
client-cert=/path/to/client.crt
client-cacert=/path/to/client-ca.crt
server-privkey=/path/to/private.key
server-cert=/path/to/server.crt
server-cacert=path/to/server-ca.crt
";

#[test]
fn help() {
    snapshot("help", &run(&root(None), "--help", &[]));
}

/// Each command has a page of its own, whichever way it is asked for; none is a list of all flags.
#[test]
fn help_of_commands() {
    for word in [
        "config",
        "db",
        "endpoints",
        "event",
        "ic",
        "identity",
        "install-cni",
        "plan",
        "preflight",
        "readiness-probe",
        "replay",
        "why",
    ] {
        let page = |args: &str| run(&root(None), args, &[]).split_once('\n').unwrap().1.to_owned();
        let text = page(&format!("{word} --help"));
        for other in [format!("help {word}"), format!("-h {word}"), format!("{word} --mtu=9000 -help")] {
            assert_eq!(text, page(&other), "{other}");
        }
        assert!(text.lines().count() < 60 && text.contains("\nExamples:\n"), "{text}");
        snapshot(&format!("help-{word}"), &text);
    }
    for args in ["whi --help", "help whi"] {
        let text = run(&root(None), args, &[]);
        assert!(
            text.contains("exit 2")
                && text.contains(
                    "did you mean why? known commands: config, db, endpoints, event, ic, identity, install-cni, plan, preflight, readiness-probe, replay, why"
                ),
            "{text}"
        );
    }
    assert_eq!(
        run(&root(None), "-help", &[]).lines().skip(1).collect::<Vec<_>>(),
        run(&root(None), "help", &[]).lines().skip(1).collect::<Vec<_>>()
    );
}

#[test]
fn config_as_text() {
    snapshot("config-text", &run(&root(Some(FILE)), "config -mtu=1400", &[("OVN_HOST_NETWORK_NAMESPACE", "host")]));
}

#[test]
fn config_as_json() {
    snapshot("config-json", &run(&root(Some(FILE)), "config -o json -mtu=1400", &[("K8S_TOKEN", "env")]));
}

#[test]
fn a_run() {
    let args = "-init-master=n1 -init-node=n1 -k8s-kubeconfig=ROOT/kubeconfig -nb-address=ssl:[fd00::1]:6641,ssl:db.example:6641 \
                -nb-client-privkey=ROOT/key.pem -nb-client-cert=ROOT/cert.pem -nb-client-cacert=ROOT/ca.pem \
                -sb-address=tcp://10.0.0.1:6642 -nodeport -init-gateways -enable-egress-ip -ha -cluster-subnet=10.244.0.0/16";
    snapshot("run", &run(&root(None), args, &[]));
}

/// Mistakes: each ends with an exit code other than 0 and one line that names key, value and remedy.
#[test]
fn mistakes() {
    let master = "-init-master=n1 -k8s-kubeconfig=ROOT/kubeconfig";
    let tls = "-nb-address=ssl:10.0.0.1:6641";
    let cases = [
        ("flag-misspelt", "-nb-adress=tcp:10.0.0.1:6641 -init-node n1".to_owned()),
        ("flag-unknown", "-frobnicate".to_owned()),
        ("flag-of-a-role-that-masters-have", "-init-ic-controller=m1".to_owned()),
        ("flag-without-value", "-init-node=n1 -mtu".to_owned()),
        ("bool-with-word", "-nodeport true -init-node=n1".to_owned()),
        ("bool-wrong", "config -nodeport=maybe".to_owned()),
        ("command-unknown", "confg".to_owned()),
        ("command-two-words", "config all".to_owned()),
        ("output-unknown", "config -o yaml".to_owned()),
        ("plan-of-no-node", "plan".to_owned()),
        ("node-without-plan", "-init-node=n1 -node=n1".to_owned()),
        ("endpoints-of-what", "endpoints".to_owned()),
        ("endpoints-address", "endpoints publish 10.0.0 6641 6642".to_owned()),
        ("endpoints-port", "endpoints publish 10.0.0.1 6641 0".to_owned()),
        ("event-about-nothing", "event".to_owned()),
        ("event-about-no-pod", "event pod web u1 n1 why".to_owned()),
        ("event-without-message", "event node n1".to_owned()),
        ("event-with-unknown-reason", "event node n1 why Because".to_owned()),
        ("probe-of-nothing", "readiness-probe".to_owned()),
        ("probe-unknown", "readiness-probe -t ovn-nortd".to_owned()),
        ("probe-two", "readiness-probe -t ovn-northd ovs-daemons".to_owned()),
        ("target-without-probe", "config -t ovn-northd".to_owned()),
        ("identity-without-certificate", "identity".to_owned()),
        ("identity-host", "identity -webhook-cert-dir=ROOT -webhook-host=10.0.0".to_owned()),
        ("identity-port", "identity -webhook-cert-dir=ROOT -webhook-port=99999".to_owned()),
        ("identity-nothing", "identity -disable-webhook -disable-approver".to_owned()),
        ("identity-no-bool", "identity -disable-webhook=maybe".to_owned()),
        ("webhook-without-identity", "config -webhook-port=9443".to_owned()),
        ("bootstrap-without-directory", "-init-node=n1 -bootstrap-kubeconfig=ROOT/kubeconfig".to_owned()),
        (
            "bootstrap-missing",
            "-init-node=n1 -k8s-kubeconfig=ROOT/kubeconfig -bootstrap-kubeconfig=ROOT/none -cert-dir=ROOT/certs"
                .to_owned(),
        ),
        ("certificate-over-http", "-init-node=n1 -cert-dir=ROOT/certs -k8s-apiserver=http://10.0.0.1:8080".to_owned()),
        ("certificate-too-short", format!("{master} -cert-duration=9m59s")),
        ("certificate-too-long", format!("{master} -cert-duration=8760h1s")),
        ("cidr-wrong", format!("{master} -cluster-subnets=10.0.0.0/33")),
        ("cidr-without-prefix", format!("{master} -cluster-subnets=10.0.0.0")),
        ("cidr-empty", format!("{master} -cluster-subnets=")),
        ("hostprefix-wrong", format!("{master} -cluster-subnets=10.0.0.0/16/x")),
        ("hostprefix-too-wide", format!("{master} -cluster-subnets=10.0.0.0/24")),
        ("hostprefix-too-narrow", format!("{master} -cluster-subnets=10.0.0.0/24/30")),
        ("hostprefix-ipv6", format!("{master} -cluster-subnets=fd01::/48/80")),
        ("cluster-overlaps-itself", format!("{master} -cluster-subnets=10.0.0.0/8/24,10.1.0.0/16")),
        ("cluster-overlaps-service", format!("{master} -cluster-subnets=172.16.0.0/12/24")),
        ("cluster-overlaps-join", format!("{master} -cluster-subnets=100.64.0.0/10/24")),
        ("cluster-overlaps-masquerade", format!("{master} -cluster-subnets=169.254.0.0/16/24")),
        ("cluster-overlaps-transit", format!("{master} -enable-interconnect -cluster-subnets=100.88.0.0/14/24")),
        ("service-two-of-a-family", format!("{master} -k8s-service-cidrs=10.96.0.0/16,10.97.0.0/16")),
        ("service-family-extra", format!("{master} -k8s-service-cidrs=10.96.0.0/16,fd02::/112")),
        ("join-family", format!("{master} -gateway-v4-join-subnet=fd00::/64")),
        ("join-small", format!("{master} -gateway-v4-join-subnet=100.64.0.0/30")),
        ("mtu-zero", format!("{master} -mtu=0")),
        ("mtu-ipv6", format!("{master} -mtu=1279 -cluster-subnets=fd01::/48 -k8s-service-cidrs=fd02::/112")),
        ("mtu-word", format!("{master} -mtu=big")),
        ("mtu-routable-more", format!("{master} -mtu=1400 -routable-mtu=1401")),
        (
            "mtu-routable-ipv6",
            format!("{master} -routable-mtu=1279 -cluster-subnets=fd01::/48 -k8s-service-cidrs=fd02::/112"),
        ),
        ("loglevel-9", format!("{master} -loglevel=9")),
        ("encap-port-zero", format!("{master} -encap-port=0")),
        ("encap-type", format!("{master} -encap-type=stt")),
        ("encap-ip", format!("{master} -encap-ip=10.0.0.256")),
        ("gateway-mode", format!("{master} -gateway-mode=bridge")),
        ("metrics-address", format!("{master} -metrics-bind-address=9409")),
        ("duration", format!("{master} -db-txn-timeout=100")),
        ("server-key-alone", format!("{master} -nb-server-privkey=/etc/key.pem")),
        ("server-without-authority", format!("{master} -sb-server-privkey=/k.pem -sb-server-cert=/c.pem")),
        ("timer-long", format!("{master} -nb-raft-election-timer=601")),
        ("lease-order", format!("{master} -ha-election-lease-duration=1")),
        ("lease-renew", format!("{master} -ha-election-lease-duration=9 -ha-election-renew-deadline=9")),
        ("lease-close", format!("{master} -ha-election-lease-duration=9 -ha-election-renew-deadline=8")),
        ("lease-close-long", format!("{master} -ha-election-lease-duration=600 -ha-election-renew-deadline=550")),
        ("lease-retry-close", format!("{master} -ha-election-renew-deadline=6 -ha-election-retry-period=5")),
        ("selector", format!("{master} -no-hostsubnet-nodes=a=b=c")),
        ("lease-retry", format!("{master} -ha-election-retry-period=3600")),
        ("cni-plugin-path", format!("{master} -cni-plugin=../x")),
        ("cni-dir-relative", format!("{master} -cni-conf-dir=net.d")),
        ("zone-blank", format!("{master} -zone=")),
        ("ssl-without-certificate", format!("{master} {tls}")),
        (
            "ssl-missing-certificate",
            format!("{master} {tls} -nb-client-privkey=ROOT/key.pem -nb-client-cert=ROOT/no.pem"),
        ),
        (
            "ssl-missing-authority",
            format!(
                "{master} {tls} -nb-client-privkey=ROOT/key.pem -nb-client-cert=ROOT/cert.pem -nb-client-cacert=ROOT/no.pem"
            ),
        ),
        ("ssl-empty-key", format!("{master} {tls} -nb-client-privkey=")),
        ("certificate-with-tcp", format!("{master} -sb-address=tcp:10.0.0.1:6642 -sb-client-cert=ROOT/cert.pem")),
        ("certificate-with-socket", format!("{master} -nb-client-cacert=ROOT/ca.pem")),
        ("address-mixed", format!("{master} -nb-address=tcp:10.0.0.1:6641,ssl:10.0.0.2:6641")),
        ("address-no-scheme", format!("{master} -nb-address=10.0.0.1:6641")),
        ("address-scheme", format!("{master} -nb-address=http://10.0.0.1:6641")),
        ("address-no-port", format!("{master} -nb-address=tcp:10.0.0.1")),
        ("address-port", format!("{master} -nb-address=tcp:10.0.0.1:66410")),
        ("address-ipv4", format!("{master} -nb-address=tcp:10.0.0.300:6641")),
        ("address-ipv6-bare", format!("{master} -nb-address=tcp:fd00::1:6641")),
        ("address-unix-relative", format!("{master} -nb-address=unix:nb.sock")),
        ("addresses-equal", format!("{master} -metrics-bind-address=:9409 -healthz-bind-address=:9409")),
        ("mode-none", "-mtu=1400".to_owned()),
        ("mode-manager-and-node", "-init-cluster-manager=n1 -init-node=n1".to_owned()),
        ("mode-names-differ", "-init-master=n1 -init-node=n2".to_owned()),
        ("mode-names-differ-parts", "-init-cluster-manager=n1 -init-ovnkube-controller=n2".to_owned()),
        ("mode-cleanup-and-node", "-cleanup-node=n1 -init-node=n1".to_owned()),
        ("mode-cleanup-and-remove", "-cleanup-node=n1 -remove-node=n1".to_owned()),
        ("mode-empty-name", "-init-node=".to_owned()),
        ("mode-node-name", "-init-node=Node_1".to_owned()),
        ("kubeconfig-missing", "-init-master=n1 -k8s-kubeconfig=ROOT/nowhere".to_owned()),
        ("kubeconfig-directory", "-init-master=n1 -k8s-kubeconfig=ROOT/directory".to_owned()),
        ("kubeconfig-empty", "-init-master=n1 -k8s-kubeconfig=ROOT/empty".to_owned()),
        ("apiserver-no-scheme", "-init-master=n1 -k8s-apiserver=10.0.0.1:6443".to_owned()),
        ("apiserver-no-authority", "-init-master=n1 -k8s-apiserver=https://10.0.0.1:6443 -k8s-token=x".to_owned()),
        (
            "apiserver-no-token",
            "-init-master=n1 -k8s-apiserver=https://10.0.0.1:6443 -k8s-cacert=ROOT/ca.pem".to_owned(),
        ),
        ("cacert-missing", "-init-master=n1 -k8s-cacert=ROOT/nowhere".to_owned()),
        ("token-file-missing", "-init-master=n1 -k8s-token-file=ROOT/nowhere".to_owned()),
        ("file-missing", "-init-master=n1 -config-file=ROOT/nowhere.conf".to_owned()),
    ];
    let mut all = Vec::new();
    for (name, args) in cases {
        let text = run(&root(None), &args, &[]);
        let (head, errors) = text.split_once("--- errors\n").unwrap();
        assert!(!head.contains("exit 0\n"), "{name}: {text}");
        let lines: Vec<&str> = errors.lines().filter(|line| line.starts_with("ovnkube: ")).collect();
        assert!(lines.len() == 1 && errors.lines().count() == 1, "{name}: {text}");
        all.push(format!("# {name}\n{text}"));
    }
    snapshot("mistakes", &all.join("\n"));
}

#[test]
fn mistakes_in_the_file() {
    let mut all = Vec::new();
    for file in [
        "[default]\nmtu\n",
        "[default]\nmtu = 1500 bytes\n",
        "[default]\nmtu = 0\n",
        "[gateway]\nnodeport = t\n",
        "[default\nmtu=1\n",
        "mtu=1500\n",
        "[logging]\nlogfile = c:\\log\n",
        "[kubernetes]\ntoken = \"open\n",
    ] {
        let text = run(&root(Some(file)), "config", &[]);
        assert!(text.contains("exit 1\n--- output\n--- errors\n"), "{text}");
        all.push(format!("{file}{text}"));
    }
    snapshot("mistakes-in-file", &all.join("\n"));
}

/// A pipe in the place of a kubeconfig must not make ovnkube wait for a writer.
#[test]
fn a_pipe_is_not_a_kubeconfig() {
    let root = root(None);
    let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
    assert!(made.success());
    let text = run(&root, "-init-node=n1 -k8s-kubeconfig=ROOT/pipe", &[]);
    assert!(text.contains("exit 1") && text.contains("not a regular file"), "{text}");
}

/// The manager needs no database, so wrong certificates do not keep it from starting.
#[test]
fn the_cluster_manager_reads_no_certificates() {
    let args = "-init-cluster-manager=n1 -k8s-kubeconfig=ROOT/kubeconfig -nb-address=ssl:10.0.0.1:6641";
    assert!(run(&root(None), args, &[]).contains("exit 0"));
}

/// Nodes do not read the certificates of the northbound database, even if their file names them.
#[test]
fn a_node_reads_the_southbound_certificates_alone() {
    let ssl = "-nb-address=ssl:10.0.0.1:6641 -sb-address=ssl:10.0.0.1:6642";
    let args = format!("-init-node=n1 -k8s-kubeconfig=ROOT/kubeconfig {ssl}");
    let text = run(&root(None), &args, &[]);
    assert!(text.contains("[ovnsouth] client-privkey"), "{text}");
    let sb = "-sb-client-privkey=ROOT/key.pem -sb-client-cert=ROOT/cert.pem -sb-client-cacert=ROOT/ca.pem";
    let text = run(&root(None), &format!("{args} {sb}"), &[]);
    assert!(text.contains("exit 0"), "{text}");
}
