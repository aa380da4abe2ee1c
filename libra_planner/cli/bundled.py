"""``libra-planner list``, ``schema`` and ``import``: what is bundled, and files of any kind."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap

from libra_planner.cli.streams import PIPE_WIDTH, answer, hint, print_json, say, tell_kept
from libra_planner.reading import bundled


def list_bundled(options: argparse.Namespace) -> None:
    """``libra-planner list``."""
    if options.kind is None:
        _list_kinds(options)
        return
    if options.kind in ("npus", "scale-ups", "clusters"):
        _list_catalogue(options)
        return
    if options.kind == "workloads":
        _list_workloads(options)
        return
    payload, texts = _fabrics() if options.kind == "fabrics" else _files(options.kind)
    if options.json:
        print_json({options.kind: payload})
        return
    _say_all(texts)


def _list_kinds(options: argparse.Namespace) -> None:
    """What there is to list."""
    from libra_planner.cli.arguments.commands import LISTED

    if options.json:
        print_json({"kinds": LISTED})
        return
    _say_all(LISTED)
    hint("libra-planner list workloads")


def _say_all(texts: Mapping[str, str]) -> None:
    """Names, and beside each what it stands for."""
    for name, text in texts.items():
        say(_wrapped(name, text, max(map(len, texts)) + 2))


def _wrapped(name: str, text: str, n_before: int) -> list[str]:
    """A name and what it stands for, beside it."""
    width = max(get_terminal_size(fallback=(PIPE_WIDTH, 1)).columns - 1, n_before + 20)
    lines = wrap(text, width - n_before, break_long_words=False, break_on_hyphens=False)
    return [f"{name if i == 0 else '':<{n_before}}{line}" for i, line in enumerate(lines)]


def _list_catalogue(options: argparse.Namespace) -> None:
    """NPUs, the scale-up domains that join them, or clusters."""
    from libra_planner.inputs.training.named_clusters import clusters
    from libra_planner.plan.npus import catalogue
    from libra_planner.views import catalogue as views

    if options.kind == "clusters":
        known = clusters()
        answer(options, lambda: views.clusters_payload(known), views.cluster_blocks(known))
        return
    found = catalogue()
    if options.kind == "npus":
        answer(options, lambda: views.npus_payload(found), views.npu_blocks(found))
    else:
        answer(options, lambda: views.scale_ups_payload(found), views.scale_up_blocks(found))


def _list_workloads(options: argparse.Namespace) -> None:
    """Workloads, with what is known of their models."""
    from libra_planner.plan.workloads import model_facts
    from libra_planner.views import catalogue as views

    files, abouts = _files("workloads")
    paths = {name: Path(str(file)) for name, file in files.items()}
    found = [
        views.ListedWorkload(name, abouts[name], path, model_facts(path))
        for name, path in paths.items()
    ]
    answer(options, lambda: views.workloads_payload(found), views.workload_blocks(found))


def _files(kind: str) -> tuple[Mapping[str, object], Mapping[str, str]]:
    paths = {name: bundled.resolve(kind, name, None) for name in bundled.names(kind)}
    named = {name: str(path) for name, path in paths.items()}
    if kind in bundled.FLOW_LISTS:
        return named, named
    texts = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    about = {name: _first_line(text) for name, text in texts.items()}
    if kind == "cost-models":
        about = {name: f"{text} {_confidence(name)}" for name, text in about.items()}
    return named, about


def _first_line(text: str) -> str:
    """The comment that says what a file is; editors read the one before it."""
    lines = (line.lstrip("# ") for line in text.splitlines())
    return next(line for line in lines if not line.startswith("yaml-language-server"))


def _confidence(name: str) -> str:
    """Date of a price book, and how sure its prices are."""
    from libra_planner.plan.prices import load_price_book

    book = load_price_book(name)
    return f"({book.as_of}, {book.confidence(book.tiers)})"


def _fabrics() -> tuple[Mapping[str, object], Mapping[str, str]]:
    """Fabrics by name, for ``flows`` and for ``fabric.realization.preset``."""
    from libra_planner.fabric.realization import PRESETS

    rows = {name: {"note": one.note, "assumed": one.assumed} for name, one in PRESETS.items()}
    return rows, {name: "{note} (assumed: {assumed})".format_map(row) for name, row in rows.items()}


def schema(options: argparse.Namespace) -> None:
    """``libra-planner schema``."""
    if options.format == "sweep":
        from libra_planner.sweeps.axes import sweep_schema

        print_json(sweep_schema())
        return
    from libra_planner.inputs.schema import json_schema

    print_json(json_schema(options.format))


def import_libra(options: argparse.Namespace) -> None:
    """``libra-planner import libra``."""
    from libra_planner.interop import libra

    names = (options.network, options.workload, options.communicator, options.cost_model)
    written, kept = libra.import_libra(libra.LibraFiles(*map(Path, names)), Path(options.output))
    say(map(str, written))
    tell_kept(kept)
    print("The plan has no rules yet: add e.g. 'total == 300 GB/s'.", file=sys.stderr)


def import_huggingface(options: argparse.Namespace) -> None:
    """``libra-planner import huggingface``."""
    from libra_planner.interop import huggingface

    config, workload = Path(options.config), Path(options.output)
    made = huggingface.import_huggingface(config, workload, options.sequence_tokens)
    say((str(workload),))
    tell_kept(made.kept)
    text = f"{made.n_parameters:,} parameters, sequences of {made.n_tokens:,} tokens"
    other = "" if options.sequence_tokens else "; --sequence-tokens N sets others"
    print(f"{text}{other}. A plan names it: workload: ./{workload.name}", file=sys.stderr)
