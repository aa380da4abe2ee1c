"""Hugging Face's ``config.json`` of a language model as a workload.

Keys and their defaults are those of the configuration classes of Transformers (``LlamaConfig`` and
its like; https://huggingface.co/docs/transformers). What a model's traffic, time or memory depends
on and no workload can say is refused, never left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libra_planner.errors import Fault, Place, SpecError, closest, shown
from libra_planner.files import write_files
from libra_planner.inputs.first.workload import shape_text
from libra_planner.plan.architectures.transformers import transformer
from libra_planner.plan.models import TransformerSpec
from libra_planner.reading.document import Document, is_whole, read_document
from libra_planner.reading.models import FaultCollector, validated

USUAL_TOKENS = 4096
"""Tokens of a sequence where nobody says more: what many models are trained with at first."""

_LANGUAGE_PART = "text_config"
_COMPUTE = {"npu": {"peak_TFLOPps": 312, "efficiency_fraction": 0.5}}
"""An A100's, as bundled workloads have it; plans that name their NPU do not use it."""


@dataclass(frozen=True)
class Imported:
    """A workload that was written.

    Parameters
    ----------
    kept : copies of files that had other content.
    n_parameters : of the model.
    n_tokens : of a sequence.
    """

    kept: list[Path]
    n_parameters: int
    n_tokens: int


def import_huggingface(config: Path, workload: Path, n_tokens: int | None = None) -> Imported:
    """Write the workload of a model; nothing is written on an error.

    Parameters
    ----------
    config : the ``config.json`` of a model.
    workload : where the workload goes.
    n_tokens : of a sequence in training, which no config says; by default ``USUAL_TOKENS``, or
        what the model takes where that is less.

    Raises
    ------
    SpecError
        For a family that is not known, keys that are missing or wrong, parts that no workload
        can say, or a path that is the config itself.
    """
    if os.path.realpath(config) == os.path.realpath(workload):
        fix = "choose another name for the workload"
        raise SpecError(Fault("got the config as output", "", fix, "", Place(str(workload))))
    spec, family = _read(read_document(config), n_tokens)
    text = shape_text(workload.name, f"{config.name} ({family})", spec)
    n_parameters = transformer("", spec.architecture).n_parameters
    kept = write_files({workload: text})
    return Imported(kept, n_parameters, spec.architecture.sequence_tokens)


def _read(document: Document, n_tokens: int | None) -> tuple[TransformerSpec, str]:
    """What a workload says of the model, and the family that it is of."""
    found = _Config(document)
    family = found.family()
    architecture, assumptions = found.shape(family)
    most = found.count("max_position_embeddings")
    found.required(architecture)
    if n_tokens is None:
        n_tokens = min(most, USUAL_TOKENS)
        text = f"sequences have {n_tokens:,} tokens, which the config does not say"
        assumptions.append(f"{text}; the model takes up to {most:,}")
    value = {
        "kind": "transformer",
        "source": "Hugging Face config.json",
        "architecture": {**architecture, "sequence_tokens": n_tokens},
        "compute": _COMPUTE,
        "dtype_bytes": 2,
        "assumptions": assumptions,
    }
    return validated(TransformerSpec, Document(document.file, value)), family


class _Config(FaultCollector):
    """A config, and where faults are noted."""

    def family(self) -> str:
        """Its ``model_type``, one of those that are known."""
        value = self.document.value
        if not isinstance(value, dict) or "model_type" not in value:
            expected = "expected a config.json of Hugging Face, which has 'model_type'"
            place = Place(self.document.file)
            raise SpecError(Fault("got no 'model_type'", expected, "", "", place))
        if _LANGUAGE_PART in value:
            got = f"got a model of several parts ('{_LANGUAGE_PART}'), expected one of language"
            fix = f"save what '{_LANGUAGE_PART}' holds as a file of its own to have that part"
            raise SpecError(Fault(got, "", fix, "", self.document.key_place((_LANGUAGE_PART,))))
        family = value["model_type"]
        if not isinstance(family, str) or family not in _FAMILIES:
            expected = f"expected one of {', '.join(_FAMILIES)}"
            near = closest(str(family), _FAMILIES)
            by_hand = "write a workload by hand: libra-planner init --workload own.yaml"
            fix = near if near.startswith("did") else by_hand
            place = self.document.place(("model_type",))
            raise SpecError(Fault(f"got {shown(family)}", expected, fix, "model_type", place))
        return family

    def shape(self, family: str) -> tuple[dict[str, Any], list[str]]:
        """``architecture`` of the workload but for its sequences, and what is assumed."""
        own, assumptions = _FAMILIES[family](self)
        return {
            "n_layers": self.count("num_hidden_layers"),
            "hidden": self.count("hidden_size"),
            "n_heads": self.count("num_attention_heads"),
            "vocabulary": self.count("vocab_size"),
            "gated": True,
            "norm": "rmsnorm",
            "final_norm": True,
            "bias": False,
            "positions": "rope",
            "tied": self.is_true("tie_word_embeddings"),
            **own,
        }, assumptions

    def count(
        self, key: str, *, null: int | None = None, absent: int | None = None, least: int = 1
    ) -> int:
        """A whole number, or what null and the absent key stand for where they are allowed."""
        value = self.document.value.get(key)
        usual = null if key in self.document.value else absent
        if value is None and usual is not None:
            return usual
        if is_whole(value) and value >= least:
            return value
        got = "got nothing" if key not in self.document.value else f"got {shown(value)}"
        self.note(Fault(got, f"expected a whole number of at least {least}"), (key,))
        return 1

    def is_true(self, key: str) -> bool:
        """Whether a key is true; one that is missing or null is not."""
        value = self.document.value.get(key)
        if value is not None and not isinstance(value, bool):
            self.note(Fault(f"got {shown(value)}", "expected true or false"), (key,))
        return value is True

    def only(self, key: str, *known: Any, reason: str) -> None:
        """Refuse all values of a key but those that are known, and null."""
        value = self.document.value.get(key)
        if value is not None and value not in known:
            self.note(Fault(f"got {shown(value)}", f"expected {shown(known[0])}", reason), (key,))

    def heads(self, absent: int | None = None) -> dict[str, Any]:
        """Heads of keys and values, and the width of one where the config says it."""
        n = self.count("num_attention_heads")
        own = {"kv_heads": self.count("num_key_value_heads", null=n, absent=absent)}
        if self.document.value.get("head_dim") is not None:
            own["head_dim"] = self.count("head_dim")
        return own

    def window(self, absent: int = 0) -> dict[str, Any]:
        """A sliding window of all layers."""
        width = self.count("sliding_window", null=0, absent=absent)
        return {"window": width} if width else {}

    def last_windows(self) -> dict[str, Any]:
        """Qwen's windows: of layers behind the first ``max_window_layers``, where they are on."""
        if not self.is_true("use_sliding_window"):
            return {}
        full = self.count("max_window_layers", least=0)
        n = max(self.count("num_hidden_layers") - full, 0)
        return {"window": self.count("sliding_window"), "window_layers": n} if n else {}

    def dense(self) -> dict[str, Any]:
        """The feed-forward part."""
        return {"ffn": self.count("intermediate_size")}

    def experts(self, n: str, width: str, shared: int = 0) -> dict[str, Any]:
        """Routed experts; ``n`` and ``width`` are their keys, ``shared`` how many are for all."""
        wide = self.count(width)
        found = {"n": self.count(n), "topk": self.count("num_experts_per_tok"), "width": wide}
        return {"experts": {**found, **({"shared_width": shared * wide} if shared else {})}}


_Read = tuple[dict[str, Any], list[str]]
_WINDOW_OF_MISTRAL = 4096
_ALL_EXPERTS = "dense layers between layers with experts are not modelled"


def _llama(config: _Config) -> _Read:
    """Llama 1 to 3: biases of attention where it says so, of all layers with ``mlp_bias``."""
    attention, feed_forward = config.is_true("attention_bias"), config.is_true("mlp_bias")
    if feed_forward and not attention:
        config.note(Fault("got true", "expected false", "or attention_bias: true"), ("mlp_bias",))
    bias = {"bias": True if feed_forward else "attention"} if attention else {}
    heads = config.heads(absent=config.count("num_attention_heads"))
    return {**heads, **config.dense(), **bias}, []


def _mistral(config: _Config) -> _Read:
    window = config.window(absent=_WINDOW_OF_MISTRAL)
    return {**config.heads(), **config.dense(), **window}, []


def _mixtral(config: _Config) -> _Read:
    experts = config.experts("num_local_experts", "intermediate_size")
    return {**config.heads(), **experts, **config.window()}, []


def _qwen2(config: _Config) -> _Read:
    """Qwen 2 and 2.5: queries, keys and values have biases, what attention gives back has none."""
    own = {**config.heads(), **config.dense(), "bias": "attention", **config.last_windows()}
    return own, ["biases of attention's last projection are counted, though the model has none"]


def _qwen3(config: _Config) -> _Read:
    own = {**config.heads(), "head_dim": config.count("head_dim"), "qk_norm": True}
    bias = {"bias": "attention"} if config.is_true("attention_bias") else {}
    return {**own, **config.dense(), **bias, **config.last_windows()}, []


def _qwen3_moe(config: _Config) -> _Read:
    own, assumptions = _qwen3(config)
    config.only("decoder_sparse_step", 1, reason=_ALL_EXPERTS)
    config.only("mlp_only_layers", [], reason=_ALL_EXPERTS)
    del own["ffn"]
    return {**own, **config.experts("num_experts", "moe_intermediate_size")}, assumptions


def _deepseek(config: _Config) -> _Read:
    """DeepSeek V2 and V3, and Kimi K2, which has V3's shape."""
    config.only("moe_layer_freq", 1, reason=_ALL_EXPERTS)
    config.only("attention_bias", False, reason="biases of latent attention are not modelled")
    shared = config.count("n_shared_experts", null=0, least=0)
    n_dense = config.count("first_k_dense_replace", least=0)
    own = {
        "mla": {
            "kv_rank": config.count("kv_lora_rank"),
            "q_rank": config.count("q_lora_rank", null=0),
            "nope_dim": config.count("qk_nope_head_dim"),
            "rope_dim": config.count("qk_rope_head_dim"),
            "v_dim": config.count("v_head_dim"),
        },
        **(config.dense() if n_dense else {}),
        **config.experts("n_routed_experts", "moe_intermediate_size", shared),
        "n_dense_layers": n_dense,
    }
    n_mtp = config.count("num_nextn_predict_layers", null=0, absent=0, least=0)
    text = f"without the modules that predict further tokens; 'n_mtp: {n_mtp}' adds them"
    return own, [text] if n_mtp else []


def _gpt_oss(config: _Config) -> _Read:
    """OpenAI's open weights: biases everywhere, windows in the layers that the config names."""
    kinds = config.document.value.get("layer_types")
    n_layers = config.count("num_hidden_layers")
    if not isinstance(kinds, list) or len(kinds) != n_layers:
        expected = f"expected a list with a kind for each of {n_layers} layers"
        got = f"got {len(kinds)} kinds" if isinstance(kinds, list) else f"got {shown(kinds)}"
        config.note(Fault(got, expected), ("layer_types",))
        kinds = []
    n = kinds.count("sliding_attention")
    window = {"window": config.count("sliding_window"), "window_layers": n} if n else {}
    own = {**config.heads(), "head_dim": config.count("head_dim"), "bias": True, **window}
    return {**own, **config.experts("num_local_experts", "intermediate_size")}, []


_FAMILIES: Mapping[str, Callable[[_Config], _Read]] = {
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "kimi_k2": _deepseek,
    "gpt_oss": _gpt_oss,
}
"""How each ``model_type`` is read."""
