"""What is trained on a fabric, one workload or a group, and what its time means (C8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from libra_planner.errors import Fault, SpecError, unknown_name
from libra_planner.frozen import Frozen
from libra_planner.step import expression as tree
from libra_planner.step.collectives import models
from libra_planner.step.collectives.algorithms import own_link_factors, real_link_slowdown
from libra_planner.step.collectives.calibrated import Calibrated, SlowedCalibrated
from libra_planner.step.expression import Array
from libra_planner.step.layers import Training
from libra_planner.step.memory_use import MemoryUse
from libra_planner.step.model_training import ModelTraining
from libra_planner.workload import operations as work

GROUP_OBJECTIVES = ("weighted", "relative", "worst_case")
"""What a group minimises: sum w_i T_i, sum w_i T_i / T_i* or max T_i / T_i* (C8)."""

_WEIGHT_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Member:
    """One workload of a group.

    Parameters
    ----------
    name : what reports call it; unlike any other of the group.
    weight : its share w_i; the weights of a group sum to 1.
    step_time : T_i(B), seconds.
    real_link_step_time : T_i(B) when partial groups have only their own links (C6);
        ``None`` without partial groups.
    training : what the times are of; ``None`` for times of another source.
    """

    name: str
    weight: float
    step_time: tree.TimeExpression
    real_link_step_time: tree.TimeExpression | None = None
    training: Training | ModelTraining | None = field(default=None, repr=False)

    @property
    def memory(self) -> work.ModelStates | MemoryUse | None:
        """What its model needs on an NPU (C19); ``None`` where that is not known."""
        if isinstance(self.training, ModelTraining):
            return self.training.memory
        return self.training.workload.memory if self.training else None


def has_partial_groups(training: Training | ModelTraining) -> bool:
    """Whether real links slow down any of its collectives (C6)."""
    topology = training.network.topology
    return any(
        bool(np.any(real_link_slowdown(one.collective, one.group, topology) > 1))
        for one in training.communications
    )


def has_slow_sends(training: Training | ModelTraining) -> bool:
    """Whether sends to a neighbour have only some of an NPU's direct links."""
    topology = training.network.topology
    sends = training.sends if isinstance(training, ModelTraining) else ()
    return any(bool(np.any(own_link_factors(topology, one.group) > 1)) for one in sends)


def member(
    training: Training | ModelTraining, name: str, weight: float, model: models.CollectiveModel
) -> Member:
    """A workload under a model of collectives.

    Raises
    ------
    SpecError
        For an algorithm that cannot run.
    """
    time, own_links = training.step_time(model), None
    is_slower = has_partial_groups(training) or has_slow_sends(training)
    if not model.has_own_links and is_slower:
        balances = isinstance(model, models.Balanced)
        real = models.Balanced(models.OwnLinks()) if balances else models.OwnLinks()
        own_links = training.step_time(real)
        own_links = own_links if own_links.root != time.root else None
    return Member(name, weight, time, own_links, training)


def _sent_bytes(training: Training | ModelTraining, model: models.CollectiveModel) -> Array:
    """Bytes of a step's collectives and sends by dimension, shape (n_dims,)."""
    network, total = training.network, np.zeros(training.network.topology.n_dims)
    for one in training.communications:
        total = total + one.count * model.occupied(one.collective, one.group, network)
    for sent in training.sends if isinstance(training, ModelTraining) else ():
        total = total + sent.count * model.send_occupied(sent.size_bytes, sent.group, network)
    return total


@dataclass(frozen=True)
class BalancedStep:
    """A step whose collectives split their data over orders of the dimensions, at one vector.

    Parameters
    ----------
    step_time_s : T with the best splits, that of the model.
    fixed_order_step_time_s : T if all collectives visit the dimensions from dim1 outwards.
    aggregate_bound_s : T if every collective could use all bandwidth of its dimensions:
        no schedule of the collectives is faster.
    """

    step_time_s: float
    fixed_order_step_time_s: float
    aggregate_bound_s: float

    @property
    def gain(self) -> float:
        """Step time of the fixed order over that of balanced schedules, 1 or more."""
        return self.fixed_order_step_time_s / self.step_time_s if self.step_time_s else 1.0


@dataclass(frozen=True)
class Step(Frozen):
    """What is trained, and how long a step of it takes under a model of collectives.

    Parameters
    ----------
    members : the workloads; one, unless it is a group.
    name : what reports call them together.
    is_group : whether the time is the weighted mean of the members'.
    model : of collectives.
    """

    members: tuple[Member, ...]
    name: str = ""
    is_group: bool = False
    model: models.CollectiveModel = field(default_factory=models.Ideal)

    @cached_property
    def time(self) -> tree.TimeExpression:
        """T(B), seconds."""
        return weighted_time(self.members) if self.is_group else self.members[0].step_time

    @cached_property
    def real_link_time(self) -> tree.TimeExpression | None:
        """T(B) when partial groups have only their own links (C6); ``None`` without any."""
        if not self.is_group:
            return self.members[0].real_link_step_time
        has_partial = any(member.real_link_step_time for member in self.members)
        return weighted_time(self.members, real_links=True) if has_partial else None

    @property
    def trainings(self) -> tuple[Training | ModelTraining, ...]:
        """What the time is of; empty for one of another source."""
        return tuple(member.training for member in self.members if member.training)

    @property
    def whole_training(self) -> ModelTraining | None:
        """The only model that is trained; ``None`` for groups and steps of tp and dp alone."""
        only = self.trainings[0] if len(self.trainings) == 1 else None
        return only if isinstance(only, ModelTraining) else None

    @cached_property
    def communications(self) -> tuple[work.Communication, ...]:
        """The distinct collectives of a step; of a group, all members'."""
        return tuple(one for training in self.trainings for one in training.communications)

    @property
    def workload(self) -> work.Workload | None:
        """The only workload; ``None`` for a group, and for a time of another source."""
        return None if self.is_group or not self.trainings else self.trainings[0].workload

    @property
    def n_sequences(self) -> int | None:
        """Sequences per step over the whole cluster; ``None`` where nobody knows."""
        return self.workload.n_sequences if self.workload else None

    @property
    def tokens_per_step(self) -> int | None:
        """Over the whole cluster; ``None`` where nobody knows, and for groups."""
        return self.workload.tokens_per_step if self.workload else None

    @property
    def memory(self) -> work.ModelStates | MemoryUse | None:
        """What the model needs on an NPU (C19); ``None`` for a group, whose members have it."""
        return None if self.is_group else self.members[0].memory

    @property
    def memories(self) -> dict[str, work.ModelStates | MemoryUse]:
        """What the models need on an NPU (C19), by workload; without those that do not know it."""
        found = ((member.name, member.memory) for member in self.members)
        return {name: memory for name, memory in found if memory is not None}

    @property
    def covers(self) -> work.Covers:
        """``part`` where any workload is part of a step: no run is told of it (C21)."""
        whole = [one.workload.covers is work.Covers.STEP for one in self.trainings]
        return work.Covers.STEP if whole and all(whole) else work.Covers.PART

    @property
    def fix(self) -> str:
        """What to write to have a whole step; empty where it is one."""
        workloads = (one.workload for one in self.trainings)
        return next((one.step_fix for one in workloads if one.covers is work.Covers.PART), "")

    def busy_s(self, bandwidth_bytes_per_s: Array) -> Array:
        """Time in which an NPU sends over each dimension in a step, seconds, shape (n_dims,).

        Bytes of all collectives and sends over bandwidth, by the model of collectives; of a
        pipeline those of its fullest kinds of stages. Of a group the weighted mean. What hides
        behind compute counts, so that it is no part of the step time. Not a number where it would
        send over no bandwidth: a loop of one's own may leave its communication out.

        Examples
        --------
        >>> from libra_planner.reading.bundled import example
        >>> from libra_planner.plan.problem import load_plan
        >>> problem = load_plan(example("01_gpt3_4d"))
        >>> (problem.step.busy_s(np.full(4, 125e9)) * 1e3).round(3).tolist()
        [86.973, 25.367, 2.718, 0.878]
        """
        bandwidth = np.asarray(bandwidth_bytes_per_s, dtype=np.float64)
        sent = self._sent
        without = np.where(sent > 0, np.nan, 0.0)
        return np.divide(sent, bandwidth, out=without, where=(sent > 0) & (bandwidth > 0))

    @cached_property
    def _sent(self) -> Array:
        """What an NPU sends over each dimension in a step, shape (n_dims,)."""
        total = np.zeros(self.time.n_dims)
        for one in self.members:
            if one.training is not None:
                total = total + one.weight * _sent_bytes(one.training, self.model)
        return total

    def under(self, model: models.CollectiveModel) -> Step:
        """The same step under another model of collectives.

        Raises
        ------
        SpecError
            For a step of another source than trainings.
        """
        if len(self.trainings) < len(self.members):
            raise SpecError(Fault("got a problem without collectives", "expected one of a plan"))
        members = tuple(
            member(training, one.name, one.weight, model)
            for training, one in zip(self.trainings, self.members, strict=True)
        )
        return replace(self, members=members, model=model)

    def slowed(self, slowdown: models.Slowdown) -> Step:
        """The step where collectives take longer than its model says."""
        if self.model.is_slowed:
            raise ValueError(f"{self.model} cannot be slowed down")
        if isinstance(self.model, models.Pipelined):
            return self.under(models.SlowedPipelined(self.model.n_chunks, slowdown=slowdown))
        if isinstance(self.model, models.Balanced):
            return self.under(models.Balanced(models.SlowedIdeal(slowdown=slowdown)))
        if isinstance(self.model, Calibrated):
            return self.under(SlowedCalibrated(**vars(self.model), slowdown=slowdown))
        return self.under(models.SlowedIdeal(slowdown=slowdown))

    def band_s(self, bandwidth_bytes_per_s: Array) -> tuple[float, float] | None:
        """T at the ends of its error band (C23).

        Of the step of a whole model that of its class of published runs; of others, all
        collectives at either end of theirs and compute as it is. ``None`` where the model, or the
        compute of a whole model, has no measured class.
        """
        model = self.model
        if not isinstance(model, Calibrated):
            return None
        if self.has_kernels:
            return self.band_around_s(float(self.time.seconds(bandwidth_bytes_per_s)))
        ends = (replace(model, side=side) for side in (-1, 1))
        low_s, high_s = (self._mean_time(end, bandwidth_bytes_per_s) for end in ends)
        return low_s, high_s

    def band_around_s(self, step_s: float) -> tuple[float, float] | None:
        """The band of a time of this step by its class of published runs; ``None`` without one."""
        error = self.error_fraction
        return None if error is None else (step_s / (1 + error), step_s / (1 - error))

    @cached_property
    def sends(self) -> tuple[work.Send, ...]:
        """The distinct sends of a step outside of collectives; of a group, all members'."""
        models_in = (one for one in self.trainings if isinstance(one, ModelTraining))
        return tuple(send for training in models_in for send in training.sends)

    @property
    def has_kernels(self) -> bool:
        """Whether kernels of an NPU make the compute, which then needs a class of its own."""
        return any(isinstance(one, ModelTraining) for one in self.trainings)

    @property
    def error_fraction(self) -> float | None:
        """Error of its class of published runs; ``None`` for groups, and without such a class."""
        training = None if self.is_group else self.members[0].training
        return training.error_fraction if isinstance(training, ModelTraining) else None

    def exact_step_time_s(self, bandwidth_bytes_per_s: Array) -> float | None:
        """T by the exact flow shop; ``None`` where the model has no chunks to simulate."""
        if not isinstance(self.model, models.Pipelined) or self.model.is_slowed:
            return None
        vector = tuple(bandwidth_bytes_per_s.tolist())
        return self._mean_time(models.Simulated(self.model.n_chunks, vector), bandwidth_bytes_per_s)

    def balanced(self, bandwidth_bytes_per_s: Array) -> BalancedStep | None:
        """T with balanced schedules; ``None`` where the plan does not ask for it."""
        if not isinstance(self.model, models.Balanced):
            return None
        bound = models.AggregateBound(tuple(bandwidth_bytes_per_s.tolist()))
        times = (self._mean_time(one, bandwidth_bytes_per_s) for one in (self.model.of, bound))
        return BalancedStep(float(self.time.seconds(bandwidth_bytes_per_s)), *times)

    @property
    def in_fixed_order(self) -> Step | None:
        """The same step without balanced schedules; ``None`` where it has none anyway."""
        return self.under(self.model.of) if isinstance(self.model, models.Balanced) else None

    def _mean_time(self, model: models.CollectiveModel, bandwidth: Array) -> float:
        """T under a model of collectives at one vector; of a group, the weighted mean."""
        steps = (float(one.step_time(model).seconds(bandwidth)) for one in self.trainings)
        weights = (member.weight for member in self.members)
        return sum(weight * step for weight, step in zip(weights, steps, strict=True))


def plain_step(time: tree.TimeExpression, name: str = "") -> Step:
    """A step whose time is all that is known of it."""
    return Step((Member(name, 1.0, time),), name)


def weighted_time(members: Sequence[Member], *, real_links: bool = False) -> tree.TimeExpression:
    """Weighted mean of the members' step times, sum w_i T_i (C8; LIBRA, SC'22).

    Labels of operations begin with their member's name.

    Parameters
    ----------
    members : the group, one or more, on the same fabric.
    real_links : take each member's time on its real links where it has one.

    Raises
    ------
    SpecError
        For weights that are not positive or do not sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from libra_planner.step.expression import transfers
    >>> times = [tree.TimeExpression(transfers([n_bytes]), 1) for n_bytes in (100.0, 400.0)]
    >>> group = [Member("a", 0.5, times[0]), Member("b", 0.5, times[1])]
    >>> float(weighted_time(group).seconds(np.array([50.0])))  # 2 s and 8 s
    5.0
    """
    _check_weights(members)
    terms = [tree.scale(one.weight, _named(one, real_links=real_links)) for one in members]
    return tree.TimeExpression(tree.add(terms), members[0].step_time.n_dims)


def relative_time(
    members: Sequence[Member], own_optima_s: Sequence[float], group_objective: str
) -> tree.TimeExpression:
    """Step times relative to each member's own optimum T_i* (C8), dimensionless.

    ``relative`` is sum w_i T_i / T_i*, ``worst_case`` is max T_i / T_i*; both are 1
    where every member is as fast as it would be alone. Convex and non-increasing in
    bandwidth as the members are.

    Parameters
    ----------
    members : the group, one or more, on the same fabric.
    own_optima_s : T_i*, the least step time of each member under the same rules.
    group_objective : ``relative`` or ``worst_case``.

    Raises
    ------
    SpecError
        For a number of optima that is not the number of members, an optimum that is
        not positive and finite, or another group objective.

    Examples
    --------
    >>> import numpy as np
    >>> from libra_planner.step.expression import transfers
    >>> times = [tree.TimeExpression(transfers([n_bytes]), 1) for n_bytes in (100.0, 400.0)]
    >>> group = [Member("a", 0.75, times[0]), Member("b", 0.25, times[1])]
    >>> bandwidth = np.array([50.0])  # 2 s and 8 s
    >>> float(relative_time(group, [1.0, 8.0], "relative").seconds(bandwidth))
    1.75
    >>> float(relative_time(group, [1.0, 8.0], "worst_case").seconds(bandwidth))
    2.0
    """
    if len(own_optima_s) != len(members):
        got = f"got {len(own_optima_s)} optima for {len(members)} workloads"
        raise SpecError(Fault(got, "expected one each"))
    if not all(0 < optimum_s < math.inf for optimum_s in own_optima_s):
        raise SpecError(Fault(f"got optima {list(own_optima_s)}", "expected positive times"))
    if group_objective not in GROUP_OBJECTIVES[1:]:
        raise unknown_name("group objective", group_objective, GROUP_OBJECTIVES[1:])
    together, weights = tree.maximum, [1.0] * len(members)
    if group_objective == "relative":
        _check_weights(members)
        together, weights = tree.add, [member.weight for member in members]
    found = zip(weights, own_optima_s, members, strict=True)
    terms = [tree.scale(weight / optimum_s, _named(member)) for weight, optimum_s, member in found]
    return tree.TimeExpression(together(terms), members[0].step_time.n_dims)


def _named(member: Member, *, real_links: bool = False) -> tree.Node:
    """A member's tree, its labels under its name."""
    real = member.real_link_step_time if real_links else None
    return _prefixed((real or member.step_time).root, f"{member.name}: ")


def _prefixed(node: tree.Node, prefix: str) -> tree.Node:
    if isinstance(node, tree.Labelled):
        return tree.Labelled(prefix + node.label, node.term)
    return tree.with_terms(node, lambda term: _prefixed(term, prefix))


def _check_weights(members: Sequence[Member]) -> None:
    weights = [member.weight for member in members]
    if not all(weight > 0 for weight in weights) or (
        not abs(math.fsum(weights) - 1) <= _WEIGHT_TOLERANCE
    ):
        raise SpecError(Fault(f"got weights {weights}", "expected positive ones that sum to 1"))
