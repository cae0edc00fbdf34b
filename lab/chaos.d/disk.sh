# Disks that are full. Sourced by chaos-test.
# On n2 the directories of the agent's log, of the network configuration and of its socket are small file systems; the agent logs to a
# file there. The masters' error output, their log, goes to another small one.

SMALL=$D/small
ON_NODE=(/etc/cni/net.d /var/log/ovn-kubernetes /run/ovn-kubernetes)
CONF=/etc/cni/net.d/10-ovn-kubernetes.conflist NODE_LOG=/var/log/ovn-kubernetes/ovnkube.log
begin_disk-full() {
  local m
  mkdir -p "$SMALL" && mount -t tmpfs -o size=256k tmpfs "$SMALL" || return
  for m in $(masters); do
    cluster stop "$m" && mv "$D/log/$m.log" "$D/log/$m.log.before" && ln -s "$SMALL/$m.log" "$D/log/$m.log" && cluster start "$m" || return
  done
  cluster stop n2 || return
  for m in "${ON_NODE[@]}"; do cluster exec n2 bash -c 'mkdir -p "$1" && { findmnt -t tmpfs "$1" >/dev/null || mount -t tmpfs -o size=256k,mode=755,nr_inodes=20 tmpfs "$1"; }' _ "$m" || return; done
  containerd_again && agent_with_file && try holder >/dev/null && try conf_whole && cluster exec n2 cat "$CONF" >"$tmp/conf"
}
end_disk-full() {
  local m
  for m in $(masters); do cluster stop "$m" && rm "$D/log/$m.log" && mv "$D/log/$m.log.before" "$D/log/$m.log" && cluster start "$m" || return; done
  small_away; cluster restart n2 && try holder >/dev/null && try conf_whole
}
small_away() { ! mountpoint -q "$SMALL" || umount -l "$SMALL"; }
containerd_again() { # it watches the directory that was there when it started
  # shellcheck disable=SC2016 # the node's shell
  cluster exec n2 bash -c 'kill "$(pgrep -xo containerd)"; sleep 1; setsid containerd -c "$1/containerd.toml" >>"$1/containerd.log" 2>&1 </dev/null & for i in $(seq 100); do ctr version >/dev/null 2>&1 && exit; sleep 0.2; done; exit 1' _ "$D/nodes/n2"
}
agent_with_file() { OVNKUBE_LOGFILE=$NODE_LOG cluster start n2; }
agent_runs() { cluster exec n2 bash -c 'kill -0 "$(cat /run/agent.pid)" 2>/dev/null'; }
conf_whole() { cluster exec n2 python3 -c 'import json, sys; json.load(open(sys.argv[1]))["plugins"]' "$CONF"; }
conf_as_before() { cluster exec n2 cat "$CONF" 2>/dev/null | cmp -s - "$tmp/conf"; }
no_half_conf() { # no file that a runtime reads is there but the whole one
  cluster exec n2 bash -c 'for f in /etc/cni/net.d/*.conf /etc/cni/net.d/*.conflist; do [ ! -e "$f" ] || python3 -c "import json, sys; json.load(open(sys.argv[1]))" "$f" || exit 1; done'
}
# a log's last page has room yet when the file system has none
full() { # DIR LOG...
  local dir=$1 log; shift
  for log in "$@"; do [ ! -e "$log" ] || printf '%*s\n' $((4095 - $(stat -c %s "$log") % 4096)) '' >>"$log"; done
  while dd if=/dev/zero of="$dir/filled" bs=4k count=1 oflag=append conv=notrunc status=none; do :; done 2>/dev/null
  [ "$(df --output=avail "$dir" | tail -n 1)" -eq 0 ]
}
node_full() { # DIR LOG...
  cluster exec n2 bash -c "$(declare -f full); full \"\$@\"" _ "$@"
}
free() {
  rm -f "$SMALL/filled"
  # shellcheck disable=SC2016
  cluster exec n2 bash -c 'for d; do rm -f "$d"/filled "$d"/inode-*; done' _ "${ON_NODE[@]}"
}
event_of_node() { # TEXT
  kubectl get events -A --field-selector involvedObject.kind=Node,involvedObject.name=n2 -o jsonpath='{range .items[*]}{.reason}: {.message}{"\n"}{end}' | grep -F -- "$1"
}
dose_disk-full() {
  local rc=0
  disk_of_logs && disk_of_conf && disk_of_sockets || rc=$?
  free
  agent_runs || agent_with_file
  return $rc
}
count() { grep -c -- "$1" "$2" || true; } # WORDS FILE: its lines with them
disk_of_logs() { # masters and the agent start and work without a log, and go on with it when there is room
  local old p at next before
  : >"$SMALL/$(try holder).log"; cluster exec n2 truncate -s 0 "$NODE_LOG"
  before=$(count "cannot write log file $NODE_LOG" "$D/log/agent-n2.log")
  full "$SMALL" "$SMALL"/*.log && node_full /var/log/ovn-kubernetes "$NODE_LOG" || { echo "there is room yet"; return 1; }
  old=$(try holder) && p=$(pid "$old") && kill -9 "$p" && try gone "$p" || return
  at=$EPOCHREALTIME
  cluster start "$old" && cluster kill n2 && agent_with_file && next=$(next_port "$at") || return
  kill -0 "$(pid "$old")" && agent_runs || { echo "ended without room for its log"; return 1; }
  a_pod_starts disk-full || return
  figure disk-full "next write after a master was killed, no room for logs" "$(since "$at" "$next")"
  within "$(since "$at" "$next")" 12 || return
  [ "$(count "cannot write log file $NODE_LOG" "$D/log/agent-n2.log")" -gt "$before" ] || { echo "the agent's error output does not tell that $NODE_LOG is full"; return 1; }
  free
  # what is logged next goes there again, after how much is lost
  a_pod_starts disk-full && try cluster exec n2 grep -q 'lines before this one are lost' "$NODE_LOG" || { echo "the agent's log does not go on"; return 1; }
  cluster restart "$old" && try grep -q 'lines before this one are lost' "$SMALL/$old.log" && try grep -qE 'everything is written|waiting for the lease' "$SMALL/$old.log" || { echo "the master's log does not go on"; return 1; }
}
disk_of_conf() { # nothing half is there, an Event tells why, and the file comes back as soon as it can
  local at
  try conf_as_before && cluster kill n2 && cluster exec n2 rm "$CONF" && node_full /etc/cni/net.d && agent_with_file || return
  sleep 5
  agent_runs && no_half_conf && fails conf_whole || { echo "the agent has ended, or a configuration is there"; return 1; }
  try event_of_node "$CONF" || { echo "no Event of n2 names $CONF"; return 1; }
  at=$EPOCHREALTIME; free
  try conf_as_before || { echo "the configuration does not come back"; return 1; }
  figure disk-full "the network configuration is there after room is" "$(since "$at")"
  within "$(since "$at")" 3 && a_pod_starts disk-full
}
agent_ended() { fails agent_runs && [ "$(no_socket)" -gt "$1" ]; } # TIMES: that it has said so before
no_socket() { count 'cannot serve .*ovn-kubernetes.*No space left' "$D/log/agent-n2.log"; }
disk_of_sockets() { # without an inode for its socket the agent says so and ends; whoever starts it again has it back
  local at before
  cluster kill n2; before=$(no_socket)
  # shellcheck disable=SC2016 # the node's shell
  cluster exec n2 bash -c 'rm -rf /run/ovn-kubernetes/*; i=0; while : >"/run/ovn-kubernetes/inode-$i"; do i=$((i + 1)); done 2>/dev/null; [ $i -gt 1 ]' || return
  agent_with_file
  try agent_ended "$before" || { echo "no clear end: $(tail -n 1 "$D/log/agent-n2.log")"; return 1; }
  at=$EPOCHREALTIME; free
  agent_with_file; try cluster exec n2 test -S /run/ovn-kubernetes/cni/ovn-cni-server.sock && conf_as_before || return
  figure disk-full "the agent serves after its directory has room" "$(since "$at")"
  a_pod_starts disk-full
}
