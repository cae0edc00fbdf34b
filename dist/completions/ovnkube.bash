# Written by `cargo run -p xtask -- pages`; do not edit.
_ovnkube() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="ovnkube"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        ovnkube)
            opts="-o -t -h -V --output --from --node --force --target --help --webhook-cert-dir --webhook-host --webhook-port --disable-webhook --disable-approver --init-master --init-cluster-manager --init-ovnkube-controller --init-node --cleanup-node --remove-node --config-file --pidfile --record --allow-unserved --unprivileged-mode --enable-multicast --init-gateways --gateway-localnet --gateway-local --net-controller --ha --gateway-spare-interface --win-hnsnetwork-id --disable-ovn-iface-id-ver --mtu --routable-mtu --conntrack-zone --encap-type --encap-ip --encap-port --inactivity-probe --openflow-probe --ofctrl-wait-before-clear --monitor-all --db-txn-timeout --enable-lflow-cache --lflow-cache-limit --lflow-cache-limit-kb --cluster-subnet --cluster-subnets --zone --udn-allowed-default-services --cluster-default-nad --transport --loglevel --logfile --cnilogfile --libovsdblogfile --logfile-maxsize --logfile-maxbackups --logfile-maxage --acl-logging-rate-limit --cni-conf-dir --cni-bin-dir --cni-program --cni-plugin --k8s-kubeconfig --k8s-apiserver --k8s-cacert --k8s-cacert-data --k8s-token --k8s-token-file --bootstrap-kubeconfig --cert-dir --cert-duration --k8s-service-cidr --service-cluster-ip-range --k8s-service-cidrs --disable-external-ips --allowed-external-ips --ovn-config-namespace --ovn-empty-lb-events --pod-ip --no-hostsubnet-nodes --host-network-namespace --disable-requestedchassis --platform-type --healthz-bind-address --dns-service-namespace --dns-service-name --nb-address --nb-client-privkey --nb-client-cert --nb-client-cacert --nb-cert-common-name --nb-raft-election-timer --nb-run-dir --nb-db-location --nb-server-privkey --nb-server-cert --nb-server-cacert --sb-address --sb-client-privkey --sb-client-cert --sb-client-cacert --sb-cert-common-name --sb-raft-election-timer --sb-run-dir --sb-db-location --sb-server-privkey --sb-server-cert --sb-server-cacert --ovs-run-dir --gateway-mode --gateway-interface --exgw-interface --gateway-accelerated-interface --dpu-host-gateway-representor-interface --gateway-nexthop --gateway-vlanid --nodeport --disable-snat-multiple-gws --disable-forwarding --gateway-v4-join-subnet --gateway-v6-join-subnet --gateway-v4-masquerade-subnet --gateway-v6-masquerade-subnet --disable-pkt-mtu-check --gateway-router-subnet --single-node --allow-no-uplink --ephemeral-port-range --ha-election-lease-duration --ha-election-renew-deadline --ha-election-retry-period --cluster-manager-ha-election-lease-duration --cluster-manager-ha-election-renew-deadline --cluster-manager-ha-election-retry-period --cluster-manager-v4-transit-subnet --cluster-manager-v4-transit-switch-subnet --cluster-manager-v6-transit-subnet --cluster-manager-v6-transit-switch-subnet --ovnkube-node-mode --ovnkube-node-mgmt-port-netdev --ovnkube-node-mgmt-port-dp-resource-name --dpu-node-lease-duration --dpu-node-lease-renew-interval --ovnkube-node-routing-table-id-start --simulate-dpu --metrics-bind-address --ovn-metrics-bind-address --export-ovs-metrics --metrics-enable-pprof --node-server-privkey --node-server-cert --metrics-enable-config-duration --metrics-enable-scale --tls-min-version --tls-cipher-suites --enable-admin-network-policy --enable-egress-ip --egressip-reachability-total-timeout --egressip-node-healthcheck-port --enable-egress-firewall --enable-egress-qos --enable-egress-service --enable-multi-external-gateway --enable-multi-network --enable-multi-networkpolicy --enable-network-segmentation --disable-udn-host-isolation --udn-deletion-grace-period --enable-dynamic-udn-allocation --enable-preconfigured-udn-addresses --enable-route-advertisements --advertised-udn-isolation-mode --enable-evpn --enable-network-connect --enable-network-qos --enable-uplink --enable-stateless-netpol --allow-icmp-network-policy --enable-interconnect --enable-persistent-ips --enable-dns-name-resolver --enable-svc-template-support --enable-observability --enable-hybrid-overlay --hybrid-overlay-cluster-subnets --hybrid-overlay-vxlan-port --netflow-targets --sflow-targets --ipfix-targets --ipfix-sampling --ipfix-cache-max-flows --ipfix-cache-active-timeout --version config db endpoints event ic identity install-cni plan preflight readiness-probe replay why"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --output)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --force)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --target)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --webhook-cert-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --webhook-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --webhook-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disable-webhook)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disable-approver)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --init-master)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --init-cluster-manager)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --init-ovnkube-controller)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --init-node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cleanup-node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --remove-node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pidfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --record)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-unserved)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --unprivileged-mode)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-multicast)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --init-gateways)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-local)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-localnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --net-controller)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ha)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-spare-interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --win-hnsnetwork-id)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disable-ovn-iface-id-ver)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mtu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --routable-mtu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --conntrack-zone)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --encap-type)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --encap-ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --encap-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --inactivity-probe)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --openflow-probe)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ofctrl-wait-before-clear)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --monitor-all)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --db-txn-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-lflow-cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --lflow-cache-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --lflow-cache-limit-kb)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-subnets)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --zone)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --udn-allowed-default-services)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-default-nad)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --transport)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --loglevel)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --logfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cnilogfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --libovsdblogfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --logfile-maxsize)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --logfile-maxbackups)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --logfile-maxage)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acl-logging-rate-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cni-conf-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cni-bin-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cni-program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cni-plugin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --k8s-kubeconfig)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --k8s-apiserver)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --k8s-cacert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --k8s-cacert-data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --k8s-token)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --k8s-token-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bootstrap-kubeconfig)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cert-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --k8s-service-cidrs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --k8s-service-cidr)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --service-cluster-ip-range)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disable-external-ips)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allowed-external-ips)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ovn-config-namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ovn-empty-lb-events)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pod-ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --no-hostsubnet-nodes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host-network-namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disable-requestedchassis)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --platform-type)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --healthz-bind-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dns-service-namespace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dns-service-name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-client-privkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-client-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-client-cacert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-cert-common-name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-raft-election-timer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-run-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-db-location)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-server-privkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-server-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nb-server-cacert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-client-privkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-client-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-client-cacert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-cert-common-name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-raft-election-timer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-run-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-db-location)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-server-privkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-server-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sb-server-cacert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ovs-run-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-mode)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exgw-interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-accelerated-interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dpu-host-gateway-representor-interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-nexthop)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-vlanid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --nodeport)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disable-snat-multiple-gws)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disable-forwarding)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-v4-join-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-v6-join-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-v4-masquerade-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-v6-masquerade-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disable-pkt-mtu-check)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --gateway-router-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --single-node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-no-uplink)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ephemeral-port-range)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ha-election-lease-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ha-election-renew-deadline)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ha-election-retry-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-manager-ha-election-lease-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-manager-ha-election-renew-deadline)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-manager-ha-election-retry-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-manager-v4-transit-switch-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-manager-v4-transit-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-manager-v6-transit-switch-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-manager-v6-transit-subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ovnkube-node-mode)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ovnkube-node-mgmt-port-netdev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ovnkube-node-mgmt-port-dp-resource-name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dpu-node-lease-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dpu-node-lease-renew-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ovnkube-node-routing-table-id-start)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --simulate-dpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --metrics-bind-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ovn-metrics-bind-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --export-ovs-metrics)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --metrics-enable-pprof)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node-server-privkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node-server-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --metrics-enable-config-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --metrics-enable-scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-min-version)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-cipher-suites)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-admin-network-policy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-egress-ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --egressip-reachability-total-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --egressip-node-healthcheck-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-egress-firewall)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-egress-qos)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-egress-service)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-multi-external-gateway)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-multi-network)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-multi-networkpolicy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-network-segmentation)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disable-udn-host-isolation)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --udn-deletion-grace-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-dynamic-udn-allocation)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-preconfigured-udn-addresses)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-route-advertisements)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --advertised-udn-isolation-mode)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-evpn)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-network-connect)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-network-qos)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-uplink)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-stateless-netpol)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-icmp-network-policy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-interconnect)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-persistent-ips)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-dns-name-resolver)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-svc-template-support)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-observability)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-hybrid-overlay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hybrid-overlay-cluster-subnets)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hybrid-overlay-vxlan-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --netflow-targets)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sflow-targets)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ipfix-targets)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ipfix-sampling)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ipfix-cache-max-flows)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ipfix-cache-active-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _ovnkube -o nosort -o bashdefault -o default ovnkube
else
    complete -F _ovnkube -o bashdefault -o default ovnkube
fi
