"""``libra-planner train``: the contract, tables of runs, and wrong input."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from pathlib import Path

import pytest

import libra_planner as lp
from libra_planner.inputs.training.clusters import Nics, run_fabric
from libra_planner.plan.npus import catalogue_npu
from libra_planner.step.collectives import measured
from libra_planner.step.expression import TimeExpression
from libra_planner.workload.operations import Collective, CollectiveKind, Group

ONE = (
    *("train", "--model", "llama3-70b", "--npu", "h100-sxm", "--gpus", "64", "--tp", "4"),
    *("--pp", "4", "--cp", "2", "--global-batch", "128", "--interleave", "5"),
)
HEADER = "model,gpu_type,gpus,tp,pp,dp,microbatch,global_batch,seq,owner\n"
ROW = "GPT-3 175B,A100-SXM-80GB,1024,8,16,8,1,1536,2048,me\n"


def _json(run, *arguments: object) -> dict:
    result = run(*arguments, "--json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_flags_are_not_blank_and_name_what_does_not_divide(run) -> None:
    asked = ["train", "--model", "llama3-70b", "--npu", "h100-sxm", "--global-batch", "1024"]
    result = run(*asked, "--gpus", "1024", "--tp", "4", "--taper", "nan")
    assert (result.code, "--taper: got taper 'nan', expected a number" in result.err) == (2, True)
    result = run(*asked, "--gpus", "1024", "--tp", "7")
    near = "expected a divisor of the 1,024 NPUs; write"
    assert result.err.strip() == f"--tp: got tp 7, {near} tp 8"
    result = run(*asked, "--gpus", "1024", "--tp", "8", "--pp", "100", "--cp", "3")
    assert sorted(result.err.splitlines()) == [
        f"--cp: got cp 3, {near} cp 2 and pp 64",
        f"--pp: got pp 100, {near} cp 2 and pp 64",
    ]
    result = run(*asked, "--gpus", "1024", "--tp", "4", "--pp", "3", "--dp", "64")
    assert result.err.strip().endswith(
        "on 1024 NPUs, expected degrees that multiply to them; write pp 4, or gpus 768"
    )
    result = run(*asked, "--gpus", "64", "--tp", "4")
    assert "It would fit with zero: 3, or with pp: 8, dp: 2" in result.out
    asked[2] = "qwen3-235b-a22b"
    result = run(*asked, "--gpus", "1024", "--tp", "4", "--ep", "12")
    assert (
        "got ep 12, expected a divisor of the 128 experts of qwen3-235b-a22b; write ep 8 or 16"
        in result.err
    )


@pytest.mark.parametrize(
    "degrees",
    [
        *("--tp 8 --pp 4", "--tp 5 --pp 4", "--tp 4 --pp 4", "--tp 3 --pp 5", "--tp 4 --pp 15"),
        *("--tp 7", "--cp 9 --pp 11", "--tp 8 --dp 8", "--pp 61"),
    ],
)
def test_degrees_and_npus_that_are_proposed_are_a_run(run, degrees: str) -> None:
    given = {"model": "llama3-70b", "npu": "h100-sxm", "gpus": "60", "global-batch": "128"}
    names = degrees.replace("--", "").split()
    given |= dict(zip(names[::2], names[1::2], strict=True))
    refused = run("train", *(f"--{name}={value}" for name, value in given.items()))
    assert refused.code == 2
    fix = refused.err.splitlines()[0].rpartition("; ")[2]
    ways = [dict(re.findall(r"(tp|cp|dp|pp) (\d+)", fix))]
    ways += [{"gpus": n} for n in re.findall(r"\d+", fix.partition("gpus ")[2])]
    if said := re.search(r"write ([\d or]+)$", fix):
        ways = [{"global-batch": n} for n in said[1].split(" or ")]
    assert any(ways)
    for way in filter(None, ways):
        found = run("train", *(f"--{name}={value}" for name, value in {**given, **way}.items()))
        assert found.code == 0, (fix, found.err)


def test_what_would_fit_is_followed_to_a_run_that_fits(run) -> None:
    """On 72 nodes of 8, experts included."""
    asked = ["train", "--model", "qwen3-235b-a22b", "--npu", "h100-sxm", "--global-batch", "1152"]
    found = _json(run, *asked, "--gpus", "576", "--tp", "4")
    assert not found["fits"]
    assert found["would_fit"]
    for changes in found["would_fit"]:
        given = {"tp": "4"}
        given |= dict(re.findall(r"(\w+): (\w+)", ", ".join(changes)))
        given.pop("sequence_parallel", None)
        flags = [f"--{name}={value}" for name, value in given.items()]
        assert _json(run, *asked, "--gpus", "576", *flags)["fits"], changes


def test_the_keys_of_the_contract(run) -> None:
    found = _json(run, *ONE)
    keys = {"step_time_s", "model_tflops_per_gpu", "hardware_tflops_per_gpu", "mfu"}
    keys |= {"tokens_per_s_per_gpu", "memory_GB", "fits", "split_s", "notes"}
    assert keys <= set(found)
    assert found["fits"] is True
    assert sum(found["split_s"].values()) == pytest.approx(found["step_time_s"])
    assert sum(found["memory_parts_GB"].values()) == pytest.approx(found["memory_GB"])
    tokens = 128 * 8192 / found["step_time_s"] / 64
    assert found["tokens_per_s_per_gpu"] == pytest.approx(tokens)
    assert found["mfu"] == pytest.approx(found["model_tflops_per_gpu"] / 989.4)


def test_text_says_time_memory_and_what_was_assumed(run) -> None:
    out = run(*ONE).out
    for words in ("Step ", "tokens/s per NPU", "MFU", "pipeline bubble", "fits the 85.5 GB"):
        assert words in out
    assert "Assumed: sequences of 8,192 tokens, the model's own; no recomputation" in out


def test_causal_attention_counts_fewer_flops(run) -> None:
    full, half = (_json(run, *ONE, "--attention-flops", x) for x in ("full", "causal"))
    assert half["model_tflops_per_gpu"] < full["model_tflops_per_gpu"]
    assert half["step_time_s"] == full["step_time_s"]


def test_recomputation_costs_time_saves_memory_and_is_no_work_of_the_model(run) -> None:
    none, full = (_json(run, *ONE, "--recompute", x) for x in ("none", "full"))
    assert full["step_time_s"] > none["step_time_s"]
    assert full["memory_GB"] < none["memory_GB"]
    ratio = full["hardware_tflops_per_gpu"] / full["model_tflops_per_gpu"]
    assert ratio == pytest.approx(4 / 3)


def test_the_fastest_microbatch_fits(run) -> None:
    shape = ("train", "--layers", 16, "--hidden", 4096, "--heads", 32, "--npu", "H100")
    more = ("--gpus", 8, "--tp", 2, "--seq", 4096, "--global-batch", 64, "--vocab", 32000)
    best = _json(run, *shape, *more, "--microbatch", "auto")
    size = best["parallelism"]["microbatch"]
    assert best["fits"]
    for other in (1, 2, 4, 8, 16):
        one = _json(run, *shape, *more, "--microbatch", other)
        assert not one["fits"] or one["step_time_s"] >= best["step_time_s"]
    assert f"microbatches of {size}, the fastest that fits" in best["notes"]


def test_a_model_from_a_file_and_flags_that_change_it(run, tmp_path: Path) -> None:
    text = Path("workloads/llama3-70b.yaml").read_text()
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    assert _json(run, *ONE, "--model", file)["model"]["parameters"] == 70553706496
    changed = _json(run, *ONE, "--ffn", 14336, "--kv-heads", 16, "--layers", 40)["model"]
    assert (changed["ffn"], changed["kv_heads"], changed["layers"]) == (14336, 16, 40)


def test_fabrics_by_name_and_by_nics(run) -> None:
    dear, cheap = (_json(run, *ONE, "--fabric", x) for x in ("superpod-h100", "2x100Gbps"))
    assert dear["bandwidth_GBps"] == [450.0, 50.0]
    assert cheap["bandwidth_GBps"] == [450.0, 3.125]
    assert cheap["step_time_s"] > dear["step_time_s"]
    listed = _json(run, "list", "clusters")["clusters"]
    assert listed["superpod-h100"]["nics"] == "8 x 400 Gbps"


def test_tables_keep_their_columns_and_gain_four(run, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    rows = [
        ROW,
        "Nemotron-H 56B (hybrid Mamba),H100,64,8,1,8,1,64,8192,me\n",
        "Llama3-70B LoRA,H100,8,2,4,1,1,32,4096,me\n",
        "GPT-3 175B,A100-80GB,1024,8,16,8,1,1536,,me\n",
        "GPT-3 175B,A100-80GB,1024,8,16,8,1,,2048,me\n",
        "GPT-3 175B,A100-80GB,1024,8,16,7,1,1536,2048,me\n",
        "GPT-3 175B,abacus,1024,8,16,8,1,1536,2048,me\n",
        "GPT-3 175B,A100-80GB,many,8,16,8,1,1536,2048,me\n",
    ]
    file.write_text(HEADER + "".join(rows))
    result = run("train", "--csv", file)
    assert result.code == 0
    assert "7 of 8 rows have no predicted time" in result.err
    found = list(csv.DictReader(io.StringIO(result.out)))
    assert [row["owner"] for row in found] == ["me"] * 8
    assert float(found[0]["predicted_step_time_s"]) > 0
    assert float(found[0]["predicted_memory_GB"]) > 0
    assert found[0]["message"].startswith("assumed: ")
    words = ("Mamba layers: not modelled", "not modelled", "no sequence length", "global batch")
    for row, said in zip(found[1:5], words, strict=True):
        assert row["predicted_step_time_s"] == ""
        assert said in row["message"]
    assert [bool(row["message"]) for row in found[5:]] == [True] * 3


def test_a_thousand_rows_take_less_than_a_minute(run, tmp_path: Path) -> None:
    """Of one core, whatever else runs: a quarter of them takes less than a quarter of it."""
    file = tmp_path / "runs.csv"
    file.write_text(HEADER + ROW * 250)
    begin = time.process_time()
    assert run("train", "--csv", file).out.count("\n") == 251
    assert time.process_time() - begin < 15


def test_an_fsdp_batch_is_split_for_a_pipeline(run, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    header = "model,gpu_type,gpus,tp,pp,dp,microbatch,global_batch,seq,parallel_style\n"
    file.write_text(header + "Llama3-8B,H100,64,1,8,8,16,128,8192,FSDP+PP\n")
    found = next(csv.DictReader(io.StringIO(run("train", "--csv", file).out)))
    assert "microbatches of 2, of a rank's batch split over 8 stages" in found["message"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--npu", "h200x"), "--npu: got 'h200x'"),
        (("--model", "resnet50"), "--model: got resnet50"),
        (("--model", "nosuch.yaml"), "nosuch.yaml: got no such file"),
        (("--fabric", "foo"), "--fabric: got the fabric 'foo'"),
        (("--fabric", "8x400"), "or the NICs of a node; write 8x400Gbps"),
        (("--library", "foo"), "--library: got 'foo'"),
        (("--dtype", "fp4"), "--dtype: got fp4 on h100-sxm"),
        (("--tp", "3", "--gpus", "24"), "--tp: got tp 3, expected a divisor of the 64 heads"),
        (("--gpus", "60"), "--gpus: got tp 4 x cp 2"),
        (("--ep", "2"), "--ep: got ep 2, expected 1"),
        (("--microbatch", "x"), "--microbatch: got microbatch 'x'"),
        (("--global-batch", "127"), "--global-batch: got 127 sequences"),
        (("--global-batch", "126"), "write a global batch of 120 or 128, or interleave: 1"),
        (("--heads", "128"), "--heads: got 128, llama3-70b has 64 heads; leave --model out"),
        (("--hidden", "4096"), "--hidden: got 4,096, llama3-70b has 8,192; leave --model out"),
        (("--model", "workloads/gpt3.yaml", "--heads", "64"), "gpt3.yaml has 96 heads"),
        (("--experts", "8"), "--experts: got 8, llama3-70b has no experts; leave it out"),
        (("--moe-ffn", "8"), "--moe-ffn: got 8, llama3-70b has no experts; leave it out"),
        (("--kv-heads", "5"), "--kv-heads: got 5, expected a divisor of the 64 heads"),
        (("--model", "mixtral-8x7b", "--ffn", "99"), "--ffn: got 99, mixtral-8x7b has experts"),
        (("--model", "mixtral-8x7b", "--topk", "9"), "--topk: got 9, expected at most the 8"),
        (("--model", "deepseek-v3", "--kv-heads", "8"), "--kv-heads: got 8, deepseek-v3 has la"),
        (("--pp", "1"), "--interleave: got 5 chunks of a stage with pp 1, expected 1"),
        (("--pp", "1", "--schedule", "zb-h1"), "--schedule: got zb-h1 with pp 1, expected 1f1b"),
        (("--microbatch", "0"), "--microbatch: got microbatch 0, expected 1 or more"),
        (("--taper", ""), "--taper: got '', expected a value"),
        (("--fabric", " "), "--fabric: got ' ', expected a value"),
        (("--library", ""), "--library: got '', expected a value"),
        (("--csv", "runs.csv"), "beside --csv"),
        (("--taper", "0.5"), "--taper: got 0.5, expected a taper from 1"),
        (("--nodes-per-leaf", "4"), "--nodes-per-leaf: got 4 nodes per leaf, expected them with"),
        (("--taper", "2", "--nodes-per-leaf", "3"), "write a divisor of 8"),
    ],
)
def test_bad_input_names_the_flag(run, more: tuple[str, ...], words: str) -> None:
    result = run(*ONE, *more)
    assert result.code == 2
    assert words in result.err


def test_another_batch_is_proposed_before_a_split_of_sequences_that_helps_nobody(run) -> None:
    one = ("train", "--model", "llama2-13b", "--npu", "h100-sxm", "--gpus", 2048, "--pp", 4)
    words = "expected a divisor of the 40 heads of llama2-13b; write tp 8 and global_batch 1024"
    assert words in run(*one, "--tp", 16, "--global-batch", 1000).err
    assert _json(run, *one, "--tp", 8, "--global-batch", 1024)["step_time_s"] < 1
    far = run(*one, "--tp", 16, "--global-batch", 9).err  # No batch of 64 is near 9.
    assert "global_batch" not in far


def test_an_own_shape_is_possible_and_all_of_it_counts(run) -> None:
    shape = ("train", "--layers", 8, "--hidden", 4096, "--heads", 32, "--npu", "H100", "--gpus", 8)
    shape = (*shape, "--seq", 4096, "--global-batch", 8)
    assert "--topk: got 2, own shape has no experts" in run(*shape, "--topk", 2).err
    assert "--topk: got 8, expected at most the 4" in run(*shape, "--experts", 4, "--topk", 8).err
    assert "--kv-heads: got 5, expected a divisor" in run(*shape, "--kv-heads", 5).err
    named = _json(run, *shape, "--model", "mine", "--experts", 4, "--topk", 2)["model"]
    assert (named["name"], named["experts"], named["topk"]) == ("mine", 4, 2)


def test_one_npu_has_no_network(run) -> None:
    asked = ("--model", "llama3-8b", "--npu", "h100-sxm", "--gpus", "1", "--global-batch", "8")
    for command in ("train", "search"):
        result = run(command, *asked)
        assert (result.code, result.err.strip()) == (2, "--gpus: got 1 NPU, expected two or more")


def test_what_does_not_fit_says_what_would(run) -> None:
    large = ("train", "--model", "gpt3", "--npu", "A100-80GB", "--gpus", 64, "--tp", 8)
    asked = (*large, "--pp", 8, "--global-batch", 64, "--microbatch", 8)
    found = _json(run, *asked)
    assert found["fits"] is False
    assert found["would_fit"]
    out = run(*asked).out
    assert "does not fit" in out
    assert "It would fit with" in out


def test_bands_hold_the_time_and_are_absent_without_a_class(run) -> None:
    found = _json(run, *ONE)
    assert found["step_time_low_s"] < found["step_time_s"] < found["step_time_high_s"]
    assert found["band"] == "H100 dense bf16"
    near = _json(run, *ONE, "--npu", "h200-sxm")
    assert near["band"] == "H100 dense bf16 (too few are of H200)"
    ends = [near["step_time_s"] / x for x in (1.19, 0.81)]
    assert [near["step_time_low_s"], near["step_time_high_s"]] == pytest.approx(ends)
    text = run(*ONE, "--npu", "h200-sxm").out
    assert "as published runs of H100 dense bf16 (too few are of H200) are off" in text
    other = _json(run, *ONE, "--npu", "mi300x")
    assert other["step_time_low_s"] is None
    assert other["band"] == "no measured class"
    text = run(*ONE, "--npu", "mi300x").out
    assert "(no range: too few runs of MI300X dense bf16 are published)" in text


def test_experts_say_what_is_taken_for_granted(run) -> None:
    more = ("--gpus", 64, "--ep", 8, "--global-batch", 64)
    found = _json(run, "train", "--model", "mixtral-8x7b", "--npu", "H100", *more)
    assert any("no token is dropped" in note for note in found["notes"])
    nemo = _json(run, "train", "--model", "mixtral-8x7b", "--npu", "H100", *more, "--tp", 2)
    assert nemo["parallelism"]["etp"] == 1


def test_nothing_is_asked_without_an_npu(run) -> None:
    result = run("train", "--model", "gpt3")
    assert result.code == 2
    assert "got no --npu" in result.err


def test_a_row_without_a_time_may_have_its_memory(run, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "model,gpu_type,gpus,tp,microbatch,grad_accum,recompute,zero,parallel_style\n"
        "InternLM-7B,A800-80GB,4,4,1,4,full,FSDP,InternEvo\n"
        "InternLM-7B,A800-80GB,4,4,,4,full,FSDP,InternEvo\n"
    )
    first, second = csv.DictReader(io.StringIO(run("train", "--csv", path).out))
    assert first["predicted_step_time_s"] == second["predicted_memory_GB"] == ""
    assert 50 < float(first["predicted_memory_GB"]) < 60
    assert "for the memory assumed: sequence 2048, the model's" in first["message"]


TAPERED = (
    *("train", "--model", "llama3-70b", "--npu", "h100-sxm", "--gpus", "1024", "--tp", "4"),
    *("--pp", "8", "--dp", "32", "--global-batch", "256"),
)


def test_a_taper_slows_what_crosses_leaves(run) -> None:
    """Sends between stages cross the leaves of 32 nodes; the gradients' rings stay inside."""
    plain, one, two, seven = (
        _json(run, *TAPERED, *more)
        for more in ((), ("--taper", "1"), ("--taper", "2:1"), ("--oversubscription", "7"))
    )
    assert one == plain
    assert two["topology"] == "SW(8)_[SW(32)_SW(4)]"
    assert two["bandwidth_GBps"] == [450.0, 50.0, 25.0]
    assert plain["step_time_s"] < two["step_time_s"] < seven["step_time_s"]
    assert two["split_s"]["exposed_dp_s"] == pytest.approx(plain["split_s"]["exposed_dp_s"])
    # Leaves without a taper are one switch: the same figures by the formulas of stacks.
    none = _json(run, *TAPERED, "--taper", "1.000000000001")
    assert none["topology"] == two["topology"]
    assert none["step_time_s"] == pytest.approx(plain["step_time_s"], rel=1e-9)


def test_a_tapered_all_reduce_by_hand() -> None:
    """One rank per leaf of four: a rank's 3/2 m bytes cross its share of the uplinks.

    At 25 of 50 GB/s they take longer than on the NIC, 0.06 s of 1 GB: z + 2 sqrt(a z) with a the
    time of the ring's steps, and the start.
    """
    npu = catalogue_npu("h100-sxm", None, None, path="npu")
    fabric = run_fabric("h100-sxm", npu, 1024, Nics(50e9, taper=2))
    across = Group((1, 1, 4), (8, 32, 1))
    reduce = Collective(CollectiveKind.ALL_REDUCE, 1e9, "dp")
    time = TimeExpression(fabric.model.time(reduce, across, fabric.network), 3)
    steps_s = measured.steps_s("all-reduce", fabric.model.ranks(across), measured.PUBLISHED)
    line_s = 1.5e9 / 25e9
    expected = measured.PUBLISHED.start_s + steps_s + line_s + 2 * math.sqrt(steps_s * line_s)
    assert float(time.seconds(fabric.bandwidth_bytes_per_s)) == pytest.approx(expected, rel=1e-12)


def test_the_taper_is_a_column_and_a_flag_of_search(run, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    row = "llama3-70b,h100-sxm,1024,4,8,32,1,256,8192"
    columns = HEADER.strip().removesuffix(",owner")
    path.write_text(f"{columns},taper\n{row},\n{row},2\n{row},0.5\n", encoding="utf-8")
    result = run("train", "--csv", path)
    cells = list(csv.DictReader(io.StringIO(result.out)))
    times = [float(cell["predicted_step_time_s"]) for cell in cells[:2]]
    assert times[0] < times[1]
    assert "expected a taper from 1" in cells[2]["message"]
    asked = ("search", "--model", "llama3-8b", "--npu", "h100-sxm", "--gpus", "512")
    asked = (*asked, "--global-batch", "512", "--top", "1")
    found = _json(run, *asked, "--taper", "4", "--nodes-per-leaf", "16")
    assert found["n_unproven"] == 0
    assert found["topology"] == "SW(8)_[SW(16)_SW(4)]"


@pytest.mark.parametrize(
    ("word", "meant"),
    [("llama3-405b", "--model llama3-405b"), ("h100sxm", "--npu h100-sxm")],
)
def test_a_name_without_its_flag(word: str, meant: str, run) -> None:
    assert f"unrecognized arguments: {word}; did you mean {meant}?" in run("train", word).err


def test_a_degree_that_is_proposed_divides_the_heads_too() -> None:
    """63 NPUs have no TP of 40 heads whose replicas divide 64 sequences."""
    with pytest.raises(lp.SpecError, match=r"the 63 NPUs; write .*gpus 56 or 64"):  # Of no batch.
        lp.train("llama3-70b", npu="h100-sxm", gpus=63, tp=8)
    with pytest.raises(lp.SpecError, match="the 63 NPUs; write gpus 32 or 64"):
        lp.train("llama2-13b", npu="h100-sxm", gpus=63, tp=8, global_batch=64)
    for gpus in (32, 64):
        found = lp.train("llama2-13b", npu="h100-sxm", gpus=gpus, tp=8, global_batch=64)
        assert found.step_time_s > 0
