"""What must hold for checks of designs, whatever the seed; the optimum under a policy (C8, C12)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from libra_planner.check.rerouted import MAX_ROUNDS, routed_optimum
from libra_planner.errors import SpecError
from libra_planner.optimizer.optimize import solve
from libra_planner.problem import slowed
from libra_planner.routing.policy import Policy
from libra_planner.routing.rates import max_min_rates
from libra_planner.routing.routes import Router
from libra_planner.step.training import plain_step
from libra_planner.workload.operations import CollectiveKind
from tests.checked_plans import checked, loaded, operation

KINDS = [kind.value for kind in CollectiveKind]
SPRAY, ECMP = Policy("spray"), Policy("ecmp")
OVERSUBSCRIBED = {"switch_radix": 8, "oversubscription": 2, "placement": "random"}

# What holds always --------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_no_routing_is_faster_than_spraying(kind, ratio, tmp_path) -> None:
    """All rounds are permutations of equal flows; several queue pairs only come closer."""
    steps = [operation("weight_grad", kind, 9e8)]
    slowdowns = []
    for n_queue_pairs in (1, 32):
        links = {"switch_radix": 8, "oversubscription": ratio, "queue_pairs": n_queue_pairs}
        halving = {"algorithms": ["halving_doubling"]}  # Rings stay on their leaves.
        problem = loaded(tmp_path, "SW(32)", steps, realization=links, **halving)
        report = checked(problem, 50).report(ECMP, seeds=range(6))
        slowdown = report.effective_step_time_s / report.spray_step_time_s
        assert (slowdown >= 1 - 1e-12).all()
        [dimension] = report.dimensions
        assert (dimension.efficiency <= dimension.ideal_efficiency * (1 + 1e-12)).all()
        assert (dimension.fim_percent >= dimension.fim_floor_percent - 1e-9).all()
        slowdowns.append(slowdown.mean())
    assert slowdowns[1] < slowdowns[0]
    assert slowdowns[0] > 1.2


@pytest.mark.parametrize("policy", ["ecmp", "greedy", "spray"])
@pytest.mark.parametrize("kind", ["all-reduce", "all-to-all"])
def test_rates_of_groups_are_plain_sums_over_rounds(kind, policy, tmp_path) -> None:
    """Group by group: the time of the slowest flow of each round at its rate."""
    steps = [operation("weight_grad", kind, 9e8)]
    links = {"switch_radix": 8, "oversubscription": 2, "placement": "random", "queue_pairs": 2}
    shape = {"parallelism": {"tp": 2, "dp": 16}}
    problem = loaded(tmp_path, "SW(32)", steps, realization=links, **shape)
    check = checked(problem, 50)
    report = check.report(Policy(policy), seeds=[3])
    for key, (phase, _) in zip(report.keys, report.phases, strict=True):
        at, times_s = check.phase(key), {}
        for _, _, flows in at.flows(3):
            routing = Router(at.unit_fabric, flows, Policy(policy)).routing(3)
            rates = max_min_rates(routing.routes, routing.capacity_Bps)
            slowest: dict[int, float] = {}
            for group, n_bytes, rate in zip(flows.collective, flows.size_bytes, rates, strict=True):
                slowest[group] = max(slowest.get(group, 0.0), n_bytes / rate)
            for group, s in slowest.items():
                times_s[group] = times_s.get(group, 0.0) + s
        assert len(times_s) == 2
        plain = sorted(phase.bandwidth_Bps / s for s in times_s.values())
        assert phase.group_rate_Bps == pytest.approx(plain)
        assert phase.worst_rate_Bps == phase.group_rate_Bps[0]
        # The fluid model hands on what ended flows leave: a phase is never slower than that.
        assert phase.worst_rate_Bps <= phase.efficiency * phase.bandwidth_Bps * (1 + 1e-12)


def test_the_same_seed_gives_the_same_report(tmp_path) -> None:
    steps = [operation("weight_grad", "all-to-all", 9e8)]
    problem = loaded(tmp_path, "SW(32)", steps, realization=OVERSUBSCRIBED)
    first, again = (checked(problem, 50).report(ECMP, seeds=[1, 2, 3]) for _ in range(2))
    assert first.effective_step_time_s.tobytes() == again.effective_step_time_s.tobytes()
    assert first.fim_percent.tobytes() == again.fim_percent.tobytes()
    assert len(set(first.effective_step_time_s.tolist())) > 1
    # A report of several seeds is made of those of each.
    one = checked(problem, 50).report(ECMP, seeds=[2])
    assert one.effective_step_time_s[0] == first.effective_step_time_s[1]


def test_what_draws_nothing_runs_once_and_counts_for_every_seed(tmp_path) -> None:
    steps = [operation("weight_grad", "all-reduce", 9e8)]
    problem = loaded(tmp_path, "SW(32)", steps, realization=OVERSUBSCRIBED)
    fixed = loaded(
        tmp_path, "SW(32)", steps, realization=OVERSUBSCRIBED | {"placement": "contiguous"}
    )
    assert len(checked(problem, 50).runs(SPRAY, range(4))) == 4  # Placed at random.
    check = checked(fixed, 50)
    assert (len(check.runs(SPRAY, range(4))), len(check.runs(ECMP, range(4)))) == (1, 4)
    report = check.report(SPRAY, seeds=range(4))
    assert report.effective_step_time_s.shape == report.fim_percent.shape == (4,)
    assert report.dimensions[0].efficiency.shape == (4,)


def test_spraying_has_a_mean_of_its_own_for_every_placement(tmp_path) -> None:
    """Slowdown against spraying compares like with like: the same placement."""
    steps = [operation("weight_grad", "all-reduce", 9e8)]
    halving = {"algorithms": ["halving_doubling"]}
    problem = loaded(tmp_path, "SW(32)", steps, realization=OVERSUBSCRIBED, **halving)
    report = checked(problem, 50).report(SPRAY, seeds=range(5))
    assert np.ptp(report.effective_step_time_s) > 0
    assert report.spray_step_time_s == pytest.approx(report.effective_step_time_s.mean())
    [dimension] = report.dimensions
    assert dimension.ideal_efficiency == pytest.approx(dimension.efficiency.mean())


def test_a_problem_without_a_plan_is_refused(tmp_path) -> None:
    steps = [operation("weight_grad", "all-reduce", 9e8)]
    problem = loaded(tmp_path, "SW(8)", steps)
    problem = replace(problem, step=plain_step(problem.step_time))
    with pytest.raises(SpecError, match="problem without collectives"):
        checked(problem, 50).report(SPRAY)


# The optimum under a policy -----------------------------------------------------------------------


def two_dimensions(folder, *constraints: str, **keys):
    """TP of 16 on both dimensions and DP on the switch, 2:1 and on leaves of few uplinks."""
    steps = [
        operation("forward", "all-reduce", 6e8, group="tp", compute_ms=1),
        operation("weight_grad", "all-reduce", 4e8, group="dp"),
    ]
    return loaded(
        folder,
        "RI(4)_SW(32)",
        steps,
        parallelism={"tp": 16, "dp": 8},
        realization=OVERSUBSCRIBED | {"placement": "contiguous"},
        constraints=["total == 200 GB/s", *constraints],
        algorithms=["ring", "halving_doubling"],
        **keys,
    )


@pytest.mark.parametrize("policy", [SPRAY, ECMP, Policy("greedy")], ids=lambda p: p.name)
@pytest.mark.parametrize("objective", ["performance", "performance_per_cost"])
def test_the_best_checked_design_is_not_worse_than_the_blind_one(policy, objective, tmp_path):
    problem = two_dimensions(tmp_path, "dim2 >= 10 GB/s", objective=objective)
    found = routed_optimum(problem, policy, seeds=[0, 1])
    assert found.best.objective <= found.blind.objective
    assert found.blind is found.rounds[0]
    assert any(found.best is one for one in found.rounds)
    assert 1 <= len(found.rounds) <= MAX_ROUNDS
    blind = solve(problem).design.bandwidth_bytes_per_s
    np.testing.assert_allclose(found.blind.bandwidth_Bps, blind)
    for one in found.rounds:  # The figures are those of a check of each design by itself.
        again = checked(problem, *one.bandwidth_Bps / 1e9).report(policy, seeds=[0, 1])
        time_s = again.effective_step_time_s.mean()
        cost_usd = problem.cost_usd(one.bandwidth_Bps)
        expected = time_s if objective == "performance" else time_s * cost_usd
        assert one.objective == pytest.approx(expected, rel=1e-9)
        assert one.bandwidth_Bps.sum() <= 200e9 * (1 + 1e-9)
    assert found.converged == is_fixed_point(problem, policy, found.rounds[-1].bandwidth_Bps)


def is_fixed_point(problem, policy, bandwidth) -> bool:
    """Whether the optimum of the plan derated by a design is that design."""
    mean = checked(problem, *bandwidth / 1e9).mean_slowdown(policy, seeds=[0, 1])
    following = solve(slowed(problem, mean)).design.bandwidth_bytes_per_s
    return bool(np.allclose(following, bandwidth, rtol=1e-9, atol=0))


def test_a_slow_switch_gets_more_bandwidth(tmp_path) -> None:
    found = routed_optimum(two_dimensions(tmp_path), SPRAY)
    assert found.converged
    assert found.best.bandwidth_Bps[1] > found.blind.bandwidth_Bps[1] * 1.05
    assert found.best.objective < found.blind.objective * 0.99


def test_step_time_bounds_are_those_of_the_real_links(tmp_path) -> None:
    """The cheapest design meets its bound by the model; on the links only a larger one does."""
    problem = two_dimensions(tmp_path, "step_time <= 60 ms", objective="cost")
    problem = replace(problem, rules=tuple(r for r in problem.rules if not r.is_total))
    found = routed_optimum(problem, SPRAY)
    assert not found.blind.meets_limits
    assert found.best.meets_limits
    assert found.best.check.effective_step_time_s[0] <= 0.060 * (1 + 1e-9)
    assert found.best.cost_usd > found.blind.cost_usd


def test_other_group_objectives_are_refused(tmp_path) -> None:
    problem = replace(two_dimensions(tmp_path), group_objective="worst_case")
    with pytest.raises(SpecError, match="group_objective worst_case with a routing policy"):
        routed_optimum(problem, SPRAY)


def test_rounding_up_to_ports_is_no_reason_to_ask_for_less(tmp_path) -> None:
    """37 GB/s on a port of 50: derating is by the whole link's efficiency, 1 on one switch."""
    steps = [operation("weight_grad", "all-reduce", 4e8)]
    problem = loaded(tmp_path, "SW(16)", steps, realization={"port_speed": "50 GB/s"})
    check = checked(problem, 37)
    [one] = problem.step.communications
    assert check.mean_slowdown(SPRAY).factors_of(one.collective, one.group) == pytest.approx([1.0])
    assert check.report(SPRAY).slowdown == pytest.approx([37 / 50])


def test_a_design_that_whole_ports_make_worse_is_not_the_best(tmp_path) -> None:
    """What looks better per GB/s loses a port by rounding: the blind design stands."""
    steps = [
        operation("forward", "all-reduce", 6e8, group="tp", compute_ms=1),
        operation("weight_grad", "all-reduce", 4e8, group="dp"),
    ]
    ports = OVERSUBSCRIBED | {"placement": "contiguous", "port_speed": "25 GB/s"}
    problem = loaded(
        tmp_path,
        "RI(4)_SW(32)",
        steps,
        parallelism={"tp": 16, "dp": 8},
        realization=ports,
        constraints=["total == 170 GB/s"],
    )
    found = routed_optimum(problem, SPRAY)
    assert found.converged
    assert found.best is found.blind
    assert found.rounds[-1].objective > 1.05 * found.best.objective
