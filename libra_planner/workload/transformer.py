"""Shape of a transformer: attention, feed-forward part, experts, embedding (C18, C21)."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.frozen import Frozen


@dataclass(frozen=True)
class Attention:
    """Shape of an attention block.

    Parameters
    ----------
    n_heads : query heads.
    n_kv_heads : heads of keys and values; fewer than ``n_heads`` is GQA, 1 is MQA.
    head_dim : width of a head's queries and keys (with MLA: of the part without and with position).
    head_dim_v : width of a head's values.
    q_rank, kv_rank : widths of the compressed queries, and of keys and values, of multi-head latent
        attention (MLA, DeepSeek-V2, arXiv 2405.04434); 0 without MLA. ``q_rank`` may be 0 with it.
    rope_dim : width of the key part with position, which all heads share (MLA only).
    is_causal : whether a token sees only those before it.
    has_bias : whether its projections have biases.
    """

    n_heads: int
    n_kv_heads: int
    head_dim: int
    head_dim_v: int
    q_rank: int = 0
    kv_rank: int = 0
    rope_dim: int = 0
    is_causal: bool = True
    has_bias: bool = False

    @property
    def is_latent(self) -> bool:
        """Whether it is MLA."""
        return self.kv_rank > 0


@dataclass(frozen=True)
class FeedForward:
    """Shape of a feed-forward part.

    Parameters
    ----------
    width : between its layers; 0 for none.
    is_gated : SwiGLU and its kind, three matrices instead of two.
    has_bias : whether its layers have biases.
    """

    width: int
    is_gated: bool = False
    has_bias: bool = False

    @property
    def n_matrices(self) -> int:
        """Matrices of hidden x width."""
        return 3 if self.is_gated else 2


@dataclass(frozen=True)
class Experts:
    """Mixture of experts in place of a feed-forward part.

    Parameters
    ----------
    n : routed experts.
    topk : routed experts of a token.
    width : between the layers of one expert.
    shared_width : of all experts that every token goes through; 0 for none.
    is_gated : as in :class:`FeedForward`.
    """

    n: int
    topk: int
    width: int
    shared_width: int = 0
    is_gated: bool = True


@dataclass(frozen=True)
class Transformer(Frozen):
    """Shape of a transformer.

    Parameters
    ----------
    name : what reports call it.
    n_layers : transformer layers, dense ones and those with experts.
    hidden : model width h.
    attention, ffn : of a layer; ``ffn`` is that of dense layers.
    sequence_tokens : tokens per sequence s.
    vocabulary : tokens known, as the model was published; 0 leaves embedding and logits out.
    experts : of layers that have them; ``None`` for a dense model.
    n_dense_layers : first layers without experts, of a model that has some.
    is_tied : whether embedding and logits share their weights.
    n_positions : learned position embeddings; 0 for none, such as with RoPE.
    has_norm_bias : LayerNorm (weight and bias) instead of RMSNorm (weight).
    is_parallel : attention and feed-forward part side by side behind one norm (PaLM, GPT-J).
    n_mtp : multi-token-prediction modules behind the last layer (DeepSeek-V3).
    """

    name: str
    n_layers: int
    hidden: int
    attention: Attention
    ffn: FeedForward
    sequence_tokens: int
    vocabulary: int = 0
    experts: Experts | None = None
    n_dense_layers: int = 0
    is_tied: bool = False
    n_positions: int = 0
    has_norm_bias: bool = False
    is_parallel: bool = False
    n_mtp: int = 0

    @property
    def n_expert_layers(self) -> int:
        """Layers with experts."""
        return 0 if self.experts is None else self.n_layers - self.n_dense_layers
