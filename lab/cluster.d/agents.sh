# The network implementation under test. Its file (lab/impl/*.sh) sets the variables below. `bash -c` runs the commands with NODE,
# NODE_IP, APISERVER, CA, ACCESS, NB, SB, DB_KEY, DB_CERT, DB_CA, DB_TLS, CLUSTER_CIDR, SERVICE_CIDR, MTU in the environment.
# ACCESS is a kubeconfig: for masters, and for nodes whose agents contain one, of account ovn; for the second node, the
# kubelet's own; for other nodes, of account ovn-node with a token bound to the Node. With IMPL_ACCOUNTS=0 it is admin's.
#   IMPL_SETUP      run once before everything (accounts, CRDs, namespaces); kubectl is in PATH, KUBECONFIG is admin's   [nothing]
#   IMPL_ACCOUNTS   0: for an implementation that installs no accounts                                                       [1]
#   IMPL_MASTER     the master as a separate process in the control plane's namespace, as many as `--masters` says; empty: IMPL_NODE1
#                   includes it
#   IMPL_NODE1      the agent of the first node, or of as many as there are masters in agents                       [IMPL_NODE]
#   IMPL_NODE       the agent of a node, run in its namespaces while OVS daemons and ovn-controller run
#   IMPL_PLAN       prints what a node's agent would change there; empty: not supported
#   IMPL_PODS       1: agents, ovn-controller and northd run in pods that IMPL_SETUP creates                                 [0]
#   IMPL_OVS        1: the lab starts Open vSwitch and puts the NIC in br-ex; 0: pods start it, and the agent moves the NIC  [1]
#   IMPL_OVS_DIR    with IMPL_OVS=0, what pods mount as /etc/openvswitch                                  [/etc/openvswitch]
#   IMPL_AGENT      with IMPL_PODS=1, label and container of agents                                        [ovnkube/ovn-node]
#   IMPL_IMAGES     OCI tars that the nodes import
#   IMPL_SHIM       the CNI binary, installed as /opt/cni/bin/ovn-k8s-cni-overlay; empty: the implementation installs it itself
#   IMPL_BR_INT     1: the lab creates br-int beforehand; 0: the agent does                                                  [0]
#   IMPL_CNI_TXOFF  1: the lab turns TX checksum offload off in pods, for a shim that doesn't on a userspace datapath        [0]
#   IMPL_MP_TXOFF   1: the same for the management ports                                                                     [0]
# Sourced by lab/cluster.

FAULTS_PORT=16443 # of lab/api-faults
load_impl() {
  IMPL_SETUP=: IMPL_ACCOUNTS=1 IMPL_MASTER='' IMPL_NODE1='' IMPL_NODE='' IMPL_PLAN='' IMPL_PODS=0 IMPL_OVS=1 IMPL_OVS_DIR=/etc/openvswitch IMPL_AGENT=ovnkube/ovn-node IMPL_IMAGES='' IMPL_SHIM='' IMPL_BR_INT=0 IMPL_CNI_TXOFF=0 IMPL_MP_TXOFF=0
  . "$IMPL"
  IMPL_NODE1=${IMPL_NODE1:-$IMPL_NODE}
  [ -z "$IMPL_SHIM" ] || [ -x "$IMPL_SHIM" ] || die "no CNI binary $IMPL_SHIM (for the project's own: cargo build --profile lab)"
}
cni_programs() { # nI: what the node sees as /opt/cni/bin; the CNI program is that of the agent which started last
  local d bin=$D/cnibin/$1 shim
  shim=$bin/ovn-k8s-cni-overlay
  mkdir -p "$bin"
  # containerd needs loopback, pods' host ports need portmap
  for d in /usr/lib/cni /opt/cni/bin; do [ ! -x $d/loopback ] || { cp -n $d/{loopback,portmap} "$bin/"; break; }; done
  [ -n "$IMPL_SHIM" ] || return 0
  # a runtime may be starting it
  [ "$IMPL_CNI_TXOFF" = 0 ] || { cp "$IMPL_SHIM" "$shim.real.new"; mv "$shim.real.new" "$shim.real"; }
  if [ "$IMPL_CNI_TXOFF" = 0 ]; then cp "$IMPL_SHIM" "$shim.new"; else cat >"$shim.new" <<'W'
#!/bin/bash
out=$(mktemp) || exit 1; trap 'rm -f "$out"' EXIT
"$0.real" >"$out"; rc=$?
[ "$CNI_COMMAND" != ADD ] || [ $rc != 0 ] || nsenter --net="$CNI_NETNS" ethtool -K "$CNI_IFNAME" tx off >/dev/null 2>&1
cat "$out"; exit $rc
W
  fi
  chmod +x "$shim.new"; mv "$shim.new" "$shim"
}
kubelet_access() { "$HERE/k8slab" user "system:node:$1" system:nodes; } # nI
masters() { # the names of masters that are processes of their own
  local i
  [ -z "$IMPL_MASTER" ] || for i in $(seq "$MASTERS"); do [ "$i" = 1 ] && echo master || echo "master-$i"; done
}
has_master() { [ -z "$IMPL_MASTER" ] && [ "${1#n}" -le "$MASTERS" ]; } # nI: its agent contains one
agent_access() { # nI|master: the kubeconfig it runs with; while api-faults runs, one that leads there
  local file
  file=$(own_access "$1") || return
  [ -e "$D/pid/api-faults" ] || { echo "$file"; return; }
  sed "s|\(server: \"https://.*\):[0-9]*\"|\1:$FAULTS_PORT\"|" "$file" >"$file.faults.$$"
  mv "$file.faults.$$" "$file.faults"
  echo "$file.faults"
}
own_access() { # nI|master
  [ "$1" = master ] || ! has_master "$1" || { own_access master; return; }
  case $IMPL_ACCOUNTS-$1 in
    0-*) echo "$D/k8s/admin.kubeconfig" ;;
    1-master) inns cp "$HERE/k8slab" account ovn ;;
    1-n2) kubelet_access n2 ;;
    *) inns cp "$HERE/k8slab" account ovn-node "$1" ;;
  esac
}
agent_env() { # nI|master|master-I: the environment of the commands
  local PORT who=$1 node=$1
  case $1 in
    master) node=n1 ;;
    master-*) node=n${1#*-} who=master ;;
    *) ! has_master "$1" || who=master ;;
  esac
  PORT=$(sed -n 's/^PORT=//p' "$D/k8s/ports")
  export NODE=$node NODE_IP APISERVER=https://$(in_url "$CP_IP"):$PORT CA=$D/k8s/ca.crt KUBECONFIG=$D/k8s/admin.kubeconfig NB SB ACCESS=
  NODE_IP=$(node_ip "$node") NB=$(db_remotes nb) SB=$(db_remotes sb)
  export DB_KEY= DB_CERT= DB_CA= DB_TLS=
  [ "$SSL" = 0 ] || {
    [ $who = master ] || SB=$(db_relay)
    DB_KEY=$D/pki/$who.key DB_CERT=$D/pki/$who.crt DB_CA=$D/pki/control.crt
    DB_TLS="--nb-client-privkey=$DB_KEY --nb-client-cert=$DB_CERT --nb-client-cacert=$DB_CA --sb-client-privkey=$DB_KEY --sb-client-cert=$DB_CERT --sb-client-cacert=$DB_CA"
  }
}
api_faults_start() {
  local PORT
  PORT=$(sed -n 's/^PORT=//p' "$D/k8s/ports")
  bg api-faults "$HERE/api-faults" "$CP_IP" $FAULTS_PORT "$CP_IP" "$PORT" "$D/k8s" "$D/api-faults" "$D/api-requests"
  wait_for 10 inns cp bash -c ": </dev/tcp/$CP_IP/$FAULTS_PORT" || die "api-faults did not start ($D/log/api-faults.log)"
}
agent_plan() ( # nI
  [ "$IMPL_PODS" = 0 ] || { kubectl_ exec -n ovn-kubernetes "$(pod_of "${IMPL_AGENT%/*}" "$1")" -c "${IMPL_AGENT#*/}" -- ovnkube.sh plan; exit; }
  [ -n "$IMPL_PLAN" ] || die "this implementation tells no plan"
  agent_env "$1"
  ACCESS=$(agent_access "$1")
  innode "$1" bash -c "$IMPL_PLAN"
)
agent_start() ( # nI
  [ "$IMPL_PODS" = 0 ] || exit 0
  cni_programs "$1"
  agent_env "$1"
  ACCESS=$(agent_access "$1")
  cmd=$IMPL_NODE; [ "$1" != n1 ] && ! has_master "$1" || cmd=$IMPL_NODE1
  innode "$1" bash -c 'setsid bash -c "$1" >>"$2" 2>&1 </dev/null & echo $! >/run/agent.pid' _ "$cmd" "$D/log/agent-$1.log"
)
