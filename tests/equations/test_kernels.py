"""Times of kernels (C18): one multiply by hand, and a loop over tiles on random shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from libra_planner.errors import SpecError
from libra_planner.plan.npus import catalogue, npu_kernels
from libra_planner.workload.kernels import RANGES, KernelConstants, Kernels

FOUND = KernelConstants(
    launch_s=2e-6, memory_fraction=0.8, gemm_fraction=0.7, idle_fraction=0.1,
    prologue_depth=112, attention_block_s=5e-6,
)  # fmt: skip
H100 = Kernels({"bf16": 1e15, "fp8": 2e15}, 3e12, n_cores=100, constants=FOUND)


def test_one_multiply_by_hand() -> None:
    """2048 x 2048 x 1024: 16 x 8 = 128 tiles on 100 cores, 1.28 waves, 2 on the busiest core."""
    columns = (0.9 * 1.28 + 0.1 * 2) * 1024 + 2 * 112
    by_hand = columns * 2 * 128 * 256 / (0.7 * 1e15 / 100) + 2e-6
    assert H100.gemm_s(2048, 2048, 1024) == pytest.approx(by_hand, rel=1e-12)


def test_one_row_is_as_fast_as_its_weights_are_read() -> None:
    n_bytes = 2 * (8192 + 8192 * 8192 + 8192)
    assert H100.gemm_s(1, 8192, 8192) == pytest.approx(n_bytes / (0.8 * 3e12) + 2e-6, rel=1e-12)


def test_attention_by_hand() -> None:
    """64 heads of 32 blocks: 20.48 waves, 21 on the busiest core; half of 4,096 keys are seen."""
    keys = (0.9 * 20.48 + 0.1 * 21) * 2048
    flops = keys * 2 * 128 * (128 + 128) * 2.5
    rate = FOUND.attention_fraction * FOUND.attention_backward_fraction * 1e15 / 100
    got = H100.attention_s(
        batch=1, n_heads=64, n_kv_heads=8, seq_q=4096, seq_kv=4096, head_dim=128, head_dim_v=128,
        is_causal=True, is_backward=True,
    )  # fmt: skip
    assert got == pytest.approx(flops / rate + 21 * 2.5 * 5e-6 + 2e-6, rel=1e-12)


def test_streams_by_hand() -> None:
    got = H100.stream_s(np.array([6e9, 0.0]), n_kernels=3)
    assert got == pytest.approx([6e9 / (FOUND.stream_fraction * 3e12) + 6e-6, 6e-6], rel=1e-12)
    norm_s = H100.stream_s(6e9, is_norm=True)
    assert norm_s == pytest.approx(6e9 / (FOUND.norm_fraction * 3e12) + 2e-6, rel=1e-12)


def test_grouped_multiplies_of_one_are_multiplies() -> None:
    assert H100.gemm_s(777, 888, 999, n_groups=1) == H100.gemm_s(777, 888, 999)
    # A group adds its tiles, its bytes and its launch.
    alone, many = H100.gemm_s(128, 256, 4096), H100.gemm_s(128, 256, 4096, n_groups=100)
    launched_s = FOUND.launch_s + 99 * FOUND.group_s
    n_bytes = 100 * 2 * ((128 + 256) * 4096 + 128 * 256)
    assert many == pytest.approx(launched_s + n_bytes / (0.8 * 3e12), rel=1e-12)
    assert alone < many


def slow_gemm_s(kernels: Kernels, m: int, n: int, k: int, n_groups: int, dtype: str) -> float:
    """Tiles given to cores one by one."""
    found = kernels.constants
    counts = []
    for rows, columns in ((128, 256), (256, 128)):
        tiles = [(i, j) for i in range(0, m, rows) for j in range(0, n, columns)]
        counts.append(len(tiles) * n_groups)
    cores = [0] * kernels.n_cores
    for tile in range(min(counts)):
        cores[tile % kernels.n_cores] += 1
    mean, most = sum(cores) / kernels.n_cores, max(cores)
    depth = (mean + found.idle_fraction * (most - mean)) * k + most * found.prologue_depth
    one_byte = dtype == "fp8"
    share = found.gemm_8bit_fraction if one_byte else found.gemm_fraction
    compute_s = depth * 2 * 128 * 256 * kernels.n_cores / (kernels.peak_flops[dtype] * share)
    n_bytes = n_groups * ((m * k + k * n) * (1 if one_byte else 2) + 2 * m * n)
    memory_s = n_bytes / kernels.memory_Bps / found.memory_fraction
    return max(compute_s, memory_s) + found.launch_s + (n_groups - 1) * found.group_s


def test_arrays_are_the_loop_over_tiles() -> None:
    rng = np.random.default_rng(0)
    shapes = np.exp(rng.uniform(0, math.log(5000), (3, 40))).astype(int)
    groups = rng.integers(1, 9, 40)
    for dtype in ("bf16", "fp8"):
        fast = H100.gemm_s(*shapes, dtype=dtype, n_groups=groups)
        for i, (m, n, k) in enumerate(shapes.T.tolist()):
            assert fast[i] == pytest.approx(
                slow_gemm_s(H100, m, n, k, int(groups[i]), dtype), rel=1e-12
            )


def test_time_is_at_least_the_roofline() -> None:
    rng = np.random.default_rng(1)
    m, n, k = np.exp(rng.uniform(0, math.log(60000), (3, 1000)))
    roofline = np.maximum(2 * m * n * k / 1e15, 2 * (m * k + k * n + m * n) / 3e12)
    assert (H100.gemm_s(m, n, k) > roofline).all()


def test_constants_of_the_catalogue_are_physical() -> None:
    for name in catalogue().npus:
        constants = npu_kernels(name).constants
        for constant, (low, high) in RANGES.items():
            assert low <= getattr(constants, constant) <= high
            if constant.endswith("fraction"):
                assert 0 <= low <= high <= 1


def test_types_that_an_npu_lacks_are_refused() -> None:
    with pytest.raises(SpecError, match="expected one of its types: bf16, fp16, tf32"):
        npu_kernels("a100-sxm-80gb").gemm_s(1, 1, 1, dtype="fp8")
    with pytest.raises(SpecError, match="data type bf17"):
        npu_kernels("a100-sxm-80gb").gemm_s(1, 1, 1, dtype="bf17")


def test_constants_beyond_physics_are_refused(tmp_path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "kind: npu_catalogue\nsource: s\nas_of: t\n"
        "npus: {a: {vendor_name: v, peak_TFLOPps: {bf16: 1}, memory_GB: 80, source: s}}\n"
        "kernels: {mine: {source: s, constants: {gemm_fraction: 1.2}}}\n"
    )
    with pytest.raises(SpecError, match=r"kernels\.mine.*got gemm_fraction 1\.2, expected 0\.2 to"):
        catalogue("./own.yaml", tmp_path)
    path.write_text(path.read_text().replace("gemm_fraction: 1.2", "gem_fraction: 1"))
    with pytest.raises(SpecError, match="got gem_fraction"):
        catalogue("./own.yaml", tmp_path)
    path.write_text(
        path.read_text().replace("gem_fraction: 1", "").replace("GB: 80,", "GB: 80, kernels: x,")
    )
    with pytest.raises(SpecError, match="got kernels 'x' of a, expected mine"):
        catalogue("./own.yaml", tmp_path)
