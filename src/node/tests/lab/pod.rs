//! A pod's namespace.

use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, setns};
use ovnkube_model::PodKey;
use ovnkube_node::PodOnNode;
use serde_json::json;

use super::{Lab, run};

#[derive(Clone)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    pub netns: String,
    pub n: u8,
}

impl Pod {
    pub fn key(&self) -> PodKey {
        PodKey::new("default", self.name.as_str())
    }

    pub fn ip(&self) -> String {
        format!("10.128.0.{}", self.n)
    }

    pub fn mac(&self) -> String {
        format!("0a:58:0a:80:00:{:02x}", self.n)
    }

    pub fn path(&self) -> String {
        format!("/run/netns/{}", self.netns)
    }

    /// With the annotation that the controller writes.
    pub fn annotated(&self) -> PodOnNode {
        let networks = json!({"default": {
            "ip_addresses": [format!("{}/24", self.ip())], "mac_address": self.mac(), "gateway_ips": ["10.128.0.1"],
            "routes": [{"dest": "10.128.0.0/14", "nextHop": "10.128.0.1"}, {"dest": "169.254.169.5/32", "nextHop": "10.128.0.1"}],
            "ip_address": format!("{}/24", self.ip()), "gateway_ip": "10.128.0.1", "role": "primary",
        }});
        PodOnNode { uid: self.uid.as_str().into(), networks: Some(networks.to_string().into()), ..PodOnNode::default() }
    }

    /// `ip` in the pod.
    pub fn ip_cmd(&self, args: &str) -> String {
        let args: Vec<&str> = ["-n", &self.netns].into_iter().chain(args.split(' ')).collect();
        run("ip", &args)
    }

    pub fn pings(&self, ip: &str) -> bool {
        self.pings_within("1", ip)
    }

    /// The very first packet is answered, however long a busy machine takes for it.
    pub fn pings_at_once(&self, ip: &str) -> bool {
        self.pings_within("30", ip)
    }

    fn pings_within(&self, seconds: &str, ip: &str) -> bool {
        let args = ["netns", "exec", &self.netns, "ping", "-c", "1", "-W", seconds, "-q", ip];
        Command::new("ip").args(args).stdout(Stdio::null()).status().unwrap().success()
    }

    /// Runs `work` in the pod's namespace.
    pub fn enter<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
        let file = std::fs::File::open(self.path()).unwrap();
        std::thread::spawn(move || {
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        })
    }
}

impl Lab {
    /// Requests about pods that the agent has not answered yet.
    pub fn asked(&self) -> usize {
        let sockets = std::fs::read_to_string("/proc/thread-self/net/unix").unwrap();
        let end = format!(" {}", self.socket().display());
        // state 3 is a connected one: the kernel accepts connections for the agent
        let is_one = |line: &&str| line.ends_with(&end) && line.split_whitespace().nth(5) == Some("03");
        sockets.lines().filter(is_one).count()
    }
}
