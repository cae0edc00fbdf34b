#!/bin/sh
# Measures the OVSDB client against the raw limit and, where it can be built, Go's libovsdb.
# usage: bench/ovsdb/run.sh OUTPUT.md      (LSP, LB, ACL: rows; N: transactions; RUNS: runs per figure)
set -eu
out=$(realpath -m "${1:?usage: run.sh OUTPUT.md}")
cd "$(dirname "$0")"
cargo build --quiet --release -p ovsdb-bench
bin=$(cargo metadata --no-deps --format-version 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/release/ovsdb-bench
schema=${SCHEMA:-/usr/share/ovn/ovn-nb.ovsschema}
go_client() {
  command -v go >/dev/null || return 1
  cd go
  [ -d nbdb ] || { mkdir nbdb && go run github.com/ovn-org/libovsdb/cmd/modelgen -p nbdb -o nbdb "$schema" || { rm -r nbdb; return 1; }; }
  go build -o libovsdb-bench .
}
if (go_client); then python3 bench.py "$out" "$bin" "$PWD/go/libovsdb-bench"; else
  echo "Go's libovsdb cannot be built: measuring without it" >&2
  python3 bench.py "$out" "$bin"
fi
cat "$out"
