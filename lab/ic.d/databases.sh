# The databases and the masters of joined clusters end. Sourced by ic-test.

databases() {
  local d
  on "$A" x w2 bash -c 'setsid ping -i 0.1 "$1" >/tmp/ping 2>&1 </dev/null & echo $! >/tmp/pinger' _ "$(sed -n 1p "$tmp/ips.$B")"
  d=$(ic leader sb)
  ic kill "$d"
  if [ "$MEMBERS" = 3 ]; then
    ok "another member leads" soon 30 ic leader sb
    ok "and takes writes" soon 30 ic icnbctl set IC_NB_Global . external_ids:written=yes
    configure "$A" gw-nodes=n2,n1,n3
    ok "a change of gateways reaches the other cluster meanwhile" soon 60 in_order n2
    configure "$A"
  else sleep 5; fi
  ok "the member is back" ic start "$d"
  ok "all gateways in order" soon 60 in_order n1
  on "$A" x w2 bash -c 'kill -INT $(cat /tmp/pinger); sleep 0.5'
  on "$A" x w2 cat /tmp/ping >"$tmp/ping"
  [ "$MEMBERS" = 3 ] || ok "pings between the clusters lost nothing" no_loss "$tmp/ping"
  ok "all ways" soon 60 all_ways
}
closed() { close_range 10.244.200.0/24 "$1"; } # true|false
piece() { on "$B" cluster nbctl --bare --columns=_uuid find logical_router_static_route ip_prefix=10.244.201.0/24 | grep -q .; } # what is offered beside it
now() { date +%s%3N; }
next_route() { # true|false: seconds until the other cluster follows
  local start end
  start=$(now) end=$((SECONDS + 30))
  closed "$1" || return
  until if [ "$1" = true ]; then piece; else ! piece; fi; do [ $SECONDS -lt $end ] || { echo "the other cluster does not follow"; return 1; }; done
  echo $(($(now) - start)) >>"$tmp/route"
}
both_lead() { ic leader nb && ic leader sb; } # a host has a member of each
elected() { # within 30 s; looks often, since what takes time after an election is timed from here
  local end=$((SECONDS + 30))
  until both_lead >/dev/null 2>&1; do [ $SECONDS -lt $end ] || { both_lead; return; }; sleep 0.1; done
}
a_leader_dies() { # nb|sb true|false
  local d
  d=$(ic leader "$1") && ic kill "$d" && elected && next_route "$2"
  local rc=$?
  ic start "$d"; return $rc
}
leaders() {
  local i
  rm -f "$tmp/route"
  # the first change of a Subnet takes kubectl and the API server up to eight seconds, which is no matter of an election
  closed false && closed true && closed false
  control
  pinging
  for i in $(seq 10); do
    ok "leader of the southbound one dies, $i" a_leader_dies sb true
    ok "leader of the northbound one dies, $i" a_leader_dies nb false
  done
  edit "nothing is lost meanwhile" pinged 3
  ok "a route is there within 2 s of each election" within_two
  echo "     in ms: $(paste -sd' ' "$tmp/route")"
}
within_two() { sort -n "$tmp/route" | awk '{t = $1} END {print t " ms"; exit NR < 20 || t > 2000}'; }
in_order() { # NODE: it is where the other cluster sends what goes over ts
  local port
  port=$(ic icsbctl --bare --columns=gateway find Port_Binding logical_port="ts-$(az "$A")")
  [ "$(ic icsbctl --bare --columns=hostname find Gateway name="$port")" = "$1" ]
}

# ---- the master of the first cluster ----
holder() { # the daemon of `cluster` that holds the lease
  local who
  who=$(on "$A" kubectl get lease -n ovn-kubernetes ovn-kubernetes-master -o jsonpath='{.spec.holderIdentity}') || return
  case ${MASTER:-}-$who in -n[1-9]) echo "$who" ;; master-n1) echo master ;; master-n[2-9]) echo "master-${who#n}" ;; *) echo "the lease is held by \"$who\"" >&2; return 1 ;; esac
}
rows() { # DATABASE-COMMAND... -- TABLE=COLUMNS...: sorted
  local command=() t
  while [ "$1" != -- ]; do command+=("$1"); shift; done
  shift
  for t; do "${command[@]}" --format=csv --no-headings --columns="${t#*=}" list "${t%%=*}" | sed "s/^/${t%%=*},/" | sort || return; done
}
all_rows() { # of the interconnection, and all others of these tables; without what changes by itself, such as whether a port is up
  local c
  for c in "${clusters[@]}"; do
    echo "$c"
    rows on "$c" cluster nbctl -- Logical_Switch=_uuid,name,other_config,external_ids,ports Logical_Switch_Port=_uuid,name,type,addresses,options,external_ids \
      Logical_Router_Port=_uuid,name,mac,networks,options,gateway_chassis,external_ids Gateway_Chassis=_uuid,name,chassis_name,priority,external_ids \
      Logical_Router_Static_Route=_uuid,ip_prefix,nexthop,policy,options,external_ids Logical_Router_Policy=_uuid,priority,match,action,nexthops,options,external_ids || return
  done
  rows ic icnbctl -- Transit_Switch=_uuid,name,other_config,external_ids || return
  rows ic icsbctl -- Availability_Zone=_uuid,name Gateway=_uuid,name,hostname,availability_zone,encaps,external_ids Encap=_uuid,type,ip,gateway_name \
    Datapath_Binding=_uuid,transit_switch,tunnel_key Port_Binding=_uuid,logical_port,availability_zone,transit_switch,gateway,tunnel_key,address,external_ids \
    Route=_uuid,availability_zone,transit_switch,ip_prefix,nexthop,origin,route_table,external_ids
}
as_before() { # shows what differs
  all_rows >"$tmp/rows.after" && diff "$tmp/rows.before" "$tmp/rows.after" >"$tmp/rows.diff" && return
  head -n 8 "$tmp/rows.diff"; return 1
}
kill_once() { # I: an edit is under way every second time
  local who before
  soon 30 holder && who=$(cat "$tmp/said") || { echo "nobody holds the lease"; return 1; }
  before=$(starts)
  if [ $(($1 % 2)) = 1 ]; then configure "$A" gateway-mtu=1340; else configure "$A"; fi
  a_moment 2
  on "$A" cluster kill "$who" || return
  a_moment 1
  on "$A" cluster start "$who" || return
  # the next one mostly comes before everything is written, sometimes after
  [ $(($1 % 4)) != 0 ] || try started_after "$before"
}
kills() {
  local i before
  [ "$(on "$A" impl)" = ovnkube ] || { no "kills needs ovnkube in the first cluster" true; return; }
  both_configured
  ok "all ways" soon 90 all_ways
  sleep 5
  all_rows >"$tmp/rows.before" && grep -q "^Route," "$tmp/rows.before" || { no "no rows can be read" true; return; }
  control
  pinging
  for i in $(seq 20); do
    before=$(starts)
    ok "the master is killed, $i of 20" kill_once "$i"
  done
  ok "its last start is over" try started_after "$before"
  ok "rows are those of before" soon 60 as_before
  edit "nothing is lost meanwhile" pinged 3
  ok "all ways" soon 60 all_ways
}
