#!/usr/bin/env python3
"""Runs every client against its own fresh server and writes two tables.

usage: bench.py OUTPUT RUST_BENCH [GO_BENCH]

Each figure is the median of RUNS runs. CPU is what the client's process used; it depends little
on what else the machine does, times do.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = int(os.environ.get("RUNS", "3"))
COUNT = int(os.environ.get("N", "5000"))
SIZES = {k: int(os.environ.get(k.upper(), v)) for k, v in (("lsp", 10000), ("lb", 5000), ("acl", 20000))}
SCHEMA = os.environ.get("SCHEMA", "/usr/share/ovn/ovn-nb.ovsschema")


class Server:
    """A standalone ovsdb-server of a copy of a database file."""

    def __init__(self, work, db):
        self.db = os.path.join(work, "run.db")
        shutil.copy(db, self.db)
        self.socket = os.path.join(work, "nb.sock")
        self.ctl = os.path.join(work, "ctl.sock")
        args = [f"--remote=punix:{self.socket}", f"--unixctl={self.ctl}", "-vconsole:off", "-vsyslog:off"]
        self.process = subprocess.Popen(["ovsdb-server", *args, self.db], stdin=subprocess.DEVNULL)
        while not os.path.exists(self.socket):
            if self.process.poll() is not None:
                sys.exit("ovsdb-server does not start")
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.unlink(self.socket)

    def cpu(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server, command):
    """Wall, CPU and RSS of a client, what it printed, and the server's CPU."""
    before, start = server.cpu(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit {process.returncode}")
    got = {"wall": time.monotonic() - start, "cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss / 1024,
           "server": server.cpu() - before}
    said = next(line for line in out.splitlines() if line.startswith("RESULT"))
    got.update((k, float(v)) for k, v in (pair.split("=") for pair in said.split()[1:]))
    return got


def median(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def held(is_held):
    return "yes" if is_held else "**no**"


def monitor_table(out, work, base, clients):
    print(f"\n## Initial monitor: {os.path.getsize(base) / 1e6:.1f} MB on disk, all tables and columns\n", file=out)
    print("| client | CPU s | max RSS MiB | wall s | server CPU s | target | held |\n|---|---|---|---|---|---|---|", file=out)
    with Server(work, base) as server:
        for label, raw, command in clients:
            mode = "raw-monitor" if raw else "monitor"
            m = median([measure(server, [command, mode, server.socket]) for _ in range(RUNS)])
            cells = (m["cpu"], m["rss"], m["wall"], m["server"])
            verdict = "≤ 0.2 s, ≤ 80 MiB | " + held(m["cpu"] <= 0.2 and m["rss"] <= 80) if label == "ours" else " | "
            print(f"| {label} | %.3f | %.0f | %.2f | %.2f | {verdict} |" % cells, file=out, flush=True)


def transaction_table(out, work, base, clients, cpu_of_monitor):
    print(f"\n## {COUNT} transactions (insert a port, add it to its switch), everything monitored\n", file=out)
    print("| window | client | txn/s | of raw | p50 ms | p99 ms | CPU per txn µs | target | held |\n|---|---|---|---|---|---|---|---|---|", file=out)
    for window in (1, 16, 100):
        runs = {label: [] for label, _, _ in clients}
        # alternate between clients, so that other load on the machine affects all of them
        for _ in range(RUNS):
            for label, raw, command in clients:
                with Server(work, base) as server:
                    mode = "raw-txn" if raw else "txn"
                    runs[label].append(measure(server, [command, mode, server.socket, str(COUNT), str(window)]))
        limit = median(runs[clients[0][0]])["rate"]
        for label, _, _ in clients:
            m = median(runs[label])
            cpu = (m["cpu"] - cpu_of_monitor[label]) / COUNT * 1e6
            cells = (m["rate"], m["rate"] / limit, m["p50"] / 1000, m["p99"] / 1000, cpu)
            verdict = "≥ 0.95 of raw, ≤ 60 µs | " + held(m["rate"] >= 0.95 * limit and cpu <= 60) if label == "ours" else " | "
            print(f"| {window} | {label} | %.0f | %.2f | %.2f | %.1f | %.0f | {verdict} |" % cells, file=out, flush=True)


def main():
    output, rust, *go = sys.argv[1:]
    clients = [("raw limit", True, rust), ("ours", False, rust)]
    clients += [("Go libovsdb", False, go[0])] if go else []
    work = tempfile.mkdtemp(prefix="ovsdb-bench-")
    try:
        base = os.path.join(work, "base.db")
        subprocess.run(["ovsdb-tool", "create", base, SCHEMA], check=True)
        with Server(work, base) as server:
            sizes = [arg for k, v in SIZES.items() for arg in (f"--{k}", str(v))]
            subprocess.run([sys.executable, os.path.join(HERE, "gen.py"), server.socket, *sizes], check=True)
            subprocess.run(["ovs-appctl", "-t", server.ctl, "ovsdb-server/compact"], check=True)
            shutil.copy(server.db, base)
        with open(output, "w") as out:
            version = subprocess.run(["ovsdb-server", "--version"], capture_output=True, text=True, check=True)
            load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
            print(f"# OVSDB client\n\n{version.stdout.splitlines()[0]}; {os.cpu_count()} cores, load {load}; "
                  f"median of {RUNS}; commit {os.environ.get('COMMIT', 'unknown')}", file=out)
            monitor_table(out, work, base, clients)
            with Server(work, base) as server:
                rest = [(label, measure(server, [c, "raw-txn" if raw else "txn", server.socket, "16", "16"])["cpu"])
                        for label, raw, c in clients]
            transaction_table(out, work, base, clients, dict(rest))
    finally:
        shutil.rmtree(work)


main()
