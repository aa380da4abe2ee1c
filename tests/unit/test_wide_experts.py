"""Experts on domains that are no multiple of them, such as 256 on the 72 NPUs of a rack (C15)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from libra_planner.errors import SpecError
from libra_planner.fabric.topology import parse_topology
from libra_planner.inputs.plans import load_plan, open_plan
from libra_planner.workload.placement import wider_experts
from tests.comparisons import compared_by

PLAN = """\
workload: deepseek-v3
parallelism: auto
global_batch: 1152
npu: gb200
fidelity: calibrated
fabric:
  topology: SW(72)_SW(32)
  tiers: [node, leaf]
  scale_up: nvl72
  realization: {port_speed: 800 Gbps}
cost_model: clos-2026
constraints: [leaf == 100 GB/s]
"""
NOTE = (
    "dim1: its 72 NPUs are no multiple of 16, 32 or 64, so no strategy has EP 16, 32 or 64; "
    "'fabric.topology: SW(64)_SW(32)' allows them (8 of 72 NPUs of each nvl72 then idle, and the "
    "bill still pays for all)"
)
SMALLER = "or use 64 of the 72 NPUs of dim1: fabric.topology: SW(64)_SW(32), 2,048 NPUs"
RULES = "got {ep: 64, rest: auto}, expected degrees that divide 2,304 NPUs, the model and"


@pytest.fixture
def racks(tmp_path: Path) -> str:
    path = tmp_path / "racks.yaml"
    path.write_text(PLAN)
    return str(path)


@pytest.mark.parametrize(
    ("degrees", "said"),
    [
        (
            "{ep: 64, rest: auto}",
            f"{RULES} the batch: the 72 NPUs of dim1 are no multiple of 64; write ep 8, {SMALLER}",
        ),
        ("{ep: 72, rest: auto}", f"the 256 experts are no multiple of 72; write ep 8, {SMALLER}"),
        ("{tp: 16, rest: auto}", "the 72 NPUs of dim1 are no multiple of 16; write tp 8"),
        ("{pp: 5, rest: auto}", "expected degrees that divide 2,304 NPUs, the model and the batch; "
         "write pp 4 or 8"),
        (
            "{pp: 2, dp: 1152, ep: 64}",
            "got ep 64, expected a divisor of the 256 experts of deepseek-v3 that fits the "
            f"dimensions: the 72 NPUs of dim1 are no multiple of 64; write ep 8, {SMALLER}",
        ),
        ("{pp: 2, dp: 1152, ep: 72}", f"that fits the dimensions; write ep 8, {SMALLER}"),
    ],
)  # fmt: skip
def test_a_degree_is_refused_for_its_own_reason(degrees: str, said: str, racks: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        load_plan(racks, f"parallelism={degrees}")


def test_no_fix_of_experts_is_refused_itself(racks: str) -> None:
    """What a message proposes can be planned: the degree, and the smaller domain."""
    for ep in (3, 9, 16, 24, 36, 64, 72, 128, 144, 256):
        try:
            load_plan(racks, ("memory=ignore", f"parallelism={{pp: 2, dp: 1152, ep: {ep}}}"))
        except SpecError as error:
            fix = error.faults[0].fix
            other = re.findall(r"\d+", fix.partition(", or use")[0])
            for degree in other:
                degrees = f"parallelism={{pp: 2, dp: 1152, ep: {degree}}}"
                load_plan(racks, ("memory=ignore", degrees))
    smaller = ("fabric.topology=SW(64)_SW(32)", "memory=ignore", "global_batch=1024")
    for ep in (16, 32, 64):
        load_plan(racks, (*smaller, f"parallelism={{pp: 2, dp: 1024, ep: {ep}}}"))


def test_a_plan_says_which_degrees_of_experts_its_domain_rules_out(racks: str, run) -> None:
    assert NOTE in open_plan(racks).base.text.notes
    assert NOTE in run("search", racks, "--json").payload["notes"]
    for other in ("fabric.topology=SW(64)_SW(32)", "workload=llama3-405b"):
        notes = open_plan(racks, [other]).base.text.notes
        assert not any("no strategy has EP" in one for one in notes)


def test_a_first_plan_says_so_too(tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--model", "deepseek-v3", "--npu", "gb200", "--npus", "2304", "--nic", "800Gbps"]
    assert f"D{NOTE[1:]}.\n" in run("init", *flags).err
    assert f"# {NOTE}\n" in Path("plan.yaml").read_text()
    dense = run("init", *flags, "--force", "--model", "llama3-405b")
    assert "EP 16" not in dense.err + Path("plan.yaml").read_text()


def test_the_bill_of_a_smaller_domain_pays_for_whole_racks(racks: str) -> None:
    """32 racks of 72 for 32 groups of 64."""
    settings = ["fabric.topology=SW(64)_SW(32)", "parallelism={ep: 64, rest: auto}"]
    problem = load_plan(racks, settings)
    assert "32 x nvl72 hold 2,304 NPUs, and 2,048 are used: 256 are paid for and idle" in (
        problem.text.notes
    )
    Path(racks).write_text(
        PLAN.replace("SW(72)", "SW(64)").replace("auto", "{tp: 8, cp: 2, dp: 128, ep: 64, zero: 1}")
        + "memory: ignore\n"
    )
    [one] = compared_by(racks).candidates
    units = {line.part.name: line.n_units for line in one.bill.of("compute").lines}
    assert units == {"gb200": 2304, "server-nvl72": 32}


@pytest.mark.parametrize(
    ("topology", "n_experts", "wider"),
    [
        ("SW(72)_SW(32)", 256, (16, 32, 64)),
        ("SW(72)_SW(32)", 160, (10, 16, 20, 32, 40)),
        ("SW(72)_SW(32)", 288, ()),  # 72 divides them.
        ("SW(8)_SW(32)", 256, ()),
        ("SW(8)_SW(32)", 60, (5, 6)),  # 4 divides 8.
        ("RI(6)_SW(32)", 256, ()),  # A ring has no smaller one inside.
    ],
)
def test_wider_experts_by_hand(topology: str, n_experts: int, wider: tuple[int, ...]) -> None:
    assert wider_experts(parse_topology(topology), n_experts) == wider


def test_a_mistyped_npu_is_one_fault(racks: str, run) -> None:
    """Neither the collectives, nor the other name of the key, tell it again."""
    for more in ([], ["fixed_cost={npu: gb200}"], ["system=gb200"]):
        given = ["npu=gb2OO", *more]
        found = run("optimize", racks, *(x for one in given for x in ("--set", one)))
        [line] = found.err.splitlines()
        assert found.code == 2
        assert "--set npu: " in line
        assert line.endswith("did you mean gb200?")
    found = run("optimize", racks, "--set", "fixed_cost={npu: gb2OO}")
    [line] = found.err.splitlines()
    assert "--set fixed_cost" in line
    assert json.dumps(line).count("gb2OO") == 1


def test_an_optimum_says_how_long_it_sends_through_switches(run) -> None:
    """Beside its proof in the model: hidden traffic, such as that of ZeRO 3, counts as well."""
    found = run("optimize", "0e_rails_2to1")
    payload = run("optimize", "0e_rails_2to1", "--json").payload
    leaf, spine = payload["busy_fraction_by_dimension"][1:]
    said = f"In the model: NPUs send over dim2 for {leaf:.0%} and dim3 for {spine:.0%} of the step"
    shown = " ".join(found.out.split())
    assert f"part in 10^9 {said}; flows that share links may stretch that" in shown
    flat = "parallelism={tp: 8, dp: 256, zero: 3}"
    busy = run("optimize", "0e_rails_2to1", "--set", flat, "--json").payload
    leaf, spine = busy["busy_fraction_by_dimension"][1:]
    shown = " ".join(run("optimize", "0e_rails_2to1", "--set", flat).out.split())
    assert f"NPUs send over dim2 for {leaf:.0%} and dim3 for {spine:.0%} of the step" in shown
    assert leaf > 0.5
    assert spine >= 0.3
    assert "first note" not in shown  # Rings of neighbours hardly meet there.
    routed = run("check", "0e_rails_2to1", "--set", flat, "--seeds", "2", "--json").payload
    assert routed["effective_step_time_s"]["mean"] < 1.01 * routed["ideal_step_time_s"]
    evaluated = run("evaluate", "0e_rails_2to1", "--bandwidth", "450,50,25").out
    assert "In the model" not in evaluated
    assert "(full attention counted)" in evaluated
