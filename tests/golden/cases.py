"""What ``tests.golden.record`` runs: every command on every example, in every form it prints.

A case is a list of commands that run one after the other in one folder, with the checkout's
``examples`` and the case's own files in it. Nothing here imports the package: cases are the same
for every checkout.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """Commands of one folder.

    Parameters
    ----------
    name : folder of the recording.
    commands : arguments of ``libra-planner``, one list for each command.
    files : text of files beside the examples, by name.
    screen : instead of commands, keys to press in the cockpit.
    """

    name: str
    commands: tuple[tuple[str, ...], ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    screen: tuple[str, ...] = ()


VECTORS = {
    "01_gpt3_4d": "300,100,75,25",
    "02_performance_per_cost": "300,100,75,25",
    "03_group": "300,100,75,25",
    "04_overlap": "50,25,15,10",
    "05_pipelined": "300,100,75,25",
    "06_catalogue": "256,100,50,25",
    "07_check": "170,130",
}
"""A vector of every plan, GB/s."""

PLANS = {name: f"examples/{name}.yaml" for name in VECTORS}
REPORTS = {
    name: f"examples/reports/{name}.yaml" for name in ("one_nic", "oversubscribed", "two_nics")
}
FABRIC, FABRIC_1TO1, FLOWS = (
    "examples/flows/flowtracer_fabric.yaml",
    "examples/flows/flowtracer_fabric_1to1.yaml",
    "examples/flows/flowtracer_flows.csv",
)
POLICIES = (
    "ecmp",
    "pinned",
    "spray",
    "greedy",
    "edge_coloring",
    "ilp",
    "two_level_max_min",
    "annealing",
)

PLAN = """\
workload: gpt3-libra
fabric:
  topology: RI(4)_FC(8)_RI(4)_SW(32)
  tiers: [chiplet, package, node, pod]
parallelism: {tp: 16, dp: 256}
cost_model: libra-ispass24
constraints:
  - total == 500 GB/s
"""
SMALL = """\
workload: gpt3-libra
fabric:
  topology: FC(8)_SW(64)
  tiers: [node, pod]
  realization: {switch_radix: 32, port_speed: 800 Gbps, wiring: top_of_rack, npus_per_rack: 16}
parallelism: {tp: 8, dp: 64}
cost_model: libra-ispass24
constraints:
  - total == 300 GB/s
  - pod >= 50 GB/s
"""
TINY = """\
workload: gpt3-libra
fabric:
  topology: FC(4)_SW(16)
  tiers: [node, pod]
  realization: {switch_radix: 8, port_speed: 400 Gbps, wiring: top_of_rack}
parallelism: {tp: 4, dp: 16}
cost_model: libra-ispass24
constraints:
  - total == 200 GB/s
  - pod >= 50 GB/s
"""
WHOLE = """\
workload: gpt3
fabric:
  topology: RI(4)_SW(16)_SW(16)
  tiers: [package, node, pod]
  latency_ns: 500
  realization: {switch_radix: 32, port_speed: 400 Gbps, wiring: rail_optimized, queue_pairs: 2}
parallelism: {tp: 16, dp: 64}
global_batch: 1536
npu: {name: h100-sxm, efficiency_fraction: 0.4}
cost_model: libra-ispass24
training_loop:
  layer: forward + input_grad.compute + max(backward.tp, weight_grad.compute + backward.dp) + 20 us
bubble_fraction: 0.05
objective: performance_per_cost
fixed_cost: 40 M$
constraints:
  - 400 GB/s <= package <= 450 GB/s
  - node + 2 * pod <= 200 GB/s
  - pod >= 10 GB/s
"""
THREE_TIER = """\
kind: three_tier
pods: 4
leaves: 2
spines: 4
cores: 2
hosts_per_leaf: 4
host_link: 400 Gbit/s
uplink: 400 Gbps
core_link: 800 Gbps
failed: [[leaf 3, spine 5]]
"""
HOPS = """\
flow,switch,egress
a,leaf0,e1
a,spine1,e2
a,leaf1,e9
b,leaf0,e1
b,spine1,e3
b,leaf2,e9
c,leaf1,e2
c,spine0,e1
c,leaf0,e8
"""
INTERFACES = """\
switch,egress
leaf0,e1
leaf0,e2
leaf1,e1
leaf1,e2
leaf2,e1
leaf2,e2
spine0,e1
spine0,e2
spine0,e3
spine1,e1
spine1,e2
spine1,e3
"""
CASES = """\
kind,size_bytes,topology,bandwidth_GBps,latency_ns,chunks,algorithms,note
all-reduce,67108864,RI(4)_SW(8),100 50,500,4,ring halving_doubling,x
all-gather,1000000,RI(2)_FC(4)_SW(4),100 50 25,100,auto,default default default,y
reduce-scatter,1e9,FC(8),450,0,1,direct,z
all-to-all,4194304,RI(4)_SW(8),100 50,250 500,8,default default,"a, b"
"""


def cases() -> list[Case]:
    """All of them, the longest first, so that two workers end together."""
    found = [
        *_sweeps(),
        *_reports(),
        *_checks(),
        *_plans(),
        *_flows(),
        *_collectives(),
        *_bundled(),
        *_imports(),
        *_refused(),
        *_screens(),
    ]
    names = [case.name for case in found]
    if len(set(names)) < len(names):
        raise ValueError(f"names occur twice: {sorted(n for n in names if names.count(n) > 1)}")
    return found


def _case(name: str, *commands: str, files: dict[str, str] | None = None) -> Case:
    return Case(name, tuple(tuple(shlex.split(one)) for one in commands), files or {})


def _forms(name: str, command: str, *flags: str, files: dict[str, str] | None = None) -> Case:
    """A command as text for people and with each of the flags."""
    return _case(name, command, *(f"{command} {flag}" for flag in flags), files=files)


def _bundled() -> Iterator[Case]:
    kinds = ("workloads", "cost-models", "npu-catalogues", "parts", "fabrics", "examples", "sweeps")
    for kind in kinds:
        yield _forms(f"list/{kind}", f"list {kind}", "--json")
    for form in ("plan", "workload", "price-book", "npu-catalogue", "parts", "sweep"):
        yield _case(f"schema/{form}", f"schema {form}")
    commands = (
        "",
        *("optimize", "evaluate", "check", "pareto", "collective", "sweep", "flows", "report"),
        *("list", "schema", "import", "tui", "import libra", "import huggingface"),
        *(f"sweep {action}" for action in ("plan", "run", "show", "design")),
    )
    yield _case("help/all", *(f"{command} --help" for command in commands), "--version")
    workloads = ("gpt3", "msft-1t", "turing-nlg", "gpt3-libra", "msft-1t-libra")
    for name in (*workloads, "resnet50-libra", "turing-nlg-libra"):
        tp = 1 if name.startswith(("resnet", "turing")) else 16
        degrees = f"--set 'parallelism={{tp: {tp}, dp: {4096 // tp}}}'"
        batch = "null" if name.startswith("resnet") else "8192"
        setting = f"--set workload={name} {degrees} --set global_batch={batch}"
        line = f"examples/01_gpt3_4d.yaml {setting}"
        yield _case(f"workloads/{name}", f"optimize {line}", f"optimize {line} --json")


def _plans() -> Iterator[Case]:
    for name, path in PLANS.items():
        vector = f"--bandwidth {VECTORS[name]}"
        yield _forms(f"evaluate/{name}", f"evaluate {path} {vector}", "--json")
        yield _forms(f"optimize/{name}", f"optimize {path}", "--json")
        yield _forms(f"pareto/{name}", f"pareto {path} --points 7", "--json", "--csv")
    for name, path in REPORTS.items():
        yield _forms(f"evaluate/{name}", f"evaluate {path} --bandwidth 450,50", "--json")
        yield _forms(f"optimize/{name}", f"optimize {path}", "--json")
    for objective, loop in itertools.product(
        ("performance", "performance_per_cost"), ("no_overlap", "tp_dp_overlap")
    ):
        line = f"optimize examples/01_gpt3_4d.yaml --set objective={objective}"
        line += f" --set training_loop={loop}"
        yield _forms(f"optimize/{objective}-{loop}", line, "--json")
    cost = "--set objective=cost --set 'constraints=[\"step_time <= 800 ms\"]'"
    yield _forms("optimize/cost", f"optimize examples/01_gpt3_4d.yaml {cost}", "--json")
    yield _forms("optimize/whole", "optimize w.yaml", "--json", files={"w.yaml": WHOLE})
    yield _forms("pareto/whole", "pareto w.yaml --points 5", "--json", files={"w.yaml": WHOLE})
    for goal in ("relative", "worst_case"):
        line = f"optimize examples/03_group.yaml --set group_objective={goal}"
        yield _forms(f"optimize/group-{goal}", line, "--json")
    for fidelity in (
        "--set chunks=auto",
        "--set in_network_reduction=[pod]",
        "--set algorithms=[ring,direct1,ring,ring]",
    ):
        name = fidelity.split("=")[0].split()[-1]
        line = f"examples/05_pipelined.yaml {fidelity}"
        yield _forms(f"optimize/pipelined-{name}", f"optimize {line}", "--json")
        yield _case(
            f"evaluate/pipelined-{name}", f"evaluate {line} --bandwidth 300,100,75,25 --json"
        )
    balanced = "examples/01_gpt3_4d.yaml --set scheduler=balanced"
    yield _forms("optimize/balanced", f"optimize {balanced}", "--json")
    yield _case("evaluate/balanced", f"evaluate {balanced} --bandwidth 300,100,75,25")
    rules = '--set \'constraints=["total <= 500 GB/s","dim1 >= dim2","15 GB/s <= pod <= 100 GB/s",'
    rules += '"cost <= 20 M$","step_time <= 900 ms"]\''
    line = f"examples/01_gpt3_4d.yaml {rules}"
    yield _forms("optimize/rules", f"optimize {line}", "--json")
    yield _forms("evaluate/violated", f"evaluate {line} --bandwidth 600,700,5,1", "--json")
    catalogue = "optimize examples/06_catalogue.yaml --set objective=performance_per_cost"
    yield _forms("optimize/catalogue-ppc", catalogue, "--json")
    half = "--set 'fabric.link_options={pod: [25 GB/s, 50 GB/s, 100 GB/s]}'"
    yield _forms("optimize/catalogue-half", f"{catalogue} {half}", "--json")
    for policy in ("ecmp", "spray", "greedy"):
        line = f"optimize s.yaml --routing {policy}"
        yield _forms(f"routing/{policy}", line, "--json", files={"s.yaml": SMALL})
    yield _forms(
        "routing/seeds",
        "optimize s.yaml --routing ecmp --seeds 3 --seed 5 --hash crc32 --placement rail",
        "--json",
        files={"s.yaml": SMALL},
    )


def _collectives() -> Iterator[Case]:
    one = "collective 'RI(4)_SW(8)' --size 64MiB --bandwidth 100,50 --latency-ns 500"
    for kind in ("all-reduce", "reduce-scatter", "all-gather", "all-to-all"):
        yield _forms(
            f"collective/{kind}", f"{one} --kind {kind} --chunks 16", "--json", "--chunks auto"
        )
    flags = {
        "in-network": "--in-network",
        "balanced": "--scheduler balanced",
        "algorithms": "--algorithms ring,halving_doubling",
        "clock": "--clock-ns 0 --chunks 3",
    }
    for name, flag in flags.items():
        yield _forms(f"collective/{name}", f"{one} --kind all-reduce {flag}", "--json")
    three = "collective 'FC(4)_RI(4)_SW(4)' --kind ar --size 1GB --bandwidth 100,50,25"
    yield _forms("collective/three", f"{three} --scheduler balanced --chunks 8", "--json")
    yield _forms(
        "collective/file",
        "collective --csv c.csv",
        "--json",
        "--scheduler balanced",
        "--scheduler balanced --json",
        files={"c.csv": CASES},
    )


def _checks() -> Iterator[Case]:
    for name, path in PLANS.items():
        vector = f"--bandwidth {VECTORS[name]}"
        yield _forms(f"check/{name}", f"check {path} {vector} --seeds 2", "--json")
    yield _forms("check/optimum", "check examples/07_check.yaml", "--json")
    files = {"s.yaml": SMALL, "w.yaml": WHOLE, "tiny.yaml": TINY}
    for policy in POLICIES:
        plan = "tiny.yaml" if policy == "annealing" else "s.yaml"
        line = f"check {plan} --policy {policy}"
        yield _forms(f"check/policy-{policy}", line, "--json", files=files)
    flags = {
        "whole": "w.yaml --bandwidth 425,60,40",
        "seed": "s.yaml --seed 3 --groups",
        "seeds": "s.yaml --seeds 4 --hash xor --shared-seed",
        "enhanced": "s.yaml --enhanced --queue-pairs 4 --npus-per-address 8",
        "per-collective": "s.yaml --policy greedy --per-collective --placement random",
        "failures": "s.yaml --fail-links 2 --fail-spines 1 --seeds 3",
        "n-1": "tiny.yaml --n-1 --policy greedy",
        "groups": "s.yaml --groups --busiest 2",
        "trace": "s.yaml --trace 0-8 --bandwidth 150,150",
        "trace-rounds": "s.yaml --policy ecmp --seed 2 --trace 0-64",
        "failed": "s.yaml --set 'fabric.realization.failed_links={links: 2, seed: 1}'",
        "speed": "s.yaml --set fabric.realization.oversubscription=2 --seed 1",
        "report": "examples/reports/oversubscribed.yaml --seeds 2",
        "preset": "s.yaml --set 'fabric.realization={preset: flowtracer-16x400G}' --seed 0",
        "jobs": "s.yaml t.yaml --seeds 2 --bandwidth 200,100",
        "jobs-alike": "s.yaml s.yaml --policy edge_coloring",
        "jobs-random": "s.yaml t.yaml s.yaml --placement random --policy greedy --bandwidth 200,100",
    }
    files["t.yaml"] = SMALL.replace("gpt3-libra", "msft-1t-libra")
    for name, flag in flags.items():
        yield _forms(f"check/{name}", f"check {flag}", "--json", files=files)


def _flows() -> Iterator[Case]:
    base = f"flows {FABRIC} {FLOWS}"
    for policy in POLICIES:
        yield _forms(
            f"flows/{policy}", f"{base} --policy {policy}", "--json", "--groups --busiest 3"
        )
    one = f"flows {FABRIC_1TO1} {FLOWS}"
    flags = {
        "seed": "--seed 0 --trace n0-n4-q0",
        "seeds": "--seeds 5 --seed 7 --hash crc16",
        "fim-only": "--seeds 50 --fim-only",
        "enhanced": "--enhanced --shared-seed --groups",
        "failures": "--fail-links 2 --fail-spines 1 --seeds 4",
        "failure": "--fail-links 1 --seed 2 --policy ecmp",
        "cut-off": "--fail-spines 4 --seeds 2",
    }
    for name, flag in flags.items():
        yield _forms(f"flows/{name}", f"{one} {flag}", "--json")
    yield _case("flows/rates", f"{one} --rates r.csv", f"{one} --seed 3 --rates -")
    named = {"rail-8x400G": 256, "flowtracer-16x400G": 16, "routing-64x32": 2048}
    for name, hosts in named.items():
        files = {"f.csv": flow_list(hosts, 500)}
        yield _forms(f"flows/{name}", f"flows {name} f.csv --seeds 3", "--json", files=files)
        yield _case(f"flows/{name}-max-min", f"flows {name} f.csv --policy greedy", files=files)
    for policy in ("ecmp", "greedy", "edge_coloring", "ilp", "two_level_max_min", "annealing"):
        n = 12 if policy == "ilp" else 200  # So few are proven long before its time ends.
        files = {"f.yaml": THREE_TIER, "f.csv": flow_list(32, n)}
        line = f"flows f.yaml f.csv --policy {policy}"
        yield _forms(f"flows/three-tier-{policy}", line, "--json", files=files)
    hops = {"h.csv": HOPS, "i.csv": INTERFACES}
    yield _forms("flows/hops", "flows --hops h.csv", "--json", "--groups", files=hops)
    line = "flows --hops h.csv --interfaces i.csv"
    yield _forms("flows/interfaces", line, "--json", "--groups --busiest 1", files=hops)


def flow_list(n_hosts: int, n: int) -> str:
    """A flow list of several sizes and collectives, the same every time."""
    lines = ["flow_id,src,dst,bytes,collective"]
    for i in range(n):
        source = (7 * i) % n_hosts
        target = (source + 1 + (11 * i) % (n_hosts - 1)) % n_hosts
        lines.append(f"f{i},{source},{target},{1_000_000 * (1 + i % 5)},c{i % 3}")
    return "\n".join(lines) + "\n"


BUDGETS = """\
base: 01_gpt3_4d
axes:
  budget: {from: 100, to: 1000, n: 9, log: true}
  pod_cap: [20, 40]
set:
  constraints: ["total == {budget} GB/s", "pod <= {pod_cap} GB/s"]
where: pod_cap * 4 <= budget
objective: [performance, performance_per_cost]
"""
STRUCTURES = """\
base:
  workload: gpt3
  fabric: {topology: "{shape}"}
  parallelism: {tp: "{tp}", dp: "{256 / tp}"}
  global_batch: 1024
  npu: {name: h100-sxm, efficiency_fraction: 0.45}
  cost_model: "{book}"
  constraints:
    - total == {budget} GB/s
    - step_time <= 400 s
axes:
  tp: [8, 16, 48]
  shape:
    factorizations: {npus: 256, dims: 2..3, blocks: [RI, FC, SW], sizes: [4, 8, 16]}
    tiers: [package, node, pod]
  budget: [0.001, 200]
  training_loop: [no_overlap, tp_dp_overlap, async_dp]
  book: [libra-ispass24]
where: '"SW" in shape'
designs_per_part: 100
"""
SAMPLED = BUDGETS.replace("where:", "sample: {method: lhs, n: 12}\nseed: 3\nwhere:")
CHECKED = """\
base: s.yaml
axes:
  wiring: [rail, top_of_rack]
  budget: [200, 300, 400]
set:
  fabric.realization.wiring: "{wiring}"
  constraints: ["total == {budget} GB/s"]
check: {policy: ecmp, seeds: 2}
"""
SHOWN = (
    "sweep show run",
    "sweep show run --top 3 --json",
    "sweep show run --pareto",
    "sweep show run --pareto --json",
    "sweep show run --group-by budget --csv -",
    "sweep show run --csv all.csv",
    "sweep show run --sql 'SELECT status, count(*), min(cost_usd) FROM designs GROUP BY 1 ORDER BY 1'",
)


def _sweeps() -> Iterator[Case]:
    files = {"a.yaml": BUDGETS, "b.yaml": STRUCTURES, "c.yaml": SAMPLED, "d.yaml": CHECKED}
    files["s.yaml"] = SMALL
    for name in ("10_budgets", "11_codesign", "12_routing"):
        line = f"sweep plan examples/{name}.yaml"
        yield _forms(f"sweep/plan-{name}", line, "--json")
        run = f"sweep run examples/{name}.yaml -o run"
        yield _case(
            f"sweep/run-{name}", run, "sweep show run --pareto", "sweep design run 7 -o d.yaml"
        )
    for name in "abcd":
        line = f"sweep plan {name}.yaml"
        yield _forms(f"sweep/plan-{name}", line, "--json", files=files)
        run = f"sweep run {name}.yaml -o run"
        row = ("sweep design run 2 -o d2.yaml", "optimize d2.yaml", "sweep design run 1 -o -")
        yield _case(f"sweep/run-{name}", run, run, *SHOWN, *row, files=files)
    run = "sweep run a.yaml -o run --workers 2 --json-progress"
    yield _case("sweep/workers", run, "sweep show run --top 20", files=files)
    plots = [f"sweep show run --plot {axes}" for axes in ("f.svg", "x.svg --x budget")]
    plots.append("sweep show run --plot xy.svg --x budget --y pod_cap")
    yield _case("sweep/plots", "sweep run a.yaml -o run", *plots, files=files)
    fim = ("sweep show run --pareto --fim", "sweep show run --by effective")
    report = ("report run:0 run:4 -o out --check ecmp --formats md,csv",)
    yield _case("sweep/checked", "sweep run d.yaml -o run", *fim, *report, files=files)


def _reports() -> Iterator[Case]:
    three = " ".join(REPORTS.values())
    run = f"report {three} --tokens 15e12 --check ecmp --baseline A"
    yield _case("report/rails", f"{run} -o out", f"{run} -o out --json")
    price = "examples/01_gpt3_4d.yaml examples/02_performance_per_cost.yaml"
    price += " examples/01_gpt3_4d.yaml@300,100,75,25 --set workload=gpt3 --set global_batch=8192"
    yield _case(
        "report/price", f"report {price} --baseline A -o out", f"report {price} -o b --json"
    )
    parts = " ".join(path for name, path in PLANS.items() if name != "06_catalogue")
    yield _case("report/examples", f"report {parts} -o out --allow-missing")
    yield _case("report/catalogue", "report examples/06_catalogue.yaml -o out")
    small = {"s.yaml": SMALL, "w.yaml": WHOLE}
    line = "report s.yaml w.yaml s.yaml@150,150 -o out --check greedy --seeds 2"
    yield _case("report/small", line, f"{line} --json", files=small)
    result = "report s.yaml@r.json -o out --formats md"
    files = small | {"r.json": '{"plan": "s.yaml", "bandwidth_GBps": [200, 100]}'}
    yield _case("report/result", result, "report r.json -o out --formats md --json", files=files)
    files = small | {"w.yaml": WHOLE}
    yield _case("report/run", "report w.yaml -o out --tokens 1e12 --formats csv,html", files=files)


LIBRA = {
    "n.yml": "Topology: [ Ring, FullyConnected, Switch ]  # 3D\n"
    "NpusCount: [ 16, 8, 32 ]\nCostDimension: [ InterPackage, InterNode, InterPod ]\n",
    "m.yml": "InterPackage:\n  Link: 4.00001\n  Switch: 13.00001\nInterNode:\n  Link: 4.00002\n"
    "  Switch: 13.00002\nInterPod:\n  Link: 7.80003\n  Switch: 18.00003\n  Nic: 31.60003\n",
    "c.yml": "Forward: [ 16, -1, -1 ]\nInputGrad: [ 16, -1, -1 ]\nWeightGrad: [ -1, 8, 32 ]\n",
    "w.txt": "Q1 -1 9375000 NONE 0 9375000 ALLREDUCE 805306368 9375000 ALLREDUCE 452984832 10\n"
    "QK1 -1 781250 NONE 0 781250 NONE 0 781250 NONE 0 10\n"
    "concat1 -1 9375000 ALLREDUCE 805306368 9375000 ALLGATHER 50331648 9375000 NONE 0 10\n",
}


def _imports() -> Iterator[Case]:
    line = "import libra --network n.yml --workload w.txt --communicator c.yml --cost-model m.yml"
    rule = "--set 'constraints=[\"total == 300 GB/s\"]'"
    yield _case("import/libra", f"{line} -o p.yaml", f"optimize p.yaml {rule} --json", files=LIBRA)
    wrong = {**LIBRA, "n.yml": LIBRA["n.yml"].replace("Ring", "Rng"), "m.yml": "Inter: 3\n"}
    yield _case("import/wrong", f"{line} -o p.yaml", files=wrong)


FAULTS = {
    "unknown-key": ("workload:", "wrkload:"),
    "nested-key": ("tiers:", "tires:"),
    "missing-key": ("cost_model: libra-ispass24\n", ""),
    "workload": ("gpt3-libra", "gtp3-libra"),
    "book": ("libra-ispass24", "libra24"),
    "tier": ("[chiplet", "[chplet"),
    "block": ("RI(4)_FC", "RO(4)_FC"),
    "notation": ("RI(4)_FC(8)", "RI4"),
    "size": ("RI(4)_FC", "RI(1)_FC"),
    "huge": ("SW(32)", "SW(99999999999)"),
    "few-tiers": (", pod]", "]"),
    "degrees": ("dp: 256", "dp: 128"),
    "unplaceable": ("{tp: 16, dp: 256}", "{tp: 3, dp: 4096}"),
    "text-degree": ("tp: 16", "tp: sixteen"),
    "nan": ("tp: 16", "tp: .nan"),
    "list": ("{tp: 16, dp: 256}", "[16, 256]"),
    "objective": ("constraints", "objective: perf\nconstraints"),
    "loop": ("constraints", "training_loop: async\nconstraints"),
    "efficiency": (
        "constraints",
        "npu: {peak_TFLOPps: 312, efficiency_fraction: 50}\nconstraints",
    ),
    "twice": ("cost_model", "workload: gpt3\ncost_model"),
    "yaml": ("{tp: 16,", "{tp: 16, ["),
    "rule-unit": ("500 GB/s", "500"),
    "rule-dim": ("total ==", "dim5 <="),
    "rule-typo": ("total ==", "totl =="),
    "rule-equals": ("total ==", "total ="),
    "rule-kinds": ("total == 500 GB/s", "total <= 5 ms"),
    "rule-bits": ("GB/s\n", "Gb/s\n"),
    "rule-sum": ("total == 500 GB/s", "total + cost <= 5 M$"),
    "rule-time": ("total == 500 GB/s", "step_time >= 1 s"),
    "batch": ("constraints", "global_batch: 100\nconstraints"),
    "file": ("gpt3-libra", "./nowhere.yaml"),
    "loop-text": ("constraints", "training_loop: {layer: forward - backward}\nconstraints"),
    "realization": ("  tiers", "  realization: {switch_radx: 64}\n  tiers"),
    "options": ("  tiers", "  link_options: {pod: [fast]}\n  tiers"),
    "algorithms": ("constraints", "fidelity: pipelined\nalgorithms: [rng]\nconstraints"),
    "infeasible": ("total == 500 GB/s", "total == 500 GB/s\n  - dim1 >= 600 GB/s"),
    "infeasible-time": ("total == 500 GB/s", "total <= 500 GB/s\n  - step_time <= 1 ms"),
    "ill-posed": ("total == 500 GB/s", "dim1 >= 10 GB/s"),
    "ill-posed-ppc": (
        "constraints:\n  - total ==",
        "objective: performance_per_cost\nconstraints:\n  - total <=",
    ),
    "ill-posed-cost": ("constraints", "objective: cost\nconstraints"),
}
"""Replacements in a plan that make it wrong."""

MISUSES = {
    "no-command": "",
    "unknown-command": "optimise p.yaml",
    "no-file": "optimize nowhere.yaml",
    "folder": "optimize examples",
    "vector": "evaluate p.yaml --bandwidth 1,2",
    "vector-text": "evaluate p.yaml --bandwidth -1,x,3,4",
    "setting": "optimize p.yaml --set workload",
    "setting-key": "optimize p.yaml --set wrkload=gpt3",
    "flag-without-routing": "optimize p.yaml --seeds 3",
    "points": "pareto p.yaml --points 1",
    "pareto-both": "pareto p.yaml --csv --json",
    "policy": "check s.yaml --policy ecmpp",
    "policy-option": "check s.yaml --policy greedy --hash xor",
    "addresses": "check s.yaml --policy greedy --npus-per-address 8",
    "trace": "check s.yaml --trace 0-999",
    "jobs-flag": "check s.yaml s.yaml --n-1",
    "jobs-other": "check s.yaml p.yaml --bandwidth 200,100",
    "routing-policy": "optimize s.yaml --routing pinned",
    "collective-missing": "collective 'RI(4)' --kind all-reduce",
    "collective-kind": "collective 'RI(4)' --kind reduce --size 1MB --bandwidth 1",
    "collective-size": "collective 'RI(4)' --kind ar --size 1XB --bandwidth 1",
    "collective-algorithm": "collective 'RI(4)' --kind ar --size 1MB --bandwidth 1 --algorithms fast",
    "collective-file": "collective --csv bad.csv",
    "flows-none": "flows",
    "flows-fabric": f"flows nofabric {FLOWS}",
    "flows-both": f"flows {FABRIC} {FLOWS} --hops {FLOWS}",
    "flows-trace": f"flows {FABRIC} {FLOWS} --trace x",
    "flows-policy": f"flows {FABRIC} {FLOWS} --policy gredy",
    "flows-overwrite": f"flows {FABRIC} {FLOWS} --rates {FLOWS}",
    "flows-rates": f"flows {FABRIC} {FLOWS} --rates - --json",
    "flows-hops-routing": "flows --hops bad.csv --policy ecmp --seeds 3",
    "flows-list": f"flows {FABRIC} bad.csv",
    "flows-spines": f"flows {FABRIC} {FLOWS} --fail-spines 99",
    "report-design": "report nowhere.yaml -o out",
    "report-folder": "report examples -o out",
    "report-format": "report s.yaml -o out --formats html,doc",
    "report-baseline": "report s.yaml -o out --baseline B",
    "report-tokens": "report s.yaml -o out --tokens 15e12",
    "report-check": "report s.yaml -o out --check pinned",
    "report-seeds": "report s.yaml -o out --seeds 3",
    "report-parts": "report s.yaml -o out --parts nope",
    "report-many": "report s.yaml -o out" + " s.yaml" * 10,
    "report-vector": "report s.yaml@1,2,3 -o out",
    "report-pdf": "report s.yaml -o out --formats pdf",
    "sweep-file": "sweep plan nowhere.yaml",
    "sweep-wrong": "sweep plan wrong.yaml",
    "sweep-plan-as-sweep": "sweep run p.yaml -o run",
    "sweep-directory": "sweep show examples",
    "sweep-fim": "sweep show examples --fim",
    "sweep-axis": "sweep show examples --x budget",
    "list": "list things",
    "schema": "schema things",
    "import": "import libra --network n.yml",
}
"""Commands that are refused, beside a good plan p.yaml and s.yaml."""


def _refused() -> Iterator[Case]:
    for name, (old, new) in FAULTS.items():
        if old not in PLAN:
            raise ValueError(f"{name} changes nothing")
        files = {"p.yaml": PLAN.replace(old, new)}
        yield _case(f"faults/{name}", "optimize p.yaml", "optimize p.yaml --json", files=files)
    files = {
        "p.yaml": PLAN,
        "s.yaml": SMALL,
        "bad.csv": "flow_id,src,dst,bytes\na,0,99,5\nb,x,1,-3\na,0,1,5\n",
        "wrong.yaml": BUDGETS.replace("pod_cap *", "pod_cup *").replace("log: true", "lg: true"),
    }
    for name, command in MISUSES.items():
        yield _case(f"misuses/{name}", command, files=files)


SCENES = {
    "design": ("o", "idle"),
    "compare": ("p", "o", "idle", "p", "2"),
    "frontier": ("3", "idle", "up", "up"),
    "fabric": ("o", "idle", "4", "idle"),
    "sweep": ("5",),
    "report": ("p", "o", "idle", "p", "6"),
    "help": ("question_mark",),
}
"""Keys of every screen; ``idle`` waits for work."""


def _screens() -> Iterator[Case]:
    for name, keys in SCENES.items():
        files = {"plan.yaml": plan_of_screens()}
        yield Case(f"screens/{name}", files=files, screen=keys)


def plan_of_screens() -> str:
    """A plan whose fabric has paths to choose."""
    wiring = "  realization: {wiring: top_of_rack}\n"
    return PLAN.replace("parallelism:", f"{wiring}parallelism:", 1)
