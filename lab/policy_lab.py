"""What the lab's policy tests share: the API server, the network namespaces of a cluster's pods, and sockets in them.

Sockets belong to the namespace they were made in, so one process has them all.
"""
import ctypes, glob, http.client, json, os, socket, ssl, struct, subprocess, sys, threading, time

HERE = os.path.dirname(os.path.realpath(__file__))
IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
LIBC = ctypes.CDLL(None, use_errno=True)
SLOW = int(os.environ.get("LAB_SLOW", "1"))  # as of lab/cluster: how many times longer everything may take


def cluster(*words, **more):
    """Runs `lab/cluster`; its output."""
    done = subprocess.run([f"{HERE}/cluster", *words], stdout=subprocess.PIPE, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"cluster {' '.join(words)} failed (is one up? lab/cluster up)")
    return done.stdout


def settings():
    lines = (line.removeprefix("export ").split("=", 1) for line in cluster("env").splitlines() if "=" in line)
    return {name: value.replace("\\", "").strip("'") for name, value in lines}


ENV = settings()
NAME = os.environ.get("CLUSTER_NAME", "ovnk")
NODES = [f"n{i + 1}" for i in range(int(ENV["NODES"]))]


# ---- namespaces ----
class Netns:
    """A network namespace; `with` enters it."""

    own = os.open("/proc/self/ns/net", os.O_RDONLY)

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY)

    def __del__(self):
        if hasattr(self, "fd"):
            os.close(self.fd)

    def __enter__(self):
        enter(self.fd)

    def __exit__(self, *_):
        enter(Netns.own)

    def addresses(self):
        with self:
            links = json.loads(subprocess.run(["ip", "-j", "addr"], stdout=subprocess.PIPE, check=True).stdout)
        return [a["local"] for link in links for a in link.get("addr_info", []) if a["scope"] == "global"]


def enter(fd):
    if LIBC.setns(fd, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def unit(name):
    """cp or ext."""
    return Netns(f"/run/netns/{NAME}-{name}")


def node_root(node):
    """The node's own file system, as this machine sees it."""
    outer = open(f"{ENV['CLUSTER_DIR']}/nodes/{node}/pid").read().strip()
    first = open(f"/proc/{outer}/task/{outer}/children").read().split()[0]
    return f"/proc/{first}/root"


def pod_namespaces():
    """Paths of the namespaces of all pods' sandboxes."""
    return [path for node in NODES for path in glob.glob(f"{node_root(node)}/run/netns/cni-*")]


def by_address():
    """The namespace that has an address. That of a pod that was deleted is soon gone, and does not have what another pod got meanwhile."""
    spaces = {}

    def are_distinct():
        spaces.clear()
        for path in pod_namespaces():
            try:
                space = Netns(path)
                for address in space.addresses():
                    spaces.setdefault(address, []).append(space)
            except OSError:
                pass  # of a pod that is being deleted
        return all(len(those) == 1 for those in spaces.values())

    until("no two sandboxes have the same address", are_distinct, 120)
    return {address: space for address, (space,) in spaces.items()}


# ---- API ----
class Api:
    def __init__(self):
        host, port = ENV["APISERVER"].removeprefix("https://").rsplit(":", 1)
        token = open(f"{ENV['CLUSTER_DIR']}/k8s/admin.token").read().strip()
        self.headers = {"Authorization": f"Bearer {token}"}
        self.place = (host.strip("[]"), int(port), ssl.create_default_context(cafile=ENV["CA"]))
        self.connect()

    def connect(self):
        host, port, context = self.place
        self.http = http.client.HTTPSConnection(host, port, context=context, timeout=120 * SLOW)
        with unit("cp"):
            self.http.connect()

    def ask(self, method, path, body=None, missing_ok=False):
        headers = dict(self.headers)
        headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        for again in (True, False):
            try:
                self.http.request(method, path, json.dumps(body) if body is not None else None, headers)
                answer = self.http.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                if not again:
                    raise
                self.connect()
        if answer.status >= 300 and not (missing_ok and answer.status == 404):
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:600].decode(errors='replace')}")
        return json.loads(text)

    def items(self, path, kind):
        """All objects of a list, each with its kind."""
        return [dict(item, kind=kind) for item in self.ask("GET", path)["items"]]


def pod_path(namespace, name=""):
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


def policy_path(namespace, name=""):
    return f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies" + (f"/{name}" if name else "")


def make_namespaces(api, namespaces):
    """Makes them anew, and waits until pods can be made in them."""
    for namespace in namespaces:
        api.ask("DELETE", f"/api/v1/namespaces/{namespace['metadata']['name']}", missing_ok=True)
    for namespace in namespaces:
        path = f"/api/v1/namespaces/{namespace['metadata']['name']}"
        until(f"{path} is gone", lambda: api.ask("GET", path, missing_ok=True).get("code") == 404, 300)
        api.ask("POST", "/api/v1/namespaces", namespace)
        account = path + "/serviceaccounts/default"
        until(f"there is {account}", lambda: api.ask("GET", account, missing_ok=True).get("code") != 404, 120)


def ready_pods(api, namespaces, limit=300):
    """Waits until all pods of these namespaces are ready; they are returned."""
    def pods():
        return [pod for name in namespaces for pod in api.items(pod_path(name), "Pod")]

    def is_ready(pod):
        return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))

    until("all pods are ready", lambda: all(is_ready(pod) for pod in pods()), limit)
    return pods()


def until(what, condition, limit):
    limit *= SLOW
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"waited {limit} s in vain: {what}")
        time.sleep(0.1)


# ---- sockets ----
def new_socket(address, kind, port=0):
    """A socket of the namespace we are in, bound to an address."""
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    made.setblocking(False)
    if kind == socket.SOCK_STREAM:
        # not for UDP: two sockets would occasionally get the same port, and one of them the other's answers
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # closes at once with a reset, so that neither end keeps state
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.bind((address, port))
    return made


class Watcher:
    """Counts what a node sends to pods' interfaces, from the first packet of a new one."""

    def __init__(self, node, what):
        command = [f"{HERE}/cluster", "exec", node, "tcpdump", "-i", "any", "-Q", "out", "-nn", "-l", "--immediate-mode", *what.split()]
        self.seen = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith("listening"):
                break
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.seen.append(line.strip())

    def end(self):
        self.process.terminate()
        self.process.wait()


class Score:
    """Counts as checks.sh does."""

    def __init__(self):
        self.passed = self.failed = 0

    def ok(self, what, good, why=""):
        if good:
            self.passed += 1
            print(f"ok   {what}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL {what}: {why}", flush=True)
        return good

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)
