"""Plans that train a whole model: keys, memory, faults, the same step by every way in (C15-C19)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from libra_planner.check.links import link_check
from libra_planner.cli.main import main
from libra_planner.errors import Infeasible, SpecError
from libra_planner.inputs.plans import open_plan
from libra_planner.inputs.training.planned import planned_run
from libra_planner.inputs.training.rows import parse_run
from libra_planner.optimizer.optimize import optimize, solve
from libra_planner.plan.problem import load_plan
from libra_planner.problem import Problem
from libra_planner.reading.bundled import example
from libra_planner.routing.policy import Policy
from libra_planner.search.plans import plan_search
from libra_planner.step.model_training import ModelTraining
from libra_planner.units import format_time
from libra_planner.views.plan import built_notes
from libra_planner.views.training.copies import copies_assumption, copies_notes
from libra_planner.views.training.memory import brief_verdict
from libra_planner.views.training.memory import verdict as memory_verdict
from libra_planner.workload.strategy import PipelineSchedule, Recompute, Strategy

PLAN = """\
workload: llama3-70b
parallelism: {tp: 4, cp: 2, pp: 4, dp: 64, interleave: 5}
global_batch: 1024
npu: h100-sxm
fabric:
  topology: SW(8)_[SW(32)_SW(8)]
  tiers: [node, leaf, spine]
  scale_up: nvlink4-8
cost_model: clos-2026
constraints: [leaf == 50 GB/s, taper(spine) == 2]
"""
BANDWIDTH = np.array([450e9, 50e9, 25e9])


def _plan(tmp_path: Path, *settings: str, text: str = PLAN) -> Problem:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    return load_plan(path, settings)


def _training(problem: Problem) -> ModelTraining:
    (training,) = problem.step.trainings
    assert isinstance(training, ModelTraining)
    return training


def _seconds(problem: Problem) -> float:
    return float(problem.step_time.seconds(BANDWIDTH))


def test_a_plan_says_the_strategy_and_a_library_the_rest(tmp_path: Path) -> None:
    one = _training(_plan(tmp_path)).trained.strategy
    assert (one.tp, one.cp, one.pp, one.dp, one.interleave, one.n_microbatches) == (
        4,
        2,
        4,
        64,
        5,
        16,
    )
    assert (one.zero, one.recompute, one.sequence_parallel) == (1, Recompute.NONE, True)
    assert one.overlap.dp == 1.0
    assert one.overlap.p2p
    said = ["parallelism.zero=0", "parallelism.recompute=full", "overlap={dp: 0.5, p2p: false}"]
    other = _training(_plan(tmp_path, *said, "memory=ignore")).trained.strategy
    assert (other.zero, other.recompute) == (0, Recompute.FULL)
    assert (other.overlap.dp, other.overlap.tp, other.overlap.p2p) == (0.5, one.overlap.tp, False)


def test_a_plan_takes_the_time_of_the_same_published_run(tmp_path: Path) -> None:
    """By the law of measured collectives on the same fabric, but for the tier of the spines."""
    text = PLAN.replace("SW(8)_[SW(32)_SW(8)]", "SW(8)_SW(256)").replace(", spine]", "]")
    text = text.replace(", taper(spine) == 2", "") + "fidelity: calibrated\n"
    problem = _plan(tmp_path, text=text)
    row = {"model": "llama3-70b", "gpu_type": "h100-sxm", "gpus": "2048", "seq": "8192"}
    row |= {"tp": "4", "cp": "2", "pp": "4", "dp": "64", "vp_interleave": "5"}
    run = planned_run(parse_run(row | {"global_batch": "1024", "microbatch": "1"}))
    found = float(problem.step_time.seconds(np.array([450e9, 50e9])))
    assert found == pytest.approx(run.step_time_s)


def test_microbatches_of_two_halve_their_number(tmp_path: Path) -> None:
    one, two = (_plan(tmp_path, f"parallelism.microbatch={b}", "memory=ignore") for b in (1, 2))
    assert _training(two).trained.strategy.n_microbatches == 8
    assert _seconds(two) != _seconds(one)


@pytest.mark.parametrize("schedule", ["zb-h1", "zb-h2"])
def test_zero_bubble_is_faster_than_1f1b(tmp_path: Path, schedule: str) -> None:
    keys = "parallelism={tp: 8, pp: 4, dp: 64%s}"
    plain = _plan(tmp_path, keys % "", "memory=ignore")
    bubble_free = _plan(tmp_path, keys % f", schedule: {schedule}", "memory=ignore")
    assert _training(bubble_free).trained.strategy.schedule is PipelineSchedule(schedule)
    assert _seconds(bubble_free) < _seconds(plain)


def test_tp_1_is_refused_for_its_memory_and_says_what_would_fit(tmp_path: Path) -> None:
    """GPT-3 at TP 1 is not faster than TP 8: it does not fit."""
    keys = ["workload=gpt3", "parallelism={dp: 2048}", "global_batch=2048"]
    with pytest.raises(Infeasible, match=r"gpt3 does not fit: .* needs [\d.]+ (GB|TB)"):
        _plan(tmp_path, *keys)
    ignored = _plan(tmp_path, *keys, "memory=ignore")
    assert ignored.step.memory is not None
    assert ignored.step.memory.fits is False


def test_a_rule_on_memory(tmp_path: Path) -> None:
    rules = "constraints=[leaf == 50 GB/s, taper(spine) == 2, memory <= %s]"
    assert _plan(tmp_path, rules % "60 GB").step.memory is not None
    with pytest.raises(Infeasible, match=r"the rule 'memory <= 40 GB'.*recompute: full"):
        _plan(tmp_path, rules % "40 GB")
    with pytest.raises(SpecError, match=r"expected an upper limit"):
        _plan(tmp_path, "constraints=[leaf == 50 GB/s, taper(spine) == 2, memory >= 40 GB]")
    for rule in ("60 GB >= memory", "50 GB <= memory <= 60 GB", "60 GB >= memory >= 50 GB"):
        _plan(tmp_path, f"constraints=[{rule}]")
    with pytest.raises(Infeasible, match=r"needs 58.404 GB .*below the rule '59 GB <= memory"):
        _plan(tmp_path, "constraints=[59 GB <= memory <= 60 GB]")
    with pytest.raises(SpecError, match=r"got '76' without a unit.*; write 76 GB or 76 GiB"):
        _plan(tmp_path, "constraints=[memory <= 76]")
    least = "constraints=[1 GB <= memory <= 60 GB]"
    with pytest.raises(SpecError, match=r"constraints: got a least memory"):
        open_plan(tmp_path / "plan.yaml", [least, "parallelism=Auto"]).search()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["global_batch=640"], r"got 10 microbatches, expected a multiple of the 4 stages"),
        (["global_batch=1000"], r"got 1000 sequences, expected a multiple of dp 64 x microbatch 1"),
        (
            ["parallelism.dp=100"],  # The cause, and not that no batch divides by 100.
            r"^[^\n]*got tp 4 x cp 2 x dp 100 x pp 4 = 3200 NPUs, expected the 2048[^\n]*$",
        ),
        (["library=megatron"], r"library: got 'megatron'"),
        (["npu={name: h100-sxm, data_type: fp3}"], r"npu.data_type"),
        (["npu={name: h100-sxm, efficiency_fraction: 0.5}"], r"parallelism.pp: got pp"),
        (["training_loop={step: forward}"], r"training_loop.step: .* expected layer"),
        (["training_loop={layer: forward}"], r"training_loop.layer: .* without input_grad.comp"),
        (
            ["training_loop={layer: forward.linear + forward}"],
            r"got forward.compute beside a part of it",
        ),
        (
            ["training_loop=async_dp", "parallelism.schedule=zb-h1", "parallelism.interleave=1"],
            r"got a loop with the schedule zb-h1, expected 1f1b",
        ),
        (["training_loop=async_dp", "overlap={dp: 1}"], r"overlap: got dp beside training_loop"),
        (["contention=false"], r"contention: .* expected it with a training_loop"),
        (["bubble_fraction=0.1"], r"bubble_fraction"),
        (["workload=resnet50-libra"], r"transformer"),
        (["overlap={dp: 2}"], r"overlap.dp"),
        (["parallelism.order=[pp, dp]"], r"order"),
    ],
)
def test_what_cannot_be_is_refused_in_its_own_words(
    tmp_path: Path, settings: list[str], said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        _plan(tmp_path, *settings)


@pytest.mark.parametrize(
    ("degrees", "fix"),
    [
        ("{tp: 8, pp: 4, dp: 60}", "write dp 64"),
        ("{tp: 8, pp: 8, dp: 64}", "write dp 32, pp 4 or tp 4"),
        ("{tp: 2, pp: 8, dp: 100}", "write cp 2 and dp 64; dp 128 alone does not fit the memory"),
        ("{tp: 8, pp: 1, dp: 255, zero: 0}", "write dp 64 and pp 4; dp 256 alone does not fit the"),
    ],
)
def test_a_fix_of_degrees_changes_the_fewest_and_leaves_tp(
    tmp_path: Path, degrees: str, fix: str
) -> None:
    """It passes the other checks itself, the memory too."""
    with pytest.raises(SpecError) as caught:
        _plan(tmp_path, f"parallelism={degrees}")
    assert caught.value.faults[0].fix.startswith(fix)
    changes = [one.split() for one in re.findall("(?:tp|cp|pp|dp) [0-9]+", fix.partition(";")[0])]
    first = changes[:1] if " or " in fix else changes
    _plan(tmp_path, f"parallelism={degrees}", *(f"parallelism.{k}={v}" for k, v in first))


def test_the_optimum_is_proven_and_its_parts_add_up(tmp_path: Path) -> None:
    text = PLAN.replace("leaf == 50 GB/s", "leaf <= 50 GB/s")
    problem = _plan(
        tmp_path, "constraints=[leaf <= 50 GB/s, taper(spine) <= 4, total <= 520 GB/s]", text=text
    )
    solution = solve(problem)
    design = solution.design
    assert design.optimality_gap <= 1e-6
    parts = _training(problem).split_s(problem.step.model, design.bandwidth_bytes_per_s)
    step_s = float(problem.step_time.seconds(design.bandwidth_bytes_per_s))
    assert sum(parts.values()) == pytest.approx(step_s)
    rng = np.random.default_rng(7)
    for _ in range(50):
        leaf = 50e9 * rng.uniform(0.1, 1)
        spine = min(leaf * rng.uniform(0.25, 4), 520e9 - 450e9 - leaf)
        rival = np.array([450e9, leaf, spine])
        if problem.step_time.seconds(rival) < step_s * (1 - 1e-9):
            assert spine < leaf / 4 * (1 - 1e-9)


def test_json_says_tokens_flops_memory_and_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    command = ["evaluate", str(tmp_path / "plan.yaml"), "--bandwidth", "450,50,25", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["covers"] == "step"
    tokens = 1024 * 8192 / found["step_time_s"]
    assert found["tokens_per_s"] == pytest.approx(tokens)
    assert found["tokens_per_s_per_npu"] == pytest.approx(tokens / 2048)
    flops = found["model_TFLOPps_per_npu"] * 1e12
    assert found["mfu"] == pytest.approx(flops / 989.4e12)
    assert sum(found["time"].values()) == pytest.approx(found["step_time_s"])
    for axis in ("tp", "cp", "pp", "dp"):
        shares = [one for one in found["bottlenecks"] if one["operation"].startswith(axis.upper())]
        sum_s = sum(one["time_s"] for one in shares)
        assert found["time"][f"exposed_{axis}_s"] == pytest.approx(sum_s)
    parts = {k: v for k, v in found["memory"].items() if k.endswith("_bytes")}
    total, room = parts.pop("total_bytes"), parts.pop("npu_memory_bytes")
    assert sum(parts.values()) == pytest.approx(total)
    assert found["memory_GB"] == pytest.approx(total / 1e9)
    assert found["fits"] is (total <= room) is True


def test_experts_are_placed_over_neighbouring_ranks(tmp_path: Path) -> None:
    keys = ["workload=qwen3-30b-a3b", "parallelism={dp: 2048, ep: 8}", "global_batch=2048"]
    training = _training(_plan(tmp_path, *keys, "memory=ignore"))
    assert training.groups["ep"].sizes == (8, 1, 1)
    assert training.groups["edp"].sizes == (1, 32, 8)
    labels = {one.label for one in training.communications}
    assert "forward all-to-all, ep" in labels
    assert "weight grad reduce-scatter, edp" in labels


def test_what_a_models_file_assumes_is_said_beside_its_step(tmp_path: Path) -> None:
    keys = ["workload=deepseek-v3", "parallelism={ep: 32, pp: 8, dp: 256}", "memory=ignore"]
    notes = _plan(tmp_path, *keys).text.notes
    assert "without the module that predicts a second token" in " ".join(notes)


def test_memory_that_only_just_suffices_is_not_certain(tmp_path: Path) -> None:
    """Predictions are 7 % off on average."""
    for room, is_tight in (("62 GB", True), ("66 GB", False)):
        (training,) = _plan(tmp_path, f"npu={{name: h100-sxm, memory: {room}}}").step.trainings
        verdict = memory_verdict(training.memory)
        assert ("less than the 7% that such figures are off: not certain" in verdict) == is_tight
        assert brief_verdict(training.memory).endswith("fits, not certain" if is_tight else "fits")


def test_exchanges_have_numbers_and_ways_of_their_own(tmp_path: Path) -> None:
    keys = ["workload=qwen3-30b-a3b", "parallelism={dp: 2048, ep: 16}", "global_batch=2048"]
    keys += ["memory=ignore"]
    plain = _plan(tmp_path, *keys)
    halved = _plan(tmp_path, *keys, "exchanges={dispatch: fp8}")
    sizes = [
        {one.collective.size_bytes for one in _training(x).communications if "ep" in one.label}
        for x in (plain, halved)
    ]
    assert min(sizes[1]) == min(sizes[0]) / 2
    assert max(sizes[1]) == max(sizes[0])
    assert _seconds(halved) < _seconds(plain)
    grads = _plan(tmp_path, *keys, "exchanges={gradients: bf16}")
    assert _training(grads).trained.formats.gradient_bytes == 2


EXPERTS = (
    "workload=qwen3-30b-a3b",
    "parallelism={dp: 2048, ep: 64}",
    "global_batch=2048",
    "memory=ignore",
)


def test_how_tokens_go_is_said_and_has_a_key_whatever_the_library(tmp_path: Path) -> None:
    words = {
        "node": "tokens once per node (as DeepEP)",
        "expert": "a copy of a token to each expert",
    }
    usual = {"megatron-core": "node", "nemo": "expert"}
    for library, to in usual.items():
        plain = _plan(tmp_path, *EXPERTS, f"library={library}")
        keyed = {
            key: _plan(tmp_path, *EXPERTS, f"library={library}", f"exchanges.token_copies={key}")
            for key in words
        }
        assert words[to] in plain.settings
        assert all(words[key] in one.settings for key, one in keyed.items())
        assert _seconds(keyed[to]) == _seconds(plain)
        assert _seconds(keyed["expert"]) > 1.2 * _seconds(keyed["node"])
    limited = _plan(tmp_path, *EXPERTS, "library=deepseek", "exchanges.token_copies=expert")
    assert words["expert"] in limited.settings
    assert words["node"] not in _plan(tmp_path).settings


def test_a_note_tells_the_step_where_tokens_go_the_other_way(tmp_path: Path) -> None:
    """The same strategy and bandwidth; nothing where the experts of a token share a node."""
    once = _plan(tmp_path, *EXPERTS)
    each = _plan(tmp_path, *EXPERTS, "exchanges.token_copies=expert")
    for one, other, to in ((once, each, "expert"), (each, once, "node")):
        [note] = copies_notes(one, BANDWIDTH)
        change = _seconds(other) / _seconds(one) - 1
        said = f"{format_time(_seconds(other))} ({change:+.0%}): exchanges: {{token_copies: {to}}}"
        assert note.endswith(said)
        assert note in [*built_notes(one, BANDWIDTH)]
        assert set(copies_assumption(one)) < set(one.settings)
    inside = _plan(tmp_path, *EXPERTS, "parallelism.ep=8")
    assert list(copies_notes(inside, BANDWIDTH)) == []
    assert list(copies_notes(_plan(tmp_path), BANDWIDTH)) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{token_copies: nodes}", "got 'nodes', expected 'node' or 'expert'; did you mean node?"),
        ("{token_copys: node}", "did you mean token_copies?"),
        ("{token_copies: expert, experts_on_at_most: 4}", "expected one of them"),
    ],
)
def test_ways_of_tokens_that_are_none(tmp_path: Path, given: str, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        _plan(tmp_path, *EXPERTS, f"exchanges={given}")


def test_a_search_sends_tokens_as_the_plan_says(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    auto = [
        *EXPERTS[:-1],
        "npu={name: h100-sxm, memory: 200 GB}",
        "parallelism={ep: 64, tp: 1, pp: 1, microbatch: 1, zero: 1, rest: auto}",
    ]
    for to in ("node", "expert"):
        given = f"exchanges.token_copies={to}"
        [best, *_] = open_plan(path, [*auto, given]).searched().found.best
        degrees = f"parallelism={{dp: 2048, ep: 64, recompute: {_recompute(best.strategy)}}}"
        alone = _plan(tmp_path, *EXPERTS, degrees, given)
        alone_s = float(alone.step_time.seconds(best.optimum.bandwidth_bytes_per_s))
        assert best.optimum.step_time_s == pytest.approx(alone_s)


def test_more_chunks_than_any_published_run_are_told_of(tmp_path: Path) -> None:
    """Of a strategy that was searched as of one that the plan says; ``search`` has the same words."""
    said = "20 chunks a stage; published runs that such times are held against have 12 at most"
    for given in ("parallelism.interleave=20", "parallelism={pp: 4, interleave: 20, rest: auto}"):
        path = tmp_path / "plan.yaml"
        path.write_text(PLAN)
        problem = open_plan(path, [given]).searched().problem
        assert said in [*built_notes(problem, BANDWIDTH)]
    notes = [*built_notes(_plan(tmp_path), BANDWIDTH)]
    assert not any("chunks a stage" in note for note in notes)


def _recompute(strategy: Strategy) -> str:
    return Recompute(int(strategy.recompute)).name.lower()


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "zb-h2"])
@pytest.mark.parametrize("batch", [64, 128, 512])
def test_parts_add_up_whatever_the_schedule(tmp_path: Path, schedule: str, batch: int) -> None:
    keys = [
        f"parallelism={{tp: 8, pp: 4, dp: 64, schedule: {schedule}}}",
        f"global_batch={batch * 4}",
    ]
    problem = _plan(tmp_path, *keys, "memory=ignore")
    parts = _training(problem).split_s(problem.step.model, BANDWIDTH)
    assert sum(parts.values()) == pytest.approx(_seconds(problem))
    assert min(parts.values()) >= 0


@pytest.mark.parametrize("workload", ["qwen3-30b-a3b", "llama3-8b"])
def test_compute_does_not_depend_on_the_schedule(tmp_path: Path, workload: str) -> None:
    keys = [f"workload={workload}", "global_batch=2048", "memory=ignore"]
    found = []
    for schedule in ("1f1b", "zb-h1"):
        degrees = f"parallelism={{pp: 4, dp: 512, schedule: {schedule}}}"
        problem = _plan(tmp_path, *keys, degrees)
        parts = _training(problem).split_s(problem.step.model, BANDWIDTH)
        found.append(parts["compute_s"])
    assert found[1] == pytest.approx(found[0])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ["parallelism={tp: 4, cp: 2, pp: 4, dp: 64, interleave: 40}"],
            r"160|40 chunks.*80 layers",
        ),
        (
            ["parallelism={tp: 4, cp: 2, pp: 4, dp: 64, interleave: 3}"],
            r"interleave: got 3 chunks of a stage, expected a divisor of the 20 layers.*write 1 or 2",
        ),
        (["workload=llama3-8b", "parallelism={pp: 64, dp: 32}"], r"64 stages.*32 layers"),
        (["workload=mixtral-8x7b", "parallelism={dp: 2048, ep: 64}"], r"ep 64.*the 8 experts"),
        (["parallelism={tp: 128, dp: 16}"], r"tp 128, expected a divisor of the 64 heads"),
        (["parallelism={tp: 8, dp: 256, ep: 8}"], r"llama3-70b has no experts"),
        (["workload=gpt3-libra", "parallelism={tp: 8, dp: 256}"], r"part of a step"),
    ],
)
def test_what_no_model_can_be_split_into_is_refused(
    tmp_path: Path, settings: list[str], said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        _plan(tmp_path, *settings, "global_batch=2048")


ROOMY = """\
workload: deepseek-v3
global_batch: 12288
npu: b200-sxm
fabric:
  topology: SW(8)_[SW(32)_SW(6)]
  tiers: [node, leaf, spine]
  scale_up: nvlink5-8
cost_model: clos-2026
constraints: [leaf == 50 GB/s, taper(spine) == 1]
"""


@pytest.mark.parametrize(
    ("degrees", "wrong", "fix", "corrected"),
    [
        (
            "tp: 16, pp: 4, dp: 24",
            "24 NPUs still to place",
            "dp 16 and pp 6",
            "tp: 16, pp: 6, dp: 16",
        ),
        ("tp: 16, pp: 4, dp: 16", "= 1024 NPUs", "pp 6", "tp: 16, pp: 6, dp: 16"),
        ("tp: 24, pp: 4, dp: 16", "the 128 heads", "tp 32 and pp 3", "tp: 32, pp: 3, dp: 16"),
        ("tp: 7, dp: 11, pp: 13", "= 1001 NPUs", "change more than two degrees", ""),
    ],
)
def test_degrees_that_are_proposed_pass_every_check(
    tmp_path: Path, degrees: str, wrong: str, fix: str, corrected: str
) -> None:
    """Not the NPUs alone: the dimensions, heads, layers, the batch and the memory, too."""
    with pytest.raises(SpecError, match=rf"{wrong}.*; (write )?{fix}($|, with)"):
        _plan(tmp_path, f"parallelism={{{degrees}, ep: 8}}", text=ROOMY)
    if corrected:
        _plan(tmp_path, f"parallelism={{{corrected}, ep: 8}}", text=ROOMY)


@pytest.mark.parametrize(
    ("wrong", "batches"),
    [
        ("global_batch=1000", "768 or 1024"),
        ("global_batch=1", "256"),
        ("global_batch=960", "768 or 1024"),  # Of 15 microbatches, on 4 stages.
        ("parallelism.microbatch=3", "768 or 1536"),
    ],
)
def test_a_batch_that_is_proposed_suits_an_interleaved_schedule(
    tmp_path: Path, wrong: str, batches: str
) -> None:
    settings = ["memory=ignore", *([] if wrong.startswith("global") else [wrong])]
    with pytest.raises(SpecError, match=rf"; write (a global batch of )?{batches}(,|$)"):
        _plan(tmp_path, wrong)
    for batch in batches.split(" or "):
        assert _plan(tmp_path, *settings, f"global_batch={batch}")
    if "960" in wrong:
        assert _plan(tmp_path, wrong, "parallelism.interleave=1")


def test_what_would_fit_the_memory_stands_on_the_dimensions(tmp_path: Path) -> None:
    """dp 24 would not, behind tp 16."""
    with pytest.raises(Infeasible, match=r"does not fit.*it would fit with zero: 2") as caught:
        _plan(tmp_path, "parallelism={tp: 16, dp: 96, ep: 8}", text=ROOMY)
    assert "dp: 24" not in str(caught.value)


@pytest.mark.parametrize("interleave", [1, 2, 4])
@pytest.mark.parametrize("memory_GB", [24, 80])
def test_experts_are_spread_where_that_fits_the_memory(
    tmp_path: Path, interleave: int, memory_GB: int
) -> None:
    """Every proposal is followed, and is a plan that fits."""
    degrees = f"tp: 4, cp: 2, pp: 4, dp: 64, interleave: {interleave}"
    about = ["workload=deepseek-v3", f"npu={{name: h100-sxm, memory: {memory_GB} GB}}"]
    with pytest.raises(Infeasible) as caught:
        _plan(tmp_path, *about, f"parallelism={{{degrees}}}")
    said = re.search(r"would fit with (.*)\. 'memory", str(caught.value))
    assert said is not None
    assert "ep: " in said[1]
    for proposal in said[1].split(", or with "):
        written = re.sub(r" \([^)]*\)$", "", proposal).replace(" and ", ", ")
        given = dict(one.split(": ") for one in f"{degrees}, {written}".split(", "))
        merged = ", ".join(f"{name}: {value}" for name, value in given.items())
        assert _training(_plan(tmp_path, *about, f"parallelism={{{merged}}}")).memory.fits


def test_a_search_is_named_where_no_change_fits_the_memory(tmp_path: Path) -> None:
    about = ["workload=deepseek-v3", "npu={name: h100-sxm, memory: 6 GB}"]
    with pytest.raises(Infeasible, match="more memory; 'parallelism: auto' tells whether another"):
        _plan(tmp_path, *about, "parallelism={tp: 4, cp: 2, pp: 4, dp: 64}")


def _as_a_loop(training: ModelTraining) -> str:
    """The overlap of each axis in the language of loops."""
    stolen, shares = training.trained.constants.stolen_fraction, training.trained.strategy.overlap
    tp, cp, ep = (1 - f + stolen * f for f in (shares.tp, shares.cp, shares.ep))
    inputs = f" + {stolen} * weight_grad.tp"
    passes = [
        f"max({way}.linear + {tp} * {inner}.tp{more}, {way}.tp)"
        f" + max({way}.attention + {cp} * {way}.cp, {way}.cp)"
        f" + max({way}.experts + {ep} * {way}.ep, {way}.ep) + {way}.other"
        for way, inner, more in (("forward", "forward", ""), ("backward", "input_grad", inputs))
    ]
    return " + ".join([*passes, "weight_grad.dp"])


@pytest.mark.parametrize(
    ("workload", "parallelism", "shares"),
    [
        ("llama3-70b", "{tp: 4, cp: 2, pp: 4, dp: 64, interleave: 5}", (0.8, 1, 0)),
        ("llama3-70b", "{tp: 8, cp: 4, pp: 2, dp: 32, recompute: full}", (0, 0.5, 0)),
        ("mixtral-8x7b", "{tp: 2, ep: 8, etp: 2, pp: 4, dp: 256, zero: 3}", (0.3, 1, 0.7)),
        ("deepseek-v3", "{ep: 32, pp: 8, dp: 256}", (0, 1, 1)),
    ],
)
def test_overlap_in_the_language_of_loops_takes_the_same_time(
    tmp_path: Path, workload: str, parallelism: str, shares: tuple[float, float, float]
) -> None:
    """By the loop of a layer and C17, to 1e-12, at any bandwidth."""
    tp, cp, ep = shares
    settings = [f"workload={workload}", f"parallelism={parallelism}", "memory=ignore"]
    p2p = f"p2p: {'true' if cp == 1 else 'false'}"
    hidden = f"overlap={{tp: {tp}, cp: {cp}, ep: {ep}, dp: 0, {p2p}}}"
    plain = _plan(tmp_path, *settings, hidden)
    loop = f"training_loop={{layer: '{_as_a_loop(_training(plain))}'}}"
    own = _plan(tmp_path, *settings, f"overlap={{{p2p}}}", loop, "contention=false")
    for vector in 10 ** np.random.default_rng(7).uniform(8, 12, (20, 3)):
        found, expected = (float(one.step_time.seconds(vector)) for one in (own, plain))
        assert found == pytest.approx(expected, rel=1e-12)


def test_a_loop_hides_nothing_and_overlap_always_the_inputs_gathered_again(tmp_path: Path) -> None:
    """2 of every layer and 1 of the logits, all but the 10 % that they take from compute.

    (16 - 1/5) 20 + 80/5 = 332 layers and 16 logits; 3/4 of 4,096 tokens of 8,192 in bf16.
    """
    none = "overlap={tp: 0, cp: 0, ep: 0, dp: 0, p2p: false}"
    loop = "training_loop={layer: forward + backward}"
    plain, own = (_plan(tmp_path, *x) for x in ((none,), (loop, "overlap={p2p: false}")))
    gathered_s = (2 * 332 + 16) * 0.75 * 4096 * 8192 * 2 / 450e9
    assert _seconds(own) - _seconds(plain) == pytest.approx(0.9 * gathered_s, rel=1e-9)
    tp_s = [
        _training(one).split_s(one.step.model, BANDWIDTH)["exposed_tp_s"] for one in (plain, own)
    ]
    assert tp_s == pytest.approx([0.3083, 0.3768], rel=1e-3)


def test_a_loop_of_ones_own_by_hand(tmp_path: Path) -> None:
    """Layers of 2 ms: 20 of every stage, the embedding on the first and logits on the last.

    (m - 1/v) 21 layers and 1/v of all 82, m = 16 and v = 5. Gradients hide beside the last
    1 + p (v - 1)/v = 4.2 microbatches: 84 layers share 6 bytes of every parameter, of which
    1/2 - 1/128 cross the NICs of 64 nodes. A stage sends v times M/tp both ways; beside the
    gradients these do not hide.
    """
    loop = "training_loop={layer: 'max(2 ms, weight_grad.dp) + 0 * (forward + backward)'}"
    problem = _plan(tmp_path, loop)
    training = _training(problem)
    n_parameters = float(training.trained.n_dense_parameters)
    slow = 5e9
    sent_s = n_parameters * 6 * (1 / 2 - 1 / 128) / slow
    sends_s = 2 * 5 * (4096 * 8192 * 2 / 4) / slow
    stage_s, all_s = 0.042, 82 * 0.002
    assert sent_s / 84 > 0.002
    assert sends_s < stage_s
    expected = (16 - 4.2 - 0.2) * stage_s + 0.2 * (all_s + 4 * sends_s)
    vector = np.array([1e18, slow, slow])
    expected += sent_s + 4.2 * sends_s
    expected += training.split_s(problem.step.model, vector)["optimizer_s"]
    found = float(problem.step_time.seconds(vector))
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loop", ["no_overlap", "tp_dp_overlap", "async_dp"])
def test_the_optimum_under_a_loop_is_proven(tmp_path: Path, loop: str) -> None:
    rules = "constraints=[leaf + spine <= 60 GB/s, node == 450 GB/s, spine >= 1 GB/s]"
    problem = _plan(tmp_path, f"training_loop={loop}", rules, "objective=performance")
    found = optimize(problem)
    assert found.optimality_gap <= 1e-6
    split = _training(problem).split_s(problem.step.model, found.bandwidth_bytes_per_s)
    step_s = float(problem.step_time.seconds(found.bandwidth_bytes_per_s))
    assert sum(split.values()) == pytest.approx(step_s)
    assert problem.step.error_fraction is None
    serial = _plan(tmp_path, "training_loop=no_overlap", rules)
    least = float(serial.step_time.seconds(found.bandwidth_bytes_per_s))
    assert step_s <= least * (1 + 1e-12)


def test_a_search_and_a_loop_do_not_mix(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="training_loop: got a training_loop"):
        plan_search(_plan(tmp_path, "training_loop=async_dp"))


def test_a_step_of_tp_and_dp_has_no_cp_and_ep() -> None:
    path = example("01_gpt3_4d")
    loop = "training_loop={layer: 'forward + backward%s'}"
    plain, more = (load_plan(path, loop % text) for text in ("", " + 3 * forward.cp"))
    assert more.step_time.root == plain.step_time.root
    assert plain.text.notes == more.text.notes[:-1]
    assert more.text.notes[-1].startswith("cp and ep of the training loop are 0")


def test_a_check_has_the_band_of_the_plan_around_its_own_time(tmp_path: Path) -> None:
    """Errors of whole steps are those of published runs, however links deliver (C23)."""
    problem = _plan(tmp_path, "fidelity=calibrated")
    report = link_check(problem, BANDWIDTH).report(Policy("spray"))
    low, high = np.array(problem.step.band_s(BANDWIDTH)) / _seconds(problem)
    assert (low < 0.92, high > 1.09) == (True, True)  # Nine of ten runs of a class, at least 9 %.
    step_s = report.effective_step_time_s.mean()
    assert report.band_s == pytest.approx((low * step_s, high * step_s), rel=1e-9)


@pytest.mark.parametrize("ep", [8, 16, 32])
def test_links_of_a_node_spread_all_copies_once_however_many_nodes(tmp_path: Path, ep: int) -> None:
    """The worked example of C16: 8 copies on 8 B200 take 0.283 ms; NICs of two nodes 0.594 ms."""
    keys = ["workload=deepseek-v3", "npu=b200-sxm", "fabric.scale_up=nvlink5-8", "memory=ignore"]
    keys += [f"parallelism={{tp: 2, pp: 4, dp: 256, ep: {ep}}}", "fidelity=calibrated"]
    problem, bandwidth = _plan(tmp_path, *keys), np.array([900e9, 50e9, 25e9])
    copies_bytes = 8 * 4096 * 7168 * 2 / 2
    n = sum(
        one.count
        for one in problem.step.communications
        if one.collective.group == "ep" and one.collective.size_bytes == copies_bytes
    )
    choices = link_check(problem, bandwidth).report(Policy("spray")).choices
    told = {
        one.stage.dim: one.time_s / n
        for one in choices
        if any("ep" in user.label for user in one.users)
    }
    node_s = copies_bytes * (7 / 8 + 0.49 / 8) / (0.863 * 900e9)
    assert node_s == pytest.approx(0.283e-3, rel=1e-3)
    assert told[0] == pytest.approx(node_s, rel=1e-3)
    if ep == 16:
        nics_s = copies_bytes * 2 * (1 - 0.5**8) / 8 / 2 / (0.984 * 50e9)
        assert (nics_s, told[1]) == (pytest.approx(0.594e-3, rel=1e-3),) * 2


@pytest.mark.parametrize("ep", [8, 16, 32])
def test_bytes_of_a_phase_inside_a_node_count_all_copies_once(tmp_path: Path, ep: int) -> None:
    """7/8 of what an NPU has for its experts, by hand; between nodes 1 of 2 or 3 of 4 besides."""
    keys = ["workload=deepseek-v3", "npu=b200-sxm", "fabric.scale_up=nvlink5-8", "memory=ignore"]
    keys += [f"parallelism={{tp: 2, pp: 4, dp: 256, ep: {ep}}}", "fidelity=ideal"]
    problem, bandwidth = _plan(tmp_path, *keys), np.array([900e9, 50e9, 25e9])
    copies_bytes = 8 * 4096 * 7168 * 2 / 2
    sent = [one for one in problem.step.communications if one.collective.group == "ep"]
    n = sum(one.count for one in sent if one.collective.size_bytes == copies_bytes)
    links = link_check(problem, bandwidth).with_schedule(Policy("spray"))
    found = {
        key[0]: sum(links.phase_bytes(key, one) * one.count for one in links.users(key))
        for key in links.keys
        if any("ep" in one.label for one in links.users(key) if one in sent)
    }
    assert found[0] == pytest.approx(n * copies_bytes * 7 / 8)
    carried = sum(links.bytes_of(one)[0] * one.count for one in sent)
    assert carried == pytest.approx(found[0])
    assert (1 in found) == (ep > 8)


def test_gradients_alone_on_a_network_take_their_bytes_and_no_more(tmp_path: Path) -> None:
    """Hidden behind less compute than they take: T is their time, whatever the share (C17).

    Every NPU of 64 sends 2 (7/8) of its eighth of the parameters' bytes: 2 (e_w) + 4 (e_g).
    """
    text = PLAN.replace("tp: 4, cp: 2, pp: 4, dp: 64, interleave: 5", "tp: 8, dp: 8")
    text = text.replace("SW(8)_[SW(32)_SW(8)]", "SW(8)_SW(8)").replace(
        "node, leaf, spine", "node, leaf"
    )
    text = text.replace("1024", "8").replace(
        "leaf == 50 GB/s, taper(spine) == 2", "leaf <= 50 GB/s"
    )
    at, times = np.array([450e9, 0.1e9]), []
    for share in (0, 0.25, 1):
        problem = _plan(tmp_path, f"overlap.dp={share}", "memory=ignore", text=text)
        times.append(float(problem.step_time.seconds(at)))
    n_parameters = _training(problem).trained.n_dense_parameters
    sent_s = 7 / 8 * n_parameters * (2 + 4) / at[1]
    assert times[0] > times[1] == pytest.approx(times[2], rel=1e-12)
    assert times[2] == pytest.approx(sent_s, rel=0.01)  # The optimizer's own time comes on top.


def test_contention_names_the_axes_that_share_a_dimension(tmp_path: Path, run) -> None:
    """The EDP ring over leaves and the experts' exchange share the leaves' links."""
    keys = ["workload=qwen3-235b-a22b", "parallelism={dp: 2048, ep: 16, zero: 3}", "npu=h200-sxm"]
    keys += ["global_batch=2048", "memory=ignore", "fidelity=calibrated"]
    _plan(tmp_path)
    flags = [word for key in keys for word in ("--set", key)]
    flags += ["--bandwidth", "450,50,25", "--seed", "0"]
    lines = run("check", tmp_path / "plan.yaml", *flags).out.splitlines()
    assert any(line.startswith(" contention of DP, EDP and EP on dim2 ") for line in lines)
    assert any(line.startswith("contention: they share these links") for line in lines)
    assert "What runs, and how long its bytes take on the links as routed, hidden or not" in lines
    added = "start and steps and for the busiest rank of experts"
    assert f"a step also waits for {added} (docs/check.md)" in lines
    assert "2,048 sequences in 1 microbatch of 1," in "\n".join(lines)
    [link] = [line for line in lines if line.startswith("  leaf ")][:1]
    assert "->" in link.partition(": NPUs ")[2]


def test_a_part_of_a_step_is_told_what_makes_it_a_plan() -> None:
    """Both ways: another model whose strategy is searched, and a share of the peak."""
    plan = example("0e_rails_2to1")
    with pytest.raises(SpecError) as caught:
        load_plan(plan, ["workload=gpt3-libra"])
    fix = caught.value.faults[0].fix
    assert "'workload: gpt3' with 'parallelism: auto', or write npu: " in fix
    assert open_plan(plan, ["workload=gpt3", "parallelism=auto"]).search()
    npu, parallelism = re.search(r"write npu: (\{.*\}) and parallelism: (\{.*\})", fix).groups()
    load_plan(plan, ["workload=gpt3-libra", f"npu={npu}", f"parallelism={parallelism}"])


def test_all_that_keeps_a_plan_from_a_search_is_told_at_once() -> None:
    plan = example("01_gpt3_4d")
    with pytest.raises(SpecError) as caught:
        open_plan(plan, ["parallelism=auto"]).search()
    fixes = {fault.path: fault.fix for fault in caught.value.faults}
    assert fixes == {
        "npu": "write npu: h100-sxm",
        "workload": "name a whole model, such as 'workload: gpt3'",
        "training_loop": "remove it",
    }
    followed = ["npu=h100-sxm", "workload=gpt3", "training_loop=null"]
    assert open_plan(plan, ["parallelism=auto", *followed]).search()


def test_a_key_of_a_plain_value_is_told_to_write_the_whole() -> None:
    plan = example("0e_rails_2to1")
    with pytest.raises(SpecError, match="npu is 'h100-sxm' there: write npu as a whole"):
        load_plan(plan, ["npu.efficiency_fraction=0.4"])
