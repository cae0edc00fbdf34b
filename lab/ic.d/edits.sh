# Edits of the ConfigMap, of Subnets and of transit switches under packets; a gateway that is lost. Sourced by ic-test.

other_name() { configure "$A" az-name=az-renamed && soon 60 in_show "port ts-az-renamed" && soon 60 not_in_show "availability-zone $(az "$A")\$"; }
own_name() { configure "$A" && soon 60 in_show "port ts-$(az "$A")\$" && soon 60 not_in_show "availability-zone az-renamed\$"; }
dead_host() { # the master goes by each of the two lists
  configure "$A" "ic-db-host=$(databases_for "$A" "10.255.0.99,$IC_HOSTS")" && soon 60 moved '10[.]255[.]0[.]99' && sleep 5 && configure "$A" && soon 60 without_dead_host && sleep 5
}
without_dead_host() { local said; said=$(kept) && echo "$said" && ! grep -qE 'present|10[.]255[.]0[.]99' <<<"$said"; }
kept() { on "$A" cluster nbctl get logical_router ovn_cluster_router external_ids:ovnkube-interconnection; } # what the master has taken
# while `present` is there, the cluster has not reached the new databases
moved() { local said; said=$(kept); echo "$said"; grep -q "$1" <<<"$said" && ! grep -q present <<<"$said"; } # PORT
other_ports() { configure "$A" ic-nb-port=16645 ic-sb-port=16646 && soon 60 moved 16645 && sleep 5 && by_ports; }
usual_ports() { configure "$A" && soon 60 moved '[^1]6645' && sleep 5; }
by_ports() { # the master has connections to the second ports
  local said
  said=$(on "$A" cluster exec cp ss -tnH state established; for i in 1 2 3; do on "$A" cluster exec n$i ss -tnH state established; done)
  grep ":16645 *$" <<<"$said" && grep ":16646 *$" <<<"$said"
}
has_mtu() { [ "$(on "$A" cluster nbctl --if-exists get logical_router_port "$(az "$A")-ts" options:gateway_mtu | tr -d '"')" = "$1" ]; } # MTU
smaller_packets() { configure "$A" gateway-mtu=1340 && soon 30 has_mtu 1340 && sleep 5 && configure "$A" && soon 30 has_mtu "" && sleep 5; }
declares() { on "$A" cluster nbctl lr-route-list ovn_cluster_router | grep -F " $1 "; } # PREFIX
another_route() { # to a range in which nobody has a pod
  local to=10.99.7.0/24
  [ "$FAMILY" != v6 ] || to=fd00:99:7::/64
  configure "$A" "routes=$(az "$B") $to" && soon 30 declares "$to" && sleep 5 && configure "$A" && soon 30 fails declares "$to" && sleep 5
}
for_hosts() { configure "$A" host-route=true && soon 30 has_host_routes && sleep 5 && configure "$A" && soon 30 no_host_routes && sleep 5; }
has_host_routes() { host_routes | grep .; }
by_hand_for_a_while() { # automatic routes of both go, and declared ones to the same pods stay
  pinging
  # each side has its own before the other offers nothing any more
  configure "$B" "routes=$(ranges_of "$B" "$A")" && configure "$A" "routes=$(ranges_of "$A" "$B")" && sleep 5 &&
    configure "$A" auto-route=false "routes=$(ranges_of "$A" "$B")" && configure "$B" auto-route=false "routes=$(ranges_of "$B" "$A")" &&
    soon 60 fails shows_learned && sleep 5 &&
    configure "$A" "routes=$(ranges_of "$A" "$B")" && configure "$B" "routes=$(ranges_of "$B" "$A")" && soon 60 shows_learned && sleep 5
  local rc=$?
  both_configured; sleep 5
  pinged 100 && return $rc
}
close_range() { # RANGE true|false: of nodes that do not exist, in the middle of the first cluster's
  printf '{apiVersion: kubeovn.io/v1, kind: Subnet, metadata: {name: closed}, spec: {cidrBlock: %s, disableInterConnection: %s}}\n' "$1" "$2" | on "$A" apply
}
range_closed() { # true|false: the other cluster has a route to what is beside it only then
  close_range 10.244.128.0/24 "$1" || return
  [ "$FAMILY" = v6 ] || if [ "$1" = true ]; then soon 30 has_route_beside; else soon 30 fails has_route_beside; fi || return
  sleep 5
}
has_route_beside() { on "$B" cluster nbctl --bare --columns=_uuid find logical_router_static_route ip_prefix=10.244.129.0/24 | grep .; }
more_switches() { ic switches 5 && soon 120 ports_at 5; }
less_switches() { pinging; ic switches 3 && soon 120 ports_at 3; pinged 100; }
other_gateways() { pinging; configure "$A" gw-nodes=n3,n1,n2; sleep 10; configure "$A"; sleep 10; pinged 100; }
has_gateways() { [ "$(on "$A" cluster nbctl lrp-get-gateway-chassis "$(az "$A")-ts" | grep -c .)" = "$1" ]; } # N
few_gateways() {
  pinging
  configure "$A" gw-nodes=n1 && soon 60 has_gateways 1 && sleep 10
  local rc=$?
  pinged 100 && return $rc
}
# OVN sees by BFD which of several gateways works. Where it begins to, the gateway that had the ports gives them up until BFD has answers
more_gateways() {
  pinging
  configure "$A" && soon 60 has_gateways 3 && sleep 15
  local rc=$?
  pinged 200 && return $rc
}
edits() {
  control
  edit "az-name is changed: nothing is lost" nothing_lost other_name
  edit "and back" nothing_lost own_name
  edit "ic-db-host gets a host that is dead, and loses it: nothing is lost" nothing_lost dead_host
  edit "ic-nb-port and ic-sb-port are others: nothing is lost" nothing_lost other_ports
  edit "and back" nothing_lost usual_ports
  edit "gateway-mtu comes and goes: nothing is lost" nothing_lost smaller_packets
  edit "routes gets a line, and loses it: nothing is lost" nothing_lost another_route
  edit "host-route comes and goes: nothing is lost between pods" nothing_lost for_hosts
  edit "a range is closed: nothing is lost" nothing_lost range_closed true
  edit "and opened" nothing_lost range_closed false
  edit "transit switches 3 to 5: nothing is lost" nothing_lost more_switches
  edit "5 to 3: at most a second is lost" less_switches
  edit "gw-nodes in another order: at most a second is lost" other_gateways
  edit "gw-nodes from three to one: at most a second is lost" few_gateways
  edit "gw-nodes from one to three: at most two seconds are lost" more_gateways
  [[ $IMPL == *stock* ]] || edit "auto-route off with the same routes declared, and on: at most a second is lost" by_hand_for_a_while
}
# Two ways to lose n3 of the second cluster, and to have it again: the network between the hosts, which node agents and ovn-controller
# survive; and what carries packets there. That has the host's own address, too, so that nothing of the host is reached
cut_gateway() { ic cut "$B" n3; }
mend_gateway() { ic mend "$B" n3; }
kill_gateway() { on "$B" cluster kill controller-n3 && on "$B" cluster kill vswitchd-n3; }
start_gateway() { on "$B" cluster start vswitchd-n3 && on "$B" cluster start controller-n3; }
# From and to pods of that host there is no way, from and to the others there is another one
gateway_lost() { # MOST-PACKETS WHAT LOSE HAVE-AGAIN
  local c d i
  for c in "$A" "$B"; do
    d=$([ "$c" = "$A" ] && echo "$B" || echo "$A")
    for i in 1 2; do
      # shellcheck disable=SC2046 # addresses are words
      ping_from "$c" w$i $(pod_ips "$d" w1) $(pod_ips "$d" w2)
    done
  done
  sleep 3
  ok "n3 of $B is lost" "$3"
  sleep 15
  rm -f "$tmp"/ping.*
  for c in "$A" "$B"; do
    for i in 1 2; do
      on "$c" x w$i bash -c 'kill -INT $(cat /tmp/pingers); sleep 1; tail -n 100000 /tmp/ping.*' >"$tmp/all.$c.$i"
      csplit -s -z -f "$tmp/ping.$c.$i." "$tmp/all.$c.$i" '/^==> /' '{*}'
    done
  done
  edit "$2" longest_gap "$1" "$tmp"/ping.*
  no "that gateway had carried some" grep -q "at most 0\.0[0-9]* s" "$tmp/gap" # else nothing was tested
  ok "n3 of $B is there again" "$4"
  ok "all ways" soon 120 all_ways
}
lost() {
  local c
  gateway_lost 500 "a gateway is not reached: others carry its packets within 5 s" cut_gateway mend_gateway
  gateway_lost 500 "a gateway's ovn-controller and ovs-vswitchd are killed: within 5 s" kill_gateway start_gateway
  for c in "${clusters[@]}"; do on "$c" cluster nbctl set NB_Global . options:bfd-min-rx=200; done
  sleep 5 # until all sessions have the new interval
  gateway_lost 100 "not reached, with bfd-min-rx=200: within 1 s" cut_gateway mend_gateway
  gateway_lost 100 "killed, with bfd-min-rx=200: within 1 s" kill_gateway start_gateway
  for c in "${clusters[@]}"; do on "$c" cluster nbctl remove NB_Global . options bfd-min-rx; done
}

# ---- three clusters ----
leaves() { # pings of the first two clusters go on meanwhile
  [ ${#clusters[@]} = 3 ] || { no "leaves needs three clusters" true; return; }
  control
  edit "a third cluster leaves: the others lose nothing" nothing_lost third_leaves
  no "it has no way any more" one_way "$C" w2 "$A"
  edit "it comes back: the others lose nothing" nothing_lost third_returns
  edit "enable-ic of it is false, and true again: the others lose nothing" nothing_lost third_disabled
  ok "three clusters: all ways" soon 90 all_ways
}
third_leaves() { leave "$C" && soon 60 not_in_show "availability-zone $(az "$C")\$" && soon 60 learned "$C" 0 -eq && sleep 5; }
third_returns() { configure "$C" && soon 60 in_show "port ts-$(az "$C")\$" && soon 60 learned "$A" 6 && sleep 5; }
third_disabled() { configure "$C" enable-ic=false && soon 60 not_in_show "availability-zone $(az "$C")\$" && sleep 5 && third_returns; }
