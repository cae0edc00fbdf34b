# What all faults of chaos-test use: processes, times, pods that come and go, packets. Sourced by it. What `ok` calls runs in a process
# of its own, which leaves no variables.

let_go() { # what stands still or is slow
  local p
  for p in $(cat "$tmp/still" 2>/dev/null); do kill -CONT "$p" 2>/dev/null; done
  rm -f "$tmp/still"
  [ ! -s "$tmp/traced" ] || kill "$(cat "$tmp/traced")" 2>/dev/null
  rm -f "$tmp/traced"
}
stand_still() { kill -STOP "$1" && echo "$1" >>"$tmp/still"; } # PID
pid() { cat "$D/pid/$1"; } # DAEMON
gone() { ! kill -0 "$1" 2>/dev/null || grep '^State:.*Z' "/proc/$1/status" >/dev/null 2>&1; } # PID
kill9() { local p; p=$(pid "$1") && kill -9 "$p" && rm -f "$D/pid/$1"; } # DAEMON: without the time that `cluster kill` takes
masters() { local i; echo master; for i in $(seq 2 "$MASTERS"); do echo "master-$i"; done; }
members() { case $DB in raft3) echo 1 2 3 ;; *) echo 1 2 ;; esac; }
master_pids() { local m; for m in $(masters); do pid "$m"; done; }
holder() { # of the lease, if it has renewed it
  local who
  who=$(kubectl get lease -n ovn-kubernetes ovn-kubernetes-master -o jsonpath='{.spec.holderIdentity}') || return
  case $who in n1) echo master ;; n[2-9]) echo "master-${who#n}" ;; *) return 1 ;; esac
}
later() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a > b)}'; } # TIME THAN
since() { awk -v a="$1" -v b="${2:-$EPOCHREALTIME}" 'BEGIN {printf "%.2f", (b > a ? b - a : 0)}'; } # TIME [UNTIL]: seconds
before() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.3f", a - b}'; } # TIME SECONDS
within() { # SECONDS LIMIT: with what this machine's load adds, three times as long at most; what only that allows is a figure of its own
  echo "$1 s, limit $2 s on a quiet machine, load $(cut -d' ' -f1 /proc/loadavg)"
  ! later "$1" "$2" || figure "$GROUP" "more than the limit of $2 s on a quiet machine" "$1"
  awk -v x="$1" -v limit="$2" -v n="$(nproc)" '{l = $1 / n; if (l > 2) l = 2; exit !(x <= limit * (1 + l))}' /proc/loadavg
}
figure() { # GROUP WHAT NUMBER: seconds, unless WHAT says otherwise
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(cut -d' ' -f1 /proc/loadavg)" >>"$tmp/figures"
}
seconds() { echo $(($1 < LONGEST ? $1 : LONGEST)); } # of a fault
sleep_until() { local left; left=$(awk -v a="$1" -v b="$2" -v now="$EPOCHREALTIME" 'BEGIN {print (a + b > now ? a + b - now : 0)}') && sleep "$left"; } # TIME SECONDS: so long after it

# ---- pods that come and go ----
churn_up() { # KEEP: in a namespace of its own
  local i sockets=
  spaces=$((${spaces:-0} + 1)) WHERE=chaos-churn-$spaces
  new_namespace "$WHERE"
  for i in $(members); do sockets+=" $D/db/nb-$i.sock"; done
  # what the group before has written does not count
  rm -f "$tmp/pause" "$tmp/churn.in"; mkfifo "$tmp/churn.in"; : >"$tmp/churn"
  cluster exec cp env APISERVER="$APISERVER" CA="$CA" KUBE_TOKEN="$D/k8s/admin.token" NB_SOCKETS="$sockets" \
    "$HERE/churn" "$WHERE" "$RATE" "$1" "$tmp/pause" "${FAKE[@]}" <"$tmp/churn.in" >"$tmp/churn" 2>"$tmp/churn.err" &
  CHURN=$! KEEP=$1
  sleep infinity >"$tmp/churn.in" & CHURN_IN=$! # it ends when nobody has it open for writing
}
try_long() { local end=$((SECONDS + 300)); until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.5; done; }
has_pods() { [ "$(grep -c ' port ' "$tmp/churn")" -ge "$KEEP" ]; }
churn_down() {
  kill $CHURN_IN; wait $CHURN $CHURN_IN 2>/dev/null; CHURN_IN=
  kubectl delete ns "$WHERE" --timeout=300s >/dev/null
}
churn_runs() { kill -0 "$CHURN" 2>/dev/null || { cat "$tmp/churn.err"; return 1; }; }
pause() { # pods stay as they are, until `go`
  local n
  [ ! -e "$tmp/pause" ] || return 0 # it paused before
  n=$(grep -c ' paused ' "$tmp/churn")
  touch "$tmp/pause"
  try more_pauses "$n"
}
more_pauses() { [ "$(grep -c ' paused ' "$tmp/churn")" -gt "$1" ]; }
go() { rm -f "$tmp/pause"; }
# of a pod that was made after one time, the first logical port after another
next_port() { # MADE-AFTER [PORT-AFTER]
  local end=$((SECONDS + 120)) at=
  while [ -z "$at" ]; do
    [ $SECONDS -lt $end ] || { echo "no write within 120 s" >&2; return 1; }
    at=$(awk -v since="$1" -v after="${2:-$1}" '$2 == "made" && $1 > since {made[$3] = 1} $2 == "port" && $1 > after {port[$3] = $1}
      END {for (p in port) if (p in made && (best == "" || port[p] < best)) best = port[p]; print best}' "$tmp/churn")
    [ -n "$at" ] || sleep 0.05
  done
  echo "$at"
}
longest_wait() { # SINCE UNTIL [EVENT=port]: of the pods that were made then, from their creation to it, or their end
  local end=$((SECONDS + 120)) said
  while :; do
    said=$(awk -v since="$1" -v until="$2" -v event="${3:-port}" '$2 == "made" && $1 > since && $1 < until {made[$3] = $1} $2 == event {port[$3] = $1} $2 == "deleted" && !($3 in port) {port[$3] = $1}
      END {for (p in made) {n++; if (!(p in port)) missing++; else if (port[p] - made[p] > most) most = port[p] - made[p]}; printf "%d %d %.2f", n, missing, most}' "$tmp/churn")
    case $said in
      "0 "*) echo "no pod was made" >&2; return 1 ;;
      *" 0 "*) echo "${said##* }"; return ;;
    esac
    [ $SECONDS -lt $end ] || { echo "pods, without ${3:-port}, wait: $said" >&2; return 1; }
    sleep 0.1
  done
}

# ---- packets ----
net_of() { # POD NODE: its network namespace on the node
  # shellcheck disable=SC2016 # the node's shell
  cluster exec "$2" bash -c 'for n in /run/netns/*; do ! nsenter --net="$n" ip -o addr | grep -wF "$0" >/dev/null || echo "$n"; done' "$(ip_of "$1")"
}
flows_up() {
  rm -f "$tmp/flow.in" "$tmp"/flow.*; mkfifo "$tmp/flow.in"; FLOWS=()
  flow node icmp "$(ip_of near)"
  flow nodes icmp "$(ip_of far)"
  flow service udp "$SERVICE" 81
  sleep infinity >"$tmp/flow.in" & FLOWS_IN=$!
}
flow() { local name=$1; shift; cluster exec n1 nsenter "--net=$CLIENT" "$HERE/flow" 100 "$@" <"$tmp/flow.in" >"$tmp/flow.$name" 2>&1 & FLOWS+=($!); }
flows_down() { kill $FLOWS_IN; wait "${FLOWS[@]}" $FLOWS_IN 2>/dev/null; FLOWS=() FLOWS_IN=; }
lost_at_most() { # NAME THOUSANDTHS
  tail -n 1 "$tmp/flow.$1"
  awk -v most="$2" '$1 == "sent" {sent = $2; lost = $4} END {exit !(sent > 50 && lost <= sent * most / 1000)}' "$tmp/flow.$1"
}
serves() { # a new pod starts and is reached
  local p=new-${EPOCHREALTIME/[.,]/}
  real_pod "$p" n2 | apply && kubectl wait -n $NS --for=condition=Ready --timeout=180s pod "$p" && try http client "$(at "$(ip_of "$p")"):8080" &&
    kubectl delete pod -n $NS "$p" --wait=false
}
real_pod() { # NAME NODE
  printf -- '---\n{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s, labels: {app: %s}}, spec: {nodeName: %s, terminationGracePeriodSeconds: 0, containers: [{name: c, image: "%s", args: [netexec, --http-port=8080, --udp-port=8081], readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1, failureThreshold: 100}}]}}\n' \
    "$1" $NS "$1" "$2" "$IMAGE"
}
