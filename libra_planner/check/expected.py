"""What hashing costs a step, from how many flows meet on an uplink: before any flow is routed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from libra_planner.check.links import LinkCheck, link_check
from libra_planner.check.phases import CheckMemo, LinkPhase, Memo, PhaseReport, RoundReport
from libra_planner.check.stages import algorithm_name
from libra_planner.errors import PlannerError
from libra_planner.fabric.clos import Array, Clos, Flows, Indices
from libra_planner.problem import Problem
from libra_planner.routing.entropy import binomial
from libra_planner.routing.policy import Policy

_ECMP = Policy("ecmp")
_PARTS = 10
"""Parts of equally many routings, from those that are lucky to those that are not."""
_ROUTINGS = 10
"""Routings whose mean a check takes."""
_ABOVE = 2.0
"""Standard deviations of that mean: it is further above what is expected in one check of 44."""
_RARE = 1e-7
"""Probability beyond which a busier link is left out."""
_NEGLIGIBLE = 1e-9
"""Part of a flow."""
_MEMO = CheckMemo()
_KNOWN: Memo[Array] = Memo(256)
"""Of phases, which do not depend on the speed of links."""


@dataclass(frozen=True)
class ExpectedStep:
    """The step on its links by ECMP, as its flows and uplinks let expect it.

    Parameters
    ----------
    parts_s : means of ten equal parts of all routings, from the luckiest, shape (10,).
    """

    parts_s: Array = field(repr=False)

    @property
    def mean_s(self) -> float:
        """Of all routings."""
        return float(self.parts_s.mean())

    @property
    def worst_s(self) -> float:
        """Of the tenth of all routings that are the slowest."""
        return float(self.parts_s[-1])

    @property
    def most_s(self) -> float:
        """What the mean of a check's routings hardly ever exceeds."""
        return self.mean_s + _ABOVE * float(self.parts_s.std() / np.sqrt(_ROUTINGS))


def expected_step(problem: Problem, bandwidth_Bps: Array) -> ExpectedStep | None:
    """The step on its links by ECMP, before any flow is routed.

    A hash gives each flow to any uplink of its leaf, each as likely. So the number of flows on a
    link is binomial, and how busy the busiest link of the network is follows from the numbers of
    flows and uplinks alone. A round ends with that link: max-min rates of equal flows see to it.
    All phases of a step are taken to be lucky together.

    Parameters
    ----------
    problem : of a plan.
    bandwidth_Bps : per NPU, byte/s, shape (n_dims,).

    Returns
    -------
    ExpectedStep or None
        None where links cannot be built, or the plan counts already what they lose.

    Examples
    --------
    A leaf of 32 NPUs has 2 rings of experts' gradients, whose ranks are every other NPU there: two
    flows leave it, over 16 uplinks. Each of 16 queue pairs takes too little of an uplink.

    >>> import libra_planner as lp
    >>> experts = {"tp": 1, "pp": 1, "dp": 512, "ep": 16, "etp": 1}
    >>> plan = {"workload": "qwen3-30b-a3b", "fabric.topology": "SW(8)_[SW(32)_SW(2)]"}
    >>> plan |= {"parallelism": experts, "global_batch": 512, "constraints": []}
    >>> for pairs in (1, 16):
    ...     own = plan | {"fabric.realization": {"queue_pairs": pairs}}
    ...     found, vector = lp.load_plan("0e_rails_2to1", own), np.array([450e9, 50e9, 25e9])
    ...     step = expected_step(found, vector)
    ...     times_s = found.step.time.seconds(vector), step.mean_s, step.worst_s
    ...     print(" ".join(f"{one:.3f} s" for one in times_s))
    0.413 s 0.459 s 0.468 s
    0.413 s 0.413 s 0.413 s
    """
    if problem.step.model.is_slowed:
        return None
    try:
        links = link_check(problem, bandwidth_Bps, memo=_MEMO).with_schedule(_ECMP, seeds=[0])
        parts = [_reports(links, links.phase(key)) for key in links.keys]
    except PlannerError:  # Others say why it cannot be built.
        return None
    runs = (dict(zip(links.keys, run, strict=True)) for run in zip(*parts, strict=True))
    return ExpectedStep(np.array([links.step_time_of(run) for run in runs]))


def expected_at(problem: Problem, bandwidth_Bps: Array, placement: str) -> ExpectedStep | None:
    """The same with the servers of the job placed otherwise than the plan says.

    Parameters
    ----------
    problem, bandwidth_Bps : as :func:`expected_step` has them.
    placement : one of :data:`~libra_planner.allowed.PLACEMENTS`.

    Examples
    --------
    Few flows leave a leaf where neighbours of a ring sit next to each other, and most do where
    they sit anywhere: beyond leaves of 8:1 the step is almost twice as long.

    >>> import libra_planner as lp
    >>> plan = lp.load_plan("0e_rails_2to1", "constraints=[]")
    >>> vector = np.array([450e9, 50e9, 6.25e9])
    >>> for placement in ("contiguous", "random"):
    ...     print(f"{expected_at(plan, vector, placement).mean_s:.3f} s")
    3.772 s
    6.892 s
    """
    links = problem.links
    moved = replace(links, traffic=replace(links.traffic, placement=placement))
    return expected_step(replace(problem, realization=moved), bandwidth_Bps)


def expected_with_pairs(links: LinkCheck) -> dict[int, float]:
    """The mean step by ECMP with the queue pairs of a check, and with 1, 2 and 16, in seconds.

    Empty where nothing is expected, or they differ by less than 2 % of the shortest.

    Parameters
    ----------
    links : of a design.

    Examples
    --------
    Two rings of experts' gradients leave a leaf, as :func:`expected_step` has it:

    >>> import libra_planner as lp
    >>> experts = {"tp": 1, "pp": 1, "dp": 512, "ep": 16, "etp": 1}
    >>> plan = {"workload": "qwen3-30b-a3b", "fabric.topology": "SW(8)_[SW(32)_SW(2)]"}
    >>> plan |= {"parallelism": experts, "global_batch": 512, "constraints": []}
    >>> links = link_check(lp.load_plan("0e_rails_2to1", plan), np.array([450e9, 50e9, 25e9]))
    >>> " ".join(f"{n}: {s:.3f} s" for n, s in expected_with_pairs(links).items())
    '1: 0.459 s 2: 0.417 s 16: 0.413 s'
    """
    found = {}
    for n in sorted({1, 2, 16, links.traffic.n_queue_pairs}):
        moved = replace(links.problem.links, traffic=replace(links.traffic, n_queue_pairs=n))
        step = expected_step(replace(links.problem, realization=moved), links.bandwidth_Bps)
        if step is None:
            return {}
        found[n] = step.mean_s
    return found if max(found.values()) >= (1 + _WORTH_A_WORD) * min(found.values()) else {}


_WORTH_A_WORD = 0.02
"""Share of a step that queue pairs decide on, from which a check says so."""


def _reports(links: LinkCheck, phase: LinkPhase) -> list[PhaseReport]:
    """A phase as a hash is expected to slow it, by part; as routed where nothing is hashed."""
    if phase.algorithm is None or not phase.fabric.n_spines:
        return [phase.report(_ECMP, 0, links.memo)] * _PARTS
    who = phase.built.label, phase.group.n_npus, algorithm_name(phase.algorithm)
    bandwidth_Bps = phase.share * phase.built.n_ports * phase.fabric.host_Bps
    none, nothing = float("nan"), np.zeros(0)
    rounds = [
        RoundReport("all", 1.0, 0, float(time_s), none, (), none, none, nothing)
        for time_s in _KNOWN.of(phase.key, lambda: _parts_s(phase))
    ]
    return [PhaseReport(*who, (one,), bandwidth_Bps, phase.share) for one in rounds]


def _parts_s(phase: LinkPhase) -> Array:
    """For how long the rounds of a phase take, by part; those of several rounds add by chance."""
    found = np.array([_busiest_s(phase.unit_fabric, one) for _, _, one in phase.flows(0)])
    mean_s = found.mean(axis=1, keepdims=True)
    apart_s = found - mean_s
    spread_s: Array = np.sqrt((apart_s**2).sum(axis=0)) * np.sign(apart_s.sum(axis=0))
    parts_s: Array = mean_s.sum() + spread_s
    return parts_s


def _busiest_s(fabric: Clos, flows: Flows) -> Array:
    """For how long the busiest link of a round is busy, by part."""
    src, dst, flow_s = flows.src, flows.dst, float(flows.size_bytes[0])
    least_s = flow_s * float(max(np.bincount(src).max(), np.bincount(dst).max())) / fabric.host_Bps
    if flows.src_port[0] >= 0:  # All that two addresses exchange has one header.
        ends = np.stack((flows.src_address, flows.dst_address))
        _, first, n_same = np.unique(ends, axis=1, return_index=True, return_counts=True)
        src, dst, flow_s = src[first], dst[first], flow_s * float(n_same.max())
    leaf, pod = ((at(src), at(dst)) for at in (fabric.leaf_of, fabric.pod_of))
    up = fabric.n_uplinks, flow_s / fabric.uplink_Bps
    hashed = [_Hashed.between(*leaf, *up, is_same=fabric.n_parallel == 1 == fabric.n_pods)]
    if fabric.n_cores:
        up = fabric.n_spines * fabric.n_core_links, flow_s / fabric.core_Bps
        hashed.append(_Hashed.between(*pod, *up, is_same=fabric.core_parallel == 1))
    times_s = np.unique([least_s, *(s for one in hashed for s in one.busy_s() if s > least_s)])
    done = np.exp(sum(one.log_probability(times_s) for one in hashed))
    done[-1] = 1.0
    return _means_of_parts(times_s, done)


def _means_of_parts(values: Array, at_most: Array) -> Array:
    """Means of equally likely parts of a distribution, the least first.

    Parameters
    ----------
    values, at_most : in order, and the probability of at most each, shape (n,).

    Examples
    --------
    >>> _means_of_parts(np.array([1.0, 2.0]), np.array([0.75, 1.0]))
    array([1. , 1. , 1. , 1. , 1. , 1. , 1. , 1.5, 2. , 2. ])
    """
    probability = np.diff(at_most, prepend=0.0)
    ends, sums = (np.concatenate(([0.0], x)) for x in (at_most, np.cumsum(probability * values)))
    found: Array = np.diff(np.interp(np.linspace(0, 1, _PARTS + 1), ends, sums)) * _PARTS
    return found


@dataclass(frozen=True)
class _Hashed:
    """Links that a hash gives flows to, each as likely.

    Parameters
    ----------
    n_flows : of each set of links, shape (n_sets,).
    n_links : of a set.
    flow_s : for how long a flow keeps a link busy.
    """

    n_flows: Indices
    n_links: int
    flow_s: float

    @classmethod
    def between(
        cls, src: Indices, dst: Indices, n_links: int, flow_s: float, *, is_same: bool
    ) -> Self:
        """Of flows from switch to switch, the links up and those down.

        Parameters
        ----------
        src, dst : leaves, or pods, that flows leave and enter, shape (n_flows,).
        n_links, flow_s : of each of these, up and as many down.
        is_same : whether the way up says which link it is down.
        """
        crosses = src != dst
        src, dst = src[crosses], dst[crosses]
        n = int(max(src.max(initial=0), dst.max(initial=0))) + 1
        n_up, n_down = (np.bincount(ends, minlength=n) for ends in (src, dst))
        first, squares = (np.bincount(dst, src.astype(np.float64) ** k, n) for k in (1, 2))
        one = n_down * squares == first**2  # All from one switch, which sends to no other.
        origin = np.where(one & (n_down > 0), first / np.maximum(n_down, 1), 0).astype(np.int64)
        known = is_same & one & (n_up[origin] == n_down)
        every = np.concatenate((n_up, n_down[~known]))
        return cls(every[every > 0], n_links, flow_s)

    def busy_s(self) -> Array:
        """Times that the busiest of all may take, but for what is too rare."""
        if not len(self.n_flows):
            return np.zeros(0)
        n_sets, most = len(self.n_flows), int(self.n_flows.max())
        log = _log_at_most(most, self.n_links)
        least = -(-most // self.n_links)
        n_rare = int(np.searchsorted(log, -_RARE / n_sets / self.n_links))
        times_s: Array = np.arange(least, max(least, n_rare) + 1, dtype=np.float64) * self.flow_s
        return times_s

    def log_probability(self, time_s: Array) -> Array:
        """That all are done by a time, as if each had its flows by itself; logarithm."""
        found = np.zeros(len(time_s))
        n_most = np.floor(time_s / self.flow_s + _NEGLIGIBLE).astype(np.int64)
        for n_flows, n_sets in zip(*np.unique(self.n_flows, return_counts=True), strict=True):
            log = _log_at_most(int(n_flows), self.n_links)
            found += n_sets * self.n_links * log[np.minimum(n_most, len(log) - 1)]
        return found


def _log_at_most(n_flows: int, n_links: int) -> Array:
    """Logarithm of the probability that a link has at most 0, 1, ... of the flows of its set.

    Examples
    --------
    >>> np.exp(_log_at_most(2, 4)) * 16
    array([ 9., 15., 16.])
    """
    chances = binomial(n_flows, n_links)
    more = np.append(np.cumsum(chances[::-1])[-2::-1], 0.0)
    with np.errstate(divide="ignore"):
        found: Array = np.log1p(-np.minimum(more, 1.0))
    return found
