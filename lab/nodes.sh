# nodes.sh - for tests that remove node n2 and bring it back: the state of hosts and databases, and the Node itself. Sourced after
# checks.sh; $tmp is the test's.
# shellcheck shell=bash
within() { # SECONDS CMD...: retries CMD after an event; on failure shows the last try's output
  local end=$((SECONDS + $1 * ${LAB_SLOW:-1})); shift
  until "$@" >"$tmp/said" 2>&1; do [ $SECONDS -lt $end ] || { cat "$tmp/said"; return 1; }; sleep 0.5; done
}
# ---- state ----
rows() { # of each table, except those that OVN fills from packets
  local db
  for db in nb:OVN_Northbound sb:OVN_Southbound; do
    cluster exec cp ovsdb-client -f json dump "unix:$CLUSTER_DIR/db/${db%:*}-1.sock" "${db#*:}" | python3 -c '
import json, sys
for line in sys.stdin:
    table = json.loads(line) if line.strip() else None
    if table and table["caption"].split()[0] not in ("MAC_Binding", "FDB"):
        print(sys.argv[1], table["caption"].split()[0], len(table["data"]))' "${db%:*}"
  done
}
agent_files() { cluster exec "$1" bash -c 'ls /proc/$(cat /run/agent.pid)/fd | wc -l'; }
host_of() { # NODE: its flows, nftables, routes and everything else the agent writes there
  cluster exec "$1" bash -c '
    echo "br-int $(ovs-ofctl -O OpenFlow15 dump-flows br-int 2>/dev/null | grep -vc NXST) flows"
    ovs-ofctl --no-stats dump-flows br-ex | sort
    nft -s list ruleset 2>/dev/null
    for f in -4 -6; do ip $f -br addr; ip $f rule; ip $f route show table all; ip $f neigh show nud permanent | sort; done
    ovs-vsctl --bare --columns=name list interface | sort | sed /^$/d; cat /proc/sys/net/ipv{4,6}/conf/{br-ex,ovn-k8s-mp0}/forwarding /proc/sys/net/ipv4/conf/{br-ex,ovn-k8s-mp0}/rp_filter 2>/dev/null; true'
}
# the node's subnet and tunnel names may differ: the numbers of each kind must be equal
sizes() { host_of "$1" | sed -E 's|^[0-9a-f]{15}|pod|' | awk '{sub(/=.*|[0-9].*/, "", $1); n[$1]++} /^br-int/ {flows = $2} END {for (k in n) print k, n[k]; print "br-int", flows}' | sort; }
is_as() { # FILE CMD...: CMD prints the content of FILE; the first call creates FILE
  local file=$tmp/$1; shift
  [ -e "$file" ] || { "$@" >"$file"; return; }
  "$@" >"$file.now" && diff "$file" "$file.now"
}
settled() { # CMD...: prints CMD's output once it has not changed for a while: later states are compared with it
  local a= b same=0
  while [ $same -lt 3 ]; do
    b=$("$@")
    if [ "$a" = "$b" ]; then same=$((same + 1)); else same=0 a=$b; fi
    sleep 2
  done
  echo "$a"
}

# ---- n2 ----
keep_node() { # as the kubelet would create it: without what the agent and the master have written
  kubectl get node n2 -o json | python3 -c '
import json, sys
node = json.load(sys.stdin)
node["metadata"] = {"name": "n2", "labels": node["metadata"]["labels"]}
node["spec"] = {}
json.dump(node, open(sys.argv[1] + "/node.json", "w"))
json.dump({"status": {"addresses": node["status"]["addresses"]}}, open(sys.argv[1] + "/status.json", "w"))' "$tmp"
}
make_node() {
  kubectl create -f "$tmp/node.json" >/dev/null && kubectl patch node n2 --subresource=status --type=merge --patch-file "$tmp/status.json" >/dev/null
}
node_is_gone() { ! kubectl get node n2 >/dev/null 2>&1; }
delete_pods() { kubectl delete pod -n $NS b --force --grace-period=0 --ignore-not-found >/dev/null 2>&1; }
delete_node() { kubectl delete node n2 --timeout=120s >/dev/null && node_is_gone; }
new_chassis() { cluster exec n2 ovs-vsctl set Open_vSwitch . external_ids:system-id="$(cat /proc/sys/kernel/random/uuid)"; }
mgmt_ip() { # NODE [4|6]: of its management port; without a family, in the first subnet
  kubectl get node "$1" -o json | python3 -c '
import ipaddress, json, sys
subnets = json.loads(json.load(sys.stdin)["metadata"]["annotations"]["k8s.ovn.org/node-subnets"])["default"]
subnets = [ipaddress.ip_network(subnet) for subnet in subnets]
print(next(subnet[2] for subnet in subnets if sys.argv[1] in ("", str(subnet.version))))' "${2:-}"
}
