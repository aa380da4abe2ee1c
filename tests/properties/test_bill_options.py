"""Random plans with ``prices: bill`` against a report for every option, at linear prices (C22)."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.errors import PlannerError
from libra_planner.fabric.realization import realize
from libra_planner.studies.reports import Question, compared

PLAN = """\
workload: gpt3
global_batch: {dp}
npu: {{name: h100-sxm, efficiency_fraction: 0.4}}
fabric:
  topology: {topology}
  tiers: [node, leaf{further}]
  scale_up: nvlink4-8
parallelism: {{tp: 8, dp: {dp}}}
cost_model: clos-2026
objective: {objective}
"""
OBJECTIVES = ("performance", "performance_per_cost", "cost")
SPEEDS, TIERS = (200, 400, 800), ("spine", "core")


def _random_plan(seed: int, folder_: Path) -> tuple[Path, list, list, list[str]]:
    """A plan without options, and what each of its NICs, radices and tapers may be."""
    draw = np.random.default_rng(seed)
    sizes = [int(draw.choice([4, 8, 12])), *map(int, draw.choice([2, 3, 4], draw.integers(0, 3)))]
    names = TIERS[: len(sizes) - 1]
    inner = "_".join(f"SW({n})" for n in sizes)
    text = PLAN.format(
        dp=int(np.prod(sizes)),
        topology=f"SW(8)_[{inner}]" if names else f"SW(8)_{inner}",
        further="".join(f", {name}" for name in names),
        objective=OBJECTIVES[seed % 3],
    )
    path = folder_ / "plan.yaml"
    path.write_text(text)
    nics = [(int(draw.integers(1, 3)), int(speed)) for speed in draw.permutation(SPEEDS)[:2]]
    tapers = [sorted({float(draw.choice([1, 1.5, 2, 3, 7])) for _ in range(2)}) for _ in names]
    return path, nics, tapers, list(names)


def _by_report(path: Path, nic: tuple[int, int], tapers: tuple[float, ...], radix: int):
    """Bandwidths, step time and bill of one option, by its report at linear prices."""
    links = f"{{port_speed: {nic[1]} Gbps, nics: {nic[0]}, switch_radix: {radix}}}"
    settings = (f"fabric.realization={links}",)
    problem = lp.load_plan(path, settings)
    asked = [450e9, nic[0] * nic[1] / 8 * 1e9]
    for taper in tapers:
        asked.append(asked[-1] / taper)
    vector = realize(problem.topology, asked, problem.links).bandwidth_Bps
    text = ",".join(repr(one / 1e9) for one in vector.tolist())
    [one] = compared(Question((f"{path}@{text}",), settings)).candidates
    return vector, one.evaluation.step_time_s, float(one.bill.total_usd)


@pytest.mark.parametrize("seed", range(9))
def test_the_optimum_is_that_of_all_reports(seed: int, tmp_path: Path) -> None:
    path, nics, tapers, names = _random_plan(seed, tmp_path)
    found = []
    for nic, radix, *ratios in itertools.product(nics, (64, 128), *tapers):
        try:
            found.append(_by_report(path, nic, tuple(ratios), radix))
        except PlannerError:  # It cannot be built, or a part of it has no price.
            continue
    listed = ", ".join(f"{n} x {speed} Gbps" for n, speed in nics)
    ratios = ", ".join(f"{name}: {values}" for name, values in zip(names, tapers, strict=True))
    options = f"{{nics: [{listed}], tapers: {{{ratios}}}, switch_radix: [64, 128]}}"
    settings = ["prices=bill", f"fabric.bill_options={options}"]
    problem = lp.load_plan(path, settings)
    table = problem.prices.bills
    assert table is not None
    assert sorted(table.usd.tolist()) == sorted(usd for _, _, usd in found)
    second = {"performance": lambda time, usd: usd, "cost": lambda time, usd: time}
    value = {
        "performance": lambda time, usd: time,
        "performance_per_cost": lambda time, usd: time * usd,
        "cost": lambda time, usd: usd,
    }[problem.objective]
    design = lp.optimize(problem)
    least = min(value(time, usd) for _, time, usd in found)
    assert design.objective == design.lower_bound == pytest.approx(least, rel=1e-12)
    tied = [x for x in found if value(*x[1:]) <= least * (1 + 1e-12)]
    then = second.get(problem.objective, lambda time, usd: usd)
    best = min(tied, key=lambda x: (round(then(*x[1:]), 9), tuple(x[0])))
    assert design.bandwidth_bytes_per_s == pytest.approx(best[0], rel=1e-12)
    assert float(problem.cost_usd(design.bandwidth_bytes_per_s)) == best[2]
