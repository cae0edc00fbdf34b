//! The table in a real kernel.

use super::*;
use crate::tests::apart;

/// A real kernel accepts every element and every chain, and only differences are written.
#[test]
fn the_kernel_accepts_the_table() {
    apart(async || {
        const TABLE: &str = "inet ovn-kubernetes";
        let mut cluster = samples();
        let none = nft::Elements::new();
        let mut have = none.clone();
        for step in 0..4 {
            match step {
                    1 => drop(cluster.add("portless", &json!({
                        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "clusterIPs": ["10.96.1.8", "fd00:96::8"],
                        "ingress": ["192.0.2.28", "2001:db8::28"], "ports": [{"port": 80}, {"port": 53, "protocol": "SCTP"}],
                        "loadBalancerSourceRanges": ["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "192.0.2.7/32"],
                    })).endpoints("portless", ("TCP", 8080), &json!([
                        {"addresses": ["10.128.0.5"], "nodeName": "node-000"}, {"addresses": ["10.128.0.6"], "nodeName": "node-000"},
                    ]))),
                    2 => {
                        cluster.add("np", &json!({
                            "type": "NodePort", "clusterIPs": ["10.96.9.3"], "ports": [{"port": 81, "nodePort": 30080}],
                        }));
                        let (has, none) = ("external-ips-affinity", "external-ips-no-nodeport");
                        let slots = |cluster: &Cluster, map: &str| {
                            elements(cluster, GatewayMode::Local).iter().filter(|element| element.starts_with(map)).count()
                        };
                        assert_eq!((slots(&cluster, has), slots(&cluster, none)), (0, 128));
                        cluster.add("portless", &json!({
                            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "clusterIPs": ["10.96.1.8", "fd00:96::8"],
                            "ingress": ["192.0.2.28", "2001:db8::28"], "ports": [{"port": 80}], "sessionAffinity": "ClientIP",
                        }));
                        assert_eq!((slots(&cluster, has), slots(&cluster, none)), (128, 0));
                    }
                    3 => cluster = Cluster::default(),
                    _ => {}
                }
            let now = nft::elements(&cluster.want(), GatewayMode::Local, &masquerade());
            if step < 2 {
                let replacement = ovnkube_host::nft::replacement(TABLE, &nft::body());
                let commands = replacement + &nft::change(TABLE, &none, &now);
                ovnkube_host::nft::change(TABLE, &commands).await.unwrap();
            } else {
                ovnkube_host::nft::change(TABLE, &nft::change(TABLE, &have, &now)).await.unwrap();
            }
            have = now;
            let shown = ovnkube_host::nft::list(TABLE).await.unwrap().unwrap();
            let shown: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            for (element, value) in &have {
                let element = element.with(*value);
                let element = element.strip_suffix("/32").unwrap_or(&element);
                assert!(shown.contains(element), "{element} is not in {shown}");
            }
            assert_eq!(shown.contains("elements"), step < 3, "{shown}");
        }
    });
}
