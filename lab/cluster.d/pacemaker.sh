# Databases that Pacemaker runs, as docs/high-availability.md has it: three hosts, h1 to h3, one of which is active; the others copy it,
# and a shared address follows the active one. A host is a set of namespaces with corosync and pacemaker, which start OVN's servers.
# Sourced by lab/cluster.

db_hosts() { [ "$DB" != pacemaker ] || echo h1 h2 h3; }
db_host_dir() { echo "$D/hosts/$1"; } # hI
db_host_start() { # hI: as a machine that is switched on
  inns cp ip link set "u-$1" up
  inns "$1" ip addr flush dev eth0 scope global
  inns "$1" ip link set eth0 up
  address "$1" $((1 + ${1#h})) eth0
  bg_in "$1" "$1" unshare --mount --pid --uts --ipc --fork --kill-child "$SELF" in-db-host "$1"
}
db_host_kill() { # hI: as a machine that loses its power
  local pid
  pid=$(cat "$D/pid/$1" 2>/dev/null) || return 0
  inns cp ip link set "u-$1" down
  end KILL "$pid"
  rm -f "$D/pid/$1"
}
in_db_host_of() { # hI CMD...
  local first
  first=$(pgrep -P "$(cat "$D/pid/$1")" | head -n 1)
  [ -n "$first" ] || die "$1 does not run"
  nsenter -t "$first" -m -u -i -n -p "${@:2}"
}
db_host() { # hI: its first process
  local dir own=$(db_host_dir "$1")
  hostname "$1"
  mount --make-rprivate /
  mount -t proc proc /proc; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /dev/shm
  for dir in etc/corosync var/lib/corosync var/lib/pacemaker var/log/pacemaker var/lib/ovn var/log/ovn etc/ovn usr/lib/ocf/resource.d/ovn; do
    mkdir -p "$own/$dir"; mount --bind "$own/$dir" "/$dir"
  done
  install -d -o hacluster -g haclient -m 750 /var/lib/pacemaker/{cib,pengine,blackbox,cores} /run/crm
  chown hacluster:haclient /var/log/pacemaker
  install -d -m 1755 /run/resource-agents
  mkdir -p /run/ovn /run/openvswitch
  # with what the document corrects in packages: a word of ovn-ctl, and a link that leads nowhere
  rm -rf "$own/ovn"; cp -r "$OVN_ROOTFS/usr/share/ovn" "$own/ovn"; mount --bind "$own/ovn" /usr/share/ovn
  sed -i '/sync-status/s/awk .*/sed -n "s\/^state: \/\/p"/' /usr/share/ovn/scripts/ovn-ctl
  ln -sfn /usr/share/ovn/scripts/ovndb-servers.ocf /usr/lib/ocf/resource.d/ovn/ovndb-servers
  corosync_conf >/etc/corosync/corosync.conf
  corosync -f >>"$own/corosync.log" 2>&1 &
  until corosync-quorumtool -s 2>/dev/null | grep -q '^Quorate:'; do sleep 0.2; done
  PCMK_logfile=/var/log/pacemaker/pacemaker.log pacemakerd >>"$own/pacemakerd.log" 2>&1 &
  while :; do wait -n || true; sleep 1; done
}
corosync_conf() {
  local i
  printf 'totem {\n version: 2\n cluster_name: ovn\n transport: udpu\n}\nnodelist {\n'
  for i in 1 2 3; do printf ' node {\n  ring0_addr: %s\n  name: h%s\n  nodeid: %s\n }\n' "$(db_ip $i)" $i $i; done
  printf '}\nquorum {\n provider: corosync_votequorum\n}\nsystem {\n sched_rr: no\n}\nlogging {\n to_stderr: yes\n to_syslog: no\n}\n'
}
# The commands of the document, with the lab's address, on h1.
pacemaker_commands() {
  sed -n '/^### With Pacemaker/,/^### /{/^```sh/,/^```/{/^```/!p}}' "$HERE/../docs/high-availability.md" | sed "s/10\.0\.0\.9/$(db_ip 8)/g"
}
pacemaker_up() {
  local h k
  for h in $(db_hosts); do netns_add "$h"; db_host_start "$h"; done
  wait_for 120 db_hosts_online || die "not all database hosts are online ($(db_host_dir h1)/corosync.log)"
  pacemaker_commands >"$D/hosts/commands"
  in_db_host_of h1 bash -e "$D/hosts/commands" >>"$D/log/pacemaker.log" 2>&1 || { cat "$D/log/pacemaker.log"; die "Pacemaker refuses the commands of docs/high-availability.md"; }
  for k in nb sb; do
    wait_for 180 inns cp ovsdb-client -t 5 wait "$(db_shared $k)" "$(db_schema $k)" connected || { in_db_host_of h1 crm_mon -1 >&2; die "no database answers at $(db_shared $k)"; }
    inns cp ovn-${k}ctl --db="$(db_shared $k)" init
  done
}
db_hosts_online() { in_db_host_of h1 crm_mon -1 2>/dev/null | grep -F 'Online: [ h1 h2 h3 ]'; }
db_active_host() { # the one that Pacemaker has promoted and that has the shared address
  local h
  for h in $(db_hosts); do
    ! inns "$h" ip -o addr show dev eth0 | grep -F " $(db_ip 8)/" >/dev/null || { [ ! -e "$D/pid/$h" ] || { echo "$h"; return; }; }
  done
  die "no host has the shared address now"
}
