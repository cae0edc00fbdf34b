#!/bin/sh
# ovnkube.sh WORD - entrypoint of the image. Each container of dist/yaml runs one word:
#   nb-ovsdb, sb-ovsdb   the northbound or southbound database, alone (not clustered)
#   nb-ovsdb-raft, sb-ovsdb-raft    a member of the northbound or southbound database's Raft cluster
#   run-ovn-northd       ovn-northd
#   ovs-server           Open vSwitch: ovsdb-server and ovs-vswitchd. Watches the host's own if that runs already
#   ovn-controller       ovn-controller
#   ovn-master           ovnkube as master
#   ovn-cluster-manager, ovnkube-controller    the two halves of a master
#   ovn-node             copies the CNI program to the host, then ovnkube as node agent
#   install-cni          copies the CNI program to the host, as ovn-node does first
#   readiness-probe -t TARGET    exits with 0 if the target works: ovnnb-db, ovnsb-db, ovnnb-db-raft, ovnsb-db-raft, ovn-northd,
#                        ovs-daemons, ovn-controller, ovnkube-node. Charts of ovn-kubernetes call it as ovn-kube-util
#   ovnkube-identity     the admission webhook of dist/identity, with the certificate in /etc/webhook-cert
#   ovnkube-approver     approves the certificates of node agents. In pods of ovn-kubernetes' chart, ovnkube-identity does that too
#   plan                 prints what the node agent would change on this host
#   cleanup-ovn-node     removes what the node agent set up on this host, and the CNI program
#   display, display_env, ovn_debug    the state of the databases and of the switch; the settings
# In pods of ovn-kubernetes' chart, which set OVN_DAEMONSET_VERSION, the databases' pod publishes its address and the others wait for it.
# Words of that chart with nothing to do here say so: ovs-metrics, ovn-dbchecker and cleanup-ovs-server.
# Its settings are environment variables, with the names that ovn-kubernetes gave them:
#   K8S_NODE, K8S_NODE_IP            this node's name and address
#   K8S_APISERVER, K8S_TOKEN, ...    see docs/configuration.md; otherwise the pod's service account
#   OVN_NORTH, OVN_SOUTH             the databases, as tcp:ADDRESS:PORT (or ssl:), a comma list
#   OVN_NB_PORT, OVN_SB_PORT         ports of nb-ovsdb [6641] and sb-ovsdb [6642], also of Raft members
#   OVN_NB_RAFT_PORT, OVN_SB_RAFT_PORT                   ports between Raft members [6643, 6644]
#   OVN_NB_RAFT_ELECTION_TIMER, OVN_SB_RAFT_ELECTION_TIMER    seconds without a leader until an election [as the cluster has it; a new
#                                    one 1]. 1000 and more are milliseconds
#   OVN_NORTHD_OPTS, OVN_CONTROLLER_OPTS, OVS_OPTIONS    more arguments of ovn-northd, ovn-controller, ovs-ctl
#   OVN_LOGLEVEL_NB, _SB, _NORTHD, _CONTROLLER           their log levels [-vconsole:info]
#   OVN_SSL_ENABLE                   yes: keys and certificates are in /ovn-cert
#   OVN_GATEWAY_OPTS                 more flags of the node agent
#   and one for each flag in the table below
set -euf

RUN=/var/run/ovn OVS_RUN=/var/run/openvswitch
OVSDB=$OVS_RUN/db.sock
# says that Open vSwitch on this host is this image's
MARK=/etc/openvswitch/run-by-ovnkube
say() { echo "ovnkube.sh: $*" >&2; }
die() { say "$*"; exit 1; }
need() { # VARIABLE WHAT
  eval "[ -n \"\${$1:-}\" ]" || die "cannot start: the environment variable $1 ($2) is empty; set it in the pod, dist/yaml shows how"
}
of_chart() { [ -n "${OVN_DAEMONSET_VERSION:-}" ]; } # of ovn-kubernetes
idle() { say "$*"; trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done; }
bracketed() { case $1 in *:*) echo "[$1]" ;; *) echo "$1" ;; esac; } # ADDRESS

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
OVN_NOHOSTSUBNET_LABEL no-hostsubnet-nodes
OVN_DISABLE_REQUESTEDCHASSIS disable-requestedchassis
OVNKUBE_LOGLEVEL loglevel
OVNKUBE_LIBOVSDB_CLIENT_LOGFILE libovsdblogfile
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
TABLE
}
given() { # reads "VARIABLE FLAG" lines; prints a --FLAG=VALUE for each variable that is not empty
  while read -r variable flag; do
    eval "value=\${$variable:-}"
    [ -z "$value" ] || printf '%s\n' "--$flag=$value"
  done
}
with_ssl() { [ "${OVN_SSL_ENABLE:-no}" = yes ]; }
# WORDS...: ovnkube endpoints in this namespace
endpoints() { ovnkube endpoints "$@" ${OVN_KUBERNETES_NAMESPACE:+--ovn-config-namespace="$OVN_KUBERNETES_NAMESPACE"}; }
need_databases() {
  if of_chart && [ -z "${OVN_NORTH:-}${OVN_SOUTH:-}" ]; then
    found=$(endpoints wait) || die "cannot find the databases: see the line above"
    ! with_ssl || found=$(echo "$found" | sed 's/tcp:/ssl:/g')
    OVN_NORTH=$(echo "$found" | sed -n 1p) OVN_SOUTH=$(echo "$found" | sed -n 2p)
  fi
  need OVN_NORTH "address of the northbound database"; need OVN_SOUTH "address of the southbound database"
}
# What charts of ovn-kubernetes leave to the image. PORT
chart_metrics() { ! of_chart || echo "--metrics-bind-address=$(bracketed "${METRICS_IP:-${K8S_NODE_IP:-0.0.0.0}}"):$1"; }
chart_file() { ! of_chart || [ ! -e /run/ovnkube-config/ovnkube.conf ] || echo "--config-file=/run/ovnkube-config/ovnkube.conf"; }
# Prints the flags of the databases and their keys. Addresses may have the old form tcp://ADDRESS:PORT.
databases() {
  need_databases
  printf '%s\n' "--nb-address=$OVN_NORTH" "--sb-address=$OVN_SOUTH"
  ! with_ssl || for side in nb sb; do
    echo "--$side-client-privkey=/ovn-cert/ovncontroller-privkey.pem"
    echo "--$side-client-cert=/ovn-cert/ovncontroller-cert.pem"
    echo "--$side-client-cacert=/ovn-cert/ca-cert.pem"
  done
}
ssl_files() { # NAME: the arguments of an OVN program
  ! with_ssl ||
    echo "--private-key=/ovn-cert/$1-privkey.pem --certificate=/ovn-cert/$1-cert.pem --ca-cert=/ovn-cert/ca-cert.pem"
}
# ARGS...: ovnkube with what the environment sets, for the tables $tables, and last what $more says. A value has no line breaks.
tables=flags more=
ovnkube_() {
  lines=$(databases && chart_file && for table in $tables; do $table | given; done)
  IFS='
'
  # shellcheck disable=SC2086 # one argument a line
  set -- "$@" $lines
  unset IFS
  # shellcheck disable=SC2086 # arguments are words
  exec ovnkube "$@" $more
}
node_name() { need K8S_NODE "name of this node"; }

database() { # nb|sb SCHEMA TABLE PORT LOG REMOTES
  need K8S_NODE_IP "address of this node"
  case $4 in ''|*[!0-9]*) die "cannot start: the port $4 of the database is no number; set OVN_NB_PORT and OVN_SB_PORT" ;; esac
  address=$(bracketed "$K8S_NODE_IP")
  # on a node that nobody asks, an empty database would be taken for the cluster's
  case ,$6, in
    ,,|*[:/]"$address:$4",*) ;;
    *) die "cannot start the database: clients ask at $6, this node is $address:$4; label the node of that address, and no other, k8s.ovn.org/ovnkube-db=true" ;;
  esac
  file=/etc/ovn/ovn${1}_db.db schema=/usr/share/ovn/ovn-$1.ovsschema
  mkdir -p /etc/ovn $RUN
  if [ ! -s "$file" ]; then
    rm -f "$file" "$file.new"
    { ovsdb-tool create "$file.new" "$schema" && mv "$file.new" "$file"; } ||
      die "cannot create $file: see the line above; /var/lib/openvswitch of the host needs room and must be writable"
  elif ovsdb-tool db-is-clustered "$file"; then
    die "cannot start the database alone: $file is that of a Raft cluster's member; move it away, or use the word $1-ovsdb-raft"
  elif [ "$(ovsdb-tool db-is-standalone "$file" && ovsdb-tool needs-conversion "$file" "$schema")" = yes ]; then
    say "the file $file gets the schema of this release; a copy of the old one stays beside it"
    { cp -p "$file" "$file.old" && ovsdb-tool convert "$file" "$schema"; } ||
      die "cannot convert $file: see the line above; /var/lib/openvswitch of the host needs room for a copy of it"
  fi
  protocol=tcp keys=
  ! with_ssl || { protocol=ssl; keys=$(ssl_files "ovn$1"); }
  remote=p$protocol:$4:$address
  # in the database, where its inactivity probe can be set: every client is asked once a minute whether it still lives
  (
    until "ovn-${1}ctl" --timeout=5 --db="unix:$RUN/ovn${1}_db.sock" --inactivity-probe=60000 set-connection "$remote" 2>/dev/null; do sleep 1; done
    say "the database listens on $remote"
    # the southbound one is the last that clients need
    if of_chart && [ "$1" = sb ]; then
      until endpoints publish "$K8S_NODE_IP" "${OVN_NB_PORT:-6641}" "$4"; do sleep 10; done
    fi
  ) &
  # shellcheck disable=SC2086 # arguments are words
  exec ovsdb-server ${5:--vconsole:info} -vsyslog:off -vfile:off "$file" --remote="punix:$RUN/ovn${1}_db.sock" \
    --remote="db:$2,$3,connections" --unixctl="$RUN/ovn${1}_db.ctl" --pidfile="$RUN/ovn${1}_db.pid" $keys
}
# A member of a Raft cluster. Which member it is, and that the first one may create the cluster, is said by the list of addresses that
# clients get.
member() { # nb|sb SCHEMA PORT RAFT-PORT LOG REMOTES SECONDS
  need K8S_NODE_IP "address of this node"
  ! of_chart || need OVN_NORTH "addresses of all members, as for clients, and OVN_SOUTH likewise"
  need_databases
  # nodes keep pods from these ports: the databases ask nobody who he is
  case $1$4 in nb6643|sb6644) ;; *) with_ssl || die "cannot start: members talk at port $4, and without TLS nodes protect 6643 (northbound) and 6644 (southbound) only; leave OVN_NB_RAFT_PORT and OVN_SB_RAFT_PORT out" ;; esac
  name=$2 port=$3 timer=${7:-0} address=$(bracketed "$K8S_NODE_IP") others= first= mine=
  for number in "$3" "$4" "$timer"; do
    case $number in ''|*[!0-9]*) die "cannot start: $number, a port or an election timer of the database, is no number; set OVN_NB_PORT, OVN_NB_RAFT_PORT, OVN_NB_RAFT_ELECTION_TIMER and those of SB" ;; esac
  done
  [ "$timer" -ge 1000 ] || timer=$((timer * 1000))
  for remote in $(echo "$6" | tr ',' ' '); do
    remote=${remote#*:}; remote=${remote#//}
    : "${first:=$remote}"
    if [ "$remote" = "$address:$port" ]; then mine=yes; else others="$others ${remote%:*}"; fi
  done
  [ -n "$mine" ] || die "cannot start the database: clients ask at $6, this node is $address:$port; label the nodes of these addresses, and no others, k8s.ovn.org/ovnkube-db=true"
  [ "$(echo $others | wc -w)" -ge 2 ] || die "cannot start the database: clients ask at $6, and a Raft cluster needs three addresses; for one, use the word $1-ovsdb"
  protocol=tcp keys=
  ! with_ssl || { protocol=ssl; keys=$(ssl_files "ovn$1"); }
  file=/etc/ovn/ovn${1}_db.db schema=/usr/share/ovn/ovn-$1.ovsschema raft=$protocol:$address:$4 control=$RUN/ovn${1}_db.ctl
  joined= # raft addresses of the others
  for other in $others; do joined="$joined $protocol:$other:$4"; done
  mkdir -p /etc/ovn $RUN
  member_file "$4"
  socket=unix:$RUN/ovn${1}_db.sock config=$RUN/ovn${1}_db.conf
  # it is this member's alone: a remote in the database would be that of all members
  printf '{"remotes": {"p%s": {}, "p%s:%s:%s": {"inactivity-probe": 60000}}, "databases": {"%s": {}}}\n' \
    "$socket" $protocol "$port" "$address" "$file" >"$config"
  member_settle &
  # shellcheck disable=SC2086 # arguments are words
  exec ovsdb-server ${5:--vconsole:info} -vsyslog:off -vfile:off --config-file="$config" --unixctl="$control" \
    --pidfile="$RUN/ovn${1}_db.pid" $keys
}
# For each of the other members that answers: its cluster's id, or "none" while it waits to join any. Nothing for one that is not
# connected to its cluster.
clusters() {
  for other in $others; do
    # shellcheck disable=SC2086 # arguments are words
    row=$(ovsdb-client --timeout=3 $keys query "$protocol:$other:$port" '["_Server", {"op": "select", "table": "Database",
      "where": [["name", "==", "'"$name"'"], ["model", "==", "clustered"]], "columns": ["cid", "connected"]}]' 2>/dev/null) || continue
    case $row in
      *'["uuid","00000000-0000-0000-0000-000000000000"]'*) echo none ;;
      # it asks to join that cluster, or has lost it: perhaps nobody is in it any more
      *'["uuid","'*'"connected":false'*) ;;
      *'["uuid","'*) row=${row#*'["uuid","'}; echo "${row%%\"*}" ;;
      *'"cid"'*) echo none ;;
    esac
  done
}
# Whether the newest list of servers in $file has this one: a member that was ended while it joined has the others' list, with which
# ovsdb-server cannot start.
is_listed() {
  sid=$(ovsdb-tool db-sid "$file" | cut -c1-4)
  ovsdb-tool show-log "$file" | sed -n 's/^ \(prev_\)\{0,1\}servers: //p' | tail -n 1 | grep -F "$sid(" >/dev/null
}
# Leaves when $file is that of a member. An empty host joins the cluster that others are in; only the first member creates one, and only
# when all the others say that they are in none. Otherwise a host that lost its files could begin a second cluster.
member_file() { # RAFT-PORT
  [ -s "$file" ] || rm -f "$file"
  rm -f "$file.new"
  kind=none before=
  if [ -e "$file" ]; then
    if ovsdb-tool db-is-standalone "$file"; then kind=alone
    elif ! ovsdb-tool db-is-clustered "$file"; then die "cannot read $file: see the line above; without the file, this member gets everything from the others"
    else
      code=0; ovsdb-tool db-cid "$file" >/dev/null || code=$?
      case $code in
        # otherwise it has asked to join, and asks again
        0|2) if is_listed; then kind=member; else rm "$file"; fi ;;
        *) die "cannot read $file: see the line above; without the file, this member gets everything from the others" ;;
      esac
    fi
  fi
  if [ $kind = member ]; then
    was=$(ovsdb-tool db-local-address "$file")
    [ "$was" = "$raft" ] || die "cannot start the database: $file is that of the member $was, and this node is $raft; give the node its address back, or move the file away so that the node joins as a new member"
    return 0
  fi
  while :; do
    said=$(clusters) ids=$(echo "$said" | grep -v none | sort -u) now=
    # shellcheck disable=SC2086 # one id, some addresses
    case $(echo $ids | wc -w) in
      1)
        [ $kind != alone ] || die "cannot join: $file is a database alone, and the other members are in a cluster; move it away"
        say "joins the cluster $ids as a new member"
        ovsdb-tool --cid=$ids join-cluster "$file.new" "$name" "$raft" $joined && mv "$file.new" "$file" && return 0
        die "cannot create $file: see the line above; /var/lib/openvswitch of the host needs room and must be writable" ;;
      0)
        if [ "$first" != "$address:$port" ]; then
          [ $kind != alone ] || die "cannot join: $file is a database alone, and only the first member's can become the cluster's; move it away"
          say "waits for $first to create the cluster, or for a member of it"
          # not by the others, which may wait too
          ovsdb-tool join-cluster "$file.new" "$name" "$raft" "$protocol:${first%:*}:$1" && mv "$file.new" "$file" && return 0
          die "cannot create $file: see the line above; /var/lib/openvswitch of the host needs room and must be writable"
        elif [ "$(echo $said | wc -w)" = "$(echo $others | wc -w)" ]; then
          say "creates the cluster: all other members wait for it"
          from=$schema
          [ $kind != alone ] || from=$file
          if ovsdb-tool create-cluster "$file.new" "$from" "$raft" &&
            { [ $kind != alone ] || cp -p "$file" "$file.alone"; } && mv "$file.new" "$file"; then return 0; fi
          die "cannot create $file: see the line above; /var/lib/openvswitch of the host needs room and must be writable"
        fi
        now="waits until all of these answer, at port $port, that they are in no cluster, or one that it is in one:$others" ;;
      *) now="waits: the other members are in different clusters: $(echo $ids)" ;;
    esac
    [ "$now" = "$before" ] || { before=$now; say "$now"; }
    sleep 1
  done
}
predecessors() { # CLUSTER/STATUS RAFT-ADDRESS: other servers that have this one's address
  echo "$1" | grep -F " at $2)" | grep -vF '(self)' | sed 's/^ *\([0-9a-f]*\) .*/\1/'
}
# Once the member has joined: its predecessor's place given up, the schema of this release, the election timer.
member_settle() {
  until ovsdb-client --timeout=30 wait "$socket" "$name" connected 2>/dev/null; do sleep 1; done
  say "the database is a member of the cluster $(ovsdb-tool db-cid "$file") and listens on $protocol:$port:$address"
  while :; do
    sleep 1
    status=$(ovn-appctl --timeout=5 -t "$control" cluster/status "$name" 2>/dev/null) || continue
    # another server with this address is one whose file this host has lost: it would count for the majority for ever
    lost=$(predecessors "$status" "$raft")
    for server in $lost; do
      say "removes the server $server, which had this address, from the cluster"
      ovn-appctl --timeout=5 -t "$control" cluster/kick "$name" "$server" >/dev/null || :
    done
    [ -z "$lost" ] || continue
    have=$(ovsdb-client --timeout=5 get-schema-version "$socket" "$name" 2>/dev/null) || continue
    ! ovsdb-tool compare-versions "$have" '<' "$(ovsdb-tool schema-version "$schema")" || ovsdb-client --timeout=60 convert "$socket" "$schema" || continue
    now=$(echo "$status" | sed -n 's/^Election timer: \([0-9]*\).*/\1/p')
    if [ "$timer" = 0 ] || [ "${now:-0}" = "$timer" ]; then
      return 0
    elif echo "$status" | grep -qx 'Role: leader'; then
      # it may at most be doubled at a time
      next=$((now * 2))
      [ "$next" -le "$timer" ] || next=$timer
      ovn-appctl --timeout=5 -t "$control" cluster/change-election-timer "$name" "$next" >/dev/null || :
    fi
  done
}
northd() {
  need_databases
  mkdir -p $RUN
  # shellcheck disable=SC2046,SC2086 # arguments are words
  exec ovn-northd ${OVN_LOGLEVEL_NORTHD:--vconsole:info} -vsyslog:off -vfile:off \
    --ovnnb-db="$(echo "$OVN_NORTH" | sed 's,//,,g')" --ovnsb-db="$(echo "$OVN_SOUTH" | sed 's,//,,g')" \
    --unixctl=$RUN/ovn-northd.ctl --pidfile=$RUN/ovn-northd.pid $(ssl_files ovnnorthd) ${OVN_NORTHD_OPTS:-}
}
switch_answers() { ovs-vsctl --timeout=5 --db="unix:$OVSDB" --no-wait get Open_vSwitch . _uuid >/dev/null 2>&1; }
alive() { pid=$(cat "$1" 2>/dev/null) && kill -0 "$pid" 2>/dev/null; } # PIDFILE
switch() {
  # the chart's pods keep their database in a directory of their own: a database there is not the host's
  if [ ! -e "$MARK" ] && { switch_answers || { ! of_chart && [ -e /etc/openvswitch/conf.db ]; }; }; then
    before=
    say "the host runs Open vSwitch itself: this container only watches it. If the host is to have none, remove its service and create $MARK there"
    while :; do
      now=yes; switch_answers || now=no
      [ "$now" = "$before" ] || { before=$now; [ $now = yes ] && say "the host's Open vSwitch answers" || say "the host's Open vSwitch does not answer: start it"; }
      sleep 5 & wait $!
    done
  fi
  : >"$MARK" || die "cannot write $MARK; make the host's /etc/openvswitch writable"
  ctl=/usr/share/openvswitch/scripts/ovs-ctl
  trap '$ctl stop; exit 0' TERM INT
  # after a boot, the host's own network setup has the NIC until the agent takes it; later, the switch keeps it
  first=
  [ -e $OVS_RUN/started ] || first=--delete-transient-ports
  # shellcheck disable=SC2086 # arguments are words
  $ctl start --system-id=random $first ${OVS_OPTIONS:-} || die "cannot start Open vSwitch: see the lines above"
  : >$OVS_RUN/started
  # nothing rotates its log files
  for daemon in ovsdb-server ovs-vswitchd; do ovs-appctl --timeout=5 -t $daemon vlog/set file:warn || :; done
  while alive $OVS_RUN/ovsdb-server.pid && alive $OVS_RUN/ovs-vswitchd.pid; do sleep 1 & wait $!; done
  die "Open vSwitch has ended: see its messages in /var/log/openvswitch"
}
controller() {
  tries=0
  until switch_answers; do
    [ $((tries % 30)) != 0 ] || say "waits for Open vSwitch at $OVSDB (container ovs-server, or the host's own)"
    tries=$((tries + 1)); sleep 1
  done
  mkdir -p $RUN
  # shellcheck disable=SC2046,SC2086 # arguments are words
  exec ovn-controller "unix:$OVSDB" ${OVN_LOGLEVEL_CONTROLLER:--vconsole:info} -vsyslog:off -vfile:off \
    --pidfile=$RUN/ovn-controller.pid $(ssl_files ovncontroller) ${OVN_CONTROLLER_OPTS:-}
}
cni_programs() { # the host's directory of CNI programs, as this container sees it
  # charts of ovn-kubernetes mount it in its own place, and the whole host, which cannot be written, in /host
  for dir in /opt/cni/bin /host/opt/cni/bin; do [ ! -d $dir ] || break; done
  echo $dir
}
install_cni() { # by a new file and a rename: a runtime that starts the program meanwhile gets the old or the new one
  to=$(cni_programs)
  [ -d "$to" ] || die "cannot install the CNI program: there is no directory /host/opt/cni/bin; mount the host's /opt/cni/bin there"
  from=/usr/libexec/cni/ovn-k8s-cni-overlay
  [ "$(sha256sum <$from)" != "$(sha256sum 2>/dev/null <"$to/ovn-k8s-cni-overlay")" ] || return 0
  set +f; rm -f "$to"/.ovn-k8s-cni-overlay.*; set -f
  new=$(mktemp "$to/.ovn-k8s-cni-overlay.XXXXXX") && cat $from >"$new" && chmod 755 "$new" && mv "$new" "$to/ovn-k8s-cni-overlay" ||
    { rm -f "${new:-}"; die "cannot install the CNI program in the host's /opt/cni/bin: see the line above; make the directory writable, with 5 MB free"; }
  say "the CNI program is installed in the host's /opt/cni/bin"
}
# Agents of ovn-kubernetes' chart get their rights by certificates, unless its value global.enableOvnKubeIdentity is false.
with_certificate() { of_chart && [ "${OVN_ENABLE_OVNKUBE_IDENTITY:-true}" = true ]; }
agent() { # ARGS...
  node_name
  ! with_certificate || set -- "$@" --bootstrap-kubeconfig=/host/etc/kubernetes/kubelet.conf --cert-dir=/var/run/ovn-kubernetes/certs
  # containers see /proc/sys read-only; the agent sets the sysctls of gateways and pods
  { mount --bind /proc/sys/net /proc/sys/net && mount -o remount,rw,bind /proc/sys/net; } 2>/dev/null ||
    [ -w /proc/sys/net/ipv4/ip_forward ] ||
    die "cannot make /proc/sys/net writable: the container lacks the capability SYS_ADMIN, or AppArmor forbids it; dist/yaml/ovnkube.yaml has both"
  tables="node_flags flags" more=${OVN_GATEWAY_OPTS:-}
  # whether there is a portmap for host ports
  ovnkube_ "$@" --cni-bin-dir="$(cni_programs)" --pidfile=$RUN/ovnkube.pid
}
answers() { ovn-appctl --timeout=2 -t "$1" "$2" 2>&1; } # CONTROL-SOCKET COMMAND
member_ready() { # nb|sb SCHEMA: it has joined, its predecessor does not count any more, and there is a leader
  status=$(ovn-appctl --timeout=2 -t "$RUN/ovn${1}_db.ctl" cluster/status "$2") &&
    echo "$status" | grep -x "Status: cluster member" >/dev/null &&
    [ -z "$(predecessors "$status" "$(echo "$status" | sed -n 's/^Address: //p')")" ] &&
    ovsdb-client --timeout=2 wait "unix:$RUN/ovn${1}_db.sock" "$2" connected
}
probe() { # TARGET
  case $1 in
    ovnnb-db) ovn-nbctl --timeout=5 --no-leader-only --db=unix:$RUN/ovnnb_db.sock get-connection >/dev/null ;;
    ovnsb-db) ovn-sbctl --timeout=5 --no-leader-only --db=unix:$RUN/ovnsb_db.sock get-connection >/dev/null ;;
    ovnnb-db-raft) member_ready nb OVN_Northbound ;;
    ovnsb-db-raft) member_ready sb OVN_Southbound ;;
    ovn-northd) [ "$(answers $RUN/ovn-northd.ctl status)" != "Status: paused" ] && answers $RUN/ovn-northd.ctl sb-connection-status | grep -qx connected ;;
    ovs-daemons) switch_answers && answers "$OVS_RUN/ovs-vswitchd.$(cat $OVS_RUN/ovs-vswitchd.pid).ctl" version >/dev/null ;;
    ovn-controller) switch_answers && answers "$RUN/ovn-controller.$(cat $RUN/ovn-controller.pid).ctl" connection-status | grep -qx connected ;;
    # the agent writes it once pods can be wired, and removes it when they cannot
    ovnkube-node) [ -s /etc/cni/net.d/10-ovn-kubernetes.conflist ] ;;
    *) die "cannot probe $1: the targets are ovnnb-db, ovnsb-db, ovnnb-db-raft, ovnsb-db-raft, ovn-northd, ovs-daemons, ovn-controller, ovnkube-node" ;;
  esac
}
display() {
  for side in nb sb; do
    [ ! -S "$RUN/ovn${side}_db.sock" ] || { echo "== $side"; "ovn-${side}ctl" --timeout=5 --no-leader-only --db="unix:$RUN/ovn${side}_db.sock" show; }
  done
  [ ! -S $OVSDB ] || { echo "== Open vSwitch"; ovs-vsctl --timeout=5 --db="unix:$OVSDB" show; }
}

case ${1:-} in
  nb-ovsdb) database nb OVN_Northbound NB_Global "${OVN_NB_PORT:-6641}" "${OVN_LOGLEVEL_NB:-}" "${OVN_NORTH:-}" ;;
  sb-ovsdb) database sb OVN_Southbound SB_Global "${OVN_SB_PORT:-6642}" "${OVN_LOGLEVEL_SB:-}" "${OVN_SOUTH:-}" ;;
  nb-ovsdb-raft) member nb OVN_Northbound "${OVN_NB_PORT:-6641}" "${OVN_NB_RAFT_PORT:-6643}" "${OVN_LOGLEVEL_NB:-}" "${OVN_NORTH:-}" "${OVN_NB_RAFT_ELECTION_TIMER:-}" ;;
  sb-ovsdb-raft) member sb OVN_Southbound "${OVN_SB_PORT:-6642}" "${OVN_SB_RAFT_PORT:-6644}" "${OVN_LOGLEVEL_SB:-}" "${OVN_SOUTH:-}" "${OVN_SB_RAFT_ELECTION_TIMER:-}" ;;
  run-ovn-northd) northd ;;
  ovs-server) switch ;;
  ovn-controller) controller ;;
  # shellcheck disable=SC2046 # words
  ovn-master) node_name; ovnkube_ --init-master="$K8S_NODE" $(chart_metrics "${OVN_METRICS_MASTER_PORT:-9409}") ;;
  ovn-cluster-manager) node_name; ovnkube_ --init-cluster-manager="$K8S_NODE" ;;
  ovnkube-controller) node_name; ovnkube_ --init-ovnkube-controller="$K8S_NODE" ;;
  ovn-node)
    install_cni
    # shellcheck disable=SC2046 # words
    agent --init-node="${K8S_NODE:-}" --nodeport $(chart_metrics "${OVN_METRICS_WORKER_PORT:-9410}") ;;
  install-cni) install_cni ;;
  readiness-probe)
    [ "${2:-}" = -t ] && [ -n "${3:-}" ] || die "cannot probe: write readiness-probe -t TARGET"
    probe "$3" || { say "$3 is not ready"; exit 1; } ;;
  ovnkube-identity)
    of_chart || set -- "$@" --disable-approver
    shift
    exec ovnkube identity --webhook-cert-dir=/etc/webhook-cert ${OVNKUBE_WEBHOOK_PORT:+--webhook-port="$OVNKUBE_WEBHOOK_PORT"} ${OVNKUBE_LOGLEVEL:+--loglevel="$OVNKUBE_LOGLEVEL"} "$@" ;;
  ovnkube-approver) exec ovnkube identity --disable-webhook ${OVNKUBE_LOGLEVEL:+--loglevel="$OVNKUBE_LOGLEVEL"} ;;
  plan) agent plan --node="${K8S_NODE:-}" --nodeport ;;
  cleanup-ovn-node)
    (agent --cleanup-node="${K8S_NODE:-}")
    rm -f "$(cni_programs)/ovn-k8s-cni-overlay" ;;
  # the container ovs-server stops Open vSwitch itself when it ends
  cleanup-ovs-server) ;;
  ovs-metrics) idle "this container has nothing to do: ovnkube serves no metrics of Open vSwitch" ;;
  ovn-dbchecker) idle "this container has nothing to do: ovnkube leaves the members of clustered databases as they are" ;;
  local-nb-ovsdb|local-sb-ovsdb|ovnkube-controller-with-node)
    die "cannot start: $1 is for one zone per node, which ovnkube does not serve; install the chart with values-no-ic.yaml" ;;
  display|ovn_debug) display ;;
  display_env) databases; flags | given; node_flags | given ;;
  '') die "cannot start: no word says what to run; the words are in the first lines of $0" ;;
  *) die "cannot start: $1 is no word of this image; the words are in the first lines of $0" ;;
esac
