# A node: namespaces with OVS, ovn-controller, containerd, kubelet and the implementation's agent, all on their default paths.
# Sourced by lab/cluster; the second half runs inside the node.

node_up() { # nI
  local u=$1
  node_start "$u"
  kubectl_ wait --for=create --timeout=$((300 * LAB_SLOW))s "node/$u" >/dev/null || die "kubelet of $u did not register"
  # a kubelet may not set this label on its own Node
  case $u-$DB in n1-*|n[23]-pods-raft) kubectl_ label node "$u" node-role.kubernetes.io/control-plane= k8s.ovn.org/ovnkube-db=true >/dev/null ;; esac
  agent_start "$u"
}
node_reboot() { # nI: loses all links and processes, keeps its files
  [ "$IMPL_PODS" = 1 ] && [ "$1" != n1 ] || die "reboot: only of nodes whose daemons run in pods, and not of n1"
  K8SNODE_DIR=$D/nodes K8SNODE_GROUP=lab-$P "$HERE/k8snode" stop "$1"
  inns cp ip link del "u-$1"
  ip netns del "$P-$1"
  node_start "$1"
}
node_start() { # nI
  # three zones, as upstream's tests require
  local u=$1 m mounts= role=topology.kubernetes.io/zone=zone-$(((${1#n} - 1) % 3 + 1))
  netns_add "$u"
  [ "$u" != n1 ] || egress_up n1
  # directories that OVS, OVN and the agent write to
  for m in var/lib/openvswitch var/lib/ovn var/log/ovn-kubernetes var/log/openvswitch var/log/ovn etc/openvswitch etc/origin/openvswitch etc/origin/ovn etc/ovn; do
    mkdir -p "$D/nodes/$u/$m"; mounts+=" $D/nodes/$u/$m:/$m"
  done
  cni_programs "$u"
  K8SNODE_MOUNTS="$mounts" K8SNODE_PRE="$SELF in-node $u" K8SNODE_CNI_BIN=$D/cnibin/$u K8SNODE_LABELS=$role \
    K8SNODE_IMAGES="$LAB_HOME/images/pause.tar $LAB_HOME/images/agnhost.tar $IMPL_IMAGES" \
    "$HERE/k8snode" up "$u" "$P-$u" "$(both "$NET4.$((10 + ${u#n}))" "$NET6:$((10 + ${u#n}))")" "$(kubelet_access "$u")" "$D/k8s/ca.crt"
}

# ---- inside the node ----
in_node() { # nI [ovsdb|vswitchd|controller|seals]
  local u=$1 id
  id=$(cat /proc/sys/kernel/random/uuid)
  OVS_STATE=$D/nodes/$u/ovs
  case ${2:-} in
    ovsdb) ovsdb; return ;;
    vswitchd) vswitchd; [ "$UPLINK" != br-ex ] || br_ex_net "$u"; return ;;
    controller) controller; return ;;
    seals) seals; return ;;
  esac
  mkdir -p "$OVS_STATE" /run/openvswitch /run/ovn
  [ "$IMPL_OVS" = 1 ] || { bare_host "$u" "$id"; return; }
  [ "$DATAPATH" = system ] || seal
  ip link set lo up; ip link set eth0 up; offload eth0
  ovsdb-tool create "$OVS_STATE/conf.db" "$(schema_file openvswitch/vswitch.ovsschema)"
  ovsdb
  ovs-vsctl --no-wait init
  # normally the operating system's start scripts set these; the lab chooses the datapath
  ovs-vsctl --no-wait set Open_vSwitch . external_ids:system-id="$id" external_ids:hostname="$u" \
    external_ids:ovn-bridge-datapath-type="$DATAPATH" ovs_version="$(ovs-vsctl --version | sed -n '1s/.* //p')"
  [ "$SSL" = 0 ] || { client_certificate "$u" node "$id"; [ "$IMPL_PODS" = 0 ] || own_files "$u"; }
  vswitchd
  [ "$IMPL_BR_INT" = 0 ] || ovs-vsctl add-br br-int -- set bridge br-int datapath_type="$DATAPATH" fail_mode=secure other_config:disable-in-band=true
  if [ "$UPLINK" = br-ex ]; then br_ex "$u"; else uplink "$u"; fi
  [ "$IMPL_PODS" = 1 ] || controller
  [ "$IMPL_MP_TXOFF" = 0 ] || mp_txoff
}
# br-ex holds the NIC and the node's address: userspace tunnels need the encapsulation address on a bridge
br_ex() { # nI
  ovs-vsctl add-br br-ex -- set bridge br-ex datapath_type="$DATAPATH" fail_mode=standalone "other_config:hwaddr=\"$(cat /sys/class/net/eth0/address)\"" \
    -- add-port br-ex eth0 -- br-set-external-id br-ex bridge-id br-ex -- br-set-external-id br-ex bridge-uplink eth0
  br_ex_net "$1"
}
uplink() { # nI: the device that the agent is told, with the node's addresses
  local nic=${UPLINK%.*} link
  if [ "$nic" = bond0 ]; then
    ip link add bond0 type bond mode active-backup miimon 100
    for link in eth0 eth1; do ip link set "$link" down; ip link set "$link" master bond0; done
    ip link set bond0 mtu $UMTU up
  fi
  [ "$UPLINK" = "$nic" ] || ip link add "$UPLINK" link "$nic" type vlan id "${UPLINK#*.}"
  host_net "$1" "$UPLINK"
}
# A host without Open vSwitch. Its database is prepared only to choose the datapath and the names.
bare_host() { # nI SYSTEM-ID
  host_net "$1" eth0
  # the socket of a host's systemd, which charts mount
  mkdir -p /run/systemd; : >/run/systemd/private
  local row='{"external_ids": ["map", [["ovn-bridge-datapath-type", "'$DATAPATH'"], ["system-id", "'$2'"], ["hostname", "'$1'"]]]}'
  [ -e "$IMPL_OVS_DIR/conf.db" ] || {
    touch /etc/openvswitch/run-by-ovnkube
    ovsdb-tool create "$IMPL_OVS_DIR/conf.db" "$(schema_file openvswitch/vswitch.ovsschema)"
    ovsdb-tool transact "$IMPL_OVS_DIR/conf.db" '["Open_vSwitch", {"op": "insert", "table": "Open_vSwitch", "row": '"$row"'}]'
    [ "$SSL" = 0 ] || { echo "$2" >/etc/openvswitch/system-id.conf; client_certificate "$1" node "$2"; own_files "$1"; }
  }
  [ "$DATAPATH" = system ] || setsid "$SELF" in-node "$1" seals >/dev/null 2>&1 </dev/null &
}
own_files() { # nI: where agents in pods find the node's certificate
  install -m 600 "$D/pki/$1.key" /etc/openvswitch/ovnsb-privkey.pem
  install -m 644 "$D/pki/$1.crt" /etc/openvswitch/ovnsb-cert.pem
  install -m 644 "$D/pki/control.crt" /etc/openvswitch/ovnsb-ca.cert
}
seals() { # seals while the agent has the NIC's addresses on its bridge
  local is=0 should
  while sleep 0.2; do
    should=0
    [ -z "$(ip -o addr show dev breth0 scope global 2>/dev/null)" ] || should=1
    case $is$should in
      01) seal; is=1 ;;
      10) nft delete table inet lab; nft delete table arp lab; is=0 ;;
    esac
  done
}
daemon() { # PROGRAM ARGS...
  local name=$1; shift
  "$name" -vconsole:off -vsyslog:off "$@" --pidfile --log-file="$OVS_STATE/$name.log" --detach --no-chdir
}
ovsdb() { daemon ovsdb-server "$OVS_STATE/conf.db" --remote=punix:/run/openvswitch/db.sock; }
vswitchd() { daemon ovs-vswitchd unix:/run/openvswitch/db.sock; }
controller() { daemon ovn-controller unix:/run/openvswitch/db.sock; }
# br-ex is a TAP of ovs-vswitchd and loses its addresses when that exits; restoring them is the machine's task.
br_ex_net() { host_net "$1" br-ex; } # nI
host_net() { # nI DEVICE: the node's addresses and default routes
  ip link set "$2" mtu $UMTU up; offload "$2"
  ! has v4 || { ip addr replace "$NET4.$((10 + ${1#n}))/24" dev "$2"; ip route replace default via "$NET4.254"; }
  ! has v6 || { ip addr replace "$NET6:$((10 + ${1#n}))/64" dev "$2" nodad; ip route replace default via "$NET6:254"; }
}
# The userspace datapath does not take packets away from the kernel: without this the node's own stack would also answer and forward
# everything that arrives on eth0 and on pods' veths. Only ports internal to OVS may reach it.
seal() {
  local inner='{ "lo", "br-ex", "br-int", "ovn-k8s-mp*", "breth*" }'
  nft -f - <<NFT
table inet lab { chain pre { type filter hook prerouting priority -300; policy accept; iifname $inner accept
 counter drop
 }
}
table arp lab { chain in { type filter hook input priority 0; policy accept; iifname $inner accept
 counter drop
 }
}
NFT
}
mp_txoff() { # for an implementation that leaves checksum offload on its management port
  setsid bash -c 'while sleep 0.5; do
    for d in /sys/class/net/ovn-k8s-mp*; do
      [ -e "$d" ] || continue
      i=$(cat "$d/ifindex"); [ "${seen[$i]:-}" = 1 ] || { ethtool -K "${d##*/}" tx off; seen[$i]=1; }
    done; done' >/dev/null 2>&1 </dev/null &
}
