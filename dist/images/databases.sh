# databases.sh - OVN's databases in containers, alone or as members of Raft clusters; ovnkube.sh and start-ic-db.sh source it.
# A database is nb, sb, ic-nb or ic-sb. `names` sets what belongs to it; `protocol` (tcp or ssl) and `keys`, the TLS arguments of
# OVN's programs, are the caller's, and so is listening ADDRESS DATABASE PORT, which runs once a database alone can be reached.
# shellcheck shell=sh
RUN=/var/run/ovn
# the kernel keeps signals from a container's process 1 that it does not handle: while the script waits, a pod would take its whole grace
# period to end, and watch_directory could not end it
[ $$ != 1 ] || trap 'exit 143' TERM
say() { echo "$(basename "$0"): $*" >&2; }
die() { fail 1 "$*"; }
fail() { # CODE MESSAGE
  say "$2"; told "$2"; exit "$1"
}
told() { :; } # MESSAGE [REASON]: a script may have more places for it than its log
need() { # VARIABLE WHAT
  eval "[ -n \"\${$1:-}\" ]" || die "cannot start: the environment variable $1 ($2) is empty; set it in the pod, dist/yaml shows how"
}
need_dir() { # DIRECTORY
  { mkdir -p "$1" && [ -w "$1" ]; } 2>/dev/null || die "cannot write to the directory $1; in a pod, mount one there that can be written"
}
bracketed() { case $1 in *:*) echo "[$1]" ;; *) echo "$1" ;; esac; } # ADDRESS
# What only one pod of a node may run. The pod before may still be ending, which takes seconds. The program that is started keeps the lock;
# whatever else may outlive this shell must not inherit it (9>&-).
lock() { # FILE WHAT REMEDY
  touch "$1" || die "cannot write $1: see the line above; its directory, which is the host's, needs room and must be writable"
  exec 9>>"$1"
  locked=0
  flock -n 9 || locked=$?
  [ "$locked" != 1 ] || { say "waits for another pod of this node, which runs $2 and has locked $1, to end"; locked=0; flock -w 15 9 || locked=$?; }
  [ "$locked" != 1 ] ||
    die "cannot start $2: another pod runs it on this node, and has locked $1; delete $3. If that pod is ending, wait: the kubelet starts this container again"
  [ "$locked" = 0 ] || die "cannot start $2: cannot lock $1: see the line above; its file system must have locks"
}
lock_database() { lock "/etc/ovn/$stem.lock" "the database $name" "one of the two pods, or let them run on different nodes"; }
names() { # DATABASE
  case $1 in
    nb) name=OVN_Northbound table=NB_Global ;;
    sb) name=OVN_Southbound table=SB_Global ;;
    ic-nb) name=OVN_IC_Northbound table=IC_NB_Global ;;
    ic-sb) name=OVN_IC_Southbound table=IC_SB_Global ;;
  esac
  case $1 in ic-*) stem=ovn_ic_${1#ic-}_db ;; *) stem=ovn$1_db ;; esac
  file=/etc/ovn/$stem.db schema=/usr/share/ovn/ovn-$1.ovsschema control=$RUN/$stem.ctl ctl=ovn-${1}ctl
}
# Ends when the file, of a database that is not clustered, is open in a server that does not know our lock, such as one on the host. Once
# replaced, its file would have no name, and what it still writes would be lost.
closed() {
  ovsdb-tool transact "$file" "[\"$name\"]" >/dev/null ||
    die "cannot change $file: see the line above; if another server has it open, such as one on the host, stop that"
}
# Whether the file has another schema than this release; sets `have` and `ours`. No answer, as where memory is short, is not taken for no.
differs() {
  case $(ovsdb-tool needs-conversion "$file" "$schema") in
    no) return 1 ;;
    yes) ! have=$(ovsdb-tool db-version "$file") || ! ours=$(ovsdb-tool schema-version "$schema") || return 0 ;;
  esac
  die "cannot read $file, which stays as it is: see the line above; if it is damaged, put a backup in its place. The kubelet starts this container again"
}
# The file has the schema of this release, or a newer one: converting it to an older one would delete what only the newer one has.
converted() {
  differs || return 0
  if ovsdb-tool compare-versions "$have" '>' "$ours"; then
    say "the file $file has the schema $have of a newer release and keeps it; this release's is $ours"
  else
    convert
  fi
}
convert() {
  closed
  say "the file $file gets the schema of this release, $ours; the old one stays beside it, as $file.old"
  # in a file of our own: ovsdb-tool's would keep it from trying again after it was ended. The old one gets a second name: a copy
  # would take the room on a full disk where other databases write
  { rm -f "$file.new" && ovsdb-tool convert "$file" "$schema" "$file.new" && ln -f "$file" "$file.old" && mv "$file.new" "$file"; } ||
    { rm -f "$file.new"; die "cannot convert $file, which stays as it is: see the line above. ${file%/*}, a directory of the host, needs room for a copy of it"; }
}
# Open vSwitch's own database, before ovs-ctl starts its server. ovs-ctl converts it too, also to an older schema, but in the place of a
# file that it cannot convert, as on a disk that is nearly full, it puts an empty one: a host whose NIC is in a bridge would lose its network.
switch_database() {
  # Debian's package makes a link
  file=$(realpath -m /etc/openvswitch/conf.db) schema=/usr/share/openvswitch/vswitch.ovsschema name=Open_vSwitch
  # what a first start without room leaves: no server would start with it
  [ -s "$file" ] || rm -f "$file"
  [ ! -e "$file" ] || ! differs || convert
}
# Whether the host has removed a directory that this container has: it is no directory's any more.
is_removed() { [ "$(stat -c %h "$1" 2>/dev/null)" = 0 ]; } # DIRECTORY
# Ends the container when the host has made a directory anew, as systemd does with the one of Open vSwitch's sockets where its unit has a
# RuntimeDirectory (Fedora, RHEL): the program would look for sockets in the old one for ever. The next container gets the new one.
# It runs in the background. It gives up its output, which would keep open what others read, for good: for one command alone, the shell
# would keep the old one aside. The program has the number and the output of this shell.
watch_directory() { # DIRECTORY
  exec >/dev/null 2>&1
  while sleep 5 && kill -0 $$; do
    is_removed "$1" || continue
    say "$REMOVED $1" 2>"/proc/$$/fd/2" || :
    kill $$
    return
  done
}
REMOVED="ends, for the kubelet to start this container again: the host has made another directory in place of"
# Says once an hour that the disk is nearly full, and at once that it is full: ovsdb-server goes on, and loses what it cannot write. As for
# `ovnkube db status`, there should be room for a second file, with which the first is compacted, and 100 MB.
watch_disk() {
  every=5 quiet=0 was=
  # the server has the number of this shell
  while sleep $every && kill -0 $$ 2>/dev/null; do
    every=60 quiet=$((quiet - 1))
    # blocks that are left, bytes of a block
    # shellcheck disable=SC2046 # numbers are words
    set -- $(stat -f -c '%f %S' "$file" 2>/dev/null)
    [ $# = 2 ] || continue
    left=$(($1 * $2))
    if [ $left -lt 1000000 ]; then now=full text="the disk of $file is full: ovsdb-server cannot write; make room there"
    elif [ $left -lt $(($(wc -c <"$file") + 100000000)) ]; then
      now=nearly text="the disk of $file is nearly full: $((left / 1000000)) MB are left; make room there: without it, ovsdb-server cannot write"
    else was=; continue; fi
    [ $quiet -le 0 ] || { [ $now = full ] && [ "$was" != full ]; } || continue
    quiet=60 was=$now
    [ $now != full ] || ! ovsdb-tool db-is-clustered "$file" 2>/dev/null ||
      text="$text, then run ovs-appctl -t $control ovsdb-server/compact in this container before it ends: the file may lack entries, and would be of no use any more"
    say "$text"
    told "$text" DatabaseDiskFull
  done
}
# Ends in the server of a database that is not clustered.
alone() { # DATABASE ADDRESS PORT LOG
  names "$1"
  need_dir /etc/ovn; need_dir $RUN
  lock_database
  if [ ! -s "$file" ]; then
    rm -f "$file" "$file.new"
    { ovsdb-tool create "$file.new" "$schema" && mv "$file.new" "$file"; } ||
      die "cannot create $file: see the line above; /etc/ovn, a directory of the host, needs room and must be writable"
  elif ovsdb-tool db-is-clustered "$file" 2>/dev/null; then
    die "cannot start the database alone: $file is that of a Raft cluster's member; move it away, or start all members"
  elif ! ovsdb-tool db-is-standalone "$file"; then
    die "cannot read $file: see the line above; put a backup in its place, or move it away: masters write what is in Kubernetes to an empty one"
  else
    converted
  fi
  remote=p$protocol:$3:$2
  # in the database, where its inactivity probe can be set: every client is asked once a minute whether it still lives
  (
    until "$ctl" --timeout=5 --db="unix:$RUN/$stem.sock" --inactivity-probe=60000 set-connection "$remote" 2>/dev/null; do sleep 1; done
    say "the database listens on $remote"
    listening "$2" "$1" "$3"
  ) 9>&- &
  (watch_disk) 9>&- &
  # shellcheck disable=SC2086 # arguments are words
  exec ovsdb-server ${4:--vconsole:info} -vsyslog:off -vfile:off "$file" --remote="punix:$RUN/$stem.sock" \
    --remote="db:$name,$table,connections" --unixctl="$control" --pidfile="$RUN/$stem.pid" $keys
}
# Ends in the server of a member of a Raft cluster. Only the member at address FIRST may create the cluster.
member() { # DATABASE ADDRESS PORT RAFT-PORT LOG SECONDS FIRST OTHERS...
  names "$1"
  database=$1 address=$2 port=$3 timer=$6 first=$7 raft=$protocol:$2:$4 raft_port=$4 log=$5
  shift 7
  others=$*
  [ "$timer" -ge 1000 ] || timer=$((timer * 1000))
  joined= # raft addresses of the others
  for other in $others; do joined="$joined $protocol:$other:$raft_port"; done
  need_dir /etc/ovn; need_dir $RUN
  lock_database
  member_file
  socket=unix:$RUN/$stem.sock config=$RUN/$stem.conf
  # it is this member's alone: a remote in the database would be that of all members
  printf '{"remotes": {"p%s": {}, "p%s:%s:%s": {"inactivity-probe": 60000}}, "databases": {"%s": {}}}\n' \
    "$socket" "$protocol" "$port" "$address" "$file" >"$config" || die "cannot write $config: see the line above"
  # of a function's redirection the shell keeps a copy of the descriptor
  (member_settle) 9>&- &
  (watch_disk) 9>&- &
  # shellcheck disable=SC2086 # arguments are words
  exec ovsdb-server ${log:--vconsole:info} -vsyslog:off -vfile:off --config-file="$config" --unixctl="$control" \
    --pidfile="$RUN/$stem.pid" $keys
}
# Ends in a relay of the southbound database: what each client may change is said by the role ovn-controller, which northd writes.
relay_of_sb() { # ADDRESS PORT LOG REMOTES
  names sb
  need_dir $RUN
  config=$RUN/ovnsb_relay_db.conf
  printf '{"remotes": {"punix:%s": {}, "p%s:%s:%s": {"role": "ovn-controller", "inactivity-probe": 60000}}, "databases": {"%s": {"service-model": "relay", "source": {"%s": {}}}}}\n' \
    $RUN/ovnsb_relay_db.sock "$protocol" "$2" "$1" "$name" "$4" >"$config" || die "cannot write $config: see the line above"
  # shellcheck disable=SC2086 # arguments are words
  exec ovsdb-server ${3:--vconsole:info} -vsyslog:off -vfile:off --config-file="$config" --unixctl=$RUN/ovnsb_relay_db.ctl \
    --pidfile=$RUN/ovnsb_relay_db.pid $keys
}
relay_ready() { ovn-sbctl --timeout=5 --no-leader-only --db=unix:$RUN/ovnsb_relay_db.sock get-connection >/dev/null; }
SECRET=/var/run/secrets/kubernetes.io/serviceaccount
# curl with the pod's account; the token is in no argument, and not in the log. ARGS...
as_account() {
  { printf 'Authorization: Bearer '; cat $SECRET/token; } | curl -sS --fail --max-time 5 --cacert $SECRET/ca.crt -H @- "$@"
}
# In the chart of ovn-kubernetes the members are the pods of a StatefulSet: their addresses in order, or why they are not known.
member_pods() {
  ns=/namespaces/${OVN_KUBERNETES_NAMESPACE:-ovn-kubernetes} i=0 addresses=
  replicas=$(as_account "${K8S_APISERVER%/}/apis/apps/v1$ns/statefulsets/ovnkube-db?pretty=true" | sed -n 's/^    "replicas": \([0-9]*\),*$/\1/p' | head -n 1)
  [ -n "$replicas" ] || { echo "the API server at $K8S_APISERVER does not show the StatefulSet ovnkube-db"; return 1; }
  while [ $i -lt "$replicas" ]; do
    ip=$(as_account "${K8S_APISERVER%/}/api/v1$ns/pods/ovnkube-db-$i?pretty=true" | sed -n 's/^    "podIP": "\([^"]*\)",*$/\1/p')
    [ -n "$ip" ] || { echo "the pod ovnkube-db-$i has no address"; return 1; }
    addresses="$addresses$ip
" i=$((i + 1))
  done
  printf %s "$addresses" | sort
}
# Whether this host has the file of a member, which knows the others.
has_member() { [ -s "$file" ] && ovsdb-tool db-is-clustered "$file" 2>/dev/null && is_listed; }
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
  # code 1: the last entry is a part, which a host leaves that loses power. A program that was ended, as where memory is short, has not read all
  servers=$({ code=0; ovsdb-tool show-log "$file" || code=$?; [ $code -le 1 ] || echo " servers: unread $code"; } |
    sed -n 's/^ \(prev_\)\{0,1\}servers: //p' | tail -n 1)
  case $servers in
    unread*) die "cannot read $file: ovsdb-tool show-log ended with the code ${servers#unread }; the file stays as it is, and the kubelet starts this container again" ;;
    *"$sid("*) ;;
    *) return 1 ;;
  esac
}
# Leaves when $file is that of a member. An empty host joins the cluster that others are in; only the first member creates one, and only
# when all the others say that they are in none. Otherwise a host that lost its files could begin a second cluster.
member_file() {
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
        die "cannot create $file: see the line above; /etc/ovn, a directory of the host, needs room and must be writable" ;;
      0)
        if [ "$first" != "$address" ]; then
          [ $kind != alone ] || die "cannot join: $file is a database alone, and only the first member's can become the cluster's; move it away"
          say "waits for $first to create the cluster, or for a member of it"
          # not by the others, which may wait too
          ovsdb-tool join-cluster "$file.new" "$name" "$raft" "$protocol:$first:$raft_port" && mv "$file.new" "$file" && return 0
          die "cannot create $file: see the line above; /etc/ovn, a directory of the host, needs room and must be writable"
        elif [ "$(echo $said | wc -w)" = "$(echo $others | wc -w)" ]; then
          say "creates the cluster: all other members wait for it"
          from=$schema
          [ $kind != alone ] || { from=$file; closed; }
          if ovsdb-tool create-cluster "$file.new" "$from" "$raft" &&
            { [ $kind != alone ] || ln -f "$file" "$file.alone"; } && mv "$file.new" "$file"; then return 0; fi
          rm -f "$file.new"
          die "cannot create $file: see the line above; /etc/ovn, a directory of the host, needs room and must be writable"
        fi
        now="waits until all of these answer, at port $port, that they are in no cluster, or one that it is in one: $others" ;;
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
  listening "$address" "$database" "$port" &
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
alone_ready() { names "$1"; "$ctl" --timeout=5 --no-leader-only --db="unix:$RUN/$stem.sock" get-connection >/dev/null; } # DATABASE

# ---- those that connect clusters: which hosts have them, and how they talk ----
IC_NB_PORT=6645 IC_SB_PORT=6646 IC_NB_RAFT_PORT=6647 IC_SB_RAFT_PORT=6648
ic_keys() { # sets protocol and keys
  protocol=tcp keys=
  case ${ENABLE_SSL:-false} in
    false) ;;
    true) protocol=ssl keys="--private-key=/var/run/tls/key --certificate=/var/run/tls/cert --ca-cert=/var/run/tls/cacert" ;;
    *) die "cannot start: ENABLE_SSL is \"$ENABLE_SSL\"; set it to true or false" ;;
  esac
}
ic_hosts() { echo "${NODE_IPS:-}" | tr ',' ' '; }
ic_remote() { # DATABASE: for clients on this host
  names "$1"
  # shellcheck disable=SC2046 # addresses are words
  set -- "$1" $(ic_hosts)
  [ $# -gt 2 ] || { echo "unix:$RUN/$stem.sock"; return; }
  port=$IC_NB_PORT remotes=
  [ "$1" = ic-nb ] || port=$IC_SB_PORT
  shift
  for host; do remotes=$remotes${remotes:+,}$protocol:$(bracketed "$host"):$port; done
  echo "$remotes"
}
