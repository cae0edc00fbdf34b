//! Converts settings, as a user wrote them, to what each part needs.

use std::path::Path;
use std::sync::Arc;

use ovnkube_config::{Authority, Database, EncapType, KubeAccess, Settings, Token};
use ovnkube_model::{ClusterSubnet, ExternalIps, Name, NetworkSettings, NodeSelector, Roles, Subnet};
use ovnkube_ovsdb::{Remote, TlsFiles};
use ovnkube_watch::Access;

/// One zone per node comes later; until then all nodes are in this one.
pub(crate) const ZONE: &str = "global";

/// How to reach the Kubernetes API.
pub(crate) fn access(settings: &Settings, role: &str) -> Access {
    let mut access = Access { role: role.to_owned(), ..Access::default() };
    match &settings.kube_access {
        KubeAccess::Kubeconfig(path) => access.kubeconfig = Some(path.clone()),
        KubeAccess::Server { url, ca, token } => {
            access.apiserver = Some(url.clone());
            match ca {
                Some(Authority::File(path)) => access.ca = Some(path.clone()),
                Some(Authority::Base64(text)) => access.ca_data = Some(text.clone()),
                None => {}
            }
            match token {
                Some(Token::File(path)) => access.token_file = Some(path.clone()),
                Some(Token::Text(token)) => access.token = Some(token.expose().to_owned().into()),
                None => {}
            }
        }
    }
    // that of a node's agent gives a master in the same process no rights
    if role == "node" || settings.mode.node.is_none() {
        access.client_pem = settings.kubernetes.cert_dir.as_deref().map(ovnkube_identity::current);
    }
    access
}

/// What the plan depends on.
pub(crate) fn network(settings: &Settings, roles: Roles) -> NetworkSettings {
    let gateway = &settings.gateway;
    let join = [gateway.v4_join_subnet.into(), gateway.v6_join_subnet.into()];
    let manager = &settings.clustermanager;
    let transit = [manager.v4_transit_subnet.into(), manager.v6_transit_subnet.into()];
    NetworkSettings {
        roles,
        zone: ZONE.into(),
        cluster_subnets: cluster_subnets(settings),
        service_cidrs: settings.kubernetes.service_cidrs.iter().map(|net| Subnet::of(*net)).collect(),
        external_ips: ExternalIps {
            disabled: settings.kubernetes.disable_external_ips,
            allowed: settings.kubernetes.allowed_external_ips.iter().map(|net| Subnet::of(*net)).collect(),
        },
        encap_port: encap_port(settings),
        join_subnets: join.map(Subnet::of).into(),
        disable_snat_multiple_gws: gateway.disable_snat_multiple_gws,
        masquerade_subnets: masquerade_subnets(settings),
        transit_subnets: transit.map(Subnet::of).into(),
        mtu: settings.default.mtu,
        host_network_namespace: settings.kubernetes.host_network_namespace.as_deref().map(Name::from),
        no_hostsubnet_nodes: no_hostsubnet_nodes(settings),
        multicast: settings.command_line.enable_multicast,
        egress_firewall: settings.features.egress_firewall,
        stateless_netpol: settings.features.stateless_netpol,
        disable_requested_chassis: settings.kubernetes.disable_requestedchassis,
        disable_iface_id_ver: settings.command_line.disable_ovn_iface_id_ver,
        svc_template_support: settings.features.svc_template_support,
        acl_logging_rate_limit: settings.logging.acl_logging_rate_limit,
    }
}

fn no_hostsubnet_nodes(settings: &Settings) -> Option<NodeSelector> {
    let selector = settings.kubernetes.no_hostsubnet_nodes.clone()?;
    Some(NodeSelector(Arc::new(move |labels| selector.matches(|key| labels.get(key).map(String::as_str)))))
}

/// Addresses that every node uses to talk to itself and to services.
pub(crate) fn masquerade_subnets(settings: &Settings) -> Vec<Subnet> {
    let gateway = &settings.gateway;
    [gateway.v4_masquerade_subnet.into(), gateway.v6_masquerade_subnet.into()].map(Subnet::of).into()
}

/// UDP port of the tunnels.
pub(crate) fn encap_port(settings: &Settings) -> u16 {
    settings.default.encap_port.unwrap_or(usual_encap_port(settings))
}

/// The port if it is not OVN's default.
pub(crate) fn unusual_encap_port(settings: &Settings) -> Option<u16> {
    Some(encap_port(settings)).filter(|port| *port != usual_encap_port(settings))
}

fn usual_encap_port(settings: &Settings) -> u16 {
    match settings.default.encap_type {
        EncapType::Geneve => 6081,
        EncapType::Vxlan => 4789,
    }
}

/// The ranges that node subnets come from.
pub(crate) fn cluster_subnets(settings: &Settings) -> Vec<ClusterSubnet> {
    let range = |range: &ovnkube_config::ClusterSubnet| ClusterSubnet {
        cidr: Subnet::of(range.net),
        host_prefix: range.host_prefix,
    };
    settings.default.cluster_subnets.iter().map(range).collect()
}

/// Where a database listens; existing local sockets come first.
pub(crate) fn remotes(database: &Database) -> Vec<Remote> {
    let all: Vec<Remote> = database.remotes.iter().filter_map(|r| Remote::parse(&r.to_string()).ok()).collect();
    let there = |remote: &Remote| !matches!(remote, Remote::Unix(path) if !Path::new(path).exists());
    let (mut existing, missing): (Vec<Remote>, Vec<Remote>) = all.into_iter().partition(there);
    existing.extend(missing);
    existing
}

pub(crate) fn tls(database: &Database) -> Option<TlsFiles> {
    database.tls.as_ref().map(|tls| TlsFiles {
        private_key: tls.privkey.clone(),
        certificate: tls.cert.clone(),
        ca: tls.cacert.clone(),
        common_name: tls.common_name.clone(),
    })
}
