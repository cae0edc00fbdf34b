//! The bridge to the outside, and the networks behind it.

use ovnkube_model::GatewayMode;
use ovnkube_node::{Change, GatewaySettings, OwnNode};

use super::{Lab, Pod, eventually, run};

impl Lab {
    /// A namespace on the other end of eth0, with the node's next hop 172.18.255.1.
    pub fn outside(&mut self) -> Pod {
        let netns = self.netns("outside");
        run("ip", &["netns", "add", &netns]);
        self.pods.push(netns.clone());
        run("ip", &["link", "set", "wire", "netns", &netns]);
        let outside = Pod { name: "outside".into(), uid: String::new(), netns, n: 0 };
        for args in ["link set lo up", "link set wire up", "addr add 172.18.255.1/16 dev wire"] {
            outside.ip_cmd(args);
        }
        outside
    }

    /// A network behind the node: link `name` with `ours`, and a namespace with `theirs` at its other end.
    pub fn behind(&mut self, name: &str, ours: &str, theirs: &str) -> Pod {
        let pod = self.bare_pod(name, 0);
        run("ip", &["link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", &pod.netns]);
        run("ip", &["addr", "add", ours, "dev", name]);
        run("ip", &["link", "set", name, "up"]);
        for args in ["link set lo up", "link set eth0 up", &format!("addr add {theirs} dev eth0")] {
            pod.ip_cmd(args);
        }
        pod
    }

    /// The agent hears that there is a Node, before which it annotates nothing, and no more of it.
    pub fn hears_of_its_node(&self) {
        self.send(Change::Node(OwnNode { carries: Some(false), ..OwnNode::default() }));
    }

    /// br-ex with eth0 in it.
    pub fn make_bridge(&self) {
        self.vsctl("add-br br-ex -- set Bridge br-ex datapath_type=netdev fail_mode=standalone other_config:hwaddr=\"02:42:ac:12:00:02\" -- add-port br-ex eth0");
        run("ip", &["addr", "flush", "dev", "eth0"]);
        self.address_bridge();
    }

    /// The node's address and default route, which the host's own network setup sets.
    pub fn address_bridge(&self) {
        let socket = self.dir.join("br-ex.mgmt");
        eventually("the switch", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        eventually("br-ex", || run("ip", &["link"]).contains(" br-ex: "));
        for args in
            ["link set br-ex up", "addr replace 172.18.0.2/16 dev br-ex", "route replace default via 172.18.255.1"]
        {
            run("ip", &args.split(' ').collect::<Vec<_>>());
        }
    }

    /// The node's gateway router, as the controller would make it.
    pub fn make_router(&self) {
        let port = format!("{}_node-1", self.bridge);
        self.nbctl(&format!(
            "lr-add GR_node-1 -- set Logical_Router GR_node-1 options:chassis=chassis-1 \
             -- lrp-add GR_node-1 rtoe 02:42:ac:12:00:02 172.18.0.2/16 -- ls-add ext_node-1 \
             -- lsp-add ext_node-1 etor -- lsp-set-type etor router -- lsp-set-options etor router-port=rtoe -- lsp-set-addresses etor router \
             -- lsp-add ext_node-1 {port} -- lsp-set-type {port} localnet \
             -- lsp-set-options {port} network_name=physnet -- lsp-set-addresses {port} unknown",
        ));
    }

    /// What the agent's process does besides.
    pub fn end_waits(&self) {
        let (remote, dir) = (self.unix("db.sock"), self.dir.clone());
        self.runtime.spawn(async move { match ovnkube_node::end_waits(&remote, &dir).await {} });
    }

    pub fn ofctl(&self, command: &str, args: &[&str]) -> String {
        let target = format!("unix:{}", self.path("br-ex.mgmt"));
        self.tool("ovs-ofctl", &[&[command, &target], args].concat())
    }
}

/// A gateway on `interface` with common settings.
pub fn settings(interface: &str, mode: GatewayMode) -> GatewaySettings {
    GatewaySettings {
        mode,
        interface: Some(interface.to_owned()),
        conntrack_zone: 64000,
        check_mtu: true,
        encap_port: 6081,
        service_cidrs: vec!["10.96.0.0/16".parse().unwrap()],
        join_subnets: vec!["100.64.0.0/16".parse().unwrap()],
        first_address: std::time::Duration::from_secs(60),
        default_route: std::time::Duration::from_secs(10),
        ..GatewaySettings::default()
    }
}
