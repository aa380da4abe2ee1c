"""Loops that a plan writes out: what they mean, and the reason why one is refused."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from libra_planner.errors import SpecError
from libra_planner.plan.loops import MAX_NESTING, parse_loop
from libra_planner.step.layers import (
    LOOPS,
    NAMES,
    Duration,
    LoopTerm,
    Multiple,
    Overlap,
    Quantity,
    Serial,
)

WRITTEN = {
    "no_overlap": "forward + backward",
    "tp_dp_overlap": "forward + input_grad.compute + backward.cp + backward.ep"
    " + max(backward.tp, weight_grad.compute + backward.dp)",
    "async_dp": "forward + max(backward.compute + backward.tp + backward.cp + backward.ep, backward.dp)",
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_named_loops_written_out_are_the_same_trees(name: str) -> None:
    assert parse_loop(WRITTEN[name]) == LOOPS[name]


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("contention", ["true", "false"])
def test_the_named_loops_written_out_in_a_plan(name: str, contention: str, plan, run) -> None:
    vector = ["--bandwidth", "300,20,4,3", "--json"]
    path = plan(
        ("constraints", f"training_loop: {name}\ncontention: {contention}\nconstraints"),
    )
    named = run("evaluate", path, *vector).payload
    text = json.dumps({"layer": WRITTEN[name]})
    written = run("evaluate", path, *vector, "--set", f"training_loop={text}").payload
    for key in ("settings", "set"):
        assert named.pop(key) != written.pop(key)
    named.pop("notes"), written.pop("notes")  # Of cp and ep, which a plan of tp and dp lacks.
    assert named == written


def test_settings_say_which_loop(plan, run) -> None:
    path = plan(("constraints", "training_loop: async_dp\nbubble_fraction: 0.11\nconstraints"))
    vector = ["--bandwidth", "300,20,4,3", "--json"]
    with_bubble = run("evaluate", path, *vector).payload
    assert with_bubble["settings"][2:4] == [
        "loop async_dp with contention",
        "pipeline bubble 11%",
    ]
    without = run("evaluate", path, *vector, "--set", "bubble_fraction=0").payload
    assert with_bubble["step_time_s"] == pytest.approx(1.11 * without["step_time_s"], rel=1e-12)
    assert with_bubble["real_link_step_time_s"] == pytest.approx(
        1.11 * without["real_link_step_time_s"], rel=1e-12
    )
    own = run("evaluate", path, *vector, "--set", "training_loop={step: forward + backward}")
    assert own.payload["settings"][2] == "loop of the plan's own"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("forward.tp", NAMES["forward.tp"]),
        ("2 * 3 * forward.tp / 4", Multiple(1.5, NAMES["forward.tp"])),
        ("forward.tp * .5", Multiple(0.5, NAMES["forward.tp"])),
        ("2 / 4 * forward.tp", Multiple(0.5, NAMES["forward.tp"])),
        ("1 * forward.tp", NAMES["forward.tp"]),
        ("0 * forward.tp", Multiple(0.0, NAMES["forward.tp"])),
        ("(((forward.tp)))", NAMES["forward.tp"]),
        ("2*(forward.tp+50 ms)", Multiple(2.0, Serial((NAMES["forward.tp"], Duration(0.05))))),
        ("1e3 ms", Duration(1.0)),
        ("5 min", Duration(300.0)),
        ("max(forward.tp, 1 s, forward.dp)",
         Overlap((NAMES["forward.tp"], Duration(1.0), NAMES["forward.dp"]))),
        ("max(forward.tp)", NAMES["forward.tp"]),
        (" forward.tp\n + forward.dp ", Serial((NAMES["forward.tp"], NAMES["forward.dp"]))),
    ],
)  # fmt: skip
def test_expressions(text: str, tree: LoopTerm) -> None:
    assert parse_loop(text) == tree


REFUSED = {
    "": r"got the end at character 1 of '', expected a quantity",
    "   ": r"got the end at character 4",
    "forwad": r"the name 'forwad' at character 1 of 'forwad', expected a quantity; did you mean forward\?",
    "forward.tpp": r"the name 'forward.tpp' .*; did you mean forward.tp\?",
    "backward.comm": r"the name 'backward.comm'.*did you mean",
    "dim1": r"the name 'dim1'.*known: forward",
    "forward - backward": r"got '-' at character 9 .* a difference is not convex and non-increasing",
    "-forward": r"got '-' at character 1 .* a difference is not convex",
    "forward + -1 * backward": r"got '-' at character 11 .* a difference",
    "-2 * forward": r"got '-' at character 1",
    "min(forward, backward)": r"function 'min' at character 1 .*a minimum is not convex",
    "sum(forward)": r"function 'sum' .*expected sums, max and multiples of 0 or more",
    "max[forward]": r"got '\[' at|the name 'max'",
    "max": r"the name 'max'",
    "forward * backward": r"a time multiplied by a time at character 11",
    "(1 s) * forward": r"a time multiplied by a time at character 9",
    "1 / forward": r"division by a time at character 5 .* one over a time grows with bandwidth",
    "forward / backward": r"division by a time",
    "forward / 0": r"a division by 0 at character 11",
    "2 forward": r"got '2 forward' at character 1 .* expected '\*' between",
    "2 max(forward, backward)": r"got '2 max' .*expected '\*' between",
    "2 (forward)": r"expected '\*' between",
    "forward backward": r"got 'backward' at character 9 .*expected '\+', '\*', '/' or the end",
    "2": r"got '2' without a unit or name at character 1 .*; write 2 us, or 2 \* forward",
    "forward + 2 * 3": r"got '2' without a unit or name at character 11",
    "50 GB/s": r"the unit 'GB' at character 4 .*expected one of time",
    "50 uss": r"the unit 'uss' .*expected one of time; did you mean us",
    "1e999 s": r"got '1e999 s' .*expected 0 or 1e-12 to 1e\+12 s",
    "1e999 * forward": r"got inf times forward.compute",
    "0 * 1e999 * forward": r"got nan times",
    "1e-5 * (1e-5 * forward)": r"got 1e-10 times forward.compute .*factor from 1e-09 to 1e\+09",
    "1e9 * (1e9 * 1 s)": r"got 1e\+18 times a duration",
    "(forward": r"got the end at character 9 .*expected '\+', '\*' or '\)'",
    "forward)": r"got '\)' at character 8",
    "max(forward, )": r"got '\)' at character 14 .*expected a quantity",
    "max()": r"got '\)' at character 5",
    "(forward, backward)": r"several terms in brackets at character 1 .*write max",
    "forward, backward": r"got ',' at character 8",
    "forward +": r"got the end at character 10",
    "forward ** 2": r"got '\*' at character 10",
    "forward ^ 2": r"got '\^' at character 9",
    "__import__('os')": r"the function '__import__'",
    "forward.__class__": r"the name 'forward.__class__'",
    "\u0661 * forward": r"got '\u0661' at character 1",
    "(" * 21 + "forward" + ")" * 21: r"brackets nested deeper than 20 at character 21",
    "(" * 900: r"brackets nested deeper than 20",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refused_expressions(text: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_loop(text)
    assert re.search(REFUSED[text], str(error.value)), str(error.value)
    assert len(error.value.faults) == 1


@given(st.text(st.sampled_from("forwad.tp max(,)+-*/ 019 us"), max_size=30))
def test_any_text_gives_a_tree_or_one_clear_fault(text: str) -> None:
    assert re.match(r"$|got .* at character|got .* times", _message(text))


def _message(text: str) -> str:
    try:
        parse_loop(text)
    except SpecError as error:
        return str(error)
    return ""


quantities = st.sampled_from(sorted(NAMES)).map(lambda name: (name, NAMES[name]))
numbers = st.sampled_from(["0", "0.5", "2", "3e0", "1_0"])


def _multiple(pair: tuple[str, tuple[str, LoopTerm]]) -> tuple[str, LoopTerm]:
    number, (text, tree) = pair
    return f"{number} * ({text})", Multiple(float(number), tree)


def _joined(parts: list[tuple[str, LoopTerm]], kind: type) -> tuple[str, LoopTerm]:
    inner = [f"({text})" for text, _ in parts]
    text = " + ".join(inner) if kind is Serial else f"max({', '.join(inner)})"
    return text, kind(tuple(tree for _, tree in parts))


expressions = st.recursive(
    quantities,
    lambda inner: (
        st.tuples(numbers, inner).map(_multiple)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: _joined(parts, Serial))
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: _joined(parts, Overlap))
    ),
    max_leaves=8,
)


@given(expressions)
def test_written_trees_are_read_back(expression: tuple[str, LoopTerm]) -> None:
    text, tree = expression
    assume(text.count("(") <= MAX_NESTING)
    assert parse_loop(text) == tree


def test_names_are_phases_and_parts() -> None:
    assert len({name for name, term in NAMES.items() if isinstance(term, Quantity)}) == 27
    assert {name.partition(".")[0] for name in NAMES} == {
        "forward", "backward", "input_grad", "weight_grad",
    }  # fmt: skip


PLAN_FAULTS = {
    "forgotten": (
        "{layer: forward + backward.compute + backward.tp}",
        r":7:24: training_loop.layer: got a loop without weight_grad.dp, which gpt3-libra has, "
        r"expected all .*; add it, or '\+ 0 \* weight_grad.dp' to leave it out on purpose",
    ),
    "forgotten in a step": (
        "{step: forward}",
        r":7:23: training_loop.step: got a loop without input_grad.compute, input_grad.tp, ",
    ),
    "not convex": (
        "{layer: 'forward - backward'}",
        r":7:24: training_loop.layer: got '-' at character 9 of 'forward - backward'",
    ),
    "both": (
        "{layer: forward, step: forward}",
        r":7:16: training_loop: got both of layer and step, expected one of them",
    ),
    "neither": ("{}", r":7:16: training_loop: got neither of layer and step"),
    "unknown key": (
        "{layr: forward}",
        r":7:17: training_loop.layr: got the unknown key 'layr', .*did you mean layer\?",
    ),
    "comma without quotes": (
        "{layer: max(forward, backward)}",
        r":7:16: training_loop: got an expression split at a comma, expected it in quotes",
    ),
    "number": ("{layer: 5}", r":7:24: training_loop.layer: got 5, expected text"),
    "empty": ("{layer: ''}", r":7:24: training_loop.layer: got '', expected some text"),
    "too long": (
        "{layer: '" + "forward + " * 200 + "forward'}",
        r"training_loop.layer: .*expected at most 1000 characters",
    ),
    "list": ("[forward]", r":7:16: training_loop: got a list, expected 'no_overlap', 'tp_dp"),
    "true": ("true", r":7:16: training_loop: got true, expected 'no_overlap'"),
    "bare expression": ("forward + backward", r"training_loop: got 'forward \+ backward', exp"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAN_FAULTS)
def test_faults_of_a_loop_in_a_plan(name: str, plan, run) -> None:
    text, pattern = PLAN_FAULTS[name]
    path = plan(("constraints", f"training_loop: {text}\nconstraints"))
    result = run("evaluate", path, "--bandwidth", "300,100,75,25")
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith(f"{path}:")
    assert re.search(pattern, result.err), result.err


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("contention: 1", r":7:13: contention: got 1, expected true or false"),
        ("contention: no", r":7:13: contention: got 'no', expected true or false"),
        ("bubble_fraction: -0.1", r":7:18: bubble_fraction: got -0.1, expected at least 0"),
        ("bubble_fraction: 11", r":7:18: bubble_fraction: got 11, expected at most 10"),
        ("bubble_fraction: .nan", r":7:18: bubble_fraction: got nan"),
        ("bubble_fraction: 11%", r":7:18: bubble_fraction: got '11%', expected a number"),
        ("bubble_fraction: true", r":7:18: bubble_fraction: got true, expected a number"),
    ],
)
def test_faults_beside_the_loop(line: str, pattern: str, plan, run) -> None:
    result = run(
        "evaluate", plan(("constraints", f"{line}\nconstraints")), "--bandwidth", "3,1,7,2"
    )
    assert result.code == 2
    assert re.search(pattern, result.err), result.err


def test_a_fault_of_the_loop_comes_with_the_others(plan, run) -> None:
    path = plan(
        ("constraints", "training_loop: {layer: 'min(forward, backward)'}\nconstraints"),
        ("total == 500 GB/s", "total == 500"),
    )
    lines = run("optimize", path).err.splitlines()
    assert [":7:24: training_loop.layer" in lines[0], ":9:5:" in lines[1]] == [True, True]
    assert len(lines) == 2


def test_leaving_something_out_on_purpose(plan, run) -> None:
    vector = ["--bandwidth", "300,100,75,25", "--json"]
    path = plan(
        ("constraints", "training_loop: {layer: forward + 0 * backward}\nconstraints"),
    )
    result = run("evaluate", path, *vector)
    assert result.code == 0, result.err
    assert {row["operation"] for row in result.payload["bottlenecks"]} == {"forward TP all-reduce"}
    nothing = run(
        "evaluate", path, *vector, "--set", "training_loop={layer: 0 * (forward+backward)}"
    )
    assert nothing.code == 2
    assert "whose step takes no time" in nothing.err


@pytest.mark.parametrize(
    ("block", "tp", "ideal_s", "real_s"),
    [
        # Neighbours and pairs across share the ring's links: each takes twice as long there.
        ("RI(4)", 2, 0.02, 0.04),
        # TP's 3 of 7 links and DP's one are different: DP waits for its own, 7 GB / 100 GB/s.
        ("FC(8)", 4, 0.025, 0.07),
    ],
)
def test_contention_on_real_links(block, tp, ideal_s, real_s, plan, run) -> None:
    plan(
        text="kind: table\nsource: s\noperations:\n"
        "  - {layer: x, phase: input_grad, collective: {kind: all-reduce, size_bytes: 1e9}}\n"
        "  - {layer: x, phase: weight_grad, collective: {kind: all-reduce, size_bytes: 1e9}}\n",
        name="w.yaml",
    )
    path = plan(
        ("gpt3-libra", "./w.yaml"),
        ("RI(4)_FC(8)_RI(4)_SW(32)", block),
        ("[chiplet, package, node, pod]", "[chiplet]"),
        ("{tp: 16, dp: 256}", f"{{tp: {tp}, dp: 2}}"),
        ("constraints", "training_loop: tp_dp_overlap\nconstraints"),
    )
    payload = run("evaluate", path, "--bandwidth", "100", "--json").payload
    assert payload["step_time_s"] == pytest.approx(ideal_s, rel=1e-12)
    assert payload["real_link_step_time_s"] == pytest.approx(real_s, rel=1e-12)


GROUP = """\
workloads:
  - {workload: gpt3-libra, parallelism: {tp: 16, dp: 256}}
  - {workload: turing-nlg-libra, parallelism: {tp: 16, dp: 256}}
"""


def test_one_loop_for_a_group_of_workloads(plan, run) -> None:
    path = plan(
        ("workload: gpt3-libra\n", GROUP),
        ("parallelism: {tp: 16, dp: 256}\ncost", "cost"),
        ("constraints", "training_loop: tp_dp_overlap\nconstraints"),
    )
    vector = ["--bandwidth", "300,20,4,3", "--json"]
    result = run("evaluate", path, *vector)
    assert result.code == 0, result.err
    alone = [
        run("evaluate", plan(("gpt3-libra", name)), *vector, "--set", "training_loop=tp_dp_overlap")
        for name in ("gpt3-libra", "turing-nlg-libra")
    ]
    mean = sum(one.payload["step_time_s"] for one in alone) / 2
    assert result.payload["step_time_s"] == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(
    ("loop", "patterns"),
    [
        ("{layer: forward - 1}", [r":8:24: training_loop.layer: got '-' at character 9"]),
        (
            "{layer: forward}",
            [
                r":8:24: training_loop.layer: got a loop without .*, which gpt3-libra has",
                r":8:24: training_loop.layer: got a loop without .*, which turing-nlg-libra has",
            ],
        ),
    ],
)
def test_faults_of_a_group_s_loop_stand_in_the_plan(loop: str, patterns, plan, run) -> None:
    path = plan(
        ("workload: gpt3-libra\n", GROUP),
        ("parallelism: {tp: 16, dp: 256}\ncost", "cost"),
        ("constraints", f"training_loop: {loop}\nconstraints"),
    )
    result = run("evaluate", path, "--bandwidth", "300,20,4,3")
    lines = result.err.splitlines()
    assert len(lines) == len(patterns), result.err
    for line, pattern in zip(lines, patterns, strict=True):
        assert re.search(pattern, line), line
