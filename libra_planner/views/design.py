"""Designs and what they buy: JSON of ``optimize`` and ``evaluate``, and text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from libra_planner.evaluation import Evaluation
from libra_planner.problem import Problem
from libra_planner.quantities import quantity_in
from libra_planner.step.critical_path import COMPUTE, Share
from libra_planner.step.expression import Array
from libra_planner.step.model_training import ModelTraining
from libra_planner.units import format_bandwidth, format_time, format_usd, gigabytes_per_s
from libra_planner.views import cells, plan
from libra_planner.views.bought.whole_ports import (
    AsBought,
    as_bought,
    far_bill_usd,
    network_bill_usd,
    sold_words,
)
from libra_planner.views.cells import Block, Table, Value, attributes, escape
from libra_planner.views.training import memory
from libra_planner.views.training.step import (
    LEAST_FRACTION,
    busy_fractions,
    computed_shares,
    links_hint,
    step_lines,
    step_payload,
)

if TYPE_CHECKING:
    from libra_planner.optimizer.design import Design
    from libra_planner.optimizer.fixed_order import FixedOrderOptimum
    from libra_planner.optimizer.shadow import ShadowPrice

OBJECTIVES = {
    "performance": "Step time",
    "performance_per_cost": "Step time x cost",
    "cost": "Cost",
}


def worth_payload(
    shadow: tuple[ShadowPrice, ...] | None, prices: tuple[ShadowPrice, ...] | None
) -> dict[str, Any]:
    """Keys ``shadow_prices`` and ``price_sensitivity``; null where there are none to give."""
    return {
        "shadow_prices": shadow and [_worth(price) for price in shadow],
        "price_sensitivity": prices and [_worth(price) for price in prices],
    }


def _worth(price: ShadowPrice) -> dict[str, Any]:
    subject: dict[str, Any] = {price.subject: price.name}
    if price.subject == "rule":
        subject |= attributes(price, "line", "bound")
    return subject | attributes(price, "unit", "d_step_time_s", "d_cost_usd", "side")


def worth_table(shadow: tuple[ShadowPrice, ...]) -> Table | None:
    """What one unit more is worth, without what is worth nothing; ``None`` if nothing is."""
    worth = [price for price in shadow if price.d_step_time_s or price.d_cost_usd]
    rows = map(_worth_row, worth)
    headings, left = ("one more", "of", "step time", "cost"), ("one more", "of")
    title = "What one more is worth: the slope at the optimum, not a whole step"
    return cells.table("", title, headings, rows, left=left, is_wrapped=True) if worth else None


def _worth_row(price: ShadowPrice) -> tuple[str, ...]:
    """One more of what it is, and what that changes there."""
    unit, size = price.unit, 1.0
    if price.subject != "price":  # Which is money per bandwidth.
        quantity = quantity_in(price.unit)
        unit = quantity.coarse_unit or quantity.unit
        size = quantity.units[unit] / quantity.unit_factor
    less, sign = (" less", -1) if price.side == "left" else ("", 1)
    own = f"{price.name}{plan.line_text(price.line)}"
    name = {"dimension": f"{price.name}, given free", "cost": "cost"}.get(price.subject, own)
    seconds, dollars = (sign * x * size for x in (price.d_step_time_s, price.d_cost_usd))
    longer = _change(seconds, format_time, "shorter", "longer")
    return unit + less, name, longer, _change(dollars, format_usd, "less", "more")


def _change(change: float, text: Callable[[float], str], less: str, more: str) -> str:
    return f"{text(abs(change))} {less if change < 0 else more}" if change else "-"


_BINDING = 1e-6
"""Relative slack below which a rule binds."""
_SHOWN_GAP = 1e-9
"""Smaller gaps are shown as this: their digits are rounding."""
_BETTER = {
    "performance": "is faster",
    "performance_per_cost": "has a smaller step time x cost",
    "cost": "is cheaper",
}


def optimize_payload(
    problem: Problem,
    design: Design,
    evaluation: Evaluation,
    fixed_order: FixedOrderOptimum | None = None,
) -> dict[str, Any]:
    """What ``optimize --json`` prints."""
    proof = attributes(design, "optimality_gap", "lower_bound", "unique", "max_violation")
    figures = _figures(problem, evaluation)
    if fixed_order is not None:
        figures["balanced"] |= {"fixed_order_optimum": _fixed_order_payload(fixed_order)}
    return {"objective": design.objective, "status": "optimal", **proof, **figures}


def _fixed_order_payload(fixed_order: FixedOrderOptimum) -> dict[str, Any] | None:
    """The design of the fixed order; null where none meets the rules."""
    if fixed_order.design is None:
        return None
    vector = bandwidths_GBps(fixed_order.design.bandwidth_bytes_per_s)
    return attributes(fixed_order, "step_time_s", "cost_usd", "gain") | {"bandwidth_GBps": vector}


def evaluate_payload(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    """What ``evaluate --json`` prints: no solver's keys, but the rules that are broken."""
    figures = _figures(problem, evaluation)
    figures["notes"] += plan.objective_notes(problem, evaluation)
    verdict = {"feasible": evaluation.feasible, "violated": plan.violations(evaluation.violated)}
    return {"objective": evaluation.objective, **figures, **verdict}


def binding_rules(problem: Problem, bandwidth_bytes_per_s: Array) -> list[dict[str, Any]]:
    """Rules that hold with no room to spare, with their lines."""
    found: dict[tuple[str, int | None], None] = {}
    for rule in problem.rules_at(bandwidth_bytes_per_s):
        terms = np.abs(rule.coefficients) @ bandwidth_bytes_per_s
        slack = abs(float(np.dot(rule.coefficients, bandwidth_bytes_per_s)) - rule.bound)
        if slack <= _BINDING * max(abs(rule.bound), float(terms)):
            found[(rule.text, rule.line)] = None
    step_time_s = float(problem.step_time.seconds(bandwidth_bytes_per_s))
    for limit in problem.step_time_limits:
        if abs(step_time_s - limit.limit_s) <= _BINDING * limit.limit_s:
            found[(limit.text, limit.line)] = None
    return [{"rule": text, "line": line} for text, line in found]


def _figures(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    equal, topology = evaluation.equal, problem.topology
    bought = as_bought(problem, evaluation)
    return {
        "objective_kind": problem.objective,
        **plan.group_payload(problem, evaluation),
        **attributes(problem, workload="workload_name", covers="step.covers"),
        "topology": str(topology),
        **attributes(topology, "tiers", "n_npus"),
        "bandwidth_GBps": bandwidths_GBps(evaluation.bandwidth_bytes_per_s),
        **plan.taper_payload(topology, evaluation.bandwidth_bytes_per_s),
        **attributes(evaluation, "step_time_s", **plan.PARTS_OF_THE_STEP),
        **attributes(evaluation, "cost_usd", "network_cost_usd", "fixed_cost_usd"),
        "bill_fabric_usd": network_bill_usd(problem, evaluation),
        "objective_as_bought": bought and bought.objective,
        "cost_usd_by_dimension": [float(cost) for cost in evaluation.cost_usd_by_dim],
        "busy_fraction_by_dimension": busy_fractions(problem, evaluation),
        "equal_bandwidth": {
            "bandwidth_GBps": bandwidths_GBps(equal.bandwidth_bytes_per_s),
            **attributes(equal, "step_time_s", "cost_usd", "feasible"),
        },
        **attributes(evaluation, "speedup_vs_equal", "perf_per_cost_vs_equal"),
        "bottlenecks": [
            {
                "operation": share.label,
                "dimensions": [topology.labels[i] for i in share.dims],
                "time_s": share.seconds,
                "step_time_fraction": share.seconds / evaluation.step_time_s,
            }
            for share in evaluation.shares
            if share.label != COMPUTE
        ],
        "binding": binding_rules(problem, evaluation.bandwidth_bytes_per_s),
        **attributes(evaluation, "real_link_step_time_s"),
        **step_payload(problem, evaluation),
        **memory.memory_figures(problem),
        **plan.fidelity_payload(problem, evaluation),
        **attributes(problem, "settings"),
        "notes": list(plan.built_notes(problem, evaluation.bandwidth_bytes_per_s)),
    }


def bandwidths_GBps(bandwidth_bytes_per_s: Array) -> list[float]:
    """A vector in GB/s, as JSON has it."""
    return [gigabytes_per_s(value) for value in bandwidth_bytes_per_s]


def design_blocks(
    problem: Problem,
    evaluation: Evaluation,
    design: Design | None = None,
    shadow: tuple[ShadowPrice, ...] | None = None,
    fixed_order: FixedOrderOptimum | None = None,
    no_worth: str = "",
    of_strategies: Iterable[str] = (),
    on_links: str = "",
) -> Iterator[Block]:
    """A whole result: headline, bandwidths, time split, rules, what more is worth or why not.

    Parameters
    ----------
    of_strategies : lines on the times of other strategies, below that of this one.
    on_links : what the step takes on its links, of a design that was chosen there.
    """
    yield plan.plan_title(problem)
    mean = "Weighted mean step time" if evaluation.members else "Step time"
    yield (
        f"{mean} [bold]{format_time(evaluation.step_time_s)}[/] "
        f"({format_time(evaluation.compute_s)} {compute_words(problem)}, "
        f"{format_time(evaluation.communication_s)} exposed communication), "
        f"{_cost(problem, evaluation)}"
    )
    yield from [on_links] if on_links else []
    yield from step_lines(problem, evaluation)
    yield from _objective(problem, evaluation)
    yield from plan.fidelity_lines(problem, evaluation)
    yield from plan.setting_markup(problem)
    yield from of_strategies
    if fixed_order is not None:
        yield _fixed_order_line(problem, fixed_order)
    if evaluation.equal.possible:
        yield _against_equal(problem, evaluation)
    yield from memory.memory_markup(problem)
    yield _verdict(problem, evaluation, design)
    if design is not None:
        yield from links_hint(problem, evaluation)
    yield from ("", _bandwidth_table(problem, evaluation), "")
    if evaluation.members:
        yield from (workload_table(evaluation), "")
    yield time_table(problem, evaluation)
    yield from _rules(problem, evaluation)
    worth = worth_table(shadow or ())
    if worth is not None:
        yield from ("", worth)
    yield from plan.note_lines(plan.result_notes(problem, evaluation, is_routed=bool(on_links)))
    if no_worth:
        yield f"Note: no shadow prices: {no_worth}"


def compute_words(problem: Problem) -> str:
    """What a step is without communication: a pipeline waits even then."""
    whole = any(isinstance(one, ModelTraining) for one in problem.step.trainings)
    return "compute with waits" if whole else "compute"


def _cost(problem: Problem, evaluation: Evaluation) -> str:
    """Cost of the network, and of the system where it is known."""
    network = f"[bold]{format_usd(evaluation.network_cost_usd)}[/]"
    if option := plan.option_text(problem, evaluation.bandwidth_bytes_per_s):
        bill = f"bill [bold]{format_usd(evaluation.cost_usd)}[/], {network} of it the network"
        return f"{bill}: {escape(option)}"
    bill_usd = far_bill_usd(problem, evaluation)
    linear = "" if bill_usd is None else " linear"
    parts = "" if bill_usd is None else f", about [bold]{format_usd(bill_usd)}[/] in whole parts"
    system = f", system cost [bold]{format_usd(evaluation.cost_usd)}[/]{linear}"
    return f"network cost {network}{linear}{parts}{system * bool(evaluation.fixed_cost_usd)}"


def _fixed_order_line(problem: Problem, fixed_order: FixedOrderOptimum) -> str:
    """What balanced schedules gain over the best design without them."""
    if fixed_order.step_time_s is None or fixed_order.cost_usd is None:
        return "No design of the fixed order meets these rules"
    step_time, cost = format_time(fixed_order.step_time_s), format_usd(fixed_order.cost_usd)
    relative = problem.group_objective != "weighted"
    what = "objective" if relative else OBJECTIVES[problem.objective].lower()
    return (
        f"The best design of the fixed order under these rules takes {step_time} for {cost}: "
        f"[bold]{fixed_order.gain:.4f}x[/] this {what}"
    )


def _objective(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """The value of an objective that the headline does not show."""
    value, relative = evaluation.objective, problem.group_objective != "weighted"
    found = as_bought(problem, evaluation)
    if value is None:
        yield f"Objective {problem.group_objective}: not known without optimize"
    elif problem.objective == "cost":
        yield f"Objective cost: [bold]{format_usd(value)}[/]"
    elif problem.objective == "performance_per_cost":
        unit, time = ("", f"{problem.group_objective} time") if relative else (" s", "step time")
        amount = f"[bold]{format_usd(value)}{unit}[/]"
        yield f"Objective performance_per_cost: {amount} ({time} x cost){_as_bought(found)}"
    elif relative:
        ratio = "step time over each workload's own optimum"
        yield f"Objective {problem.group_objective}: [bold]{value:.6f}[/] ({ratio})"


def _as_bought(found: AsBought | None) -> str:
    """The same of whole ports, whose money is that of their parts."""
    if found is None:
        return ""
    time, money = format_time(found.step_time_s), format_usd(found.cost_usd)
    amount = f"[bold]{format_usd(found.objective)} s[/]"
    text = f"{amount} as bought: {time} on whole ports x {money} with whole parts"
    return f" at linear prices, {text}"


def _against_equal(problem: Problem, evaluation: Evaluation) -> str:
    """The comparison of C9, and at equal cost where that baseline breaks the rules."""
    equal = evaluation.equal
    per_cost, per_dollar = evaluation.perf_per_cost_vs_equal, ""
    if per_cost:
        per_dollar = f" and gives [bold]{per_cost:.3f}x[/] its performance per dollar"
    text = (
        f"[bold]{evaluation.speedup_vs_equal:.3f}x[/] as fast as equal bandwidth "
        f"({plan.equal_bandwidth_text(evaluation)}){per_dollar}"
    )
    rate = float(problem.price_usd_per_Bps.sum())
    if equal.feasible or not rate:
        return text
    same_cost = np.full(problem.topology.n_dims, evaluation.network_cost_usd / rate)
    seconds = float(problem.step_time.seconds(same_cost))
    return (
        f"{text}; [bold]{seconds / evaluation.step_time_s:.3f}x[/] as fast as equal bandwidth at "
        f"the same network cost ({format_bandwidth(same_cost[0])} each: {format_time(seconds)})"
    )


def _verdict(problem: Problem, evaluation: Evaluation, design: Design | None) -> str:
    sold = sold_words(problem, evaluation.bandwidth_bytes_per_s)
    if design is not None:
        ties = "" if design.unique else "; other vectors tie, this is the first of the cheapest"
        digits = int(1e-6 - np.log10(max(design.optimality_gap, _SHOWN_GAP)))
        relative = problem.group_objective != "weighted"
        better = "has a smaller objective" if relative else _BETTER[problem.objective]
        proof = f"no design under these rules {better} by more than one part in 10^{digits}"
        return f"Proven optimal: {proof}{ties}{sold}"
    n_rules, broken = len(rule_texts(problem)), {one.rule for one in evaluation.violated}
    n_broken = len(broken.intersection(rule_texts(problem)))
    n_unpurchasable = len(broken) - n_broken
    speeds = "1 speed" if n_unpurchasable == 1 else f"{n_unpurchasable} speeds"
    buys = f"; [red]{speeds} cannot be bought[/]" if n_unpurchasable else ""
    if n_broken:
        return f"[red]Breaks {n_broken} of {n_rules} rules[/]{buys}{sold}"
    if n_rules == 1:
        return f"Meets its only rule{buys}{sold}"
    return (f"Meets all {n_rules} rules" if n_rules else "No rules to meet") + buys + sold


def rule_texts(problem: Problem) -> list[str]:
    """The rules of a plan, each once, with its bounds on the step time."""
    limits = [limit.text for limit in problem.step_time_limits]
    return list(dict.fromkeys([rule.text for rule in problem.rules] + limits))


def _bandwidth_table(problem: Problem, evaluation: Evaluation) -> Table:
    """One row per dimension; narrow terminals lose the bars first, then the baseline."""
    bandwidth, costs = evaluation.bandwidth_bytes_per_s, evaluation.cost_usd_by_dim
    total, most = bandwidth.sum() or 1.0, bandwidth.max() or 1.0
    cost_usd, equal = evaluation.network_cost_usd or 1.0, evaluation.equal.bandwidth_bytes_per_s
    topology = problem.topology
    dimensions, labels = topology.dimensions, topology.labels
    columns: dict[str, Callable[[int], Value]] = {
        "dimension": lambda i: labels[i],
        "": lambda i: str(dimensions[i]),
        "tier": lambda i: dimensions[i].tier,
        "bandwidth": lambda i: format_bandwidth(bandwidth[i]),
        "taper": plan.taper_texts(topology, bandwidth).__getitem__,
        " ": lambda i: cells.Cell(float(bandwidth[i] / most)),
        "share": lambda i: f"{bandwidth[i] / total:.1%}",
        "equal": lambda i: format_bandwidth(equal[i]),
        "cost": lambda i: format_usd(costs[i]),
        "of cost": lambda i: f"{costs[i] / cost_usd:.1%}",
    }
    if not topology.stacks:
        del columns["taper"]
    if not evaluation.equal.possible:
        del columns["equal"]
    title, left = "Bandwidth per NPU, one direction", ("dimension", "", "tier", " ")
    rows, narrow = range(len(dimensions)), tuple(x for x in ("equal",) if x in columns)
    return cells.table_of(title, rows, columns, left=left, dispensable=narrow, bar=" ")


def workload_table(evaluation: Evaluation) -> Table:
    """One row per workload of a group."""
    headings = ("workload", "weight", "step time", "compute", "communication", "vs equal")
    rows = [
        (
            one.name,
            f"{one.weight:.3f}",
            *map(format_time, (one.step_time_s, one.compute_s, one.communication_s)),
            f"{one.speedup_vs_equal:.3f}x",
        )
        for one in evaluation.members
    ]
    return cells.table("", "Each workload", headings, rows, left=headings[:1], is_wrapped=True)


def time_table(
    problem: Problem, evaluation: Evaluation, *, most: int | None = None, tied: str = " (tied)"
) -> Table:
    """The operations that the step waits for, longest first, and what each waits on.

    Those of less than 0.05 % of the step are one row.

    Parameters
    ----------
    most : operations that are listed, and no row of the others; all where it is not given.
    tied : what stands behind several dimensions.
    """
    mean = "Weighted mean step time" if evaluation.members else "Step time"
    step_s, labels = evaluation.step_time_s, problem.topology.labels

    computed = computed_shares(problem, evaluation)
    sent = [one for one in evaluation.shares if one.label != COMPUTE]
    shares = sorted([*computed, *sent], key=lambda one: -one.seconds)

    def waits_on(share: Share) -> str:
        idle = "NPUs" if share in computed else "latency"
        return (", ".join(labels[i] for i in share.dims) or idle) + tied * (len(share.dims) > 1)

    n_long = sum(one.seconds >= LEAST_FRACTION * step_s for one in shares)
    n_folded = len(shares) - n_long if most is None else 0
    rows = [
        (one.label, waits_on(one), format_time(one.seconds), f"{one.seconds / step_s:.1%}")
        for one in shares[: n_long if n_folded > 1 else most]
    ]
    if n_folded > 1:
        rest_s = sum(one.seconds for one in shares[n_long:])
        rows.append((f"{n_folded} shorter ones", "", format_time(rest_s), f"{rest_s / step_s:.1%}"))
    title, headings = f"{mean}, all layers together", ("operation", "waits on", "time", "share")
    return cells.table("", title, headings, rows, left=headings[:2], is_wrapped=True)


def _rules(problem: Problem, evaluation: Evaluation) -> Iterator[Block]:
    binding = binding_rules(problem, evaluation.bandwidth_bytes_per_s)
    broken = {violation.rule for violation in evaluation.violated}
    yield from [""] if binding or broken else []
    for rule in binding:
        if rule["rule"] not in broken:
            yield f"Binds: {escape(rule['rule'])}{plan.line_text(rule['line'])}"
    for one in evaluation.violated:
        text = f"{escape(one.rule)}{plan.line_text(one.line)}, {plan.amount_text(one)}"
        yield f"[red]Broken:[/] {text}"
