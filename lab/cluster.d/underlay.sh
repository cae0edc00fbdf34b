# The network below the cluster: a bridge in the control plane's namespace (cp), one namespace per node, and `ext`, the nodes'
# default gateway with an "internet" address behind it. Sourced by lab/cluster.

node_ip() { echo "$NET4.$((10 + ${1#n}))"; }
# TX checksum offload must go wherever packets enter the userspace datapath: they leave a veth or TAP with half a checksum that
# nobody completes. The rest keeps packets within the MTU.
offload() { # DEVICE
  ethtool -K "$1" tx off rx off tso off gso off gro off sg off >/dev/null 2>&1 || ethtool -K "$1" tx off >/dev/null 2>&1 || true
}
netns_add() { # UNIT: with eth0 on the bridge, without an address
  local u=$1
  ip netns add "$P-$u"
  inns "$u" ip link set lo up
  inns "$u" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
    net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
  ip link add "u-$u" netns "$P-cp" mtu $UMTU type veth peer name eth0 netns "$P-$u" mtu $UMTU
  inns cp ip link set "u-$u" master br0 up
  inns cp ethtool -K "u-$u" tx off >/dev/null 2>&1 || true
  inns "$u" ethtool -K eth0 tx off >/dev/null 2>&1 || true
}
underlay_up() {
  ip netns add "$P-cp"
  inns cp ip link set lo up
  inns cp ip link add br0 mtu $UMTU type bridge
  inns cp ip link set br0 addrgenmode none
  inns cp ip link set br0 up
  inns cp ip addr add "$CP_IP/24" dev br0
  netns_add ext
  inns ext ip link set eth0 up
  inns ext ip addr add "$EXT_IP/24" dev eth0
  inns ext ip addr add 198.51.100.10/32 dev lo
  inns cp ip route add default via "$EXT_IP"
  # the apiserver reaches pods (proxy subresource, webhooks) through the first node
  inns cp ip route add "$(echo "$CLUSTER_CIDR" | cut -d/ -f1,2)" via "$(node_ip n1)"
}
coredns_up() { # a process beside the apiserver, made a Service by hand
  kubectl_ apply -f - >>"$D/log/setup.log" <<Y
{apiVersion: v1, kind: Service, metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}, spec: {clusterIP: $DNS_IP, ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-1, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
endpoints: [{addresses: [$CP_IP], conditions: {ready: true}}]
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
Y
  cat >"$D/Corefile" <<C
.:53 {
 bind $CP_IP
 errors
 ready $CP_IP:8181
 kubernetes cluster.local in-addr.arpa ip6.arpa {
  kubeconfig $D/k8s/admin.kubeconfig
  pods insecure
  ttl 5
 }
}
C
  daemon_start coredns
}
