"""Write docs/accuracy.md: predictions beside published measurements, with what was held out.

Run ``python docs/accuracy.py``; a test fails when the page differs.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from docs.accuracy_kernels import kernel_lines
from docs.accuracy_memory import section as memory_section
from docs.accuracy_training import picture
from docs.accuracy_training import section as training_section
from libra_planner.step.collectives.fitting import MeasuredRun, halves_errors, held_out_errors
from libra_planner.step.collectives.measured import (
    LARGE_BYTES,
    RANGES,
    SCALE_UPS,
    TOLD_NODE,
    Constants,
    Ranks,
    TOLD_BUS_Bps,
    measured_time_s,
    sent_bytes,
)
from libra_planner.studies.kernel_fits import halves_errors as kernel_halves_errors
from libra_planner.studies.kernel_fits import held_out_errors as kernel_held_out_errors
from libra_planner.studies.step_fits import held_out_errors as step_held_out_errors
from tests.oracles.test_measured_collectives import RUNS

PAGE = ROOT / "docs" / "accuracy.md"
PICTURE = ROOT / "docs" / "accuracy-training.svg"
N_HALVES = 5

HEAD = """# Accuracy

What the planner says beside what was measured. `python docs/accuracy.py` writes this page.

## Collectives as they run

`collective --system` and plans with `fidelity: calibrated` ([C20](conventions.md#c20-measured-collectives)) have one law for all systems:

t = start + a + z + 2 sqrt(a z)

- a: steps: a time for each doubling of the ranks, twice for an all-reduce.
- z: the larger of two times. In a domain: bytes around a ring, and a share of the rank's own part, over the scale-up links; or, where the switches
  reduce, an all-reduce that sends every byte once. Across domains: the bytes of a domain over its NICs; an all-reduce of two domains sends each byte once, too.

The constants are the same for all rows. They were fitted to the logarithms of the measured times of all sizes.

| constant | value | physical range |
|---|---|---|
"""
SOURCE = """
{n} of 264 published runs of NCCL are scored (`tests/oracles/measured_collectives.csv`, each with its source). Left out are cards that NVLink joins in
pairs, and several nodes whose NICs nobody says. Mean absolute error, and the median with the interval of the middle 80 % of signed errors:

| rows | constants from | mean | median | 10 % to 90 % |
|---|---|---|---|---|
"""
OUTLIERS = """
Publishers differ on the same system by 1 to 4 % inside a node, by 10 to 20 % across 4 to 8 nodes and by 50 % on two nodes.

Curves with the largest mean error under the bundled constants, from 64 MiB on:

| curve | GPUs | mean error | why |
|---|---|---|---|
"""
REASONS = {
    "aws_p5_2n_efa_eks_oldplugin": "an old network plug-in, which a newer one on the same nodes beats 3 times",
    "coreweave_gb200_1440": "20 racks; the taper between them is not published",
    "vidur_a100_dgx_send_recv_n2_d2": "one pair of GPUs uses fewer channels than a collective",
    "coreweave_h100_12n_sharp": "switches between the nodes reduce; the law knows rings there",
    "aic_gb200_alltoall_2": "two GB200 reach a third of their line rate, two H100 two thirds",
    "nccltests119_24": "three nodes; the law's ring sends 1.4 times the bytes of a hierarchy",
    "vtrain_v100_ar_2": "two V100 that one link joins copy less than the law says",
}
UNLOGGED = """
A figure without a log or a size is not scored: 8 B200 in one node reach more than {most:.0f} GB/s of bus bandwidth in an all-reduce
([NVIDIA/nccl issue 1807](https://github.com/NVIDIA/nccl/issues/1807), NCCL 2.27). The law says {big:.0f} GB/s at 16 GiB, {less:.0%} less, and {small:.0f} GB/s at 512 MiB, where
{told:.0f} GB/s were measured. One share stands for all of Blackwell, from 4 to 72 GPUs. Where a node of B200 decides, `calibrate` it with runs of your own.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    PICTURE.write_text(picture())


def page() -> str:
    """The text of the page."""
    used = Constants()
    lines = [HEAD.rstrip()]
    lines += [_constant_row(field.name, used) for field in fields(Constants)]
    lines += [SOURCE.format(n=len(RUNS)).rstrip(), *_error_rows(used)]
    lines += [OUTLIERS.rstrip(), *_outlier_rows(used), _unlogged().rstrip()]
    lines += kernel_lines(kernel_halves_errors, kernel_held_out_errors)
    lines += memory_section()
    lines += training_section(step_held_out_errors)
    return "\n".join(lines) + "\n"


def _constant_row(name: str, used: Constants) -> str:
    low, high = RANGES[name]
    value = getattr(used, name)
    if name.endswith("_s"):
        return f"| {name} | {1e6 * value:.3g} µs | {1e6 * low:g} to {1e6 * high:g} µs |"
    return f"| {name} | {value:.3g} | {low:g} to {high:g} |"


def _error_rows(used: Constants) -> Iterator[str]:
    halves = [x for seed in range(N_HALVES) for x in halves_errors(RUNS, lambda r: r.curve, seed)]
    found = {
        "all rows": [(run, run.error(used)) for run in RUNS],
        "the other half of the curves": halves,
        "other publishers": held_out_errors(RUNS, lambda run: run.publisher),
        "other NPUs": held_out_errors(RUNS, _system),
    }
    for across, where in ((False, "inside a domain"), (True, "across domains")):
        for large, sizes in ((True, "64 MiB and more"), (False, "all sizes")):
            for constants, errors in found.items():
                kept = _of(errors, across=across, large=large)
                yield f"| {where}, {sizes} | {constants} | {_figures(kept)} |"


def _system(run: MeasuredRun) -> str:
    """The NPU of a run."""
    return next(name for name, links in SCALE_UPS.items() if links is run.ranks.scale_up)


def _of(errors: Sequence[tuple[MeasuredRun, float]], *, across: bool, large: bool) -> np.ndarray:
    return np.array(
        [
            error
            for run, error in errors
            if (run.ranks.n_domains > 1) == across and (run.size_bytes >= LARGE_BYTES or not large)
        ]
    )


def _figures(errors: np.ndarray) -> str:
    low, middle, high = np.quantile(errors, [0.1, 0.5, 0.9])
    return f"{np.mean(np.abs(errors)):.1%} | {middle:+.1%} | {low:+.0%} to {high:+.0%}"


def _unlogged() -> str:
    """What is said of 8 B200, beside the law."""
    npu, kind, _ = TOLD_NODE
    node, (told, most) = Ranks(SCALE_UPS[npu]), (x / 1e9 for x in TOLD_BUS_Bps.values())
    small, big = (
        sent_bytes(kind, size, node.n) / measured_time_s(kind, size, node) / 1e9
        for size in TOLD_BUS_Bps
    )
    return UNLOGGED.format(big=big, less=1 - big / most, small=small, told=told, most=most)


def _outlier_rows(used: Constants) -> Iterator[str]:
    curves = defaultdict(list)
    for run in RUNS:
        if run.size_bytes >= LARGE_BYTES:
            curves[run.curve].append(run)
    means = {name: np.mean([run.error(used) for run in runs]) for name, runs in curves.items()}
    for name in sorted(means, key=lambda name: -abs(means[name]))[:6]:
        n = curves[name][0].ranks.n
        yield f"| {name} | {n:,} | {means[name]:+.0%} | {REASONS.get(name, '')} |"


if __name__ == "__main__":
    main()
