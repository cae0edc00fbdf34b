#compdef ovnkube
# Written by `cargo run -p xtask -- pages`; do not edit.

autoload -U is-at-least

_ovnkube() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'-o+[Output format of a command\: text or json.]:format:(text json)' \
'--output=[Output format of a command\: text or json.]:format:(text json)' \
'--from=[why\: read the objects from the YAML and JSON files of this directory, not from the cluster.]:directory:_default' \
'--node=[plan\: the node'\''s name in Kubernetes. preflight, without a name\: look at this host, not at the cluster.]::string:_default' \
'--force=[ic clean\: also remove a cluster that answers, or may be alive.]::bool:_default' \
'-t+[readiness-probe\: the program to ask.]:target:_default' \
'--target=[readiness-probe\: the program to ask.]:target:_default' \
'--webhook-cert-dir=[identity\: directory of the certificate tls.crt and its key tls.key.]:directory:_default' \
'--webhook-host=[identity\: address to listen on; localhost is 127.0.0.1. \[default\: localhost\]]:address:_default' \
'--webhook-port=[identity\: TCP port to listen on. \[default\: 9443\]]:port:_default' \
'--disable-webhook=[identity\: do not serve the webhook.]::bool:_default' \
'--disable-approver=[identity\: do not approve certificates of node agents.]::bool:_default' \
'--init-master=[Run as master\: cluster manager and network controller; the value is this host'\''s name.]:string:_default' \
'--init-cluster-manager=[Run the cluster manager, which hands out node subnets and needs no OVN database; the value is this host'\''s name.]:string:_default' \
'--init-ovnkube-controller=[Run the network controller, which writes the OVN northbound database; the value is this host'\''s name.]:string:_default' \
'--init-node=[Run the node agent; the value is the node'\''s name in Kubernetes.]:string:_default' \
'--cleanup-node=[Remove what the node agent set up on this host and exit; the value is the node'\''s name in Kubernetes.]:string:_default' \
'--remove-node=[Remove a node from the OVN databases and exit; the value is the node'\''s name in Kubernetes.]:string:_default' \
'--config-file=[Path of the configuration file. The default file may be missing; a file that is named here must exist. Default\: /etc/openvswitch/ovn_k8s.conf.]:path:_default' \
'--pidfile=[File that holds the process id while ovnkube runs; empty writes none.]:path:_default' \
'--record=[Record every input of the controller in this file, for \`ovnkube replay\`; empty records nothing.]:path:_default' \
'--allow-unserved=[Take over a northbound database although it has rows of features of ovn-kubernetes that ovnkube does not support; these rows stay as they are. Default\: false.]::bool:_default' \
'--unprivileged-mode=[Run the node agent without privileges; the CNI program wires the pods. Default\: false. (no effect yet)]::bool:_default' \
'--enable-multicast=[Support IP multicast\: switches snoop IGMP and MLD, and the cluster router relays multicast. Default\: false.]::bool:_default' \
'--init-gateways=[Older form of --gateway-mode=shared. Default\: false.]::bool:_default' \
'--gateway-local=[Older form of --gateway-mode=local. Default\: false.]::bool:_default' \
'--gateway-localnet=[Older form of --gateway-mode=local. Default\: false.]::bool:_default' \
'--net-controller=[Older switch of the network controller. Default\: false. (does nothing\: --init-master runs the network controller)]::bool:_default' \
'--ha=[Older switch for restoring databases. Default\: false. (does nothing\: rows are always brought back to what the cluster needs)]::bool:_default' \
'--gateway-spare-interface=[Older switch that leaves the gateway interface to OVN alone. Default\: false. (does nothing\: the host and OVN share its addresses on the bridge)]::bool:_default' \
'--win-hnsnetwork-id=[Network id of the Windows Host Networking Service (HNS). (does nothing\: nodes run Linux)]:string:_default' \
'--disable-ovn-iface-id-ver=[Do not write the pod'\''s uid (iface-id-ver) to its logical port. Default\: false.]::bool:_default' \
'--mtu=[MTU of the pods'\'' interfaces, in bytes; the network between the nodes must carry 58 bytes more (78 over ipv6). If it is not set, a node subtracts the tunnel headers from its uplink'\''s MTU, or uses 1400 if that is not known. Default\: 1400. File\: \[default\] mtu.]:int:_default' \
'--routable-mtu=[MTU of the routes of pods and of the management port, in bytes, while nodes change to another MTU one by one; 0 sets none. Default\: 0. File\: \[default\] routable-mtu.]:int:_default' \
'--conntrack-zone=[Conntrack zone of the gateway'\''s flows; the next four zones are used too. Default\: 64000. File\: \[default\] conntrack-zone.]:int:_default' \
'--encap-type=[Tunnel protocol between nodes\: geneve or vxlan. Default\: geneve. File\: \[default\] encap-type.]:word:_default' \
'--encap-ip=[Addresses of this node'\''s tunnel endpoint, a comma list; if empty, the node'\''s internal address. File\: \[default\] encap-ip.]:ip:_default' \
'--encap-port=[UDP port of the tunnels; if empty, 6081 for geneve and 4789 for vxlan. It must be the same on masters and all nodes. File\: \[default\] encap-port.]:int:_default' \
'--inactivity-probe=[Milliseconds without traffic after which ovn-controller probes its connection to the southbound database; 0 does not probe. Default\: 100000. File\: \[default\] inactivity-probe.]:int:_default' \
'--openflow-probe=[Seconds without traffic after which ovn-controller probes its connection to the local switch; 0 does not probe. OVN 24.03 and later ignores it. Default\: 180. File\: \[default\] openflow-probe.]:int:_default' \
'--ofctrl-wait-before-clear=[Milliseconds that ovn-controller keeps old flows after it starts; 0 clears them at once. OVN 25.09 and later ignores it. Default\: 0. File\: \[default\] ofctrl-wait-before-clear.]:int:_default' \
'--monitor-all=[Let ovn-controller monitor the whole southbound database, not only the part that its node needs. Default\: true. File\: \[default\] monitor-all.]::bool:_default' \
'--db-txn-timeout=[Time after which a database transaction without a reply has failed. Default\: 1m40s. File\: \[default\] db-txn-timeout.]:duration:_default' \
'--enable-lflow-cache=[Let ovn-controller cache logical flows. Default\: true. File\: \[default\] enable-lflow-cache.]::bool:_default' \
'--lflow-cache-limit=[Largest number of cached logical flows; 0 is no limit. Default\: 0. File\: \[default\] lflow-cache-limit.]:int:_default' \
'--lflow-cache-limit-kb=[Largest size of the logical flow cache in kilobytes; 0 is no limit. Default\: 0. File\: \[default\] lflow-cache-limit-kb.]:int:_default' \
'--cluster-subnets=[Ranges of pod addresses, a comma list of CIDR\[/hostprefix\]; hostprefix is the prefix length of one node'\''s subnet (ipv4\: 24 if not given, ipv6\: always 64). Default\: 11.11.0.0/16. File\: \[default\] cluster-subnets.]:cidr[/hostprefix]:_default' \
'--cluster-subnet=[Ranges of pod addresses, a comma list of CIDR\[/hostprefix\]; hostprefix is the prefix length of one node'\''s subnet (ipv4\: 24 if not given, ipv6\: always 64). Default\: 11.11.0.0/16. File\: \[default\] cluster-subnets.]:cidr[/hostprefix]:_default' \
'--zone=[Zone of this process; \`global\` is one zone for the whole cluster. Default\: global. File\: \[default\] zone. (no effect yet)]:string:_default' \
'--udn-allowed-default-services=[Services, a comma list of namespace/name, that user-defined primary networks may reach. Default\: default/kubernetes,kube-system/kube-dns. File\: \[default\] udn-allowed-default-services. (no effect yet)]:string:_default' \
'--cluster-default-nad=[NetworkAttachmentDefinition, namespace/name, of the default network. File\: \[default\] cluster-default-nad. (no effect yet)]:string:_default' \
'--transport=[Transport between nodes; empty and geneve are the overlay network. File\: \[default\] transport. (no effect yet)]:string:_default' \
'--loglevel=[Log messages up to this level\: 1 fatal, 2 error, 3 warning, 4 information, 5 debug. Default\: 4. File\: \[logging\] loglevel.]:int:_default' \
'--logfile=[File for the log; empty is standard error. File\: \[logging\] logfile.]:path:_default' \
'--cnilogfile=[File for the log of the CNI program. Default\: /var/log/ovn-kubernetes/ovn-k8s-cni-overlay.log. File\: \[logging\] cnilogfile.]:path:_default' \
'--libovsdblogfile=[File for the log of the database client; empty is the same as logfile. File\: \[logging\] libovsdblogfile. (no effect yet)]:path:_default' \
'--logfile-maxsize=[Size of the log file, in megabytes, at which a new one is started. Default\: 100. File\: \[logging\] logfile-maxsize.]:int:_default' \
'--logfile-maxbackups=[Old log files to keep; 0 keeps all. Default\: 5. File\: \[logging\] logfile-maxbackups.]:int:_default' \
'--logfile-maxage=[Days to keep old log files; 0 keeps them for ever. Default\: 5. File\: \[logging\] logfile-maxage.]:int:_default' \
'--acl-logging-rate-limit=[Most policy verdicts of each ACL that a node logs per second. Default\: 20. File\: \[logging\] acl-logging-rate-limit.]:int:_default' \
'--cni-conf-dir=[Directory of the CNI configuration. Default\: /etc/cni/net.d. File\: \[cni\] conf-dir.]:path:_default' \
'--cni-bin-dir=[The container runtime'\''s directory of CNI programs. If it contains \`portmap\`, pods can have host ports. Default\: /opt/cni/bin. File\: \[cni\] bin-dir.]:path:_default' \
'--cni-program=[Path of the CNI program that a node agent copies to that directory when it starts; empty copies none. File\: \[cni\] program.]:path:_default' \
'--cni-plugin=[File name of the CNI program. Default\: ovn-k8s-cni-overlay. File\: \[cni\] plugin.]:string:_default' \
'--k8s-kubeconfig=[Path of a kubeconfig file; it replaces apiserver, cacert and token of the same layer and of lower ones. File\: \[kubernetes\] kubeconfig. Environment\: KUBECONFIG.]:path:_default' \
'--k8s-apiserver=[URL of the API server. Default\: http\://localhost\:8443. File\: \[kubernetes\] apiserver. Environment\: K8S_APISERVER.]:string:_default' \
'--k8s-cacert=[Certificate authority of the API server, a PEM file. File\: \[kubernetes\] cacert. Environment\: K8S_CACERT.]:path:_default' \
'--k8s-cacert-data=[Certificate authority of the API server, base64 of the PEM text. File\: \[kubernetes\] cacert-data. Environment\: K8S_CACERT_DATA.]:string:_default' \
'--k8s-token=[Bearer token for the API server. Every user of the host can see a token on the command line\: prefer k8s-token-file. File\: \[kubernetes\] token. Environment\: K8S_TOKEN.]:string:_default' \
'--k8s-token-file=[File with the bearer token; it is read again when it changes. File\: \[kubernetes\] tokenFile. Environment\: K8S_TOKEN_FILE.]:path:_default' \
'--bootstrap-kubeconfig=[Kubeconfig with which a node agent asks for a client certificate of its own, the kubelet'\''s; needs cert-dir. File\: \[kubernetes\] bootstrap-kubeconfig. Environment\: BOOTSTRAP_KUBECONFIG.]:path:_default' \
'--cert-dir=[Directory of the client certificate, ovnkube-client-current.pem; it replaces the token, or the user of the kubeconfig. File\: \[kubernetes\] cert-dir. Environment\: CERT_DIR.]:path:_default' \
'--cert-duration=[How long certificates shall be valid that a node agent asks for, from 10m0s to 8760h0m0s. Default\: 10m0s. File\: \[kubernetes\] cert-duration.]:duration:_default' \
'--k8s-service-cidrs=[Ranges of service addresses, a comma list with one CIDR per address family; the same as the API server'\''s --service-cluster-ip-range. Default\: 172.16.1.0/24. File\: \[kubernetes\] service-cidrs.]:cidr:_default' \
'--k8s-service-cidr=[Ranges of service addresses, a comma list with one CIDR per address family; the same as the API server'\''s --service-cluster-ip-range. Default\: 172.16.1.0/24. File\: \[kubernetes\] service-cidrs.]:cidr:_default' \
'--service-cluster-ip-range=[Ranges of service addresses, a comma list with one CIDR per address family; the same as the API server'\''s --service-cluster-ip-range. Default\: 172.16.1.0/24. File\: \[kubernetes\] service-cidrs.]:cidr:_default' \
'--disable-external-ips=[Do not serve the addresses in spec.externalIPs of services. It must be the same on masters and all nodes. Default\: false. File\: \[kubernetes\] disable-external-ips.]::bool:_default' \
'--allowed-external-ips=[Ranges of the addresses that are allowed in spec.externalIPs of services, a comma list; empty allows all. An address at which nodes reach the API server, a database or their DNS is served only if it is an entry of its own (10.0.0.1/32). It must be the same on masters and all nodes. File\: \[kubernetes\] allowed-external-ips.]:cidr:_default' \
'--ovn-config-namespace=[Namespace of ovnkube'\''s own objects. Default\: ovn-kubernetes. File\: \[kubernetes\] ovn-config-namespace.]:string:_default' \
'--ovn-empty-lb-events=[Keep load balancers without backends and raise an event when traffic for one arrives. Default\: false. File\: \[kubernetes\] ovn-empty-lb-events. (no effect yet)]::bool:_default' \
'--pod-ip=[Accepted for old command lines. File\: \[kubernetes\] pod-ip. (does nothing\: the address is taken from the node object)]:string:_default' \
'--no-hostsubnet-nodes=[Label selector of nodes to which ovnkube gives no subnet. File\: \[kubernetes\] no-hostsubnet-nodes.]:selector:_default' \
'--host-network-namespace=[Namespace that represents the nodes'\'' own traffic in network policies. File\: \[kubernetes\] host-network-namespace. Environment\: OVN_HOST_NETWORK_NAMESPACE.]:string:_default' \
'--disable-requestedchassis=[Do not write the pod'\''s chassis (requested-chassis) to its logical port. Default\: false. File\: \[kubernetes\] disable-requestedchassis.]::bool:_default' \
'--platform-type=[Cloud platform that the cluster runs on. File\: \[kubernetes\] platform-type. (no effect yet)]:string:_default' \
'--healthz-bind-address=[Address and port of the health check; empty is off. File\: \[kubernetes\] healthz-bind-address.]:[ip]:port:_default' \
'--dns-service-namespace=[Namespace of the cluster'\''s DNS service. Default\: kube-system. File\: \[kubernetes\] dns-service-namespace. (no effect yet)]:string:_default' \
'--dns-service-name=[Name of the cluster'\''s DNS service. Default\: kube-dns. File\: \[kubernetes\] dns-service-name. (no effect yet)]:string:_default' \
'--nb-address=[Addresses of the database, a comma list of tcp\:host\:port, ssl\:host\:port or unix\:path; empty is the local socket. File\: \[ovnnorth\] address.]:address:_default' \
'--nb-client-privkey=[Client'\''s private key for ssl addresses. Default\: /etc/openvswitch/ovnnb-privkey.pem. File\: \[ovnnorth\] client-privkey.]:path:_default' \
'--nb-client-cert=[Client'\''s certificate for ssl addresses. Default\: /etc/openvswitch/ovnnb-cert.pem. File\: \[ovnnorth\] client-cert.]:path:_default' \
'--nb-client-cacert=[Certificate authority of the server for ssl addresses. Default\: /etc/openvswitch/ovnnb-ca.cert. File\: \[ovnnorth\] client-cacert.]:path:_default' \
'--nb-cert-common-name=[Name that the server'\''s certificate must have; if empty, the host in its address. File\: \[ovnnorth\] cert-common-name.]:string:_default' \
'--nb-raft-election-timer=[Seconds after which members of a Raft cluster without a leader elect one; from 1000 on, milliseconds; 0 does not change it. The master on the leader'\''s host sets it. Default\: 0. File\: \[ovnnorth\] election-timer.]:int:_default' \
'--nb-run-dir=[Directory of the database'\''s socket. Default\: /var/run/ovn/. File\: \[ovnnorth\] run-dir.]:path:_default' \
'--nb-db-location=[File of the database on this host, for ovnkube db; if it does not exist, the one where OVN'\''s packages have it. Default\: /etc/ovn/ovnnb_db.db. File\: \[ovnnorth\] db-location.]:path:_default' \
'--nb-server-privkey=[Server'\''s private key; with the next two, the master writes its path to the database, and the port of an ssl address. File\: \[ovnnorth\] server-privkey.]:path:_default' \
'--nb-server-cert=[Server'\''s certificate. File\: \[ovnnorth\] server-cert.]:path:_default' \
'--nb-server-cacert=[Certificate authority of the clients. File\: \[ovnnorth\] server-cacert.]:path:_default' \
'--sb-address=[Addresses of the database, a comma list of tcp\:host\:port, ssl\:host\:port or unix\:path; empty is the local socket. File\: \[ovnsouth\] address.]:address:_default' \
'--sb-client-privkey=[Client'\''s private key for ssl addresses. Default\: /etc/openvswitch/ovnsb-privkey.pem. File\: \[ovnsouth\] client-privkey.]:path:_default' \
'--sb-client-cert=[Client'\''s certificate for ssl addresses. Default\: /etc/openvswitch/ovnsb-cert.pem. File\: \[ovnsouth\] client-cert.]:path:_default' \
'--sb-client-cacert=[Certificate authority of the server for ssl addresses. Default\: /etc/openvswitch/ovnsb-ca.cert. File\: \[ovnsouth\] client-cacert.]:path:_default' \
'--sb-cert-common-name=[Name that the server'\''s certificate must have; if empty, the host in its address. File\: \[ovnsouth\] cert-common-name.]:string:_default' \
'--sb-raft-election-timer=[Seconds after which members of a Raft cluster without a leader elect one; from 1000 on, milliseconds; 0 does not change it. The master on the leader'\''s host sets it. Default\: 0. File\: \[ovnsouth\] election-timer.]:int:_default' \
'--sb-run-dir=[Directory of the database'\''s socket. Default\: /var/run/ovn/. File\: \[ovnsouth\] run-dir.]:path:_default' \
'--sb-db-location=[File of the database on this host, for ovnkube db; if it does not exist, the one where OVN'\''s packages have it. Default\: /etc/ovn/ovnsb_db.db. File\: \[ovnsouth\] db-location.]:path:_default' \
'--sb-server-privkey=[Server'\''s private key; with the next two, the master writes its path to the database, and the port of an ssl address. File\: \[ovnsouth\] server-privkey.]:path:_default' \
'--sb-server-cert=[Server'\''s certificate. File\: \[ovnsouth\] server-cert.]:path:_default' \
'--sb-server-cacert=[Certificate authority of the clients. File\: \[ovnsouth\] server-cacert.]:path:_default' \
'--ovs-run-dir=[Directory of the switch'\''s database socket. Default\: /var/run/openvswitch/. File\: \[ovspaths\] run-dir.]:path:_default' \
'--gateway-mode=[How pods'\'' traffic leaves a node\: shared (through OVN) or local (through the host); empty is no gateway. File\: \[gateway\] mode.]:word:_default' \
'--gateway-interface=[Interface or bridge to the outside, which has the node'\''s addresses; if empty, that of the default route. File\: \[gateway\] interface.]:string:_default' \
'--exgw-interface=[Second interface, for egress gateways. File\: \[gateway\] egw-interface. (no effect yet)]:string:_default' \
'--gateway-accelerated-interface=[Accelerated interface of the gateway. File\: \[gateway\] gateway-accelerated-interface. (no effect yet)]:string:_default' \
'--dpu-host-gateway-representor-interface=[Representor on a DPU of the host'\''s gateway interface. File\: \[gateway\] dpu-host-gateway-representor-interface. (no effect yet)]:string:_default' \
'--gateway-nexthop=[Next hops to the outside, a comma list with one per address family; if empty, those of the default routes. File\: \[gateway\] next-hop.]:ip:_default' \
'--gateway-vlanid=[VLAN of the outside network; 0 is none. Default\: 0. File\: \[gateway\] vlan-id.]:int:_default' \
'--nodeport=[Serve node ports on the gateways. Default\: false. File\: \[gateway\] nodeport.]::bool:_default' \
'--disable-snat-multiple-gws=[Give each pod its own SNAT at the gateway router, and deliver packets from outside to a pod'\''s own address. It must be the same on masters and all nodes. Default\: false. File\: \[gateway\] disable-snat-multiple-gws.]::bool:_default' \
'--disable-forwarding=[Forward packets on ovnkube'\''s interfaces only. Default\: false. File\: \[gateway\] disable-forwarding.]::bool:_default' \
'--gateway-v4-join-subnet=[Range of the join switch, ipv4. Default\: 100.64.0.0/16. File\: \[gateway\] v4-join-subnet.]:cidr:_default' \
'--gateway-v6-join-subnet=[Range of the join switch, ipv6. Default\: fd98\:\:/64. File\: \[gateway\] v6-join-subnet.]:cidr:_default' \
'--gateway-v4-masquerade-subnet=[Range of the masquerade addresses, which represent the host on the gateway, ipv4. Default\: 169.254.169.0/29. File\: \[gateway\] v4-masquerade-subnet.]:cidr:_default' \
'--gateway-v6-masquerade-subnet=[Range of the masquerade addresses, which represent the host on the gateway, ipv6. Default\: fd69\:\:/125. File\: \[gateway\] v6-masquerade-subnet.]:cidr:_default' \
'--disable-pkt-mtu-check=[Do not check at the gateway whether packets fit the pods'\'' MTU. Default\: false. File\: \[gateway\] disable-pkt-mtu-check.]::bool:_default' \
'--gateway-router-subnet=[Subnet of the gateway router'\''s external port; if empty, it is detected. File\: \[gateway\] router-subnet. (no effect yet)]:cidr:_default' \
'--single-node=[The cluster has one node, so that pods may use the whole MTU of the uplink. Default\: false. File\: \[gateway\] single-node.]::bool:_default' \
'--allow-no-uplink=[Allow a gateway bridge without an interface to the outside. Default\: false. File\: \[gateway\] allow-no-uplink.]::bool:_default' \
'--ephemeral-port-range=[Ports for translated connections, first-last; empty is the kernel'\''s range. File\: \[gateway\] ephemeral-port-range. (no effect yet)]:string:_default' \
'--ha-election-lease-duration=[Seconds without a renewal after which another master may take the lease. Default\: 10. File\: \[masterha\] election-lease-duration.]:int:_default' \
'--ha-election-renew-deadline=[Seconds within which the active master must renew the lease; otherwise it stops writing. Default\: 8. File\: \[masterha\] election-renew-deadline.]:int:_default' \
'--ha-election-retry-period=[Seconds between two renewals of the lease. Who waits for it looks more often. Default\: 2. File\: \[masterha\] election-retry-period.]:int:_default' \
'--cluster-manager-ha-election-lease-duration=[Seconds without a renewal after which another cluster manager may take the lease. Default\: 10. File\: \[clustermgrha\] election-lease-duration.]:int:_default' \
'--cluster-manager-ha-election-renew-deadline=[Seconds within which the active cluster manager must renew the lease; otherwise it stops writing. Default\: 8. File\: \[clustermgrha\] election-renew-deadline.]:int:_default' \
'--cluster-manager-ha-election-retry-period=[Seconds between two renewals of the lease. Who waits for it looks more often. Default\: 2. File\: \[clustermgrha\] election-retry-period.]:int:_default' \
'--cluster-manager-v4-transit-switch-subnet=[Range of the transit switch between zones, ipv4. Default\: 100.88.0.0/16. File\: \[clustermanager\] v4-transit-switch-subnet. (no effect yet)]:cidr:_default' \
'--cluster-manager-v4-transit-subnet=[Range of the transit switch between zones, ipv4. Default\: 100.88.0.0/16. File\: \[clustermanager\] v4-transit-switch-subnet. (no effect yet)]:cidr:_default' \
'--cluster-manager-v6-transit-switch-subnet=[Range of the transit switch between zones, ipv6. Default\: fd97\:\:/64. File\: \[clustermanager\] v6-transit-switch-subnet. (no effect yet)]:cidr:_default' \
'--cluster-manager-v6-transit-subnet=[Range of the transit switch between zones, ipv6. Default\: fd97\:\:/64. File\: \[clustermanager\] v6-transit-switch-subnet. (no effect yet)]:cidr:_default' \
'--ovnkube-node-mode=[Where the node agent runs\: full, dpu or dpu-host. Default\: full. File\: \[ovnkubenode\] mode. (no effect yet)]:word:_default' \
'--ovnkube-node-mgmt-port-netdev=[Network device to use as management port. File\: \[ovnkubenode\] mgmt-port-netdev. (no effect yet)]:string:_default' \
'--ovnkube-node-mgmt-port-dp-resource-name=[Device plugin resource to take the management port from. File\: \[ovnkubenode\] mgmt-port-dp-resource-name. (no effect yet)]:string:_default' \
'--dpu-node-lease-duration=[Seconds without a renewal after which a DPU is considered down. Default\: 40. File\: \[ovnkubenode\] dpu-node-lease-duration. (no effect yet)]:int:_default' \
'--dpu-node-lease-renew-interval=[Seconds between two renewals of a DPU'\''s lease. Default\: 10. File\: \[ovnkubenode\] dpu-node-lease-renew-interval. (no effect yet)]:int:_default' \
'--ovnkube-node-routing-table-id-start=[First number of the routing tables of user-defined networks. Default\: 1000. File\: \[ovnkubenode\] routing-table-id-start. (no effect yet)]:int:_default' \
'--simulate-dpu=[Behave as on a DPU although there is none. Default\: false. File\: \[ovnkubenode\] simulate-dpu. (no effect yet)]::bool:_default' \
'--metrics-bind-address=[Address and port of ovnkube'\''s metrics; empty is off. File\: \[metrics\] bind-address.]:[ip]:port:_default' \
'--ovn-metrics-bind-address=[Address and port of OVN'\''s and Open vSwitch'\''s metrics; empty is off. File\: \[metrics\] ovn-metrics-bind-address. (no effect yet)]:[ip]:port:_default' \
'--export-ovs-metrics=[Add Open vSwitch'\''s metrics to OVN'\''s. Default\: false. File\: \[metrics\] export-ovs-metrics. (no effect yet)]::bool:_default' \
'--metrics-enable-pprof=[Serve profiles on the metrics port. Default\: false. File\: \[metrics\] enable-pprof. (no effect yet)]::bool:_default' \
'--node-server-privkey=[Private key for serving metrics over TLS. File\: \[metrics\] node-server-privkey. (no effect yet)]:path:_default' \
'--node-server-cert=[Certificate for serving metrics over TLS. File\: \[metrics\] node-server-cert. (no effect yet)]:path:_default' \
'--metrics-enable-config-duration=[Measure how long changes take until OVN has them. Default\: false. File\: \[metrics\] enable-config-duration. (no effect yet)]::bool:_default' \
'--metrics-enable-scale=[Add metrics about scale. Default\: false. File\: \[metrics\] enable-scale-metrics. (no effect yet)]::bool:_default' \
'--tls-min-version=[Lowest TLS version that servers of ovnkube accept. File\: \[tls\] tls-min-version. (no effect yet)]:string:_default' \
'--tls-cipher-suites=[Cipher suites that servers of ovnkube accept, a comma list. File\: \[tls\] tls-cipher-suites. (no effect yet)]:string:_default' \
'--enable-admin-network-policy=[Support AdminNetworkPolicy and BaselineAdminNetworkPolicy. Default\: false. File\: \[ovnkubernetesfeature\] enable-admin-network-policy. (no effect yet)]::bool:_default' \
'--enable-egress-ip=[Support EgressIP. Default\: false. File\: \[ovnkubernetesfeature\] enable-egress-ip. (no effect yet)]::bool:_default' \
'--egressip-reachability-total-timeout=[Seconds without an answer after which an egress node is considered down; 0 does not check. Default\: 1. File\: \[ovnkubernetesfeature\] egressip-reachability-total-timeout. (no effect yet)]:int:_default' \
'--egressip-node-healthcheck-port=[Port of the health check between egress nodes; 0 tries to connect to port 9 instead. Default\: 0. File\: \[ovnkubernetesfeature\] egressip-node-healthcheck-port. (no effect yet)]:int:_default' \
'--enable-egress-firewall=[Support EgressFirewall. Default\: false. File\: \[ovnkubernetesfeature\] enable-egress-firewall. (no effect yet)]::bool:_default' \
'--enable-egress-qos=[Support EgressQoS. Default\: false. File\: \[ovnkubernetesfeature\] enable-egress-qos. (no effect yet)]::bool:_default' \
'--enable-egress-service=[Support EgressService. Default\: false. File\: \[ovnkubernetesfeature\] enable-egress-service. (no effect yet)]::bool:_default' \
'--enable-multi-external-gateway=[Support AdminPolicyBasedExternalRoute. Default\: false. File\: \[ovnkubernetesfeature\] enable-multi-external-gateway. (no effect yet)]::bool:_default' \
'--enable-multi-network=[Support secondary networks by NetworkAttachmentDefinition. Default\: false. File\: \[ovnkubernetesfeature\] enable-multi-network. (no effect yet)]::bool:_default' \
'--enable-multi-networkpolicy=[Support MultiNetworkPolicy. Default\: false. File\: \[ovnkubernetesfeature\] enable-multi-networkpolicy. (no effect yet)]::bool:_default' \
'--enable-network-segmentation=[Support user-defined networks. Default\: false. File\: \[ovnkubernetesfeature\] enable-network-segmentation. (no effect yet)]::bool:_default' \
'--disable-udn-host-isolation=[Allow the host of a pod to reach it on its user-defined primary network. Default\: false. File\: \[ovnkubernetesfeature\] disable-udn-host-isolation. (no effect yet)]::bool:_default' \
'--udn-deletion-grace-period=[Time for which a deleted user-defined network is kept. Default\: 2m0s. File\: \[ovnkubernetesfeature\] udn-deletion-grace-period. (no effect yet)]:duration:_default' \
'--enable-dynamic-udn-allocation=[Make user-defined networks only on nodes that need them. Default\: false. File\: \[ovnkubernetesfeature\] enable-dynamic-udn-allocation. (no effect yet)]::bool:_default' \
'--enable-preconfigured-udn-addresses=[Let pods choose their addresses on user-defined primary networks. Default\: false. File\: \[ovnkubernetesfeature\] enable-preconfigured-udn-addresses. (no effect yet)]::bool:_default' \
'--enable-route-advertisements=[Support RouteAdvertisements. Default\: false. File\: \[ovnkubernetesfeature\] enable-route-advertisements. (no effect yet)]::bool:_default' \
'--advertised-udn-isolation-mode=[Isolation of advertised user-defined networks from each other\: strict or loose. Default\: strict. File\: \[ovnkubernetesfeature\] advertised-udn-isolation-mode. (no effect yet)]:word:_default' \
'--enable-evpn=[Support EVPN for user-defined networks. Default\: false. File\: \[ovnkubernetesfeature\] enable-evpn. (no effect yet)]::bool:_default' \
'--enable-network-connect=[Support ClusterNetworkConnect. Default\: false. File\: \[ovnkubernetesfeature\] enable-network-connect. (no effect yet)]::bool:_default' \
'--enable-network-qos=[Support NetworkQoS. Default\: false. File\: \[ovnkubernetesfeature\] enable-network-qos. (no effect yet)]::bool:_default' \
'--enable-uplink=[Support separate uplinks for user-defined networks. Default\: false. File\: \[ovnkubernetesfeature\] enable-uplink. (no effect yet)]::bool:_default' \
'--enable-stateless-netpol=[Support network policies without connection tracking, by annotation of the policy. Default\: false. File\: \[ovnkubernetesfeature\] enable-stateless-netpol.]::bool:_default' \
'--allow-icmp-network-policy=[Always allow ICMP in network policies. Default\: false. File\: \[ovnkubernetesfeature\] allow-icmp-network-policy. (no effect yet)]::bool:_default' \
'--enable-interconnect=[Make each node a zone of its own and connect the zones by a transit switch. Default\: false. File\: \[ovnkubernetesfeature\] enable-interconnect. (no effect yet)]::bool:_default' \
'--enable-persistent-ips=[Let a virtual machine keep its addresses when it moves to another pod. Default\: false. File\: \[ovnkubernetesfeature\] enable-persistent-ips. (no effect yet)]::bool:_default' \
'--enable-dns-name-resolver=[Resolve the names in egress firewalls by DNSNameResolver objects. Default\: false. File\: \[ovnkubernetesfeature\] enable-dns-name-resolver. (no effect yet)]::bool:_default' \
'--enable-svc-template-support=[Use OVN'\''s load balancer templates for services. Default\: false. File\: \[ovnkubernetesfeature\] enable-svc-template-support.]::bool:_default' \
'--enable-observability=[Sample policy verdicts. Default\: false. File\: \[ovnkubernetesfeature\] enable-observability. (no effect yet)]::bool:_default' \
'--enable-hybrid-overlay=[Connect nodes outside of OVN by VXLAN. Default\: false. File\: \[hybridoverlay\] enabled. (no effect yet)]::bool:_default' \
'--hybrid-overlay-cluster-subnets=[Ranges for pods on those nodes, a comma list of CIDR\[/hostprefix\]. File\: \[hybridoverlay\] cluster-subnets. (no effect yet)]:cidr[/hostprefix]:_default' \
'--hybrid-overlay-vxlan-port=[UDP port of VXLAN. Default\: 4789. File\: \[hybridoverlay\] hybrid-overlay-vxlan-port. (no effect yet)]:int:_default' \
'--netflow-targets=[NetFlow collectors, a comma list. File\: \[monitoring\] netflow-targets. (no effect yet)]:[ip]:port:_default' \
'--sflow-targets=[sFlow collectors, a comma list. File\: \[monitoring\] sflow-targets. (no effect yet)]:[ip]:port:_default' \
'--ipfix-targets=[IPFIX collectors, a comma list. File\: \[monitoring\] ipfix-targets. (no effect yet)]:[ip]:port:_default' \
'--ipfix-sampling=[One of this many packets is sampled and sent to the collectors. Default\: 400. File\: \[ipfix\] sampling. (no effect yet)]:int:_default' \
'--ipfix-cache-max-flows=[Flow records to cache; 0 is no cache. Default\: 0. File\: \[ipfix\] cache-max-flows. (no effect yet)]:int:_default' \
'--ipfix-cache-active-timeout=[Seconds that a flow record is cached; 0 is no cache. Default\: 60. File\: \[ipfix\] cache-active-timeout. (no effect yet)]:int:_default' \
'-h[Print help]' \
'--help[Print help]' \
'-V[Print version]' \
'--version[Print version]' \
'::words:((config\:"print every effective setting and where it comes from; -o json for programs"
db\:"the databases'\'' servers\: status, backup, restore, compact, leave, join, replace, bootstrap, convert"
endpoints\:"wait for, or publish, the addresses of databases in pods, as charts of ovn-kubernetes do"
event\:"report as an Event what a container of a pod has to say, as the image does"
ic\:"the interconnection with other clusters\: status, routes, diagnose, reset, clean"
identity\:"approve certificates of node agents; serve an admission webhook, for older Kubernetes"
install-cni\:"copy the CNI program to the directory where the container runtime looks for it"
plan\:"print what the node agent would change on this host, and change nothing; --node NAME"
preflight\:"print what to do before ovnkube takes over the cluster or, with --node, this host"
readiness-probe\:"ask a program on this host whether it works, for probes of pods; -t TARGET"
replay\:"print what a recording made with --record leads to\: rows, annotations, events"
why\:"SRC DST PORT\[/PROTO\]\: do policies allow it, which ones decide; pods as namespace/name, or addresses"))' \
&& ret=0
}

(( $+functions[_ovnkube_commands] )) ||
_ovnkube_commands() {
    local commands; commands=()
    _describe -t commands 'ovnkube commands' commands "$@"
}

if [ "$funcstack[1]" = "_ovnkube" ]; then
    _ovnkube "$@"
else
    compdef _ovnkube ovnkube
fi
