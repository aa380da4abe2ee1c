"""One design of a comparison: what it is, what it costs, how it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from libra_planner.check.links import CheckReport, LinkCheck
from libra_planner.check.phases import CheckMemo
from libra_planner.costs.prices import SAME_SPEED
from libra_planner.costs.quotes import Quote
from libra_planner.evaluation import (
    Evaluation,
    TimeModel,
    Violation,
    evaluated,
    violations_as_built,
)
from libra_planner.fabric import realization
from libra_planner.fabric.clos import Array
from libra_planner.problem import Problem, fastest_alternative, with_bills
from libra_planner.procurement import cluster, lines
from libra_planner.procurement.bill import ZERO, Assumptions, Bill, Part
from libra_planner.procurement.bought.bridges import Bridge, bridges
from libra_planner.procurement.bought.refills import PLAN
from libra_planner.procurement.bought.server_links import included_faults, server_links
from libra_planner.procurement.bought.servers import Facility
from libra_planner.procurement.bought.side_ports import FullNetwork, full_networks
from libra_planner.procurement.quotes import for_bills
from libra_planner.procurement.rails import Rewired, rewired
from libra_planner.procurement.run import Run, training_run
from libra_planner.routing.policy import Policy
from libra_planner.step.bands import is_tie, related_bands
from libra_planner.step.model_training import ModelTraining
from libra_planner.workload.operations import Covers

if TYPE_CHECKING:
    from libra_planner.search.best import SearchResult


@dataclass(frozen=True)
class StrategyOnLinks:
    """The strategy that a design takes as the best on its links, where its plan leaves it open.

    Parameters
    ----------
    words, model_words : it, and the best in the model, for people.
    model_s : what the latter takes on the same links; the same where the two are one.
    n_checked, n_left : strategies that were checked there, and that may be faster but were not.
    """

    words: str
    model_words: str
    model_s: float
    n_checked: int
    n_left: int

    @property
    def is_best_in_model(self) -> bool:
        """Whether the links change nothing."""
        return self.words == self.model_words


@dataclass(frozen=True)
class SweptCheck:
    """What the sweep of a design found on its links.

    Parameters
    ----------
    step_time_s : on them, mean over the seeds.
    options : of a command that finds it again, such as ``--check ecmp --seeds 3``.
    """

    step_time_s: float
    options: str


@dataclass(frozen=True)
class PlacedCheck:
    """The check of a design with the servers of a job placed otherwise than its plan says.

    Parameters
    ----------
    placement : one of :data:`~libra_planner.allowed.PLACEMENTS`.
    check : by the same policy and seeds.
    """

    placement: str
    check: CheckReport = field(repr=False)


@dataclass(frozen=True)
class Proposal:
    """A design that someone proposes to buy.

    Parameters
    ----------
    letter, name : ``A`` and what its file is called, or its user calls it.
    problem : the plan.
    bandwidth_Bps : per NPU, shape (n_dims,), byte/s.
    optimized : whether it is the plan's own optimum.
    shop : where it is bought, at the plan's price book.
    npu : the plan's NPU; ``None`` for that of the assumptions.
    found : by the search for its strategy; ``None`` where the plan says it.
    source : plan and vector, for people.
    plan : its path or name on a command line.
    options : of the command that optimizes it on its links, such as its settings.
    on_links : how its strategy was taken on the links; ``None`` where it was not.
    swept_check : what its sweep found on its links; ``None`` where it found nothing.
    """

    letter: str
    name: str
    problem: Problem = field(repr=False)
    bandwidth_Bps: Array = field(repr=False)
    optimized: bool
    shop: lines.FabricShop = field(repr=False)
    npu: Part | None = None
    found: SearchResult | None = field(default=None, repr=False)
    source: str = ""
    plan: str = PLAN
    options: str = ""
    on_links: StrategyOnLinks | None = None
    swept_check: SweptCheck | None = None

    @property
    def is_part(self) -> bool:
        """Whether the workload is part of a step, of which no run is told (C21)."""
        return self.problem.step.covers is Covers.PART

    @property
    def tokens_per_step(self) -> int | None:
        """Of a whole step; ``None`` for a part of one, or where nobody knows."""
        return None if self.is_part else self.problem.step.tokens_per_step


@dataclass(frozen=True)
class Candidate:
    """A proposal with its figures.

    Parameters
    ----------
    proposal : what is proposed.
    evaluation : by the plan's model.
    billed : the same at the bandwidth of the whole ports that are bought; ``evaluation`` itself
        where that is what the design asks for.
    bought, bill, facility, bridges : parts, their cost, racks, and the linear model beside it.
    check : the links under a routing policy, where one was asked for.
    placed_otherwise : the same at another placement, where that was asked for, too.
    n_tokens : of a training run.
    """

    proposal: Proposal
    evaluation: Evaluation = field(repr=False)
    billed: Evaluation = field(repr=False)
    bought: lines.Purchase = field(repr=False)
    bill: Bill = field(repr=False)
    facility: Facility = field(repr=False)
    bridges: tuple[Bridge, ...] = field(repr=False)
    n_tokens: int
    check: CheckReport | None = field(default=None, repr=False)
    placed_otherwise: PlacedCheck | None = field(default=None, repr=False)

    @property
    def letter(self) -> str:
        """Which of the designs."""
        return self.proposal.letter

    @property
    def n_npus(self) -> int:
        """NPUs of the fabric."""
        return self.proposal.problem.topology.n_npus

    def step_time_by(self, model: TimeModel) -> float:
        """T, seconds, by a model, or what knows next to it of the links.

        Without a check those are the ports of the bill, where no group is partial in the plan's
        model.
        """
        if model is TimeModel.CHECKED and self.check is not None:
            return float(self.check.effective_step_time_s.mean())
        if model is TimeModel.PLAN:
            return self.evaluation.step_time_s
        found = self.evaluation if model is TimeModel.OWN_LINKS else self.billed
        return found.own_links_step_time_s

    @property
    def built_beyond(self) -> tuple[Violation, ...]:
        """Rules of the plan that the whole ports of the bill break, and the design does not."""
        asked_Bps, built_Bps = (x.bandwidth_bytes_per_s for x in (self.evaluation, self.billed))
        return violations_as_built(self.proposal.problem, asked_Bps, built_Bps)

    @property
    def is_faster_as_bought(self) -> bool:
        """Whether whole ports make a shorter step than the bandwidth asked for."""
        asked_s = self.evaluation.own_links_step_time_s
        return self.billed.own_links_step_time_s < asked_s * (1 - SAME_SPEED)

    @property
    def step_time_s(self) -> float:
        """By the model that knows most of the links: what runs, tokens and rankings are of."""
        return self.step_time_by(TimeModel.CHECKED)

    @property
    def band_s(self) -> tuple[float, float] | None:
        """Ends of :attr:`step_time_s` by the band of the model (C23); ``None`` without a class."""
        band_s, model_s = self.billed.band_s, self.billed.step_time_s
        if band_s is None or not model_s:
            return None
        low, high = (end_s / model_s * self.step_time_s for end_s in band_s)
        return low, high

    def is_tied_with(self, other: Candidate, *, weights: tuple[float, float]) -> bool:
        """Whether the errors of two step times leave open which is less (C23).

        Parameters
        ----------
        other : a design of the same work.
        weights : that the two times are multiplied with, such as prices.
        """
        error, its = self.error_fraction, other.error_fraction
        if error is None or its is None:
            return False
        return self.may_be_passed_by(other, weights=weights, error_fraction=max(error, its))

    def may_be_passed_by(
        self, other: Candidate, *, weights: tuple[float, float], error_fraction: float
    ) -> bool:
        """The same where what two steps do not share is off by such an error.

        Parameters
        ----------
        other, weights : as above.
        error_fraction : of the time that they do not share.
        """
        alike_s = min(self.evaluation.compute_s, other.evaluation.compute_s)
        ours, theirs = weights
        return is_tie(
            self.step_time_s * ours,
            other.step_time_s * theirs,
            shared=(alike_s * ours, alike_s * theirs),
            error_fraction=error_fraction,
        )

    @property
    def related_error_fraction(self) -> float | None:
        """The largest error of the classes next to that of its step; ``None`` without any (C23)."""
        training = self.proposal.problem.step.trainings[0]
        if not isinstance(training, ModelTraining):
            return None
        return max(related_bands(*training.step_class).values(), default=None)

    @property
    def error_source(self) -> str:
        """Whose errors its band is of, for people."""
        step = self.proposal.problem.step
        training = step.trainings[0]
        if step.error_fraction is not None and isinstance(training, ModelTraining):
            return training.error_source
        return "measured collectives of its classes"

    @property
    def error_fraction(self) -> float | None:
        """Error of what its step does not share with another's; ``None`` without a class (C23)."""
        found, band_s = self.evaluation, self.band_s
        if band_s is None:
            return None
        own = self.proposal.problem.step.error_fraction
        rest_s = self.step_time_s - found.compute_s
        return own if own is not None else (band_s[1] - self.step_time_s) / (rest_s or math.inf)

    @property
    def token_time_s(self) -> float | None:
        """Seconds per token, which designs of different steps are ranked by (C6)."""
        tokens = self.proposal.tokens_per_step
        return self.step_time_s / tokens if tokens else None

    @property
    def linear_network_usd(self) -> float:
        """Network cost by the price book (C7), or by a catalogue of links."""
        proposal = self.proposal
        linear = with_bills(proposal.problem, None)
        return float(linear.network_cost_usd(proposal.bandwidth_Bps))

    @property
    def linear_in_servers_usd(self) -> Decimal:
        """What the linear model counts for links that the servers' price includes."""
        return -sum((bridge.included_usd for bridge in self.bridges), ZERO)

    @property
    def included_faults(self) -> tuple[str, ...]:
        """Where the design and what its servers include do not fit together, in words."""
        server = self.proposal.shop.assumptions.server
        return tuple(included_faults(self.bought, self.bill, server))

    @cached_property
    def behind_text(self) -> str:
        """Why it comes behind all that keep their rules and can be bought; empty for nothing."""
        links = server_links(self.bought, self.proposal.shop.assumptions.server)
        broken = "breaks rules of its plan" if self.evaluation.violated else ""
        unsold = "needs a server that nobody prices" if links.over_Bps else ""
        return " and ".join(filter(None, (broken, unsold)))

    @cached_property
    def free_ports(self) -> cluster.FreePorts | None:
        """Ports that no cable needs, where a network of fewer switches does the same."""
        own, prices = self.proposal, self.proposal.problem.prices
        only_stacks = prices.choice is not None
        return cluster.free_ports(self.bought, own.shop, own.npu, only_stacks=only_stacks)

    @cached_property
    def full_networks(self) -> tuple[FullNetwork, ...]:
        """Frontend and storage networks whose leaves have no free port."""
        own = self.proposal
        return tuple(full_networks(self.bill, self.bought, own.shop, own.npu))

    @cached_property
    def rewired(self) -> Rewired | None:
        """Its rails wired otherwise for less; ``None`` under ``prices: bill`` (not an option)."""
        own, problem = self.proposal, self.proposal.problem
        is_option = problem.prices.choice is not None
        return None if is_option else rewired(self.bought, own.shop, problem.text.rules)

    @property
    def injected_Bps(self) -> float:
        """What all NPUs can inject into the dimensions that the bill pays for, from whole ports.

        Into a stack they inject once, by its NICs (C13).
        """
        design = self.bought.design
        has_port = np.array([not one.place for one in design.dimensions])
        return float(self.n_npus * np.sum(design.bandwidth_Bps[self.is_paid & has_port]))

    @property
    def is_paid(self) -> NDArray[np.bool_]:
        """Whether the fabric's bill holds money for each dimension, or parts without a price."""
        paid = {line.dimension for line in self.bill.lines if line.extended_usd != ZERO}
        return np.array([one.label in paid for one in self.bought.design.dimensions])

    @property
    def bisection_Bps(self) -> float:
        """Between two halves of the cluster, over the outermost dimension.

        0 where the bill does not pay for that dimension.
        """
        return realization.bisection_Bps(self.bought.design) if self.is_paid[-1] else 0.0

    @cached_property
    def run(self) -> Run | None:
        """A training run, by the design's assumptions."""
        return self.run_under(self.proposal.shop.assumptions)

    @cached_property
    def run_ends(self) -> tuple[Run, Run] | None:
        """The run at either end of the band of its step; ``None`` without a run or a band."""
        assumed = self.proposal.shop.assumptions
        if self.band_s is None or self.run is None:
            return None
        low, high = (self.run_under(assumed, step_time_s=end_s) for end_s in self.band_s)
        return (low, high) if low and high else None

    def run_under(self, assumed: Assumptions, *, step_time_s: float | None = None) -> Run | None:
        """A training run by some assumptions, and by its own step time where none is given.

        ``None`` where the tokens of a whole step are not known.
        """
        tokens = self.proposal.tokens_per_step
        if not tokens:
            return None
        return training_run(
            self.bill,
            assumed,
            step_time_s=self.step_time_s if step_time_s is None else step_time_s,
            tokens_per_step=tokens,
            n_tokens=self.n_tokens,
        )


def billed_bandwidth_Bps(bought: lines.Purchase, asked_Bps: Array) -> Array:
    """Bandwidth of the whole ports that are bought; the asked one, to the bit, where it is that.

    Parameters
    ----------
    bought : for the design.
    asked_Bps : of the design, per NPU, shape (n_dims,), byte/s.
    """
    billed_Bps = bought.design.bandwidth_Bps
    return asked_Bps if np.allclose(billed_Bps, asked_Bps, rtol=SAME_SPEED, atol=0) else billed_Bps


def bought_links(
    chosen: Problem, bandwidth_Bps: Array, bought: lines.Purchase, memo: CheckMemo | None = None
) -> LinkCheck:
    """The check of a design on the links that are bought for it.

    Parameters
    ----------
    chosen, bandwidth_Bps : the plan with its chunks chosen, and the asked bandwidth.
    bought : for the design.
    memo : of checks of other designs on links of the same shape.
    """
    design = bought.design
    traffic, memo = design.realization.traffic, memo or CheckMemo()
    return LinkCheck(chosen, bandwidth_Bps, design, traffic, memo=memo)


def candidate(
    proposal: Proposal,
    *,
    n_tokens: int,
    policy: Policy | None = None,
    seeds: tuple[int, ...] | None = None,
) -> Candidate:
    """Everything about a proposal.

    Parameters
    ----------
    proposal : the design.
    n_tokens : of a training run.
    policy : how to route the collectives over the links; ``None`` for no check.
    seeds : draws of the check; by default 10, or fewer of very many flows.

    Raises
    ------
    SpecError
        For a design that cannot be evaluated or built.
    """
    problem, bandwidth_Bps = proposal.problem, proposal.bandwidth_Bps
    chosen = fastest_alternative(problem, bandwidth_Bps)
    evaluation = evaluated(chosen, bandwidth_Bps)
    bought = lines.purchase(problem, bandwidth_Bps, proposal.shop.parts)
    billed_Bps = billed_bandwidth_Bps(bought, bandwidth_Bps)
    bill, facility = lines.system_bill(bought, proposal.shop, proposal.npu)
    server = proposal.shop.assumptions.server
    check = None
    if policy is not None:
        check = bought_links(chosen, bandwidth_Bps, bought).report(policy, seeds=seeds)
    return Candidate(
        proposal=proposal,
        evaluation=evaluation,
        billed=evaluation if billed_Bps is bandwidth_Bps else evaluated(chosen, billed_Bps),
        bought=bought,
        bill=bill,
        facility=facility,
        bridges=bridges(with_bills(problem, None), bandwidth_Bps, bought, bill, server),
        n_tokens=n_tokens,
        check=check,
    )


def at_same_offers(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """The designs at the same offers: in a comparison a part has one price.

    An offer with a least order counts where every design that buys the part buys as many.

    Parameters
    ----------
    candidates : at the same quotes.
    """
    before = candidates[0].proposal.shop.quotes
    quotes = for_bills([one.bill for one in candidates], before)
    if all(now is old for now, old in zip(quotes, before, strict=True)):
        return candidates
    return at_same_offers(tuple(_at_quotes(one, quotes) for one in candidates))


def _at_quotes(one: Candidate, quotes: tuple[Quote, ...]) -> Candidate:
    """A design at other quotes: its links, and what is known of them, are the same."""
    own, problem = one.proposal, one.proposal.problem
    shop = replace(own.shop, quotes=quotes)
    bill, room = lines.system_bill(one.bought, shop, own.npu)
    linear = with_bills(problem, None)
    steps = bridges(linear, own.bandwidth_Bps, one.bought, bill, shop.assumptions.server)
    proposal = replace(own, shop=shop)
    return replace(one, proposal=proposal, bill=bill, facility=room, bridges=steps)
