"""How help reads: commands by who uses them, short usage lines, examples that run."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill

from libra_planner.cli.arguments.making import Argument

PROGRAM = "libra-planner"
WIDTH = 79
"""Letters of a line of examples."""

GROUPS: Mapping[str, Sequence[str]] = {
    "first steps": ("init", "list", "completion"),
    "the architect: one cluster": ("optimize", "search", "check", "pareto", "evaluate", "tui"),
    "the analyst: many designs": ("sweep",),
    "the buyer": ("report",),
    "one question, without a plan": ("train", "collective", "kernels", "fabric", "flows"),
    "own cluster, other tools": ("calibrate", "import", "schema"),
}
"""Commands by who asks for them, in the order of the help."""

_EXIT_CODES = """\
exit codes: 0 done, 2 bad input, 3 infeasible or ill-posed, 4 not certified,
130 interrupted; 1 is a fault of libra-planner"""

Example = tuple[str, str]
"""What to type behind the program's name, and what it does."""

EXAMPLES: Mapping[str, Sequence[Example]] = {
    "": (
        ("optimize 0e_rails_2to1", "Llama 3 70B on 2,048 H100"),
        ("init", "a plan of your own"),
        ("optimize --help", "a command with examples"),
    ),
    "init": (
        ("init", "asks on a terminal"),
        ("init --model llama3-70b --npu h100-sxm --npus 2048 --taper 2", "writes plan.yaml"),
        ("init --model gpt3 --workload own.yaml --npu b200-sxm --npus 512", "own model, as gpt3"),
    ),
    "optimize": (
        ("optimize 0e_rails_2to1", "a bundled plan"),
        ("optimize plan.yaml --set global_batch=2048", "another value"),
        ("optimize plan.yaml --json", "all figures"),
        ("optimize 07_check --routing ecmp", "on its links"),
    ),
    "evaluate": (("evaluate 01_gpt3_4d --bandwidth 300,100,75,25", ""),),
    "check": (
        ("check 0e_rails_2to1 --seeds 3", "routed by ECMP"),
        ("check plan.yaml --policy greedy --n-1", "single failures"),
        ("check a.yaml b.yaml", "two jobs on one fabric"),
    ),
    "pareto": (
        ("pareto 0e_rails_2to1", "25 designs, cheapest first"),
        ("pareto plan.yaml --points 100 --csv", "for a spreadsheet"),
    ),
    "train": (
        ("train --model llama3-8b --npu h100-sxm --tp 2 --dp 8 --global-batch 64", ""),
        ("train --csv runs.csv", "adds predictions to a table of runs"),
    ),
    "search": (
        ("search 0e_rails_2to1 --top 3", "each strategy with its best network"),
        ("search --model gpt3 --npu h100-sxm --gpus 512 --global-batch 512", ""),
    ),
    "collective": (
        ("collective --system gb200 --kind all-reduce --size 1GiB", "as NCCL runs it"),
        ("collective 'RI(4)_SW(8)' --kind all-reduce --size 1MB --bandwidth 3,1", ""),
    ),
    "kernels": (
        ("kernels --npu h100-sxm --op gemm --m 4096 --n 8192 --k 8192", ""),
        ("kernels --csv kernels.csv", "adds a time to every row"),
    ),
    "calibrate": (("calibrate --nccl all_reduce.log --nics 8x400Gbps -o system.yaml", ""),),
    "sweep": (
        ("sweep plan 13_tapers", "how much work it is"),
        ("sweep run 13_tapers -o tapers", "do it, or go on"),
        ("sweep show tapers --pareto", "the best of them"),
        ("sweep design tapers 2 -o plan.yaml", "a row as a plan"),
    ),
    "flows": (
        ("flows flowtracer_fabric flowtracer_flows", "bundled files"),
        ("flows fabric.yaml flows.csv --compare", "all policies"),
        ("flows --hops trace.csv", "measured hops"),
    ),
    "fabric": (("fabric --hosts 256 --nic 400Gbps --taper 2", "2,048 NPUs on 8 rails"),),
    "report": (
        ("report a.yaml b.yaml --baseline A -o report", "two optima compared"),
        ("report 0e_rails_2to1 0e_rails_2to1@450,25,12.5 -o report", "and a given one"),
    ),
    "list": (("list workloads", "models"), ("list examples", "plans")),
    "schema": (("schema plan", "keys of a plan, for editors"),),
    "completion": (("completion bash", 'in ~/.bashrc: eval "$(...)"'),),
    "tui": (("tui 0e_rails_2to1", ""), ("tui --web", "in a browser on this machine")),
}
"""By command; a test reads every one as the command line does."""


def examples_text(command: str) -> str:
    """The examples of a command as the end of its help; empty without any.

    >>> print(examples_text("schema"))
    examples:
      libra-planner schema plan  # keys of a plan, for editors
    """
    return "\n".join(["examples:", *_lines(EXAMPLES[command])]) if command in EXAMPLES else ""


def _lines(examples: Sequence[Example]) -> Iterator[str]:
    """Commands with what they do behind them where all have room for it, else above."""
    commands = [(f"{PROGRAM} {typed}", f"# {what}" if what else "") for typed, what in examples]
    width = max(len(typed) for typed, _ in commands)
    in_line = [f"  {typed:<{width}}  {what}".rstrip() for typed, what in commands]
    if max(map(len, in_line)) <= WIDTH:
        yield from in_line
        return
    for typed, what in commands:
        if what:
            yield f"  {what}"
        yield from _folded(typed)


def _folded(command: str) -> Iterator[str]:
    """A command in lines that a shell joins."""
    line = "  "
    for part in re.split(r" (?=-)", command):
        if len(line) + len(part) > WIDTH - 3:
            yield f"{line}\\"
            line = "      "
        line += f"{part} "
    yield line.rstrip()


def help_text(commands: Mapping[str, str]) -> str:
    """The help of the program: commands with what they do, by who asks for them."""
    parts = [
        f"usage: {PROGRAM} COMMAND ...",
        "Plans the network of an AI training cluster, with a proof of optimality.",
        *(
            "\n".join([title, *(f"  {name:<10}  {commands[name]}" for name in names)])
            for title, names in GROUPS.items()
        ),
        f"options\n  {'--help':<10}  of the program, or behind a command\n  --version",
        examples_text(""),
        _EXIT_CODES,
    ]
    return "\n\n".join(parts) + "\n"


def usage(command: str, arguments: Iterable[Argument]) -> str:
    """What has to be given to a command, and whether there are options.

    >>> usage("check", [(["plan"], {"metavar": "PLAN", "nargs": "+"}), (["--json"], {})])
    'check PLAN [PLAN ...] [options]'
    """
    words, has_options = list[str](), False
    for names, settings in arguments:
        is_option = names[0].startswith("-")
        if is_option and not settings.get("required"):
            has_options = True
            continue
        value = settings.get("metavar", names[0].upper())
        several = {"?": f"[{value}]", "+": f"{value} [{value} ...]"}
        flag = f"{names[0]} " if is_option else ""
        words.append(f"{flag}{several.get(settings.get('nargs', ''), value)}")
    text = " ".join([command, *words, *["[options]"][: int(has_options)]])
    return fill(text, WIDTH - len("usage: "), subsequent_indent=" " * 4, break_on_hyphens=False)


def formatter(prog: str) -> argparse.HelpFormatter:
    """How the help of a command is set."""
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=26)
