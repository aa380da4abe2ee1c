"""``libra-planner kernels``: a kernel from flags, and tables of them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from libra_planner.cli.main import main
from libra_planner.plan.npus import catalogue, npu_named

HEAD = "gpu_type,op,pass,dtype,m,n,k,rows,cols,software,note,mine"


def answered(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_table_gets_its_times_and_keeps_its_columns(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(
        f"{HEAD}\n"
        "H100,gemm,fwd,bfloat16,4096,8192,8192,,,torch,,a\n"
        "H100,gemm,fwd,bfloat16,4096,8192,8192,,,TensorRT-LLM 1.3,,b\n"
        'H100,gemm,fwd,fp8,4096,8192,8192,,,x,"fp8 includes activation quantisation",c\n'
        "H100,gemm,fwd,fp8,4096,8192,8192,,,x,,d\n"
        "MI300X,gemm,fwd,bf16,4096,8192,8192,,,,,e\n"
        "H100,rope,fwd,bf16,,,,1,2048,,,f\n"
        "A100,rms_norm,bwd,bf16,,,,4096,8192,,,g\n"
        "A100,softmax,fwd,unspecified,,,,4096,8192,,,h\n"
        "A100,gemm,fwd,,1,1,1,,,,,i\n"
    )
    assert main(["kernels", "--csv", str(path)]) == 0
    out = capsys.readouterr()
    rows = answered(out.out)
    assert [row["mine"] for row in rows] == list("abcdefghi")
    times = [float(row["predicted_time_s"] or "nan") for row in rows]
    assert times[1] < times[0]
    assert times[3] < times[2]
    assert rows[4]["message"] == "no bf16 kernels of mi300x were measured: typical efficiencies"
    assert not rows[5]["predicted_time_s"]
    assert "'rope', which is not modelled" in rows[5]["message"]
    assert not rows[0]["message"]
    assert times[6] > 0
    assert rows[7]["message"] == "data type not told: counted as fp32"
    assert "dtype: got ''" in rows[8]["message"]
    assert "2 of 9 rows have no time" in out.err


def test_a_row_is_what_its_flags_say(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(f"{HEAD}\nH100,gemm,fwd,bfloat16,4096,8192,8192,,,torch,,a\n")
    assert main(["kernels", "--csv", str(path)]) == 0
    [row] = answered(capsys.readouterr().out)
    flags = "--npu h100-sxm --op gemm --m 4096 --n 8192 --k 8192 --dtype bf16 --json"
    assert main(["kernels", *flags.split()]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one["time_s"] == float(row["predicted_time_s"])
    assert one["time_s_low"] < one["time_s"] < one["time_s_high"]
    assert one["tflops"] == pytest.approx(2 * 4096 * 8192**2 / one["time_s"] / 1e12)
    assert (one["bound_by"], one["measured"]) == ("compute", True)
    assert main(["kernels", "--csv", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"] == [one]


def test_what_nobody_measured_has_no_band(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--npu tpu-v5p --op gemm --m 4096 --n 8192 --k 8192"
    assert main(["kernels", *flags.split(), "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert (one["measured"], one["time_s_low"], one["time_s_high"]) == (False, None, None)
    assert main(["kernels", *flags.split()]) == 0
    text = capsys.readouterr().out
    assert "no measured class" in text
    assert "no bf16 kernels of tpu-v5p were measured" in text


@pytest.mark.parametrize(
    "flags",
    [
        "--op attention --heads 64 --kv-heads 8 --seq-q 8192 --head-dim 128 --causal --pass bwd",
        "--op rms_norm --rows 4096 --cols 8192",
        "--op swiglu --rows 4096 --cols 8192 --pass fwd+bwd",
        "--op grouped_gemm --m 128 --n 7168 --k 2048 --groups 64 --burst",
    ],
)
def test_text_fits_a_terminal(flags: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--npu", "b200", *flags.split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    assert any("Time" in line for line in lines[1:3])  # The first lines are one or two.


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("", "got no --npu and --op"),
        ("--npu h10-sxm --op gemm", "--npu: got 'h10-sxm', .*did you mean h100-sxm"),
        ("--npu b2000 --op gemm", "--npu: got 'b2000', .*did you mean b200-sxm"),
        ("--npu H100 --op gemmm", "--op: got 'gemmm', which is not modelled"),
        ("--npu H100 --op gemm --m 1 --n 2", "--k: got nothing, expected a whole number"),
        ("--npu A100 --op gemm --m 1 --n 2 --k 3 --dtype fp8", "--dtype: got fp8, expected a type"),
        ("--npu A100 --op gemm --m 1 --n 2 --k 3 --dtype bf17", "--dtype: got 'bf17'"),
        ("--npu A100 --op attention --heads 1 --seq-q 1 --head-dim 8 --pass fwd+bwd", "--pass"),
        ("--csv x.csv --m 3", "got --m beside --csv"),
        ("--csv x.csv --burst", "got --burst beside --csv"),
    ],
)
def test_wrong_input_is_one_message(
    flags: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import re

    assert main(["kernels", *flags.split()]) == 2
    assert re.search(words, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu_type,op\nH100,gemm\n", "got no column dtype"),
        ("gpu_type,op,dtype\nH100,gemm\n", "got 2 cells, expected 3"),
        ("gpu_type,op,dtype,message\nH100,gemm,bf16,x\n", "'message', which this command adds"),
        ("gpu_type,op,dtype,op\nH100,gemm,bf16,x\n", "op"),
    ],
)
def test_wrong_tables_are_refused(
    text: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(text)
    assert main(["kernels", "--csv", str(path)]) == 2
    assert words in capsys.readouterr().err


def test_constants_of_ones_own_are_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "kind: npu_catalogue\nsource: s\nas_of: t\n"
        "npus: {mine: {vendor_name: v, peak_TFLOPps: {bf16: 1000}, memory_GB: 80, source: s, "
        "memory_bandwidth_GBps: 3000, n_cores: 100, kernels: fast, kernels_measured: [bf16]}}\n"
        "kernels: {fast: {source: s, constants: {gemm_fraction: 1.0, idle_fraction: 0.0, "
        "prologue_depth: 0.0, launch_s: 0.000001}}}\n"
    )
    flags = "--npu mine --op gemm --m 12800 --n 25600 --k 8192 --json"
    assert main(["kernels", *flags.split(), "--catalogue", str(own)]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one["time_s"] == pytest.approx(2 * 12800 * 25600 * 8192 / 1e15 + 1e-6, rel=1e-9)


def test_names_of_tables_are_read() -> None:
    npus = catalogue().npus
    spellings = {
        "H100": "h100-sxm",
        "A100": "a100-sxm-80gb",
        "V100": "v100-sxm-32gb",
        "A100-PCIe": "a100-pcie",
        "Tesla V100-PCIE-32GB": "v100-pcie",
        "A100(Ampere)-80GB": "a100-sxm-80gb",
        "A800-80GB": "a800-sxm-80gb",
        "TPUv4": "tpu-v4",
        "TPU v5e": "tpu-v5e",
        "H100 96GB HBM2e 500W cap (Grand Teton, 400 Gb/s RDMA per GPU)": "h100-96gb",
        "MI355X": "mi355x",
        "H100 NVL": None,
        "": None,
    }
    assert {name: npu_named(name, npus) for name in spellings} == spellings
