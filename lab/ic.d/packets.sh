# Packets between the first two clusters while something happens. Sourced by ic-test.

# 100 packets a second, from each pod of the first two clusters to one of the other
ping_from() { # CLUSTER wI ADDRESS...
  on "$1" x "$2" bash -c 'rm -f /tmp/ping.* /tmp/pingers; n=0; for ip; do n=$((n + 1)); setsid ping -i 0.01 "$ip" >/tmp/ping.$n 2>&1 </dev/null & echo $! >>/tmp/pingers; done' _ "${@:3}"
}
pinging() { # of each family
  local c d i ip
  for c in "$A" "$B"; do
    d=$([ "$c" = "$A" ] && echo "$B" || echo "$A")
    for i in 1 2 3; do
      # shellcheck disable=SC2046 # addresses are words
      ping_from "$c" w$i $(pod_ips "$d" w$i)
    done
  done
  sleep 3
}
pinged() { # PACKETS: on no way as many in a row went without an answer, and with 3 not one in a hundred of all; notes the most in the file gap
  local c i n
  sleep 3
  rm -f "$tmp"/ping.*
  for c in "$A" "$B"; do
    for i in 1 2 3; do
      on "$c" x w$i bash -c 'kill -INT $(cat /tmp/pingers); sleep 1'
      for n in $(pod_ips "$c" w$i | grep -n . | cut -d: -f1); do on "$c" x w$i cat /tmp/ping.$n >"$tmp/ping.$c.$i.$n"; done
    done
  done
  longest_gap "$1" "$tmp"/ping.*
}
longest_gap() { # PACKETS FILE...: the pings began three seconds before what is measured
  python3 - "$@" <<'P' | tee "$tmp/gap"; return "${PIPESTATUS[0]}"
import re, sys
worst, where, sum_lost, sum_sent = 0, "", 0, 0
for name in sys.argv[2:]:
    text = open(name).read()
    sent = int((re.search(r"(\d+) packets transmitted", text) or [0, 0])[1])
    seen = [250] + sorted(n for n in map(int, re.findall(r"seq=(\d+) ", text)) if n > 250)
    gaps = [(b - a - 1, a) for a, b in zip(seen, seen[1:] + [max(sent, seen[-1])])]
    sum_lost += sum(gap for gap, _ in gaps if gap > 0)
    sum_sent += max(sent - 250, 0)
    if not sent or max(gaps)[0] > worst:
        worst, where = (max(gaps)[0], f" after number {max(gaps)[1]} of {name.rsplit('/', 1)[-1]}") if sent else (10**6, f" {name}: no ping")
most, ways = int(sys.argv[1]), len(sys.argv) - 2
print(f"{sum_lost} of {sum_sent} lost on {ways} ways, at most {worst / 100} s in a row{where}")
# single packets are lost at any time, but where nothing is to be lost that is no excuse for many
too_many = most <= 3 and sum_lost * 100 > sum_sent
sys.exit(worst >= most or too_many or ways < 6 or sum_sent < 1000)
P
}
nothing_lost() { # CMD...
  pinging; "$@"; local rc=$?
  pinged 3 && return $rc # the datapath of the lab loses single packets between nodes at any time
}
edit() { ok "$@"; echo "     $(cat "$tmp/gap")"; }
control() { # what this machine loses at this load, once the clusters are joined
  ok "all ways before it" soon 90 all_ways
  edit "nothing happens for 10 s: nothing is lost" nothing_lost sleep 10
}
