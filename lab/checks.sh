# What the lab's tests share: counting, kubectl, pods. Sourced by cluster-test, mesh-test and demo.
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
try() { local i; for i in 1 2 3 4 5 6 7 8; do ! "$@" || return 0; sleep 0.5; done; return 1; } # for state that follows an event within seconds
cluster() { "$HERE/cluster" "$@"; }
kubectl() { "$HERE/cluster" kubectl "$@"; }
apply() { kubectl apply -f - >/dev/null; }
x() { local pod=$1; shift; timeout 90 "$HERE/cluster" kubectl exec -n "$NS" "$pod" -- "$@"; }
pod_ip() { kubectl get pod -n "$NS" "$1" -o jsonpath='{.status.podIP}'; }
new_namespace() { # pods need its service account
  local i
  kubectl create ns "$1" >/dev/null
  for i in $(seq 50); do ! kubectl get sa -n "$1" default >/dev/null 2>&1 || return 0; sleep 0.2; done
  echo "no service account in namespace $1" >&2; return 1
}
ports() { cluster nbctl --bare --columns=name list logical_switch_port; } # names of all logical ports
no_ports() { # NAMESPACE
  local left
  left=$(ports) || return
  ! grep "^$1_" <<<"$left"
}
seconds_since() { echo "$EPOCHREALTIME $1" | awk '{printf "%.1f", $1 - $2}'; }
