"""The section of docs/accuracy.md on whole steps, and its picture docs/accuracy-training.svg."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from math import log10

import numpy as np

import libra_planner as lp
from libra_planner.inputs.training.planned import planned_run
from libra_planner.step.bands import FEW_RUNS, STEP_BANDS, STRATEGY_TIE_FRACTION
from libra_planner.studies.step_fits import MeasuredStep
from libra_planner.workload.clock import RANGES, STEP_CONSTANTS
from libra_planner.workload.volumes import EXPERT, NODE
from tests.oracles.test_measured_training import (
    DEEPSEEK,
    DEEPSEEK_TOKENS_PER_S,
    FILE,
    STEPS,
    errors_by_copies,
    ordered_fraction,
    strategy_pairs,
)

NOT_FITTED = ("InternEvo", "PaLM", "maxtext")
"""Publishers whose rows take no part in the fit."""
FITTED = {one.publisher for one in STEPS} - set(NOT_FITTED)

HEAD = """
## Whole steps

`train` and plans of whole models ([C15](conventions.md#c15-axes-of-parallelism) to [C18](conventions.md#c18-flops-and-mfu), [train](train.md)) beside published runs: {n} of {n_rows} rows (`tests/oracles/measured_training.csv`, each with
its source) say enough to be told. Left out are rows without a shape, a sequence length, a batch or a time, hybrids with Mamba layers, and LoRA. A blank
default is one rule for all rows ([train](train.md#tables-of-runs)). Kernels and collectives have their own constants; four more are fitted to step
times, the same for all NPUs:

| constant | value | physical range |
|---|---|---|
"""
MEANING = """
The clock falls with the peak FLOP/s that an NPU has for each watt, beyond a density that costs nothing; compute beside hidden communication loses a share of
that communication's time; the busiest rank of experts has more tokens than the mean. Around the minimum exponents from 0.2 to 0.33 are within 3 % of the least error, and the choice among them was made on these rows; 0.22
was taken. InternEvo and TPUs take no part in the fit.

Mean absolute error by what constants were fitted to:

| rows | constants from | rows | mean error | median |
|---|---|---|---|---|
"""
SOURCES = """
By source and class:

| source | NPU | class | rows | mean error | median | 10 % to 90 % |
|---|---|---|---|---|---|---|
"""
FLOORS = """
| source | rows | told | runs that are the same to the planner differ by up to |
|---|---|---|---|
"""
NOTES = """
- GB200, TPU and the 4-bit types have no measured kernels: a data-sheet roofline with typical constants.
- Megatron-Bridge balances tokens over experts by force: a best case, which real routers do not reach. Its tables say neither the dispatcher nor what of its
  all-to-all hides; one copy of a token per node and no overlap is the rule for all rows.
- How tokens go to experts on several nodes ([C16](conventions.md#c16-volumes-of-a-step)): with one copy per node the {n_core} runs of Megatron Core are {core_node:.0%} off on
  average, with a copy to each expert {core_expert:.0%}. So `megatron-core` sends one per node. The {n_nemo} runs of NeMo are {nemo_node:.0%} and {nemo_expert:.0%} off and do not tell: that
  `nemo` sends a copy to each expert, as the plain all-to-all does, is an assumption.
- DeepSeek-V3's own run, which is not in the file: 2,048 H800; that all-to-alls hide, its degrees and its batch are assumed: {deepseek:,.0f} tokens/s of an NPU are predicted;
  14.8e12 tokens in 2.8 million GPU hours are {published:,.0f}.
- Meta's runs of Llama 3 405B, which are not in the file: tp 8, pp 16 and 2,048 sequences of 8,192 on H100; 8,192 of them had 430 TFLOP/s each, 16,384 had 400
  (a slide of SC24, seen at glennklockwood.com/garden/llama-3.1). The chunks of a pipeline stage are not published: 1, 2, 4 and 8 chunks are told {meta[0]} on
  8,192 and {meta[1]} on 16,384. ZeRO 2, microbatches of one sequence and no recomputation are assumed; what needs more memory than an NPU has is marked.
- Bands of `step_time_low_s` and `step_time_high_s` ([C23](conventions.md#c23-bands-of-error)) are what nine of ten errors of a class stay below, at least 9 %:
  {bands}.
  An NPU without a class takes the band of the same kind on an NPU of the same die (A800 that of A100; H200 and H800 that of H100; B200 that of GB200), at
  least the largest error of its own few runs ({few}). Results say so.
- Ties of `search` ([C23](conventions.md#c23-bands-of-error)): what two strategies of one model share is off alike. {n_pairs} pairs of runs of one source, model, NPU and number of NPUs differ in
  their strategy; measured times have the predicted order in {all_ordered:.0%} of them, and in {far_ordered:.0%} of the {n_far} whose predicted times differ by more than
  {tie:.0%}: the least whole percent for nine of ten. {family:.0%} of the pairs are vTrain's. Of the {n_best} of these in which one run is the predicted best of its kind {best_ordered:.0%} have
  the predicted order: what is predicted to be the best is often one whose error flatters it.

![Predicted and measured step times](accuracy-training.svg)

The largest errors:

| run | NPU | NPUs | measured | predicted | error | why |
|---|---|---|---|---|---|---|
"""
REASONS = {
    ("dgxc-benchmarking", "GB200", "experts bf16"): (
        "an early release: the same model takes half of that in fp8 a year later"
    ),
    ("torchtitan", "H100", "dense fp8"): (
        "context parallelism over long sequences: FlashAttention 2 and key exchanges that do not hide"
    ),
    ("torchtitan", "H100", "dense bf16"): "eager mode; the same run compiled is 16 % faster",
    ("InternEvo", "A100", "dense bf16"): (
        "identical configurations differ by up to 60 %; NICs of 100 Gbit/s for two GPUs"
    ),
    ("PaLM", "TPU", "dense bf16"): "a TPU: no kernel was measured, and no power limit is known",
    ("Megatron-Bridge", "GB200", "experts fp8"): (
        "tokens dropped or not, with and without CUDA graphs: releases differ by 1.8 times"
    ),
    ("Megatron-Bridge", "B200", "experts fp8"): "not explained; an early release",
    ("Megatron-Bridge", "B200", "dense fp8"): "not explained; power limits fp8 less than bf16",
    ("Megatron-Bridge", "H100", "experts bf16"): (
        "GPT-OSS: attention with sinks, biases of experts; kernels of its own are not known"
    ),
    ("Megatron-Bridge", "GB200", "experts bf16"): "GPT-OSS, as above",
    ("vTrain", "A100", "dense bf16"): (
        "one microbatch of 64 sequences: the same run in four of 16 takes half of the time; "
        "tensor parallelism over two nodes is up to 27 % under"
    ),
    ("dgxc-benchmarking", "H100", "dense fp8"): (
        "its table says no interleaving: one chunk is taken, an earlier release prints 12"
    ),
    ("dgxc-benchmarking", "H100", "dense bf16"): "the same",
}


HeldOut = Callable[
    [Sequence[MeasuredStep], Callable[[MeasuredStep], object], set[str]],
    list[tuple[MeasuredStep, float]],
]


def section(held_out_errors: HeldOut) -> Iterator[str]:
    """Lines of the section."""
    yield from HEAD.format(n=len(STEPS), n_rows=len(FILE.runs)).rstrip().split("\n")
    for one in fields(STEP_CONSTANTS):
        value, (low, high) = getattr(STEP_CONSTANTS, one.name), RANGES[one.name]
        yield f"| {one.name} | {value:.3g} | {low:g} to {high:g} |"
    yield from MEANING.rstrip().split("\n")
    yield from _fit_rows(held_out_errors)
    yield from SOURCES.rstrip().split("\n")
    yield from _class_rows()
    yield from FLOORS.rstrip().split("\n")
    yield from _floor_rows()
    bands = ", ".join(f"{' '.join(key)} {100 * error:.0f} %" for key, error in STEP_BANDS.items())
    found = {
        "bands": bands,
        "few": ", ".join(f"{name} {100 * error:.0f} %" for name, error in FEW_RUNS.items()),
        **_ties(),
        **_copies(),
        "deepseek": planned_run(DEEPSEEK).tokens_per_s_per_gpu,
        "published": DEEPSEEK_TOKENS_PER_S,
        "meta": [_meta_words(n) for n in (8192, 16384)],
    }
    yield from NOTES.format_map(found).rstrip().split("\n")
    yield from _worst_rows()


def _meta_words(n_npus: int) -> str:
    """TFLOP/s of an NPU for each number of chunks that Meta may have taken, and what is too big."""
    asked = {"npu": "h100-sxm", "gpus": n_npus, "global_batch": 2048, "tp": 8, "pp": 16}
    runs = (
        lp.train("llama3-405b", **asked, zero=2, interleave=n, fabric="llama3-h100")
        for n in (1, 2, 4, 8)
    )
    told = [one.to_dict() for one in runs]
    big = [one for one in told if not one["fits"]]
    needed = ", ".join(f"{one['memory_GB']:.0f}" for one in big)
    too_big = f" (* needs {needed} of {told[0]['npu_memory_GB']:.1f} GB)" if big else ""
    flops = (f"{one['model_tflops_per_gpu']:.0f}{'' if one['fits'] else '*'}" for one in told)
    return f"{', '.join(flops)} TFLOP/s{too_big}"


def _ties() -> dict[str, float]:
    """How often pairs of strategies have the predicted order."""
    pairs = strategy_pairs()
    far = [one for one in pairs if one.difference > STRATEGY_TIE_FRACTION]
    best = [one for one in far if one.has_best]
    return {
        "n_pairs": len(pairs),
        "n_far": len(far),
        "n_best": len(best),
        "tie": STRATEGY_TIE_FRACTION,
        "all_ordered": ordered_fraction(pairs, 0.0),
        "far_ordered": ordered_fraction(far, 0.0),
        "best_ordered": ordered_fraction(best, 0.0),
        "family": sum(one.publisher == "vTrain" for one in pairs) / len(pairs),
    }


def _copies() -> dict[str, float]:
    """How far off the runs of two libraries are, by what gets a copy of a token."""
    found: dict[str, float] = {}
    for name, library in (("core", "megatron-core"), ("nemo", "nemo")):
        errors = errors_by_copies(library)
        found[f"n_{name}"] = len(errors[NODE])
        for to in (NODE, EXPERT):
            found[f"{name}_{to}"] = float(np.mean(np.abs(errors[to])))
    return found


def _fit_rows(held_out_errors: HeldOut) -> Iterator[str]:
    own = [(one, one.error()) for one in STEPS if one.publisher in FITTED]
    yield f"| all that are fitted | these rows | {_figures([error for _, error in own])} |"
    families = ("A100", "H100", "H200")
    scored = [one for one in STEPS if one.publisher in FITTED]
    for one, error in _by_family(held_out_errors(STEPS, lambda x: x.family, FITTED), families):
        yield f"| {one} | other NPUs | {_figures(error)} |"
    halves = held_out_errors(scored, hash_half, FITTED)
    yield f"| a random half | the other half | {_figures([error for _, error in halves])} |"


def hash_half(one: MeasuredStep) -> int:
    """A half that a row belongs to, the same on every machine."""
    return sum(f"{one.source}{one.time_s:.6g}".encode()) % 2


def _by_family(
    found: Sequence[tuple[MeasuredStep, float]], families: Sequence[str]
) -> Iterator[tuple[str, list[float]]]:
    for family in families:
        yield family, [error for one, error in found if one.family == family]


def _figures(errors: Sequence[float]) -> str:
    return f"{len(errors)} | {np.mean(np.abs(errors)):.1%} | {np.median(errors):+.1%}"


def _class_rows() -> Iterator[str]:
    for key in sorted({(one.publisher, one.family, one.kind) for one in STEPS}):
        errors = [one.error() for one in STEPS if (one.publisher, one.family, one.kind) == key]
        low, high = np.quantile(errors, [0.1, 0.9])
        yield f"| {' | '.join(key)} | {_figures(errors)} | {low:+.0%} to {high:+.0%} |"
    for name, kept in (("dense fp8", "dense fp8"), ("experts", "experts")):
        errors = [one.error() for one in STEPS if one.kind.startswith(kept)]
        low, high = np.quantile(errors, [0.1, 0.9])
        yield f"| all | all | {name} | {_figures(errors)} | {low:+.0%} to {high:+.0%} |"


def _floor_rows() -> Iterator[str]:
    at = FILE.columns.index("source")
    for name in sorted({one.publisher for one in STEPS}):
        rows = [row for row in FILE.rows if name in row[at]]
        told = [one for one in STEPS if one.publisher == name]
        floor = max(_spreads(told), default=None)
        words = "none is repeated" if floor is None else f"{floor:.0%}"
        yield f"| {name} | {len(rows)} | {len(told)} | {words} |"


def _spreads(told: Sequence[MeasuredStep]) -> Iterator[float]:
    """How far runs with the same prediction differ."""
    same: dict[tuple[str, float], list[float]] = {}
    for one in told:
        key = one.planned.npu_name, round(one.planned.step_time_s, 9)
        same.setdefault(key, []).append(one.time_s)
    for times in same.values():
        if len(times) > 1:
            yield max(times) / min(times) - 1


def _worst_rows() -> Iterator[str]:
    shown: set[tuple[str, str, str]] = set()
    for one in sorted(STEPS, key=lambda x: (-abs(x.error()), x.source, x.time_s)):
        key = one.publisher, one.family, one.kind
        if key in shown or abs(one.error()) < 0.2 or len(shown) == 10:
            continue
        shown.add(key)
        run = one.planned
        yield (
            f"| {one.publisher}: {run.model.name}, {one.kind} | {one.family} | "
            f"{int(run.strategy.n_npus)} | {one.time_s:.3g} s | {run.step_time_s:.3g} s | "
            f"{one.error():+.0%} | {REASONS.get(key, 'not explained')} |"
        )


_SIZE, _EDGE = 520.0, 60.0
_COLOURS = {"A100": "#3b7dd8", "H100": "#2a9d5c", "H200": "#7cb518", "B200": "#e07a1f"}
_COLOURS |= {"GB200": "#c2352b", "TPU": "#888888"}


def picture() -> str:
    """Predicted over measured step times, both logarithmic, with lines at 15 %."""
    low, high = 1.0, 200.0

    def at(seconds: float) -> float:
        share = (log10(seconds) - log10(low)) / (log10(high) - log10(low))
        return round(share * (_SIZE - 2 * _EDGE), 1)

    def x(seconds: float) -> float:
        return _EDGE + at(seconds)

    def y(seconds: float) -> float:
        return _SIZE - _EDGE - at(seconds)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE:g} {_SIZE:g}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_SIZE:g}" height="{_SIZE:g}" fill="white"/>',
    ]
    for tick in (1, 2, 5, 10, 20, 50, 100, 200):
        lines.append(f'<path d="M{x(tick):g} {y(low):g}V{y(high):g}" stroke="#e6e6e6"/>')
        lines.append(f'<path d="M{x(low):g} {y(tick):g}H{x(high):g}" stroke="#e6e6e6"/>')
        lines.append(
            f'<text x="{x(tick):g}" y="{y(low) + 18:g}" text-anchor="middle">{tick}</text>'
        )
        lines.append(
            f'<text x="{x(low) - 8:g}" y="{y(tick) + 4:g}" text-anchor="end">{tick}</text>'
        )
    for factor, dash in ((1.0, ""), (1.15, "4 4"), (1 / 1.15, "4 4")):
        begin, end = max(low, low / factor), min(high, high / factor)
        lines.append(
            f'<path d="M{x(begin):g} {y(begin * factor):g}L{x(end):g} {y(end * factor):g}" '
            f'stroke="#999999" stroke-dasharray="{dash}"/>'
        )
    for one in STEPS:
        measured, predicted = (
            min(max(value, low), high) for value in (one.time_s, one.planned.step_time_s)
        )
        colour = _COLOURS.get(one.family, "#888888")
        filled = "none" if one.kind.startswith("experts") else colour
        lines.append(
            f'<circle cx="{x(measured):g}" cy="{y(predicted):g}" r="3" fill="{filled}" '
            f'fill-opacity="0.5" stroke="{colour}"/>'
        )
    for i, (name, colour) in enumerate(_COLOURS.items()):
        lines.append(f'<circle cx="80" cy="{76 + 18 * i}" r="4" fill="{colour}"/>')
        lines.append(f'<text x="90" y="{80 + 18 * i}">{name}</text>')
    lines.append('<text x="80" y="188">rings: with experts; dashed: 15 %</text>')
    middle = _SIZE / 2
    lines.append(
        f'<text x="{middle:g}" y="{_SIZE - 18:g}" text-anchor="middle">measured step, s</text>'
    )
    lines.append(
        f'<text x="18" y="{middle:g}" text-anchor="middle" '
        f'transform="rotate(-90 18 {middle:g})">predicted step, s</text>'
    )
    return "\n".join([*lines, "</svg>", ""])
