"""The command line itself: exit codes, streams, help, interruption."""

from __future__ import annotations

import ctypes
import importlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

import libra_planner as lp
from libra_planner.cli.arguments.commands import COMMANDS, command_names
from libra_planner.cli.arguments.helping import EXAMPLES, GROUPS
from libra_planner.cli.main import command_parser
from libra_planner.optimizer import optimize as optimizing
from libra_planner.reading.bundled import given_file
from libra_planner.views.design import design_blocks
from libra_planner.views.renderers.terminal import show
from tests.conftest import PLAN

ROOT = Path(__file__).parents[2]
KINDS = ("examples", "sweeps", "flow-fabrics", "flow-lists")


def test_help_names_every_command_under_who_asks_for_it(run) -> None:
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(COMMANDS)
    result = run("--help")
    assert result.code == 0
    listed = re.findall(r"^  (\w+) +[A-Z]", result.out, re.MULTILINE)
    assert listed == named
    alone = run()
    assert (alone.code, alone.out, alone.err) == (2, "", result.out)


@pytest.mark.parametrize("command", ["", *command_names()])
def test_help_fits_80_columns(command: str, run, monkeypatch) -> None:
    """A command under another one is asked with it."""
    over = dict.fromkeys(("plan", "run", "show", "design"), "sweep") | dict.fromkeys(
        ("libra", "huggingface"), "import"
    )
    words = [word for word in (over.get(command, ""), command) if word]
    monkeypatch.setenv("COLUMNS", "80")
    result = run(*words, "--help")
    assert result.code == 0
    assert max(map(len, result.out.splitlines())) < 80


@pytest.mark.parametrize(
    "command", ["collective", "evaluate", "fabric", "kernels", "list", "schema", "train"]
)
def test_quick_examples_of_the_help_run(command: str, run) -> None:
    for typed, _ in EXAMPLES[command]:
        if "--csv" not in typed:
            result = run(*shlex.split(typed))
            assert result.code == 0, result.err


@pytest.mark.parametrize("command", EXAMPLES)
def test_examples_of_the_help_are_understood(command: str) -> None:
    for typed, _ in EXAMPLES[command]:
        words = shlex.split(typed)
        assert typed.startswith(command)
        if "--help" not in words:
            command_parser(words).parse_args(words)
            bundled = [word for word in words if re.match(r"\d\w_|flowtracer", word)]
            assert all(Path(given_file(x.partition("@")[0], KINDS)).is_file() for x in bundled)


@pytest.mark.parametrize(
    "arguments",
    [[], ["optimise", "x"], ["optimize"], ["optimize", "a", "--jsn"], ["list", "plans"]],
)
def test_bad_usage_is_2(arguments: list[str], run) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert "usage:" in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "--gbs", "1536"], "--gbs 1536; did you mean --global-batch?"),
        (["train", "--gpu", "8"], "did you mean --gpus?"),
        (
            ["optimize", "0e_rails_2to1", "--taper", "3"],
            "libra-planner optimize: error: unrecognized arguments: --taper 3; --taper belongs to "
            "init, train, search and fabric; in a plan it is a rule, such as taper(spine) == 2",
        ),
        (["optimize", "0e_rails_2to1", "--force"], "--force; --force belongs to init"),
        (["sweep", "run", "a", "-o", "b", "--taper", "2"], "libra-planner sweep run: error: "),
        (["sweep", "run", "a", "-o", "b", "--json"], "did you mean --json-progress?"),
        (["collective", "--npu", "h100-sxm"], "did you mean --system?"),
        (["search", "--model", "gpt3", "--nic", "400Gbps"], "did you mean --fabric?"),
        (["optimize", "0e_rails_2to1", "spine=10"], "did you mean --set spine=10?"),
        (
            ["collective", "SW(8)_SW(16)", "all-reduce", "1GB", "450,50"],
            "all-reduce 1GB 450,50; did you mean --kind all-reduce --size 1GB --bandwidth 450,50?",
        ),
        (["collective", "SW(8)", "--kind", "ar", "1GB"], "did you mean --size 1GB?"),
        (["report", "a", "-o", "r", "--check"], "write --check POLICY: route the collectives"),
        (["report", "a", "-o"], "-o/--output: expected one argument; write --output DIR"),
        (["check", "a", "--hash"], "write --hash {murmur,crc32,crc16,xor}: ecmp"),
    ],
)
def test_bad_usage_names_what_may_be_meant(arguments: list[str], words: str, run) -> None:
    result = run(*arguments)
    assert (result.code, words in result.err) == (2, True), result.err


def test_a_tier_taken_for_a_key_is_told_its_rule(run) -> None:
    """The command that the message writes does what was meant."""
    plan = "0e_rails_2to1"
    wrong = run("optimize", plan, "--set", "spine=10")
    fix = "--set 'constraints.2=spine == 10 GB/s'"
    assert (wrong.code, fix in wrong.err) == (2, True), wrong.err
    spine = run("optimize", plan, *shlex.split(fix), "--json").payload["bandwidth_GBps"][-1]
    assert spine == pytest.approx(10)


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (["tui", "--port", "0000651234"], "65535"),
        (["report", "a.yaml", "-o", "r", "--seeds", "00010000001"], "1000"),
        (["sweep", "run", "s.yaml", "-o", "r", "--workers", "-1"], "1024"),
        (["sweep", "show", "r", "--top", "10\N{SUPERSCRIPT TWO}"], "1000000000"),
    ],
)
def test_whole_numbers_out_of_range_are_refused(arguments: list[str], most: str, run) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert f"got {arguments[-1]!r}, expected a whole number from" in result.err
    assert f"to {most}" in result.err


def test_interruption_is_130(plan, run, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    # Not "solve": modules that are loaded meanwhile would keep the stand-in.
    monkeypatch.setattr(optimizing, "_surest_solution", interrupted)
    result = run("optimize", plan())
    assert (result.code, result.out, result.err) == (130, "", "interrupted\n")


def _swallowing(outcome: Callable[[], object]) -> Callable[..., object]:
    """What loses an interrupt, as Python does in callbacks and finalizers, and goes on."""

    def called(*_: object) -> object:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return outcome()
        raise AssertionError

    return called


def _other_error() -> None:
    raise ValueError("of a compiler")


@pytest.mark.parametrize("outcome", [lambda: None, _other_error])
def test_an_interrupt_that_a_library_swallows_is_130(outcome, plan, run, monkeypatch) -> None:
    commands = "libra_planner.cli.design.evaluate"
    monkeypatch.setattr(commands, _swallowing(outcome))
    result = run("evaluate", plan(), "--bandwidth", "1")
    assert (result.code, result.out, result.err) == (130, "", "interrupted\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_in_a_callback_ends_the_work_soon_and_quietly(capfd) -> None:
    """As in the callbacks of numba's compiler: one of ten interrupts met one there."""
    from libra_planner.processes import kept_interrupts

    @ctypes.CFUNCTYPE(None)
    def callback() -> None:
        signal.raise_signal(signal.SIGINT)

    def called() -> None:
        with kept_interrupts():
            callback()
            time.sleep(5)

    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        called()
    assert time.monotonic() - before < 2
    assert capfd.readouterr().err == ""


def test_an_interrupt_in_generated_code_is_130_too() -> None:
    """Python would end itself by the signal, whatever it was told."""
    script = (
        "import signal, sys\n"
        "from libra_planner.cli import design, entry\n"
        "def evaluate(_):\n"
        "    print('half')\n"
        "    exec('signal.raise_signal(signal.SIGINT)', {'signal': signal})\n"
        "design.evaluate = evaluate\n"
        "sys.argv[1:] = ['evaluate', 'plan.yaml', '--bandwidth', '1']\n"
        "entry.run()\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout, found.stderr) == (130, "half\n", "interrupted\n")


def test_an_interrupt_that_a_compiler_swallows_stops_the_work_at_once() -> None:
    from libra_planner.routing.kernels import interruptible

    for outcome in (lambda: None, _other_error):
        with pytest.raises(KeyboardInterrupt):
            interruptible(_swallowing(outcome))()
    assert interruptible(lambda: 3)() == 3
    with pytest.raises(ValueError, match="of a compiler"):
        interruptible(_other_error)()


def test_what_cannot_be_certified_is_4(plan, run, monkeypatch) -> None:
    """With the bound made useless the gap is too wide, and nothing is printed as optimal."""
    from libra_planner.optimizer import objectives

    chooser = importlib.import_module("libra_planner.optimizer.optimize")
    monkeypatch.setattr(chooser, "certain_solution", lambda *_: None)  # Decimals give up too.
    exact = objectives.lower_bound
    monkeypatch.setattr(objectives, "lower_bound", lambda *found: exact(*found) * 0.5)
    path = plan()
    result = run("optimize", path)
    assert (result.code, result.out) == (4, "")
    assert result.err.startswith(f"{path}: got an optimality gap of ")


def test_data_goes_to_stdout_unwrapped(plan, run) -> None:
    result = run("optimize", plan())
    assert result.err == ""
    notes = [line for line in result.out.splitlines() if line.startswith(("Note:", "Consider:"))]
    assert any(note.endswith("%)") and len(note) > 80 for note in notes), notes


def test_a_closed_pipe_is_no_error(plan) -> None:
    for options, first in (
        ("--json", "{\n"),
        ("", "gpt3-libra on RI(4)_FC(8)_RI(4)_SW(32), 4,096 NPUs\n"),
    ):
        command = f"{sys.executable} -m libra_planner optimize {plan()} {options} | head -1"
        result = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, first, "")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_output_without_unicode(encoding: str, plan) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "libra_planner", "optimize", str(plan())],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )
    assert b"dim4       SW(32)  pod       18.78 GB/s  #" in result.stdout
    assert result.stderr == b""


@pytest.mark.parametrize("width", [72, 80, 84, 100, 104, 140])
def test_tables_keep_names_and_numbers_on_narrow_terminals(width: int, plan) -> None:
    problem = lp.load_plan(plan())
    design = lp.optimize(problem)
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    evaluation = lp.evaluate(problem, design.bandwidth_bytes_per_s)
    show(console, design_blocks(problem, evaluation, design))
    rows = [line for line in console.file.getvalue().splitlines() if line.startswith(" dim4 ")]
    assert len(rows) == 1
    for text in ("dim4", "SW(32)", "pod", "18.78 GB/s", "3.8%", "$4.42M", "46.3%"):
        assert text in rows[0]
    assert "…" not in console.file.getvalue()


def test_lists_and_schemas(run) -> None:
    assert "gpt3-libra" in run("list", "workloads").out
    kinds = run("list", "--json").payload["kinds"]
    assert all(run("list", kind, "--json").code == 0 for kind in kinds)
    assert all(line.split()[0] in kinds for line in run("list").out.splitlines())
    assert run("list", "cost-models", "--json").payload["cost-models"].keys() == {
        "clos-2026",
        "libra-ispass24",
    }
    plans, sweeps = run("list", "examples").out, run("list", "sweeps").out
    assert "01_gpt3_4d " in plans
    assert "which dimension deserves" in plans
    assert "01_gpt3_4d.yaml" in run("list", "examples", "--json").out
    assert "11_codesign " in sweeps
    assert "11_codesign" not in plans  # No plan: optimize would refuse it.
    for name in ("plan", "workload", "price-book", "parts", "quotes"):
        assert run("schema", name).payload["$schema"].endswith("2020-12/schema")


def test_json_keys_of_the_contract(plan, run) -> None:
    optimized = run("optimize", plan(), "--json").payload
    figures = {
        "objective", "bandwidth_GBps", "step_time_s", "compute_time_s", "communication_time_s",
        "cost_usd", "equal_bandwidth", "speedup_vs_equal", "perf_per_cost_vs_equal", "bottlenecks",
    }  # fmt: skip
    solver = {
        "status", "optimality_gap", "lower_bound", "unique", "max_violation", "shadow_prices",
    }  # fmt: skip
    assert figures | solver <= optimized.keys()
    evaluated = run("evaluate", plan(), "--bandwidth", "300,100,75,25", "--json").payload
    assert figures | {"feasible", "violated"} <= evaluated.keys()
    assert not solver & evaluated.keys()
    shares = sum(item["time_s"] for item in optimized["bottlenecks"])
    assert shares == pytest.approx(optimized["communication_time_s"])
    times = optimized["compute_time_s"] + optimized["communication_time_s"]
    assert times == pytest.approx(optimized["step_time_s"])


def test_same_plan_same_bytes(plan, run) -> None:
    path = plan()
    assert run("optimize", path, "--json").out == run("optimize", path, "--json").out


def test_public_names_are_lazy_and_complete() -> None:
    assert set(lp.__all__) <= set(dir(lp))
    for name in lp.__all__:
        assert getattr(lp, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'optimise'"):
        _ = lp.optimise


@pytest.mark.parametrize("redirection", [">&-", "> /dev/full"])
@pytest.mark.parametrize("command", ["list workloads", "optimize examples/01_gpt3_4d.yaml --json"])
def test_a_result_that_cannot_be_written(command: str, redirection: str) -> None:
    line = f"{shlex.quote(sys.executable)} -m libra_planner {command} {redirection}"
    result = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "cannot write the result" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("after_s", [0.06, 0.15, 0.25, 0.4, 0.6])
def test_an_interrupt_at_any_moment_is_an_interrupt(after_s: float) -> None:
    command = [sys.executable, "-m", "libra_planner", "optimize", "examples/01_gpt3_4d.yaml"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    # Python itself, before it runs any of ours, dies of the signal or shows where it was.
    started = "interrupted" in err or "Traceback" not in err
    assert process.returncode in ((130, 0, -signal.SIGINT) if started else (1, -signal.SIGINT))
    assert "libra_planner/optimizer" not in err


_FLOWS = f"{ROOT}/examples/flows/flowtracer_fabric.yaml {ROOT}/examples/flows/flowtracer_flows.csv"
_CODES = {
    "flows flowtracer-16x400G no.csv": 2,
    "flows --nonsense": 2,
    "optimize plan.yaml --set constraints=[]": 3,
    f"flows {_FLOWS} --seeds 2 --json": 0,
    "check plan.yaml --seeds 2 --json": 0,
    "pareto plan.yaml --points 2 --json": 0,
    "optimize plan.yaml --routing greedy --json": 0,
}
_KINDS = ("closed", "full", "broken pipe")
_FORKS = """\
import contextlib, io, json, os, shlex, sys
from libra_planner.cli import entry, main

def outcome(arguments, kind):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writing, 1)
        os.close(reading)
        os.close(writing)
        if kind == "closed":
            os.close(2)
            sys.stderr = sys.__stderr__ = None  # As Python has it where it starts like this.
        elif kind == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
        else:
            ends = os.pipe()
            os.close(ends[0])
            os.dup2(ends[1], 2)
            os.close(ends[1])
        sys.argv[1:] = shlex.split(arguments)
        entry.run()
    os.close(writing)
    with open(reading) as pipe:
        text = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text

with contextlib.redirect_stdout(io.StringIO()):  # Imports what all of them need.
    main.main(shlex.split("optimize plan.yaml --routing greedy --json"))
print(json.dumps([[*case, *outcome(*case)] for case in json.loads(sys.argv[1])]))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[int, str]]:
    """Exit code and stdout of commands: processes of one that has imported what all need."""
    folder = tmp_path_factory.mktemp("stderr")
    (folder / "plan.yaml").write_text(PLAN, encoding="utf-8")
    cases = json.dumps([(arguments, kind) for arguments in _CODES for kind in _KINDS])
    found = subprocess.run(
        [sys.executable, "-c", _FORKS, cases],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        (arguments, kind): (code, out) for arguments, kind, code, out in json.loads(found.stdout)
    }


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("arguments", _CODES)
def test_a_stderr_that_takes_nothing_leaves_the_result_and_its_code(
    arguments: str, kind: str, outcomes: dict[tuple[str, str], tuple[int, str]]
) -> None:
    code, out = outcomes[arguments, kind]
    _check_result(_CODES[arguments], code, out)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("arguments", ["flows --nonsense", "check plan.yaml --seeds 2 --json"])
def test_a_process_that_starts_without_stderr_is_no_other(
    arguments: str, kind: str, plan: Callable[..., Path]
) -> None:
    """The same from the shell, which tells Python before it starts."""
    command = f"{shlex.quote(sys.executable)} -m libra_planner {arguments}"
    redirection = {"closed": " 2>&-", "full": " 2>/dev/full", "broken pipe": ""}[kind]
    reading, writing = os.pipe()
    os.close(reading)
    found = subprocess.run(
        command + redirection,
        shell=True,
        cwd=plan().parent,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=writing,
        text=True,
        check=False,
    )
    os.close(writing)
    _check_result(_CODES[arguments], found.returncode, found.stdout)


def _check_result(expected: int, code: int, out: str) -> None:
    assert code == expected
    if code:
        assert out == ""
    else:
        json.loads(out)


@pytest.mark.parametrize("command", ["optimize", "check"])
def test_the_first_lines_fit_a_log_and_break_no_figure(command: str, run, monkeypatch) -> None:
    """A pipe has them in 80 columns; whatever the width, a number stays with its unit."""
    arguments = (command, "0e_rails_2to1", *(["--seed", "0"] if command == "check" else []))
    piped = run(*arguments).out.split("\n\n")[0].split("\n")
    assert max(map(len, piped)) <= 80
    assert piped[1].startswith("Step time ")
    heads = [" ".join(piped)]
    for width in ("46", "60", "100", "2000"):
        monkeypatch.setenv("COLUMNS", width)
        lines = run(*arguments).out.split("\n\n")[0].split("\n")
        assert max(map(len, lines)) <= int(width)
        units = r"(ms|s|us|GB|MB|GB/s|NPUs|linear|x|\(?[\d.]+%\)?)\b"
        assert [line for line in lines if re.match(units, line)] == []
        heads.append(" ".join(lines))
    assert len(set(heads)) == 1


@pytest.mark.parametrize("command", [["optimize"], ["check"], ["sweep", "plan"]])
def test_a_dash_is_no_file_and_the_message_names_the_stream(command: list[str], run) -> None:
    refused = run(*command, "-")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("-: got -, which is no file, expected a ")
    assert "write /dev/stdin to read it from a pipe, with absolute paths in it" in refused.err


def test_a_design_stands_behind_its_plan_where_a_bandwidth_is_taken(run) -> None:
    """As in report: ``PLAN@B1,B2``."""
    vector = "300,100,75,25"
    for command in ("evaluate", "check"):
        flagged = run(command, "01_gpt3_4d", "--bandwidth", vector, "--json")
        assert flagged.code == 0
        assert run(command, f"01_gpt3_4d@{vector}", "--json").payload == flagged.payload


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("optimize 08_rails@1,2", "08_rails@1,2: got a design, expected a plan; write 08_rails; "),
        ("search 08_rails@1,2", "evaluate, check and report take 08_rails@1,2"),
        ("tui 08_rails@1,2", "got a design, expected a plan"),
        ("sweep run a.yaml@1,2 -o o", "a.yaml@1,2: got a design, expected a sweep; write a.yaml"),
        ("check 08_rails@1,2 --bandwidth 3,4", "got 1,2 here, and 3,4 elsewhere, expected one"),
        ("check 08_rails 08_rails@1,2", "08_rails: got no vector here, and 1,2 elsewhere"),
        ("check 08_rails@r.json", "got a result, expected 08_rails@B1,B2,... in GB/s; write"),
        ("check 08_rails@", "got '08_rails@', expected PLAN@BANDWIDTHS"),
        ("evaluate 08_rails", "08_rails: got no --bandwidth, expected a vector; write --bandwidth"),
    ],
)
def test_a_design_where_none_is_taken_says_what_to_write(arguments: str, said: str, run) -> None:
    result = run(*arguments.split())
    assert (result.code, result.out) == (2, "")
    assert said in result.err
