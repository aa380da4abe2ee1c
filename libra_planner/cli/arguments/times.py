"""What the commands that tell times take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from libra_planner import allowed
from libra_planner.cli.arguments.making import (
    BANDWIDTH,
    JSON,
    Argument,
    Arguments,
    Titled,
    choice,
    given,
    number,
    plan_prices,
    switch,
    text,
)
from libra_planner.reading.bundled import PLANS


def collective() -> Arguments:
    """Of ``collective``."""
    clock = (
        "messages take whole multiples of this, rounded down (default 1 as in ASTRA-sim; 0 for "
        "none)"
    )
    split = "balanced: also the best split of the data over orders of the dimensions"
    kinds, schedules = ("hierarchical", "balanced"), allowed.COLLECTIVE_SCHEDULES
    size = "full vector, such as 64MiB (for an all-gather the gathered result)"
    system = (
        "instead of TOPOLOGY: as measured on nodes of an NPU, such as h100-sxm, or on your own "
        "(a file of calibrate)"
    )
    blocks = "ring, direct, direct1, halving_doubling or default, each"
    return (
        text("topology", "TOPOLOGY", "such as RI(4)_SW(8)", nargs="?"),
        text("--kind", "KIND", "all-reduce, reduce-scatter, all-gather or all-to-all"),
        text("--size", "SIZE", size),
        text("--bandwidth", "B1,B2,...", BANDWIDTH),
        text("--latency-ns", "NS", "latency per hop, one number or one per dimension (default 0)"),
        text("--chunks", "N", "equal parts of the vector, or auto for the fastest (default 1)"),
        text("--algorithms", "A1,A2,...", blocks),
        text("--csv", "CASES", "file of collectives; the other values become its defaults"),
        text("--system", "NPU", system),
        number("--nodes", *allowed.NODES, "of a --system; default 1"),
        number("--npus-per-node", *allowed.NPUS_PER_NODE, "that take part; default: all of a node"),
        text("--nics", "NxSPEED", "of a node of a --system, such as 8x400Gbps; default: the usual"),
        choice("--interconnect", allowed.INTERCONNECTS, "default infiniband"),
        text("--clock-ns", "NS", clock, default="1"),
        switch("--in-network", "switches reduce (all-reduce)"),
        choice("--schedule", schedules, "who sends to whom; ideal figures only", default=None),
        choice("--scheduler", kinds, split, default=kinds[0]),
        JSON,
    )


def calibrate() -> Arguments:
    """Of ``calibrate``."""
    logs = "output of nccl-tests, or CSV files with gpu_type and time_s"
    npu = "whose runs count (default: the only one in the files)"
    network = "default: what the files say, else infiniband"
    kind = "of logs that do not name it, such as all-reduce"
    return (
        text("--nccl", "LOG", logs, nargs="+", action="extend"),
        text("--kernels", "CSV", "measured kernels"),
        text("--runs", "CSV", "measured training runs, as train --csv reads them"),
        text("--npu", "NPU", npu),
        text("--nics", "NxSPEED", "of a node, such as 8x400Gbps"),
        choice("--interconnect", allowed.INTERCONNECTS, network),
        text("--kind", "KIND", kind),
        text("--name", "NAME", "of the system (default: the name of the file)"),
        text("--as-of", "DAY", "day of the measurements, YYYY-MM-DD; default today"),
        text("-o --output", "SYSTEM", "system file to write (YAML)", required=True),
        JSON,
    )


def kernels() -> Arguments:
    """Of ``kernels``."""
    burst = "at the clock of a run too short for power to limit it, as serving frameworks measure"
    counts = {
        "--m": "rows of a multiply",
        "--n": "columns of its result",
        "--k": "its depth",
        "--groups": "equal multiplies of one call, such as those of experts; default 1",
        "--batch": "sequences of attention, or multiplies of one call; default 1",
        "--heads": "of attention",
        "--kv-heads": "of its keys and values; default: as many as heads",
        "--seq-q": "queries of a sequence",
        "--seq-kv": "keys of a sequence; default: as many as queries",
        "--head-dim": "width of queries and keys",
        "--head-dim-v": "width of values; default: that of keys",
        "--rows": "of norms, softmax and activations",
        "--cols": "numbers of a row",
    }
    shape = [number(name, *allowed.KERNEL_COUNT, what) for name, what in counts.items()]
    return (
        text("--csv", "KERNELS", "file of kernels; adds predicted_time_s and message"),
        text("--npu", "NPU", "such as h100-sxm"),
        text("--op", "OP", "gemm, attention, rms_norm, gelu ..."),
        *shape,
        switch("--causal", "attention in which a token sees only those before it"),
        text("--dtype", "TYPE", "bf16 (default), fp16, fp8 ...", default="bf16"),
        choice("--pass", allowed.PASSES, "default fwd", default="fwd", dest="way"),
        switch("--burst", burst),
        text("--catalogue", "FILE", "NPU catalogue: a name or a path"),
        JSON,
    )


_RUN = {
    "--gpus --npus": "NPUs in all; default: the product of the degrees",
    "--global-batch": "sequences per step",
    "--seq": "tokens of a sequence; default: the model's",
}
_DEGREES = {
    "--tp": "tensor parallelism; default 1",
    "--cp": "context parallelism; default 1",
    "--pp": "pipeline stages; default 1",
    "--dp": "data parallelism; default: what is left of the NPUs",
    "--ep": "expert parallelism; default 1",
    "--etp": "tensor parallelism of experts; default 1",
    "--interleave": "chunks of layers of each stage; default 1",
}
_SHAPE = {
    "--layers": "layers",
    "--hidden": "width of the model",
    "--heads": "query heads",
    "--kv-heads": "heads of keys and values",
    "--ffn": "width of the feed-forward part",
    "--moe-ffn": "width of one expert",
    "--vocab": "tokens known",
    "--experts": "routed experts of a layer",
    "--topk": "experts of a token",
}
_TAPER = (
    text("--taper --oversubscription", "T", "links down over links up of a leaf; default 1"),
    number(
        "--nodes-per-leaf", *allowed.RUN_COUNT, "where there is a taper; default: up to 32 that fit"
    ),
)
"""Of the network of the NICs."""


def train() -> Arguments:
    """Of ``train``."""
    yield text("--model", "NAME", "bundled model, workload file, or any name with --layers ...")
    yield text("--npu", "NAME", "such as h100-sxm: list npus")
    yield from _counts(_RUN)
    yield choice("--dtype", allowed.MATRIX_TYPES, "of matrix multiplies; default bf16")
    full = "scores counted in model FLOP/s: full (default, as Megatron) or causal (half)"
    yield choice("--attention-flops", allowed.ATTENTION_FLOPS, full, default="full")
    yield text("--csv", "RUNS", "table of runs; adds predictions and a message to every row")
    yield JSON
    yield Titled("parallelism", [*_parallelism()])
    nics = "cluster: list clusters; or NICs of a node, such as 8x400Gbps"
    system = text("--system", "FILE", "constants of your cluster, by calibrate (YAML)")
    yield Titled("network", [text("--fabric", "NAME", nics), *_TAPER, system])
    yield Titled("shape, instead of the model's own", [*_counts(_SHAPE)])


def _counts(known: Mapping[str, str]) -> Iterator[Argument]:
    return (number(names, *allowed.RUN_COUNT, what) for names, what in known.items())


def _parallelism() -> Iterator[Argument | list[Argument]]:
    yield from _counts(_DEGREES)
    yield text("--microbatch", "N", "sequences of a microbatch; auto: the fastest that fits")
    yield choice("--zero", allowed.ZERO_STAGES, "ZeRO stage (3: FSDP); default: the library's")
    yield choice("--recompute", allowed.RECOMPUTED, "of activations; default: the library's")
    yield [
        switch("--sequence-parallel", "split norms over tp", default=None),
        switch(
            "--no-sequence-parallel",
            "keep norms whole",
            dest="sequence_parallel",
            action="store_false",
            default=None,
        ),
    ]
    yield text(
        "--library",
        "NAME",
        "whose defaults hold: megatron-core (default), nemo, "
        "megatron-2021, megatron-lm, deepspeed, megascale, deepseek, fsdp or internevo",
    )
    yield choice("--schedule", allowed.PIPELINE_SCHEDULES, "of the pipeline; default 1f1b")


def search() -> Arguments:
    """Of ``search``."""
    nics = "cluster: list clusters; or NICs of a node, such as 8x400Gbps"
    plan = "plan of a whole model: its strategy and fabric are chosen; instead of --model ..."
    settings = "override a value of the plan"
    return (
        given("plan", "PLAN", plan, PLANS, nargs="?"),
        text("--set", "KEY=VALUE", settings, dest="settings", action="append", default=[]),
        text("--model", "NAME", "bundled model, or workload file"),
        text("--npu", "NAME", "such as h100-sxm: list npus"),
        number("--gpus --npus", *allowed.RUN_COUNT, "NPUs in all"),
        text("--global-batch", "N[,N...]", "sequences per step; the best of several is found"),
        number("--seq", *allowed.RUN_COUNT, "tokens of a sequence; default: the model's"),
        choice("--dtype", allowed.MATRIX_TYPES, "of matrix multiplies; default bf16"),
        text("--library", "NAME", "whose defaults hold; default megatron-core"),
        text("--fabric", "NAME", nics),
        *_TAPER,
        number("--top", *allowed.STRATEGIES, "strategies to rank; default 5"),
        switch("--pareto", "of a plan: the fastest strategy and network at each cost"),
        number(
            "--points",
            *allowed.POINTS,
            "of --pareto; default 25; of prices: bill all options count",
        ),
        switch("--csv", "print --pareto as CSV (instead of --json)"),
        JSON,
        Titled("prices, of a plan", plan_prices()),
    )
