//! Checks that need more than one value, and the choices that result from them.
//!
//! Order: every value alone (its type), modes, numbers against each other, ranges against each
//! other, databases, Kubernetes access, and last the files that the settings name.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;
use crate::access::{Authority, KubeAccess, Token};
use crate::chosen;
use crate::database::{Database, DbAddress, Remote, ServerKeys, Tls};
use crate::error::said;
use crate::flags::Command;
use crate::layers::Layered;
use crate::ranges::Range;
use crate::settings::{OvnNorth, OvnSouth, Settings};
use crate::source::Source;
use crate::table::Stage;

/// Seconds that a holder's last write has to arrive before another process may write.
const LEAST_ROOM: u32 = 2;

/// The milliseconds of an election timer that ovsdb-server accepts at most.
const LONGEST_TIMER: u32 = 600_000;

/// What the API server accepts at least, and what approvers approve at most.
const SHORTEST_CERTIFICATE: Duration = Duration::from_secs(10 * 60);
const LONGEST_CERTIFICATE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Converts the layers to typed settings, checks them as a whole and derives mode, databases, Kubernetes access.
pub(crate) fn resolve(
    mut layered: Layered,
    command: &Command,
    warnings: &mut Vec<String>,
) -> Result<(Settings, Layered), Error> {
    gateway_mode(&mut layered);
    let mut settings = Settings::resolve(&layered)?;
    let check = Check { layered: &layered };
    if !matches!(command, Command::Print(_)) {
        settings.mode = chosen::mode(&settings.command_line, &layered)?;
    }
    if *command == Command::Run && settings.mode.is_empty() {
        return Err(Error::Usage(
            "there is nothing to run; give --init-master NAME, --init-node NAME or both, or see --help".to_owned(),
        ));
    }
    check.numbers(&settings)?;
    check.texts(&settings)?;
    check.ranges(&settings)?;
    // others may read the same file
    let sets_keys = settings.mode.controller.is_some();
    settings.nb = check.database(&northbound(&settings.ovnnorth), sets_keys)?;
    settings.sb = check.database(&southbound(&settings.ovnsouth), sets_keys)?;
    settings.kube_access = chosen::access(&settings, &layered);
    check.kube_access(&settings, command)?;
    check.client_certificate(&settings, command)?;
    check.own_addresses(&settings, command)?;
    match (command, check.files(&settings)) {
        (Command::Run, Err(error)) => return Err(error),
        (Command::Config { .. }, Err(error)) => warnings.push(error.to_string()),
        _ => {}
    }
    check.notes(&settings, warnings);
    Ok((settings, layered))
}

/// `--init-gateways` and `--gateway-local` are older forms of `[gateway] mode`, which overrides them.
fn gateway_mode(layered: &mut Layered) {
    let on = |flag| layered.get("", flag).filter(|one| one.text == "true").map(|one| one.source.clone());
    let mode = match (on("gateway-local"), on("init-gateways")) {
        (Some(source), _) => ("local", source),
        (None, Some(source)) => ("shared", source),
        (None, None) => return,
    };
    if layered.get("gateway", "mode").is_some_and(|one| one.text.is_empty()) {
        layered.replace("gateway", "mode", mode.0, mode.1);
    }
}

/// The milliseconds of a setting that existing installations have in seconds, and some in milliseconds.
pub fn election_timer_ms(setting: u32) -> u32 {
    if setting < 1000 { setting * 1000 } else { setting }
}

/// Finds the text and the layer of a value for error messages.
struct Check<'a> {
    layered: &'a Layered,
}

impl Check<'_> {
    fn fault(&self, section: &str, key: &str, problem: impl Into<String>) -> Error {
        match self.layered.get(section, key) {
            Some(one) => Error::value(one.setting, &one.source, &one.text, problem),
            None => Error::Usage(problem.into()),
        }
    }

    /// `[section] key (--flag) = "text" (flag)`, for the other value of a conflict.
    fn other(&self, section: &str, key: &str) -> String {
        self.layered
            .get(section, key)
            .map_or_else(String::new, |one| format!("{} = {:?} ({})", one.setting.title(), one.shown(), one.source))
    }

    fn rank(&self, section: &str, key: &str) -> u8 {
        self.layered.get(section, key).map_or(0, |one| one.source.rank())
    }

    fn numbers(&self, settings: &Settings) -> Result<(), Error> {
        let default = &settings.default;
        if default.cluster_subnets.iter().any(|subnet| subnet.net.is_ipv6()) && default.mtu < 1280 {
            return Err(self.fault(
                "default",
                "mtu",
                "ipv6 needs at least 1280; raise it or leave ipv6 out of cluster-subnets",
            ));
        }
        self.routable_mtu(settings)?;
        let timers = [("ovnnorth", settings.ovnnorth.election_timer), ("ovnsouth", settings.ovnsouth.election_timer)];
        if let Some((section, _)) = timers.into_iter().find(|(_, timer)| election_timer_ms(*timer) > LONGEST_TIMER) {
            let problem = "databases take ten minutes at most; give 1 to 600 seconds, or 1000 to 600000 milliseconds";
            return Err(self.fault(section, "election-timer", problem));
        }
        let (master, manager) = (&settings.masterha, &settings.clustermgrha);
        self.lease(
            "masterha",
            master.election_lease_duration,
            master.election_renew_deadline,
            master.election_retry_period,
        )?;
        self.lease(
            "clustermgrha",
            manager.election_lease_duration,
            manager.election_renew_deadline,
            manager.election_retry_period,
        )
    }

    /// A lease must outlast its renewal, and renewal several attempts. The error names the value that was set.
    fn lease(&self, section: &str, lease: u32, renew: u32, retry: u32) -> Result<(), Error> {
        let (lease_key, renew_key) = ("election-lease-duration", "election-renew-deadline");
        // client-go is content with any difference. But what the holder sent last must arrive before another process
        // writes, and the clocks of two hosts do not run equally fast
        let room = renew.div_ceil(10).max(LEAST_ROOM);
        if lease < renew + room {
            let words = [format!("at least {room} s longer than"), format!("at least {room} s shorter than")];
            return Err(self.wrong_order(section, [lease_key, renew_key], words));
        }
        // as in client-go: processes wait up to a fifth longer than the retry period, so that not all ask at once
        if renew * 5 <= retry * 6 {
            let words = ["more than 1.2 times".to_owned(), "less than five sixths of".to_owned()];
            return Err(self.wrong_order(section, [renew_key, "election-retry-period"], words));
        }
        Ok(())
    }

    /// Blames the value that was set, of two that do not go together; `words` says what each must be to the other.
    fn wrong_order(&self, section: &str, [long, short]: [&str; 2], words: [String; 2]) -> Error {
        let [of_long, of_short] = words;
        if self.rank(section, long) > self.rank(section, short) {
            self.fault(section, long, format!("it must be {of_long} {}", self.other(section, short)))
        } else {
            self.fault(section, short, format!("it must be {of_short} {}", self.other(section, long)))
        }
    }

    fn texts(&self, settings: &Settings) -> Result<(), Error> {
        let plugin = &settings.cni.plugin;
        if plugin.is_empty() || plugin.contains('/') || plugin.starts_with('.') {
            return Err(self.fault(
                "cni",
                "plugin",
                "it must be a file name without directory, such as ovn-k8s-cni-overlay",
            ));
        }
        let zone = &settings.default.zone;
        if zone.is_empty() || zone.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(self.fault("default", "zone", "a zone needs a name without blanks; leave it out for global"));
        }
        let absolute = [
            ("cni", "conf-dir", &settings.cni.conf_dir),
            ("ovnnorth", "run-dir", &settings.ovnnorth.run_dir),
            ("ovnsouth", "run-dir", &settings.ovnsouth.run_dir),
            ("ovspaths", "run-dir", &settings.ovspaths.run_dir),
        ];
        for (section, key, path) in absolute {
            // not is_absolute: on Windows that also wants a drive, which the defaults have not
            if !path.has_root() {
                return Err(self.fault(section, key, "it must be an absolute path; begin it with /"));
            }
        }
        if settings.default.db_txn_timeout.is_zero() {
            return Err(self.fault("default", "db-txn-timeout", "it must be longer than 0; leave it out for 1m40s"));
        }
        if settings.kubernetes.ovn_config_namespace.is_empty() {
            return Err(self.fault(
                "kubernetes",
                "ovn-config-namespace",
                "it is empty; leave it out for ovn-kubernetes",
            ));
        }
        let services = settings.default.udn_allowed_default_services.iter();
        if let Some(wrong) =
            services.into_iter().find(|service| service.split('/').filter(|part| !part.is_empty()).count() != 2)
        {
            return Err(self.fault(
                "default",
                "udn-allowed-default-services",
                format!("{wrong:?} is not namespace/name"),
            ));
        }
        Ok(())
    }

    /// Routes cannot use more than the interfaces, nor less than IPv6 or TCP need.
    fn routable_mtu(&self, settings: &Settings) -> Result<(), Error> {
        let general = &settings.default;
        let least = if general.cluster_subnets.iter().any(|subnet| subnet.net.is_ipv6()) { 1280 } else { 576 };
        let fault = |problem| Err(self.fault("default", "routable-mtu", problem));
        match general.routable_mtu {
            0 => Ok(()),
            mtu if mtu < least => fault(format!("routes need at least {least}; raise it or leave it out")),
            mtu if settings.mtu_is_given && mtu > general.mtu => fault(format!(
                "routes cannot use more than the interfaces have; lower it or raise {}",
                self.other("default", "mtu")
            )),
            _ => Ok(()),
        }
    }

    /// Pods, services, join switch, masquerade addresses and transit switch must not share addresses.
    fn ranges(&self, settings: &Settings) -> Result<(), Error> {
        if settings.default.cluster_subnets.is_empty() {
            return Err(self.fault(
                "default",
                "cluster-subnets",
                "pods need addresses; give a CIDR such as 10.128.0.0/14/23",
            ));
        }
        self.families(settings)?;
        self.room(settings)?;
        match settings.overlapping() {
            Some((one, other)) => Err(self.overlap(one, other)),
            None => Ok(()),
        }
    }

    /// The error names the range that was set, rather than a default.
    fn overlap(&self, a: Range, b: Range) -> Error {
        let (culprit, other) = if self.rank(b.0, b.1) > self.rank(a.0, a.1) { (b, a) } else { (a, b) };
        let problem = if (a.0, a.1) == (b.0, b.1) {
            format!("{} and {} overlap; give ranges that share no address", a.2, b.2)
        } else {
            format!("{} overlaps {} of {}; move one of them", culprit.2, other.2, self.other(other.0, other.1))
        };
        self.fault(culprit.0, culprit.1, problem)
    }

    /// One service range per family, and none of a family that pods do not have.
    fn families(&self, settings: &Settings) -> Result<(), Error> {
        for (v4, family) in [(true, "ipv4"), (false, "ipv6")] {
            let of_services = settings.kubernetes.service_cidrs.iter().filter(|net| net.is_ipv4() == v4).count();
            let of_pods = settings.default.cluster_subnets.iter().any(|subnet| subnet.net.is_ipv4() == v4);
            let problem = if of_services > 1 {
                format!("it has {of_services} {family} ranges; give one per family")
            } else if of_services == 1 && !of_pods && self.rank("kubernetes", "service-cidrs") > 0 {
                let pods = self.other("default", "cluster-subnets");
                format!("it has an {family} range, but pods have none in {pods}; drop it, or add a range for pods")
            } else {
                continue;
            };
            return Err(self.fault("kubernetes", "service-cidrs", problem));
        }
        Ok(())
    }

    fn room(&self, settings: &Settings) -> Result<(), Error> {
        let Some((key, prefix, longest)) = settings.too_small() else { return Ok(()) };
        let problem = format!("a /{prefix} is too small; take /{longest} or a shorter prefix");
        Err(self.fault("gateway", key, problem))
    }

    /// How a database is reached; `ssl:` needs certificates, other schemes accept none.
    fn database(&self, keys: &DatabaseKeys, sets_keys: bool) -> Result<Database, Error> {
        let DatabaseKeys { section, address, .. } = keys;
        let address_of = || self.other(section, "address");
        for (key, path) in
            [("client-privkey", keys.privkey), ("client-cert", keys.cert), ("client-cacert", keys.cacert)]
        {
            let empty = path.as_os_str().is_empty();
            let given = self.layered.get(section, key).is_some_and(|one| one.source != Source::Default);
            if address.is_ssl() && empty {
                return Err(self.fault(
                    section,
                    key,
                    format!("it is empty, but {} needs it; name a PEM file", address_of()),
                ));
            }
            if !address.is_ssl() && given && !empty {
                let problem = format!(
                    "certificates go with ssl addresses only, but {}; write ssl:host:port there or leave this out",
                    address_of()
                );
                return Err(self.fault(section, key, problem));
            }
        }
        let tls = address.is_ssl().then(|| Tls {
            privkey: keys.privkey.clone(),
            cert: keys.cert.clone(),
            cacert: keys.cacert.clone(),
            common_name: keys.common_name.clone(),
        });
        let server = if sets_keys { self.server_keys(keys)? } else { None };
        Ok(Database { remotes: remotes(address, keys.run_dir, keys.socket), tls, server })
    }

    /// The certificate of the server itself, of which all parts are needed. With other addresses than `ssl:` it is not used.
    fn server_keys(&self, keys: &DatabaseKeys) -> Result<Option<ServerKeys>, Error> {
        let absolute = |path: &Option<PathBuf>| std::path::absolute(path.as_deref()?).ok();
        match keys.server.map(absolute) {
            [Some(privkey), Some(cert), Some(cacert)] if keys.address.is_ssl() => {
                Ok(Some(ServerKeys { privkey, cert, cacert }))
            }
            [None, None, None] | [Some(_), Some(_), Some(_)] => Ok(None),
            some => {
                let names = ["server-privkey", "server-cert", "server-cacert"];
                let of = |is_there| names.iter().zip(&some).find(|(_, path)| path.is_some() == is_there);
                let name = |found: Option<(&&'static str, _)>| found.map_or("server-privkey", |(name, _)| *name);
                let problem =
                    format!("{} of [{}] is needed too; give all three, or none", name(of(false)), keys.section);
                Err(self.fault(keys.section, name(of(true)), problem))
            }
        }
    }

    fn kube_access(&self, settings: &Settings, command: &Command) -> Result<(), Error> {
        let KubeAccess::Server { url, ca, token } = &settings.kube_access else { return Ok(()) };
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
        if host.is_empty()
            || host.starts_with(['/', ':'])
            || host.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return Err(self.fault("kubernetes", "apiserver", "it is not a URL; write https://host:port"));
        }
        if host.split('/').next().is_some_and(|authority| authority.contains('@')) {
            let problem =
                "it holds a user or password, which would be shown; write https://host:port and give a token file";
            return Err(self.fault("kubernetes", "apiserver", problem).without_value());
        }
        if *command != Command::Run || !settings.mode.uses_kubernetes() || !url.starts_with("https://") {
            return Ok(());
        }
        let address = self.other("kubernetes", "apiserver");
        if ca.is_none() {
            return Err(self.fault("kubernetes", "cacert", format!("it is empty, but {address} is https; name the PEM file of the API server's authority, or give a kubeconfig")));
        }
        if token.is_none() && settings.kubernetes.cert_dir.is_none() {
            return Err(self.fault(
                "kubernetes",
                "tokenFile",
                format!("neither it nor token is set, but {address} is https; give one of them, or a kubeconfig"),
            ));
        }
        Ok(())
    }

    /// The certificate that a node agent asks for, or one that another program renews.
    fn client_certificate(&self, settings: &Settings, command: &Command) -> Result<(), Error> {
        let kubernetes = &settings.kubernetes;
        let is_agent = *command == Command::Run && settings.mode.node.is_some();
        if is_agent && kubernetes.bootstrap_kubeconfig.is_some() && kubernetes.cert_dir.is_none() {
            let problem = "cert-dir is not set, where the certificate would be kept; name a directory there";
            return Err(self.fault("kubernetes", "bootstrap-kubeconfig", problem));
        }
        if !(SHORTEST_CERTIFICATE..=LONGEST_CERTIFICATE).contains(&kubernetes.cert_duration) {
            let problem = "Kubernetes gives certificates for 10m0s and longer, and approvers allow 8760h0m0s; choose a time between";
            return Err(self.fault("kubernetes", "cert-duration", problem));
        }
        let is_plain = matches!(&settings.kube_access, KubeAccess::Server { url, .. } if url.starts_with("http://"));
        if kubernetes.cert_dir.is_some() && is_plain && *command == Command::Run && settings.mode.uses_kubernetes() {
            let address = self.other("kubernetes", "apiserver");
            let problem = format!("{address} is http, where no certificate can be shown; give its https address");
            return Err(self.fault("kubernetes", "cert-dir", problem));
        }
        Ok(())
    }

    /// Both would serve `/healthz`, each something else.
    fn own_addresses(&self, settings: &Settings, command: &Command) -> Result<(), Error> {
        let (health, metrics) = (settings.kubernetes.healthz_bind_address, settings.metrics.bind_address);
        if *command == Command::Run && health.is_some() && health == metrics {
            let problem = format!("{} is the same address; give each its own", self.other("metrics", "bind-address"));
            return Err(self.fault("kubernetes", "healthz-bind-address", problem));
        }
        Ok(())
    }

    /// Checks that the files which the process needs can be read.
    fn files(&self, settings: &Settings) -> Result<(), Error> {
        let (mode, all) = (&settings.mode, settings.mode.is_empty());
        if all || mode.uses_northbound() {
            self.certificates("ovnnorth", &settings.nb)?;
        }
        if all || mode.uses_southbound() {
            self.certificates("ovnsouth", &settings.sb)?;
        }
        if !settings.mode.uses_kubernetes() && !settings.mode.is_empty() {
            return Ok(());
        }
        let fault = |key, problem| self.fault("kubernetes", key, format!("{problem}; name a file that can be read"));
        if let Some(path) = settings.kubernetes.bootstrap_kubeconfig.as_ref().filter(|_| mode.node.is_some()) {
            readable(path).map_err(|problem| fault("bootstrap-kubeconfig", problem))?;
        }
        match &settings.kube_access {
            KubeAccess::Kubeconfig(path) => readable(path).map_err(|problem| fault("kubeconfig", problem)),
            KubeAccess::Server { ca, token, .. } => {
                if let Some(Authority::File(path)) = ca {
                    readable(path).map_err(|problem| fault("cacert", problem))?;
                }
                if let Some(Token::File(path)) = token {
                    readable(path).map_err(|problem| fault("tokenFile", problem))?;
                }
                Ok(())
            }
        }
    }

    fn certificates(&self, section: &str, database: &Database) -> Result<(), Error> {
        let Some(tls) = &database.tls else { return Ok(()) };
        let address = self.other(section, "address");
        for (key, path) in
            [("client-privkey", &tls.privkey), ("client-cert", &tls.cert), ("client-cacert", &tls.cacert)]
        {
            readable(path).map_err(|problem| {
                self.fault(section, key, format!("{problem}, but {address} needs it; name a PEM file"))
            })?;
        }
        Ok(())
    }

    /// Warnings about settings that are allowed.
    fn notes(&self, settings: &Settings, warnings: &mut Vec<String>) {
        for one in self.layered.all() {
            if let Stage::Ignored(reason) = one.setting.stage
                && one.source != Source::Default
            {
                warnings.push(format!("{} does nothing: {reason}", one.setting.title()));
            }
        }
        let sides = [
            ("ovnnorth", &settings.ovnnorth.server_cert, &settings.nb),
            ("ovnsouth", &settings.ovnsouth.server_cert, &settings.sb),
        ];
        for (section, _, _) in sides.into_iter().filter(|(_, cert, reached)| cert.is_some() && reached.tls.is_none()) {
            let address = self.other(section, "address");
            warnings.push(format!("{} does nothing: {address} is not ssl", self.other(section, "server-cert")));
        }
        for flag in [("init-gateways", "shared"), ("gateway-local", "local")] {
            if self.layered.get("", flag.0).is_some_and(|one| one.source != Source::Default) {
                warnings.push(format!("--{} is an old name; write --gateway-mode={}", flag.0, flag.1));
            }
        }
        if settings.kubernetes.service_cidrs.is_empty() {
            warnings.push(format!(
                "{}: services have no range; give the API server's",
                self.other("kubernetes", "service-cidrs")
            ));
        }
    }
}

/// The keys of one database; northbound and southbound have the same.
struct DatabaseKeys<'a> {
    section: &'static str,
    address: &'a DbAddress,
    privkey: &'a PathBuf,
    cert: &'a PathBuf,
    cacert: &'a PathBuf,
    common_name: &'a Option<String>,
    server: [&'a Option<PathBuf>; 3],
    run_dir: &'a Path,
    socket: &'static str,
}

fn northbound(nb: &OvnNorth) -> DatabaseKeys<'_> {
    DatabaseKeys {
        section: "ovnnorth",
        address: &nb.address,
        privkey: &nb.client_privkey,
        cert: &nb.client_cert,
        cacert: &nb.client_cacert,
        common_name: &nb.cert_common_name,
        server: [&nb.server_privkey, &nb.server_cert, &nb.server_cacert],
        run_dir: &nb.run_dir,
        socket: "ovnnb_db.sock",
    }
}

fn southbound(sb: &OvnSouth) -> DatabaseKeys<'_> {
    DatabaseKeys {
        section: "ovnsouth",
        address: &sb.address,
        privkey: &sb.client_privkey,
        cert: &sb.client_cert,
        cacert: &sb.client_cacert,
        common_name: &sb.cert_common_name,
        server: [&sb.server_privkey, &sb.server_cert, &sb.server_cacert],
        run_dir: &sb.run_dir,
        socket: "ovnsb_db.sock",
    }
}

/// An empty address means the local socket; OVN before 20.03 kept it with Open vSwitch's.
fn remotes(address: &DbAddress, run_dir: &Path, socket: &str) -> Vec<Remote> {
    if !address.0.is_empty() {
        return address.0.clone();
    }
    let mut dirs = vec![run_dir];
    if run_dir == Path::new("/var/run/ovn/") {
        dirs.push(Path::new("/var/run/openvswitch/"));
    }
    dirs.into_iter().map(|dir| Remote::Unix(dir.join(socket))).collect()
}

/// Checks that a file can be read. Opens only regular files: a pipe would block.
fn readable(path: &Path) -> Result<(), String> {
    let meta = fs::metadata(path).map_err(|error| said(&error))?;
    if !meta.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    match fs::read(path) {
        Err(error) => Err(said(&error)),
        Ok(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Err("the file is empty".to_owned()),
        Ok(_) => Ok(()),
    }
}
