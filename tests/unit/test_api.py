"""The Python API: slips that would give silently wrong numbers are refused."""

from __future__ import annotations

import numpy as np
import pytest

import libra_planner as lp


def test_gigabytes_where_bytes_are_meant(plan) -> None:
    problem = lp.load_plan(plan())
    with pytest.raises(lp.SpecError, match="expected bytes/s; multiply GB/s by 1e9"):
        lp.evaluate(problem, np.array([300, 100, 75, 25]))
    assert lp.evaluate(problem, [300e9, 100e9, 75e9, 25e9]).step_time_s == pytest.approx(
        0.725217, abs=1e-6
    )


@pytest.mark.parametrize("vector", [[1e9], [1e9, 1e9, 1e9, -1e9], [1e9, 1e9, 1e9, float("nan")]])
def test_vectors_that_are_none(vector: list[float], plan) -> None:
    with pytest.raises(lp.SpecError):
        lp.evaluate(lp.load_plan(plan()), vector)


def test_one_setting_or_several(plan) -> None:
    path, rule = plan(), "constraints.0=total == 100 GB/s"
    assert lp.load_plan(path, rule).rules == lp.load_plan(path, [rule]).rules


def test_settings_name_what_the_figures_rest_on(plan) -> None:
    npu = "npu={peak_TFLOPps: 312, efficiency_fraction: 0.5}"
    problem = lp.load_plan(plan(), [npu])
    assert problem.settings == (
        "TP 16 x DP 256",
        "8,192 sequences per step",
        "compute at 50% of 312 TFLOP/s per NPU",
        "loop no_overlap",
        "prices libra-ispass24 (2024-05, published)",
    )
    assert any("2 layers" in note for note in problem.text.notes)


def test_real_links_are_slower_than_the_model_for_partial_groups_only(plan) -> None:
    partial = lp.load_plan(plan())
    vector = np.array([300e9, 100e9, 75e9, 25e9])
    evaluation = lp.evaluate(partial, vector)
    # TP on 4 of FC(8) has 3 of 7 links, DP on 2 of FC(8) 1 of 7; rings and switch are whole.
    tp = max(1207959552 / 300e9, 7 / 3 * 301989888 / 100e9) * 9
    dp = max(7 * 452984832 / 100e9, 339738624 / 75e9, 109707264 / 25e9)
    assert evaluation.real_link_step_time_s == pytest.approx(partial.compute_s + tp + dp, rel=1e-9)
    whole = lp.load_plan(plan(), ["parallelism={tp: 32, dp: 128}"])
    assert lp.evaluate(whole, vector).real_link_step_time_s is None


def test_groups_that_leave_npus_idle_are_noted(plan) -> None:
    groups = "parallelism={forward: [4,4,1,1], input_grad: [4,4,1,1], weight_grad: [1,2,4,16]}"
    problem = lp.load_plan(plan(), groups)
    assert any("2,048 NPUs of work on 4,096 NPUs" in note for note in problem.text.notes)
    assert not any("NPUs of work" in note for note in lp.load_plan(plan()).text.notes)
