"""What rows of training runs leave open, in the words of their tables."""

from __future__ import annotations

import pytest

from libra_planner.errors import SpecError
from libra_planner.inputs.training.planned import planned_run
from libra_planner.inputs.training.rows import parse_run
from libra_planner.workload.strategy import PipelineSchedule, Recompute

ROW = {
    "model": "Llama3-70B",
    "gpu_type": "H100",
    "gpus": "64",
    "tp": "4",
    "pp": "4",
    "cp": "2",
    "dp": "2",
    "global_batch": "128",
    "seq": "8192",
    "microbatch": "1",
}


def _planned(**cells: str):
    return planned_run(parse_run(ROW | cells))


def test_words_for_nothing_are_blanks() -> None:
    run = parse_run(ROW | {"vp_interleave": "NA", "ep": "-", "etp": "None", "ffn": "nan"})
    assert (run.vp_interleave, run.ep, run.etp, run.ffn) == (None,) * 4


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        *[(x, Recompute.NONE) for x in ("none", "no", "False", "0", "off")],
        *[(x, Recompute.FULL) for x in ("full", "yes(rematerialisation)", "uniform", "True")],
        *[(x, Recompute.SELECTIVE) for x in ("selective", "selective+SP", "core_attn", "moe_act")],
    ],
)
def test_recomputation_in_many_words(text: str, meant: Recompute) -> None:
    assert _planned(recompute=text).strategy.recompute == meant


def test_data_parallelism_may_count_context_parallelism() -> None:
    found = _planned(dp="4")
    assert found.strategy.dp == 2
    assert "dp 4 counts cp 2" in found.notes
    with pytest.raises(SpecError, match="= 96 on 64 NPUs"):
        _planned(dp="3")


def test_a_row_whose_shape_is_not_that_of_its_model_says_so() -> None:
    """Figures stay those of the row: 64 heads of 112 that are all of keys and values, too."""
    found = _planned(model="DeepSeek-V3", heads="64", tp="8", pp="2", dp="2")
    assert found.notes[:2] == (
        "a plain shape of the row's own, not the bundled DeepSeek-V3",
        "heads: got 64, DeepSeek-V3 has 128 heads",
    )
    assert (found.model.attention.n_kv_heads, found.model.experts) == (64, None)
    plain, odd = _planned(), _planned(topk="2", kv_heads="5")
    assert odd.notes[:2] == (
        "topk: got 2, Llama3-70B has no experts",
        "kv_heads: got 5, expected a divisor of the 64 heads",
    )
    assert odd.notes[2:] == plain.notes
    experts = {"model": "Mixtral-8x7B", "pp": "2", "dp": "4"}
    unused = "ffn: got 9,999, Mixtral-8x7B has experts in every layer, whose width is moe_ffn"
    assert unused in _planned(**experts, ffn="9999").notes
    same = _planned(**experts).notes
    assert _planned(**experts, ffn="14336").notes == same
    assert _planned(**experts, ffn="9999", moe_ffn="14336").notes == same


def test_a_batch_is_told_by_its_microbatches() -> None:
    found = _planned(global_batch="", microbatch="2", grad_accum="16")
    assert found.strategy.global_batch == 2 * 2 * 16
    assert _planned(microbatch="", grad_accum="32").strategy.microbatch == 2
    with pytest.raises(SpecError, match="no global batch"):
        _planned(global_batch="")


def test_schedules_and_their_chunks() -> None:
    assert _planned(schedule="Interleaved 1F1B").strategy.interleave == 2
    assert _planned(schedule="1f1b-interleaved-vpp4").strategy.interleave == 4
    assert _planned(schedule="zbv-formatted").strategy.schedule is PipelineSchedule.ZERO_BUBBLE_H1
    assert any("'gpipe' is not known" in note for note in _planned(schedule="gpipe").notes)


def test_libraries_have_their_habits() -> None:
    nemo = _planned(model="Mixtral 8x7B", parallel_style="NeMo/Megatron", ep="2")
    assert nemo.strategy.etp == nemo.strategy.tp == 4
    core = _planned(model="Mixtral 8x7B", parallel_style="Megatron-Core", ep="2")
    assert core.strategy.etp == 1
    assert core.trained.habits.one_copy_per_node
    odd = _planned(parallel_style="Mystery trainer")
    assert any("is no known library" in note for note in odd.notes)


def test_nics_as_remarked() -> None:
    found = _planned(notes="4x100Gb RoCE per node")
    assert found.fabric.bandwidth_bytes_per_s[-1] == 6.25e9
    named = _planned(fabric="superpod-h100")
    assert named.fabric.bandwidth_bytes_per_s[-1] == 50e9


def test_v100_trains_in_fp16() -> None:
    small = {"model": "llama2-7b", "gpu_type": "V100", "gpus": "8", "tp": "8", "pp": "1"}
    found = _planned(**small, cp="1", dp="1", seq="2048")
    assert found.strategy.dtype == "fp16"
    assert "fp16" in found.notes
    assert found.step_time_s > 0
