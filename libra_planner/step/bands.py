"""Errors of steps by kind of NPU and of run, as published runs have them (C23)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_FAMILIES = ("A100", "A800", "H100", "H200", "H800", "GB200", "B200", "TPU")
_SAME_DIES = (("A100", "A800"), ("H100", "H200", "H800"), ("B200", "GB200"))
"""NPUs that share a compute die: those without a class of their own take the next one's."""

LEAST_ROWS = 5
"""Published runs that make a class."""
FLOOR_FRACTION = 0.09
"""By which the same run differs between releases of its library; no band is narrower."""

STEP_BANDS: Mapping[tuple[str, str], float] = MappingProxyType(
    {
        ("A100", "dense bf16"): 0.25,
        ("GB200", "dense bf16"): 0.09,
        ("GB200", "dense fp8"): 0.19,
        ("GB200", "experts fp8"): 0.27,
        ("H100", "dense bf16"): 0.19,
        ("H100", "dense fp8"): 0.25,
        ("H100", "experts bf16"): 0.26,
        ("H100", "experts fp8"): 0.24,
    }
)
"""What nine of ten relative errors of a class in docs/accuracy.md stay below."""

FEW_RUNS: Mapping[str, float] = MappingProxyType({"B200": 0.27, "H200": 0.13})
"""Largest relative error of the published runs of NPUs that have too few for a class."""

MEMORY_ERROR_FRACTION = 0.07
"""Mean absolute error of the memory of published runs (docs/accuracy.md)."""

STRATEGY_TIE_FRACTION = 0.14
"""By which times of two strategies of one model on the same NPUs have to differ to be no tie.

Of pairs of published runs that differ in their strategy and whose predicted times differ by more,
nine of ten have the predicted order (docs/accuracy.md): errors that both share cancel (C23).
"""


MOST_MEASURED_CHUNKS = 12
"""Most chunks of a pipeline stage of the published runs that steps are held against."""


def beyond_measured_chunks(n_chunks: int) -> str:
    """That no published run has so many chunks of a stage; empty where one has.

    >>> beyond_measured_chunks(40)
    '40 chunks a stage; published runs that such times are held against have 12 at most'
    >>> beyond_measured_chunks(12)
    ''
    """
    if n_chunks <= MOST_MEASURED_CHUNKS:
        return ""
    return (
        f"{n_chunks} chunks a stage; published runs that such times are held against have "
        f"{MOST_MEASURED_CHUNKS} at most"
    )


def npu_family(npu_name: str) -> str:
    """Kind of an NPU, whatever its variant.

    >>> npu_family("h100-96gb"), npu_family("gb200")
    ('H100', 'GB200')
    """
    name = npu_name.upper()
    return next((one for one in _FAMILIES if one in name), name)


def kind_of_step(dtype: str, *, has_experts: bool) -> str:
    """Class of a step, such as ``dense bf16``; fp16 counts as bf16.

    >>> kind_of_step("fp16", has_experts=False)
    'dense bf16'
    """
    return f"{'experts' if has_experts else 'dense'} {dtype.replace('fp16', 'bf16')}"


@dataclass(frozen=True)
class PublishedBand:
    """Error of steps of a kind, and whose it is.

    Parameters
    ----------
    fraction : nine of ten relative errors stay below it.
    runs : of which it is, such as ``H100 dense bf16``, and of which NPU there are too few.
    """

    fraction: float
    runs: str


def published_band(family: str, kind: str) -> PublishedBand | None:
    """The errors of its own class, or of the same kind on an NPU of the same die (C23).

    What is taken from another NPU is no narrower than the largest error of the few runs of its own.

    Examples
    --------
    >>> published_band("H100", "dense bf16")
    PublishedBand(fraction=0.19, runs='H100 dense bf16')
    >>> published_band("H200", "dense bf16")
    PublishedBand(fraction=0.19, runs='H100 dense bf16 (too few are of H200)')
    >>> published_band("B200", "dense bf16").fraction, published_band("B300", "dense bf16")
    (0.27, None)
    """
    own = STEP_BANDS.get((family, kind))
    if own is not None:
        return PublishedBand(own, f"{family} {kind}")
    dies = next((one for one in _SAME_DIES if family in one), ())
    near = next((one for one in dies if (one, kind) in STEP_BANDS), None)
    if near is None:
        return None
    fraction = max(STEP_BANDS[near, kind], FEW_RUNS.get(family, 0.0))
    return PublishedBand(fraction, f"{near} {kind} (too few are of {family})")


def related_bands(family: str, kind: str) -> dict[str, float]:
    """Errors of classes next to one that was not measured: of its kind, or on its die.

    >>> related_bands("B200", "experts bf16")
    {'H100 experts bf16': 0.26, 'GB200 experts fp8': 0.27}
    """
    form = kind.split(maxsplit=1)[0]
    dies = next((one for one in _SAME_DIES if family in one), (family,))
    same = {f"{npu} {one}": x for (npu, one), x in STEP_BANDS.items() if one == kind}
    near = {
        f"{npu} {one}": x
        for (npu, one), x in STEP_BANDS.items()
        if npu in dies and one.startswith(form)
    }
    return same | near


def is_tie(one: float, other: float, *, shared: tuple[float, float], error_fraction: float) -> bool:
    """Whether two steps may come in either order, as far as measured errors tell (C23).

    What two steps do alike is off alike and cancels: only the rest of each may be off by the
    error of its class, one up and the other down.

    Parameters
    ----------
    one, other : their times, or times of prices.
    shared : what of each both do alike, in the same unit.
    error_fraction : of the class.

    Examples
    --------
    Steps of 3.5 s of the same compute, and 0.1 s and 0.2 s of communication:

    >>> [is_tie(3.6, 3.7, shared=(3.5, 3.5), error_fraction=error) for error in (0.2, 0.4)]
    [False, True]
    """
    left = error_fraction * (one + other - sum(shared))
    return abs(one - other) <= left
