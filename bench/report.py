#!/usr/bin/env python3
"""report.py DIR - the table of bench/results.md out of what a run left in DIR. Targets are those of TARGETS.md."""
import datetime
import json
import os
import platform
import statistics
import sys

NAMES = {"ovnkube": "ours", "peer": "Go", "peer-unlimited": "Go, no limit"}


class Run:
    """What one controller did."""

    def __init__(self, directory):
        self.directory = directory
        self.phases = {}
        for line in open(os.path.join(directory, "phases")):
            fields = dict(pair.split("=") for pair in line.split())
            name = fields.pop("phase")
            self.phases[name] = {key: float(value) for key, value in fields.items()}

    def json(self, name):
        with open(os.path.join(self.directory, name + ".json")) as file:
            return json.load(file)

    def cpu(self, start, end):
        """CPU seconds between two phases of one process; from its start with start = None."""
        return self.phases[end]["cpu"] - (self.phases[start]["cpu"] if start else 0)

    def between(self, key, start, end):
        return self.phases[end][key] - self.phases[start][key]


class Runs:
    """The runs of one controller under one load."""

    def __init__(self, directory):
        self.all = [Run(os.path.join(directory, n)) for n in sorted(os.listdir(directory))]

    def median(self, how):
        return statistics.median(how(run) for run in self.all)

    def loads(self):
        return [phase["load"] for run in self.all for phase in run.phases.values()]


def caption(what, runs):
    """Under which load, and of which commit, a table was measured."""
    loads = [load for one in runs for load in one.loads()]
    times = f"median of {env('RUNS')}" if env("RUNS") > 1 else "one run"
    return f"{what} Commit {os.environ['COMMIT']}; load average {min(loads):.1f} to {max(loads):.1f}; {times}.\n"


def held(is_held):
    return "yes" if is_held else "**no**"


def env(name):
    return int(os.environ[name])


# what, unit format, how, target as text, our bound, bound as a share of (run, figure)
ROWS = [
    ("cold start until the northbound database has all", "{:.2f} s", lambda r: r.json("cold")["northbound_seconds"], None, [("peer-unlimited", 0.15)]),
    ("cold start until all is annotated too", "{:.2f} s", lambda r: r.json("cold")["seconds"], None, []),
    ("limit: the load generator alone annotates as many", "{:.2f} s", lambda r: r.json("limit")["seconds"], None, []),
    ("cold start with annotations in terms of that limit", "{:.2f} ×", lambda r: r.json("cold")["seconds"] / r.json("limit")["seconds"], 1.2, []),
    ("CPU of the cold start", "{:.2f} s", lambda r: r.cpu(None, "settled"), None, [("peer-unlimited", 0.1)]),
    ("burst, pods a second", "{:.0f}", lambda r: r.json("burst")["pods_per_second"], None, []),
    ("burst, pod to port p50", "{:.0f} ms", lambda r: r.json("burst")["port_ms"]["p50"], 30, []),
    ("burst, last port after the last post, of the time to post", "{:.1f} %", lambda r: 100 * r.json("burst")["port_after_posting_seconds"] / r.json("burst")["posting_seconds"], 5, []),
    ("burst, pod to annotation p50", "{:.0f} ms", lambda r: r.json("burst")["annotation_ms"]["p50"], None, []),
    ("CPU for each pod added", "{:.2f} ms", lambda r: 1000 * r.cpu("settled", "burst") / env("BURST"), 0.25, []),
    ("steady, pod to port p50", "{:.1f} ms", lambda r: r.json("steady")["port_ms"]["p50"], 1.8, []),
    ("steady, pod to port p99", "{:.1f} ms", lambda r: r.json("steady")["port_ms"]["p99"], 5, []),
    ("burst deleted", "{:.2f} s", lambda r: r.json("delete")["seconds"], None, []),
    ("memory, most (RSS)", "{:.1f} MiB", lambda r: r.phases["delete"]["peak"], 27, [("peer-unlimited", 1 / 6)]),
    ("restart to first new pod", "{:.2f} s", lambda r: r.json("restart")["since_clock"], 0.1, []),
    ("CPU of a restart, nothing changed", "{:.2f} s", lambda r: r.cpu(None, "idle-restart"), 0.1, []),
    ("NB transactions of that restart", "{:.0f}", lambda r: r.between("transactions", "restart", "idle-restart"), 0, []),
    ("NB transactions up to the deletion", "{:.0f}", lambda r: r.phases["delete"]["transactions"], 600, []),
    ("northd CPU up to the deletion", "{:.2f} s", lambda r: r.phases["delete"]["northd"], None, [("peer-unlimited", 0.6)]),
    ("NB server CPU up to the deletion", "{:.2f} s", lambda r: r.phases["delete"]["nb_server"], None, []),
]


def verdict(values, bound, shares):
    """The target in words, and whether ours holds it; a negative share means at least."""
    ours, words, holds = values["ovnkube"], [], True
    if bound is not None:
        words.append(f"≤ {bound:g}")
        holds &= ours <= bound
    for peer, share in shares:
        at_least = share < 0
        words.append(f"{'≥' if at_least else '≤'} {abs(share):.2g} × {NAMES[peer]}")
        if peer in values:
            holds &= ours >= -share * values[peer] if at_least else ours <= share * values[peer]
    # a target that is a share of a peer that was not measured has no verdict, unless another part is missed already
    whole = words and all(peer in values for peer, _ in shares)
    return ", ".join(words), held(holds) if whole or not holds else ""


def controller_table(runs):
    peers = [name for name in NAMES if name in runs and name != "ovnkube"]
    head = ["", "ours", *(NAMES[p] for p in peers), *(f"ours / {NAMES[p]}" for p in peers), "target", "held"]
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for what, unit, how, bound, shares in ROWS:
        values = {name: runs_of.median(how) for name, runs_of in runs.items()}
        cells = [unit.format(values[name]) for name in ["ovnkube", *peers]]
        ratios = [f"{values['ovnkube'] / values[p]:.2f}" if values[p] else "–" for p in peers]
        yield "| " + " | ".join([what, *cells, *ratios, *verdict(values, bound, shares)]) + " |"


def growth_table(grown):
    """What one pod more costs, which is to stay what it is with the fewest pods."""
    yield "| pods | CPU of the cold start for each pod | CPU for each pod added | memory, most (RSS) | cold start | takeover after a stop | takeover after a kill | target | held |"
    yield "|---" * 9 + "|"
    smallest = None
    for pods, runs in grown:
        cold = 1000 * runs.median(lambda r: r.cpu(None, "settled")) / pods
        add = 1000 * runs.median(lambda r: r.cpu("settled", "burst")) / env("BURST")
        peak, took = runs.median(lambda r: r.phases["burst"]["peak"]), runs.median(lambda r: r.json("cold")["seconds"])
        stop, kill = (runs.median(lambda r: r.json(f"takeover-{how}")["seconds"]) for how in ("stop", "kill"))
        smallest = smallest or (cold, add)
        is_first = (cold, add) == smallest
        target = "takeover after a stop ≤ 2 s" if is_first else "the same; ≤ 1.3 × the first line"
        holds = stop <= 2 and (is_first or (cold <= 1.3 * smallest[0] and add <= 1.3 * smallest[1]))
        yield f"| {pods} | {cold:.2f} ms | {add:.2f} ms | {peak:.1f} MiB | {took:.2f} s | {stop:.2f} s | {kill:.2f} s | {target} | {held(holds)} |"


# what, unit format, how, the target as a share of the peer's value
POLICY_ROWS = [
    ("{n} policies, CPU of the cold start", "{:.2f} s", lambda r: r.cpu(None, "settled"), 1 / 6),
    ("{n} policies, cold start", "{:.2f} s", lambda r: r.json("cold")["seconds"], None),
    ("one pod added under 200 policies, beside {n} others: CPU", "{:.2f} ms", lambda r: 1000 * r.cpu("crowd", "under") / 200, 1 / 6),
    ("one pod added under 200 policies, beside {n} others: pod to port p50, 40 a second", "{:.1f} ms", lambda r: r.json("under")["port_ms"]["p50"], None),
    ("one label lets 500 pods in or not, beside {n} policies: CPU", "{:.1f} ms", lambda r: 1000 * r.cpu("flippable", "flip") / 40, 1 / 6),
    ("one label lets 500 pods in or not, beside {n} policies: label to addresses p50", "{:.0f} ms", lambda r: r.json("flip")["flip_ms"]["p50"], None),
    ("{n} policies, memory, most (RSS)", "{:.1f} MiB", lambda r: r.phases["flip"]["peak"], 1 / 6),
    ("{n} policies, CPU of a restart, nothing changed", "{:.2f} s", lambda r: r.cpu(None, "idle-restart"), 1 / 6),
]


def policies_table(steps):
    yield "|  | ours | Go, no limit | ours / Go, no limit | target | held |"
    yield "|---" * 6 + "|"
    for what, unit, how, share in POLICY_ROWS:
        for n, runs in steps:
            values = {name: runs_of.median(how) for name, runs_of in runs.items()}
            peer = values.get("peer-unlimited")
            ratio = values["ovnkube"] / peer if peer else None
            target = f"≤ {share:.2g} × {NAMES['peer-unlimited']}" if share else ""
            verdict = held(ratio <= share) if share and ratio is not None else ""
            cells = [what.format(n=n), unit.format(values["ovnkube"]), unit.format(peer) if peer else "–"]
            yield "| " + " | ".join([*cells, f"{ratio:.2f}" if ratio is not None else "–", target, verdict]) + " |"


# what, unit format, how, the target as a share of the peer's value
SERVICE_ROWS = [
    ("cold start", "{:.2f} s", lambda r: r.json("cold")["seconds"], None),
    ("CPU of the cold start", "{:.2f} s", lambda r: r.cpu(None, "settled"), 1 / 6),
    ("CPU for each change", "{:.2f} ms", lambda r: 1000 * r.cpu("settled", "endpoints") / env("CHANGES"), 0.25),
    ("change to load balancers, p50", "{:.1f} ms", lambda r: r.json("endpoints")["change_ms"]["p50"], None),
    ("change to load balancers, p99", "{:.1f} ms", lambda r: r.json("endpoints")["change_ms"]["p99"], None),
    ("rows written for each change", "{:.2f}", lambda r: r.between("balancers", "settled", "endpoints") / env("CHANGES"), 1),
    ("NB bytes for each change", "{:.0f}", lambda r: r.between("bytes", "settled", "endpoints") / env("CHANGES"), None),
    ("memory, most (RSS)", "{:.1f} MiB", lambda r: r.phases["endpoints"]["peak"], 1 / 6),
]


def services_table(counts):
    yield "|  | ours | Go | ours / Go | target | held |"
    yield "|---" * 6 + "|"
    for what, unit, how, share in SERVICE_ROWS:
        for count, runs in counts:
            ours, peer = runs["ovnkube"].median(how), runs["peer"].median(how) if "peer" in runs else None
            ratio = ours / peer if peer else None
            cells = [f"{count} services, {what}", unit.format(ours), unit.format(peer) if peer is not None else "–", f"{ratio:.2f}" if ratio is not None else "–"]
            verdict = held(ratio <= share) if share and ratio is not None else ""
            yield "| " + " | ".join([*cells, f"≤ {share:.2g} × Go" if share else "", verdict]) + " |"


def cni_table(out, names):
    """How long the CNI's ADD takes; all the pods of all runs together."""
    found = {}
    for name in names:
        runs = [json.load(open(os.path.join(out, f"cni-{name}", n, "cni.json"))) for n in sorted(os.listdir(os.path.join(out, f"cni-{name}")))]
        found[name] = {key: sorted(ms for run in runs for ms in run[key]) for key in ("add_ms", "program_ms")}
        found[name]["loads"] = [run["load"] for run in runs]
        found[name]["failed"] = sum(run["failed"] for run in runs)
    loads = [load for one in found.values() for load in one["loads"]]
    count = len(found["ovnkube"]["add_ms"])
    failed = ", ".join(f"{one['failed']} ({NAMES[name]})" for name, one in found.items())
    yield f"Two nodes with a kubelet each, Open vSwitch in userspace; {count} pods in {env('RUNS')} clusters one after the other, each pod half a second after the one before. ADDs that failed: {failed}. Commit {os.environ['COMMIT']}; load average {min(loads):.1f} to {max(loads):.1f}.\n"
    yield "|  | ours | Go | ours / Go | target | held |"
    yield "|---" * 6 + "|"
    for what, key, share, bound in CNI_ROWS:
        at = lambda name: (lambda values: values[int(share * len(values))] if values else None)(found.get(name, {}).get(key))
        ours, peer = at("ovnkube"), at("peer")
        text = lambda value: f"{value:.1f} ms" if value is not None else "–"
        ratio = f"{ours / peer:.2f}" if ours is not None and peer else "–"
        yield "| " + " | ".join([what, text(ours), text(peer), ratio, f"≤ {bound}" if bound else "", held(ours <= bound) if bound and ours is not None else ""]) + " |"


# what, key of cni.json, which share of the pods is faster, our bound
CNI_ROWS = [
    ("ADD, p50", "add_ms", 0.5, 150),
    ("ADD, p99", "add_ms", 0.99, None),
    ("of it the program that the runtime starts, with its start, p50; up to 1 ms too high, since the agent's figure is in whole ms", "program_ms", 0.5, 3),
]


# what the numbers of a line say: what, unit, our bound
INTERCONNECTION_ROWS = [
    ("one prefix more, until the northbound database has it, p50", "ms", 50),
    ("the same, the slowest of 20", "ms", None),
    ("the same, CPU of the controller", "ms", 5),
    ("one prefix more that this cluster offers, until the shared southbound database has it, p50", "ms", 50),
    ("the same, the slowest of 20", "ms", None),
    ("the same, CPU of the controller", "ms", 5),
    ("one pod beside them, CPU of the controller", "ms", None),
    ("one pod without joined clusters, CPU of the controller", "ms", None),
]


def interconnection_table(lines):
    runs = [[float(word) for word in line.split()[1:]] for line in lines]
    medians = [statistics.median(values) for values in zip(*runs)]
    yield "| what | ovnkube | target | held |"
    yield "|---|---|---|---|"
    for (what, unit, bound), value in zip(INTERCONNECTION_ROWS, medians):
        yield f"| {what} | {value:.2f} {unit} | {f'≤ {bound} {unit}' if bound else ''} | {held(value <= bound) if bound else ''} |"
    beside, without = medians[6:]
    yield f"| of one pod: beside them / without | {beside / without:.2f} | ≤ 1.1 | {held(beside <= 1.1 * without)} |"


def sizes_table(lines):
    targets = {"ovnkube": 16, "ovn-k8s-cni-overlay": 0.5}
    yield "| file | size | target | held |"
    yield "|---|---|---|---|"
    for n, line in enumerate(lines):
        path, size = line.rsplit(" ", 1)
        name = os.path.basename(path)
        if n < len(targets):
            yield f"| {name} | {int(size) / 1e6:.2f} MB | ≤ {targets[name]} MB | {held(int(size) <= targets[name] * 1e6)} |"
        else:
            yield f"| {name} (Go) | {int(size) / 1e6:.2f} MB |  |  |"


def machine():
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} × {model}, {memory:.0f} GiB, Linux {platform.release()}"


def main():
    out, e = sys.argv[1], os.environ
    there = lambda name: os.path.exists(os.path.join(out, name, "1", "phases"))
    runs_in = lambda name: Runs(os.path.join(out, name))
    runs = {name: runs_in(name) for name in NAMES if there(name)}
    grown = sorted((int(name.split("-")[1]), runs_in(name)) for name in os.listdir(out) if name.startswith("growth-") and there(name))
    steps, services = {}, {}
    for kind, into in (("policies", steps), ("services", services)):
        for name in os.listdir(out):
            if name.startswith(kind + "-") and there(name):
                _, n, controller = name.split("-", 2)
                into.setdefault(int(n), {})[controller] = runs_in(name)
    every = lambda table: [one for all_of in table.values() for one in all_of.values()]
    print("# Results\n")
    print(f"{datetime.date.today()}, {machine()}; everything on this machine. Written by `make bench`; the targets are explained in TARGETS.md.")
    if runs:
        load = f"{e['NODES']} nodes, {e['PODS']} pods, {e['SERVICES']} services, {e['POLICIES']} policies; burst of {e['BURST']}, then {e['STEADY']} at {e['RATE']} a second."
        print(f"\n## Controller\n\n{caption(load, runs.values())}")
        print(*controller_table(runs), sep="\n")
        print("\nThe controllers run one after the other: where the limit differs between them, the machine was not the same for all, and times compare only in terms of it.")
    if grown:
        load = f"{e['NODES']} nodes, {e['SERVICES']} services, {e['POLICIES']} policies; burst of {e['BURST']}."
        print(f"\n## How cost grows\n\n{caption(load, [one for _, one in grown])}")
        print(*growth_table(grown), sep="\n")
    if steps:
        load = f"{e['NODES']} nodes, {e['POLICY_PODS']} pods; 200 policies more about the pods that are added; CPU of the controller alone."
        print(f"\n## Network policies\n\n{caption(load, every(steps))}")
        print(*policies_table(sorted(steps.items())), sep="\n")
    if services:
        load = f"Ten endpoints each; every tenth with a node port, which has a row for each of {e['NODES']} nodes. {e['CHANGES']} changes of one endpoint each, {e['RATE']} a second."
        print(f"\n## Services\n\n{caption(load, every(services))}")
        print(*services_table(sorted(services.items())), sep="\n")
    names = [name for name in NAMES if os.path.isdir(os.path.join(out, f"cni-{name}"))]
    if names:
        print("\n## CNI\n")
        print(*cni_table(out, names), sep="\n")
    joined = os.path.join(out, "interconnection")
    if os.path.exists(joined) and os.path.getsize(joined):
        print("\n## Joined clusters\n\n250 prefixes of another cluster by three transit switches: 750 routes; 20 more prefixes; then as many that this cluster offers, and 20 more; 100 pods.\n")
        print(*interconnection_table(open(joined)), sep="\n")
    # the targets are for the shipped build
    if e["PROFILE"] == "release":
        print("\n## Sizes\n")
        print(*sizes_table(open(os.path.join(out, "sizes"))), sep="\n")
    print()
    if not os.path.exists(os.path.join(out, "ovsdb.md")):
        return
    # one heading deeper
    for line in open(os.path.join(out, "ovsdb.md")):
        print("#" + line if line.startswith("#") else line, end="")


main()
