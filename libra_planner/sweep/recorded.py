"""The form of what a run directory says of its sweep: a forged one is refused, not believed."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

_Count: TypeAlias = Annotated[int, Field(ge=1, le=10**15)]
_Key: TypeAlias = list[str | int]
_Axis: TypeAlias = tuple[str, list[Any], dict[Annotated[str, Field(pattern="^[0-9]{1,3}$")], Any]]


class _Part(BaseModel):
    """A part of the form; keys that are not named here are of other versions."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Spec(_Part):
    base: dict[str, Any]
    slots: list[tuple[_Key, Literal["axis", "tiers", "text"], str | None]]
    axes: list[_Axis]
    designs_per_part: _Count


class _Manifest(_Part):
    hash: str
    source: str
    beside: str
    n_designs: _Count
    n_parts: _Count
    columns: dict[str, str] = Field(alias="schema")
    spec: _Spec


def misfit(manifest: dict[str, Any]) -> str:
    """What keeps a manifest from being one, in words; empty for nothing.

    >>> misfit({"hash": "a"})
    'source: Field required'
    """
    try:
        spec = _Manifest.model_validate(manifest).spec
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    names = {name for name, *_ in spec.axes}
    for key, kind, axis in spec.slots:
        if not _has(spec.base, key) or (kind != "text" and axis not in names):
            return f"spec.slots: nothing at {'.'.join(map(str, key))[:80]}"
    return ""


def _has(value: Any, key: _Key) -> bool:
    for part in key:
        is_item = isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value)
        if not is_item and not (isinstance(value, dict) and part in value):
            return False
        value = value[part]
    return bool(key)
