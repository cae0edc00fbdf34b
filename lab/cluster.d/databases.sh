# NB, SB and northd. Members are called nb-1, nb-2, … and each listens on its own address in the control plane's namespace.
#   standalone     one member
#   raft3          three members; clients know all three addresses
#   pods           none of the lab's: the implementation runs them in pods, at the first node's address
#   pods-raft      the same with three members, at the first three nodes' addresses
#   active-backup  two members; clients know one address, on which the active member listens and from which the other copies
#   pacemaker      see pacemaker.sh; clients know the shared address
# With TLS, nodes connect to a relay of SB at the shared address, under a role.
# The lab's own programs (northd, nbctl) use unix sockets, so every TCP connection is the implementation's.
# Sourced by lab/cluster.

db_members() { case $DB in pods*|pacemaker) ;; standalone) echo 1 ;; raft3) echo 1 2 3 ;; active-backup) echo 1 2 ;; esac; }
db_ip() { primary $((1 + $1)); } # I; 8: the shared address
db_at() { in_url "$(db_ip "$1")"; }
db_port() { [ "$1" = nb ] && echo 6641 || echo 6642; }
db_schema() { [ "$1" = nb ] && echo OVN_Northbound || echo OVN_Southbound; }
db_proto() { [ "$SSL" = 1 ] && echo ssl || echo tcp; }
db_shared() { echo "$(db_proto):$(db_at 8):$(db_port "$1")"; }
db_relay() { echo "ssl:$(db_at 8):16642"; }
db_remotes() { # nb|sb: the remotes given to the implementation
  local i s=
  case $DB in active-backup|pacemaker) db_shared "$1"; return ;; esac
  [ "$DB" != pods ] || { echo "$(db_proto):$(in_url "$(node_ip n1)"):$(db_port "$1")"; return; }
  [ "$DB" != pods-raft ] || { for i in 1 2 3; do s+=${s:+,}$(db_proto):$(in_url "$(node_ip n$i)"):$(db_port "$1"); done; echo "$s"; return; }
  for i in $(db_members); do s+=${s:+,}$(db_proto):$(db_at "$i"):$(db_port "$1"); done
  echo "$s"
}
db_sockets() { # nb|sb: the same for the lab's own programs
  local i s=
  [ "$DB" != active-backup ] || { echo "unix:$D/db/$1-$(cat "$D/db/active").sock"; return; }
  case $DB in pods*|pacemaker) db_remotes "$1"; return ;; esac
  for i in $(db_members); do s+=${s:+,}unix:$D/db/$1-$i.sock; done
  echo "$s"
}
db_keys() { # [AUTHORITY]: TLS arguments of OVS and OVN programs; they trust control by default
  [ "$SSL" = 0 ] || echo "--private-key=$D/pki/server-db.key --certificate=$D/pki/server-db.crt --ca-cert=$D/pki/${1:-control}.crt"
}
pki() { # ADDRESSES OF DATABASES...: as docs/tls.md describes; nodes get certificates once their system-id is known
  mkdir -m 700 "$D/pki"
  if [ -n "${CLUSTER_AUTHORITIES:-}" ]; then cp "$CLUSTER_AUTHORITIES"/{control,nodes}.{key,crt} "$CLUSTER_AUTHORITIES/both.crt" "$D/pki/"; else issue authorities; fi
  issue server db "$@"
  client_certificate master master master
}
client_certificate() { # nI|master node|master NAME
  issue "$2" "$3"
  ln -s "$2-$3.key" "$D/pki/$1.key"; ln -s "$2-$3.crt" "$D/pki/$1.crt"
}
issue() { (cd "$D/pki" && DAYS=30 "$HERE/../dist/tls/issue" "$@") >>"$D/log/pki.log" 2>&1 || { cat "$D/log/pki.log"; die "issue $* failed"; }; }
schema_file() { # PATH below /usr/share
  if [ -n "$OVN_ROOTFS" ]; then echo "$OVN_ROOTFS/usr/share/$1"; else echo "/usr/share/$1"; fi
}
db_start() { # nb-1: starts it and creates its file the first time
  local m=$1 k=${1%-*} i=${1#*-} name schema file=$D/db/$1.db port raft args=()
  name=$(db_schema "$k") schema=$(schema_file "ovn/ovn-$k.ovsschema") port=$(db_port "$k")
  raft() { echo "$(db_proto):$(db_at "$1"):$((port + 2))"; }
  if [ ! -e "$file" ]; then
    case $DB-$i in
      raft3-1) ovsdb-tool -vconsole:err create-cluster "$file" "$schema" "$(raft 1)" ;;
      raft3-*) ovsdb-tool -vconsole:err join-cluster "$file" "$name" "$(raft "$i")" "$(raft 1)" ;;
      *) ovsdb-tool -vconsole:err create "$file" "$schema" ;;
    esac
  fi
  if [ "$DB" != active-backup ]; then args=(--remote="p$(db_proto):$port:$(db_at "$i")")
  elif [ "$(cat "$D/db/active")" = "$i" ]; then args=(--remote="p$(db_proto):$port:$(db_at 8)")
  else args=(--sync-from="$(db_shared "$k")"); fi
  # shellcheck disable=SC2046 # the keys are words
  bg "$m" ovsdb-server -vconsole:info -vsyslog:off "-vPATTERN:console:%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c%T|%p|%m" "$file" --remote="punix:$D/db/$m.sock" --unixctl="$D/db/$m.ctl" "${args[@]}" $(db_keys)
  wait_for 60 test -S "$D/db/$m.ctl" || die "$m did not start ($D/log/$m.log)"
}
relay_start() {
  ovn-sbctl --db="$(db_sockets sb)" set-connection role=ovn-controller "pssl:16642:$(db_at 8)"
  # shellcheck disable=SC2046
  bg relay ovsdb-server -vconsole:info -vsyslog:off "relay:OVN_Southbound:$(db_remotes sb)" --remote=db:OVN_Southbound,SB_Global,connections \
    --unixctl="$D/db/relay.ctl" $(db_keys both)
}
northd_start() {
  local remotes=() k
  # a backup is read-only, and only the shared address leads to the active member
  for k in nb sb; do remotes+=("--ovn${k}-db=$([ "$DB" = active-backup ] && db_shared $k || db_sockets $k)"); done
  # shellcheck disable=SC2046
  bg northd ovn-northd -vconsole:info -vsyslog:off "${remotes[@]}" --unixctl="$D/db/northd.ctl" $(db_keys)
}
databases_up() {
  local k i addresses=()
  if [[ $DB = pods* ]]; then
    [ "$SSL" = 0 ] || { for i in $(seq "$NODES"); do addresses+=("$(node_ip "n$i")"); done; pki "${addresses[@]}"; }
    return 0
  fi
  if [ "$DB" = pacemaker ]; then
    [ "$SSL" = 0 ] || die "--db pacemaker: without --ssl"
    pacemaker_up
    northd_start
    return
  fi
  for i in $(db_members) 8; do address cp $((1 + i)) br0; addresses+=("$(db_ip "$i")"); done
  [ "$SSL" = 0 ] || pki "${addresses[@]}"
  echo 1 >"$D/db/active"
  for i in $(db_members); do for k in nb sb; do db_start $k-"$i"; done; done
  for i in $(db_members); do
    for k in nb sb; do wait_for 120 ovsdb-client -t 5 wait "unix:$D/db/$k-$i.sock" "$(db_schema $k)" connected || die "$k-$i did not join its cluster"; done
  done
  for k in nb sb; do ovn-${k}ctl --db="$(db_sockets $k)" init; done
  northd_start
  [ "$SSL" = 0 ] || relay_start
}
db_leader() { # nb|sb
  local i node
  if [ "$DB" = pods-raft ]; then
    for i in 1 2 3; do
      node=$(pod_of ovnkube-db n$i)
      ! kubectl_ exec -n ovn-kubernetes "$node" -c "$1-ovsdb" -- ovn-appctl --timeout=3 -t "/var/run/ovn/ovn$1_db.ctl" \
        cluster/status "$(db_schema "$1")" 2>/dev/null | grep '^Role: leader' >/dev/null || { echo "$1-$i"; return; }
    done
    die "no member of $1 leads now"
  fi
  [ "$DB" != pacemaker ] || { db_active_host; return; }
  [ "$DB" = raft3 ] || { echo "$1-$(cat "$D/db/active")"; return; }
  for i in $(db_members); do
    ovs-appctl -T 3 -t "$D/db/$1-$i.ctl" cluster/status "$(db_schema "$1")" 2>/dev/null | grep '^Role: leader' >/dev/null || continue
    echo "$1-$i"; return
  done
  die "no member of $1 leads now"
}
db_failover() { # [SECONDS]  active-backup: the inactive members take over the shared address; so long before that, the roles change
  local old new k
  [ "$DB" = active-backup ] || die "failover: the cluster is not active-backup"
  old=$(cat "$D/db/active") new=$((3 - old))
  [ $# = 0 ] || {
    for k in nb sb; do
      ovs-appctl -t "$D/db/$k-$new.ctl" ovsdb-server/disconnect-active-ovsdb-server
      # clients stay connected to it, and are not told
      ovs-appctl -t "$D/db/$k-$old.ctl" ovsdb-server/set-active-ovsdb-server "unix:$D/db/$k-$new.sock"
      ovs-appctl -t "$D/db/$k-$old.ctl" ovsdb-server/connect-active-ovsdb-server
    done
    sleep "$1"
  }
  for k in nb sb; do
    # a dead member has already released the address
    ovs-appctl -T 3 -t "$D/db/$k-$old.ctl" ovsdb-server/remove-remote "p$(db_proto):$(db_port $k):$(db_at 8)" 2>/dev/null || true
    ovs-appctl -t "$D/db/$k-$new.ctl" ovsdb-server/disconnect-active-ovsdb-server
    ovs-appctl -t "$D/db/$k-$new.ctl" ovsdb-server/add-remote "p$(db_proto):$(db_port $k):$(db_at 8)"
    ovs-appctl -T 3 -t "$D/db/$k-$old.ctl" ovsdb-server/set-active-ovsdb-server "$(db_shared $k)" 2>/dev/null || true
    ovs-appctl -T 3 -t "$D/db/$k-$old.ctl" ovsdb-server/connect-active-ovsdb-server 2>/dev/null || true
  done
  echo $new >"$D/db/active"
}
