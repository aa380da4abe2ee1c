"""Keys of a transformer's shape in a workload file, and the shape they mean."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from libra_planner.reading.models import Count, Model
from libra_planner.workload.transformer import Attention, Experts, FeedForward, Transformer

_USUAL_FFN_MULTIPLE = 4
Width = Annotated[int, Field(ge=0, le=10**9)]


class MlaSpec(Model):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434).

    Parameters
    ----------
    kv_rank : Width of the compressed keys and values.
    q_rank : Width of the compressed queries; 0 where they are not compressed.
    nope_dim : Width of a head's queries and keys without position.
    rope_dim : Width of their part with position, whose keys all heads share.
    v_dim : Width of a head's values.
    """

    kv_rank: Count
    q_rank: Width = 0
    nope_dim: Count
    rope_dim: Count
    v_dim: Count


class ExpertsSpec(Model):
    """Mixture of experts in place of the feed-forward part.

    Parameters
    ----------
    n : Routed experts.
    topk : Routed experts of a token.
    width : Between the layers of one expert.
    shared_width : Of all experts that every token goes through, together.
    """

    n: Count
    topk: Count
    width: Count
    shared_width: Width = 0

    example: ClassVar = MappingProxyType({"n": 8, "topk": 2, "width": 14336})

    @model_validator(mode="after")
    def _topk_of_n(self) -> ExpertsSpec:
        if self.topk > self.n:
            raise ValueError(f"got topk {self.topk} of {self.n} experts, expected at most {self.n}")
        return self


class ArchitectureSpec(Model):
    """Shape of a transformer; without further keys a decoder like GPT-2 and GPT-3.

    Parameters
    ----------
    n_layers : Layers, of all kinds.
    hidden : Width of the model.
    n_heads : Query heads; a divisor of hidden, unless head_dim is given.
    sequence_tokens : Tokens of a sequence.
    vocabulary : Tokens known; 0 leaves embedding and logits out.
    ffn_multiple : Width of the feed-forward part over hidden, such as 3.5; 4 where ffn is not
        given.
    ffn : Width of the feed-forward part; with experts, of dense layers.
    kv_heads : Heads of keys and values; by default n_heads.
    head_dim : Width of a head; by default hidden / n_heads.
    gated : A gated part as in SwiGLU, in experts too: three matrices instead of two.
    bias : Biases of all layers (true), none (false), or those of attention.
    norm : layernorm or rmsnorm.
    final_norm : A norm behind the last layer.
    qk_norm : A norm of queries and keys.
    positions : learned position embeddings, or rope, which has no parameters.
    tied : Embedding and logits share their weights.
    parallel : Attention and feed-forward part side by side behind one norm.
    causal : A token sees only those before it.
    window : Nearest tokens that attention sees in window_layers.
    window_layers : Layers with a window; by default all.
    mla : Multi-head latent attention, instead of kv_heads and head_dim.
    experts : Mixture of experts.
    n_dense_layers : First layers, without experts.
    interleaved : Dense layers and layers with experts take turns.
    n_mtp : Modules that predict further tokens.
    patch_values : Numbers in a patch of an image, instead of a vocabulary.
    classes : Of an image.
    """

    n_layers: Count
    hidden: Count
    n_heads: Count
    sequence_tokens: Count
    vocabulary: Width = 0
    ffn_multiple: Annotated[float, Field(gt=0, le=1000)] | None = None
    ffn: Count | None = None
    kv_heads: Count | None = None
    head_dim: Count | None = None
    gated: bool = False
    bias: bool | Literal["attention"] = True
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    final_norm: bool = False
    qk_norm: bool = False
    positions: Literal["learned", "rope"] = "learned"
    tied: bool = True
    parallel: bool = False
    causal: bool = True
    window: Count | None = None
    window_layers: Count | None = None
    mla: MlaSpec | None = None
    experts: ExpertsSpec | None = None
    n_dense_layers: Width = 0
    interleaved: bool = False
    n_mtp: Annotated[int, Field(ge=0, le=100)] = 0
    patch_values: Width = 0
    classes: Width = 0

    @model_validator(mode="after")
    def _widths(self) -> ArchitectureSpec:
        if self.ffn is not None and self.ffn_multiple is not None:
            raise ValueError("got ffn and ffn_multiple, expected one of them")
        width = self.hidden * (self.ffn_multiple or _USUAL_FFN_MULTIPLE)
        if self.ffn is None and not math.isclose(width, round(width), rel_tol=1e-9):
            got = f"got ffn_multiple {self.ffn_multiple:g} of {self.hidden}, which is {width:g}"
            raise ValueError(f"{got}, expected a whole width (write ffn: {round(width)})")
        if self.mla is None and self.head_dim is None and self.hidden % self.n_heads:
            got = f"got {self.n_heads} heads for a width of {self.hidden}"
            raise ValueError(f"{got}, expected a divisor of it (or write head_dim)")
        return self

    @model_validator(mode="after")
    def _heads(self) -> ArchitectureSpec:
        if self.kv_heads is not None and self.n_heads % self.kv_heads:
            got = f"got kv_heads {self.kv_heads} for {self.n_heads} heads"
            raise ValueError(f"{got}, expected a divisor of n_heads")
        own = self.given("kv_heads", "head_dim")
        if self.mla is not None and own:
            raise ValueError(f"got mla and {' and '.join(own)}, expected mla alone")
        if self.window is None and self.window_layers is not None:
            raise ValueError("got window_layers without window, expected both")
        if (self.window_layers or 0) > self.n_layers:
            got = f"got {self.window_layers} window_layers of {self.n_layers} layers"
            raise ValueError(f"{got}, expected at most {self.n_layers}")
        return self

    @model_validator(mode="after")
    def _parts(self) -> ArchitectureSpec:
        if self.experts is None and (self.n_dense_layers or self.interleaved):
            raise ValueError("got n_dense_layers or interleaved, expected them only with experts")
        if self.experts is not None and self.n_dense_layers >= self.n_layers:
            got = f"got {self.n_dense_layers} n_dense_layers of {self.n_layers} layers"
            raise ValueError(f"{got}, expected fewer: the others have the experts")
        if self.patch_values and self.vocabulary:
            raise ValueError("got vocabulary and patch_values, expected one of them")
        if bool(self.patch_values) != bool(self.classes):
            raise ValueError("got one of patch_values and classes, expected both or none")
        return self

    @property
    def ffn_width(self) -> int:
        """Width of the feed-forward part of dense layers; 0 where there are none."""
        if self.experts is not None and not self.n_dense_layers:
            return 0
        return self.ffn or round(self.hidden * (self.ffn_multiple or _USUAL_FFN_MULTIPLE))

    @property
    def attention(self) -> Attention:
        """Shape of its attention."""
        mla, has_bias = self.mla, self.bias is not False
        if mla is not None:
            dims = self.n_heads, self.n_heads, mla.nope_dim + mla.rope_dim, mla.v_dim
            ranks = mla.q_rank, mla.kv_rank, mla.rope_dim
        else:
            dim = self.head_dim or self.hidden // self.n_heads
            dims = self.n_heads, self.kv_heads or self.n_heads, dim, dim
            ranks = 0, 0, 0
        window = self.window or 0
        return Attention(*dims, *ranks, self.causal, has_bias, self.qk_norm, window)


def transformer(name: str, spec: ArchitectureSpec) -> Transformer:
    """The shape that a file means.

    Examples
    --------
    >>> small = {"n_layers": 2, "hidden": 64, "n_heads": 4, "sequence_tokens": 8}
    >>> transformer("small", ArchitectureSpec(**small, ffn_multiple=3.5)).ffn.width
    224
    """
    gated, has_bias, experts = spec.gated, spec.bias is True, spec.experts
    return Transformer(
        name,
        spec.n_layers,
        spec.hidden,
        spec.attention,
        FeedForward(spec.ffn_width, gated, has_bias),
        spec.sequence_tokens,
        spec.vocabulary,
        experts=Experts(**experts.model_dump(), is_gated=gated, has_bias=has_bias)
        if experts
        else None,
        n_dense_layers=spec.n_dense_layers,
        is_tied=spec.tied,
        n_positions=spec.sequence_tokens if spec.positions == "learned" else 0,
        has_norm_bias=spec.norm == "layernorm",
        is_parallel=spec.parallel,
        n_mtp=spec.n_mtp,
        is_interleaved=spec.interleaved,
        has_final_norm=spec.final_norm,
        n_window_layers=(spec.window_layers or spec.n_layers) if spec.window else 0,
        patch_values=spec.patch_values,
        n_classes=spec.classes,
    )
