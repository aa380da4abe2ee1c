"""``libra-planner list``, ``schema`` and ``import``: what is bundled, and files of any kind."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from libra_planner.cli.arguments import Commands, add_json, command
from libra_planner.cli.streams import print_json, tell_kept
from libra_planner.plain_text import visible


def add_list(commands: Commands) -> None:
    """Add ``list``."""
    parser = command(commands, "list", list_bundled, "List what is bundled.")
    kinds = ("workloads", "cost-models", "npu-catalogues", "parts", "fabrics", "examples", "sweeps")
    parser.add_argument("kind", choices=kinds)
    add_json(parser)


def add_schema(commands: Commands) -> None:
    """Add ``schema``."""
    text = "Print the JSON Schema of a file format, for editors."
    parser = command(commands, "schema", schema, text)
    formats = ("plan", "workload", "price-book", "npu-catalogue", "parts", "sweep")
    parser.add_argument("format", choices=formats)


def add_import(commands: Commands) -> None:
    """Add ``import`` and its formats."""
    parser = commands.add_parser("import", help="Read another tool's files.", allow_abbrev=False)
    formats = parser.add_subparsers(dest="format", required=True, metavar="FORMAT")
    text = "Write a plan, a workload and a price book from LIBRA's four input files."
    libra = command(formats, "libra", import_libra, text)
    for name, what in (
        ("network", "network .yml"),
        ("workload", "workload .txt"),
        ("communicator", "communicator .yml"),
        ("cost-model", "cost model .yml"),
    ):
        libra.add_argument(f"--{name}", required=True, metavar="FILE", help=f"LIBRA's {what}")
    libra.add_argument("-o", "--output", required=True, metavar="PLAN", help="plan to write")


def list_bundled(options: argparse.Namespace) -> None:
    """``libra-planner list``."""
    from libra_planner.reading import bundled

    if options.kind == "fabrics":
        _list_fabrics(options)
        return
    folder = bundled.folder(options.kind)
    rows = {name: folder / f"{name}.yaml" for name in bundled.names(options.kind)}
    if options.json:
        print_json({options.kind: {name: str(path) for name, path in rows.items()}})
        return
    width = max(len(name) for name in rows)
    for name, path in rows.items():
        text = str(path) if options.kind in ("examples", "sweeps") else _first_comment(path)
        print(f"{name:<{width}}  {text}")


def _list_fabrics(options: argparse.Namespace) -> None:
    """Fabrics by name, for ``flows`` and for ``fabric.realization.preset``."""
    from libra_planner.fabric.realization import PRESETS

    rows = {name: {"note": one.note, "assumed": one.assumed} for name, one in PRESETS.items()}
    if options.json:
        print_json({"fabrics": rows})
        return
    width = max(len(name) for name in rows)
    for name, row in rows.items():
        print(f"{name:<{width}}  {row['note']} (assumed: {row['assumed']})")


def _first_comment(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def schema(options: argparse.Namespace) -> None:
    """``libra-planner schema``."""
    from libra_planner.inputs.schema import json_schema

    if options.format == "sweep":
        from libra_planner.sweeps.axes import sweep_schema

        print_json(sweep_schema())
        return
    print_json(json_schema(options.format))


def import_libra(options: argparse.Namespace) -> None:
    """``libra-planner import libra``."""
    from libra_planner.interop.libra import LibraFiles
    from libra_planner.interop.libra import import_libra as import_files

    names = (options.network, options.workload, options.communicator, options.cost_model)
    written, kept = import_files(LibraFiles(*map(Path, names)), Path(options.output))
    for path in written:
        print(visible(str(path)))
    tell_kept(kept)
    print("The plan has no rules yet: add e.g. 'total == 300 GB/s'.", file=sys.stderr)
