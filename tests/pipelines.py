"""Discrete-event simulation of pipeline schedules: every pass of every stage, one after the other.

Independent of the closed forms (C17): each stage has its list of passes in the order of its
schedule; a pass begins when its stage is free and what it needs from another one is there.
"""

from __future__ import annotations

from dataclasses import dataclass

Pass = tuple[str, int, int]
"""``F``, ``B`` (of inputs), ``W`` (of weights) or ``BW`` (of both), microbatch, chunk."""


@dataclass(frozen=True)
class Chunk:
    """Seconds of one microbatch on one chunk of a stage."""

    forward: float
    backward: float
    weights: float

    def seconds(self, kind: str) -> float:
        both = self.backward + self.weights
        return {"F": self.forward, "B": self.backward, "W": self.weights, "BW": both}[kind]


def one_f_one_b(n_stages: int, m: int, stage: int) -> list[Pass]:
    """Warm-up of p - s - 1 forwards, then one forward and one backward by turns."""
    n_warm = min(n_stages - stage - 1, m)
    order: list[Pass] = [("F", i, 0) for i in range(n_warm)]
    for i in range(m):
        if i + n_warm < m:
            order.append(("F", i + n_warm, 0))
        order.append(("BW", i, 0))
    return order


def interleaved(n_stages: int, m: int, n_chunks: int, stage: int) -> list[Pass]:
    """Megatron's order: p microbatches of a chunk, then of the next one."""
    total = m * n_chunks

    def nth(k: int, forward: bool) -> tuple[int, int]:
        turn, place = divmod(k, n_stages * n_chunks)
        chunk, i = divmod(place, n_stages)
        return turn * n_stages + i, chunk if forward else n_chunks - 1 - chunk

    n_warm = min(2 * (n_stages - stage - 1) + (n_chunks - 1) * n_stages, total)
    order: list[Pass] = [("F", *nth(k, True)) for k in range(n_warm)]
    for k in range(total):
        if k + n_warm < total:
            order.append(("F", *nth(k + n_warm, True)))
        i, chunk = nth(k, False)
        order.append(("BW", i, chunk))
    return order


def zero_bubble(n_stages: int, m: int, fill: int, stage: int) -> list[Pass]:
    """H1 (fill 1) and H2 (fill 2) of arXiv 2401.10241: weight gradients wait ``fill`` s turns.

    H1 holds p microbatches on every stage, H2 2p - 1.
    """
    n_warm = min(n_stages - stage if fill == 1 else 2 * (n_stages - stage) - 1, m)
    order: list[Pass] = [("F", i, 0) for i in range(n_warm)]
    n_waiting = fill * stage
    for i in range(m):
        order.append(("B", i, 0))
        if i >= n_waiting:
            order.append(("W", i - n_waiting, 0))
        if i + n_warm < m:
            order.append(("F", i + n_warm, 0))
    return order + [("W", i, 0) for i in range(max(m - n_waiting, 0), m)]


def spans(orders: list[list[Pass]], chunks: list[list[Chunk]]) -> list[tuple[float, float]]:
    """Begin of the first and end of the last pass of every stage.

    Parameters
    ----------
    orders : passes of every stage.
    chunks : seconds, [stage][chunk].
    """
    n_stages, n_chunks = len(chunks), len(chunks[0])
    ended: dict[tuple[str, int, int], float] = {}  # kind, microbatch, place in the model
    free, first, at = [0.0] * n_stages, [-1.0] * n_stages, [0] * n_stages
    while any(at[s] < len(orders[s]) for s in range(n_stages)):
        moved = False
        for s in range(n_stages):
            while at[s] < len(orders[s]):
                kind, i, chunk = orders[s][at[s]]
                place = chunk * n_stages + s
                if kind == "F":
                    needed = ("F", i, place - 1) if place else None
                elif kind == "W":
                    needed = ("B", i, place)
                else:
                    is_last = place == n_stages * n_chunks - 1
                    needed = ("F", i, place) if is_last else (kind, i, place + 1)
                if needed is not None and needed not in ended:
                    break
                begin = max(free[s], ended[needed] if needed else 0.0)
                first[s] = begin if first[s] < 0 else first[s]
                free[s] = begin + chunks[s][chunk].seconds(kind)
                ended[kind, i, place] = free[s]
                at[s] += 1
                moved = True
        assert moved, "the schedule deadlocks"
    return list(zip(first, free, strict=True))


def makespan_s(orders: list[list[Pass]], chunks: list[list[Chunk]]) -> float:
    """From the first pass of all to the last."""
    return max(end for _, end in spans(orders, chunks))


def longest_span_s(orders: list[list[Pass]], chunks: list[list[Chunk]]) -> float:
    """The longest time from a stage's first to its last pass."""
    return max(end - begin for begin, end in spans(orders, chunks))


def chunk_layers(n_layers: int, n_stages: int, interleave: int = 1) -> tuple[tuple[int, ...], ...]:
    """Layers of every chunk of every stage, [stage][chunk], as equal as can be.

    Chunk c of stage s is the (c p + s)-th part of the model. Where parts cannot be equal, the last
    one, which has the logits, and then the first one have a layer less before others do.
    """
    n_parts = n_stages * interleave
    least, n_more = divmod(n_layers, n_parts)
    parts = [least + (0 < i <= n_more) for i in range(n_parts)]
    if n_more == n_parts - 1:
        parts[0], parts[-1] = least + 1, least
    return tuple(tuple(parts[stage::n_stages]) for stage in range(n_stages))


def makespan_with_sends_s(
    orders: list[list[Pass]], chunks: list[list[Chunk]], forward_s: float, backward_s: float
) -> float:
    """The same where every pass sends its result on, and a stage's port sends one at a time.

    As Megatron's ``overlap_p2p_comm``: a send goes on beside the next pass, and the next pass of
    its own direction waits for it.
    """
    n_stages, n_chunks = len(chunks), len(chunks[0])
    sends = {"F": forward_s, "BW": backward_s}
    arrived: dict[tuple[str, int, int], float] = {}
    free, port, at = [0.0] * n_stages, [0.0] * n_stages, [0] * n_stages
    last = [{"F": 0.0, "BW": 0.0} for _ in range(n_stages)]
    while any(at[s] < len(orders[s]) for s in range(n_stages)):
        for s in range(n_stages):
            while at[s] < len(orders[s]):
                kind, i, chunk = orders[s][at[s]]
                place = chunk * n_stages + s
                is_end = place == (0 if kind == "BW" else n_stages * n_chunks - 1)
                if kind == "F":
                    needed = ("F", i, place - 1) if place else None
                else:
                    turns = place == n_stages * n_chunks - 1
                    needed = ("F", i, place) if turns else ("BW", i, place + 1)
                if needed is not None and needed not in arrived:
                    break
                begin = max(free[s], last[s][kind], arrived[needed] if needed else 0.0)
                free[s] = begin + chunks[s][chunk].seconds(kind)
                if is_end:
                    arrived[kind, i, place] = free[s]
                else:
                    port[s] = max(port[s], free[s]) + sends[kind]
                    arrived[kind, i, place] = last[s][kind] = port[s]
                at[s] += 1
    return max(free)
