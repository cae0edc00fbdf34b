#!/usr/bin/env python3
"""report.py DIR - the table of bench/results.md out of what a run left in DIR. Targets are those of TARGETS.md."""
import datetime
import json
import os
import platform
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


def env(name):
    return int(os.environ[name])


# what, unit format, how, target as text, bound of ours, bound as a share of (run, figure)
ROWS = [
    ("cold start, all wired and annotated", "{:.2f} s", lambda r: r.json("cold")["seconds"], None, [("peer", 0.1), ("peer-unlimited", 0.6)]),
    ("limit: the load generator alone annotates as many", "{:.2f} s", lambda r: r.json("limit")["seconds"], None, []),
    ("cold start in terms of that limit", "{:.2f} ×", lambda r: r.json("cold")["seconds"] / r.json("limit")["seconds"], None, []),
    ("CPU of the cold start", "{:.2f} s", lambda r: r.cpu(None, "settled"), None, [("peer-unlimited", 1 / 6)]),
    ("burst, pods a second", "{:.0f}", lambda r: r.json("burst")["pods_per_second"], None, [("peer-unlimited", -1.5)]),
    ("burst, pod to port p50", "{:.0f} ms", lambda r: r.json("burst")["port_ms"]["p50"], 100, []),
    ("burst, pod to annotation p50", "{:.0f} ms", lambda r: r.json("burst")["annotation_ms"]["p50"], None, []),
    ("CPU for each pod added", "{:.2f} ms", lambda r: 1000 * r.cpu("settled", "burst") / env("BURST"), 0.4, []),
    ("steady, pod to port p50", "{:.1f} ms", lambda r: r.json("steady")["port_ms"]["p50"], 2.5, []),
    ("steady, pod to port p99", "{:.1f} ms", lambda r: r.json("steady")["port_ms"]["p99"], 5, []),
    ("burst deleted", "{:.2f} s", lambda r: r.json("delete")["seconds"], None, []),
    ("memory, most (RSS)", "{:.1f} MiB", lambda r: r.phases["delete"]["peak"], 25, []),
    ("restart to first new pod", "{:.2f} s", lambda r: r.json("restart")["since_clock"], 0.3, []),
    ("CPU of a restart, nothing changed", "{:.2f} s", lambda r: r.cpu(None, "idle-restart"), 0.4, []),
    ("NB transactions of that restart", "{:.0f}", lambda r: r.between("transactions", "restart", "idle-restart"), 0, []),
    ("NB transactions up to the deletion", "{:.0f}", lambda r: r.phases["delete"]["transactions"], 1500, []),
    ("northd CPU up to the deletion", "{:.2f} s", lambda r: r.phases["delete"]["northd"], None, [("peer-unlimited", 0.6)]),
    ("NB server CPU up to the deletion", "{:.2f} s", lambda r: r.phases["delete"]["nb_server"], None, []),
]


def verdict(values, bound, shares):
    """The target in words, and whether ours holds it; a negative share means at least."""
    ours, words, held = values["ovnkube"], [], True
    if bound is not None:
        words.append(f"≤ {bound:g}")
        held &= ours <= bound
    for peer, share in shares:
        at_least = share < 0
        words.append(f"{'≥' if at_least else '≤'} {abs(share):.2g} × {NAMES[peer]}")
        if peer in values:
            held &= ours >= -share * values[peer] if at_least else ours <= share * values[peer]
    measured = bound is not None or any(peer in values for peer, _ in shares)
    return ", ".join(words), ("yes" if held else "**no**") if measured else ""


def controller_table(runs):
    peers = [name for name in NAMES if name in runs and name != "ovnkube"]
    head = ["", "ours", *(NAMES[p] for p in peers), *(f"ours / {NAMES[p]}" for p in peers), "target", "held"]
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for what, unit, how, bound, shares in ROWS:
        values = {name: how(run) for name, run in runs.items()}
        cells = [unit.format(values[name]) for name in ["ovnkube", *peers]]
        ratios = [f"{values['ovnkube'] / values[p]:.2f}" if values[p] else "–" for p in peers]
        yield "| " + " | ".join([what, *cells, *ratios, *verdict(values, bound, shares)]) + " |"


def growth_table(grown):
    yield "| pods | CPU of the cold start for each pod | CPU for each pod added | memory, most (RSS) | cold start |"
    yield "|---|---|---|---|---|"
    for pods, run in grown:
        cold, add = 1000 * run.cpu(None, "settled") / pods, 1000 * run.cpu("settled", "burst") / env("BURST")
        peak = run.phases["burst"]["peak"]
        yield f"| {pods} | {cold:.2f} ms | {add:.2f} ms | {peak:.1f} MiB | {run.json('cold')['seconds']:.2f} s |"


# what, unit format, how, share of the peer's that is the target
POLICY_ROWS = [
    ("{n} policies, CPU of the cold start", "{:.2f} s", lambda r: r.cpu(None, "settled"), 1 / 6),
    ("{n} policies, cold start", "{:.2f} s", lambda r: r.json("cold")["seconds"], None),
    ("one pod added under 200 policies, beside {n} others: CPU", "{:.2f} ms", lambda r: 1000 * r.cpu("crowd", "under") / 200, 1 / 6),
    ("one pod added under 200 policies, beside {n} others: pod to port p50, 40 a second", "{:.1f} ms", lambda r: r.json("under")["port_ms"]["p50"], None),
    ("one label lets 500 pods in or not, beside {n} policies: CPU", "{:.1f} ms", lambda r: 1000 * r.cpu("flippable", "flip") / 40, 1 / 6),
    ("one label lets 500 pods in or not, beside {n} policies: label to addresses p50", "{:.0f} ms", lambda r: r.json("flip")["flip_ms"]["p50"], None),
    ("{n} policies, memory, most (RSS)", "{:.1f} MiB", lambda r: r.phases["flip"]["peak"], None),
    ("{n} policies, CPU of a restart, nothing changed", "{:.2f} s", lambda r: r.cpu(None, "idle-restart"), 1 / 6),
]


def policies_table(steps):
    yield "|  | ours | Go, no limit | ours / Go, no limit | target | held |"
    yield "|---" * 6 + "|"
    for what, unit, how, share in POLICY_ROWS:
        for n, runs in steps:
            values = {name: how(run) for name, run in runs.items()}
            peer = values.get("peer-unlimited")
            ratio = values["ovnkube"] / peer if peer else None
            target, held = (f"≤ {share:.2g} × {NAMES['peer-unlimited']}", "") if share else ("", "")
            if share and ratio is not None:
                held = "yes" if ratio <= share else "**no**"
            cells = [what.format(n=n), unit.format(values["ovnkube"]), unit.format(peer) if peer else "–"]
            yield "| " + " | ".join([*cells, f"{ratio:.2f}" if ratio is not None else "–", target, held]) + " |"


def services_table(out):
    yield "| services |  | cold start | CPU of it | CPU for each change | change to load balancers p50 | p99 | rows written for each change | NB bytes for each change | memory, most (RSS) |"
    yield "|---" * 10 + "|"
    runs = [name.split("-") for name in os.listdir(out) if name.startswith("services-")]
    for count in sorted({int(name[1]) for name in runs}):
        costs = {}
        for who in [who for who in NAMES if ["services", str(count), who] in runs]:
            run = Run(os.path.join(out, f"services-{count}-{who}"))
            changes, ms = env("CHANGES"), run.json("endpoints")["change_ms"]
            each, cold = 1000 * run.cpu("settled", "endpoints") / changes, run.cpu(None, "settled")
            costs[who] = cold, each
            rows, size = (run.between(what, "settled", "endpoints") / changes for what in ("balancers", "bytes"))
            peak = run.phases["endpoints"]["peak"]
            yield (
                f"| {count} | {NAMES[who]} | {run.json('cold')['seconds']:.2f} s | {cold:.2f} s | {each:.2f} ms | {ms['p50']:.1f} ms"
                f" | {ms['p99']:.1f} ms | {rows:.2f} | {size:.0f} | {peak:.1f} MiB |"
            )
        if "peer" in costs and all(costs["peer"]):
            ratios = [ours / theirs for ours, theirs in zip(costs["ovnkube"], costs["peer"])]
            held = " | ".join(f"{ratio:.2f}, {'held' if ratio <= 1 / 6 else '**not held**'}" for ratio in ratios)
            yield f"| {count} | ours / Go, target 0.17 | | {held} | | | | | |"


def sizes_table(lines):
    targets = {"ovnkube": "≤ 16 MB", "ovn-k8s-cni-overlay": "≤ 0.5 MB"}
    yield "| file | size | target |"
    yield "|---|---|---|"
    for n, line in enumerate(lines):
        path, size = line.rsplit(" ", 1)
        name = os.path.basename(path)
        label, target = (name, targets[name]) if n < len(targets) else (f"{name} (Go)", "")
        yield f"| {label} | {int(size) / 1e6:.2f} MB | {target} |"


def machine():
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} × {model}, {memory:.0f} GiB, Linux {platform.release()}"


def main():
    out = sys.argv[1]
    there = lambda name: os.path.exists(os.path.join(out, name, "phases"))
    runs = {name: Run(os.path.join(out, name)) for name in NAMES if there(name)}
    grown = sorted((int(name.split("-")[1]), Run(os.path.join(out, name))) for name in os.listdir(out) if name.startswith("growth-"))
    steps = {}
    for name in os.listdir(out):
        if name.startswith("policies-") and there(name):
            _, n, controller = name.split("-", 2)
            steps.setdefault(int(n), {})[controller] = Run(os.path.join(out, name))
    steps = sorted(steps.items())
    measured = [*runs.values(), *(run for _, all_of in steps for run in all_of.values())]
    loads = [phase["load"] for run in measured for phase in run.phases.values()]
    print("# Results\n")
    print(f"{datetime.date.today()}, {machine()}.")
    print(f"Load average {min(loads):.1f} to {max(loads):.1f}, everything on this machine. Written by `make bench`; the targets are explained in TARGETS.md.")
    e = os.environ
    services = f", {e['SERVICES']} services, {e['POLICIES']} policies" if e["SERVICES"] != "0" or e["POLICIES"] != "0" else ""
    if runs:
        print(f"\n## Controller\n\n{e['NODES']} nodes, {e['PODS']} pods{services}; burst of {e['BURST']}, then {e['STEADY']} at {e['RATE']} a second.\n")
        print(*controller_table(runs), sep="\n")
        print("\nThe controllers run one after the other: where the limit differs between them, the machine was not the same for all, and times compare only in terms of it.")
    if grown:
        print("\n## How cost grows\n")
        print(*growth_table(grown), sep="\n")
    if steps:
        print(f"\n## Network policies\n\n{e['NODES']} nodes, {e['POLICY_PODS']} pods; 200 policies more about the pods that are added; CPU of the controller alone.\n")
        print(*policies_table(steps), sep="\n")
    if any(name.startswith("services-") for name in os.listdir(out)):
        print(f"\n## Services\n\nTen endpoints each; every tenth with a node port, which has a row for each of {e['NODES']} nodes. {e['CHANGES']} changes of one endpoint each, {e['RATE']} a second.\n")
        print(*services_table(out), sep="\n")
    # the targets are for what is shipped
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
