"""The first plan: what ``init`` writes, asks and refuses; what comes next."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from libra_planner.fabric.realization import realize
from libra_planner.inputs.plans import open_plan
from libra_planner.plan.prices import load_price_book
from libra_planner.plan.quotes import (
    CHOSEN,
    OFFERED,
    OPTIONAL,
    REQUIRED,
    known_items,
    load_quotes,
)
from libra_planner.plan.workloads import load_transformer
from libra_planner.reading.bundled import resolve


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())


MODEL = ("--model", "llama3-8b", "--npu", "h100-sxm")


@pytest.mark.parametrize(
    ("asked", "rule"), [("3", "spine == 17.1875 GB/s"), ("10", "taper(spine) == 8")]
)
def test_a_taper_that_whole_links_do_not_make_is_written_as_they_do(run, asked, rule) -> None:
    """512 links of a group of leaves go up 11 spines, not the 10.7 of 3:1; no command objects."""
    done = run("init", *MODEL, "--npus", "2048", "--taper", asked)
    assert f"the next below the {asked}:1 asked for" in done.err
    text = Path("plan.yaml").read_text()
    assert rule in text
    assert f"{asked}:1 that was asked for" in text
    Path("plan.yaml").write_text(text.replace("{zero: 1, rest: auto}", "{tp: 8, dp: 256}"))
    text = run("optimize", "plan.yaml").out
    assert "not sold" not in text
    assert f"Binds: {rule}" in text
    found = run("check", "plan.yaml", "--policy", "spray", "--json").payload
    assert found["violated_by_ports"] == []
    assert found["bandwidth_GBps"] == pytest.approx(found["realized_GBps"], rel=1e-12)


def test_equal_groups_fill_the_leaves_and_a_near_count_is_told(run) -> None:
    """1,025 nodes at 2:1 are 25 groups of 41; at 1:1 no group but 25 fits a leaf, 32 does of 1,024.

    By hand, of 8 rails at 1:1: 41 leaves and 25 spines of 64 ports each, where 32 and 16 do.
    """
    asked = ("--model", "llama3-8b", "--npu", "h200-sxm", "--npus", "8200", "--force")
    tapered = run("init", *asked, "--taper", "2")
    text = Path("plan.yaml").read_text()
    assert "topology: SW(8)_[SW(41)_SW(25)] " in text
    assert "41 nodes on the leaves, 25 such groups under spines" in text
    words = "Groups of 41 nodes fill the leaves better than 25 would"
    assert words in tapered.err
    assert f"# {words}" in text
    assert "$10.09M less at list prices" in text
    plain = run("init", *asked)
    assert "topology: SW(8)_[SW(25)_SW(41)] " in Path("plan.yaml").read_text()
    assert "cost $61.80M at list prices; 1,024 nodes (8,192 NPUs), 32 in a group," in plain.err
    assert "would cost $51.53M.\n" in plain.err
    even = run("init", *asked[:-3], "--npus", "8192", "--force")
    assert "in a group" not in even.err
    assert "groups of" not in even.err.lower()


_TP4_OF_256 = ("--set", "parallelism={tp: 4, dp: 512}", "--json")


def test_cheaper_switches_of_a_plan_are_named_and_their_edit_holds(run) -> None:
    """256 nodes on 64 + 32 switches of 64 x 400G, or on 32 + 16 of 64 x 800G that serve two NICs.

    The saving is that of `fabric`, but for spares that networks share. On the ports alone leaves
    stay half empty, which is said, too.
    """
    told = run("init", *MODEL, "--npus", "2048")
    words = (
        "witches of 64 ports of 800 Gbit/s, each for two links of 400 Gbit/s (breakout), 64 nodes "
        "to a leaf in place of 32, have the same bandwidths for $3.96M less"
    )
    assert f"S{words}" in told.err
    assert f"# s{words}" in Path("plan.yaml").read_text()
    own = run("optimize", "plan.yaml", *_TP4_OF_256).payload
    [note] = [one for one in own["notes"] if words in one]
    checked = run("check", "plan.yaml", *_TP4_OF_256, "--policy", "spray").payload
    assert note in checked["notes"]
    sized = ("fabric", "--npus", "2048", "--nic", "400Gbps")
    before, after = (run(*sized, *more, "--json").payload for more in ((), ("--port", "800Gbps")))
    assert before["cost_usd"] - after["cost_usd"] == pytest.approx(3.955e6, rel=1e-3)
    assert f"draw {(before['power_W'] - after['power_W']) / 1e3:.1f} kW less" in note
    edit = shlex.split(note.rpartition(" (")[2].partition(";")[0])
    other = run("optimize", "plan.yaml", *edit, *_TP4_OF_256).payload
    assert other["step_time_s"] <= own["step_time_s"] * (1 + 1e-9)
    assert not any("have the same bandwidths" in one for one in other["notes"])
    spray = ("--set", "parallelism={tp: 4, dp: 512}", "--policy", "spray")
    assert "training network: 48 switches" in run("check", "plan.yaml", *edit, *spray).out
    port = ("--set", "fabric.realization.port=800 Gbit/s")
    half = run("optimize", "plan.yaml", *port, *_TP4_OF_256).payload
    free = "64 nodes to a leaf in place of 32, as 2,048 of 4,096 ports of leaves are free, have"
    assert any(free in one for one in half["notes"])
    named = ("--set", "fabric.realization.parts={switch: [switch-64x400g]}")
    own = run("optimize", "plan.yaml", *named, *_TP4_OF_256).payload
    assert not any("breakout" in one for one in own["notes"])


_KEPT = """ --set 'constraints=["leaf == 50 GB/s"]'"""
"""The rules that stay where a network has no spines."""


@pytest.mark.parametrize("more", ["--taper 1", "--taper 3", "--taper 2:1", "--taper open"])
def test_the_options_of_a_cheaper_wiring_work_as_they_are_printed(run, more: str) -> None:
    assert run("init", *MODEL, "--npus", "512", *more.split()).code == 0
    degrees = ("--set", "parallelism={tp: 4, dp: 128}")
    [note] = [
        one
        for one in run("optimize", "plan.yaml", *degrees, "--json").payload["notes"]
        if "have the same bandwidths" in one
    ]
    given = (*degrees, *shlex.split(note.partition(" (")[2].partition(";")[0]))
    found = run("optimize", "plan.yaml", *given, "--json").payload
    assert len(found["bandwidth_GBps"]) == 2
    own = run("evaluate", "plan.yaml", *given, "--bandwidth", "450,50", "--json").payload
    assert own["step_time_s"] == pytest.approx(found["step_time_s"], rel=1e-9)
    for command in (("check", "--policy", "spray"), ("report", "-o", "out"), ("pareto",)):
        assert run(command[0], "plan.yaml", *given, *command[1:]).code == 0
    plan = Path("plan.yaml").read_text()
    if "open" not in more:
        assert "; rails share no switch then), or: init --wiring rail_only" in plan
        wired = ("--wiring", "rail_only", *more.split(), "--force")
        assert run("init", *MODEL, "--npus", "512", *wired).code == 0
        other = run("optimize", "plan.yaml", *degrees, "--json").payload
        assert other["bandwidth_GBps"] == found["bandwidth_GBps"]
        assert "init --wiring" not in Path("plan.yaml").read_text()


def test_a_cheaper_wiring_of_the_rails_is_named_and_its_edit_holds(run) -> None:
    """64 nodes: 16 leaves and 8 spines of 64 ports, or one switch for each of 8 rails.

    145 nodes of 5 leaves a rail: 40 leaves of 29 links up share 29 spines; apart, 3 each are 24.
    128 nodes: 48 switches of 64 ports, or 8 of 128, which the catalogue has.
    """
    assert run("init", *MODEL, "--npus", "512").code == 0
    said = '--set "fabric.topology=SW(8)_SW(64)" --set "fabric.tiers=[node, leaf]"'
    words = f"rails of one switch each, without spines, have the same bandwidths for $1.87M less, $1.38M of switches, cables and optics in place of $3.26M ({said}"
    assert f"# {words}{_KEPT}; rails share" in Path("plan.yaml").read_text()
    degrees = ("--set", "parallelism={tp: 4, dp: 128}")
    own = run("optimize", "plan.yaml", *degrees, "--json").payload
    assert any(words in note for note in own["notes"])
    edit = (*shlex.split(said), "--set", "constraints=[leaf == 50 GB/s]")
    other = run("optimize", "plan.yaml", *degrees, *edit, "--json").payload
    assert other["step_time_s"] == pytest.approx(own["step_time_s"], rel=1e-9)
    assert not any("rails" in note for note in other["notes"])
    edit = ("--set", "fabric.realization.wiring=rail_only")
    told = run("init", *MODEL, "--npus", "1160", "--force")
    assert (
        f"$8.09M of switches, cables and optics in place of $8.38M ({shlex.join(edit)})"
        ", or: init --wiring rail_only." in told.err
    )
    apart = ("--set", "parallelism={tp: 4, dp: 290}", "--policy", "spray")
    for more, n in (((), 40 + 29), (edit, 40 + 8 * 3)):
        assert f"training network: {n} switches" in run("check", "plan.yaml", *apart, *more).out
    large = '--set "fabric.topology=SW(8)_SW(128)" --set "fabric.tiers=[node, leaf]"'
    large += " --set fabric.realization.switch_radix=128"
    assert f"{large}{_KEPT}; rails share" in run("init", *MODEL, "--npus", "1024", "--force").err
    apart = ("--set", "parallelism={tp: 4, dp: 256}", "--policy", "spray")
    edit = (*shlex.split(large), "--set", "constraints=[leaf == 50 GB/s]")
    for more, n in (((), 32 + 16), (edit, 8)):
        assert f"training network: {n} switches" in run("check", "plan.yaml", *apart, *more).out
    assert "wiring" not in run("init", *MODEL, "--npus", "2048", "--force").err


def test_experts_have_the_batch_of_published_runs(run) -> None:
    """Of the order of DeepSeek-V3's 15,360 sequences; a dense model keeps its own."""
    for model, npus, batch in (
        ("qwen3-235b-a22b", "8192", 8192),
        ("deepseek-v3", "64", 8192),
        ("mixtral-8x7b", "4608", 9216),
        ("llama3-8b", "64", 512),
    ):
        npu = "gb200" if npus == "4608" else "b200-sxm"
        run("init", "--model", model, "--npu", npu, "--npus", npus, "--force")
        line = f"{f'global_batch: {batch}':<44} # sequences per step; assumed"
        near = " near the 15,360 of DeepSeek-V3" * (batch > 512)
        assert f"{line}{near}\n" in Path("plan.yaml").read_text()
    run("init", "--model", "deepseek-v3", "--npu", "b200-sxm", "--npus", "64", "--force",
        "--global-batch", "64")  # fmt: skip
    assert "global_batch: 64 " in Path("plan.yaml").read_text()


def test_a_first_strategy_is_of_zero_1_wherever_one_fits(run) -> None:
    """405e9 parameters of 18 bytes over 64 H100 are 114 GB each, of 85.5; over 128 they are 57."""
    for npus, strategy in (("64", "auto"), ("128", "{zero: 1, rest: auto}")):
        run("init", "--model", "llama3-405b", "--npu", "h100-sxm", "--npus", npus, "--force")
        line = next(x for x in Path("plan.yaml").read_text().split("\n") if "parallelism" in x)
        assert line.split("#")[0].strip() == f"parallelism: {strategy}"
        assert ("no strategy of ZeRO 1 fits" in line) == (npus == "64")
        assert "Megatron FSDP" in line


def test_an_open_taper_is_chosen(run) -> None:
    """Per dollar, from 1 to 8; where one leaf joins all there is none to choose."""
    assert run("init", *MODEL, "--npus", "512", "--taper", "open").code == 0
    problem = open_plan("plan.yaml").base
    texts = [rule.text for rule in problem.rules]
    assert texts[:3] == ["leaf == 50 GB/s", "taper(spine) >= 1", "taper(spine) <= 8"]
    assert (problem.objective, problem.fixed_cost_usd > 0) == ("performance_per_cost", True)
    assert "taper to choose at the spines" in Path("plan.yaml").read_text()
    told = run("init", *MODEL, "--npus", "64", "--taper", "open", "--force")
    assert "there is no taper" in told.err
    assert open_plan("plan.yaml").base.objective == "performance"


@pytest.mark.parametrize(
    ("flags", "topology", "rules", "counts"),
    [
        # 64 / 8 = 8 nodes: one leaf of every rail, no spines, whatever the taper.
        ("llama3-8b a100-sxm-80gb 64 --taper 2", "SW(8)_SW(8)", [25], {"leaf": 8}),
        # 256 nodes: 8 groups of 32; 8 x 8 leaves of 32 links down and 16 up, on 16 spines of 64.
        ("llama3-70b h100-sxm 2048 --nic 400Gbps --taper 2:1", "SW(8)_[SW(32)_SW(8)]", [50, 2], {"leaf": 64, "spine": 16}),
        # 64 groups of 8 rails: 512 leaves are more than 64 ports, so each rail has its 16 spines.
        ("deepseek-v3 b200-sxm 16384 --taper 2", "SW(8)_[SW(32)_SW(64)]", [50, 2], {"leaf": 512, "spine": 128}),
        # 64 racks of 72: a switch of 64 ports joins each of the 72 rails, without spines.
        ("mixtral-8x7b gb300 4608", "SW(72)_SW(64)", [100], {"leaf": 72}),
        # 96 racks: 72 rails of 3 leaves, 32 links up each on 2 spines.
        ("mixtral-8x7b gb300 6912", "SW(72)_[SW(32)_SW(3)]", [100, 1], {"leaf": 216, "spine": 144}),
    ],
)  # fmt: skip
def test_plans_load_and_are_built(
    flags: str, topology: str, rules: list[float], counts, run
) -> None:
    model, npu, n_npus, *more = flags.split()
    named = ("--model", model, "--npu", npu, "--npus", n_npus)
    written = run("init", *named, *more, "--prices", "q.csv", "-o", "a plan.yaml")
    assert (written.code, written.out) == (0, "a plan.yaml\nq.csv\n"), written.err
    assert written.err.endswith("next: libra-planner optimize 'a plan.yaml'\n")
    for settings in (
        (),
        (f"fixed_cost={{per_npu: 12 k$, npu: {npu}}}", "objective=performance_per_cost"),
    ):
        opened = open_plan("a plan.yaml", settings)
        assert opened.is_open
        opened.search()
    problem = opened.base
    assert str(problem.topology) == topology
    assert problem.topology.n_npus == int(n_npus)
    texts = [rule.text for rule in problem.rules]
    assert f"leaf == {rules[0]} GB/s" in texts
    assert (f"taper(spine) == {rules[-1]}" in texts) == (len(rules) > 1)
    inside = problem.scale_up.bandwidth_Bps(problem.topology)
    nic = rules[0] * 1e9
    built = realize(
        problem.topology,
        np.array([*inside, nic, nic / rules[-1]][: problem.topology.n_dims]),
        problem.links,
    )
    assert built.networks[-1].fabric.n_switches == counts
    # Quotes of all rows, filled in, are read with the plan; every column that is read is there.
    head = set(Path("q.csv").read_text().splitlines()[0].split(","))
    assert head == {*REQUIRED, *OPTIONAL, *OFFERED, CHOSEN}
    lengths = "50 m and 100 m" if len(rules) > 1 else "50 m"
    assert f"connectors; one price for {lengths}," in Path("q.csv").read_text().replace("\n", ",")
    with open("q.csv", newline="") as file:
        rows = [
            row | {"price": "7", "seller": "Acme", "date": "2026-11-02"}
            for row in csv.DictReader(file)
        ]
    with open("q.csv", "w", newline="") as file:
        filled = csv.DictWriter(file, list(rows[0]))
        filled.writeheader()
        filled.writerows(rows)
    quotes = load_quotes("q.csv", known_items(load_price_book("clos-2026"), "parts"))
    sides = {"nic-200g", "switch-64x200g", "optic-200g-sr4"}
    assert sides | {"leaf.nic", f"nic-{rules[0] * 8}g", npu} <= {one.item for one in quotes}
    assert open_plan("a plan.yaml", ["quotes=q.csv"]).base.prices is not None


@pytest.mark.parametrize("npus", ["64", "2048"])
def test_a_first_plan_chooses_among_whole_parts_at_their_bill(npus: str, run, monkeypatch) -> None:
    """Where its two comments are taken away, and the rules as these say."""
    monkeypatch.setenv("COLUMNS", "200")
    asked = ("--npus", npus, "--global-batch", "2048", "--taper", "2")
    assert run("init", *MODEL, *asked).code == 0
    text = Path("plan.yaml").read_text().replace("# bill_options", "bill_options")
    text = text.replace("# prices: bill", "prices: bill").replace("leaf == 50", "leaf <= 50")
    Path("bill.yaml").write_text(text.replace("  - taper", "  # - taper"))
    parts = f"parallelism={{tp: 8, dp: {int(npus) // 8}}}"
    for objective, nic in (("performance", "1 x 400"), ("cost", "1 x 200")):
        limit = [] if objective == "performance" else ["--set", "constraints.1=step_time <= 60 s"]
        found = run(
            "optimize", "bill.yaml", "--set", parts, "--set", f"objective={objective}", *limit
        )
        assert found.code == 0, found.err
        assert f"the network: {nic} Gbit/s per NPU" in found.out


def test_a_first_plan_is_optimized_and_says_what_comes_next(run, monkeypatch) -> None:
    assert run("init", *MODEL, "--npus", "64", "--global-batch", "64", "--taper", "2").code == 0
    # A leaf below its ports cannot be bought so: the optimum says what it would cost.
    free = {
        "leaf == 50 GB/s": "12.5 GB/s <= leaf <= 50 GB/s",
        "# fixed_cost": "fixed_cost",
        "objective: performance ": "objective: performance_per_cost ",
    }
    text = Path("plan.yaml").read_text()
    assert "12.5" not in text
    for old, new in free.items():
        text = text.replace(
            f"- {old}" if "leaf" in old else old, f"- {new}" if "leaf" in old else new
        )
    Path("free.yaml").write_text(text)
    assert open_plan("free.yaml").base.prices.fixed_usd > 64 * 12_000
    parts = "parallelism={tp: 8, dp: 8}"
    freed = run("optimize", "free.yaml", "--set", parts)
    assert "its ports are not sold so" in freed.out
    assert "of whole ports that have 50.00 GB/s: the network costs about $" in freed.out
    assert "leaf == 50 GB/s" in freed.out
    monkeypatch.setattr("libra_planner.cli.streams.sys.stderr", _Terminal())
    done = run("optimize", "plan.yaml", "--json")
    assert sys.stderr.getvalue().count("next:") == 0
    payload = json.loads(done.out)
    assert payload["bandwidth_GBps"] == pytest.approx([450, 50], rel=1e-9)
    assert payload["step_time_low_s"] < payload["step_time_s"] < payload["step_time_high_s"]
    degrees = payload["set"][-1]
    assert run("optimize", "plan.yaml", "--set", degrees).code == 0
    said = sys.stderr.getvalue().splitlines()[-1]
    assert shlex.split(said) == ["next:", "libra-planner", "check", "plan.yaml", "--set", degrees]
    assert run("check", "plan.yaml", "--set", degrees, "--bandwidth", "450,50").code == 0
    said = shlex.split(sys.stderr.getvalue().splitlines()[-1])
    assert said[2:] == ["report", "plan.yaml@450,50", "--set", degrees, "-o", "report"]


@pytest.mark.parametrize("model", ["llama3-8b", "deepseek-v3", "mixtral-8x7b", "gpt3"])
def test_an_own_model_starts_as_a_known_one(model: str, run) -> None:
    Path("own").mkdir()
    flags = ("--model", model, "--npu", "h100-sxm", "--npus", "512")
    written = run("init", *flags, "--workload", "own/model.yaml")
    assert (written.code, written.out) == (0, "plan.yaml\nown/model.yaml\n"), written.err
    text, own = Path("own/model.yaml").read_text(), Path("own/model.yaml")
    known = load_transformer(resolve("workloads", model, None))
    assert replace(load_transformer(own), name=model) == known
    assert f"{known.n_parameters:,} parameters" in text
    assert "\nworkload: ./own/model.yaml " in Path("plan.yaml").read_text()
    # Every key that stands behind a # may be put in, and the plan reads the file.
    for mark in re.findall(r"^  # (\w+): \S", text, re.MULTILINE):
        own.write_text(re.sub(rf"^  # {mark}:", f"  {mark}:", text, flags=re.MULTILINE))
        load_transformer(own)
    more = text.replace(f"n_layers: {known.n_layers} ", f"n_layers: {known.n_layers + 4} ")
    own.write_text(re.sub(r"^  # (  \w+|experts)(?=:)", r"  \1", more, flags=re.MULTILINE))
    assert load_transformer(own).experts is not None
    assert load_transformer(own).n_layers == known.n_layers + 4
    assert open_plan("plan.yaml").search(()) is not None


@pytest.mark.parametrize(
    ("wiring", "topology", "said"),
    [
        ("usual", "SW(32)_SW(4)", "Gbps} .*, 8 rails as is usual \\(NPU i of every node"),
        ("rail_optimized", "SW(32)_SW(4)", "Gbps} .*, 8 rails, as asked \\(NPU i of"),
        ("rail_only", "SW(32)_SW(4)", "wiring: rail_only} .* of 8 rails, as asked"),
        ("top_of_rack", "SW(4)_SW(32)", "wiring: top_of_rack} .* a Clos as asked \\("),
    ],
)
def test_the_wiring_is_asked_for_and_said(run, wiring: str, topology: str, said: str) -> None:
    """The plan is built as it says, without ports that stay free, at what is asked for."""
    asked = run(
        "init", *["--model", "llama3-8b", "--npu", "h100-sxm", "--npus", "1024", "--wiring"], wiring
    )
    assert asked.code == 0, asked.err
    assert re.search(f"  realization: .*{said}", Path("plan.yaml").read_text())
    problem = open_plan("plan.yaml").base
    assert str(problem.topology) == f"SW(8)_[{topology}]"
    built = realize(problem.topology, np.array([450e9, 50e9, 50e9]), problem.links)
    assert built.networks[-1].fabric.n_switches == {"leaf": 32, "spine": 16}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("h100-sxm --npus 4096 --wiring top_of_rack", "128 leaves of 4 nodes, expected at most 64"),
        ("h100-sxm --npus 16384 --wiring rail_optimized", "512 leaves, expected at most 64 .*; "
         "write rail_only"),
        ("gb200 --npus 1152 --wiring top_of_rack", "expected nodes of which two, with 72 NICs each"),
        ("h100-sxm --npus 1024 --wiring clos", "got 'clos', expected one of usual, rail_optimized"),
    ],
)  # fmt: skip
def test_a_wiring_that_switches_do_not_make_is_refused(run, flags: str, said: str) -> None:
    refused = run("init", *f"--model llama3-8b --npu {flags}".split())
    assert refused.code == 2
    assert re.search(said, refused.err), refused.err
    if mended := re.search(r"write (rail_\w+|usual)", refused.err):
        words = flags.rpartition(" ")[0].split()
        assert run("init", "--model", "llama3-8b", "--npu", *words, mended[1]).code == 0


def test_questions_are_asked_again_until_they_are_answered(run, monkeypatch) -> None:
    answers = [
        "gtp3",
        "gpt3",
        "own",
        "own.yaml",
        "v100-pcie",
        "H100-80GB",
        "100",
        "104",
        "400",
        "",
        "2",
        "tor",
        "top_of_rack",
        "",
    ]
    monkeypatch.setattr(sys, "stdin", _Terminal("\n".join(answers) + "\n"))
    asked = run("init")
    assert (asked.code, asked.out) == (0, "plan.yaml\nown.yaml\n"), asked.err
    for said in (
        "did you mean gpt3",
        "--workload: got 'own', expected a YAML file to write, or no; write e.g. own.yaml",
        "own.yaml is gpt3 now: edit it into your own.",
        "which comes in no scale-up domain",
        "write 96 or 104",
        "; write 400Gbps",
        "NIC of an NPU [400Gbps]: ",
        "All 13 nodes share a leaf",
        "write top_of_rack for a Clos, rail_optimized for rails",
        "got top_of_rack, 13 nodes, expected nodes that leaves of 2 to 5 nodes share equally",
    ):
        assert said in asked.err
    assert open_plan("plan.yaml").base.topology.n_npus == 104
    monkeypatch.setattr(sys, "stdin", _Terminal("gpt3\n"))
    ended = run("init", "-o", "b.yaml")
    assert ended.code == 2
    assert "--workload: got no answer" in ended.err
    assert not Path("b.yaml").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "got no --model and no --npu and no --npus, expected it: without a terminal"),
        ("--model resnet50 --npu h100-sxm --npus 64", "--model: got resnet50, no whole transformer"),
        ("--model gpt3-libra --npu h100-sxm --npus 64", "--model: got gpt3-libra, no whole transf"),
        ("--model gpt3 --npu v100-sxm-32gb --npus 64", "computes no bf16; write one of a100-sxm"),
        ("--model gpt3 --npu tpu-v4 --npus 64", "is a torus"),
        ("--model gpt3 --npu a100-pcie --npus 64", "comes in no scale-up domain"),
        ("--model gpt3 --npu gb200 --npus 2048", "write 2,016 or 2,088"),
        ("--model gpt3 --npu h100-sxm --npus 8", "expected two or more full domains"),
        ("--model gpt3 --npu h100-sxm --npus 2056", "write 2,048 or 2,080, or price leaves that are not equal: libra-planner fabric --hosts 257 --npus-per-host 8 --nic 400Gbps"),
        ("--model gpt3 --npu h100-sxm --npus 16392", "write at most 16,384"),
        ("--model gpt3 --npu h100-sxm --npus 64 --nic 3600Gbps", "--nic: got 3600Gbps, expected less"),
        ("--model gpt3 --npu h100-sxm --npus 64 --nic 400GB/s", "expected at most 800 Gbps, the fastest NIC of the price book; 400 GB/s are 3,200 Gbps; write 400Gbps?"),
        ("--model gpt3 --npu h100-sxm --npus 64 --nic 1600Gbps", "the fastest NIC of the price book; write e.g. 800Gbps"),
        ("--model gpt3 --npu h100-sxm --npus 64 --nic 400Mbps", "--nic: got 400Mbps: 0.4 Gbit/s, expected a NIC of 1 Gbit/s or more; write e.g. 400Gbps"),
        ("--model gpt3 --npu tpu --npus 64", "--npu: got 'tpu', expected one of 3 NPUs"),
        ("--model gpt3 --npu h100-sxm --npus 64 --taper 0.5", "--taper: got '0.5'"),
        ("--model gpt3 --npu h100-sxm --npus 2048 --taper 400", "beyond 16:1 a leaf of 16 nodes has less than one link up; write 2 for 2:1"),
        ("--model gpt3 --npu h100-sxm --npus 64 --prices q.txt", "expected a CSV file"),
        ("--model gpt3 --npu h100-sxm --npus 64 --workload plan.yaml", "expected a file of its own"),
        ("--model gpt3 --npu h100-sxm --npus 64 --workload own.txt", "expected a YAML file"),
        ("--model gpt3 --npu h100-sxm --npus 64 -o no/plan.yaml", "no/plan.yaml: "),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(flags: str, message: str, run) -> None:
    result = run("init", *flags.split())
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not list(Path().iterdir())


def test_answers_that_slipped_by_one_question_are_asked_again(run, monkeypatch) -> None:
    """A speed where the taper is asked, and a NIC that nobody sells."""
    answers = ("llama3-8b", "no", "h100-sxm", "2048", "40Gbps", "400Gbps", "400", "17", "2", "")
    monkeypatch.setattr(sys, "stdin", _Terminal("\n".join(answers) + "\n"))
    done = run("init")
    assert done.code == 0, done.err
    assert "--nic: No price book sells a NIC of 40 Gbit/s, but 100, 200, 400 and 800:" in done.err
    for wrong in ("400", "17"):
        assert f"--taper: got '{wrong}', expected a taper from 1 to 16: links down" in done.err
    assert done.err.count("Taper at the spines") == 3
    assert done.err.count("Speed of the NIC") == 2
    text = Path("plan.yaml").read_text()
    assert "leaf == 50 GB/s" in text
    assert "taper(spine) == 2 " in text


def test_files_are_written_over_only_by_force(run) -> None:
    Path("plan.yaml").write_text("mine")
    flags = (*MODEL, "--npus", "64")
    refused = run("init", *flags)
    assert (refused.code, Path("plan.yaml").read_text()) == (2, "mine")
    assert "plan.yaml: got a file that is there already; add --force" in refused.err
    assert run("init", *flags, "--force").code == 0
    assert Path("plan.yaml.bak").read_text() == "mine"
    assert run("init", *flags, "-o", "-").out == Path("plan.yaml").read_text()


@pytest.mark.parametrize(
    ("nic", "follows"),
    [
        ("500Gbps", "a bill pays for 800 Gbit/s, which then run at 500."),
        ("400Gbps", ""),
    ],
)
def test_a_nic_that_nobody_sells_is_told(nic: str, follows: str, run, tmp_path) -> None:
    asked = ("--model", "llama3-70b", "--npu", "h100-sxm", "--npus", "1024", "--nic", nic)
    result = run("init", *asked, "-o", tmp_path / "plan.yaml")
    words = f"No price book sells a NIC of {nic[:-4]} Gbit/s, but 100, 200, 400 and 800: {follows}"
    assert result.code == 0
    for text in (result.err, (tmp_path / "plan.yaml").read_text()):
        assert (words in text) == bool(follows)
        assert ("No price book" in text) == bool(follows)
