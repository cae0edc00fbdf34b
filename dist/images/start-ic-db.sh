#!/bin/sh
# start-ic-db.sh - the two interconnection databases of OVN on one host, alone or as members of Raft clusters, and the transit switches
# in them. Clients use the ports 6645 (northbound) and 6646 (southbound), members 6647 and 6648. The files are in /etc/ovn.
# Its settings are environment variables, with the names that Kube-OVN gave them:
#   LOCAL_IP                     this host's address [POD_IP; without both, all addresses]
#   NODE_IPS                     addresses of all hosts with these databases, a comma list; three or five for Raft clusters [only this]
#   LEADER_IP                    the one of them that creates the clusters [the first of NODE_IPS]. Others join any member that answers
#   ENABLE_OVN_LEADER_CHECK      true: as many transit switches as TS_NUM, ts, ts1, ts2 ...; false: only TS_NAME [true in a pod]
#   TS_NUM                       number of transit switches, from 1 to 32 [3]
#   TS_NAME, TS_CIDR             with false: the one transit switch and its addresses [ts; those of the first one, by PROTOCOL]
#   PROTOCOL                     addresses of transit switches: ipv4, ipv6 or dual [as POD_IPS; without, ipv4]
#   OVN_LEADER_PROBE_INTERVAL    seconds between looks at databases and switches [5]
#   ENABLE_SSL                   true: TLS, with /var/run/tls/key, cert and cacert [false: every host that reaches the ports can write]
#   POD_NAME, POD_NAMESPACE, POD_IP, POD_IPS    in a pod, which gets the labels ovn-ic-nb-leader and ovn-ic-sb-leader, true or false
set -euf
# `bash start-ic-db.sh` finds it as a command
self=$0
[ -e "$self" ] || self=$(command -v "$self")
. "$(dirname "$(realpath "$self")")/databases.sh"
listening() { :; }

between() { # VARIABLE VALUE LEAST MOST
  case $2 in ''|*[!0-9]*|????*) ;; *) [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ] || return 0 ;; esac
  die "cannot start: $1 is \"$2\"; set it to a number from $3 to $4"
}
settings() {
  ic_keys
  local_ip=${LOCAL_IP:-${POD_IP:-}} hosts=$(ic_hosts)
  num=${TS_NUM:-3} interval=${OVN_LEADER_PROBE_INTERVAL:-5} leader=${LEADER_IP:-${hosts%% *}} check=${ENABLE_OVN_LEADER_CHECK:-}
  : "${check:=$([ -n "${POD_NAME:-}" ] && echo true || echo false)}"
  between TS_NUM "$num" 1 32
  between OVN_LEADER_PROBE_INTERVAL "$interval" 1 600
  case $check in true|false) ;; *) die "cannot start: ENABLE_OVN_LEADER_CHECK is \"$check\"; set it to true or false" ;; esac
  [ "$check" = false ] || [ -z "${TS_NAME:-}${TS_CIDR:-}" ] ||
    die "cannot start: TS_NAME and TS_CIDR are of a single transit switch; set ENABLE_OVN_LEADER_CHECK to false, or leave them out"
  families=${PROTOCOL:-}
  [ -n "$families" ] || case ${POD_IPS:-} in *:*,*.*|*.*,*:*) families=dual ;; *:*) families=ipv6 ;; *) families=ipv4 ;; esac
  case $families in ipv4|ipv6|dual) ;; *) die "cannot start: PROTOCOL is \"$families\"; set it to ipv4, ipv6 or dual" ;; esac
  # masters use no switch with another name
  switch=${TS_NAME:-ts}
  case $switch in *[!A-Za-z0-9.-]*|[.-]*|*[.-]) switch= ;; esac
  [ -n "$switch" ] && [ ${#switch} -le 63 ] ||
    die "cannot start: TS_NAME is \"$TS_NAME\"; at most 63 letters, digits, dashes and dots, with a letter or digit at both ends"
  case ${TS_CIDR:-} in *[!0-9A-Fa-f.:/,]*) die "cannot start: TS_CIDR is \"$TS_CIDR\"; set it to ranges such as 169.254.100.0/24,fe80:a9fe:64::/112" ;; esac
  # shellcheck disable=SC2086 # addresses are words
  set -- $hosts
  case $# in
    0|1) ;;
    2) die "cannot start: NODE_IPS is \"$NODE_IPS\"; a Raft cluster needs three addresses, and one is enough without" ;;
    *) [ -n "$local_ip" ] || die "cannot start: LOCAL_IP is empty; set it to this host's address, one of NODE_IPS" ;;
  esac
  others= known=
  for host in "$@" $local_ip; do
    case $host in *[!0-9A-Fa-f.:]*) ;; *[.:]*) continue ;; esac
    die "cannot start: \"$host\" is no address; LOCAL_IP is one, and NODE_IPS a comma list of them"
  done
  for host; do
    [ "$host" != "$leader" ] || known=yes
    [ "$host" = "$local_ip" ] || others="$others $(bracketed "$host")"
  done
  [ $# = 0 ] || [ "$(echo $others | wc -w)" = $(($# - 1)) ] || die "cannot start: NODE_IPS is \"$NODE_IPS\", and LOCAL_IP \"$local_ip\" is not one of them"
  [ $# = 0 ] || [ -n "$known" ] || die "cannot start: NODE_IPS is \"$NODE_IPS\", and LEADER_IP \"$leader\" is not one of them"
}
serve() { # DATABASE PORT RAFT-PORT
  if [ -z "$others" ]; then
    address=$(bracketed "$local_ip")
    [ -n "$address" ] || { [ -e /proc/net/if_inet6 ] && address='[::]' || address=0.0.0.0; }
    alone "$1" "$address" "$2" ""
  fi
  # shellcheck disable=SC2086 # addresses are words
  member "$1" "$(bracketed "$local_ip")" "$2" "$3" "" 0 "$(bracketed "$leader")" $others
}
serves() { [ "$(cat "/proc/$1/comm" 2>/dev/null)" = ovsdb-server ]; } # PID: a shell of ours until it has become the server
stop() {
  trap '' TERM INT
  # a leader that is asked to end hands over first
  for database in "ic-nb $nb" "ic-sb $sb"; do
    names "${database% *}"
    # the socket may be another container's, which has the databases
    { serves "${database#* }" && ovn-appctl --timeout=5 -t "$control" exit 2>/dev/null; } || kill "${database#* }" 2>/dev/null || :
  done
  wait "$nb" "$sb" || :
}
# Whether this host has the leader, or the only server. A member that can go on no more ends the container. DATABASE
leads() {
  names "$1"
  [ -n "$others" ] || { alone_ready "$1" 2>/dev/null; return; }
  status=$(ovn-appctl --timeout=2 -t "$control" cluster/status "$name" 2>/dev/null) || return 1
  ! echo "$status" | grep -qx 'Status: failed' || { say "the database $name has failed: see the lines above"; kill "$nb" "$sb"; return 1; }
  echo "$status" | grep -qx 'Role: leader'
}
said() { if "$@"; then echo true; else echo false; fi; }

# ---- transit switches ----
icnb() { ovn-ic-nbctl --timeout=10 --db="unix:$RUN/ovn_ic_nb_db.sock" "$@"; }
ranges() { # I: the addresses of a transit switch
  four=169.254.$((100 + $1)).0/24 six=$(printf 'fe80:a9fe:%02x::/112' $((100 + $1)))
  case $families in ipv4) echo "$four" ;; ipv6) echo "$six" ;; dual) echo "$four,$six" ;; esac
}
# What a switch has stays: ports have addresses of its range. NAME RANGES
make_switch() {
  say "makes the transit switch $1"
  icnb --may-exist ts-add "$1" && has=$(icnb --if-exists get Transit_Switch "$1" external_ids:subnet) || return
  if [ -n "$has" ]; then icnb set Transit_Switch "$1" external_ids:vendor=kube-ovn
  else icnb set Transit_Switch "$1" external_ids:vendor=kube-ovn external_ids:subnet="\"$2\""; fi
}
switches() {
  have=$(icnb --bare --columns=name find Transit_Switch external_ids:vendor=kube-ovn) || return 0
  if [ "$check" = false ]; then
    echo "$have" | grep -qxF "${TS_NAME:-ts}" || make_switch "${TS_NAME:-ts}" "${TS_CIDR:-$(ranges 0)}" || :
    return 0
  fi
  i=0
  while [ $i -lt "$num" ]; do
    switch=ts$i; [ $i != 0 ] || switch=ts
    echo "$have" | grep -qx "$switch" || make_switch "$switch" "$(ranges $i)" || return 0
    i=$((i + 1))
  done
  for switch in $(echo "$have" | sort -rV); do
    case ${switch#ts} in ''|0*|*[!0-9]*|???*) continue ;; esac
    [ "${switch#ts}" -ge "$num" ] && [ "$switch" != "${switch#ts}" ] || continue
    say "removes the transit switch $switch: TS_NUM is $num"
    icnb --if-exists ts-del "$switch" || return 0
  done
}

# ---- labels ----
# The status of a pod accepts labels as well; this needs no right to change what pods run. NB SB: true or false
label() {
  as_account -o /dev/null -H 'Content-Type: application/merge-patch+json' -X PATCH \
    --data "{\"metadata\": {\"labels\": {\"ovn-ic-nb-leader\": \"$1\", \"ovn-ic-sb-leader\": \"$2\"}}}" \
    "https://$(bracketed "$KUBERNETES_SERVICE_HOST"):$KUBERNETES_SERVICE_PORT/api/v1/namespaces/$POD_NAMESPACE/pods/$POD_NAME/status"
}

settings
serve ic-nb $IC_NB_PORT $IC_NB_RAFT_PORT & nb=$!
serve ic-sb $IC_SB_PORT $IC_SB_RAFT_PORT & sb=$!
trap 'stop; exit 0' TERM INT
labels=
[ "$protocol" = ssl ] || say "every host that reaches the ports $IC_NB_PORT to $IC_SB_RAFT_PORT can change the routes of all clusters: ENABLE_SSL=true asks for certificates"
while kill -0 $nb 2>/dev/null && kill -0 $sb 2>/dev/null; do
  now="$(said leads ic-nb) $(said leads ic-sb)"
  [ "${now% *}" = false ] || switches
  # shellcheck disable=SC2086 # two words
  [ -z "${POD_NAME:-}" ] || [ "$labels" = "$now" ] || ! label $now || labels=$now
  sleep "$interval" & wait $! || :
done
stop
die "a database has ended: see the lines above"
