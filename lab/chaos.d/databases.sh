# Faults of NB, SB and northd. Sourced by chaos-test.

part() { ovs-appctl -T 5 -t "$D/db/$1.ctl" "${@:2}"; } # MEMBER ARGS...
whole() { # all members of NB are in the cluster, know the same leader and have the same log
  local i
  for i in 1 2 3; do part nb-$i cluster/status OVN_Northbound || return; done >"$tmp/status"
  [ "$(grep -c '^Status: cluster member' "$tmp/status")" = 3 ] && ! grep -q '^Leader: unknown' "$tmp/status" &&
    [ "$(grep -c '^Entries not yet \(applied\|committed\): 0' "$tmp/status")" = 6 ] && [ "$(grep '^Term: ' "$tmp/status" | sort -u | wc -l)" = 1 ]
}
elected_after() { # TIME [SECONDS]: when a member of NB was elected
  local end=$((SECONDS + ${2:-60})) at
  until at=$(grep -h 'elected leader by' "$D"/log/nb-*.log | cut -d'|' -f1 | sort | tail -n 1) &&
    [ -n "$at" ] && at=$(date -u -d "$at" +%s.%N) && later "$at" "$1"; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
  echo "$at"
}
next_write() { # GROUP FAULT-AT ELECTED-AT LIMIT
  local at
  at=$(next_port "$2" "$3") || return
  figure "$1" "next write after the election" "$(since "$3" "$at")"
  figure "$1" "next write after the fault" "$(since "$2" "$at")"
  within "$(since "$3" "$at")" "$4"
}
dose_leader() {
  local old at elected
  old=$(try cluster leader nb) || return
  a_moment 2; kill9 "$old" || return; at=$EPOCHREALTIME # what was under way may still be written
  elected=$(elected_after "$at") && next_write leader "$at" "$elected" 2 && no_restart || return
  mend; try whole
}
hand_over() { # the leader does so only while another member has all of the log, which a slow disk may delay
  part "$(cluster leader nb)" cluster/failure-test transfer-leadership && elected_after "$1" 2
}
dose_transfer() {
  local at waited
  a_moment 2; at=$EPOCHREALTIME; try hand_over "$at" >/dev/null || return
  sleep 2
  waited=$(longest_wait "$(before "$at" 1)" "$EPOCHREALTIME") || return
  figure transfer "longest wait of a pod" "$waited"
  within "$waited" 1 && no_restart && try whole
}
dose_partition() {
  local old at elected healed
  old=$(try cluster leader nb) || return
  a_moment 2; part "$old" cluster/failure-test stop-raft-rpc || return; at=$EPOCHREALTIME
  elected=$(elected_after "$at") && next_write partition "$at" "$elected" 2 || return
  sleep "$(seconds 60)"
  healed=$EPOCHREALTIME
  part "$old" cluster/failure-test clear && try whole || return
  figure partition "converged after the end" "$(since "$healed")"
  within "$(since "$healed")" 5 && no_restart
}
dose_hang() {
  local old at elected p
  old=$(try cluster leader nb) && p=$(pid "$old") || return
  a_moment 2; stand_still "$p" || return; at=$EPOCHREALTIME
  elected=$(elected_after "$at") && next_write hang "$at" "$elected" 7 || { let_go; return 1; }
  sleep "$(seconds 60)"; let_go
  try whole && no_restart
}
memory() { local p; for p in $(master_pids); do awk '/^VmRSS/ {print $2}' "/proc/$p/status"; done | sort -n | tail -n 1; } # KiB, of the largest master
dose_northd() {
  local p before at waited
  p=$(pid northd) && before=$(memory) && at=$EPOCHREALTIME && stand_still "$p" || return
  sleep "$(seconds 300)"
  waited=$(longest_wait "$at" "$EPOCHREALTIME") || { let_go; return 1; }
  figure northd "longest wait of a pod" "$waited"
  let_go; at=$EPOCHREALTIME
  cluster nbctl --timeout=120 --wait=sb sync || return
  figure northd "until SB is as NB" "$(since "$at")"
  echo "memory of masters: $before KiB, then $(memory) KiB"
  within "$waited" 2 && [ "$(memory)" -le $((before + 20480)) ] && no_restart
}
emptied() { # nb|sb: deletes all rows but those about the server and its clients
  local schema leader
  [ "$1" = nb ] && schema=OVN_Northbound || schema=OVN_Southbound
  leader=$(try cluster leader "$1") || return
  cluster exec cp python3 - "$schema" "unix:$D/db/$leader.sock" <<'P'
import json, subprocess, sys
schema, where = sys.argv[1:]
tables = json.loads(subprocess.run(["ovsdb-client", "get-schema", where, schema], stdout=subprocess.PIPE, check=True).stdout)["tables"]
stay = ("NB_Global", "SB_Global", "Connection", "SSL", "RBAC_Role", "RBAC_Permission")
ops = [schema, *({"op": "delete", "table": t, "where": []} for t in sorted(tables) if t not in stay)]
said = subprocess.run(["ovsdb-client", "-t", "60", "transact", where, json.dumps(ops)], stdout=subprocess.PIPE, check=True, text=True).stdout
print(said[:300])
sys.exit(any(not r or "error" in r for r in json.loads(said)))
P
}
# what of NB comes from Kubernetes alone
NORTH='logical_switch_port name,addresses
logical_switch name,other_config
logical_router name
logical_router_port name,mac,networks
logical_router_static_route ip_prefix,nexthop
logical_router_policy priority,match,action
nat type,external_ip,logical_ip
load_balancer name,protocol,vips
address_set name,addresses
port_group name
acl priority,direction,match,action'
northbound() {
  local table columns lists=()
  while read -r table columns; do lists+=(-- "--columns=$columns" list "$table"); done <<<"$NORTH"
  cluster nbctl --timeout=20 -f csv --no-headings "${lists[@]:1}" | sort
}
southbound() { # its ports and chassis
  cluster sbctl --timeout=20 -f csv --no-headings --columns=logical_port,type list port_binding | sort
  cluster sbctl --timeout=20 -f csv --no-headings --columns=hostname list chassis | sort
}
as_before() { "$1" >"$tmp/now" && cmp -s "$tmp/before" "$tmp/now"; } # CMD
refilled() { # nb|sb CMD
  local at # before they are deleted: with what that takes
  pause && try even && "$2" >"$tmp/before" && [ "$(wc -l <"$tmp/before")" -ge "$KEEP" ] || return
  at=$EPOCHREALTIME; emptied "$1" || return
  try_long as_before "$2" || { diff "$tmp/before" "$tmp/now" | head -5; return 1; }
  figure "$1-empty" "rows are there again" "$(since "$at")"
  try http client "$(at "$(ip_of far)"):8080" && within "$(since "$at")" 10 && no_restart
}
dose_nb-empty() { refilled nb northbound; }
dose_sb-empty() { refilled sb southbound; }
dose_failover() {
  local old at over next p later=() refused=(0)
  old=$(cat "$D/db/active"); refused+=("nb-$old")
  # each fourth time, masters are still connected to the servers that become backups. They ask each 5 s whether they are, or learn it from the
  # first write that is refused: one to NB and one to SB, which they sent before they knew. Northd and ovn-controllers go on writing there
  [ $((dose % 4)) != 3 ] || {
    later=(8)
    refused=(2 "nb-$old sb-$old" $(for p in $(master_pids); do sockets_of "$p"; done | sort -u))
    [ ${#refused[@]} -gt 2 ] || { echo "no connection of a master was seen"; return 1; }
  }
  trace on; a_moment 2; at=$EPOCHREALTIME
  [ $((dose % 2)) = 1 ] || { kill9 "nb-$old" && kill9 "sb-$old"; } || return
  cluster failover "${later[@]}" || return
  over=$EPOCHREALTIME
  next=$(next_port "$at" "$over") || return
  figure failover "next write after it" "$(since "$over" "$next")"
  # one that was killed comes back as a backup, and logs no requests until it is told to
  mend; part "nb-$old" vlog/set jsonrpc:console:dbg; sleep 2
  trace off && within "$(since "$over" "$next")" 5 && no_restart && written refused "${refused[@]}"
}
