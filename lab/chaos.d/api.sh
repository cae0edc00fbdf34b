# Faults of the API server. Sourced by chaos-test.

dose_api() {
  local at waited
  at=$EPOCHREALTIME
  kill -9 "$(cat "$D/k8s/apiserver.pid")" || return
  sleep "$(seconds 30)"
  cluster start apiserver && next_port "$at" >/dev/null && sleep 3 || return
  waited=$(longest_wait "$at" "$EPOCHREALTIME") || return
  figure api "longest wait of a pod" "$waited"
  within "$waited" 5 && no_restart
}

# ---- between the API server and ovnkube (lab/api-faults) ----
faults() { printf '%s\n' "$@" >"$D/api-faults.new" && mv "$D/api-faults.new" "$D/api-faults" && sleep 0.3; } # LINE...
no_faults() { rm -f "$D/api-faults" && sleep 0.3; }
all_again() { # masters and agents start again
  local d before
  for d in $(masters); do cluster restart "$d" || return; done
  before=$(ready_agents)
  for d in $(seq -f 'n%g' "$NODES"); do cluster restart "$d" || return; done
  try holder >/dev/null && try agents_ready $((before + NODES))
}
ready_agents() { cat "$D"/log/agent-*.log | grep -c 'node is ready for pods'; }
agents_ready() { [ "$(ready_agents)" -ge "$1" ]; } # HOW OFTEN
through_faults() { rm -f "$D/api-requests"; no_faults && cluster start api-faults && all_again && all_ask; }
all_ask() { # the master that has the lease and every agent have a watch of nodes there; the other masters watch nothing
  local seen
  seen=$(awk '$2 == "watch" && $3 == "nodes" && $4 == 200' "$D/api-requests" | wc -l)
  echo "$seen watches of nodes"; [ "$seen" -ge $((1 + NODES)) ]
}
past_faults() { no_faults; cluster stop api-faults && all_again; }
# Of no kind of object more than five requests a second, in the busiest minute, or in the whole time if that is shorter; and of no object more,
# whatever is asked: each pod that comes is written, so of pods as a kind there are more
few_requests() { # GROUP WHEN SINCE VERBS
  python3 - "$D/api-requests" "$3" "$4" "$EPOCHREALTIME" >"$tmp/requests" <<'P'
import collections, sys
path, since, verbs, now = sys.argv[1], float(sys.argv[2]), sys.argv[3].split(), float(sys.argv[4])
came, of, span = collections.defaultdict(list), collections.defaultdict(list), min(60, now - since)
for line in open(path):
    at, verb, kind, status, *more = line.split()
    if status != "-" or float(at) < since:
        continue
    if verb in verbs or verbs == ["all"]:
        came[kind].append(float(at))
    if verb in ("get", "put", "patch", "delete"): # what is asked of a name
        of[more[-1]].append(float(at))
def busy(times):
    return {k: max(sum(a <= b < a + span for b in at) for a in at) / span for k, at in times.items()}
most, one = busy(came), busy(of)
words = ["%s: %.2f a second" % (k, rates[k]) for rates, n in ((most, 3), (one, 1)) for k in sorted(rates, key=rates.get, reverse=True)[:n]]
print("%.2f %.2f" % (max(most.values(), default=0), max(one.values(), default=0)), *words)
P
  cat "$tmp/requests"
  figure "$1" "requests a second for one kind of object, $2" "$(cut -d' ' -f1 "$tmp/requests")"
  figure "$1" "requests a second for one object, $2" "$(cut -d' ' -f2 "$tmp/requests")"
  awk '{exit !($1 <= 5 && $2 <= 5)}' "$tmp/requests"
}

begin_watch-gone() { through_faults; }
end_watch-gone() { # a quiet minute after all of it
  local at=$EPOCHREALTIME
  sleep "$(seconds 60)"
  few_requests watch-gone "quiet" "$at" all && past_faults
}
some_objects() { # NAME: a service, a policy, a pod
  service "$1" 'selector: {app: near}, ports: [{port: 80}]'
  printf -- '---\n{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: %s, namespace: %s}, spec: {podSelector: {matchLabels: {app: %s}}, ingress: [{ports: [{port: 80}]}]}}\n' "$1" $NS "$1"
  printf -- '---\n{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s, labels: {app: %s}}, spec: {nodeName: %s, terminationGracePeriodSeconds: 0, tolerations: [{operator: Exists}], containers: [{name: c, image: "%s"}]}}\n' "$1" $NS "$1" "${FAKE[0]}" "$IMAGE"
}
rows_of() { # NAME: how many of the three have rows
  local all
  all=$(ports; cluster nbctl --bare --columns=external_ids list load_balancer; cluster nbctl --bare --columns=external_ids list acl) || return
  for row in "^${NS}_$1\$" "owner=$NS/$1\\b" "[:=]$NS:$1\\b"; do ! grep -- "$row" <<<"$all" >/dev/null || echo x; done | wc -l
}
has_rows() { [ "$(rows_of "$1")" = 3 ]; }
has_no_rows() { [ "$(rows_of "$1")" = 0 ]; }
relisted() { # SINCE: each watch that has ended was followed by a list
  awk -v since="$1" '$1 > since && $2 == "gone" {gone[$3 " " $5]++} $1 > since && $2 == "list" && $4 == 200 {listed[$3 " " $5]++}
    END {for (k in gone) {n += gone[k]; if (listed[k] < gone[k]) {bad = 1; print k, gone[k], "times gone, listed", listed[k] + 0}} print n + 0, "watches ended"; exit bad || n < 10}' "$D/api-requests"
}
dose_watch-gone() {
  local how=told old=old-$dose new=new-$dose at began=$EPOCHREALTIME
  [ $((dose % 2)) = 1 ] || how=closed
  some_objects "$old" | apply && try has_rows "$old" || return
  faults "deaf $how" || return
  some_objects "$new" | apply
  kubectl delete -n $NS service,networkpolicy,pod "$old" --force --grace-period=0 >/dev/null 2>&1
  sleep "$(seconds 3)"
  has_rows "$old" && has_no_rows "$new" || { no_faults; echo "the watches were not deaf"; return 1; }
  at=$EPOCHREALTIME; no_faults
  try has_rows "$new" && try has_no_rows "$old" || { echo "rows of what was deleted: $(rows_of "$old"), of what is new: $(rows_of "$new")"; return 1; }
  figure watch-gone "rows are right after the end of the watches" "$(since "$at")"
  few_requests watch-gone "while pods come and go" "$began" "list watch get" && within "$(since "$at")" 5 && no_restart && quietly_gone "$how"
}
no_group_rests() { local rest; rest=$(cluster nbctl --bare --columns=name find port_group 'ports=[]' 'acls=[]') && [ -z "$rest" ]; }
quietly_gone() { # told|closed: when nothing has changed meanwhile, nothing is written
  local at
  # the group of a policy that is gone stays for ten seconds beside a northd that would forget one which is made again, and longer if
  # NB gets another leader meanwhile
  pause && try even && try no_group_rests && trace on && faults "deaf $1" || return
  sleep 1
  at=$EPOCHREALTIME; no_faults
  sleep 5
  trace off; relisted "$at" && written any
}

begin_api-slow() { through_faults; }
end_api-slow() { past_faults; }
transitions() { kubectl get lease -n ovn-kubernetes ovn-kubernetes-master -o jsonpath='{.spec.holderIdentity} {.spec.leaseTransitions}'; }
a_pod_starts() { # GROUP: with all that its start needs
  local p=slow-${EPOCHREALTIME/[.,]/} at=$EPOCHREALTIME
  real_pod "$p" n2 | apply && kubectl wait -n $NS --for=condition=Ready --timeout=120s pod "$p" || return
  figure "$1" "until a pod of a real node is Ready" "$(since "$at")"
  kubectl delete -n $NS pod "$p" --wait=false
}
pods_waited() { # GROUP SINCE LIMIT LIMIT: for their port, and for their annotation
  local port told now=$EPOCHREALTIME
  port=$(longest_wait "$2" "$now") && told=$(longest_wait "$2" "$now" told) || return
  figure "$1" "longest wait of a pod for its port" "$port"
  figure "$1" "longest wait of a pod for its annotation" "$told"
  within "$port" "$3" && within "$told" "$4"
}
dose_api-slow() {
  local at=$EPOCHREALTIME quiet who waited=0
  who=$(transitions) && faults "latency 2000" "errors 5" || return
  a_pod_starts api-slow || { no_faults; return 1; }
  sleep_until "$at" "$(seconds 600)"
  pods_waited api-slow "$at" 5 10 && few_requests api-slow "while pods come and go" "$at" "list watch get" || waited=$?
  pause && try_long even || { no_faults; return 1; } # still with the faults
  quiet=$EPOCHREALTIME; sleep "$(seconds 60)"
  few_requests api-slow "quiet" "$quiet" all || waited=$?
  no_faults
  awk -v at="$at" '$1 > at && $4 ~ /^(429|500|503)$/ {n[$4]++} END {print "answers:"; for (s in n) print s, n[s]; exit !length(n)}' "$D/api-requests" || return
  [ "$(transitions)" = "$who" ] || { echo "the lease went from $who to $(transitions)"; return 1; }
  no_restart && return "$waited"
}

# ---- etcd ----
etcd_with() { # ARGS...: it starts again; the lab's otherwise does not sync its disk
  local p
  p=$(cat "$D/k8s/etcd.pid") && kill "$p" && try gone "$p" && rm -f "$D/k8s/etcd.pid" && K8SLAB_ETCD_ARGS=$* cluster start apiserver
}
begin_etcd-slow() { etcd_with --unsafe-no-fsync=false; }
end_etcd-slow() { etcd_with; }
syncs() { # of etcd's log: their seconds, and how many
  local port
  port=$(sed -n 's/^ECLIENT=//p' "$D/k8s/ports")
  cluster exec cp curl -sf -m 20 "http://127.0.0.1:$port/metrics" |
    awk '/^etcd_disk_wal_fsync_duration_seconds_sum/ {s = $2} /^etcd_disk_wal_fsync_duration_seconds_count/ {n = $2} END {print s, n; exit !n}'
}
dose_etcd-slow() {
  local at=$EPOCHREALTIME who before after rc=0
  who=$(transitions) || return
  strace -f -qq -e trace=fsync,fdatasync -e inject=fsync,fdatasync:delay_enter=500000 -o /dev/null -p "$(cat "$D/k8s/etcd.pid")" >"$tmp/strace" 2>&1 &
  echo $! >"$tmp/traced"
  sleep 2
  before=$(syncs) || { let_go; return 1; }
  a_pod_starts etcd-slow && sleep_until "$at" "$(seconds 600)" && pods_waited etcd-slow "$at" 5 20 || rc=1
  after=$(syncs) || rc=1
  let_go
  [ $rc = 0 ] || return $rc
  echo "$before $after" | awk '{n = $4 - $2; took = n ? ($3 - $1) / n : 0; printf "%d syncs, %.2f s each\n", n, took; exit !(took >= 0.49)}' || { cat "$tmp/strace"; return 1; }
  [ "$(transitions)" = "$who" ] || { echo "the lease went from $who to $(transitions)"; return 1; }
  no_restart
}
