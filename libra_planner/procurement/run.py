"""A training run as it will really go: failures, checkpoints, restarts, time and cost.

One failed part stops a job, so a job of N parts fails N times as often as one of them. With
failures of a constant rate 1/M, work of W seconds in intervals of tau seconds, each followed by
a checkpoint of C seconds, and R seconds to restart takes in expectation

    M exp(R/M) (exp((tau + C)/M) - 1) W/tau

(J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps,
Future Generation Computer Systems 22, 2006, section 3). The interval that is best to first order
is sqrt(2 C M) (J. W. Young, Communications of the ACM 17, 1974).

Checkpoints that take no time are best taken all the time: as tau goes to 0 with C = 0, no work is
lost and only restarts remain, W exp(R/M).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from libra_planner.procurement.bill import (
    COMPUTE,
    NETWORK,
    NPU,
    OPTIC,
    SERVER,
    SWITCH,
    Assumptions,
    Bill,
)

HOUR_S, YEAR_S = 3600.0, 365.25 * 24 * 3600.0
_W_PER_KW = 1000.0
_OVERFLOW = 700.0
"""Exponent beyond which a job never ends."""


def young_interval_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Time between checkpoints to first order: sqrt(2 C M) (Young 1974).

    >>> young_interval_s(60.0, 12_000.0)
    1200.0
    """
    return math.sqrt(2 * checkpoint_s * mtbf_s)


def daly_interval_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Time between checkpoints to higher order (Daly 2006, equation 37).

    sqrt(2 C M) (1 + sqrt(C/2M)/3 + (C/2M)/9) - C for C < 2M, else M; endless without
    failures, and 0 (all the time) for checkpoints that take no time.

    >>> round(daly_interval_s(60.0, 12_000.0), 1), daly_interval_s(60.0, 20.0)
    (1160.3, 20.0)
    >>> daly_interval_s(0.0, 12_000.0)
    0.0
    """
    if math.isinf(mtbf_s) or checkpoint_s >= 2 * mtbf_s:
        return mtbf_s
    ratio = checkpoint_s / (2 * mtbf_s)
    correction = 1 + math.sqrt(ratio) / 3 + ratio / 9
    return young_interval_s(checkpoint_s, mtbf_s) * correction - checkpoint_s


def expected_time_s(
    work_s: float, *, interval_s: float, checkpoint_s: float, restart_s: float, mtbf_s: float
) -> float:
    """Expected time of a job under failures (Daly 2006); infinite for a hopeless one.

    Parameters
    ----------
    work_s : without failures and checkpoints.
    interval_s : of work between two checkpoints; 0 for the limit of ever shorter ones.
    checkpoint_s, restart_s : times of a checkpoint and of a restart.
    mtbf_s : mean time between failures of the whole job; may be infinite.

    Examples
    --------
    >>> times = dict(interval_s=1200.0, checkpoint_s=60.0, restart_s=0.0)
    >>> expected_time_s(12_000.0, mtbf_s=math.inf, **times)
    12600.0
    >>> round(expected_time_s(12_000.0, mtbf_s=12_000.0, **times))
    13285
    >>> free = dict(interval_s=0.0, checkpoint_s=0.0, restart_s=600.0)
    >>> round(expected_time_s(12_000.0, mtbf_s=12_000.0, **free))
    12615
    """
    interval_s = min(interval_s, work_s)
    if not interval_s and checkpoint_s and work_s:
        return math.inf  # Nothing but checkpoints.
    if math.isinf(mtbf_s):
        return work_s * (1 + checkpoint_s / interval_s) if interval_s else work_s
    exponents = (restart_s / mtbf_s, (interval_s + checkpoint_s) / mtbf_s)
    if max(exponents) > _OVERFLOW:
        return math.inf
    restarts = math.exp(exponents[0])
    if not interval_s:
        return restarts * work_s
    return mtbf_s * restarts * math.expm1(exponents[1]) * work_s / interval_s


@dataclass(frozen=True)
class Run:
    """One training run of so many tokens on a design.

    Parameters
    ----------
    n_tokens, n_steps : what is trained.
    work_s : without failures and checkpoints.
    mtbf_s : of the whole job.
    interval_s : work between checkpoints, Daly's; 0 for all the time.
    young_s : the same to first order.
    expected_s : with failures, checkpoints and restarts.
    n_failures : expected.
    npu_hours : NPUs times expected hours.
    energy_kwh, energy_usd : of the facility.
    hardware_usd : share of the hardware's price, by time.
    failures_by_kind : expected failures by kind of part.
    """

    n_tokens: int
    n_steps: int
    work_s: float
    mtbf_s: float
    interval_s: float
    young_s: float
    expected_s: float
    n_failures: float
    npu_hours: float
    energy_kwh: float
    energy_usd: float
    hardware_usd: float
    failures_by_kind: tuple[tuple[str, float], ...]

    @property
    def cost_usd(self) -> float:
        """Hardware and energy."""
        return self.hardware_usd + self.energy_usd

    @property
    def efficiency_fraction(self) -> float:
        """Work over expected time."""
        return self.work_s / self.expected_s if self.expected_s else 0.0


def failure_rates_per_s(bill: Bill, assumed: Assumptions) -> dict[str, float]:
    """Failures per second of all NPUs, servers, and the training fabric's switches and optics.

    Parts of the frontend and storage networks do not stop a job here.
    """
    fabric = bill.of(COMPUTE, NETWORK)
    counts = {kind: fabric.n_units(kind) for kind in (NPU, SERVER, SWITCH, OPTIC)}
    counts[SERVER] *= assumed.server.n_hosts
    return {kind: n * getattr(assumed.failures, f"{kind}_per_s") for kind, n in counts.items()}


def training_run(
    bill: Bill, assumed: Assumptions, *, step_time_s: float, tokens_per_step: int, n_tokens: int
) -> Run:
    """The run of a design.

    Parameters
    ----------
    bill : what fails, what draws power, what is paid for.
    assumed : failure rates, checkpoints, energy, amortisation.
    step_time_s : of a step of ``tokens_per_step`` tokens.
    n_tokens : of the whole run.
    """
    n_steps = -(-n_tokens // tokens_per_step)
    work_s = n_steps * step_time_s
    rates = failure_rates_per_s(bill, assumed)
    rate_per_s = sum(rates.values())
    mtbf_s = 1 / rate_per_s if rate_per_s else math.inf
    checkpoint_s = assumed.checkpoint_s
    interval_s = min(daly_interval_s(checkpoint_s, mtbf_s), work_s)
    times_s = {"checkpoint_s": checkpoint_s, "restart_s": assumed.restart_s, "mtbf_s": mtbf_s}
    expected_s = expected_time_s(work_s, interval_s=interval_s, **times_s)
    hours = expected_s / HOUR_S
    energy_kwh = bill.power_w * assumed.pue * hours / _W_PER_KW
    return Run(
        n_tokens=n_tokens,
        n_steps=n_steps,
        work_s=work_s,
        mtbf_s=mtbf_s,
        interval_s=interval_s,
        young_s=min(young_interval_s(checkpoint_s, mtbf_s), work_s),
        expected_s=expected_s,
        n_failures=expected_s * rate_per_s,
        npu_hours=bill.n_units(NPU) * hours,
        energy_kwh=energy_kwh,
        energy_usd=energy_kwh * assumed.electricity.usd_per_kwh,
        hardware_usd=float(bill.total_usd) * expected_s / assumed.amortisation_s,
        failures_by_kind=tuple((kind, rate * expected_s) for kind, rate in rates.items()),
    )
