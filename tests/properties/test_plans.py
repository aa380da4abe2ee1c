"""What plans share against plans built anew: expressions, partial groups, files by their text."""

from __future__ import annotations

import os
from dataclasses import fields
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import libra_planner as lp
from libra_planner.errors import PlannerError
from libra_planner.plan.problem import build_plan
from libra_planner.problem import Problem
from libra_planner.reading.bundled import folder
from libra_planner.reading.document import parse_document
from libra_planner.step import layers as loops
from libra_planner.step import training as step_training
from libra_planner.step.layers import LOOPS, TrainingLoop
from libra_planner.workload.operations import Workload
from tests.workloads import Step, step_time, steps


class _Apart(Workload):
    """A workload whose layers are all built, alike or not."""

    @cached_property
    def alike(self) -> tuple[int, ...]:
        return tuple(range(len(self.operators)))


@given(steps(), st.sampled_from(sorted(LOOPS)), st.booleans(), st.integers(1, 3))
def test_alike_layers_are_one_and_expressions_are_kept(
    step: Step, name: str, contention: bool, n_copies: int
) -> None:
    repeated = tuple(op for _ in range(n_copies) for op in step.workload.operations)
    loop = TrainingLoop(LOOPS[name], contention=contention, bubble_fraction=0.1)
    whole, apart = Workload("w", repeated), _Apart("w", repeated)
    kept = step_time(whole, step.communicators, step.n_dims, loop=loop)
    again = step_time(Workload("w", repeated), step.communicators, step.n_dims, loop=loop)
    loops._step_time.cache_clear()
    plain = step_time(apart, step.communicators, step.n_dims, loop=loop)
    assert kept.root == plain.root
    assert again is kept


@st.composite
def plans(draw: st.DrawFn) -> dict[str, object]:
    """Plans of ideal collectives on fabrics where groups often have a part of a dimension."""
    sizes = draw(st.lists(st.sampled_from([2, 4, 8, 16]), min_size=1, max_size=4))
    blocks = [draw(st.sampled_from(["RI", "FC", "SW"])) for _ in sizes]
    n_npus = int(np.prod(sizes))
    tp = draw(st.sampled_from([n for n in (1, 2, 4, 8, 16, 32) if n <= n_npus]))
    switches = [f"dim{i + 1}" for i, block in enumerate(blocks) if block == "SW"]
    topology = "_".join(f"{block}({size})" for block, size in zip(blocks, sizes, strict=True))
    loop = st.sampled_from([*LOOPS, {"step": "max(forward, backward)"}])
    return {
        "workload": draw(st.sampled_from(["gpt3-libra", "resnet50-libra"])),
        "fabric": {"topology": topology, "tiers": ["pod"] * len(sizes)},
        "parallelism": {"tp": tp, "dp": n_npus // tp},
        "training_loop": draw(loop),
        "in_network_reduction": [name for name in switches if draw(st.booleans())],
        "cost_model": "libra-ispass24",
    }


def _built(plan: dict[str, object]) -> Problem | str:
    try:
        return build_plan(parse_document(yaml.safe_dump(plan), "p.yaml"), Path())
    except PlannerError as error:
        return str(error)


@given(plans())
def test_real_links_are_left_out_only_where_they_change_nothing(plan: dict[str, object]) -> None:
    quick = _built(plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_training, "has_partial_groups", lambda _: True)
        loops._step_time.cache_clear()
        slow = _built(plan)
    if isinstance(quick, str) or isinstance(slow, str):
        assert quick == slow
        return
    for name in (field.name for field in fields(Problem) if field.compare):
        ours, theirs = getattr(quick, name), getattr(slow, name)
        assert repr(ours) == repr(theirs), name


@pytest.mark.parametrize(
    ("key", "kind", "old", "new", "figure"),
    [
        ("cost_model", "cost-models/libra-ispass24", "link: 2.0", "link: 3.0", "cost_usd"),
        ("workload", "workloads/gpt3-libra", "hidden: 12288", "hidden: 24576", "step_time_s"),
        ("npu", "npu-catalogues/npus", "bf16: 989.4", "bf16: 494.7", "step_time_s"),
    ],
)
def test_a_file_edited_between_two_plans_is_read_again(
    tmp_path: Path, key: str, kind: str, old: str, new: str, figure: str
) -> None:
    where, name = kind.split("/")
    text = (folder(where) / f"{name}.yaml").read_text()
    assert text.count(old) >= 1
    file = tmp_path / "own.yaml"
    npu = {"name": "h100-sxm", "efficiency_fraction": 0.5, "catalogue": "./own.yaml"}
    plan = yaml.safe_load((folder("examples") / "01_gpt3_4d.yaml").read_text())
    plan[key] = npu if key == "npu" else "./own.yaml"
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))

    def found() -> float:
        problem = lp.load_plan(tmp_path / "plan.yaml")
        return float(getattr(lp.evaluate(problem, np.full(4, 125e9)), figure))

    _write(file, text)
    before = found()
    _write(file, text.replace(old, new))
    changed = found()
    _write(file, text)
    assert changed != before
    assert found() == before


def _write(file: Path, text: str) -> None:
    """The text, with a date that says nothing of the change."""
    file.write_text(text)
    os.utime(file, (0, 0))


def test_what_is_kept_cannot_be_changed_by_its_users() -> None:
    from libra_planner.plan.npus import catalogue_npu
    from libra_planner.plan.prices import load_price_book

    def npu() -> dict[str, float]:
        return catalogue_npu("h100-sxm", None, None, path="npu").peak_TFLOPps

    npu()["bf16"] = 1.0
    assert npu()["bf16"] == 989.4
    book = load_price_book("libra-ispass24")
    assert not hasattr(book.tiers, "__setitem__")
