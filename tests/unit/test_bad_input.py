"""Bad input: one clear message per fault, with file, line and column, exit 2 or 3."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import libra_planner as lp
from tests.conftest import PLAN

TABLE = """\
kind: table
source: test
operations:
  - {layer: a, phase: forward, compute_us: 10, collective: {kind: all-gather, shard_bytes: 1000}}
"""
PRICES = """\
kind: price_book
source: test
as_of: "2026"
unit: USD per GB/s
tiers:
  chiplet: {link: 2}
  package: {link: 4}
  node: {link: 4}
  pod: {link: 7.8, switch: 18, nic: 31.6}
"""

# (what the plan's text becomes, pattern that one line of stderr matches after the file's path)
FAULTS = {
    "unknown key": (("workload:", "wrkload:"), r":1:1: wrkload: got the unknown key .*workload\?"),
    "missing key": (("cost_model: libra-ispass24\n", ""), r":1:1: cost_model: got nothing.*add"),
    "unknown nested key": (("tiers:", "tires:"), r":4:3: fabric.tires: got the unknown .*tiers\?"),
    "unknown degree": (("tp: 16", "tq: 16"), r": parallelism.tq: got the unknown key 'tq'.*tp"),
    "unknown workload": (("gpt3-libra", "gtp3-libra"), r":1:11: workload: .*mean gpt3-libra\?"),
    "unknown price book": (("libra-ispass24", "libra24"), r":6:13: cost_model: .*libra-ispass24"),
    "unknown tier": (("[chiplet", "[chplet"), r":4:11: fabric.tiers.0: .*did you mean chiplet\?"),
    "unknown block": (("RI(4)_FC", "RO(4)_FC"), r":3:13: fabric.topology: got 'RO'"),
    "not the notation": (("RI(4)_FC(8)", "RI4"), r"topology: got 'RI4', expected a dimension"),
    "size of 1": (("RI(4)_FC", "RI(1)_FC"), r"topology: got 'RI\(1\)', expected a whole size"),
    "fractional size": (("RI(4)_FC", "RI(4.5)_FC"), r"topology: got 'RI\(4.5\)'"),
    "huge fabric": (("SW(32)", "SW(99999999999)"), r"topology: .*at most 1,000,000,000 NPUs"),
    "too few tiers": ((", pod]", "]"), r":4:10: fabric.tiers: got 3 tiers for 4 dimensions"),
    "degrees": (
        ("dp: 256", "dp: 128"),
        r":5:14: parallelism: got tp 16 x dp 128 = 2048 NPUs.*4096",
    ),
    "degree that does not fit": (
        ("{tp: 16, dp: 256}", "{tp: 64, dp: 64}"),
        None,
    ),
    "unplaceable degree": (
        ("{tp: 16, dp: 256}", "{tp: 3, dp: 4096}"),
        r"parallelism: got tp 3 x dp 4096 = 12288",
    ),
    "negative degree": (("tp: 16", "tp: -16"), r":5:19: parallelism.tp: got -16, .*at least 1"),
    "zero degree": (("tp: 16", "tp: 0"), r"parallelism.tp: got 0, expected at least 1"),
    "fractional degree": (("tp: 16", "tp: 16.5"), r"parallelism.tp: got 16.5, .*whole number"),
    "text degree": (("tp: 16", "tp: sixteen"), r"parallelism.tp: got 'sixteen', .*whole number"),
    "quoted degree": (("tp: 16", "tp: '16'"), r"parallelism.tp: got '16'.*remove the quotes: 16"),
    "bool degree": (("tp: 16", "tp: true"), r"parallelism.tp: got true, expected a whole number"),
    "nan degree": (("tp: 16", "tp: .nan"), r"parallelism.tp: got nan, expected a whole number"),
    "infinite degree": (("tp: 16", "tp: .inf"), r"parallelism.tp: got inf, expected a whole num"),
    "huge degree": (("tp: 16", "tp: 1000000000000000"), r"parallelism.tp: .*at most 1e\+12"),
    "null": (("tp: 16", "tp: null"), r"parallelism.tp: got nothing, expected a whole number"),
    "list for a map": (("{tp: 16, dp: 256}", "[16, 256]"), r":5:14: parallelism: got a list"),
    "unknown objective": (
        ("constraints", "objective: perf\nconstraints"),
        r":7:12: objective: got 'perf', expected 'performance'",
    ),
    "unknown loop": (
        ("constraints", "training_loop: async\nconstraints"),
        r":7:16: training_loop: got 'async', .*'tp_dp_overlap' or 'async_dp'; .* async_dp\?",
    ),
    "nan rate": (
        ("constraints", "npu: {peak_TFLOPps: .nan, efficiency_fraction: 0.5}\nconstraints"),
        r":7:21: npu.peak_TFLOPps: got nan",
    ),
    "efficiency above 1": (
        ("constraints", "npu: {peak_TFLOPps: 312, efficiency_fraction: 50}\nconstraints"),
        r"npu.efficiency_fraction: got 50, expected at most 1",
    ),
    "duplicate key": (("cost_model", "workload: gpt3\ncost_model"), r":6:1: workload: .*twice"),
    "malformed": (("{tp: 16,", "{tp: 16, ["), r":\d+:\d+: got malformed YAML"),
    "tab": (("  topology", "\ttopology"), r":3:1: got a tab; indent by spaces"),
    "tab after spaces": (
        ("  - total", "  - dim1 >= dim2\n \t- total"),
        r":9:\d+: got a tab; indent",
    ),
    "rule without unit": (("500 GB/s", "500"), r":8:5: constraints.0: got 500 without.*500 GB/s"),
    "rule of zero": (("total == 500 GB/s", "dim1 >= 0"), r"got 0 without a unit .*write 0 GB/s"),
    "rule with dim5": (("total ==", "dim5 <="), r":8:5: constraints.0: got the name 'dim5'"),
    "rule typo": (("total ==", "totl =="), r"got the name 'totl'.*did you mean total\?"),
    "rule on power": (
        ("total == 500 GB/s", "power <= 3 MW"),
        r"'power' .*known: .*cost, step_time, memory",
    ),
    "rule on twice memory": (
        ("total == 500 GB/s", "2 * memory <= 5 GB"),
        r"'memory' .*write memory <= 76 GB by itself",
    ),
    "rule with =": (("total ==", "total ="), r"got '=' .*write =="),
    "rule with <": (("total ==", "total <"), r"got '<' .*write <="),
    "rule without comparison": (("total == 500 GB/s", "total"), r"got no comparison"),
    "rule with half a side": (("total ==", "total + =="), r"got an empty side or term"),
    "rule with a bad unit": (("GB/s\n", "GBs\n"), r"got the unit 'GBs'"),
    "rule in bits or bytes": (("GB/s\n", "Gb/s\n"), r"unit 'Gb/s'.*GB/s for bytes or Gbit/s"),
    "rule of two kinds": (
        ("total == 500 GB/s", "total <= 5 ms"),
        r"bandwidth compared with a time",
    ),
    "mixed sum": (("total == 500 GB/s", "total + cost <= 5 M$"), r"a bandwidth and a money"),
    "money first": (("total == 500 GB/s", "cost <= $5M"), r"got '\$' before its number"),
    "missing star": (("total ==", "2 dim1 =="), r"expected '\*' between .*write 2 \* dim1"),
    "code": (("total ==", "__import__('os') =="), r"got \"'\"|got '\('|got the name"),
    "lower bound on time": (("total == 500 GB/s", "step_time >= 1 s"), r"is not an upper bound"),
    "nothing to bound": (("total ==", "dim1 - dim1 =="), r"got no bandwidth or cost to bound"),
    "no number fits": (("500 GB/s", "1e999 GB/s"), r"got 'inf GB/s' .*expected 0 or a size from"),
    "rule that is a number": (("total == 500 GB/s", "5"), r"constraints.0: got 5, expected text"),
    "rules as text": (("constraints:\n  - ", "constraints: "), r"constraints: .*expected a list"),
    "batch does not split": (
        ("constraints", "global_batch: 100\nconstraints"),
        r":7:15: global_batch: got 100 sequences, .*256 data-parallel replicas; write 256",
    ),
    "missing file": (("gpt3-libra", "./nowhere.yaml"), r":1:11: workload: got no such file"),
}


@pytest.mark.parametrize("name", [name for name, (_, pattern) in FAULTS.items() if pattern])
@pytest.mark.parametrize("command", ["optimize", "evaluate"])
def test_fault_in_a_plan(name: str, command: str, plan, run) -> None:
    replacement, pattern = FAULTS[name]
    path = plan(replacement)
    vector = ["--bandwidth", "300,100,75,25"] if command == "evaluate" else []
    result = run(command, path, *vector)
    assert result.code == 2, result.err
    assert result.out == ""
    for line in result.err.splitlines():
        assert line.startswith(f"{path}:"), line
    assert re.search(pattern, result.err), result.err


def test_a_degree_may_take_whole_dimensions_and_part_of_the_next(plan, run) -> None:
    assert run("optimize", plan(("{tp: 16, dp: 256}", "{tp: 64, dp: 64}"))).code == 0


def test_all_faults_of_a_plan_at_once(plan, run) -> None:
    path = plan(
        ("workload:", "wrkload:"),
        ("tp: 16", "tp: -1"),
        (", pod]", "]"),
        ("total == 500 GB/s", "total == 500\n  - dim7 <= 3 GB/s"),
    )
    lines = run("optimize", path).err.splitlines()
    for expected in ("wrkload", "workload: got nothing", "parallelism.tp", "fabric.tiers"):
        assert any(expected in line for line in lines), expected
    path = plan(("total == 500 GB/s", "total == 500\n  - dim7 <= 3 GB/s"), ("tp: 16", "tp: -1"))
    lines = run("optimize", path).err.splitlines()
    assert len(lines) == 3
    assert [":5:" in lines[0], ":8:5:" in lines[1], ":9:5:" in lines[2]] == [True] * 3


def test_files_that_are_no_plans(tmp_path: Path, run) -> None:
    cases = {
        "missing": (tmp_path / "missing.yaml", "got no such file"),
        "directory": (tmp_path, "got a directory, expected a file"),
    }
    for name, text, expected in [
        ("empty", "", "got an empty file"),
        ("comment", "# nothing\n", "got an empty file"),
        ("scalar", "hello", "got 'hello', expected a map"),
        ("list", "- 1\n- 2\n", "got a list, expected a map"),
        ("null", "null\n", "got nothing, expected a map"),
    ]:
        (tmp_path / name).write_text(text)
        cases[name] = (tmp_path / name, expected)
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    cases["binary"] = (tmp_path / "binary", "got bytes that are not UTF-8")
    (tmp_path / "big").write_text("a: " + "x" * 10_000_000)
    cases["big"] = (tmp_path / "big", "got a larger file, expected at most 1,000,000 bytes")
    (tmp_path / "control").write_text("a: \x00")
    cases["control"] = (tmp_path / "control", "got ")
    for path, expected in cases.values():
        result = run("optimize", path)
        assert result.code == 2
        assert result.err.startswith(f"{path}:")
        assert expected in result.err


def test_alias_bombs_and_deep_nesting_are_refused(tmp_path: Path, run) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 12):
        lines.append(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]")
    for text, expected in [
        ("\n".join(lines), "got more than 200,000 values (aliases expanded)"),
        ("a: &a [*a]\n", "nested deeper|undefined alias|recursive"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested deeper"),
        ("{" * 50 + "}" * 50, "malformed|nested|expected"),
    ]:
        path = tmp_path / "bomb.yaml"
        path.write_text(text)
        result = run("optimize", path)
        assert result.code == 2
        assert result.err.startswith(f"{path}:")
        assert re.search(expected.replace("(", r"\(").replace(")", r"\)"), result.err), result.err


_DEEP = "[" * 30_000


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("optimize {deep}", "{deep}:1:33"),
        ("evaluate {deep} --bandwidth 1", "{deep}:1:33"),
        ("check {deep}", "{deep}:1:33"),
        ("optimize {plan} --set objective={text}", "{plan}: --set objective"),
        ("optimize {plan} --set workload={deep}", "{deep}:1:33"),
        ("optimize {plan} --set cost_model={deep}", "{deep}:1:33"),
        ("flows {deep} {plan}", "{deep}:1:33"),
        ("sweep plan {deep}", "{deep}:1:33"),
        ("sweep run {deep} -o {folder}", "{deep}:1:33"),
        ("report {plan} -o {folder} --parts {deep}", "{deep}:1:33"),
        (
            "import libra --network {deep} --workload {deep} --communicator {deep} "
            "--cost-model {deep} -o {folder}/plan.yaml",
            "{deep}:1:33",
        ),
    ],
)
def test_deep_nesting_ends_no_process(command: str, place: str, tmp_path: Path, plan, run) -> None:
    """libyaml's composer calls itself once for each level: a segmentation fault before."""
    deep = tmp_path / "deep.yaml"
    deep.write_text(_DEEP)
    names = {"deep": deep, "plan": plan(), "folder": tmp_path / "made", "text": _DEEP}
    result = run(*(part.format(**names) for part in command.split()))
    assert result.code == 2
    assert f"{place.format(**names)}: got values nested deeper than 32" in result.err


@pytest.mark.parametrize(
    ("begin", "line", "n"),
    [
        ("", "key{i}: 1", 5000),
        ("", "workload: x", 5000),
        ("npus:\n", "- !t{i} 1", 5000),
        ("", "  - totl == {i} GB/s", 500),
    ],
    ids=["unknown", "twice", "tags", "rules"],
)
def test_the_first_faults_are_listed_and_the_others_counted(
    begin: str, line: str, n: int, plan, run
) -> None:
    lines = "\n".join(line.format(i=i) for i in range(n))
    path = plan(("total == 500 GB/s\n", f"total == 500 GB/s\n{begin}{lines}\n"))
    result = run("optimize", path)
    *listed, last = result.err.splitlines()
    assert result.code == 2
    assert len(listed) == 20
    assert all(one.startswith(f"{path}:") for one in listed)
    assert last == f"{path}: got {n - 20:,} more faults like these"


def test_control_characters_have_a_place(plan, run) -> None:
    path = plan(("dp: 256}", "dp: 256}\r\nnote: caf\u00e9\x07s"))
    result = run("optimize", path)
    assert result.code == 2
    assert result.err == (
        f"{path}:6:11: got the control character U+0007, expected text; remove it\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 30_000, ": got values nested deeper than 100"),
        ("[" * 500 + "]" * 500, ": got values nested deeper than 100"),
        ('{"bandwidth_GBps": [' + "9" * 5000 + "]}", ": got a number of more than 300 digits"),
        ('{\n  "a" 1}', ":2:7: got no JSON"),
        ("[1]", ": got other JSON"),
    ],
)
def test_results_that_are_none(text: str, message: str, plan, tmp_path: Path, run) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    result = run("report", f"{plan()}@{path}", "-o", tmp_path / "made")
    assert result.code == 2
    assert result.err.startswith(f"{path}{message}")
    assert result.err.count("\n") == 1


def test_yaml_12_numbers_and_words(plan, run) -> None:
    """1e6 is a number (PyYAML reads text), `no` is text, and an octal-looking 010 is ten."""
    assert run("optimize", plan(("dp: 256", "dp: 2.56e2"))).err.count("whole number") == 1
    npu = ("constraints", "npu: {peak_TFLOPps: 1e3, efficiency_fraction: 5e-1}\nconstraints")
    assert run("optimize", plan(npu)).code == 0
    assert run("optimize", plan(("tp: 16", "tp: 016"))).code == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--bandwidth", "1,2,3"], "--bandwidth: got 3 numbers, expected 4"),
        (["--bandwidth", "1,2,3,x"], "--bandwidth: got 'x', expected 0 or a number"),
        (["--bandwidth", "1,2,3,nan"], "--bandwidth: got 'nan', expected 0 or"),
        (["--bandwidth", "1,2,3,inf"], "--bandwidth: got 'inf', expected 0 or"),
        (["--bandwidth", "1,2,3,-4"], "--bandwidth: got '-4', expected 0 or a number from"),
        (["--bandwidth", "1,2,3,0"], "--bandwidth: got 0 GB/s for dim4, expected bandwidth"),
        (["--bandwidth", ""], "--bandwidth: got 1 number, expected 4"),
        (["--bandwidth", "1,2,3,4", "--set", "nonsense"], "--set nonsense: got 'nonsense'"),
        (["--bandwidth", "1,2,3,4", "--set", "a.b=1"], "--set a.b: a: got the unknown key"),
        (["--bandwidth", "1,2,3,4", "--set", "workload.b=1"], "--set workload.b: got no place"),
        (["--bandwidth", "1,2,3,4", "--set", "parallelism.tp=[1"], "--set parallelism.tp: got"),
        (["--bandwidth", "1,2,3,4", "--set", "parallelism.tp=0"], "--set parallelism.tp: "),
        (["--bandwidth", "1,2,3,4", "--set", "constraints=[total]"], "--set constraints: "),
        (
            ["--bandwidth", "1,2,3,4", "--set", "fabric.topology=T(8,4,2)_SW(8)"],
            "--set fabric.topology: got 'T(8,4,2)', expected a known block; a torus is a ring along every axis: write "
            "RI(8)_RI(4)_RI(2)",
        ),
        (
            ["--bandwidth", "1,2,3,4", "--set", "constraints=[pod <= 50GBps GB/s]"],
            "--set constraints: constraints.0: got two units, GBps and GB/s, in 'pod <= 50GBps GB/s', expected one; remove GB/s",
        ),
        (
            ["--bandwidth", "1,2,3,4", "--set", "fabric.realization.radix=128"],
            "--set fabric.realization.radix: got the unknown key 'radix', expected a known key; did you mean switch_radix?",
        ),
    ],
)
def test_faults_on_the_command_line(arguments: list[str], expected: str, plan, run) -> None:
    path = plan()
    result = run("evaluate", path, *arguments)
    assert result.code == 2
    assert result.err.startswith(f"{path}: {expected}"), result.err


INFEASIBLE = {
    "two rules": (["total == 100 GB/s", "dim1 >= 200 GB/s"], 2),
    "one of many": (
        [
            "dim2 <= 5 GB/s",
            "total == 100 GB/s",
            "dim3 >= 1 GB/s",
            "pod >= 60 GB/s",
            "node >= 41 GB/s",
        ],
        3,
    ),
    "no bandwidth for traffic": (["total <= 100 GB/s", "dim2 <= 0 GB/s"], 1),
    "cost": (["total == 500 GB/s", "cost <= 1 M$"], 2),
    "chain": (["total <= 500 GB/s", "80 GB/s <= dim1 <= 70 GB/s"], 1),
}


@pytest.mark.parametrize("name", INFEASIBLE)
def test_infeasible_rules_are_named(name: str, plan, run) -> None:
    rules, n_conflicting = INFEASIBLE[name]
    path = plan(("total == 500 GB/s", "\n  - ".join(rules)))
    result = run("optimize", path)
    assert result.code == 3
    assert result.out == ""
    assert re.match(
        re.escape(str(path)) + r":\d+:\d+: constraints: got (rules that no|a rule none)", result.err
    )
    named = [rule for rule in rules if f"'{rule}' (line {8 + rules.index(rule)})" in result.err]
    assert len(named) == n_conflicting, result.err
    for rule in named:  # Irreducible: without any one of them the rest can be met.
        rest = [r for r in named if r != rule] + ["total <= 900 GB/s"] * ("total" not in rule)
        rest = rest if any("total" in r for r in rest) else [*rest, "total <= 900 GB/s"]
        without = plan(("total == 500 GB/s", "\n  - ".join(rest)))
        assert run("optimize", without).code == 0, rest


def test_a_step_time_no_design_reaches(plan, run) -> None:
    path = plan(("total == 500 GB/s", "total == 500 GB/s\n  - step_time <= 700 ms"))
    result = run("optimize", path)
    assert result.code == 3
    assert result.err.startswith(f"{path}:9:5: constraints: got 'step_time <= 700 ms'")
    assert "'total == 500 GB/s' (line 8) alone allows no less than 722.412 ms" in result.err
    assert run("optimize", path, "--set", "constraints.1=step_time <= 723 ms").code == 0


def test_a_step_time_conflict_names_the_least_rules_and_their_own_least_time(plan, run) -> None:
    """The rules named have their own least time; what to allow is the least under all rules."""
    rules = "total <= 500 GB/s\n  - dim1 >= dim2\n  - dim4 >= 400 GB/s\n  - step_time <= 700 ms"
    path = plan(("total == 500 GB/s", rules))
    result = run("optimize", path)
    assert result.code == 3
    named = re.search(
        r"but (.*) alone allows no less than ([\d.]+) ms; allow at least ([\d.]+) (m?s)", result.err
    )
    assert named, result.err
    assert named.group(1) == "'total <= 500 GB/s' (line 8)"
    assert named.group(2) == "722.412"
    assert "the least under all the rules" in result.err
    allowed = f"step_time <= {named.group(3)} {named.group(4)}"
    assert run("optimize", path, "--set", f"constraints.3={allowed}").code == 0


def test_compute_alone_may_be_too_long(plan, run) -> None:
    result = run("optimize", plan(("total == 500 GB/s", "step_time <= 600 ms")))
    assert result.code == 3
    assert "compute alone takes 684.449 ms a step" in result.err


HINTS = {
    "cost <= 5000000": "write 5000000 $ or 5000000 M$",
    "cost <= 5M": "did you mean M$?",
    "step_time <= 12": "write 12 ms or 12 s",
    "dim0 <= 5 GB/s": "known: ",
}


@pytest.mark.parametrize("rule", HINTS)
def test_hints_are_of_the_rules_own_kind(rule: str, plan, run) -> None:
    assert HINTS[rule] in run("optimize", plan(("total == 500 GB/s", rule))).err


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ("[]", "chiplet, package, node, pod"),
        ("[dim1 <= 5 GB/s, dim2 + dim3 <= 9 GB/s]", "pod"),
        ("[dim1 >= 5 GB/s]", "chiplet, package, node, pod"),
    ],
)
def test_no_rule_that_bounds_bandwidth(rules: str, names: str, plan, run) -> None:
    path = plan()
    result = run("optimize", path, "--set", f"constraints={rules}")
    assert result.code == 3
    assert result.err.startswith(
        f"{path}: --set constraints: got no rule that bounds the bandwidth of {names},"
    )
    assert "total <= 500 GB/s" in result.err


WORKLOAD_FAULTS = {
    "plain size": (("shard_bytes: 1000", "size: 1000"), r":4:79: .*plain 'size' on an all-gather"),
    "plain bytes": (("shard_bytes: 1000", "size_bytes: 9"), r"plain 'size_bytes' on an all-gather"),
    "no size": ((", shard_bytes: 1000", ""), r"got no size for all-gather, expected one of shard"),
    "unknown collective": (("all-gather", "all-gahter"), r"collective.kind: .*mean all-gather\?"),
    "unknown phase": (("forward", "forwrd"), r":4:23: operations.0.phase: .*mean forward\?"),
    "negative time": (("compute_us: 10", "compute_us: -1"), r"compute_us: got -1, .*at least 0"),
    "nan time": (("compute_us: 10", "compute_us: .nan"), r"compute_us: got nan"),
    "two times": (
        (" compute_us: 10,", " compute_us: 10, compute_ms: 1,"),
        r":4:5: operations.0: got compute_us and compute_ms",
    ),
    "time without its unit": (
        ("compute_us: 10", "compute: 310"),
        r"'compute'.*mean compute_ns, compute_us, compute_ms or compute_s\?",
    ),
    "zero bytes": (
        ("shard_bytes: 1000", "shard_bytes: 0"),
        r"shard_bytes: got 0, .*at least 0.001",
    ),
    "infinite bytes": (("shard_bytes: 1000", "shard_bytes: .inf"), r"shard_bytes: got inf"),
    "bool count": (("compute_us: 10", "compute_us: 1, count: true"), r"count: got true"),
    "unknown group": (("shard_bytes", "group: ep, shard_bytes"), r"collective.group: got 'ep'"),
    "unknown kind": (("kind: table", "kind: tabel"), r":1:7: kind: got kind 'tabel'"),
    "no operations": (
        ("operations:\n  - {", "operations: []\nother:\n  - {"),
        r"operations: got a list",
    ),
    "libra file": (("kind: table\n", ""), r": kind: got no kind, expected a workload file"),
}


@pytest.mark.parametrize("name", WORKLOAD_FAULTS)
def test_fault_in_a_workload(name: str, plan, run) -> None:
    replacement, pattern = WORKLOAD_FAULTS[name]
    workload = plan(replacement, text=TABLE, name="w.yaml")
    result = run("optimize", plan(("gpt3-libra", "./w.yaml")))
    assert result.code == 2
    assert re.search(re.escape(str(workload)) + r":\d+:\d+: .*", result.err), result.err
    assert re.search(pattern, result.err), result.err


PRICE_FAULTS = {
    "missing nic": (
        (", nic: 31.6", ""),
        r"plan.yaml:4:\d+: fabric.tiers.3: got no nic price for ti",
    ),
    "missing switch": ((" switch: 18,", ""), r"fabric.tiers.3: got no switch price"),
    "missing link": (("{link: 2}", "{switch: 2, nic: 1}"), r"fabric.tiers.0: got no link price"),
    "free nic without reason": (("nic: 31.6", "nic: 0"), r"got nic: 0 without nic_reason"),
    "negative": (("link: 7.8", "link: -7.8"), r"tiers.pod.link: got -7.8, expected at least 0"),
    "nan": (("link: 7.8", "link: .nan"), r"tiers.pod.link: got nan"),
    "text": (("link: 7.8", "link: cheap"), r"tiers.pod.link: got 'cheap', expected a number"),
    "unknown part": (("nic: 31.6", "nick: 31.6"), r"tiers.pod.nick: .*did you mean nic"),
    "other unit": (("USD per GB/s", "EUR"), r"unit: got 'EUR', expected 'USD per GB/s'"),
}


@pytest.mark.parametrize("name", PRICE_FAULTS)
def test_fault_in_a_price_book(name: str, plan, run) -> None:
    replacement, pattern = PRICE_FAULTS[name]
    plan(replacement, text=PRICES, name="p.yaml")
    result = run("optimize", plan(("libra-ispass24", "./p.yaml")))
    assert result.code == 2
    assert re.search(pattern, result.err), result.err


GROUPS = "{forward: [4, 4, 1, 1], input_grad: [4, 4, 1, 1], weight_grad: [1, 2, 4, 32]}"


@pytest.mark.parametrize(
    ("old", "new", "pattern"),
    [
        (
            "[4, 4, 1, 1], i",
            "[4, 16, 1, 1], i",
            r":5:28: parallelism.forward.1: got a group of 16, .*8",
        ),
        (
            "[4, 4, 1, 1], i",
            "[4, 3, 1, 1], i",
            r"parallelism.forward.1: got a group of 3, .*divisor",
        ),
        ("[1, 2, 4, 32]", "[1, 2, 4]", r"parallelism.weight_grad: got 3 group sizes, expected 4"),
        ("[1, 2, 4, 32]", "[1, 2.5, 4, 32]", r"weight_grad.1: got 2.5, expected a whole number"),
        ("[1, 2, 4, 32]", "[1, -1, 4, 32]", r"weight_grad.1: got -1, expected at least 1"),
        (
            "weight_grad",
            "weight_grd",
            r"got the unknown key 'weight_grd'.*did you mean weight_grad",
        ),
        ("{forward", "{tp: 3, forward", r"got 'tp' beside keys of another form"),
        (
            "input_grad: [4, 4, 1, 1]",
            "input_grad: [4, 1, 1, 1]",
            r"parallelism.input_grad: got groups of 4 NPUs, but of 16 in forward",
        ),
    ],
)
def test_fault_in_explicit_groups(old: str, new: str, pattern: str, plan, run) -> None:
    good = plan(("{tp: 16, dp: 256}", GROUPS))
    assert run("optimize", good).code == 0
    result = run("optimize", plan(("{tp: 16, dp: 256}", GROUPS.replace(old, new))))
    assert result.code == 2
    assert re.search(pattern, result.err), result.err


def test_unwritable_import_leaves_nothing_behind(tmp_path: Path, run) -> None:
    from tests.oracles.libra_tables import optima, write_files

    arguments = write_files(tmp_path, optima()[0])
    before = sorted(os.listdir(tmp_path))
    result = run("import", "libra", *arguments, "-o", tmp_path / "no" / "plan.yaml")
    assert result.code == 2
    assert result.err.startswith(f"{tmp_path}/no/plan")
    assert sorted(os.listdir(tmp_path)) == before


LIBRA_FAULTS = {
    "fields": ("w.txt", ("K1 -1", "K1"), r"w.txt:2: got 11 fields, expected 12"),
    "collective": ("w.txt", ("ALLGATHER", "ALLGATHR"), r"w.txt:6: got 'ALLGATHR'.*ALLGATHER"),
    "time": ("w.txt", ("12207", "-5"), r"w.txt:9: got '-5', expected 0 or a number from"),
    "block": ("n.yml", ("Ring", "Rng"), r"n.yml:1:13: Topology.0: got 'Rng'.*mean Ring"),
    "count": ("n.yml", ("16,", "sixteen,"), r"n.yml:2:14: NpusCount.0: got 'sixteen'"),
    "lengths": ("n.yml", ("16, 8,", "16,"), r"got 3 blocks, 2 sizes and 3 tiers"),
    "group": ("c.yml", ("[ 16", "[ 32"), r"c.yml:1:12: Forward.0: got 32, .*divisor of the 16"),
    "no group": (
        "c.yml",
        ("WeightGrad", "Weights"),
        r"c.yml:1:1: WeightGrad: got nothing, expected a list",
    ),
    "price": ("m.yml", ("Nic: 31.60003", "Nic: -1"), r"m.yml:10:8: InterPod.Nic: got -1"),
    "no nic": ("m.yml", ("  Nic: 31.60003\n", ""), r"InterPod: got no Nic price, expected one"),
    "no tier": (
        "m.yml",
        ("InterNode", "Internode"),
        r"got no tier 'InterNode', expected the prices",
    ),
}


@pytest.mark.parametrize("name", LIBRA_FAULTS)
def test_fault_in_libras_files(name: str, tmp_path: Path, run) -> None:
    from tests.oracles.libra_tables import optima, write_files

    file, (old, new), pattern = LIBRA_FAULTS[name]
    arguments = write_files(tmp_path, optima()[0])
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1))
    result = run("import", "libra", *arguments, "-o", tmp_path / "plan.yaml")
    assert result.code == 2
    assert re.search(pattern, result.err), result.err
    assert not (tmp_path / "plan.yaml").exists()


def test_the_standard_plan_is_fine(plan, run) -> None:
    assert run("optimize", plan(text=PLAN)).code == 0


def test_very_long_numbers_are_refused_not_parsed(plan, run) -> None:
    path = plan()
    for setting in (
        f"constraints.{'9' * 5000}=1",
        f"global_batch=0x{'f' * 4000}",
        "global_batch=" + "9" * 5000,
    ):
        result = run("optimize", path, "--set", setting)
        assert result.code == 2
        assert result.err.startswith(f"{path}: --set ")


@pytest.mark.parametrize("digits", ["٣٠٠", "1_00", "0x1g", "true", "1e-400x"])
def test_bandwidths_are_ascii_numbers(digits: str, plan, run) -> None:
    result = run("evaluate", plan(), "--bandwidth", f"{digits},100,75,25")
    assert result.code == 2
    assert "--bandwidth: got" in result.err


def test_tiny_budgets_are_solved_and_printed(plan, run) -> None:
    result = run("optimize", plan(("total == 500 GB/s", "total <= 1e-6 GB/s")), "--json")
    assert result.code == 0, result.err
    assert sum(result.payload["bandwidth_GBps"]) == pytest.approx(1e-6)


def test_a_tier_that_is_no_name_in_libras_files(tmp_path: Path, run) -> None:
    from tests.oracles.libra_tables import optima, write_files

    arguments = write_files(tmp_path, optima()[0])
    for tier in ("[x]", "{a: 1}", '"a\\nb"'):
        text = (tmp_path / "n.yml").read_text()
        (tmp_path / "n.yml").write_text(text.replace("InterPackage", tier))
        result = run("import", "libra", *arguments, "-o", tmp_path / "plan.yaml")
        assert result.code == 2
        assert all(line.startswith(str(tmp_path)) for line in result.err.splitlines()), result.err
        (tmp_path / "n.yml").write_text(text)


def test_sizes_sixteen_orders_apart(plan, run) -> None:
    plan(
        text="kind: table\nsource: s\noperations:\n"
        "  - {layer: a, phase: forward, compute_s: 1, collective: {kind: all-reduce, size_bytes: 1}}\n"
        "  - {layer: b, phase: weight_grad, collective: {kind: all-reduce, size_bytes: 1e16}}\n",
        name="w.yaml",
    )
    path = plan(("gpt3-libra", "./w.yaml"), ("total == 500 GB/s", "total <= 10000 GB/s"))
    result = run("optimize", path, "--json")
    assert result.code == 0, result.err
    assert result.payload["optimality_gap"] <= 1e-6


def test_what_a_message_repeats_is_short(run, tmp_path) -> None:
    """Of a file's content some hundred letters, of a path what the system takes."""
    long = "[" * 30_000
    nested = tmp_path / "nested.json"
    nested.write_text('{"a":' * 20_000 + "1" + "}" * 20_000)
    outcome = run("flows", "rail-8x400G", nested)
    assert outcome.code == 2
    assert 'got the column \'{"a":{' in outcome.err
    assert "}}', expected a known column; known: flow_id" in outcome.err
    assert len(outcome.err) < 800 + 2 * len(str(nested))
    for arguments in (("flows", "rail-8x400G", long), ("optimize", long), ("optimize", "x", long)):
        outcome = run(*arguments)
        assert outcome.code == 2
        assert len(outcome.err) < 4_300
    path = f"/no/{'d/' * 2000}plan.yaml"
    assert run("optimize", path).err.startswith(f"{path}: got no such file")


@pytest.mark.parametrize("also", [{"fabric.foo": 3, "objective": "performanc"}, {}])
def test_faults_of_keys_and_names_are_told_at_once_in_the_order_of_lines(also, run, tmp_path):
    """One pass over the file mends all, whatever stage of the reading finds them."""
    lines = [
        "workload: llama3-71b",
        "parallelism: {tp: 4, cp: 2, pp: 4, dp: 64}",
        "global_batch: 1024",
        "npu: h100-sxn",
        "fidelity: calibrated",
        "fabric:",
        "  topology: SW(8)_[SW(32)_SW(8)]",
        "  tiers: [node, leaf, spine]",
        "  scale_up: nvlink4-9",
        *(["  foo: 3"] if also else []),
        "cost_model: clos-2027",
        f"objective: {also.get('objective', 'performance')}",
        "constraints: [leef <= 50 GB/s]",
    ]
    plan = tmp_path / "plan.yaml"
    plan.write_text("\n".join(lines))
    told = run("optimize", plan).err.splitlines()
    numbers = [int(line.removeprefix(f"{plan}:").split(":")[0]) for line in told]
    assert numbers == ([1, 4, 9, 10, 11, 12, 13] if also else [1, 4, 9, 10, 12])


def test_names_of_several_workloads_are_told_beside_wrong_keys(run, tmp_path) -> None:
    """Each at its line, also where a key of the plan is wrong."""
    text = Path(lp.example("03_group")).read_text().replace("gpt3-libra", "gpt3-libr")
    text = text.replace("dp: 32}}", "dp: 32}, npu: h100-sxx}").replace("weighted", "weigted", 1)
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    said = run("optimize", plan)
    assert said.code == 2
    places = re.findall(r"plan\.yaml:(\d+):\d+: ([\w.]+): got '(\S+)'", said.err)
    assert places == [
        ("4", "workloads.0.workload", "gpt3-libr"),
        ("6", "workloads.2.npu", "h100-sxx"),
        ("7", "group_objective", "weigted"),
    ]


def test_faults_that_do_not_hang_together_are_told_together(run, tmp_path: Path) -> None:
    plan, own = tmp_path / "plan.yaml", tmp_path / "own.yaml"
    plan.write_text(
        "workload: own.yaml\nparallelism: {tp: 8, dp: 8}\nglobal_batch: 64\nnpu: h100-sxmm\n"
        'fabric: {topology: "SW(9)_[SW(8)]", tiers: [node, leaf], scale_up: nvlink4-8}\n'
        "cost_model: clos-2026\nobjective: performanc\n"
    )
    told = run("optimize", plan).err
    for words in ("got no such file (", "h100-sxmm", "performanc", "9 NPUs in nvlink4-8"):
        assert words in told
    assert "expected the 72 NPUs" in told
    plan.write_text(plan.read_text().replace("sxmm", "sxm").replace("performanc\n", "cost\n"))
    shape = "n_layers: 2, hidden: 4096, n_heads: 70, sequence_tokens: 8, vocabulary: 9"
    own.write_text(f"kind: transformer\nsource: x\narchitecture: {{{shape}, fnn: 9}}\n")
    told = run("optimize", plan).err
    assert "unknown key 'fnn'" in told
    assert "70 heads for a width of 4096" in told
    own.write_text(f"kind: transformer\nsource: x\narchitecture: {{{shape}, hed_dim: 9}}\n")
    assert "70 heads" not in run("optimize", plan).err  # With head_dim they are right.
