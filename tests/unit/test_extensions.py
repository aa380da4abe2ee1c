"""A block and a policy from outside the package work wherever the planner's own do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import libra_planner as lp
from libra_planner.errors import SpecError
from libra_planner.fabric import blocks
from libra_planner.fabric.blocks import BLOCKS, DirectBlock
from libra_planner.fabric.realization import bisection_Bps, realize
from libra_planner.fabric.topology import parse_topology
from libra_planner.registry import PLUGINS
from tests import extensions

Run = Callable[..., object]

TORUS = (
    "fabric.topology=TO(4x4)_SW(16)",
    "parallelism.tp=16",
    "parallelism.dp=16",
    "fabric.tiers=[node, pod]",
)
SETTINGS = [word for setting in TORUS for word in ("--set", setting)]


@pytest.fixture(autouse=True)
def _added() -> Iterator[None]:
    extensions.add()
    yield
    extensions.remove()


def test_a_block_of_ones_own_has_links_of_its_own() -> None:
    torus = realize(parse_topology("TO(4x4)_SW(2)"), [40e9, 10e9])
    assert str(torus.topology) == "TO(4x4)_SW(2)"
    fabric = torus.dimensions[0].fabric
    assert fabric is not None
    assert [layer.n_links for layer in fabric.layers] == [64, 64]
    assert fabric.capacity_Bps.tolist() == [10e9] * 128
    names = {fabric.link_name(link) for link in range(fabric.n_links) if link % 64 in (0, 1)}
    assert names == {"NPU 0 -> NPU 1", "NPU 0 -> NPU 3", "NPU 0 -> NPU 4", "NPU 0 -> NPU 12"}
    assert bisection_Bps(realize(parse_topology("TO(4x4)"), [40e9])) == 8 * 10e9


@pytest.mark.parametrize("text", ["TO(4)", "Torus2D(4x1)", "TO(x)"])
def test_a_block_reads_its_own_size(text: str) -> None:
    with pytest.raises(SpecError, match="expected rows x columns"):
        parse_topology(text)


def test_a_block_that_leaves_a_question_open_is_refused() -> None:
    class Half(DirectBlock):
        notation, long_name, about = "HA", "Half", "half"

    with pytest.raises(TypeError, match="block Half does not define default_algorithm, link_layer"):
        blocks.register(Half)
    with pytest.raises(ValueError, match="twice"):
        blocks.register(extensions.Torus2D)
    assert "HA" not in BLOCKS


def test_commands_know_both(run: Run, tmp_path: Path) -> None:
    plan = lp.example("07_check")
    best = run("optimize", plan, *SETTINGS, "--routing", "first_spine", "--json")
    assert best.code == 0, best.err
    assert json.loads(best.out)["topology"] == "TO(4x4)_SW(16)"
    found = {}
    for policy in ("ecmp", "first_spine"):
        one = run("check", plan, *SETTINGS, "--policy", policy, "--json")
        assert one.code == 0, one.err
        found[policy] = json.loads(one.out)
    assert found["first_spine"]["policy"] == "first_spine"
    assert [row["block"] for row in found["first_spine"]["dimensions"]] == ["TO(4x4)", "SW(16)"]
    report = run("report", plan, *SETTINGS, "--check", "first_spine", "-o", tmp_path / "report")
    assert report.code == 0, report.err
    assert "TO(4x4)" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "annealing or first_spine" in " ".join(run("check", "--help").out.split())
    unknown = run("check", plan, "--policy", "first_spin")
    assert "did you mean first_spine?" in unknown.err


def test_flow_lists_know_the_policy(run: Run, tmp_path: Path) -> None:
    flows = tmp_path / "flows.csv"
    flows.write_text("flow_id,src,dst,bytes\na,0,8,1e9\nb,1,9,1e9\n", encoding="utf-8")
    found = run("flows", "flowtracer-16x400G", flows, "--policy", "first_spine", "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["makespan_s"] == pytest.approx(2e9 / 50e9)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_sweeps_know_both(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv(PLUGINS, "tests.plugin")
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(
        "base: 07_check\n"
        "axes: {topology: [TO(4x4)_SW(16), FC(16)_SW(16)]}\n"
        "set: {fabric.topology: '{topology}', parallelism.tp: 16, parallelism.dp: 16}\n"
        "check: {policy: first_spine}\n",
        encoding="utf-8",
    )
    done = run("sweep", "run", sweep, "-o", tmp_path / "out", "--workers", workers)
    assert done.code == 0, done.err
    rows = pq.read_table(next((tmp_path / "out").glob("*.parquet"))).to_pylist()
    assert [row["status"] for row in rows] == ["optimal", "optimal"]
    assert np.isfinite([row["effective_step_time_s"] for row in rows]).all()
    sweep.write_text(sweep.read_text().replace("first_spine", "last_spine"), encoding="utf-8")
    wrong = run("sweep", "plan", sweep)
    assert "one of 9 names; did you mean first_spine?" in wrong.err


def test_factorizations_take_registered_blocks(run: Run, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.yaml"
    axes = "axes: {topology: {factorizations: {npus: 64, dims: 2, blocks: [TO, SW, XX]}}}\n"
    sweep.write_text(f"base: 07_check\n{axes}", encoding="utf-8")
    assert "expected 'RI', 'FC', 'SW' or 'TO'" in run("sweep", "plan", sweep).err


WALK = """
import sys
from pathlib import Path

from tests.tui.conftest import drive


async def walk(driver):
    await driver.press("4")
    await driver.idle()
    select = driver.app.pane.query_one("#policy")
    await driver.press(*["y"] * 5)
    await driver.idle()
    print(select.value, driver.text("#fabric-dimensions"), driver.text("#fabric-times"))


drive(Path(sys.argv[1]), walk)
"""


def test_the_cockpit_knows_both(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    text = lp.example("07_check").read_text(encoding="utf-8")
    text = text.replace("FC(8)_SW(256)", "TO(4x4)_SW(16)").replace("{tp: 8, dp: 256}", "{tp: 16}")
    plan.write_text(text.replace("{tp: 16}", "{tp: 16, dp: 16}"), encoding="utf-8")
    state = {PLUGINS: "tests.plugin", "XDG_STATE_HOME": str(tmp_path / "state")}
    shown = subprocess.run(
        [sys.executable, "-c", WALK, plan],
        cwd=Path(__file__).parents[2],
        env=os.environ | state,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown.startswith("first_spine"), shown
    assert "whole links, first_spine" in shown
