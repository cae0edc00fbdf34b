# The network below the cluster: a bridge in the control plane's namespace (cp), one namespace per node, and `ext`, the nodes'
# default gateway with an "internet" address behind it. Sourced by lab/cluster.

has() { [ "$FAMILY" = dual ] || [ "$FAMILY" = "$1" ]; } # v4|v6
both() { # OF-V4 OF-V6: comma list of those that the cluster's families need
  local list=
  ! has v4 || list=$1
  ! has v6 || list+=${list:+,}$2
  echo "$list"
}
primary() { both "$NET4.$1" "$NET6:$1" | cut -d, -f1; } # N: the underlay's Nth address, of the first family
in_url() { case $1 in *:*) echo "[$1]" ;; *) echo "$1" ;; esac; } # ADDRESS
node_ip() { primary $((10 + ${1#n})); }
address() { # UNIT N DEVICE: assigns it the underlay's Nth addresses
  ! has v4 || inns "$1" ip addr replace "$NET4.$2/24" dev "$3"
  ! has v6 || inns "$1" ip addr replace "$NET6:$2/64" dev "$3" nodad
}
# TX checksum offload must be off wherever packets enter the userspace datapath: they leave a veth or TAP with a partial checksum
# that nothing completes. The rest keeps packets within the MTU.
offload() { # DEVICE
  [ "$DATAPATH" = netdev ] || return 0
  ethtool -K "$1" tx off rx off tso off gso off gro off sg off >/dev/null 2>&1 || ethtool -K "$1" tx off >/dev/null 2>&1 || true
}
netns_add() { # UNIT: with eth0 on the bridge, without an address
  local u=$1
  ip netns add "$P-$u"
  inns "$u" ip link set lo up
  inns "$u" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
    net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
  link_add "$u" "u-$u" eth0
  case $u-$UPLINK in n[0-9]*-bond0*) link_add "$u" "v-$u" eth1 ;; esac
}
link_add() { # UNIT NAME DEVICE: connects the unit's new device to the bridge
  ip link add "$2" netns "$P-cp" mtu $UMTU type veth peer name "$3" netns "$P-$1" mtu $UMTU
  inns cp ip link set "$2" master br0 up
  # with a VLAN the nodes' frames have its tag, those of the others do not
  case $1-$UPLINK in n[0-9]*-*.*) inns cp bridge vlan add dev "$2" vid "${UPLINK#*.}" ;; esac
  [ "$DATAPATH" = netdev ] || return 0
  inns cp ethtool -K "$2" tx off >/dev/null 2>&1 || true
  inns "$1" ethtool -K "$3" tx off >/dev/null 2>&1 || true
}
underlay_up() {
  ip netns add "$P-cp"
  inns cp ip link set lo up
  inns cp ip link add br0 mtu $UMTU type bridge
  case $UPLINK in *.*) inns cp ip link set br0 type bridge vlan_filtering 1 vlan_default_pvid "${UPLINK#*.}" ;; esac
  inns cp ip link set br0 addrgenmode none
  inns cp ip link set br0 up
  address cp 1 br0
  netns_add ext
  inns ext ip link set eth0 up
  address ext 254 eth0
  # and a link behind it with a smaller MTU
  inns ext ip link add far mtu 1300 type veth peer name far-end
  inns ext ip link set far up; inns ext ip link set far-end up
  ! has v4 || {
    inns ext ip addr add 198.51.100.10/32 dev lo
    inns ext ip route add 198.51.100.128/25 dev far
    inns cp ip route add default via "$NET4.254"
  }
  ! has v6 || {
    inns ext ip addr add 2001:db8:100::10/128 dev lo nodad
    inns ext ip route add 2001:db8:200::/64 dev far
    inns cp ip route add default via "$NET6:254"
  }
}
# The apiserver reaches pods, services (proxy subresource, webhooks) and webhooks at localhost like a process of the first node
egress_up() { # cp|n1
  local range ranges=()
  if [ "$1" = n1 ]; then bg_in n1 egress-n1 "$HERE/egress" "$D/k8s/egress-n1.sock"; return; fi
  mkdir -p "$D/k8s"
  for range in ${CLUSTER_CIDR//,/ } ${SERVICE_CIDR//,/ }; do ranges+=("$(echo "$range" | cut -d/ -f1,2)"); done
  bg egress "$HERE/egress" "$D/k8s/egress.sock" "$D/k8s/egress-n1.sock" "${ranges[@]}"
  cat >"$D/k8s/egress.yaml" <<Y
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: $D/k8s/egress.sock}}}}
- {name: controlplane, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: $D/k8s/egress-n1.sock}}}}
Y
}
coredns_up() { # a process beside the apiserver, with a Service created by hand
  kubectl_ apply -f - >>"$D/log/setup.log" <<Y
{apiVersion: v1, kind: Service, metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}, spec: {clusterIP: '$DNS_IP', ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-1, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: $([[ $CP_IP == *:* ]] && echo IPv6 || echo IPv4)
endpoints: [{addresses: ['$CP_IP'], conditions: {ready: true}}]
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
Y
  cat >"$D/Corefile" <<C
.:53 {
 bind $CP_IP
 errors
 ready $(in_url "$CP_IP"):8181
 kubernetes cluster.local in-addr.arpa ip6.arpa {
  kubeconfig $D/k8s/admin.kubeconfig
  pods insecure
  ttl 5
 }
}
C
  daemon_start coredns
}
