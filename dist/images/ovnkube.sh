#!/bin/sh
# ovnkube.sh WORD - entrypoint of the image. Each container of dist/yaml runs one word:
#   nb-ovsdb, sb-ovsdb   the northbound or southbound database, alone (not clustered)
#   sb-ovsdb-relay       with TLS, a relay of the southbound database, which gives nodes the role ovn-controller
#   nb-ovsdb-raft, sb-ovsdb-raft    a member of the northbound or southbound database's Raft cluster
#   run-ovn-northd       ovn-northd; also the word ovn-northd
#   ovs-server           Open vSwitch: ovsdb-server and ovs-vswitchd. Watches the host's own if that runs already
#   ovn-controller       ovn-controller
#   ovn-master           ovnkube as master
#   ovn-cluster-manager, ovnkube-controller    the two halves of a master
#   ovn-node             ovnkube as node agent, which first copies the CNI program to the host, unless another agent runs there
#   install-cni          only copies the CNI program to the host
#   ovn-ic-server        the databases that connect clusters: start-ic-db.sh, which names its settings
#   nbctl, sbctl, icnbctl, icsbctl ARGS    OVN's programs against all members of these databases, for kubectl ko
#   readiness-probe -t TARGET    ovnkube readiness-probe, which names the targets. Charts of ovn-kubernetes call it as ovn-kube-util
#   ovnkube-identity     the admission webhook of dist/identity, with the certificate in /etc/webhook-cert
#   ovnkube-approver     approves the certificates of node agents. In pods of ovn-kubernetes' chart, ovnkube-identity does that too
#   plan                 prints what the node agent would change on this host
#   ic ARGS              ovnkube ic: how the cluster is joined with others
#   cleanup-ovn-node     removes what the node agent set up on this host, and the CNI program if it is ovnkube's
#   display, display_env, ovn_debug    the state of the databases and of the switch; the settings
# In pods of ovn-kubernetes' chart, which set OVN_DAEMONSET_VERSION, the databases' pods publish their addresses and the others wait for them.
# Words of that chart with nothing to do here say so: ovs-metrics, ovn-dbchecker and cleanup-ovs-server.
# Its settings are environment variables, with the names that ovn-kubernetes gave them:
#   K8S_NODE, K8S_NODE_IP            this node's name and address
#   K8S_APISERVER, K8S_TOKEN, ...    see docs/configuration.md; otherwise the pod's service account
#   OVN_NORTH, OVN_SOUTH             the databases, as tcp:ADDRESS:PORT (or ssl:), a comma list
#   OVN_NB_PORT, OVN_SB_PORT         ports of nb-ovsdb [6641] and sb-ovsdb [6642], also of Raft members
#   OVN_SB_RELAY_PORT                port of sb-ovsdb-relay [16642], to which node agents go with TLS
#   OVN_NB_RAFT_PORT, OVN_SB_RAFT_PORT                   ports between Raft members [6643, 6644]
#   OVN_NB_RAFT_ELECTION_TIMER, OVN_SB_RAFT_ELECTION_TIMER    seconds without a leader until an election [as the cluster has it; a new
#                                    one 1]. 1000 and more are milliseconds
#   OVN_NORTHD_OPTS, OVN_CONTROLLER_OPTS, OVS_OPTIONS    more arguments of ovn-northd, ovn-controller, ovs-ctl
#   OVN_LOGLEVEL_NB, _SB, _NORTHD, _CONTROLLER           their log levels [-vconsole:info]
#   OVN_SSL_ENABLE                   yes, or addresses that begin with ssl: keys and certificates are in /ovn-cert, those of node agents in
#                                    /etc/openvswitch (docs/tls.md)
#   OVN_GATEWAY_OPTS                 more flags of the node agent
#   UNUSED_K8S_TOKEN                 a token that is not used, such as the key k8s_token of old installations: it is warned of
#   POD_NAME, POD_UID                this pod, in the namespace OVN_KUBERNETES_NAMESPACE: why a container ends is also an Event of its pod
#   OVNKUBE_SH_VERBOSE               true: this script prints what it does
#   and one for each flag in the table below; docs/differences.md lists those of ovn-kubernetes that have no effect
set -euf
[ "${OVNKUBE_SH_VERBOSE:-}" != true ] || set -x

word=${1:-}
. "$(dirname "$(realpath "$0")")/databases.sh"
OVS_RUN=/var/run/openvswitch
OVSDB=$OVS_RUN/db.sock
# says that Open vSwitch on this host is this image's
MARK=/etc/openvswitch/run-by-ovnkube
# An Event of the pod, else of the node. The log has the line already: whatever becomes of the Event, and for 10 s at most, changes neither
# that nor the exit code. If K8S_APISERVER is what is wrong, the address that the cluster gives its pods may do.
told() { # MESSAGE [REASON]
  # run by hand and by probes: the container goes on
  case $word in nbctl|sbctl|icnbctl|icsbctl|readiness-probe|relay-readiness|plan|ic|display|display_env|ovn_debug) return 0 ;; esac
  set -- "$(printf '%s' "$1" | sed 's/see the lines* above/see the log of the container/g')" "${2:-ContainerEnded}"
  if [ -n "${POD_NAME:-}" ] && [ -n "${POD_UID:-}" ]; then
    set -- pod "${OVN_KUBERNETES_NAMESPACE:-ovn-kubernetes}/$POD_NAME" "$POD_UID" "${K8S_NODE:-$POD_NAME}" "$1" "$2"
  elif [ -n "${K8S_NODE:-}" ]; then
    set -- node "$K8S_NODE" "$1" "$2"
  else
    return 0
  fi
  # in a shell of its own: after a warning the program starts, with the address that it was given
  reported "$@" || { [ -n "${K8S_APISERVER:-}" ] && (K8S_APISERVER=''; reported "$@"); } || :
}
reported() { timeout -k 1 4 ovnkube event --config-file=/dev/null -- "$@" >/dev/null 2>&1; }
# shows settings, also those that nothing can start with
[ "$word" != display_env ] || fail() { say "$2"; }
warn() { say "$*"; told "$*"; }
of_chart() { [ -n "${OVN_DAEMONSET_VERSION:-}" ]; } # of ovn-kubernetes
idle() { say "$*"; trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done; }

need_programs() { # NAMES...
  for program; do
    command -v "$program" >/dev/null || die "cannot start: this image has no program $program; build it with dist/images/Dockerfile, which installs the packages of dist/images/packages"
  done
}

# Environment variables and the flags of ovnkube that they set.
flags() {
  cat <<'TABLE'
OVN_NET_CIDR cluster-subnets
OVN_SVC_CIDR k8s-service-cidrs
OVN_MTU mtu
OVN_ROUTABLE_MTU routable-mtu
OVN_ENCAP_PORT encap-port
OVN_KUBERNETES_NAMESPACE ovn-config-namespace
OVN_HOST_NETWORK_NAMESPACE host-network-namespace
OVN_GATEWAY_MODE gateway-mode
OVN_GATEWAY_ROUTER_SUBNET gateway-router-subnet
OVN_V4_JOIN_SUBNET gateway-v4-join-subnet
OVN_V6_JOIN_SUBNET gateway-v6-join-subnet
OVN_V4_MASQUERADE_SUBNET gateway-v4-masquerade-subnet
OVN_V6_MASQUERADE_SUBNET gateway-v6-masquerade-subnet
OVN_DISABLE_SNAT_MULTIPLE_GWS disable-snat-multiple-gws
OVN_DISABLE_FORWARDING disable-forwarding
OVN_DISABLE_PKT_MTU_CHECK disable-pkt-mtu-check
OVN_EMPTY_LB_EVENTS ovn-empty-lb-events
OVN_ACL_LOGGING_RATE_LIMIT acl-logging-rate-limit
OVN_MULTICAST_ENABLE enable-multicast
OVNKUBE_ALLOW_UNSERVED allow-unserved
OVN_STATELESS_NETPOL_ENABLE enable-stateless-netpol
OVN_ALLOW_ICMP_NETPOL allow-icmp-network-policy
OVN_ENABLE_SVC_TEMPLATE_SUPPORT enable-svc-template-support
OVN_ADMIN_NETWORK_POLICY_ENABLE enable-admin-network-policy
OVN_EGRESSIP_ENABLE enable-egress-ip
OVN_EGRESSIP_HEALTHCHECK_PORT egressip-node-healthcheck-port
OVN_EGRESSFIREWALL_ENABLE enable-egress-firewall
OVN_EGRESSQOS_ENABLE enable-egress-qos
OVN_EGRESSSERVICE_ENABLE enable-egress-service
OVN_ENABLE_MULTI_EXTERNAL_GATEWAY enable-multi-external-gateway
OVN_MULTI_NETWORK_ENABLE enable-multi-network
OVN_NETWORK_SEGMENTATION_ENABLE enable-network-segmentation
OVN_NETWORK_CONNECT_ENABLE enable-network-connect
OVN_PRE_CONF_UDN_ADDR_ENABLE enable-preconfigured-udn-addresses
OVN_DYNAMIC_UDN_ALLOCATION enable-dynamic-udn-allocation
OVN_DYNAMIC_UDN_GRACE_PERIOD udn-deletion-grace-period
OVN_NETWORK_QOS_ENABLE enable-network-qos
OVN_ROUTE_ADVERTISEMENTS_ENABLE enable-route-advertisements
OVN_ADVERTISED_UDN_ISOLATION_MODE advertised-udn-isolation-mode
OVN_EVPN_ENABLE enable-evpn
OVN_ENABLE_PERSISTENT_IPS enable-persistent-ips
OVN_ENABLE_DNSNAMERESOLVER enable-dns-name-resolver
OVN_HYBRID_OVERLAY_ENABLE enable-hybrid-overlay
OVN_HYBRID_OVERLAY_NET_CIDR hybrid-overlay-cluster-subnets
OVN_ENABLE_INTERCONNECT enable-interconnect
OVN_V4_TRANSIT_SUBNET cluster-manager-v4-transit-switch-subnet
OVN_V6_TRANSIT_SUBNET cluster-manager-v6-transit-switch-subnet
OVN_OBSERV_ENABLE enable-observability
OVN_NOHOSTSUBNET_LABEL no-hostsubnet-nodes
OVN_DISABLE_REQUESTEDCHASSIS disable-requestedchassis
OVNKUBE_LOGLEVEL loglevel
OVNKUBE_HEALTHZ_BIND_ADDRESS healthz-bind-address
OVNKUBE_LIBOVSDB_CLIENT_LOGFILE libovsdblogfile
OVNKUBE_LOGFILE_MAXSIZE logfile-maxsize
OVNKUBE_LOGFILE_MAXBACKUPS logfile-maxbackups
OVNKUBE_LOGFILE_MAXAGE logfile-maxage
OVNKUBE_METRICS_CERT node-server-cert
OVNKUBE_METRICS_PK node-server-privkey
OVNKUBE_CONFIG_DURATION_ENABLE metrics-enable-config-duration
OVNKUBE_METRICS_SCALE_ENABLE metrics-enable-scale
TABLE
}
node_flags() { # of the node agent only
  cat <<'TABLE'
OVN_ENCAP_IP encap-ip
OVN_REMOTE_PROBE_INTERVAL inactivity-probe
OVN_MONITOR_ALL monitor-all
OVN_OFCTRL_WAIT_BEFORE_CLEAR ofctrl-wait-before-clear
OVN_ENABLE_LFLOW_CACHE enable-lflow-cache
OVN_LFLOW_CACHE_LIMIT lflow-cache-limit
OVN_LFLOW_CACHE_LIMIT_KB lflow-cache-limit-kb
OVN_KUBERNETES_CONNTRACK_ZONE conntrack-zone
OVN_EX_GW_NETWORK_INTERFACE exgw-interface
OVN_NETFLOW_TARGETS netflow-targets
OVN_SFLOW_TARGETS sflow-targets
OVN_IPFIX_TARGETS ipfix-targets
OVN_IPFIX_SAMPLING ipfix-sampling
OVN_IPFIX_CACHE_MAX_FLOWS ipfix-cache-max-flows
OVN_IPFIX_CACHE_ACTIVE_TIMEOUT ipfix-cache-active-timeout
OVNKUBE_NODE_MGMT_PORT_NETDEV ovnkube-node-mgmt-port-netdev
OVNKUBE_NODE_MGMT_PORT_DP_RESOURCE_NAME ovnkube-node-mgmt-port-dp-resource-name
OVNKUBE_NODE_MODE ovnkube-node-mode
TABLE
}
given() { # reads "VARIABLE FLAG" lines; prints a --FLAG=VALUE for each variable that is not empty
  while read -r variable flag; do
    eval "value=\${$variable:-}"
    [ -z "$value" ] || printf '%s\n' "--$flag=$value"
  done
}
# Variables that our manifests take from the ConfigMap ovn-config: the key, and the flag of ovnkube.
keys() {
  cat <<'TABLE'
OVN_NORTH OvnNorth nb-address
OVN_SOUTH OvnSouth sb-address
K8S_APISERVER k8s_apiserver k8s-apiserver
OVN_NET_CIDR net_cidr cluster-subnets
OVN_SVC_CIDR svc_cidr k8s-service-cidrs
OVN_MTU mtu mtu
OVN_GATEWAY_OPTS gateway_opts -
TABLE
}
# The variables of the lines that are read, without space around their values: values of files and of blocks in YAML end in a line break.
# A line break inside would begin another argument.
plain() {
  while read -r variable _; do
    eval "value=\${$variable:-}"
    case $value in [[:space:]]*|*[[:space:]]|*"$LINE_BREAK"*) ;; *) continue ;; esac
    while :; do
      case $value in [[:space:]]*) value=${value#?} ;; *[[:space:]]) value=${value%?} ;; *) break ;; esac
    done
    case $variable,$value in
      OVN_GATEWAY_OPTS,*) ;;
      *"$LINE_BREAK"*) die "cannot start: the value of the environment variable $variable$(of_key "$variable") has a line break; write it in one line" ;;
    esac
    eval "$variable=\$value"
  done
}
LINE_BREAK='
'
of_key() { of_chart || keys | sed -n "s/^$1 \([^ ]*\) .*/, which is the key \1 of the ConfigMap ovn-config,/p"; } # VARIABLE
plain <<LINES
$(keys; flags; node_flags)
K8S_NODE_IP
METRICS_IP
OVN_NB_PORT
OVN_SB_PORT
OVN_SB_RELAY_PORT
OVN_NB_RAFT_PORT
OVN_SB_RAFT_PORT
OVN_NB_RAFT_ELECTION_TIMER
OVN_SB_RAFT_ELECTION_TIMER
OVN_SSL_ENABLE
LINES
with_ssl() { [ "${OVN_SSL_ENABLE:-no}" = yes ]; }
case ${OVN_SSL_ENABLE:-no} in
  yes|true) OVN_SSL_ENABLE=yes ;;
  no|false) OVN_SSL_ENABLE=no ;;
  *) die "cannot start: OVN_SSL_ENABLE is \"$OVN_SSL_ENABLE\"; set it to yes or no" ;;
esac
case ${OVN_NORTH:-},${OVN_SOUTH:-} in
  *tcp:*ssl:*|*ssl:*tcp:*) die "cannot start: some addresses of the databases begin with ssl: and some with tcp:; let all of OvnNorth and OvnSouth in the ConfigMap ovn-config begin with the same" ;;
  *ssl:*) OVN_SSL_ENABLE=yes ;;
  *tcp:*) ! with_ssl || of_chart || die "cannot start: OVN_SSL_ENABLE is yes, and the addresses of the databases begin with tcp:; let those of OvnNorth and OvnSouth in the ConfigMap ovn-config begin with ssl:" ;;
esac
# What users may rely on is not passed over in silence.
# the words that start something
case $word in nb-*|sb-*|run-ovn-northd|ovn-northd|ovs-server|ovn-controller|ovn-master|ovn-cluster-manager|ovnkube-controller|ovn-node) starts=yes ;; *) starts= ;; esac
[ -z "$starts" ] || [ "${ENABLE_IPSEC:-}" != true ] || die "cannot start: ENABLE_IPSEC is true, and ovnkube does not encrypt tunnels; set it (in the chart global.enableIpsec) to false"
[ "${OVNKUBE_COMPACT_MODE_ENABLE:-}" != true ] || say "OVNKUBE_COMPACT_MODE_ENABLE (in the chart global.enableCompactMode) has no effect: masters and agents are pods of their own"
[ "${OVN_UNPRIVILEGED_MODE:-no}" = no ] || say "OVN_UNPRIVILEGED_MODE (in the chart global.unprivilegedMode) has no effect: agents need their capabilities"
# The settings of the image, or of a chart of ovn-kubernetes. Not those of the host, whose directory is mounted over /etc/openvswitch.
CONF=$(dirname "$(realpath "$0")")/ovn_k8s.conf
if of_chart && [ -e /run/ovnkube-config/ovnkube.conf ]; then CONF=/run/ovnkube-config/ovnkube.conf; fi
# WORDS...: ovnkube endpoints in this namespace
endpoints() { ovnkube endpoints "$@" ${OVN_KUBERNETES_NAMESPACE:+--ovn-config-namespace="$OVN_KUBERNETES_NAMESPACE"} --config-file="$CONF"; }
# A master would use its defaults in their place, which are no cluster's. Agents have the masters' values, once they find the API server.
need_keys() {
  of_chart || keys | while read -r variable key _; do
    case $key in mtu|gateway_opts) continue ;; esac
    need_key $variable $key
  done
}
need_key() { # VARIABLE KEY
  eval "[ -n \"\${$1:-}\" ]" || die "cannot start: the key $2 of the ConfigMap ovn-config (environment variable $1) is missing or empty; write its value there, as docs/install.md shows; the kubelet then starts this container again"
}
is_named() { case $said in *"(--$1)"*|*"--$1 "*) ;; *) return 1 ;; esac; } # FLAG
# ARGS...: ends if ovnkube cannot use a setting, and says which key or variable it comes from. Only settings are read.
check() {
  code=0; said=$(ovnkube config "$@" 2>&1 >/dev/null) || code=$?
  [ $code != 0 ] || return 0
  said=${said#ovnkube: }
  of_chart || keys | while read -r variable key flags; do
    eval "value=\${$variable:-}"
    [ -n "$value" ] || continue
    [ "$key" != gateway_opts ] || flags=$value
    for flag in $flags; do
      flag=${flag%%=*} flag=${flag#-}
      ! is_named "${flag#-}" || die "$said; it comes from the key $key of the ConfigMap ovn-config: correct it there; the kubelet then starts this container again"
    done
  done
  for table in $tables; do
    $table | while read -r variable flag; do
      eval "[ -n \"\${$variable:-}\" ]" && is_named "$flag" || continue
      fail $code "$said; it comes from the environment variable $variable of this container: correct it in the pod's manifest, or in the values of the chart"
    done
  done
  fail $code "$said"
}
is_address() {
  case $1 in unix:?*) return 0 ;; tcp:?*:*|ssl:?*:*) ;; *) return 1 ;; esac
  case ${1##*:} in ''|*[!0-9]*) return 1 ;; esac
}
need_addresses() { # VARIABLE KEY: leaves a comma list without spaces
  need_key "$1" "$2"
  eval "value=\$$1"; list=
  for remote in $(printf '%s\n' "$value" | tr ',' ' '); do
    is_address "$remote" || no_address "$remote" "$2"
    list=$list${list:+,}$remote
  done
  [ -n "$list" ] || no_address "$value" "$2"
  eval "$1=\$list"
}
no_address() { die "cannot start: \"$1\" is no address of a database; write tcp:ADDRESS:PORT, ssl:ADDRESS:PORT or a comma list of them into the key $2 of the ConfigMap ovn-config"; }
need_databases() {
  if of_chart && [ -z "${OVN_NORTH:-}${OVN_SOUTH:-}" ]; then
    found=$(endpoints wait) || die "cannot find the databases: see the line above"
    ! with_ssl || found=$(echo "$found" | sed 's/tcp:/ssl:/g')
    OVN_NORTH=$(echo "$found" | sed -n 1p) OVN_SOUTH=$(echo "$found" | sed -n 2p)
  fi
  need_addresses OVN_NORTH OvnNorth; need_addresses OVN_SOUTH OvnSouth
}
# What charts of ovn-kubernetes leave to the image. PORT
chart_metrics() { ! of_chart || echo "--metrics-bind-address=$(bracketed "${METRICS_IP:-${K8S_NODE_IP:-0.0.0.0}}"):$1"; }
# Where a node's own certificate is. Those of ovn-kubernetes' chart have one for all nodes, and no relay.
NODE_KEYS=/etc/openvswitch/ovnsb
is_node= # whether this container is a node agent
with_relay() { with_ssl && [ -n "$is_node" ] && ! of_chart; }
# The clean-up opens none, and needs no setting of theirs. ARGS...
databases() { case ${1:-} in --cleanup-node=*) ;; *) need_databases; database_flags ;; esac; }
# Prints the flags of the databases and their keys. Addresses may have the old form tcp://ADDRESS:PORT.
database_flags() {
  key=/ovn-cert/ovncontroller-privkey.pem cert=/ovn-cert/ovncontroller-cert.pem ca=/ovn-cert/ca-cert.pem
  if with_relay; then
    number "${OVN_SB_RELAY_PORT:-16642}"
    OVN_SOUTH=$(echo "$OVN_SOUTH" | sed "s/:[0-9]*\(,\|\$\)/:${OVN_SB_RELAY_PORT:-16642}\1/g")
    key=$NODE_KEYS-privkey.pem cert=$NODE_KEYS-cert.pem ca=$NODE_KEYS-ca.cert
  fi
  printf '%s\n' "OVN_NORTH nb-address" "OVN_SOUTH sb-address" | given
  ! with_ssl || for side in nb sb; do
    printf '%s\n' "--$side-client-privkey=$key" "--$side-client-cert=$cert" "--$side-client-cacert=$ca"
  done
}
ssl_files() { # NAME: the arguments of an OVN program
  ! with_ssl ||
    echo "--private-key=/ovn-cert/$1-privkey.pem --certificate=/ovn-cert/$1-cert.pem --ca-cert=/ovn-cert/ca-cert.pem"
}
# ARGS...: ovnkube with what the environment sets, for the tables $tables, and last what $more says. A value has no line breaks.
tables=flags more=
ovnkube_() {
  need_programs ovnkube
  case ${1:-} in --init-master=*|--init-cluster-manager=*|--init-ovnkube-controller=*) need_keys ;; --init-node=*) of_chart || need_key K8S_APISERVER k8s_apiserver ;; esac
  # not its value, which would be in the log with OVNKUBE_SH_VERBOSE
  [ -z "${K8S_TOKEN:+set}" ] || say "K8S_TOKEN is set, as from the key k8s_token of the ConfigMap ovn-config: whoever may read that has the token; leave it out, the pod's account has one of its own"
  [ -z "${UNUSED_K8S_TOKEN:+set}" ] || say "the ConfigMap ovn-config has a token, as the key k8s_token, and nothing uses it: whoever may read the ConfigMap has the token; remove the key and revoke the token"
  unset UNUSED_K8S_TOKEN
  # ovnkube names the file too
  missing=; ! with_ssl || [ -n "$is_node" ] || missing=$(missing_file ovncontroller)
  [ -z "$missing" ] || warn "$missing"
  lines=$(databases "$@" && echo "--config-file=$CONF" && for table in $tables; do $table | given; done)
  IFS='
'
  # shellcheck disable=SC2086 # one argument a line
  set -- "$@" $lines
  unset IFS
  # shellcheck disable=SC2086 # arguments are words
  case $1 in --*) check "$@" $more ;; esac
  # shellcheck disable=SC2086 # arguments are words
  exec ovnkube "$@" $more
}
node_name() { need K8S_NODE "name of this node"; }

# A port or a number of seconds. VALUE
number() {
  case $1 in ''|*[!0-9]*) die "cannot start: $1, a port or an election timer of the database, is no number; set OVN_NB_PORT, OVN_NB_RAFT_PORT, OVN_NB_RAFT_ELECTION_TIMER and those of SB" ;; esac
}
database_keys() { # DATABASE
  protocol=tcp keys=
  ! with_ssl || { protocol=ssl; keys=$(ssl_files "ovn$1"); need_files "ovn$1"; }
}
need_files() { # NAME: OVN's programs start without them, and refuse everybody
  missing=$(missing_file "$1")
  [ -z "$missing" ] || die "cannot start: $missing"
}
missing_file() { # NAME: what to do about the first file that is not there
  for file in "$1-privkey.pem" "$1-cert.pem" ca-cert.pem; do
    [ -r "/ovn-cert/$file" ] || { echo "with TLS it needs /ovn-cert/$file; create the secret ovnkube-db-cert with all its keys, as docs/tls.md shows"; break; }
  done
}
listening() { # ADDRESS DATABASE PORT: the southbound one is the last that clients need
  of_chart && [ "$2" = sb ] || return 0
  case $word in *-raft) [ -z "${OVN_NORTH:-}${OVN_SOUTH:-}" ] || return 0; all=member_pods ;; *) all="echo $K8S_NODE_IP" ;; esac
  # shellcheck disable=SC2086 # addresses are words
  until found=$($all) && endpoints publish "$(echo $found | tr ' ' ',')" "${OVN_NB_PORT:-6641}" "$3"; do sleep 10; done
}
need_side() { # nb|sb: sets `asked`, where clients ask
  case $1 in nb) need_addresses OVN_NORTH OvnNorth; asked=$OVN_NORTH ;; sb) need_addresses OVN_SOUTH OvnSouth; asked=$OVN_SOUTH ;; esac
}
database() { # nb|sb PORT LOG
  need_programs ovsdb-server ovsdb-tool "ovn-$1ctl" flock
  need K8S_NODE_IP "address of this node"
  # in pods of ovn-kubernetes' chart it is this database that tells where it is
  asked=; of_chart || need_side "$1"
  number "$2"
  address=$(bracketed "$K8S_NODE_IP")
  # on a node that nobody asks, an empty database would be taken for the cluster's
  case ,$asked, in
    ,,|*[:/]"$address:$2",*) ;;
    *) die "cannot start the database: clients ask at $asked, this node is $address:$2; label the node of that address, and no other, k8s.ovn.org/ovnkube-db=true" ;;
  esac
  database_keys "$1"
  alone "$1" "$address" "$2" "$3"
}
# Sets `asked` in ovn-kubernetes' chart, whose pods are told no addresses; empty for a member, which starts whatever becomes of other pods.
side_of_pods() { # nb|sb PORT
  need K8S_APISERVER "address of the API server"
  names "$1"
  asked= before=
  while ! has_member; do
    if found=$(set +x; member_pods 2>&1); then
      for ip in $found; do asked=$asked${asked:+,}tcp:$(bracketed "$ip"):$2; done
      return 0
    fi
    [ "$found" = "$before" ] || { before=$found; say "waits for the addresses of all members: $(echo $found)"; }
    sleep 2
  done
}
# A member of a Raft cluster. Which member it is, and that the first one may create the cluster, is said by the list of addresses that
# clients get.
raft_member() { # nb|sb PORT RAFT-PORT LOG SECONDS
  need_programs ovsdb-server ovsdb-tool ovsdb-client ovn-appctl flock
  need K8S_NODE_IP "address of this node"
  # nodes keep pods from these ports: the databases ask nobody who he is
  case $1$3 in nb6643|sb6644) ;; *) with_ssl || die "cannot start: members talk at port $3, and without TLS nodes protect 6643 (northbound) and 6644 (southbound) only; leave OVN_NB_RAFT_PORT and OVN_SB_RAFT_PORT out" ;; esac
  address=$(bracketed "$K8S_NODE_IP") others= first= mine=
  number "$2"; number "$3"; number "${5:-0}"
  if of_chart && [ -z "${OVN_NORTH:-}${OVN_SOUTH:-}" ]; then side_of_pods "$1" "$2"; else need_databases; need_side "$1"; fi
  for remote in $(echo "$asked" | tr ',' ' '); do
    remote=${remote#*:}; remote=${remote#//}
    : "${first:=${remote%:*}}"
    if [ "$remote" = "$address:$2" ]; then mine=yes; else others="$others ${remote%:*}"; fi
  done
  if [ -n "$asked" ]; then
    [ -n "$mine" ] || die "cannot start the database: clients ask at $asked, this node is $address:$2; label the nodes of these addresses, and no others, k8s.ovn.org/ovnkube-db=true"
    [ "$(echo $others | wc -w)" -ge 2 ] || die "cannot start the database: clients ask at $asked, and a Raft cluster needs three addresses; for one, use the word $1-ovsdb"
  fi
  database_keys "$1"
  # shellcheck disable=SC2086 # addresses are words
  member "$1" "$address" "$2" "$3" "$4" "${5:-0}" "$first" $others
}
# With TLS, nodes come here, since a database asks for one authority only: masters' and nodes' is the relay's.
relay() { # PORT LOG
  # without addresses it is not known whether there is TLS
  need_databases
  with_ssl || idle "this container has nothing to do: without TLS, nodes connect to the southbound database itself"
  need_programs ovsdb-server ovn-sbctl
  need K8S_NODE_IP "address of this node"
  number "$1"
  case ,$OVN_SOUTH, in *:"$1",*) die "cannot start: $1, the port of the relay for nodes, is that of the southbound database too; give that one another port in OvnSouth, or set OVN_SB_RELAY_PORT everywhere" ;; esac
  database_keys sb
  relay_of_sb "$(bracketed "$K8S_NODE_IP")" "$1" "$2" "$(echo "$OVN_SOUTH" | sed 's,//,,g')"
}
northd() {
  need_programs ovn-northd
  need_databases
  ! with_ssl || need_files ovnnorthd
  need_dir $RUN
  # shellcheck disable=SC2046,SC2086 # arguments are words
  exec ovn-northd ${OVN_LOGLEVEL_NORTHD:--vconsole:info} -vsyslog:off -vfile:off \
    --ovnnb-db="$(echo "$OVN_NORTH" | sed 's,//,,g')" --ovnsb-db="$(echo "$OVN_SOUTH" | sed 's,//,,g')" \
    --unixctl=$RUN/ovn-northd.ctl --pidfile=$RUN/ovn-northd.pid $(ssl_files ovnnorthd) ${OVN_NORTHD_OPTS:-}
}
switch_answers() { ovs-vsctl --timeout=5 --db="unix:$OVSDB" --no-wait get Open_vSwitch . _uuid >/dev/null 2>&1; }
alive() { pid=$(cat "$1" 2>/dev/null) && kill -0 "$pid" 2>/dev/null; } # PIDFILE
has_module() { [ -e /sys/module/openvswitch ] || modprobe -q openvswitch 2>/dev/null; }
switch() {
  need_programs ovs-vsctl ovs-vswitchd ovsdb-server ovsdb-tool
  # the chart's pods keep their database in a directory of their own: a database there is not the host's. Debian's package makes a link to
  # /var/lib/openvswitch, which leads nowhere before the host's Open vSwitch has first run
  if [ ! -e "$MARK" ] && { switch_answers || { ! of_chart && { [ -e /etc/openvswitch/conf.db ] || [ -L /etc/openvswitch/conf.db ]; }; }; }; then
    before=
    say "the host runs Open vSwitch itself: this container only watches it. If the host is to have none, remove its service and create $MARK there"
    while ! is_removed $OVS_RUN; do
      now=yes; switch_answers || now=no
      [ "$now" = "$before" ] || { before=$now; [ $now = yes ] && say "the host's Open vSwitch answers" || say "the host's Open vSwitch does not answer: start it"; }
      sleep 5 & wait $!
    done
    die "$REMOVED $OVS_RUN"
  fi
  # another pod's would be taken for this one's, and stopped with it. The daemons do not inherit the lock
  need_programs flock
  need_dir $OVS_RUN
  lock $OVS_RUN/ovs-server.lock "Open vSwitch" "one of the DaemonSets that have a container ovs-server"
  # a redirection that fails would end the shell at once
  [ -e "$MARK" ] || touch "$MARK" || die "cannot write $MARK: see the line above; the host's /etc/openvswitch needs room and must be writable"
  # a server that still runs has the file open; ovs-ctl then leaves both
  switch_answers || switch_database
  ctl=/usr/share/openvswitch/scripts/ovs-ctl
  trap '$ctl stop; exit 0' TERM INT
  # after a boot, the host's own network setup has the NIC until the agent takes it; later, the switch keeps it
  first=; [ -e $OVS_RUN/started ] || first=--delete-transient-ports
  remedy="this node's kernel has no module openvswitch: run \"modprobe openvswitch\" on the node; if that finds none, install the package with the modules of its kernel $(uname -r) (Ubuntu: linux-modules-extra-$(uname -r), Fedora and RHEL: kernel-modules)"
  # a kernel without any modules may do for bridges of the userspace datapath
  has_module || say "perhaps $remedy"
  # shellcheck disable=SC2086 # arguments are words
  $ctl start --system-id=random $first ${OVS_OPTIONS:-} 9>&- || { has_module && die "cannot start Open vSwitch: see the lines above"; die "cannot start Open vSwitch: see the lines above. Perhaps $remedy"; }
  # with OVN 26.03.1, the switch of a gateway waits until ovn-controller has reached the southbound database, by way of this switch
  case $(ovs-vsctl --timeout=5 --no-wait --if-exists get Open_vSwitch . external_ids:ovn-managed-flow-restore-wait 2>/dev/null) in
    *true*) ovs-vsctl --timeout=5 --no-wait remove Open_vSwitch . other_config flow-restore-wait -- remove Open_vSwitch . external_ids ovn-managed-flow-restore-wait || say "cannot end flow-restore-wait: see the line above" ;;
  esac
  touch $OVS_RUN/started || say "cannot write $OVS_RUN/started: when this container starts again, it removes ports that are not to survive a boot"
  # nothing rotates its log files
  for daemon in ovsdb-server ovs-vswitchd; do ovs-appctl --timeout=5 -t $daemon vlog/set file:warn || :; done
  while alive $OVS_RUN/ovsdb-server.pid && alive $OVS_RUN/ovs-vswitchd.pid; do sleep 1 9>&- & wait $!; done
  die "Open vSwitch has ended: see its messages in /var/log/openvswitch"
}
controller() {
  need_programs ovn-controller ovs-vsctl flock
  watch_directory $OVS_RUN & tries=0
  until switch_answers; do
    [ $((tries % 30)) != 0 ] || say "waits for Open vSwitch at $OVSDB (container ovs-server, or the host's own)"
    tries=$((tries + 1)); sleep 1
  done
  need_dir $RUN
  # two would undo each other's flows
  lock $RUN/ovn-controller.lock ovn-controller "one of the DaemonSets that have a container ovn-controller"
  # shellcheck disable=SC2046,SC2086 # arguments are words
  exec ovn-controller "unix:$OVSDB" ${OVN_LOGLEVEL_CONTROLLER:--vconsole:info} -vsyslog:off -vfile:off \
    --pidfile=$RUN/ovn-controller.pid $(ssl_files ovncontroller) ${OVN_CONTROLLER_OPTS:-}
}
cni_programs() { # the host's directory of CNI programs, as this container sees it
  # charts of ovn-kubernetes mount it in its own place, and the whole host, which cannot be written, in /host
  for dir in /opt/cni/bin /host/opt/cni/bin; do [ ! -d $dir ] || break; done
  echo $dir
}
CNI_PROGRAM=/usr/libexec/cni/ovn-k8s-cni-overlay
install_cni() { ovnkube install-cni --cni-bin-dir="$(cni_programs)"; }
# Agents of ovn-kubernetes' chart get their rights by certificates, unless its value global.enableOvnKubeIdentity is false.
with_certificate() { of_chart && [ "${OVN_ENABLE_OVNKUBE_IDENTITY:-true}" = true ]; }
node_keys() {
  for file in privkey.pem cert.pem ca.cert; do
    [ -r "$NODE_KEYS-$file" ] || { warn "with TLS this node needs its own $NODE_KEYS-$file; issue it for the system-id of the node, as docs/tls.md shows. Until then the node has no network"; break; }
  done
}
agent() { # ARGS...
  is_node=yes
  node_name
  # the clean-up opens no database
  case $1 in --cleanup-node=*) ;; *) watch_directory $OVS_RUN & ! with_relay || node_keys ;; esac
  ! with_certificate || set -- "$@" --bootstrap-kubeconfig=/host/etc/kubernetes/kubelet.conf --cert-dir=/var/run/ovn-kubernetes/certs
  # containers see /proc/sys read-only; the agent sets the sysctls of gateways and pods
  { mount --bind /proc/sys/net /proc/sys/net && mount -o remount,rw,bind /proc/sys/net; } 2>/dev/null ||
    [ -w /proc/sys/net/ipv4/ip_forward ] ||
    die "cannot make /proc/sys/net writable: the container lacks the capability SYS_ADMIN, or AppArmor forbids it; dist/yaml/ovnkube.yaml has both"
  tables="node_flags flags" more=${OVN_GATEWAY_OPTS:-}
  # whether there is a portmap for host ports
  ovnkube_ "$@" --cni-bin-dir="$(cni_programs)" --pidfile=$RUN/ovnkube.pid
}
clients() { # nbctl|sbctl|icnbctl|icsbctl ARGS...: OVN's program against all members of the database
  program=$1; shift
  case $program in
    ic*) ic_keys; program=${program#ic}; set -- "ovn-ic-$program" --db="$(ic_remote "ic-${program%ctl}")" "$@" ;;
    *) need_databases; keys=$(ssl_files ovncontroller); to=$OVN_NORTH; [ "$program" = nbctl ] || to=$OVN_SOUTH
      set -- "ovn-$program" --db="$(echo "$to" | sed 's,//,,g')" "$@" ;;
  esac
  program=$1; shift
  # shellcheck disable=SC2086 # arguments are words
  exec "$program" --timeout=30 $keys "$@"
}
display() {
  for side in nb sb; do
    [ ! -S "$RUN/ovn${side}_db.sock" ] || { echo "== $side"; "ovn-${side}ctl" --timeout=5 --no-leader-only --db="unix:$RUN/ovn${side}_db.sock" show; }
  done
  [ ! -S $OVSDB ] || { echo "== Open vSwitch"; ovs-vsctl --timeout=5 --db="unix:$OVSDB" show; }
}

case ${1:-} in
  nb-ovsdb) database nb "${OVN_NB_PORT:-6641}" "${OVN_LOGLEVEL_NB:-}" ;;
  sb-ovsdb) database sb "${OVN_SB_PORT:-6642}" "${OVN_LOGLEVEL_SB:-}" ;;
  sb-ovsdb-relay) relay "${OVN_SB_RELAY_PORT:-16642}" "${OVN_LOGLEVEL_SB:-}" ;;
  relay-readiness) ! with_ssl || relay_ready ;;
  nb-ovsdb-raft) raft_member nb "${OVN_NB_PORT:-6641}" "${OVN_NB_RAFT_PORT:-6643}" "${OVN_LOGLEVEL_NB:-}" "${OVN_NB_RAFT_ELECTION_TIMER:-}" ;;
  sb-ovsdb-raft) raft_member sb "${OVN_SB_PORT:-6642}" "${OVN_SB_RAFT_PORT:-6644}" "${OVN_LOGLEVEL_SB:-}" "${OVN_SB_RAFT_ELECTION_TIMER:-}" ;;
  run-ovn-northd|ovn-northd) northd ;;
  ovs-server) switch ;;
  ovn-controller) controller ;;
  # shellcheck disable=SC2046 # words
  ovn-master) node_name; ovnkube_ --init-master="$K8S_NODE" $(chart_metrics "${OVN_METRICS_MASTER_PORT:-9409}") ;;
  ovn-cluster-manager) node_name; ovnkube_ --init-cluster-manager="$K8S_NODE" ;;
  ovnkube-controller) node_name; ovnkube_ --init-ovnkube-controller="$K8S_NODE" ;;
  ovn-node)
    # the agent itself copies the program, once it is the host's only one
    # shellcheck disable=SC2046 # words
    agent --init-node="${K8S_NODE:-}" --nodeport --cni-program=$CNI_PROGRAM $(chart_metrics "${OVN_METRICS_WORKER_PORT:-9410}") ;;
  install-cni) install_cni ;;
  readiness-probe) exec ovnkube "$@" ;;
  ovnkube-identity)
    of_chart || set -- "$@" --disable-approver
    shift
    exec ovnkube identity --webhook-cert-dir=/etc/webhook-cert --config-file="$CONF" ${OVNKUBE_WEBHOOK_PORT:+--webhook-port="$OVNKUBE_WEBHOOK_PORT"} ${OVNKUBE_LOGLEVEL:+--loglevel="$OVNKUBE_LOGLEVEL"} "$@" ;;
  ovnkube-approver) exec ovnkube identity --disable-webhook --config-file="$CONF" ${OVNKUBE_LOGLEVEL:+--loglevel="$OVNKUBE_LOGLEVEL"} ;;
  plan) agent plan --node="${K8S_NODE:-}" --nodeport ;;
  ic) ovnkube_ "$@" ;;
  cleanup-ovn-node)
    (agent --cleanup-node="${K8S_NODE:-}")
    # ovn-kubernetes' program has the same name and stays. Only ours, of any release, says this (cni-shim/failure.rs)
    dir=$(cni_programs) program=ovn-k8s-cni-overlay
    ! grep -qaF "see that ovnkube runs on this node" "$dir/$program" 2>/dev/null || rm "$dir/$program"
    # also what a copy left that was ended
    set +f
    rm -f "$dir/.$program".[0-9]*-[0-9]* ;;
  # the container ovs-server stops Open vSwitch itself when it ends
  cleanup-ovs-server) ;;
  ovs-metrics) idle "this container has nothing to do: ovnkube serves no metrics of Open vSwitch" ;;
  ovn-dbchecker) idle "this container has nothing to do: ovnkube leaves the members of clustered databases as they are" ;;
  local-nb-ovsdb|local-sb-ovsdb|ovnkube-controller-with-node)
    die "cannot start: $1 is for one zone per node, which ovnkube does not serve; install the chart with values-no-ic.yaml" ;;
  display|ovn_debug) display ;;
  display_env) database_flags; { echo "K8S_APISERVER k8s-apiserver"; flags; node_flags; } | given ;;
  # the databases that connect clusters; the second form is how Kube-OVN's documents start them
  ovn-ic-server) exec "$(dirname "$(realpath "$0")")/start-ic-db.sh" ;;
  bash)
    [ "${2:-}" = start-ic-db.sh ] || die "cannot run $*: the word bash is for start-ic-db.sh alone, which starts the interconnection databases; for a shell, run bash in a container that runs: kubectl exec"
    exec "$(dirname "$(realpath "$0")")/start-ic-db.sh" ;;
  nbctl|sbctl|icnbctl|icsbctl) clients "$@" ;;
  '') die "cannot start: no word says what to run; the words are in the first lines of $0" ;;
  *) die "cannot start: $1 is no word of this image; write one of these into args of the container: nb-ovsdb, sb-ovsdb, nb-ovsdb-raft, sb-ovsdb-raft, run-ovn-northd, ovs-server, ovn-controller, ovn-master, ovn-node; the first lines of $0 have the others" ;;
esac
