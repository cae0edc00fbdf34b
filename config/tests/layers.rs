//! Which layer wins, how each spells its values, and what is checked.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are not in test functions

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use ovnkube_config::{Authority, Command, GatewayMode, KubeAccess, Loaded, Places, Token, load};

/// A directory with a default file and a service account, gone with the test.
struct Root(PathBuf);

thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

impl Root {
    fn new(file: &str) -> Self {
        let number = COUNT.replace(COUNT.get() + 1);
        let name = format!("layers-{:?}-{number}", std::thread::current().id());
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("sa")).unwrap();
        fs::write(dir.join("ovn_k8s.conf"), file).unwrap();
        Self(dir)
    }

    fn with_service_account(self) -> Self {
        fs::write(self.0.join("sa/token"), "sa-token\n").unwrap();
        fs::write(self.0.join("sa/ca.crt"), "pem").unwrap();
        self
    }

    fn places(&self) -> Places {
        Places { config_file: self.0.join("ovn_k8s.conf"), service_account: self.0.join("sa") }
    }

    fn try_load(&self, args: &str, env: &[(&str, &str)]) -> Result<Loaded, String> {
        let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        load(args.split_whitespace().map(Into::into), env, &self.places()).map_err(|error| error.to_string())
    }

    fn load(&self, args: &str, env: &[(&str, &str)]) -> Loaded {
        self.try_load(args, env).unwrap()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `value source` of a key.
fn of(loaded: &Loaded, section: &str, key: &str) -> String {
    let one = loaded.sources.iter().find(|one| one.setting.section == section && one.setting.name() == key).unwrap();
    format!("{} {}", one.shown(), one.source.word())
}

fn mtu(file: &str, args: &str) -> String {
    of(&Root::new(file).load(&format!("config {args}"), &[]), "default", "mtu")
}

#[test]
fn flag_over_file_over_default() {
    assert_eq!(mtu("", ""), "1400 default");
    assert_eq!(mtu("[default]\nmtu=1500", ""), "1500 file");
    assert_eq!(mtu("[default]\nmtu=1500", "-mtu=1600"), "1600 flag");
}

#[test]
fn flag_wins_even_when_it_is_the_default() {
    assert_eq!(mtu("[default]\nmtu=9000", "-mtu=1400"), "1400 flag");
}

#[test]
fn file_over_environment_over_service_account() {
    let address = |file: &str, env: &[(&str, &str)]| {
        of(&Root::new(file).with_service_account().load("config", env), "kubernetes", "apiserver")
    };
    let in_pod = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("KUBERNETES_SERVICE_PORT", "443")];
    let with_env = [in_pod[0], in_pod[1], ("K8S_APISERVER", "https://env:1")];
    assert_eq!(address("", &[]), "http://localhost:8443 default");
    assert_eq!(address("", &in_pod), "https://10.0.0.1:443 serviceaccount");
    assert_eq!(address("", &with_env), "https://env:1 env");
    assert_eq!(address("[kubernetes]\napiserver=https://file:1", &with_env), "https://file:1 file");
}

#[test]
fn in_cluster_address_needs_the_service_account() {
    let env = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("KUBERNETES_SERVICE_PORT", "443")];
    assert_eq!(of(&Root::new("").load("config", &env), "kubernetes", "apiserver"), "http://localhost:8443 default");
}

#[test]
fn empty_environment_is_not_set() {
    let loaded = Root::new("").with_service_account().load("config", &[("K8S_TOKEN", ""), ("K8S_CACERT", "")]);
    assert_eq!(of(&loaded, "kubernetes", "token"), "*** serviceaccount");
    assert!(of(&loaded, "kubernetes", "cacert").ends_with("/sa/ca.crt serviceaccount"));
}

#[test]
fn every_variable_is_read() {
    let env = [
        ("KUBECONFIG", "kubernetes", "kubeconfig"),
        ("BOOTSTRAP_KUBECONFIG", "kubernetes", "bootstrap-kubeconfig"),
        ("CERT_DIR", "kubernetes", "cert-dir"),
        ("K8S_CACERT", "kubernetes", "cacert"),
        ("K8S_CACERT_DATA", "kubernetes", "cacert-data"),
        ("K8S_TOKEN_FILE", "kubernetes", "tokenFile"),
        ("OVN_HOST_NETWORK_NAMESPACE", "kubernetes", "host-network-namespace"),
    ];
    for (name, section, key) in env {
        assert_eq!(of(&Root::new("").load("config", &[(name, "/x")]), section, key), "/x env");
    }
    assert_eq!(of(&Root::new("").load("config", &[("K8S_TOKEN", "x")]), "kubernetes", "token"), "*** env");
}

#[test]
fn missing_default_file_is_fine_missing_named_file_is_not() {
    let root = Root::new("");
    fs::remove_file(root.places().config_file).unwrap();
    assert_eq!(of(&root.load("config", &[]), "default", "mtu"), "1400 default");
    let error = root.try_load("config -config-file=/nonexistent/x.conf", &[]).unwrap_err();
    assert!(error.contains("/nonexistent/x.conf") && error.contains("--config-file"), "{error}");
    let error = root.try_load("config -config-file=/tmp", &[]).unwrap_err();
    assert!(error.contains("\"/tmp\""), "{error}");
}

#[test]
fn named_file_takes_the_place_of_the_default_one() {
    let root = Root::new("[default]\nmtu=1500\n");
    let other = root.0.join("other.conf");
    fs::write(&other, "[default]\nconntrack-zone=7\n").unwrap();
    let loaded = root.load(&format!("config -config-file {}", other.display()), &[]);
    assert_eq!(of(&loaded, "default", "mtu"), "1400 default");
    assert_eq!(of(&loaded, "default", "conntrack-zone"), "7 file");
}

#[test]
fn syntax_error_names_file_and_line() {
    let error = Root::new("[default]\nmtu 1500\n").try_load("config", &[]).unwrap_err();
    assert!(error.contains("ovn_k8s.conf:2: "), "{error}");
}

#[test]
fn unknown_names_are_warned_about_with_the_nearest() {
    let warnings =
        Root::new("[default]\nmtuu=1\n[defautl]\nmtu=1\n[gateway \"x\"]\nmode=local\n").load("config", &[]).warnings;
    assert!(warnings[0].contains("ovn_k8s.conf:2: [default] mtuu") && warnings[0].contains("did you mean mtu?"));
    assert!(warnings[1].contains("[defautl] mtu") && warnings[1].contains("did you mean default?"));
    assert!(warnings[2].contains("subsections"));
    assert_eq!(warnings.len(), 3);
}

#[test]
fn file_names_ignore_case_and_sections_go_on() {
    let loaded =
        Root::new("[Kubernetes]\nTOKENFILE=/t\n[LOGGING]\nLogLevel=5\n[kubernetes]\ncacert=/c\n").load("config", &[]);
    assert_eq!(of(&loaded, "kubernetes", "tokenFile"), "/t file");
    assert_eq!(of(&loaded, "kubernetes", "cacert"), "/c file");
    assert_eq!(loaded.settings.logging.loglevel, 5);
}

#[test]
fn old_key_loses_to_the_new_one() {
    let loaded = Root::new("[kubernetes]\nservice-cidrs=10.1.0.0/16\nservice-cidr=10.2.0.0/16\n").load("config", &[]);
    assert_eq!(of(&loaded, "kubernetes", "service-cidrs"), "10.1.0.0/16 file");
}

#[test]
fn go_flag_forms() {
    let root = Root::new("");
    for args in
        ["-mtu=1500", "--mtu=1500", "-mtu 1500", "--mtu 1500", "-mtu 1300 -mtu=1500", "-mtu 0x5dc", "-mtu=02734"]
    {
        assert_eq!(of(&root.load(&format!("config {args}"), &[]), "default", "mtu"), "1500 flag", "{args}");
        assert_eq!(of(&root.load(&format!("{args} config"), &[]), "default", "mtu"), "1500 flag", "{args}");
    }
    for (args, want) in [
        ("-nodeport", true),
        ("--nodeport=T", true),
        ("-nodeport=1", true),
        ("-nodeport=True", true),
        ("-nodeport -nodeport=f", false),
        ("-nodeport=FALSE", false),
        ("-nodeport=0", false),
    ] {
        assert_eq!(root.load(&format!("config {args}"), &[]).settings.gateway.nodeport, want, "{args}");
    }
}

#[test]
fn go_refuses_and_so_do_we() {
    let root = Root::new("");
    for args in ["-nodeport=yes", "-nodeport=", "-nodeport true", "-mtu=", "-mtu", "-mtu=1400x", "-mtu=09"] {
        assert!(root.try_load(&format!("config {args}"), &[]).is_err(), "{args}");
    }
}

#[test]
fn word_after_a_flag_is_its_value_whatever_it_looks_like() {
    let loaded = Root::new("").load("config -logfile -nodeport -k8s-token --x=y -no-hostsubnet-nodes config", &[]);
    assert_eq!(of(&loaded, "logging", "logfile"), "-nodeport flag");
    assert_eq!(loaded.settings.kubernetes.token.expose(), "--x=y");
    assert_eq!(of(&loaded, "kubernetes", "no-hostsubnet-nodes"), "config flag");
    assert!(!loaded.settings.gateway.nodeport);
}

#[test]
fn empty_values_are_values() {
    let root = Root::new("[ovnnorth]\naddress=tcp:1.1.1.1:6641\n[kubernetes]\nservice-cidrs=10.0.0.0/16\n");
    let loaded = root.load("config -nb-address= -k8s-service-cidr=", &[]);
    assert_eq!(loaded.settings.nb.address(), "unix:/var/run/ovn/ovnnb_db.sock,unix:/var/run/openvswitch/ovnnb_db.sock");
    assert_eq!(loaded.settings.kubernetes.service_cidrs, []);
    assert!(loaded.warnings.iter().any(|warning| warning.contains("services have no range")));
}

#[test]
fn the_documented_command_lines_start() {
    let nb = "tcp://10.0.0.1:6641,tcp://10.0.0.2:6641,tcp://10.0.0.3:6641";
    let root = Root::new("");
    let kubeconfig = root.0.join("kubeconfig.yaml");
    fs::write(&kubeconfig, "apiVersion: v1").unwrap();
    let start = format!(
        "-k8s-kubeconfig {} -loglevel=4 -k8s-apiserver=http://10.0.0.9:8080 -k8s-token=abc -nb-address={nb}",
        kubeconfig.display()
    );
    let master = root.load(&format!("{start} -init-master=n1 -cluster-subnets=192.168.0.0/16 -init-node=n1 -k8s-service-cidr=172.16.1.0/24 -nodeport"), &[]);
    let mode = &master.settings.mode;
    assert_eq!(master.command, Command::Run);
    for part in [&mode.cluster_manager, &mode.controller, &mode.node] {
        assert_eq!(part.as_deref(), Some("n1"));
    }
    assert_eq!(master.settings.nb.address(), nb.replace("//", ""));
    assert_eq!(master.settings.kube_access, KubeAccess::Kubeconfig(kubeconfig));
    let node = root.load(
        &format!("{start} -init-node=n2 -init-gateways -gateway-vlanid=7 -ephemeral-port-range=1000-2000 -k8s-service-cidr= -cluster-subnets=172.16.1.0/24/26"),
        &[],
    );
    assert_eq!(node.settings.gateway.mode, Some(GatewayMode::Shared));
    assert_eq!(node.settings.gateway.vlan_id, 7);
    assert_eq!(node.not_yet(), ["[gateway] ephemeral-port-range (--ephemeral-port-range) = \"1000-2000\""]);
    root.load(
        "-net-controller -ha -win-hnsnetwork-id= -gateway-spare-interface -encap-type=geneve -encap-ip= -init-master n",
        &[],
    );
}

#[test]
fn gateway_mode_wins_over_its_older_forms() {
    let mode = |file: &str, args: &str| Root::new(file).load(&format!("config {args}"), &[]).settings.gateway.mode;
    assert_eq!(mode("", "-init-gateways"), Some(GatewayMode::Shared));
    assert_eq!(mode("", "-init-gateways -gateway-localnet"), Some(GatewayMode::Local));
    assert_eq!(mode("[gateway]\nmode=local\n", "-init-gateways"), Some(GatewayMode::Local));
    assert_eq!(mode("", "-gateway-local -gateway-mode=shared"), Some(GatewayMode::Shared));
    assert_eq!(mode("", "-init-gateways=false"), None);
}

#[test]
fn access_follows_the_higher_layer() {
    let root = Root::new("").with_service_account();
    let token = |args: &str, env: &[(&str, &str)]| match root.load(&format!("config {args}"), env).settings.kube_access
    {
        KubeAccess::Server { token, .. } => token,
        KubeAccess::Kubeconfig(_) => None,
    };
    let file = |path: PathBuf| Some(Token::File(path));
    assert_eq!(token("", &[]), file(root.0.join("sa/token")));
    assert_eq!(token("-k8s-token=flag", &[]), Some(Token::Text("flag".to_owned().into())));
    assert_eq!(token("-k8s-token=flag", &[("K8S_TOKEN_FILE", "/t")]), Some(Token::Text("flag".to_owned().into())));
    assert_eq!(token("-k8s-token=a -k8s-token-file=/t", &[]), file("/t".into()));
    let access = |args: &str, env: &[(&str, &str)]| root.load(&format!("config {args}"), env).settings.kube_access;
    assert_eq!(access("", &[("KUBECONFIG", "/k")]), KubeAccess::Kubeconfig("/k".into()));
    assert_eq!(
        access("", &[("KUBECONFIG", "/k"), ("K8S_APISERVER", "https://a:1")]),
        KubeAccess::Kubeconfig("/k".into())
    );
    let KubeAccess::Server { url, ca, .. } = access("-k8s-apiserver=https://a:1", &[("KUBECONFIG", "/k")]) else {
        panic!("the address of the flag must win over the kubeconfig of the environment")
    };
    assert_eq!((url.as_str(), ca), ("https://a:1", Some(Authority::File(root.0.join("sa/ca.crt")))));
}

#[test]
fn secrets_are_never_shown() {
    let secret = "s3cr3t";
    let root = Root::new(&format!("[kubernetes]\ntoken={secret}\n"));
    let loaded = root.load(&format!("config -k8s-token={secret}"), &[("K8S_TOKEN", secret)]);
    assert!(!format!("{loaded:?}").contains(secret) && !format!("{loaded:#?}").contains(secret));
    for json in [true, false] {
        let mut out = Vec::new();
        ovnkube_config::cli::run_config(&loaded, json, &mut out).unwrap();
        assert!(!String::from_utf8(out).unwrap().contains(secret));
    }
    for args in [format!("-k8s-tokn={secret}"), format!("-k8s-token {secret}\u{7}x config")] {
        let error = root.try_load(&args, &[]).unwrap_err();
        assert!(!error.contains(secret), "{error}");
    }
    let error = Root::new("[kubernetes]\ntoken=\"a b\"\n").try_load("config", &[]).unwrap_err();
    assert!(error.contains("***") && !error.contains("a b"), "{error}");
}

#[test]
fn help_reads_no_file() {
    let loaded = Root::new("not gcfg").load("--help", &[]);
    let Command::Print(text) = loaded.command else { panic!("help is text") };
    for setting in ovnkube_config::settings::SETTINGS.iter().filter(|setting| !setting.flag.is_empty()) {
        assert!(
            text.contains(&format!("--{} ", setting.flag)) || text.contains(&format!("--{}[", setting.flag)),
            "{}",
            setting.flag
        );
    }
}
