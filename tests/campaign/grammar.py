"""Plans by grammar: mostly valid, of everything that a plan can say."""

from __future__ import annotations

import json
from math import prod
from random import Random
from typing import Any

from tests.campaign.case import Case

WORKLOADS = (
    "gpt3-libra",
    "resnet50-libra",
    "turing-nlg-libra",
    "msft-1t-libra",
    "gpt3",
    "turing-nlg",
    "msft-1t",
)
LOOPS: tuple[Any, ...] = (
    "no_overlap",
    "tp_dp_overlap",
    "async_dp",
    {"step": "max(forward, backward)"},
    {"layer": "forward + max(input_grad, weight_grad) + 20 us"},
    {"layer": "forward + backward.compute + 1.5 * max(backward.tp, backward.dp)"},
)
SCHEDULES = (
    {"all_reduce": "ring"},
    {"all-reduce": "hierarchical", "all-to-all": "direct"},
    {"all_to_all": "direct", "pxn": True},
)
TIERS = ("chiplet", "package", "node", "pod")


def plan(random: Random) -> dict[str, Any]:
    """A plan whose degrees fill its fabric; its rules may clash, or leave it without optimum."""
    sizes = [
        random.choice((2, 4, 4, 8, 8, 16, 32)) for _ in range(random.choice((1, 2, 2, 3, 3, 4)))
    ]
    blocks = [random.choice(("RI", "FC", "SW")) for _ in sizes]
    n_npus = prod(sizes)
    made: dict[str, Any] = {
        "fabric": _fabric(random, blocks, sizes),
        "cost_model": "libra-ispass24",
        "constraints": rules(random, len(sizes)),
    }
    made |= _group(random, n_npus) if random.random() < 0.1 else _job(random, n_npus)
    made |= _options(random, len(sizes))
    return made


def _fabric(random: Random, blocks: list[str], sizes: list[int]) -> dict[str, Any]:
    names = [random.choice(TIERS) for _ in blocks]
    if random.random() < 0.6:  # From the inside out, as people build.
        names.sort(key=TIERS.index)
    if random.random() < 0.95:  # No switch of a chiplet has a price.
        pairs = zip(blocks, names, strict=True)
        names = ["node" if pair == ("SW", "chiplet") else pair[1] for pair in pairs]
    dimensions = [f"{block}({size})" for block, size in zip(blocks, sizes, strict=True)]
    if len(sizes) > 1 and random.random() < 0.25:
        first = random.randrange(len(sizes) - 1)
        dimensions[first:] = [f"SW({size})" for size in sizes[first:]]
        dimensions[first], dimensions[-1] = f"[{dimensions[first]}", f"{dimensions[-1]}]"
        if random.random() < 0.9:  # Others have no NIC.
            names[first:] = ["pod"] * (len(sizes) - first)
    fabric: dict[str, Any] = {"topology": "_".join(dimensions), "tiers": names}
    parts = {"SW": ("nvlink4-8", "nvl72"), "FC": ("xgmi-8",), "RI": ("ici-torus",)}
    if random.random() < 0.1:
        fabric["scale_up"] = random.choice(parts[blocks[0]])
    if random.random() < 0.3:
        fabric["latency_ns"] = random.choice((0, 50, 1e4, [random.choice((0, 500)) for _ in sizes]))
    if random.random() < 0.25:
        fabric["realization"] = _realization(random)
    if random.random() < 0.15:
        fabric["link_options"] = _link_options(random, len(sizes))
    return fabric


def _realization(random: Random) -> dict[str, Any]:
    keys = {
        "switch_radix": (4, 8, 32, 64, 128),
        "port_speed": ("400 Gbps", "50 GB/s", "25 GB/s"),
        "nics": ("auto", 1, 2, 4),
        "oversubscription": (1, 2, 1.5, 4),
        "wiring": ("rail", "rail_optimized", "top_of_rack"),
        "npus_per_rack": (8, 32),
        "parallel_links": ("auto", 1, 2),
        "placement": ("contiguous", "rail", "random"),
        "queue_pairs": (1, 4),
        "npus_per_address": (1, 8),
        "failed_links": (0, 1, 3),
        "preset": ("rail-8x400G",),
        "pod": ({"switch_radix": 32}, {"wiring": "rail"}),
    }
    chosen = random.sample(sorted(keys), random.randint(1, 4))
    return {key: random.choice(keys[key]) for key in chosen}


def _link_options(random: Random, n_dims: int) -> dict[str, Any]:
    some = random.sample(range(n_dims), random.randint(1, n_dims))
    kinds = (
        ["25 GB/s", "50 GB/s", "100 GB/s"],
        [{"speed": "100 Gbit/s", "ports": "1..4", "usd_per_port": 700}],
        [{"speed": "400 Gbit/s", "ports": [1, 2], "usd_per_npu": [1900, 3600], "name": "NIC"}],
    )
    return {f"dim{i + 1}": random.choice(kinds) for i in some}


def _degrees(random: Random, n_npus: int) -> dict[str, int]:
    tp = random.choice([2**n for n in range(n_npus.bit_length()) if n_npus % 2**n == 0])
    return {"tp": tp, "dp": n_npus // tp}


def _job(random: Random, n_npus: int) -> dict[str, Any]:
    name = random.choice(WORKLOADS)
    degrees = _degrees(random, n_npus)
    job: dict[str, Any] = {"workload": name, "parallelism": degrees}
    is_table = name == "resnet50-libra"
    if random.random() < _likely(0.2, not is_table, certain=not name.endswith("-libra")):
        job["global_batch"] = degrees["dp"] * random.choice((1, 2, 3, 64))
    if random.random() < _likely(0.4, not is_table):
        job["npu"] = _npu(random)
    return job


def _likely(share: float, fits: bool, certain: bool = False) -> float:
    """Share of plans with a key: few where it does not fit, most where it is needed."""
    return 0.98 if certain else share if fits else 0.02


def _npu(random: Random) -> dict[str, Any]:
    if random.random() < 0.3:
        return {"name": "h100-sxm", "efficiency_fraction": 0.45}
    rate, share = random.choice((1e-6, 1.0, 312, 989.4, 1e9)), random.choice((1e-6, 0.4, 1))
    return {"peak_TFLOPps": rate, "efficiency_fraction": share}


def _group(random: Random, n_npus: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "workloads": [_job(random, n_npus) for _ in range(random.randint(1, 3))]
    }
    for number, job in enumerate(made["workloads"]):
        job["name"] = f"job{number}"
    if random.random() < 0.7:
        made["group_objective"] = random.choice(("weighted", "relative", "worst_case"))
    return made


def _options(random: Random, n_dims: int) -> dict[str, Any]:
    algorithms = ("default", "ring", "direct", "direct1", "halving_doubling")
    choices = {
        "training_loop": (0.6, lambda: random.choice(LOOPS)),
        "contention": (0.3, lambda: random.random() < 0.5),
        "bubble_fraction": (0.1, lambda: random.choice((0, 0.05, 3))),
        "objective": (0.6, lambda: random.choice(("performance", "performance_per_cost", "cost"))),
        "fixed_cost": (0.3, lambda: random.choice(("1 M$", "1 $", {"npu": "h100-sxm"}, "900 B$"))),
        "fidelity": (0.25, lambda: random.choice(("ideal", "pipelined", "pipelined"))),
        "chunks": (0.12, lambda: random.choice((1, 8, 64, "auto"))),
        "scheduler": (0.08, lambda: random.choice(("hierarchical", "balanced"))),
        "algorithms": (0.05, lambda: [random.choice(algorithms) for _ in range(n_dims)]),
        "schedules": (0.08, lambda: random.choice(SCHEDULES)),
        "in_network_reduction": (0.05, lambda: [f"dim{random.randint(1, n_dims)}"]),
    }
    return {key: draw() for key, (share, draw) in choices.items() if random.random() < share}


def rules(random: Random, n_dims: int) -> list[str]:
    """A total, or not, and others."""
    total_GBps = 10 ** random.uniform(0.5, 3.5)
    made = []
    if random.random() < 0.9:
        made.append(f"total {random.choice(('==', '<='))} {total_GBps:.6g} GB/s")
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        made.append(_rule(random, n_dims, total_GBps))
    random.shuffle(made)
    return made


def _rule(random: Random, n_dims: int, total_GBps: float) -> str:
    numbers = random.sample(range(1, n_dims + 1), 2) if n_dims > 1 else (1, 1)
    one, other = (f"dim{number}" for number in numbers)
    size = total_GBps * 10 ** random.uniform(-2, 0.3) / n_dims
    return random.choice(
        (
            f"{one} >= {size:.4g} GB/s",
            f"{one} <= {size:.4g} GB/s",
            f"{size / 10:.4g} GB/s <= {one} <= {size:.4g} GB/s",
            f"{one} == {size:.4g} GB/s",
            f"{one} >= {other}",
            f"{one} + 2 * {other} <= {size:.4g} GB/s",
            f"{random.choice((0.5, 3))} * {one} - {other} >= 0 GB/s",
            f"total <= {size:.4g} GB/s",
            f"taper({one}) {random.choice(('<=', '==', '>='))} {random.choice((0.5, 1, 7))}",
            f"{one} >= {other} / {random.choice((2, 7))}",
            f"cost <= {10 ** random.uniform(-1, 4):.4g} M$",
            f"step_time <= {10 ** random.uniform(-1, 5):.4g} ms",
        )
    )


def vector(random: Random, n_dims: int) -> str:
    """Bandwidths for ``--bandwidth``."""
    return ",".join(f"{10 ** random.uniform(-2, 3):.4g}" for _ in range(n_dims))


def plan_case(random: Random) -> Case:
    """A command over one plan."""
    made = plan(random)
    n_dims = len(made["fabric"]["tiers"])
    command = random.choices(
        (
            ("optimize",),
            ("evaluate", "--bandwidth", vector(random, n_dims)),
            ("check", "--bandwidth", vector(random, n_dims), "--seeds", "1"),
            ("pareto", "--points", "4"),
            ("optimize", "--routing", "ecmp", "--seeds", "1"),
        ),
        (50, 25, 10, 10, 2),
    )[0]
    shown = ("--json",) if random.random() < 0.8 else ()
    arguments = (command[0], "plan.yaml", *command[1:], *shown)
    return Case(f"plan {command[0]}", arguments, {"plan.yaml": json.dumps(made, indent=1).encode()})
