# Faults of masters. Sourced by chaos-test.

takeover() { # GROUP SIGNAL LIMIT
  local old p at before waited
  old=$(try holder) && p=$(pid "$old") || return
  before=$(starts); a_moment 2; at=$EPOCHREALTIME
  kill "-$2" "$p" || return
  try gone "$p" && try started_after "$before" || return
  sleep 1
  waited=$(longest_wait "$(before "$at" 1)" "$EPOCHREALTIME") || return
  figure "$1" "longest wait of a pod" "$waited"
  within "$waited" "$3"
}
dose_master-kill() { takeover master-kill KILL 12; }
dose_master-stop() { takeover master-stop TERM 1; }
sockets_of() { cluster exec cp ss -tnpH | grep "pid=$1," | awk '{print $4}' | sed 's/.*://'; } # PID: its ports
dose_master-pause() {
  local old p at next
  old=$(try holder) && p=$(pid "$old") || return
  a_moment 2; at=$EPOCHREALTIME; stand_still "$p" || return
  next=$(next_port "$at") || { let_go; return 1; }
  figure master-pause "next write" "$(since "$at" "$next")"
  sleep "$(seconds 60)"
  trace on && sockets_of "$p" >"$tmp/sockets"
  let_go; sleep 5
  sockets_of "$p" >>"$tmp/sockets"; trace off
  [ -s "$tmp/sockets" ] || { echo "no connection of the old master was seen"; return 1; }
  # shellcheck disable=SC2046 # ports are words
  written from $(sort -u "$tmp/sockets") && within "$(since "$at" "$next")" 12 && no_restart && fails holds "$old"
}
holds() { [ "$(holder)" = "$1" ]; }
dose_crash() {
  local all victim
  mapfile -t all < <(masters)
  victim=${all[$((RANDOM % ${#all[@]}))]}
  [ $((RANDOM % 4)) = 0 ] || victim=$(try holder) || return
  a_moment 2; kill9 "$victim"
}
