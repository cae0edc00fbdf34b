//! etcd and kube-apiserver.

use std::ops::Deref;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::dir::fresh_dir;

/// A Kubernetes API and nothing else, stopped on drop and whenever the process ends.
pub struct Servers {
    dir: PathBuf,
    /// Settings of lab/k8slab.
    settings: Vec<(&'static str, String)>,
    /// Stops them when its input ends.
    guard: Child,
}

impl Servers {
    pub fn up() -> Self {
        Self::with(Vec::new())
    }

    /// With kube-controller-manager, whose signers give certificates for so long.
    pub fn with_signers(longest: Duration) -> Self {
        let longest = format!("--cluster-signing-duration={}s", longest.as_secs());
        Self::with(vec![("K8SLAB_WITH", "kcm".to_owned()), ("K8SLAB_KCM_ARGS", longest)])
    }

    fn with(settings: Vec<(&'static str, String)>) -> Self {
        static STARTING: Mutex<()> = Mutex::new(());
        // they occupy the chosen ports only once they listen
        let _starting = STARTING.lock();
        let dir = fresh_dir("ovnkube-api");
        let mut guard = Command::new("sh");
        guard.args(["-c", "cat; exec \"$0\" down"]).arg(script()).env("K8SLAB_DIR", &dir).process_group(0);
        let guard = guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let servers = Self { dir, settings, guard };
        servers.start();
        for file in ["yaml/accounts.yaml", "yaml/admission.yaml", "yaml/subnets.yaml", "systemd/rbac-kubelet.yaml"] {
            servers.kubectl(&["apply", "-f", &near("dist").join(file).display().to_string()]);
        }
        servers.run(Command::new(script()).args(["account", "ovn"]));
        // the authorizer learns of new roles a moment after they were made
        for (account, resource) in [("ovn", "pods"), ("ovn", "nodes"), ("ovn-node", "nodes")] {
            let who = format!("--as=system:serviceaccount:ovn-kubernetes:{account}");
            servers.wait_for(&["auth", "can-i", "patch", resource, "--subresource=status", "-A", &who]);
        }
        servers
    }

    /// The kubeconfig of the shipped account for masters.
    pub fn master(&self) -> PathBuf {
        self.file("account-ovn.kubeconfig")
    }

    /// That of agents, with a token bound to `node` if given.
    pub fn agent(&self, node: Option<&str>) -> PathBuf {
        let output = self.run(Command::new(script()).args(["account", "ovn-node"]).args(node));
        output.trim().into()
    }

    /// That of another account of the namespace ovn-kubernetes.
    pub fn account(&self, name: &str) -> PathBuf {
        self.run(Command::new(script()).args(["account", name])).trim().into()
    }

    /// That of a user with a client certificate; `crt` and `key` have the same name next to it.
    pub fn user(&self, name: &str, groups: &[&str]) -> PathBuf {
        self.run(Command::new(script()).args(["user", name]).args(groups)).trim().into()
    }

    /// As admin; returns the output.
    pub fn kubectl(&self, words: &[&str]) -> String {
        let kubeconfig = self.file("admin.kubeconfig");
        self.run(Command::new(tools().join("kubectl")).arg("--kubeconfig").arg(kubeconfig).args(words))
    }

    /// Waits until this command of kubectl succeeds.
    fn wait_for(&self, words: &[&str]) {
        let mut command = Command::new(tools().join("kubectl"));
        command.arg("--kubeconfig").arg(self.file("admin.kubeconfig")).args(words).stdout(Stdio::null());
        let deadline = Instant::now() + Duration::from_secs(120);
        while !command.stderr(Stdio::null()).status().unwrap().success() {
            assert!(Instant::now() < deadline, "{words:?} does not succeed");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn run(&self, command: &mut Command) -> String {
        command.env("K8SLAB_DIR", &self.dir).env("KUBEBUILDER_ASSETS", tools());
        let output = command.envs(self.settings.iter().map(|(name, value)| (name, value))).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {said}; lab/install builds what is missing");
        String::from_utf8(output.stdout).unwrap()
    }

    /// One instance for all tests of a process that change nothing the others read.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Servers>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| Arc::new(Self::up())))
    }

    /// A file next to them: `admin.kubeconfig`, `admin.token`, `ca.crt`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The port of the API server.
    pub fn port(&self) -> u16 {
        let ports = std::fs::read_to_string(self.file("ports")).unwrap();
        ports.lines().find_map(|line| line.strip_prefix("PORT=")).unwrap().parse().unwrap()
    }

    /// Kills the API server; etcd keeps its data.
    pub fn kill(&self) {
        let pid = self.signal("-KILL");
        while Path::new("/proc").join(&pid).join("exe").exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::remove_file(self.file("apiserver.pid")).unwrap();
    }

    /// Starts the API server, also again after [`Servers::kill`], on the same port.
    pub fn start(&self) {
        self.run(Command::new(script()).arg("up"));
    }

    /// Sends the API server a signal and returns its process id.
    pub fn signal(&self, signal: &str) -> String {
        let pid = std::fs::read_to_string(self.file("apiserver.pid")).unwrap().trim().to_owned();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        pid
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn script() -> PathBuf {
    near("lab/k8slab")
}

fn tools() -> PathBuf {
    PathBuf::from(std::env::var("LAB_HOME").unwrap_or_else(|_| "/var/lib/ovnkube-lab".into())).join("bin")
}

/// A file of the repository.
fn near(path: &str) -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|dir| dir.join(path));
    above.find(|file| file.exists()).unwrap()
}

/// Servers reserved for one test. A process has two for all tests, because starting them takes longer than most tests.
pub struct Turn {
    servers: Option<Servers>,
    _permit: SemaphorePermit<'static>,
}

static TURNS: Semaphore = Semaphore::const_new(2);
static FREE: Mutex<Vec<Servers>> = Mutex::new(Vec::new());

impl Turn {
    /// Objects of earlier tests may still be there.
    pub async fn take() -> Self {
        let permit = TURNS.acquire().await.unwrap();
        let free = FREE.lock().unwrap().pop();
        Self { servers: Some(free.unwrap_or_else(Servers::up)), _permit: permit }
    }
}

impl Deref for Turn {
    type Target = Servers;

    fn deref(&self) -> &Servers {
        self.servers.as_ref().unwrap()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // a failed test may leave them in any state
        if !std::thread::panicking() {
            FREE.lock().unwrap().extend(self.servers.take());
        }
    }
}
