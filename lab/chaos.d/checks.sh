# What must hold after each dose of chaos-test. Sourced by it.

even() { # every pod has one logical port with its addresses, no port is left over, no address is used twice, no annotation has changed
  ! grep ' changed ' "$tmp/churn" || return
  given_to_nodes | diff "$tmp/given" - && ports_are_right
}
given_to_nodes() { # their subnets and numbers
  kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.annotations.k8s\.ovn\.org/node-subnets} {.metadata.annotations.k8s\.ovn\.org/node-id}{"\n"}{end}' | sort
}
# ovsdb-server logs every request; those over TCP or TLS come from the implementation (the lab itself uses unix sockets)
trace() { # on|off: of NB and SB
  local i k
  for i in $(members); do for k in nb sb; do part $k-"$i" vlog/set "jsonrpc:console:$([ "$1" = on ] && echo dbg || echo info)" || return; done; done
  [ "$1" = off ] || for i in "$D"/log/{nb,sb}-*.log; do stat -c '%n %s' "$i"; done >"$tmp/offsets"
}
# transactions with a write since `trace on`: in NB accepted ones before the one that contains a text, or any; in NB and SB those from these
# remote ports, or in SB alone, where ovn-controllers write too; or those that these members, a word, refused because they are backups, from
# these ports or any, of which there may be so many. (One that ends with "abort" writes nothing: masters ask so whether a server is a backup.)
written() { # before TEXT | any | from PORT... | southbound PORT... | refused MOST MEMBERS [PORT...]
  python3 - "$tmp/offsets" "$@" <<'P'
import json, re, sys
offsets, how, *words = sys.argv[1:]
asked, refused, marker = [], [], None
WRITES = {"insert", "update", "mutate", "delete"}
def claims(transaction): # before its first write a master writes its name
    writes = [op for op in json.loads(transaction)[1:] if op["op"] in WRITES]
    return all(op["table"] in ("NB_Global", "SB_Global") and "ovnkube-master" in json.dumps(op) for op in writes)
for line in open(offsets):
    path, offset = line.split()
    if (how in ("before", "any") and "/sb-" in path) or (how == "southbound" and "/nb-" in path):
        continue
    open_requests = {}
    with open(path, errors="replace") as log:
        log.seek(int(offset))
        for entry in log:
            m = re.search(r'^(\S+?)\|.*\|((?:tcp|ssl):\S+): received request, method="transact", params=(\[.*\]), id=(.*)$', entry)
            ops = json.loads(m[3])[1:] if m else []
            names = [o.get("op") for o in ops if isinstance(o, dict)]
            if "abort" not in names and set(names) & WRITES:
                request = [m[1], m[2].rsplit(":", 1)[1], m[3], None]
                asked.append(request)
                open_requests[m[2], m[4]] = request
            m = re.search(r'\|((?:tcp|ssl):\S+): send (reply|error), (.*), id=(.*)$', entry)
            if m and (m[1], m[4]) in open_requests:
                request = open_requests[m[1], m[4]]
                request[3] = m[2] == "reply" and '"error":"' not in m[3]
                if "read only mode" in m[3]: refused.append([path, request])
asked.sort(key=lambda r: r[0])
if how == "before":
    marker = next((i for i, r in enumerate(asked) if words[0] in r[2] and r[3]), None)
    found = [r for r in asked[:marker] if not claims(r[2])]
    print("the write of the new pod was not seen;" if marker is None else "", len(found), "transactions", *(r[2][:200] for r in found[:2]))
    sys.exit(marker is None or bool(found))
if how == "refused":
    most, backups, *ports = words
    of = [r for path, r in refused if path.rsplit("/", 1)[1].removesuffix(".log") in backups.split()]
    found = [r for r in of if not ports or r[1] in ports]
    print(len(found), "transactions sent to", backups, *(r[2][:200] for r in found[:2]))
    sys.exit(len(found) > int(most))
found = [r for r in asked if how == "any" or r[1] in words]
accepted = [r for r in found if r[3] is not False and not (how == "southbound" and claims(r[2]))]
print(len(found), "transactions,", len(accepted), "not refused", *(r[2][:200] for r in accepted[:2]))
sys.exit(bool(accepted))
P
}
starts_nothing() { # another master takes over and finds everything as it would write it; a new pod proves that writes are seen
  local old before marker
  old=$(try holder) && before=$(starts) && trace on || return
  marker=marker-${EPOCHREALTIME/[.,]/}
  cluster stop "$old" && try started_after "$before" || return
  mend
  sleep 1
  sed "s/NAME/$marker/" >"$tmp/marker.yaml" <<Y
{apiVersion: v1, kind: Pod, metadata: {name: NAME, namespace: $NS}, spec: {nodeName: ${FAKE[0]}, terminationGracePeriodSeconds: 0, tolerations: [{operator: Exists}], containers: [{name: c, image: $IMAGE}]}}
Y
  apply <"$tmp/marker.yaml" && try has_port "$marker" || return
  trace off
  for old in $(master_pids); do sockets_of "$old"; done | sort -u >"$tmp/sockets"
  kubectl delete pod -n $NS "$marker" --force --grace-period=0 >/dev/null 2>&1
  [ -s "$tmp/sockets" ] || { echo "no connection of a master was seen"; return 1; }
  # shellcheck disable=SC2046 # ports are words
  written before "$marker" && written southbound $(cat "$tmp/sockets")
}
has_port() { ports | grep -x "${NS}_$1" >/dev/null; }
dump() { cluster exec cp ovsdb-client -t 20 -f csv dump "unix:$D/db/$1.sock" "$2" | sort; } # MEMBER SCHEMA
same_rows() { # on all members of NB
  local i
  [ "$DB" = raft3 ] || return 0
  for i in 1 2 3; do dump nb-$i OVN_Northbound >"$tmp/rows.$i" || return; done
  [ "$(wc -l <"$tmp/rows.1")" -gt 50 ] && diff -q "$tmp/rows.1" "$tmp/rows.2" && diff -q "$tmp/rows.1" "$tmp/rows.3"
}
settled() { churn_runs && pause && try even && starts_nothing && try same_rows; }
no_restart() { # no master has ended
  local p
  [ "$PIDS" = "$(master_pids)" ] || return
  for p in $PIDS; do ! gone "$p" || { echo "master $p has ended"; return 1; }; done
}
