"""Bundled models under the names that tables of published runs give them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from libra_planner.errors import SpecError
from libra_planner.plan.workloads import load_transformer
from libra_planner.reading import bundled
from libra_planner.workload.transformer import Transformer

_SYNONYMS = {
    "gpt175b": "gpt3",
    "gpt3175b": "gpt3",
    "gpt530b": "mt-nlg-530b",
    "gpt529.6b": "mt-nlg-530b",
    "megatronturingnlg530b": "mt-nlg-530b",
    "gpt1t": "msft-1t",
    "gpt1008b": "msft-1t",
    "gpt1008.0b": "msft-1t",
    "turingnlg17b": "turing-nlg",
    "turingnlg17.2b": "turing-nlg",
    "llama3.18b": "llama3-8b",
    "llama3.170b": "llama3-70b",
    "llama3.370b": "llama3-70b",
    "llama3.1405b": "llama3-405b",
    "llama4maverick400b": "llama4-maverick",
    "llama4maverick17b128e": "llama4-maverick",
    "grok1": "grok1-314b",
    "deepseekv3671b": "deepseek-v3",
}
"""Names of models without case, spaces and dashes, where they are not those of their files."""

_NOT_MODELLED = {
    r"mamba|nemotron[ _-]?h\b|nemotron[ _-]?3[ _-](super|nano|ultra)": (
        "hybrid with Mamba layers: not modelled"
    ),
    r"\blora\b": "LoRA trains a part of the parameters: not modelled",
    r"^maxtext\b": "a size of MaxText's own: its shape is not published beside its figures",
}
"""Patterns of names, and why no shape stands for them."""


@dataclass(frozen=True)
class PublishedModel:
    """What a name in a table of runs stands for.

    Parameters
    ----------
    transformer : the model's shape, with the layers that the name says; ``None`` if there is none.
    bundled_name : the workload that it is, or is cut from.
    n_layers : layers where the name says other than the model's own.
    reason : why there is no shape; empty where there is one.
    """

    transformer: Transformer | None = None
    bundled_name: str | None = None
    n_layers: int | None = None
    reason: str = ""


def bundled_model(name: str) -> PublishedModel:
    """The bundled model that a table of published runs means.

    Case, spaces, dashes and remarks in brackets do not matter, but for the layers of a proxy,
    further predicted tokens (``w/ MTP``) and layers that are not modelled.

    Examples
    --------
    >>> bundled_model("LLAMA3.1_405B").bundled_name
    'llama3-405b'
    >>> proxy = bundled_model("Llama-3.1-405B proxy (42 layers)")
    >>> proxy.bundled_name, proxy.n_layers, proxy.transformer.n_layers
    ('llama3-405b', 42, 42)
    >>> bundled_model("DeepSeekV3 (w/ MTP)").transformer.n_mtp
    1
    >>> bundled_model("Nemotron-H 56B (hybrid Mamba)").reason
    'hybrid with Mamba layers: not modelled'
    """
    low = name.lower()
    for pattern, reason in _NOT_MODELLED.items():
        if re.search(pattern, low):
            return PublishedModel(reason=reason)
    known = {_plain(one): one for one in bundled.names("workloads") if not one.endswith("-libra")}
    plain = _plain(re.sub(r"\(.*?\)|\bproxy\b", "", low))
    found = _SYNONYMS.get(plain) or known.get(plain)
    if found is None:
        fix = "'libra-planner list workloads' lists those that are there"
        return PublishedModel(reason=f"no bundled model is called {name!r}; {fix}")
    layers = re.search(r"\((\d+) layers?\)", low)
    if layers is None and re.search(r"\bproxy\b", low):
        return PublishedModel(reason=f"{name!r} does not say how many layers the proxy has")
    has_mtp = re.search(r"\bmtp\b", low) and not re.search(r"w/o|without|no mtp", low)
    return _with_remarks(found, int(layers[1]) if layers else None, has_mtp=bool(has_mtp))


def _with_remarks(name: str, n_layers: int | None, *, has_mtp: bool) -> PublishedModel:
    try:
        transformer = load_transformer(bundled.resolve("workloads", name, None))
    except SpecError:
        return PublishedModel(reason=f"{name} is no transformer")
    if n_layers == transformer.n_layers:
        n_layers = None
    if n_layers is not None:
        transformer = transformer.with_layers(n_layers)
    return PublishedModel(replace(transformer, n_mtp=1) if has_mtp else transformer, name, n_layers)


def _plain(name: str) -> str:
    """Without case, spaces, dashes and an owner in front of a slash."""
    return re.sub(r"[^a-z0-9.]", "", name.lower().rpartition("/")[2])
