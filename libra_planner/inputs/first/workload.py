"""A first workload: the shape of a known model with a comment on every key, to be edited."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from libra_planner.plan.architectures.transformers import (
    ArchitectureSpec,
    ExpertsSpec,
    MlaSpec,
    transformer,
)
from libra_planner.plan.models import TransformerSpec
from libra_planner.plan.workloads import transformer_spec
from libra_planner.reading import bundled
from libra_planner.reading.models import Model

_FIRST = (
    *("n_layers", "hidden", "n_heads", "kv_heads", "head_dim", "ffn", "ffn_multiple"),
    *("experts", "vocabulary", "sequence_tokens"),
)
"""Keys that stand first: the numbers."""
_PARTS: Mapping[str, type[Model]] = {"experts": ExpertsSpec, "mla": MlaSpec}
_EXPERTS = {"n": 64, "topk": 6, "width": 2048, "shared_width": 0}
_COMMENTS_AT = 34


def workload_text(name: str, model: str, beside: Path) -> str:
    """A workload file of a name with the shape of a model.

    Parameters
    ----------
    name : of the file.
    model : a bundled transformer, or a path.
    beside : folder that a path is relative to.

    Raises
    ------
    SpecError
        For what is no transformer.

    Examples
    --------
    >>> print(workload_text("own.yaml", "llama3-70b", Path())[:153])
    # own.yaml: a model of your own. It has the shape of llama3-70b now, 70,553,706,496 parameters:
    # change any number; take the # away from a key to add it
    """
    spec = transformer_spec(bundled.resolve("workloads", model, beside))
    return shape_text(name, model, spec.model_copy(update={"assumptions": []}))


def shape_text(name: str, model: str, spec: TransformerSpec) -> str:
    """A workload file of a name with a shape, which is that of a model.

    Parameters
    ----------
    name : of the file.
    model : what the shape is called.
    spec : what the file says.
    """
    return "".join(f"{line}\n" for line in _lines(name, model, spec))


def _lines(name: str, model: str, spec: TransformerSpec) -> Iterator[str]:
    n_parameters = transformer(name, spec.architecture).n_parameters
    now = f"It has the shape of {model} now, {n_parameters:,} parameters"
    yield f"# {name}: a model of your own. {now}:"
    yield "# change any number; take the # away from a key to add it"
    yield _line("kind: transformer")
    yield _line(f"source: {json.dumps(f'own, from {model}')}", "where its shape comes from")
    yield "architecture:"
    yield from _shape(spec.architecture)
    given = spec.model_dump(mode="json", exclude_unset=True)
    yield _line("compute:", "for plans without 'npu: NAME'; with it kernels tell the time")
    for key, value in given["compute"].items():
        yield f"  {key}: {_flow(value)}"
    told = ("kind", "source", "architecture", "assumptions", "compute")
    for key in sorted(given.keys() - {*told}):
        yield _line(f"{key}: {_flow(given[key])}", _about(TransformerSpec, key))
    if spec.assumptions:
        yield from ("assumptions:", *(f"  - {json.dumps(one)}" for one in spec.assumptions))


def _shape(spec: ArchitectureSpec) -> Iterator[str]:
    """Keys that the model has, and behind a # some that it might have."""
    given = spec.model_dump(mode="json", exclude_unset=True)
    others = _others(spec)
    names = dict.fromkeys((*_FIRST, *ArchitectureSpec.model_fields))
    for key in names:
        if key in given or key in others:
            mark = "" if key in given else "# "
            yield from _key(key, given.get(key, others.get(key)), mark)


def _others(spec: ArchitectureSpec) -> dict[str, Any]:
    """Keys that a model does not have and could, with a value that fits it."""
    found: dict[str, Any] = {"qk_norm": True, "window": 4096, "n_mtp": 1}
    if spec.experts is None:
        found["experts"] = _EXPERTS
    if spec.mla is None:
        found |= {"kv_heads": spec.n_heads, "head_dim": spec.attention.head_dim}
    return found


def _key(key: str, value: Any, mark: str) -> Iterator[str]:
    about = _about(ArchitectureSpec, key)
    if key not in _PARTS:
        yield _line(f"  {mark}{key}: {_flow(value)}", about)
        return
    yield _line(f"  {mark}{key}:", about)
    for inner, number in value.items():
        yield _line(f"  {mark}  {inner}: {_flow(number)}", _about(_PARTS[key], inner))


def _about(model: type[Model], key: str) -> str:
    """What the documentation says of a key."""
    text = str(model.model_json_schema()["properties"][key].get("description", ""))
    return f"{text[:1].lower()}{text[1:]}".removesuffix(".")


def _flow(value: Any) -> str:
    """A value as YAML in one line.

    >>> _flow({"npu": {"peak_TFLOPps": 312.0}}), _flow(True), _flow("rope")
    ('{npu: {peak_TFLOPps: 312}}', 'true', 'rope')
    """
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


def _line(text: str, comment: str = "") -> str:
    return f"{text:<{_COMMENTS_AT}} # {comment}" if comment else text
