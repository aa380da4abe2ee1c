"""Arguments of ``libra-planner report``; imports nothing that takes time."""

from __future__ import annotations

import argparse

from libra_planner.cli.arguments import add_settings
from libra_planner.cli.numbers import whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the designs and options of a report."""
    what = (
        "PLAN (its optimum), PLAN@B1,B2,... in GB/s, PLAN@RESULT.json, RESULT.json, or DIR:ROW of "
        "a sweep"
    )
    parser.add_argument("designs", metavar="DESIGN", nargs="+", help=what)
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write to")
    for flag, metavar, text in (
        ("--formats", "F1,F2,...", "of html, xlsx, csv, md and pdf; default all but pdf"),
        (
            "--baseline",
            "DESIGN",
            "show differences against it: its letter (A first) or name",
        ),
        ("--tokens", "N", "tokens of a training run, such as 15e12; default 1e12"),
        ("--check", "POLICY", "route the collectives over the links, such as ecmp"),
    ):
        parser.add_argument(flag, metavar=metavar, help=text)
    what = "routings of --check that figures are the mean of; default 10, fewer of very many flows"
    parser.add_argument("--seeds", type=whole(1, 1000), metavar="N", help=what)
    parser.add_argument(
        "--parts", default="parts", metavar="CATALOGUE", help="parts catalogue: a name or a path"
    )
    parser.add_argument(
        "--allow-missing", action="store_true", help="total without the parts that have no price"
    )
    add_settings(parser, "every plan")
