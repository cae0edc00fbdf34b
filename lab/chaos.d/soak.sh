# Hours of the same. Sourced by chaos-test.

begin_soak() { rows_by_table >"$tmp/rows.before" && [ -s "$tmp/rows.before" ]; }
end_soak() { try_long rows_as_before || { diff "$tmp/rows.before" "$tmp/rows.after" | head -5; return 1; }; }
rows_by_table() { # of NB and SB, without what is learned from packets
  local db schema
  for db in nb sb; do
    [ $db = nb ] && schema=OVN_Northbound || schema=OVN_Southbound
    cluster exec cp ovsdb-client -t 20 -f json dump "unix:$D/db/$(try cluster leader $db).sock" $schema | python3 -c '
import json, sys
for line in sys.stdin:
    table = json.loads(line)
    if table["caption"].split()[0] not in ("MAC_Binding", "FDB"):
        print(sys.argv[1], table["caption"], len(table["data"]))' $db || return
  done
}
rows_as_before() { rows_by_table >"$tmp/rows.after" && cmp -s "$tmp/rows.before" "$tmp/rows.after"; }
sample() { # each process: its name, KiB in memory, of which not pages of its file, open files
  local n p look
  # shellcheck disable=SC2016 # the node's shell, too
  look='echo "$1 $(awk "/^VmRSS/ {all = \$2} /^RssAnon/ {own = \$2} END {print all, own}" "/proc/$2/status") $(ls "/proc/$2/fd" | wc -l)"'
  for n in $(masters); do p=$(pid "$n"); bash -c "$look" _ "$n" "$p"; done
  # shellcheck disable=SC2016 # the node's shell
  for n in $(seq -f 'n%g' "$NODES"); do cluster exec "$n" bash -c "p=\$(cat /run/agent.pid); set -- $n \$p; $look"; done
}
dose_soak() { # pods of real nodes come and go too, one after the other
  local end pods=0 i=0 length
  length=$(seconds 3600); end=$((SECONDS + length)); : >"$tmp/samples"
  while [ $SECONDS -lt $end ]; do
    sample | sed "s/^/$((100 - (end - SECONDS) * 100 / length)) /" >>"$tmp/samples"
    i=$((i + 1))
    real_pod "soak-$i" "n$((i % NODES + 1))" | apply && kubectl wait -n $NS --for=condition=Ready --timeout=120s pod "soak-$i" >/dev/null &&
      kubectl delete pod -n $NS "soak-$i" --wait=false >/dev/null && pods=$((pods + 1))
    sleep $((length > 600 ? 2 : 0))
  done
  echo "$pods of $i pods of real nodes"
  grew && [ $pods = $i ] && no_restart
}
grew() { # between a tenth of the time and the end: memory by 5 % at most, open files not
  python3 - "$tmp/samples" >"$tmp/grew" <<'P'
import collections, statistics, sys
seen, wrong = collections.defaultdict(list), 0
for line in open(sys.argv[1]):
    percent, name, kib, own, files = line.split()
    seen[name].append((int(percent), int(kib), int(own), int(files)))
for name, samples in seen.items():
    early, late = [s for s in samples if 10 <= s[0] <= 20], [s for s in samples if s[0] >= 90]
    if not early or not late:
        print(name, "has too few samples"); wrong = 1; continue
    memory, own, files = ([statistics.median(s[i] for s in part) for part in (early, late)] for i in (1, 2, 3))
    bad = memory[1] > memory[0] * 1.05 or files[1] > files[0] + 1
    wrong |= bad
    print("%s: %.1f then %.1f MiB (%.1f then %.1f without pages of its file), %d then %d open files%s"
          % (name, *(kib / 1024 for kib in memory + own), *files, ", grew" if bad else ""))
sys.exit(wrong)
P
  local rc=$?
  cat "$tmp/grew"; sed 's/^/     /' "$tmp/grew" >>"$tmp/said"
  return $rc
}
