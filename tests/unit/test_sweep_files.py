"""Sweep files: counts, order, samples, and what is said of wrong ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from libra_planner.errors import SpecError
from libra_planner.reading import bundled
from libra_planner.sweeps.axes import sweep_schema
from libra_planner.sweeps.figures.solved import schema_of
from libra_planner.sweeps.probe import probe
from libra_planner.sweeps.spec import Sweep, chunk_between, job_of, load_sweep

BASE = """\
base:
  workload: gpt3-libra
  fabric:
    topology: RI(4)_FC(8)_RI(4)_SW(32)
    tiers: [chiplet, package, node, pod]
  parallelism: {tp: 16, dp: 256}
  cost_model: libra-ispass24
  constraints:
    - total == {budget} GB/s
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str, base: str = BASE) -> Path:
        path = tmp_path / "sweep.yaml"
        path.write_text(base + text, encoding="utf-8")
        return path

    return write


def _values(found: Sweep, first: int, last: int) -> list[dict[str, object]]:
    chunk = chunk_between(found, first, last)
    return [chunk.values(i) for i in range(chunk.n)]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("[100, 50]", [100, 50]),
        ("{from: 100, to: 200, step: 25}", [100, 125, 150, 175, 200]),
        ("{from: 100, to: 190, step: 25}", [100, 125, 150, 175]),
        ("{from: 0.1, to: 0.5, step: 0.1}", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("{from: 1, to: 3, n: 5}", [1.0, 1.5, 2.0, 2.5, 3.0]),
        ("{from: 1, to: 3, n: 3}", [1, 2, 3]),
        ("{from: 10, to: 1000, n: 3, log: true}", [10, 100, 1000]),
        ("{from: 7, to: 7, n: 1}", [7]),
    ],
)
def test_axis_values(axis: str, expected: list[float], sweep: Callable[[str], Path]) -> None:
    (found,) = load_sweep(sweep(f"axes: {{budget: {axis}}}")).axes
    assert list(found.values) == expected
    assert [type(value) for value in found.values] == [type(value) for value in expected]


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("{from: 1, to: 3, n: 1}", "got 1 value from 1 to 3, expected from = to"),
        ("{from: 1, to: 3, n: 3, step: 1}", "got both step and n, expected one of them"),
        ("{start: 1, to: 3, step: 1}", "axes.budget.start: got the unknown key 'start'"),
        ("{from: 1, to: 3, nn: 3}", "unknown key 'nn', expected from, to, step, n, log"),
        ("{from: 1, to: 3, steps: 1}", "expected from, to, step, n, log; did you mean step?"),
    ],
)
def test_ranges_that_are_refused(axis: str, message: str, sweep: Callable[[str], Path]) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        load_sweep(sweep(f"axes: {{budget: {axis}}}"))


def test_an_empty_list_of_objectives_is_refused(sweep: Callable[[str], Path]) -> None:
    with pytest.raises(SpecError, match="objective: got a list, expected at least 1 entries"):
        load_sweep(sweep("axes: {budget: [100]}\nobjective: []\n"))


def test_factorizations_by_hand(sweep: Callable[[str], Path]) -> None:
    """8 NPUs in 1 or 2 dimensions: (8), (2, 4), (4, 2), each with two blocks."""
    text = """\
axes:
  budget: [100]
  fabric.topology:
    factorizations: {npus: 8, dims: 1..2, blocks: [RI, SW]}
    tiers: {1: [pod], 2: [node, pod]}
"""
    found = load_sweep(sweep(text))
    (shapes,) = (axis for axis in found.axes if axis.name == "fabric.topology")
    assert shapes.values == (
        "RI(8)", "SW(8)",
        "RI(2)_RI(4)", "RI(2)_SW(4)", "SW(2)_RI(4)", "SW(2)_SW(4)",
        "RI(4)_RI(2)", "RI(4)_SW(2)", "SW(4)_RI(2)", "SW(4)_SW(2)",
    )  # fmt: skip
    job = job_of(found)
    assert job.n_dims == 2
    plans = [job.template.filled(values).value["fabric"] for values in _values(found, 0, 3)]
    assert [plan["tiers"] for plan in plans] == [["pod"], ["pod"], ["node", "pod"]]


def test_factorizations_of_4096_count() -> None:
    """2^12 into d ordered factors of at least 2: C(11, d-1) of them, times 3^d blocks."""
    from libra_planner.sweeps.axes import FactorizationsSpec, _topologies

    spec = FactorizationsSpec(npus=4096, dims="2..4", blocks=["RI", "FC", "SW"])
    assert len(_topologies(spec)) == 11 * 9 + 55 * 27 + 165 * 81


def test_structure_changes_slowest_and_counts_after_filters(sweep: Callable[[str], Path]) -> None:
    text = """\
axes:
  budget: {from: 100, to: 1000, step: 100}
  parallelism.tp: [8, 16, 32]
  parallelism.dp: [128, 256, 512]
where:
  - parallelism.tp * parallelism.dp == 4096
  - budget % 200 == 0
"""
    found = load_sweep(sweep(text))
    assert [axis.name for axis in found.axes] == ["parallelism.tp", "parallelism.dp", "budget"]
    assert found.space.n == 15
    assert found.space.n_combinations == 90
    assert _values(found, 4, 6) == [
        {"parallelism.tp": 8, "parallelism.dp": 512, "budget": 1000},
        {"parallelism.tp": 16, "parallelism.dp": 256, "budget": 200},
    ]


def test_whole_values_and_text(sweep: Callable[[str], Path]) -> None:
    """A text that is one placeholder becomes the value; maps and quotients too."""
    text = """\
axes:
  tp: [8, 16]
  fixed_cost: [0 $, {npu: h100-sxm}]
set:
  parallelism: {tp: "{tp}", dp: "{4096 / tp}"}
  contention: "{tp > 8}"
  constraints.1: "{2 * tp} GB/s <= pod"
  constraints.0: total == 500 GB/s
"""
    found = load_sweep(sweep(text))
    template = found.template
    plans = [template.filled(values).value for values in _values(found, 0, 4)]
    assert [plan["parallelism"] for plan in plans[::2]] == [
        {"tp": 8, "dp": 512},
        {"tp": 16, "dp": 256},
    ]
    assert [plan["contention"] for plan in plans[::2]] == [False, True]
    assert plans[3]["constraints"] == ["total == 500 GB/s", "32 GB/s <= pod"]
    assert [plan["fixed_cost"] for plan in plans[:2]] == ["0 $", {"npu": "h100-sxm"}]
    schema = schema_of(job_of(found))
    assert [str(schema.field(name).type) for name in ("tp", "fixed_cost")] == ["int64", "string"]


@pytest.mark.parametrize("method", ["lhs", "random"])
def test_samples_repeat_are_distinct_and_pass(method: str, sweep: Callable[[str], Path]) -> None:
    text = f"""\
axes:
  budget: {{from: 100, to: 10099, step: 1}}
  contention: [true, false]
  bubble_fraction: {{from: 0, to: 1, n: 101}}
where: budget % 2 == 0
sample: {{method: {method}, n: 500}}
seed: """
    found, again, other = (load_sweep(sweep(text + seed)) for seed in ("4", "4", "5"))
    digits = found.space.digits(0, found.space.n)
    assert digits.tolist() == again.space.digits(0, again.space.n).tolist()
    assert digits.tolist() != other.space.digits(0, other.space.n).tolist()
    columns = [tuple(column) for column in digits.T]
    assert columns == sorted(set(columns))
    assert all(one["budget"] % 2 == 0 for one in _values(found, 0, found.space.n))
    assert found.space.n == 500 if method == "random" else 200 < found.space.n < 300


def test_a_latin_hypercube_covers_every_value(sweep: Callable[[str], Path]) -> None:
    text = (
        "axes:\n  budget: {from: 1, to: 50, step: 1}\n  bubble_fraction: {from: 0, to: 1, n: 50}\n"
    )
    found = load_sweep(sweep(text + "sample: {n: 50}"))
    for row in found.space.digits(0, found.space.n):
        assert sorted(row) == list(range(50))


def test_a_space_beyond_enumeration_can_be_sampled(sweep: Callable[[str], Path]) -> None:
    axes = "axes:\n  budget: {from: 1, to: 100000, step: 1}\n  bubble_fraction: {from: 0, to: 1, n: 100000}\n"
    assert load_sweep(sweep(axes + "sample: {n: 20}")).space.n == 20
    with pytest.raises(SpecError, match=r":11:3: axes: got 10,000,000,000 combinations.*sample"):
        load_sweep(sweep(axes))


def _probe(path: Path) -> None:
    found = load_sweep(path)
    probe(found)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("axes: {budget: []}", [":10:16: axes.budget: got 0 values"]),
        ("axes: {budget: 5}", [":10:16: axes.budget: got 5, expected the values"]),
        ("axes: {budget: [.nan]}", [":10:17: axes.budget.0: got nan, expected a finite number"]),
        ("axes: {budget: [1, null]}", [":10:20: axes.budget.1: got nothing"]),
        ("axes: {budget: [1, 1]}", [":10:16: axes.budget: got 1 twice"]),
        ("axes: {budget: [1, 1.0]}", [":10:16: axes.budget: got 1.0 twice"]),
        ("axes: {budget: {from: 1, to: 1.0000000000001, n: 3}}", [":10:16: axes.budget: got 1.0 twice"]),
        ("axes: {budget: [1], Budget: [2]}", [":10:21: axes.Budget: got the axis 'Budget', expected a name that no other axis"]),
        ("axes: {budget: [1], Status: [2]}", [":10:21: axes.Status: got the axis 'Status', expected a name that no other axis"]),
        ("axes: {budget: [1], best_row: [2]}", [":10:21: axes.best_row: got the axis 'best_row'"]),
        ("axes: {budget: {from: 9, to: 1, step: 1}}", ["got from 9 to 1, expected from <= to"]),
        ("axes: {budget: {from: 1, to: 9, step: 0}}", ["axes.budget.step: got 0"]),
        ("axes: {budget: {from: 1, to: .inf, step: 1}}", [":10:30: axes.budget.to: got inf"]),
        ("axes: {budget: {from: 1, to: 9, step: 1e-9}}", ["expected at most 1,000,000"]),
        ("axes: {budget: {from: 0, to: 9, n: 3, log: true}}", ["expected more than 0"]),
        ("axes: {budget: {from: 1, to: 9, m: 3}}", ["axes.budget.m: got the unknown key 'm'"]),
        ("axes: {}", ["axes: got"]),
        ("axes: {budgets: [1]}", [":9:7: constraints.0: got the name 'budget' in 'budget'", "did you mean budgets?"]),
        ("axes: {budget: [1], tpp: [2]}", [":10:26: axes.tpp: got the axis 'tpp', which the plan does not use"]),
        ("axes: {budget: [1], parallelism.tq: [2]}", [":10:21: parallelism.tq of parallelism", "got the unknown key 'tq'"]),
        ("axes: {budget: [1], workload.x: [2]}", ["axes.workload.x: got no place for 'x'"]),
        ("axes: {budget: [1], status: [2]}", ["axes.status: got the axis 'status'"]),
        ("axes: {budget: [1]}\nset: {constraint.0: a}", [":11:21: set.constraint.0: got 'constraint.0'", "did you mean constraints?"]),
        ("axes: {budget: [1]}\nwhere: budget = 3", [":11:8: where: got 'budget = 3'"]),
        ("axes: {budget: [1]}\nwhere: [budget > 0, tp > 3]", [":11:21: where.1: got the name 'tp'"]),
        ("axes: {budget: [1]}\nwhere: budget + 1", ["a number, expected a comparison"]),
        ("axes: {budget: [1]}\nwhere: budget == 'a'", ["expected a number"]),
        ("axes: {budget: [1]}\nwhere: __import__('os')", ["got the function '__import__'"]),
        ("axes: {budget: [1]}\nwhere: budget.real > 0", ["got the name 'budget.real'"]),
        ("axes: {budget: [1]}\nwhere: '(lambda: 1)() > 0'", ["got the function ''"]),
        ("axes: {budget: [1]}\nwhere: budget ** 9 > 0", ["expected one of + - * / // %"]),
        ("axes: {budget: [1]}\nwhere: budget > " + "9" * 400, ["where: got 'budget > 999"]),
        ("axes: {budget: [1]}\nwhere: " + "(" * 300, ["where: got '((("]),
        ("axes: {budget: [1]}\nwhere: " + "budget > 1 and " * 50, ["expected at most 500"]),
        ("axes: {budget: [1]}\nwhere: budget > 3", ["where: got no design: none of 1 combinations"]),
        ("axes: {budget: [1]}\nobjective: fast", ["objective.0: got 'fast'"]),
        ("axes: {budget: [1]}\ncolumns: [speed]", ["columns.0: got 'speed'"]),
        ("axes: {budget: [1]}\nsample: {n: 5}", ["got n 5 of 1 combinations"]),
        ("axes: {budget: [1]}\nseed: -1", ["seed: got -1"]),
        ("axes: {budget: [1]}\nfoo: 1", ["foo: got the unknown key 'foo'"]),
        ("axes: {budget: [1, 0], s: {factorizations: {npus: 8, dims: 4..2, blocks: [RI]}}}", ["factorizations.dims: got '4..2'"]),
        ("axes: {budget: [1], s: {factorizations: {npus: 7, dims: 2, blocks: [RI]}}}", ["got no topology of 7 NPUs"]),
        ("axes: {budget: [1], s: {factorizations: {npus: 8, dims: 2, blocks: [XX]}}}", ["blocks.0: got 'XX'"]),
        ("axes: {budget: [1], s: {topologies: [RI(4)_S(2)], tiers: [a, b]}}", ["got 'S'"]),
        ("axes: {budget: [1], s: {topologies: [RI(4)_SW(2)], tiers: [a]}}", ["axes.s.tiers: got 1 names"]),
        ("axes: {budget: [], tp: 3}\nfoo: 1", ["foo: got the unknown key", "axes.budget: got 0", "axes.tp: got 3"]),
        ("axes: {budget: [GB]}", ["constraints.0"]),
    ],
)  # fmt: skip
def test_wrong_files(text: str, messages: list[str], sweep: Callable[[str], Path]) -> None:
    path = sweep(text)
    with pytest.raises(SpecError) as caught:
        _probe(path)
    for message in messages:
        assert message in str(caught.value)
    assert all(line.startswith(str(path)) for line in str(caught.value).splitlines())


def test_a_wrong_placeholder_and_base(sweep: Callable[[str], Path]) -> None:
    path = sweep("axes: {budget: [1]}", BASE.replace("{budget}", "{budget"))
    with pytest.raises(SpecError, match=r":9:7: constraints.0: got 'total == {budget GB/s'"):
        load_sweep(path)
    path = sweep("axes: {budget: [1]}", "base: 01_gpt4\n")
    with pytest.raises(SpecError, match=r":1:7: base: got '01_gpt4'.*01_gpt3_4d"):
        load_sweep(path)
    path = sweep("axes: {budget: [1]}", "base: none.yaml\n")
    with pytest.raises(SpecError, match="no such file"):
        load_sweep(path)


def test_a_base_in_another_file_keeps_its_places(tmp_path: Path) -> None:
    plan = yaml.safe_load(BASE)["base"]
    folder = tmp_path / "plans"
    folder.mkdir()
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan | {"contention": "{x}"}))
    path = tmp_path / "sweep.yaml"
    path.write_text("base: plans/plan.yaml\naxes: {budget: [1]}\n")
    with pytest.raises(SpecError, match=r"plans/plan.yaml:\d+:\d+: contention: got the name 'x'"):
        load_sweep(path)


def test_schema_is_complete() -> None:
    schema = sweep_schema()
    json.dumps(schema)
    assert set(schema["properties"]) >= {"base", "axes", "set", "where", "objective", "sample"}
    named = {
        ref["$ref"].rpartition("/")[2]
        for ref in schema["properties"]["axes"]["additionalProperties"]["anyOf"][1:]
    }
    assert named <= set(schema["$defs"])


def test_sweeps_and_plans_in_each_others_place_are_named(run, tmp_path: Path) -> None:
    """One line each; single degrees over a base that leaves them open are fixed."""
    plan, sweep = tmp_path / "plan.yaml", tmp_path / "sweep.yaml"
    model = ("--model", "llama3-8b", "--npu", "h100-sxm", "--npus", "512", "-o", plan)
    assert run("init", *model).code == 0
    sweep.write_text("base: plan.yaml\naxes: {parallelism.tp: [2, 4]}\n")
    models, books = (bundled.folder(kind) for kind in ("workloads", "cost-models"))
    quotes = [tmp_path / f"quotes.{suffix}" for suffix in ("csv", "yaml")]
    quotes[0].write_text("item,price,seller,date\nrack,5000,A,2026-11-02\n")
    quotes[1].write_text("kind: quotes\nquotes: []\n")
    result = tmp_path / "result.json"
    changed = ("--set", "constraints.0=total == 100 GB/s")
    result.write_text(run("optimize", "01_gpt3_4d", *changed, "--json").out)
    flows, fabric = tmp_path / "flows.csv", tmp_path / "fabric.yaml"
    of = f"{bundled.example('01_gpt3_4d')} --set '{changed[1]}'"
    for command, said in (
        (("optimize", result), f"printed with --json, expected a plan; its plan is {of}"),
        (
            ("sweep", "plan", result),
            "printed with --json, expected a sweep (base and axes); its pl",
        ),
        (
            ("flows", flows, fabric),
            "got a table, expected a fabric: its hosts, leaves and spines; ",
        ),
        (("report", quotes[0], "-o", tmp_path / "r"), "got quotes, expected a plan; a command ta"),
        (("optimize", quotes[1]), "got a file of kind quotes, expected a plan; a command takes it"),
        (("sweep", "plan", models / "gpt3.yaml"), "got a file of kind transformer, expected a sw"),
        (("optimize", books / "clos-2026.yaml"), "expected a plan; a plan names it: cost_model: "),
        (("optimize", sweep), "got a sweep (base and axes), expected a plan"),
        (("sweep", "plan", plan), "got a plan, expected a sweep (base and axes)"),
    ):
        outcome = run(*command)
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert said in outcome.err
    found = load_sweep(sweep)
    assert found.is_searched
    assert found.template.document.value["parallelism"] == {"zero": 1, "rest": "auto", "tp": None}


@pytest.mark.parametrize(
    ("more", "n"),
    [
        ("", 1),
        ("check: {policy: ecmp}\n", 3),
        ("columns: [step_time_s, bill_usd]\n", 3),
        ("check: {policy: ecmp}\ndesigns_per_part: 250\n", 1),
    ],
)
def test_slow_designs_are_written_more_often(
    more: str, n: int, sweep: Callable[[str], Path]
) -> None:
    axes = "axes: {budget: {from: 1, to: 250, step: 1}}\n"
    assert load_sweep(sweep(axes + more)).n_parts == n


def test_faults_of_a_key_hide_none_of_the_others(run, tmp_path: Path) -> None:
    """Of a check, of where and of a value of an axis, which are read one after another."""
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "base: 0e_rails_2to1\n"
        "axes: {nic: [25, 50], model: [llama3-70b, llama3-700b]}\n"
        'set: {workload: "{model}", constraints: ["leaf == {nic} GB/s", "taper(spine) == 2"]}\n'
        "where: nic > 10 and modle == 'llama3-70b'\n"
        "check: {policy: ecmp, sedes: 3}\n"
    )
    outcome = run("sweep", "plan", path)
    said = [line.removeprefix(f"{path}:")[:2] for line in outcome.err.splitlines()]
    assert (outcome.code, said) == (2, ["2:", "4:", "5:"])
    names = ["llama3-700b", "modle", "sedes"]
    assert all(n in line for n, line in zip(names, outcome.err.splitlines(), strict=True))
