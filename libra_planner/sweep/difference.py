"""What two sweeps differ in, by what their run directories say of them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WORDS = {
    "designs_per_part": "designs per part",
    "files": "files that the plan names",
}


def difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """What two sweeps' manifests differ in, in words of the sweep's file.

    A manifest holds the base plan with the values under ``set`` in it: places that have
    placeholders are no difference of the plans.

    >>> def manifest(rule, workload, axis):
    ...     base = {"workload": workload, "constraints": [rule]}
    ...     slots = [[["constraints", 0], "text", None]]
    ...     return {"spec": {"base": base, "slots": slots, "axes": [axis]}, "version": "1"}
    >>> ours = manifest("total == {b} GB/s", "a", "b")
    >>> difference(manifest("total == {b} GB/s", "a", "c"), ours)
    'different axes'
    >>> difference(manifest("total <= {b} GB/s", "a", "c"), ours)
    'different set, axes'
    >>> difference(manifest("total == {b} GB/s", "b", "b"), ours)
    'different base plan or set'
    """
    old, new = theirs.get("spec", {}), ours["spec"]
    changed = [key for key in new | old if old.get(key) != new.get(key)]
    plans = [key for key in changed if key in ("base", "slots")]
    found = [_WORDS.get(key, key) for key in changed if key not in plans]
    if plans:
        keys = [key for spec in (old, new) for key, *_ in spec.get("slots", ())]
        same = _without(old.get("base"), keys) == _without(new["base"], keys)
        found.insert(0, "set" if same else "base plan or set")
    if not found:
        return f"made by version {theirs.get('version')}"
    return f"different {', '.join(found)}"


def _without(base: Any, keys: Iterable[Sequence[Any]]) -> Any:
    """A plan without what some of its places hold."""
    plan = copy.deepcopy(base)
    for *parents, last in keys:
        inner = plan
        for part in parents:
            inner = _child(inner, part)
        if _child(inner, last) is not None or isinstance(inner, dict):
            inner[last] = None
    return plan


def _child(value: Any, part: Any) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    is_item = isinstance(value, list) and isinstance(part, int) and part < len(value)
    return value[part] if is_item else None
