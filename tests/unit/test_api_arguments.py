"""Words and numbers that functions of Python take: wrong ones are refused by their names."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import libra_planner as lp
from libra_planner import allowed
from libra_planner.allowed import Each, Flag, Kind, Number, OneOf, Text, Whole
from libra_planner.api.clusters import networks, systems
from libra_planner.api.collectives import OF_COLLECTIVES
from libra_planner.api.flow_lists import OF_FLOWS
from libra_planner.api.given import OF_LINKS, TAKEN
from libra_planner.api.reports import OF_REPORTS
from libra_planner.api.searches import OF_SEARCHES
from libra_planner.api.training import OF_RUNS
from libra_planner.cli.arguments.commands import COMMANDS
from libra_planner.cli.arguments.making import Titled

FLOWS = ("flowtracer_fabric", "flowtracer_flows")
COLLECTIVE = {"topology": "RI(4)_SW(8)", "kind": "all-reduce", "size_bytes": 2**20}
COLLECTIVE |= {"bandwidth_bytes_per_s": [1e11, 5e10]}
MODEL = {"model": "llama3-8b", "npu": "h100-sxm", "gpus": 8, "global_batch": 64}
ON_NODES = {"system": "h100-sxm", "kind": "all-reduce", "size_bytes": 2**20}


@cache
def _plan() -> Any:
    return lp.load_plan("07_check")


@cache
def _design() -> Any:
    return _plan().evaluate(bandwidth_GBps=[170, 130])


def _results() -> Any:
    """Results that are never read: wrong arguments are refused before."""
    return object.__new__(lp.SweepResults)


def _with(function: Callable[..., Any], *args: Any, **usual: Any) -> Callable[..., Any]:
    return lambda **asked: function(*args, **usual | asked)


def _kernel(**asked: Any) -> Any:
    return lp.kernel(**{"op": "gemm", "npu": "h100-sxm", "m": 64, "n": 64, "k": 64} | asked)


_N_BEST = {name: OF_SEARCHES[name] for name in ("n_best", "global_batch")}
_N_POINTS = {name: OF_SEARCHES[name] for name in ("n_points", "global_batch")}
_SEARCH = {name: kind for name, kind in OF_SEARCHES.items() if name != "n_points"}
_SYSTEM = systems.OF_SYSTEMS
_FIT = {name: _SYSTEM[name] for name in ("nics", "interconnect", "kind")}
_JOBS = ("fail_links", "fail_spines", "single_failures", "trace")
_TAKES: dict[str, tuple[Callable[..., Any], dict[str, Kind]]] = {
    "Plan.check": (lambda **asked: _plan().check(**asked), OF_LINKS),
    "Evaluated.check": (lambda **asked: _design().check(**asked), OF_LINKS),
    "Plan.optimize_routed": (lambda **asked: _plan().optimize_routed(**asked), OF_LINKS),
    "check_jobs": (
        _with(lp.check_jobs, ["07_check"]),
        {name: kind for name, kind in OF_LINKS.items() if name not in _JOBS},
    ),
    "flows": (_with(lp.flows, *FLOWS), OF_FLOWS),
    "compared_flows": (_with(lp.compared_flows, *FLOWS), OF_FLOWS),
    "train": (_with(lp.train, **MODEL), OF_RUNS),
    "train_table": (
        _with(lp.train_table, "runs.csv"),
        {"attention_flops": OF_RUNS["attention_flops"]},
    ),
    "search": (_with(lp.search, **MODEL), _SEARCH),
    "Plan.search": (lambda **asked: _plan().search(**asked), _N_BEST),
    "Plan.search_pareto": (lambda **asked: _plan().search_pareto(**asked), _N_POINTS),
    "Plan.pareto": (
        lambda **asked: _plan().pareto(**asked),
        {"n_points": OF_SEARCHES["n_points"]},
    ),
    "kernel": (_kernel, systems.OF_KERNELS),
    "system_collective": (_with(lp.system_collective, **ON_NODES), _SYSTEM),
    "calibrate": (_with(lp.calibrate, "system.yaml", kernels="kernels.csv"), _FIT),
    "collective": (_with(lp.collective, **COLLECTIVE), OF_COLLECTIVES),
    "network": (_with(lp.network, hosts=64, nic="400Gbps"), networks.OF_NETWORKS),
    "report": (_with(lp.report, ["01_gpt3_4d"], "folder", formats="md"), OF_REPORTS),
    "sweep": (_with(lp.sweep, "13_tapers", "run"), {"n_workers": Whole(*allowed.WORKERS)}),
    "SweepResults.top": (lambda **asked: _results().top(**asked), {"n": Whole(*allowed.BEST)}),
    "SweepResults.to_frame": (
        lambda **asked: _results().to_frame("top", **asked),
        {"n": Whole(*allowed.BEST)},
    ),
    "SweepResults.designs": (
        lambda **asked: _results().designs(**asked),
        {"most": Whole(*allowed.BEST)},
    ),
    "SweepResults.save_plan": (
        lambda **asked: _results().save_plan(path="a.yaml", **asked),
        {"row": Whole(*allowed.ROW)},
    ),
    "SweepResults.plot": (lambda **asked: _results().plot(**asked), {"is_whole": Flag()}),
}
"""What is called, and what its arguments take."""


def _wrong(kind: Kind) -> Iterator[Any]:
    """Values that a kind refuses."""
    if isinstance(kind, Each):
        yield from ([one] for one in _wrong(kind.kind))
        yield from (one for one in _wrong(kind.kind) if one != [])
    elif isinstance(kind, OneOf):
        yield from (f"{kind.words[0]}x", f"{kind.words[-1]}x", "bananas", 7, -1, True, 0.5)
    elif isinstance(kind, Whole):
        yield from (kind.least - 1, kind.most + 1, 1.5, float("nan"), True, "bananas", [])
        yield from ("2", float(kind.least))
    elif isinstance(kind, Number):
        yield from (kind.least - 1, kind.most * 2, float("nan"), float("inf"), True)
        yield from () if kind.reads_text else ("2", "bananas")
    elif isinstance(kind, Flag):
        yield from ("no", "True", 1, 0.0)
    elif isinstance(kind, Text):
        yield from (5, True, 1.5, "")


@pytest.mark.parametrize(
    ("function", "name"), [(one, name) for one, (_, kinds) in _TAKES.items() for name in kinds]
)
def test_wrong_values_are_refused_by_the_argument(function: str, name: str) -> None:
    call, kinds = _TAKES[function]
    for value in _wrong(kinds[name]):
        with pytest.raises(lp.SpecError, match=f"^{name}: got .*, expected ") as caught:
            call(**{name: value})
        assert "--" not in str(caught.value), caught.value


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: _plan().check(placement="contigous"),
            "placement: got 'contigous', expected contiguous, rail or random; "
            "did you mean contiguous?",
        ),
        (
            lambda: lp.system_collective(**ON_NODES, nodes=4, interconnect="etherent"),
            "interconnect: got 'etherent', expected infiniband or ethernet; did you mean ethernet?",
        ),
        (
            lambda: lp.train(**MODEL, recompute="al"),
            "recompute: got 'al', expected none, selective or full",
        ),
        (lambda: lp.train(**MODEL, zero=7), "zero: got 7, expected 0, 1, 2 or 3"),
        (
            lambda: lp.train(**MODEL, dtype="bf61"),
            "dtype: got 'bf61', expected bf16, fp16, fp8 or fp4; did you mean bf16?",
        ),
        (
            lambda: lp.Policy("ecmp", hash="crc31"),
            "hash: got 'crc31', expected murmur, crc32, crc16 or xor; did you mean crc32 or crc16?",
        ),
        (
            lambda: _plan().check(queue_pairs="4"),
            "queue_pairs: got '4', expected a whole number from 1 to 128; write queue_pairs=4",
        ),
        (
            lambda: lp.network(hosts=256.0, nic="400Gbps"),
            "hosts: got 256.0, expected a whole number from 1 to 1,000,000; write hosts=256",
        ),
        (
            lambda: _design().plan.evaluate([1e11, 1e11], bandwidth_GBps=[100, 100]),
            "evaluate: got bandwidth_bytes_per_s and bandwidth_GBps, expected one of both; "
            "leave one out",
        ),
        (
            lambda: _plan().evaluate(bandwidth_GBps=[1, 2, 3]),
            "evaluate: got bandwidth_GBps=[1, 2, 3], 3 numbers, expected 2 numbers, one for each "
            "dimension, innermost first; write bandwidth_GBps=[100, 100]",
        ),
        (
            lambda: lp.link_check(_plan()),
            "link_check: got no bandwidth, expected 2 numbers, one for each dimension, innermost "
            "first; write bandwidth_GBps=[100, 100]",
        ),
        (
            lambda: lp.check(_design(), bandwidth_GBps=[100, 100]),
            "check: got bandwidth_GBps and a design, which has its own bandwidth, expected one of "
            "both; leave one out",
        ),
        (
            lambda: _results().plot(y="cost_usd"),
            "x, y: got y without x, expected a figure along x, or over x and y; "
            "add x, or write x instead",
        ),
        (
            lambda: _results().to_frame("pareto", n=3),
            "n: got n with 'pareto', expected it with 'top'; write to_frame('top', n=3)",
        ),
        (
            lambda: _results().plot("budget", is_whole=True),
            "is_whole: got is_whole with x, expected the figure of the frontier; leave it out",
        ),
        (
            lambda: lp.routed_optimum(_plan(), lp.Policy(), seeds=2),
            "seeds: got 2, expected the seeds themselves; write seeds=range(2)",
        ),
    ],
)
def test_what_is_said_of_wrong_values(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(lp.SpecError) as caught:
        call()
    assert str(caught.value) == said


_OF_COUNTS = re.compile(r"\b(int|float|bool|AttentionFlops)\b")
_DELEGATES = ("Plan.pareto", "Plan.search", "Plan.search_pareto")
"""Methods that hand all they are given to the function of their name."""


def test_every_number_and_truth_value_of_a_function_is_looked_at() -> None:
    taken = {name.removeprefix("libra_planner."): kinds for name, kinds in TAKEN.items()}
    for name in lp.__all__:
        function = getattr(lp, name)
        if not inspect.isfunction(function):
            continue
        known = taken.get(f"{function.__module__}.{name}".removeprefix("libra_planner."), {})
        for argument in inspect.signature(function).parameters.values():
            is_vector = argument.name == "bandwidth_bytes_per_s"
            if _OF_COUNTS.search(f"{argument.annotation}") and not is_vector:
                is_rest = argument.kind is inspect.Parameter.VAR_KEYWORD
                assert is_rest or argument.name in known, (name, argument)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: lp.sweep("13_tapers", "run", worker=2), "sweep: got .*'worker'; did you mean n_w"),
        (lambda: lp.evaluate(_plan(), bandwith_GBps=[1]), "evaluate: .*; did you mean bandwidth_G"),
        (lambda: _plan().search(global_batc=3), "search: .*; did you mean global_batch?"),
        (lambda: lp.compared_flows(*FLOWS, sedes=2), "compared_flows: .*; did you mean seeds?"),
        (lambda: lp.link_check(_plan(), [1e9, 1e9], trafic=2), "did you mean traffic?"),
        (lambda: _results().plot(axes="a.png"), r"write .plot\(\).figure.savefig\('a.png'\)"),
        (lambda: _design().plot("a.png"), r"write .plot\(\).figure.savefig\('a.png'\)"),
        (lambda: lp.load_plan("07_check", 5), "settings: got a value of type int, expected 'key"),
        (lambda: lp.check([_plan()]), r"check: got a list, .* lp.check_jobs\(plans\) checks sev"),
        (lambda: lp.check(5), "check: got a value of type int, expected a plan; lp.load_plan"),
        (lambda: lp.check(_plan(), sedes=2), "check: got .*'sedes'; did you mean seeds?"),
        (lambda: lp.batch_optimize(5), "got a value of type int, expected a plan"),
    ],
)
def test_slips_of_names_and_kinds(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


def _options(command: str) -> Iterator[tuple[str, dict[str, Any]]]:
    def single(arguments: Any) -> Iterator[Any]:
        for one in arguments:
            inside = one.arguments if isinstance(one, Titled) else one
            yield from (
                single(inside)
                if isinstance(inside, list | type(())) and not isinstance(inside[0], list)
                else [inside]
            )

    for names, more in single(COMMANDS[command][2]()):
        yield names[0].removeprefix("--").replace("-", "_"), more


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("check", OF_LINKS),
        ("train", OF_RUNS),
        ("fabric", networks.OF_NETWORKS),
        ("collective", OF_COLLECTIVES | {"interconnect": _SYSTEM["interconnect"]}),
    ],
)
def test_commands_take_the_same_words(command: str, kinds: dict[str, Kind]) -> None:
    words = {name: more["choices"] for name, more in _options(command) if "choices" in more}
    ours = {name: kind.words for name, kind in kinds.items() if isinstance(kind, OneOf)}
    assert {name: tuple(words[name]) for name in ours} == ours


def test_a_check_says_what_failed_links_cost() -> None:
    found = _plan().check(bandwidth_GBps=[170, 130], seeds=1, fail_links=2000)
    failed_s = found.to_dict()["failures"]["step_time_s"]["mean"]
    assert found.failed_step_time_s == failed_s != found.mean_step_time_s
    assert repr(found).endswith("; with 2,000 cables failed 2.890 s>")
    frame = found.to_frame()
    assert frame["failed_step_time_s"].tolist() == [failed_s] * 2
    whole = _plan().check(bandwidth_GBps=[170, 130], seeds=1)
    assert whole.failed_step_time_s is None
    assert "failed" not in repr(whole)
    assert list(whole.to_frame().columns) == [x for x in frame.columns if "failed" not in x]


def test_a_check_takes_what_the_command_takes_and_designs(tmp_path: Path) -> None:
    plan = _plan()
    vector = {"bandwidth_GBps": [170, 130]}
    design = plan.evaluate(**vector)
    path = plan.save(tmp_path / "plan.yaml")
    for found in (
        lp.check(plan, policy="spray", **vector),
        lp.check("07_check", "spray", **vector),
        lp.check(path, "spray", **vector),
        lp.check(yaml.safe_load(path.read_text()), "spray", **vector),
        lp.check(design, "spray"),
    ):
        assert found.mean_step_time_s == design.check("spray").mean_step_time_s
    assert lp.check(plan.optimize(), "spray").to_dict() == plan.check("spray").to_dict()
    assert inspect.ismodule(importlib.import_module("libra_planner.check"))
    assert inspect.isfunction(lp.check)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("optimise", "optimize"), ("optimize_plan", "optimize"), ("load", "load_plan")],
)
def test_names_that_the_package_does_not_have(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; did you mean {meant}\?$"):
        getattr(lp, name)
    assert not hasattr(lp, "__nothing__")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"bandwith_GBps": [450, 50, 25]}, "did you mean bandwidth_GBps?"),
        ({"hash": "crc32"}, "write lp.Policy('ecmp', hash='crc32') in place of its name"),
        ({"time_limit": 5}, "write lp.Policy('ilp', time_limit_s=5) in place of its name"),
        ({"colour": 1}, "single_failures, trace, bandwidth_GBps"),
    ],
)
def test_checks_say_what_an_argument_was_meant_to_be(asked: dict, words: str) -> None:
    with pytest.raises(TypeError) as refused:
        lp.load_plan("07_check").check("ecmp", **asked)
    assert words in str(refused.value)
