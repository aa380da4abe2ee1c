"""Random workloads on random fabrics, and a step time that walks their layers in plain floats."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from libra_planner.fabric.topology import parse_topology
from libra_planner.step.collectives.algorithms import Network, plain_network, traffic_bytes
from libra_planner.step.collectives.models import CollectiveModel, Ideal
from libra_planner.step.expression import TimeExpression
from libra_planner.step.layers import LOOPS, Training, TrainingLoop
from libra_planner.workload.operations import (
    Collective,
    CollectiveKind,
    Communicators,
    Operation,
    Phase,
    Workload,
    communicators_from_degrees,
    communicators_from_sizes,
)

IDEAL = Ideal()


def step_time(
    workload: Workload,
    communicators: Communicators,
    n_dims: int,
    *,
    loop: str | TrainingLoop = "no_overlap",
    model: CollectiveModel = IDEAL,
    network: Network | None = None,
) -> TimeExpression:
    """Of a workload on plain switches, or on a network."""
    chosen = TrainingLoop(LOOPS[loop]) if isinstance(loop, str) else loop
    network = network or plain_network(parse_topology("_".join(["SW(2)"] * n_dims)))
    return Training(workload, communicators, network, chosen).step_time(model)


@dataclass(frozen=True)
class Step:
    """A workload whose layers have names of their own, and who communicates."""

    workload: Workload
    communicators: Communicators
    n_dims: int

    def expression(self, name: str, *, contention: bool = True, bubble: float = 0.0):
        loop = TrainingLoop(LOOPS[name], contention=contention, bubble_fraction=bubble)
        return self.under(loop)

    def under(self, loop: TrainingLoop) -> TimeExpression:
        return step_time(self.workload, self.communicators, self.n_dims, loop=loop)

    def seconds(self, name: str, bandwidth: np.ndarray, *, contention: bool = True) -> float:
        """C5 word by word, layer by layer."""
        total = 0.0
        for layer in dict.fromkeys(op.layer for op in self.workload.operations):
            operations = [op for op in self.workload.operations if op.layer == layer]
            total += operations[0].count * self._layer(name, operations, bandwidth, contention)
        return total

    def _layer(self, name, operations, bandwidth, contention) -> float:
        compute: dict[Phase, float] = defaultdict(float)
        seconds: dict[tuple[bool, str], float] = defaultdict(float)
        sent: dict[tuple[bool, str], np.ndarray] = defaultdict(lambda: np.zeros(self.n_dims))
        for op in operations:
            compute[op.phase] += op.compute_s
            if op.collective:
                n_bytes = traffic_bytes(
                    op.collective, self.communicators.group(op.phase, op.collective.group)
                )
                key = (op.phase is Phase.FORWARD, self._side(op))
                sent[key] += n_bytes
                seconds[key] += max(b / w for b, w in zip(n_bytes, bandwidth, strict=True))
        forward = compute[Phase.FORWARD] + seconds[True, "tp"] + seconds[True, "dp"]
        input_grad, weight_grad = compute[Phase.INPUT_GRAD], compute[Phase.WEIGHT_GRAD]
        tp, dp = seconds[False, "tp"], seconds[False, "dp"]
        if name == "no_overlap":
            return forward + input_grad + weight_grad + tp + dp
        shared = [0.0]
        for i in range(self.n_dims):
            both = (sent[False, "tp"][i], sent[False, "dp"][i])
            if contention and min(both) > 0:
                shared.append(sum(both) / bandwidth[i])
        if name == "tp_dp_overlap":
            return forward + input_grad + max(tp, weight_grad + dp, *shared)
        return forward + max(input_grad + weight_grad + tp, dp, *shared)

    def _side(self, op: Operation) -> str:
        if self.communicators.explicit:
            return "dp" if op.phase is Phase.WEIGHT_GRAD else "tp"
        return op.collective.group


@st.composite
def fabrics(draw: st.DrawFn) -> tuple[Communicators, int]:
    """Fabrics of powers of two under degrees or group sizes per phase."""
    logs = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    topology = parse_topology("_".join(f"SW({2**n})" for n in logs))
    if draw(st.booleans()):
        tp = draw(st.integers(0, sum(logs)))
        degrees = {"tp": 2**tp, "dp": 2 ** (sum(logs) - tp)}
        return communicators_from_degrees(topology, degrees), len(logs)
    sizes = {phase: tuple(2 ** draw(st.integers(0, n)) for n in logs) for phase in Phase}
    return communicators_from_sizes(topology, sizes), len(logs)


@st.composite
def collectives(draw: st.DrawFn) -> Collective:
    size = draw(st.floats(0.1, 10)) * 10.0 ** draw(st.integers(7, 9))
    kind = draw(st.sampled_from(CollectiveKind))
    return Collective(kind, size, draw(st.sampled_from(["tp", "dp"])))


@st.composite
def layers(draw: st.DrawFn, name: str) -> list[Operation]:
    """Up to two operations a phase, all carried out equally often."""
    count = draw(st.sampled_from([1, 1, 2, 96]))
    compute = st.sampled_from([0.0, 1e-3, 0.02, 0.5])
    return [
        Operation(name, phase, draw(compute), draw(st.none() | collectives()), count)
        for phase in Phase
        for _ in range(draw(st.integers(0, 2)))
    ]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    communicators, n_dims = draw(fabrics())
    operations = [op for i in range(draw(st.integers(1, 4))) for op in draw(layers(f"l{i}"))]
    return Step(Workload("random", tuple(operations)), communicators, n_dims)
