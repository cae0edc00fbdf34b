# Written by `cargo run -p xtask -- pages`; do not edit.
complete -c ovnkube -s o -l output -d 'Output format of a command: text or json.' -r -f -a "text\t''
json\t''"
complete -c ovnkube -l from -d 'why: read the objects from the YAML and JSON files of this directory, not from the cluster.' -r
complete -c ovnkube -l node -d 'plan: the node\'s name in Kubernetes. preflight, without a name: look at this host, not at the cluster.' -r
complete -c ovnkube -l force -d 'ic clean: also remove a cluster that answers, or may be alive.' -r
complete -c ovnkube -s t -l target -d 'readiness-probe: the program to ask.' -r
complete -c ovnkube -l webhook-cert-dir -d 'identity: directory of the certificate tls.crt and its key tls.key.' -r
complete -c ovnkube -l webhook-host -d 'identity: address to listen on; localhost is 127.0.0.1. [default: localhost]' -r
complete -c ovnkube -l webhook-port -d 'identity: TCP port to listen on. [default: 9443]' -r
complete -c ovnkube -l disable-webhook -d 'identity: do not serve the webhook.' -r
complete -c ovnkube -l disable-approver -d 'identity: do not approve certificates of node agents.' -r
complete -c ovnkube -l init-master -d 'Run as master: cluster manager and network controller; the value is this host\'s name.' -r
complete -c ovnkube -l init-cluster-manager -d 'Run the cluster manager, which hands out node subnets and needs no OVN database; the value is this host\'s name.' -r
complete -c ovnkube -l init-ovnkube-controller -d 'Run the network controller, which writes the OVN northbound database; the value is this host\'s name.' -r
complete -c ovnkube -l init-node -d 'Run the node agent; the value is the node\'s name in Kubernetes.' -r
complete -c ovnkube -l cleanup-node -d 'Remove what the node agent set up on this host and exit; the value is the node\'s name in Kubernetes.' -r
complete -c ovnkube -l remove-node -d 'Remove a node from the OVN databases and exit; the value is the node\'s name in Kubernetes.' -r
complete -c ovnkube -l config-file -d 'Path of the configuration file. The default file may be missing; a file that is named here must exist. Default: /etc/openvswitch/ovn_k8s.conf.' -r
complete -c ovnkube -l pidfile -d 'File that holds the process id while ovnkube runs; empty writes none.' -r
complete -c ovnkube -l record -d 'Record every input of the controller in this file, for `ovnkube replay`; empty records nothing.' -r
complete -c ovnkube -l allow-unserved -d 'Take over a northbound database although it has rows of features of ovn-kubernetes that ovnkube does not support; these rows stay as they are. Default: false.' -r
complete -c ovnkube -l unprivileged-mode -d 'Run the node agent without privileges; the CNI program wires the pods. Default: false. (no effect yet)' -r
complete -c ovnkube -l enable-multicast -d 'Support IP multicast: switches snoop IGMP and MLD, and the cluster router relays multicast. Default: false.' -r
complete -c ovnkube -l init-gateways -d 'Older form of --gateway-mode=shared. Default: false.' -r
complete -c ovnkube -l gateway-local -l gateway-localnet -d 'Older form of --gateway-mode=local. Default: false.' -r
complete -c ovnkube -l net-controller -d 'Older switch of the network controller. Default: false. (does nothing: --init-master runs the network controller)' -r
complete -c ovnkube -l ha -d 'Older switch for restoring databases. Default: false. (does nothing: rows are always brought back to what the cluster needs)' -r
complete -c ovnkube -l gateway-spare-interface -d 'Older switch that leaves the gateway interface to OVN alone. Default: false. (does nothing: the host and OVN share its addresses on the bridge)' -r
complete -c ovnkube -l win-hnsnetwork-id -d 'Network id of the Windows Host Networking Service (HNS). (does nothing: nodes run Linux)' -r
complete -c ovnkube -l disable-ovn-iface-id-ver -d 'Do not write the pod\'s uid (iface-id-ver) to its logical port. Default: false.' -r
complete -c ovnkube -l mtu -d 'MTU of the pods\' interfaces, in bytes; the network between the nodes must carry 58 bytes more (78 over ipv6). If it is not set, a node subtracts the tunnel headers from its uplink\'s MTU, or uses 1400 if that is not known. Default: 1400. File: [default] mtu.' -r
complete -c ovnkube -l routable-mtu -d 'MTU of the routes of pods and of the management port, in bytes, while nodes change to another MTU one by one; 0 sets none. Default: 0. File: [default] routable-mtu.' -r
complete -c ovnkube -l conntrack-zone -d 'Conntrack zone of the gateway\'s flows; the next four zones are used too. Default: 64000. File: [default] conntrack-zone.' -r
complete -c ovnkube -l encap-type -d 'Tunnel protocol between nodes: geneve or vxlan. Default: geneve. File: [default] encap-type.' -r
complete -c ovnkube -l encap-ip -d 'Addresses of this node\'s tunnel endpoint, a comma list; if empty, the node\'s internal address. File: [default] encap-ip.' -r
complete -c ovnkube -l encap-port -d 'UDP port of the tunnels; if empty, 6081 for geneve and 4789 for vxlan. It must be the same on masters and all nodes. File: [default] encap-port.' -r
complete -c ovnkube -l inactivity-probe -d 'Milliseconds without traffic after which ovn-controller probes its connection to the southbound database; 0 does not probe. Default: 100000. File: [default] inactivity-probe.' -r
complete -c ovnkube -l openflow-probe -d 'Seconds without traffic after which ovn-controller probes its connection to the local switch; 0 does not probe. OVN 24.03 and later ignores it. Default: 180. File: [default] openflow-probe.' -r
complete -c ovnkube -l ofctrl-wait-before-clear -d 'Milliseconds that ovn-controller keeps old flows after it starts; 0 clears them at once. OVN 25.09 and later ignores it. Default: 0. File: [default] ofctrl-wait-before-clear.' -r
complete -c ovnkube -l monitor-all -d 'Let ovn-controller monitor the whole southbound database, not only the part that its node needs. Default: true. File: [default] monitor-all.' -r
complete -c ovnkube -l db-txn-timeout -d 'Time after which a database transaction without a reply has failed. Default: 1m40s. File: [default] db-txn-timeout.' -r
complete -c ovnkube -l enable-lflow-cache -d 'Let ovn-controller cache logical flows. Default: true. File: [default] enable-lflow-cache.' -r
complete -c ovnkube -l lflow-cache-limit -d 'Largest number of cached logical flows; 0 is no limit. Default: 0. File: [default] lflow-cache-limit.' -r
complete -c ovnkube -l lflow-cache-limit-kb -d 'Largest size of the logical flow cache in kilobytes; 0 is no limit. Default: 0. File: [default] lflow-cache-limit-kb.' -r
complete -c ovnkube -l cluster-subnets -l cluster-subnet -d 'Ranges of pod addresses, a comma list of CIDR[/hostprefix]; hostprefix is the prefix length of one node\'s subnet (ipv4: 24 if not given, ipv6: always 64). Default: 11.11.0.0/16. File: [default] cluster-subnets.' -r
complete -c ovnkube -l zone -d 'Zone of this process; `global` is one zone for the whole cluster. Default: global. File: [default] zone. (no effect yet)' -r
complete -c ovnkube -l udn-allowed-default-services -d 'Services, a comma list of namespace/name, that user-defined primary networks may reach. Default: default/kubernetes,kube-system/kube-dns. File: [default] udn-allowed-default-services. (no effect yet)' -r
complete -c ovnkube -l cluster-default-nad -d 'NetworkAttachmentDefinition, namespace/name, of the default network. File: [default] cluster-default-nad. (no effect yet)' -r
complete -c ovnkube -l transport -d 'Transport between nodes; empty and geneve are the overlay network. File: [default] transport. (no effect yet)' -r
complete -c ovnkube -l loglevel -d 'Log messages up to this level: 1 fatal, 2 error, 3 warning, 4 information, 5 debug. Default: 4. File: [logging] loglevel.' -r
complete -c ovnkube -l logfile -d 'File for the log; empty is standard error. File: [logging] logfile.' -r
complete -c ovnkube -l cnilogfile -d 'File for the log of the CNI program. Default: /var/log/ovn-kubernetes/ovn-k8s-cni-overlay.log. File: [logging] cnilogfile.' -r
complete -c ovnkube -l libovsdblogfile -d 'File for the log of the database client; empty is the same as logfile. File: [logging] libovsdblogfile. (no effect yet)' -r
complete -c ovnkube -l logfile-maxsize -d 'Size of the log file, in megabytes, at which a new one is started. Default: 100. File: [logging] logfile-maxsize.' -r
complete -c ovnkube -l logfile-maxbackups -d 'Old log files to keep; 0 keeps all. Default: 5. File: [logging] logfile-maxbackups.' -r
complete -c ovnkube -l logfile-maxage -d 'Days to keep old log files; 0 keeps them for ever. Default: 5. File: [logging] logfile-maxage.' -r
complete -c ovnkube -l acl-logging-rate-limit -d 'Most policy verdicts of each ACL that a node logs per second. Default: 20. File: [logging] acl-logging-rate-limit.' -r
complete -c ovnkube -l cni-conf-dir -d 'Directory of the CNI configuration. Default: /etc/cni/net.d. File: [cni] conf-dir.' -r
complete -c ovnkube -l cni-bin-dir -d 'The container runtime\'s directory of CNI programs. If it contains `portmap`, pods can have host ports. Default: /opt/cni/bin. File: [cni] bin-dir.' -r
complete -c ovnkube -l cni-program -d 'Path of the CNI program that a node agent copies to that directory when it starts; empty copies none. File: [cni] program.' -r
complete -c ovnkube -l cni-plugin -d 'File name of the CNI program. Default: ovn-k8s-cni-overlay. File: [cni] plugin.' -r
complete -c ovnkube -l k8s-kubeconfig -d 'Path of a kubeconfig file; it replaces apiserver, cacert and token of the same layer and of lower ones. File: [kubernetes] kubeconfig. Environment: KUBECONFIG.' -r
complete -c ovnkube -l k8s-apiserver -d 'URL of the API server. Default: http://localhost:8443. File: [kubernetes] apiserver. Environment: K8S_APISERVER.' -r
complete -c ovnkube -l k8s-cacert -d 'Certificate authority of the API server, a PEM file. File: [kubernetes] cacert. Environment: K8S_CACERT.' -r
complete -c ovnkube -l k8s-cacert-data -d 'Certificate authority of the API server, base64 of the PEM text. File: [kubernetes] cacert-data. Environment: K8S_CACERT_DATA.' -r
complete -c ovnkube -l k8s-token -d 'Bearer token for the API server. Every user of the host can see a token on the command line: prefer k8s-token-file. File: [kubernetes] token. Environment: K8S_TOKEN.' -r
complete -c ovnkube -l k8s-token-file -d 'File with the bearer token; it is read again when it changes. File: [kubernetes] tokenFile. Environment: K8S_TOKEN_FILE.' -r
complete -c ovnkube -l bootstrap-kubeconfig -d 'Kubeconfig with which a node agent asks for a client certificate of its own, the kubelet\'s; needs cert-dir. File: [kubernetes] bootstrap-kubeconfig. Environment: BOOTSTRAP_KUBECONFIG.' -r
complete -c ovnkube -l cert-dir -d 'Directory of the client certificate, ovnkube-client-current.pem; it replaces the token, or the user of the kubeconfig. File: [kubernetes] cert-dir. Environment: CERT_DIR.' -r
complete -c ovnkube -l cert-duration -d 'How long certificates shall be valid that a node agent asks for, from 10m0s to 8760h0m0s. Default: 10m0s. File: [kubernetes] cert-duration.' -r
complete -c ovnkube -l k8s-service-cidrs -l k8s-service-cidr -l service-cluster-ip-range -d 'Ranges of service addresses, a comma list with one CIDR per address family; the same as the API server\'s --service-cluster-ip-range. Default: 172.16.1.0/24. File: [kubernetes] service-cidrs.' -r
complete -c ovnkube -l disable-external-ips -d 'Do not serve the addresses in spec.externalIPs of services. It must be the same on masters and all nodes. Default: false. File: [kubernetes] disable-external-ips.' -r
complete -c ovnkube -l allowed-external-ips -d 'Ranges of the addresses that are allowed in spec.externalIPs of services, a comma list; empty allows all. An address at which nodes reach the API server, a database or their DNS is served only if it is an entry of its own (10.0.0.1/32). It must be the same on masters and all nodes. File: [kubernetes] allowed-external-ips.' -r
complete -c ovnkube -l ovn-config-namespace -d 'Namespace of ovnkube\'s own objects. Default: ovn-kubernetes. File: [kubernetes] ovn-config-namespace.' -r
complete -c ovnkube -l ovn-empty-lb-events -d 'Keep load balancers without backends and raise an event when traffic for one arrives. Default: false. File: [kubernetes] ovn-empty-lb-events. (no effect yet)' -r
complete -c ovnkube -l pod-ip -d 'Accepted for old command lines. File: [kubernetes] pod-ip. (does nothing: the address is taken from the node object)' -r
complete -c ovnkube -l no-hostsubnet-nodes -d 'Label selector of nodes to which ovnkube gives no subnet. File: [kubernetes] no-hostsubnet-nodes.' -r
complete -c ovnkube -l host-network-namespace -d 'Namespace that represents the nodes\' own traffic in network policies. File: [kubernetes] host-network-namespace. Environment: OVN_HOST_NETWORK_NAMESPACE.' -r
complete -c ovnkube -l disable-requestedchassis -d 'Do not write the pod\'s chassis (requested-chassis) to its logical port. Default: false. File: [kubernetes] disable-requestedchassis.' -r
complete -c ovnkube -l platform-type -d 'Cloud platform that the cluster runs on. File: [kubernetes] platform-type. (no effect yet)' -r
complete -c ovnkube -l healthz-bind-address -d 'Address and port of the health check; empty is off. File: [kubernetes] healthz-bind-address.' -r
complete -c ovnkube -l dns-service-namespace -d 'Namespace of the cluster\'s DNS service. Default: kube-system. File: [kubernetes] dns-service-namespace. (no effect yet)' -r
complete -c ovnkube -l dns-service-name -d 'Name of the cluster\'s DNS service. Default: kube-dns. File: [kubernetes] dns-service-name. (no effect yet)' -r
complete -c ovnkube -l nb-address -d 'Addresses of the database, a comma list of tcp:host:port, ssl:host:port or unix:path; empty is the local socket. File: [ovnnorth] address.' -r
complete -c ovnkube -l nb-client-privkey -d 'Client\'s private key for ssl addresses. Default: /etc/openvswitch/ovnnb-privkey.pem. File: [ovnnorth] client-privkey.' -r
complete -c ovnkube -l nb-client-cert -d 'Client\'s certificate for ssl addresses. Default: /etc/openvswitch/ovnnb-cert.pem. File: [ovnnorth] client-cert.' -r
complete -c ovnkube -l nb-client-cacert -d 'Certificate authority of the server for ssl addresses. Default: /etc/openvswitch/ovnnb-ca.cert. File: [ovnnorth] client-cacert.' -r
complete -c ovnkube -l nb-cert-common-name -d 'Name that the server\'s certificate must have; if empty, the host in its address. File: [ovnnorth] cert-common-name.' -r
complete -c ovnkube -l nb-raft-election-timer -d 'Seconds after which members of a Raft cluster without a leader elect one; from 1000 on, milliseconds; 0 does not change it. The master on the leader\'s host sets it. Default: 0. File: [ovnnorth] election-timer.' -r
complete -c ovnkube -l nb-run-dir -d 'Directory of the database\'s socket. Default: /var/run/ovn/. File: [ovnnorth] run-dir.' -r
complete -c ovnkube -l nb-db-location -d 'File of the database on this host, for ovnkube db; if it does not exist, the one where OVN\'s packages have it. Default: /etc/ovn/ovnnb_db.db. File: [ovnnorth] db-location.' -r
complete -c ovnkube -l nb-server-privkey -d 'Server\'s private key; with the next two, the master writes its path to the database, and the port of an ssl address. File: [ovnnorth] server-privkey.' -r
complete -c ovnkube -l nb-server-cert -d 'Server\'s certificate. File: [ovnnorth] server-cert.' -r
complete -c ovnkube -l nb-server-cacert -d 'Certificate authority of the clients. File: [ovnnorth] server-cacert.' -r
complete -c ovnkube -l sb-address -d 'Addresses of the database, a comma list of tcp:host:port, ssl:host:port or unix:path; empty is the local socket. File: [ovnsouth] address.' -r
complete -c ovnkube -l sb-client-privkey -d 'Client\'s private key for ssl addresses. Default: /etc/openvswitch/ovnsb-privkey.pem. File: [ovnsouth] client-privkey.' -r
complete -c ovnkube -l sb-client-cert -d 'Client\'s certificate for ssl addresses. Default: /etc/openvswitch/ovnsb-cert.pem. File: [ovnsouth] client-cert.' -r
complete -c ovnkube -l sb-client-cacert -d 'Certificate authority of the server for ssl addresses. Default: /etc/openvswitch/ovnsb-ca.cert. File: [ovnsouth] client-cacert.' -r
complete -c ovnkube -l sb-cert-common-name -d 'Name that the server\'s certificate must have; if empty, the host in its address. File: [ovnsouth] cert-common-name.' -r
complete -c ovnkube -l sb-raft-election-timer -d 'Seconds after which members of a Raft cluster without a leader elect one; from 1000 on, milliseconds; 0 does not change it. The master on the leader\'s host sets it. Default: 0. File: [ovnsouth] election-timer.' -r
complete -c ovnkube -l sb-run-dir -d 'Directory of the database\'s socket. Default: /var/run/ovn/. File: [ovnsouth] run-dir.' -r
complete -c ovnkube -l sb-db-location -d 'File of the database on this host, for ovnkube db; if it does not exist, the one where OVN\'s packages have it. Default: /etc/ovn/ovnsb_db.db. File: [ovnsouth] db-location.' -r
complete -c ovnkube -l sb-server-privkey -d 'Server\'s private key; with the next two, the master writes its path to the database, and the port of an ssl address. File: [ovnsouth] server-privkey.' -r
complete -c ovnkube -l sb-server-cert -d 'Server\'s certificate. File: [ovnsouth] server-cert.' -r
complete -c ovnkube -l sb-server-cacert -d 'Certificate authority of the clients. File: [ovnsouth] server-cacert.' -r
complete -c ovnkube -l ovs-run-dir -d 'Directory of the switch\'s database socket. Default: /var/run/openvswitch/. File: [ovspaths] run-dir.' -r
complete -c ovnkube -l gateway-mode -d 'How pods\' traffic leaves a node: shared (through OVN) or local (through the host); empty is no gateway. File: [gateway] mode.' -r
complete -c ovnkube -l gateway-interface -d 'Interface or bridge to the outside, which has the node\'s addresses; if empty, that of the default route. File: [gateway] interface.' -r
complete -c ovnkube -l exgw-interface -d 'Second interface, for egress gateways. File: [gateway] egw-interface. (no effect yet)' -r
complete -c ovnkube -l gateway-accelerated-interface -d 'Accelerated interface of the gateway. File: [gateway] gateway-accelerated-interface. (no effect yet)' -r
complete -c ovnkube -l dpu-host-gateway-representor-interface -d 'Representor on a DPU of the host\'s gateway interface. File: [gateway] dpu-host-gateway-representor-interface. (no effect yet)' -r
complete -c ovnkube -l gateway-nexthop -d 'Next hops to the outside, a comma list with one per address family; if empty, those of the default routes. File: [gateway] next-hop.' -r
complete -c ovnkube -l gateway-vlanid -d 'VLAN of the outside network; 0 is none. Default: 0. File: [gateway] vlan-id.' -r
complete -c ovnkube -l nodeport -d 'Serve node ports on the gateways. Default: false. File: [gateway] nodeport.' -r
complete -c ovnkube -l disable-snat-multiple-gws -d 'Give each pod its own SNAT at the gateway router, and deliver packets from outside to a pod\'s own address. It must be the same on masters and all nodes. Default: false. File: [gateway] disable-snat-multiple-gws.' -r
complete -c ovnkube -l disable-forwarding -d 'Forward packets on ovnkube\'s interfaces only. Default: false. File: [gateway] disable-forwarding.' -r
complete -c ovnkube -l gateway-v4-join-subnet -d 'Range of the join switch, ipv4. Default: 100.64.0.0/16. File: [gateway] v4-join-subnet.' -r
complete -c ovnkube -l gateway-v6-join-subnet -d 'Range of the join switch, ipv6. Default: fd98::/64. File: [gateway] v6-join-subnet.' -r
complete -c ovnkube -l gateway-v4-masquerade-subnet -d 'Range of the masquerade addresses, which represent the host on the gateway, ipv4. Default: 169.254.169.0/29. File: [gateway] v4-masquerade-subnet.' -r
complete -c ovnkube -l gateway-v6-masquerade-subnet -d 'Range of the masquerade addresses, which represent the host on the gateway, ipv6. Default: fd69::/125. File: [gateway] v6-masquerade-subnet.' -r
complete -c ovnkube -l disable-pkt-mtu-check -d 'Do not check at the gateway whether packets fit the pods\' MTU. Default: false. File: [gateway] disable-pkt-mtu-check.' -r
complete -c ovnkube -l gateway-router-subnet -d 'Subnet of the gateway router\'s external port; if empty, it is detected. File: [gateway] router-subnet. (no effect yet)' -r
complete -c ovnkube -l single-node -d 'The cluster has one node, so that pods may use the whole MTU of the uplink. Default: false. File: [gateway] single-node.' -r
complete -c ovnkube -l allow-no-uplink -d 'Allow a gateway bridge without an interface to the outside. Default: false. File: [gateway] allow-no-uplink.' -r
complete -c ovnkube -l ephemeral-port-range -d 'Ports for translated connections, first-last; empty is the kernel\'s range. File: [gateway] ephemeral-port-range. (no effect yet)' -r
complete -c ovnkube -l ha-election-lease-duration -d 'Seconds without a renewal after which another master may take the lease. Default: 10. File: [masterha] election-lease-duration.' -r
complete -c ovnkube -l ha-election-renew-deadline -d 'Seconds within which the active master must renew the lease; otherwise it stops writing. Default: 8. File: [masterha] election-renew-deadline.' -r
complete -c ovnkube -l ha-election-retry-period -d 'Seconds between two renewals of the lease. Who waits for it looks more often. Default: 2. File: [masterha] election-retry-period.' -r
complete -c ovnkube -l cluster-manager-ha-election-lease-duration -d 'Seconds without a renewal after which another cluster manager may take the lease. Default: 10. File: [clustermgrha] election-lease-duration.' -r
complete -c ovnkube -l cluster-manager-ha-election-renew-deadline -d 'Seconds within which the active cluster manager must renew the lease; otherwise it stops writing. Default: 8. File: [clustermgrha] election-renew-deadline.' -r
complete -c ovnkube -l cluster-manager-ha-election-retry-period -d 'Seconds between two renewals of the lease. Who waits for it looks more often. Default: 2. File: [clustermgrha] election-retry-period.' -r
complete -c ovnkube -l cluster-manager-v4-transit-switch-subnet -l cluster-manager-v4-transit-subnet -d 'Range of the transit switch between zones, ipv4. Default: 100.88.0.0/16. File: [clustermanager] v4-transit-switch-subnet. (no effect yet)' -r
complete -c ovnkube -l cluster-manager-v6-transit-switch-subnet -l cluster-manager-v6-transit-subnet -d 'Range of the transit switch between zones, ipv6. Default: fd97::/64. File: [clustermanager] v6-transit-switch-subnet. (no effect yet)' -r
complete -c ovnkube -l ovnkube-node-mode -d 'Where the node agent runs: full, dpu or dpu-host. Default: full. File: [ovnkubenode] mode. (no effect yet)' -r
complete -c ovnkube -l ovnkube-node-mgmt-port-netdev -d 'Network device to use as management port. File: [ovnkubenode] mgmt-port-netdev. (no effect yet)' -r
complete -c ovnkube -l ovnkube-node-mgmt-port-dp-resource-name -d 'Device plugin resource to take the management port from. File: [ovnkubenode] mgmt-port-dp-resource-name. (no effect yet)' -r
complete -c ovnkube -l dpu-node-lease-duration -d 'Seconds without a renewal after which a DPU is considered down. Default: 40. File: [ovnkubenode] dpu-node-lease-duration. (no effect yet)' -r
complete -c ovnkube -l dpu-node-lease-renew-interval -d 'Seconds between two renewals of a DPU\'s lease. Default: 10. File: [ovnkubenode] dpu-node-lease-renew-interval. (no effect yet)' -r
complete -c ovnkube -l ovnkube-node-routing-table-id-start -d 'First number of the routing tables of user-defined networks. Default: 1000. File: [ovnkubenode] routing-table-id-start. (no effect yet)' -r
complete -c ovnkube -l simulate-dpu -d 'Behave as on a DPU although there is none. Default: false. File: [ovnkubenode] simulate-dpu. (no effect yet)' -r
complete -c ovnkube -l metrics-bind-address -d 'Address and port of ovnkube\'s metrics; empty is off. File: [metrics] bind-address.' -r
complete -c ovnkube -l ovn-metrics-bind-address -d 'Address and port of OVN\'s and Open vSwitch\'s metrics; empty is off. File: [metrics] ovn-metrics-bind-address. (no effect yet)' -r
complete -c ovnkube -l export-ovs-metrics -d 'Add Open vSwitch\'s metrics to OVN\'s. Default: false. File: [metrics] export-ovs-metrics. (no effect yet)' -r
complete -c ovnkube -l metrics-enable-pprof -d 'Serve profiles on the metrics port. Default: false. File: [metrics] enable-pprof. (no effect yet)' -r
complete -c ovnkube -l node-server-privkey -d 'Private key for serving metrics over TLS. File: [metrics] node-server-privkey. (no effect yet)' -r
complete -c ovnkube -l node-server-cert -d 'Certificate for serving metrics over TLS. File: [metrics] node-server-cert. (no effect yet)' -r
complete -c ovnkube -l metrics-enable-config-duration -d 'Measure how long changes take until OVN has them. Default: false. File: [metrics] enable-config-duration. (no effect yet)' -r
complete -c ovnkube -l metrics-enable-scale -d 'Add metrics about scale. Default: false. File: [metrics] enable-scale-metrics. (no effect yet)' -r
complete -c ovnkube -l tls-min-version -d 'Lowest TLS version that servers of ovnkube accept. File: [tls] tls-min-version. (no effect yet)' -r
complete -c ovnkube -l tls-cipher-suites -d 'Cipher suites that servers of ovnkube accept, a comma list. File: [tls] tls-cipher-suites. (no effect yet)' -r
complete -c ovnkube -l enable-admin-network-policy -d 'Support AdminNetworkPolicy and BaselineAdminNetworkPolicy. Default: false. File: [ovnkubernetesfeature] enable-admin-network-policy. (no effect yet)' -r
complete -c ovnkube -l enable-egress-ip -d 'Support EgressIP. Default: false. File: [ovnkubernetesfeature] enable-egress-ip. (no effect yet)' -r
complete -c ovnkube -l egressip-reachability-total-timeout -d 'Seconds without an answer after which an egress node is considered down; 0 does not check. Default: 1. File: [ovnkubernetesfeature] egressip-reachability-total-timeout. (no effect yet)' -r
complete -c ovnkube -l egressip-node-healthcheck-port -d 'Port of the health check between egress nodes; 0 tries to connect to port 9 instead. Default: 0. File: [ovnkubernetesfeature] egressip-node-healthcheck-port. (no effect yet)' -r
complete -c ovnkube -l enable-egress-firewall -d 'Support EgressFirewall. Default: false. File: [ovnkubernetesfeature] enable-egress-firewall. (no effect yet)' -r
complete -c ovnkube -l enable-egress-qos -d 'Support EgressQoS. Default: false. File: [ovnkubernetesfeature] enable-egress-qos. (no effect yet)' -r
complete -c ovnkube -l enable-egress-service -d 'Support EgressService. Default: false. File: [ovnkubernetesfeature] enable-egress-service. (no effect yet)' -r
complete -c ovnkube -l enable-multi-external-gateway -d 'Support AdminPolicyBasedExternalRoute. Default: false. File: [ovnkubernetesfeature] enable-multi-external-gateway. (no effect yet)' -r
complete -c ovnkube -l enable-multi-network -d 'Support secondary networks by NetworkAttachmentDefinition. Default: false. File: [ovnkubernetesfeature] enable-multi-network. (no effect yet)' -r
complete -c ovnkube -l enable-multi-networkpolicy -d 'Support MultiNetworkPolicy. Default: false. File: [ovnkubernetesfeature] enable-multi-networkpolicy. (no effect yet)' -r
complete -c ovnkube -l enable-network-segmentation -d 'Support user-defined networks. Default: false. File: [ovnkubernetesfeature] enable-network-segmentation. (no effect yet)' -r
complete -c ovnkube -l disable-udn-host-isolation -d 'Allow the host of a pod to reach it on its user-defined primary network. Default: false. File: [ovnkubernetesfeature] disable-udn-host-isolation. (no effect yet)' -r
complete -c ovnkube -l udn-deletion-grace-period -d 'Time for which a deleted user-defined network is kept. Default: 2m0s. File: [ovnkubernetesfeature] udn-deletion-grace-period. (no effect yet)' -r
complete -c ovnkube -l enable-dynamic-udn-allocation -d 'Make user-defined networks only on nodes that need them. Default: false. File: [ovnkubernetesfeature] enable-dynamic-udn-allocation. (no effect yet)' -r
complete -c ovnkube -l enable-preconfigured-udn-addresses -d 'Let pods choose their addresses on user-defined primary networks. Default: false. File: [ovnkubernetesfeature] enable-preconfigured-udn-addresses. (no effect yet)' -r
complete -c ovnkube -l enable-route-advertisements -d 'Support RouteAdvertisements. Default: false. File: [ovnkubernetesfeature] enable-route-advertisements. (no effect yet)' -r
complete -c ovnkube -l advertised-udn-isolation-mode -d 'Isolation of advertised user-defined networks from each other: strict or loose. Default: strict. File: [ovnkubernetesfeature] advertised-udn-isolation-mode. (no effect yet)' -r
complete -c ovnkube -l enable-evpn -d 'Support EVPN for user-defined networks. Default: false. File: [ovnkubernetesfeature] enable-evpn. (no effect yet)' -r
complete -c ovnkube -l enable-network-connect -d 'Support ClusterNetworkConnect. Default: false. File: [ovnkubernetesfeature] enable-network-connect. (no effect yet)' -r
complete -c ovnkube -l enable-network-qos -d 'Support NetworkQoS. Default: false. File: [ovnkubernetesfeature] enable-network-qos. (no effect yet)' -r
complete -c ovnkube -l enable-uplink -d 'Support separate uplinks for user-defined networks. Default: false. File: [ovnkubernetesfeature] enable-uplink. (no effect yet)' -r
complete -c ovnkube -l enable-stateless-netpol -d 'Support network policies without connection tracking, by annotation of the policy. Default: false. File: [ovnkubernetesfeature] enable-stateless-netpol.' -r
complete -c ovnkube -l allow-icmp-network-policy -d 'Always allow ICMP in network policies. Default: false. File: [ovnkubernetesfeature] allow-icmp-network-policy. (no effect yet)' -r
complete -c ovnkube -l enable-interconnect -d 'Make each node a zone of its own and connect the zones by a transit switch. Default: false. File: [ovnkubernetesfeature] enable-interconnect. (no effect yet)' -r
complete -c ovnkube -l enable-persistent-ips -d 'Let a virtual machine keep its addresses when it moves to another pod. Default: false. File: [ovnkubernetesfeature] enable-persistent-ips. (no effect yet)' -r
complete -c ovnkube -l enable-dns-name-resolver -d 'Resolve the names in egress firewalls by DNSNameResolver objects. Default: false. File: [ovnkubernetesfeature] enable-dns-name-resolver. (no effect yet)' -r
complete -c ovnkube -l enable-svc-template-support -d 'Use OVN\'s load balancer templates for services. Default: false. File: [ovnkubernetesfeature] enable-svc-template-support.' -r
complete -c ovnkube -l enable-observability -d 'Sample policy verdicts. Default: false. File: [ovnkubernetesfeature] enable-observability. (no effect yet)' -r
complete -c ovnkube -l enable-hybrid-overlay -d 'Connect nodes outside of OVN by VXLAN. Default: false. File: [hybridoverlay] enabled. (no effect yet)' -r
complete -c ovnkube -l hybrid-overlay-cluster-subnets -d 'Ranges for pods on those nodes, a comma list of CIDR[/hostprefix]. File: [hybridoverlay] cluster-subnets. (no effect yet)' -r
complete -c ovnkube -l hybrid-overlay-vxlan-port -d 'UDP port of VXLAN. Default: 4789. File: [hybridoverlay] hybrid-overlay-vxlan-port. (no effect yet)' -r
complete -c ovnkube -l netflow-targets -d 'NetFlow collectors, a comma list. File: [monitoring] netflow-targets. (no effect yet)' -r
complete -c ovnkube -l sflow-targets -d 'sFlow collectors, a comma list. File: [monitoring] sflow-targets. (no effect yet)' -r
complete -c ovnkube -l ipfix-targets -d 'IPFIX collectors, a comma list. File: [monitoring] ipfix-targets. (no effect yet)' -r
complete -c ovnkube -l ipfix-sampling -d 'One of this many packets is sampled and sent to the collectors. Default: 400. File: [ipfix] sampling. (no effect yet)' -r
complete -c ovnkube -l ipfix-cache-max-flows -d 'Flow records to cache; 0 is no cache. Default: 0. File: [ipfix] cache-max-flows. (no effect yet)' -r
complete -c ovnkube -l ipfix-cache-active-timeout -d 'Seconds that a flow record is cached; 0 is no cache. Default: 60. File: [ipfix] cache-active-timeout. (no effect yet)' -r
complete -c ovnkube -s h -l help -d 'Print help'
complete -c ovnkube -s V -l version -d 'Print version'
