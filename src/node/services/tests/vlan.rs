//! Services on a tagged network: the host sees no tags, OVN sets them.

use super::*;

#[test]
fn the_host_sees_no_tags() {
    let mut cluster = Cluster::default();
    let spec = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "clusterIPs": ["10.96.1.4", "fd00:96::4"],
        "ingress": ["192.0.2.20", "2001:db8::20"], "ports": [{"port": 53, "protocol": "UDP"}],
    });
    cluster.add("dns", &spec);
    cluster.endpoints("dns", ("UDP", 5353), &json!([{"addresses": ["172.18.0.2"], "nodeName": "node-000"}]));
    let facts = Facts { vlan: Some(7), ..facts(GatewayMode::Shared, &["172.18.0.2", "fc00:18::2"]) };
    let flows = flows(&facts, &cluster.want());
    for (table, flow) in [
        (0, "arp,in_port=1,dl_vlan=7,arp_tpa=192.0.2.20,arp_op=1,actions=strip_vlan,LOCAL"),
        (0, "icmp6,in_port=1,dl_vlan=7,nd_target=2001:db8::20,icmp_type=135,icmp_code=0,actions=strip_vlan,LOCAL"),
        (0, "udp,in_port=1,nw_dst=192.0.2.20,tp_dst=53,actions=ct(commit,zone=64003,nat(dst=172.18.0.2:5353),table=6)"),
        (6, "dl_vlan=7,actions=strip_vlan,LOCAL"),
        (0, "udp,in_port=LOCAL,nw_src=172.18.0.2,tp_src=5353,actions=ct(zone=64003,nat,table=7)"),
        (7, "actions=push_vlan:0x8100,set_field:4103->vlan_vid,output:1"),
        // OVN sees tags and sets them
        (0, "udp6,in_port=1,ipv6_dst=2001:db8::20,tp_dst=53,actions=output:2"),
        (0, "udp6,in_port=2,dl_src=02:42:ac:12:00:02,ipv6_src=2001:db8::20,tp_src=53,actions=output:1"),
    ] {
        let flow = format!("cookie=0xdeff105,table={table},priority=110,{flow}");
        assert!(flows.contains(&flow), "{flow} is not in {flows:#?}");
    }
}
