"""A first plan from a few answers: a whole step of a model on rails, with comments."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from libra_planner.errors import Fault, SpecError
from libra_planner.fabric.cluster import RAIL_ONLY
from libra_planner.fabric.scale_up import MESH, TORUS, ScaleUpDomain
from libra_planner.fabric.topology import TOP_OF_RACK
from libra_planner.inputs.first.groups import near_count
from libra_planner.inputs.first.nics import SOLD_GBPS, sold_Bps, unsold_words
from libra_planner.inputs.first.wiring import MOST_GROUPS, RADIX, USUAL, Wiring, wired
from libra_planner.inputs.plans import OpenedPlan
from libra_planner.inputs.training.clusters import NODES_PER_LEAF, nics_of, nodes_per_leaf
from libra_planner.plain_text import visible
from libra_planner.plan.npus import canonical_name, catalogue, catalogue_npu, scale_up_domain
from libra_planner.plan.options import nic_bytes_per_s
from libra_planner.plan.scale_up import experts_notes, trained_models
from libra_planner.procurement.bought.refills import Refill
from libra_planner.procurement.cluster import FreePorts, free_ports
from libra_planner.procurement.lines import FabricShop, Purchase, purchase
from libra_planner.procurement.rails import cheaper_networks
from libra_planner.quantities import taper_digits
from libra_planner.reading import bundled
from libra_planner.reading.document import parse_document
from libra_planner.step.collectives.measured import measured_npu
from libra_planner.step.expression import Array
from libra_planner.units import BYTES_PER_S_PER_GBPS, GBIT_PER_S_BPS, format_usd

_DTYPE = "bf16"
PRICES = "clos-2026"
"""Price book of a first plan."""
_FEWEST_PER_LEAF = NODES_PER_LEAF // 2
_SEQUENCES = (512, 2048)
"""Between which the sequences of a step lie, where nobody says and the NPUs allow it."""
_OF_EXPERTS = (8192, 16384)
"""The same of models with experts: assumed, about the 15,360 of DeepSeek-V3."""
_COMMENTS_AT = 44
OPEN = "open"
"""Taper that ``optimize`` chooses, by performance per cost."""
_MOST_ASKED = float(_FEWEST_PER_LEAF)
"""Largest taper of a first plan: a leaf of the fewest nodes then has one link up for each rail."""
_MOST_CHOSEN = 8.0
"""Largest taper that it chooses from."""
_PLAIN = re.compile(r"[A-Za-z./_][\w./-]*")


def npu_choice(name: str) -> str:
    """The catalogue's name of an NPU that a plan of a whole step can be written for.

    Raises
    ------
    SpecError
        For an NPU without a scale-up domain of a server, or without a bf16 rate.

    Examples
    --------
    >>> npu_choice("H100-80GB")
    'h100-sxm'
    """
    known = canonical_name(name, None, None)
    npu = catalogue_npu(known, None, None, path="")
    why = ""
    if not npu.scale_up:
        why = "which comes in no scale-up domain"
    elif _domain(known).joined_by == TORUS:
        why = "whose scale-up domain is a torus: it has no NICs of its own"
    elif _DTYPE not in npu.peak_TFLOPps:
        why = f"which computes no {_DTYPE}"
    if not why:
        return known
    fix = f"write one of {', '.join(npu_choices())}"
    raise SpecError(Fault(f"got {known}, {why}", "", fix))


def npu_choices() -> list[str]:
    """NPUs that :func:`npu_choice` takes."""
    return [
        name
        for name, npu in catalogue().npus.items()
        if npu.scale_up and _DTYPE in npu.peak_TFLOPps and _domain(name).joined_by != TORUS
    ]


def _domain(npu: str) -> ScaleUpDomain:
    return scale_up_domain(catalogue().npus[npu].scale_up[0])


def check_npus(npu: str, n_npus: int) -> None:
    """Refuse a number of NPUs that full domains and equal leaves do not share.

    Raises
    ------
    SpecError
        With the nearest numbers that they do.

    Examples
    --------
    >>> check_npus("h100-sxm", 2048)
    """
    size = _domain(npu).n_npus
    if _are_shared(n_npus, size):
        return
    got, most = f"got {n_npus:,} NPUs", size * NODES_PER_LEAF * MOST_GROUPS
    if n_npus > most:
        fix = f"write at most {most:,}, or start from the plan 09_pod_16384, which has cores"
        raise SpecError(Fault(got, "expected what leaves and spines join", fix))
    nodes = max(1, n_npus // size)
    below = next((n for n in range(nodes, 1, -1) if _are_shared(n * size, size)), None)
    above = next(n for n in range(max(2, nodes + 1), 2 * nodes + 4) if _are_shared(n * size, size))
    near = " or ".join(f"{n * size:,}" for n in (below, above) if n)
    part = _domain(npu).name
    expected = f"expected two or more full domains ({part}: {size} NPUs) on equally full leaves"
    fix = f"write {near}"
    if n_npus % size == 0 and nodes > 1:
        nic = f"--nic {nics_of(npu).Bps / GBIT_PER_S_BPS:g}Gbps"
        hosts = f"--hosts {nodes} --npus-per-host {size} {nic}"
        fix += f", or price leaves that are not equal: libra-planner fabric {hosts}"
    raise SpecError(Fault(got, expected, fix))


def _are_shared(n_npus: int, size: int) -> bool:
    n_nodes, rest = divmod(n_npus, size)
    if rest or n_nodes < 2:
        return False
    leaf = nodes_per_leaf(n_nodes)
    return leaf == n_nodes or (leaf >= _FEWEST_PER_LEAF and n_nodes // leaf <= MOST_GROUPS)


def nic_Bps(npu: str, text: str) -> float:
    """Speed of a NIC, byte/s, one direction.

    Raises
    ------
    SpecError
        For what is no speed, slower than any NIC, faster than those sold, or as fast as the NPU's
        scale-up domain.

    Examples
    --------
    >>> nic_Bps("h100-sxm", "400Gbps") / 1e9
    50.0
    """
    speed_Bps, domain = nic_bytes_per_s(text), _domain(npu)
    if speed_Bps < domain.npu_Bps:
        return sold_Bps(text, speed_Bps)
    most = f"{domain.npu_Bps / GBIT_PER_S_BPS:g} Gbit/s of {domain.name}"
    raise SpecError(Fault(f"got {text}", f"expected less than the {most}", "write e.g. 400Gbps"))


def taper_of(text: str) -> float | None:
    """A taper, such as 2 or 2:1; ``None`` for one that the optimizer chooses.

    Raises
    ------
    SpecError
        For what is none.

    Examples
    --------
    >>> taper_of("2:1"), taper_of("1.5"), taper_of("open")
    (2.0, 1.5, None)
    """
    if text.strip() == OPEN:
        return None
    try:
        taper = float(taper_digits(text))
    except ValueError:
        taper = 0.0
    if not 1 <= taper <= _MOST_ASKED:
        why = (
            f"beyond {_MOST_ASKED:g}:1 a leaf of {_FEWEST_PER_LEAF} nodes has less than one link up"
        )
        within = f"expected a taper from 1 to {_MOST_ASKED:g}: links down over links up"
        expected = f"{within}; {why}" if taper > _MOST_ASKED else within
        fix = f"write 2 for 2:1, or {OPEN} to let optimize choose"
        raise SpecError(Fault(f"got {text!r}", expected, fix))
    return taper


@dataclass(frozen=True)
class FirstPlan:
    """What a first plan is about.

    Parameters
    ----------
    model : bundled workload, or a path relative to the plan.
    npu : of the catalogue, one that :func:`npu_choice` takes.
    n_npus : in all, as :func:`check_npus` allows.
    nic_Bps : of the one NIC of an NPU, byte/s, one direction.
    taper : bandwidth of a leaf's links down over that of its links up (C13); ``None`` for one that
        the optimizer chooses.
    global_batch : sequences of a step; by default a number that degrees of the NPUs divide.
    quotes : file of quotes that is written beside it; empty for none.
    asked_taper : where whole links make another ``taper`` of it; else ``None``.
    has_experts : whether the model has them.
    experts_words : what the domain's size rules out of the model's experts; empty for nothing.
    n_per_group : nodes that share the leaves, where not the usual number fills these at least cost.
    group_words : what these save; empty for the usual number.
    near_words : which number of nodes close by would cost less; empty for none.
    wiring_words : what another wiring of the rails, and other switches, would save.
    has_zero_1 : whether a strategy of ZeRO 1 fits an NPU's memory.
    asked_wiring : of the NICs, one of :data:`~libra_planner.inputs.first.wiring.WIRING_ANSWERS`.

    Examples
    --------
    >>> plan = FirstPlan("llama3-70b", "h100-sxm", 2048, 50e9, 2.0)
    >>> plan.topology, plan.rules
    ('SW(8)_[SW(32)_SW(8)]', ('leaf == 50 GB/s', 'taper(spine) == 2'))
    """

    model: str
    npu: str
    n_npus: int
    nic_Bps: float
    taper: float | None = 1.0
    global_batch: int | None = None
    quotes: str = ""
    asked_taper: float | None = None
    has_experts: bool = False
    experts_words: str = ""
    n_per_group: int | None = None
    group_words: str = ""
    near_words: str = ""
    wiring_words: tuple[str, ...] = ()
    has_zero_1: bool = False
    asked_wiring: str = USUAL

    @property
    def domain(self) -> ScaleUpDomain:
        """Scale-up domain of the NPU: a node."""
        return _domain(self.npu)

    @property
    def has_measured_collectives(self) -> bool:
        """Whether collectives of the NPU were measured, on a switch (C20)."""
        try:
            measured_npu(self.npu)
        except SpecError:
            return False
        return self.domain.joined_by != MESH

    @property
    def n_nodes(self) -> int:
        """Domains."""
        return self.n_npus // self.domain.n_npus

    @property
    def n_groups(self) -> int:
        """Groups of nodes that share leaves; without spines one."""
        return self.wiring.n_groups

    @property
    def wiring(self) -> Wiring:
        """How its NICs are wired.

        Spines that do not join the rails are not needed where a switch has a port for every node.
        """
        nodes = self.n_nodes, self.domain.n_npus
        taper = self.asked_taper or self.taper
        return wired(self.asked_wiring, *nodes, taper, self.n_per_group)

    @property
    def topology(self) -> str:
        """Notation of the fabric."""
        size, n_groups = self.domain.n_npus, self.n_groups
        node = f"{'FC' if self.domain.joined_by == MESH else 'SW'}({size})"
        leaf = f"SW({self.n_nodes // n_groups})"
        return f"{node}_{leaf}" if n_groups == 1 else f"{node}_[{leaf}_SW({n_groups})]"

    @property
    def rules(self) -> tuple[str, ...]:
        """Rules that fix the network at the NIC and the taper."""
        leaf = f"leaf == {self.nic_Bps / BYTES_PER_S_PER_GBPS:.12g} GB/s"
        if self.n_groups == 1:
            return (leaf,)
        if self.taper is None:
            return leaf, "taper(spine) >= 1", f"taper(spine) <= {_MOST_CHOSEN:g}"
        if self.asked_taper is not None and float(f"{self.taper:.4g}") != self.taper:
            spine_GBps = self.nic_Bps / self.taper / BYTES_PER_S_PER_GBPS
            return leaf, f"spine == {spine_GBps:.12g} GB/s"
        return leaf, f"taper(spine) == {self.taper:.12g}"

    @property
    def is_open(self) -> bool:
        """Whether there is a taper to choose."""
        return self.taper is None and self.n_groups > 1

    @property
    def n_sequences(self) -> int:
        """Sequences of a step."""
        if self.global_batch is not None:
            return self.global_batch
        n, (least, most) = self.n_npus, _OF_EXPERTS if self.has_experts else _SEQUENCES
        while n > most and n % 2 == 0:
            n //= 2
        while n < least:
            n *= 2
        return n

    @property
    def _sold_Gbps(self) -> tuple[int, ...]:
        """The NIC, and the next slower one, of those that are sold."""
        most = self.nic_Bps / GBIT_PER_S_BPS
        return tuple(speed for speed in SOLD_GBPS if speed <= most)[-2:]

    @property
    def unsold_words(self) -> str:
        """That nobody sells its NIC, which ones are sold, and what follows; else empty."""
        return unsold_words(self.nic_Bps)

    @property
    def _port_speed(self) -> str:
        return f"{self.nic_Bps / GBIT_PER_S_BPS:.12g} Gbps"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth a word of its NIC, its experts and its number of nodes."""
        words = (self.unsold_words, self.experts_words, self.group_words, self.near_words)
        return tuple(filter(None, (*words, *self.wiring_words)))

    def text(self, name: str) -> str:
        """The plan as a YAML file of a name."""
        return "".join(f"{line}\n" for line in [*self._head(name), *self._body()])

    def _head(self, name: str) -> Iterator[str]:
        name, model = visible(shlex.quote(name)), visible(self.model)
        nodes = f"{self.n_nodes:,} nodes of {self.domain.n_npus}"
        taper = "a taper to choose" if self.taper is None else f"{self.taper:.4g}:1"
        spines = "" if self.n_groups == 1 else f", {taper} at the spines"
        network = f"a NIC of {self._port_speed} per NPU{spines}"
        yield f"# {model} on {self.n_npus:,} {self.npu}: {nodes}, {network}"
        for command, what in (
            (f"optimize {name}", "the fastest strategy on this network, proven"),
            (f"check {name}", "switches and cables; what ECMP makes of the step time"),
            (f"report {name} -o report", "the bill"),
        ):
            yield f"#   libra-planner {command:<28} {what}"
        for words in self.notes:
            yield f"# {words}"

    def _body(self) -> Iterator[str]:
        own = bundled.is_path(self.model)
        others = "shape of your model" if own else "others: libra-planner list workloads, your file"
        yield _line(f"workload: {_scalar(self.model)}", others)
        yield self._parallelism
        batch = "sequences per step"
        if self.global_batch is None:
            batch += "; assumed" + " near the 15,360 of DeepSeek-V3" * self.has_experts
        yield _line(f"global_batch: {self.n_sequences}", batch)
        yield _line(
            f"npu: {self.npu}", "its kernels make the time; the model has to fit its memory"
        )
        if self.has_measured_collectives:
            yield _line("fidelity: calibrated", "collectives as NCCL was measured; or ideal")
        yield "fabric:"
        yield from self._fabric()
        yield _line(f"cost_model: {PRICES}", "prices per GB/s: libra-planner list cost-models")
        if self._sold_Gbps:
            nic = self.rules[0].replace("==", "<=")
            rules = f"'{nic}'{' alone' if self.n_groups > 1 else ''}"
            what = f"or the bill of whole parts, with bill_options; then {rules}, no fixed_cost"
            yield _line("# prices: bill", what)
        if self.quotes:
            yield _line(
                f"# quotes: {_scalar(self.quotes)}", "your sellers' prices, once they are filled in"
            )
        if self.is_open:
            yield _line("objective: performance_per_cost", "step time times cost of the system")
        else:
            yield _line("objective: performance", "or performance_per_cost, best with fixed_cost")
        has_price = catalogue().npus[self.npu].price is not None
        cost = f"{{npu: {self.npu}, per_npu: 6 k$}}" if has_price else "{per_npu: 40 k$}"
        what = "NPU, and all else as a bill has it" if has_price else "an NPU and part of a server"
        unused = "" if self.is_open else "# "  # What the network saves counts beside all of it.
        yield _line(f"{unused}fixed_cost: {cost}", f"{what}: put in your own")
        yield "constraints:"
        yield from self._constraints()

    @property
    def _parallelism(self) -> str:
        """Of ZeRO 1 where that fits: it is what most people run."""
        if self.has_zero_1:
            more = "auto: ZeRO 2 and 3 (Megatron FSDP), too"
            what = f"the best is searched, with the distributed optimizer; {more}"
            return _line("parallelism: {zero: 1, rest: auto}", what)
        what = "the best is searched, ZeRO 2 and 3 (Megatron FSDP) too: no strategy of ZeRO 1 fits"
        return _line("parallelism: auto", what)

    def _fabric(self) -> Iterator[str]:
        n_groups, size = self.n_groups, self.domain.n_npus
        leaf = self.n_nodes // n_groups
        spines = f", {n_groups} such groups under spines" if n_groups > 1 else ", no spines"
        what = f"{size} NPUs of a node, {leaf} nodes on the leaves{spines}"
        tiers = "node, leaf" if n_groups == 1 else "node, leaf, spine"
        yield _line(f"  topology: {self.topology}", what)
        yield _line(f"  tiers: [{tiers}]", "names for rules and prices")
        speed = f"{self.domain.npu_Bps / BYTES_PER_S_PER_GBPS:g} GB/s per NPU, one direction"
        yield _line(f"  scale_up: {self.domain.name}", f"inside a node: {speed}")
        key = f", wiring: {self.wiring.key}" if self.wiring.key else ""
        what = f"switches of {RADIX} ports, {self.wiring.why}; sweeps of NICs set it"
        yield _line(f"  realization: {{port_speed: {self._port_speed}{key}}}", what)
        if self._sold_Gbps:
            nics = ", ".join(f"1 x {speed} Gbps" for speed in self._sold_Gbps)
            tapers = ", tapers: {spine: [1, 2, 4]}" if n_groups > 1 else ""
            what = "whole parts that 'prices: bill' chooses from"
            yield _line(f"  # bill_options: {{nics: [{nics}]{tapers}}}", what)

    def _constraints(self) -> Iterator[str]:
        nic, *taper = self.rules
        yield _line(f"  - {nic}", "the NIC, a whole port: another needs its port_speed too")
        if self.is_open:
            yield _line(f"  - {taper[0]}", "links down over links up: optimize chooses")
            yield f"  - {taper[1]}"
            return
        if self.asked_taper is not None:
            what = f"{self.taper:.4g}:1 of whole links, the next below the {self.asked_taper:g}:1"
            yield _line(f"  - {taper[0]}", f"{what} that was asked for")
            return
        for rule in taper:
            most = max(_MOST_CHOSEN, self.taper or 0)
            choice = f"'taper(spine) >= 1' and 'taper(spine) <= {most:.12g}', with fixed_cost"
            yield _line(f"  - {rule}", f"links down over links up; to choose: {choice}")

    def checked(self, name: str, beside: Path) -> tuple[FirstPlan, FreePorts | None]:
        """The plan with the taper that whole links make; one that commands would refuse is refused.

        Beside it the ports that its switches leave free, at list prices, where that is worth a
        word.

        Parameters
        ----------
        name : of its file.
        beside : folder that it is written to.

        Raises
        ------
        SpecError
            For a model that is not trained as a whole, or a network that cannot be built.
        """
        opened = OpenedPlan(parse_document(self.text(name), name), beside)
        opened.search()
        problem = opened.base
        network = (self.nic_Bps, self.nic_Bps / (self.taper or 1))[: 1 + (self.n_groups > 1)]
        inside = self.domain.bandwidth_Bps(problem.topology)
        bills = opened.bills
        bought = purchase(problem, np.array([*inside, *network]), bills.catalogue.parts)
        plan = replace(
            self,
            has_experts=any(one.experts for one in trained_models(problem)),
            experts_words="; ".join(experts_notes(problem)),
        )
        if self.is_open:
            return plan._with_zero(name, beside), None
        shop, npu = bills.shop(problem), bills.npu(opened.with_degrees, beside)
        is_clos = self.wiring.key == TOP_OF_RACK
        if self.n_per_group is None and not is_clos:
            found = free_ports(bought, shop, npu, only_stacks=True)
            if found and found.refill:
                return self._refilled(found.refill).checked(name, beside)
        plan = plan._as_built(bought.design.bandwidth_Bps)._compared(bought, shop)
        return plan._with_zero(name, beside), free_ports(bought, shop, npu)

    def _with_zero(self, name: str, beside: Path) -> FirstPlan:
        """The plan that knows whether its batch leaves a strategy of ZeRO 1 that fits."""
        search = OpenedPlan(parse_document(self.text(name), name), beside).search()
        return replace(self, has_zero_1=search.fits_with_zero(1))

    def _refilled(self, found: Refill) -> FirstPlan:
        """The plan with the equal groups that fill its leaves at least cost."""
        usual, saved = nodes_per_leaf(self.n_nodes), format_usd(float(found.saved_usd))
        n_per_group = found.topology.sizes[-2]
        words = (
            f"Groups of {n_per_group} nodes fill the leaves better than {usual} would: {saved} "
            "less at list prices."
        )
        return replace(self, n_per_group=n_per_group, group_words=words)

    def _compared(self, bought: Purchase, shop: FabricShop) -> FirstPlan:
        """The plan with words on a number of nodes close by, or a wiring, that costs less."""
        if self.n_groups == 1:
            return self
        is_clos = self.wiring.key == TOP_OF_RACK
        near = None if is_clos else near_count(bought, shop)
        apart = replace(self, asked_wiring=RAIL_ONLY)
        words = f"{near.words(self.n_nodes, self.domain.n_npus)}." if near else ""
        is_asked, found = self.asked_wiring == RAIL_ONLY, []
        for other in cheaper_networks(bought, shop, self.rules):
            is_same = str(other.design.topology) == apart.topology and not other.keeps_wiring
            found.append(other.text + f", or: init --wiring {RAIL_ONLY}" * (is_same > is_asked))
        return replace(self, near_words=words, wiring_words=tuple(found))

    def _as_built(self, built_Bps: Array) -> FirstPlan:
        """The plan at the taper of its whole links, which have at most the one asked for."""
        built = float(self.nic_Bps / built_Bps[-1])
        if self.n_groups == 1 or self.taper is None or math.isclose(built, self.taper):
            return self
        return replace(self, taper=built, asked_taper=self.taper)


def _scalar(text: str) -> str:
    """A text as YAML reads it back.

    >>> _scalar("llama3-70b"), _scalar("a: b.yaml")
    ('llama3-70b', '"a: b.yaml"')
    """
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _line(text: str, comment: str) -> str:
    return f"{text:<{_COMMENTS_AT}} # {comment}"


def check_model(name: str, beside: Path) -> None:
    """Refuse what is no model of whole steps.

    Parameters
    ----------
    name : of a bundled workload, or a path.
    beside : folder that a path is relative to.

    Raises
    ------
    SpecError
        For a name that is not bundled, or a workload of part of a step.
    """
    bundled.resolve("workloads", name, beside)
    try:
        FirstPlan(name, "h100-sxm", 16, 50e9).checked("plan", beside)
    except SpecError as error:
        first = error.faults[0]
        raise SpecError(
            Fault(first.got, first.expected, "see libra-planner list workloads")
        ) from None
