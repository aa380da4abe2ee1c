"""Whether a design of any bandwidths can be bought: what whole ports carry, and what they cost."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from libra_planner.costs.prices import has_nic
from libra_planner.errors import SpecError
from libra_planner.evaluation import Evaluation, violations_as_built
from libra_planner.problem import Problem
from libra_planner.procurement.bill import NETWORK, Bill, gigabits_text
from libra_planner.step.expression import Array
from libra_planner.units import format_bandwidth, format_usd, gigabytes_per_s
from libra_planner.views.bought.built import built

_MORE = 1.05
"""Bandwidth over what is asked for, up to which nothing is said."""
_TOLD = ("nic", "switch")
"""Kinds of parts that are named where nobody sells them."""
_NEAR_FRACTION = 0.05
"""Difference of two prices of a network up to which one of them is enough."""


@dataclass(frozen=True)
class WholePorts:
    """What a design of any bandwidths is from whole ports.

    Parameters
    ----------
    built_Bps : what its ports carry per NPU, shape (n_dims,); ``None`` where nothing can be built.
    network : the bill of its training network; ``None`` where there is none.
    fault : why it cannot be built; empty where it can.
    unknown : which part of the plan the bundled catalogue does not know; empty for none.
    """

    built_Bps: Array | None = None
    network: Bill | None = None
    fault: str = ""
    unknown: str = ""

    @property
    def network_usd(self) -> float | None:
        """What its network costs; ``None`` where a part has no price."""
        if self.network is None or self.network.missing:
            return None
        return float(self.network.total_usd)


def whole_ports(
    problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]
) -> WholePorts | None:
    """A design from whole ports; ``None`` where the plan does not say how it is built.

    ``None`` also under ``prices: bill``, whose options are all whole ports (C22).

    Parameters
    ----------
    problem : from a plan.
    bandwidth_bytes_per_s : per NPU, shape (n_dims,).

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan("0e_rails_2to1")
    >>> (whole_ports(plan, [450e9, 40e9, 20e9]).built_Bps / 1e9).tolist()
    [450.0, 50.0, 20.3125]
    >>> whole_ports(plan, [450e9, 500e9, 250e9]).fault.split(",")[0]
    'fabric.realization (dim2): got a leaf of 32 positions with 160 links to NPUs and 80 up'
    """
    is_built = problem.realization is not None or problem.topology.stacks
    if not is_built or problem.prices.bills is not None:
        return None
    return _built(problem, tuple(map(float, bandwidth_bytes_per_s)))


@lru_cache(maxsize=64)
def _built(problem: Problem, bandwidth_bytes_per_s: tuple[float, ...]) -> WholePorts:
    """The same, found once: headline, verdict, notes and JSON ask for it."""
    try:
        bills, bought = built(problem, bandwidth_bytes_per_s)
    except SpecError as error:
        return WholePorts(fault="; ".join(str(replace(x, place=None)) for x in error.faults))
    try:
        network = bills.bill(problem, bought, None).of(NETWORK)
    except SpecError as error:  # Such as networks of the cluster that do not fit.
        named = [str(replace(x, place=None)) for x in error.faults if x.path == PARTS_KEY]
        return WholePorts(bought.design.bandwidth_Bps, unknown="; ".join(named))
    return WholePorts(bought.design.bandwidth_Bps, network)


PARTS_KEY = "fabric.realization.parts"
"""The key of parts that a plan names."""


def network_bill_usd(problem: Problem, evaluation: Evaluation) -> float | None:
    """What the network of a design costs from whole parts; ``None`` where that is not known.

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan("0e_rails_2to1")
    >>> found = plan.evaluate(bandwidth_GBps=[450, 50, 25])
    >>> found.network_cost_usd, network_bill_usd(plan, found)
    (11939840.0, 13388058.0)
    """
    if problem.prices.bills is not None:
        return evaluation.network_cost_usd
    whole = whole_ports(problem, evaluation.bandwidth_bytes_per_s)
    return None if whole is None else whole.network_usd


def spare_notes(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """That the cost of whole parts has spares for other networks, where its digits show it.

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan("0e_rails_2to1")  # $13.39M with the $1.97k, and without.
    >>> list(spare_notes(plan, plan.evaluate(bandwidth_GBps=[450, 50, 25])))
    []
    """
    bill_usd = far_bill_usd(problem, evaluation)
    whole = whole_ports(problem, evaluation.bandwidth_bytes_per_s) if bill_usd else None
    shared_usd = float(whole.network.shared_spares_usd) if whole and whole.network else 0.0
    if bill_usd and format_usd(bill_usd) != format_usd(bill_usd - shared_usd):
        where = "are shared with" if shared_usd > 0 else "stand at"
        yield (
            f"whole parts: {format_usd(abs(shared_usd))} of their spares {where} the "
            f"frontend and storage networks, as in a report; 'fabric' prices this network alone"
        )


def far_bill_usd(problem: Problem, evaluation: Evaluation) -> float | None:
    """That cost where it is far from what linear prices say; ``None`` where these will do."""
    bill_usd, linear_usd = network_bill_usd(problem, evaluation), evaluation.network_cost_usd
    if bill_usd is None or problem.purchasable:
        return None
    return bill_usd if abs(bill_usd - linear_usd) > _NEAR_FRACTION * linear_usd else None


class AsBought(NamedTuple):
    """``performance_per_cost`` of whole ports, at the money of their parts."""

    step_time_s: float
    cost_usd: float

    @property
    def objective(self) -> float:
        """Step time x cost, USD s."""
        return self.step_time_s * self.cost_usd


def as_bought(problem: Problem, evaluation: Evaluation) -> AsBought | None:
    """The product that linear prices only estimate; ``None`` where it is not known, or not meant.

    Speeds of NICs compare by it: a linear price has every GB/s cost the same, and parts do not.
    The step time is that of the ports which are bought; the fixed cost is the plan's.

    Parameters
    ----------
    problem, evaluation : a design of any bandwidths, under ``performance_per_cost``.

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan("0e_rails_2to1", ["objective=performance_per_cost"])
    >>> found = plan.evaluate(bandwidth_GBps=[450, 50, 25])
    >>> round(found.cost_usd), round(as_bought(plan, found).cost_usd)
    (80547840, 81996058)
    """
    bandwidth_Bps = evaluation.bandwidth_bytes_per_s
    is_meant = problem.objective == "performance_per_cost" and problem.group_objective == "weighted"
    whole = whole_ports(problem, bandwidth_Bps) if is_meant and not problem.purchasable else None
    if whole is None or whole.built_Bps is None or whole.network_usd is None:
        return None
    seconds = float(problem.step_time.seconds(whole.built_Bps))
    return AsBought(seconds, whole.network_usd + evaluation.fixed_cost_usd)


def sold_words(problem: Problem, bandwidth_bytes_per_s: Array) -> str:
    """What to say beside a verdict: that a design cannot be built, or is not sold so."""
    whole = whole_ports(problem, bandwidth_bytes_per_s)
    if whole is not None and whole.fault:
        return "; [red]it cannot be built[/]: see the note"
    is_more = whole is not None and any(_more_notes(problem, bandwidth_bytes_per_s, whole))
    return "; its ports are not sold so: see the note" * is_more


def port_notes(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> Iterator[str]:
    """Why a design cannot be built, or what whole ports carry beyond it, cost and break.

    Nothing of a design that is bought as it is.

    Parameters
    ----------
    problem : from a plan; of one that does not say how it is built only its speeds are judged.
    bandwidth_bytes_per_s : per NPU, shape (n_dims,).

    Examples
    --------
    >>> import libra_planner as lp
    >>> plan = lp.load_plan("0e_rails_2to1")
    >>> list(port_notes(plan, [450e9, 50e9, 25e9]))
    []
    >>> [note.split(":")[0] for note in port_notes(plan, [450e9, 40e9, 20e9])]
    ['dim2 asks 40.00 GB/s of whole ports that have 50.00 GB/s']
    >>> [note.split(":")[0] for note in port_notes(plan, [450e9, 500e9, 250e9])]
    ['It cannot be built', 'dim2 has 500.00 GB/s, more than nvlink4-8 inside it has (450.00 GB/s)']
    """
    asked_Bps = np.asarray(bandwidth_bytes_per_s)
    whole = whole_ports(problem, asked_Bps)
    if whole is not None and whole.fault:
        yield f"It cannot be built: {whole.fault}"
    if whole is not None and whole.unknown:
        yield f"Whole parts have no price here: {whole.unknown}"
    yield from _fast_notes(problem, asked_Bps)
    yield from unsold_notes(problem, asked_Bps)
    if whole is not None:
        yield from _more_notes(problem, asked_Bps, whole)


def unsold_notes(problem: Problem, bandwidth_bytes_per_s: Array | Sequence[float]) -> Iterator[str]:
    """Parts of a network that nobody sells, such as NICs of a speed that the catalogue has not.

    Examples
    --------
    >>> import libra_planner as lp
    >>> port = "fabric.realization={port_speed: 3000 Gbps, wiring: rail_only}"
    >>> for note in unsold_notes(lp.load_plan("0e_rails_2to1", [port]), [450e9, 375e9, 375e9]):
    ...     print(note)
    the parts catalogue sells no nic at 3000 Gbit/s and no switch of 64 ports at 3000 Gbit/s: a ...
    """
    yield from _bits_notes(problem, np.asarray(bandwidth_bytes_per_s))
    whole = whole_ports(problem, bandwidth_bytes_per_s)
    missing = whole.network.missing if whole is not None and whole.network is not None else ()
    if names := [f"no {one.name}" for one in missing if one.kind in _TOLD]:
        listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        yield f"the parts catalogue sells {listed}: a report of this plan refuses them"


def _bits_notes(problem: Problem, asked_Bps: Array) -> Iterator[str]:
    """A NIC that nobody sells, of as many GB/s as one has Gbit/s, or the reverse: which is it?"""
    inside = problem.scale_up.dims(problem.topology) if problem.scale_up else ()
    nics = [i for i, nic in enumerate(has_nic(problem.topology, problem.prices.parts)) if nic]
    dim = next((i for i in nics if i not in inside), None)
    if dim is None:
        return
    whole = whole_ports(problem, asked_Bps)
    is_bought = (
        whole is None or whole.built_Bps is None or whole.built_Bps[dim] < 1.5 * asked_Bps[dim]
    )
    if asked_Bps[dim] < min(_nic_speeds_Bps()) and is_bought:
        return  # Such as NPUs that share a NIC.
    for words in bits_words(float(asked_Bps[dim]), " per NPU"):
        yield f"{problem.topology.labels[dim]}: {words}"


def bits_words(asked_Bps: float, of: str = "", written: str = "") -> Iterator[str]:
    """That a speed is none that NICs have, but that of one in Gbit/s; mostly nothing.

    Parameters
    ----------
    asked_Bps : of a NIC, byte/s.
    of : whose it is.
    written : by its user, if that is known: who wrote bits did not mean them as bytes.

    Examples
    --------
    >>> for asked_Bps in (50e9, 6.25e9, 400e9):
    ...     print(*bits_words(asked_Bps))
    <BLANKLINE>
    6.25 GB/s are 50 Gbit/s, and no NIC of the parts catalogue has that; for NICs of 400 Gbit/s \
write 50 GB/s
    400.00 GB/s are 3200 Gbit/s, and the fastest NIC of the parts catalogue has 800 Gbit/s; for \
NICs of 400 Gbit/s write 50 GB/s
    """
    speeds_Bps = _nic_speeds_Bps()
    if any(math.isclose(one, asked_Bps, rel_tol=1e-9) for one in speeds_Bps):
        return
    own = f"{format_bandwidth(asked_Bps)} are {gigabits_text(asked_Bps)}{of}, and"
    meant = next((x for x in speeds_Bps if math.isclose(x, 8 * asked_Bps, rel_tol=1e-9)), None)
    if meant is not None and not written:
        fix = f"for NICs of {gigabits_text(meant)} write {gigabytes_per_s(meant):g} GB/s"
        yield f"{own} no NIC of the parts catalogue has that; {fix}"
    meant = next((x for x in speeds_Bps if math.isclose(8 * x, asked_Bps, rel_tol=1e-9)), None)
    if meant is not None and asked_Bps > max(speeds_Bps) * _MORE:
        fix = f"; for NICs of {gigabits_text(meant)} write {gigabytes_per_s(meant):g} GB/s"
        yield (
            f"{own} the fastest NIC of the parts catalogue has {gigabits_text(max(speeds_Bps))}"
            f"{fix * (_IN_BITS.search(written) is None)}"
        )


_IN_BITS = re.compile(r"(b|bit)(ps|/s)\s*$")
"""How a speed ends that is written in bits; a byte is a large B, or spelt."""


@lru_cache(maxsize=1)
def _nic_speeds_Bps() -> tuple[float, ...]:
    """Of all NICs of the bundled catalogue."""
    from libra_planner.inputs.parts import load_parts

    return tuple(part.port_speed_Bps for part in load_parts().parts.of_kind("nic"))


def _fast_notes(problem: Problem, asked_Bps: Array) -> Iterator[str]:
    """A network that is faster than the scale-up domain inside it: no server has such NICs."""
    domain = problem.scale_up
    if domain is None:
        return
    inside, names = domain.dims(problem.topology), problem.topology.labels
    own_Bps = float(sum(asked_Bps[dim] for dim in inside))
    for dim in range(len(inside), problem.topology.n_dims):
        if asked_Bps[dim] > own_Bps:
            yield (
                f"{names[dim]} has {format_bandwidth(asked_Bps[dim])}, more than {domain.name} "
                f"inside it has ({format_bandwidth(own_Bps)}): is that meant?"
            )
            return


def _more_notes(problem: Problem, asked_Bps: Array, whole: WholePorts) -> Iterator[str]:
    """What is bought beyond what is asked for; nothing of speeds that are sold."""
    built_Bps = whole.built_Bps
    if built_Bps is None or problem.purchasable:
        return
    if whole.network is not None and (text := whole.network.faster_text):
        yield f"{text}. Give a port_speed that is sold"
    if more := [int(dim) for dim in np.flatnonzero(built_Bps > asked_Bps * _MORE)]:
        price = _price_text(float(problem.network_cost_usd(asked_Bps)), whole.network_usd)
        yield _more_text(problem, asked_Bps, built_Bps, more, price)


def _more_text(
    problem: Problem, asked_Bps: Array, built_Bps: Array, more: Sequence[int], price: str
) -> str:
    """Which dimensions have more bandwidth than is asked for, and how to optimize that."""
    names = problem.topology.labels
    asked = " and ".join(
        f"{names[dim]} asks {format_bandwidth(asked_Bps[dim])} of whole ports that have "
        f"{format_bandwidth(built_Bps[dim])}"
        for dim in more
    )
    broken = dict.fromkeys(x.rule for x in violations_as_built(problem, asked_Bps, built_Bps))
    breaks = f", which break {' and '.join(broken)}" if broken else ""
    tier = problem.topology.tiers[more[0]] or names[more[0]]
    fix = f"{tier} == {gigabytes_per_s(built_Bps[more[0]]):.9g} GB/s"
    return (
        f"{asked}{breaks}{price}. To optimize what is bought write prices: bill, or the rule {fix}"
    )


def _price_text(linear_usd: float, network_usd: float | None) -> str:
    if network_usd is None or not linear_usd:
        return ""
    return f": the network costs about {format_usd(network_usd)}, not {format_usd(linear_usd)}"
