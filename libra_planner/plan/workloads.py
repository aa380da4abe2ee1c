"""Workload files into workloads, and whether one holds a whole step (C21)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, SpecError, refuse
from libra_planner.files import read_text
from libra_planner.plan import models
from libra_planner.plan.architectures.cnn import CnnSpec, cnn
from libra_planner.plan.architectures.dlrm import DlrmSpec, dlrm
from libra_planner.plan.architectures.settings import (
    PlanSettings,
    macs_per_s,
    per_replica,
    rate_notes,
)
from libra_planner.plan.architectures.transformers import transformer
from libra_planner.reading.document import Document, parse_document
from libra_planner.reading.models import validated
from libra_planner.registry import Registry
from libra_planner.units import FLOP_PER_MAC, UNITS
from libra_planner.workload import convolutional, dense
from libra_planner.workload import operations as ops
from libra_planner.workload.transformer import Transformer

_TRAINING = 3
"""Work of a training step over that of its forward pass: both gradients are as long."""
_A_WHOLE_MODEL = "train a workload of a whole step, such as 'workload: gpt3'"


def _transformer_fix(spec: models.TransformerSpec, file: str) -> str | None:
    if spec.table == "libra":
        return None
    return f"add 'vocabulary' to the architecture in {file}: embedding and logits are missing"


def _table_fix(_: models.TableSpec, file: str) -> str:
    return (
        f"if {file} lists a whole step, add 'covers: step' and 'tokens_per_step: N' to it, "
        f"else {_A_WHOLE_MODEL}"
    )


def load_workload(path: Path, settings: PlanSettings) -> ops.Workload:
    """The operations of a workload file under a plan's settings.

    Raises
    ------
    SpecError
        For a file that is not a workload, or settings that do not fit it.
    """
    return _workload(path, read_text(path), settings)


def load_transformer(path: Path) -> Transformer:
    """The shape of the transformer that a workload file describes.

    Raises
    ------
    SpecError
        For a file that is no transformer.

    Examples
    --------
    >>> from libra_planner.reading import bundled
    >>> gpt3 = load_transformer(bundled.resolve("workloads", "gpt3", None))
    >>> gpt3.n_layers, gpt3.ffn.width, gpt3.n_parameters
    (96, 49152, 174604234752)
    """
    return transformer(path.stem, transformer_spec(path).architecture)


def transformer_of(path: Path) -> Transformer | None:
    """The shape in a workload file; ``None`` for one of another kind.

    Raises
    ------
    SpecError
        For a file that is not a workload.
    """
    spec = _spec(path, read_text(path))
    if not isinstance(spec, models.TransformerSpec):
        return None
    return transformer(path.stem, spec.architecture)


def transformer_spec(path: Path) -> models.TransformerSpec:
    """What a workload file says of a transformer; errors as :func:`load_transformer`."""
    spec = _spec(path, read_text(path))
    if isinstance(spec, models.TransformerSpec):
        return spec
    fix = "name a transformer, such as 'workload: llama3-70b'"
    raise SpecError(Fault(f"got kind {spec.kind!r} in {path}", "expected a transformer", fix))


@dataclass(frozen=True)
class ModelFacts:
    """What a list of workloads says of a model.

    Parameters
    ----------
    n_parameters, n_active_parameters : all, and those that a token meets.
    n_layers : of a transformer or a convolutional network.
    training_flops : of one token, image or sample in training, no activation computed twice (C18).
    """

    n_parameters: int
    n_active_parameters: int
    n_layers: int | None
    training_flops: float


def model_facts(path: Path) -> ModelFacts | None:
    """What a workload file says of its model; ``None`` for a list of operations.

    Raises
    ------
    SpecError
        For a file that is not a workload.
    """
    spec = _spec(path, read_text(path))
    return WORKLOADS[spec.kind].facts(spec)


@lru_cache(maxsize=32)
def _workload(path: Path, text: str, settings: PlanSettings) -> ops.Workload:
    """The workload that a file holds: kept by its text, so a changed file is read anew."""
    spec = _spec(path, text)
    kind = WORKLOADS[spec.kind]
    workload = kind.build(path.stem, spec, settings)
    if spec.covers is not None:
        workload = replace(workload, covers=ops.Covers(spec.covers))
    if workload.covers is ops.Covers.STEP:
        return workload
    fix = None if spec.covers else kind.step_fix(spec, str(path))
    return replace(workload, step_fix=fix or _A_WHOLE_MODEL)


@lru_cache(maxsize=64)
def _spec(path: Path, text: str) -> models.WorkloadSpec:
    document = parse_document(text, str(path))
    kind = document.value.get("kind") if isinstance(document.value, dict) else None
    if kind in list(WORKLOADS):
        return WORKLOADS[kind].read(document)
    got = f"got kind {kind!r}" if kind is not None else "got no kind"
    fix = f"add {' or '.join(repr(f'kind: {name}') for name in WORKLOADS)}"
    if isinstance(document.value, dict) and "model_type" in document.value:
        got = "got a config of Hugging Face"
        fix = "write its workload: libra-planner import huggingface CONFIG -o own.yaml"
    raise SpecError(Fault(got, "expected a workload file", fix, "kind", document.place(("kind",))))


def _transformer_spec(document: Document) -> models.TransformerSpec:
    """The transformer; without embedding and logits it is no whole step."""
    spec = validated(models.TransformerSpec, document)
    is_whole = transformer("", spec.architecture).has_logits and spec.table != "libra"
    if spec.covers != "step" or is_whole:
        return spec
    fix = "add 'vocabulary' to the architecture"
    fix += ", and remove 'table: libra'" if spec.table == "libra" else ""
    expected = "expected part: the step has no embedding and no logits"
    place = document.place(("covers",))
    raise SpecError(Fault("got step", expected, f"{fix}, or remove covers", "covers", place))


def _table_spec(document: Document) -> models.TableSpec:
    """The table, or its faults: a plain size on an all-gather is one in its own words."""
    faults = _plain_sizes(document)
    try:
        spec = validated(models.TableSpec, document)
    except SpecError as error:
        known = {*(f.path for f in faults), *(f.path.rpartition(".")[0] for f in faults)}
        others = [f for f in error.faults if f.path not in known]
        faults += [f for f in others if f.path.rpartition(".")[0] not in known]
    refuse(faults)
    return spec


def _plain_sizes(document: Document) -> list[Fault]:
    """Plain sizes on all-gathers: ambiguous, since LIBRA's files mean the shard (C3)."""
    faults = []
    operations = document.value.get("operations")
    for i, operation in enumerate(operations if isinstance(operations, list) else []):
        collective = operation.get("collective") if isinstance(operation, dict) else None
        if not isinstance(collective, dict) or collective.get("kind") != "all-gather":
            continue
        for name in [name for name in ("size", "size_bytes") if name in collective]:
            key = ("operations", i, "collective", name)
            expected = "expected shard_bytes (what one NPU holds) or full_bytes (the result)"
            path = ".".join(map(str, key))
            got = f"got a plain {name!r} on an all-gather"
            fix = "say which of the two it is"
            faults.append(Fault(got, expected, fix, path, document.key_place(key)))
    return faults


def _transformer(name: str, spec: models.TransformerSpec, settings: PlanSettings) -> ops.Workload:
    training = dense.TrainingSettings(
        sequences_per_replica=per_replica(name, spec.sequences_per_replica, settings, "sequences"),
        tp=settings.tp,
        dp=settings.dp,
        macs_per_s=macs_per_s(spec.compute, settings),
        dtype_bytes=spec.dtype_bytes,
        libra_conventions=spec.table == "libra",
        npu_memory_bytes=settings.npu_memory_bytes,
    )
    workload = dense.transformer_workload(name, transformer(name, spec.architecture), training)
    notes = (*workload.notes, *spec.assumptions, *rate_notes(spec.compute, settings))
    return replace(workload, notes=notes)


def _table(name: str, spec: models.TableSpec, settings: PlanSettings) -> ops.Workload:
    expected = f"expected none: {name} lists its compute times and sizes outright"
    given = [key for key in ("global_batch", "npu") if getattr(settings, key) is not None]
    refuse(Fault("got a value", expected, f"remove {key}", key) for key in given)
    operations = tuple(_operation(operation) for operation in spec.operations)
    notes, tokens = tuple(spec.assumptions), spec.tokens_per_step
    return ops.Workload(name, operations, notes=notes, tokens_per_step=tokens)


def _operation(spec: models.OperationSpec) -> ops.Operation:
    times = {unit: getattr(spec, f"compute_{unit}") for unit in ("ns", "us", "ms", "s")}
    compute_s = sum(value * UNITS["time"][unit] for unit, value in times.items() if value)
    phase = ops.Phase(spec.phase)
    collective = _collective(spec.collective, phase) if spec.collective else None
    return ops.Operation(spec.layer, phase, compute_s, collective, spec.count)


def _collective(spec: models.CollectiveSpec, phase: ops.Phase) -> ops.Collective:
    size = spec.size_bytes or spec.full_bytes or spec.shard_bytes or 0.0
    group = spec.group or ops.DEFAULT_GROUP[phase]
    return ops.Collective(ops.CollectiveKind(spec.kind), size, group, spec.shard_bytes is not None)


@dataclass(frozen=True)
class WorkloadKind:
    """A kind of workload file.

    Parameters
    ----------
    name : what stands behind ``kind`` in the file.
    read : the file's document as a frozen model; raises its faults.
    build : the workload from a name, the model and a plan's settings.
    step_fix : what to write in the file to have a whole step; ``None`` where nothing helps.
    facts : of its model, for lists; ``None`` where it has none to tell.
    """

    name: str
    read: Callable[[Document], models.WorkloadSpec]
    build: Callable[[str, Any, PlanSettings], ops.Workload]
    step_fix: Callable[[Any, str], str | None]
    facts: Callable[[Any], ModelFacts | None] = lambda _: None


WORKLOADS: Registry[WorkloadKind] = Registry("kind of workload")
"""Kinds of workload files by name."""


def register(kind: WorkloadKind) -> WorkloadKind:
    """Let plans train workloads of a kind.

    Raises
    ------
    ValueError
        For a name that another kind has.
    """
    WORKLOADS.add(kind, kind.name)
    return kind


def _cnn_spec(document: Document) -> CnnSpec:
    return validated(CnnSpec, document)


def _dlrm_spec(document: Document) -> DlrmSpec:
    return validated(DlrmSpec, document)


def _no_fix(_: models.WorkloadSpec, _file: str) -> None:
    """What is generated from all layers of a network is a whole step."""


def _transformer_facts(spec: models.TransformerSpec) -> ModelFacts:
    shape = transformer("", spec.architecture)
    counts = shape.n_parameters, shape.n_active_parameters, shape.n_layers
    return ModelFacts(*counts, shape.flops_per_token())


def _cnn_facts(spec: CnnSpec) -> ModelFacts:
    layers = [one.layer for one in spec.layers]
    n_parameters, n_layers = convolutional.n_parameters(layers), sum(one.count for one in layers)
    flops = _TRAINING * FLOP_PER_MAC * convolutional.macs_per_image(layers)
    return ModelFacts(n_parameters, n_parameters, n_layers, flops)


def _dlrm_facts(spec: DlrmSpec) -> ModelFacts:
    shape = spec.architecture.dlrm
    n_rows = len(shape.table_rows) * shape.n_lookups * shape.vector_width
    n_active = shape.n_parameters - shape.n_table_parameters + n_rows
    return ModelFacts(
        shape.n_parameters, n_active, None, _TRAINING * FLOP_PER_MAC * shape.macs_per_sample
    )


register(
    WorkloadKind(
        "transformer", _transformer_spec, _transformer, _transformer_fix, _transformer_facts
    )
)
register(WorkloadKind("table", _table_spec, _table, _table_fix))
register(WorkloadKind("cnn", _cnn_spec, cnn, _no_fix, _cnn_facts))
register(WorkloadKind("dlrm", _dlrm_spec, dlrm, _no_fix, _dlrm_facts))
