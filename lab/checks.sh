# Shared by the lab's tests and demo: counting, kubectl, pods. Sourced by them.
IMAGE=registry.k8s.io/e2e-test-images/agnhost:2.63.0
passed=0 failed=0
ok() { # WHAT CMD...: must succeed
  local what=$1 out; shift
  if out=$("$@" 2>&1); then passed=$((passed + 1)); echo "ok   $what"; else failed=$((failed + 1)); echo "FAIL $what: $(tail -3 <<<"$out" | cut -c1-300)"; fi
}
no() { # WHAT CMD...: must fail
  local what=$1; shift
  if "$@" >/dev/null 2>&1; then failed=$((failed + 1)); echo "FAIL $what (went through)"; else passed=$((passed + 1)); echo "ok   $what"; fi
}
summary() { echo "$passed passed, $failed failed"; [ "$failed" = 0 ]; }
try() { # CMD...: for state that follows an event, within a minute; how fast is the benchmark's question
  local end=$((SECONDS + 60 * ${LAB_SLOW:-1}))
  until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.5; done
}
fails() { ! "$@"; }
a_moment() { sleep "$((RANDOM % $1)).$(printf %03d $((RANDOM % 1000)))"; } # SECONDS: less than these
stays() { try "$@" && "$@" && "$@" && "$@"; } # CMD...: for what must be so from then on
cluster() { "$HERE/cluster" "$@"; }
kubectl() { "$HERE/cluster" kubectl "$@"; }
apply() { kubectl apply -f - >/dev/null; }
x() { local pod=$1; shift; timeout $((90 * ${LAB_SLOW:-1})) "$HERE/cluster" kubectl exec -n "$NS" "$pod" -- "$@"; }
pod_ip() { kubectl get pod -n "$NS" "$1" -o jsonpath='{.status.podIP}'; }
new_namespace() { # pods need the namespace's service account
  local i
  kubectl create ns "$1" >/dev/null
  for i in $(seq $((300 * ${LAB_SLOW:-1}))); do ! kubectl get sa -n "$1" default >/dev/null 2>&1 || return 0; sleep 0.2; done
  echo "no service account in namespace $1" >&2; return 1
}
ports() { cluster nbctl --bare --columns=name list logical_switch_port; } # names of all logical ports
no_ports() { # NAMESPACE
  local left
  left=$(ports) || return
  ! grep "^$1_" <<<"$left"
}
seconds_since() { echo "$EPOCHREALTIME $1" | awk '{printf "%.1f", $1 - $2}'; }
http() { x "$1" curl -sf -m "${3:-5}" -o /dev/null "http://$2/hostname"; } # POD ADDRESS:PORT [SECONDS]
connected() { x "$1" curl -s -m 2 -o /dev/null -w '%{num_connects}' "telnet://$(at "$2"):$3" </dev/null 2>/dev/null; echo " $?"; }
connects() { [[ $(connected "$@") == "1 "* ]]; } # POD HOST PORT: with TCP
unanswered() { [ "$(connected "$@")" = "0 28" ]; } # POD HOST PORT: not even with a refusal
from() { cluster exec "$1" curl -sf -m "${3:-5}" -o /dev/null "http://$2/hostname"; } # UNIT ADDRESS:PORT [SECONDS]
service() { # NAME SPEC
  printf -- '---\n{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: %s}, spec: {%s}}\n' "$1" "$NS" "$2"
}
service_ip() { kubectl get svc -n $NS "$1" -o jsonpath='{.spec.clusterIP}'; }
starts() { # how often a master has; some of these logs exist
  { cat "$CLUSTER_DIR"/log/{agent-,master}*.log "$CLUSTER_DIR"/nodes/*/var/log/openvswitch/ovnkube.log 2>/dev/null || true; } | grep -c 'everything is written' || true
}
started_after() { [ "$(starts)" -gt "$1" ]; } # STARTS BEFORE
first_of() { # 4|6, reads addresses: the first of the family
  local ip
  for ip in $(cat); do [[ $ip == *:* ]] && [ "$1" = 4 ] || { [[ $ip != *:* ]] && [ "$1" = 6 ]; } || { echo "$ip"; return; }; done
}
node_ip() { kubectl get node "$1" -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}' | first_of $FAM; }
ip_of() { kubectl get pod -n "$NS" "$1" -o jsonpath='{.status.podIPs[*].ip}' | first_of $FAM; } # POD
at() { case $1 in *:*) echo "[$1]" ;; *) echo "$1" ;; esac; } # ADDRESS, as in URLs
no_loss() { # FILE, what a ping that was ended has printed: of 50 packets or more none is lost; the last answer may not have arrived
  python3 - "$1" <<'P'
import re, sys
text = open(sys.argv[1]).read()
# busybox's words, or those of iputils
total = re.search(r"^(\d+) packets transmitted, (\d+) (?:packets )?received.*", text, re.M)
seen = [int(n) for n in re.findall(r"^\d+ bytes from .*seq=(\d+) ", text, re.M)]
lost = sorted(set(range(min(seen), max(seen))) - set(seen)) if seen else ["all"]
print(total and total[0], "lost numbers, ten a second:", *lost[:20])
sys.exit(not total or int(total[1]) < 50 or int(total[2]) < int(total[1]) - 1 or len(seen) != len(set(seen)) or bool(lost))
P
}
# When links of nodes change, tunnels of the userspace datapath lose some packets, and those of the kernel's none: docs/lab.md. DATAPATH
# is the cluster's
loss_between_nodes() { # FILE, as no_loss: packets between nodes
  [ "$DATAPATH" != system ] || { no_loss "$1"; return; }
  sed -n 's/^\([0-9]*\) packets transmitted, \([0-9]*\) .*/\1 \2/p' "$1" | { read -r sent back && echo "$back of $sent" && [ $((sent * 49)) -le $((back * 50)) ] && [ "$sent" -gt 50 ]; }
}
may_be_lost() { if [ "$DATAPATH" = system ]; then echo none; else echo "at most one in 50"; fi; }
gateway_bridge() { cluster exec "$1" ovs-vsctl get Open_vSwitch . external_ids:ovn-bridge-mappings | sed 's/.*physnet:\([^,"]*\).*/\1/'; } # UNIT
source_is() { # ADDRESS CMD...: the client address that the server saw
  local want=$1 have; shift
  have=$("$@") && echo "$have" && [[ $have == "$(at "$want")":* ]]
}
ports_are_right() { # every pod has one logical port with its annotated addresses, no port is left over, no address is used twice
  cluster nbctl --timeout=20 --format=json --columns=name,addresses,external_ids list logical_switch_port >"$tmp/ports.json" &&
    kubectl get pods -A -o json >"$tmp/pods.json" || return
  python3 - "$tmp/ports.json" "$tmp/pods.json" <<'P'
import json, sys
ports, pods, everywhere, wrong = {}, {}, {}, []
for name, addresses, ids in json.load(open(sys.argv[1]))["data"]:
    words = [a.split() for a in (addresses[1] if isinstance(addresses, list) else [addresses]) if ":" in a.split()[0]]
    for w in (x for a in words for x in a):
        everywhere.setdefault(w, []).append(name)
    if ["pod", "true"] in ids[1]:
        ports.setdefault(name, []).append([w for a in words for w in a])
for p in json.load(open(sys.argv[2]))["items"]:
    meta, spec = p["metadata"], p["spec"]
    if spec.get("hostNetwork") or not spec.get("nodeName") or p["status"].get("phase") in ("Succeeded", "Failed"):
        continue
    said = meta.get("annotations", {}).get("k8s.ovn.org/pod-networks")
    net = json.loads(said)["default"] if said else {"mac_address": "none", "ip_addresses": []}
    pods[meta["namespace"] + "_" + meta["name"]] = [[net["mac_address"], *(a.split("/")[0] for a in net["ip_addresses"])]]
wrong += [f"{a} is given to {n}" for a, n in everywhere.items() if len(n) > 1]
wrong += [f"{n}: pod has {a}, port {ports.get(n)}" for n, a in pods.items() if ports.get(n) != a]
wrong += [f"{n}: port without a pod" for n in ports.keys() - pods.keys()]
print(len(pods), "pods,", len(ports), "ports", *wrong[:5], sep="; ")
sys.exit(bool(wrong))
P
}
