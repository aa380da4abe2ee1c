"""Plans of the same nodes whose switches have fewer free ports, and what their bills save."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from libra_planner.errors import SpecError
from libra_planner.fabric.parts import design_parts
from libra_planner.fabric.realization import realize
from libra_planner.fabric.topology import RAIL, Realization, Topology
from libra_planner.procurement.bill import SWITCH, Bill, Part
from libra_planner.procurement.lines import FabricShop, Purchase, system_bill
from libra_planner.units import gigabytes_per_s

PLAN = "PLAN"
"""What a plan is called that no command line has named."""

_RAIL_ONLY = "rail_only"

LEAST_OF_BILL = Decimal("0.005")
"""Share of a whole bill from which leaves that hold no equal groups are worth a word.

Their step may take longer, so that less money is soon lost again.
"""


@dataclass(frozen=True)
class Refill:
    """A plan of the same nodes and NICs, at the same taper or a better one, of fewer switches.

    Parameters
    ----------
    topology : its fabric: the stack with other groups, or one dimension of all its tiers, whose
        leaves need not hold equal groups.
    asked_Bps : bandwidth of every dimension, byte/s per NPU, as the design has it.
    n_switches : by tier, such as leaf and spine, without spares.
    saved_usd : that its whole bill is less: spares, support, racks and all, before tax.
    oversubscription : of its leaves; ``None`` for a stack, whose bandwidths say it.
    wiring : of its leaves.
    """

    topology: Topology
    asked_Bps: tuple[float, ...]
    n_switches: Mapping[str, int]
    saved_usd: Decimal
    oversubscription: float | None = None
    wiring: str = RAIL

    @property
    def is_stack(self) -> bool:
        """Whether its tiers are in brackets, so that the model knows its taper."""
        return bool(self.topology.stacks)

    @property
    def is_unequal(self) -> bool:
        """Whether it has leaves under spines that need not hold equal groups."""
        return not self.is_stack and len(self.n_switches) > 1

    @property
    def vector(self) -> str:
        """The bandwidths as they stand after ``@``, in GB/s."""
        return ",".join(f"{gigabytes_per_s(x):.12g}" for x in self.asked_Bps)

    @property
    def settings(self) -> tuple[str, ...]:
        """What makes it of the plan, each as ``--set`` takes it."""
        found = [f"fabric.topology={self.topology}"]
        if not self.is_stack:
            found += [f"fabric.tiers=[{', '.join(self.topology.tiers)}]", "constraints=[]"]
            wiring = _RAIL_ONLY if self.wiring == RAIL else self.wiring
            found.append(f"fabric.realization.wiring={wiring}")
        if self.oversubscription is not None:
            found.append(f"fabric.realization.oversubscription={self.oversubscription:.12g}")
        return tuple(found)

    @property
    def options(self) -> str:
        """The same as text for a command line."""
        return " ".join(f'--set "{one}"' for one in self.settings)

    def words(self, plan: str = PLAN) -> str:
        """The design and its options, as a report takes them.

        Parameters
        ----------
        plan : its path or name, as a command takes it.
        """
        return f"{shlex.quote(f'{plan}@{self.vector}')} {self.options}"

    def short(self, plan: str = PLAN) -> str:
        """The same, of one dimension by what differs only."""
        if self.is_stack:
            return self.words(plan)
        leaves = self.oversubscription
        return f"{self.topology}" + (f" with oversubscription: {leaves:.12g}" if leaves else "")


def best_refill(
    bought: Purchase, shop: FabricShop, npu: Part | None, taper: float | None, least_usd: Decimal
) -> Refill | None:
    """The plan that saves most, at least so much; ``None`` where no plan does.

    A stack is taken unless one dimension of all tiers saves so much more, as the model knows only
    the taper of stacks. That has to save a two-hundredth of the whole bill, too.

    Parameters
    ----------
    bought : the design, whose network is one stack.
    shop, npu : where it is bought; ``None`` for the NPU of the catalogue.
    taper : of leaves that need not hold equal groups; ``None`` where a plan cannot have such.
    least_usd : that a plan has to save to be worth a word.
    """
    own = system_bill(bought, shop, npu)[0]
    if own.missing:
        return None
    found = [*_stacks(bought, shop, npu, own)]
    best = max(found, key=lambda x: x.saved_usd, default=None)
    flat = _one_dimension(bought, shop, npu, own, taper) if taper is not None else None
    if flat is not None and flat.is_unequal and flat.saved_usd < LEAST_OF_BILL * own.total_usd:
        flat = None
    if flat is not None and (best is None or flat.saved_usd >= best.saved_usd + least_usd):
        best = flat
    return best if best is not None and best.saved_usd >= least_usd else None


def _stacks(bought: Purchase, shop: FabricShop, npu: Part | None, own: Bill) -> Iterator[Refill]:
    """The same NPUs with other equal groups on the leaves.

    Bandwidths asked for are the same, so are the tapers that whole links have at most.
    """
    design, [tiers] = bought.design, bought.design.topology.stacks
    sizes, asked_Bps = design.topology.sizes, [one.asked_Bps for one in design.dimensions]
    n_inside = sizes[tiers[0]] * sizes[tiers[1]]
    for n in (n for n in range(2, n_inside // 2 + 1) if n_inside % n == 0 and n != sizes[tiers[0]]):
        other = dict(zip(tiers, (n, n_inside // n), strict=False))
        dimensions = tuple(
            replace(one, size=other.get(i, one.size))
            for i, one in enumerate(design.topology.dimensions)
        )
        topology = replace(design.topology, dimensions=dimensions)
        found = _refill(bought, topology, asked_Bps, design.realization, (shop, npu, own))
        if found is not None:
            yield found


def _one_dimension(
    bought: Purchase, shop: FabricShop, npu: Part | None, own: Bill, taper: float
) -> Refill | None:
    """All tiers of the stack as one dimension, whose leaves and spines are the fewest."""
    design, [tiers] = bought.design, bought.design.topology.stacks
    if len(tiers) != 2:
        return None
    inner, outer = tiers
    all_of_it = replace(
        design.topology.dimensions[inner],
        size=design.topology.sizes[inner] * design.topology.sizes[outer],
    )
    dimensions = (*design.topology.dimensions[:inner], all_of_it)
    settings = design.realization.switches[inner]
    if settings is None or outer != design.topology.n_dims - 1:
        return None
    switches = (
        *design.realization.switches[:inner],
        replace(settings, oversubscription=taper),
    )
    links = replace(design.realization, switches=switches)
    topology = replace(design.topology, dimensions=dimensions)
    asked_Bps = [one.asked_Bps for one in design.dimensions[:outer]]
    found = _refill(bought, topology, asked_Bps, links, (shop, npu, own))
    if found is None:
        return None
    has_spines = len(found.n_switches) > 1
    return replace(found, oversubscription=taper if has_spines else None, wiring=settings.wiring)


def _refill(
    bought: Purchase,
    topology: Topology,
    asked_Bps: Sequence[float],
    links: Realization,
    priced: tuple[FabricShop, Part | None, Bill],
) -> Refill | None:
    """A fabric with its bill beside that of the design; ``None`` where it cannot be bought."""
    shop, npu, own = priced
    try:
        built = realize(topology, asked_Bps, links)
        networks = bought.scale_out[: topology.n_dims]
        other = replace(
            bought, design=built, parts=design_parts(built).dimensions, scale_out=networks
        )
        found = system_bill(other, shop, npu)[0]
    except SpecError:
        return None
    if found.missing:
        return None
    saved_usd = own.total_usd - found.total_usd
    return Refill(topology, tuple(asked_Bps), _n_switches(other, found), saved_usd)


_MANY = {"leaf": "leaves"}


def tiers_text(n_switches: Mapping[str, int]) -> str:
    """How many switches of each tier, in words.

    >>> tiers_text({"leaf": 56, "spine": 19}), tiers_text({"leaf": 1})
    ('56 leaves and 19 spines', '1 leaf')
    """
    parts = [
        f"{n:,} {tier if n == 1 else _MANY.get(tier, f'{tier}s')}" for tier, n in n_switches.items()
    ]
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def _n_switches(bought: Purchase, found: Bill) -> dict[str, int]:
    """Switches of the training network by tier, without spares."""
    labels = {
        one.label
        for one, own in zip(bought.design.dimensions, bought.scale_out, strict=True)
        if own
    }
    counts: dict[str, int] = {}
    for line in found.lines:
        if line.dimension in labels and line.part.kind == SWITCH:
            tier = line.tier.rpartition(", ")[2]
            counts[tier] = counts.get(tier, 0) + line.n_units
    return counts
