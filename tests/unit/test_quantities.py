"""Quantities of rules: one from outside is bounded, told, priced, swept and reported in its unit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.errors import SpecError, UnknownName
from libra_planner.evaluation import evaluate
from libra_planner.quantities import QUANTITIES, PricedFabric, Quantity, quantity_in, register
from libra_planner.step.expression import Array
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from tests.conftest import Outcome

Run = Callable[..., Outcome]

W_PER_BPS = 2e-10
"""Of an NPU's links, in every dimension."""


class Power(Quantity):
    """What all links draw."""

    def row(self, fabric: PricedFabric) -> Array:
        """Watts per byte/s."""
        return np.full(fabric.topology.n_dims, W_PER_BPS * fabric.topology.n_npus)


POWER = Power(
    "power", "power", "kW", {"W": 1.0, "kW": 1e3, "MW": 1e6}, ("kW",), "MW", "a power", 1e-3
)


@pytest.fixture
def power() -> Iterator[None]:
    register(POWER)
    yield
    QUANTITIES.remove(POWER.name)


def budget(kilowatts: float) -> float:
    """Total bandwidth per NPU that so much power carries, GB/s."""
    return kilowatts * 1e3 / W_PER_BPS / 4096 / 1e9


@pytest.mark.usefixtures("power")
def test_a_bound_on_power_is_a_bound_on_bandwidth(run: Run) -> None:
    asked = ("--set", 'constraints=["power <= 400 kW"]', "--json")
    payload = run("optimize", lp.example("01_gpt3_4d"), *asked).payload
    assert sum(payload["bandwidth_GBps"]) == pytest.approx(budget(400), rel=1e-6)
    price = next(one for one in payload["shadow_prices"] if one.get("rule") == "power <= 400 kW")
    assert (price["unit"], price["bound"]) == ("kW", "<= 400 kW")
    more = run(
        "optimize", lp.example("01_gpt3_4d"), "--set", 'constraints=["power <= 401 kW"]', "--json"
    ).payload
    gain = more["step_time_s"] - payload["step_time_s"]
    assert price["d_step_time_s"] == pytest.approx(gain, rel=2e-2)


@pytest.mark.usefixtures("power")
def test_excess_and_worth_are_told_in_its_units(run: Run) -> None:
    asked = ("--set", 'constraints=["power <= 0.3 MW"]')
    told = run("evaluate", lp.example("01_gpt3_4d"), "--bandwidth", "300,100,75,25", *asked).out
    assert "Broken: power <= 0.3 MW, by 109.6 kW" in told
    worth = run("optimize", lp.example("01_gpt3_4d"), *asked).out
    assert "MW " in worth
    assert "GB/s  power" not in worth


@pytest.mark.usefixtures("power")
def test_sweeps_and_reports_know_it(run: Run, tmp_path: Path) -> None:
    file, there = tmp_path / "sweep.yaml", tmp_path / "run"
    file.write_text(
        'base: 01_gpt3_4d\naxes: {limit: [300, 400]}\nset: {constraints: ["power <= {limit} kW"]}\n'
    )
    run_sweep(load_sweep(file), there)
    for row in Results.at(there).everything().dicts():
        assert row["status"] == "optimal"
        total_GBps = sum(row[f"bandwidth_dim{dim}_GBps"] for dim in range(1, 5))
        assert total_GBps == pytest.approx(budget(row["limit"]), rel=1e-6)
    plan = tmp_path / "plan.yaml"
    run("sweep", "design", there, 0, "-o", plan, "--force")
    broken = f"{plan}@300,100,75,25"
    report = run("report", f"{there}:1", broken, "-o", tmp_path / "report", "--formats", "md")
    assert report.code == 0
    text = (tmp_path / "report" / "report.md").read_text()
    assert re.search(
        "B breaks rules of the plan at the bandwidth asked for: power .*= 300 kW", text
    )


@pytest.mark.usefixtures("power")
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("power <= 1 GB/s", "got a power compared with a bandwidth"),
        ("power + cost <= 1 kW", "got a power and a money in one sum"),
        ("power <= 3", "write 3 kW"),
        ("power <= 1e25 kW", "expected 0 or a size from 0.001 to 1e+18"),
        ("total <= 4 GB", "an amount of money, a time or a power; did you mean GB/s?"),
    ],
)
def test_what_does_not_fit_it_is_refused(rule: str, said: str) -> None:
    with pytest.raises(SpecError) as error:
        lp.load_plan(lp.example("01_gpt3_4d"), f"constraints=['{rule}']")
    assert said in str(error.value)


def test_an_unknown_quantity_is_refused_and_not_taken_for_another() -> None:
    with pytest.raises(SpecError, match="'power'"):
        lp.load_plan(lp.example("01_gpt3_4d"), "constraints=['power <= 2 MW']")
    with pytest.raises(UnknownName, match="'MW'"):
        quantity_in("MW")
    with pytest.raises(TypeError, match="row"):
        Quantity("weight", "weight", "kg", {"kg": 1.0}, ("kg",))  # type: ignore[abstract]
    with pytest.raises(ValueError, match="in units of cost"):
        register(Power("price", "value", "$", {"$": 1.0}, ("$",)))
    with pytest.raises(ValueError, match="expected it in its units"):
        register(Power("weight", "weight", "t", {"kg": 1.0}, ("kg",)))


@pytest.mark.parametrize("unit", ["GB/s", "$", "s"])
def test_the_totals_of_a_plan_are_those_of_bandwidth(unit: str) -> None:
    problem = lp.load_plan(lp.example("01_gpt3_4d"))
    quantity = quantity_in(unit)
    assert quantity.units[quantity.unit] == quantity.unit_factor
    evaluation = evaluate(problem, np.full(4, 1e9))
    assert all(one.unit in ("GB/s", "$", "s") for one in evaluation.violated)


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        ("init --model llama3-8b --npu h100-sxm --npus 64 --nic {} -o -", "400Gbps", "400G"),
        ("fabric --hosts 64 --nic {} --json", "400Gbps", "400G"),
        ("fabric --hosts 64 --nic 400Gbps --port {} --json", "800Gbps", "800G"),
        ("check 0e_rails_2to1 --set fabric.realization.port_speed={} --json", "400Gbps", "400G"),
        (
            "collective --system h100-sxm --kind all-reduce --size 1GiB --nodes 4 --nics {}",
            "8x400Gbps",
            "8x400G",
        ),
    ],
)
def test_ports_are_named_as_the_trade_names_them(
    run: Run, command: str, old: str, new: str
) -> None:
    """400G is a port of 400 Gbit/s."""
    asked, meant = (run(*command.format(one).split()) for one in (new, old))
    assert asked.code == meant.code == 0, asked.err
    assert asked.out == meant.out.replace(old, new)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            "fabric --hosts 64 --nic 400GB",
            "--nic: got '400GB', a size, expected the speed of a port, which is in Gbit/s; "
            "write 400Gbps",
        ),
        (
            "evaluate 0e_rails_2to1 --set 'fabric.link_options={leaf: [50 G]}' --bandwidth 450,50,25",
            "got the unit 'G', expected GB/s or Gbit/s; write 50 Gbit/s for bits or 50 GB/s",
        ),
    ],
)
def test_sizes_are_no_speeds_and_bandwidths_have_no_short_names(
    run: Run, command: str, told: str
) -> None:
    found = run(*shlex.split(command))
    assert found.code == 2
    assert told in found.err
