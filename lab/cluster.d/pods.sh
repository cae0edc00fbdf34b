# An implementation whose daemons run in pods (IMPL_PODS=1). Its processes are found by their command lines: a container's are also
# processes of the node. A process that ends is restarted by its kubelet, so `stop` and `kill` only end it, and `start` waits for the
# next one. Sourced by lab/cluster.

in_pod() { # DAEMON
  [ "$IMPL_PODS" = 1 ] || return 1
  case $1-$IMPL_OVS in coredns-*|ovsdb-n*-1|vswitchd-n*-1) return 1 ;; esac
}
pod_daemon() { # DAEMON: its node, and a pattern for its command line
  case $1 in
    n[0-9]*) echo "$1" '^ovnkube --init-node' ;;
    ovsdb-n*) echo "${1#*-}" '^ovsdb-server .*conf.db' ;;
    vswitchd-n*) echo "${1#*-}" '^ovs-vswitchd ' ;;
    controller-n*) echo "${1#*-}" '^ovn-controller ' ;;
    master) echo n1 '^ovnkube --init-master' ;;
    northd) echo n1 '^ovn-northd ' ;;
    nb-[123]|sb-[123]) echo "n${1#*-}" "^ovsdb-server .*ovn${1%-*}_db\\.(db|conf)" ;;
    *) die "no daemon $1 in pods (cluster help)" ;;
  esac
}
pod_daemon_pid() { # DAEMON
  local node pattern
  read -r node pattern < <(pod_daemon "$1")
  innode "$node" pgrep -of "$pattern"
}
pod_daemon_stop() { # DAEMON SIGNAL
  local node pid
  read -r node _ < <(pod_daemon "$1")
  pid=$(pod_daemon_pid "$1") || die "$1 does not run"
  innode "$node" kill "-$2" "$pid"
}
pod_daemon_start() { wait_for 300 pod_daemon_pid "$1" || die "$1 was not restarted within 300 s"; } # DAEMON
pod_of() { kubectl_ get pod -n ovn-kubernetes -l "name=$1" --field-selector "spec.nodeName=$2" -o name; } # LABEL nI
