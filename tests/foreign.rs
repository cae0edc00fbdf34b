//! Foreign rows: created in as many ways as there are, and the check that they are unchanged.

use std::collections::BTreeMap;

use ovnkube_ovn::nb::logical_router_port as lrp;
use ovnkube_ovn::{ColumnId, Row, Uuid};
use ovnkube_ovsdb::{Cache, Client};

use crate::dump;
use crate::nb::Server;

/// Once per cluster. Each line is one `ovn-nbctl` command that changes no row of another line, except `route`, `policy` and `nat ROUTER COLUMN=VALUE …`,
/// which create such a row in that router, with any content.
const CLUSTER: &str = r#"
lr-add blue_ovn_cluster_router -- set logical_router blue_ovn_cluster_router external_ids:k8s-cluster-router=yes -- lr-route-add blue_ovn_cluster_router 10.200.0.0/24 100.65.0.2
--id=@lb create load_balancer name=theirs 'vips={"10.55.0.9:80"="10.55.0.2:80"}' -- add load_balancer_group clusterLBGroup load_balancer @lb
create load_balancer name=Service_a/web_TCP_cluster external_ids:k8s.ovn.org/kind=Service external_ids:k8s.ovn.org/network=blue
create address_set name=theirs addresses=10.1.2.3
create port_group name=theirs
nat ovn_cluster_router logical_ip=10.99.0.0/24 external_ip=198.51.100.2
"#;

/// Once per node. `$sibling_join` is `$join` of the next node.
const NODE: &str = r#"
lr-route-add ovn_cluster_router 192.0.$2.64/26 $join rtoj-ovn_cluster_router
--policy=src-ip lr-route-add ovn_cluster_router 198.18.$2.0/24 $join
--policy=src-ip lr-route-add ovn_cluster_router 10.131.2$2.0/24 $join
--policy=src-ip lr-route-add ovn_cluster_router $pod $sibling_join
--ecmp --policy=src-ip lr-route-add ovn_cluster_router $subnet $sibling_join
--ecmp --policy=src-ip lr-route-add ovn_cluster_router 10.128.0.0/14 $join
lr-route-add ovn_cluster_router 198.51.100.$2 198.51.100.$2
lr-route-add ovn_cluster_router 100.64.9.$2 100.64.9.$2
route ovn_cluster_router policy=src-ip ip_prefix=10.99.$2.0/24 nexthop=$join external_ids:owner=somebody
route ovn_cluster_router policy=dst-ip ip_prefix=10.96.9.$2 nexthop=$management external_ids:k8s.ovn.org/network=blue
route ovn_cluster_router ip_prefix=10.131.$2.0/24 nexthop=100.88.0.$2 external_ids:ic-node=far-$node
route ovn_cluster_router policy=dst-ip ip_prefix=$pod nexthop=$join output_port=rtos-$node external_ids:k8s.ovn.org/zone=local
lr-policy-add ovn_cluster_router 1004 'ip4.dst == 10.66.$2.0/24' drop
lr-policy-add ovn_cluster_router 1004 'inport == "rtos-$node" && ip4.dst == 198.51.100.1' reroute $management
lr-policy-add ovn_cluster_router 1004 'inport == "rtos-$node" && ip4.dst == 198.51.100.2 /* $node */' reroute $sibling_join
lr-policy-add ovn_cluster_router 1004 'inport == "rtos-$node" && ip4.dst == 198.51.100.3 /* theirs */' reroute $management
policy ovn_cluster_router priority=1004 'match="inport == \"rtos-blue_$node\" && ip4.dst == $outer /* blue_$node */"' action=reroute nexthops=$management external_ids:k8s.ovn.org/network=blue
policy ovn_cluster_router priority=100 'match="ip4.src == $pod"' action=reroute nexthops=$join external_ids:k8s.ovn.org/owner-controller=default-network-controller external_ids:k8s.ovn.org/owner-type=EgressIP
policy ovn_cluster_router priority=101 'match="ip4.src == $pod"' action=reroute nexthops=$management external_ids:EgressSVC=a/b
lr-policy-add ovn_cluster_router 501 'inport == "rtos-$node" && ip4.src == 10.1.0.$2' reroute $join

lr-route-add GR_$node 203.0.113.0/24 172.18.0.70 rtoe-GR_$node
lr-route-add GR_$node 10.77.0.0/16 100.64.0.1
--policy=src-ip lr-route-add GR_$node $pod 172.18.0.70
--ecmp lr-route-add GR_$node 0.0.0.0/0 172.18.0.72 rtoe-GR_$node
route GR_$node policy=src-ip ip_prefix=$pod/32 nexthop=172.18.0.70 output_port=rtoe-GR_$node options:ecmp_symmetric_reply=true
route GR_$node policy=src-ip ip_prefix=$pod/32 nexthop=172.18.0.73 output_port=rtoe-GR_$node options:ecmp_symmetric_reply=true external_ids:owner=somebody
--id=@bfd create bfd logical_port=rtoe-GR_$node dst_ip=172.18.0.71 -- route GR_$node policy=src-ip ip_prefix=$pod/32 nexthop=172.18.0.71 output_port=rtoe-GR_$node options:ecmp_symmetric_reply=true bfd=@bfd
route GR_$node ip_prefix=203.0.114.0/24 nexthop=172.18.0.74 output_port=rtoe-GR_$node external_ids:k8s.ovn.org/owner-controller=RouteImport
route GR_$node ip_prefix=10.132.0.0/14 nexthop=100.64.0.1 external_ids:name=hybrid-subnet-$node-gr
lr-policy-add GR_$node 1004 'ip4.src == $pod' reroute 172.18.0.70

lr-nat-add GR_$node snat 198.51.100.8 10.99.0.0/24
lr-nat-add GR_$node snat $outer 10.99.1.0/24
lr-nat-add GR_$node snat $outer $pod
lr-nat-add GR_$node snat 198.51.100.10 $management
lr-nat-add GR_$node dnat_and_snat 198.51.100.9 $pod
nat GR_$node logical_ip=$pod external_ip=172.18.10.10 logical_port=k8s-$node options:stateless=false external_ids:k8s.ovn.org/owner-controller=default-network-controller external_ids:k8s.ovn.org/owner-type=EgressIP
nat GR_$node logical_ip=$pod external_ip=172.18.10.11 options:stateless=false external_ids:name=egressip
nat GR_$node logical_ip=10.200.0.0/16 external_ip=$outer options:stateless=false external_ids:k8s.ovn.org/network=blue

create static_mac_binding logical_port=rtoe-GR_$node ip=172.18.0.75 'mac="02:00:00:00:00:75"'
create static_mac_binding logical_port=rtoe-GR_$node ip=172.18.0.76 'mac="0a:58:ac:12:00:4c"' override_dynamic_mac=true
create static_mac_binding logical_port=rtoe-GR_$node ip=169.254.169.5 'mac="0a:58:a9:fe:a9:05"' override_dynamic_mac=true

acl-add $node from-lport 7 'ip4.dst == 10.66.0.0/16' drop
qos-add $node from-lport 7 ip4 dscp=10
lsp-add $node vm-$node -- lsp-set-addresses vm-$node '02:00:00:00:00:0a 10.1.1.9'
lsp-add ext_$node vm-ext-$node -- lsp-set-addresses vm-ext-$node unknown
lsp-add join theirs-$node -- lsp-set-type theirs-$node router -- lsp-set-addresses theirs-$node router
lb-add theirs-$node 10.55.0.1:80 10.55.0.2:80 -- ls-lb-add $node theirs-$node -- lr-lb-add GR_$node theirs-$node
lrp-add ovn_cluster_router theirs-$node 02:00:00:00:01:$02 10.199.$2.1/24
ls-add blue_$node -- set logical_switch blue_$node other_config:subnet=10.200.0.0/24 -- lsp-add blue_$node stor-blue_$node -- lsp-set-type stor-blue_$node router
lr-add GR_blue_$node -- set logical_router GR_blue_$node external_ids:physical_ip=172.18.0.2
"#;

/// The rows that ovnkube wants for each node, except for one column.
const LIKENESSES: &str = r#"
route ovn_cluster_router policy=src-ip ip_prefix=$subnet nexthop=$join external_ids:owner=somebody
route ovn_cluster_router policy=src-ip ip_prefix=$subnet nexthop=$join options:ecmp_symmetric_reply=true
route ovn_cluster_router policy=src-ip ip_prefix=$subnet nexthop=$join selection_fields=ip_src
route ovn_cluster_router policy=src-ip ip_prefix=$subnet nexthop=$join route_table=theirs
route ovn_cluster_router ip_prefix=$join nexthop=$join external_ids:owner=somebody
route ovn_cluster_router ip_prefix=$join nexthop=$join output_port=rtoj-ovn_cluster_router
policy ovn_cluster_router priority=1004 'match="inport == \"rtos-$node\" && ip4.dst == $outer /* $node */"' action=reroute nexthops=$management external_ids:owner=somebody
policy ovn_cluster_router priority=1004 'match="inport == \"rtos-$node\" && ip4.dst == $outer /* $node */"' action=reroute nexthops=$management options:pkt_mark=7
policy ovn_cluster_router priority=1004 'match="inport == \"rtos-$node\" && ip4.dst == $outer /* $node */"' action=reroute nexthops=$sibling_join
policy ovn_cluster_router priority=1004 'match="inport == \"rtos-$node\" && ip4.dst == $outer /* $node */"' action=drop
route GR_$node ip_prefix=0.0.0.0/0 nexthop=172.18.255.1 output_port=rtoe-GR_$node external_ids:owner=somebody
route GR_$node ip_prefix=0.0.0.0/0 nexthop=172.18.255.1 output_port=rtoe-GR_$node options:ecmp_symmetric_reply=true
route GR_$node ip_prefix=169.254.169.0/29 nexthop=169.254.169.4 output_port=rtoe-GR_$node external_ids:owner=somebody
route GR_$node ip_prefix=10.128.0.0/14 nexthop=100.64.0.1 external_ids:owner=somebody
nat GR_$node logical_ip=$join external_ip=$outer options:stateless=false external_ids:owner=somebody
nat GR_$node logical_ip=10.128.0.0/14 external_ip=$outer options:stateless=false external_ids:owner=somebody
nat GR_$node logical_ip=10.128.0.0/14 external_ip=$outer options:stateless=true
nat GR_$node logical_ip=10.128.0.0/14 external_ip=$outer options:stateless=false 'match="ip4.dst == 10.1.0.0/16"'
nat GR_$node logical_ip=10.128.0.0/14 external_ip=$outer options:stateless=false logical_port=k8s-$node
nat GR_$node logical_ip=$join external_ip=$outer options:stateless=false priority=9
--id=@set create address_set name=theirs_$node -- nat GR_$node logical_ip=10.128.0.0/14 external_ip=$outer options:stateless=false exempted_ext_ips=@set
"#;

/// Rows with names that have no index.
const NAMESAKES: &str = r"
create logical_router name=ovn_cluster_router
create logical_router name=ovn_cluster_router external_ids:owner=somebody
create logical_switch name=join
create load_balancer name=Service_a/web_TCP_cluster external_ids:owner=somebody
";

/// A row that refers to another, and the column.
type Place = (Uuid, ColumnId);

/// The rows as created by others, and the places that referred to them.
#[derive(Default)]
pub struct Foreign(BTreeMap<Uuid, (Row, Vec<Place>)>);

impl Foreign {
    /// Creates foreign rows of every kind, in addition to the rows of these nodes. With `likenesses`, also rows
    /// that differ from ours in one column.
    pub async fn put(server: &Server, nodes: &[&str], likenesses: bool) -> Self {
        let commands = Self::commands(&server.client().await, nodes, likenesses);
        Self::made_by(server, &commands).await
    }

    /// The commands that create them.
    pub fn commands(nb: &Client, nodes: &[&str], likenesses: bool) -> Vec<String> {
        let sites: Vec<Site> = nodes.iter().map(|node| Site::of(&nb.cache(), node)).collect();
        let mut commands: Vec<_> = lines(CLUSTER).map(str::to_owned).collect();
        for (n, site) in sites.iter().enumerate() {
            let templates = lines(NODE).chain(lines(LIKENESSES).filter(|_| likenesses));
            commands.extend(templates.map(|line| site.fill(line, &sites[(n + 1) % sites.len()])));
        }
        commands
    }

    /// Adds more of them.
    pub fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Other objects with the same names.
    pub async fn namesakes(server: &Server) -> Self {
        Self::made_by(server, &lines(NAMESAKES).map(str::to_owned).collect::<Vec<_>>()).await
    }

    /// The rows that these commands create, at least one each.
    pub async fn made_by(server: &Server, commands: &[String]) -> Self {
        let made = Self::by(server, || commands.iter().for_each(|command| drop(server.nbctl(&words(command))))).await;
        assert!(made.0.len() >= commands.len(), "{} rows by {} commands", made.0.len(), commands.len());
        made
    }

    /// The rows that this command creates, unless something prevents it.
    pub async fn tried(server: &Server, command: &str) -> Self {
        let make = || {
            server.may_nbctl(&words(command));
        };
        Self::by(server, make).await
    }

    async fn by(server: &Server, make: impl FnOnce()) -> Self {
        let before = dump::uuids(&server.client().await.cache());
        make();
        let nb = server.client().await;
        let cache = nb.cache();
        let new = dump::uuids(&cache).into_iter().filter(|(uuid, _)| !before.contains_key(uuid));
        Self(new.map(|(uuid, (_, row))| (uuid, (row, places(&cache, uuid)))).collect())
    }

    /// The rows that are not as created. A row whose referrer was deleted may be missing too.
    pub fn harm(&self, nb: &Client) -> Vec<String> {
        let cache = nb.cache();
        let now = dump::uuids(&cache);
        let mut harm = Vec::new();
        for (uuid, (row, was_in)) in &self.0 {
            let hung: Vec<Place> = was_in.iter().copied().filter(|(parent, _)| now.contains_key(parent)).collect();
            match now.get(uuid) {
                Some((_, have)) if have != row => harm.push(format!("{row} is {have}")),
                Some(_) if places(&cache, *uuid) != hung => harm.push(format!("{row} was taken out of something")),
                None if row.table().is_root || !hung.is_empty() => harm.push(format!("{row} is gone")),
                _ => {}
            }
        }
        harm
    }

    /// Keeps only the rows that still exist, with their current places: deleted ones are not expected back.
    pub fn left(mut self, nb: &Client) -> Self {
        let cache = nb.cache();
        let now = dump::uuids(&cache);
        self.0.retain(|uuid, _| now.contains_key(uuid));
        for (uuid, (_, hung)) in &mut self.0 {
            *hung = places(&cache, *uuid);
        }
        self
    }

    pub fn contains(&self, uuid: Uuid) -> bool {
        self.0.contains_key(&uuid)
    }
}

/// A node's values, from its rows.
struct Site(Vec<(&'static str, String)>);

impl Site {
    fn of(cache: &Cache, node: &str) -> Self {
        let network = |port: &str| {
            let uuid = *cache.lookup(lrp::TABLE, port).first().unwrap_or_else(|| panic!("no port {port}"));
            let row = cache.get(lrp::TABLE, uuid).unwrap();
            let (ip, prefix) = row.strs(lrp::NETWORKS).find_map(|n| n.split_once('/').filter(|n| n.1 != "64")).unwrap();
            (ip.to_owned(), prefix.to_owned())
        };
        let (gateway, prefix) = network(&format!("rtos-{node}"));
        let bytes = gateway.strip_suffix(".1").unwrap();
        let join = network(&format!("rtoj-GR_{node}")).0;
        Self(vec![
            ("$node", node.to_owned()),
            ("$subnet", format!("{bytes}.0/{prefix}")),
            ("$pod", format!("{bytes}.250")),
            ("$management", format!("{bytes}.2")),
            ("$outer", network(&format!("rtoe-GR_{node}")).0),
            // a number that is unique to the node
            ("$2", join.rsplit('.').next().unwrap().to_owned()),
            ("$02", format!("{:0>2}", join.rsplit('.').next().unwrap())),
            ("$join", join),
        ])
    }

    fn fill(&self, template: &str, sibling: &Self) -> String {
        let join = |site: &Self| site.0.last().unwrap().1.clone();
        let start = template.replace("$sibling_join", &join(sibling));
        self.0.iter().fold(start, |text, (name, value)| text.replace(name, value))
    }
}

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.is_empty())
}

/// The words of a line, with our own words for creating a row expanded.
fn words(line: &str) -> Vec<&str> {
    // quotes keep spaces
    let parts = line.split('\'').enumerate();
    let mut words: Vec<&str> =
        parts.flat_map(|(n, part)| if n % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }).collect();
    for (name, table, column) in [
        ("route", "logical_router_static_route", "static_routes"),
        ("policy", "logical_router_policy", "policies"),
        ("nat", "nat", "nat"),
    ] {
        let Some(at) = words.iter().position(|word| *word == name) else { continue };
        let router = words.remove(at + 1);
        words.splice(at..=at, ["--id=@row", "create", table]);
        words.extend((name == "nat").then_some("type=snat"));
        words.extend(["--", "add", "logical_router", router, column, "@row"]);
        break;
    }
    words
}

fn places(cache: &Cache, uuid: Uuid) -> Vec<Place> {
    cache.parents(uuid).map(|parent| (parent.uuid, parent.column)).collect()
}
