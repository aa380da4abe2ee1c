"""Sound inputs to spoil: small sets of files with the commands that read them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from random import Random

from libra_planner.reading.bundled import folder
from tests.oracles.libra_tables import NETWORKS, PRICES, TABLES

_PLAN = "01_gpt3_4d"
_FLOWS = "flow_id,src,dst,bytes,via\na,0,4,1000000000,0\nb,1,5,1000,1\nc,2,9,5e6,2\nd,15,0,7,3\n"
ROUTED = {
    "f.yaml": (folder("examples") / "flows" / "flowtracer_fabric.yaml").read_text(),
    "f.csv": _FLOWS,
}
"""A fabric and flows over it."""
_HOPS = (
    "flow,switch,egress\na,leaf0,s0\na,spine0,l1\na,leaf1,h4\nb,leaf0,s1\nb,spine1,l1\nb,leaf1,h5\n"
)
_CASES = (
    "kind,size_bytes,topology,bandwidth_GBps,latency_ns,chunks,algorithms\n"
    "all-reduce,67108864,RI(4)_SW(8),100 50,500,4,ring halving_doubling\n"
    "all-to-all,1e6,FC(8),100,0,1,direct\n"
)
SWEEP = """\
base: 01_gpt3_4d
axes:
  budget: {from: 100, to: 200, step: 50}
  dp_tp: [{tp: 16, dp: 256}, {tp: 8, dp: 512}]
set:
  constraints: ["total == {budget} GB/s", "pod <= 50 GB/s"]
  parallelism: "{dp_tp}"
where: budget * 2 >= 100
objective: [performance, performance_per_cost]
columns: [objective_value, step_time_s, cost_usd, bandwidth, message]
"""
_THREE_TIER = """\
kind: three_tier
pods: 2
leaves: 2
spines: 2
hosts_per_leaf: 4
cores: 2
host_link: 400 Gbps
uplink: 50 GB/s
core_link: 400 Gbps
switch_radix: 64
failed:
  - [leaf 1, spine 1]
"""


@dataclass(frozen=True)
class Setting:
    """Files by name, those to spoil, and commands (of which one is drawn)."""

    name: str
    files: dict[str, str]
    spoiled: tuple[str, ...]
    commands: tuple[str, ...]

    def command(self, random: Random) -> tuple[str, ...]:
        return tuple(random.choice(self.commands).split())


@cache
def settings() -> tuple[Setting, ...]:
    """All of them."""
    return (
        *_plans(),
        *_parts_of_plans(),
        *_flows(),
        *_sweeps(),
        Setting("collective", {"c.csv": _CASES}, ("c.csv",), ("collective --csv c.csv",)),
        _import_libra(),
        _reports(),
        _results(),
    )


def _text(kind: str, name: str) -> str:
    return (folder(kind) / f"{name}.yaml").read_text()


def _plan_commands(n_dims: int) -> tuple[str, ...]:
    vector = ",".join(str(40 + 10 * i) for i in range(n_dims, 0, -1))
    return (
        *["optimize plan.yaml --json"] * 3,
        *[f"evaluate plan.yaml --bandwidth {vector} --json"] * 4,
        f"evaluate plan.yaml --bandwidth {vector}",
        f"check plan.yaml --bandwidth {vector} --seeds 1 --json",
        "pareto plan.yaml --points 3 --csv",
    )


def _plans() -> list[Setting]:
    names = [path.stem for path in sorted(folder("examples").glob("0*.yaml"))]
    texts = {name: _text("examples", name) for name in names}
    texts["documented"] = _documented()
    return [
        Setting(name, {"plan.yaml": text}, ("plan.yaml",), _plan_commands(_n_dims(text)))
        for name, text in texts.items()
    ]


def _n_dims(text: str) -> int:
    found = re.search(r"topology: (\S+)", text)
    assert found
    return found[1].count("_") + 1


def _documented() -> str:
    """A plan with nearly every key."""
    return """\
workload: gpt3
fabric:
  topology: FC(8)_SW(128)
  tiers: [node, pod]
  latency_ns: [500, 1e3]
  realization:
    preset: rail-8x400G
    oversubscription: 2
    queue_pairs: 2
    failed_links: {links: 2, spines: 1, seed: 0}
    pod: {switch_radix: 128}
parallelism: {tp: 8, dp: 128}
global_batch: 1536
npu: {peak_TFLOPps: 990, efficiency_fraction: 0.4, memory: 80 GiB}
cost_model: libra-ispass24
fidelity: pipelined
chunks: 8
algorithms: [default, halving_doubling]
in_network_reduction: [pod]
training_loop:
  layer: "forward + input_grad.compute + max(backward.tp, weight_grad.compute + backward.dp) + 20 us"
contention: true
bubble_fraction: 0.05
objective: performance
fixed_cost: {npu: h100-sxm, per_npu: 3 k$, rest: 20 M$}
constraints:
  - 400 GB/s <= node <= 450 GB/s
  - 2 * pod + node <= 4000 Gbps
  - step_time <= 1 h
"""


def _parts_of_plans() -> list[Setting]:
    """Plans with a workload, prices or NPUs of their own, to be spoiled."""
    plan = _text("examples", _PLAN).replace("gpt3-libra", "./own.yaml")
    prices = _text("examples", _PLAN).replace("libra-ispass24", "./own.yaml")
    npus = _text("examples", _PLAN) + (
        "npu: {name: h100-sxm, efficiency_fraction: 0.5, catalogue: ./own.yaml}\n"
        "fixed_cost: {npu: h100-sxm, catalogue: ./own.yaml}\n"
    )
    pairs = {
        "prices": (prices, _text("cost-models", "libra-ispass24")),
        "npus": (npus, _text("npu-catalogues", "npus")),
    }
    for name in ("gpt3-libra", "resnet50-libra", "turing-nlg"):
        pairs[f"workload {name}"] = (plan, _text("workloads", name))
    return [
        Setting(name, {"plan.yaml": one, "own.yaml": own}, ("own.yaml",), _plan_commands(4)[2:7])
        for name, (one, own) in pairs.items()
    ]


def _flows() -> list[Setting]:
    command = "flows f.yaml f.csv"
    commands = (
        f"{command} --json",
        f"{command} --policy pinned --json",
        f"{command} --seeds 3 --fail-links 1",
        f"{command} --trace a --groups",
        f"{command} --policy greedy --rates rates.csv",
    )
    hops = (
        "flows --hops h.csv --json",
        "flows f.yaml --hops h.csv",
        "flows --hops h.csv --interfaces h.csv",
    )
    return [
        Setting("flows", ROUTED, ("f.yaml", "f.csv"), commands),
        Setting("three tiers", ROUTED | {"f.yaml": _THREE_TIER}, ("f.yaml",), commands),
        Setting("hops", {"f.yaml": ROUTED["f.yaml"], "h.csv": _HOPS}, ("h.csv",), hops),
    ]


def _sweeps() -> list[Setting]:
    texts = {path.stem: path.read_text() for path in sorted(folder("examples").glob("1*.yaml"))}
    made = [
        Setting(name, {"s.yaml": text}, ("s.yaml",), ("sweep plan s.yaml --json",))
        for name, text in texts.items()
        if "check:"
        not in text  # Routing some of its designs, to tell how long all take, takes long.
    ]
    commands = ("sweep run s.yaml -o run", "sweep plan s.yaml")
    return [*made, Setting("sweep", {"s.yaml": SWEEP}, ("s.yaml",), commands)]


def _import_libra() -> Setting:
    groups = "Forward: [ 4, 4, -1, -1 ]\nInputGrad: [ 4, 4, 1, 1 ]\nWeightGrad: [ 1, 2, 4, 32 ]\n"
    files = {
        "n.yml": NETWORKS[4],
        "w.txt": TABLES["GPT_3"].text(),
        "c.yml": groups,
        "m.yml": PRICES[4],
    }
    command = (
        "import libra --network n.yml --workload w.txt --communicator c.yml --cost-model m.yml"
    )
    return Setting("import libra", files, tuple(files), (f"{command} -o made.yaml",))


def _reports() -> Setting:
    plan = (folder("examples") / "reports" / "one_nic.yaml").read_text()
    files = {"plan.yaml": plan, "parts.yaml": _text("parts", "parts")}
    command = "report plan.yaml@450,50 --parts parts.yaml -o out --formats md"
    return Setting("report", files, ("plan.yaml", "parts.yaml", "parts.yaml"), (command,))


def _results() -> Setting:
    """What ``optimize --json`` printed, given to ``report``; only what is read of it."""
    result = {
        "plan": "plan.yaml",
        "set": ["constraints.0=total == 400 GB/s"],
        "objective": 0.72,
        "bandwidth_GBps": [300.0, 50.0, 30.0, 20.0],
        "topology": "RI(4)_FC(8)_RI(4)_SW(32)",
    }
    files = {"plan.yaml": _text("examples", _PLAN), "r.json": json.dumps(result, indent=1)}
    commands = ("report r.json -o out --formats md", "report plan.yaml@r.json -o out --formats csv")
    return Setting("result", files, ("r.json",), commands)
