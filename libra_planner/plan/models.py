"""The shape of plan, workload and price-book files (pydantic, frozen, nothing extra)."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    SkipValidation,
    Tag,
    WithJsonSchema,
    model_validator,
)

from libra_planner.errors import close_names, shown
from libra_planner.fabric.blocks import BLOCKS
from libra_planner.plan.architectures.transformers import ArchitectureSpec
from libra_planner.plan.loops import BubbleFraction, LoopSpec, WrittenLoopSpec
from libra_planner.plan.options import BillOptionsSpec, LinkOptionsSpec, Pricing
from libra_planner.plan.prices import AnyNpuSpec, FixedCostSpec, NpuSpec
from libra_planner.plan.quotes import QuoteKeys
from libra_planner.plan.realization import RealizationSpec
from libra_planner.plan.scale_up import AnyScaleUp
from libra_planner.plan.steps.strategies import DegreesSpec, ExchangesSpec, OverlapSpec
from libra_planner.reading.document import is_number
from libra_planner.reading.models import (
    Bytes,
    Count,
    CountOrAuto,
    Duration,
    FileModel,
    Kind,
    Model,
    Rate,
    SourceText,
    Text,
)
from libra_planner.step.collectives.algorithms import MAX_CHUNKS

_MOST_NS = 1e12


def _latencies(value: Any) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    for one in values:
        if not is_number(one) or not 0 <= one <= _MOST_NS:
            expected = f"expected ns from 0 to {_MOST_NS:g}, or a list with one per dimension"
            raise ValueError(f"got {shown(one)}, {expected}")
    return tuple(float(one) for one in values)


Chunks: TypeAlias = Annotated[int | Literal["auto"], CountOrAuto(MAX_CHUNKS)]
"""Chunks of every collective: a number, or the best of the powers of two."""

Latencies: TypeAlias = Annotated[
    tuple[float, ...],
    BeforeValidator(_latencies),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}),
]
"""Latency of a hop in ns, for all dimensions or for each."""


def _underscored(value: Any) -> Any:
    """Keys with - as keys with _: kinds of collectives are written either way."""
    if not isinstance(value, dict):
        return value
    return {key.replace("-", "_") if isinstance(key, str) else key: v for key, v in value.items()}


class SchedulesSpec(Model):
    """Who sends to whom in collectives that span several dimensions (C13).

    Parameters
    ----------
    all_reduce : hierarchical (default): one dimension after the other; ring: one ring over all
        ranks. Reduce-scatters and all-gathers follow it.
    all_to_all : hierarchical: one dimension after the other; direct: every rank to every other at
        once, the default where the fabric has a stack.
    pxn : a direct all-to-all goes through the scale-up domain to the receiver's rail first, which
        is charged for it: the default where there is one, as in NCCL. false: over the spines.
    """

    all_reduce: Literal["hierarchical", "ring"] = "hierarchical"
    all_to_all: Literal["hierarchical", "direct"] | None = None
    pxn: bool | None = None


CALIBRATED = "calibrated"
"""The fidelity of measured collectives (C20)."""


class FidelitySpec(Model):
    """How closely collectives are modelled (C4); part of every plan.

    Parameters
    ----------
    fidelity : ideal: bytes over bandwidth, as LIBRA; pipelined: chunks that fill and drain the
        dimensions, a latency per step, the real links of partial groups; calibrated: as NCCL was
        measured, on a scale-up switch and a network of NICs.
    system : calibrated: the NPU whose collectives were measured, such as h100-sxm, or a system file
        of calibrate; without it the NPU of npu.
    interconnect : calibrated: infiniband (default) or ethernet.
    chunks : pipelined: equal parts that each collective is cut into, or auto (default).
    algorithms : pipelined and check: ring, direct, direct1, halving_doubling or default, for each
        dimension.
    in_network_reduction : Switches that reduce, by dimension (dim4) or tier.
    scheduler : hierarchical: dimensions in order; balanced: the best split of every collective over
        orders of the dimensions, optimised together with the bandwidths (ideal only).
    schedules : Who sends to whom in collectives over several dimensions.
    """

    fidelity: Literal["ideal", "pipelined", "calibrated"] = "ideal"
    system: Text | None = None
    interconnect: Literal["infiniband", "ethernet"] | None = None
    chunks: Chunks | None = None
    algorithms: list[Text] | None = None
    in_network_reduction: list[Text] = Field([])
    scheduler: Literal["hierarchical", "balanced"] = "hierarchical"
    schedules: Annotated[SchedulesSpec, BeforeValidator(_underscored)] = SchedulesSpec()


class FabricSpec(Model):
    """The topology and the price tier of every dimension.

    Parameters
    ----------
    tiers : Price tier of each dimension, innermost first.
    scale_up : The part that the innermost dimensions are, such as nvlink4-8 or nvl72.
    link_options : Purchasable speeds by dimension (dimN, or a tier that occurs once); a dimension
        that is not listed may have any bandwidth.
    bill_options : What prices: bill chooses from: NICs, tapers and switches.
    latency_ns : Latency of a hop, for all dimensions or for each; a switch is 2.
    realization : How the dimensions are built from whole links, for check.
    """

    topology: Text = Field(
        description="Dimensions from the innermost, such as RI(4)_FC(8)_RI(4)_SW(32): "
        + ", ".join(f"{one.notation} {one.about}" for one in BLOCKS.values())
        + " (or the long names), with NPUs per group."
    )
    tiers: list[Text]
    scale_up: AnyScaleUp | None = None
    link_options: LinkOptionsSpec | None = None
    bill_options: BillOptionsSpec | None = None
    latency_ns: Latencies | None = None
    # Read in plan.realization, which knows the names of the dimensions.
    realization: SkipValidation[RealizationSpec | None] = None


class GroupsSpec(Model):
    """Group sizes per phase, one per dimension; 1 where a dimension is not used.

    Parameters
    ----------
    forward, input_grad, weight_grad : NPUs of a group that exchanges in this phase, in each
        dimension from the innermost, such as [8, 1]; 1 where a dimension is not used.
    """

    forward: list[Count]
    input_grad: list[Count]
    weight_grad: list[Count]


def _parallelism_kind(value: Any) -> str:
    """Which kind is meant, so that faults are those of one kind."""
    given = set(value) if isinstance(value, dict) else set()
    explicit = bool(given & set(GroupsSpec.model_fields)) or isinstance(value, GroupsSpec)
    return Kind.GROUPS if explicit else Kind.DEGREES


AUTO_PARALLELISM = "auto"
"""What a plan writes whose strategy is searched."""
REST = "rest"
"""Its key where some degrees are fixed and the rest is searched."""


def is_auto(parallelism: object) -> bool:
    """Whether a plan says that its strategy is searched, or what it does not fix of it.

    >>> is_auto("Auto"), is_auto({"tp": 2, "rest": "auto"}), is_auto({"tp": 2, "dp": 8})
    (True, True, False)
    """
    rest = parallelism.get(REST) if isinstance(parallelism, dict) else parallelism
    return isinstance(rest, str) and rest.strip().lower() == AUTO_PARALLELISM


def open_degrees(plan: object, named: Iterable[str]) -> None:
    """Let dotted keys such as ``parallelism.tp`` fix degrees of a plan that says auto, in place.

    >>> plan = {"parallelism": "auto"}
    >>> open_degrees(plan, ["parallelism.tp"])
    >>> plan
    {'parallelism': {'rest': 'auto'}}
    """
    if isinstance(plan, dict) and isinstance(plan.get("parallelism"), str):
        is_fixed = any(name.startswith("parallelism.") for name in named)
        if is_fixed and is_auto(plan["parallelism"]):
            plan["parallelism"] = {REST: AUTO_PARALLELISM}


_SOME_DEGREES = "expected degrees such as {tp: 8, dp: 64}"


def _not_auto(value: Any) -> Any:
    """Degrees are said, or searched before a plan of one workload is built."""
    if isinstance(value, str) or is_auto(value):
        fix = "auto is for plans of one workload, not for those of a group: search each in a plan "
        fix += "of its own under the same rules, and write the degrees that it finds here; the "
        fix += "best taper depends on them, so search again at the bandwidths of the group"
        raise ValueError(f"got {shown(value)}, {_SOME_DEGREES}; {fix}")
    return value


def _no_other_word(value: Any) -> Any:
    """In a plan of one workload, auto is the only word."""
    if isinstance(value, str) and not is_auto(value):
        near = "; did you mean auto?" if close_names(value, [AUTO_PARALLELISM]) else ""
        raise ValueError(f"got {shown(value)}, {_SOME_DEGREES}, or {AUTO_PARALLELISM}{near}")
    return value


ParallelismSpec: TypeAlias = Annotated[
    Annotated[DegreesSpec, Tag(Kind.DEGREES)] | Annotated[GroupsSpec, Tag(Kind.GROUPS)],
    Discriminator(_parallelism_kind),
    BeforeValidator(_not_auto),
]


class TrainingSpec(Model):
    """What is trained, and how it is spread over the NPUs.

    Parameters
    ----------
    workload : A bundled workload's name, or a path to a workload file.
    parallelism : Degrees, or group sizes per phase as LIBRA's communicator files have them; auto
        searches the best strategy, in plans of one workload, and {tp: 2, rest: auto} the best with
        tp 2.
    global_batch : Sequences per step; -libra workloads bring their own.
    npu : The NPU, such as h100-sxm, whose kernels compute the step of a whole model; or a compute
        rate of tp and dp alone, by default the workload's own; and memory.
    sequence_tokens : Tokens of a sequence, by default the workload's.
    library : Whose defaults hold, such as megatron-core (default), fsdp, megatron-2021.
    overlap : Communication that hides behind compute, by axis; the rest is the library's.
    exchanges : Numbers and ways of exchanges, where they are not the library's.
    memory : refuse (default): a model that does not fit its NPUs is infeasible; certain: also one
        that fits by less than such figures are off; ignore: it is said.
    """

    workload: Text
    parallelism: ParallelismSpec
    global_batch: Count | None = None
    npu: AnyNpuSpec | None = None
    sequence_tokens: Count | None = None
    library: Text | None = None
    overlap: OverlapSpec | None = None
    exchanges: ExchangesSpec | None = None
    memory: Literal["refuse", "certain", "ignore"] = "refuse"


class CommonSpec(FidelitySpec, QuoteKeys):
    """What every plan says: on what fabric, at what prices, under which rules.

    Parameters
    ----------
    fabric : What joins the NPUs: topology, price tiers, speeds to choose from and links.
    cost_model : A bundled price book's name, or a path to one.
    prices : linear (default): the price book's, per bandwidth; bill: whole parts, at the exact
        money of the bill that report prints, chosen from fabric.bill_options.
    training_loop : How compute and communication follow one another; by default no_overlap, but in
        the step of a whole model what library and overlap say.
    contention : Whether overlapped communication competes for a dimension.
    bubble_fraction : Pipeline bubble over the step's work: (stages - 1)/micro-batches.
    objective : performance: the least step time; performance_per_cost: the least step time times
        cost; cost: the least cost.
    fixed_cost : Cost of the NPUs and the rest of the system, such as 120 M$, or its parts; with it
        cost means system cost.
    constraints : Design rules such as 'total == 500 GB/s' or 'dim1 >= dim2'.
    """

    fabric: FabricSpec
    cost_model: Text
    prices: Pricing = "linear"
    training_loop: LoopSpec | None = None
    contention: bool = True
    bubble_fraction: BubbleFraction = 0.0
    objective: Literal["performance", "performance_per_cost", "cost"] = "performance"
    fixed_cost: FixedCostSpec | None = None
    constraints: Annotated[list[Text], Field(max_length=1000)] = Field([])

    @property
    def layer_loop(self) -> str | WrittenLoopSpec:
        """The training loop of what is no whole model: the plan's, else nothing overlaps."""
        return self.training_loop or "no_overlap"


class PlanSpec(CommonSpec, TrainingSpec):
    """A plan: what is trained, on what fabric, at what prices, under which rules."""

    parallelism: Annotated[ParallelismSpec, BeforeValidator(_no_other_word)]

    group_objective: ClassVar[Literal["weighted"]] = "weighted"


class ComputeSpec(Model):
    """Compute rate a workload assumes: MACs per second, or an NPU and its efficiency.

    Parameters
    ----------
    macs_per_s : Multiply-accumulates per second that one NPU sustains, each of them 2
        floating-point operations, such as 100e12; instead of npu.
    npu : Peak of one NPU and the share of it that a step sustains; instead of macs_per_s.
    """

    macs_per_s: Rate | None = None
    npu: NpuSpec | None = None

    example: ClassVar = MappingProxyType({"npu": NpuSpec.example})

    @model_validator(mode="after")
    def _exactly_one(self) -> ComputeSpec:
        if len(self.given("macs_per_s", "npu")) != 1:
            raise ValueError("expected either macs_per_s or npu")
        return self


CoversSpec: TypeAlias = Annotated[
    Literal["step", "part"] | None,
    Field(
        description="step: a whole training step, so that runs are so many of it; part: no run is "
        "told. By default step for a transformer with a vocabulary, else part."
    ),
]


class WorkloadSpec(FileModel):
    """What every kind of workload file says.

    Parameters
    ----------
    assumptions : What was assumed, a sentence each. Results print them as notes.
    """

    source: SourceText
    covers: CoversSpec = None
    assumptions: list[Text] = Field(default=[])


class TransformerSpec(WorkloadSpec):
    """A workload generated from a transformer's architecture.

    Parameters
    ----------
    architecture : Shape of the model: layers, widths, heads and more.
    compute : Compute rate of one NPU where the plan says none. A plan that names its npu needs
        none: the step of a whole model has the kernels of its NPU.
    dtype_bytes : Bytes of a weight, and of a number that is exchanged; 2 as in bf16. The step of a
        whole model has those of its library instead.
    sequences_per_replica : Sequences per step of one replica, when no plan says otherwise.
    table : libra: laid out and rounded as LIBRA's published tables.
    """

    kind: Literal["transformer"]
    architecture: ArchitectureSpec
    compute: ComputeSpec | None = None
    dtype_bytes: Count = 2
    sequences_per_replica: Count | None = None
    table: Literal["megatron", "libra"] = "megatron"


class CollectiveSpec(Model):
    """One collective; an all-gather says shard_bytes or full_bytes, the others size_bytes.

    Parameters
    ----------
    kind : Pattern of the exchange.
    size_bytes : Bytes of the full vector, as every NPU has it; not for an all-gather.
    shard_bytes : Bytes of the part that one NPU holds before an all-gather.
    full_bytes : Bytes of the full vector: after an all-gather what every NPU holds, else the same
        as size_bytes.
    group : Parallel group; by default tp, and dp for weight gradients.
    """

    kind: Literal["all-reduce", "reduce-scatter", "all-gather", "all-to-all"]
    size_bytes: Bytes | None = None
    shard_bytes: Bytes | None = None
    full_bytes: Bytes | None = None
    group: Literal["tp", "dp"] | None = None

    @model_validator(mode="after")
    def _sizes(self) -> CollectiveSpec:
        gather = self.kind == "all-gather"
        given = self.given("size_bytes", "shard_bytes", "full_bytes")
        allowed = ("shard_bytes", "full_bytes") if gather else ("size_bytes", "full_bytes")
        if len(given) != 1 or given[0] not in allowed:
            got = " and ".join(given) or "no size"
            raise ValueError(f"got {got} for {self.kind}, expected one of {' or '.join(allowed)}")
        return self


class OperationSpec(Model):
    """One phase of one operator: compute time in one of four units, a collective, or both.

    Parameters
    ----------
    layer : Name of the layer, such as attention; operations of one name that follow one another
        are one layer.
    phase : Part of the step: forward pass, gradient of the layer's input, or of its weights.
    compute_ns, compute_us, compute_ms, compute_s : Time that an NPU computes each time the
        operation runs, in the unit that the key ends with. Write one of the four, or none beside a
        collective.
    collective : What the NPUs exchange in this operation; by default nothing.
    count : How often the operation runs in a step, one run after the other.
    """

    layer: Text
    phase: Literal["forward", "input_grad", "weight_grad"]
    compute_ns: Duration | None = None
    compute_us: Duration | None = None
    compute_ms: Duration | None = None
    compute_s: Duration | None = None
    collective: CollectiveSpec | None = None
    count: Count = 1

    @model_validator(mode="after")
    def _one_time(self) -> OperationSpec:
        names = ("compute_ns", "compute_us", "compute_ms", "compute_s")
        given = self.given(*names)
        if len(given) > 1:
            raise ValueError(f"got {' and '.join(given)}, expected one of them")
        if not given and self.collective is None:
            raise ValueError(f"got neither a collective nor one of {', '.join(names)}")
        return self


class TableSpec(WorkloadSpec):
    """A workload that lists its operations outright.

    Parameters
    ----------
    operations : What an NPU does in a step, in order: it computes, exchanges, or both.
    tokens_per_step : Tokens of a step over the whole cluster, for runs.
    """

    kind: Literal["table"]
    operations: Annotated[list[OperationSpec], Field(min_length=1)]
    tokens_per_step: Count | None = None


class MemberSpec(TrainingSpec):
    """One workload of a group.

    Parameters
    ----------
    weight : Its share of the group; shares are divided by their sum.
    name : What reports call it; by default the workload's name.
    """

    weight: Annotated[float, Field(ge=1e-6, le=1e6)] = 1.0
    name: Text | None = None


class GroupPlanSpec(CommonSpec):
    """A plan for several workloads on one fabric.

    Parameters
    ----------
    workloads : Instead of workload: what the fabric is for, each with its parallelism.
    group_objective : weighted: the mean step time; relative, worst_case: the mean or the largest of
        step time over each workload's own optimum.
    """

    workloads: Annotated[list[MemberSpec], Field(min_length=1, max_length=100)]
    group_objective: Literal["weighted", "relative", "worst_case"] = "weighted"


AnyPlanSpec: TypeAlias = PlanSpec | GroupPlanSpec
