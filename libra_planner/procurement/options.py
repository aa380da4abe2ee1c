"""What a plan with ``prices: bill`` can buy: NICs, tapers and switches of its network (C22)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from libra_planner.costs.bills import BillChoice, FabricOption
from libra_planner.errors import Fault, SpecError, refuse
from libra_planner.fabric.sizing import ceil_ratio
from libra_planner.fabric.topology import SwitchSettings
from libra_planner.problem import Problem, Rule
from libra_planner.units import GBIT_PER_S_BPS

MAX_OPTIONS = 100_000
"""Options that are priced one by one: about two minutes on one core."""

KEY = "fabric.bill_options"
"""Where a plan lists them."""


def option_fault(problem: Problem, got: str, expected: str, fix: str) -> Fault:
    """A fault of what a plan lists, at its place."""
    return Fault(got, expected, fix, KEY, problem.place(KEY))


def fabric_options(problem: Problem) -> Iterator[FabricOption]:
    """Every option of a plan as it is asked for: each of its NICs, with each switch and taper.

    What the plan does not list is as its realization and its rules say.

    Raises
    ------
    SpecError
        For bandwidths that nothing determines, or more options than are priced one by one.
    """
    network = _network(problem)
    choices = (network.nics, network.radices, *map(network.shares, network.dims[1:]))
    n = math.prod(map(len, choices))
    if n > MAX_OPTIONS:
        got = f"got {n:,} options ({' x '.join(str(len(one)) for one in choices)})"
        expected = f"expected at most {MAX_OPTIONS:,}, as each is priced"
        fix = "list fewer NICs, tapers or switches"
        raise SpecError(option_fault(problem, got, expected, fix))
    return itertools.starmap(network.option, itertools.product(*choices))


@dataclass(frozen=True)
class _Share:
    """How much of the tier inside a further tier has: a taper, or a bandwidth that is fixed."""

    taper: float = 0.0
    Bps: float = 0.0

    def of(self, inside_Bps: float) -> float:
        return inside_Bps / self.taper if self.taper else self.Bps


@dataclass(frozen=True)
class _Network:
    """The one network of a plan that is chosen, and what else determines its bandwidths.

    Parameters
    ----------
    choice : what the plan lists.
    dims : of the network, innermost first.
    """

    problem: Problem
    choice: BillChoice
    dims: tuple[int, ...]

    @property
    def settings(self) -> SwitchSettings:
        """As the plan builds it, but for what is chosen."""
        return self.problem.links.switches[self.dims[0]] or SwitchSettings()

    @cached_property
    def fixed_Bps(self) -> Mapping[int, float]:
        """Bandwidths that rules of one dimension fix."""
        return {
            dim: rule.bound / rule.coefficients[dim]
            for rule in self.problem.rules
            if rule.sense == "==" and not rule.cost_factor and rule.tier is None
            for dim in [_only_dim(rule)]
            if dim is not None
        }

    @property
    def nics(self) -> tuple[tuple[int, float], ...]:
        """NICs per NPU and the speed of each; empty where nothing says."""
        speed_Bps, n_nics = self.settings.port_speed_Bps, self.settings.n_nics
        own_Bps = self.fixed_Bps.get(self.dims[0])
        if self.choice.nics or speed_Bps is None or (n_nics is None and own_Bps is None):
            return self.choice.nics
        return ((n_nics or ceil_ratio(own_Bps or 0.0, speed_Bps), speed_Bps),)

    @property
    def radices(self) -> tuple[int, ...]:
        """Ports of a switch."""
        return self.choice.radices or (self.settings.switch_radix,)

    def shares(self, dim: int) -> tuple[_Share, ...]:
        """Of a further tier; empty where nothing says."""
        rules = (rule for rule in self.problem.rules if rule.tier == dim and rule.sense == "==")
        tapers = [-rule.coefficients[dim] for rule in rules]
        if dim in self.choice.tapers or tapers:
            return tuple(_Share(one) for one in self.choice.tapers.get(dim, tapers[:1]))
        return (_Share(Bps=self.fixed_Bps[dim]),) if dim in self.fixed_Bps else ()

    def faults(self) -> Iterator[Fault]:
        """Dimensions whose bandwidth nothing says."""
        topology = self.problem.topology
        labels, tiers = topology.labels, topology.tiers
        for dim in range(topology.n_dims):
            name = tiers[dim] if tiers.count(tiers[dim]) == 1 else labels[dim]
            if dim not in self.dims and dim not in self.fixed_Bps:
                fix = f"write '{name} == 300 GB/s' in constraints, or fabric.scale_up for a part"
            elif dim == self.dims[0] and not self.nics:
                fix = f"write nics: [{self._own_nic}] in fabric.bill_options"
            elif dim in self.dims[1:] and not self.shares(dim):
                fix = f"write tapers: {{{name}: [1, 2]}} in fabric.bill_options"
            else:
                continue
            got = f"got nothing that determines the bandwidth of {labels[dim]} ({tiers[dim]})"
            yield option_fault(self.problem, got, "expected it with prices: bill", fix)

    @property
    def _own_nic(self) -> str:
        """NICs that the plan itself speaks of, as a fix names them."""
        n, dim = self.settings.n_nics or 1, self.dims[0]
        rules = [x for x in self.problem.rules if x.sense in ("<=", "==") and not x.cost_factor]
        most_Bps = [x.bound / x.coefficients[dim] for x in rules if _only_dim(x) == dim]
        speed_Bps = self.settings.port_speed_Bps or min(most_Bps, default=n * 50e9) / n
        return f"{n} x {speed_Bps / GBIT_PER_S_BPS:.12g} Gbps"

    def option(self, nics: tuple[int, float], radix: int, *shares: _Share) -> FabricOption:
        """One option, whose links are as asked for, not yet whole."""
        n_nics, nic_Bps = nics
        asked = {**self.fixed_Bps, self.dims[0]: n_nics * nic_Bps}
        tapers: dict[int, float] = {}
        for dim, share in zip(self.dims[1:], shares, strict=True):
            asked[dim] = share.of(asked[dim - 1])
            tapers[dim] = asked[dim - 1] / asked[dim] if share.Bps else share.taper
        own = replace(self.settings, switch_radix=radix, port_speed_Bps=nic_Bps, n_nics=n_nics)
        links = self.problem.links
        switches = tuple(own if i in self.dims else one for i, one in enumerate(links.switches))
        vector = tuple(asked[dim] for dim in range(self.problem.topology.n_dims))
        realization = replace(links, switches=switches)
        return FabricOption(n_nics, nic_Bps, tapers, radix, vector, realization)


def _only_dim(rule: Rule) -> int | None:
    """The dimension of a rule about one alone."""
    dims = [dim for dim, one in enumerate(rule.coefficients) if one]
    return dims[0] if len(dims) == 1 else None


def _network(problem: Problem) -> _Network:
    """The network of NICs of a plan.

    Raises
    ------
    SpecError
        For none or several, or a bandwidth that nothing determines.
    """
    topology, links = problem.topology, problem.links
    ports = sorted({topology.ports[i] for i, own in enumerate(links.networks) if own})
    if len(ports) != 1 or problem.prices.choice is None:
        named: Sequence[str] = [topology.labels[i] for i in ports]
        got = f"got {' and '.join(named)}, networks with NICs of their own" if ports else "got none"
        fix = "write the tiers of one network in brackets, such as [SW(32)_SW(8)]"
        raise SpecError(option_fault(problem, got, "expected one network with NICs", fix))
    dims = tuple(i for i in range(topology.n_dims) if topology.ports[i] == ports[0])
    found = _Network(problem, problem.prices.choice, dims)
    if found.settings.oversubscription != 1:
        ratio = found.settings.oversubscription
        got = f"got oversubscription {ratio:g} of {topology.labels[dims[0]]}"
        expected = "expected a stack, whose tapers cost time in the model, too"
        fix = "write its tiers in brackets, and tapers in fabric.bill_options"
        raise SpecError(option_fault(problem, got, expected, fix))
    refuse(found.faults())
    return found
