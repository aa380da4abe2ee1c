"""What people read of a sweep: tables on narrow terminals, what is best, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from libra_planner.reading.bundled import folder
from libra_planner.sweeps.effort import estimate as effort
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep
from libra_planner.sweeps.store import arrow_array, parquet_bytes
from libra_planner.sweeps.workers import Part
from tests.conftest import Outcome

Run = Callable[..., Outcome]

RAILS: dict[str, Any] = {
    "base": "0e_rails_2to1",
    "axes": {"nic": [25, 50]},
    "set": {"constraints": ["leaf == {nic} GB/s", "taper(spine) == 2"]},
}
DEGREES = [
    {"tp": 4, "cp": 2, "pp": 4, "dp": 64, "interleave": 5},
    {"tp": 8, "cp": 1, "pp": 4, "dp": 64, "interleave": 5},
]


def _written(folder: Path, axes: dict[str, Any], **keys: Any) -> Path:
    file = folder / "s.yaml"
    both = {**RAILS["axes"], **axes}
    file.write_text(yaml.safe_dump({**RAILS, "axes": both, **keys}, sort_keys=False))
    return file


# Tables ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("maps")
    file = _written(here, {"parallelism": DEGREES}, designs_per_part=2)
    run_sweep(load_sweep(file), here / "run")
    return here / "run"


def test_a_pipe_has_every_column_in_lines_of_any_length(
    run: Run, maps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maps that are long stand in their rows; what is the same in all stands above them."""
    monkeypatch.setattr("libra_planner.cli.streams.PIPE_WIDTH", 60)
    text = run("sweep", "show", maps).out
    assert "No room for" not in text
    assert "dim2" in text
    assert "tp 4, cp 2, pp 4, dp 64, interleave 5  " in text
    assert text.count("dim1") == 1
    monkeypatch.setenv("COLUMNS", "60")
    assert "parallelism A: " in run("sweep", "show", maps).out


@pytest.mark.parametrize("columns", [50, 80, 90])
def test_long_values_stand_below_and_no_figure_is_cut(
    run: Run, maps: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = run("sweep", "show", maps).out
    table, _, legend = text.partition("parallelism A: ")
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert legend.startswith("tp 4, cp 2, pp 4, dp 64, interleave 5\nparallelism B: tp 8, cp 1,")
    rows = re.findall(r"^ +(\d) +([AB]) +(25|50) +(\d\.\d{3} s) +(\$\d\d\.\d\dM) ", table, re.M)
    assert [row for row, *_ in rows] == ["1", "0", "3", "2"]
    assert max(map(len, table.splitlines()[3:])) <= columns


def test_with_room_values_stand_in_the_table(
    run: Run, maps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = run("sweep", "show", maps).out
    assert re.search(r"^ +1 +tp 4, cp 2, pp 4, dp 64, interleave 5 +50 ", text, re.M)
    assert "parallelism A" not in text


def test_groups_have_their_values_below_too(
    run: Run, maps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run("sweep", "show", maps, "--group-by", "parallelism").out
    assert "\nparallelism B: tp 4, cp 2, pp 4, dp 64, interleave 5\n" in text


# What is best -------------------------------------------------------------------------------------


def test_best_tells_times_per_sequence_where_batches_differ(run: Run, tmp_path: Path) -> None:
    file = _written(tmp_path, {"global_batch": [512, 1024]})
    out = run("sweep", "run", file, "-o", tmp_path / "run").out
    assert re.search(r"^Best: fastest row 3 \(3\.734 s, 3\.647 ms a sequence, \$", out, re.M)
    assert re.search(r"global_batch 1024, nic 25; 3\.768 s, 3\.680 ms a sequence, \$", out)


def test_best_of_one_batch_tells_steps_alone(run: Run, tmp_path: Path) -> None:
    out = run("sweep", "run", _written(tmp_path, {}), "-o", tmp_path / "run").out
    assert "Best: fastest row 1 (3.734 s, $" in out
    assert "a sequence" not in out


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["plan", "run"])
def test_misspelt_values_are_refused_before_work(run: Run, tmp_path: Path, command: str) -> None:
    file, to = tmp_path / "s.yaml", tmp_path / "run"
    file.write_text(
        "base: 0e_rails_2to1\n"
        "axes:\n"
        "  workload: [llama3-70b, lama3-8b]\n"
        "  nic: [25 GB/s, 50 Gbyte/s]\n"
        "  parallelism: [{tp: 8, rest: auto}, {tp: 8, rst: auto}]\n"
        'set: {constraints: ["leaf == {nic}", "taper(spine) == 2"]}\n'
    )
    found = run("sweep", command, file, *(["-o", to] if command == "run" else []))
    assert found.code == 2
    assert not found.out
    assert not to.exists()
    for said in (
        "s.yaml:3:26: workload: got 'lama3-8b', expected a bundled workload; did you mean llama3-8b?",
        "s.yaml:4:18: constraints.0: got the unit 'Gbyte/s' in 'leaf == 50 Gbyte/s', expected a known",
        "s.yaml:5:38: parallelism.rst: got the unknown key 'rst', expected a known key; known: tp, ",
    ):
        assert said in found.err


def test_a_unit_behind_a_placeholder_with_a_unit_is_refused(run: Run, tmp_path: Path) -> None:
    """Of the value that has one already; another value of the axis is fine."""
    (tmp_path / "s.yaml").write_text(
        'base: 0e_rails_2to1\naxes: {budget: ["100", "200 GB/s"]}\n'
        'set: {constraints: ["leaf == {budget} GB/s", "taper(spine) == 2"]}\n'
    )
    found = run("sweep", "run", tmp_path / "s.yaml", "-o", tmp_path / "run")
    assert found.code == 2
    assert "s.yaml:2:24: constraints.0: got two units, GB/s and GB/s, in 'leaf == 200" in found.err
    assert not (tmp_path / "run").exists()


def test_a_directory_of_a_sweep_with_a_near_name_is_meant(run: Run, tmp_path: Path) -> None:
    assert run("sweep", "run", _written(tmp_path, {}), "-o", tmp_path / "study").code == 0
    (tmp_path / "stdx").mkdir()
    found = run("sweep", "show", tmp_path / "stdy")
    assert (found.code, f"; did you mean {tmp_path / 'study'}?" in found.err) == (2, True)
    assert "give the -o of sweep run" in run("sweep", "show", tmp_path / "other").err
    assert "give the -o of sweep run" in run("sweep", "show", tmp_path / "stdx").err


def test_a_file_that_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    found = run("sweep", "plan", _written(tmp_path, {"workload": ["llama3-70b", "./no.yaml"]}))
    assert found.code == 2
    assert "s.yaml:8:5: workload: got no such file" in found.err


def test_an_unknown_key_of_a_file_that_a_value_names_is_refused(run: Run, tmp_path: Path) -> None:
    """At its line there: no plan of that value could mean it, though other values are plans."""
    text = (folder("workloads") / "llama3-70b.yaml").read_text()
    assert "  n_layers:" in text
    (tmp_path / "own.yaml").write_text(text.replace("  n_layers:", "  n_layer:"))
    file = _written(tmp_path, {"workload": ["llama3-70b", "./own.yaml"]})
    done = run("sweep", "run", file, "-o", tmp_path / "run")
    assert done.code == 2
    assert re.search(r"own.yaml:\d+:3: architecture.n_layer: got the unknown key", done.err)
    assert not (tmp_path / "run").exists()


def test_values_that_fit_some_designs_only_stay_rows(run: Run, tmp_path: Path) -> None:
    """Five chunks divide the layers of one model and not of the other; dp 63 fits none."""
    axes = {"parallelism": [DEGREES[0], DEGREES[0] | {"dp": 63}], "workload": ["llama3-70b", "llama3-8b"]}  # fmt: skip
    found = run("sweep", "run", _written(tmp_path, axes), "-o", tmp_path / "run")
    assert found.code == 0
    assert "6 invalid, 2 optimal; " in found.out


def test_names_of_tiers_that_some_fabrics_have_are_no_mistakes(run: Run, tmp_path: Path) -> None:
    fabrics = [{"topology": "SW(8)_SW(4)", "tiers": ["node", tier]} for tier in ("leaf", "pod")]
    base = {"workload": "gpt3", "parallelism": {"tp": 8, "dp": 4}, "cost_model": "libra-ispass24"}
    base |= {"global_batch": 32, "npu": {"name": "h100-sxm", "efficiency_fraction": 0.4}}
    base |= {"constraints": ["total == 100 GB/s", "{tier} >= 5 GB/s"], "memory": "ignore"}
    base |= {"fabric": "{fabric}"}
    file = tmp_path / "s.yaml"
    axes = {"tier": ["node", "pod"], "fabric": fabrics[::-1]}
    file.write_text(yaml.safe_dump({"base": base, "axes": axes}))
    assert "did you mean" not in run("sweep", "plan", file).err.split("invalid, such as")[0]


def test_a_run_without_an_optimum_names_the_rules(run: Run, tmp_path: Path) -> None:
    rules = ["leaf == {nic} GB/s", "leaf >= 60 GB/s", "taper(spine) == 2"]
    file, to = _written(tmp_path, {}, set={"constraints": rules}), tmp_path / "run"
    for flags in ([], ["--json-progress"]):
        found = run("sweep", "run", file, "-o", to, *flags)
        assert found.code == 3
        assert f"{file}: no design has an optimum: 2 infeasible; {to} has all rows" in found.err
    found = run("sweep", "show", to)
    assert found.code == 0
    assert "Row 0: rules that no bandwidth vector meets together: 'leaf == 25 GB/s'" in found.err
    assert found.err.rstrip().endswith(
        "In each of 2 such rows that were looked at: 'leaf >= 60 GB/s'"
    )


def test_a_run_without_an_optimum_names_the_limit(run: Run, tmp_path: Path) -> None:
    rules = [*RAILS["set"]["constraints"], "step_time <= 2 s"]
    file, to = _written(tmp_path, {}, set={"constraints": rules}), tmp_path / "run"
    found = run("sweep", "run", file, "-o", to)
    assert found.code == 3
    assert "Row 0: 'step_time <= 2 s', but compute alone takes 3.533 s a step" in found.err


def test_a_wrong_key_under_set_stands_in_the_sweep(run: Run, tmp_path: Path) -> None:
    keys = RAILS["set"] | {"fabric.realisation.port_speed": "400 Gbps"}
    found = run("sweep", "plan", _written(tmp_path, {}, set=keys))
    assert "s.yaml:10:34: fabric.realisation: got the unknown key 'realisation'" in found.err


def test_one_wrong_placeholder_is_one_fault(run: Run, tmp_path: Path) -> None:
    found = run(
        "sweep", "plan", _written(tmp_path, {}, set={"constraints": ["leaf == {nik} GB/s"]})
    )
    assert "got the name 'nik' in 'nik', expected an axis; did you mean nic?" in found.err
    assert "does not use" not in found.err


# Speed --------------------------------------------------------------------------------------------


def test_plan_tries_a_small_sweep_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []

    def counted(solver: Any, chunk: Any) -> Any:
        solved.append(chunk.n)
        return solve(solver, chunk)

    solve = effort.solve_part
    monkeypatch.setattr(effort, "solve_part", counted)
    found = effort.estimate(load_sweep(_written(tmp_path, {"global_batch": [512, 1024]})))
    assert solved == [4]
    assert (found.n_designs, found.n_structures, found.statuses) == (4, 2, {"optimal": 4})


def _timed(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[Any, int], float]) -> list[int]:
    """Rows that an estimate tries, none of which is solved: each takes the given time."""
    rows: list[int] = []

    def solve(solver: Any, chunk: Any) -> Part:
        own = range(chunk.first_row, chunk.first_row + chunk.n)
        rows.extend(own)
        taken = sum(seconds(chunk, i) for i in range(chunk.n))
        axes = {one.name: ["a value"] * chunk.n for one in chunk.columns}
        data = pa.table({"row": [*own], "status": ["optimal"] * chunk.n} | axes)
        return Part(0, chunk.n, 0, {"optimal": chunk.n}, taken, parquet_bytes(data))

    monkeypatch.setattr(effort, "solve_part", solve)
    return rows


def test_plan_tries_designs_that_search_and_those_that_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in six of 60 designs searches: 10 take 2 s each, and 50 take 10 ms each."""
    parallelism = [*({"tp": 4, "cp": 2, "pp": 4, "dp": 64, "zero": i % 2, "interleave": 5 - i // 2} for i in range(5)), "auto"]  # fmt: skip
    file = _written(tmp_path, {"parallelism": parallelism, "nic": list(range(25, 35))})
    rows = _timed(monkeypatch, lambda chunk, i: 2.0 if chunk.first_row >= 50 else 0.01)
    found = effort.estimate(load_sweep(file))
    assert {row >= 50 for row in rows} == {True, False}
    # A row that was tried twice counts once.
    assert sum(found.statuses.values()) == len({*rows})
    assert found.core_s == pytest.approx(10 * 2.0 + 50 * 0.01)


def test_plan_tries_designs_of_every_structure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The middle third fails at once; the rest takes 10 ms a design."""
    file = _written(tmp_path, {"parallelism.zero": [0, 1, 2], "nic": list(range(25, 125))})
    rows = _timed(monkeypatch, lambda chunk, i: 0.0 if 100 <= chunk.first_row + i < 200 else 0.01)
    found = effort.estimate(load_sweep(file))
    assert {row // 100 for row in rows} == {0, 1, 2}
    assert found.core_s == pytest.approx(200 * 0.01, abs=0.5)  # Structures are built beside it.


def test_plan_tells_the_time_of_a_batch_from_that_of_its_designs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of 8 designs or more takes 0.5 s, and each design 2 ms: 6 structures of 500."""
    axes = {"global_batch": [512, 1024], "parallelism.zero": [0, 1, 2], "nic": list(range(25, 525))}
    _timed(monkeypatch, lambda chunk, i: 0.002 + (0.5 if i == 7 else 0.0))
    found = effort.estimate(load_sweep(_written(tmp_path, axes)))
    assert found.n_structures == 6
    exact_s = 3000 * 0.002 + 8 * 0.5
    assert exact_s / 2 < found.core_s < exact_s * 2


def test_plan_does_not_load_pandas(tmp_path: Path) -> None:
    code = (
        "import sys; from libra_planner.cli.main import main; "
        f"assert main(['sweep', 'plan', {str(_written(tmp_path, {}))!r}]) == 0; "
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, None, float("nan"), -0.0], pa.float64()),
        ([None, 3, 2**53 + 1], pa.int64()),
        ([True, None, False] * 7, pa.bool_()),
        (["a", None, "", "\N{MICRO SIGN}s", "\N{GRINNING FACE}"], pa.string()),
        ([None, None], pa.string()),
        ([], pa.float64()),
    ],
)
def test_columns_are_what_pyarrow_makes(values: list[Any], kind: pa.DataType) -> None:
    found = arrow_array(values, kind)
    found.validate(full=True)
    assert found.equals(pa.array(values, type=kind, from_pandas=True))
