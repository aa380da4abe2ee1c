"""Shape of a transformer, its parameters and its FLOPs (C18, C21)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from libra_planner.frozen import Frozen

_FLOPS_PER_PARAMETER = 6
"""Of a token in training: a multiplication and an addition forward, twice as many backward."""

AttentionFlops = Literal["full", "causal"]
"""Scores that are counted: the whole matrix (Megatron), or those that the mask leaves."""


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
    has_qk_norm : whether queries and keys have a norm of a head's width (Qwen3).
    window_tokens : nearest tokens that a layer with a sliding window sees; 0 for no window.
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
    has_qk_norm: bool = False
    window_tokens: int = 0

    @property
    def is_latent(self) -> bool:
        """Whether it is MLA."""
        return self.kv_rank > 0

    @property
    def q_width(self) -> int:
        """Width of the queries of all heads."""
        return self.n_heads * self.head_dim

    @property
    def k_width(self) -> int:
        """Width of the keys of all their heads."""
        return self.n_kv_heads * self.head_dim

    @property
    def v_width(self) -> int:
        """Width of the values of all their heads."""
        return self.n_kv_heads * self.head_dim_v

    @property
    def out_width(self) -> int:
        """Width of what the heads give to the last projection."""
        return self.n_heads * self.head_dim_v

    def n_matrix_parameters(self, hidden: int) -> int:
        """Parameters of its projections.

        Examples
        --------
        DeepSeek-V3, by hand: 7168 x 1536 + 1536 x 128 x 192 for queries, 7168 x 576 + 512 x 128 x
        256 for keys and values, 128 x 128 x 7168 back:

        >>> mla = Attention(128, 128, 192, 128, q_rank=1536, kv_rank=512, rope_dim=64)
        >>> mla.n_matrix_parameters(7168)
        187105280
        """
        out = self.out_width * hidden
        if not self.is_latent:
            return hidden * (self.q_width + self.k_width + self.v_width) + out
        queries = self.q_rank * (hidden + self.q_width) if self.q_rank else hidden * self.q_width
        expanded = self.n_heads * (self.head_dim - self.rope_dim + self.head_dim_v)
        return queries + hidden * (self.kv_rank + self.rope_dim) + self.kv_rank * expanded + out

    def n_vector_parameters(self, hidden: int) -> int:
        """Its biases, and norms of its own."""
        biases = self.q_width + self.k_width + self.v_width + hidden if self.has_bias else 0
        return biases + 2 * self.head_dim * self.has_qk_norm + self.q_rank + self.kv_rank

    def seen_tokens(self, n_tokens: int, scores: AttentionFlops, has_window: bool = False) -> float:
        """Tokens that a token's scores are counted with, the mean over a sequence.

        Parameters
        ----------
        n_tokens : length of the sequence.
        scores : all of them, or half of them where the mask of a causal model hides the rest.
        has_window : of a layer with a window w: w of n, and w - w^2/(2 n) behind the mask.
        """
        seen = min(n_tokens, self.window_tokens) if has_window else n_tokens
        hidden_by_mask = seen * seen / (2 * n_tokens)
        return seen - hidden_by_mask if scores == "causal" and self.is_causal else float(seen)


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

    def n_matrix_parameters(self, hidden: int) -> int:
        """Parameters of its matrices."""
        return self.n_matrices * hidden * self.width

    def n_vector_parameters(self, hidden: int) -> int:
        """Its biases."""
        return (self.n_matrices - 1) * self.width + hidden if self.has_bias else 0


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
    has_bias : whether experts and router have biases (gpt-oss).
    """

    n: int
    topk: int
    width: int
    shared_width: int = 0
    is_gated: bool = True
    has_bias: bool = False

    @property
    def one(self) -> FeedForward:
        """One routed expert."""
        return FeedForward(self.width, self.is_gated, self.has_bias)

    @property
    def shared(self) -> FeedForward:
        """All shared experts together."""
        return FeedForward(self.shared_width, self.is_gated, self.has_bias)


@dataclass(frozen=True)
class LayerParameters:
    """Parameters of a layer by part: those that multiply, and in all.

    Memory and data parallelism ask for :attr:`n_routed` apart from :attr:`n_dense`: with expert
    parallelism routed experts lie, and are reduced, over other ranks than the rest (C15, C16).

    Parameters
    ----------
    n_attention : projections and biases of attention, and norms of queries and keys.
    n_norms : the layer's norms.
    n_feed_forward : the feed-forward part of a dense layer.
    n_router : the router of a layer with experts.
    n_routed : all routed experts.
    n_shared : the shared experts.
    n_multiplying : parameters of matrices that a token is multiplied with: with ``topk`` experts.
    n_idle : parameters of the routed experts that a token does not go to.
    """

    n_attention: int
    n_norms: int
    n_feed_forward: int = 0
    n_router: int = 0
    n_routed: int = 0
    n_shared: int = 0
    n_multiplying: int = 0
    n_idle: int = 0

    @property
    def n_dense(self) -> int:
        """All but routed experts: what every rank of a tensor-parallel group holds a share of."""
        parts = self.n_attention + self.n_norms + self.n_feed_forward
        return parts + self.n_router + self.n_shared

    @property
    def n_total(self) -> int:
        """All of them."""
        return self.n_dense + self.n_routed


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
    is_interleaved : dense layers and layers with experts take turns (Llama 4) instead of dense ones
        first.
    has_final_norm : a norm behind the last layer; equation 2 of Narayanan et al. leaves it out.
    n_window_layers : layers whose attention has the sliding window.
    patch_values : numbers in a patch of an image, which a matrix embeds (ViT); 0 for tokens.
    n_classes : of an image, by a matrix behind the first token; 0 for none.

    Examples
    --------
    Llama 3 8B: the parameters that its authors' files hold, and the FLOPs of a token in training.

    >>> llama = Transformer(
    ...     "llama3-8b", 32, 4096, Attention(32, 8, 128, 128), FeedForward(14336, is_gated=True),
    ...     sequence_tokens=8192, vocabulary=128256, has_final_norm=True)
    >>> llama.n_parameters, llama.n_multiplying_parameters
    (8030261248, 7504658432)
    >>> round(llama.flops_per_token() / 1e9, 2), round(llama.flops_per_token("causal") / 1e9, 2)
    (57.91, 51.47)
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
    is_interleaved: bool = False
    has_final_norm: bool = False
    n_window_layers: int = 0
    patch_values: int = 0
    n_classes: int = 0

    @property
    def n_expert_layers(self) -> int:
        """Layers with experts."""
        return 0 if self.experts is None else self.n_layers - self.n_dense_layers

    @property
    def has_logits(self) -> bool:
        """Whether embedding and logits, or patches and classes, are there: a whole step (C21)."""
        return self.vocabulary > 0 or (self.patch_values > 0 and self.n_classes > 0)

    def with_layers(self, n_layers: int) -> Transformer:
        """The same with more or fewer layers, as benchmarks cut models to fit fewer NPUs.

        Dense layers that come first stay as many; those that take turns with others, and layers
        with a window, stay in proportion.
        """
        n_dense = min(self.n_dense_layers, n_layers)
        if self.is_interleaved:
            n_dense = round(self.n_dense_layers * n_layers / self.n_layers)
        n_window = round(self.n_window_layers * n_layers / self.n_layers)
        return replace(self, n_layers=n_layers, n_dense_layers=n_dense, n_window_layers=n_window)

    @property
    def n_norm_parameters(self) -> int:
        """Parameters of one norm."""
        return self.hidden * (2 if self.has_norm_bias else 1)

    @cached_property
    def dense_layer_parameters(self) -> LayerParameters:
        """Parameters of a layer without experts."""
        matrices = self.ffn.n_matrix_parameters(self.hidden)
        attention, norms = self._attention_and_norms
        return LayerParameters(
            n_attention=attention,
            n_norms=norms,
            n_feed_forward=matrices + self.ffn.n_vector_parameters(self.hidden),
            n_multiplying=self.attention.n_matrix_parameters(self.hidden) + matrices,
        )

    @cached_property
    def expert_layer_parameters(self) -> LayerParameters:
        """Parameters of a layer with experts; of a dense layer where the model has none."""
        experts = self.experts
        if experts is None:
            return self.dense_layer_parameters
        attention, norms = self._attention_and_norms
        one = experts.one.n_matrix_parameters(self.hidden)
        one_in_all = one + experts.one.n_vector_parameters(self.hidden)
        shared = experts.shared.n_matrix_parameters(self.hidden)
        has_shared, router = experts.shared_width > 0, experts.n * self.hidden
        multiplying = self.attention.n_matrix_parameters(self.hidden) + router + shared
        return LayerParameters(
            n_attention=attention,
            n_norms=norms,
            n_router=router + experts.n * experts.has_bias,
            n_routed=experts.n * one_in_all,
            n_shared=shared + has_shared * experts.shared.n_vector_parameters(self.hidden),
            n_multiplying=multiplying + experts.topk * one,
            n_idle=(experts.n - experts.topk) * one_in_all,
        )

    @property
    def _attention_and_norms(self) -> tuple[int, int]:
        matrices = self.attention.n_matrix_parameters(self.hidden)
        attention = matrices + self.attention.n_vector_parameters(self.hidden)
        return attention, (1 if self.is_parallel else 2) * self.n_norm_parameters

    @property
    def n_embedding_parameters(self) -> int:
        """Parameters in front of the first layer: tokens or patches, and learned positions."""
        if not self.has_logits:
            return 0
        patches = (self.patch_values + 2) * self.hidden if self.patch_values else 0
        return patches + (self.vocabulary + self.n_positions) * self.hidden

    @property
    def n_logits_parameters(self) -> int:
        """Parameters behind the last layer but its norm: logits where not tied, or classes."""
        logits = 0 if self.is_tied else self.vocabulary * self.hidden
        return logits + self.n_classes * (self.hidden + 1)

    @property
    def n_mtp_parameters(self) -> int:
        """Parameters of the modules that predict further tokens, but for what they share."""
        joined = 2 * self.hidden**2 + 3 * self.n_norm_parameters
        return self.n_mtp * (joined + self.expert_layer_parameters.n_total)

    @property
    def n_parameters(self) -> int:
        """All parameters as they are published: with embeddings, norms and biases."""
        layers = self._n_dense * self.dense_layer_parameters.n_total
        layers += self.n_expert_layers * self.expert_layer_parameters.n_total
        final = self.n_norm_parameters if self.has_final_norm else 0
        ends = self.n_embedding_parameters + self.n_logits_parameters
        return layers + final + ends + self.n_mtp_parameters

    @property
    def n_active_parameters(self) -> int:
        """Parameters a token meets: all but the routed experts that it does not go to."""
        n_layers = self.n_expert_layers + (self.n_mtp if self.experts else 0)
        return self.n_parameters - n_layers * self.expert_layer_parameters.n_idle

    @property
    def n_multiplying_parameters(self) -> int:
        """Parameters that a token is multiplied with (C18).

        Matrices of the layers with the active experts, logits even where tied to the embedding, and
        patches; no lookup of tokens, norms or biases. The classes of an image multiply one token of
        a sequence: :meth:`flops_per_token` counts them.
        """
        dense = self._n_dense * self.dense_layer_parameters.n_multiplying
        experts = self.n_expert_layers * self.expert_layer_parameters.n_multiplying
        logits = self.vocabulary * self.hidden
        further = 2 * self.hidden**2 + self.expert_layer_parameters.n_multiplying + logits
        patches = self.patch_values * self.hidden
        return dense + experts + logits + patches + self.n_mtp * further

    def flops_per_token(self, attention: AttentionFlops = "full") -> float:
        """FLOPs of a token in training, nothing computed twice (C18).

        6 N + 6 L s H (d_qk + d_v), N the parameters that multiply: 12 L s H d where queries and
        values are equally wide.

        Parameters
        ----------
        attention : ``full`` counts all scores, ``causal`` those that the mask leaves, half of them.
        """
        plain = self.n_layers + self.n_mtp - self.n_window_layers
        seen = plain * self.attention.seen_tokens(self.sequence_tokens, attention)
        windowed = self.attention.seen_tokens(self.sequence_tokens, attention, has_window=True)
        seen += self.n_window_layers * windowed
        scores = seen * (self.attention.q_width + self.attention.out_width)
        classes = self.n_classes * self.hidden / self.sequence_tokens
        return _FLOPS_PER_PARAMETER * (self.n_multiplying_parameters + scores + classes)

    @property
    def _n_dense(self) -> int:
        return self.n_layers - self.n_expert_layers
